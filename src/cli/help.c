#include "cli/help.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/problems.h"
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
    struct buf wrapped;
    buf_init(&wrapped, 1 << 20);
    size_t width = text_width(str_from(name)) + 2;
    buf_printf(out, "  %s", name);
    text_wrap(&wrapped, str_from(text), column, columns_of(cli));
    if (width + 2 > column)
        buf_byte(out, '\n');
    else
        text_pad(out, width, column);
    buf_text(out, wrapped.ptr + (width + 2 > column ? 0 : column));
    buf_release(&wrapped);
}

int help_overview(struct cli *cli)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    buf_text(&out,
             "cairn: a durable workflow engine. Every step is recorded before it counts; kill it at any moment and\n"
             "it goes on where it stopped.\n\n");
    const char *group = "";
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);
        if (!command->group[0]) continue;
        if (strcmp(group, command->group) != 0) {
            buf_text(&out, i ? "\n" : "");
            heading(cli, &out, command->group);
            group = command->group;
        }
        entry(cli, &out, command->name, NAME_COLUMN + 2, command->summary);
    }
    buf_text(&out, "\nStart here:  cairn new hello     More:  cairn help COMMAND, cairn help exit-codes\n");
    return finish(cli, &out);
}

static void flag_entry(struct cli *cli, struct buf *out, enum flag flag, const char *choices)
{
    const struct flag_info *info = flag_info(flag);
    struct buf name, text;
    buf_init(&name, 256);
    buf_init(&text, 4096);
    if (info->letter) buf_printf(&name, "-%c, ", info->letter);
    buf_printf(&name, "--%s%s%s", info->name, info->value ? " " : "", info->value ? info->value : "");
    buf_text(&text, info->help);
    if (choices && choices[0]) buf_printf(&text, ": %s", choices);
    entry(cli, out, name.ptr, FLAG_COLUMN, text.ptr);
    buf_release(&name);
    buf_release(&text);
}

int help_command(struct cli *cli, const struct command *command)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    buf_printf(&out, "cairn %s: %s\n\n", command->name, command->summary);
    heading(cli, &out, "Usage");
    buf_printf(&out, "  cairn %s%s%s%s\n", command->name, command->synopsis[0] ? " " : "", command->synopsis,
               command->flags[0] ? " [flags]" : "");
    if (command->about[0]) {
        buf_byte(&out, '\n');
        text_wrap(&out, str_from(command->about), 0, columns_of(cli));
    }
    if (command->flags[0]) {
        buf_byte(&out, '\n');
        heading(cli, &out, "Flags");
    }
    for (size_t i = 0; i < ARRAY_COUNT(command->flags) && command->flags[i]; i++) {
        enum flag flag = command->flags[i];
        flag_entry(cli, &out, flag, flag == FLAG_OUTPUT ? command->formats : flag_info(flag)->choices);
    }
    buf_byte(&out, '\n');
    heading(cli, &out, "Everywhere");
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (flag_is_global((enum flag)i) && i != FLAG_VERSION)
            flag_entry(cli, &out, (enum flag)i, flag_info((enum flag)i)->choices);
    buf_byte(&out, '\n');
    heading(cli, &out, "Examples");
    struct str rest = str_from(command->examples);
    while (rest.len > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        buf_printf(&out, "  %.*s\n", STR_ARG(line));
    }
    return finish(cli, &out);
}

// ---- topics whose rows are also sections of the manual page
static const struct help_row exit_rows[] = {
#define X(name, number, meaning) {#number, meaning},
    EXIT_LIST(X)
#undef X
};

static void rows(struct cli *cli, struct buf *out, const struct help_row *items, size_t count, size_t column)
{
    for (size_t i = 0; i < count; i++) entry(cli, out, items[i].name, column, items[i].text);
}

static void topic_exit_codes(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Exit codes");
    rows(cli, out, exit_rows, ARRAY_COUNT(exit_rows), 8);
}

static void topic_formats(struct cli *cli, struct buf *out)
{
    static const char *const rows[][2] = {
        {"table", "aligned columns; the default on a terminal"},
        {"wide", "all columns, nothing cut"},
        {"tsv",
         "tab-separated with a header; the default when stdout is not a terminal. Control characters are escaped"},
        {"csv", "RFC 4180 with a header; texts that look like formulas get an apostrophe"},
        {"json", "one JSON array (lists) or object; times are RFC 3339 UTC, durations milliseconds"},
        {"jsonl", "one JSON object a line. `cairn events -o jsonl` prints the stored bytes unchanged"},
        {"yaml", "the same as YAML"},
        {"name", "ids only, one a line"},
        {"text", "for people (get, validate, plan, render, signals, log verify)"},
        {"svg, dot, mermaid, ascii", "pictures (graph)"},
    };
    heading(cli, out, "Output formats (-o)");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) entry(cli, out, rows[i][0], 12, rows[i][1]);
    buf_byte(out, '\n');
    text_wrap(
        out,
        STR("--fields a,b picks columns. --time relative|iso|unix is for tables; data is always RFC 3339. Data goes to "
            "stdout and talk to stderr. Colours: --color, then CLICOLOR_FORCE, NO_COLOR, TERM=dumb, then whether it "
            "is a terminal; every state has a glyph and a word besides."),
        0, columns_of(cli));
    buf_byte(out, '\n');
    heading(cli, out, "Progress (--progress)");
    static const char *const progress[][2] = {
        {"tree", "redrawn in place on stderr; the default on a terminal (not when CI is set)"},
        {"plain", "one line an event on stderr; the default otherwise"},
        {"json", "one CloudEvents object a line on stdout"},
        {"none", "nothing"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(progress); i++) entry(cli, out, progress[i][0], 12, progress[i][1]);
}

static const struct help_row environment_rows[] = {
    {"CAIRN_STORE, CAIRN_TENANT, ...", "settings: `cairn config list -o wide` names every variable"},
    {"CAIRN_PROFILE", "profile when --profile is absent"},
    {"CAIRN_LOG", "json: diagnostics on stderr are JSON, an object a line"},
    {"CAIRN_SERVER, CAIRN_TOKEN", "a server instead of a store, and the token for it"},
    {"XDG_CONFIG_HOME", "settings are in $XDG_CONFIG_HOME/cairn/config.toml, else below ~/.config"},
    {"XDG_STATE_HOME", "the default store is sqlite:$XDG_STATE_HOME/cairn/cairn.db, else below ~/.local/state"},
    {"NO_COLOR", "no colours when set and not empty"},
    {"CLICOLOR_FORCE", "colours even when not a terminal (wins over NO_COLOR)"},
    {"TERM", "dumb: no colours, no redrawing"},
    {"COLUMNS", "how wide text is when stdout is not a terminal"},
    {"CI", "plain progress instead of the tree"},
    {"CAIRN_NO_ANIMATION", "the same"},
    {"LC_ALL, LC_CTYPE, LANG", "not UTF-8: ASCII glyphs"},
    {"USER", "who sends signals, in decision records"},
};

static void topic_environment(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Environment");
    rows(cli, out, environment_rows, ARRAY_COUNT(environment_rows), FLAG_COLUMN);
    buf_byte(out, '\n');
    heading(cli, out, "What steps see");
    static const char *const steps[][2] = {
        {"CAIRN_RUN_ID", "id of the run"},
        {"CAIRN_STEP_ID", "id of the step"},
        {"CAIRN_ATTEMPT", "number of the attempt, counted by the retry policy"},
        {"CAIRN_ENGINE_ATTEMPT", "how often this attempt was begun; above 1 when a process died under it"},
        {"CAIRN_IDEMPOTENCY_KEY", "the same each time this attempt is begun: hand it to what the step calls"},
        {"TRACEPARENT", "W3C trace context of this attempt, see cairn help trace"},
        {"ARTIFACTS_DIR", "a directory of the run; files in it outlive the step"},
        {"WORKFLOW_ID", "id of the run, too"},
        {"ARGUMENTS", "what was given with --arguments or behind --"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) entry(cli, out, steps[i][0], FLAG_COLUMN, steps[i][1]);
}

static const struct help_row target_rows[] = {
    {"ID", "the whole id of a run"},
    {"PREFIX", "its first characters, at least 4, if no other run begins with them"},
    {"@last", "the newest run"},
    {"@last-failed", "the newest run that FAILED"},
    {"plan:NAME", "the newest run of a plan or workflow"},
    {"RUN/STEP", "a step: 3f2a/load, @last/loop[2].tick"},
    {"RUN/STEP#2", "its second attempt"},
    {"RUN@12", "the run right after event 12; also RUN/STEP@12"},
};

static void topic_targets(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Targets");
    rows(cli, out, target_rows, ARRAY_COUNT(target_rows), 16);
}

const struct help_row *help_rows(const char *topic, size_t *count)
{
    const struct help_row *out = strcmp(topic, "targets") == 0       ? target_rows
                                 : strcmp(topic, "environment") == 0 ? environment_rows
                                                                     : exit_rows;
    *count = out == target_rows        ? ARRAY_COUNT(target_rows)
             : out == environment_rows ? ARRAY_COUNT(environment_rows)
                                       : ARRAY_COUNT(exit_rows);
    return out;
}

static void topic_config(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Settings, from the strongest");
    text_wrap(
        out,
        STR("Flags; CAIRN_* variables; cairn.toml of the project (this directory and its parents, up to the root "
            "of the repository); $XDG_CONFIG_HOME/cairn/config.toml; /etc/cairn/config.toml; what is built in. In "
            "a file, [profile.NAME] is stronger than what stands above all tables; --profile, $CAIRN_PROFILE or "
            "default-profile choose one. A relative store path is meant from its file on."),
        0, columns_of(cli));
    buf_byte(out, '\n');
    heading(cli, out, "Names");
    for (size_t i = 0; setting_at(i); i++) entry(cli, out, setting_at(i)->name, 16, setting_at(i)->what);
}

static void topic_query(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Queries");
    text_wrap(
        out,
        STR("A query is a list of clauses, all of which must hold; `or`, `not` and parentheses do what they say. A "
            "clause is FIELD OPERATOR VALUE. Operators: = (with * and ?), != , ~ (holds the text, in any case), "
            "!~, and for times, durations and numbers < <= > >=. status=FAILED,CANCELLED, or status in "
            "(FAILED,CANCELLED), is any of them. Values "
            "with blanks are quoted: name=\"my run\". A word alone is looked for in the run's id, plan and name."),
        0, columns_of(cli));
    buf_byte(out, '\n');
    text_wrap(
        out,
        STR("A time is 2h or now-7d (so long ago), now, today, yesterday, 2026-02-11 or 2026-02-11T17:00:00Z. Later is "
            "greater: started>2h is within the last two hours, started<2h is longer ago."),
        0, columns_of(cli));
    buf_byte(out, '\n');
    heading(cli, out, "Fields");
    for (size_t i = 0; query_field_at(i); i++) {
        const struct query_field_info *info = query_field_at(i);
        size_t len = strlen(info->name);
        const char *name = info->name[len - 1] == '.' ? cli_format(cli, "%sNAME", info->name) : info->name;
        entry(cli, out, name, 16, cli_format(cli, "%s (%s)", info->about, info->values));
    }
}

static void topic_errors(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Faults of documents (cairn help CODE explains one)");
    for (size_t i = 0; diagnostic_info_at(i); i++)
        entry(cli, out, diagnostic_info_at(i)->id, 9, diagnostic_info_at(i)->title);
}

static void topic_problems(struct cli *cli, struct buf *out)
{
    heading(cli, out, "Problems that a service answers with (cairn help CODE explains one)");
    for (size_t i = 0; problem_at(i); i++) buf_printf(out, "  %s\n", problem_at(i)->code);
}

static const struct {
    const char *name;
    void (*write)(struct cli *cli, struct buf *out);
} topics[] = {
    {"exit-codes", topic_exit_codes}, {"formats", topic_formats},   {"environment", topic_environment},
    {"targets", topic_targets},       {"query", topic_query},       {"errors", topic_errors},
    {"config", topic_config},         {"problems", topic_problems},
};

static int explain(struct cli *cli, const struct diagnostic_info *info)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    buf_printf(&out, "%s: %s\n\n", info->id, info->title);
    text_wrap(&out, str_from(info->explanation), 0, columns_of(cli));
    return finish(cli, &out);
}

static int explain_problem(struct cli *cli, const struct problem_info *problem)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    buf_printf(&out, "%s\n\n", problem->code);
    text_wrap(&out, str_from(problem->text), 0, columns_of(cli));
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
    struct buf out;
    struct str second;
    buf_init(&out, 1 << 20);
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
        if (str_is(word, topics[i].name)) {
            struct buf out;
            buf_init(&out, 1 << 20);
            topics[i].write(cli, &out);
            return finish(cli, &out);
        }
    if (help_noun(cli, word)) return EXIT_OK;
    const struct diagnostic_info *info = find_code(word);
    const struct problem_info *problem = problem_find(word);
    if (problem) return explain_problem(cli, problem);
    return info ? explain(cli, info) : unknown_topic(cli, word);
}
