# What a newcomer types first, the benchmark, and installing.
.PHONY: demo bench install
demo:
	@./setup
	@$(MAKE) -j2 all >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@tools/demo

bench:
	@./setup
	@$(MAKE) -j2 all >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@build/cairn bench $(BENCH_ARGS)

PREFIX ?= /usr/local
install: all
	install -D -m 755 build/cairn $(DESTDIR)$(PREFIX)/bin/cairn
