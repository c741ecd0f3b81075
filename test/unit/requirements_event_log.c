// The event log of node workflows, requirement by requirement: one way in, a backend of plain files, lines that stay.
#include "support/rig.h"

#include "store/backend.h"

#include <unistd.h>

static struct rig rig;

static const char workflow[] = "name: orders\n"
                               "nodes:\n"
                               "  - id: a\n"
                               "    bash: echo x >> ran-a; echo A\n"
                               "  - id: gate\n"
                               "    approval: { message: go on? }\n"
                               "    depends_on: [a]\n"
                               "  - id: b\n"
                               "    bash: echo \"line 1\"; echo 'a \"quoted\" line'\n"
                               "    depends_on: [gate]\n"
                               "  - id: c\n"
                               "    bash: exit 3\n"
                               "    depends_on: [b]\n"
                               "  - id: d\n"
                               "    bash: echo never\n"
                               "    depends_on: [c]\n";

static const char whole_story[] =
    "workflow_started node_started:a node_completed:a node_started:gate node_completed:gate node_started:b "
    "node_completed:b node_started:c node_failed:c node_skipped:d workflow_failed";

// "workflow_started node_started:a ..."
static struct str node_words(const struct log *log)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < log->count; i++) {
        struct str node = text_at(&log->items[i], "payload.node_id");
        buf_printf(&out, "%s%.*s", i ? " " : "", STR_ARG(text_at(&log->items[i], "event_type")));
        if (node.len) buf_printf(&out, ":%.*s", STR_ARG(node));
    }
    struct str words = arena_copy(&rig.arena, buf_str(&out));
    CHECK(buf_ok(&out) && words.ptr);
    buf_release(&out);
    return words;
}

static bool ran(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return access(path, F_OK) == 0;
}

static void approve(const char *run)
{
    struct signal signal = {
        .type = SIGNAL_APPROVE, .id = STR(RIG_SIGNAL_A), .step = STR("gate"), .payload = json_object()};
    signal.actor = STR("bob");
    signal.role = STR("Operator");
    CHECK_OK(engine_signal(rig.engine, RIG_TENANT, str_from(run), &signal, &rig.err), &rig.err);
}

// ---- the store between the engine and everything else

static const struct store_ops *real;
static size_t commit_count, committed_events, refused_count;
static bool refuse;

static enum code counting_commit(struct store *store, struct commit *commit, struct arena *turn, struct error *err)
{
    if (refuse) {
        refused_count++;
        return error_set(err, E_FULL, "no room in this test");
    }
    enum code rc = real->log.commit(store, commit, turn, err);
    commit_count++;
    committed_events += rc ? 0 : commit->event_count;
    return rc;
}

// All that the engine tells anybody has gone through the interface's one way in; closed, nothing happens at all.
static void events_go_through_the_interface_EL_4a(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open(&rig, rig_kinds[i]);
        real = rig.store->ops;
        struct store_ops counting = *real;
        counting.log.commit = counting_commit;
        rig.store->ops = &counting;
        commit_count = committed_events = refused_count = 0;
        refuse = true;
        rig_start(&rig, workflow, "r-1");
        rig_for(&rig, 300);
        struct run_head head;
        CHECK(refused_count >= 2); // it tries again, and tells and starts nothing meanwhile
        CHECK_INT(rig.told_count, 0);
        CHECK(!ran("ran-a"));
        CHECK_INT(store_head(rig.store, RIG_TENANT, STR("r-1"), &rig.arena, &head, NULL), E_NOT_FOUND);
        refuse = false;
        rig_until(&rig, "StepStarted", "gate");
        CHECK_INT(committed_events, rig.told_count);
        approve("r-1");
        rig_finish(&rig);
        struct log log = rig_log(&rig, "r-1");
        CHECK_STR(node_words(&log), str_from(whole_story));
        CHECK_INT(committed_events, log.count);
        CHECK_INT(rig.told_count, log.count);
        CHECK(commit_count > 3);
        rig.store->ops = real;
        rig_close(&rig);
        char path[512];
        snprintf(path, sizeof(path), "%s/ran-a", test_dir());
        CHECK_STR(test_read_file(path), STR("x\n"));
        CHECK(unlink(path) == 0);
    }
}

// ---- plain files

// A run that began in one life of the store ends in the next, on nothing but files.
static void file_system_backend_carries_a_run_EL_4b(void)
{
    rig_open(&rig, "files");
    CHECK_TEXT(store_kind(rig.store), "files");
    rig_start(&rig, workflow, "r-1");
    rig_until(&rig, "StepStarted", "gate");
    rig_close(&rig);
    rig_open(&rig, "files");
    struct log before = rig_log(&rig, "r-1");
    CHECK_STR(node_words(&before), STR("workflow_started node_started:a node_completed:a node_started:gate"));
    CHECK_OK(engine_adopt(rig.engine, RIG_TENANT, STR("r-1"), &rig.err), &rig.err);
    approve("r-1");
    rig_finish(&rig);
    struct log after = rig_log(&rig, "r-1");
    for (size_t i = 0; i < before.count; i++) CHECK_STR(after.raw.items[i].bytes, before.raw.items[i].bytes);
    CHECK_STR(text_at(&after.items[after.count - 1], "event_type"), STR("workflow_failed"));
    char path[512];
    snprintf(path, sizeof(path), "%s/ran-a", test_dir());
    CHECK_STR(test_read_file(path), STR("x\n")); // a was not run again
    rig_close(&rig);
}

// After every turn the file holds what it held, plus whole lines, one JSON object each, as many as were told.
static void lines_are_appended_and_stay_EL_4d_EL_1b(void)
{
    char path[512];
    struct str before = STR("");
    bool approved = false;
    rig_open(&rig, "files");
    snprintf(path, sizeof(path), "%s/store.files/@acme/r-1/events.jsonl", test_dir());
    rig_start(&rig, workflow, "r-1");
    size_t looks = 0;
    while (engine_activity(rig.engine).resident > 0) {
        rig_turn(&rig);
        struct str now = test_read_file(path);
        CHECK(str_starts(now, before));
        CHECK(str_ends(now, STR("\n")));
        size_t lines = 0;
        for (struct str rest = now; rest.len > 0; lines++) {
            struct json value;
            struct str line = str_cut(rest, '\n', &rest);
            CHECK_OK(json_parse(line, NULL, &rig.arena, &value, &rig.err), &rig.err);
            CHECK_INT(value.type, JSON_OBJECT);
            CHECK_INT(int_at(&value, "sequence"), lines + 1);
            CHECK_STR(text_at(&value, "run_id"), STR("r-1"));
        }
        CHECK_INT(lines, rig.told_count);
        looks += now.len > before.len;
        before = now;
        if (!approved && rig_count(&rig, "StepStarted", "gate")) {
            approve("r-1");
            approved = true;
        }
    }
    CHECK(looks >= 4);
    struct log log = rig_log(&rig, "r-1");
    CHECK_STR(node_words(&log), str_from(whole_story));
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(events_go_through_the_interface_EL_4a),
        TEST(file_system_backend_carries_a_run_EL_4b),
        TEST(lines_are_appended_and_stay_EL_4d_EL_1b),
    };
    return test_main("requirements_event_log", tests, ARRAY_COUNT(tests), argc, argv);
}
