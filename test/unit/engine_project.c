// The projector as a reader of a living store: fed with whatever each turn of the engine stored, it is never behind, never
// STALE, and has what a projection of the whole log has. This is how a service drives it.
#include "support/engine_kit.h"

#include "view/alerts.h"

struct reader {
    struct kit *kit;
    const char *run;
    struct projector *projector;
    struct replay_cursor cursor;
    struct alerts alerts;
    struct arena memory;
    size_t published;
};

static enum code take(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct reader *reader = context;
    struct error err = {0};
    struct json decision;
    struct run_ids ids = kit_head(reader->kit, reader->run).ids;
    if (!moment) {
        CHECK_OK(json_parse(record->bytes, NULL, &reader->memory, &decision, &err), &err);
        alerts_decision(&reader->alerts, &ids, &decision, 1);
        return OK;
    }
    alerts_moment(&reader->alerts, &ids, moment, record->seq);
    struct project_event event = {.seq = record->seq,
                                  .ledger = record->ledger_seq != 0,
                                  .moment = *moment,
                                  .id = seal ? str_from(seal->event_id) : STR(""),
                                  .type = record->type,
                                  .persisted_ms = seal ? seal->persisted_ms : 0};
    CHECK(projector_fetched(reader->projector, &event, 1, reader->kit->now.wall_ms));
    return OK;
}

static void on_report(void *context, const struct project_report *report)
{
    struct reader *reader = context;
    alerts_projector(&reader->alerts, report);
    test_fail(__FILE__, __LINE__, "%s: %s", project_report_name(report->kind), report->text);
}

static void on_publish(void *context, const struct snapshot *snapshot)
{
    struct reader *reader = context;
    CHECK(!snapshot_view(snapshot)->stale);
    reader->published++;
}

static void reader_open(struct reader *reader, struct kit *kit, const char *run)
{
    *reader = (struct reader){.kit = kit, .run = run};
    arena_init(&reader->memory, 4096, 1 << 24);
    CHECK(alerts_init(&reader->alerts, &reader->memory, 16));
    struct run_ids ids = kit_head(kit, run).ids;
    reader->projector = projector_open(&ids, kit->program, NULL, kit->now.wall_ms,
                                       &(struct project_sink){reader, on_publish, on_report});
    CHECK(reader->projector);
}

static void reader_look(struct reader *reader, enum run_status status)
{
    struct error err = {0};
    struct run_head head = kit_head(reader->kit, reader->run);
    CHECK_OK(store_replay_from(reader->kit->store, head.ids.tenant, head.ids.run, &reader->cursor, take, reader, &err),
             &err);
    const struct snapshot *snapshot = projector_snapshot(reader->projector);
    CHECK_TEXT(run_status_name(snapshot_view(snapshot)->status), run_status_name(status));
    CHECK_INT(snapshot_seq(snapshot), head.last_seq);
    CHECK_INT(projector_lag_ms(reader->projector, reader->kit->now.wall_ms + 60000), 0);
}

static void reader_close(struct reader *reader)
{
    projector_close(reader->projector);
    arena_release(&reader->memory);
}

static void a_reader_keeps_up_with_every_turn_ES_1_5d_ES_1_4d(void)
{
    struct kit k;
    struct reader reader;
    kit_open(&k, PLAN(SHELL("a", "", ",\"retry\":{\"maxAttempts\":2,\"delay\":\"1s\"}") "," SHELL("b", "\"a\"", "")));
    kit_start(&k, "r1");
    reader_open(&reader, &k, "r1");
    reader_look(&reader, RUN_STATUS_RUNNING);
    kit_fail(&k, "a", "TIMEOUT", true);
    reader_look(&reader, RUN_STATUS_RUNNING);
    kit_pass(&k, 1001);
    kit_done(&k, "a", "one");
    reader_look(&reader, RUN_STATUS_RUNNING);
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    reader_look(&reader, RUN_STATUS_PAUSED);
    CHECK_TEXT(view_substatus(snapshot_view(projector_snapshot(reader.projector))), "DRAINING");
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    kit_done(&k, "b", "two");
    reader_look(&reader, RUN_STATUS_COMPLETED);
    CHECK_INT(reader.alerts.count, 0);
    CHECK(reader.published > 5);
    reader_close(&reader);
    kit_close(&k);
}

static void an_emergency_stop_is_one_alert(void)
{
    struct kit k;
    struct reader reader;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    reader_open(&reader, &k, "r1");
    char id[UUID_SIZE];
    struct signal signal = kit_make_signal(&k, SIGNAL_EMERGENCY_STOP, "", id);
    signal.reason = STR("the house is on fire");
    kit_send(&k, "r1", &signal);
    kit_idle(&k);
    CHECK(k.decision.accepted);
    kit_fail(&k, "a", "CANCELLED", false);
    reader_look(&reader, RUN_STATUS_CANCELLED);
    CHECK_INT(reader.alerts.count, 1);
    CHECK_INT(reader.alerts.items[0].name, ALERT_DESTRUCTIVE_SIGNAL);
    CHECK_INT(reader.alerts.items[0].priority, 1);
    CHECK_INT(reader.alerts.items[0].count, 1); // the event and the decision record are one
    reader_close(&reader);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_reader_keeps_up_with_every_turn_ES_1_5d_ES_1_4d),
        TEST(an_emergency_stop_is_one_alert),
    };
    return test_main("engine_project", tests, ARRAY_COUNT(tests), argc, argv);
}
