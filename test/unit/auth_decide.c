// Decisions by hand, one per rule of the matrix that deserves a sentence; auth_matrix goes through the whole table.
#include "auth/auth.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct error err;
static struct auth *auth;

static void open_table(void)
{
    arena_init(&arena, 1 << 16, 1 << 22);
    CHECK_OK(auth_open(STR(""), &arena, &auth, &err), &err);
}

static struct principal somebody(uint32_t roles)
{
    return (struct principal){.id = STR("ann"), .tenant = STR("acme"), .roles = roles};
}

static const struct auth_object own_run = {
    .tenant = STR_INIT("acme"), .project = STR_INIT("web"), .environment = STR_INIT("prod"), .exists = true};

static struct decision ask(const struct principal *principal, enum operation operation,
                           const struct auth_object *object, const char *reason)
{
    struct auth_ask question = {
        .principal = principal, .operation = operation, .object = object, .reason = str_from(reason), .now_ms = 1000};
    return auth_decide(auth, &question);
}

static void allowed_as(struct decision decision, enum role role)
{
    CHECK_TEXT(decision.code, "");
    CHECK(decision.allowed);
    CHECK_INT(decision.status, 200);
    CHECK_TEXT(role_name(decision.effective), role_name(role));
}

static void refused(struct decision decision, int status, const char *code, const char *audit_code)
{
    CHECK(!decision.allowed);
    CHECK_INT(decision.status, status);
    CHECK_TEXT(decision.code, code);
    CHECK_TEXT(decision.audit_code, audit_code);
    CHECK_INT(decision.effective, 0);
}

// C-39: policy is asked for every operation, and what it does not list is denied.
static void nobody_may_do_anything_but_ask_for_health_C_39(void)
{
    open_table();
    allowed_as(ask(NULL, OPERATION_HEALTH, NULL, ""), (enum role)0);
    for (int i = 1; i < OPERATION_COUNT; i++)
        refused(ask(NULL, (enum operation)i, &own_run, "why not"), 401, "AUTHN_REQUIRED", "AUTHN_REQUIRED");
    struct principal nothing = somebody(0);
    for (int i = 1; i < OPERATION_COUNT; i++)
        refused(ask(&nothing, (enum operation)i, &own_run, "why not"), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
}

static void a_dead_token_is_like_none_in_the_answer_A3_A4(void)
{
    open_table();
    struct principal dead = somebody(ROLE_ADMIN);
    dead.expires_ms = 1000;
    refused(ask(&dead, OPERATION_RUN_GET, &own_run, ""), 401, "AUTHN_REQUIRED", "AUTHN_EXPIRED");
    dead.expires_ms = 1001;
    allowed_as(ask(&dead, OPERATION_RUN_GET, &own_run, ""), ROLE_ADMIN);
    dead.revoked = true;
    refused(ask(&dead, OPERATION_RUN_GET, &own_run, ""), 401, "AUTHN_REQUIRED", "AUTHN_REVOKED");
    struct principal abroad = somebody(ROLE_ADMIN);
    abroad.audience = STR("staging");
    struct auth_ask question = {
        .principal = &abroad, .operation = OPERATION_RUN_GET, .object = &own_run, .audience = STR("production")};
    refused(auth_decide(auth, &question), 401, "AUTHN_REQUIRED", "AUTHN_AUDIENCE");
    question.audience = STR("staging");
    allowed_as(auth_decide(auth, &question), ROLE_ADMIN);
}

// WE-2.1.3a, WE-2.1.3i: the tenant is looked at in every operation; a foreign object answers like an absent one.
static void foreign_looks_absent_WE_2_1_3a_WE_2_1_3i(void)
{
    open_table();
    struct principal admin = somebody(ROLE_ADMIN);
    struct auth_object foreign = own_run, absent = own_run;
    foreign.tenant = STR("globex");
    absent.exists = false;
    struct decision a = ask(&admin, OPERATION_RUN_CANCEL, &foreign, "x");
    struct decision b = ask(&admin, OPERATION_RUN_CANCEL, &absent, "x");
    refused(a, 404, "NOT_FOUND", "AUTHZ_TENANT_FORBIDDEN");
    refused(b, 404, "NOT_FOUND", "NOT_FOUND");
    CHECK(!a.unmet && !b.unmet);
    CHECK(a.needs_reason == b.needs_reason && a.requires_approval == b.requires_approval && a.p1 == b.p1);
    struct principal worker = somebody(ROLE_WORKER);
    worker.pool = STR("gpu");
    foreign.pool = STR("gpu");
    refused(ask(&worker, OPERATION_WORKER_POLL, &foreign, ""), 403, "AUTHZ_DENIED", "AUTHZ_TENANT_FORBIDDEN");
}

static void a_principal_of_no_tenant_owns_nothing(void)
{
    open_table();
    struct principal admin = somebody(ROLE_ADMIN);
    struct auth_object nowhere = {.exists = true};
    admin.tenant = STR("");
    refused(ask(&admin, OPERATION_RUN_GET, &nowhere, ""), 404, "NOT_FOUND", "AUTHZ_TENANT_FORBIDDEN");
    refused(ask(&admin, OPERATION_RUN_GET, NULL, ""), 404, "NOT_FOUND", "AUTHZ_TENANT_FORBIDDEN");
    CHECK(!principal_sees(&admin, STR(""), STR(""), STR("")));
}

static void projects_and_environments_limit_a_token(void)
{
    open_table();
    static const struct str projects[] = {STR_INIT("web"), STR_INIT("shop")}, places[] = {STR_INIT("dev")};
    struct principal limited = somebody(ROLE_ADMIN);
    limited.projects = (struct names){projects, 2};
    allowed_as(ask(&limited, OPERATION_RUN_GET, &own_run, ""), ROLE_ADMIN);
    CHECK(principal_sees(&limited, STR("acme"), STR("shop"), STR("dev")));
    CHECK(!principal_sees(&limited, STR("acme"), STR("bank"), STR("dev")));
    CHECK(!principal_sees(&limited, STR("acme"), STR(""), STR("dev")));
    limited.environments = (struct names){places, 1};
    refused(ask(&limited, OPERATION_RUN_GET, &own_run, ""), 404, "NOT_FOUND", "AUTHZ_SCOPE_FORBIDDEN");
    refused(ask(&limited, OPERATION_RUN_START, &own_run, ""), 403, "AUTHZ_DENIED", "AUTHZ_SCOPE_FORBIDDEN");
    struct auth_object anywhere = {.tenant = STR("acme")};
    allowed_as(ask(&limited, OPERATION_RUN_LIST, &anywhere, ""), ROLE_ADMIN);
    refused(ask(&limited, OPERATION_AUDIT_READ, &anywhere, ""), 403, "AUTHZ_DENIED", "AUTHZ_SCOPE_FORBIDDEN");
    static const enum operation only[] = {OPERATION_RUN_LIST};
    struct principal narrow = somebody(ROLE_ADMIN);
    narrow.operations = only;
    narrow.operation_count = 1;
    allowed_as(ask(&narrow, OPERATION_RUN_LIST, &anywhere, ""), ROLE_ADMIN);
    refused(ask(&narrow, OPERATION_RUN_GET, &own_run, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
}

static void the_least_permissive_role_that_suffices_acts(void)
{
    open_table();
    struct principal all = somebody(ROLE_ADMIN | ROLE_ENGINEER | ROLE_OPERATOR | ROLE_SYSTEM);
    allowed_as(ask(&all, OPERATION_SIGNAL_PAUSE, &own_run, ""), ROLE_OPERATOR);
    allowed_as(ask(&all, OPERATION_SIGNAL_SKIP_STEP, &own_run, ""), ROLE_ENGINEER);
    allowed_as(ask(&all, OPERATION_SIGNAL_UPDATE_PARAMS, &own_run, "because"), ROLE_ADMIN);
    allowed_as(ask(&all, OPERATION_RUN_START, &own_run, ""), ROLE_SYSTEM);
    // More roles never show less: the engineer's full view wins over the operator's redacted one.
    CHECK(!ask(&all, OPERATION_RUN_GET, &own_run, "").payload_redacted);
    // The operator's cell wants an approved plan; the engineer's does not.
    struct principal both = somebody(ROLE_ENGINEER | ROLE_OPERATOR);
    allowed_as(ask(&both, OPERATION_RUN_START, &own_run, ""), ROLE_ENGINEER);
}

static void destructive_signals_need_a_reason_and_raise_p1(void)
{
    open_table();
    static const char *const types[] = {"UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET", "EMERGENCY_STOP"};
    struct principal admin = somebody(ROLE_ADMIN), engineer = somebody(ROLE_ENGINEER);
    enum operation operation;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        CHECK(operation_of_signal(str_from(types[i]), false, &operation));
        refused(ask(&admin, operation, &own_run, ""), 403, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
        refused(ask(&admin, operation, &own_run, " \t\n"), 403, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
        refused(ask(&engineer, operation, &own_run, "please"), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
        struct decision decision = ask(&admin, operation, &own_run, "on fire");
        allowed_as(decision, ROLE_ADMIN);
        CHECK(decision.p1 && decision.needs_reason);
    }
    CHECK(operation_of_signal(STR("RETRY_STEP"), true, &operation));
    refused(ask(&engineer, operation, &own_run, ""), 403, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
    struct decision decision = ask(&engineer, operation, &own_run, "again");
    allowed_as(decision, ROLE_ENGINEER);
    CHECK(!decision.p1);
    CHECK(!operation_of_signal(STR("EXPLODE"), false, &operation));
}

static void nobody_from_outside_escalates_C_60(void)
{
    open_table();
    struct principal everything = somebody(ROLE_ALL);
    refused(ask(&everything, OPERATION_SIGNAL_ESCALATE_ALERT, &own_run, "x"), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    struct principal system = somebody(ROLE_SYSTEM);
    struct auth_ask question = {
        .principal = &system, .operation = OPERATION_SIGNAL_ESCALATE_ALERT, .object = &own_run, .internal = true};
    allowed_as(auth_decide(auth, &question), ROLE_SYSTEM);
    struct principal admin = somebody(ROLE_ADMIN);
    question.principal = &admin;
    refused(auth_decide(auth, &question), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
}

static void payloads_are_left_out_for_operators_and_auditors(void)
{
    open_table();
    static const uint32_t hidden[] = {ROLE_OPERATOR, ROLE_AUDITOR, ROLE_SYSTEM}, shown[] = {ROLE_ENGINEER, ROLE_ADMIN};
    for (size_t i = 0; i < ARRAY_COUNT(hidden); i++) {
        struct principal who = somebody(hidden[i]);
        struct decision decision = ask(&who, OPERATION_RUN_EVENTS, &own_run, "");
        CHECK(decision.allowed && decision.payload_redacted);
        CHECK(!ask(&who, OPERATION_STEP_LOGS, &own_run, "").allowed);
    }
    for (size_t i = 0; i < ARRAY_COUNT(shown); i++) {
        struct principal who = somebody(shown[i]);
        struct decision decision = ask(&who, OPERATION_RUN_EVENTS, &own_run, "");
        CHECK(decision.allowed && !decision.payload_redacted);
        CHECK(ask(&who, OPERATION_STEP_LOGS, &own_run, "").allowed);
    }
}

static void a_worker_sees_its_task_and_its_pool_only_A7(void)
{
    open_table();
    struct principal worker = somebody(ROLE_WORKER);
    struct auth_object task = own_run;
    refused(ask(&worker, OPERATION_ARTIFACT_GET, &task, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    task.own_task = true;
    allowed_as(ask(&worker, OPERATION_ARTIFACT_GET, &task, ""), ROLE_WORKER);
    allowed_as(ask(&worker, OPERATION_SECRET_VALUE, &task, ""), ROLE_WORKER);
    refused(ask(&worker, OPERATION_RUN_GET, &task, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    refused(ask(&worker, OPERATION_WORKER_POLL, &task, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED"); // of no pool
    worker.pool = STR("gpu");
    task.pool = STR("cpu");
    refused(ask(&worker, OPERATION_WORKER_RESULT, &task, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    task.pool = STR("gpu");
    allowed_as(ask(&worker, OPERATION_WORKER_RESULT, &task, ""), ROLE_WORKER);
    struct principal admin = somebody(ROLE_ADMIN);
    refused(ask(&admin, OPERATION_SECRET_VALUE, &task, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
}

static void nobody_approves_what_is_his_own(void)
{
    open_table();
    struct principal operator= somebody(ROLE_OPERATOR), admin = somebody(ROLE_ADMIN);
    struct auth_object wait = own_run;
    wait.requested_by = STR("bob");
    CHECK_TEXT(ask(&operator, OPERATION_APPROVAL_DECIDE, &wait, "").unmet, "assigned");
    wait.assigned = true;
    allowed_as(ask(&operator, OPERATION_APPROVAL_DECIDE, &wait, ""), ROLE_OPERATOR);
    wait.requested_by = STR("ann");
    CHECK_TEXT(ask(&operator, OPERATION_APPROVAL_DECIDE, &wait, "").unmet, "not_own_request");
    allowed_as(ask(&admin, OPERATION_APPROVAL_DECIDE, &wait, ""), ROLE_ADMIN);
    CHECK_TEXT(ask(&admin, OPERATION_PLAN_APPROVE, &wait, "").unmet, "not_author");
    wait.requested_by = STR(""); // not known: refused
    CHECK_TEXT(ask(&admin, OPERATION_PLAN_APPROVE, &wait, "").unmet, "not_author");
    wait.requested_by = STR("bob");
    allowed_as(ask(&admin, OPERATION_PLAN_APPROVE, &wait, ""), ROLE_ADMIN);
}

// A token is its maker's, and agrees with nothing that its maker or another of the maker's tokens asked for.
static void a_person_with_two_tokens_is_one_person(void)
{
    open_table();
    struct principal admin = somebody(ROLE_ADMIN), platform = somebody(ROLE_ADMIN | ROLE_PLATFORM);
    struct auth_object object = own_run;
    CHECK_STR(principal_passes_on(&admin), STR("ann"));
    admin.id = STR("token");
    admin.person = STR("ann");
    CHECK_STR(principal_passes_on(&admin), STR("ann"));
    object.agreed_by = object.requested_by = STR("ann");
    CHECK(ask(&admin, OPERATION_RUN_DELETE, &object, "law").requires_approval);
    CHECK_TEXT(ask(&admin, OPERATION_PLAN_APPROVE, &object, "").unmet, "not_author");
    object.agreed_by = object.requested_by = STR("token");
    allowed_as(ask(&admin, OPERATION_RUN_DELETE, &object, "law"), ROLE_ADMIN);
    allowed_as(ask(&admin, OPERATION_PLAN_APPROVE, &object, ""), ROLE_ADMIN);
    // Only a token of the installation makes people; one whom a provider knows stays who he is.
    CHECK_STR(principal_passes_on(&platform), STR(""));
    platform.is_foreign = true;
    CHECK_STR(principal_passes_on(&platform), STR("ann"));
}

static void two_persons_delete_a_run(void)
{
    open_table();
    struct principal admin = somebody(ROLE_ADMIN);
    struct auth_object run = own_run;
    refused(ask(&admin, OPERATION_RUN_DELETE, &run, ""), 403, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
    struct decision decision = ask(&admin, OPERATION_RUN_DELETE, &run, "law");
    refused(decision, 403, "AUTHZ_APPROVAL_REQUIRED", "AUTHZ_APPROVAL_REQUIRED");
    CHECK(decision.requires_approval);
    run.agreed_by = STR("ann");
    CHECK(ask(&admin, OPERATION_RUN_DELETE, &run, "law").requires_approval);
    run.agreed_by = STR("bob");
    allowed_as(ask(&admin, OPERATION_RUN_DELETE, &run, "law"), ROLE_ADMIN);
}

static void a_token_gives_no_more_than_its_maker_has(void)
{
    open_table();
    static const struct str web[] = {STR_INIT("web")}, both[] = {STR_INIT("web"), STR_INIT("bank")};
    static const enum operation few[] = {OPERATION_TOKEN_CREATE, OPERATION_RUN_GET}, other[] = {OPERATION_RUN_START};
    struct principal admin = somebody(ROLE_ADMIN), made = somebody(ROLE_ADMIN | ROLE_WORKER | ROLE_AUDITOR);
    struct auth_object token = {.tenant = STR("acme"), .subject = &made};
    allowed_as(ask(&admin, OPERATION_TOKEN_CREATE, &token, ""), ROLE_ADMIN);
    made.roles = ROLE_PLATFORM;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.roles = ROLE_ALL + 1;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.roles = ROLE_OPERATOR;
    made.tenant = STR("globex");
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.tenant = STR("acme");
    admin.projects = (struct names){web, 1};
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within"); // no limit is more than web
    made.projects = (struct names){both, 2};
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.projects = (struct names){web, 1};
    allowed_as(ask(&admin, OPERATION_TOKEN_CREATE, &token, ""), ROLE_ADMIN);
    admin.operations = few;
    admin.operation_count = 2;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.operations = other;
    made.operation_count = 1;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.operations = few;
    allowed_as(ask(&admin, OPERATION_TOKEN_CREATE, &token, ""), ROLE_ADMIN);
    token.subject = NULL;
    CHECK(!ask(&admin, OPERATION_TOKEN_CREATE, &token, "").allowed);
}

static void a_token_makes_none_that_outlives_it(void)
{
    open_table();
    struct principal admin = somebody(ROLE_ADMIN), made = somebody(ROLE_OPERATOR);
    struct auth_object token = {.tenant = STR("acme"), .exists = true, .subject = &made};
    admin.expires_ms = INT64_MAX - 1;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    allowed_as(ask(&admin, OPERATION_TOKEN_REVOKE, &token, ""), ROLE_ADMIN); // to take one away is not to give one
    made.expires_ms = INT64_MAX;
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.expires_ms = INT64_MAX - 1;
    allowed_as(ask(&admin, OPERATION_TOKEN_CREATE, &token, ""), ROLE_ADMIN);
    admin.audience = STR("here");
    CHECK_TEXT(ask(&admin, OPERATION_TOKEN_CREATE, &token, "").unmet, "role_within");
    made.audience = STR("here");
    allowed_as(ask(&admin, OPERATION_TOKEN_CREATE, &token, ""), ROLE_ADMIN);
}

static void the_installation_belongs_to_platform_admins(void)
{
    open_table();
    struct principal platform = {.id = STR("root"), .roles = ROLE_PLATFORM}, admin = somebody(ROLE_ADMIN);
    allowed_as(ask(&platform, OPERATION_TENANT_CREATE, NULL, ""), ROLE_PLATFORM);
    refused(ask(&admin, OPERATION_TENANT_CREATE, NULL, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    refused(ask(&platform, OPERATION_RUN_ADOPT, NULL, ""), 403, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
    allowed_as(ask(&platform, OPERATION_LEASE_BREAK, NULL, "host is gone"), ROLE_PLATFORM);
    refused(ask(&platform, OPERATION_RUN_GET, &own_run, ""), 403, "AUTHZ_DENIED", "AUTHZ_DENIED");
    CHECK_TEXT(ask(&admin, OPERATION_DEBUG, NULL, "").unmet, "unix_socket");
    struct auth_ask local = {.principal = &admin, .operation = OPERATION_DEBUG, .unix_socket = true};
    allowed_as(auth_decide(auth, &local), ROLE_ADMIN);
}

// What is refused without looking the object up is refused with it, whatever it is.
static void a_precheck_never_contradicts(void)
{
    open_table();
    struct auth_object foreign = {.tenant = STR("globex"), .exists = true};
    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        for (uint32_t roles = 0; roles <= ROLE_ALL; roles++) {
            struct principal who = somebody(roles);
            struct auth_ask question = {.principal = &who, .operation = (enum operation)operation, .object = &own_run};
            struct decision before = auth_precheck(auth, &question), after = auth_decide(auth, &question);
            CHECK(before.allowed || !after.allowed);
            if (before.allowed) continue;
            CHECK_INT(after.status, before.status);
            question.object = &foreign;
            CHECK_INT(auth_decide(auth, &question).status, before.status);
        }
    }
}

static void bad_table(const char *from, const char *to, const char *message)
{
    struct str text = test_read_file("schemas/authorization.json");
    const char *at = strstr(text.ptr, from);
    CHECK(at);
    struct buf edited;
    buf_init(&edited, 1 << 20);
    buf_add(&edited, (struct str){text.ptr, (size_t)(at - text.ptr)});
    buf_text(&edited, to);
    buf_text(&edited, at + strlen(from));
    struct auth *table = NULL;
    memset(&err, 0, sizeof(err));
    CHECK_INT(auth_open(buf_str(&edited), &arena, &table, &err), E_INVALID);
    if (!strstr(err.message, message)) test_fail(__FILE__, __LINE__, "%s: %s", from, err.message);
    buf_release(&edited);
}

static void a_table_with_a_fault_is_refused_with_its_place(void)
{
    open_table();
    bad_table("\"run.get\"", "\"run.got\"", "no such operation: \"run.got\"");
    bad_table("\"run.list\"", "\"run.get\"", "operation run.get: there is another row");
    bad_table("\"approved_plan\"]", "\"approved\"]", "no such condition: \"approved\"");
    bad_table(
        "{\"name\": \"metrics\", \"scope\": \"open\", \"roles\": {\"admin\": [], \"system\": [], \"platform\": []}},",
        "", "operation metrics is missing");
    bad_table("\"scope\": \"item\"", "\"scope\": \"thing\"", "scope must be");
    bad_table("\"denied\": 403", "\"denied\": 200", "denied must be a status");
    bad_table("\"system\": []", "\"sistem\": []", "no such role: \"sistem\"");
    bad_table("\"worker\"]", "\"admin\"]", "roles must list each role once");
    bad_table("\"version\": 1", "\"version\": 2", "version must be 1");
    bad_table("\"scope\": \"item\", \"roles\": {\"operator\": [\"own\", \"redacted\"]",
              "\"scope\": \"item\", \"roles\": {\"operator\": [\"redacted\"]", "\"own\" goes with");
}

static void memory_may_end_while_the_table_is_read(void)
{
    for (int64_t n = 1;; n++) {
        struct arena small;
        struct auth *table = NULL;
        arena_init(&small, 4096, 1 << 22);
        small.fail_in = n;
        enum code rc = auth_open(STR(""), &small, &table, NULL);
        arena_release(&small);
        if (!rc) break;
        CHECK_INT(rc, E_NOMEM);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nobody_may_do_anything_but_ask_for_health_C_39),
        TEST(a_dead_token_is_like_none_in_the_answer_A3_A4),
        TEST(foreign_looks_absent_WE_2_1_3a_WE_2_1_3i),
        TEST(a_principal_of_no_tenant_owns_nothing),
        TEST(projects_and_environments_limit_a_token),
        TEST(the_least_permissive_role_that_suffices_acts),
        TEST(destructive_signals_need_a_reason_and_raise_p1),
        TEST(nobody_from_outside_escalates_C_60),
        TEST(payloads_are_left_out_for_operators_and_auditors),
        TEST(a_worker_sees_its_task_and_its_pool_only_A7),
        TEST(nobody_approves_what_is_his_own),
        TEST(a_person_with_two_tokens_is_one_person),
        TEST(two_persons_delete_a_run),
        TEST(a_token_gives_no_more_than_its_maker_has),
        TEST(a_token_makes_none_that_outlives_it),
        TEST(the_installation_belongs_to_platform_admins),
        TEST(a_precheck_never_contradicts),
        TEST(a_table_with_a_fault_is_refused_with_its_place),
        TEST(memory_may_end_while_the_table_is_read),
    };
    return test_main("auth_decide", tests, ARRAY_COUNT(tests), argc, argv);
}
