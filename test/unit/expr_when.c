// The `when` language: what parses and to what value, what does not parse and where, and what is an error of the step.
#include "expr/expr.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

// Steps: a prints text, j prints JSON, n is a number, s was skipped, f failed, "build.app" and "build" have dots.
static bool known(void *context, struct str name)
{
    static const char *const names[] = {"a", "j", "n", "s", "f", "build", "build.app", "parse-args", "1st"};
    (void)context;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_is(name, names[i])) return true;
    }
    return false;
}

static enum code lookup(void *context, const struct ref *ref, struct arena *into, struct json *out, struct error *err)
{
    (void)context;
    struct json value = json_null();
    if (ref->kind == REF_INPUT) {
        if (!str_is(ref->path, "env")) return error_set(err, E_NOT_FOUND, "no input %.*s", STR_ARG(ref->path));
        *out = json_string(STR("prod"));
        return OK;
    }
    if (str_is(ref->node, "a"))
        value = json_string(STR("x && y || 'z"));
    else if (str_is(ref->node, "j"))
        value = json_string(STR(" {\"ok\": true, \"count\": 12, \"big\": 9007199254740993, \"name\": \"two words\","
                                " \"list\": [1, {\"k\": \"v\"}], \"x-y\": 1.50, \"none\": null} "));
    else if (str_is(ref->node, "n"))
        value = json_int(7);
    else if (str_is(ref->node, "build") || str_is(ref->node, "parse-args") || str_is(ref->node, "1st"))
        value = json_string(STR("short"));
    else if (str_is(ref->node, "build.app"))
        value = json_string(STR("long"));
    else if (str_is(ref->node, "f"))
        return error_set(err, E_CONFLICT, "step f failed");
    else if (!str_is(ref->node, "s"))
        return error_set(err, E_NOT_FOUND, "no step %.*s", STR_ARG(ref->node));
    if (value.type == JSON_NULL) {
        *out = value;
        return OK;
    }
    return expr_field(&value, ref->path, into, out, err);
}

static const struct scope scope = {.known = known, .lookup = lookup};

static enum code eval(const char *text, bool *result, struct error *err)
{
    const struct when *when = NULL;
    enum code rc = when_parse(str_from(text), &scope, &arena, &when, err);
    return rc ? rc : when_eval(when, &scope, &arena, result, NULL, err);
}

static void conditions_have_these_values(void)
{
    static const struct {
        const char *text;
        bool value;
    } cases[] = {
        {"$n.output == '7'", true},
        {"$n.output == 7", true},
        {"$n.output != 7", false},
        {"$n.output == 7.0", false}, // as text
        {"$n.output >= 7.0", true},  // as numbers
        {"$n.output<8", true},
        {"$n.output<=6", false},
        {"$n.output > -1e2", true},
        {"  $n.output   >   6  ", true},
        {"$j.output.ok == true", true},
        {"$j.output.ok == 'true'", true},
        {"$j.ok == 'true'", true},
        {"$j.count > 9", true}, // as text "12" would be below "9"
        {"$j.output.count == 12", true},
        {"$j.output.list.0 == 1", true},
        {"$j.output.list.1.k == 'v'", true},
        {"$j.output.x-y == '1.50'", true},
        {"$j.output.name == 'two words'", true},
        {"$j.output.name > 1", false}, // no number: the atom is false
        {"$j.output.name <= 1", false},
        {"$j.output.none == ''", true},
        {"$j.output.big > 9007199254740992", true},
        {"$j.output.big == 9007199254740993", true},
        {"$a.output == 'x && y || '", false},
        {"$a.output != 'x && y || $n.output == 8'", true},
        {"$s.output == ''", true},
        {"$s.output.field == ''", true},
        {"$INPUTS.env == 'prod'", true},
        {"$build.app.output == 'long'", true},
        {"$build.output == 'short'", true},
        {"$parse-args.output == 'short'", true},
        {"$1st.output == 'short'", true},
        // && is tighter than ||
        {"$n.output == 7 || $n.output == 8 && $n.output == 9", true},
        {"$n.output == 8 && $n.output == 9 || $n.output == 7", true},
        {"$n.output == 8 && $n.output == 7 || $n.output == 9", false},
        {"$n.output == 7 && $n.output == 8 || $n.output == 7 && $j.ok == true", true},
        {"$n.output == 1 || $n.output == 2 || $n.output == 7", true},
        {"$n.output == 7&&$n.output == 7||$n.output == 8", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        bool result = !cases[i].value;
        enum code rc = eval(cases[i].text, &result, &err);
        if (rc || result != cases[i].value)
            test_fail(__FILE__, __LINE__, "%s: %s %d", cases[i].text, err.message, result);
    }
}

static void trouble_is_located(void)
{
    static const struct {
        const char *text;
        uint32_t column;
    } cases[] = {
        {"", 1},
        {"   ", 4},
        {"true", 1},
        {"'a' == 'a'", 1},
        {"$n == 7", 1},
        {"$ == 7", 1},
        {"$n.output", 10},
        {"$n.output = 7", 11},
        {"$n.output === 7", 13},
        {"$n.output == ", 14},
        {"$n.output == seven", 14},
        {"$n.output == \"7\"", 14},
        {"$n.output == '7", 14},
        {"$n.output == 07", 14},
        {"$n.output == 1e9999999999", 14},
        {"$n.output == $n.output", 14},
        {"$n.output. == 7", 10},
        {"$n.output == 7 &&", 18},
        {"$n.output == 7 & $n.output == 7", 16},
        {"$n.output == 7 and $n.output == 7", 16},
        {"($n.output == 7)", 1},
        {"$n.output == 7)", 15},
        {"$n.output == 7 || || $n.output == 7", 19},
        {"!$n.output == 7", 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        bool result;
        enum code rc = eval(cases[i].text, &result, &err);
        if (rc != E_INVALID || err.column != cases[i].column)
            test_fail(__FILE__, __LINE__, "[%s]: %s at %u: %s", cases[i].text, code_name(rc), err.column, err.message);
    }
}

static void missing_values_are_errors_wherever_they_stand(void)
{
    static const struct {
        const char *text;
        enum code code;
        const char *part;
    } cases[] = {
        {"$j.output.missing == 'x'", E_NOT_FOUND, "missing"},
        {"$a.output.field == 'x'", E_NOT_FOUND, "not JSON"},
        {"$n.output == 7 || $j.output.missing == 'x'", E_NOT_FOUND, "missing"},
        {"$n.output == 8 && $j.output.list.9 == 'x'", E_NOT_FOUND, "list.9"},
        {"$INPUTS.nope == 'x'", E_NOT_FOUND, "nope"},
        {"$f.output == 'x'", E_CONFLICT, "failed"},
        {"$nobody.output == 'x'", E_NOT_FOUND, "nobody"},
        {"$nobody.field == 'x'", E_NOT_FOUND, "nobody"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        bool result;
        enum code rc = eval(cases[i].text, &result, &err);
        if (rc != cases[i].code || !strstr(err.message, cases[i].part))
            test_fail(__FILE__, __LINE__, "%s: %s %s", cases[i].text, code_name(rc), err.message);
    }
}

static void atoms_and_trace_tell_how_it_came_out(void)
{
    struct error err = {0};
    const struct when *when = NULL;
    struct str text = STR(" $build.app.output == 'long' &&$j.count>20||$s.output != 'a && b' ");
    CHECK_OK(when_parse(text, &scope, &arena, &when, &err), &err);
    size_t count;
    const struct when_atom *atoms = when_atoms(when, &count);
    CHECK_INT(count, 3);
    CHECK_STR(atoms[0].left.node, STR("build.app"));
    CHECK_STR(atoms[0].left.text, STR("$build.app.output"));
    CHECK_STR(atoms[0].left.path, STR(""));
    CHECK_STR(atoms[0].right, STR("long"));
    CHECK_STR(atoms[0].text, STR("$build.app.output == 'long'"));
    CHECK_INT(atoms[0].offset, 1);
    CHECK_STR(atoms[1].operator_text, STR(">"));
    CHECK_STR(atoms[1].left.path, STR("count"));
    CHECK(!atoms[1].or_before);
    CHECK(atoms[2].or_before);
    CHECK_STR(atoms[2].right, STR("a && b"));
    bool result = false;
    const struct when_step *trace = NULL;
    CHECK_OK(when_eval(when, &scope, &arena, &result, &trace, &err), &err);
    CHECK(result);
    CHECK(trace[0].result && trace[0].atom == &atoms[0]);
    CHECK_STR(trace[0].left, STR("long"));
    CHECK(!trace[1].result);
    CHECK_STR(trace[1].left, STR("12"));
    CHECK(trace[2].result);
    CHECK_STR(trace[2].left, STR(""));
}

static void length_is_bounded(void)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 257; i++) buf_text(&text, i ? " && $n.output == 7" : "$n.output == 7");
    struct error err = {0};
    const struct when *when = NULL;
    CHECK_INT(when_parse(buf_str(&text), &scope, &arena, &when, &err), E_INVALID);
    CHECK(strstr(err.message, "256"));
    buf_release(&text);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(conditions_have_these_values),
        TEST(trouble_is_located),
        TEST(missing_values_are_errors_wherever_they_stand),
        TEST(atoms_and_trace_tell_how_it_came_out),
        TEST(length_is_bounded),
    };
    arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
    int status = test_main("expr_when", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return status;
}
