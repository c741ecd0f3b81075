#include "cli/card.h"
#include "cli/commands.h"

static int show(struct session *session, const struct card *card, enum format format)
{
    struct cli *cli = session->cli;
    struct json json;
    struct buf text;
    if (format == FORMAT_JSON || format == FORMAT_YAML) {
        if (!view_json(&card->view, &cli->arena, &json)) return cli_nomem(cli);
        print_json(cli, format, &json);
        return EXIT_OK;
    }
    buf_init(&text, (size_t)64 << 20);
    if (format == FORMAT_NAME)
        buf_printf(&text, "%.*s\n", STR_ARG(card->head.ids.run));
    else
        card_write(session, &text, &cli->out, card);
    cli_print(cli, &text);
    buf_release(&text);
    return EXIT_OK;
}

int command_get(struct cli *cli)
{
    struct session session;
    struct target target;
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_MOMENT, &target);
    struct card card = {0};
    if (!code) code = card_load(&session, &target.head, target.at, &card);
    if (!code) code = show(&session, &card, format_of(cli, FORMAT_TEXT));
    card_release(&card);
    session_close(&session);
    return code;
}
