// Held against Jinja2 itself: test/unit/support/template_cases.py makes templates from a seed, renders them with Jinja2 and
// prints a case a line; here they are rendered again. Whatever differs is a failure unless docs/format/template.md lists it,
// in which case the generator does not make it.
#include "harness/test.h"
#include "template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    int cases, differ, beyond;
};

static enum code lookup(void *context, struct str name, struct json *out, struct error *err)
{
    const struct json *found = json_get(context, name);
    (void)err;
    if (found) *out = *found;
    return OK;
}

static bool agrees(const struct json *want, enum code rc, const struct json *got)
{
    if (!want) return rc != OK; // Jinja2 raised an error
    if (rc) return false;
    double unused;
    bool numbers = json_double(want, &unused) && json_double(got, &unused);
    return numbers ? json_equal(want, got) : want->type == got->type && json_equal(want, got);
}

static void check_case(struct str line, struct tally *tally)
{
    struct arena arena;
    struct json cases, got = json_null();
    struct error err = {0};
    const struct template *t = NULL;
    arena_init(&arena, 64 * 1024, 256 * 1024 * 1024);
    CHECK_OK(json_parse(line, NULL, &arena, &cases, &err), &err);
    const struct json *text = json_key(&cases, "template"), *want = json_key(&cases, "want");
    struct template_scope scope = {.context = (void *)(uintptr_t)json_key(&cases, "vars"), .lookup = lookup};
    bool expression = json_key(&cases, "expression");
    enum code rc = expression ? template_expression(json_text(text), &arena, &t, &err)
                              : template_compile(json_text(text), &arena, &t, &err);
    if (!rc) rc = template_render(t, &scope, NULL, &arena, &got, &err);
    tally->cases++;
    // Listed: integers have at most 4300 digits, and numbers are finite.
    bool beyond =
        rc == E_LIMIT && (strstr(err.message, "more than 4300 digits") || strstr(err.message, "not a finite number"));
    tally->beyond += beyond;
    if (!beyond && !agrees(want, rc, &got)) {
        struct buf shown;
        buf_init(&shown, 1 << 20);
        json_write(&shown, &got);
        buf_text(&shown, "   Jinja2: ");
        if (want) json_write(&shown, want);
        fprintf(stderr, "%.*s\n  here: %s %s\n%s%.*s\n", STR_ARG(json_text(text)), rc ? err.message : "",
                buf_str(&shown).ptr, want ? "" : "  error of Jinja2: ", STR_ARG(json_text(json_key(&cases, "error"))));
        buf_release(&shown);
        tally->differ++;
    }
    arena_release(&arena);
}

static void run_cases(const char *arguments)
{
    char command[512];
    char *line = NULL;
    size_t capacity = 0;
    struct tally tally = {0};
    snprintf(command, sizeof(command), "python3 test/unit/support/template_cases.py %s", arguments);
    FILE *out = popen(command, "r");
    CHECK(out != NULL);
    for (ssize_t len; (len = getline(&line, &capacity, out)) > 0;)
        check_case((struct str){line, (size_t)len - 1}, &tally);
    free(line);
    int status = pclose(out);
    if (status == 77 << 8) test_skip("no python3-jinja2");
    CHECK_INT(status, 0);
    fprintf(stderr, "%d cases, %d differ, %d beyond the limits\n", tally.cases, tally.differ, tally.beyond);
    CHECK(tally.cases > 0);
    CHECK_INT(tally.differ, 0);
    CHECK(tally.beyond < tally.cases / 10);
}

static void expressions_are_those_of_jinja2(void)
{
    const char *seed = getenv("CAIRN_SEED");
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "expressions %.20s 4000", seed ? seed : "1");
    run_cases(arguments);
}

static void templates_are_those_of_jinja2(void)
{
    const char *seed = getenv("CAIRN_SEED");
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "templates %.20s 1500", seed ? seed : "1");
    run_cases(arguments);
}

static void known_cases_are_those_of_jinja2(void)
{
    run_cases("known");
}

static void corpus_templates_are_those_of_jinja2(void)
{
    const char *corpus = test_corpus_dir();
    char arguments[400];
    if (!corpus) test_skip("no corpus");
    snprintf(arguments, sizeof(arguments), "corpus %s/playbooks", corpus);
    run_cases(arguments);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(expressions_are_those_of_jinja2),
        TEST(templates_are_those_of_jinja2),
        TEST(known_cases_are_those_of_jinja2),
        TEST(corpus_templates_are_those_of_jinja2),
    };
    return test_main("template_jinja", tests, ARRAY_COUNT(tests), argc, argv);
}
