// Schemas of events and signals, compiled. Only what a run needs is parsed and compiled: it is most of a start.
#include "contract/internal.h"

#include <stdatomic.h>

static enum code compile(struct schema_set *set, const char *folder, const char *name, const struct schema **out,
                         struct error *err)
{
    enum { URI_SIZE_MAX = 64 };
    struct buf uri SCOPED(buf_release) = buf_of(URI_SIZE_MAX);
    buf_printf(&uri, "%s/%s.json", folder, name);
    enum code rc = buf_ok(&uri) ? schema_compile(set, buf_str(&uri), out, err) : error_nomem(err);
    if (rc) error_wrap(err, "schema %s/%s.json", folder, name);
    return rc;
}

static enum code compile_events(struct schema_set *set, const struct codec *codec, const struct schema **schemas,
                                struct error *err)
{
    codec->verify();
    for (size_t i = 1; i < MOMENT_COUNT; i++) {
        const char *word = moment_word((enum moment_kind)i, codec->vocabulary);
        if (!word) continue;
        enum moment_kind first = moment_of_word(codec->vocabulary, str_from(word));
        if (first != i) {
            schemas[i] = schemas[first];
            continue;
        }
        enum code rc = compile(set, codec->folder, word, &schemas[i], err);
        if (rc) return rc;
    }
    return OK;
}

static enum code compile_signals(struct schema_set *set, struct contract *contract, struct error *err)
{
    for (size_t i = 1; i < SIGNAL_COUNT; i++) {
        enum code rc = compile(set, "signals", signal_name((enum signal_type)i), &contract->signals[i], err);
        if (rc) return rc;
    }
    return compile(set, "signals", "request", &contract->request, err);
}

enum code contract_open(struct arena *arena, const struct contract **out, struct error *err)
{
    static const char *const folders[] = {"run-events", "node-events", "signals"};
    struct contract *contract = ARENA_NEW(arena, struct contract);
    struct schema_set *set = NULL;
    if (!contract || schema_set_open(arena, &set)) return error_nomem(err);
    ledger_verify();
    enum code rc = OK;
    for (size_t i = 0; i < ARRAY_COUNT(folders) && !rc; i++) rc = schema_set_embed(set, folders[i], arena, err);
    if (!rc) rc = compile_events(set, &run_codec, contract->events[VOCABULARY_RUN], err);
    if (!rc) rc = compile_events(set, &node_codec, contract->events[VOCABULARY_NODES], err);
    if (!rc) rc = compile_signals(set, contract, err);
    if (!rc) *out = contract;
    return rc;
}

// ---- playbooks

struct event_schemas {
    struct arena arena; // of all of it
    const struct schema *of[MOMENT_COUNT];
};

// Never released: threads may hold it as long as there are any.
static _Atomic(struct event_schemas *) playbook_schemas;

static enum code open_playbooks(struct event_schemas **out, struct error *err)
{
    enum { BLOCK_SIZE = 256 * 1024, SIZE_MAX_ALL = 64 << 20 };
    const struct arena_source *callers = arena_use(NULL); // it outlives whatever the caller's thread uses
    struct arena arena SCOPED(arena_release) = arena_of(BLOCK_SIZE, SIZE_MAX_ALL);
    (void)arena_use(callers);
    struct event_schemas *schemas = ARENA_NEW(&arena, struct event_schemas);
    struct schema_set *set = NULL;
    enum code rc = schemas && !schema_set_open(&arena, &set) ? OK : error_nomem(err);
    if (!rc) rc = schema_set_embed(set, noetl_codec.folder, &arena, err);
    if (!rc) rc = compile_events(set, &noetl_codec, schemas->of, err);
    if (rc) return rc;
    schemas->arena = arena_take(&arena);
    *out = schemas;
    return OK;
}

// Threads that come at the same time make one each, and the first that is done is kept.
static enum code playbooks(const struct event_schemas **out, struct error *err)
{
    struct event_schemas *have = atomic_load_explicit(&playbook_schemas, memory_order_acquire);
    if (!have) {
        struct event_schemas *made = NULL;
        enum code rc = open_playbooks(&made, err);
        if (rc) return rc;
        if (atomic_compare_exchange_strong(&playbook_schemas, &have, made)) {
            have = made;
        } else {
            arena_release(&made->arena);
        }
    }
    *out = have;
    return OK;
}

enum code event_schema(const struct contract *contract, enum vocabulary vocabulary, enum moment_kind kind,
                       const struct schema **out, struct error *err)
{
    if (vocabulary != VOCABULARY_NOETL) {
        *out = contract->events[vocabulary][kind];
        return OK;
    }
    const struct event_schemas *schemas = NULL;
    enum code rc = playbooks(&schemas, err);
    if (!rc) *out = schemas->of[kind];
    return rc;
}
