// All the worlds of a crash test. They are played in processes of their own, so that an engine that stops itself is a
// world that failed and not the end of the test; what they find comes back through a file in memory.
#include "trial/crash_inside.h"

#include "program/net.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 4
#define WORLD_SECONDS_MAX 120
#define TURNS_BUDGET 300000 // turns of all worlds together, when nobody said how many worlds

static const struct {
    const char *column, *words;
} boundaries[BOUNDARY_COUNT] = {
#define X(name, column, words) [BOUNDARY_##name] = {column, words},
    BOUNDARY_LIST(X)
#undef X
};

const char *boundary_column(enum boundary boundary)
{
    return boundaries[boundary].column;
}

const char *boundary_words(enum boundary boundary)
{
    return boundaries[boundary].words;
}

static const char *rule_known(const char *text)
{
#define X(name, meaning)                                                                                               \
    if (strcmp(text, #name) == 0) return #name;
    RULE_LIST(X)
#undef X
    return "ABORT";
}

struct testing {
    const struct crash_options *options;
    struct crash_report *report;
    struct crash_calm calm;
    struct arena *arena;
    uint32_t *later; // points after the restart, by first point - 1
};

// ---- what a process reports

struct notice { // a world begins (ended = 0) or is over; then come `twice` pairs of numbers and the texts
    uint32_t world, ended, failed, later, twice, message_size, left_size;
    char rule[8];
};

struct worker {
    pid_t pid;
    _Atomic pid_t *place;   // in `playing`
    int notes, errors;      // files in memory
    size_t next, step, end; // worlds next, next + step, ... below end
    size_t read;            // bytes of `notes` that were looked at
};

// The processes that play worlds now, for a signal handler that must stop them: a handler has no context but the process.
static _Atomic pid_t playing[WORKERS_MAX];

void crash_stop_players(void)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        pid_t pid = playing[i];
        if (pid <= 0) continue;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}

static void write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(3);
        at += n;
        size -= (size_t)n;
    }
}

static void send_verdict(int fd, size_t world, const struct crash_verdict *verdict)
{
    struct notice note = {.world = (uint32_t)world,
                          .ended = 1,
                          .failed = verdict->failed,
                          .later = verdict->later_points,
                          .twice = verdict->twice_count,
                          .message_size = (uint32_t)strlen(verdict->message),
                          .left_size = (uint32_t)verdict->left.len};
    memcpy(note.rule, verdict->rule, sizeof(note.rule));
    struct buf bytes; // in one piece: a note is whole or not there
    buf_init(&bytes, (size_t)64 << 20);
    buf_add(&bytes, (struct str){(const char *)&note, sizeof(note)});
    for (uint32_t i = 0; i < verdict->twice_count; i++) {
        const uint32_t pair[2] = {verdict->twice[i], verdict->times[i]};
        buf_add(&bytes, (struct str){(const char *)pair, sizeof(pair)});
    }
    buf_add(&bytes, str_from(verdict->message));
    buf_add(&bytes, verdict->left);
    write_all(fd, bytes.ptr, bytes.len);
    buf_release(&bytes);
}

static _Noreturn void work(struct testing *t, const struct worker *worker)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(worker->errors, STDERR_FILENO);
    struct arena arena = arena_of(256 * 1024, (size_t)2 << 30);
    for (size_t i = worker->next; i < worker->end; i += worker->step) {
        struct notice begin = {.world = (uint32_t)i};
        struct crash_verdict verdict;
        write_all(worker->notes, &begin, sizeof(begin));
        alarm(WORLD_SECONDS_MAX);
        struct crash_kill kill = {.first = t->report->worlds[i].first, .second = t->report->worlds[i].second};
        crash_play(t->options, &t->calm, &t->report->calm, &kill, &arena, &verdict);
        send_verdict(worker->notes, i, &verdict);
        arena_reset(&arena);
    }
    _exit(0);
}

// ---- reading the notes

static enum code take_note(struct testing *t, const struct notice *note, const char *rest)
{
    struct crash_world *world = &t->report->worlds[note->world];
    world->ran = true;
    world->failed = note->failed;
    if (note->failed) world->rule = rule_known(note->rule);
    if (world->second == 0) t->later[world->first - 1] = note->later;
    world->twice = ARENA_ARRAY(t->arena, note->twice + 1, uint32_t);
    if (!world->twice) return E_NOMEM;
    for (uint32_t i = 0; i < note->twice; i++) {
        uint32_t pair[2];
        memcpy(pair, rest + i * sizeof(pair), sizeof(pair));
        struct crash_effect *effect = &t->report->effects[pair[0]];
        world->twice[world->twice_count++] = pair[0];
        if (effect->worlds++ == 0 || note->world < effect->example) effect->example = note->world;
        if (pair[1] > effect->most) effect->most = pair[1];
    }
    rest += note->twice * 2 * sizeof(uint32_t);
    world->message = arena_copy(t->arena, (struct str){rest, note->message_size});
    world->left = arena_copy(t->arena, (struct str){rest + note->message_size, note->left_size});
    return world->message.ptr && world->left.ptr ? OK : E_NOMEM;
}

static enum code read_file(int fd, size_t from, struct arena *arena, struct str *out)
{
    off_t size = lseek(fd, 0, SEEK_END);
    size_t len = size > (off_t)from ? (size_t)size - from : 0, done = 0;
    char *bytes = arena_alloc(arena, len + 1);
    if (!bytes) return E_NOMEM;
    while (done < len) {
        ssize_t n = pread(fd, bytes + done, len - done, (off_t)(from + done));
        if (n <= 0) break;
        done += (size_t)n;
    }
    *out = (struct str){bytes, done};
    return OK;
}

// The process that played this world is gone, and not because it was done.
static enum code note_abort(struct testing *t, struct worker *worker, size_t world, int status)
{
    struct str errors;
    enum code rc = read_file(worker->errors, 0, t->arena, &errors);
    if (rc) return rc;
    struct str line = str_slice(str_last_line(errors), 0, 300);
    struct crash_world *one = &t->report->worlds[world];
    const char *how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended early";
    one->ran = one->failed = true;
    one->rule = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "STUCK" : "ABORT";
    one->message =
        line.len ? trial_format(t->arena, "%s: %.*s", how, STR_ARG(line)) : trial_format(t->arena, "%s", how);
    return OK;
}

static enum code collect(struct testing *t, struct worker *worker, int status)
{
    struct str all;
    enum code rc = read_file(worker->notes, worker->read, t->arena, &all);
    size_t at = 0, open = SIZE_MAX;
    while (!rc && at + sizeof(struct notice) <= all.len) {
        struct notice note;
        memcpy(&note, all.ptr + at, sizeof(note));
        size_t size = sizeof(note) + note.twice * 2 * sizeof(uint32_t) + note.message_size + note.left_size;
        if (at + size > all.len) break;
        if (note.ended) rc = take_note(t, &note, all.ptr + at + sizeof(note));
        open = note.ended ? SIZE_MAX : note.world;
        worker->next = note.world + worker->step;
        at += size;
    }
    worker->read += at;
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!rc && !clean && open != SIZE_MAX) rc = note_abort(t, worker, open, status);
    if (!rc && !clean && open == SIZE_MAX && at == 0) rc = E_IO;
    if (clean) worker->next = worker->end;
    return rc;
}

static enum code launch(struct testing *t, struct worker *worker, struct error *err)
{
    worker->pid = 0;
    if (worker->next >= worker->end) return OK;
    fflush(NULL);
    sigset_t all, before; // no handler may run while a process plays that `playing` does not name yet
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->pid = fork();
    int why = errno;
    if (worker->pid > 0) *worker->place = worker->pid;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (worker->pid < 0) return error_set(err, E_LIMIT, "cannot start a process: %s", strerror(why));
    if (worker->pid == 0) work(t, worker);
    return OK;
}

static uint32_t worker_count(const struct crash_options *options, size_t worlds)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = options->workers ? options->workers : processors > 0 ? (uint32_t)processors : 1;
    if (count > WORKERS_MAX) count = WORKERS_MAX;
    return worlds < count ? (uint32_t)(worlds ? worlds : 1) : count;
}

// Plays the worlds from `from` to the last one.
static enum code play_worlds(struct testing *t, size_t from, struct error *err)
{
    struct worker workers[WORKERS_MAX] = {0};
    size_t end = t->report->world_count;
    uint32_t count = worker_count(t->options, end - from), open = 0;
    enum code rc = OK;
    for (; !rc && open < count; open++) {
        struct worker *worker = &workers[open];
        *worker = (struct worker){.notes = memfd_create("worlds", MFD_CLOEXEC),
                                  .errors = memfd_create("errors", MFD_CLOEXEC),
                                  .place = &playing[open],
                                  .next = from + open,
                                  .step = count,
                                  .end = end};
        if (worker->notes < 0 || worker->errors < 0) rc = error_set(err, E_LIMIT, "no file in memory");
        if (!rc) rc = launch(t, worker, err);
    }
    for (uint32_t i = 0; i < open; i++) {
        struct worker *worker = &workers[i];
        while (worker->pid > 0) {
            int status = 0;
            while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR) {
            }
            *worker->place = worker->pid = 0;
            if (!rc) rc = collect(t, worker, status);
            if (!rc) rc = launch(t, worker, err);
        }
        if (worker->notes >= 0) close(worker->notes);
        if (worker->errors >= 0) close(worker->errors);
    }
    if (rc && err->code == OK) error_set(err, rc, "the worlds cannot be played: %s", code_text(rc));
    return rc;
}

// ---- which worlds

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// `take` of `total` numbers, ascending: number i is taken with the chance that is left (selection sampling).
struct draw {
    uint64_t random, left, total;
};

static bool draw_one(struct draw *draw)
{
    bool taken = draw->left > 0 && next_random(&draw->random) % draw->total < draw->left;
    draw->total--;
    draw->left -= taken;
    return taken;
}

static bool add_world(struct testing *t, uint32_t first, uint32_t second)
{
    struct crash_report *report = t->report;
    report->worlds[report->world_count++] = (struct crash_world){.first = first, .second = second};
    return true;
}

static size_t limit_of(const struct testing *t, uint64_t total)
{
    size_t max = t->options->max;
    if (max == SIZE_MAX) {
        uint64_t turns = t->report->calm.turns ? t->report->calm.turns : 1;
        max = (size_t)(TURNS_BUDGET / turns);
        if (max < 100) max = 100;
        if (t->options->sandbox && max > 200) max = 200;
    }
    return max == 0 || max > total ? (size_t)total : max;
}

static enum code single_worlds(struct testing *t, struct error *err)
{
    struct crash_report *report = t->report;
    size_t take = limit_of(t, report->point_count);
    report->world_total = report->point_count;
    report->worlds = ARENA_ARRAY(t->arena, take + 1, struct crash_world);
    t->later = ARENA_ARRAY(t->arena, report->point_count + 1, uint32_t);
    if (!report->worlds || !t->later) return error_nomem(err);
    struct draw draw = {t->options->seed, take, report->point_count};
    for (uint32_t i = 1; i <= report->point_count; i++)
        if (draw_one(&draw)) add_world(t, i, 0);
    return play_worlds(t, 0, err);
}

// Every point after the restart of every world so far, as many as there may be.
static enum code double_worlds(struct testing *t, struct error *err)
{
    struct crash_report *report = t->report;
    uint64_t total = 0;
    size_t singles = report->world_count;
    for (size_t i = 0; i < report->point_count; i++) total += t->later[i];
    size_t take = limit_of(t, total);
    struct crash_world *all = ARENA_ARRAY(t->arena, singles + take + 1, struct crash_world);
    if (!all) return error_nomem(err);
    memcpy(all, report->worlds, singles * sizeof(*all));
    report->worlds = all;
    report->world_total += total;
    struct draw draw = {t->options->seed + 1, take, total};
    for (uint32_t i = 0; i < report->point_count; i++)
        for (uint32_t k = 1; k <= t->later[i]; k++)
            if (draw_one(&draw)) add_world(t, i + 1, k);
    return play_worlds(t, singles, err);
}

// ---- the report

static bool names_key(const struct json *with, struct arena *arena)
{
    return strstr(json_line(arena, with).ptr, "CAIRN_IDEMPOTENCY_KEY") != NULL;
}

// The tasks of a step of a playbook; NULL of other documents.
static const struct net_step *net_step_of(const struct program *program, const struct program_step *step)
{
    return program->net ? &program->net->steps[step - program->steps] : NULL;
}

static bool uses_key(const struct effect_seen *seen, struct arena *arena)
{
    const struct net_step *net = net_step_of(seen->program, seen->step);
    for (uint32_t i = 0; net && i < net->task_count; i++)
        if (str_ends(seen->path, net->tasks[i].label) && names_key(template_tree_source(net->tasks[i].with), arena))
            return true;
    return names_key(&seen->step->with, arena);
}

// A step of a playbook is external when one of its tasks is: all but those that nothing outside is asked for, and child runs as such.
static bool is_external(const struct story *story, const struct story_step *step)
{
    if (!step->step) return false;
    const struct net_step *net = net_step_of(story->runs[step->run].program, step->step);
    for (uint32_t i = 0; net && i < net->task_count; i++) {
        const struct net_task *task = &net->tasks[i];
        if (!task->in_process && !str_is(task->kind, "wait") && !str_is(task->kind, "event") &&
            !str_is(task->kind, "playbook"))
            return true;
    }
    return kind_is_external(step->step->kind);
}

static bool list_effects(struct testing *t)
{
    struct crash_report *report = t->report;
    report->effects = ARENA_ARRAY(t->arena, t->calm.effect_count + 1, struct crash_effect);
    if (!report->effects) return false;
    for (size_t i = 0; i < t->calm.effect_count; i++) {
        const struct effect_seen *seen = &t->calm.effects[i];
        const struct trial_mock *mock = script_mock(t->options->script, seen->path, seen->attempt, seen->kind);
        report->effects[report->effect_count++] =
            (struct crash_effect){.path = seen->path,
                                  .logical = seen->attempt,
                                  .key_step = seen->named,
                                  .key_logical = seen->logical,
                                  .step = seen->step,
                                  .program = seen->program,
                                  .does = seen->does,
                                  .idempotent = mock && mock->idempotent,
                                  .keyed = seen->step && uses_key(seen, t->arena)};
    }
    for (size_t i = 0; i < report->calm.story.step_count; i++) {
        const struct story_step *step = &report->calm.story.steps[i];
        bool external = is_external(&report->calm.story, step);
        report->external_steps += external && step->started > 0;
        report->pure_steps += !external && step->started > 0;
    }
    return true;
}

static void add_up(struct crash_report *report)
{
    for (size_t i = 0; i < report->world_count; i++) report->failed += report->worlds[i].failed;
    for (size_t i = 0; i < report->effect_count; i++) {
        const struct crash_effect *effect = &report->effects[i];
        report->unguarded += effect->worlds > 0 && !effect->idempotent && !effect->keyed;
    }
}

// Steps that really run may write something else every time. What two undisturbed worlds do not agree on proves nothing.
static enum code find_varying(struct testing *t, struct arena *arena, struct error *err)
{
    struct story *calm = &t->report->calm.story;
    struct trial_result again = {.arena = arena, .story = {.arena = arena}};
    struct crash_calm ignored = {0};
    enum code rc = crash_calm(t->options, &again, &ignored, err);
    for (size_t i = 0; !rc && i < calm->step_count; i++) {
        const struct story_step *other = story_find(&again.story, calm->steps[i].path);
        calm->steps[i].varies = other && !same_value(&calm->steps[i].value, &other->value);
    }
    return rc;
}

static enum code learn(struct testing *t, struct arena *arena, struct error *err)
{
    struct crash_report *report = t->report;
    *report = (struct crash_report){.arena = arena, .calm = {.arena = arena, .story = {.arena = arena}}};
    enum code rc = crash_calm(t->options, &report->calm, &t->calm, err);
    if (rc) return rc;
    report->points = t->calm.points;
    report->point_count = t->calm.point_count;
    if (t->options->sandbox && (rc = find_varying(t, arena, err))) return rc;
    return list_effects(t) ? OK : error_nomem(err);
}

enum code crash_test(const struct crash_options *options, struct arena *arena, struct crash_report *out,
                     struct error *err)
{
    struct testing t = {.options = options, .report = out, .arena = arena};
    int64_t began = os_mono_us();
    enum code rc = learn(&t, arena, err);
    if (!rc) rc = single_worlds(&t, err);
    if (!rc && options->twice) rc = double_worlds(&t, err);
    out->took_us = os_mono_us() - began;
    if (!rc) add_up(out);
    return rc;
}

enum code crash_replay(const struct crash_options *options, const struct crash_kill *kill, struct arena *arena,
                       struct crash_report *report, struct error *err)
{
    struct testing t = {.options = options, .report = report, .arena = arena};
    enum code rc = learn(&t, arena, err);
    if (rc) return rc;
    if (kill->first == 0 || kill->first > report->point_count)
        return error_set(err, E_NOT_FOUND, "there is no world %u: the run has %zu boundaries", kill->first,
                         report->point_count);
    struct crash_verdict verdict;
    crash_play(options, &t.calm, &report->calm, kill, arena, &verdict);
    report->worlds = ARENA_NEW(arena, struct crash_world);
    if (!report->worlds) return error_nomem(err);
    report->world_count = 1;
    report->failed = verdict.failed;
    *report->worlds = (struct crash_world){.first = kill->first,
                                           .second = kill->second,
                                           .ran = true,
                                           .failed = verdict.failed,
                                           .rule = verdict.failed ? rule_known(verdict.rule) : NULL,
                                           .message = arena_copy(arena, str_from(verdict.message)),
                                           .twice = verdict.twice,
                                           .twice_count = verdict.twice_count,
                                           .left = verdict.left};
    for (uint32_t i = 0; i < verdict.twice_count; i++) {
        struct crash_effect *effect = &report->effects[verdict.twice[i]];
        effect->worlds = 1;
        effect->most = verdict.times[i];
    }
    return OK;
}
