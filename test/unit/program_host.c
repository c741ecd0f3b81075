// Functions of a host: kinds that only whoever loads the document knows.
#include "harness/test.h"
#include "program/program.h"

struct loaded {
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
};

static bool knows_charge(void *context, struct str kind)
{
    (void)context;
    return str_is(kind, "charge-card");
}

static enum code load(struct loaded *out, const char *text, bool with_host)
{
    struct program_loader loader = {.host_kind = with_host ? knows_charge : NULL};
    struct error err = {0};
    *out = (struct loaded){0};
    arena_init(&out->arena, 4096, (size_t)16 << 20);
    diagnostics_init(&out->diagnostics, &out->arena);
    return program_load(str_from(text), STR("test"), &loader, &out->diagnostics, &out->program, &err);
}

static void loaded_release(struct loaded *loaded)
{
    program_release(loaded->program);
    arena_release(&loaded->arena);
}

#define PLAN(kind)                                                                                                     \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\"},\"steps\":[{\"stepId\":\"a\",\"kind\":\"" kind "\","       \
    "\"with\":{\"amount\":5,\"document\":\"$INPUTS.x\",\"deep\":[{\"y\":null}]},\"timeout\":\"2s\"}]}"

static void plans_take_any_with_of_a_registered_kind(void)
{
    struct loaded l;
    CHECK_INT(load(&l, PLAN("charge-card"), true), OK);
    const struct program_step *step = &l.program->steps[0];
    CHECK_INT(step->kind, STEP_HOST);
    CHECK_STR(step->function, STR("charge-card"));
    CHECK_INT(step->with.count, 3);
    CHECK_INT(step->timeout_ms, 2000);
    CHECK_INT(l.diagnostics.count, 1); // the input x is not declared: references are looked at everywhere
    loaded_release(&l);
}

static void kinds_that_nobody_registered_are_refused(void)
{
    struct loaded l;
    CHECK_INT(load(&l, PLAN("charge-card"), false), E_INVALID);
    loaded_release(&l);
    CHECK_INT(load(&l, PLAN("refund"), true), E_INVALID);
    loaded_release(&l);
    CHECK_INT(load(&l, PLAN("host"), true), E_INVALID);
    loaded_release(&l);
}

static void nodes_use_a_function(void)
{
    struct loaded l;
    CHECK_INT(load(&l, "name: n\nnodes:\n  - id: a\n    use: charge-card\n    with: {amount: 5}\n", true), OK);
    CHECK_INT(l.program->steps[0].kind, STEP_HOST);
    CHECK_STR(l.program->steps[0].function, STR("charge-card"));
    CHECK_INT(l.program->steps[0].with.count, 1);
    CHECK_INT(l.diagnostics.count, 0);
    loaded_release(&l);
    CHECK_INT(load(&l, "name: n\nnodes:\n  - id: a\n    use: refund\n", true), E_INVALID);
    loaded_release(&l);
}

static void names_of_functions(void)
{
    CHECK(host_kind_valid(STR("a")));
    CHECK(host_kind_valid(STR("billing.charge_card-2")));
    CHECK(!host_kind_valid(STR("")));
    CHECK(!host_kind_valid(STR("Charge")));
    CHECK(!host_kind_valid(STR("2x")));
    CHECK(!host_kind_valid(STR("shell")));
    CHECK(!host_kind_valid(STR("bash")));
    CHECK(!host_kind_valid(STR("a/b")));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(plans_take_any_with_of_a_registered_kind),
        TEST(kinds_that_nobody_registered_are_refused),
        TEST(nodes_use_a_function),
        TEST(names_of_functions),
    };
    return test_main("program_host", tests, ARRAY_COUNT(tests), argc, argv);
}
