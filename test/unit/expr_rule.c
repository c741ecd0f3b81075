// Trigger rules: every rule over every combination of one to three parents. The table is a golden file, and the same lines
// stand in docs/format/trigger-rules.md.
#include "expr/expr.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum trigger_rule rules[] = {
#define X(name, text) RULE_##name,
    TRIGGER_RULE_LIST(X)
#undef X
};

// "S F K": success, failed, skipped; one row for each multiset of up to three parents.
static void table(struct buf *out)
{
    buf_text(out, "| parents |");
    for (size_t r = 0; r < ARRAY_COUNT(rules); r++) buf_printf(out, " %s |", rule_name(rules[r]));
    buf_text(out, "\n|---|");
    for (size_t r = 0; r < ARRAY_COUNT(rules); r++) buf_text(out, "---|");
    buf_text(out, "\n");
    for (uint32_t count = 1; count <= 3; count++) {
        for (uint32_t success = count + 1; success-- > 0;) {
            for (uint32_t failed = count - success + 1; failed-- > 0;) {
                uint32_t skipped = count - success - failed;
                char parents[8] = "";
                strncat(parents, "SSS", success);
                strncat(parents, "FFF", failed);
                strncat(parents, "KKK", skipped);
                buf_printf(out, "| %s |", parents);
                for (size_t r = 0; r < ARRAY_COUNT(rules); r++)
                    buf_printf(out, " %s |", rule_passes(rules[r], success, failed, skipped) ? "run" : "-");
                buf_text(out, "\n");
            }
        }
    }
}

static void every_rule_over_every_combination(void)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    table(&out);
    CHECK(buf_ok(&out));
    test_golden("trigger-rules.txt", buf_str(&out));
    buf_release(&out);
}

// All ordered combinations, not only multisets: the definitions, spelled out a second time.
static void definitions_hold(void)
{
    for (uint32_t count = 1; count <= 3; count++) {
        uint32_t combinations = count == 1 ? 3 : count == 2 ? 9 : 27;
        for (uint32_t c = 0; c < combinations; c++) {
            uint32_t n[3] = {0};
            for (uint32_t i = 0, rest = c; i < count; i++, rest /= 3) n[rest % 3]++;
            uint32_t s = n[0], f = n[1], k = n[2];
            CHECK(rule_passes(RULE_ALL_SUCCESS, s, f, k) == (s == count));
            CHECK(rule_passes(RULE_ONE_SUCCESS, s, f, k) == (s >= 1));
            CHECK(rule_passes(RULE_NONE_FAILED_MIN_ONE_SUCCESS, s, f, k) == (f == 0 && s >= 1));
            CHECK(rule_passes(RULE_ALL_DONE, s, f, k));
            CHECK(rule_passes(RULE_ALL_FAILED, s, f, k) == (f == count));
            CHECK(rule_passes(RULE_ONE_FAILED, s, f, k) == (f >= 1));
            CHECK(rule_passes(RULE_NONE_FAILED, s, f, k) == (f == 0));
            CHECK(rule_passes(RULE_NONE_SKIPPED, s, f, k) == (k == 0));
            CHECK(rule_passes(RULE_ONE_DONE, s, f, k) == (s + f >= 1));
            CHECK(rule_passes(RULE_ALL_SKIPPED, s, f, k) == (k == count));
            CHECK(rule_passes(RULE_ALL_DONE_MIN_ONE_SUCCESS, s, f, k) == (s >= 1));
            CHECK(rule_passes(RULE_ALWAYS, s, f, k));
        }
    }
}

static void without_parents_every_rule_passes(void)
{
    for (size_t r = 0; r < ARRAY_COUNT(rules); r++) CHECK(rule_passes(rules[r], 0, 0, 0));
}

static void names_read_back(void)
{
    for (size_t r = 0; r < ARRAY_COUNT(rules); r++) CHECK(rule_parse(str_from(rule_name(rules[r]))) == rules[r]);
    CHECK(rule_parse(STR("none_failed_or_skipped")) == RULE_NONE_FAILED_MIN_ONE_SUCCESS);
    CHECK(rule_parse(STR("dummy")) == RULE_ALWAYS);
    CHECK(rule_parse(STR("ALL_SUCCESS")) == RULE_NONE);
    CHECK(rule_parse(STR("all_success ")) == RULE_NONE);
    CHECK(rule_parse(STR("")) == RULE_NONE);
}

static void the_document_shows_the_table(void)
{
    FILE *probe = fopen("docs/format/trigger-rules.md", "r");
    if (!probe) test_skip("not run from the root of the repository");
    fclose(probe);
    struct str document = test_read_file("docs/format/trigger-rules.md");
    struct buf out;
    buf_init(&out, 1 << 16);
    table(&out);
    struct str rest = buf_str(&out);
    while (rest.len) {
        char line[512];
        struct str row = str_cut(rest, '\n', &rest);
        snprintf(line, sizeof(line), "%.*s\n", STR_ARG(row));
        if (!strstr(document.ptr, line))
            test_fail(__FILE__, __LINE__, "docs/format/trigger-rules.md lacks the line %s", line);
    }
    buf_release(&out);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_rule_over_every_combination), TEST(definitions_hold),
        TEST(without_parents_every_rule_passes), TEST(names_read_back),
        TEST(the_document_shows_the_table),
    };
    return test_main("expr_rule", tests, ARRAY_COUNT(tests), argc, argv);
}
