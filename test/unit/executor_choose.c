// Who executes an attempt: every form × whether it is here × tenant × environment × kind × pool of a person × settings, against the rules
// as docs/format/serve.md has them, and the rows of that page's example one by one.
#include "executor/executor.h"
#include "harness/test.h"

#include <stdio.h>

static const char *const forms[] = {
    [EXECUTOR_PROCESS] = "process", [EXECUTOR_TASK] = "task", [EXECUTOR_FUNCTION] = "function"};
static const char *const names[] = {[EXECUTOR_NONE] = "none",
                                    [EXECUTOR_PROCESS] = "process",
                                    [EXECUTOR_TASK] = "task",
                                    [EXECUTOR_FUNCTION] = "function",
                                    [EXECUTOR_POOL] = "pool"};

static void choice_is(const struct executor_request *request, const struct executor_routes *routes, enum executor want,
                      const char *pool)
{
    struct executor_choice got = executor_choose(request, routes);
    if (got.executor == want && str_is(got.pool, pool)) return;
    test_fail(__FILE__, __LINE__, "%s %.*s of %.*s/%.*s, %s, sent to \"%.*s\": %s %.*s, not %s %s",
              forms[request->form], STR_ARG(request->kind), STR_ARG(request->tenant), STR_ARG(request->environment),
              request->here ? "here" : "not here", STR_ARG(request->pool), names[got.executor], STR_ARG(got.pool),
              names[want], pool);
}

// ---- the example of docs/format/serve.md
static const struct executor_route example[] = {
    {.kind = STR_INIT("shell"), .environment = STR_INIT("prod"), .pool = STR_INIT("prod")},
    {.tenant = STR_INIT("acme"), .pool = STR_INIT("acme")},
};

static void a_route_of_one_tenant_leaves_the_others_here(void)
{
    static const struct {
        enum executor form;
        const char *kind, *tenant, *environment;
        bool here;
        enum executor want;
        const char *pool, *only_pools;
    } rows[] = {
        {EXECUTOR_PROCESS, "shell", "acme", "dev", true, EXECUTOR_POOL, "acme", "acme"},
        {EXECUTOR_PROCESS, "shell", "acme", "prod", true, EXECUTOR_POOL, "prod", "prod"},
        {EXECUTOR_PROCESS, "shell", "beta", "dev", true, EXECUTOR_PROCESS, "", "default"},
        {EXECUTOR_PROCESS, "shell", "beta", "prod", true, EXECUTOR_POOL, "prod", "prod"},
        {EXECUTOR_PROCESS, "exec", "beta", "prod", true, EXECUTOR_PROCESS, "", "default"},
        {EXECUTOR_TASK, "http", "acme", "dev", true, EXECUTOR_POOL, "acme", "acme"},
        {EXECUTOR_TASK, "http", "beta", "dev", true, EXECUTOR_TASK, "", "default"},
        {EXECUTOR_TASK, "shell", "beta", "prod", true, EXECUTOR_POOL, "prod", "prod"},
        {EXECUTOR_TASK, "plugin", "acme", "dev", false, EXECUTOR_POOL, "acme", "acme"},
        {EXECUTOR_TASK, "plugin", "beta", "dev", true, EXECUTOR_TASK, "", "default"},
        {EXECUTOR_TASK, "plugin", "beta", "dev", false, EXECUTOR_NONE, "", "default"},
        {EXECUTOR_FUNCTION, "charge", "acme", "dev", false, EXECUTOR_POOL, "acme", "acme"},
        {EXECUTOR_FUNCTION, "charge", "beta", "dev", true, EXECUTOR_FUNCTION, "", "default"},
        {EXECUTOR_FUNCTION, "charge", "beta", "dev", false, EXECUTOR_NONE, "", "default"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct executor_request request = {.form = rows[i].form,
                                           .here = rows[i].here,
                                           .kind = str_from(rows[i].kind),
                                           .tenant = str_from(rows[i].tenant),
                                           .environment = str_from(rows[i].environment)};
        struct executor_routes routes = {.at = example, .count = ARRAY_COUNT(example)};
        choice_is(&request, &routes, rows[i].want, rows[i].pool);
        routes.only_pools = true;
        choice_is(&request, &routes, EXECUTOR_POOL, rows[i].only_pools);
        request.pool = STR("gpu"); // a person's word is stronger
        choice_is(&request, &routes, EXECUTOR_POOL, "gpu");
        choice_is(&request, NULL, rows[i].here ? rows[i].form : EXECUTOR_NONE, ""); // where there are no workers
    }
}

static void a_route_without_a_pool_keeps_its_attempts_here(void)
{
    static const struct executor_route routes[] = {{.kind = STR_INIT("shell")}, {.pool = STR_INIT("all")}};
    struct executor_request shell = {.form = EXECUTOR_PROCESS, .here = true, .kind = STR("shell")};
    struct executor_request exec = {.form = EXECUTOR_PROCESS, .here = true, .kind = STR("exec")};
    struct executor_routes here = {.at = routes, .count = 2}, away = {.at = routes, .count = 2, .only_pools = true};
    choice_is(&shell, &here, EXECUTOR_PROCESS, "");
    choice_is(&exec, &here, EXECUTOR_POOL, "all");
    choice_is(&shell, &away, EXECUTOR_POOL, "all"); // nothing is executed here: the route does not fit
    shell.here = false;
    choice_is(&shell, &here, EXECUTOR_NONE, "");
}

// ---- everything, against the rules written down once more
struct place {
    const char *tenant, *environment, *kind, *pool;
};

static bool place_fits(const struct place *route, const struct executor_request *request)
{
    struct str wanted[] = {str_from(route->tenant), str_from(route->environment), str_from(route->kind)};
    struct str given[] = {request->tenant, request->environment, request->kind};
    bool fit = true;
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) fit = fit && (wanted[i].len == 0 || str_eq(wanted[i], given[i]));
    return fit;
}

static void check_settings(const struct place *a, const struct place *b, bool only_pools,
                           const struct executor_request *request)
{
    const struct place *both[] = {a, b};
    struct executor_route routes[2];
    const char *pool = only_pools ? "default" : "";
    bool decided = false;
    for (size_t i = 0; i < 2; i++) {
        routes[i] = (struct executor_route){.tenant = str_from(both[i]->tenant),
                                            .environment = str_from(both[i]->environment),
                                            .kind = str_from(both[i]->kind),
                                            .pool = str_from(both[i]->pool)};
        bool counts = both[i]->pool[0] || !only_pools;
        if (!decided && counts && place_fits(both[i], request)) pool = both[i]->pool;
        decided = decided || (counts && place_fits(both[i], request));
    }
    if (request->pool.len > 0) pool = request->pool.ptr;
    enum executor want = pool[0] ? EXECUTOR_POOL : request->here ? request->form : EXECUTOR_NONE;
    struct executor_routes set = {.at = routes, .count = 2, .only_pools = only_pools};
    choice_is(request, &set, want, pool);
}

static void every_combination_follows_the_rules(void)
{
    static const struct place places[] = {{"", "", "", "p1"},      {"acme", "", "", "p2"},    {"", "prod", "", "p3"},
                                          {"", "", "shell", "p4"}, {"acme", "prod", "", ""},  {"", "", "http", ""},
                                          {"beta", "", "f", "p5"}, {"beta", "dev", "exec", "p6"}};
    static const char *const tenants[] = {"default", "acme", "beta"}, *const environments[] = {"dev", "prod"};
    static const char *const kinds[] = {"shell", "exec", "http", "f"}, *const pools[] = {"", "gpu"};
    size_t count = 0;
    enum { KINDS = ARRAY_COUNT(kinds), EACH = 3 * 2 * 3 * 2 * KINDS * 2, SETS = ARRAY_COUNT(places) };
    for (size_t i = 0; i < (size_t)EACH * SETS * SETS * 2; i++) {
        size_t at = i;
        struct executor_request request = {.form = EXECUTOR_PROCESS + (enum executor)(at % 3)};
        request.here = (at /= 3) % 2 == 1;
        request.tenant = str_from(tenants[(at /= 2) % 3]);
        request.environment = str_from(environments[(at /= 3) % 2]);
        request.kind = str_from(kinds[(at /= 2) % KINDS]);
        request.pool = str_from(pools[(at /= KINDS) % 2]);
        const struct place *a = &places[(at /= 2) % SETS], *b = &places[(at /= SETS) % SETS];
        check_settings(a, b, (at / SETS) % 2 == 1, &request);
        count++;
    }
    CHECK_INT(count, 288 * 128);
}

static void each_kind_of_step_asks_for_one_form(void)
{
    static const struct {
        enum step_kind kind;
        enum executor form;
    } rows[] = {{STEP_NOOP, EXECUTOR_NONE},       {STEP_ECHO, EXECUTOR_NONE},    {STEP_MERGE, EXECUTOR_NONE},
                {STEP_EXEC, EXECUTOR_PROCESS},    {STEP_SHELL, EXECUTOR_PROCESS}, {STEP_SCRIPT, EXECUTOR_PROCESS},
                {STEP_WAIT, EXECUTOR_NONE},       {STEP_APPROVAL, EXECUTOR_NONE}, {STEP_SUBRUN, EXECUTOR_NONE},
                {STEP_CANCEL, EXECUTOR_NONE},     {STEP_LOOP, EXECUTOR_NONE},    {STEP_HOST, EXECUTOR_FUNCTION},
                {STEP_TASKS, EXECUTOR_TASK},      {STEP_EVENT, EXECUTOR_NONE}};
    size_t kinds = 0;
#define X(name, text, what) kinds++;
    STEP_KIND_LIST(X)
#undef X
    CHECK_INT(ARRAY_COUNT(rows), kinds);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) CHECK_INT(executor_of_step(rows[i].kind), rows[i].form);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_route_of_one_tenant_leaves_the_others_here),
        TEST(a_route_without_a_pool_keeps_its_attempts_here),
        TEST(every_combination_follows_the_rules),
        TEST(each_kind_of_step_asks_for_one_form),
    };
    return test_main("executor_choose", tests, ARRAY_COUNT(tests), argc, argv);
}
