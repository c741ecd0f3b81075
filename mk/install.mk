# make install: everything where the unit, the shells and compilers look for it; make uninstall takes it away again. Settings that
# are there are kept, and so is what the service has stored.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
# below another prefix nothing outside of it is written
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),,$(PREFIX))/etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

INSTALLED_LIBRARY = $(LIBDIR)/libcairn.so.$(LIBRARY_VERSION) $(LIBDIR)/libcairn.so.$(SOVERSION) $(LIBDIR)/libcairn.so $(LIBDIR)/libcairn.a \
  $(INCLUDEDIR)/cairn/cairn.h $(INCLUDEDIR)/cairn/plugin.h $(LIBDIR)/pkgconfig/cairn.pc $(MANDIR)/man3/cairn.3
INSTALLED = $(BINDIR)/cairn $(MANDIR)/man1/cairn.1 $(BASHDIR)/cairn $(ZSHDIR)/_cairn $(FISHDIR)/cairn.fish $(UNITDIR)/cairn.service $(INSTALLED_LIBRARY)

.PHONY: install install-library uninstall
install-library: library
	install -D -m 644 build/libcairn.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libcairn.so.$(LIBRARY_VERSION)
	strip --strip-debug $(DESTDIR)$(LIBDIR)/libcairn.so.$(LIBRARY_VERSION)
	ln -sf libcairn.so.$(LIBRARY_VERSION) $(DESTDIR)$(LIBDIR)/libcairn.so.$(SOVERSION)
	ln -sf libcairn.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libcairn.so
	install -m 644 build/libcairn.a $(DESTDIR)$(LIBDIR)/libcairn.a
	strip --strip-debug $(DESTDIR)$(LIBDIR)/libcairn.a
	install -D -m 644 include/cairn/cairn.h $(DESTDIR)$(INCLUDEDIR)/cairn/cairn.h
	install -m 644 include/cairn/plugin.h $(DESTDIR)$(INCLUDEDIR)/cairn/plugin.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(LIBRARY_VERSION)|; s|@LIBS@|$(LIBS)|' \
	  mk/cairn.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/cairn.pc
	install -D -m 644 docs/man/cairn.3 $(DESTDIR)$(MANDIR)/man3/cairn.3

install: all install-library
	install -D -m 755 build/cairn $(DESTDIR)$(BINDIR)/cairn
	install -D -m 644 docs/man/cairn.1 $(DESTDIR)$(MANDIR)/man1/cairn.1
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR) $(DESTDIR)$(UNITDIR)
	build/cairn completion bash >$(DESTDIR)$(BASHDIR)/cairn
	build/cairn completion zsh >$(DESTDIR)$(ZSHDIR)/_cairn
	build/cairn completion fish >$(DESTDIR)$(FISHDIR)/cairn.fish
	sed 's|@BINDIR@|$(BINDIR)|' packaging/cairn.service >$(DESTDIR)$(UNITDIR)/cairn.service
	chmod 644 $(DESTDIR)$(BASHDIR)/cairn $(DESTDIR)$(ZSHDIR)/_cairn $(DESTDIR)$(FISHDIR)/cairn.fish $(DESTDIR)$(UNITDIR)/cairn.service
	[ -e $(DESTDIR)$(SYSCONFDIR)/cairn/config.toml ] || install -D -m 644 packaging/config.toml $(DESTDIR)$(SYSCONFDIR)/cairn/config.toml
	[ -e $(DESTDIR)$(SYSCONFDIR)/default/cairn ] || install -D -m 644 packaging/cairn.default $(DESTDIR)$(SYSCONFDIR)/default/cairn

uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/cairn 2>/dev/null
