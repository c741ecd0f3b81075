// One world: virtual time, a store, an engine, fake tools, and people. Nothing in it is left to chance: the next thing that
// happens is the one that is due first; of those that are due together, what tools answer comes before what people send
// and both before timers.
//
// A world may die at a point (inside.h: stage_hooks). Then everything but the disk is gone, time stands still while the
// machine is down, and the next life goes on: so what differs in the end is the engine's doing, not the clock's.
#include "trial/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ACTS_MAX 4000000
#define VISITS_MAX 10000 // of one step of a playbook
#define JOURNAL_SMALL ((uint64_t)256 << 10)
#define JOURNAL_LARGE ((uint64_t)4 << 20)
#define SMALL_STEPS 100

void stage_say(struct stage *stage, const char *format, ...)
{
    if (!stage->hooks.line) return;
    char line[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    stage->hooks.line(stage->hooks.context, line);
}

void stage_break(struct stage *stage, const char *rule, const char *format, ...)
{
    if (stage->broken) return;
    stage->broken = rule;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(stage->message, sizeof(stage->message), format, arguments);
    va_end(arguments);
    stage_say(stage, "BROKEN %s: %s", rule, stage->message);
}

bool stage_point(struct stage *stage, enum boundary boundary, struct str step, struct str label)
{
    if (stage->died || stage->over) return stage->died;
    const struct trial_options *options = stage->options;
    uint64_t number = ++stage->result->points;
    bool dies = stage->killed < options->kill_count && number >= options->kills[stage->killed];
    if (dies) {
        stage->killed++;
        stage->cut = boundary;
    }
    if (!dies && stage->hooks.point) dies = stage->hooks.point(stage->hooks.context, stage, boundary, step, label);
    if (!dies) return false;
    stage->died = true;
    if (stage->disk) sim_disk_stop_after(stage->disk, 0);
    return true;
}

// ---- runs

struct stage_run *stage_run_of(const struct stage *stage, struct str id)
{
    for (size_t i = 0; i < stage->run_count; i++)
        if (str_eq(stage->runs[i].id, id)) return &stage->runs[i];
    return NULL;
}

struct str stage_path(struct stage *stage, struct str run, struct str step)
{
    const struct stage_run *found = stage_run_of(stage, run);
    struct str prefix = found ? found->prefix : STR("?/");
    return trial_format(stage->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(step));
}

// The attempt of the parent's step is the last part of the child's id, or unknown when the id had to be a hash.
static uint32_t attempt_of_child(struct str id)
{
    size_t at = id.len;
    int64_t n = 0;
    while (at > 0 && id.ptr[at - 1] != '.') at--;
    return str_int64(str_slice(id, at, id.len), &n) && n > 0 && n < 1000000 ? (uint32_t)n : 1;
}

struct stage_run *stage_learn(struct stage *stage, struct str id, const struct start_facts *start)
{
    struct stage_run *run = stage_run_of(stage, id);
    if (run || !start) return run;
    const struct stage_run *parent = start->parent_run.len ? stage_run_of(stage, start->parent_run) : NULL;
    const struct program *child = parent ? path_child(parent->program, start->parent_step) : NULL;
    struct str prefix = STR("");
    if (parent) {
        uint32_t attempt = attempt_of_child(id);
        prefix = attempt > 1
                     ? trial_format(stage->arena, "%.*s%.*s#%u/", STR_ARG(parent->prefix), STR_ARG(start->parent_step),
                                    attempt)
                     : trial_format(stage->arena, "%.*s%.*s/", STR_ARG(parent->prefix), STR_ARG(start->parent_step));
    }
    if (!ARENA_ROOM(stage->arena, stage->runs, stage->run_count, &stage->run_capacity)) return NULL;
    run = &stage->runs[stage->run_count++];
    *run = (struct stage_run){.id = arena_copy(stage->arena, id),
                              .prefix = prefix,
                              .program = child ? child : stage->options->program};
    return run;
}

static void remember(struct stage *stage, struct stage_run *run, uint64_t seq, struct str bytes)
{
    if (seq != run->told_count + 1) return; // reported before
    if (!ARENA_ROOM(stage->arena, run->told, run->told_count, &run->told_capacity)) return;
    run->told[run->told_count++] = str_hash(bytes);
}

// ---- what the engine reports

static void say_moment(struct stage *stage, const struct stage_run *run, const struct moment *m, uint64_t seq)
{
    if (!stage->hooks.line) return;
    enum vocabulary vocabulary = program_vocabulary(run->program);
    const char *word = moment_word(m->kind, vocabulary);
    char number[24] = "", attempt[48] = "";
    if (word) snprintf(number, sizeof(number), "%llu", (unsigned long long)seq);
    if (m->step.len) snprintf(attempt, sizeof(attempt), " attempt %u.%u", m->logical, m->engine);
    stage_say(stage, "%4s  %s %.*s%.*s%s", number, word ? word : moment_name(m->kind), STR_ARG(run->prefix),
              STR_ARG(m->step), attempt);
}

static void label_moment(struct stage *stage, const struct stage_run *run, const struct moment *m)
{
    if (!stage->hooks.batch) return;
    enum vocabulary vocabulary = program_vocabulary(run->program);
    const char *word = moment_word(m->kind, vocabulary);
    if (!word) return;
    if (m->step.len && stage->batch.len == 0) // of several, the one that it is about comes first
        stage->batch_step = trial_format(stage->arena, "%.*s%.*s", STR_ARG(run->prefix), STR_ARG(m->step));
    if (stage->batch.len > 160) {
        if (!str_ends(buf_str(&stage->batch), STR("…"))) buf_text(&stage->batch, ", …");
        return;
    }
    buf_printf(&stage->batch, "%s%s%s%.*s%.*s", stage->batch.len ? ", " : "", word, m->step.len ? " " : "",
               m->step.len ? (int)run->prefix.len : 0, run->prefix.ptr, STR_ARG(m->step));
}

// What tools and people of the script learn of it.
static void hear(struct stage *stage, struct stage_run *run, const struct moment *m)
{
    if (m->kind == MOMENT_STEP_STARTED && m->visit > VISITS_MAX)
        stage_break(stage, "STUCK", "%.*s was visited %d times, and the run goes on: a mock of what its arcs ask for can end it",
                    STR_ARG(m->step), VISITS_MAX);
    if (m->kind == MOMENT_STEP_COMPLETED) tool_told(stage, stage_path(stage, run->id, m->step), m);
    if (m->task.len && (m->kind == MOMENT_ATTEMPT_DONE || m->kind == MOMENT_ATTEMPT_FAILED))
        tool_told_task(stage, task_path(stage->arena, stage_path(stage, run->id, STR("")), m), m);
    people_hear(stage, run, m);
}

static void on_event(void *context, const struct engine_event *event)
{
    struct stage *stage = context;
    if (stage->died) return;
    const struct moment *m = event->moment;
    struct stage_run *run = stage_learn(stage, event->run, m->start);
    if (!run) return;
    if (stage->writing) { // the first one after a commit
        stage->writing = stage->synced = false;
        if (stage_point(stage, BOUNDARY_TOLD, STR(""), STR(""))) return;
    }
    if (event->item->in_log) remember(stage, run, event->item->seq, event->item->bytes);
    say_moment(stage, run, m, event->item->seq);
    label_moment(stage, run, m);
    hear(stage, run, m);
}

static void on_decision(void *context, const struct engine_decision *decision)
{
    struct stage *stage = context;
    struct str label = str_from(signal_name(decision->type));
    if (stage_point(stage, BOUNDARY_DECISION, STR(""), label)) return;
    stage_say(stage, "      %s %s%s%.*s", signal_name(decision->type), decision->accepted ? "accepted" : "rejected",
              decision->error_code.len ? ": " : "", STR_ARG(decision->error_code));
    people_decided(stage, decision);
    stage_point(stage, BOUNDARY_DECIDED, STR(""), label);
}

static void on_refused(void *context, const struct engine_refusal *refusal)
{
    struct stage *stage = context;
    if (!stage->died) stage_break(stage, "START", "run %.*s was refused: %s", STR_ARG(refusal->run), refusal->why->message);
}

// ---- store and disk

// Asked before every change of the disk. What happens while the store is opened counts only in a later life.
static bool on_disk(void *context, enum sim_call call)
{
    struct stage *stage = context;
    if (stage->opening) return stage->lives > 0 && stage_point(stage, BOUNDARY_RECOVERY, STR(""), STR("the next life"));
    stage->writing = true;
    if (call == SIM_SYNC) {
        stage->synced = true;
        return stage_point(stage, BOUNDARY_LOST, STR(""), STR("")) ||
               stage_point(stage, BOUNDARY_TORN, STR(""), STR("")) ||
               stage_point(stage, BOUNDARY_KEPT, STR(""), STR(""));
    }
    return stage_point(stage, stage->synced ? BOUNDARY_SYNCED : BOUNDARY_APPEND, STR(""), STR(""));
}

enum { FATE_KEPT = 0, FATE_LOST = 1, FATE_TORN = 2 };

struct cut {
    enum boundary how;
    uint64_t left; // changes that have not been asked about
    bool how_far;
};

// Torn: everything older is lost, and of the last write one half is there.
static uint32_t pick_fate(void *context, uint32_t n)
{
    struct cut *cut = context;
    if (cut->how_far) {
        cut->how_far = false;
        return n / 2;
    }
    if (cut->left > 0) cut->left--;
    if (cut->how == BOUNDARY_TORN && cut->left == 0 && n > FATE_TORN) {
        cut->how_far = true;
        return FATE_TORN;
    }
    return n > FATE_LOST ? FATE_LOST : FATE_KEPT;
}

// What became of the disk when the process died
static void stage_cut(struct stage *stage, enum boundary how)
{
    if (!stage->disk) return;
    struct cut cut = {.how = how, .left = sim_disk_unsynced(stage->disk)};
    sim_disk_heal(stage->disk);
    if (how == BOUNDARY_KEPT)
        sim_disk_kill(stage->disk);
    else
        sim_disk_crash(stage->disk, (struct sim_choice){pick_fate, &cut}, SIM_LOSE | SIM_TEAR_BYTES | SIM_LOSE_NAMES);
    sim_disk_stop_after(stage->disk, UINT64_MAX);
}

static void fill(struct entropy *entropy, void *bytes, size_t size)
{
    struct stage *stage = CONTAINER_OF(entropy, struct stage, entropy);
    for (size_t i = 0; i < size; i++) {
        stage->random += 0x9e3779b97f4a7c15u;
        uint64_t z = stage->random;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        ((uint8_t *)bytes)[i] = (uint8_t)((z ^ (z >> 31)) & 0xff);
    }
}

static enum code open_store(struct stage *stage, struct error *err)
{
    struct str artifacts = trial_format(stage->arena, "%s/world", stage->options->scratch);
    bool large = stage->options->program->step_count > SMALL_STEPS;
    struct store_options options = {.mode = STORE_WRITE,
                                    .create = true,
                                    .contract = stage->options->contract,
                                    .entropy = &stage->entropy,
                                    .journal_size = large ? JOURNAL_LARGE : JOURNAL_SMALL,
                                    .artifacts = artifacts.ptr};
    struct str url = stage->options->store;
    if (!stage->on_disk) return store_open(url.len ? url : STR("memory:"), &options, &stage->store, err);
    if (!stage->disk) {
        stage->disk = sim_disk_new();
        sim_disk_watch(stage->disk, on_disk, stage);
    }
    options.disk = sim_disk_ops(stage->disk);
    stage->opening = true;
    enum code rc = store_open(STR("files:store"), &options, &stage->store, err);
    stage->opening = false;
    return rc;
}

// ---- lives

static bool knows(void *context, struct str function)
{
    (void)context, (void)function;
    return true;
}

static enum code open_engine(struct stage *stage, struct error *err)
{
    struct engine_options options = {
        .store = stage->store,
        .contract = stage->options->contract,
        .entropy = &stage->entropy,
        .tools = &stage->fake.base,
        .host = {.tools = &stage->fake.base, .knows = knows},
        .tasks = {.tools = &stage->fake.base, .knows = knows},
        .no_files = true,
        .limits = engine_limits_default,
        .observer = {.context = stage, .event = on_event, .decision = on_decision, .refused = on_refused}};
    enum code rc = engine_open(&options, &stage->engine, err);
    stage->fake.engine = stage->engine;
    return rc;
}

static enum code start_run(struct stage *stage, struct error *err)
{
    const struct trial_script *script = stage->options->script;
    struct start_request request = {
        .program = stage->options->program,
        .run = stage->options->script->run,
        .inputs = script->inputs,
        .arguments = script->arguments,
        .work_dir = str_from(stage->options->work_dir ? stage->options->work_dir : stage->options->scratch),
        .triggered_by = STR("tester"),
        .target_adapter = stage->options->profile};
    char id[129];
    return stage->host ? host_begin(stage, &request, err) : engine_start(stage->engine, &request, id, err);
}

struct relearn {
    struct stage *stage;
    struct run_head *head;
    struct stage_run *run;
    uint64_t count;
};

void stage_hear(struct stage *stage, struct stage_run *run, const struct record *record, const struct moment *m)
{
    bool untold = m && !record->ledger_seq && record->seq > run->told_count;
    if (!record->ledger_seq) remember(stage, run, record->seq, record->bytes);
    if (untold) say_moment(stage, run, m, record->seq);
    if (m) hear(stage, run, m);
}

static enum code relearn_record(void *context, const struct record *record, const struct moment *m,
                                const struct seal *seal)
{
    (void)seal;
    struct relearn *relearn = context;
    struct stage *stage = relearn->stage;
    if (m) relearn->run = stage_learn(stage, relearn->head->ids.run, m->start);
    struct stage_run *run = relearn->run;
    if (!run) return OK;
    if (!record->ledger_seq) {
        relearn->count = record->seq;
        if (run->told && record->seq <= run->told_count && run->told[record->seq - 1] != str_hash(record->bytes))
            stage_break(stage, "LOST", "event %llu of %.*s is another one than was acknowledged before the crash",
                        (unsigned long long)record->seq, STR_ARG(run->id));
    }
    stage_hear(stage, run, record, m);
    return OK;
}

static bool is_listed(const struct run_heads *heads, struct str run)
{
    for (size_t i = 0; i < heads->count; i++)
        if (str_eq(heads->items[i].ids.run, run)) return true;
    return false;
}

enum code stage_family(struct stage *stage, struct arena *arena, struct run_heads *out, struct error *err)
{
    struct str root = stage->options->script->run;
    struct run_filter filter = {.limit = 500};
    struct run_heads newest = {0}, page;
    size_t capacity = 0;
    bool reached = false;
    *out = (struct run_heads){0};
    do { // newest first: what is older than the root is not of it
        enum code rc = store_list(stage_store(stage), &filter, arena, &page, err);
        if (rc) return rc;
        for (size_t i = 0; i < page.count && !reached; i++) {
            if (!ARENA_ROOM(arena, newest.items, newest.count, &capacity)) return error_nomem(err);
            newest.items[newest.count++] = page.items[i];
            reached = str_eq(page.items[i].ids.run, root);
        }
        filter.before = page.next;
    } while (!reached && page.next);
    struct map family;
    map_init(&family, arena);
    out->items = ARENA_ARRAY(arena, newest.count + 1, struct run_head);
    if (!out->items) return error_nomem(err);
    for (size_t i = newest.count; reached && i > 0; i--) {
        const struct run_head *head = &newest.items[i - 1];
        if (!str_eq(head->ids.run, root) && map_get(&family, head->parent_run) == MAP_NONE) continue;
        if (!map_put(&family, head->ids.run, (uint32_t)out->count, NULL)) return error_nomem(err);
        out->items[out->count++] = *head;
    }
    return OK;
}

// What the store knows after a crash: everything that was reported must be there, and what was stored without being reported is
// heard of now.
static enum code relearn(struct stage *stage, struct error *err)
{
    struct run_heads heads = {0};
    enum code rc = stage_family(stage, stage->arena, &heads, err);
    for (size_t i = 0; !rc && i < heads.count; i++) {
        struct run_head *head = &heads.items[i];
        struct relearn one = {.stage = stage, .head = head, .run = stage_run_of(stage, head->ids.run)};
        rc = store_replay(stage->store, head->ids.tenant, head->ids.run, relearn_record, &one, err);
        if (!rc && one.run && one.count < one.run->told_count)
            stage_break(stage, "LOST", "%.*s had %zu acknowledged events before the crash and has %llu after it",
                        STR_ARG(one.run->id), one.run->told_count, (unsigned long long)one.count);
        if (!rc && !head->terminal) rc = engine_adopt(stage->engine, head->ids.tenant, head->ids.run, err);
    }
    for (size_t i = 0; !rc && i < stage->run_count; i++) {
        bool found = stage->runs[i].told_count == 0 || is_listed(&heads, stage->runs[i].id);
        if (!found) stage_break(stage, "LOST", "run %.*s is gone after the crash", STR_ARG(stage->runs[i].id));
    }
    if (!rc && heads.count == 0) rc = start_run(stage, err); // its caller got no answer and asks again
    return rc;
}

static void end_life(struct stage *stage)
{
    if (stage->engine) engine_close(stage->engine);
    stage->engine = NULL;
    stage->fake.count = 0;
    if (stage->store) store_close(stage->store);
    stage->store = NULL;
}

static void crash(struct stage *stage)
{
    end_life(stage);
    stage_cut(stage, stage->cut);
    stage->died = stage->writing = stage->synced = false;
    stage->down = true;
    stage->batch_step = (struct str){0};
    buf_clear(&stage->batch);
    stage->lives++;
}

static enum code next_life(struct stage *stage, struct error *err)
{
    stage->down = false;
    if (stage->host) return stage->host->kill(stage->host->context, err);
    stage_say(stage, "----- restarted; stored before the kill and not reported: -----");
    enum code rc = open_store(stage, err);
    if (!rc) rc = open_engine(stage, err);
    stage->opening = true; // claiming runs changes the disk as well
    if (!rc) rc = relearn(stage, err);
    stage->opening = false;
    if (!rc && !stage->died) people_again(stage);
    if (!rc && !stage->died) stage_say(stage, "----- goes on -----");
    if (rc && !stage->died) stage_break(stage, "LOST", "the run cannot be taken up again: %s", err->message);
    if (rc && !stage->died) return rc;
    *err = (struct error){0};
    return OK;
}

// ---- acts

static enum code turns(struct stage *stage, struct error *err)
{
    bool worked = true;
    if (stage->host) return host_turns(stage, err);
    while (worked && !stage->died && !stage->broken) {
        struct moment_in_time now = {.wall_ms = stage->wall_ms, .mono_ms = stage->mono_ms};
        stage->writing = stage->synced = false;
        enum code rc = engine_turn(stage->engine, now, &worked, err);
        stage->result->turns++;
        if (stage->hooks.batch && stage->batch.len > 0)
            stage->hooks.batch(stage->hooks.context, stage->batch_step, buf_str(&stage->batch));
        buf_clear(&stage->batch);
        stage->batch_step = (struct str){0};
        if (stage->died) *err = (struct error){0};
        if (rc && !stage->died) return rc;
    }
    return OK;
}

static void deliver(struct stage *stage)
{
    size_t index = fake_first(&stage->fake);
    const struct effect_seen *effect = &stage->effects[stage->fake.answers[index].tag];
    struct str path = effect->path,
               label = trial_format(stage->arena, "%.*s (attempt %u)", STR_ARG(path), effect->attempt);
    if (stage_point(stage, BOUNDARY_ANSWER, path, label)) return;
    if (stage->fake.answers[index].lost) {
        stage->effects[stage->fake.answers[index].tag].lost++;
        stage->effects[stage->fake.answers[index].tag].again = true;
    }
    fake_deliver(&stage->fake, index);
    stage_point(stage, BOUNDARY_ANSWERED, path, label);
}

static void pass_until(struct stage *stage, int64_t mono_ms)
{
    if (mono_ms <= stage->mono_ms) return;
    stage->wall_ms += mono_ms - stage->mono_ms;
    stage->mono_ms = mono_ms;
}

// False when nothing happens by itself any more.
static bool act(struct stage *stage)
{
    int64_t due = fake_due(&stage->fake), people = people_due(stage);
    int64_t timer = stage->host ? stage->news.deadline_ms : engine_deadline(stage->engine);
    int64_t next = due < people ? due : people;
    if (timer < next) next = timer;
    if (next == INT64_MAX) return false;
    int64_t before = stage->mono_ms;
    pass_until(stage, next);
    if (due == next)
        deliver(stage);
    else if (people == next)
        people_send(stage);
    else if (before >= timer)
        pass_until(stage, before + 1); // a timer that is due and did not fire: never stand still
    return true;
}

enum code stage_open(struct stage *stage, const struct trial_options *options, struct trial_result *result)
{
    stage->options = options;
    stage->result = result;
    stage->arena = result->arena;
    stage->mono_ms = stage->start_mono_ms = 1000;
    stage->wall_ms = options->script->at_ms;
    stage->random = options->script->seed;
    stage->entropy.fill = fill;
    buf_init(&stage->batch, 4096);
    fake_init(&stage->fake, &stage->mono_ms);
    stage->host = options->host;
    stage->on_disk = stage->on_disk || options->on_disk;
    stage->result->points = 0;
    tool_open(stage);
    if (stage->host) host_enter(stage);
    enum code rc = stage->host ? OK : open_store(stage, &stage->err);
    if (!rc && !stage->host) rc = open_engine(stage, &stage->err);
    if (!rc) rc = start_run(stage, &stage->err);
    if (!rc) people_start(stage);
    return rc;
}

void stage_close(struct stage *stage)
{
    stage->hooks = (struct stage_hooks){0};
    stage->over = true; // closing a store in peace is no part of the story
    end_life(stage);
    if (stage->disk) sim_disk_free(stage->disk);
    real_close(stage->real);
    fake_release(&stage->fake);
    buf_release(&stage->batch);
}

static bool keep_order(struct stage *stage)
{
    struct trial_begun *begun = ARENA_ARRAY(stage->arena, stage->effect_count + 1, struct trial_begun);
    for (size_t i = 0; begun && i < stage->effect_count; i++)
        begun[i] = (struct trial_begun){.path = stage->effects[i].path, .logical = stage->effects[i].logical};
    stage->result->order = (struct trial_order){begun, begun ? stage->effect_count : 0};
    return begun != NULL;
}

struct store *stage_store(const struct stage *stage)
{
    return stage->host ? stage->host->store(stage->host->context) : stage->store;
}

enum code stage_play(struct stage *stage, struct error *err)
{
    enum code rc = OK;
    bool more = true;
    while (!rc && more && !stage->broken) {
        if (stage->acts++ > ACTS_MAX) {
            stage_break(stage, "STUCK", "the run has not ended after %d acts", ACTS_MAX);
            break;
        }
        if (stage->host ? stage->down : !stage->engine) rc = next_life(stage, err);
        if (!rc && !stage->died && (stage->host || stage->engine)) rc = turns(stage, err);
        if (!rc && !stage->died && !stage->broken) more = act(stage);
        if (stage->died) {
            crash(stage);
            more = true;
        }
    }
    stage->result->virtual_ms = stage->mono_ms - stage->start_mono_ms;
    stage->result->kills = stage->lives;
    if (rc || stage->broken) return rc;
    people_end(stage);
    if (!keep_order(stage)) return error_nomem(err);
    return story_read(stage_store(stage), STR("default"), stage->options->script->run, stage->options->program, stage->arena,
                      &stage->result->story, err);
}

struct trial_fault *result_fault(struct trial_result *result, uint32_t line, uint32_t column, struct str what)
{
    static struct trial_fault lost;
    if (!ARENA_ROOM(result->arena, result->faults, result->fault_count, &result->fault_capacity)) return &lost;
    struct trial_fault *fault = &result->faults[result->fault_count++];
    *fault = (struct trial_fault){.line = line, .column = column, .what = what};
    return fault;
}

struct trial_world {
    struct stage stage;
    struct trial_options options;
};

enum code trial_stay(const struct trial_options *options, struct arena *arena, struct trial_result *out,
                     struct trial_world **world, struct error *err)
{
    *out = (struct trial_result){.arena = arena, .story = {.arena = arena}};
    *world = calloc(1, sizeof(**world));
    if (!*world) return error_nomem(err);
    struct stage *stage = &(*world)->stage;
    (*world)->options = *options;
    enum code rc = stage_open(stage, &(*world)->options, out);
    if (rc) *err = stage->err;
    if (!rc) rc = stage_play(stage, err);
    if (!rc && stage->broken) rc = error_set(err, E_INVALID, "%s", stage->message);
    if (rc) {
        trial_leave(*world);
        *world = NULL;
    }
    return rc;
}

struct store *trial_store(struct trial_world *world)
{
    return stage_store(&world->stage);
}

void trial_leave(struct trial_world *world)
{
    if (!world) return;
    stage_close(&world->stage);
    free(world);
}

enum code trial_play(const struct trial_options *options, struct arena *arena, struct trial_result *out,
                     struct error *err)
{
    struct trial_world *world;
    enum code rc = trial_stay(options, arena, out, &world, err);
    trial_leave(world);
    return rc;
}
