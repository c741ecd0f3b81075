// Messages as bytes: what Temporal's own library writes is read and written again without a difference, and what nobody should write
// is refused.
#include "harness/test.h"
#include "proto/temporal.h"

#include <stdio.h>
#include <string.h>

#include "unit/proto_vectors.h"

static const struct {
    const char *name;
    const struct proto_message *message;
} messages[] = {
#define MESSAGE(message, spelled, fields) {#message, &temporal_##message},
#include "proto/temporal_list.h"
#undef MESSAGE
    {"nothing", &temporal_nothing},
};

static const struct proto_message *message_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(messages); i++)
        if (strcmp(messages[i].name, name) == 0) return messages[i].message;
    test_fail(__FILE__, __LINE__, "no table is called %s", name);
}

static struct str unhex(const char *hex, struct arena *arena)
{
    size_t len = strlen(hex) / 2;
    char *out = arena_alloc(arena, len + 1);
    CHECK(out);
    for (size_t i = 0; i < len; i++) out[i] = (char)(char_hex(hex[2 * i]) << 4 | char_hex(hex[2 * i + 1]));
    return (struct str){out, len};
}

static void check_value(const struct proto_message *message, const void *value);

// A field holds what follows from its number (test/unit/proto_vectors.py), or was left out: of a oneof one member is set.
static bool check_field(const struct proto_field *field, const char *value)
{
    const char *at = value + field->at;
    char text[16];
    snprintf(text, sizeof(text), "f%u", field->number);
    switch (field->kind) {
    case PROTO_NUMBER: {
        int64_t n = *(const int64_t *)(const void *)at;
        CHECK(n == 0 || n == 1 || n == field->number * 1000 + 7);
        return n != 0;
    }
    case PROTO_DOUBLE:
        CHECK(*(const double *)(const void *)at * 4 == field->number);
        return true;
    case PROTO_TEXT: {
        struct str got = *(const struct str *)(const void *)at;
        CHECK(got.len == 0 || str_is(got, text));
        return got.len > 0;
    }
    case PROTO_MESSAGE: {
        const void *inner = *(void *const *)(const void *)at;
        if (inner) check_value(field->of, inner);
        return inner != NULL;
    }
    case PROTO_LIST: {
        const char *items = *(char *const *)(const void *)at;
        size_t count = *(const size_t *)(const void *)(value + field->count_at);
        for (size_t i = 0; i < count; i++) check_value(field->of, items + i * field->of->size);
        return count > 0;
    }
    }
    return false;
}

static void check_value(const struct proto_message *message, const void *value)
{
    for (size_t i = 0; i < message->field_count; i++) (void)check_field(&message->fields[i], value);
}

static void every_message_is_read_and_written_as_the_official_library_does(void)
{
    bool seen[ARRAY_COUNT(messages)][32] = {{0}};
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        struct arena arena = arena_of(4096, 1 << 20);
        struct buf out = buf_of(1 << 20);
        struct error err = {0};
        const struct proto_message *message = message_of(vectors[i].message);
        struct str bytes = unhex(vectors[i].hex, &arena);
        void *value = arena_alloc(&arena, message->size);
        CHECK(value);
        CHECK_OK(proto_read(message, bytes, &arena, value, &err), &err);
        proto_write(&out, message, value);
        CHECK(buf_ok(&out));
        CHECK_STR(buf_str(&out), bytes);
        bool negative = i + 2 == ARRAY_COUNT(vectors); // the one vector whose values are its own
        for (size_t k = 0; k < message->field_count && !negative; k++) {
            size_t row = 0;
            while (messages[row].message != message) row++;
            CHECK(k < 32);
            if (check_field(&message->fields[k], value)) seen[row][k] = true;
        }
        buf_release(&out);
        arena_release(&arena);
    }
    // Every row of every table was in a vector; entries of maps are in those of their maps.
    for (size_t row = 0; row < ARRAY_COUNT(messages); row++)
        for (size_t k = 0; k < messages[row].message->field_count; k++)
            if (!strstr(messages[row].message->name, "Entry") && !seen[row][k])
                test_fail(__FILE__, __LINE__, "%s: field %u is in no vector", messages[row].name,
                          messages[row].message->fields[k].number);
}

static void fields_of_a_table_are_in_the_order_of_their_numbers(void)
{
    for (size_t row = 0; row < ARRAY_COUNT(messages); row++)
        for (size_t k = 1; k < messages[row].message->field_count; k++)
            CHECK(messages[row].message->fields[k - 1].number < messages[row].message->fields[k].number);
}

static void a_negative_number_takes_ten_bytes(void)
{
    struct temporal_duration in = {.seconds = -1}, back;
    struct arena arena = arena_of(4096, 1 << 20);
    struct buf out = buf_of(1 << 20);
    struct error err = {0};
    proto_write(&out, &temporal_duration, &in);
    CHECK_INT(out.len, 11);
    CHECK_OK(proto_read(&temporal_duration, buf_str(&out), &arena, &back, &err), &err);
    CHECK_INT(back.seconds, -1);
    buf_release(&out);
    arena_release(&arena);
}

static enum code read_hex(const struct proto_message *message, const char *hex, struct arena *arena, void *value)
{
    struct error err = {0};
    enum code rc = proto_read(message, unhex(hex, arena), arena, value, &err);
    if (rc) CHECK(err.message[0]);
    return rc;
}

static void unknown_fields_of_every_wire_type_are_skipped(void)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct temporal_execution execution;
    // #99 varint, #98 8 bytes, #97 bytes, #96 4 bytes, then workflow_id
    CHECK_INT(read_hex(&temporal_execution, "98062a" "91060102030405060708" "8a0602aabb" "850601020304" "0a0161", &arena,
                       &execution), OK);
    CHECK_STR(execution.workflow_id, STR("a"));
    // A field that is of another wire type than its table says is unknown too: workflow_id as a number.
    CHECK_INT(read_hex(&temporal_execution, "0805" "120162", &arena, &execution), OK);
    CHECK_INT(execution.workflow_id.len, 0);
    CHECK_STR(execution.run_id, STR("b"));
    arena_release(&arena);
}

static void a_field_that_comes_again_replaces_texts_and_merges_messages(void)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct temporal_execution execution;
    CHECK_INT(read_hex(&temporal_execution, "0a01610a0162", &arena, &execution), OK);
    CHECK_STR(execution.workflow_id, STR("b"));
    struct temporal_describe describe; // execution in two parts: {workflow_id}, {run_id}
    CHECK_INT(read_hex(&temporal_describe, "12030a0161" "1203120162", &arena, &describe), OK);
    CHECK(describe.execution);
    CHECK_STR(describe.execution->workflow_id, STR("a"));
    CHECK_STR(describe.execution->run_id, STR("b"));
    arena_release(&arena);
}

static void lists_keep_their_order_however_long_they_are(void)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct buf out = buf_of(1 << 20);
    struct error err = {0};
    struct temporal_attribute items[37];
    for (int i = 0; i < 37; i++) items[i] = (struct temporal_attribute){.key = STR("k"), .value = i};
    struct temporal_attributes in = {.custom = items, .custom_count = 37}, back;
    proto_write(&out, &temporal_attributes, &in);
    CHECK_OK(proto_read(&temporal_attributes, buf_str(&out), &arena, &back, &err), &err);
    CHECK_INT(back.custom_count, 37);
    for (int i = 0; i < 37; i++) CHECK_INT(back.custom[i].value, i);
    buf_release(&out);
    arena_release(&arena);
}

static void torn_and_forged_bytes_are_refused(void)
{
    static const char *const bad[] = {
        "0a",                     // a tag without its value
        "0a05616263",             // shorter than it says
        "0affffffffffffffffff01", // a length beyond any message
        "ffffffffffffffffffff01", // a tag beyond 64 bits
        "8080",                   // a number that does not end
        "0061",                   // field 0
        "0b0c",                   // a group of proto2
        "0e",                     // a wire type that does not exist
        "9106010203",             // eight bytes of which three came
    };
    struct arena arena = arena_of(4096, 1 << 20);
    struct temporal_execution execution;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        if (read_hex(&temporal_execution, bad[i], &arena, &execution) != E_INVALID)
            test_fail(__FILE__, __LINE__, "%s was accepted", bad[i]);
    arena_release(&arena);
}

static void every_prefix_of_a_message_is_read_or_refused(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        struct arena arena = arena_of(4096, 4 << 20);
        const struct proto_message *message = message_of(vectors[i].message);
        struct str bytes = unhex(vectors[i].hex, &arena);
        void *value = arena_alloc(&arena, message->size);
        CHECK(value);
        for (size_t len = 0; len < bytes.len; len++) {
            struct error err = {0};
            enum code rc = proto_read(message, str_slice(bytes, 0, len), &arena, value, &err);
            CHECK(rc == OK || rc == E_INVALID);
        }
        arena_release(&arena);
    }
}

static void causes_are_nested_to_a_depth_and_no_further(void)
{
    struct arena arena = arena_of(4096, 16 << 20);
    struct error err = {0};
    for (int deep = PROTO_DEPTH_MAX - 1; deep <= PROTO_DEPTH_MAX + 1; deep++) {
        struct temporal_failure chain[PROTO_DEPTH_MAX + 2], back;
        memset(chain, 0, sizeof(chain));
        struct buf out = buf_of(1 << 20);
        for (int i = 0; i < deep; i++) chain[i].cause = &chain[i + 1];
        proto_write(&out, &temporal_failure, &chain[0]);
        enum code rc = proto_read(&temporal_failure, buf_str(&out), &arena, &back, &err);
        CHECK_INT(rc, deep <= PROTO_DEPTH_MAX ? OK : E_INVALID);
        buf_release(&out);
    }
    arena_release(&arena);
}

static void a_small_message_that_asks_for_much_memory_is_refused(void)
{
    struct arena arena = arena_of(4096, 64 << 10);
    struct buf bytes = buf_of(1 << 20);
    struct temporal_history history;
    struct error err = {0};
    for (int i = 0; i < 10000; i++) buf_add(&bytes, STR("\x0a\x00")); // an event of two bytes is some hundred in memory
    CHECK_INT(proto_read(&temporal_history, buf_str(&bytes), &arena, &history, &err), E_NOMEM);
    buf_release(&bytes);
    arena_release(&arena);
}

static void what_cannot_be_written_whole_fails_and_says_so(void)
{
    struct temporal_payload payload = {.data = STR("0123456789012345678901234567890123456789")};
    struct temporal_payloads payloads = {.payloads = &payload, .payloads_count = 1};
    for (size_t max = 1; max < 44; max++) {
        struct buf out = buf_of(max);
        proto_write(&out, &temporal_payloads, &payloads);
        CHECK(!buf_ok(&out));
        buf_release(&out);
    }
}

static void an_empty_message_that_is_there_is_written(void)
{
    struct buf out = buf_of(1 << 10);
    struct temporal_cancel_workflow nothing = {0};
    struct temporal_command command = {.type = TEMPORAL_CANCEL_WORKFLOW, .cancel = &nothing};
    proto_write(&out, &temporal_command, &command);
    CHECK_STR(buf_str(&out), STR("\x08\x07\x42\x00"));
    buf_release(&out);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_message_is_read_and_written_as_the_official_library_does),
        TEST(fields_of_a_table_are_in_the_order_of_their_numbers),
        TEST(a_negative_number_takes_ten_bytes),
        TEST(unknown_fields_of_every_wire_type_are_skipped),
        TEST(a_field_that_comes_again_replaces_texts_and_merges_messages),
        TEST(lists_keep_their_order_however_long_they_are),
        TEST(torn_and_forged_bytes_are_refused),
        TEST(every_prefix_of_a_message_is_read_or_refused),
        TEST(causes_are_nested_to_a_depth_and_no_further),
        TEST(a_small_message_that_asks_for_much_memory_is_refused),
        TEST(what_cannot_be_written_whole_fails_and_says_so),
        TEST(an_empty_message_that_is_there_is_written),
    };
    return test_main("proto_wire", tests, ARRAY_COUNT(tests), argc, argv);
}
