// The fold of the engine for browsers: a bundle (docs/format/bundle.md) in memory, and three questions about the runs in it.
//
//   page_alloc(size) -> place for the bytes of the bundle and for words     page_free(place)
//   page_open(bytes, size) -> 0: open; the bytes stay where they are until page_close. An open one is closed first
//   page_ask(question, run, size, step, size, event, entries) -> 0, or the code of an error
//   page_answer() -> where its JSON is, page_answer_size()
//
// An answer is what the server would give (GET /v1/runs/RUN, .../why, .../proof), or {"error": {"code", "message"}}.
// One thread, one bundle at a time.
#include "host.h"
#include "json/make.h"
#include "reading/reading.h"
#include "store/backend.h"
#include "store/bundle.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

enum question { ASK_RUNS, ASK_SNAPSHOT, ASK_WHY, ASK_VERIFY };
enum { ANSWER_MAX = 256 << 20 };

static struct store *store;
static struct buf answer;

// ---- memory of the page

void *EXPORT(page_alloc)(size_t size)
{
    return malloc(size ? size : 1);
}

void EXPORT(page_free)(void *place)
{
    free(place);
}

const char *EXPORT(page_answer)(void)
{
    return answer.ptr;
}

size_t EXPORT(page_answer_size)(void)
{
    return answer.len;
}

// ---- answers

static int say(const struct json *value)
{
    buf_release(&answer);
    buf_init(&answer, ANSWER_MAX);
    json_write(&answer, value);
    return buf_ok(&answer) ? 0 : E_NOMEM;
}

static int say_error(enum code rc, const struct error *err)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct json error = JSON_OF(&arena, {"code", json_int(rc)}, {"message", json_word(err->message)});
    struct json whole = JSON_OF(&arena, {"error", error});
    if (say(&whole)) buf_release(&answer);
    arena_release(&arena);
    return (int)rc;
}

void EXPORT(page_close)(void)
{
    if (store) store_close(store);
    store = NULL;
}

int EXPORT(page_open)(const char *bytes, size_t size)
{
    struct store_options options = {.mode = STORE_READ};
    struct error err = {0};
    page_close();
    host_file = (struct str){bytes, size};
    enum code rc = store_open_bundle(STR("page"), &options, &store, &err);
    return rc ? say_error(rc, &err) : 0;
}

// ---- questions

static enum code runs_of(struct arena *arena, struct run_heads *out, struct error *err)
{
    struct run_filter filter = {.limit = 100000};
    return store_list(store, &filter, arena, out, err);
}

// Without an id it is the first of the bundle, which started the others.
static enum code find(struct str run, struct arena *arena, struct run_head *out, struct error *err)
{
    struct run_heads heads;
    enum code rc = runs_of(arena, &heads, err);
    if (rc) return rc;
    for (size_t i = 0; i < heads.count; i++) {
        *out = heads.items[run.len ? i : heads.count - 1 - i];
        if (!run.len || str_eq(out->ids.run, run)) return OK;
    }
    return error_set(err, E_NOT_FOUND, "the bundle has no such run");
}

static enum code tell_runs(struct arena *arena, struct json *out, struct error *err)
{
    struct run_heads heads;
    struct json list = json_array();
    enum code rc = runs_of(arena, &heads, err);
    for (size_t i = 0; !rc && i < heads.count; i++) {
        struct json row;
        if (!reading_row(&heads.items[i], 0, arena, &row)) return error_nomem(err);
        json_append(arena, &list, row);
    }
    *out = JSON_OF(arena, {"items", list});
    return rc ? rc : json_made(out, err);
}

static enum code tell_why(const struct run_head *head, struct str step, uint64_t at, struct arena *arena, struct json *out,
                          struct error *err)
{
    struct explained_run explained;
    struct json told;
    enum code rc = reading_explain(store, head, at, step, false, arena, &explained, err);
    if (!rc && step.len) rc = explain_step(explained.explain, step, 0, arena, &told, err);
    if (!rc && !step.len) rc = explain_run(explained.explain, 0, arena, &told, err);
    if (!rc && !json_copy(arena, &told, out)) rc = error_nomem(err);
    explained_release(&explained);
    return rc;
}

static enum code tell_proof(const struct run_head *head, struct arena *arena, struct json *out, struct error *err)
{
    return reading_proof(store, head, 0, arena, out, err);
}

int EXPORT(page_ask)(int question, const char *run, size_t run_size, const char *step, size_t step_size, uint32_t event,
                     int32_t entries)
{
    struct arena arena = arena_of(64 * 1024, SIZE_MAX);
    struct error err = {0};
    struct json told = {0};
    struct run_head head;
    uint64_t at = event == 0 ? READING_NOW : reading_at(event, entries);
    enum code rc = store ? OK : error_set(&err, E_INVALID, "no bundle is open");
    if (!rc && question != ASK_RUNS) rc = find((struct str){run, run_size}, &arena, &head, &err);
    if (!rc && event > 0 && question != ASK_RUNS && event > head.last_seq)
        rc = error_set(&err, E_INVALID, "the log ends at event %llu", (unsigned long long)head.last_seq);
    if (!rc && question == ASK_RUNS) rc = tell_runs(&arena, &told, &err);
    if (!rc && question == ASK_SNAPSHOT) rc = reading_snapshot(store, &head, at, &arena, &told, &err);
    if (!rc && question == ASK_WHY) rc = tell_why(&head, (struct str){step, step_size}, at, &arena, &told, &err);
    if (!rc && question == ASK_VERIFY) rc = tell_proof(&head, &arena, &told, &err);
    int code = rc ? say_error(rc, &err) : say(&told);
    arena_release(&arena);
    return code;
}
