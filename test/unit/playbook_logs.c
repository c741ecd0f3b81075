// For every construct of playbooks the canonical event log, as a golden, and a sweep: the engine dies after every batch, recovers,
// and comes to the same end, with every task done once. CAIRN_GOLDEN_UPDATE=1 rewrites the goldens.
//
// Tools are played by what their command says:
//   ok VALUE                    VALUE is the result
//   fail N KIND [then VALUE]    the first N tries fail, retryable when KIND is timeout
//   page P of N                 a page of results
//   big N                       a text of N bytes, which is kept beside the log
#include "unit/support/life_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES_MAX = 2000, INLINE_MAX = 65536 };

static struct buf events; // golden
static uint32_t crash_after;

// What is left when ids, times and hashes are taken out.
static void tell(struct str record)
{
    static const char *const gone[] = {"event_id", "prev_hash", "timestamp", "duration_ms"};
    struct json whole, out = json_object();
    struct error err = {0};
    CHECK_OK(json_parse(record, &json_limits_default, &life.turn, &whole, &err), &err);
    for (uint32_t i = 0; i < whole.count; i++) {
        bool drop = false;
        for (size_t k = 0; k < ARRAY_COUNT(gone); k++) drop = drop || str_is(whole.members[i].key, gone[k]);
        if (!drop) CHECK(json_put(&life.turn, &out, whole.members[i].key, whole.members[i].value));
    }
    json_write(&events, &out);
    buf_byte(&events, '\n');
}

// ---- tools
static void play(struct str command, uint32_t attempt, struct buf *out)
{
    char text[300], kind[32] = "", value[200] = "";
    unsigned n = 0, m = 0;
    snprintf(text, sizeof(text), "%.*s", STR_ARG(command));
    if (sscanf(text, "page %u of %u", &n, &m) == 2) {
        buf_printf(out, "{\"result\":{\"items\":%u,\"more\":%s},\"status\":\"ok\"}", n * 10, n < m ? "true" : "false");
    } else if (sscanf(text, "big %u", &n) == 1) {
        buf_printf(out, "{\"result\":{\"size\":%u,\"text\":\"", n);
        for (unsigned i = 0; i < n; i++) buf_byte(out, 'x');
        buf_text(out, "\"},\"status\":\"ok\"}");
    } else if (sscanf(text, "fail %u %31s then %199[^\n]", &n, kind, value) >= 2 && attempt <= n) {
        buf_printf(
            out,
            "{\"error\":{\"code\":\"E\",\"kind\":\"%s\",\"message\":\"no\",\"retryable\":%s},\"status\":\"error\"}",
            kind, strcmp(kind, "timeout") == 0 ? "true" : "false");
    } else {
        const char *given = value[0] ? value : strncmp(text, "ok ", 3) == 0 ? text + 3 : "null";
        if (given[0] == '\'')
            buf_printf(out, "{\"result\":\"%.*s\",\"status\":\"ok\"}", (int)strlen(given) - 2, given + 1);
        else
            buf_printf(out, "{\"result\":%s,\"status\":\"ok\"}", given);
    }
}

static void execute(const struct effect *e)
{
    struct json task;
    struct error err = {0};
    struct buf text;
    CHECK_OK(kernel_task(life.run, e->step, &life_env, &life.turn, &task, &err), &err);
    buf_init(&text, 1 << 20);
    play(json_text(json_at(&task, STR("with.cmds"))), (uint32_t)json_integer(json_key(&task, "attempt"), 0), &text);
    struct input input = {
        .kind = INPUT_RESULT, .step = e->step, .logical = e->logical, .engine = e->engine, .ok = true};
    struct str bytes = arena_copy(&life.turn, buf_str(&text));
    CHECK_OK(json_parse(bytes, &json_limits_default, &life.turn, &input.value, &err), &err);
    const struct json *result = json_key(&input.value, "result");
    if (text.len > INLINE_MAX && result) {
        buf_clear(&text);
        json_canon(&text, result);
        input.blob = sha256(buf_str(&text));
        input.has_blob = true;
        input.blob_size = text.len;
        life_keep_blob(&input.blob, buf_str(&text));
    }
    buf_release(&text);
    life_step(&input);
}

static void live(void)
{
    struct start_facts facts = {.document_sha256 = {life.program->sha256_hex, SHA256_HEX},
                                .document_kind = STR("playbook"),
                                .inputs = json_object(),
                                .trigger_source = STR("manual")};
    struct input start = {.kind = INPUT_START, .start = &facts};
    life_step(&start);
    bool crashed = false;
    while (!run_status_terminal(life.run->status) && life.batches < BATCHES_MAX) {
        if (!crashed && life.batches >= crash_after) {
            crashed = true;
            life_crash();
            continue;
        }
        arena_reset(&life.turn);
        CHECK(life.due_count > 0);
        struct effect e = life_take_due();
        if (e.kind == EFFECT_EXECUTE)
            execute(&e);
        else
            life_fire(&e);
    }
    CHECK(run_status_terminal(life.run->status));
}

static void begin(const char *file, uint32_t crash)
{
    struct arena arena = arena_of(65536, (size_t)64 << 20);
    struct program *program = NULL, *before = life.program;
    struct diagnostics diagnostics;
    struct error err = {0};
    char path[300];
    diagnostics_init(&diagnostics, &arena);
    snprintf(path, sizeof(path), "test/golden/playbooks/%s", file);
    enum code rc = program_load(test_read_file(path), str_from(file), NULL, &diagnostics, &program, &err);
    if (rc && diagnostics.count > 0)
        test_fail(__FILE__, __LINE__, "%s:%u: %.*s", file, diagnostics.items[0].line,
                  STR_ARG(diagnostics.items[0].message));
    CHECK_OK(rc, &err);
    arena_release(&arena);
    buf_release(&events);
    events = buf_of((size_t)64 << 20);
    crash_after = crash;
    life_begin(program);
    program_release(before);
    live();
}

static size_t count_words(const char *word)
{
    size_t found = 0, len = strlen(word);
    struct str log = buf_str(&events);
    for (size_t at = 0; at + len <= log.len; at++) found += memcmp(log.ptr + at, word, len) == 0;
    return found;
}

static size_t documents(char names[][64], size_t max)
{
    DIR *open = opendir("test/golden/playbooks");
    size_t count = 0;
    CHECK(open);
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        if (!str_ends(str_from(entry->d_name), STR(".yaml"))) continue;
        CHECK(count < max && strlen(entry->d_name) < 64);
        snprintf(names[count++], 64, "%.63s", entry->d_name);
    }
    closedir(open);
    qsort(names, count, 64, (int (*)(const void *, const void *))strcmp);
    return count;
}

static char names[32][64];

static void the_log_of_every_construct_NX_1_1A_NX_1_1B_NX_1_1C_NX_2A_NX_2J_NX_7_1_NX_7_2_NX_7_3_NX_7_4(void)
{
    size_t count = documents(names, ARRAY_COUNT(names));
    CHECK(count >= 9);
    for (size_t i = 0; i < count; i++) {
        char golden[128];
        begin(names[i], BATCHES_MAX);
        snprintf(golden, sizeof(golden), "playbooks/%s.jsonl", names[i]);
        test_golden(golden, buf_str(&events));
    }
}

// The same end, the same variables, and no task done twice, wherever the engine dies.
static void a_crash_after_any_batch_changes_nothing_NX_2T_I1_I11_I14(void)
{
    size_t count = documents(names, ARRAY_COUNT(names));
    int worlds = 0;
    for (size_t i = 0; i < count; i++) {
        begin(names[i], BATCHES_MAX);
        uint32_t batches = life.batches;
        enum run_status status = life.run->status;
        size_t done = count_words("\"event_type\":\"task.done\""),
               failed = count_words("\"event_type\":\"task.failed\"");
        struct buf ctx;
        buf_init(&ctx, 1 << 20);
        json_canon(&ctx, kernel_ctx(life.run));
        for (uint32_t at = 1; at < batches; at++, worlds++) {
            begin(names[i], at);
            struct buf again;
            buf_init(&again, 1 << 20);
            json_canon(&again, kernel_ctx(life.run));
            if (life.run->status != status || count_words("\"event_type\":\"task.done\"") != done ||
                count_words("\"event_type\":\"task.failed\"") != failed || !str_eq(buf_str(&again), buf_str(&ctx)))
                test_fail(__FILE__, __LINE__,
                          "%s, crash after batch %u: status %d for %d, done %zu for %zu, ctx %.*s for %.*s", names[i],
                          at, life.run->status, status, count_words("\"event_type\":\"task.done\""), done,
                          (int)again.len, again.ptr, (int)ctx.len, ctx.ptr);
            life_fold(); // K1, over the stored bytes
            CHECK_INT(life.run->status, status);
            buf_release(&again);
        }
        buf_release(&ctx);
    }
    printf("# %d worlds\n", worlds);
    CHECK(worlds > 100);
}

static void results_are_what_their_authors_mean(void)
{
    static const struct {
        const char *file, *path, *value;
    } wants[] = {{"retry.yaml", "got", "42"},
                 {"jump_pagination.yaml", "total", "60"},
                 {"parallel_loop_100.yaml", "sum", "4950"},
                 {"nested_loops.yaml", "sum", "15"},
                 {"fan_out_fan_in.yaml", "joined", "6"},
                 {"failure_routing.yaml", "mended", "\"connection\""},
                 {"big_result.yaml", "read", "70000"},
                 {"big_result.yaml", "ref", "true"},
                 {"big_result.yaml", "size", "70000"},
                 {"large_iterations.yaml", "lengths", "[70000,5,80000]"},
                 {"wait_and_continue.yaml", "kind", "\"unknown\""}};
    for (size_t i = 0; i < ARRAY_COUNT(wants); i++) {
        begin(wants[i].file, BATCHES_MAX);
        struct buf text;
        buf_init(&text, 1 << 20);
        const struct json *value = json_at(kernel_ctx(life.run), str_from(wants[i].path));
        if (!value) test_fail(__FILE__, __LINE__, "%s: ctx.%s is not there", wants[i].file, wants[i].path);
        json_canon(&text, value);
        CHECK_STR(buf_str(&text), str_from(wants[i].value));
        buf_release(&text);
        CHECK_INT(life.run->status, RUN_STATUS_COMPLETED);
    }
}

int main(int argc, char **argv)
{
    static struct arena arena;
    arena_init(&arena, 65536, (size_t)256 << 20);
    struct error err = {0};
    if (contract_open(&arena, &life.settings.contract, &err) != OK) return 1;
    life.settings.wanted = 1u << EFFECT_EXECUTE | 1u << EFFECT_TIMER;
    life.settings.told = tell;
    static const struct test tests[] = {
        TEST(the_log_of_every_construct_NX_1_1A_NX_1_1B_NX_1_1C_NX_2A_NX_2J_NX_7_1_NX_7_2_NX_7_3_NX_7_4),
        TEST(results_are_what_their_authors_mean),
        TEST(a_crash_after_any_batch_changes_nothing_NX_2T_I1_I11_I14),
    };
    return test_main("playbook_logs", tests, ARRAY_COUNT(tests), argc, argv);
}
