// A run as OpenTelemetry spans: printed, to be posted to a collector by whatever speaks HTTP.
#include "cli/card.h"
#include "cli/commands.h"

#include "reading/reading.h"

int command_trace(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target = {0};
    struct card card SCOPED(card_release) = {0};
    struct json json;
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_MOMENT, &target);
    if (!code) code = card_load(&session, &target.head, target.at, &card);
    struct error err = {0};
    if (!code && reading_trace(session.store, &target.head, target.at, &card.view, &cli->io.arena, &json, &err))
        code = cli_error(cli, &err);
    if (!code) print_json(&cli->io, format_of(cli, FORMAT_JSON), &json);
    return code;
}
