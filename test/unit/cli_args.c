// The table of commands, and words and flags against it.
#include "harness/test.h"

#include "cli/args.h"
#include "cli/help_text.h"
#include "term/text.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

// Parses "cairn LINE", words apart by blanks.
static int parse(struct args *args, const char *line)
{
    static char text[512];
    static char *words[32];
    int count = 0;
    arena_init(&arena, 4096, 1 << 20);
    snprintf(text, sizeof(text), "cairn %s", line);
    for (char *at = text; *at;) {
        words[count++] = at;
        at += strcspn(at, " ");
        while (*at == ' ') *at++ = '\0';
    }
    return args_parse(args, count, words, &arena);
}

static void values_come_in_every_spelling(void)
{
    static const char *const lines[] = {"ls -o json",       "ls -ojson",  "ls -o=json",      "ls --output json",
                                        "ls --output=json", "-o json ls", "--output=json ls"};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct args args;
        CHECK_INT(parse(&args, lines[i]), EXIT_OK);
        CHECK_TEXT(args.command->name, "ls");
        CHECK_STR(args_text(&args, FLAG_OUTPUT, ""), STR("json"));
        arena_release(&arena);
    }
}

static void flags_repeat_and_the_last_wins(void)
{
    struct args args;
    struct str value;
    size_t cursor = 0;
    CHECK_INT(parse(&args, "run f -vv --set a=1 -q --set b=2 --run-id x --run-id y"), EXIT_OK);
    CHECK_INT(args_count(&args, FLAG_VERBOSE), 2);
    CHECK(args_has(&args, FLAG_QUIET));
    CHECK_STR(args_text(&args, FLAG_RUN_ID, ""), STR("y"));
    CHECK(args_next(&args, FLAG_SET, &cursor, &value));
    CHECK_STR(value, STR("a=1"));
    CHECK(args_next(&args, FLAG_SET, &cursor, &value));
    CHECK_STR(value, STR("b=2"));
    CHECK(!args_next(&args, FLAG_SET, &cursor, &value));
    arena_release(&arena);
}

static void words_after_two_dashes_are_left_alone(void)
{
    struct args args;
    CHECK_INT(parse(&args, "run f -- --store x -q"), EXIT_OK);
    CHECK_INT(args.word_count, 1);
    CHECK_INT(args.rest_count, 3);
    CHECK(!args_has(&args, FLAG_STORE));
    arena_release(&arena);
}

static void two_words_are_one_command(void)
{
    struct args args;
    CHECK_INT(parse(&args, "log verify --all"), EXIT_OK);
    CHECK_TEXT(args.command->name, "log verify");
    arena_release(&arena);
}

static void a_dash_is_a_word(void)
{
    struct args args;
    CHECK_INT(parse(&args, "run -"), EXIT_OK);
    CHECK_STR(args.words[0], STR("-"));
    arena_release(&arena);
}

static void wrong_lines_are_usage_errors(void)
{
    static const char *const lines[] = {
        "nonsense",    "ls --nonsense", "run",           "version extra", "log",         "ls -o", "ls -o xml",
        "run f --set", "ls --all=1",    "ls --run-id x", "run f --color", "log nothing", "ls -x", "run f --color blue"};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct args args;
        CHECK_INT(parse(&args, lines[i]), EXIT_USAGE);
        CHECK(args.message.len > 0);
        arena_release(&arena);
    }
}

static void help_wins_over_missing_words(void)
{
    struct args args;
    CHECK_INT(parse(&args, "run --help"), EXIT_OK);
    CHECK(args_has(&args, FLAG_HELP));
    arena_release(&arena);
}

static void near_names_are_found_and_far_ones_not(void)
{
    static const char *const names[] = {"run", "recover", "resume", "retry", "reject"};
    CHECK_TEXT(nearest_name(STR("rnu"), names, ARRAY_COUNT(names)), "run");
    CHECK_TEXT(nearest_name(STR("recovr"), names, ARRAY_COUNT(names)), "recover");
    CHECK_TEXT(nearest_name(STR("rejct"), names, ARRAY_COUNT(names)), "reject");
    CHECK(nearest_name(STR("deploy"), names, ARRAY_COUNT(names)) == NULL);
}

static void the_table_is_sound(void)
{
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);
        CHECK(command->run != NULL && command->summary[0]);
        CHECK(command_find(str_from(command->name)) == command);
        CHECK(command_takes(command, FLAG_OUTPUT) == (command->formats != NULL));
        CHECK(command->word_min <= command->word_max);
        for (size_t k = 0; k < ARRAY_COUNT(command->flags) && command->flags[k]; k++)
            CHECK(!flag_is_global(command->flags[k]));
    }
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        for (size_t k = i + 1; k < FLAG_COUNT; k++) {
            const struct flag_info *a = flag_info((enum flag)i), *b = flag_info((enum flag)k);
            CHECK(strcmp(a->name, b->name) != 0);
            CHECK(a->letter == 0 || a->letter != b->letter);
        }
}

static void every_command_has_a_section_of_help_with_an_example(void)
{
    for (size_t i = 0; command_at(i); i++) {
        struct str section = help_section(str_from(command_at(i)->name));
        struct help_part part;
        size_t examples = 0;
        arena_init(&arena, 4096, 1 << 20);
        while (help_next(&section, &arena, &part)) examples += part.kind == HELP_EXAMPLE;
        if (command_at(i)->topic[0] && examples == 0) CHECK_TEXT(command_at(i)->name, "a command with an example");
        arena_release(&arena);
    }
}

static void every_section_of_help_is_of_a_command_a_topic_or_a_problem(void)
{
    static const char *const topics[] = {"exit-codes", "formats", "environment", "targets",  "query",
                                         "config",     "errors",  "problems",    "schedules"};
    struct help_cursor cursor = {0};
    struct str name, section;
    size_t problems = 0;
    while (help_each(&cursor, &name, &section)) {
        bool known = command_find(name) != NULL;
        for (size_t i = 0; i < ARRAY_COUNT(topics); i++) known = known || str_is(name, topics[i]);
        problems += str_starts(name, STR("problem "));
        if (!known && !str_starts(name, STR("problem "))) CHECK_STR(name, STR("known"));
        CHECK(section.len > 0);
    }
    CHECK(problems > 50);
}

static void parts_of_help_are_told_apart_and_their_lines_joined(void)
{
    struct str section = STR("# Head\n- a, b: one\n  two: three\n\nfirst\nsecond\n\n$ cairn ls\n");
    struct help_part part;
    arena_init(&arena, 4096, 1 << 20);
    CHECK(help_next(&section, &arena, &part) && part.kind == HELP_HEADING);
    CHECK_TEXT(part.text, "Head");
    CHECK(help_next(&section, &arena, &part) && part.kind == HELP_ROW);
    CHECK_TEXT(part.name, "a, b");
    CHECK_TEXT(part.text, "one two: three");
    CHECK(help_next(&section, &arena, &part) && part.kind == HELP_PARAGRAPH);
    CHECK_TEXT(part.text, "first second");
    CHECK(help_next(&section, &arena, &part) && part.kind == HELP_EXAMPLE);
    CHECK_TEXT(part.text, "cairn ls");
    CHECK(!help_next(&section, &arena, &part));
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(values_come_in_every_spelling),
        TEST(flags_repeat_and_the_last_wins),
        TEST(words_after_two_dashes_are_left_alone),
        TEST(two_words_are_one_command),
        TEST(a_dash_is_a_word),
        TEST(wrong_lines_are_usage_errors),
        TEST(help_wins_over_missing_words),
        TEST(near_names_are_found_and_far_ones_not),
        TEST(the_table_is_sound),
        TEST(every_command_has_a_section_of_help_with_an_example),
        TEST(every_section_of_help_is_of_a_command_a_topic_or_a_problem),
        TEST(parts_of_help_are_told_apart_and_their_lines_joined),
    };
    return test_main("cli_args", tests, ARRAY_COUNT(tests), argc, argv);
}
