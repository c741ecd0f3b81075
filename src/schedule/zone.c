// Zones: the file of the database to a list of changes, and the span around an instant.
#include "schedule/inside.h"

#include "base/civil.h"

#include <string.h>

enum { HEAD_SIZE = 44, TYPE_SIZE = 6, CHANGES_MAX = 4096, TYPES_MAX = 256, OFFSET_MAX = 26 * 3600, SECOND_MS = 1000 };

struct zone {
    struct str name;
    const int64_t *at; // when `type` begins
    const uint8_t *type;
    size_t count;
    const struct zone_type *types;
    struct zone_rule rule;
};

struct counts {
    uint32_t ut, standard, leap, changes, types, letters;
};

bool zone_name_valid(struct str name)
{
    if (name.len == 0 || name.len > ZONE_NAME_MAX || name.ptr[0] == '/' || name.ptr[name.len - 1] == '/') return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool begins = i == 0 || name.ptr[i - 1] == '/';
        if (begins && (c == '.' || c == '/')) return false;
        if (!char_is_word(c) && c != '+' && c != '-' && c != '.' && c != '/') return false;
    }
    return true;
}

static uint64_t number(const char *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | (uint8_t)at[i];
    return value;
}

static bool read_head(struct str bytes, struct counts *out)
{
    if (bytes.len < HEAD_SIZE || memcmp(bytes.ptr, "TZif", 4) != 0 || bytes.ptr[4] < '2') return false;
    uint32_t *fields[] = {&out->ut, &out->standard, &out->leap, &out->changes, &out->types, &out->letters};
    *out = (struct counts){0};
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) *fields[i] = (uint32_t)number(bytes.ptr + 20 + 4 * i, 4);
    return out->changes <= CHANGES_MAX && out->types >= 1 && out->types <= TYPES_MAX && out->letters <= CHANGES_MAX &&
           out->leap <= CHANGES_MAX && out->ut <= TYPES_MAX && out->standard <= TYPES_MAX;
}

static size_t body_size(const struct counts *counts, size_t time_size)
{
    return counts->changes * (time_size + 1) + counts->types * TYPE_SIZE + counts->letters +
           counts->leap * (time_size + 4) + counts->standard + counts->ut;
}

static bool read_types(struct str body, const struct counts *counts, struct zone_type *out)
{
    const char *types = body.ptr + (size_t)counts->changes * 9, *letters = types + (size_t)counts->types * TYPE_SIZE;
    for (size_t i = 0; i < counts->types; i++) {
        const char *at = types + i * TYPE_SIZE;
        uint8_t index = (uint8_t)at[5];
        size_t n = 0;
        if (index >= counts->letters) return false;
        while (index + n < counts->letters && letters[index + n]) n++;
        if (n >= sizeof(out[i].letters)) return false;
        out[i].offset = (int32_t)(uint32_t)number(at, 4);
        out[i].summer = at[4] != 0;
        memcpy(out[i].letters, letters + index, n);
        if (out[i].offset <= -OFFSET_MAX || out[i].offset >= OFFSET_MAX) return false;
    }
    return true;
}

static bool read_changes(struct str body, const struct counts *counts, int64_t *at, uint8_t *type)
{
    for (size_t i = 0; i < counts->changes; i++) {
        at[i] = (int64_t)number(body.ptr + i * 8, 8);
        type[i] = (uint8_t)body.ptr[(size_t)counts->changes * 8 + i];
        if (type[i] >= counts->types || (i > 0 && at[i] <= at[i - 1])) return false;
        // what nobody means, so that the sum with an offset is a number
        if (at[i] < -(INT64_C(1) << 60) || at[i] > INT64_C(1) << 60) return false;
    }
    return true;
}

// The second block, with times of 64 bits, and the line behind it.
static enum code read_body(struct str rest, struct arena *arena, struct zone *zone, struct error *err)
{
    struct counts counts;
    if (!read_head(rest, &counts)) return error_set(err, E_CORRUPT, "its second header is damaged");
    struct str body = str_slice(rest, HEAD_SIZE, rest.len);
    size_t size = body_size(&counts, 8);
    if (body.len < size) return error_set(err, E_CORRUPT, "it is cut");
    struct zone_type *types = ARENA_ARRAY(arena, counts.types, struct zone_type);
    int64_t *at = ARENA_ARRAY(arena, counts.changes + 1, int64_t);
    uint8_t *type = ARENA_ARRAY(arena, counts.changes + 1, uint8_t);
    if (!types || !at || !type) return error_nomem(err);
    if (!read_types(body, &counts, types) || !read_changes(body, &counts, at, type))
        return error_set(err, E_CORRUPT, "its changes are damaged");
    zone->at = at;
    zone->type = type;
    zone->types = types;
    zone->count = counts.changes;
    struct str line = str_slice(body, size, body.len);
    if (line.len < 2 || line.ptr[0] != '\n' || line.ptr[line.len - 1] != '\n')
        return error_set(err, E_CORRUPT, "it has no last line");
    return zone_rule_parse(str_slice(line, 1, line.len - 1), &zone->rule, err);
}

enum code zone_parse(struct str name, struct str bytes, struct arena *arena, const struct zone **out, struct error *err)
{
    struct counts counts;
    struct zone *zone = ARENA_NEW(arena, struct zone);
    if (!zone) return error_nomem(err);
    zone->name = arena_copy(arena, name);
    if (!zone->name.ptr) return error_nomem(err);
    enum code rc;
    if (!read_head(bytes, &counts) || bytes.len < HEAD_SIZE + body_size(&counts, 4))
        rc = error_set(err, E_CORRUPT, "it is no file of the time zone database (TZif, version 2 or later)");
    else
        rc = read_body(str_slice(bytes, HEAD_SIZE + body_size(&counts, 4), bytes.len), arena, zone, err);
    if (rc == E_CORRUPT) error_wrap(err, "zone %.*s", STR_ARG(name));
    if (!rc) *out = zone;
    return rc;
}

const struct zone *zone_utc(void)
{
    static const struct zone_type type = {.letters = "UTC"};
    static const struct zone utc = {.name = STR_INIT("UTC"), .types = &type};
    return &utc;
}

struct str zone_name(const struct zone *zone)
{
    return zone->name;
}

// Before its first change a zone has its first type; after the last one its rule, where there is one.
struct zone_span zone_at(const struct zone *zone, int64_t second)
{
    size_t low = 0, high = zone->count; // at[low - 1] <= second < at[high]
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->at[middle] <= second)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t from = low ? zone->at[low - 1] : INT64_MIN;
    if (low == zone->count && zone->rule.there && low > 0) {
        struct zone_span span = zone_rule_at(&zone->rule, second);
        if (span.from < from) span.from = from;
        return span;
    }
    if (zone->count == 0 && zone->rule.there) return zone_rule_at(&zone->rule, second);
    const struct zone_type *type = &zone->types[low ? zone->type[low - 1] : 0];
    struct zone_span span = {.from = from,
                             .to = low < zone->count ? zone->at[low] : ZONE_ALWAYS,
                             .offset = type->offset,
                             .summer = type->summer};
    memcpy(span.letters, type->letters, sizeof(span.letters));
    return span;
}

static int64_t seconds_of(int64_t ms)
{
    return (ms >= 0 ? ms : ms - (SECOND_MS - 1)) / SECOND_MS;
}

static char digit(int64_t number) // the last one
{
    return (char)('0' + number % 10);
}

void zone_format(const struct zone *zone, int64_t ms, char out[ZONE_TIME_SIZE])
{
    struct zone_span span = zone_at(zone, seconds_of(ms));
    char text[CIVIL_SIZE];
    civil_format(ms + span.offset * SECOND_MS, text);
    size_t shown = ms % SECOND_MS ? CIVIL_SIZE - 2 : CIVIL_SIZE - 6; // without the Z, and without ".000"
    int64_t minutes = (span.offset < 0 ? -span.offset : span.offset) / 60;
    char offset[] = {span.offset < 0 ? '-' : '+', digit(minutes / 600), digit(minutes / 60), ':', digit(minutes % 60 / 10),
                     digit(minutes), '\0'};
    memcpy(out, text, shown);
    memcpy(out + shown, offset, sizeof(offset));
}

bool zone_time(const struct zone *zone, struct str text, int64_t *ms)
{
    char whole[ZONE_TIME_SIZE];
    int64_t local;
    if (civil_parse(text, ms)) return true;
    if (text.len + 1 > sizeof(whole)) return false;
    memcpy(whole, text.ptr, text.len);
    whole[text.len] = 'Z';
    if (!civil_parse((struct str){whole, text.len + 1}, &local)) return false;
    int64_t second = seconds_of(local);
    struct zone_span span = zone_at(zone, second - 2 * (int64_t)OFFSET_MAX);
    while (span.to != ZONE_ALWAYS && second - span.offset >= span.to) { // not in this span: behind it, or in the gap after it
        struct zone_span next = zone_at(zone, span.to);
        if (second - next.offset < next.from) {
            *ms = next.from * SECOND_MS;
            return true;
        }
        span = next;
    }
    *ms = local - span.offset * SECOND_MS;
    return true;
}
