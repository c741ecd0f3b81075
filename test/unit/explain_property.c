// For every step of every run there is an answer, at every moment, and deciding again gives what the log records: documents of
// all kinds, played at random (results, failures, signals, crashes), asked after every moment.
#include "unit/support/explained.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS_MAX = 120, EFFECTS_MAX = 256 };

struct play {
    uint64_t seed;
    struct arena memory, turn;
    struct program *program;
    struct run *run;
    struct run_holds holds;
    struct explained x;
    struct str *stored;
    size_t stored_count, stored_capacity;
    struct effect effects[EFFECTS_MAX];
    size_t effect_count;
    int64_t now;
    unsigned next_signal;
    char dir[PATH_MAX];
};

static uint64_t draw(struct play *p, uint64_t below)
{
    p->seed ^= p->seed << 13;
    p->seed ^= p->seed >> 7;
    p->seed ^= p->seed << 17;
    return (p->seed >> 11) % below;
}

static enum code no_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                         struct error *err)
{
    (void)context, (void)sha256, (void)arena, (void)out;
    return error_set(err, E_NOT_FOUND, "no blobs here");
}
static const struct kernel_env env = {.blob = no_blob};
static const struct run_ids ids = {.tenant = {"default", 7},
                                   .project = {"default", 7},
                                   .environment = {"default", 7},
                                   .run = {"r1", 2},
                                   .plan_id = {"p", 1},
                                   .plan_version = {"1", 1}};

// ---- documents

static enum code find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    const struct play *p = context;
    char path[2 * PATH_MAX];
    (void)err;
    part->file = arena_copy(arena, part->request);
    part->text = arena_copy(arena, STR("true\n"));
    if (part->kind == PART_DOCUMENT) part->text = arena_copy(arena, STR("name: child\nnodes: [{id: only, bash: x}]\n"));
    static const char *const places[][2] = {{"", ""}, {"", ".yaml"}, {"parts/", ""}};
    for (size_t i = 0; part->kind == PART_DOCUMENT && i < ARRAY_COUNT(places); i++) {
        snprintf(path, sizeof(path), "%s/%s%.*s%s", p->dir, places[i][0], STR_ARG(part->request), places[i][1]);
        FILE *there = fopen(path, "rb");
        if (!there) continue;
        fclose(there);
        part->text = arena_copy(arena, test_read_file(path));
        break;
    }
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static bool load(struct play *p, struct str text, const char *file)
{
    struct diagnostics diagnostics;
    struct error err = {0};
    struct program_loader loader = {.context = p, .load = find_part};
    diagnostics_init(&diagnostics, &p->memory);
    return program_load(text, str_from(file), &loader, &diagnostics, &p->program, &err) == OK;
}

// ---- playing

static void take(struct play *p, const struct outcome *out)
{
    struct error err = {0};
    for (size_t i = 0; i < out->moment_count; i++) {
        struct str bytes;
        struct moment read;
        CHECK_OK(contract_encode_ledger(&out->moments[i], &p->memory, &bytes, &err), &err);
        struct str *grown = arena_grow(&p->memory, p->stored, p->stored_count, p->stored_count + 1, sizeof(struct str),
                                       &p->stored_capacity);
        CHECK(grown);
        p->stored = grown;
        p->stored[p->stored_count++] = bytes;
        CHECK_OK(contract_decode_ledger(bytes, &p->memory, &read, &err), &err);
        explained_moment(&p->x, &read, p->stored_count);
    }
    for (size_t i = 0; i < out->effect_count; i++) {
        enum effect_kind kind = out->effects[i].kind;
        if (kind != EFFECT_EXECUTE && kind != EFFECT_TIMER && kind != EFFECT_SUBRUN) continue;
        CHECK(p->effect_count < EFFECTS_MAX);
        p->effects[p->effect_count++] = out->effects[i];
    }
}

static void step(struct play *p, struct input *input)
{
    struct error err = {0};
    arena_reset(&p->turn);
    p->now += (int64_t)draw(p, 50);
    input->now_ms = p->now;
    input->random = draw(p, UINT64_MAX);
    struct outcome out = {.turn = &p->turn};
    CHECK_OK(kernel_step(p->run, &p->holds, input, &env, &out, &err), &err);
    take(p, &out);
}

static struct json random_value(struct play *p)
{
    static const char *const texts[] = {"yes", "no", "", "a 'quoted' text", "42"};
    switch (draw(p, 6)) {
    case 0:
        return json_null();
    case 1:
        return json_bool(true);
    case 2:
        return json_bool(false);
    case 3:
        return json_int((int64_t)draw(p, 5));
    case 4: {
        struct json object = json_object();
        CHECK(json_put(&p->turn, &object, STR("field"), json_string(str_from(texts[draw(p, 5)]))));
        CHECK(json_put(&p->turn, &object, STR("rows"), json_int((int64_t)draw(p, 100))));
        return object;
    }
    default:
        return json_string(str_from(texts[draw(p, 5)]));
    }
}

static void answer_one(struct play *p)
{
    static const char *const codes[] = {"EXIT_NONZERO", "TIMEOUT", "AUTH", "CANCELLED"};
    size_t at = draw(p, p->effect_count);
    struct effect e = p->effects[at];
    p->effects[at] = p->effects[--p->effect_count];
    struct input input = {.step = e.step, .logical = e.logical, .engine = e.engine, .duration_ms = 7};
    if (e.kind == EFFECT_TIMER) {
        if (e.due_ms > p->now) p->now = e.due_ms;
        input.kind = INPUT_TIMER;
        input.timer = e.timer;
        input.due_ms = e.due_ms;
        step(p, &input);
        return;
    }
    arena_reset(&p->turn);
    input.kind = INPUT_RESULT;
    input.ok = draw(p, 3) > 0;
    if (p->run->cancelling) input.ok = draw(p, 4) == 0;
    struct arena values;
    arena_init(&values, 1024, 1 << 20);
    if (input.ok) {
        struct json value = random_value(p);
        CHECK(json_copy(&values, &value, &input.value));
    }
    uint64_t code = p->run->cancelling ? 3 : draw(p, 3);
    if (!input.ok)
        input.fault = (struct fault){.code = str_from(codes[code]),
                                     .message = STR("it did not work"),
                                     .detail = STR("last line"),
                                     .retryable = draw(p, 4) > 0};
    step(p, &input);
    arena_release(&values);
}

static void signal_one(struct play *p, enum signal_type type)
{
    char id[UUID_SIZE];
    uint8_t bytes[16] = {(uint8_t)++p->next_signal, (uint8_t)(p->next_signal >> 8)};
    struct str path = {"", 0};
    uuid_format(bytes, id);
    bool named = type == SIGNAL_RETRY_STEP || type == SIGNAL_SKIP_STEP || draw(p, 2) == 0;
    bool fits = named && (type == SIGNAL_RETRY_STEP || type == SIGNAL_SKIP_STEP || type == SIGNAL_APPROVE ||
                          type == SIGNAL_REJECT);
    if (fits) {
        path = kernel_path(p->run, (uint32_t)draw(p, p->program->step_count), &p->memory);
        CHECK(path.ptr);
    }
    struct json params = json_object(), payload = json_object();
    if (type == SIGNAL_UPDATE_PARAMS) {
        const struct json *inputs = &p->program->inputs;
        if (!json_is(inputs, JSON_OBJECT) || inputs->count == 0) return;
        CHECK(json_put(&p->memory, &params, inputs->members[draw(p, inputs->count)].key, json_string(STR("yes"))));
        CHECK(json_put(&p->memory, &payload, STR("params"), params));
    }
    struct signal signal = {.type = type,
                            .id = str_from(id),
                            .step = path,
                            .actor = STR("ann"),
                            .role = STR("Operator"),
                            .reason = draw(p, 2) ? STR("because") : STR(""),
                            .payload = payload};
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-000000000000")};
    step(p, &input);
}

static void crash(struct play *p)
{
    struct error err = {0};
    struct run *run = run_new(p->program, &ids);
    CHECK(run);
    for (size_t i = 0; i < p->stored_count; i++) {
        struct moment m;
        CHECK_OK(contract_decode_ledger(p->stored[i], &p->memory, &m, &err), &err);
        CHECK_OK(kernel_fold(run, &m, &err), &err);
    }
    run_free(p->run);
    holds_release(&p->holds);
    p->run = run;
    p->effect_count = 0;
    struct input input = {.kind = INPUT_RECOVER};
    step(p, &input);
}

static void next_input(struct play *p)
{
    static const enum signal_type rare[] = {SIGNAL_PAUSE, SIGNAL_RETRY_STEP, SIGNAL_SKIP_STEP, SIGNAL_REJECT,
                                            SIGNAL_UPDATE_PARAMS};
    uint64_t dice = draw(p, 100);
    if (p->run->status == RUN_STATUS_PENDING || dice < 8)
        signal_one(p, SIGNAL_APPROVE);
    else if (p->run->status == RUN_STATUS_PAUSED && dice < 40)
        signal_one(p, SIGNAL_RESUME);
    else if (p->run->held > 0 && dice < 50)
        signal_one(p, dice % 2 ? SIGNAL_RETRY_STEP : SIGNAL_SKIP_STEP);
    else if (dice < 16)
        signal_one(p, rare[draw(p, ARRAY_COUNT(rare))]);
    else if (dice == 16)
        signal_one(p, draw(p, 3) ? SIGNAL_CANCEL : SIGNAL_EMERGENCY_STOP);
    else if (dice < 20 || p->effect_count == 0)
        crash(p);
    else
        answer_one(p);
}

// `ended`: the run whose results are taken over as far as they may be.
static void play(struct play *p, const struct run *ended)
{
    struct json inputs = json_object();
    for (uint32_t i = 0; json_is(&p->program->inputs, JSON_OBJECT) && i < p->program->inputs.count; i++)
        CHECK(json_put(&p->memory, &inputs, p->program->inputs.members[i].key, p->program->inputs.members[i].value));
    struct start_facts facts = {.document_sha256 = {p->program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(p->program->kind)),
                                .inputs = inputs,
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .triggered_by = STR("test"),
                                .requires_approval = p->program->requires_approval};
    struct input input = {.kind = INPUT_START, .start = &facts};
    struct reuse *reuse = NULL;
    if (ended) CHECK_INT(kernel_reusable(ended, &p->memory, &reuse, &input.reuse_count), OK);
    input.reuse = reuse;
    p->stored_count = p->effect_count = 0;
    p->now = 1760000000000;
    p->run = run_new(p->program, &ids);
    CHECK(p->run);
    explained_open(&p->x, p->program, &ids, &env);
    step(p, &input);
    for (int i = 0; i < INPUTS_MAX && !run_status_terminal(p->run->status); i++) next_input(p);
    explained_everything(&p->x);
    explained_close(&p->x);
}

static struct {
    size_t runs, moments, answers;
} total;

static bool play_text(struct str text, const char *file, const char *dir, uint64_t seed)
{
    static struct play p;
    memset(&p, 0, sizeof(p));
    p.seed = seed * 0x9E3779B97F4A7C15u + 1;
    snprintf(p.dir, sizeof(p.dir), "%s", dir);
    arena_init(&p.memory, 4096, (size_t)256 << 20);
    arena_init(&p.turn, 4096, (size_t)64 << 20);
    bool loaded = load(&p, text, file);
    // Results of tasks are outcomes: playbooks have stories of their own (kernel_net, playbook_logs).
    if (loaded && p.program->net) {
        program_release(p.program);
    } else if (loaded) {
        struct run *ended = NULL;
        for (int life = 0; life < 2; life++) {
            play(&p, ended);
            total.runs++;
            total.moments += p.stored_count;
            total.answers += p.x.answer_count;
            run_free(ended);
            ended = p.run;
            if (!run_status_terminal(ended->status)) break;
        }
        run_free(ended);
        program_release(p.program);
    }
    arena_release(&p.turn);
    arena_release(&p.memory);
    return loaded;
}

static void report(void)
{
    printf("# %zu runs, %zu moments, %zu answers\n", total.runs, total.moments, total.answers);
}

// ---- what is played

static void play_directory(const char *dir, uint64_t seeds)
{
    DIR *open = opendir(dir);
    if (!open) return;
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        struct str name = str_from(entry->d_name);
        char path[PATH_MAX];
        if (!str_ends(name, STR(".yaml")) && !str_ends(name, STR(".json"))) continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        struct str text = test_read_file(path);
        for (uint64_t seed = 1; seed <= seeds; seed++)
            if (!play_text(text, entry->d_name, dir, seed)) break;
    }
    closedir(open);
}

static void examples_and_goldens_are_explained(void)
{
    play_directory("examples", 12);
    CHECK(total.runs >= 100);
    play_directory("test/golden/programs", 12);
    report();
}

static void corpus_is_explained(void)
{
    char dir[PATH_MAX];
    const char *corpus = test_corpus_dir();
    if (!corpus) test_skip("no corpus here; set CAIRN_CORPUS");
    snprintf(dir, sizeof(dir), "%s/plans", corpus);
    play_directory(dir, 12);
    snprintf(dir, sizeof(dir), "%s/workflows", corpus);
    play_directory(dir, 12);
    CHECK(total.runs >= 60);
    report();
}

static void random_when(struct play *p, struct buf *out, unsigned node)
{
    static const char *const operators[] = {"==", "!=", "<", ">", "<=", ">="};
    static const char *const rights[] = {"'yes'", "'no'", "true", "2", "''"};
    static const char *const fields[] = {"output", "output", "output.field", "output.rows"};
    for (uint64_t i = 0, count = 1 + draw(p, 3); i < count; i++)
        buf_printf(out, "%s$n%u.%s %s %s",
                   i == 0       ? ""
                   : draw(p, 2) ? " && "
                                : " || ",
                   (unsigned)draw(p, node), fields[draw(p, ARRAY_COUNT(fields))],
                   operators[draw(p, ARRAY_COUNT(operators))], rights[draw(p, ARRAY_COUNT(rights))]);
}

static void random_step(struct play *p, struct buf *out, unsigned i, bool plan)
{
    static const char *const words[] = {
#define X(name, text) text,
        TRIGGER_RULE_LIST(X)
#undef X
    };
    bool gate = !plan && draw(p, 6) == 0;
    if (plan)
        buf_printf(out, "  - {id: n%u, kind: shell, with: {command: x}", i);
    else
        buf_printf(out, "  - {id: n%u, %s", i,
                   gate ? "approval: {message: ok, timeout: 5s, on_timeout: approve}" : "bash: x");
    buf_text(out, plan ? ", dependsOn: [" : ", depends_on: [");
    bool first = true;
    for (unsigned d = 0; d < i; d++) {
        if (draw(p, 3) > 0) continue;
        buf_printf(out, "%sn%u", first ? "" : ", ", d);
        first = false;
    }
    buf_printf(out, "], %s: %s", plan ? "triggerRule" : "trigger_rule",
               words[draw(p, 2) ? 0 : draw(p, ARRAY_COUNT(words))]);
    if (i > 0 && draw(p, 3) == 0) {
        buf_text(out, ", when: \"");
        random_when(p, out, i);
        buf_byte(out, '"');
    }
    if (plan && draw(p, 2)) buf_text(out, ", retry: {maxAttempts: 3, delay: 10ms, nonRetryable: [AUTH]}");
    if (!plan && !gate && draw(p, 2)) buf_text(out, ", retry: {max_attempts: 2, delay_ms: 1000}");
    if (plan && draw(p, 4) == 0) buf_text(out, ", onStepFailure: hold");
    buf_text(out, "}\n");
}

static void random_document(uint64_t seed, struct buf *out)
{
    static struct play p;
    p.seed = seed * 0x2545F4914F6CDD1Du + 7;
    bool plan = draw(&p, 2);
    unsigned count = 2 + (unsigned)draw(&p, 7);
    buf_clear(out);
    buf_text(out, plan ? "planId: p\nplanVersion: '1'\nschemaVersion: v1.2\nsteps:\n" : "name: t\nnodes:\n");
    for (unsigned i = 0; i < count; i++) random_step(&p, out, i, plan);
    if (plan || draw(&p, 3) > 0) return;
    buf_text(out, "  - id: go\n    depends_on: [n0]\n    loop_group:\n      max_iterations: 3\n");
    if (draw(&p, 2)) buf_text(out, "      until_bash: test\n");
    buf_text(out,
             "      nodes:\n        - {id: tick, bash: x}\n        - {id: tock, bash: x, depends_on: [tick], when: "
             "\"$tick.output == 'yes'\"}\n        - {id: talk, bash: x, depends_on: [tick, tock], trigger_rule: "
             "all_done}\n");
}

static void random_documents_are_explained(void)
{
    struct buf text;
    size_t loaded = 0, tried = 600;
    buf_init(&text, 1 << 20);
    for (uint64_t seed = 1; seed <= tried; seed++) {
        random_document(seed, &text);
        loaded += play_text(buf_str(&text), "random.yaml", ".", seed);
    }
    if (loaded < tried / 2) test_fail(__FILE__, __LINE__, "only %zu of %zu documents are valid", loaded, tried);
    buf_release(&text);
    for (int i = 1; i <= STATE_NOT_RUN; i++) // what waits for a slot or a worker, only the present knows
        if (!explained_seen[i] && i != STATE_QUEUED)
            test_fail(__FILE__, __LINE__, "no step was ever %s", explain_state_name((enum explain_state)i));
    report();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(examples_and_goldens_are_explained),
        TEST(corpus_is_explained),
        TEST(random_documents_are_explained),
    };
    return test_main("explain_property", tests, ARRAY_COUNT(tests), argc, argv);
}
