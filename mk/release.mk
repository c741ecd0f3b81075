# Releases. make release: everything that users download, in build/release-VERSION: the tarball with a binary for any Linux with glibc 2.31 or
# later, an OCI image, the Debian packages, the clients, the sources; SBOM.spdx.json, SHA256SUMS, and with SIGN=FILE its signature. It is made in
# a copy of what git knows, and the same commit gives the same bytes (SOURCE_DATE_EPOCH is the date of debian/changelog).
# make release-test tries all of it: in chroots of Debian 11 and 12, and with runc (root, mmdebstrap).
.PHONY: portable release release-test
OLD_GLIBC := build/old-glibc
STATIC = $(shell pkg-config --variable=libdir openssl)
PORTABLE_LIBS = $(patsubst %,$(STATIC)/lib%.a,sqlite3 yaml ssl crypto z)

$(OLD_GLIBC)/.done: tools/old-glibc
	@rm -rf $(OLD_GLIBC) && tools/old-glibc $(OLD_GLIBC)
build/portable/newer.o: packaging/portable/newer.c
	@mkdir -p $(@D)
	$(SAY)$(CC) $(OPT_release) -Wall -Wextra -c -o $@ $<
# The objects of the release, with the archives of what Debian's binary loads; libpq and libnghttp2 are loaded when they are needed, as always.
build/portable/cairn: build/release/src/cli/main.o build/release/libcairn-all.a build/portable/newer.o $(OLD_GLIBC)/.done
	$(SAY)$(CC) $(LDHARDEN) -Wl,--build-id=none,--as-needed -static-libgcc --sysroot=$(CURDIR)/$(OLD_GLIBC)/root -B$(CURDIR)/$(OLD_GLIBC)/root/usr/lib/$(notdir $(STATIC)) \
	  -o $@.tmp $(filter %.o %.a,$^) $(PORTABLE_LIBS) -lpthread -lm -ldl && strip $@.tmp && mv $@.tmp $@
portable: build/portable/cairn

release:
	@./setup packages
	@tools/release build/release-$(LIBRARY_VERSION) $(if $(SIGN),--sign $(SIGN))
release-test:
	@$(MAKE) -j2 all
	@ls build/release-$(LIBRARY_VERSION)/SHA256SUMS >/dev/null 2>&1 || $(MAKE) release
	@test/package/release_test build/release-$(LIBRARY_VERSION)
