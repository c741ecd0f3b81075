// Every cell of the matrix × place × state of the token × conditions. The cases and what must come out are printed by
// test/e2e/matrix/expect.py, which knows only schemas/authorization.json; this program asks src/auth.
#include "auth/auth.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct error err;
static struct auth *auth;
static const struct str web = STR_INIT("web"), prod = STR_INIT("prod");

struct question {
    struct principal principal, subject;
    struct auth_object object;
    struct auth_ask ask;
};

static bool is(struct str word, const char *text)
{
    return str_is(word, text);
}

static void set_roles(struct question *q, struct str roles)
{
    while (roles.len) {
        struct str role = str_cut(roles, '+', &roles);
        if (is(role, "none")) return;
        CHECK(role_parse(role));
        q->principal.roles |= (uint32_t)role_parse(role);
    }
    q->ask.principal = &q->principal;
}

static void set_place(struct question *q, struct str place)
{
    q->object = (struct auth_object){.tenant = STR("acme"), .project = web, .environment = prod, .exists = true};
    if (is(place, "absent"))
        q->object.exists = false;
    else if (is(place, "other_tenant"))
        q->object.tenant = STR("globex");
    else if (is(place, "other_project"))
        q->object.project = STR("bank");
    else if (is(place, "other_environment"))
        q->object.environment = STR("dev");
    else
        CHECK(is(place, "own") || is(place, "own_limited"));
    if (is(place, "own_limited") || is(place, "other_project")) q->principal.projects = (struct names){&web, 1};
    if (is(place, "own_limited") || is(place, "other_environment"))
        q->principal.environments = (struct names){&prod, 1};
    q->ask.object = &q->object;
}

static void set_token(struct question *q, struct str token)
{
    q->ask.now_ms = 1000;
    q->ask.audience = STR("here");
    q->principal.audience = is(token, "wrong_audience") ? STR("there") : STR("here");
    q->principal.expires_ms = is(token, "expired") ? 999 : 1001;
    q->principal.revoked = is(token, "revoked");
}

static void set_facts(struct question *q, struct str facts)
{
    struct auth_object *object = &q->object;
    bool own = is(facts, "no_not_own_request") || is(facts, "no_not_author");
    q->subject = q->principal;
    if (is(facts, "no_role_within")) q->subject.roles = ROLE_ALL + 1; // more than anybody has
    q->principal.pool = STR("gpu");
    object->subject = &q->subject;
    object->plan_approved = !is(facts, "no_approved_plan");
    object->assigned = !is(facts, "no_assigned");
    object->own_task = !is(facts, "no_own_task");
    object->pool = is(facts, "no_own_pool") ? STR("cpu") : STR("gpu");
    object->requested_by = own ? STR("ann") : STR("bob");
    object->agreed_by = is(facts, "no_two_person") ? STR("ann") : STR("bob");
    q->ask.reason = is(facts, "no_reason") ? STR("") : STR("because");
    q->ask.unix_socket = !is(facts, "no_unix_socket");
    q->ask.internal = !is(facts, "no_internal");
}

static struct str word(struct str *rest)
{
    return str_cut(*rest, ' ', rest);
}

static const char *or_dash(const char *text)
{
    return text && *text ? text : "-";
}

static void answer(struct str questions, bool unmet, struct buf *out)
{
    struct question q = {.principal = {.id = STR("ann"), .tenant = STR("acme")}};
    CHECK(operation_parse(word(&questions), &q.ask.operation));
    set_roles(&q, word(&questions));
    set_place(&q, word(&questions));
    set_token(&q, word(&questions));
    set_facts(&q, word(&questions));
    struct decision d = auth_decide(auth, &q.ask);
    CHECK(d.allowed == (d.status == 200));
    buf_printf(out, "%d %s %s %s %s %s %s %s %s", d.status, or_dash(d.code), or_dash(d.audit_code),
               unmet ? or_dash(d.unmet) : "*", d.effective ? role_name(d.effective) : "-",
               d.payload_redacted ? "yes" : "-", d.p1 ? "yes" : "-", d.needs_reason ? "yes" : "-",
               d.requires_approval ? "yes" : "-");
}

static size_t compare(FILE *expected)
{
    struct buf got;
    size_t count = 0;
    char line[512];
    buf_init(&got, 1000);
    while (fgets(line, sizeof(line), expected)) {
        char *arrow = strstr(line, " => ");
        CHECK(arrow);
        struct str question = {line, (size_t)(arrow - line)};
        struct str want = str_trim(str_from(arrow + 4));
        buf_clear(&got);
        answer(question, !memchr(line, '+', question.len), &got);
        if (!str_eq(buf_str(&got), want))
            test_fail(__FILE__, __LINE__, "%.*s: %s, not %.*s", STR_ARG(question), got.ptr, STR_ARG(want));
        count++;
    }
    buf_release(&got);
    return count;
}

static void every_case_is_decided_as_the_table_says_C_39_C_60_WE_2_1_3a_WE_2_1_3i(void)
{
    arena_init(&arena, 1 << 16, 1 << 22);
    CHECK_OK(auth_open(STR(""), &arena, &auth, &err), &err);
    FILE *expected = popen("python3 test/e2e/matrix/expect.py", "r");
    CHECK(expected);
    size_t count = compare(expected);
    CHECK_INT(pclose(expected), 0);
    fprintf(stderr, "%zu decisions\n", count);
    CHECK(count >= 3500);
}

// The table that is carried in the binary is the one that the expectations come from.
static void the_table_inside_is_the_file(void)
{
    struct auth *inside, *outside;
    arena_init(&arena, 1 << 16, 1 << 22);
    CHECK_OK(auth_open(STR(""), &arena, &inside, &err), &err);
    CHECK_OK(auth_open(test_read_file("schemas/authorization.json"), &arena, &outside, &err), &err);
    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        for (uint32_t roles = 1; roles <= ROLE_ALL; roles++) {
            struct principal who = {.id = STR("ann"), .tenant = STR("acme"), .roles = roles};
            struct auth_object object = {.tenant = STR("acme"), .exists = true};
            struct auth_ask ask = {.principal = &who, .operation = (enum operation)operation, .object = &object};
            struct decision a = auth_decide(inside, &ask), b = auth_decide(outside, &ask);
            CHECK(a.status == b.status && a.effective == b.effective && a.payload_redacted == b.payload_redacted);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_case_is_decided_as_the_table_says_C_39_C_60_WE_2_1_3a_WE_2_1_3i),
        TEST(the_table_inside_is_the_file),
    };
    return test_main("auth_matrix", tests, ARRAY_COUNT(tests), argc, argv);
}
