# The page: web/ -> web/dist (npm ci, esbuild) -> build/*/gen/page.c, which the binary carries. make PAGE=no leaves it out.
# Everything that may be missing on a machine is asked for here, so that a message can say what to do about it.
PAGE ?= yes
PAGE_SRCS := $(shell find web/src web/static -type f 2>/dev/null) web/build.mjs web/tsconfig.json
NPM_STAMP := web/node_modules/.cairn
PAGE_STAMP := web/dist/.cairn
PAGE_HINT := "make PAGE=no" builds without the page

.PHONY: page page-clean
page: $(PAGE_STAMP)

# Packages as package-lock.json names them, and nothing else. npm removes what was there before, the stamp with it.
$(NPM_STAMP): web/package.json web/package-lock.json web/.npmrc
	@command -v npm >/dev/null 2>&1 || { echo 'make: the page needs node and npm, which ./setup installs; $(PAGE_HINT)' >&2; exit 1; }
	@echo "  NPM web/node_modules"
	@mkdir -p build && (cd web && npm ci --no-progress --loglevel=error) >build/npm.log 2>&1 || \
	  { cat build/npm.log >&2; echo 'make: npm ci failed in web/; $(PAGE_HINT)' >&2; exit 1; }
	@touch $@

$(PAGE_STAMP): $(NPM_STAMP) $(PAGE_SRCS)
	@echo "  PAGE web/dist"
	@node web/build.mjs || { echo 'make: the page was not built; $(PAGE_HINT)' >&2; exit 1; }
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
$(B)/gen/page.c: $(PAGE_STAMP) $(B)/gen/page.mode web/build.mjs
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
