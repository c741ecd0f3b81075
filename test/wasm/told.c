// What the fold in WebAssembly is held against (test/e2e/wasm_test.sh): the same questions about a bundle, asked of the same C as the
// server runs it. A line each: what, run, moment, step, and the answer as the service writes it.
//
//   told BUNDLE
#include "explain/explain.h"
#include "json/make.h"
#include "reading/reading.h"

#include <stdio.h>

enum { MOMENTS = 60 };

static void line(const char *what, const struct run_head *head, uint64_t at, struct str step, enum code rc,
                 const struct json *value, const struct error *err)
{
    struct buf out = buf_of((size_t)256 << 20);
    if (!rc) json_write(&out, value);
    printf("%s\t%.*s\t%llu\t%.*s\t%.*s\n", what, STR_ARG(head->ids.run), (unsigned long long)at, STR_ARG(step),
           rc ? (int)sizeof("failed") - 1 : (int)out.len, rc ? "failed" : out.ptr);
    if (rc) fprintf(stderr, "%s %.*s@%llu: %s\n", what, STR_ARG(head->ids.run), (unsigned long long)at, err->message);
    buf_release(&out);
}

static void tell_why(struct store *store, const struct run_head *head, uint64_t at, struct str step, struct arena *arena)
{
    struct explained_run explained;
    struct json told = {0};
    struct error err = {0};
    enum code rc = reading_explain(store, head, at, step, false, arena, &explained, &err);
    if (!rc && step.len) rc = explain_step(explained.explain, step, 0, arena, &told, &err);
    if (!rc && !step.len) rc = explain_run(explained.explain, 0, arena, &told, &err);
    line("why", head, at, step, rc, &told, &err);
    explained_release(&explained);
}

static void tell_moment(struct store *store, const struct run_head *head, uint64_t at)
{
    struct arena arena = arena_of(64 * 1024, SIZE_MAX);
    struct json told = {0};
    struct error err = {0};
    enum code rc = reading_snapshot(store, head, at, &arena, &told, &err);
    line("snapshot", head, at, (struct str){0}, rc, &told, &err);
    tell_why(store, head, at, (struct str){0}, &arena);
    // Of the steps as they are at the end, and in the middle.
    const struct json *steps = rc ? NULL : json_key(&told, "steps");
    for (uint32_t i = 0; steps && i < steps->count && (at == head->last_seq || at == head->last_seq / 2); i++)
        tell_why(store, head, at, json_text(json_key(&steps->items[i], "stepId")), &arena);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    struct arena arena = arena_of(64 * 1024, SIZE_MAX);
    struct store *store;
    struct error err = {0};
    struct store_options options = {.mode = STORE_READ};
    struct run_filter filter = {.limit = 100000};
    struct run_heads heads;
    struct str url = argc == 2 ? arena_format(&arena, "bundle:%s", argv[1]) : (struct str){0};
    if (!url.ptr || store_open(url, &options, &store, &err) || store_list(store, &filter, &arena, &heads, &err)) {
        fprintf(stderr, "told BUNDLE: %s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < heads.count; i++) {
        struct json proof = {0};
        uint64_t last = heads.items[i].last_seq, apart = last / MOMENTS + 1; // of a long run only some: each is a fold of its own
        for (uint64_t at = 1; at < last; at += apart) tell_moment(store, &heads.items[i], at);
        tell_moment(store, &heads.items[i], last);
        enum code rc = reading_proof(store, &heads.items[i], 0, &arena, &proof, &err);
        line("verify", &heads.items[i], 0, (struct str){0}, rc, &proof, &err);
    }
    store_close(store);
    arena_release(&arena);
    return 0;
}
