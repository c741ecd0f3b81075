// Appends per second of a store, as JSON lines.
//
//   bench/store_append [URL-PREFIX ...]    default: sqlite:/tmp/cairn-bench-PID.db memory:
//
// "append" is store_append as the engine calls it: sealing, schema, canonical JSON, hashes and the commit. "commit" is the backend
// alone, given records that are already encoded (about 600 bytes). Shapes: runs in a batch, events per run and batch, and
// the number of events after which a run is replaced by a new one.
#include "base/civil.h"
#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct shape {
    size_t runs, per_run, run_length, batches;
};

static const struct shape shapes[] = {
    {256, 2, 20, 400}, {256, 2, 1000, 400}, {64, 1, 20, 1000}, {1, 1, 1000, 2000}, {1, 512, 100000, 200},
};

struct bench {
    const struct contract *contract;
    struct store *store;
    struct arena turn;
    struct error err;
    struct run_log **logs;
    char (*steps)[16];
    uint64_t random;
    size_t created;
};

static _Noreturn void give_up(const char *what, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

static int64_t cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static uint64_t draw(struct bench *bench)
{
    uint64_t z = (bench->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void renew(struct bench *bench, size_t i)
{
    if (bench->logs[i]) store_release_run(bench->store, bench->logs[i]);
    uint8_t bytes[16];
    uint64_t halves[2] = {draw(bench), draw(bench)};
    memcpy(bytes, halves, sizeof(bytes));
    char id[UUID_SIZE];
    uuid_format(bytes, id);
    struct run_create create = {
        .ids = {.tenant = STR("default"),
                .project = STR("default"),
                .environment = STR("local"),
                .run = str_from(id),
                .plan_id = STR("orders-daily"),
                .plan_version = STR("1.0.0")},
        .vocabulary = VOCABULARY_RUN,
        .name = STR("orders-daily"),
    };
    if (store_create_run(bench->store, &create, &bench->logs[i], &bench->err)) give_up("create", &bench->err);
    bench->created++;
}

static struct moment event(struct bench *bench, size_t seq, struct json value)
{
    return (struct moment){
        .kind = seq % 2 ? MOMENT_STEP_STARTED : MOMENT_STEP_COMPLETED,
        .by = EMITTER_ENGINE,
        .step = str_from(bench->steps[seq / 2]),
        .logical = 1,
        .engine = 1,
        .at_ms = 1770829200000,
        .value = seq % 2 ? (struct json){0} : value,
    };
}

static void append_batch(struct bench *bench, const struct shape *shape, struct json value)
{
    size_t count = shape->runs * shape->per_run;
    struct append_item *items = ARENA_ARRAY(&bench->turn, count, struct append_item);
    struct moment *moments = ARENA_ARRAY(&bench->turn, count, struct moment);
    if (!items || !moments) abort();
    for (size_t i = 0; i < count; i++) {
        struct run_log *log = bench->logs[i % shape->runs];
        moments[i] = event(bench, run_log_last_seq(log) + i / shape->runs, value);
        items[i] = (struct append_item){.log = log, .moment = &moments[i]};
    }
    struct store_batch batch = {.items = items, .item_count = count};
    if (store_append(bench->store, &batch, 1770829200000, &bench->turn, &bench->err)) give_up("append", &bench->err);
}

// The same batch without sealing: records made of one template.
static void commit_batch(struct bench *bench, const struct shape *shape, struct encoded encoded)
{
    size_t count = shape->runs * shape->per_run;
    struct commit_event *events = ARENA_ARRAY(&bench->turn, count, struct commit_event);
    struct commit_head *heads = ARENA_ARRAY(&bench->turn, shape->runs, struct commit_head);
    if (!events || !heads) abort();
    for (size_t i = 0; i < count; i++) {
        struct run_log *log = bench->logs[i % shape->runs];
        for (size_t k = 0; k < SHA256_SIZE; k += 8) {
            uint64_t random = draw(bench);
            memcpy(encoded.key.b + k, &random, 8);
        }
        events[i] = (struct commit_event){
            .log = log, .seq = log->last_seq + i / shape->runs + 1, .encoded = encoded, .persisted_ms = 1770829200000};
    }
    for (size_t i = 0; i < shape->runs; i++) {
        struct run_log *log = bench->logs[i];
        heads[i] = (struct commit_head){.log = log,
                                        .create = !log->created,
                                        .expect_seq = log->last_seq,
                                        .last_seq = log->last_seq + shape->per_run,
                                        .head = encoded.hash,
                                        .summary = log->summary,
                                        .updated_ms = 1770829200000};
        heads[i].summary.counts.completed++;
    }
    struct commit commit = {.events = events, .event_count = count, .heads = heads, .head_count = shape->runs};
    if (bench->store->ops->commit(bench->store, &commit, &bench->turn, &bench->err)) give_up("commit", &bench->err);
    for (size_t i = 0; i < shape->runs; i++) {
        struct run_log *log = bench->logs[i];
        log->last_seq += shape->per_run;
        log->summary = heads[i].summary;
        log->backend_id = log->created ? log->backend_id : heads[i].backend_id;
        log->created = true;
    }
}

static off_t size_of(const char *url)
{
    const char *colon = strchr(url, ':');
    struct stat status;
    return colon && stat(colon + 1, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

static void run_shape(struct bench *bench, const char *url, const struct shape *shape, bool whole, struct json value,
                      struct encoded encoded)
{
    size_t each = shape->runs * shape->per_run;
    off_t size_before = size_of(url);
    int64_t worst = 0;
    int64_t wall = os_mono_us();
    int64_t cpu = cpu_us();
    for (size_t b = 0; b < shape->batches; b++) {
        arena_reset(&bench->turn);
        for (size_t i = 0; i < shape->runs; i++)
            if (!bench->logs[i] || bench->logs[i]->last_seq + shape->per_run > shape->run_length) renew(bench, i);
        int64_t before = os_mono_us();
        if (whole)
            append_batch(bench, shape, value);
        else
            commit_batch(bench, shape, encoded);
        int64_t took = os_mono_us() - before;
        worst = took > worst ? took : worst;
    }
    wall = os_mono_us() - wall;
    cpu = cpu_us() - cpu;
    double events = (double)(shape->batches * each);
    printf(
        "{\"store\":\"%s\",\"what\":\"%s\",\"runs\":%zu,\"perRun\":%zu,\"runLength\":%zu,\"batch\":%zu,\"events\":%.0f,"
        "\"eventsPerSecond\":%.0f,\"usPerBatch\":%.1f,\"worstBatchUs\":%lld,\"cpuUsPerEvent\":%.2f,\"bytesPerEvent\":%."
        "0f,"
        "\"recordBytes\":%zu}\n",
        store_kind(bench->store), whole ? "append" : "commit", shape->runs, shape->per_run, shape->run_length, each,
        events, events * 1e6 / (double)wall, (double)wall / (double)shape->batches, (long long)worst,
        (double)cpu / events, (double)(size_of(url) - size_before) / events, encoded.bytes.len);
    fflush(stdout);
    for (size_t i = 0; i < shape->runs; i++) {
        store_release_run(bench->store, bench->logs[i]);
        bench->logs[i] = NULL;
    }
}

static void bench_store(struct bench *bench, const char *url)
{
    struct store_options options = {
        .mode = STORE_WRITE, .create = true, .contract = bench->contract, .entropy = os_entropy()};
    if (store_open(str_from(url), &options, &bench->store, &bench->err)) give_up(url, &bench->err);
    struct json value = json_object();
    struct arena kept;
    arena_init(&kept, 4096, SIZE_MAX);
    struct run_ids ids = {.tenant = STR("default"),
                          .project = STR("default"),
                          .environment = STR("local"),
                          .run = STR("0d3c6a9e-4f0c-4a8e-9d5d-3d4c0f7dbb8a"),
                          .plan_id = STR("orders-daily"),
                          .plan_version = STR("1.0.0")};
    struct moment moment = event(bench, 2, value);
    struct seal seal = {.seq = 2, .persisted_ms = 1770829200000, .event_id = "0d3c6a9e-4f0c-4a8e-9d5d-3d4c0f7dbb8b"};
    seal.previous = sha256(STR("x"));
    struct encoded encoded;
    if (!json_put(&kept, &value, STR("rows"), json_int(1234567)) ||
        !json_put(&kept, &value, STR("table"), json_string(STR("orders"))))
        abort();
    moment.value = value;
    if (contract_encode(bench->contract, VOCABULARY_RUN, &ids, &moment, &seal, &kept, &encoded, &bench->err))
        give_up("encode", &bench->err);
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        run_shape(bench, url, &shapes[i], false, value, encoded);
        run_shape(bench, url, &shapes[i], true, value, encoded);
    }
    arena_release(&kept);
    store_close(bench->store);
}

int main(int argc, char **argv)
{
    enum { STEPS = 100001 };
    struct bench bench = {.random = 1};
    struct arena kept;
    arena_init(&kept, 1 << 16, SIZE_MAX);
    arena_init(&bench.turn, 1 << 20, SIZE_MAX);
    bench.logs = calloc(512, sizeof(*bench.logs));
    bench.steps = calloc(STEPS, sizeof(*bench.steps));
    if (!bench.logs || !bench.steps || contract_open(&kept, &bench.contract, &bench.err)) give_up("start", &bench.err);
    for (size_t i = 0; i < STEPS; i++) snprintf(bench.steps[i], sizeof(bench.steps[i]), "step-%zu", i);
    char sqlite[64];
    snprintf(sqlite, sizeof(sqlite), "sqlite:/tmp/cairn-bench-%d.db", (int)getpid());
    if (argc > 1)
        for (int i = 1; i < argc; i++) bench_store(&bench, argv[i]);
    else {
        bench_store(&bench, sqlite);
        unlink(sqlite + strlen("sqlite:"));
        bench_store(&bench, "memory:");
    }
    arena_release(&bench.turn);
    arena_release(&kept);
    return 0;
}
