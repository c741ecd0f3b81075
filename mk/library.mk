# libcairn: the modules up to lib, compiled for shared objects in a variant of their own, so that build/cairn pays nothing.
#   build/libcairn.so.0   only cairn_ names, version CAIRN_0.1 (mk/libcairn.map)
#   build/libcairn.a      one object whose inner names are local
LIBRARY_MODULES := base json schema expr template doc program contract kernel view explain http auth os fetch store bus tool task engine reading lib
PIC := build/pic
PIC_CFLAGS = $(WARN) $(subst -I$(B)/gen,-I$(PIC)/gen,$(COMMON)) -O2 $(subst -fPIE,-fPIC,$(HARDEN)) $(EXTRA)
PIC_OBJS := $(patsubst %.c,$(PIC)/%.o,$(foreach m,$(LIBRARY_MODULES),$(sort $(wildcard src/$(m)/*.c)))) $(addprefix $(PIC)/gen/,embedded.o tables.o scripts.o)
SOVERSION := 0
LIBRARY_VERSION = $(shell sed -n 's/^\#define CAIRN_VERSION "\(.*\)"/\1/p' include/cairn/cairn.h)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man

.PHONY: library install install-library
library: build/libcairn.so.$(SOVERSION) build/libcairn.a

$(PIC)/src/%.o: src/%.c | $(PIC)/gen/.dir
	@mkdir -p $(@D)
	$(SAY)$(CC) $(if $(filter $(firstword $(subst /, ,$*)),$(PURE)),$(CFLAGS_PURE),$(CFLAGS_EFFECT)) $(PIC_CFLAGS) -MMD -MP -c -o $@ $<
$(PIC)/gen/.dir:
	@mkdir -p $(@D) && touch $@
$(PIC)/gen/embedded.c: tools/embed $(EMBED) | $(PIC)/gen/.dir
	@sh tools/embed $(EMBED) > $@.tmp && mv $@.tmp $@
$(PIC)/gen/tables.c: tools/embed $(TABLES) | $(PIC)/gen/.dir
	@sh tools/embed --as table $(TABLES) > $@.tmp && mv $@.tmp $@
$(PIC)/gen/scripts.c: tools/embed $(SCRIPTS) | $(PIC)/gen/.dir
	@sh tools/embed --as script $(SCRIPTS) > $@.tmp && mv $@.tmp $@
$(PIC)/gen/%.o: $(PIC)/gen/%.c
	$(SAY)$(CC) $(CFLAGS_PURE) $(PIC_CFLAGS) -c -o $@ $<

# Threads of the library may outlive a dlclose, so it refuses to be unloaded.
build/libcairn.so.$(SOVERSION): $(PIC_OBJS) mk/libcairn.map
	$(SAY)$(CC) -shared -Wl,-soname,libcairn.so.$(SOVERSION),--version-script=mk/libcairn.map,--no-undefined \
	  -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,-z,nodelete,--as-needed -o $@ $(PIC_OBJS) $(LIBS)

build/libcairn.a: $(PIC_OBJS)
	$(SAY)$(LD) -r -o $(PIC)/cairn.o $(PIC_OBJS) && objcopy --localize-hidden $(PIC)/cairn.o && rm -f $@ && ar rcs $@ $(PIC)/cairn.o

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
	install -D -m 755 build/cairn $(DESTDIR)$(PREFIX)/bin/cairn
	install -D -m 644 docs/man/cairn.1 $(DESTDIR)$(MANDIR)/man1/cairn.1

-include $(shell find $(PIC) -name '*.d' 2>/dev/null)
