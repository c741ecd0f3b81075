// A scripted store and what its projector says.
#ifndef CAIRN_TEST_UNIT_PROJECT_KIT_H
#define CAIRN_TEST_UNIT_PROJECT_KIT_H

#include "unit/support/program_ids.h"
#include "unit/contract_moments.h"

#include "base/error.h"
#include "view/project.h"

#include <stdio.h>
#include <stdlib.h>

enum { T0 = 1000000 };

struct history {
    struct project_event events[64];
    char ids[64][16];
    size_t count;
};

static struct history history;
static uint64_t number; // of the last event told

UNUSED static void begin(void)
{
    history.count = 0;
    number = 0;
}

UNUSED static struct project_event *add(uint64_t seq, enum moment_kind kind, const char *step)
{
    struct project_event *event = &history.events[history.count];
    snprintf(history.ids[history.count], sizeof(history.ids[0]), "id-%llu", (unsigned long long)seq);
    *event = (struct project_event){
        .seq = seq,
        .moment = {.kind = kind, .step = str_from(step), .logical = 1, .engine = 1, .at_ms = T0 + (int64_t)seq},
        .id = str_from(history.ids[history.count]),
        .type = str_from(kind ? moment_word(kind, VOCABULARY_RUN) : "FooBar"),
        .persisted_ms = T0 + (int64_t)seq};
    history.count++;
    number = seq;
    return event;
}

// Events 1 to 8 of a run with two steps; the second one begins with 9.
UNUSED static void tell_eight(void)
{
    begin();
    add(1, MOMENT_RUN_QUEUED, "");
    add(2, MOMENT_RUN_STARTED, "");
    add(3, MOMENT_STEP_STARTED, "a");
    add(4, MOMENT_STEP_COMPLETED, "a")->moment.value = json_int(4);
    add(5, MOMENT_STEP_STARTED, "b");
    add(6, MOMENT_ATTEMPT_FAILED, "b")->moment.fault = (struct fault){.code = STR("TIMEOUT"), .message = STR("slow")};
    add(7, MOMENT_STEP_DELAYED, "b")->moment.logical = 2;
    add(8, MOMENT_STEP_STARTED, "b")->moment.logical = 2;
}

UNUSED static void check_same(const struct snapshot *a, const struct snapshot *b)
{
    struct arena arena;
    struct json left, right;
    struct digest x = snapshot_hash(a), y = snapshot_hash(b);
    arena_init(&arena, 4096, 1 << 24);
    CHECK(digest_eq(&x, &y));
    CHECK(view_json(snapshot_view(a), &arena, &left) && view_json(snapshot_view(b), &arena, &right));
    CHECK(json_equal(&left, &right));
    arena_release(&arena);
}

struct heard {
    struct project_report items[32];
    char texts[32][480];
    size_t count;
    uint64_t seqs[32];
    bool stale[32];
    size_t published;
};

static struct heard heard;
static struct projector *projector;

UNUSED static bool is_stale(void)
{
    const struct snapshot *snapshot = projector_snapshot(projector);
    return snapshot && snapshot_view(snapshot)->stale;
}

UNUSED static void on_report(void *context, const struct project_report *report)
{
    (void)context;
    CHECK(heard.count < ARRAY_COUNT(heard.items));
    CHECK_STR(report->ids->run, test_ids.run);
    heard.items[heard.count] = *report;
    snprintf(heard.texts[heard.count++], sizeof(heard.texts[0]), "%s", report->text);
}

UNUSED static void on_publish(void *context, const struct snapshot *snapshot)
{
    (void)context;
    CHECK(heard.published < ARRAY_COUNT(heard.seqs));
    heard.seqs[heard.published] = snapshot_seq(snapshot);
    heard.stale[heard.published++] = snapshot_view(snapshot)->stale;
}

static const struct project_sink sink = {NULL, on_publish, on_report};

UNUSED static void open_at(const struct snapshot *from)
{
    heard = (struct heard){0};
    projector = projector_open(&test_ids, NULL, from, T0, &sink);
    CHECK(projector);
}

UNUSED static size_t reports(enum project_report_kind kind)
{
    size_t found = 0;
    for (size_t i = 0; i < heard.count; i++) found += heard.items[i].kind == kind;
    return found;
}

UNUSED static const struct project_report *last_report(enum project_report_kind kind)
{
    const struct project_report *found = NULL;
    for (size_t i = 0; i < heard.count; i++) found = heard.items[i].kind == kind ? &heard.items[i] : found;
    CHECK(found);
    return found;
}

UNUSED static void check_request(enum project_want want, uint64_t after)
{
    struct project_request request = projector_next(projector);
    CHECK_INT(request.want, want);
    CHECK_INT(request.after, after);
}

// A store with the events of the history, all but one.
UNUSED static bool serve(uint64_t hidden)
{
    struct project_request request = projector_next(projector);
    struct project_event page[64];
    size_t count = 0;
    for (size_t i = 0; i < history.count; i++) {
        if (history.events[i].seq > request.after && history.events[i].seq != hidden) page[count++] = history.events[i];
    }
    if (request.want == PROJECT_FETCH) return projector_fetched(projector, page, count, T0 + 100);
    return projector_resynced(projector, page, count, false, T0 + 100);
}

UNUSED static void tell_ten_eleven_thirteen(void)
{
    tell_eight();
    add(9, MOMENT_STEP_COMPLETED, "b")->moment.logical = 2;
    add(10, MOMENT_STEP_STARTED, "c");
    add(11, MOMENT_STEP_COMPLETED, "c");
    add(13, MOMENT_RUN_COMPLETED, "");
}

#endif
