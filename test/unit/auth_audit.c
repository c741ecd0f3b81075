// Audit records: their form, and a chain in which every change, removal and reordering shows.
#include "auth/auth.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct error err;

static struct audit_record full_record(void)
{
    return (struct audit_record){.id = STR("7c9e6679-7425-40de-944b-e07fc1f90ae7"),
                                 .at_ms = 1700000000123,
                                 .tenant = STR("acme"),
                                 .actor = STR("0123456789abcdef"),
                                 .actor_type = STR("token"),
                                 .actor_role = STR("Admin"),
                                 .action = STR("signal.emergency_stop"),
                                 .resource_type = STR("run"),
                                 .resource = STR("run-1"),
                                 .outcome = AUDIT_GRANTED,
                                 .code = STR("AUTHZ_OK"),
                                 .reason = STR("on \"fire\""),
                                 .ip = STR("127.0.0.1"),
                                 .user_agent = STR("curl/7.88"),
                                 .request = STR("req-1")};
}

static struct str encoded(struct audit_record *record, struct audit_head *head)
{
    struct buf buf;
    buf_init(&buf, 1 << 16);
    CHECK_OK(audit_encode(record, head, &arena, &buf, &err), &err);
    struct str text = arena_copy(&arena, buf_str(&buf));
    CHECK(text.ptr);
    buf_release(&buf);
    return text;
}

static void record_round_trip_AU1(void)
{
    arena_init(&arena, 1 << 14, 1 << 22);
    struct audit_record record = full_record(), back;
    struct audit_head head = {0}, again = {0};
    CHECK(json_object_with(&arena, 1, &record.details));
    CHECK(json_put(&arena, &record.details, STR("causedSeq"), json_int(8)));
    struct str text = encoded(&record, &head);
    CHECK_STR(
        text,
        STR("{\"action\":\"signal.emergency_stop\",\"actor\":{\"id\":\"0123456789abcdef\",\"role\":\"Admin\",\"type\":"
            "\"token\"},\"auditId\":\"7c9e6679-7425-40de-944b-e07fc1f90ae7\",\"context\":{\"ip\":\"127.0.0.1\","
            "\"requestId\":\"req-1\",\"userAgent\":\"curl/"
            "7.88\"},\"decision\":\"GRANTED\",\"details\":{\"causedSeq\":8},"
            "\"previousHash\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"reason\":{"
            "\"code\":"
            "\"AUTHZ_OK\",\"message\":\"on \\\"fire\\\"\"},\"resource\":{\"id\":\"run-1\",\"type\":\"run\"},\"seq\":1,"
            "\"tenantId\":\"acme\",\"timestamp\":\"2023-11-14T22:13:20.123Z\"}"));
    CHECK_INT(head.seq, 1);
    struct digest hash = sha256(text);
    CHECK(digest_eq(&head.hash, &hash));
    CHECK_OK(audit_decode(text, &arena, &back, &err), &err);
    CHECK_STR(encoded(&back, &again), text);
}

static void a_small_record_round_trip(void)
{
    arena_init(&arena, 1 << 14, 1 << 22);
    struct audit_record record = {.action = STR("health"), .outcome = AUDIT_DENIED}, back;
    struct audit_head head = {.seq = 41, .hash = sha256(STR("x"))}, again = head;
    struct str text = encoded(&record, &head);
    CHECK_OK(audit_decode(text, &arena, &back, &err), &err);
    CHECK_INT(back.seq, 42);
    CHECK_INT(back.outcome, AUDIT_DENIED);
    CHECK_STR(encoded(&back, &again), text);
}

// What a caller sends can neither break a record nor make it large.
static void text_from_outside_is_repaired_and_cut(void)
{
    arena_init(&arena, 1 << 16, 1 << 22);
    static char noise[100000];
    for (size_t i = 0; i < sizeof(noise); i++) noise[i] = (char)(i * 7 % 256);
    struct audit_record record = full_record(), back;
    struct audit_head head = {0};
    record.user_agent = record.request = record.resource = record.reason = (struct str){noise, sizeof(noise)};
    struct str text = encoded(&record, &head);
    CHECK(text.len < 40000);
    CHECK(str_utf8(text));
    CHECK_OK(audit_decode(text, &arena, &back, &err), &err);
    CHECK(back.user_agent.len <= 256 && back.user_agent.len > 250);
    CHECK_STR(back.user_agent, record.user_agent);
    record = full_record();
    record.user_agent = STR("a\xC3\xA4\xFFz"); // one good character, one bad byte
    CHECK_OK(audit_decode(encoded(&record, &head), &arena, &back, &err), &err);
    CHECK_STR(back.user_agent, STR("a\xC3\xA4?z"));
}

static void a_record_of_a_decision(void)
{
    struct auth *auth;
    arena_init(&arena, 1 << 16, 1 << 22);
    CHECK_OK(auth_open(STR(""), &arena, &auth, &err), &err);
    struct principal admin = {.id = STR("ann"), .tenant = STR("acme"), .roles = ROLE_ADMIN};
    struct auth_object foreign = {.tenant = STR("globex"), .exists = true};
    struct auth_ask ask = {
        .principal = &admin, .operation = OPERATION_SIGNAL_EMERGENCY_STOP, .object = &foreign, .reason = STR("fire")};
    struct decision decision = auth_decide(auth, &ask);
    struct audit_record record = audit_of(&ask, &decision);
    CHECK_TEXT(decision.code, "NOT_FOUND");
    CHECK_STR(record.code, STR("AUTHZ_TENANT_FORBIDDEN"));
    CHECK_STR(record.tenant, STR("acme"));
    CHECK_INT(record.outcome, AUDIT_DENIED);
    CHECK_STR(record.actor_role, STR(""));
    foreign.tenant = STR("acme");
    decision = auth_decide(auth, &ask);
    record = audit_of(&ask, &decision);
    CHECK_INT(record.outcome, AUDIT_GRANTED);
    CHECK_STR(record.actor_role, STR("Admin"));
    CHECK_STR(record.action, STR("signal.emergency_stop"));
    CHECK_STR(record.reason, STR("fire"));
    ask.principal = NULL;
    decision = auth_decide(auth, &ask);
    record = audit_of(&ask, &decision);
    CHECK_STR(record.actor_type, STR("none"));
    CHECK_STR(record.code, STR("AUTHN_REQUIRED"));
}

enum { LENGTH = 12 };
static struct str chain[LENGTH];
static struct audit_head ends;
static const struct audit_head nothing;

static void make_chain(void)
{
    arena_init(&arena, 1 << 16, 1 << 24);
    ends = nothing;
    for (size_t i = 0; i < LENGTH; i++) {
        struct audit_record record = full_record();
        char name[16];
        snprintf(name, sizeof(name), "run-%zu", i);
        record.resource = str_from(name);
        chain[i] = encoded(&record, &ends);
    }
}

static struct audit_verdict verify(const struct str *records, size_t count, const struct audit_head *to)
{
    struct audit_verdict verdict;
    CHECK_OK(audit_verify(records, count, &nothing, to, &arena, &verdict, &err), &err);
    return verdict;
}

static void an_untouched_chain_is_intact_whole_and_in_pages(void)
{
    make_chain();
    struct audit_verdict verdict = verify(chain, LENGTH, &ends), page;
    CHECK_INT(verdict.fault, AUDIT_INTACT);
    CHECK_INT(verdict.head.seq, LENGTH);
    CHECK(digest_eq(&verdict.head.hash, &ends.hash));
    struct audit_head head = nothing;
    for (size_t i = 0; i < LENGTH; i += 5) {
        size_t count = LENGTH - i < 5 ? LENGTH - i : 5;
        CHECK_OK(audit_verify(chain + i, count, &head, NULL, &arena, &page, &err), &err);
        CHECK_INT(page.fault, AUDIT_INTACT);
        head = page.head;
    }
    CHECK(digest_eq(&head.hash, &ends.hash));
    CHECK_INT(verify(NULL, 0, &nothing).fault, AUDIT_INTACT);
}

static void every_changed_byte_shows_AU1(void)
{
    make_chain();
    for (size_t i = 0; i < LENGTH; i += 5) {
        char text[2048];
        struct str original = chain[i];
        CHECK(original.len < sizeof(text));
        for (size_t at = 0; at < original.len; at++) {
            memcpy(text, original.ptr, original.len);
            text[at] = text[at] == '7' ? '8' : '7';
            chain[i] = (struct str){text, original.len};
            struct audit_verdict verdict = verify(chain, LENGTH, &ends);
            CHECK(verdict.fault != AUDIT_INTACT);
            CHECK(verdict.at == i || verdict.at == i + 1);
        }
        chain[i] = original;
    }
    struct str last = chain[LENGTH - 1];
    struct audit_record record;
    CHECK_OK(audit_decode(last, &arena, &record, &err), &err);
    struct audit_head before = {LENGTH - 1, record.previous};
    record.outcome = AUDIT_DENIED;
    chain[LENGTH - 1] = encoded(&record, &before); // well made, but not what was there
    CHECK_INT(verify(chain, LENGTH, &ends).fault, AUDIT_CHANGED);
    CHECK_INT(verify(chain, LENGTH, NULL).fault, AUDIT_INTACT); // which is why the end is kept elsewhere
}

static void every_removed_record_shows_AU1(void)
{
    make_chain();
    for (size_t i = 0; i < LENGTH; i++) {
        struct str rest[LENGTH];
        size_t count = 0;
        for (size_t k = 0; k < LENGTH; k++)
            if (k != i) rest[count++] = chain[k];
        struct audit_verdict verdict = verify(rest, count, &ends);
        CHECK_INT(verdict.fault, AUDIT_MISSING);
        CHECK_INT(verdict.at, i);
        CHECK_INT(verdict.seq, i + 1);
        CHECK_INT(verdict.head.seq, i);
    }
}

static void every_swap_and_every_repetition_shows_AU1(void)
{
    make_chain();
    for (size_t i = 0; i < LENGTH; i++) {
        for (size_t k = i + 1; k < LENGTH; k++) {
            struct str order[LENGTH];
            memcpy(order, chain, sizeof(order));
            order[i] = chain[k];
            order[k] = chain[i];
            struct audit_verdict verdict = verify(order, LENGTH, &ends);
            CHECK_INT(verdict.fault, AUDIT_ORDER);
            CHECK_INT(verdict.at, i);
            order[i] = chain[i]; // now i stands twice
            CHECK(verify(order, LENGTH, &ends).fault != AUDIT_INTACT);
        }
    }
    struct str longer[LENGTH + 1];
    memcpy(longer, chain, sizeof(chain));
    struct audit_record record = full_record();
    struct audit_head head = ends;
    longer[LENGTH] = encoded(&record, &head);
    CHECK_INT(verify(longer, LENGTH + 1, &ends).fault, AUDIT_CHANGED);
    CHECK_INT(verify(longer, LENGTH + 1, &head).fault, AUDIT_INTACT);
}

static void a_record_made_anew_breaks_the_chain(void)
{
    make_chain();
    for (size_t i = 0; i + 1 < LENGTH; i++) {
        struct audit_record record;
        struct str original = chain[i];
        CHECK_OK(audit_decode(original, &arena, &record, &err), &err);
        struct audit_head before = {i, record.previous};
        record.actor = STR("somebody else");
        chain[i] = encoded(&record, &before);
        struct audit_verdict verdict = verify(chain, LENGTH, &ends);
        CHECK_INT(verdict.fault, AUDIT_CHANGED);
        CHECK_INT(verdict.at, i + 1);
        chain[i] = original;
    }
}

static void keys_sort_by_number(void)
{
    struct buf a, b;
    buf_init(&a, 100);
    buf_init(&b, 100);
    audit_key(STR("acme"), 255, &a);
    audit_key(STR("acme"), 256, &b);
    CHECK_STR(buf_str(&a), STR("acme/00000000000000ff"));
    CHECK(str_cmp(buf_str(&a), buf_str(&b)) < 0);
    buf_release(&a);
    buf_release(&b);
}

static void memory_may_end(void)
{
    struct audit_record record = full_record(), back;
    for (int64_t n = 1;; n++) {
        struct buf buf;
        struct audit_head head = {0};
        struct audit_verdict verdict;
        arena_init(&arena, 256, 1 << 22);
        arena.fail_in = n;
        buf_init(&buf, 1 << 16);
        enum code rc = audit_encode(&record, &head, &arena, &buf, NULL);
        if (rc) CHECK_INT(head.seq, 0);
        struct str text = buf_str(&buf);
        if (!rc) rc = audit_decode(text, &arena, &back, NULL);
        if (!rc) rc = audit_verify(&text, 1, &nothing, &head, &arena, &verdict, NULL);
        buf_release(&buf);
        arena_release(&arena);
        if (!rc) break;
        CHECK_INT(rc, E_NOMEM);
    }
    struct buf tight;
    struct audit_head head = {0};
    arena_init(&arena, 1 << 14, 1 << 22);
    buf_init(&tight, 100);
    CHECK_INT(audit_encode(&record, &head, &arena, &tight, NULL), E_LIMIT);
    CHECK_INT(head.seq, 0);
    buf_release(&tight);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(record_round_trip_AU1),
        TEST(a_small_record_round_trip),
        TEST(text_from_outside_is_repaired_and_cut),
        TEST(a_record_of_a_decision),
        TEST(an_untouched_chain_is_intact_whole_and_in_pages),
        TEST(every_changed_byte_shows_AU1),
        TEST(every_removed_record_shows_AU1),
        TEST(every_swap_and_every_repetition_shows_AU1),
        TEST(a_record_made_anew_breaks_the_chain),
        TEST(keys_sort_by_number),
        TEST(memory_may_end),
    };
    return test_main("auth_audit", tests, ARRAY_COUNT(tests), argc, argv);
}
