# What a newcomer types first, and the benchmark.
.PHONY: demo bench
demo:
	@./setup
	@echo "building cairn (a minute or two, the first time) ..."
	@$(MAKE) -j2 all >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@tools/demo

bench:
	@./setup
	@$(MAKE) -j2 all build/bench/fill build/bench/template >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@build/cairn bench $(BENCH_ARGS)
	@python3 bench/playbook.py build/cairn $(PLAYBOOK_ARGS)
	@python3 bench/service.py build/cairn $(SERVICE_ARGS)
	@python3 bench/postgres.py build/cairn $(POSTGRES_ARGS)
	@python3 bench/temporal.py build/cairn $(TEMPORAL_ARGS)
	@python3 bench/conductor.py build/cairn $(CONDUCTOR_ARGS)

# What fills a store for the bench of lists.
build/bench/%: bench/%.c build/release/libcairn-all.a
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) $(COMMON) -O2 -Ibuild/release/gen -o $@ $^ $(LIBS)
