# libcairn: the modules up to lib, of the same objects as the release binary (make V=release, the default).
#   build/libcairn.so.0   only cairn_ names, version CAIRN_0.1 (mk/libcairn.map)
#   build/libcairn.a      one object whose inner names are local
LIBRARY_MODULES := base json schedule schema expr template doc program executor contract kernel view explain http auth os fetch reach store bus tool task engine reading lib
LIBRARY_OBJS := $(patsubst %.c,build/release/%.o,$(foreach m,$(LIBRARY_MODULES),$(sort $(wildcard src/$(m)/*.c)))) $(addprefix build/release/gen/,embedded.o tables.o scripts.o sqls.o)
SOVERSION := 0
LIBRARY_VERSION = $(shell sed -n 's/^\#define CAIRN_VERSION "\(.*\)"/\1/p' include/cairn/cairn.h)

.PHONY: library
library: build/libcairn.so.$(SOVERSION) build/libcairn.a

# Threads of the library may outlive a dlclose, so it refuses to be unloaded.
build/libcairn.so.$(SOVERSION): $(LIBRARY_OBJS) mk/libcairn.map
	$(SAY)$(CC) -shared -Wl,-soname,libcairn.so.$(SOVERSION),--version-script=mk/libcairn.map,--no-undefined \
	  -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,-z,nodelete,--as-needed -o $@ $(LIBRARY_OBJS) $(LIBS)

build/libcairn.a: $(LIBRARY_OBJS)
	$(SAY)$(LD) -r -o build/release/cairn.o $(LIBRARY_OBJS) && objcopy --localize-hidden build/release/cairn.o && rm -f $@ && ar rcs $@ build/release/cairn.o
