// The library when memory fails: the n-th chunk that it asks for is refused, for every n. Whatever happens is a code, the
// engine goes on when it can, and everything that was taken is given back.
#include "support/lib_kit.h"

struct memory {
    atomic_long left; // until the one that fails; 0: none does
    atomic_long bytes, taken;
    _Atomic int64_t clock_ms;
};

static void *allocate(void *context, size_t size)
{
    struct memory *memory = context;
    atomic_fetch_add(&memory->taken, 1);
    long left = atomic_load(&memory->left);
    if (left > 0 && atomic_fetch_sub(&memory->left, 1) == 1) return NULL;
    atomic_fetch_add(&memory->bytes, (long)size);
    return malloc(size);
}

static void release(void *context, void *given, size_t size)
{
    struct memory *memory = context;
    atomic_fetch_sub(&memory->bytes, (long)size);
    free(given);
}

// Every look at the clock is a moment later, so that what was put off is tried again at once.
static void now(void *context, int64_t *wall_ms, int64_t *mono_ms)
{
    struct memory *memory = context;
    int64_t ms = atomic_fetch_add(&memory->clock_ms, 300);
    *wall_ms = INT64_C(1800000000000) + ms;
    *mono_ms = 1000 + ms;
}

static enum cairn_code live(struct memory *memory, const char *url, long fail_at)
{
    struct cairn_options options = {.size = sizeof(options),
                                    .flags = CAIRN_NO_THREAD,
                                    .context = memory,
                                    .allocate = allocate,
                                    .release = release,
                                    .now = now};
    struct cairn *c = NULL;
    atomic_store(&memory->left, fail_at);
    enum cairn_code code = cairn_open(url, &options, &c, NULL);
    struct cairn_kind kind = {.size = sizeof(kind), .name = "same", .run = lib_echo};
    struct cairn_start start = {.size = sizeof(start),
                                .document = PLAN(CALL("a", "same", "\"x\":1") "," CALL_WITH(
                                    "b", "same", "\"y\":\"$a.output\"", "\"dependsOn\":[\"a\"]")),
                                .run = "r1",
                                .flags = CAIRN_ATTACH};
    enum cairn_status status = 0;
    char *text = NULL;
    if (!code) code = cairn_register(c, &kind, NULL);
    if (!code) code = cairn_start(c, &start, NULL, NULL);
    if (!code) code = cairn_wait(c, "r1", 10000, &status, NULL);
    if (!code) CHECK_INT(status, CAIRN_COMPLETED);
    if (!code) code = cairn_view(c, "r1", 0, &text, NULL, NULL);
    cairn_free(text);
    text = NULL;
    if (!code) code = cairn_output(c, "r1", "b", &text, NULL, NULL);
    if (!code) CHECK_TEXT(text, "{\"y\":{\"x\":1}}");
    cairn_free(text);
    static enum cairn_code (*const parts[])(struct cairn *, const char *, char **, size_t *,
                                            struct cairn_error *) = {cairn_payload, cairn_artifacts, cairn_proof};
    for (size_t i = 0; i < ARRAY_COUNT(parts) && !code; i++) {
        code = parts[i](c, "r1", &text, NULL, NULL);
        cairn_free(text);
    }
    atomic_store(&memory->left, 0);
    cairn_close(c, CAIRN_NOW, -1);
    CHECK_INT(memory->bytes, 0);
    return code;
}

static void one_refused_chunk_is_survived_or_told(void)
{
    struct memory memory = {0};
    CHECK_INT(live(&memory, "memory:", 0), CAIRN_OK);
    long total = memory.taken;
    int went_on = 0, refused = 0;
    long step = total > 200 ? total / 150 : 1; // builds with one chunk a piece ask for very many
    for (long n = 1; n <= total; n += step) {
        memory = (struct memory){0};
        enum cairn_code code = live(&memory, "memory:", n);
        if (code != CAIRN_OK && code != CAIRN_E_NOMEM)
            test_fail(__FILE__, __LINE__, "chunk %ld of %ld: %s", n, total, cairn_code_name(code));
        went_on += code == CAIRN_OK;
        refused += code == CAIRN_E_NOMEM;
    }
    CHECK(refused > 10); // opening, compiling, reading
    CHECK(went_on > 3);  // a turn without memory is put off, not lost
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(one_refused_chunk_is_survived_or_told),
    };
    return test_main("lib_memory", tests, ARRAY_COUNT(tests), argc, argv);
}
