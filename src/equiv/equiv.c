// The hosts of a comparison, and one case on all of them.
#include "equiv/outside.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- engines of this process

static enum code play_here(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    enum code rc = trial_stay(&playing->options, playing->arena, &playing->log->result, &host->world, err);
    if (!rc) playing->log->store = trial_store(host->world);
    return rc;
}

// With kills a store that outlives them; without, the one that costs least.
static enum code play_embedded(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    playing->options.on_disk = playing->options.kill_count > 0;
    return play_here(host, playing, err);
}

static enum code play_files(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    struct equiv *equiv = host->equiv;
    playing->options.store = arena_format(playing->arena, "files:%s/files", equiv->options.scratch);
    return playing->options.store.ptr ? play_here(host, playing, err) : error_nomem(err);
}

static enum code play_sqlite(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    playing->options.store = arena_format(playing->arena, "sqlite:%s/embedded.db", host->equiv->options.scratch);
    return playing->options.store.ptr ? play_here(host, playing, err) : error_nomem(err);
}

static enum code play_postgres(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    playing->options.store = host->place;
    return play_here(host, playing, err);
}

static const struct equiv_host_row rows[] = {
    {.kind = {"embedded", "the engine in this process; its store is in memory, with --faults files on a disk that is made up"},
     .play = play_embedded},
    {.kind = {"sqlite", "the engine in this process, on a SQLite store"}, .play = play_sqlite},
    {.kind = {"files", "the engine in this process, on a files store"}, .play = play_files},
    {.kind = {"mock", "the engine in this process, in the profile mock"}, .play = play_embedded, .profile = "mock"},
    {.kind = {"postgres", "the engine in this process, on a Postgres store", "URL of a store that may be filled", true},
     .play = play_postgres},
    {.kind = {"server", "cairn serve, whose steps go to a worker"}, .open = server_play_open, .play = outside_play, .close = outside_close},
    {.kind = {"temporal", "cairn serve, whose runs are workflows of a Temporal server", "HOST:PORT of a Temporal server", true},
     .open = temporal_play_open,
     .play = outside_play,
     .close = outside_close},
    {.kind = {"conductor", "cairn serve, whose attempts a Conductor server carries", "URL of a Conductor server with its /api", true},
     .open = conductor_play_open,
     .play = outside_play,
     .close = outside_close},
};

const struct equiv_host_kind *equiv_host_kind(size_t index)
{
    return index < ARRAY_COUNT(rows) ? &rows[index].kind : NULL;
}

// ---- open and close

enum code equiv_open(const struct equiv_options *options, struct equiv **out, struct error *err)
{
    struct equiv *equiv = calloc(1, sizeof(*equiv));
    if (!equiv) return error_nomem(err);
    equiv->options = *options;
    equiv->reference = (struct equiv_host){.row = &rows[0], .equiv = equiv};
    arena_init(&equiv->arena, 4096, (size_t)64 << 20);
    *out = equiv;
    return OK;
}

static void leave(struct equiv_host *host)
{
    trial_leave(host->world);
    host->world = NULL;
}

void equiv_case_end(struct equiv *equiv)
{
    leave(&equiv->reference);
    for (size_t i = 0; i < equiv->count; i++) leave(&equiv->hosts[i]);
}

void equiv_close(struct equiv *equiv)
{
    if (!equiv) return;
    equiv_case_end(equiv);
    for (size_t i = 0; i < equiv->count; i++)
        if (equiv->hosts[i].row->close) equiv->hosts[i].row->close(&equiv->hosts[i]);
    arena_release(&equiv->arena);
    free(equiv);
}

static const struct equiv_host_row *row_named(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (str_is(name, rows[i].kind.name)) return &rows[i];
    return NULL;
}

enum code equiv_add_host(struct equiv *equiv, struct str text, struct error *err)
{
    struct str place, name = str_cut(text, '=', &place);
    const struct equiv_host_row *row = row_named(name);
    if (!row) return error_set(err, E_INVALID, "there is no host \"%.*s\"", STR_ARG(name));
    if (row->kind.needs_place && place.len == 0)
        return error_set(err, E_INVALID, "the host %s needs a place: %s=%s", row->kind.name, row->kind.name, row->kind.place);
    if (!row->kind.place && place.len > 0) return error_set(err, E_INVALID, "the host %s has no place", row->kind.name);
    for (size_t i = 0; i < equiv->count; i++)
        if (equiv->hosts[i].row == row && str_eq(equiv->hosts[i].place, place))
            return error_set(err, E_EXISTS, "the host %s is there twice", row->kind.name);
    if (!ARENA_ROOM(&equiv->arena, equiv->hosts, equiv->count, &equiv->capacity)) return error_nomem(err);
    struct equiv_host *host = &equiv->hosts[equiv->count];
    *host = (struct equiv_host){.row = row, .equiv = equiv, .place = arena_copy(&equiv->arena, place)};
    enum code rc = row->open ? row->open(host, err) : OK;
    if (!rc) equiv->count++;
    return rc;
}

size_t equiv_host_count(const struct equiv *equiv)
{
    return equiv->count;
}

// ---- one case

static uint64_t mix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Points at which a host is killed, out of as many as it passed undisturbed.
static const uint64_t *draw_kills(const struct equiv *equiv, size_t host, uint64_t points, struct arena *arena)
{
    uint64_t state = equiv->options.seed * 1000003 + equiv->cases * 101 + host;
    uint64_t *kills = ARENA_ARRAY(arena, equiv->options.faults + 1, uint64_t);
    for (uint32_t i = 0; kills && i < equiv->options.faults; i++) kills[i] = 1 + mix(&state) % (points + 1);
    if (kills) qsort(kills, equiv->options.faults, sizeof(*kills), by_number);
    return kills;
}

struct playing_all {
    struct equiv *equiv;
    const struct program *program;
    struct trial_script script; // with the id of the run
    struct arena *arena;
    struct equiv_report *out;
};

static struct equiv_playing playing_of(struct playing_all *all, size_t index)
{
    struct equiv_log *log = &all->out->logs[index];
    const struct equiv_options *options = &all->equiv->options;
    return (struct equiv_playing){.program = all->program,
                                  .script = &all->script,
                                  .arena = all->arena,
                                  .log = log,
                                  .options = {.contract = options->contract,
                                              .program = all->program,
                                              .script = &all->script,
                                              .scratch = options->scratch,
                                              .actor = all->equiv->actor,
                                              .order = index ? &all->out->logs[0].result.order : NULL}};
}

static enum code play(struct playing_all *all, size_t index, struct error *err)
{
    struct equiv *equiv = all->equiv;
    bool disturbed = equiv->options.faults > 0;
    struct equiv_host *host = !disturbed ? &equiv->hosts[index] : index ? &equiv->hosts[index - 1] : &equiv->reference;
    struct equiv_log *log = &all->out->logs[index];
    uint32_t faults = equiv->options.faults;
    struct equiv_playing playing = playing_of(all, index);
    int64_t began = os_mono_us();
    log->host = host->row->kind.name;
    playing.script = playing.options.script = equiv_planted(host->row->kind.name, &all->script, all->arena);
    if (host->row->profile) playing.options.profile = str_from(host->row->profile);
    if (faults && index > 0) {
        playing.options.kills = draw_kills(equiv, index, all->out->logs[0].result.points, all->arena);
        playing.options.kill_count = faults;
        if (!playing.options.kills) return error_nomem(err);
    }
    enum code rc = host->row->play(host, &playing, &log->err);
    if (!rc) rc = equiv_log_read(log->store, all->arena, log, &log->err);
    log->took_us = os_mono_us() - began;
    all->out->kills += log->result.kills;
    if (rc == E_NOMEM) return error_nomem(err);
    return OK;
}

// What people expected of their signals is part of the script: the same word on every host, or a difference.
static bool same_faults(const struct trial_result *a, const struct trial_result *b, const struct trial_fault **odd)
{
    size_t i = 0;
    while (i < a->fault_count && i < b->fault_count && str_eq(a->faults[i].what, b->faults[i].what) &&
           str_eq(a->faults[i].expected, b->faults[i].expected) && str_eq(a->faults[i].got, b->faults[i].got))
        i++;
    *odd = i < b->fault_count ? &b->faults[i] : i < a->fault_count ? &a->faults[i] : NULL;
    return *odd == NULL;
}

static enum code judge(struct playing_all *all, size_t index, struct error *err)
{
    struct equiv_log *first = &all->out->logs[0], *log = &all->out->logs[index];
    struct equiv_difference *out = &all->out->differences[index];
    const struct trial_fault *odd = NULL;
    *out = (struct equiv_difference){0};
    struct str wrong = log->err.code ? arena_format(all->arena, "it cannot be played there: %s", log->err.message) : log->fault;
    if (wrong.len) {
        *out = (struct equiv_difference){.what = EQUIV_WRONG, .text = wrong};
        return OK;
    }
    if (index == 0 || first->err.code) return OK;
    bool killed = all->equiv->options.faults > 0;
    enum code rc = OK;
    if (killed)
        equiv_compare_ends(first, log, all->arena, out);
    else
        rc = equiv_compare(first, log, all->arena, out, err);
    if (rc) return rc;
    if (out->what) {
        equiv_explain(first, log, all->arena, out);
    } else if (!killed && !same_faults(&first->result, &log->result, &odd)) {
        out->what = EQUIV_WRONG;
        out->text = arena_format(all->arena, "%.*s: expected %.*s, got %.*s", STR_ARG(odd->what),
                                 STR_ARG(odd->expected), STR_ARG(odd->got));
    }
    return OK;
}

enum code equiv_case(struct equiv *equiv, const struct program *program, const struct trial_script *script, struct arena *arena,
                     struct equiv_report *out, struct error *err)
{
    struct playing_all all = {.equiv = equiv, .program = program, .script = *script, .arena = arena, .out = out};
    uint8_t random[4];
    int64_t began = os_mono_us();
    equiv->cases++;
    os_entropy()->fill(os_entropy(), random, sizeof(random)); // hosts that stay have other runs of ours already
    snprintf(equiv->run, sizeof(equiv->run), "equiv-%02x%02x%02x%02x-%llu", random[0], random[1], random[2], random[3],
             (unsigned long long)equiv->cases);
    all.script.run = str_from(equiv->run);
    *out = (struct equiv_report){.host_count = equiv->count + (equiv->options.faults > 0)};
    size_t count = out->host_count;
    out->logs = ARENA_ARRAY(arena, count, struct equiv_log);
    out->differences = ARENA_ARRAY(arena, count, struct equiv_difference);
    if (!out->logs || !out->differences) return error_nomem(err);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < count; i++) rc = play(&all, i, err);
    for (size_t i = 0; !rc && i < count; i++) rc = judge(&all, i, err);
    out->same = true;
    for (size_t i = 0; !rc && i < count; i++) out->same = out->same && out->differences[i].what == EQUIV_SAME;
    out->took_us = os_mono_us() - began;
    return rc;
}
