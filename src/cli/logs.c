#include "cli/logs.h"
#include "view/view.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 16 * 1024, LINE_MAX_SIZE = 64 * 1024, DEPTH_MAX = 16 };

// A run whose steps are listened to, and the child runs below it.
struct logged_run {
    struct run_head head;
    struct str id;
    const char *prefix; // of labels: "", "deploy/"
    unsigned depth;
    bool known; // its head was found
    struct run_view *view;
    struct replay_cursor cursor; // of the view
    uint64_t seen_seq, seen_ledger;
    bool seen_owned, seen_terminal;
    uint32_t serial; // playbooks: attempts so far, of all tasks; their files are numbered by it
};

const char *log_state_name(enum log_state state)
{
    static const char *const names[] = {
        [LOGS_LIVE] = "live", [LOGS_COMPLETE] = "complete", [LOGS_CUT] = "cut", [LOGS_LOST] = "lost"};
    return names[state];
}

// ---- one file

// More bytes behind those that are there. False: none for now.
static bool read_more(struct logs *logs, struct log_source *source)
{
    struct file_piece piece;
    struct error err = {0};
    struct file_range range = {
        .ids = source->ids, .what = "logs", .name = str_from(source->name), .offset = source->offset, .limit = CHUNK};
    arena_reset(&logs->scratch);
    if (store_run_file(logs->session->store, &range, &logs->scratch, &piece, &err)) return false;
    source->exists = true;
    if (source->at > 0) {
        memmove(source->bytes.ptr, source->bytes.ptr + source->at, source->bytes.len - source->at);
        source->bytes.len -= source->at;
        source->at = 0;
    }
    if (piece.bytes.len == 0) return false;
    buf_add(&source->bytes, piece.bytes);
    source->offset += piece.bytes.len;
    return buf_ok(&source->bytes);
}

// The next line of output, marks taken in on the way. False: there is none yet.
static bool advance(struct logs *logs, struct log_source *source)
{
    for (;;) {
        struct str left = str_slice(buf_str(&source->bytes), source->at, source->bytes.len);
        size_t end = str_find(left, '\n', 0);
        if (end == left.len) {
            if (left.len > LINE_MAX_SIZE) source->at = source->bytes.len; // not written by us
            if (!read_more(logs, source)) return false;
            continue;
        }
        source->at += end + 1;
        if (!tool_log_parse(str_slice(left, 0, end), &source->line)) continue;
        if (source->line.kind == TOOL_LOG_END) {
            source->seen_end = true;
        } else if (source->line.kind == TOOL_LOG_CUT) {
            source->seen_cut = true;
            snprintf(source->reason, sizeof(source->reason), "cut %.*s", STR_ARG(source->line.text));
        } else {
            source->lines++;
            return true;
        }
    }
}

// ---- which attempts there are

static const char *label_of(struct logs *logs, const struct logged_run *run, const struct step_view *step,
                            const struct attempt_view *attempt)
{
    char suffix[32] = "";
    if (attempt->engine > 1)
        snprintf(suffix, sizeof(suffix), "#%u.%u", attempt->logical, attempt->engine);
    else if (attempt->logical > 1)
        snprintf(suffix, sizeof(suffix), "#%u", attempt->logical);
    size_t size = strlen(run->prefix) + step->id.len + strlen(suffix) + 1;
    char *text = arena_alloc(&logs->arena, size);
    if (!text) return "";
    snprintf(text, size, "%s%.*s%s", run->prefix, STR_ARG(step->id), suffix);
    return text;
}

// The source of an attempt, made when it is new. Run and file name it.
static struct log_source *source_of(struct logs *logs, const struct logged_run *run, const struct step_view *step,
                                    const struct attempt_view *attempt, size_t number)
{
    char name[TOOL_LOG_NAME_SIZE], key[TOOL_LOG_NAME_SIZE + 256];
    tool_log_name(step->id, attempt->logical, attempt->engine, name);
    int run_size = snprintf(key, sizeof(key), "%.*s/", STR_ARG(run->id));
    snprintf(key + run_size, sizeof(key) - (size_t)run_size, "%s", name);
    uint32_t known = map_get(&logs->index, str_from(key));
    if (known != MAP_NONE) return logs->sources[known];
    struct log_source *source = ARENA_NEW(&logs->arena, struct log_source);
    if (!source || !ARENA_ROOM(&logs->arena, logs->sources, logs->count, &logs->capacity)) return NULL;
    struct str own = arena_copy(&logs->arena, str_from(key));
    source->step = arena_copy(&logs->arena, step->id);
    if (!own.ptr || !source->step.ptr || !map_put(&logs->index, own, (uint32_t)logs->count, NULL)) return NULL;
    source->name = own.ptr + run_size;
    source->ids = &run->view->ids;
    source->run = run->id;
    source->label = label_of(logs, run, step, attempt);
    source->number = number;
    source->logical = attempt->logical;
    source->engine = attempt->engine;
    buf_init(&source->bytes, LINE_MAX_SIZE + 2 * CHUNK);
    logs->sources[logs->count++] = source;
    return source;
}

static bool wanted(const struct logs *logs, const struct logged_run *run, struct str step, uint32_t attempt)
{
    if (logs->step.len == 0 || run->depth > 0) return true;
    if (!str_starts(step, logs->step)) return false;
    char next = step.len > logs->step.len ? step.ptr[logs->step.len] : '\0';
    if (next != '\0')
        return next == '[' || next == '/' || next == ':'; // inside a loop; a task or another visit of a playbook's step
    return logs->attempt == 0 || logs->attempt == attempt;
}

static bool take_attempts(struct logs *logs, const struct logged_run *run, const struct step_view *step, size_t number)
{
    for (size_t i = 0; run->serial == 0 && i < step->attempt_count; i++) {
        const struct attempt_view *attempt = &step->attempts[i];
        if (!wanted(logs, run, step->id, attempt->logical)) continue;
        struct log_source *source = source_of(logs, run, step, attempt, number);
        if (!source) return false;
        source->ended = attempt->ended;
        source->superseded = i + 1 < step->attempt_count && step->attempts[i + 1].logical == attempt->logical;
    }
    return true;
}

static bool add_run(struct logs *logs, struct str id, const char *prefix, unsigned depth)
{
    for (size_t i = 0; i < logs->run_count; i++)
        if (str_eq(logs->runs[i].id, id)) return true;
    struct str copy = arena_copy(&logs->arena, id), text = arena_copy(&logs->arena, str_from(prefix));
    if (!copy.ptr || !text.ptr || !ARENA_ROOM(&logs->arena, logs->runs, logs->run_count, &logs->run_capacity))
        return false;
    logs->runs[logs->run_count++] = (struct logged_run){.id = copy, .prefix = text.ptr, .depth = depth};
    return true;
}

static bool add_child(struct logs *logs, struct logged_run run, const struct step_view *step)
{
    char prefix[1024];
    if (step->child_run.len == 0 || run.depth >= DEPTH_MAX) return true;
    logs->has_children = true;
    if (!logs->children) return true;
    if (!wanted(logs, &run, step->id, logs->attempt)) return true;
    snprintf(prefix, sizeof(prefix), "%s%.*s/", run.prefix, STR_ARG(step->id));
    return add_run(logs, step->child_run, prefix, run.depth + 1);
}

// ---- tasks of playbooks: the path as net_path of the kernel has it
static struct str task_path(struct logs *logs, const struct moment *m)
{
    struct buf path = buf_of(4096);
    buf_add(&path, m->step);
    if (m->visit > 1) buf_printf(&path, ":run:%u", m->visit);
    if (m->iteration > 0) buf_printf(&path, "[%u]", m->iteration);
    buf_byte(&path, '/');
    buf_add(&path, m->task);
    if (m->task_run > 1) buf_printf(&path, ":run:%u", m->task_run);
    return buf_keep(&path, &logs->arena);
}

static struct log_source *task_source(const struct logs *logs, const struct logged_run *run, struct str path)
{
    for (size_t i = logs->count; i > 0; i--)
        if (str_eq(logs->sources[i - 1]->step, path) && str_eq(logs->sources[i - 1]->run, run->id))
            return logs->sources[i - 1];
    return NULL;
}

static bool take_task(struct logs *logs, struct logged_run *run, const struct moment *m)
{
    bool begins = m->kind == MOMENT_ATTEMPT_STARTED, again = m->kind == MOMENT_STEP_REDISPATCHED;
    bool ends = m->kind == MOMENT_ATTEMPT_DONE || m->kind == MOMENT_ATTEMPT_FAILED;
    run->serial += begins;
    if (m->task.len == 0 || !(begins || again || ends)) return true;
    struct str path = task_path(logs, m);
    if (!path.ptr) return false;
    if (!wanted(logs, run, path, m->logical)) return true;
    struct log_source *before = begins ? NULL : task_source(logs, run, path);
    if (ends && before) before->ended = true;
    if (ends) return true;
    if (before) before->superseded = true;
    struct step_view step = {.id = path};
    struct attempt_view attempt = {.logical = before ? before->logical : run->serial, .engine = m->engine};
    struct log_source *source = source_of(logs, run, &step, &attempt, (size_t)str_hash(m->step) % 97);
    if (!source) return false;
    attempt.logical = m->logical; // people count the tries of the task
    source->label = label_of(logs, run, &step, &attempt);
    return true;
}

struct folding {
    struct logs *logs;
    size_t run;
};

static enum code fold_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    (void)seal;
    const struct folding *folding = context;
    struct logged_run *run = &folding->logs->runs[folding->run];
    if (moment && moment->visit > 0 && !take_task(folding->logs, run, moment)) return E_NOMEM;
    return !moment || view_fold(run->view, moment, record->seq) ? OK : E_NOMEM;
}

// Folds what has happened since the last time.
static int read_attempts(struct logs *logs, size_t index)
{
    struct cli *cli = logs->session->cli;
    struct error err = {0};
    struct logged_run *run = &logs->runs[index];
    const struct run_ids ids = run->head.ids;
    if (!run->view) {
        run->view = ARENA_NEW(&logs->arena, struct run_view);
        if (!run->view || !view_init(run->view, &logs->arena, &ids)) return cli_nomem(cli);
    }
    struct run_view *view = run->view;
    struct folding folding = {logs, index};
    if (store_replay_from(logs->session->store, ids.tenant, ids.run, &run->cursor, fold_record, &folding, &err))
        return cli_error(cli, &err);
    for (size_t i = 0; i < view->step_count; i++)
        if (!take_attempts(logs, &logs->runs[index], &view->steps[i], i + index) ||
            !add_child(logs, logs->runs[index], &view->steps[i]))
            return cli_nomem(cli);
    return EXIT_OK;
}

// ---- states

static void settle(const struct logged_run *run, struct log_source *source)
{
    const char *why = NULL;
    source->state = source->seen_cut ? LOGS_CUT : LOGS_COMPLETE;
    source->final = source->seen_end || source->ended || source->superseded || run->head.terminal;
    if (source->seen_end || (source->ended && !source->exists)) return;
    if (source->superseded)
        why = "the engine died while it ran; the next attempt is below";
    else if (source->ended)
        why = "its end was not written (the machine stopped, or the disk was full)";
    else if (run->head.terminal)
        why = "the run ended before the step did";
    else if (!run->head.owned)
        why = "the process that ran it is gone";
    if (!why) {
        source->state = LOGS_LIVE;
        return;
    }
    source->state = LOGS_LOST;
    snprintf(source->reason, sizeof(source->reason), "%s", why);
}

static struct logged_run *run_of(const struct logs *logs, const struct log_source *source)
{
    for (size_t i = 0; i < logs->run_count; i++)
        if (str_eq(logs->runs[i].id, source->run)) return &logs->runs[i];
    return NULL;
}

// ---- the whole

static int look_at_run(struct logs *logs, size_t index, bool *changed)
{
    struct cli *cli = logs->session->cli;
    struct error err = {0};
    struct run_head head;
    *changed = false;
    if (logs->runs[index].seen_terminal) return EXIT_OK;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, 1 << 20);
    enum code rc = store_head(logs->session->store, logs->session->tenant, logs->runs[index].id, &scratch, &head, &err);
    if (rc == E_NOT_FOUND && logs->runs[index].depth > 0)
        rc = OK; // a child that is about to begin
    else if (!rc) {
        struct logged_run *run = &logs->runs[index];
        *changed = !run->known || head.last_seq != run->seen_seq || head.last_ledger_seq != run->seen_ledger ||
                   head.owned != run->seen_owned;
        if (!run->known) { // the strings of a head live in the arena it was read into
            rc = store_head(logs->session->store, logs->session->tenant, run->id, &logs->arena, &run->head, &err);
        }
        run->known = true;
        run->head.terminal = head.terminal;
        run->head.owned = run->seen_owned = head.owned;
        run->head.owner_pid = head.owner_pid;
        run->head.summary = head.summary;
        run->head.last_seq = run->seen_seq = head.last_seq;
        run->head.last_ledger_seq = run->seen_ledger = head.last_ledger_seq;
        run->seen_terminal = head.terminal;
    }
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int logs_refresh(struct logs *logs, struct run_head *head)
{
    int64_t now = os_mono_us();
    // Looking through the steps of a large run for each of its events would cost more than the run.
    bool due = now - logs->refreshed_us >= 4 * logs->refresh_cost_us;
    for (size_t i = 0; due && i < logs->run_count; i++) {
        bool changed;
        int code = look_at_run(logs, i, &changed);
        if (!code && changed) code = read_attempts(logs, i);
        if (code) return code;
    }
    if (due) {
        logs->refreshed_us = os_mono_us();
        logs->refresh_cost_us = logs->refreshed_us - now;
    }
    for (size_t i = 0; i < logs->count; i++) {
        struct log_source *source = logs->sources[i];
        if (source->final || source->node.index || source == logs->current) continue;
        if (advance(logs, source)) {
            if (!heap_push(&logs->heap, &source->node, source->line.at_ms)) return cli_nomem(logs->session->cli);
        } else {
            settle(run_of(logs, source), source);
        }
    }
    *head = logs->runs[0].head;
    return EXIT_OK;
}

bool logs_next(struct logs *logs, struct log_source **source, struct tool_log_line *line)
{
    struct log_source *last = logs->current;
    logs->current = NULL;
    if (last && advance(logs, last)) {
        if (!heap_push(&logs->heap, &last->node, last->line.at_ms)) return false;
    } else if (last) {
        settle(run_of(logs, last), last);
    }
    struct heap_node *first = heap_peek(&logs->heap);
    if (!first) return false;
    heap_remove(&logs->heap, first);
    logs->current = CONTAINER_OF(first, struct log_source, node);
    *source = logs->current;
    *line = logs->current->line;
    return true;
}

bool logs_next_of(struct logs *logs, struct log_source *source, struct tool_log_line *line)
{
    if (source->node.index) {
        heap_remove(&logs->heap, &source->node);
    } else if (source->final || !advance(logs, source)) {
        settle(run_of(logs, source), source);
        return false;
    }
    *line = source->line;
    return true;
}

int logs_open(struct logs *logs, struct session *session, const struct target *target, bool children)
{
    struct cli *cli = session->cli;
    struct str dir;
    *logs = (struct logs){.session = session, .step = target->step, .attempt = target->attempt, .children = children};
    arena_init(&logs->arena, 64 * 1024, (size_t)2 << 30);
    arena_init(&logs->scratch, 2 * CHUNK, (size_t)64 << 20);
    heap_init(&logs->heap);
    map_init(&logs->index, &logs->arena);
    if (store_logs_dir(session->store, &target->head.ids, &cli->io.arena, &dir)) return cli_nomem(cli);
    if (dir.len == 0) return cli_fail(cli, EXIT_NOT_FOUND, "%s keeps no logs of steps", session->url);
    return add_run(logs, target->head.ids.run, "", 0) ? EXIT_OK : cli_nomem(cli);
}

void logs_close(struct logs *logs)
{
    for (size_t i = 0; i < logs->count; i++) buf_release(&logs->sources[i]->bytes);
    heap_release(&logs->heap);
    arena_release(&logs->scratch);
    arena_release(&logs->arena);
}
