# The page: web/ -> web/dist (npm ci, esbuild) -> build/*/gen/page.c, which the binary carries. make PAGE=no leaves it out.
# Everything that may be missing on a machine is asked for here, so that a message can say what to do about it.
PAGE ?= yes
PAGE_SRCS := $(shell find web/src web/static -type f 2>/dev/null) web/build.mjs web/tsconfig.json
DOCS_SRCS := $(shell find docs schemas -name "*.md" -o -name "*.json") docs/man/cairn.1 src/cli/help/problems.txt README.md ARCHITECTURE.md SECURITY.md $(wildcard clients/*.md clients/*/*.md bindings/*/*.md) web/docs.mjs web/reference.mjs $(wildcard web/docs/*) \
  src/api/route.c src/service/settings.c src/cli/config.c src/doc/diagnostic_list.h # what the reference is made of
NPM_STAMP := web/node_modules/.cairn
PAGE_STAMP := web/dist/.cairn
DOCS_STAMP := web/dist/docs/.cairn
PAGE_HINT := "make PAGE=no" builds without the page

.PHONY: page page-clean
page: $(PAGE_STAMP) $(DOCS_STAMP)

# Packages as package-lock.json names them, and nothing else. npm removes what was there before, the stamp with it.
$(NPM_STAMP): web/package.json web/package-lock.json web/.npmrc
	@command -v npm >/dev/null 2>&1 || { echo 'make: the page needs node and npm, which ./setup installs; $(PAGE_HINT)' >&2; exit 1; }
	@echo "  NPM web/node_modules"
	@mkdir -p build && (cd web && npm ci --no-progress --loglevel=error) >build/npm.log 2>&1 || \
	  { cat build/npm.log >&2; echo 'make: npm ci failed in web/; $(PAGE_HINT)' >&2; exit 1; }
	@touch $@

# ---- the fold: the pure tier, and what of stores reads a bundle, compiled for browsers (ADR 0033). What is not reached is left out by
# the linker; what is then still missing is found as an import that the page does not have (test/e2e/wasm_test.sh).
WASM_CC ?= clang
WASM := build/wasm/cairn.wasm
WASM_YAML := web/node_modules/libyaml/deps/yaml/src
WASM_STORE := absent bundle bundle_store crc32c keep keys lines replay result store verify wire
WASM_SRCS := $(foreach m,base json schedule schema expr template doc program executor contract kernel view explain,$(sort $(wildcard src/$(m)/*.c))) \
  $(WASM_STORE:%=src/store/%.c) src/engine/load.c src/reading/fold.c src/reading/parts.c src/reading/row.c
WASM_OBJS := $(WASM_SRCS:%.c=build/wasm/%.o) $(patsubst %,build/wasm/web/%.o,fold host sha256) $(patsubst %,build/wasm/yaml/%.o,api reader scanner parser) build/wasm/gen/embedded.o
WASM_FLAGS := --target=wasm32-wasi -Oz -Iweb/wasm/include -Iweb/wasm -Isrc -Iinclude -I$(WASM_YAML)/include -fvisibility=hidden \
  -fno-strict-aliasing -ffp-contract=off -ffunction-sections -fdata-sections

build/wasm/.tools:
	@mkdir -p $(@D)
	@echo 'int x;' | $(WASM_CC) --target=wasm32-wasi -x c -c -o /dev/null - 2>/dev/null && command -v wasm-ld wasm-ld-14 >/dev/null 2>&1 && [ -e /usr/lib/wasm32-wasi/libc.a ] || \
	  { echo 'make: the fold of the page needs clang, lld and wasi-libc, which ./setup installs; $(PAGE_HINT)' >&2; exit 1; }
	@touch $@
build/wasm/src/%.o: src/%.c | build/wasm/.tools $(NPM_STAMP)
	@mkdir -p $(@D)
	$(SAY)$(WASM_CC) $(WASM_FLAGS) $(if $(filter $(firstword $(subst /, ,$*)),$(PURE)),$(CFLAGS_PURE),$(CFLAGS_EFFECT)) -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<
build/wasm/web/%.o: web/wasm/%.c | build/wasm/.tools
	@mkdir -p $(@D)
	$(SAY)$(WASM_CC) $(WASM_FLAGS) $(CFLAGS_EFFECT) -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<
build/wasm/yaml/%.o: $(NPM_STAMP) | build/wasm/.tools
	@mkdir -p $(@D)
	$(SAY)$(WASM_CC) $(WASM_FLAGS) -w -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=1 -DYAML_VERSION_PATCH=6 -DYAML_VERSION_STRING='"0.1.6"' -c -o $@ $(WASM_YAML)/src/$*.c
build/wasm/gen/embedded.o: $(B)/gen/embedded.c | build/wasm/.tools
	@mkdir -p $(@D)
	$(SAY)$(WASM_CC) $(WASM_FLAGS) -c -o $@ $<
$(WASM): $(WASM_OBJS)
	$(SAY)$(WASM_CC) --target=wasm32-wasi -mexec-model=reactor -Wl,--gc-sections,--allow-undefined,--strip-all,-z,stack-size=1048576 -o $@ $^
-include $(shell find build/wasm -name '*.d' 2>/dev/null)

# What the fold is held against: the same questions, answered by the same C on this machine.
$(B)/test/wasm/told: $(B)/test/wasm/told.o $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
ifneq ($(PAGE),no)
programs: $(B)/test/wasm/told
endif

$(PAGE_STAMP): $(NPM_STAMP) $(PAGE_SRCS) $(WASM)
	@echo "  PAGE web/dist"
	@node web/build.mjs || { echo 'make: the page was not built; $(PAGE_HINT)' >&2; exit 1; }
	@touch $@

# The guides: make docs leaves the whole site in build/docs, to be opened from there; the binary carries it below /docs without pictures,
# decisions and history. A link that leads nowhere fails both.
.PHONY: docs
docs:
	@node web/docs.mjs build/docs
$(DOCS_STAMP): $(PAGE_STAMP) $(DOCS_SRCS)
	@echo "  DOCS web/dist/docs"
	@node web/docs.mjs web/dist/docs --carried >build/docs.log || { cat build/docs.log >&2; echo 'make: the guides were not built; $(PAGE_HINT)' >&2; exit 1; }
	@touch $@

# Which of the two is in the object: another word than the last one makes it again.
$(B)/gen/page.mode: FORCE | $(B)/gen/.dir
	@[ "$$(cat $@ 2>/dev/null)" = "$(PAGE)" ] || echo "$(PAGE)" >$@
.PHONY: FORCE
FORCE:

ifeq ($(PAGE),no)
$(B)/gen/page.c: $(B)/gen/page.mode
	@printf '// Written by mk/page.mk; not edited.\n#include "api/page.h"\n\nconst struct page_file page_files[] = {{0}};\nconst size_t page_file_count = 0;\n' >$@.tmp && mv $@.tmp $@
else
$(B)/gen/page.c: $(PAGE_STAMP) $(DOCS_STAMP) $(B)/gen/page.mode web/build.mjs
	@node web/build.mjs --carry $@
endif

clean: page-clean
page-clean:
	rm -rf web/dist

# In Debian's Chromium: every view in both themes at three widths, all hostile strings, 10,000 steps (test/e2e/web_test.sh has the rest,
# which make test runs); and the pictures of the docs.
.PHONY: page-full screenshots
page-full: all
	@d=$$(mktemp -d) && FULL=yes node web/test/browser.mjs build/cairn $$d; rc=$$?; rm -rf $$d; exit $$rc
screenshots: all
	@d=$$(mktemp -d) && node web/test/screenshots.mjs build/cairn $$d docs/images; rc=$$?; rm -rf $$d; exit $$rc
