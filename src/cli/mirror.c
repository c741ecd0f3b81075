#include "cli/mirror.h"

#include <string.h>

enum { TAIL_SIZE = 4096, LINES_AT_ONCE = 64 };

void mirror_open(struct mirror *mirror, struct session *session)
{
    *mirror = (struct mirror){.session = session};
    map_init(&mirror->index, &session->cli->io.arena);
}

void mirror_close(struct mirror *mirror)
{
    for (size_t i = 0; i < mirror->run_count; i++) {
        run_free(mirror->runs[i].state);
        program_release(mirror->runs[i].program);
    }
    mirror->run_count = 0;
}

const struct mirrored *mirror_find(const struct mirror *mirror, struct str run)
{
    uint32_t at = map_get(&mirror->index, run);
    return at == MAP_NONE ? NULL : &mirror->runs[at];
}

// Strings of the head that the state borrows must stay where they are while the list grows: they are in the command's arena.
int mirror_add(struct mirror *mirror, const struct run_head *head)
{
    struct cli *cli = mirror->session->cli;
    struct error err = {0};
    if (mirror_find(mirror, head->ids.run)) return EXIT_OK;
    struct mirrored added = {.run = head->ids.run, .head = *head};
    if (!ARENA_ROOM(&cli->io.arena, mirror->runs, mirror->run_count, &mirror->run_capacity)) return cli_nomem(cli);
    struct kernel_env *env = ARENA_NEW(&cli->io.arena, struct kernel_env); // large values of ctx are beside the log
    if (!env) return cli_nomem(cli);
    *env = (struct kernel_env){.context = mirror->session->store, .blob = store_blob_of};
    if (engine_program(mirror->session->store, head, &added.program, &err)) return cli_error(cli, &err);
    added.state = run_new(added.program, &head->ids);
    if (added.state) added.state->env = env;
    if (!added.state || !map_put(&mirror->index, added.run, (uint32_t)mirror->run_count, NULL)) {
        run_free(added.state);
        program_release(added.program);
        return cli_nomem(cli);
    }
    mirror->runs[mirror->run_count++] = added;
    return EXIT_OK;
}

struct telling {
    struct mirror *mirror;
    struct mirrored *mirrored;
    struct error *err;
};

static enum code tell(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct telling *telling = context;
    struct mirrored *mirrored = telling->mirrored;
    if (!moment) return OK;
    enum code rc = kernel_fold(mirrored->state, moment, telling->err);
    if (rc || !telling->mirror->event) return rc;
    struct append_item item = {.moment = moment, .seq = record->seq, .in_log = seal != NULL, .bytes = record->bytes};
    item.persisted_ms = seal ? seal->persisted_ms : moment->at_ms;
    if (seal) memcpy(item.event_id, seal->event_id, sizeof(item.event_id));
    struct engine_event event = {
        .run = mirrored->run, .state = mirrored->state, .program = mirrored->program, .moment = moment, .item = &item};
    telling->mirror->event(telling->mirror->context, &event);
    return OK;
}

static int add_child(struct mirror *mirror, struct str id, bool *there)
{
    struct error err = {0};
    struct run_head head;
    *there = mirror_find(mirror, id) != NULL;
    // It may not be there yet: its step is durable before the child is.
    if (*there ||
        store_head(mirror->session->store, mirror->session->tenant, id, &mirror->session->cli->io.arena, &head, &err))
        return EXIT_OK;
    *there = true;
    return mirror_add(mirror, &head);
}

// They begin in the order of the list: the first that is missing is the end for now.
static int add_list(struct mirror *mirror, const struct run *state, uint32_t step, struct arena *scratch)
{
    bool there = true;
    for (uint32_t i = 1; there; i++) {
        struct str id = kernel_child(state, step, i, scratch);
        int code = id.ptr ? add_child(mirror, id, &there) : (there = false, EXIT_OK);
        if (code) return code;
    }
    return EXIT_OK;
}

static int add_children(struct mirror *mirror, size_t index, struct arena *scratch)
{
    const struct program *program = mirror->runs[index].program;
    const struct run *state = mirror->runs[index].state;
    for (uint32_t i = 0; i < program->step_count; i++) {
        if (program->steps[i].kind != STEP_SUBRUN || kernel_state(state, i) != NODE_RUNNING) continue;
        struct str id = kernel_child(state, i, 0, scratch);
        int code = !id.ptr                     ? EXIT_OK
                   : kernel_fans_out(state, i) ? add_list(mirror, state, i, scratch)
                                               : add_child(mirror, id, &(bool){false});
        if (code) return code;
    }
    return EXIT_OK;
}

static int poll_one(struct mirror *mirror, size_t index, struct arena *scratch, bool *changed)
{
    struct mirrored *mirrored = &mirror->runs[index];
    struct error err = {0};
    struct run_head now;
    if (store_head(mirror->session->store, mirror->session->tenant, mirrored->run, scratch, &now, &err))
        return cli_error(mirror->session->cli, &err);
    bool news = now.last_seq != mirrored->cursor.seq || now.last_ledger_seq != mirrored->cursor.ledger_seq;
    *changed = *changed || news || now.owned != mirrored->head.owned;
    mirrored->head.summary = now.summary;
    mirrored->head.last_seq = now.last_seq;
    mirrored->head.terminal = now.terminal;
    mirrored->head.owned = now.owned;
    mirrored->head.owner_pid = now.owner_pid;
    if (news) {
        struct telling telling = {.mirror = mirror, .mirrored = mirrored, .err = &err};
        if (store_replay_from(mirror->session->store, mirror->session->tenant, mirrored->run, &mirrored->cursor, tell,
                              &telling, &err))
            return cli_error(mirror->session->cli, &err);
    }
    return add_children(mirror, index, scratch);
}

int mirror_poll(struct mirror *mirror, bool *changed)
{
    int code = EXIT_OK;
    *changed = false;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, (size_t)64 << 20);
    for (size_t i = 0; !code && i < mirror->run_count; i++) { // grows while it is walked: children have children
        if (run_status_terminal(mirror->runs[i].state->status)) continue;
        arena_reset(&scratch);
        code = poll_one(mirror, i, &scratch, changed);
    }
    return code;
}

// ---- what steps write
struct tail {
    mirror_line tell;
    void *context;
    struct arena scratch;
    size_t left; // steps that are still looked at: a screen shows no more
};

static void tell_last(struct tail *tail, const struct mirrored *mirrored, struct str step, struct str bytes)
{
    struct tool_log_line line, last = {0};
    while (bytes.len > 0) {
        struct str one = str_cut(bytes, '\n', &bytes);
        if (tool_log_parse(one, &line) && (line.kind == TOOL_LOG_OUT || line.kind == TOOL_LOG_ERR)) last = line;
    }
    if (last.text.len > 0) tail->tell(tail->context, mirrored->run, step, last.kind == TOOL_LOG_ERR, last.text);
}

static void tell_run(struct tail *tail, struct store *store, const struct mirrored *mirrored)
{
    const struct run *state = mirrored->state;
    for (uint32_t i = 0; i < mirrored->program->step_count && tail->left > 0; i++) {
        enum step_kind kind = mirrored->program->steps[i].kind;
        if (kernel_state(state, i) != NODE_RUNNING || (kind != STEP_SHELL && kind != STEP_EXEC && kind != STEP_SCRIPT))
            continue;
        char name[TOOL_LOG_NAME_SIZE];
        struct file_piece piece;
        struct error err = {0};
        struct str step = kernel_path(state, i, &tail->scratch);
        if (!step.ptr) return;
        tool_log_name(step, kernel_attempt(state, i).logical, kernel_attempt(state, i).engine, name);
        struct file_range range = {.ids = &mirrored->head.ids,
                                   .what = "logs",
                                   .name = str_from(name),
                                   .offset = FILE_TAIL,
                                   .limit = TAIL_SIZE};
        if (store_run_file(store, &range, &tail->scratch, &piece, &err) == OK)
            tell_last(tail, mirrored, step, piece.bytes);
        tail->left--;
    }
}

void mirror_lines(struct mirror *mirror, mirror_line told, void *context)
{
    struct tail tail = {.tell = told, .context = context, .left = LINES_AT_ONCE};
    arena_init(&tail.scratch, 4096, (size_t)64 << 20);
    for (size_t i = 0; i < mirror->run_count; i++) {
        if (run_status_terminal(mirror->runs[i].state->status)) continue;
        tell_run(&tail, mirror->session->store, &mirror->runs[i]);
        arena_reset(&tail.scratch);
    }
    arena_release(&tail.scratch);
}
