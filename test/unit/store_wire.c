// What a store tells, as bytes for somebody far away, comes back as it was.
#include "harness/test.h"

#include "store/wire.h"

#include <string.h>

static struct digest digest_of(const char *text)
{
    return sha256(str_from(text));
}

static struct run_head some_head(void)
{
    struct run_head head = {.ids = {.tenant = STR("acme"),
                                    .project = STR("p"),
                                    .environment = STR("e"),
                                    .run = STR("r-1"),
                                    .plan_id = STR("plan"),
                                    .plan_version = STR("1")},
                            .vocabulary = VOCABULARY_NODES,
                            .document = digest_of("document"),
                            .name = STR("n\xC3\xA4me \"x\""),
                            .parent_run = STR("p-1"),
                            .original_run = STR("o-1"),
                            .last_seq = 7,
                            .last_ledger_seq = 3,
                            .head = digest_of("head"),
                            .ledger_head = digest_of("ledger"),
                            .updated_ms = 12345,
                            .terminal = true,
                            .epoch = 4,
                            .owned = true,
                            .owner_pid = 99,
                            .position = 1234567890123};
    head.summary = (struct run_summary){.status = RUN_STATUS_FAILED,
                                        .substatus = "RETRYING",
                                        .counts = {.total = 5, .completed = 1, .failed = 2, .skipped = 1},
                                        .running = 1,
                                        .created_ms = 1,
                                        .started_ms = 2,
                                        .ended_ms = 3,
                                        .cause = "failed at load"};
    return head;
}

static void check_head(const struct run_head *a, const struct run_head *b)
{
    CHECK(str_eq(a->ids.tenant, b->ids.tenant) && str_eq(a->ids.project, b->ids.project));
    CHECK(str_eq(a->ids.environment, b->ids.environment) && str_eq(a->ids.run, b->ids.run));
    CHECK(str_eq(a->ids.plan_id, b->ids.plan_id) && str_eq(a->ids.plan_version, b->ids.plan_version));
    CHECK(str_eq(a->name, b->name) && str_eq(a->parent_run, b->parent_run) && str_eq(a->original_run, b->original_run));
    CHECK(digest_eq(&a->document, &b->document) && digest_eq(&a->head, &b->head));
    CHECK(digest_eq(&a->ledger_head, &b->ledger_head));
    CHECK_INT(a->vocabulary, b->vocabulary);
    CHECK_INT(a->last_seq, b->last_seq);
    CHECK_INT(a->last_ledger_seq, b->last_ledger_seq);
    CHECK_INT(a->updated_ms, b->updated_ms);
    CHECK_INT(a->terminal, b->terminal);
    CHECK_INT(a->summary.status, b->summary.status);
    CHECK_INT(a->summary.counts.total, b->summary.counts.total);
    CHECK_INT(a->summary.counts.skipped, b->summary.counts.skipped);
    CHECK_INT(a->summary.running, b->summary.running);
    CHECK_INT(a->summary.ended_ms, b->summary.ended_ms);
    CHECK_TEXT(a->summary.cause, b->summary.cause);
    CHECK_TEXT(a->summary.substatus, b->summary.substatus);
}

static void a_head_comes_back_as_it_was(void)
{
    struct arena arena;
    struct run_head head = some_head(), back;
    struct json value, parsed;
    struct buf text;
    arena_init(&arena, 4096, 1 << 20);
    buf_init(&text, 1 << 16);
    CHECK(run_head_json_live(&head, &arena, &value));
    json_write(&text, &value);
    CHECK(json_parse(buf_str(&text), NULL, &arena, &parsed, NULL) == OK);
    CHECK(run_head_read(&parsed, &back));
    check_head(&head, &back);
    CHECK_INT(back.epoch, 4);
    CHECK_INT(back.owner_pid, 99);
    CHECK_INT(back.position, 1234567890123);
    CHECK(back.owned);
    CHECK(run_head_json(&head, &arena, &value)); // a bundle's: nobody owns it
    CHECK(run_head_read(&value, &back));
    check_head(&head, &back);
    CHECK(!back.owned && back.position == 0 && back.epoch == 0);
    buf_release(&text);
    arena_release(&arena);
}

static void what_is_no_head_is_not_taken_for_one(void)
{
    struct arena arena;
    struct run_head head = some_head(), back;
    struct json value;
    arena_init(&arena, 4096, 1 << 20);
    CHECK(run_head_json_live(&head, &arena, &value));
    for (uint32_t i = 0; i < value.count; i++) {
        static const char *const spare[] = {"cause", "epoch", "owned", "ownerPid", "position", "steps", "substatus"};
        struct json less = json_object();
        bool needed = true;
        for (size_t k = 0; k < ARRAY_COUNT(spare); k++) needed = needed && !str_is(value.members[i].key, spare[k]);
        for (uint32_t k = 0; k < value.count; k++)
            if (k != i) CHECK(json_put(&arena, &less, value.members[k].key, value.members[k].value));
        CHECK_INT(run_head_read(&less, &back), !needed);
    }
    arena_release(&arena);
}

static void records_come_back_byte_for_byte(void)
{
    static const char bytes[] = "{\"a\":\"\n\xff\0{\"more\":true}\"}";
    struct str whole = {bytes, sizeof(bytes) - 1};
    struct record_columns columns = {.run = STR("r"),
                                     .timestamp = STR("2026-01-01T00:00:00.000Z"),
                                     .payload = str_slice(whole, 2, 9),
                                     .key = {"\x00\x7f\x80\xff\x01\x02\x03\x04", 8}};
    struct record event = {.seq = 9, .type = STR("RunStarted"), .bytes = whole, .columns = &columns};
    struct record entry = {.seq = 4,
                           .ledger_seq = 2,
                           .type = STR("decision"),
                           .signal_id = STR("s"),
                           .bytes = STR("{}"),
                           .hash = digest_of("entry")};
    struct arena arena;
    struct record back;
    struct buf text;
    bool more = false;
    arena_init(&arena, 4096, 1 << 20);
    buf_init(&text, 1 << 16);
    CHECK(record_wire_write(&text, &event, &arena) && record_wire_write(&text, &entry, &arena));
    struct str rest = buf_str(&text);
    CHECK(record_wire_read(&rest, &arena, &back, &more) == OK);
    CHECK(str_eq(back.bytes, whole) && back.seq == 9 && back.ledger_seq == 0 && str_is(back.type, "RunStarted"));
    CHECK(back.columns && str_eq(back.columns->key, columns.key) && str_eq(back.columns->payload, columns.payload));
    CHECK(str_eq(back.columns->run, columns.run) && str_eq(back.columns->timestamp, columns.timestamp));
    CHECK(record_wire_read(&rest, &arena, &back, &more) == OK);
    CHECK(str_is(back.bytes, "{}") && back.seq == 4 && back.ledger_seq == 2 && str_is(back.signal_id, "s"));
    CHECK(digest_eq(&back.hash, &entry.hash) && !back.columns);
    CHECK_INT(rest.len, 0);
    buf_clear(&text);
    CHECK(records_wire_end(&text, true, &arena));
    rest = buf_str(&text);
    CHECK(record_wire_read(&rest, &arena, &back, &more) == OK && !back.bytes.ptr && more);
    buf_release(&text);
    arena_release(&arena);
}

static void damaged_records_are_refused(void)
{
    struct record event = {.seq = 9, .type = STR("RunStarted"), .bytes = STR("{\"a\":1}")};
    struct arena arena;
    struct record back;
    struct buf text;
    bool more = false;
    arena_init(&arena, 4096, 8 << 20);
    buf_init(&text, 1 << 16);
    CHECK(record_wire_write(&text, &event, &arena));
    for (size_t len = 0; len < text.len; len++) { // cut anywhere
        struct str rest = {text.ptr, len};
        CHECK(record_wire_read(&rest, &arena, &back, &more) == E_CORRUPT);
    }
    static const char *const bad[] = {"{\"bytes\":-1,\"seq\":1}\n\n",
                                      "{\"bytes\":99999999999,\"seq\":1}\nx\n",
                                      "{\"bytes\":1,\"seq\":1,\"hash\":\"x\"}\nx\n",
                                      "{\"bytes\":1}\nx\n",
                                      "[]\nx\n",
                                      "{\"bytes\":1,\"seq\":1,\"columns\":{\"payloadAt\":1,\"payloadSize\":1}}\nx\n"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct str rest = str_from(bad[i]);
        CHECK(record_wire_read(&rest, &arena, &back, &more) == E_CORRUPT);
    }
    buf_release(&text);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_head_comes_back_as_it_was),
        TEST(what_is_no_head_is_not_taken_for_one),
        TEST(records_come_back_byte_for_byte),
        TEST(damaged_records_are_refused),
    };
    return test_main("store_wire", tests, ARRAY_COUNT(tests), argc, argv);
}
