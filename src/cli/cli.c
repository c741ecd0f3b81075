// What flags that many commands take mean.
#include "cli/cli.h"

#include "base/civil.h"

int cli_usage(struct cli *cli)
{
    cli_fail(cli, EXIT_USAGE, "%s", cli->args.message.ptr);
    if (cli->args.hint.len > 0) cli_hint(cli, "%s", cli->args.hint.ptr);
    return EXIT_USAGE;
}

enum format format_of(const struct cli *cli, enum format otherwise)
{
    static const char *const names[] = {"",
#define X(name, text) text,
                                        FORMAT_LIST(X)
#undef X
    };
    struct str text = args_text(&cli->args, FLAG_OUTPUT, "");
    for (size_t i = 1; i < ARRAY_COUNT(names); i++)
        if (str_is(text, names[i])) return (enum format)i;
    return otherwise;
}

enum progress_mode progress_mode_of(const struct cli *cli)
{
    return progress_mode(&cli->io, args_text(&cli->args, FLAG_PROGRESS, "auto"));
}

bool time_flag(struct cli *cli, enum flag flag, int64_t *ms)
{
    struct str text = args_text(&cli->args, flag, "");
    int64_t ago;
    *ms = 0;
    if (!args_has(&cli->args, flag) || civil_parse(text, ms)) return true;
    if (duration_parse(text, &ago)) {
        *ms = cli->io.now_ms - ago;
        return true;
    }
    cli_fail(cli, EXIT_USAGE, "--%s cannot be %.*s", flag_info(flag)->name, STR_ARG(text));
    cli_hint(cli, "2h, 7d, or 2026-02-11T17:00:00Z");
    return false;
}

bool list_open(struct list *list, struct cli *cli, const struct column *columns, size_t count, const char *name_key)
{
    enum format format = format_of(cli, cli->io.out.tty ? FORMAT_TABLE : FORMAT_TSV);
    return list_begin(list, &cli->io, columns, count, name_key, format, args_text(&cli->args, FLAG_FIELDS, ""));
}
