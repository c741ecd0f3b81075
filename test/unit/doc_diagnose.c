// How a mistake is shown: the place under the source line with tabs, UTF-8 and long lines, and that nothing a document
// says can reach the terminal as a control sequence.
#include "doc/doc.h"
#include "harness/test.h"

#include <string.h>

static struct arena arena;
static struct diagnostics diagnostics;

static void start(void)
{
    arena_release(&arena);
    arena_init(&arena, 4096, 1 << 20);
    diagnostics_init(&diagnostics, &arena);
}

static void check_shown(struct str text, uint32_t line, uint32_t column, uint32_t width, const char *hint,
                        const char *want)
{
    start();
    struct diagnostic *d = diagnose(&diagnostics, SEVERITY_ERROR, "E0203", "", STR("f.yaml"), line, column, width,
                                    "unknown field \"%s\"", "x");
    if (hint) diagnostic_hint(&diagnostics, d, "%s", hint);
    struct buf out;
    buf_init(&out, 1 << 16);
    diagnostic_write(&out, d, text, false);
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
}

static void place_is_marked_under_the_line(void)
{
    check_shown(STR("a: 1\nnope: 2\n"), 2, 1, 4, "did you mean \"node\"?",
                "f.yaml:2:1: error[E0203] unknown field \"x\"\n"
                "    2 | nope: 2\n"
                "      | ^^^^\n"
                "  hint: did you mean \"node\"?\n");
}

static void width_stops_at_the_end_of_the_line(void)
{
    check_shown(STR("ab\r\n"), 1, 2, 99, NULL,
                "f.yaml:1:2: error[E0203] unknown field \"x\"\n"
                "    1 | ab\n"
                "      |  ^\n");
    check_shown(STR("ab"), 1, 3, 1, NULL,
                "f.yaml:1:3: error[E0203] unknown field \"x\"\n"
                "    1 | ab\n"
                "      |   ^\n");
}

static void tabs_and_wide_characters_keep_the_mark_in_place(void)
{
    check_shown(STR("\tkey"), 1, 2, 3, NULL,
                "f.yaml:1:2: error[E0203] unknown field \"x\"\n"
                "    1 |     key\n"
                "      |     ^^^\n");
    // e with acute (one column), a CJK character (two), a combining accent (none).
    check_shown(STR("\u00e9\u4e2de\u0301 key"), 1, 10, 3, NULL,
                "f.yaml:1:10: error[E0203] unknown field \"x\"\n"
                "    1 | \u00e9\u4e2de\u0301 key\n"
                "      |      ^^^\n");
}

static void long_lines_are_cut_around_the_place(void)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (int i = 0; i < 3000; i++) buf_byte(&text, (char)('a' + i % 26));
    check_shown(buf_str(&text), 1, 2001, 3, NULL,
                "f.yaml:1:2001: error[E0203] unknown field \"x\"\n"
                "    1 | ...stuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabc"
                "defghijklmnopqrstuvwxyzabcdefg...\n"
                "      |                                    ^^^\n");
    buf_release(&text);
}

static void a_place_outside_of_the_text_shows_no_line(void)
{
    check_shown(STR("a"), 7, 1, 1, NULL, "f.yaml:7:1: error[E0203] unknown field \"x\"\n");
    check_shown(STR("a"), 0, 0, 1, NULL, "f.yaml: error[E0203] unknown field \"x\"\n");
}

static void control_characters_never_reach_the_terminal(void)
{
    start();
    struct diagnostic *d = diagnose(&diagnostics, SEVERITY_WARNING, "E0203", "", STR("a\033[2Jb"), 1, 1, 1,
                                    "bad \033]0;title\007 \n \xC2\x9B \xFF name");
    struct buf out;
    buf_init(&out, 1 << 16);
    diagnostic_write(&out, d, STR("x\033[31m\x7F\xFF\n"), false);
    CHECK_STR(buf_str(&out), STR("a?[2Jb:1:1: warning[E0203] bad ?]0;title? ? ?? ? name\n"
                                 "    1 | x?[31m??\n"
                                 "      | ^\n"));
    buf_release(&out);
}

static void colour_marks_severity_and_place(void)
{
    start();
    struct diagnostic *d = diagnose(&diagnostics, SEVERITY_ERROR, "E0203", "", STR("f"), 1, 2, 1, "m");
    struct buf out;
    buf_init(&out, 1 << 16);
    diagnostic_write(&out, d, STR("abc"), true);
    CHECK_STR(buf_str(&out), STR("\033[1mf:1:2: \033[0m\033[1;31merror[E0203]\033[0m m\n"
                                 "    1 | a\033[1mb\033[0mc\033[0m\n"
                                 "      |  \033[1;31m^\033[0m\n"));
    buf_release(&out);
}

static void sorting_keeps_files_together(void)
{
    static const struct {
        const char *file;
        uint32_t line, column;
    } given[] = {{"a", 9, 1}, {"b", 5, 1}, {"a", 2, 7}, {"b", 1, 1}, {"a", 2, 3}, {"a", 9, 1}};
    start();
    for (size_t i = 0; i < ARRAY_COUNT(given); i++)
        diagnose(&diagnostics, SEVERITY_ERROR, "E0203", "", str_from(given[i].file), given[i].line, given[i].column, 1,
                 "%zu", i);
    diagnostics_sort(&diagnostics);
    static const char order[] = "420531";
    for (size_t i = 0; i < ARRAY_COUNT(given); i++)
        CHECK_STR(diagnostics.items[i].message, str_slice(str_from(order), i, i + 1));
}

static void further_ones_are_counted_not_kept(void)
{
    start();
    diagnostics.count_max = 3;
    for (int i = 0; i < 10; i++) {
        struct diagnostic *d =
            diagnose(&diagnostics, i % 2 ? SEVERITY_WARNING : SEVERITY_ERROR, "E0203", "", STR("f"), 1, 1, 1, "m");
        CHECK((d != NULL) == (i < 3));
        diagnostic_hint(&diagnostics, d, "h");
    }
    CHECK_INT(diagnostics.count, 3);
    CHECK_INT(diagnostics.error_count, 5);
    CHECK_INT(diagnostics.warning_count, 5);
    CHECK(!diagnostics.failed);
}

static void memory_failure_is_remembered(void)
{
    start();
    arena.fail_in = 1;
    arena.fail_sticky = true;
    CHECK(!diagnose(&diagnostics, SEVERITY_ERROR, "E0203", "", STR("f"), 1, 1, 1, "m"));
    CHECK(diagnostics.failed);
    CHECK_INT(diagnostics.error_count, 1);
}

static void every_id_is_explained_once(void)
{
    for (size_t i = 0; diagnostic_info_at(i); i++) {
        const struct diagnostic_info *info = diagnostic_info_at(i);
        CHECK(diagnostic_info(info->id) == info);
        CHECK(strlen(info->id) == 5 && info->id[0] == 'E');
        CHECK(strlen(info->title) > 5);
        CHECK(strlen(info->explanation) > 15);
        if (i > 0) CHECK(strcmp(diagnostic_info_at(i - 1)->id, info->id) < 0);
    }
    CHECK(!diagnostic_info("E9999"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(place_is_marked_under_the_line),
        TEST(width_stops_at_the_end_of_the_line),
        TEST(tabs_and_wide_characters_keep_the_mark_in_place),
        TEST(long_lines_are_cut_around_the_place),
        TEST(a_place_outside_of_the_text_shows_no_line),
        TEST(control_characters_never_reach_the_terminal),
        TEST(colour_marks_severity_and_place),
        TEST(sorting_keeps_files_together),
        TEST(further_ones_are_counted_not_kept),
        TEST(memory_failure_is_remembered),
        TEST(every_id_is_explained_once),
    };
    return test_main("doc_diagnose", tests, ARRAY_COUNT(tests), argc, argv);
}
