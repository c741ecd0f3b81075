# Objects, the archive of everything but main, and the binary.
SRCS := $(foreach m,$(MODULES),$(sort $(wildcard src/$(m)/*.c)))
LIB_SRCS := $(filter-out src/cli/main.c,$(SRCS))
GEN_SRCS := $(B)/gen/embedded.c $(B)/gen/tables.c $(B)/gen/templates.c $(B)/gen/scripts.c $(B)/gen/sqls.c $(B)/gen/helps.c $(B)/gen/page.c
LIB_OBJS := $(LIB_SRCS:%.c=$(B)/%.o) $(if $(filter schema,$(MODULES)),$(B)/gen/embedded.o) $(if $(filter author,$(MODULES)),$(B)/gen/templates.o) \
  $(if $(filter auth,$(MODULES)),$(B)/gen/tables.o) $(if $(filter task,$(MODULES)),$(B)/gen/scripts.o) $(if $(filter store,$(MODULES)),$(B)/gen/sqls.o) $(if $(filter cli,$(MODULES)),$(B)/gen/helps.o) \
  $(if $(filter api,$(MODULES)),$(B)/gen/page.o)

.DEFAULT_GOAL := all
.PHONY: all clean
all: build/cairn

build/cairn: $(B)/cairn
	@mkdir -p build && cp -f $< $@.tmp && strip $@.tmp && mv -f $@.tmp $@

$(B)/cairn: $(B)/src/cli/main.o $(B)/libcairn-all.a
	$(SAY)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libcairn-all.a: $(LIB_OBJS)
	@rm -f $@ && ar rcs $@ $^

$(B)/src/%.o: src/%.c Makefile | $(B)/gen/.dir
	@mkdir -p $(@D)
	$(SAY)$(CC) $(if $(filter $(firstword $(subst /, ,$*)),$(PURE)),$(CFLAGS_PURE),$(CFLAGS_EFFECT)) $(CFLAGS) -MMD -MP -c -o $@ $<

# Files carried inside the binary: schemas and examples, written as byte arrays by tools/embed.
TABLES := schemas/authorization.json schemas/conductor.json schemas/openapi-components.json
EMBED := $(sort $(filter-out $(TABLES),$(wildcard schemas/*.json schemas/*/*.json)))
$(B)/gen/.dir:
	@mkdir -p $(B)/gen && touch $@
$(B)/gen/embedded.c: tools/embed $(EMBED) | $(B)/gen/.dir
	@sh tools/embed $(EMBED) > $@.tmp && mv $@.tmp $@
$(B)/gen/tables.c: tools/embed $(TABLES) | $(B)/gen/.dir
	@sh tools/embed --as table $(TABLES) > $@.tmp && mv $@.tmp $@
TEMPLATES := $(sort $(wildcard examples/*.json examples/*.yaml examples/scripts/*))
$(B)/gen/templates.c: tools/embed $(TEMPLATES) | $(B)/gen/.dir
	@sh tools/embed --as template $(TEMPLATES) > $@.tmp && mv $@.tmp $@
SCRIPTS := $(sort $(wildcard src/task/*.py))
$(B)/gen/scripts.c: tools/embed $(SCRIPTS) | $(B)/gen/.dir
	@sh tools/embed --as script $(SCRIPTS) > $@.tmp && mv $@.tmp $@
SQLS := $(sort $(wildcard src/store/*.sql src/store/postgres/*.sql))
$(B)/gen/sqls.c: tools/embed $(SQLS) | $(B)/gen/.dir
	@sh tools/embed --as sql $(SQLS) > $@.tmp && mv $@.tmp $@
HELPS := $(sort $(wildcard src/cli/help/*.txt))
$(B)/gen/helps.c: tools/embed $(HELPS) | $(B)/gen/.dir
	@sh tools/embed --as help $(HELPS) > $@.tmp && mv $@.tmp $@
$(B)/gen/%.o: $(B)/gen/%.c Makefile
	$(SAY)$(CC) $(CFLAGS_PURE) $(CFLAGS) -c -o $@ $<

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
