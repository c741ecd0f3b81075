#include "cli/help.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/help_text.h"
#include "term/text.h"

#include "doc/doc.h"
#include "view/query.h"

#include <ctype.h>
#include <string.h>

enum { NAME_COLUMN = 15, FLAG_COLUMN = 26, COLUMNS_MAX = 100 };

static size_t columns_of(const struct cli *cli)
{
    return cli->io.out.columns < COLUMNS_MAX ? cli->io.out.columns : COLUMNS_MAX;
}

static void heading(struct cli *cli, struct buf *out, const char *text)
{
    tone_text(out, &cli->io.out, TONE_BOLD, text);
    buf_byte(out, '\n');
}

static int finish(struct cli *cli, struct buf *out)
{
    cli_print(cli, out);
    buf_release(out);
    return EXIT_OK;
}

// "name", padded, and its explanation wrapped beside it.
static void entry(struct cli *cli, struct buf *out, const char *name, size_t column, const char *text)
{
    struct buf wrapped SCOPED(buf_release) = buf_of(1 << 20);
    size_t width = text_width(str_from(name)) + 2;
    buf_printf(out, "  %s", name);
    text_wrap(&wrapped, str_from(text), column, columns_of(cli));
    if (width + 2 > column)
        buf_byte(out, '\n');
    else
        text_pad(out, width, column);
    buf_text(out, wrapped.ptr + (width + 2 > column ? 0 : column));
}

int help_overview(struct cli *cli)
{
    struct buf out = buf_of(1 << 20);
    buf_text(&out,
             "cairn: a durable workflow engine. Every step is recorded before it counts; kill it at any moment and\n"
             "it goes on where it stopped.\n\n");
    const char *topic = "";
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);
        if (!command->topic[0]) continue;
        if (strcmp(topic, command->topic) != 0) {
            buf_text(&out, i ? "\n" : "");
            heading(cli, &out, command->topic);
            topic = command->topic;
        }
        entry(cli, &out, command->name, NAME_COLUMN + 2, command->summary);
    }
    buf_text(&out, "\nStart here:  cairn new hello     More:  cairn help COMMAND, cairn help exit-codes\n");
    return finish(cli, &out);
}

void flag_words(enum flag flag, const char *choices, struct buf *name, struct buf *words)
{
    const struct flag_info *info = flag_info(flag);
    if (info->letter) buf_printf(name, "-%c, ", info->letter);
    buf_printf(name, "--%s%s%s", info->name, info->value ? " " : "", info->value ? info->value : "");
    buf_text(words, info->help);
    if (choices && choices[0]) buf_printf(words, ": %s", choices);
}

static void flag_entry(struct cli *cli, struct buf *out, enum flag flag, const char *choices)
{
    struct buf name SCOPED(buf_release) = buf_of(256);
    struct buf text SCOPED(buf_release) = buf_of(4096);
    flag_words(flag, choices, &name, &text);
    entry(cli, out, name.ptr, FLAG_COLUMN, text.ptr);
}

// The parts of a section that are of one kind, with an empty line between paragraphs. Returns how many there are.
static size_t write_parts(struct cli *cli, struct buf *out, struct str section, enum help_kind kind)
{
    struct help_part part;
    size_t count = 0;
    while (help_next(&section, &cli->io.arena, &part)) {
        if (part.kind != kind) continue;
        if (kind == HELP_EXAMPLE) {
            buf_printf(out, "  %s\n", part.text);
        } else {
            if (count > 0) buf_byte(out, '\n');
            text_wrap(out, str_from(part.text), 0, columns_of(cli));
        }
        count++;
    }
    return count;
}

int help_command(struct cli *cli, const struct command *command)
{
    struct str section = help_section(str_from(command->name));
    struct buf out = buf_of(1 << 20);
    buf_printf(&out, "cairn %s: %s\n\n", command->name, command->summary);
    heading(cli, &out, "Usage");
    buf_printf(&out, "  cairn %s%s%s%s\n", command->name, command->synopsis[0] ? " " : "", command->synopsis,
               command->flags[0] ? " [flags]" : "");
    buf_byte(&out, '\n');
    bool about = write_parts(cli, &out, section, HELP_PARAGRAPH) > 0;
    if (command->flags[0]) {
        if (about) buf_byte(&out, '\n');
        heading(cli, &out, "Flags");
    }
    for (size_t i = 0; i < ARRAY_COUNT(command->flags) && command->flags[i]; i++) {
        enum flag flag = command->flags[i];
        flag_entry(cli, &out, flag, flag == FLAG_OUTPUT ? command->formats : flag_info(flag)->choices);
    }
    if (about || command->flags[0]) buf_byte(&out, '\n');
    heading(cli, &out, "Everywhere");
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (flag_is_global((enum flag)i) && i != FLAG_VERSION)
            flag_entry(cli, &out, (enum flag)i, flag_info((enum flag)i)->choices);
    buf_byte(&out, '\n');
    heading(cli, &out, "Examples");
    write_parts(cli, &out, section, HELP_EXAMPLE);
    return finish(cli, &out);
}

// ---- topics: what their section says, then rows from the table that they are about
enum { TOPIC_COLUMN = 16 };

static void more_exit_codes(struct cli *cli, struct buf *out)
{
#define X(name, number, meaning) entry(cli, out, #number, 8, meaning);
    EXIT_LIST(X)
#undef X
}

static void more_settings(struct cli *cli, struct buf *out)
{
    for (size_t i = 0; setting_at(i); i++) entry(cli, out, setting_at(i)->name, TOPIC_COLUMN, setting_at(i)->what);
}

static void more_query_fields(struct cli *cli, struct buf *out)
{
    for (size_t i = 0; query_field_at(i); i++) {
        const struct query_field_info *info = query_field_at(i);
        size_t len = strlen(info->name);
        const char *name = info->name[len - 1] == '.' ? cli_format(cli, "%sNAME", info->name) : info->name;
        entry(cli, out, name, TOPIC_COLUMN, cli_format(cli, "%s (%s)", info->about, info->values));
    }
}

static void more_errors(struct cli *cli, struct buf *out)
{
    for (size_t i = 0; diagnostic_info_at(i); i++)
        entry(cli, out, diagnostic_info_at(i)->id, 9, diagnostic_info_at(i)->title);
}

static void more_problems(struct cli *cli, struct buf *out)
{
    struct help_cursor cursor = {0};
    struct str name, section, prefix = STR("problem ");
    (void)cli;
    while (help_each(&cursor, &name, &section))
        if (str_starts(name, prefix)) buf_printf(out, "  %.*s\n", STR_ARG(str_slice(name, prefix.len, name.len)));
}

static const struct {
    const char *name;
    size_t column; // of the texts of its rows
    void (*more)(struct cli *cli, struct buf *out);
} topics[] = {
    {"exit-codes", 0, more_exit_codes}, {"formats", 12, NULL},           {"environment", FLAG_COLUMN, NULL},
    {"targets", TOPIC_COLUMN, NULL},    {"query", 0, more_query_fields}, {"errors", 0, more_errors},
    {"config", 0, more_settings},       {"problems", 0, more_problems},  {"schedules", FLAG_COLUMN, NULL},
};

static int help_topic(struct cli *cli, size_t index)
{
    struct str section = help_section(str_from(topics[index].name));
    struct help_part part;
    enum help_kind before = HELP_HEADING;
    struct buf out = buf_of(1 << 20);
    for (; help_next(&section, &cli->io.arena, &part); before = part.kind) {
        if (part.kind != HELP_ROW && before != HELP_HEADING) buf_byte(&out, '\n');
        if (part.kind == HELP_HEADING) heading(cli, &out, part.text);
        if (part.kind == HELP_ROW) entry(cli, &out, part.name, topics[index].column, part.text);
        if (part.kind == HELP_PARAGRAPH) text_wrap(&out, str_from(part.text), 0, columns_of(cli));
    }
    if (topics[index].more) topics[index].more(cli, &out);
    return finish(cli, &out);
}

static int explain(struct cli *cli, const struct diagnostic_info *info)
{
    struct buf out = buf_of(1 << 20);
    buf_printf(&out, "%s: %s\n\n", info->id, info->title);
    text_wrap(&out, str_from(info->explanation), 0, columns_of(cli));
    return finish(cli, &out);
}

// The section of a code of problems, in any case, with or without its urn; empty: there is no such code.
static struct str find_problem(struct cli *cli, struct str word, const char **code)
{
    struct str urn = STR("urn:cairn:problem:");
    char text[64];
    if (str_starts(word, urn)) word = str_slice(word, urn.len, word.len);
    if (word.len == 0 || word.len >= sizeof(text)) return (struct str){0};
    for (size_t i = 0; i < word.len; i++) text[i] = (char)toupper((unsigned char)word.ptr[i]);
    *code = cli_format(cli, "%.*s", (int)word.len, text);
    return help_section(str_from(cli_format(cli, "problem %s", *code)));
}

static int explain_problem(struct cli *cli, const char *code, struct str section)
{
    struct buf out = buf_of(1 << 16);
    buf_printf(&out, "%s\n\n", code);
    write_parts(cli, &out, section, HELP_PARAGRAPH);
    return finish(cli, &out);
}

static const struct diagnostic_info *find_code(struct str word)
{
    char id[8];
    if (word.len == 0 || word.len >= sizeof(id)) return NULL;
    for (size_t i = 0; i < word.len; i++) id[i] = (char)toupper((unsigned char)word.ptr[i]);
    id[word.len] = '\0';
    return diagnostic_info(id);
}

static int unknown_topic(struct cli *cli, struct str word)
{
    const char *names[COMMAND_MAX];
    size_t count = 0;
    for (size_t i = 0; command_at(i) && count < ARRAY_COUNT(names); i++) names[count++] = command_at(i)->name;
    for (size_t i = 0; i < ARRAY_COUNT(topics) && count < ARRAY_COUNT(names); i++) names[count++] = topics[i].name;
    const char *near = nearest_name(word, names, count);
    cli_fail(cli, EXIT_USAGE, "no help on %.*s", STR_ARG(word));
    if (near)
        cli_hint(cli, "did you mean `cairn help %s`?", near);
    else
        cli_hint(cli, "topics: exit-codes, formats, environment, targets, query, config, errors, problems; or a "
                      "command, or a code like E0203 or RUN_TERMINAL");
    return EXIT_USAGE;
}

// The commands that begin with one word: `cairn help log`.
static bool help_noun(struct cli *cli, struct str noun)
{
    struct str second;
    struct buf out = buf_of(1 << 20);
    for (size_t i = 0; command_at(i); i++)
        if (str_eq(str_cut(str_from(command_at(i)->name), ' ', &second), noun) && second.len > 0)
            entry(cli, &out, command_at(i)->name, NAME_COLUMN + 2, command_at(i)->summary);
    bool found = out.len > 0;
    finish(cli, &out);
    return found;
}

int command_help(struct cli *cli)
{
    if (cli->args.word_count == 0) return help_overview(cli);
    struct str word = cli->args.words[0];
    if (cli->args.word_count == 2)
        word = str_from(cli_format(cli, "%s %s", cli->args.words[0].ptr, cli->args.words[1].ptr));
    if (command_find(word)) return help_command(cli, command_find(word));
    for (size_t i = 0; i < ARRAY_COUNT(topics); i++)
        if (str_is(word, topics[i].name)) return help_topic(cli, i);
    if (help_noun(cli, word)) return EXIT_OK;
    const struct diagnostic_info *info = find_code(word);
    const char *code = "";
    struct str problem = find_problem(cli, word, &code);
    if (problem.len > 0) return explain_problem(cli, code, problem);
    return info ? explain(cli, info) : unknown_topic(cli, word);
}
