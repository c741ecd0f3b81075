// Forks and reruns over the memory store: property tests over many documents and every event of their logs.
#include "support/engine_kit.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES(nodes) "name: n\nnodes:\n" nodes
#define NODE(id, more) "  - id: " id "\n    bash: do " id "\n" more

// A step whose id holds "flaky" fails its first attempt, one with "broken" all of them, one with "late" all but the third.
static const char *const documents[] = {
    LINEAR,
    PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("c", "\"a\"", "") "," SHELL("d", "\"b\",\"c\"", "")),
    PLAN(SHELL("flaky", "", ",\"retry\":{\"maxAttempts\":3,\"delay\":\"100ms\"}") "," SHELL("b", "\"flaky\"", "")),
    PLAN(SHELL("flaky", "", ",\"retry\":{\"maxAttempts\":3}") "," SHELL("b", "\"flaky\"", "")),
    PLAN(SHELL("a", "", "") "," SHELL("broken", "\"a\"", "") "," SHELL("b", "\"broken\"", "") "," SHELL(
        "tidy", "\"broken\"", ",\"triggerRule\":\"all_done\"")),
    PLAN(SHELL("late", "", ",\"onStepFailure\":\"hold\"") "," SHELL("b", "\"late\"", "")),
    PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"duration\":\"5s\"}}," SHELL("b", "\"nap\"", "")),
    PLAN(SHELL("a", "", "") ",{\"stepId\":\"until\",\"kind\":\"wait\",\"dependsOn\":[\"a\"],\"with\":{\"until\":"
                            "\"$a.output\"}}"),
    PLAN(SHELL("a", "", "") ",{\"stepId\":\"gate\",\"kind\":\"approval\",\"dependsOn\":[\"a\"],\"with\":{\"message\":"
                            "\"go?\",\"timeout\":\"1h\"}}," SHELL("b", "\"gate\"", "")),
    PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", ",\"when\":\"$a.output == 'no'\"") "," SHELL(
        "c", "\"b\"", ",\"triggerRule\":\"all_done\"") "," SHELL("d", "\"a\"", ",\"when\":\"$a.output.x == 'no'\"")),
    PLAN("{\"stepId\":\"n\",\"kind\":\"noop\"},{\"stepId\":\"e\",\"kind\":\"echo\",\"with\":{\"message\":\"hi\"}},{"
         "\"stepId\":\"m\",\"kind\":\"merge\",\"dependsOn\":[\"n\",\"e\"]}"),
    PLAN(SHELL("a", "", "") ",{\"stepId\":\"sub\",\"kind\":\"subrun\",\"dependsOn\":[\"a\"],\"with\":{\"document\":"
                            "\"child.json\"}}," SHELL("b", "\"sub\"", "")),
    NODES(NODE("a", "") NODE("broken", "    depends_on: [a]\n") NODE("b", "    depends_on: [a]\n") NODE(
        "c", "    depends_on: [broken, b]\n    trigger_rule: all_done\n") NODE("d", "    depends_on: [broken]\n")),
    NODES("  - id: again\n    loop_group:\n      max_iterations: 5\n      until_bash: test late\n      nodes:\n"
          "        - id: tick\n          bash: do tick\n        - id: tock\n          bash: do tock\n"
          "          depends_on: [tick]\n" NODE("after", "    depends_on: [again]\n")),
    NODES(NODE("flaky", "    retry:\n      max_attempts: 3\n      delay_ms: 1000\n")
              NODE("b", "    depends_on: [flaky]\n")),
    NODES(NODE("ask", "") "  - id: stop\n    depends_on: [ask]\n    cancel: enough\n"),
};

// ---- a world that always answers the same
static bool has(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

static bool succeeds(const struct kit_attempt *attempt)
{
    const char *step = attempt->step;
    if (has(step, "again.until")) return has(step, "[3]");
    if (has(step, "broken")) return false;
    if (has(step, "flaky")) return attempt->logical > 1;
    return !has(step, "late") || attempt->logical > 2;
}

// Answers one attempt of the run or of its children. False: none waits.
static bool answer(struct kit *k, const char *run)
{
    for (size_t i = 0; i < k->attempt_count; i++) {
        struct kit_attempt *attempt = &k->attempts[i];
        size_t len = strlen(run);
        bool ours = strncmp(attempt->run, run, len) == 0 && (attempt->run[len] == '\0' || attempt->run[len] == '.');
        if (attempt->over || !ours) continue;
        bool ok = succeeds(attempt);
        char output[200];
        snprintf(output, sizeof(output), "out of %s", attempt->step);
        attempt->over = true;
        struct tool_result result = {.ticket = attempt->ticket, .ok = ok, .duration_ms = 3};
        if (ok)
            result.output = str_from(output);
        else
            result.fault = (struct fault){.code = STR("EXIT_NONZERO"), .message = STR("no"), .retryable = true};
        engine_deliver(k->engine, &result);
        kit_idle(k);
        return true;
    }
    return false;
}

static const struct run *live(struct kit *k, const char *run)
{
    return engine_run(k->engine, STR("default"), str_from(run));
}

// One thing that makes the run go on, whatever it waits for.
static void nudge(struct kit *k, const char *run)
{
    const struct run *state = live(k, run);
    CHECK(state);
    if (answer(k, run)) return;
    if (state->status == RUN_STATUS_PAUSED) {
        kit_signal(k, run, SIGNAL_RESUME, "");
        return;
    }
    for (uint32_t i = 0; i < state->program->step_count; i++) {
        char id[129];
        snprintf(id, sizeof(id), "%.*s", STR_ARG(state->program->steps[i].id));
        bool gate = state->program->steps[i].kind == STEP_APPROVAL && kernel_state(state, i) == NODE_RUNNING;
        if (!gate && kernel_state(state, i) != NODE_HELD) continue;
        kit_signal(k, run, gate ? SIGNAL_APPROVE : SIGNAL_RETRY_STEP, id);
        return;
    }
    kit_pass(k, 1001);
}

static void drive(struct kit *k, const char *run)
{
    for (int i = 0; live(k, run); i++) {
        CHECK(i < 400);
        nudge(k, run);
    }
    for (size_t i = 0; i < k->attempt_count; i++) CHECK(k->attempts[i].over || strcmp(k->attempts[i].run, run) != 0);
    k->attempt_count = 0;
}

// ---- forks
static struct fork *open_fork(struct kit *k, const char *source, const struct fork_request *wish)
{
    struct fork_request request = *wish;
    struct fork *fork = NULL;
    struct error err = {0};
    request.tenant = STR("default");
    request.source = str_from(source);
    request.now_ms = k->now.wall_ms;
    CHECK_OK(fork_open(k->store, &request, &fork, &err), &err);
    return fork;
}

// Starts with a directory for artifacts that no earlier test has left.
static void clear_artifacts(struct kit *k, const struct fork *fork, const char *run)
{
    struct run_ids ids = fork->head.ids;
    struct str dir;
    ids.run = str_from(run);
    CHECK_OK(store_artifacts_dir(k->store, &ids, &k->memory, &dir), NULL);
    (void)rmdir(dir.ptr);
}

static void start_fork(struct kit *k, struct fork *fork, const char *run)
{
    clear_artifacts(k, fork, run);
    struct fork_start start = {
        .run = str_from(run), .triggered_by = STR("ann"), .reason = STR("why not"), .how = "fork"};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_fork(k->engine, fork, &start, out, &err), &err);
    CHECK_TEXT(out, run);
    fork_close(fork);
    kit_idle(k);
}

static void fork_at(struct kit *k, const char *source, uint64_t at, const char *run)
{
    start_fork(k, open_fork(k, source, &(struct fork_request){.at = at}), run);
}

static void check_log(struct kit *k, const char *run)
{
    struct verify_report report;
    struct error err = {0};
    CHECK_OK(store_verify(k->store, STR("default"), str_from(run), &k->memory, &report, &err), &err);
    if (report.fault_count > 0)
        test_fail(__FILE__, __LINE__, "%s: event %d: %.*s", run, (int)report.faults[0].seq,
                  STR_ARG(report.faults[0].what));
}

// Both ended in the same way: status, and the state and output of every step.
static void check_same_end(struct kit *k, const char *a, const char *b)
{
    struct fork *x = open_fork(k, a, &(struct fork_request){.at = UINT64_MAX});
    struct fork *y = open_fork(k, b, &(struct fork_request){.at = UINT64_MAX});
    CHECK_INT(kit_head(k, a).summary.status, kit_head(k, b).summary.status);
    for (uint32_t i = 0; i < x->before->top_count; i++) {
        enum node_state s = kernel_state(x->source, i), t = kernel_state(y->source, i);
        const struct json *v = kernel_value(x->source, i), *w = kernel_value(y->source, i);
        uint32_t n = kernel_attempt(x->source, i).logical, m = kernel_attempt(y->source, i).logical;
        bool child = x->before->steps[i].kind == STEP_SUBRUN; // names its run
        bool values = child || (!v && !w) || (v && w && json_equal(v, w));
        if (s != t || !values || n != m)
            test_fail(__FILE__, __LINE__, "%s, %s: step %.*s is %d.%u and %d.%u", a, b, STR_ARG(x->before->steps[i].id),
                      s, n, t, m);
    }
    fork_close(x);
    fork_close(y);
}

static void fork_at_every_event_ends_like_its_source(void)
{
    for (size_t d = 0; d < ARRAY_COUNT(documents); d++) {
        struct kit k;
        kit_open(&k, documents[d]);
        kit_start(&k, "r");
        drive(&k, "r");
        uint64_t last = kit_head(&k, "r").last_seq;
        for (uint64_t at = 0; at <= last; at++) {
            char run[32];
            snprintf(run, sizeof(run), "fork-%d-%d", (int)d, (int)at);
            k.now.wall_ms += 86400000; // however long ago it was
            fork_at(&k, "r", at, run);
            drive(&k, run);
            check_log(&k, run);
            check_same_end(&k, "r", run);
            CHECK_STR(kit_head(&k, run).original_run, STR("r"));
        }
        kit_close(&k);
    }
}

// Lines of `told` without the events that were recorded again, and with one name for all runs.
static struct str without_names(struct kit *k, struct str told, const char *run)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    while (told.len > 0) {
        struct str line = str_cut(told, '\n', &told);
        struct str rest;
        if (!str_is(str_cut(line, ' ', &rest), run)) continue;
        buf_add(&out, rest);
        buf_byte(&out, '\n');
    }
    struct str text = arena_copy(&k->memory, buf_str(&out));
    buf_release(&out);
    return text;
}

// After every answer the source is left by its process; what resuming it says is what forking it says.
static void fork_at_the_last_event_equals_resume(void)
{
    for (size_t d = 0; d < ARRAY_COUNT(documents); d++) {
        struct kit k;
        kit_open(&k, documents[d]);
        kit_start(&k, "r");
        for (int i = 0; live(&k, "r"); i++) {
            char run[32];
            snprintf(run, sizeof(run), "f%d", i);
            buf_clear(&k.told);
            fork_at(&k, "r", UINT64_MAX, run);
            struct str forked = without_names(&k, buf_str(&k.told), run);
            kit_crash(&k);
            k.attempt_count = 0;
            buf_clear(&k.told);
            kit_adopt(&k, "r");
            CHECK_STR(forked, without_names(&k, buf_str(&k.told), "r"));
            if (live(&k, "r")) nudge(&k, "r");
        }
        kit_close(&k);
    }
}

static struct str words_of(struct kit *k, const char *run)
{
    struct records events;
    struct error err = {0};
    struct buf out;
    buf_init(&out, 1 << 20);
    struct record_range range = {.tenant = STR("default"), .run = str_from(run), .limit = SIZE_MAX};
    CHECK_OK(store_read(k->store, &range, &k->memory, &events, &err), &err);
    for (size_t i = 0; i < events.count; i++) buf_printf(&out, "%.*s\n", STR_ARG(events.items[i].type));
    struct str text = arena_copy(&k->memory, buf_str(&out));
    buf_release(&out);
    return text;
}

static void fork_at_zero_equals_rerun(void)
{
    for (size_t d = 0; d < ARRAY_COUNT(documents); d++) {
        struct kit k;
        kit_open(&k, documents[d]);
        kit_start(&k, "r");
        drive(&k, "r");
        fork_at(&k, "r", 0, "f");
        drive(&k, "f");
        start_fork(&k, open_fork(&k, "r", &(struct fork_request){.at = 0, .results_only = true}), "again");
        drive(&k, "again");
        CHECK_STR(words_of(&k, "f"), words_of(&k, "again"));
        CHECK_STR(words_of(&k, "r"), words_of(&k, "again"));
        check_same_end(&k, "f", "again");
        kit_close(&k);
    }
}

// ---- changes
static enum fate_kind fate_of(const struct fork *fork, const char *step)
{
    uint32_t index = program_find(fork->program, PROGRAM_TOP, str_from(step));
    CHECK(index != PROGRAM_TOP);
    return fork->fates[index].fate;
}

static struct json text_value(const char *text)
{
    return json_string(str_from(text));
}

static struct json one_input(struct kit *k, const char *name, const char *value)
{
    struct json inputs = json_object();
    CHECK(json_put(&k->memory, &inputs, str_from(name), text_value(value)));
    return inputs;
}

#define WITH_INPUT                                                                                                     \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"inputs\":{\"env\":\"dev\","   \
    "\"who\":\"ann\"},\"steps\":[" SHELL(                                                                              \
        "a", "", "") ",{\"stepId\":\"b\",\"kind\":\"shell\",\"dependsOn\":[\"a\"],"                                    \
                     "\"with\":{\"command\":\"deploy $INPUTS.env\"}}," SHELL("c", "\"b\"", "") "," SHELL(              \
                         "d", "\"a\"", ",\"when\":\"$INPUTS.who == 'ann'\"") "]}"

static void changed_input_reaches_commands_conditions_and_what_hangs_on_them(void)
{
    struct kit k;
    kit_open(&k, WITH_INPUT);
    kit_start(&k, "r");
    drive(&k, "r");
    struct fork *fork =
        open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .inputs = one_input(&k, "env", "x")});
    CHECK_INT(fate_of(fork, "a"), FORK_KEPT);
    CHECK_INT(fate_of(fork, "b"), FORK_AGAIN);
    CHECK_INT(fate_of(fork, "c"), FORK_AGAIN);
    CHECK_INT(fate_of(fork, "d"), FORK_KEPT);
    fork_close(fork);
    fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .inputs = one_input(&k, "who", "bob")});
    CHECK_INT(fate_of(fork, "b"), FORK_KEPT);
    CHECK_INT(fate_of(fork, "d"), FORK_AGAIN);
    CHECK_INT(kernel_state(fork->run, 3), NODE_SKIPPED); // the preview has asked the condition
    fork_close(fork);
    fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .inputs = one_input(&k, "env", "dev")});
    CHECK_INT(fork->changed.count, 0);
    CHECK_INT(fate_of(fork, "b"), FORK_KEPT);
    fork_close(fork);
    kit_close(&k);
}

static void changed_document_keeps_what_is_defined_as_before(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("broken", "\"a\"", "")));
    kit_start(&k, "r");
    drive(&k, "r");
    static const struct {
        const char *text;
        enum fate_kind a, b, broken;
    } cases[] = {
        {PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("broken", "\"a\"", "")), FORK_KEPT, FORK_KEPT,
         FORK_KEPT},
        // How often a step is tried does not change what it gave, but it does change a failure.
        {PLAN(SHELL("a", "", ",\"retry\":{\"maxAttempts\":3}") "," SHELL("b", "\"a\"", "") "," SHELL(
             "broken", "\"a\"", ",\"retry\":{\"maxAttempts\":3}")),
         FORK_KEPT, FORK_KEPT, FORK_AGAIN},
        {PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"dependsOn\":[],\"with\":{\"command\":\"other\"}}," SHELL(
             "b", "\"a\"", "") "," SHELL("broken", "\"a\"", "")),
         FORK_AGAIN, FORK_AGAIN, FORK_AGAIN},
        {PLAN(SHELL("a", "", "") "," SHELL("n", "\"a\"", "") "," SHELL("b", "\"a\",\"n\"", "") "," SHELL("broken",
                                                                                                         "\"a\"", "")),
         FORK_KEPT, FORK_AGAIN, FORK_KEPT},
        {PLAN(SHELL("b", "\"a\"", "") "," SHELL("broken", "\"a\"", "") "," SHELL("a", "", "")), FORK_KEPT, FORK_KEPT,
         FORK_KEPT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct program *program = kit_program(&k, cases[i].text, NULL);
        struct fork *fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .program = program});
        CHECK_INT(fate_of(fork, "a"), cases[i].a);
        CHECK_INT(fate_of(fork, "b"), cases[i].b);
        CHECK_INT(fate_of(fork, "broken"), cases[i].broken);
        char run[16];
        snprintf(run, sizeof(run), "p%d", (int)i);
        start_fork(&k, fork, run);
        drive(&k, run);
        check_log(&k, run);
        program_release(program);
    }
    kit_close(&k);
}

static char large[100 * 1024];

static void given_output_counts_also_when_it_is_large_or_the_step_failed(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("broken", "\"a\"", "") "," SHELL("c", "\"broken\"", "")));
    kit_start(&k, "r");
    drive(&k, "r");
    memset(large, 'x', sizeof(large) - 1);
    struct fork_output outputs[] = {{STR("broken"), text_value(large)}};
    struct fork *fork =
        open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .outputs = outputs, .output_count = 1});
    CHECK_INT(fate_of(fork, "broken"), FORK_GIVEN);
    start_fork(&k, fork, "f");
    kit_crash(&k); // what was given is in the log
    k.attempt_count = 0;
    kit_adopt(&k, "f");
    const struct run *run = live(&k, "f");
    CHECK(run && kernel_state(run, 1) == NODE_SUCCESS && kernel_blob(run, 1));
    drive(&k, "f");
    CHECK_INT(kit_head(&k, "f").summary.status, RUN_STATUS_COMPLETED);
    struct fork *refused = NULL;
    struct fork_request early = {
        .tenant = STR("default"), .source = STR("r"), .at = 3, .outputs = outputs, .output_count = 1};
    struct error err = {0};
    CHECK_INT(fork_open(k.store, &early, &refused, &err), E_CONFLICT);
    early.at = 99;
    CHECK_INT(fork_open(k.store, &early, &refused, NULL), E_INVALID);
    outputs[0].step = STR("nosuch");
    early.at = 3;
    CHECK_INT(fork_open(k.store, &early, &refused, NULL), E_NOT_FOUND);
    kit_close(&k);
}

// ---- what belongs to the source alone
static void pause_and_cancel_are_of_the_source(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("c", "\"a\",\"b\"", "")));
    kit_start(&k, "r");
    kit_done(&k, "a", "out of a");
    kit_signal(&k, "r", SIGNAL_PAUSE, "");
    buf_clear(&k.told);
    fork_at(&k, "r", UINT64_MAX, "f1");
    kit_expect(&k, "f1 RUN_RESUMED\nf1 STEP_REDISPATCHED b 1.2\n");
    kit_crash(&k);
    kit_signal(&k, "r", SIGNAL_CANCEL, "");
    CHECK(kit_told(&k, "r STEP_FAILED b 1.1 CANCELLED\n"));
    CHECK_INT(kit_head(&k, "r").summary.status, RUN_STATUS_CANCELLED);
    k.attempt_count = 0;
    buf_clear(&k.told);
    fork_at(&k, "r", UINT64_MAX, "f2");
    kit_expect(&k, "f2 RUN_RESUMED\nf2 STEP_REDISPATCHED b 1.2\n");
    drive(&k, "f2");
    CHECK_INT(kit_head(&k, "f2").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void what_was_left_of_a_wait_is_left_of_it(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"duration\":\"5s\"}}," SHELL("b", "", "")));
    kit_start(&k, "r");
    kit_pass(&k, 2000);
    kit_done(&k, "b", "x"); // event of the second 2
    uint64_t at = kit_head(&k, "r").last_seq;
    kit_pass(&k, 86400000);
    fork_at(&k, "r", at, "f");
    kit_pass(&k, 2999);
    CHECK(live(&k, "f"));
    kit_pass(&k, 2);
    CHECK(!live(&k, "f"));
    kit_close(&k);
}

// ---- failures
static void fork_that_finds_no_space_is_whole_or_not_there(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r");
    drive(&k, "r");
    k.full_left = 3;
    fork_at(&k, "r", 4, "f");
    struct run_head head;
    CHECK_INT(store_head(k.store, STR("default"), STR("f"), &k.memory, &head, NULL), E_NOT_FOUND);
    while (k.full_left > 0) kit_pass(&k, 250);
    kit_pass(&k, 250);
    drive(&k, "f");
    check_log(&k, "f");
    check_same_end(&k, "r", "f");
    kit_close(&k);
}

static void run_id_of_a_fork_is_used_once_I24(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r");
    drive(&k, "r");
    struct fork *fork = open_fork(&k, "r", &(struct fork_request){.at = 3});
    struct fork_start start = {.run = STR("r"), .how = "fork"};
    char out[129];
    CHECK_INT(engine_fork(k.engine, fork, &start, out, NULL), E_EXISTS);
    fork_close(fork);
    kit_close(&k);
}

static size_t remove_aside(const char *dir)
{
    glob_t found;
    char pattern[300], below[300];
    snprintf(pattern, sizeof(pattern), "%s.*", dir);
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    size_t count = found.gl_pathc;
    for (size_t i = 0; i < count; i++) {
        snprintf(below, sizeof(below), "%s/old", found.gl_pathv[i]);
        (void)rmdir(below);
        (void)rmdir(found.gl_pathv[i]);
    }
    globfree(&found);
    return count;
}

// A copy that a process made and did not live to use is in nobody's way.
static void fork_is_not_kept_off_by_the_files_of_one_that_was_never_stored(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r");
    drive(&k, "r");
    struct fork *fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX});
    struct run_ids ids = fork->head.ids;
    struct str dir;
    char path[300];
    ids.run = STR("left");
    CHECK_OK(store_artifacts_dir(k.store, &ids, &k.memory, &dir), NULL);
    CHECK_OK(os_make_dirs(dir.ptr, NULL), NULL);
    snprintf(path, sizeof(path), "%s/old", dir.ptr);
    (void)mkdir(path, 0700);
    (void)remove_aside(dir.ptr);
    struct fork_start start = {.run = ids.run, .triggered_by = STR("ann"), .how = "fork"};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_fork(k.engine, fork, &start, out, &err), &err);
    fork_close(fork);
    kit_idle(&k);
    CHECK_INT(kit_head(&k, "left").summary.status, RUN_STATUS_COMPLETED);
    CHECK(os_is_dir(dir.ptr) && !os_is_dir(path));
    CHECK_INT(remove_aside(dir.ptr), 1);
    (void)rmdir(dir.ptr);
    kit_close(&k);
}

// ---- people
#define GATED(steps)                                                                                                   \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"requiresApproval\":true},"     \
    "\"steps\":[" steps "]}"

static void approval_of_a_run_does_not_start_another_document(void)
{
    struct kit k;
    kit_open(&k, GATED(SHELL("a", "", "")));
    kit_start(&k, "r");
    kit_signal(&k, "r", SIGNAL_APPROVE, "");
    struct program *other = kit_program(&k, GATED(SHELL("other", "", "")), NULL);
    for (uint64_t at = 1; at <= 3; at++) { // queued, signal, approved
        struct fork_request request = {
            .tenant = STR("default"), .source = STR("r"), .at = at, .program = other, .now_ms = k.now.wall_ms};
        struct fork *fork = NULL;
        enum code rc = fork_open(k.store, &request, &fork, NULL);
        CHECK_INT(rc, at < 3 ? OK : E_CONFLICT);
        if (fork) CHECK_INT(fork->run->status, RUN_STATUS_PENDING);
        fork_close(fork);
    }
    program_release(other);
    kit_close(&k);
}

// What hangs on a step that runs again begins anew, also when it was skipped before its turn came.
static void early_skip_goes_with_what_it_hangs_on(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("c", "\"b\"", "")));
    kit_start(&k, "r");
    kit_signal(&k, "r", SIGNAL_SKIP_STEP, "c");
    struct fork *fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX});
    CHECK_INT(fate_of(fork, "c"), FORK_KEPT);
    fork_close(fork);
    struct str from = STR("a");
    fork = open_fork(&k, "r", &(struct fork_request){.at = UINT64_MAX, .from = &from, .from_count = 1});
    CHECK_INT(fate_of(fork, "a"), FORK_AGAIN);
    CHECK_INT(fate_of(fork, "b"), FORK_TO_COME);
    CHECK_INT(fate_of(fork, "c"), FORK_AGAIN);
    fork_close(fork);
    kit_close(&k);
}

// ---- random documents: what is kept does not run, everything else runs once
struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *dice, uint32_t sides)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 33) % sides;
}

static void random_plan(struct dice *dice, struct buf *out, uint32_t steps)
{
    buf_text(out, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[");
    for (uint32_t i = 0; i < steps; i++) {
        buf_printf(out, "%s{\"stepId\":\"s%u\",\"kind\":\"shell\",\"with\":{\"command\":\"do %u\"},\"dependsOn\":[",
                   i ? "," : "", i, i);
        bool first = true;
        for (uint32_t d = 0; d < i; d++) {
            if (roll(dice, 3) > 0) continue;
            buf_printf(out, "%s\"s%u\"", first ? "" : ",", d);
            first = false;
        }
        buf_text(out, "]}");
    }
    buf_text(out, "]}");
}

static uint32_t times_started(const struct kit *k, struct str step)
{
    uint32_t count = 0;
    for (size_t i = 0; i < k->attempt_count; i++) count += str_is(step, k->attempts[i].step);
    return count;
}

static void check_hangs(const struct fork *fork, uint32_t step)
{
    const struct program_step *ps = &fork->program->steps[step];
    bool stays = fork->fates[step].fate == FORK_KEPT || fork->fates[step].fate == FORK_GOES_ON;
    for (uint32_t i = 0; stays && i < ps->dep_count; i++) CHECK_INT(fork->fates[ps->deps[i]].fate, FORK_KEPT);
}

static void fork_from_any_step_of_any_document_runs_what_hangs_on_it_once(void)
{
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct dice dice = {seed};
        struct buf text;
        struct kit k;
        bool again = roll(&dice, 3) == 0; // a rerun
        buf_init(&text, 1 << 16);
        random_plan(&dice, &text, 2 + roll(&dice, 7));
        kit_open(&k, text.ptr);
        kit_start(&k, "r");
        drive(&k, "r");
        struct str from = k.program->steps[roll(&dice, k.program->top_count)].id;
        struct fork_request request = {.at = roll(&dice, (uint32_t)kit_head(&k, "r").last_seq + 1),
                                       .from = &from,
                                       .from_count = 1,
                                       .results_only = again};
        struct fork *fork = open_fork(&k, "r", &request);
        uint32_t expected[16];
        for (uint32_t i = 0; i < k.program->top_count; i++) {
            check_hangs(fork, i);
            expected[i] = fork->fates[i].fate != FORK_KEPT;
        }
        start_fork(&k, fork, "f");
        while (live(&k, "f")) nudge(&k, "f");
        for (uint32_t i = 0; i < k.program->top_count; i++)
            CHECK_INT(times_started(&k, k.program->steps[i].id), expected[i]);
        check_log(&k, "f");
        CHECK_INT(kit_head(&k, "f").summary.status, RUN_STATUS_COMPLETED);
        kit_close(&k);
        buf_release(&text);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(fork_at_every_event_ends_like_its_source),
        TEST(fork_at_the_last_event_equals_resume),
        TEST(fork_at_zero_equals_rerun),
        TEST(changed_input_reaches_commands_conditions_and_what_hangs_on_them),
        TEST(changed_document_keeps_what_is_defined_as_before),
        TEST(given_output_counts_also_when_it_is_large_or_the_step_failed),
        TEST(pause_and_cancel_are_of_the_source),
        TEST(what_was_left_of_a_wait_is_left_of_it),
        TEST(fork_that_finds_no_space_is_whole_or_not_there),
        TEST(run_id_of_a_fork_is_used_once_I24),
        TEST(fork_is_not_kept_off_by_the_files_of_one_that_was_never_stored),
        TEST(approval_of_a_run_does_not_start_another_document),
        TEST(early_skip_goes_with_what_it_hangs_on),
        TEST(fork_from_any_step_of_any_document_runs_what_hangs_on_it_once),
    };
    return test_main("engine_fork", tests, ARRAY_COUNT(tests), argc, argv);
}
