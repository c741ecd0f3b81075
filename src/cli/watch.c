#include "cli/watch.h"

#include "cli/drive.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/mirror.h"
#include "term/screen.h"
#include "term/tree.h"

#include <string.h>

enum { POLL_MS = 100 };

struct watch {
    struct watching *watching;
    struct session *session;
    struct mirror mirror;
    struct progress progress;
    struct screen screen;
    struct arena scratch;
    struct str run;
    unsigned orphan_looks;
    int interrupts; // acted on
    bool owner_seen;
};

static void on_event(void *context, const struct engine_event *event)
{
    struct watch *watch = context;
    progress_event(&watch->progress, event);
}

static void on_line(void *context, struct str run, struct str step, bool is_stderr, struct str line)
{
    struct watch *watch = context;
    progress_output(&watch->progress, run, step, is_stderr, line);
}

// No process drives it and no person is asked anything: it stays like this until a command takes it up.
static void tell_orphan(struct watch *watch, const struct mirrored *root)
{
    if (root->head.owned) watch->owner_seen = true;
    if (head_standing(&root->head).need != NEED_OWNER) {
        watch->orphan_looks = 0;
    } else if (++watch->orphan_looks == 2) { // at one look it may be between two owners
        progress_say(&watch->progress, "%s: `%s` goes on with it",
                     watch->owner_seen ? "the process that drove this run is gone" : "no process drives this run",
                     need_command(watch->session->cli, &root->head));
    }
}

// ---- signals from here

static void post(struct watch *watch, struct str run, enum signal_type type, struct str step, const char *reason)
{
    struct signal signal;
    struct error err = {0};
    struct str bytes;
    struct cli *cli = watch->session->cli;
    signal_prepare(cli, type, step, str_from(reason), &signal);
    signal.force = type == SIGNAL_EMERGENCY_STOP;
    enum code rc = signal_encode(&signal, &cli->io.arena, &bytes, &err);
    if (!rc) rc = store_post(watch->session->store, watch->session->tenant, run, signal.id, bytes, &err);
    const char *done = type == SIGNAL_PAUSE     ? "asked the run to pause"
                       : type == SIGNAL_APPROVE ? "approved"
                                                : "asked the run to stop";
    if (rc)
        progress_say(&watch->progress, "%s was not sent: %s", signal_name(type), err.message);
    else
        progress_say(&watch->progress, "%s%s%.*s", done, step.len ? " " : "", STR_ARG(step));
}

static bool approved_beforehand(const struct cli *cli, struct str step, struct str path)
{
    size_t cursor = 0;
    struct str name;
    if (args_has(&cli->args, FLAG_APPROVE_ALL)) return true;
    while (args_next(&cli->args, FLAG_APPROVE, &cursor, &name))
        if (str_eq(name, step) || str_eq(name, path)) return true;
    return false;
}

// A signal is decided when it has been posted, so what is open after the next look is open still.
static void answer_gates(struct watch *watch, const struct mirrored *mirrored)
{
    const struct run *run = mirrored->state;
    const struct cli *cli = watch->session->cli;
    if (run->status == RUN_STATUS_PENDING && run->start.requires_approval && args_has(&cli->args, FLAG_APPROVE_ALL))
        post(watch, mirrored->run, SIGNAL_APPROVE, STR(""), "approved beforehand");
    for (uint32_t i = 0; run->in_flight > 0 && i < run->program->step_count; i++) {
        if (kernel_state(run, i) != NODE_RUNNING || run->program->steps[i].kind != STEP_APPROVAL) continue;
        struct str path = kernel_path(run, i, &watch->scratch);
        if (path.ptr && approved_beforehand(cli, run->program->steps[i].id, path))
            post(watch, mirrored->run, SIGNAL_APPROVE, path, "approved beforehand");
    }
}

static void answer_all(struct watch *watch)
{
    arena_reset(&watch->scratch);
    for (size_t i = 0; i < watch->mirror.run_count; i++)
        if (!run_status_terminal(watch->mirror.runs[i].state->status)) answer_gates(watch, &watch->mirror.runs[i]);
}

// The first ^C asks the run for what it should do then; the next one leaves it to itself.
static bool interrupted(struct watch *watch)
{
    int count = interrupts_count();
    const char *what = watch->watching->on_interrupt;
    if (count <= watch->interrupts) return false;
    if (!what || watch->interrupts > 0) return true;
    watch->interrupts = count;
    if (strcmp(what, "pause") == 0)
        post(watch, watch->run, SIGNAL_PAUSE, STR(""), "interrupted");
    else
        post(watch, watch->run, strcmp(what, "kill") == 0 ? SIGNAL_EMERGENCY_STOP : SIGNAL_CANCEL, STR(""),
             "interrupted");
    progress_say(&watch->progress, "^C again leaves the run to itself");
    return false;
}

// ---- watching

static int loop(struct watch *watch)
{
    struct watching *watching = watch->watching;
    bool changed;
    for (;;) {
        int code = mirror_poll(&watch->mirror, &changed);
        if (code) return code;
        const struct mirrored *root = mirror_find(&watch->mirror, watch->run);
        if (watch->progress.tree) mirror_lines(&watch->mirror, on_line, watch);
        progress_tick(&watch->progress, os_now().wall_ms);
        if (run_status_terminal(root->state->status)) return exit_of_status(root->state->status);
        if (watching->approves && changed) answer_all(watch);
        if (watching->exit_on_wait && head_standing(&root->head).need == NEED_PERSON) return EXIT_WAITING;
        if (watch->interrupts > 0 && head_standing(&root->head).need == NEED_PERSON) return 128 + interrupts_number();
        tell_orphan(watch, root);
        if (interrupted(watch)) {
            watching->left = true;
            return 128 + interrupts_number();
        }
        int key = screen_key(&watch->screen, POLL_MS);
        if (key == 'q') {
            watching->left = true;
            return EXIT_OK;
        }
        if (key == 'p' && root->head.owned)
            post(watch, watch->run, SIGNAL_PAUSE, STR(""), "from a terminal that watches");
    }
}

int watch_run(struct watching *watching, const struct run_head *head)
{
    struct cli *cli = watching->session->cli;
    struct watch watch = {.watching = watching, .session = watching->session, .run = head->ids.run};
    arena_init(&watch.scratch, 4096, (size_t)64 << 20);
    mirror_open(&watch.mirror, watching->session);
    watch.mirror.context = &watch;
    watch.mirror.event = on_event;
    int code = mirror_add(&watch.mirror, head);
    if (!code && !progress_open(&watch.progress, &cli->io, watching->mode)) code = cli_nomem(cli);
    if (!code) {
        watch.progress.approves = args_has(&cli->args, FLAG_APPROVE) || args_has(&cli->args, FLAG_APPROVE_ALL);
        interrupts_catch();
        if (watching->mode == PROGRESS_TREE) {
            screen_open_keys(&watch.screen, &cli->io.err);
            if (watch.screen.keys) watch.progress.tree->keys = "p pause  q leave";
        }
        code = loop(&watch);
        progress_close(&watch.progress);
        if (watching->mode == PROGRESS_TREE) screen_close(&watch.screen);
    }
    mirror_close(&watch.mirror);
    arena_release(&watch.scratch);
    return code;
}
