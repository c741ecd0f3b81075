// A run that goes on somewhere else, shown as if it went on here.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/drive.h"
#include "cli/follow.h"
#include "cli/mirror.h"
#include "cli/interrupt.h"
#include "cli/screen.h"
#include "cli/tree.h"

enum { POLL_MS = 100 };

struct watch {
    struct session session;
    struct mirror mirror;
    struct progress progress;
    struct screen screen;
    struct str run;
    unsigned orphan_looks;
    bool owner_seen;
    bool left; // the user has seen enough
};

static void on_event(void *context, const struct engine_event *event)
{
    struct watch *watch = context;
    progress_event(&watch->progress, event);
}

// Nobody drives it and nobody is asked anything: it will stay like this until somebody takes it up.
static void tell_orphan(struct watch *watch, const struct mirrored *root)
{
    if (root->head.owned) watch->owner_seen = true;
    if (run_need(&root->head) != NEED_OWNER) {
        watch->orphan_looks = 0;
    } else if (++watch->orphan_looks == 2) { // at one look it may be between two owners
        progress_say(&watch->progress, "%s: `%s` goes on with it",
                     watch->owner_seen ? "the process that drove this run is gone" : "no process drives this run",
                     need_command(watch->session.cli, &root->head));
    }
}

static void pause_run(struct watch *watch)
{
    struct signal signal;
    struct error err = {0};
    struct str bytes;
    struct cli *cli = watch->session.cli;
    signal_prepare(cli, SIGNAL_PAUSE, STR(""), STR("from cairn watch"), &signal);
    enum code rc = signal_encode(&signal, &cli->arena, &bytes, &err);
    if (!rc) rc = store_post(watch->session.store, watch->session.tenant, watch->run, signal.id, bytes, &err);
    progress_say(&watch->progress, "%s%s", rc ? "cannot pause: " : "asked the run to pause", err.message);
}

static void on_line(void *context, struct str run, struct str step, bool is_stderr, struct str line)
{
    struct watch *watch = context;
    progress_output(&watch->progress, run, step, is_stderr, line);
}

static int loop(struct watch *watch)
{
    struct cli *cli = watch->session.cli;
    bool exit_on_wait = args_has(&cli->args, FLAG_EXIT_ON_WAIT), changed;
    for (;;) {
        int code = mirror_poll(&watch->mirror, &changed);
        if (code) return code;
        const struct mirrored *root = mirror_find(&watch->mirror, watch->run);
        if (watch->progress.tree) mirror_lines(&watch->mirror, on_line, watch);
        progress_tick(&watch->progress, os_now().wall_ms);
        if (run_status_terminal(root->state->status)) return exit_of_status(root->state->status);
        if (exit_on_wait && run_need(&root->head) == NEED_PERSON) return EXIT_WAITING;
        tell_orphan(watch, root);
        if (interrupts_count() > 0) {
            watch->left = true;
            return 128 + interrupts_number();
        }
        int key = screen_key(&watch->screen, POLL_MS);
        if (key == 'q') {
            watch->left = true;
            return EXIT_OK;
        }
        if (key == 'p' && root->head.owned) pause_run(watch);
    }
}

static void end(struct watch *watch)
{
    struct cli *cli = watch->session.cli;
    struct error err = {0};
    struct run_head head;
    struct card card = {0};
    if (watch->left) {
        cli_note(cli, "the run goes on without being watched");
        cli_next(cli, "watch %.*s", STR_ARG(watch->run));
        return;
    }
    if (store_head(watch->session.store, watch->session.tenant, watch->run, &cli->arena, &head, &err) == OK &&
        card_load(&watch->session, &head, TARGET_NOW, &card) == EXIT_OK)
        card_summary(&watch->session, &card);
    card_release(&card);
}

static int watch_run(struct watch *watch, const struct run_head *head)
{
    struct cli *cli = watch->session.cli;
    enum progress_mode mode = progress_mode_of(cli);
    watch->run = head->ids.run;
    mirror_open(&watch->mirror, &watch->session);
    watch->mirror.context = watch;
    watch->mirror.event = on_event;
    int code = mirror_add(&watch->mirror, head);
    if (!code && !progress_open(&watch->progress, cli, mode)) code = cli_nomem(cli);
    if (!code) {
        interrupts_catch();
        if (mode == PROGRESS_TREE) {
            screen_open_keys(&watch->screen, &cli->err);
            if (watch->screen.keys) watch->progress.tree->keys = "p pause  q leave";
        }
        code = loop(watch);
        progress_close(&watch->progress);
        if (mode == PROGRESS_TREE) screen_close(&watch->screen);
        if (mode == PROGRESS_TREE || mode == PROGRESS_PLAIN) end(watch);
    }
    mirror_close(&watch->mirror);
    return code;
}

int command_watch(struct cli *cli)
{
    struct watch watch = {.left = false};
    struct target target;
    int code = session_open(&watch.session, cli, STORE_READ);
    if (!code) code = target_find(&watch.session, cli->args.word_count ? cli->args.words[0] : STR("@last"), 0, &target);
    if (!code) code = watch_run(&watch, &target.head);
    session_close(&watch.session);
    return code;
}
