// Any bytes through doc_tree. What it takes is a JSON value that survives being written and read again, with positions
// inside the text; what it refuses has a diagnostic that can be written. Both sides of the JSON/YAML switch are reached.
#include "doc/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t count_lines(struct str text)
{
    uint32_t lines = 1;
    for (size_t at = str_find(text, '\n', 0); at < text.len; at = str_find(text, '\n', at + 1)) lines++;
    return lines;
}

static void check_places(const struct json *value, uint32_t lines)
{
    INVARIANT(value->line >= 1 && value->line <= lines && value->column >= 1);
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) check_places(&value->items[i], lines);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++) {
        INVARIANT(value->members[i].line >= 1 && value->members[i].line <= lines);
        check_places(&value->members[i].value, lines);
    }
}

static void check_value(const struct json *value, struct arena *arena)
{
    struct buf text;
    struct json again;
    struct error err = {0};
    buf_init(&text, 64 * 1024 * 1024);
    json_write(&text, value);
    INVARIANT(buf_ok(&text));
    enum code rc = json_parse(buf_str(&text), NULL, arena, &again, &err);
    // Aliases share values, so the written text may be longer than what a document may be.
    if (rc != E_LIMIT) {
        INVARIANT(rc == OK);
        INVARIANT(json_equal(value, &again));
    }
    buf_release(&text);
}

static void check_diagnostics(const struct diagnostics *diagnostics, struct str text)
{
    struct buf out;
    buf_init(&out, 16 * 1024 * 1024);
    for (size_t i = 0; i < diagnostics->count; i++) {
        diagnostic_write(&out, &diagnostics->items[i], text, i % 2 == 1);
        INVARIANT(diagnostics->items[i].message.len > 0);
    }
    INVARIANT(buf_ok(&out));
    INVARIANT(str_utf8(buf_str(&out)));
    buf_release(&out);
}

static void run(struct str text, bool yaml)
{
    struct arena arena;
    struct diagnostics diagnostics;
    struct json value;
    arena_init(&arena, 4096, 256 * 1024 * 1024);
    diagnostics_init(&diagnostics, &arena);
    enum code rc;
    if (yaml)
        rc = yaml_tree(text, STR("fuzz"), &doc_limits_default, &arena, &value, &diagnostics);
    else
        rc = doc_tree(text, STR("fuzz"), NULL, &arena, &value, &diagnostics);
    INVARIANT(rc == OK || rc == E_INVALID);
    INVARIANT((rc == E_INVALID) == (diagnostics.error_count > 0));
    check_diagnostics(&diagnostics, text);
    if (rc == OK) {
        check_places(&value, count_lines(text));
        check_value(&value, &arena);
    }
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    if (size > 256 * 1024) return 0;
    run(text, false);
    if (str_utf8(text)) run(text, true);
    return 0;
}
