// Tests of event records: the contract, a story to tell in either vocabulary, records to take apart. Header-only: each test
// program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_CONTRACT_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_CONTRACT_KIT_H

#include "unit/contract_moments.h"

#include "base/error.h"
#include "schema/schema.h"

#include <stdio.h>

UNUSED static struct arena arena;
UNUSED static const struct contract *contract;
UNUSED static struct error err;

UNUSED static void open_contract(void)
{
    if (contract) return;
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
}

UNUSED static const char *const run_words[] = {
    "RunQueued",    "RunApproved",    "RunStarted",     "StepDelayed",      "StepStarted",  "StepCompleted",
    "StepFailed",   "StepSkipped",    "RunPaused",      "RunResumed",       "RunCompleted", "RunFailed",
    "RunCancelled", "SignalAccepted", "SignalRejected", "StepRedispatched",
};

UNUSED static const char *const node_words[] = {
    "workflow_started", "workflow_completed", "workflow_failed", "workflow_cancelled",
    "node_started",     "node_completed",     "node_failed",     "node_skipped",
};

UNUSED static const char plan_sha[] = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

UNUSED static struct start_facts story_start(const char *kind)
{
    struct start_facts start = {.document_sha256 = str_from(plan_sha), .document_kind = str_from(kind)};
    start.document_file = STR("plans/orders.json");
    start.schema_version = STR("v1.2");
    start.name = STR("orders");
    start.triggered_by = STR("ada");
    start.trigger_source = STR("manual");
    start.inputs = json_object();
    CHECK(json_put(&arena, &start.inputs, STR("day"), json_string(STR("2026-02-11"))));
    return start;
}

struct story {
    enum vocabulary vocabulary;
    struct seal seal;
    struct buf text;
    struct encoded last;
};

UNUSED static void story_open(struct story *story, enum vocabulary vocabulary)
{
    open_contract();
    *story = (struct story){.vocabulary = vocabulary};
    buf_init(&story->text, 1 << 20);
}

UNUSED static void tell(struct story *story, struct moment moment)
{
    story->seal.seq++;
    story->seal.persisted_ms = 1770829200000 + (int64_t)story->seal.seq * 10 + 5;
    CHECK(snprintf(story->seal.event_id, UUID_SIZE, "00000000-0000-4000-8000-%012d", (int)story->seal.seq) ==
          UUID_SIZE - 1);
    moment.at_ms = 1770829200000 + (int64_t)story->seal.seq * 10;
    moment.by = moment.by ? moment.by : moment_emitter(moment.kind);
    moment.logical = moment.logical ? moment.logical : 1;
    moment.engine = moment.engine ? moment.engine : 1;
    CHECK_OK(contract_encode(contract, story->vocabulary, &test_ids, &moment, &story->seal, &arena, &story->last, &err),
             &err);
    buf_add(&story->text, story->last.bytes);
    buf_byte(&story->text, '\n');
    story->seal.previous = story->last.hash;
}

UNUSED static struct fault exit_fault(void)
{
    return (struct fault){.code = STR("EXIT_NONZERO"),
                          .message = STR("exit status 3"),
                          .category = STR("business"),
                          .detail = STR("no such table: \xc3\xb6rders\n"),
                          .retryable = true,
                          .has_exit = true,
                          .exit_code = 3};
}

UNUSED static struct json one_artifact(void)
{
    struct json artifacts = json_array(), artifact = json_object();
    CHECK(json_put(&arena, &artifact, STR("kind"), json_string(STR("log-bundle"))));
    CHECK(json_put(&arena, &artifact, STR("uri"), json_string(STR("file:///var/lib/cairn/a/log.txt"))));
    CHECK(json_push(&arena, &artifacts, artifact));
    return artifacts;
}

#define SIGNAL_ID STR("7c9e6679-7425-40de-944b-e07fc1f90ae7")

// A record with one member replaced (or taken away, when value has type 0).
UNUSED static struct json with_member(const struct json *record, const char *key, struct json value)
{
    struct json out = json_object();
    for (uint32_t i = 0; i < record->count; i++) {
        if (!str_is(record->members[i].key, key))
            CHECK(json_put(&arena, &out, record->members[i].key, record->members[i].value));
    }
    if (value.type) CHECK(json_put(&arena, &out, str_from(key), value));
    return out;
}

UNUSED static struct json record_of(enum vocabulary vocabulary, struct moment moment)
{
    struct story story;
    story_open(&story, vocabulary);
    tell(&story, moment);
    buf_release(&story.text);
    struct json record;
    CHECK_OK(json_parse(story.last.bytes, &json_limits_default, &arena, &record, &err), &err);
    return record;
}

UNUSED static void check_refused(enum vocabulary vocabulary, const struct json *record, const char *word_in_message)
{
    struct error why = {0};
    CHECK_INT(contract_check(contract, vocabulary, record, &why), E_SCHEMA);
    CHECK(strstr(why.message, "SCHEMA_VALIDATION_FAILED") != NULL);
    if (!strstr(why.message, word_in_message))
        test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", why.message, word_in_message);
}

#endif
