// The bytes that the kernel writes, of every workload of the simulator, every example and every playbook among the goldens, in a few
// kinds of lives: nothing goes wrong, everything fails once, executors are lost, the engine dies, people pause and cancel. The golden
// has a hash of the log and one of the ledger for each, so that a change inside the kernel that was not to change a log shows that it
// did not. CAIRN_GOLDEN_UPDATE=1 rewrites it.
#include "sim/workload.h"
#include "unit/support/life_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES_MAX = 160, LINE_MS = 7 };

enum mode {
    MODE_CALM,
    MODE_STUMBLE,
    MODE_FAIL,
    MODE_LOST,
    MODE_LATE,
    MODE_CRASH,
    MODE_PAUSE,
    MODE_INTERRUPT,
    MODE_CANCEL,
    MODE_COUNT
};
static const char *const mode_names[] = {"calm",  "stumble", "fail",      "lost",  "late",
                                         "crash", "pause",   "interrupt", "cancel"};

static enum mode mode;
static uint32_t signals;
static bool asked; // for the pause, or the cancellation, of the mode

static void ask(enum signal_type type, struct str path)
{
    char id[UUID_SIZE];
    uint8_t raw[16] = {0xff, (uint8_t)(++signals >> 8), (uint8_t)signals};
    uuid_format(raw, id);
    struct signal signal = {.type = type,
                            .id = str_from(id),
                            .step = path,
                            .reason = STR("it is part of the test"),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .payload = json_object()};
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-000000000000")};
    life_step(&input);
}

// ---- what executors say
static struct json text_value(const char *text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &life.turn, &value, &err), &err);
    return value;
}

static bool fails(const struct effect *e)
{
    return mode == MODE_FAIL || (mode == MODE_STUMBLE && e->logical % 2 == 1 && e->engine == 1);
}

static void answer(const struct effect *e)
{
    bool lane = e->step >= life.program->step_count;
    struct input input = {.kind = INPUT_RESULT,
                          .step = e->step,
                          .logical = e->logical,
                          .engine = e->engine,
                          .member = e->member,
                          .duration_ms = 3,
                          .ok = !fails(e),
                          .lost = mode == MODE_LOST && e->engine < 3 && e->member == 0};
    if (!input.ok)
        input.fault = (struct fault){.code = STR("TIMEOUT"),
                                     .message = STR("no"),
                                     .category = STR("infrastructure"),
                                     .retryable = mode == MODE_STUMBLE};
    else if (lane)
        input.value = text_value("{\"result\":{\"items\":[1,2],\"more\":false,\"n\":1},\"status\":\"ok\"}");
    else
        input.value = text_value(e->kind == EFFECT_SUBRUN ? "{\"outputs\":\"yes\",\"status\":\"COMPLETED\"}" : "true");
    if (lane && fails(e)) { // what a tool itself says, and not the engine about it
        input.ok = true;
        input.value = text_value("{\"error\":{\"code\":\"E\",\"kind\":\"timeout\",\"message\":\"no\",\"retryable\":true},"
                                 "\"status\":\"error\"}");
    }
    life_step(&input);
    if (mode == MODE_LATE) life_step(&input);
}

// An attempt that was asked to stop: what is due of it is what it says about that.
static void stop(const struct effect *e)
{
    for (size_t i = 0; i < life.due_count; i++) {
        struct effect running = life.due[i];
        bool attempt = running.kind == EFFECT_EXECUTE || running.kind == EFFECT_SUBRUN;
        bool same = running.step == e->step && running.logical == e->logical && running.engine == e->engine &&
                    running.member == e->member;
        if (!attempt || !same) continue;
        life_forget_due(i);
        struct input input = {.kind = INPUT_RESULT,
                              .step = e->step,
                              .logical = e->logical,
                              .engine = e->engine,
                              .member = e->member,
                              .duration_ms = 4,
                              .fault = {.code = STR("CANCELLED"), .message = STR("stopped"), .category = STR("")}};
        life_step(&input);
        return;
    }
}

// ---- a life
// Nothing is due: somebody has to say something. False: the run waits for nobody.
static bool people(void)
{
    if (life.run->status == RUN_STATUS_PAUSED) {
        ask(SIGNAL_RESUME, (struct str){0});
        return true;
    }
    if (life.run->status == RUN_STATUS_PENDING) {
        ask(SIGNAL_APPROVE, (struct str){0});
        return true;
    }
    for (uint32_t i = 0; i < life.program->step_count; i++) {
        uint8_t state = kernel_state(life.run, i);
        bool gate = life.program->steps[i].kind == STEP_APPROVAL && state == NODE_RUNNING;
        if (!gate && state != NODE_HELD) continue;
        struct str path = kernel_path(life.run, i, &life.turn);
        CHECK(path.ptr);
        ask(gate ? (mode == MODE_FAIL ? SIGNAL_REJECT : SIGNAL_APPROVE)
                 : (mode == MODE_FAIL ? SIGNAL_SKIP_STEP : SIGNAL_RETRY_STEP),
            path);
        return true;
    }
    return false;
}

// False: nobody does anything any more.
static bool act(void)
{
    bool pauses = mode == MODE_PAUSE || mode == MODE_INTERRUPT;
    if (mode == MODE_CRASH && life.batches % 3 == 2) {
        life_crash();
        return true;
    }
    if (!asked && life.batches >= 2 && (pauses || mode == MODE_CANCEL)) {
        asked = true;
        ask(pauses ? SIGNAL_PAUSE : SIGNAL_CANCEL, (struct str){0});
        return true;
    }
    if (life.due_count == 0) return people();
    struct effect e = life_take_due();
    if (e.kind == EFFECT_CANCEL || e.kind == EFFECT_SUBRUN_CANCEL) {
        stop(&e);
    } else if (e.kind != EFFECT_TIMER) {
        answer(&e);
    } else {
        life_fire(&e);
    }
    return true;
}

static void begin(struct program *program, enum mode of)
{
    mode = of;
    signals = 0;
    asked = false;
    life_begin(program);
    struct start_facts facts = {.document_sha256 = {program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(program->kind)),
                                .inputs = json_object(),
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .triggered_by = STR("test"),
                                .profile = mode == MODE_INTERRUPT ? STR("temporal") : (struct str){0},
                                .cancel_on_pause = mode == MODE_INTERRUPT,
                                .requires_approval = program->requires_approval};
    struct input start = {.kind = INPUT_START, .start = &facts};
    life_step(&start);
    while (!run_status_terminal(life.run->status) && life.batches < BATCHES_MAX && act()) {
    }
}

static void hash_of(bool ledger, char hex[SHA256_HEX + 1], size_t *count)
{
    struct buf all;
    buf_init(&all, (size_t)256 << 20);
    *count = 0;
    for (size_t i = 0; i < life.record_count; i++) {
        if (life.records[i].in_ledger != ledger) continue;
        buf_add(&all, life.records[i].bytes);
        buf_byte(&all, '\n');
        ++*count;
    }
    CHECK(buf_ok(&all));
    struct digest digest = sha256(buf_str(&all));
    digest_hex(&digest, hex);
    hex[SHA256_HEX] = 0;
    buf_release(&all);
}

static void tell_edited(struct program *program);
static bool edits; // not the hashes, but what becomes of edited logs

static void tell(struct buf *out, const char *name, struct program *program)
{
    if (edits) {
        tell_edited(program);
        return;
    }
    for (int i = 0; i < MODE_COUNT; i++) {
        char log[SHA256_HEX + 1], ledger[SHA256_HEX + 1];
        size_t events, entries;
        begin(program, (enum mode)i);
        hash_of(false, log, &events);
        hash_of(true, ledger, &entries);
        buf_printf(out, "%s %s %s: log %zu %.16s, ledger %zu %.16s\n", name, mode_names[i],
                   run_status_name(life.run->status), events, log, entries, ledger);
        life_end();
    }
}

// ---- logs that were edited
enum { EDITS = 30 };
static uint64_t dice;

static uint32_t roll(size_t sides)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return sides ? (uint32_t)((dice >> 33) % sides) : 0;
}

// One field of a moment says something else, as a hand with the right hashes could make it say.
static void edit_moment(struct moment *m)
{
    switch (roll(6)) {
    case 0:
        m->step = kernel_path(life.run, roll(run_step_count(life.run)), &life.turn);
        break;
    case 1:
        m->logical = roll(4);
        break;
    case 2:
        m->engine = roll(4);
        break;
    case 3:
        m->iteration = roll(5);
        break;
    case 4:
        m->kind = (enum moment_kind)(MOMENT_UNKNOWN + 1 + roll(MOMENT_COUNT - MOMENT_UNKNOWN - 1));
        break;
    case 5:
        m->due_ms = (int64_t)roll(100) - 50;
        break;
    }
}

// Folds the log with one or two records left out, twice there, in another place or altered. It is refused, or it is a run that the
// engine can take up.
static void fold_edited(void)
{
    struct error err = {0};
    struct run *run = run_new(life.program, &life_ids);
    CHECK(run);
    run->env = &life_env;
    enum code rc = OK;
    size_t leave = roll(life.record_count), twice = roll(life.record_count);
    size_t from = roll(life.record_count), alter = roll(life.record_count);
    uint32_t what = 1 + roll(15);
    for (size_t i = 0; !rc && i < life.record_count; i++) {
        size_t at = what & 4 && i == from ? roll(life.record_count) : i;
        const struct life_record *r = &life.records[at];
        struct moment m = {0};
        struct seal seal = {0};
        if (what & 1 && i == leave) continue;
        arena_reset(&life.turn);
        rc = r->in_ledger ? contract_decode_ledger(r->bytes, &life.turn, &m, &err)
                          : contract_decode(life.words, r->bytes, &life.turn, &m, &seal, NULL, &err);
        if (!rc && what & 8 && i == alter) edit_moment(&m);
        if (!rc) rc = kernel_fold(run, &m, &err);
        if (!rc && what & 2 && i == twice) rc = kernel_fold(run, &m, &err);
    }
    if (!rc && !run_fault(run) && !run_status_terminal(run->status)) {
        struct run_holds holds = {0};
        struct outcome out = {.turn = &life.turn};
        struct input input = {.kind = INPUT_RECOVER, .now_ms = life.now};
        arena_reset(&life.turn);
        rc = kernel_step(run, &holds, &input, &life_env, &out, &err);
        holds_release(&holds);
    }
    run_free(run);
}

static void tell_edited(struct program *program)
{
    for (int i = 0; i < MODE_COUNT; i++) {
        begin(program, (enum mode)i);
        for (int k = 0; k < EDITS; k++) fold_edited();
        life_end();
    }
}

// ---- documents
static enum code load_beside(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    char path[600];
    const char *const ends[] = {"", ".yaml", ".json", ".sh", ".py", ".js"};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        snprintf(path, sizeof(path), "%s/%.*s%s", (const char *)context, STR_ARG(part->request), ends[i]);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        fclose(file);
        part->file = arena_copy(arena, str_from(path));
        part->text = test_read_file(path);
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "%.*s is not there", STR_ARG(part->request));
}

static bool any_kind(void *context, struct str kind)
{
    (void)context;
    return kind.len > 0;
}

// Every document of a folder that compiles; those that need more than files beside them do not.
static size_t tell_folder(struct buf *out, const char *folder)
{
    char names[64][64];
    size_t count = 0, told = 0;
    DIR *open = opendir(folder);
    CHECK(open);
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        struct str name = str_from(entry->d_name);
        if (!str_ends(name, STR(".yaml")) && !str_ends(name, STR(".json"))) continue;
        CHECK(count < ARRAY_COUNT(names) && name.len < 64);
        snprintf(names[count++], 64, "%.63s", entry->d_name);
    }
    closedir(open);
    qsort(names, count, 64, (int (*)(const void *, const void *))strcmp);
    for (size_t i = 0; i < count; i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        struct arena arena;
        arena_init(&arena, 4096, (size_t)64 << 20);
        struct diagnostics diagnostics;
        diagnostics_init(&diagnostics, &arena);
        struct error err = {0};
        struct program *program = NULL;
        struct program_loader loader = {
            .context = (void *)(uintptr_t)folder, .load = load_beside, .task_kind = any_kind};
        enum code rc = program_load(test_read_file(path), str_from(names[i]), &loader, &diagnostics, &program, &err);
        arena_release(&arena);
        if (rc) continue;
        tell(out, names[i], program);
        program_release(program);
        told++;
    }
    return told;
}

static void the_bytes_of_every_log_and_ledger_are_as_before(void)
{
    struct buf out;
    buf_init(&out, (size_t)4 << 20);
    for (int i = 0; i < WORKLOAD_COUNT; i++)
        tell(&out, workload_at((enum workload_id)i)->name, workload_program((enum workload_id)i));
    CHECK(tell_folder(&out, "examples") >= 10);
    CHECK(tell_folder(&out, "test/golden/playbooks") >= 9);
    test_golden("log_bytes.txt", buf_str(&out));
    buf_release(&out);
}

static void a_log_that_was_edited_is_refused_or_taken_up_I5(void)
{
    struct buf out = buf_of(1 << 20);
    edits = true;
    for (int i = 0; i < WORKLOAD_COUNT; i++)
        tell(&out, workload_at((enum workload_id)i)->name, workload_program((enum workload_id)i));
    CHECK(tell_folder(&out, "examples") >= 10);
    CHECK(tell_folder(&out, "test/golden/playbooks") >= 9);
    edits = false;
    buf_release(&out);
}

int main(int argc, char **argv)
{
    static struct arena arena;
    arena_init(&arena, 65536, (size_t)256 << 20);
    struct error err = {0};
    if (contract_open(&arena, &life.settings.contract, &err) != OK) return 1;
    life.settings.wanted = 1u << EFFECT_EXECUTE | 1u << EFFECT_SUBRUN | 1u << EFFECT_TIMER | 1u << EFFECT_CANCEL |
                           1u << EFFECT_SUBRUN_CANCEL;
    life.settings.pace_ms = LINE_MS;
    life.settings.lucky = true;
    workloads_load();
    static const struct test tests[] = {TEST(the_bytes_of_every_log_and_ledger_are_as_before),
                                        TEST(a_log_that_was_edited_is_refused_or_taken_up_I5)};
    return test_main("log_bytes", tests, ARRAY_COUNT(tests), argc, argv);
}
