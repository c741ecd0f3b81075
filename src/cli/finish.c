// The last words of a command that drove a run: how it ended or stands, for people on stderr, for programs on stdout.
#include "cli/card.h"
#include "cli/drive.h"

static int print_end(struct session *session, const struct card *card, enum progress_mode mode)
{
    struct cli *cli = session->cli;
    enum format format = format_of(cli, FORMAT_NONE);
    struct json json;
    struct buf text;
    if (mode == PROGRESS_TREE || mode == PROGRESS_PLAIN) card_summary(&session->cli->io, card);
    if (format == FORMAT_JSON || format == FORMAT_YAML) {
        if (!view_json(&card->view, &cli->io.arena, &json)) return cli_nomem(cli);
        bool lines = mode == PROGRESS_JSON && format == FORMAT_JSON;
        print_json(&cli->io, lines ? FORMAT_JSONL : format, &json);
    } else if (format == FORMAT_NAME) {
        buf_init(&text, 1024);
        buf_printf(&text, "%.*s\n", STR_ARG(card->head.ids.run));
        cli_print(cli, &text);
        buf_release(&text);
    }
    return EXIT_OK;
}

int drive_finish(struct session *session, struct str run, enum progress_mode mode, int code)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct run_head head;
    struct card card SCOPED(card_release) = {0};
    if ((mode == PROGRESS_NONE || mode == PROGRESS_JSON) && !args_has(&cli->args, FLAG_OUTPUT)) return code;
    if (store_head(session->store, session->tenant, run, &cli->io.arena, &head, &err)) return cli_error(cli, &err);
    int failed = card_load(session, &head, TARGET_NOW, &card);
    if (!failed) failed = print_end(session, &card, mode);
    return failed ? failed : code;
}
