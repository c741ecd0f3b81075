// The manual page, from the same table that parses and helps: `cairn man | man -l -`.
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/help_text.h"

#include <ctype.h>

// A line of text for mdoc: backslashes kept, nothing taken for a macro.
static void text(struct buf *out, struct str line)
{
    if (line.len > 0 && (line.ptr[0] == '.' || line.ptr[0] == '\'')) buf_text(out, "\\&");
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\\')
            buf_text(out, "\\e");
        else
            buf_byte(out, line.ptr[i]);
    }
}

static void lines(struct buf *out, const char *words)
{
    struct str rest = str_from(words);
    while (rest.len > 0) {
        struct str line = str_trim(str_cut(rest, '\n', &rest));
        if (line.len == 0) {
            buf_text(out, ".Pp\n");
            continue;
        }
        text(out, line);
        buf_byte(out, '\n');
    }
}

static void item(struct buf *out, const char *name, const char *words)
{
    buf_text(out, ".It Ic ");
    text(out, str_from(name));
    buf_byte(out, '\n');
    lines(out, words);
}

static void usage(struct buf *out, const struct command *command)
{
    buf_text(out, command->name);
    buf_text(out, command->synopsis[0] ? " " : "");
    text(out, str_from(command->synopsis));
    buf_text(out, command->flags[0] ? " [flags]\n" : "\n");
}

static void flag(struct buf *out, enum flag which, const char *choices)
{
    struct buf name SCOPED(buf_release) = buf_of(256);
    struct buf words SCOPED(buf_release) = buf_of(4096);
    flag_words(which, choices, &name, &words);
    item(out, name.ptr, words.ptr);
}

// The parts of a section that are of one kind.
static void parts(struct cli *cli, struct buf *out, struct str section, enum help_kind kind)
{
    struct help_part part;
    while (help_next(&section, &cli->io.arena, &part)) {
        if (part.kind != kind) continue;
        if (kind == HELP_PARAGRAPH) buf_text(out, ".Pp\n");
        lines(out, part.text);
    }
}

static void command_section(struct cli *cli, struct buf *out, const struct command *command)
{
    struct str section = help_section(str_from(command->name));
    buf_printf(out, ".Ss cairn %s\n%c%s.\n.Pp\n.Dl cairn ", command->name, toupper((unsigned char)command->summary[0]),
               command->summary + 1);
    usage(out, command);
    parts(cli, out, section, HELP_PARAGRAPH);
    if (command->flags[0]) buf_text(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < ARRAY_COUNT(command->flags) && command->flags[i]; i++) {
        enum flag which = command->flags[i];
        flag(out, which, which == FLAG_OUTPUT ? command->formats : flag_info(which)->choices);
    }
    if (command->flags[0]) buf_text(out, ".El\n");
    buf_text(out, ".Pp\nExamples:\n.Bd -literal -offset indent\n");
    parts(cli, out, section, HELP_EXAMPLE);
    buf_text(out, ".Ed\n");
}

// The rows of a topic up to its second heading.
static void topic(struct cli *cli, struct buf *out, const char *title, const char *name)
{
    struct str section = help_section(str_from(name));
    struct help_part part;
    size_t headings = 0;
    buf_printf(out, ".Sh %s\n.Bl -tag -width Ds\n", title);
    while (help_next(&section, &cli->io.arena, &part) && (headings += part.kind == HELP_HEADING) < 2)
        if (part.kind == HELP_ROW) item(out, part.name, part.text);
    buf_text(out, ".El\n");
}

int command_man(struct cli *cli)
{
    struct buf out SCOPED(buf_release) = buf_of((size_t)4 << 20);
    buf_text(&out,
             ".\\\" Made by `cairn man` (" CAIRN_VERSION "). Do not edit.\n"
             ".Dd $Mdocdate$\n.Dt CAIRN 1\n.Os\n.Sh NAME\n.Nm cairn\n.Nd a durable workflow engine\n.Sh SYNOPSIS\n");
    for (size_t i = 0; command_at(i); i++) {
        if (!command_at(i)->topic[0]) continue;
        buf_text(&out, ".Nm\n.Li ");
        usage(&out, command_at(i));
    }
    buf_text(
        &out,
        ".Sh DESCRIPTION\n"
        "Runs plans, node workflows and playbooks, and records every step in an append-only log before it counts.\n"
        "A run that was killed goes on where it stopped: finished steps do not run again.\n");
    for (size_t i = 0; command_at(i); i++)
        if (command_at(i)->topic[0]) command_section(cli, &out, command_at(i));
    buf_text(&out, ".Sh FLAGS OF EVERY COMMAND\n.Bl -tag -width Ds\n");
    for (size_t i = FLAG_NONE + 1; i < FLAG_COUNT; i++)
        if (flag_is_global((enum flag)i) && i != FLAG_VERSION)
            flag(&out, (enum flag)i, flag_info((enum flag)i)->choices);
    buf_text(&out, ".El\n");
    topic(cli, &out, "TARGETS", "targets");
    topic(cli, &out, "ENVIRONMENT", "environment");
    buf_text(&out, ".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
#define X(name, number, meaning) item(&out, #number, meaning);
    EXIT_LIST(X)
#undef X
    buf_text(&out, ".El\n");
    cli_print(cli, &out);
    return EXIT_OK;
}
