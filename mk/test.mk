# Test programs. Every test/unit/*.c and test/conformance/*_test.c is one program linked with the archive of everything;
# test/sim is one program; each test/fuzz/fuzz_X.c becomes a replay of test/fuzz/corpus/X.
.SECONDARY:
UNIT := $(sort $(wildcard test/unit/*.c))
CONF := $(sort $(wildcard test/conformance/*_test.c))
CONF_SHARED := $(filter-out $(CONF),$(wildcard test/conformance/*.c))
HARNESS := $(sort $(wildcard test/harness/*.c))
SIM := $(sort $(wildcard test/sim/*.c))
FUZZ := $(sort $(wildcard test/fuzz/fuzz_*.c))
ONLY ?=
PICK = $(if $(ONLY),$(foreach o,$(ONLY),$(filter test/unit/$(o)%.c test/conformance/$(o)%.c,$(UNIT) $(CONF))),$(UNIT) $(CONF))

TEST_BINS = $(PICK:test/%.c=$(B)/test/%)
FUZZ_BINS = $(FUZZ:test/%.c=$(B)/test/%)
HARNESS_OBJS = $(HARNESS:test/%.c=$(B)/test/%.o)

# The programs of test/unit and test/conformance run for milliseconds: the compiler takes longer to optimise them than they gain.
ifeq ($(V),test)
$(UNIT:test/%.c=$(B)/test/%.o) $(CONF:test/%.c=$(B)/test/%.o): CFLAGS += -O0
endif

$(B)/test/%.o: test/%.c Makefile
	@mkdir -p $(@D)
	$(SAY)$(CC) $(CFLAGS_EFFECT) $(CFLAGS) -Itest -MMD -MP -c -o $@ $<
$(B)/test/conformance/%_test: $(B)/test/conformance/%_test.o $(CONF_SHARED:test/%.c=$(B)/test/%.o) $(HARNESS_OBJS) $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -Wl,--as-needed -lpq
$(B)/test/unit/%: $(B)/test/unit/%.o $(HARNESS_OBJS) $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(B)/test/unit/log_bytes: $(B)/test/sim/workload.o
$(B)/test/fuzz/%: $(B)/test/fuzz/%.o $(B)/test/fuzz/replay.o $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(B)/test/sim/sim: $(SIM:test/%.c=$(B)/test/%.o) $(B)/test/harness/dump.o $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

.PHONY: unit sim-bin programs
# make unit V=test ONLY="json schema" MODULES="base json schema" B=/tmp/x : build and run some of them
unit: $(TEST_BINS)
	@rc=0; for t in $(TEST_BINS); do $$t || rc=1; done; exit $$rc
sim-bin: $(B)/test/sim/sim
# Everything that `make test` runs, in one variant.
programs: $(TEST_BINS) $(FUZZ_BINS) $(B)/test/sim/sim $(B)/cairn

# ---- the README's test command: installs what is missing, builds, runs everything, ends in "N passed, N failed".
.PHONY: test
test:
	@./setup
	@$(MAKE) -j2 WERROR=1 all library >build.log 2>&1 || { cat build.log; exit 1; }
	@$(MAKE) -j2 V=test WERROR=1 programs >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@tools/run-tests build/test

# ---- longer targets, each stands alone
# Drawn documents: 10,000 on the engine against the model of test/equiv, 500 on every store and on a server.
.PHONY: equiv-soak
equiv-soak:
	@$(MAKE) -j2 WERROR=1 all
	@test/equiv/hosts_test.sh

.PHONY: check asan tsan soak storm engines-storm fuzz tidy lint objects model canaries oidc openapi
asan tsan:
	@$(MAKE) -j2 V=$@ WERROR=1 programs
	@tools/run-tests --quick build/$@
tidy:
	@tools/tidy build/test
	@test/mutations/run --check
lint:
	@./setup tools
	@tools/lint
# Seeds for hours: make soak SECONDS_MAX=3600
SECONDS_MAX ?= 600
soak:
	@$(MAKE) -j2 V=test sim-bin
	@build/test/test/sim/sim all --budget $(SECONDS_MAX)
# Signatures and plans against object stores from npm and PyPI: make objects OBJECTS=DIRECTORY, with a node_modules (see test/objects/run)
objects:
	@$(MAKE) -j2 all
	@$(MAKE) -j2 V=test ONLY=fetch_sign build/test/test/unit/fetch_sign
	@test/objects/run build/test $(OBJECTS)
# Signing in at an identity provider from npm: make oidc OIDC=DIRECTORY, with a node_modules (see test/oidc/run)
# Clients that generators of others write, compiled and used; schemathesis: make openapi OPENAPI=DIRECTORY (test/openapi/run says what is in it)
openapi:
	@$(MAKE) -j2 all
	@test/openapi/run build/cairn $(OPENAPI)
oidc:
	@$(MAKE) -j2 all
	@test/oidc/run build/cairn $(OIDC)
# Everything is shot at, stopped and cut off while it works: make storm KILLS=100 STOPS=20 RESTARTS=20 CUTS=500 WITHHELD=50 PARTITIONS=10 MINUTES=3 ROUNDS=2
storm:
	@$(MAKE) -j2 all
	@test/crash/storm $(or $(KILLS),1000)
	@python3 test/crash/service_storm.py build/cairn --kills $(or $(KILLS),1000) --stops $(or $(STOPS),100)
	@$(MAKE) engines-storm
	@python3 test/crash/service_storm.py build/cairn --nats-outage $(or $(OUTAGE),60)
# Its part with several engines on one Postgres; before it, the proof that its checker sees what is planted
engines-storm:
	@$(MAKE) -j2 all
	@test/crash/engines_test.sh
	@python3 test/crash/engines_storm.py build/cairn --verbose --kills $(or $(KILLS),1000) --stops $(or $(STOPS),200) --restarts $(or $(RESTARTS),200) --cuts $(or $(CUTS),5000) --withheld $(or $(WITHHELD),500) --partitions $(or $(PARTITIONS),100) --minutes $(or $(MINUTES),24) --rounds $(or $(ROUNDS),20)
# Runs on a real Temporal server, which is built first when it is not there (ten minutes, Go): people steer them, everything is killed
.PHONY: live-temporal
live-temporal:
	@$(MAKE) -j2 all
	@tools/temporal-server build
	@tools/temporal-server sdk build/temporal-sdk
	@test/e2e/temporal_test.sh
	@test/temporal/live_test.sh
	@test/temporal/hosts_test.sh
	@$(MAKE) -j2 V=test build/test/cairn
	@EQUIV_DRAWN=100 EQUIV_KILLED=5 E2E_SECONDS=1800 test/e2e/equiv_hosts_test.sh temporal_records_what_the_engine_alone_does \
		temporal_hosts_that_are_killed_come_to_the_same_end a_difference_of_temporal_is_found
# Attempts carried by a real Conductor server, which is fetched first when it is not there (458 MB): the suite of the fake, and what the fake
# says against what the server says
.PHONY: live-conductor
live-conductor:
	@$(MAKE) -j2 all
	@$(MAKE) -j2 V=test build/test/cairn
	@tools/conductor-server fetch
	@test/conductor/live
# Times of schedules as cronsim and zoneinfo have them, made again and held against the table that tests use (test/schedule/vectors.py).
.PHONY: schedule-vectors storm-schedules
schedule-vectors:
	@python3 -m venv build/cronsim && build/cronsim/bin/pip install -q cronsim
	@build/cronsim/bin/python test/schedule/vectors.py test/golden/zones --check test/golden/schedule-vectors.txt
# A schedule of every second, while its server is killed: make storm-schedules KILLS=500; and two engines on one Postgres, killed in turn
storm-schedules:
	@$(MAKE) -j2 all
	@python3 test/schedule/storm.py build/cairn --kills $(or $(KILLS),500)
	@bash test/schedule/engines_storm.sh $(or $(KILLS),500)
# Host, workers and the Temporal server killed at random while runs go on: make storm-temporal KILLS=300 RUNS=200
.PHONY: storm-temporal
storm-temporal:
	@$(MAKE) -j2 all
	@tools/temporal-server build
	@python3 test/temporal/storm.py build/cairn --kills $(or $(KILLS),300) --runs $(or $(RUNS),200)
# Hosts, the server of Cairn and the Conductor server killed at random while runs go on: make storm-conductor KILLS=100 RUNS=60
.PHONY: storm-conductor
storm-conductor:
	@$(MAKE) -j2 all
	@tools/conductor-server fetch
	@python3 test/conductor/storm.py build/cairn --kills $(or $(KILLS),100) --runs $(or $(RUNS),60)
# Secrets of every kind of provider in so many runs, searched for in everything that is kept, sent or shown
canaries:
	@$(MAKE) -j2 all
	@python3 test/crash/canaries.py build/cairn --runs $(or $(RUNS),10000)
# The protocol of several engines, searched by spin: all states, and each wrong variant refuted (ADR 0021)
model:
	@./setup tools
	@test/model/run full
# The behaviour of requirements taken out one by one; the test that names each must notice: make mutations IDS="RE-2.2b WE-1c"; the report is build/mutations.md
.PHONY: mutations
mutations:
	@$(MAKE) -j2 V=test programs
	@test/mutations/run build/test --report build/mutations.md $(IDS)
# libFuzzer on every target: make fuzz FUZZ_SECONDS=60
FUZZ_SECONDS ?= 60
fuzz:
	@./setup tools
	@tools/fuzz $(FUZZ_SECONDS)
check: lint asan tsan test
# Beside `make test`, an hour at most: lint, asan, tsan and model (tools/ci-long)
.PHONY: ci-long
ci-long:
	@tools/ci-long

# `cairn mcp` with the client of the protocol's own SDK, which holds every answer against the public schema (npm).
.PHONY: mcp
mcp:
	@$(MAKE) all
	@test/mcp/run
