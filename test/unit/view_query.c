// The query language: what each clause means, where faults are, and two properties over random queries and runs: what is
// answered before the log was read stays the answer, and no run that matches is outside of the bounds.
#include "harness/test.h"
#include "view/query.h"

#include <string.h>

#define NOW 1770829200000LL // 2026-02-11T17:00:00Z

static struct arena arena;
static struct run_view view;
static struct program program;
static struct query_facts facts;

static void tell(struct moment moment, uint64_t seq)
{
    moment.engine = 1;
    moment.logical = moment.logical ? moment.logical : 1;
    moment.at_ms = NOW - 3600000 + (int64_t)seq;
    CHECK(view_fold(&view, &moment, seq));
}

// A run that failed at load with a timeout after a retry of build.
static void begin(void)
{
    static const struct str tags[] = {STR_INIT("nightly"), STR_INIT("team:data")};
    struct run_ids ids = {.tenant = STR("default"), .run = STR("3f2a-1"), .plan_id = STR("release")};
    struct json inputs;
    struct error err = {0};
    arena_init(&arena, 64 * 1024, 256 << 20);
    CHECK(view_init(&view, &arena, &ids));
    struct str text = STR("{\"env\":\"prod\",\"n\":4,\"id\":9007199254740993,\"deep\":{\"a\":[true]}}");
    CHECK_OK(json_parse(text, NULL, &arena, &inputs, &err), &err);
    struct start_facts start = {.document_kind = STR("plan"), .inputs = inputs};
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start}, 1);
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("build")}, 2);
    tell((struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("build"), .fault = {.code = STR("EXIT_NONZERO")}},
         3);
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("build"), .logical = 2}, 4);
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("build"), .logical = 2}, 5);
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load")}, 6);
    tell((struct moment){.kind = MOMENT_STEP_FAILED, .step = STR("load"), .fault = {.code = STR("TIMEOUT")}}, 7);
    tell((struct moment){.kind = MOMENT_RUN_FAILED, .reason = STR("load"), .fault = {.code = STR("TIMEOUT")}}, 8);
    program = (struct program){.tags = tags, .tag_count = 2};
    facts = (struct query_facts){.status = RUN_STATUS_FAILED,
                                 .vocabulary = VOCABULARY_RUN,
                                 .plan = STR("release"),
                                 .version = STR("1.2"),
                                 .name = STR("Weekly Release"),
                                 .run = STR("3f2a-1"),
                                 .project = STR("default"),
                                 .environment = STR("default"),
                                 .cause = STR("failed at load: TIMEOUT"),
                                 .created_ms = NOW - 3600000,
                                 .started_ms = NOW - 3600000 + 1,
                                 .ended_ms = NOW - 3000000,
                                 .updated_ms = NOW - 3000000,
                                 .events = 8,
                                 .failed = 1,
                                 .completed = 1,
                                 .program = &program,
                                 .view = &view};
}

static const struct query *parse(const char *text)
{
    struct query_fault fault;
    const struct query *query = query_parse(str_from(text), NOW, &arena, &fault);
    if (!query) test_fail(__FILE__, __LINE__, "%s: %s at %zu", text, fault.error.message, fault.at);
    return query;
}

static void check_yes(const char *text)
{
    if (query_ask(parse(text), &facts) != QUERY_YES) test_fail(__FILE__, __LINE__, "not yes: %s", text);
}

static void check_no(const char *text)
{
    if (query_ask(parse(text), &facts) != QUERY_NO) test_fail(__FILE__, __LINE__, "not no: %s", text);
}

static void clauses_mean_what_they_say(void)
{
    static const char *const yes[] = {
        "",
        "  ",
        "status=FAILED",
        "status=failed",
        "status=ended",
        "status!=active",
        "status = COMPLETED,FAILED",
        "plan=release",
        "plan~LEAS",
        "plan=rel*",
        "plan=?elease",
        "plan!=other",
        "plan!~xyz",
        "name=\"Weekly Release\"",
        "name~'y r'",
        "run=3f2a*",
        "3f2a",
        "weekly",
        "\"Weekly Rel\"",
        "parent=",
        "parent!=x",
        "vocabulary=run",
        "started>2h",
        "started>-2h",
        "started<30m",
        "created>=2026-02-11",
        "created=2026-02-11",
        "created=today",
        "created!=yesterday",
        "created<2026-02-11T16:30:00Z",
        "created<=today",
        "ended<45m",
        "took>9m",
        "took<10m",
        "took=9m59s999ms",
        "age>50m",
        "events=8",
        "events>=8",
        "events!=9",
        "failed>0",
        "running=0",
        "owned=no",
        "tag=nightly",
        "tag=team:*",
        "tag!=weekly",
        "step=load",
        "step!=deploy",
        "step.load=FAILED",
        "step.build=success,pending",
        "step.build!=FAILED",
        "error=TIMEOUT",
        "error=EXIT_NONZERO",
        "error~exit",
        "error.load=TIMEOUT",
        "error.build!=TIMEOUT",
        "error.*=TIMEOUT",
        "input.env=prod",
        "input.env~PRO",
        "input.n>3",
        "input.n=4",
        "input.n=4.0",
        "input.id=9007199254740993",
        "input.id>9007199254740992",
        "input.id!=9007199254740992",
        "input.id<1e400",
        "input.n<=4",
        "input.deep.a.0=true",
        "input.env!=test",
        "input.none!=x",
        "input.env=*",
        "cause~timeout",
    };
    static const char *const no[] = {
        "status=RUNNING",
        "status!=FAILED",
        "status=active",
        "plan=releas",
        "plan~xyz",
        "plan=REL*",
        "other",
        "parent!=",
        "created=yesterday",
        "created>today",
        "started>30m",
        "took>10m",
        "took!=9m59s999ms",
        "events<8",
        "tag=night",
        "tag!=nightly",
        "step=deploy",
        "step!=load",
        "step.load=SUCCESS",
        "step.nope=FAILED",
        "step.load!=FAILED",
        "error=KILLED",
        "error!=TIMEOUT",
        "error.build=TIMEOUT",
        "input.env=PROD",
        "input.none=x",
        "input.none=*",
        "input.n>4",
        "input.env>3",
        "owned=yes",
        "project!=default",
    };
    begin();
    for (size_t i = 0; i < ARRAY_COUNT(yes); i++) check_yes(yes[i]);
    for (size_t i = 0; i < ARRAY_COUNT(no); i++) check_no(no[i]);
    facts.ended_ms = 0;
    check_no("ended>2h");
    check_no("ended<2h");
    check_no("ended=today");
    check_yes("ended!=today");
    check_yes("took>59m");
    facts.started_ms = 0;
    check_no("took>0");
}

static void words_between_clauses(void)
{
    begin();
    check_yes("status=FAILED plan=release");
    check_yes("status=FAILED and plan=release");
    check_no("status=FAILED plan=x");
    check_yes("status=RUNNING or plan=release");
    check_yes("status=RUNNING or plan=x or 3f2a");
    check_yes("not status=RUNNING");
    check_yes("NOT (status=RUNNING OR plan=x) AND took>1m");
    check_no("not not status=RUNNING");
    check_yes("status=RUNNING plan=x or plan=release"); // and binds tighter
    check_no("status=RUNNING (plan=x or plan=release)");
    check_yes("((((plan=release))))");
    check_no("order"); // not "or" and "der"
    check_no("notes");
}

// The form of the design papers: lists in parentheses, the names of JSON, now-2d, step("load").error.code.
static void the_long_form_means_the_same(void)
{
    begin();
    check_yes("status in (FAILED,PAUSED) and plan = \"release\" and startedAt > now-2d and "
              "step(\"load\").error.code = \"TIMEOUT\"");
    check_yes("status in ( FAILED , PAUSED )");
    check_no("status in (RUNNING)");
    check_yes("status not in (RUNNING, PAUSED)");
    check_no("not status in (FAILED)");
    check_yes("plan in (\"a b\", release) or status=RUNNING");
    check_yes("status == FAILED and runId=3f2a* planId=release planVersion=1.2");
    check_yes("createdAt<now endedAt<=now-45m completedAt>now-1h failedSteps=1 completedSteps=1");
    check_yes("step(\"load\")=FAILED step('load').status!=SUCCESS step(build).error=EXIT_NONZERO");
    check_no("step(\"build\").error.code=TIMEOUT");
    check_no("in"); // a word
    check_no("weekly in");
}

static void check_fault(const char *text, size_t at, size_t len, const char *message, const char *hint)
{
    struct query_fault fault;
    if (query_parse(str_from(text), NOW, &arena, &fault)) test_fail(__FILE__, __LINE__, "read: %s", text);
    CHECK_INT(fault.error.code, E_INVALID);
    if (!strstr(fault.error.message, message) || !strstr(fault.hint.message, hint))
        test_fail(__FILE__, __LINE__, "%s: \"%s\", \"%s\"", text, fault.error.message, fault.hint.message);
    CHECK_INT(fault.at, at);
    CHECK_INT(fault.len, len);
}

static void faults_have_a_place_and_a_hint(void)
{
    begin();
    check_fault("staus=FAILED", 0, 5, "no field staus", "did you mean status?");
    check_fault("plan=a statsu=FAILED", 7, 6, "no field statsu", "did you mean status?");
    check_fault("qqqqq=1", 0, 5, "no field", "fields: status");
    check_fault("inputs=1", 0, 6, "no field", "did you mean input.NAME?");
    check_fault("input.=1", 0, 6, "no field", "input.NAME");
    check_fault("status=FAILD", 7, 5, "no status FAILD", "did you mean FAILED?");
    check_fault("status=FAILED,xyz", 14, 3, "no status xyz", "PENDING");
    check_fault("step.a=xyz", 7, 3, "of a step", "SUCCESS");
    check_fault("status>FAILED", 0, 7, "cannot be compared", "with = and !=");
    check_fault("took~1m", 0, 5, "cannot be compared", "<=");
    check_fault("created>tomorow", 8, 7, "not a time", "yesterday");
    check_fault("created=2h", 8, 2, "exactly", "since");
    check_fault("created>120", 8, 3, "not a time", "2h");
    check_fault("took>ten", 5, 3, "not a duration", "1m30s");
    check_fault("took>10", 5, 2, "not a duration", "10s");
    check_fault("events=many", 7, 4, "not a whole number", "");
    check_fault("events>1,2", 10, 0, "a list", "");
    check_fault("input.n>x", 8, 1, "compare numbers", "");
    check_fault("(plan=a", 0, 1, "not closed", "");
    check_fault("plan=a)", 6, 1, "no parenthesis", "");
    check_fault("plan=\"a", 5, 2, "quote is not closed", "");
    check_fault("plan=a or", 9, 1, "expected", "");
    check_fault("not", 3, 1, "expected", "");
    check_fault("()", 1, 1, "expected", "");
    check_fault("=a", 0, 1, "expected", "cairn help query");
    check_fault("status in (FAILED", 10, 1, "not closed", "");
    check_fault("status in (FAILED plan", 10, 1, "not closed", "");
    check_fault("status in (FAILED,QQ)", 18, 2, "no status QQ", "");
    check_fault("stauts in (FAILED)", 0, 6, "no field stauts", "did you mean status?");
    check_fault("took in (1m,2m) step(\"a\").colour=1", 25, 7, "a step has no .colour", "error.code");
    check_fault("step(", 4, 1, "name of a step", "");
    check_fault("step(\"a\")", 0, 1, "expected", "");
    char deep[400] = "";
    memset(deep, '(', 300);
    check_fault(deep, 64, 1, "deeper", "");
}

static void bounds_are_what_a_store_can_look_up(void)
{
    struct query_bounds bounds;
    begin();
    query_bounds(parse("status=FAILED,RUNNING plan=release created>2h run=3f2a* took>1m"), &bounds);
    CHECK_INT(bounds.status_mask, 1u << RUN_STATUS_FAILED | 1u << RUN_STATUS_RUNNING);
    CHECK_STR(bounds.plan, STR("release"));
    CHECK_STR(bounds.run_prefix, STR("3f2a"));
    CHECK_INT(bounds.since_ms, NOW - 7200000 + 1);
    CHECK_INT(bounds.until_ms, 0);
    query_bounds(parse("created=2026-02-11 created<1h"), &bounds);
    CHECK_INT(bounds.since_ms, NOW - 17 * 3600000);
    CHECK_INT(bounds.until_ms, NOW - 3600000 - 1);
    query_bounds(parse("status=FAILED or plan=release"), &bounds);
    CHECK_INT(bounds.status_mask, 0);
    CHECK_INT(bounds.plan.len, 0);
    query_bounds(parse("not plan=release plan~rel plan=rel*"), &bounds);
    CHECK_INT(bounds.plan.len, 0);
    query_bounds(parse("status=FAILED status=RUNNING"), &bounds);
    CHECK(bounds.nothing);
    query_bounds(parse("status!=FAILED status=ended"), &bounds);
    CHECK_INT(bounds.status_mask, 1u << RUN_STATUS_COMPLETED | 1u << RUN_STATUS_CANCELLED);
}

static void logs_are_needed_only_when_nothing_else_decides(void)
{
    begin();
    facts.view = NULL;
    CHECK_INT(query_ask(parse("status=FAILED error=TIMEOUT"), &facts), QUERY_UNKNOWN);
    CHECK_INT(query_ask(parse("status=RUNNING error=TIMEOUT"), &facts), QUERY_NO);
    CHECK_INT(query_ask(parse("error=TIMEOUT status=RUNNING"), &facts), QUERY_NO);
    CHECK_INT(query_ask(parse("error=TIMEOUT or status=FAILED"), &facts), QUERY_YES);
    CHECK_INT(query_ask(parse("not error=TIMEOUT"), &facts), QUERY_UNKNOWN);
    CHECK_INT(query_ask(parse("tag=nightly"), &facts), QUERY_YES);
    facts.program = NULL;
    CHECK_INT(query_ask(parse("tag=nightly"), &facts), QUERY_UNKNOWN);
}

static uint64_t state = 88172645463325252ull;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

static void random_query(struct buf *out, unsigned depth)
{
    static const char *const parts[] = {"status=FAILED", "status!=RUNNING,PAUSED", "plan=release",  "plan=r*",
                                        "created>2h",    "created<=today",         "run=3f*",       "tag=nightly",
                                        "error=TIMEOUT", "step.load=FAILED",       "input.n>3",     "took>10m",
                                        "created=today", "status=active",          "plan!=release", "word"};
    switch (depth ? below(5) : 4) {
    case 0:
        buf_text(out, "not ");
        random_query(out, depth - 1);
        break;
    case 1:
        buf_byte(out, '(');
        random_query(out, depth - 1);
        buf_text(out, " or ");
        random_query(out, depth - 1);
        buf_byte(out, ')');
        break;
    case 2:
    case 3:
        random_query(out, depth - 1);
        buf_byte(out, ' ');
        random_query(out, depth - 1);
        break;
    default:
        buf_text(out, parts[below(ARRAY_COUNT(parts))]);
    }
}

static bool inside(const struct query_bounds *bounds, const struct query_facts *run)
{
    if (bounds->nothing) return false;
    if (bounds->status_mask && !(bounds->status_mask >> run->status & 1)) return false;
    if (bounds->plan.len && !str_eq(bounds->plan, run->plan)) return false;
    if (!str_starts(run->run, bounds->run_prefix)) return false;
    if (bounds->since_ms && run->created_ms < bounds->since_ms) return false;
    return !bounds->until_ms || run->created_ms <= bounds->until_ms;
}

static void partial_answers_stand_and_bounds_hold(void)
{
    size_t decided = 0, matched = 0;
    struct buf text;
    begin();
    buf_init(&text, 1 << 16);
    for (int i = 0; i < 4000; i++) {
        struct query_bounds bounds;
        buf_clear(&text);
        random_query(&text, 4);
        const struct query *query = parse(text.ptr);
        query_bounds(query, &bounds);
        for (int k = 0; k < 4; k++) {
            struct query_facts run = facts;
            run.status = (enum run_status)(1 + below(7));
            run.plan = below(2) ? STR("release") : STR("word");
            run.run = below(2) ? STR("3f2a-1") : STR("77aa");
            run.created_ms = NOW - (int64_t)below(4) * 3600000 * 9;
            enum query_answer whole = query_ask(query, &run);
            CHECK(whole != QUERY_UNKNOWN);
            struct query_facts part = run;
            part.view = NULL;
            enum query_answer without_log = query_ask(query, &part);
            part.program = NULL;
            enum query_answer head_only = query_ask(query, &part);
            CHECK(without_log == QUERY_UNKNOWN || without_log == whole);
            CHECK(head_only == QUERY_UNKNOWN || head_only == whole);
            decided += head_only != QUERY_UNKNOWN;
            matched += whole == QUERY_YES;
            if (whole == QUERY_YES && !inside(&bounds, &run))
                test_fail(__FILE__, __LINE__, "out of bounds: %s", text.ptr);
        }
    }
    CHECK(decided > 1000 && matched > 1000);
    buf_release(&text);
}

static void any_text_is_read_or_refused(void)
{
    static const char alphabet[] = "status=FAILED ()\"'!~<>,.*- orandnot2h\n\xff";
    begin();
    for (int i = 0; i < 20000; i++) {
        char text[48];
        struct query_fault fault;
        size_t len = below(sizeof(text));
        for (size_t k = 0; k < len; k++) text[k] = alphabet[below(sizeof(alphabet))];
        const struct query *query = query_parse((struct str){text, len}, NOW, &arena, &fault);
        if (query)
            CHECK(query_ask(query, &facts) != QUERY_UNKNOWN);
        else
            CHECK(fault.error.message[0] && fault.at <= len && fault.at + fault.len <= len + 1);
    }
}

static void memory_may_run_out(void)
{
    begin();
    for (int64_t i = 1; i < 40; i++) {
        struct arena small;
        struct query_fault fault;
        arena_init(&small, 4096, 1 << 20);
        small.fail_in = i;
        small.fail_sticky = true;
        const struct query *query = query_parse(STR("(a or b) plan=x,y not input.n>3"), NOW, &small, &fault);
        if (!query) CHECK_INT(fault.error.code, E_NOMEM);
        arena_release(&small);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(clauses_mean_what_they_say),
        TEST(words_between_clauses),
        TEST(the_long_form_means_the_same),
        TEST(faults_have_a_place_and_a_hint),
        TEST(bounds_are_what_a_store_can_look_up),
        TEST(logs_are_needed_only_when_nothing_else_decides),
        TEST(partial_answers_stand_and_bounds_hold),
        TEST(any_text_is_read_or_refused),
        TEST(memory_may_run_out),
    };
    return test_main("view_query", tests, ARRAY_COUNT(tests), argc, argv);
}
