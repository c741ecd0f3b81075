// The bytes that the kernel writes, of every workload of the simulator, every example and every playbook among the goldens, in a few
// kinds of lives: nothing goes wrong, everything fails once, executors are lost, the engine dies, people pause and cancel. The golden
// has a hash of the log and one of the ledger for each, so that a change inside the kernel that was not to change a log shows that it
// did not. CAIRN_GOLDEN_UPDATE=1 rewrites it.
#include "harness/test.h"
#include "kernel/kernel.h"
#include "sim/workload.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_MAX = 160, RECORDS_MAX = 20000, DUE_MAX = 4096, LINE_MS = 7 };

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

struct blob {
    struct digest sha256;
    struct str bytes;
};

static struct life {
    struct program *program;
    enum vocabulary words;
    enum mode mode;
    struct run *run;
    struct run_holds holds;
    struct arena kept, turn;
    struct moment_bytes {
        struct str bytes;
        bool in_ledger;
    } records[RECORDS_MAX];
    size_t record_count;
    struct blob blobs[256];
    size_t blob_count;
    struct effect due[DUE_MAX];
    size_t due_count;
    int64_t now;
    uint64_t seq;
    uint32_t batches, signals;
    bool asked; // the pause, or the cancellation, of the mode
} life;
static const struct contract *contract;

static const struct run_ids ids = {.tenant = {"default", 7},
                                   .project = {"default", 7},
                                   .environment = {"default", 7},
                                   .run = {"exec-1", 6},
                                   .plan_id = {"golden", 6},
                                   .plan_version = {"1", 1}};

static enum code find_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    (void)context, (void)arena;
    for (size_t i = 0; i < life.blob_count; i++) {
        if (!digest_eq(&life.blobs[i].sha256, sha256)) continue;
        *out = life.blobs[i].bytes;
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "no such blob");
}
static const struct kernel_env env = {.blob = find_blob};

static void store_moment(const struct moment *m)
{
    struct error err = {0};
    struct moment_bytes *record = &life.records[life.record_count++];
    CHECK(life.record_count < RECORDS_MAX);
    record->in_ledger = !moment_word(m->kind, life.words);
    if (record->in_ledger) {
        CHECK_OK(contract_encode_ledger(m, &life.kept, &record->bytes, &err), &err);
        return;
    }
    struct seal seal = {.seq = ++life.seq, .persisted_ms = m->at_ms};
    uint8_t raw[16] = {(uint8_t)(life.seq >> 8), (uint8_t)life.seq};
    uuid_format(raw, seal.event_id);
    struct encoded encoded;
    CHECK_OK(contract_encode(contract, life.words, &ids, m, &seal, &life.kept, &encoded, &err), &err);
    record->bytes = encoded.bytes;
}

static void step(struct input *input)
{
    struct outcome out = {.turn = &life.turn};
    struct error err = {0};
    life.now += LINE_MS;
    input->now_ms = life.now;
    input->random = 0x9e3779b97f4a7c15u * (life.batches + 1);
    CHECK_OK(kernel_step(life.run, &life.holds, input, &env, &out, &err), &err);
    run_verify(life.run);
    for (size_t i = 0; i < out.blob_count; i++) {
        CHECK(life.blob_count < ARRAY_COUNT(life.blobs));
        life.blobs[life.blob_count].sha256 = out.blobs[i].sha256;
        life.blobs[life.blob_count++].bytes = arena_copy(&life.kept, out.blobs[i].bytes);
    }
    for (size_t i = 0; i < out.moment_count; i++) store_moment(&out.moments[i]);
    for (size_t i = 0; i < out.effect_count; i++) {
        enum effect_kind kind = out.effects[i].kind;
        CHECK(life.due_count < DUE_MAX);
        if (kind == EFFECT_EXECUTE || kind == EFFECT_SUBRUN || kind == EFFECT_TIMER || kind == EFFECT_CANCEL ||
            kind == EFFECT_SUBRUN_CANCEL)
            life.due[life.due_count++] = out.effects[i];
    }
    life.batches++;
}

static void fold_all(void)
{
    struct error err = {0};
    run_free(life.run);
    life.run = run_new(life.program, &ids);
    CHECK(life.run);
    life.run->env = &env;
    for (size_t i = 0; i < life.record_count; i++) {
        struct moment m = {0};
        struct seal seal = {0};
        const struct moment_bytes *r = &life.records[i];
        enum code rc = r->in_ledger ? contract_decode_ledger(r->bytes, &life.turn, &m, &err)
                                    : contract_decode(life.words, r->bytes, &life.turn, &m, &seal, NULL, &err);
        CHECK_OK(rc, &err);
        CHECK_OK(kernel_fold(life.run, &m, &err), &err);
    }
}

static void crash(void)
{
    fold_all();
    holds_release(&life.holds);
    life.due_count = 0;
    struct input input = {.kind = INPUT_RECOVER};
    step(&input);
}

static void ask(enum signal_type type, struct str path)
{
    char id[UUID_SIZE];
    uint8_t raw[16] = {0xff, (uint8_t)(++life.signals >> 8), (uint8_t)life.signals};
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
    step(&input);
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
    return life.mode == MODE_FAIL || (life.mode == MODE_STUMBLE && e->logical % 2 == 1 && e->engine == 1);
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
                          .lost = life.mode == MODE_LOST && e->engine < 3 && e->member == 0};
    if (!input.ok)
        input.fault = (struct fault){.code = STR("TIMEOUT"),
                                     .message = STR("no"),
                                     .category = STR("infrastructure"),
                                     .retryable = life.mode == MODE_STUMBLE};
    else if (lane)
        input.value = text_value("{\"result\":{\"items\":[1,2],\"more\":false,\"n\":1},\"status\":\"ok\"}");
    else
        input.value = text_value(e->kind == EFFECT_SUBRUN ? "{\"outputs\":\"yes\",\"status\":\"COMPLETED\"}" : "true");
    if (lane && fails(e)) { // what a tool itself says, and not the engine about it
        input.ok = true;
        input.value = text_value("{\"error\":{\"code\":\"E\",\"kind\":\"timeout\",\"message\":\"no\",\"retryable\":true},"
                                 "\"status\":\"error\"}");
    }
    step(&input);
    if (life.mode == MODE_LATE) step(&input);
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
        memmove(&life.due[i], &life.due[i + 1], (life.due_count - i - 1) * sizeof(running));
        life.due_count--;
        struct input input = {.kind = INPUT_RESULT,
                              .step = e->step,
                              .logical = e->logical,
                              .engine = e->engine,
                              .member = e->member,
                              .duration_ms = 4,
                              .fault = {.code = STR("CANCELLED"), .message = STR("stopped"), .category = STR("")}};
        step(&input);
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
        ask(gate ? (life.mode == MODE_FAIL ? SIGNAL_REJECT : SIGNAL_APPROVE)
                 : (life.mode == MODE_FAIL ? SIGNAL_SKIP_STEP : SIGNAL_RETRY_STEP),
            path);
        return true;
    }
    return false;
}

static struct effect take_due(void)
{
    size_t first = 0;
    for (size_t i = 1; i < life.due_count; i++) // what needs no time first, then the earliest
        if (life.due[i].due_ms < life.due[first].due_ms) first = i;
    struct effect e = life.due[first];
    memmove(&life.due[first], &life.due[first + 1], (life.due_count - first - 1) * sizeof(e));
    life.due_count--;
    return e;
}

// False: nobody does anything any more.
static bool act(void)
{
    bool pauses = life.mode == MODE_PAUSE || life.mode == MODE_INTERRUPT;
    if (life.mode == MODE_CRASH && life.batches % 3 == 2) {
        crash();
        return true;
    }
    if (!life.asked && life.batches >= 2 && (pauses || life.mode == MODE_CANCEL)) {
        life.asked = true;
        ask(pauses ? SIGNAL_PAUSE : SIGNAL_CANCEL, (struct str){0});
        return true;
    }
    if (life.due_count == 0) return people();
    struct effect e = take_due();
    if (e.kind == EFFECT_CANCEL || e.kind == EFFECT_SUBRUN_CANCEL) {
        stop(&e);
    } else if (e.kind != EFFECT_TIMER) {
        answer(&e);
    } else {
        if (e.due_ms > life.now) life.now = e.due_ms;
        struct input input = {.kind = e.timer == TIMER_LOOK ? INPUT_RECOVER : INPUT_TIMER,
                              .step = e.step,
                              .logical = e.logical,
                              .timer = e.timer,
                              .due_ms = e.due_ms};
        step(&input);
    }
    return true;
}

static void begin(struct program *program, enum mode mode)
{
    memset(&life, 0, sizeof(life));
    life.program = program;
    life.words = program_vocabulary(program);
    life.mode = mode;
    life.now = 1000;
    arena_init(&life.kept, 65536, (size_t)512 << 20);
    arena_init(&life.turn, 65536, (size_t)512 << 20);
    life.run = run_new(program, &ids);
    CHECK(life.run);
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
    step(&start);
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

static void tell(struct buf *out, const char *name, struct program *program)
{
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        char log[SHA256_HEX + 1], ledger[SHA256_HEX + 1];
        size_t events, entries;
        begin(program, (enum mode)mode);
        hash_of(false, log, &events);
        hash_of(true, ledger, &entries);
        buf_printf(out, "%s %s %s: log %zu %.16s, ledger %zu %.16s\n", name, mode_names[mode],
                   run_status_name(life.run->status), events, log, entries, ledger);
        run_free(life.run);
        holds_release(&life.holds);
        arena_release(&life.kept);
        arena_release(&life.turn);
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

int main(int argc, char **argv)
{
    static struct arena arena;
    arena_init(&arena, 65536, (size_t)256 << 20);
    struct error err = {0};
    if (contract_open(&arena, &contract, &err) != OK) return 1;
    workloads_load();
    static const struct test tests[] = {TEST(the_bytes_of_every_log_and_ledger_are_as_before)};
    return test_main("log_bytes", tests, ARRAY_COUNT(tests), argc, argv);
}
