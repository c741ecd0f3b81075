// A run that goes on somewhere else, shown as if it went on here.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/watch.h"

static void end(struct session *session, const struct watching *watching, struct str run)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct run_head head;
    struct card card SCOPED(card_release) = {0};
    if (watching->left) {
        cli_note(cli, "the run goes on without being watched");
        cli_next(cli, "watch %.*s", STR_ARG(run));
        return;
    }
    if (store_head(session->store, session->tenant, run, &cli->io.arena, &head, &err) == OK &&
        card_load(session, &head, TARGET_NOW, &card) == EXIT_OK)
        card_summary(&session->cli->io, &card);
}

int command_watch(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target;
    struct watching watching = {
        .session = &session, .mode = progress_mode_of(cli), .exit_on_wait = args_has(&cli->args, FLAG_EXIT_ON_WAIT)};
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.word_count ? cli->args.words[0] : STR("@last"), 0, &target);
    if (!code) {
        code = watch_run(&watching, &target.head);
        bool told = watching.mode == PROGRESS_TREE || watching.mode == PROGRESS_PLAIN;
        if (told && code != EXIT_UNREACHABLE) end(&session, &watching, target.head.ids.run);
    }
    return code;
}
