// What a document will do, how its steps look, what its fields mean, and that all of it survives memory that runs out.
#include "program_kit.h"

#include "author/author.h"

static struct kit kit;

static const struct kit_file files[] = {{"child", "nodes: [{id: nap, wait: 10s}]"}, {0}};

static const char workflow[] =
    "name: w\nversion: 3\ninputs: { day: { type: string, required: true }, n: 2 }\nnodes:\n"
    "  - { id: a, bash: \"echo $INPUTS.day\", timeout: 10s, retry: { max_attempts: 2, delay_ms: 1000 } }\n"
    "  - { id: b, wait: 1m }\n"
    "  - { id: sub, workflow: child, depends_on: [a] }\n"
    "  - { id: ask, approval: \"ship $a.output.v?\", depends_on: [b, sub], when: \"$a.output.v > 1 && $INPUTS.n == "
    "'2'\" }\n"
    "  - id: again\n"
    "    depends_on: [sub]\n"
    "    loop_group:\n"
    "      max_iterations: 3\n"
    "      nodes: [{ id: tick, exec: [x, \"$sub.output\"], timeout: 2s, secrets: [{ name: K, ref: \"env:K\" }] }]\n";

static void load(void)
{
    kit.files = files;
    kit_must_load(&kit, workflow);
}

static struct str compact(const struct json *value)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    json_write(&out, value);
    struct str copy = arena_copy(&kit.arena, buf_str(&out));
    buf_release(&out);
    CHECK(copy.ptr);
    return copy;
}

static void plans(void)
{
    struct json plan;
    struct error err = {0};
    load();
    CHECK_OK(author_plan(kit.program, STR("file:///w"), &kit.arena, &plan, &err), &err);
    CHECK_STR(json_text(json_at(&plan, STR("planRef.planVersion"))), STR("3"));
    CHECK_STR(compact(json_key(&plan, "inputs")),
              STR("[{\"name\":\"day\",\"required\":true},{\"name\":\"n\",\"required\":false,\"default\":2}]"));
    CHECK_STR(compact(json_key(&plan, "first")), STR("[\"a\",\"b\"]"));
    CHECK_INT(json_integer(json_key(&plan, "layers"), 0), 3);
    // 3 tries of 10 s and delays of 1 s and 2 s; the child's wait of 10 s; 3 rounds of 2 s.
    CHECK_STR(compact(json_at(&plan, STR("criticalPath.steps"))), STR("[\"b\",\"ask\"]"));
    CHECK_INT(json_integer(json_at(&plan, STR("criticalPath.boundMs")), 0), 60000);
    CHECK_STR(compact(json_at(&plan, STR("criticalPath.unbounded"))), STR("[\"ask\"]"));
    CHECK_STR(compact(json_key(&plan, "secrets")), STR("[{\"stepId\":\"tick\",\"name\":\"K\",\"ref\":\"env:K\"}]"));
    CHECK_STR(json_text(json_at(&plan, STR("approvals.0.message"))), STR("ship $a.output.v?"));
    kit_release(&kit);
}

static struct json render(const char *step, const struct render_facts *facts)
{
    struct json out;
    struct error err = {0};
    uint32_t index = 0;
    while (!str_is(kit.program->steps[index].id, step)) index++;
    CHECK_OK(author_render(kit.program, index, facts, &kit.arena, &out, &err), &err);
    return out;
}

static void renders_as_the_engine_does(void)
{
    struct error err = {0};
    load();
    struct json value, inputs;
    CHECK_OK(json_parse(STR("{\"v\": 7}"), NULL, &kit.arena, &value, &err), &err);
    CHECK_OK(json_parse(STR("{\"n\": 2}"), NULL, &kit.arena, &inputs, &err), &err);
    struct render_result results[] = {{.step = 0, .value = value}};
    struct render_facts facts = {.inputs = inputs, .results = results, .result_count = 1};

    struct json out = render("ask", &facts);
    CHECK_STR(json_text(json_at(&out, STR("with.message"))), STR("ship 7?"));
    CHECK(json_at(&out, STR("when.result"))->boolean);
    CHECK_STR(json_text(json_at(&out, STR("when.comparisons.0.left"))), STR("7"));
    CHECK_INT(json_key(&out, "unknown")->count, 0);

    out = render("a", &facts); // the input is required and not given
    CHECK_STR(json_text(json_at(&out, STR("referenceEnvironment.CAIRN_REF_1"))), STR("<$INPUTS.day>"));
    CHECK_STR(compact(json_key(&out, "unknown")), STR("[\"$INPUTS.day\"]"));

    facts.result_count = 0;
    out = render("ask", &facts);
    CHECK_INT(json_at(&out, STR("when.result"))->type, JSON_NULL);
    CHECK_STR(json_text(json_at(&out, STR("with.message"))), STR("ship <$a.output.v>?"));

    results[0] = (struct render_result){.step = 0, .failed = true, .value = json_null()};
    facts.result_count = 1;
    out = render("ask", &facts); // a condition on a failed step fails its own
    CHECK(strstr(json_text(json_at(&out, STR("when.error"))).ptr, "failed"));

    results[0] = (struct render_result){.step = 0, .skipped = true, .value = json_null()};
    out = render("ask", &facts);
    CHECK_STR(json_text(json_at(&out, STR("with.message"))), STR("ship ?"));

    out = render("tick", &facts); // inside a loop: the step around it
    CHECK_STR(compact(json_at(&out, STR("with.argv"))), STR("[\"x\",\"<$sub.output>\"]"));
    CHECK_STR(json_text(json_at(&out, STR("secrets.0.value"))), STR("***"));
    kit_release(&kit);
}

static void schemas_by_path(void)
{
    struct arena arena;
    struct json out, raw;
    struct error err = {0};
    const char *nearest;
    arena_init(&arena, 4096, 1 << 26);
    CHECK_OK(author_schema(STR("plan.json"), STR("steps.retry.backoff"), &arena, &out, &raw, &nearest, &err), &err);
    CHECK_STR(json_text(json_key(&out, "path")), STR("steps[].retry.backoff"));
    CHECK_INT(json_key(&out, "allowed")->count, 3);
    CHECK_OK(author_schema(STR("signals/SKIP_STEP.json"), STR("stepId"), &arena, &out, &raw, &nearest, &err), &err);
    CHECK(json_key(&out, "description"));
    CHECK_INT(author_schema(STR("nodes.json"), STR("nodes.loop_grup.nodes"), &arena, &out, &raw, &nearest, &err),
              E_NOT_FOUND);
    CHECK_TEXT(nearest, "loop_group");
    CHECK(strstr(err.message, "nodes[]"));
    err = (struct error){0};
    CHECK_INT(author_schema(STR("nothing.json"), STR(""), &arena, &out, &raw, &nearest, &err), E_NOT_FOUND);
    arena_release(&arena);
}

static void templates_get_their_name(void)
{
    struct example t;
    struct buf out;
    size_t count = 0;
    for (; example_at(count, &t); count++) {
        CHECK(t.what.len > 10 && t.text.len > 50);
        if (t.needs.len > 0) CHECK(example_file(t.needs).len > 0);
        buf_init(&out, 1 << 20);
        CHECK(example_named(&out, &t, STR("another-one")));
        CHECK(strstr(out.ptr, "another-one"));
        size_t more = strlen("another-one") - t.id.len, path = strlen("another-one") - strlen("examples/") - t.id.len;
        bool playbook = strstr(t.text.ptr, "kind: Playbook") != NULL; // it has a path, too
        CHECK_INT(out.len, t.text.len + more + (playbook ? path : 0));
        buf_release(&out);
    }
    CHECK(count >= 8 && !example_find(STR("no-such"), &t) && example_find(STR("hello"), &t));
}

// ---- memory

static enum code draw(enum graph_format format, struct arena *arena)
{
    struct error err = {0};
    struct buf out;
    struct graph_options options = {.format = format, .columns = 80, .utf8 = true};
    buf_init(&out, 1 << 22);
    enum code rc = graph_write(&out, kit.program, &options, arena, &err);
    buf_release(&out);
    return rc;
}

static enum code one_call(int which, struct arena *arena)
{
    static const struct program_loader loader = {.context = &kit, .load = kit_find};
    static enum sound_answer answers[64];
    struct error err = {0};
    struct json a, b;
    struct str text;
    struct buf out;
    struct diagnostics diagnostics;
    const char *nearest;
    struct render_facts facts = {.inputs = json_object()};
    enum code rc;
    switch (which) {
    case 0:
        return draw(GRAPH_TEXT, arena);
    case 1:
        return draw(GRAPH_SVG, arena);
    case 2:
        return sound_reach(kit.program, arena, answers, &err);
    case 3:
        return author_plan(kit.program, STR("u"), arena, &a, &err);
    case 4:
        return author_render(kit.program, 3, &facts, arena, &a, &err);
    case 5:
        return author_schema(STR("plan.json"), STR("steps"), arena, &a, &b, &nearest, &err);
    case 6:
        return author_format(kit.program, &loader, arena, &text, &err);
    default:
        buf_init(&out, 1 << 20);
        diagnostics_init(&diagnostics, arena);
        rc = author_convert(kit.program, DOCUMENT_PLAN, &diagnostics, arena, &out, &err);
        buf_release(&out);
        return rc == E_UNSUPPORTED && !diagnostics.failed ? OK : rc;
    }
}

// Every allocation fails once: each call says so, and nothing is left behind (the leak checker looks).
static void sweep(const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int which = calls[i];
        enum code rc = E_NOMEM;
        int64_t n = 1;
        for (; rc; n++) {
            struct arena arena;
            arena_init(&arena, 4096, (size_t)256 << 20);
            arena.fail_in = n;
            arena.fail_sticky = true;
            rc = one_call(which, &arena);
            if (rc && rc != E_NOMEM && rc != E_UNSUPPORTED && rc != E_NOT_FOUND)
                test_fail(__FILE__, __LINE__, "call %d gives %d at allocation %lld", which, (int)rc, (long long)n);
            arena_release(&arena);
            CHECK(n < 100000);
        }
        CHECK(n > 5);
    }
}

static void memory_runs_out_anywhere(void)
{
    load();
    sweep((const int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    kit_release(&kit);
}

static void memory_runs_out_for_playbooks(void)
{
    kit_load(&kit, "sweep.yaml", test_read_file("examples/sweep.yaml"));
    CHECK_OK(kit.rc, &kit.err);
    sweep((const int[]){0, 1, 3, 6}, 4);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(plans),
        TEST(renders_as_the_engine_does),
        TEST(schemas_by_path),
        TEST(templates_get_their_name),
        TEST(memory_runs_out_anywhere),
        TEST(memory_runs_out_for_playbooks),
    };
    return test_main("author_plan", tests, ARRAY_COUNT(tests), argc, argv);
}
