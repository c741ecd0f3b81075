// Moments for the tests of contract/ and view/: every kind, with facts drawn from a seeded generator. Strings that may be
// anything are odd on purpose: quotes, control characters, member names, characters beyond the basic plane.
#ifndef CAIRN_TEST_UNIT_CONTRACT_MOMENTS_H
#define CAIRN_TEST_UNIT_CONTRACT_MOMENTS_H

#include "contract/contract.h"
#include "harness/test.h"

#include <string.h>

#define LITERAL(text)                                                                                                  \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }

struct source {
    uint64_t state;
    struct arena *arena;
};

// splitmix64
static inline uint64_t draw(struct source *source)
{
    uint64_t z = (source->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint32_t pick(struct source *source, uint32_t count)
{
    return (uint32_t)(draw(source) % count);
}

static inline bool maybe(struct source *source)
{
    return pick(source, 2) == 0;
}

static inline struct str pick_text(struct source *source)
{
    static const struct str texts[] = {
        LITERAL("plain"),
        LITERAL(""),
        LITERAL("a \"quoted\" \\ back\\slash"),
        LITERAL("line\nbreak\ttab\r\n"),
        LITERAL("nul\0inside"),
        LITERAL("\x01\x1f\x7f"),
        LITERAL("\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9d\x84\x9e"),
        LITERAL("{\"payload\":{}}"),
        LITERAL(",\"payload\":{\"x\":1}"),
        LITERAL(",\"persistedAt\":\""),
        LITERAL(",\"prev_hash\":\""),
        LITERAL("</script><!--"),
        LITERAL("|"),
        LITERAL("\xef\xbf\xbd"),
        LITERAL(" leading and trailing "),
    };
    return texts[pick(source, (uint32_t)ARRAY_COUNT(texts))];
}

static inline struct str pick_some_text(struct source *source)
{
    struct str text = pick_text(source);
    return text.len ? text : STR("x");
}

static inline struct str pick_step(struct source *source)
{
    static const struct str steps[] = {LITERAL("load"), LITERAL("model.orders"), LITERAL("poll[12].fetch"),
                                       LITERAL("0"), LITERAL("\xc3\xbc-x")};
    return steps[pick(source, (uint32_t)ARRAY_COUNT(steps))];
}

static inline struct str pick_run(struct source *source)
{
    static const struct str runs[] = {LITERAL("run-001"), LITERAL("0d3c6a9e-4f0c-4a8e-9d5d-3d4c0f7dbb8a"),
                                      LITERAL("run_2026-02-11:abc.9")};
    return runs[pick(source, (uint32_t)ARRAY_COUNT(runs))];
}

static inline struct str pick_signal_type(struct source *source)
{
    static const struct str types[] = {LITERAL("PAUSE"), LITERAL("CANCEL"), LITERAL("EMERGENCY_STOP"),
                                       LITERAL("RETRY_STEP")};
    return types[pick(source, (uint32_t)ARRAY_COUNT(types))];
}

static inline struct str pick_uuid(struct source *source)
{
    char *text = arena_alloc(source->arena, UUID_SIZE);
    CHECK(text);
    uint8_t bytes[16];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)draw(source);
    uuid_format(bytes, text);
    return (struct str){text, UUID_SIZE - 1};
}

static inline struct digest pick_digest(struct source *source)
{
    struct digest digest;
    for (size_t i = 0; i < sizeof(digest.b); i++) digest.b[i] = (uint8_t)draw(source);
    return digest;
}

static inline struct str pick_hex(struct source *source)
{
    struct digest digest = pick_digest(source);
    char *hex = arena_alloc(source->arena, SHA256_HEX + 1);
    CHECK(hex);
    digest_hex(&digest, hex);
    return (struct str){hex, SHA256_HEX};
}

static inline struct json pick_json(struct source *source, uint32_t depth)
{
    struct json value;
    switch (pick(source, depth ? 7 : 5)) {
    case 0:
        return json_null();
    case 1:
        return json_bool(maybe(source));
    case 2:
        return json_int((int64_t)(draw(source) >> 12) * (maybe(source) ? 1 : -1));
    case 3:
        return json_number(maybe(source) ? STR("1.5") : STR("-2.5e-7"));
    case 4:
        return json_string(pick_text(source));
    case 5:
        value = json_array();
        for (uint32_t i = pick(source, 4); i > 0; i--)
            CHECK(json_push(source->arena, &value, pick_json(source, depth - 1)));
        return value;
    default:
        value = json_object();
        for (uint32_t i = pick(source, 4); i > 0; i--) {
            struct str key = pick_text(source);
            if (!json_get(&value, key)) CHECK(json_put(source->arena, &value, key, pick_json(source, depth - 1)));
        }
        return value;
    }
}

static inline struct json pick_object(struct source *source)
{
    struct json object = json_object();
    CHECK(json_put(source->arena, &object, STR("\xc3\xa4"), pick_json(source, 3)));
    CHECK(json_put(source->arena, &object, STR("a"), pick_json(source, 3)));
    return object;
}

static inline struct json pick_artifacts(struct source *source)
{
    struct json artifacts = json_array();
    for (uint32_t i = pick(source, 3); i > 0; i--) {
        struct json artifact = json_object();
        CHECK(json_put(source->arena, &artifact, STR("uri"), json_string(pick_some_text(source))));
        CHECK(json_put(source->arena, &artifact, STR("kind"), json_string(STR("log-bundle"))));
        CHECK(json_push(source->arena, &artifacts, artifact));
    }
    return artifacts;
}

static inline struct fault pick_fault(struct source *source)
{
    struct fault fault = {.code = STR("EXIT_NONZERO"), .message = pick_text(source), .retryable = maybe(source)};
    if (maybe(source)) fault.category = STR("timeout");
    if (maybe(source)) fault.detail = pick_text(source);
    if (maybe(source)) {
        fault.has_exit = true;
        fault.exit_code = (int32_t)draw(source);
    }
    return fault;
}

static inline const struct start_facts *pick_start(struct source *source)
{
    struct start_facts *start = ARENA_NEW(source->arena, struct start_facts);
    CHECK(start);
    start->document_sha256 = pick_hex(source);
    start->document_kind = maybe(source) ? STR("plan") : STR("nodes");
    start->document_file = pick_text(source);
    start->schema_version = maybe(source) ? STR("v1.2") : STR("");
    start->name = pick_text(source);
    start->inputs = pick_object(source);
    start->arguments = pick_text(source);
    start->work_dir = pick_text(source);
    start->artifacts_dir = pick_text(source);
    start->triggered_by = pick_text(source);
    start->trigger_source = maybe(source) ? STR("manual") : STR("");
    start->plan_uri = maybe(source) ? STR("https://plans.example/orders.json") : STR("");
    start->plan_sha256 = maybe(source) ? pick_hex(source) : STR(""); // of a set of documents
    start->original_run = maybe(source) ? pick_run(source) : STR("");
    start->parent_run = maybe(source) ? pick_run(source) : STR("");
    start->parent_step = maybe(source) ? pick_step(source) : STR("");
    start->forked = maybe(source);
    start->forked_run = start->forked ? pick_run(source) : STR("");
    start->forked_seq = start->forked && maybe(source) ? 41 : 0;
    start->requires_approval = maybe(source);
    if (maybe(source)) {
        struct json part = json_object();
        start->parts = json_array();
        CHECK(json_put(source->arena, &part, STR("file"), json_string(pick_text(source))));
        CHECK(json_put(source->arena, &part, STR("sha256"), json_string(pick_hex(source))));
        CHECK(json_push(source->arena, &start->parts, part));
    }
    return start;
}

static inline void pick_end_facts(struct source *source, struct moment *moment)
{
    moment->counts = (struct run_counts){pick(source, 9), pick(source, 9), pick(source, 9), pick(source, 9)};
    moment->duration_ms = pick(source, 100000);
    if (moment->kind == MOMENT_RUN_FAILED) {
        moment->fault = pick_fault(source);
        moment->reason = maybe(source) ? pick_step(source) : STR("");
    }
    if (moment->kind == MOMENT_RUN_CANCELLED) {
        moment->reason = pick_text(source);
        moment->signal_id = maybe(source) ? pick_uuid(source) : STR("");
        moment->signal_type = maybe(source) ? pick_signal_type(source) : STR("");
        moment->actor = pick_text(source);
    }
}

static inline void pick_signal_facts(struct source *source, struct moment *moment)
{
    moment->signal_id = pick_uuid(source);
    moment->signal_type = pick_signal_type(source);
    moment->reason = pick_text(source);
    moment->actor = pick_text(source);
    if (moment->kind == MOMENT_RUN_PAUSED || moment->kind == MOMENT_RUN_RESUMED) return;
    moment->signal_step = maybe(source) ? pick_step(source) : STR("");
    moment->role = pick_text(source);
    moment->decision_id = pick_uuid(source);
    if (moment->kind == MOMENT_SIGNAL_REJECTED)
        moment->fault =
            (struct fault){.code = STR("RUN_TERMINAL"), .message = pick_text(source), .retryable = maybe(source)};
}

static inline void pick_completed_facts(struct source *source, struct moment *moment)
{
    moment->duration_ms = pick(source, 100000);
    if (maybe(source)) {
        moment->has_blob = true;
        moment->blob = pick_digest(source);
        moment->blob_size = draw(source) >> 16;
    } else {
        moment->value = pick_json(source, 4);
    }
    if (maybe(source)) moment->artifacts = pick_artifacts(source);
    moment->truncated = maybe(source);
    moment->actor = pick_text(source);
    moment->run_ref = maybe(source) ? pick_run(source) : STR("");
}

// The facts that header and documents give to a kind. Kinds without a word get a bit of everything: the ledger holds it.
static inline void pick_facts(struct source *source, struct moment *moment)
{
    enum moment_kind kind = moment->kind;
    if (kind == MOMENT_RUN_QUEUED || kind == MOMENT_RUN_STARTED || kind == MOMENT_RUN_REQUESTED) {
        moment->start = pick_start(source);
    } else if (moment_is_terminal(kind)) {
        pick_end_facts(source, moment);
    } else if (kind == MOMENT_RUN_APPROVED) {
        moment->actor = pick_text(source);
        moment->reason = pick_text(source);
        moment->signal_id = maybe(source) ? pick_uuid(source) : STR("");
    } else if (kind == MOMENT_SIGNAL_ACCEPTED || kind == MOMENT_SIGNAL_REJECTED || kind == MOMENT_RUN_PAUSED ||
               kind == MOMENT_RUN_RESUMED) {
        pick_signal_facts(source, moment);
    } else if (kind == MOMENT_STEP_STARTED || kind == MOMENT_STEP_REDISPATCHED) {
        moment->due_ms = maybe(source) ? 1770829200000 : 0;
        moment->run_ref = maybe(source) ? pick_run(source) : STR("");
    } else if (kind == MOMENT_STEP_DELAYED) {
        moment->due_ms = 1770829200000 + pick(source, 1000);
    } else if (kind == MOMENT_STEP_COMPLETED) {
        pick_completed_facts(source, moment);
    } else if (kind == MOMENT_STEP_SKIPPED) {
        static const char *const reasons[] = {SKIP_DEPENDENCY_FAILED, SKIP_TRIGGER_RULE, SKIP_CONDITION_FALSE,
                                              SKIP_CONDITION_BROKEN, SKIP_OPERATOR};
        moment->reason = str_from(reasons[pick(source, (uint32_t)ARRAY_COUNT(reasons))]);
        moment->detail = pick_text(source);
        moment->actor = pick_text(source);
    } else {
        moment->fault = pick_fault(source);
        moment->duration_ms = pick(source, 100000);
        moment->actor = pick_text(source);
    }
}

static inline struct moment pick_moment(struct source *source, enum moment_kind kind)
{
    struct moment moment = {.kind = kind, .by = (enum emitter)(EMITTER_ENGINE + pick(source, 4))};
    moment.step = moment_is_step(kind) ? pick_step(source) : STR("");
    moment.logical = 1 + pick(source, 5);
    moment.engine = kind == MOMENT_STEP_STARTED ? 1 : 2 + pick(source, 3);
    moment.at_ms = (int64_t)(draw(source) % UINT64_C(4102444800000));
    pick_facts(source, &moment);
    return moment;
}

// ---- playbooks

static inline struct str pick_label(struct source *source)
{
    static const struct str labels[] = {LITERAL("fetch"),       LITERAL("a:run:2"), LITERAL("b:iteration:1"),
                                        LITERAL("x:run:"),      LITERAL("step:y"),  LITERAL("9"),
                                        LITERAL("\xc3\xbc /?%")};
    return labels[pick(source, (uint32_t)ARRAY_COUNT(labels))];
}

static inline struct json pick_members(struct source *source, struct json value, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (maybe(source)) CHECK(json_put(source->arena, &value, str_from(names[i]), pick_object(source)));
    return value;
}

static inline struct json pick_outcome(struct source *source)
{
    static const char *const parts[] = {"error", "http", "meta", "py", NULL};
    struct json outcome = json_object();
    CHECK(json_put(source->arena, &outcome, STR("status"), json_string(maybe(source) ? STR("ok") : STR("error"))));
    return pick_members(source, outcome, parts);
}

static inline struct json pick_decision(struct source *source, enum moment_kind kind)
{
    static const char *const set[] = {"set", NULL};
    struct json value = json_object(), action = json_object(), steps = json_array();
    CHECK(json_push(source->arena, &steps, pick_object(source)));
    if (kind == MOMENT_ADMIT_EVALUATED) {
        CHECK(json_put(source->arena, &value, STR("allow"), json_bool(maybe(source))));
        return value;
    }
    if (kind == MOMENT_ROUTED) {
        CHECK(json_put(source->arena, &value, STR("mode"), json_string(STR("inclusive"))));
        CHECK(json_put(source->arena, &value, STR("matched"), steps));
        CHECK(json_put(source->arena, &value, STR("selected"), steps));
        return pick_members(source, value, set);
    }
    CHECK(json_put(source->arena, &action, STR("do"), json_string(STR("retry"))));
    CHECK(json_put(source->arena, &action, STR("delay"), json_number(STR("2.5"))));
    if (maybe(source)) CHECK(json_put(source->arena, &value, STR("matched_rule_index"), json_int(pick(source, 4))));
    CHECK(json_put(source->arena, &value, STR("action"), action));
    return pick_members(source, value, set);
}

static inline void pick_blob(struct source *source, struct moment *moment)
{
    moment->has_blob = true;
    moment->blob = pick_digest(source);
    moment->blob_size = draw(source) >> 16;
    if (maybe(source)) moment->preview = pick_object(source);
    if (moment->kind != MOMENT_LOOP_STARTED && maybe(source)) moment->extracted = pick_object(source);
}

// Which facts a kind has in a playbook's log.
static inline void pick_playbook_facts(struct source *source, struct moment *moment)
{
    enum moment_kind kind = moment->kind;
    bool fails = kind == MOMENT_ATTEMPT_FAILED || kind == MOMENT_TASK_FAILED || kind == MOMENT_STEP_FAILED ||
                 kind == MOMENT_ITERATION_FAILED || kind == MOMENT_RUN_FAILED;
    bool may_fail = kind == MOMENT_REQUEST_EVALUATED || kind == MOMENT_WORKFLOW_FINISHED;
    bool counts = kind == MOMENT_WORKFLOW_FINISHED || kind == MOMENT_LOOP_DONE || moment_is_terminal(kind);
    bool ends = counts || fails || kind == MOMENT_ATTEMPT_DONE || kind == MOMENT_TASK_DONE ||
                kind == MOMENT_STEP_COMPLETED || kind == MOMENT_ITERATION_DONE;
    if (fails || (may_fail && maybe(source))) moment->fault = pick_fault(source);
    if (kind == MOMENT_RUN_FAILED && maybe(source)) moment->fault.category = STR("cancelled");
    if (ends) moment->duration_ms = pick(source, 100000);
    if (counts)
        moment->counts = (struct run_counts){pick(source, 9), pick(source, 9), pick(source, 9), pick(source, 9)};
    if (kind == MOMENT_RUN_REQUESTED) moment->start = pick_start(source);
    if (kind == MOMENT_RUN_STARTED || kind == MOMENT_STEP_SCHEDULED || kind == MOMENT_TASK_STARTED)
        moment->value = pick_json(source, 3);
    if (kind == MOMENT_MANIFEST_UPDATED) moment->value = pick_object(source);
    if (kind == MOMENT_LOOP_STARTED) moment->counts.total = pick(source, 3);
    bool decides = kind == MOMENT_ADMIT_EVALUATED || kind == MOMENT_TASK_DECIDED || kind == MOMENT_ROUTED;
    if (decides) moment->value = pick_decision(source, kind);
    if (kind == MOMENT_ATTEMPT_DONE || (fails && kind != MOMENT_RUN_FAILED)) moment->value = pick_outcome(source);
    bool results = kind == MOMENT_TASK_DONE || kind == MOMENT_STEP_COMPLETED || kind == MOMENT_LOOP_STARTED;
    if (kind == MOMENT_RESULT_STORED || (results && maybe(source)))
        pick_blob(source, moment);
    else if (results)
        moment->value = pick_json(source, 4);
    if (moment_is_step(kind)) {
        moment->due_ms = maybe(source) ? 1770829200000 : 0;
        moment->run_ref = maybe(source) ? pick_run(source) : STR("");
    } else if (kind == MOMENT_RUN_CANCELLED || kind == MOMENT_RUN_PAUSED || kind == MOMENT_RUN_RESUMED) {
        moment->reason = pick_text(source);
        moment->signal_id = maybe(source) ? pick_uuid(source) : STR("");
        moment->signal_type = maybe(source) ? pick_signal_type(source) : STR("");
    } else if (kind == MOMENT_RUN_FAILED) {
        moment->reason = maybe(source) ? pick_step(source) : STR("");
    }
    if (kind != MOMENT_RUN_REQUESTED) moment->actor = pick_text(source);
}

static inline bool moment_has_task(enum moment_kind kind)
{
    return kind == MOMENT_TASK_STARTED || kind == MOMENT_ATTEMPT_STARTED || kind == MOMENT_ATTEMPT_DONE ||
           kind == MOMENT_ATTEMPT_FAILED || kind == MOMENT_TASK_DECIDED || kind == MOMENT_TASK_DONE ||
           kind == MOMENT_TASK_FAILED;
}

static inline struct moment pick_playbook_moment(struct source *source, enum moment_kind kind)
{
    struct moment moment = {.kind = kind, .by = (enum emitter)(EMITTER_ENGINE + pick(source, 4))};
    bool task = moment_has_task(kind);
    bool iteration = kind >= MOMENT_ITERATION_SCHEDULED && kind <= MOMENT_ITERATION_FAILED;
    if (kind == MOMENT_RESULT_STORED || kind == MOMENT_MANIFEST_UPDATED) task = maybe(source);
    if (moment_is_step(kind)) {
        moment.step = maybe(source) ? pick_step(source) : pick_label(source);
        moment.visit = 1 + pick(source, 3);
    }
    if (iteration || (task && maybe(source))) moment.iteration = 1 + pick(source, 12);
    if (task) {
        moment.task = pick_label(source);
        moment.task_run = 1 + pick(source, 11);
    }
    moment.logical = 1 + pick(source, 3);
    moment.engine = 1 + pick(source, 2);
    moment.at_ms = (int64_t)(draw(source) % UINT64_C(4102444800000));
    pick_playbook_facts(source, &moment);
    return moment;
}

static inline struct seal pick_seal(struct source *source)
{
    struct seal seal = {.seq = 1 + pick(source, 1000),
                        .persisted_ms = (int64_t)(draw(source) % UINT64_C(4102444800000))};
    memcpy(seal.event_id, pick_uuid(source).ptr, UUID_SIZE);
    seal.previous = pick_digest(source);
    return seal;
}

static const struct run_ids test_ids = {
    .tenant = LITERAL("tenant_acme"),
    .project = LITERAL("proj_marketing"),
    .environment = LITERAL("prod"),
    .run = LITERAL("run-001"),
    .plan_id = LITERAL("plan_xyz"),
    .plan_version = LITERAL("1.2.0"),
};

static inline void check_start_equal(const struct start_facts *a, const struct start_facts *b)
{
    CHECK((a == NULL) == (b == NULL));
    if (!a) return;
    CHECK_STR(a->document_sha256, b->document_sha256);
    CHECK_STR(a->document_kind, b->document_kind);
    CHECK_STR(a->document_file, b->document_file);
    CHECK_STR(a->schema_version, b->schema_version);
    CHECK_STR(a->name, b->name);
    CHECK_STR(a->arguments, b->arguments);
    CHECK_STR(a->work_dir, b->work_dir);
    CHECK_STR(a->artifacts_dir, b->artifacts_dir);
    CHECK_STR(a->triggered_by, b->triggered_by);
    CHECK_STR(a->trigger_source, b->trigger_source);
    CHECK_STR(a->plan_uri, b->plan_uri);
    CHECK_STR(a->plan_sha256, b->plan_sha256);
    CHECK_STR(a->original_run, b->original_run);
    CHECK_STR(a->parent_run, b->parent_run);
    CHECK_STR(a->parent_step, b->parent_step);
    CHECK_INT(a->forked, b->forked);
    CHECK_STR(a->forked_run, b->forked_run);
    CHECK_INT(a->forked_seq, b->forked_seq);
    CHECK_INT(a->requires_approval, b->requires_approval);
    CHECK(json_equal(&a->inputs, &b->inputs));
    CHECK_INT(a->parts.type, b->parts.type);
    CHECK(!a->parts.type || json_equal(&a->parts, &b->parts));
}

static inline void check_fault_equal(const struct fault *a, const struct fault *b)
{
    CHECK_STR(a->code, b->code);
    CHECK_STR(a->message, b->message);
    CHECK_STR(a->category, b->category);
    CHECK_STR(a->detail, b->detail);
    CHECK_INT(a->retryable, b->retryable);
    CHECK_INT(a->has_exit, b->has_exit);
    CHECK_INT(a->exit_code, b->exit_code);
}

// Every member of struct moment, written out: the tables under test have no part in this.
static inline void check_moment_equal(const struct moment *a, const struct moment *b)
{
    CHECK_TEXT(moment_name(a->kind), moment_name(b->kind));
    CHECK_INT(a->by, b->by);
    CHECK_STR(a->step, b->step);
    CHECK_INT(a->visit, b->visit);
    CHECK_INT(a->iteration, b->iteration);
    CHECK_STR(a->task, b->task);
    CHECK_INT(a->task_run, b->task_run);
    CHECK_INT(a->extracted.type, b->extracted.type);
    CHECK(!a->extracted.type || json_equal(&a->extracted, &b->extracted));
    CHECK_INT(a->preview.type, b->preview.type);
    CHECK(!a->preview.type || json_equal(&a->preview, &b->preview));
    CHECK_INT(a->truncated, b->truncated);
    CHECK_INT(a->logical, b->logical);
    CHECK_INT(a->engine, b->engine);
    CHECK_INT(a->at_ms, b->at_ms);
    check_start_equal(a->start, b->start);
    CHECK_INT(a->value.type, b->value.type);
    CHECK(!a->value.type || json_equal(&a->value, &b->value));
    CHECK_INT(a->has_blob, b->has_blob);
    CHECK(digest_eq(&a->blob, &b->blob));
    CHECK_INT(a->blob_size, b->blob_size);
    CHECK_INT(a->artifacts.type, b->artifacts.type);
    CHECK(!a->artifacts.type || json_equal(&a->artifacts, &b->artifacts));
    check_fault_equal(&a->fault, &b->fault);
    CHECK_INT(a->due_ms, b->due_ms);
    CHECK_INT(a->duration_ms, b->duration_ms);
    CHECK_STR(a->reason, b->reason);
    CHECK_STR(a->detail, b->detail);
    CHECK_STR(a->signal_id, b->signal_id);
    CHECK_STR(a->signal_type, b->signal_type);
    CHECK_STR(a->signal_step, b->signal_step);
    CHECK_STR(a->actor, b->actor);
    CHECK_STR(a->role, b->role);
    CHECK_STR(a->decision_id, b->decision_id);
    CHECK_STR(a->run_ref, b->run_ref);
    CHECK_INT(a->counts.total, b->counts.total);
    CHECK_INT(a->counts.completed, b->counts.completed);
    CHECK_INT(a->counts.failed, b->counts.failed);
    CHECK_INT(a->counts.skipped, b->counts.skipped);
}

#endif
