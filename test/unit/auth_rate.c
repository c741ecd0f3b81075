// Rate limits: exact at the edge, in every window, for each key by itself, in bounded memory.
#include "auth/auth.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct error err;
static struct rates *rates;
static const uint8_t seed[16] = {5};
static const int64_t start = 1700000000000;

static void open_rates(size_t capacity)
{
    arena_init(&arena, 1 << 16, 1 << 24);
    CHECK_OK(rates_open(&arena, capacity, seed, &rates, &err), &err);
}

static void the_quota_is_let_through_and_no_more_A4(void)
{
    static const struct rate_rule *const rules[] = {&rate_failed_source, &rate_failed_id, &rate_signals, &rate_starts};
    open_rates(64);
    for (size_t r = 0; r < ARRAY_COUNT(rules); r++) {
        for (uint32_t i = 0; i < rules[r]->quota; i++) {
            struct rate_answer answer = rates_take(rates, rules[r], STR("who"), start);
            CHECK(answer.allowed);
            CHECK_INT(answer.remaining, rules[r]->quota - i - 1);
            CHECK_INT(answer.retry_ms, 0);
        }
        struct rate_answer answer = rates_take(rates, rules[r], STR("who"), start);
        CHECK(!answer.allowed);
        CHECK_INT(answer.remaining, 0);
        CHECK(answer.retry_ms > 0);
        CHECK(rates_take(rates, rules[r], STR("other"), start).allowed);
        CHECK(rates_take(rates, rules[r], STR(""), start).allowed);
    }
    CHECK_INT(rate_signals.quota, 60);
    CHECK_INT(rate_signals.window_s, 60);
}

static void retry_after_tells_the_truth(void)
{
    open_rates(8);
    const struct rate_rule rule = {"r", 3, 8};
    CHECK(rates_take(rates, &rule, STR("k"), start + 100).allowed);
    CHECK(rates_take(rates, &rule, STR("k"), start + 2500).allowed);
    CHECK(rates_take(rates, &rule, STR("k"), start + 2600).allowed);
    struct rate_answer answer = rates_take(rates, &rule, STR("k"), start + 3000);
    CHECK(!answer.allowed);
    CHECK(!rates_take(rates, &rule, STR("k"), start + 3000 + answer.retry_ms - 1).allowed);
    struct rate_answer then = rates_take(rates, &rule, STR("k"), start + 3000 + answer.retry_ms);
    CHECK(then.allowed);
    CHECK_INT(then.remaining, 0);
    CHECK_INT(rates_take(rates, &rule, STR("k"), start + 3000 + answer.retry_ms + then.reset_ms).remaining, 2);
    CHECK(rate_retry_after(&answer) * 1000 >= answer.retry_ms);
}

// Against a list of the times of all uses: no window has more than the quota, and nobody is refused for long.
static void no_window_has_more_than_the_quota(void)
{
    open_rates(64);
    const struct rate_rule rule = {"r", 10, 4};
    static int64_t times[200000];
    size_t count = 0;
    uint64_t random = 12345;
    int64_t now = start, refused_since = 0;
    for (int i = 0; i < 200000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        now += (int64_t)(random >> 56);
        struct rate_answer answer = rates_take(rates, &rule, STR("k"), now);
        if (answer.allowed) {
            if (count >= rule.quota) CHECK(times[count - rule.quota] + rule.window_s * 1000 <= now);
            times[count++] = now;
            refused_since = 0;
        } else {
            if (!refused_since) refused_since = now;
            CHECK(now - refused_since <= rule.window_s * 1000 + 500);
            CHECK(answer.retry_ms <= rule.window_s * 1000 + 500);
        }
    }
    CHECK(count > 1000);
}

static void a_flood_of_keys_does_not_free_the_guilty(void)
{
    open_rates(64);
    for (uint32_t i = 0; i < rate_failed_source.quota; i++)
        CHECK(rates_take(rates, &rate_failed_source, STR("guilty"), start).allowed);
    char key[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof(key), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        rates_take(rates, &rate_failed_source, str_from(key), start + i / 10);
    }
    CHECK(!rates_take(rates, &rate_failed_source, STR("guilty"), start + 10000).allowed);
}

static void a_clock_that_goes_back_frees_nobody(void)
{
    open_rates(8);
    const struct rate_rule rule = {"r", 2, 10};
    CHECK(rates_take(rates, &rule, STR("k"), start).allowed);
    CHECK(rates_take(rates, &rule, STR("k"), start - 3600000).allowed);
    CHECK(!rates_take(rates, &rule, STR("k"), start - 3600000).allowed);
    CHECK(!rates_take(rates, &rule, STR("k"), start).allowed);
    CHECK(rates_take(rates, &rule, STR("k"), start + 20000).allowed);
    const struct rate_rule never = {"never", 0, 10};
    CHECK(!rates_take(rates, &never, STR("k"), 0).allowed);
    CHECK(rates_take(rates, &never, STR("k"), 0).retry_ms > 0);
}

static void headers_as_the_draft_has_them(void)
{
    open_rates(8);
    const struct rate_rule rule = {"default", 100, 10};
    struct buf buf;
    buf_init(&buf, 1000);
    rate_policy_header(&rule, &buf);
    CHECK_STR(buf_str(&buf), STR("\"default\";q=100;w=10"));
    buf_clear(&buf);
    struct rate_answer answer = {.remaining = 50, .reset_ms = 29001};
    rate_header(&rule, &answer, &buf);
    CHECK_STR(buf_str(&buf), STR("\"default\";r=50;t=30"));
    answer.retry_ms = 1;
    CHECK_INT(rate_retry_after(&answer), 1);
    answer.retry_ms = 2001;
    CHECK_INT(rate_retry_after(&answer), 3);
    buf_release(&buf);
}

static void memory_may_end(void)
{
    for (int64_t n = 1; n <= 2; n++) {
        arena_init(&arena, 64, 1 << 24);
        arena.fail_in = n;
        CHECK_INT(rates_open(&arena, 64, seed, &rates, NULL), E_NOMEM);
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_quota_is_let_through_and_no_more_A4),
        TEST(retry_after_tells_the_truth),
        TEST(no_window_has_more_than_the_quota),
        TEST(a_flood_of_keys_does_not_free_the_guilty),
        TEST(a_clock_that_goes_back_frees_nobody),
        TEST(headers_as_the_draft_has_them),
        TEST(memory_may_end),
    };
    return test_main("auth_rate", tests, ARRAY_COUNT(tests), argc, argv);
}
