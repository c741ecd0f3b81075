// What the tests of requirements share: an engine with the product's own tools over any store, driven turn by turn, and its
// log as JSON. Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_RIG_H
#define CAIRN_TEST_UNIT_SUPPORT_RIG_H

#include "base/civil.h"
#include "engine/engine.h"
#include "harness/test.h"
#include "unit/support/explained_store.h"
#include "unit/support/followed_store.h"
#include "view/view.h"

#include <stdio.h>
#include <string.h>

#define RIG_TENANT STR("acme")
#define RIG_PATIENCE_MS 30000
#define RIG_SIGNAL_A "11111111-1111-4111-8111-111111111111"
#define RIG_SIGNAL_B "22222222-2222-4222-8222-222222222222"
#define RIG_PLAN(steps)                                                                                                \
    "{\"planId\":\"orders\",\"planVersion\":\"1.2.0\",\"schemaVersion\":\"v1.2\",\"steps\":[" steps "]}"
#define RIG_SHELL(id, command, more)                                                                                   \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"with\":{\"command\":\"" command "\"}" more "}"

enum { RIG_TOLD_MAX = 512 };

struct told { // what the observer was told about an event of the log
    char type[32], step[64], event_id[UUID_SIZE];
    uint64_t seq;
    int64_t persisted_ms;
    struct str bytes;
};

struct rig {
    struct arena arena; // everything of one test
    const struct contract *contract;
    struct store *store;
    struct engine *engine;
    struct program *program;
    struct error err;
    struct told told[RIG_TOLD_MAX];
    size_t told_count, decision_count, refused_count;
};

struct log {
    struct json *items; // parsed records
    struct records raw;
    size_t count;
};

UNUSED static const char *const rig_kinds[] = {"memory", "files", "sqlite"};

UNUSED static const char *rig_url(struct rig *rig, const char *kind)
{
    struct buf url;
    buf_init(&url, 4096);
    if (strcmp(kind, "memory") == 0)
        buf_text(&url, "memory:");
    else
        buf_printf(&url, "%s:%s/store.%s", kind, test_dir(), kind);
    struct str text = arena_copy(&rig->arena, buf_str(&url));
    CHECK(buf_ok(&url) && text.ptr);
    buf_release(&url);
    return text.ptr;
}

UNUSED static void rig_event(void *context, const struct engine_event *event)
{
    struct rig *rig = context;
    if (!event->item->in_log) return;
    CHECK(rig->told_count < RIG_TOLD_MAX);
    struct told *told = &rig->told[rig->told_count++];
    const char *word = moment_word(event->moment->kind, VOCABULARY_RUN);
    snprintf(told->type, sizeof(told->type), "%s", word ? word : "");
    snprintf(told->step, sizeof(told->step), "%.*s", STR_ARG(event->moment->step));
    memcpy(told->event_id, event->item->event_id, UUID_SIZE);
    told->seq = event->item->seq;
    told->persisted_ms = event->item->persisted_ms;
    told->bytes = arena_copy(&rig->arena, event->item->bytes);
    CHECK(told->bytes.ptr);
}

UNUSED static void rig_decision(void *context, const struct engine_decision *decision)
{
    struct rig *rig = context;
    rig->decision_count++;
    rig->refused_count += !decision->accepted;
}

UNUSED static void rig_open_store(struct rig *rig, const char *kind)
{
    *rig = (struct rig){0};
    arena_init(&rig->arena, 64 * 1024, SIZE_MAX);
    CHECK_OK(contract_open(&rig->arena, &rig->contract, &rig->err), &rig->err);
    struct store_options options = {
        .mode = STORE_WRITE, .create = true, .contract = rig->contract, .entropy = os_entropy()};
    CHECK_OK(store_open(str_from(rig_url(rig, kind)), &options, &rig->store, &rig->err), &rig->err);
    os_log_level(LOG_ERROR);
}

UNUSED static void rig_open_engine(struct rig *rig)
{
    struct engine_options options = {.store = rig->store,
                                     .contract = rig->contract,
                                     .entropy = os_entropy(),
                                     .limits = engine_limits_default,
                                     .observer = {.context = rig, .event = rig_event, .decision = rig_decision}};
    CHECK_OK(engine_open(&options, &rig->engine, &rig->err), &rig->err);
}

UNUSED static void rig_open(struct rig *rig, const char *kind)
{
    rig_open_store(rig, kind);
    rig_open_engine(rig);
}

UNUSED static void rig_close(struct rig *rig)
{
    bool engine_made = rig->engine != NULL; // else the test has written what no engine would
    if (rig->engine) engine_close(rig->engine);
    program_release(rig->program);
    if (engine_made) explained_store(rig->store);
    if (engine_made) followed_store(rig->store);
    store_close(rig->store);
    arena_release(&rig->arena);
}

UNUSED static void rig_plan(struct rig *rig, const char *text)
{
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &rig->arena);
    program_release(rig->program);
    enum code rc = program_load(str_from(text), STR("plan.json"), NULL, &diagnostics, &rig->program, &rig->err);
    if (rc && diagnostics.count > 0)
        test_fail(__FILE__, __LINE__, "%u:%u %.*s", diagnostics.items[0].line, diagnostics.items[0].column,
                  STR_ARG(diagnostics.items[0].message));
    CHECK_OK(rc, &rig->err);
}

UNUSED static void rig_start(struct rig *rig, const char *plan, const char *run)
{
    char id[129];
    rig_plan(rig, plan);
    struct start_request request = {.program = rig->program,
                                    .tenant = RIG_TENANT,
                                    .project = STR("shop"),
                                    .environment = STR("prod"),
                                    .run = str_from(run),
                                    .inputs = json_object(),
                                    .work_dir = str_from(test_dir()),
                                    .triggered_by = STR("alice"),
                                    .trigger_source = STR("api")};
    CHECK_OK(engine_start(rig->engine, &request, id, &rig->err), &rig->err);
    CHECK_TEXT(id, run);
}

UNUSED static void rig_turn(struct rig *rig)
{
    bool worked = false;
    struct moment_in_time now = os_now();
    CHECK_OK(engine_turn(rig->engine, now, &worked, &rig->err), &rig->err);
    int64_t until = engine_deadline(rig->engine);
    if (!worked) engine_wait(rig->engine, until < now.mono_ms + 20 ? until : now.mono_ms + 20);
}

UNUSED static size_t rig_count(const struct rig *rig, const char *type, const char *step)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->told_count; i++)
        count += strcmp(rig->told[i].type, type) == 0 && (!step || strcmp(rig->told[i].step, step) == 0);
    return count;
}

// Turns until the event was told.
UNUSED static void rig_until(struct rig *rig, const char *type, const char *step)
{
    int64_t end = os_now().mono_ms + RIG_PATIENCE_MS;
    while (rig_count(rig, type, step) == 0) {
        if (os_now().mono_ms > end) test_fail(__FILE__, __LINE__, "no %s %s", type, step ? step : "");
        rig_turn(rig);
    }
}

UNUSED static void rig_for(struct rig *rig, int64_t ms)
{
    for (int64_t end = os_now().mono_ms + ms; os_now().mono_ms < end;) rig_turn(rig);
}

UNUSED static void rig_finish(struct rig *rig)
{
    int64_t end = os_now().mono_ms + RIG_PATIENCE_MS;
    while (engine_activity(rig->engine).resident > 0) {
        CHECK(os_now().mono_ms < end);
        rig_turn(rig);
    }
}

UNUSED static enum code rig_try_signal(struct rig *rig, struct str tenant, const char *run, enum signal_type type,
                                       const char *id, const char *reason)
{
    struct signal signal = {.type = type,
                            .id = str_from(id),
                            .reason = str_from(reason),
                            .actor = STR("bob"),
                            .role = STR("Operator"),
                            .payload = json_object()};
    rig->err = (struct error){0};
    return engine_signal(rig->engine, tenant, str_from(run), &signal, &rig->err);
}

UNUSED static void rig_signal(struct rig *rig, const char *run, enum signal_type type, const char *id,
                              const char *reason)
{
    size_t before = rig->decision_count;
    CHECK_OK(rig_try_signal(rig, RIG_TENANT, run, type, id, reason), &rig->err);
    for (int64_t end = os_now().mono_ms + RIG_PATIENCE_MS; rig->decision_count == before; rig_turn(rig))
        CHECK(os_now().mono_ms < end);
    CHECK_INT(rig->refused_count, 0);
}

// ---- the log

UNUSED static struct log rig_log(struct rig *rig, const char *run)
{
    struct log log = {0};
    struct record_range range = {.tenant = RIG_TENANT, .run = str_from(run), .limit = SIZE_MAX};
    CHECK_OK(store_read(rig->store, &range, &rig->arena, &log.raw, &rig->err), &rig->err);
    log.count = log.raw.count;
    log.items = ARENA_ARRAY(&rig->arena, log.count + 1, struct json);
    CHECK(log.items);
    for (size_t i = 0; i < log.count; i++)
        CHECK_OK(json_parse(log.raw.items[i].bytes, NULL, &rig->arena, &log.items[i], &rig->err), &rig->err);
    return log;
}

UNUSED static struct str text_at(const struct json *record, const char *path)
{
    return json_text(json_at(record, str_from(path)));
}

UNUSED static int64_t int_at(const struct json *record, const char *path)
{
    return json_integer(json_at(record, str_from(path)), INT64_MIN);
}

// The n-th (from 0) record of the type and, unless NULL, the step; -1 when there is none.
UNUSED static int log_index(const struct log *log, const char *type, const char *step, int n)
{
    for (size_t i = 0; i < log->count; i++)
        if (str_is(text_at(&log->items[i], "eventType"), type) &&
            (!step || str_is(text_at(&log->items[i], "stepId"), step)) && n-- == 0)
            return (int)i;
    return -1;
}

UNUSED static const struct json *log_find(const struct log *log, const char *type, const char *step)
{
    int at = log_index(log, type, step, 0);
    if (at < 0) test_fail(__FILE__, __LINE__, "no %s %s in the log", type, step ? step : "");
    return &log->items[at];
}

UNUSED static size_t log_count(const struct log *log, const char *type, const char *step)
{
    int n = 0;
    while (log_index(log, type, step, n) >= 0) n++;
    return (size_t)n;
}

// "RunQueued RunStarted StepStarted:a ..."
UNUSED static struct str log_words(struct rig *rig, const struct log *log)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < log->count; i++) {
        struct str step = text_at(&log->items[i], "stepId");
        buf_printf(&out, "%s%.*s", i ? " " : "", STR_ARG(text_at(&log->items[i], "eventType")));
        if (step.len) buf_printf(&out, ":%.*s", STR_ARG(step));
    }
    struct str words = arena_copy(&rig->arena, buf_str(&out));
    CHECK(buf_ok(&out) && words.ptr);
    buf_release(&out);
    return words;
}

UNUSED static int64_t time_at(const struct json *record, const char *path)
{
    int64_t ms = 0;
    CHECK(civil_parse(text_at(record, path), &ms));
    return ms;
}

// A view of the run, folded from records `from` .. `to` - 1 of the log.
UNUSED static void log_fold(struct rig *rig, const struct log *log, size_t from, size_t to, struct run_view *view)
{
    for (size_t i = from; i < to; i++) {
        struct moment moment;
        struct seal seal;
        CHECK_OK(contract_decode(VOCABULARY_RUN, log->raw.items[i].bytes, &rig->arena, &moment, &seal, NULL, &rig->err),
                 &rig->err);
        CHECK(view_fold(view, &moment, seal.seq));
    }
}

UNUSED static void rig_view(struct rig *rig, const char *run, struct run_view *view)
{
    struct run_ids ids = {
        .tenant = RIG_TENANT, .project = STR("shop"), .environment = STR("prod"), .plan_id = STR("orders")};
    ids.plan_version = STR("1.2.0");
    ids.run = str_from(run);
    CHECK(view_init(view, &rig->arena, &ids));
}

// A copy of an object without a member, or with another value for it.
UNUSED static struct json json_with(struct rig *rig, const struct json *object, const char *key,
                                    const struct json *value)
{
    struct json out = json_object();
    for (uint32_t i = 0; i < object->count; i++)
        if (!str_is(object->members[i].key, key))
            CHECK(json_put(&rig->arena, &out, object->members[i].key, object->members[i].value));
    if (value) CHECK(json_put(&rig->arena, &out, str_from(key), *value));
    return out;
}

UNUSED static struct str json_bytes(struct rig *rig, const struct json *value)
{
    struct buf out;
    buf_init(&out, 1 << 22);
    json_canon(&out, value);
    struct str bytes = arena_copy(&rig->arena, buf_str(&out));
    CHECK(buf_ok(&out) && bytes.ptr);
    buf_release(&out);
    return bytes;
}

#endif
