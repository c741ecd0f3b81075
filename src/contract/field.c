#include "contract/internal.h"

#include "base/civil.h"

#include <string.h>

// Malformed bytes become U+FFFD. A step may print anything; a record is always UTF-8.
static enum code repair_text(struct str text, struct arena *arena, struct str *out)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    enum { REPLACEMENT_SIZE = sizeof(replacement) - 1 };
    char *to = arena_array(arena, text.len, REPLACEMENT_SIZE);
    if (!to) return E_NOMEM;
    size_t len = 0;
    for (size_t i = 0; i < text.len;) {
        size_t size = str_utf8_size(text, i);
        if (size) {
            memcpy(to + len, text.ptr + i, size);
            len += size;
            i += size;
        } else {
            memcpy(to + len, replacement, REPLACEMENT_SIZE);
            len += REPLACEMENT_SIZE;
            i++;
        }
    }
    *out = (struct str){to, len};
    return OK;
}

static enum code encode_time(int64_t ms, struct arena *arena, struct json *out)
{
    char *text = arena_alloc(arena, CIVIL_SIZE);
    if (!text) return E_NOMEM;
    civil_format(ms, text);
    *out = json_string((struct str){text, CIVIL_SIZE - 1});
    return OK;
}

static enum code encode_digest(const struct digest *digest, struct arena *arena, struct json *out)
{
    char *hex = arena_alloc(arena, SHA256_HEX + 1);
    if (!hex) return E_NOMEM;
    digest_hex(digest, hex);
    *out = json_string((struct str){hex, SHA256_HEX});
    return OK;
}

static void encode_integer(int64_t n, bool write, struct json *out)
{
    if (write) *out = json_int(n);
}

static enum code encode_object(const struct field *field, const struct facts_in *facts, struct arena *arena,
                               struct json *out, struct error *err)
{
    if (field->present) {
        const unsigned char *base = facts->base[field->source];
        if (!*(const bool *)(base + field->present)) return OK;
    } else if (field->source && !facts->base[field->source]) {
        return OK;
    }
    struct json object;
    enum code rc = fields_encode(field->table, facts, arena, &object, err);
    if (rc) return rc;
    if (object.count || (field->flags & ALWAYS)) *out = object;
    return OK;
}

static bool is_text(const struct field *field) // a struct str
{
    return field->type <= FIELD_CHOICE;
}

// ---- what is known to fit

static bool known_text(struct str text, size_t max)
{
    if (text.len == 0 || text.len > max) return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c == 0x7f || c == '|') return false;
    }
    return true;
}

static bool known_run(struct str id)
{
    enum { RUN_ID_MAX = 128 };
    if (id.len == 0 || id.len > RUN_ID_MAX || !char_is_alnum(id.ptr[0])) return false;
    for (size_t i = 1; i < id.len; i++) {
        char c = id.ptr[i];
        if (!char_is_alnum(c) && c != '.' && c != '_' && c != ':' && c != '-') return false;
    }
    return true;
}

static bool known_code(struct str code)
{
    enum { CODE_MAX = 64 };
    if (code.len == 0 || code.len > CODE_MAX || code.ptr[0] < 'A' || code.ptr[0] > 'Z') return false;
    for (size_t i = 1; i < code.len; i++) {
        char c = code.ptr[i];
        if ((c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_') return false;
    }
    return true;
}

static bool known_hex(struct str text)
{
    if (text.len != SHA256_HEX) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
    }
    return true;
}

static bool known_choice(struct str text, struct str choices)
{
    while (choices.len > 0)
        if (str_eq(text, str_cut(choices, ' ', &choices))) return text.len > 0;
    return false;
}

// The schemas count characters; as many bytes are no more of them.
enum { NAME_MAX_SIZE = 128, STEP_MAX_SIZE = 1024, KEY_MAX_SIZE = 1100, PART_MAX_SIZE = 1200 };

static bool text_is_known(const struct field *field, struct str text)
{
    switch (field->type) {
    case FIELD_SOME:
        return text.len > 0;
    case FIELD_NAME:
        return known_text(text, NAME_MAX_SIZE);
    case FIELD_STEP:
        return known_text(text, STEP_MAX_SIZE);
    case FIELD_KEY:
        return known_text(text, KEY_MAX_SIZE);
    case FIELD_PART:
        return text.len > 0 && text.len <= PART_MAX_SIZE;
    case FIELD_RUN:
        return known_run(text);
    case FIELD_UUID:
    case FIELD_ID:
        return uuid_valid(text);
    case FIELD_HEX:
        return known_hex(text);
    case FIELD_CODE:
        return known_code(text);
    case FIELD_CHOICE:
        return known_choice(text, field->word);
    default:
        return true;
    }
}

bool contract_outcome_fits(const struct json *outcome)
{
    const struct json *error = json_key(outcome, "error"), *meta = json_key(outcome, "meta");
    struct str status = json_text(json_key(outcome, "status"));
    return json_is(outcome, JSON_OBJECT) && (str_is(status, "ok") || str_is(status, "error")) &&
           (!error || json_is(error, JSON_OBJECT)) && (!meta || json_is(meta, JSON_OBJECT));
}

static bool value_is_known(const struct field *field, const struct json *value)
{
    if (field->type == FIELD_MEMBERS) return value->type == JSON_OBJECT;
    if (field->type == FIELD_OUTCOME) return contract_outcome_fits(value);
    return field->type == FIELD_JSON;
}

// ---- writing

static enum code encode_text(const struct field *field, struct str text, bool *doubt, struct arena *arena, struct json *out)
{
    if (!text.len && !(field->flags & ALWAYS)) return OK;
    if (!text.len) text = STR("");
    if (!str_utf8(text)) {
        enum code rc = repair_text(text, arena, &text);
        if (rc) return rc;
    }
    *doubt |= !text_is_known(field, text);
    *out = json_string(text);
    return OK;
}

// Constants and objects have no fact of their own.
static bool has_fact(const struct field *field)
{
    return field->type < FIELD_WORD;
}

// Leaves type 0 in *out for a member that is left out.
static enum code encode_field(const struct field *field, const struct facts_in *facts, struct arena *arena,
                              struct json *out, struct error *err)
{
    const unsigned char *base = field->source ? facts->base[field->source] : NULL;
    const void *at = base ? base + field->offset : NULL;
    bool always = field->flags & ALWAYS;
    INVARIANT(at || !has_fact(field));
    *out = (struct json){0};
    if (is_text(field)) return encode_text(field, *(const struct str *)at, facts->doubt, arena, out);
    switch (field->type) {
    case FIELD_ID:
        return encode_text(field, str_from((const char *)at), facts->doubt, arena, out);
    case FIELD_U32:
        encode_integer(*(const uint32_t *)at, always || *(const uint32_t *)at, out);
        return OK;
    case FIELD_ATTEMPT:
        *facts->doubt |= *(const uint32_t *)at == 0;
        encode_integer(*(const uint32_t *)at, always || *(const uint32_t *)at != 1, out);
        return OK;
    case FIELD_INDEX:
        encode_integer((int64_t) * (const uint32_t *)at - 1, *(const uint32_t *)at, out);
        return OK;
    case FIELD_SEQ:
        *facts->doubt |= *(const uint64_t *)at == 0; // fall through
    case FIELD_U64:
        *facts->doubt |= *(const uint64_t *)at > INT64_MAX;
        encode_integer((int64_t) * (const uint64_t *)at, always || *(const uint64_t *)at, out);
        return OK;
    case FIELD_SPAN:
        *facts->doubt |= *(const int64_t *)at < 0; // fall through
    case FIELD_MS:
        encode_integer(*(const int64_t *)at, always || *(const int64_t *)at, out);
        return OK;
    case FIELD_TIME:
        return always || *(const int64_t *)at ? encode_time(*(const int64_t *)at, arena, out) : OK;
    case FIELD_EXIT:
        encode_integer(*(const int32_t *)at, *(const bool *)(base + field->present), out);
        return OK;
    case FIELD_BOOL:
        if (always || *(const bool *)at) *out = json_bool(*(const bool *)at);
        return OK;
    case FIELD_JSON:
    case FIELD_MEMBERS:
    case FIELD_OUTCOME:
    case FIELD_SHAPED:
        *out = *(const struct json *)at;
        if (always && !out->type) *out = json_object();
        *facts->doubt |= out->type && !value_is_known(field, out);
        return OK;
    case FIELD_DIGEST:
        return encode_digest(at, arena, out);
    case FIELD_WORD:
        *out = json_string(field->word);
        return OK;
    case FIELD_TRUE:
    case FIELD_FALSE:
        *out = json_bool(field->type == FIELD_TRUE);
        return OK;
    case FIELD_OBJECT:
        return encode_object(field, facts, arena, out, err);
    }
    INVARIANT(!"a field has one of the types");
    return E_INVALID;
}

// Goes through the fields of a table and of what it takes in, in canonical order.
struct walk {
    const struct field *at[TABLE_PARTS_MAX], *end[TABLE_PARTS_MAX];
    uint32_t parts;
};

static struct walk walk_table(const struct table *table)
{
    struct walk walk = {.parts = 0};
    for (; table; table = table->also) {
        INVARIANT(walk.parts < TABLE_PARTS_MAX);
        walk.at[walk.parts] = table->fields;
        walk.end[walk.parts++] = table->count ? table->fields + table->count : table->fields;
    }
    return walk;
}

static const struct field *walk_merged(struct walk *walk)
{
    const struct field **first = NULL;
    for (uint32_t i = 0; i < walk->parts; i++) {
        if (walk->at[i] == walk->end[i]) continue;
        if (!first || str_cmp(walk->at[i]->name, (*first)->name) < 0) first = &walk->at[i];
    }
    return first ? (*first)++ : NULL;
}

static inline const struct field *walk_next(struct walk *walk)
{
    if (walk->parts > 1) return walk_merged(walk);
    return walk->at[0] == walk->end[0] ? NULL : walk->at[0]++;
}

static uint32_t table_size(const struct table *table)
{
    uint32_t size = 0;
    for (; table; table = table->also) size += table->count;
    return size;
}

enum code fields_encode(const struct table *table, const struct facts_in *facts, struct arena *arena, struct json *out,
                        struct error *err)
{
    if (!json_object_with(arena, table_size(table), out)) return error_nomem(err);
    struct walk walk = walk_table(table);
    for (const struct field *field; (field = walk_next(&walk));) {
        struct json value;
        enum code rc = encode_field(field, facts, arena, &value, err);
        if (rc) return error_set(err, rc, "out of memory for a record");
        if (!value.type) continue;
        if (!json_put(arena, out, field->name, value)) return error_nomem(err);
    }
    return OK;
}

static enum code bad_field(const struct field *field, const char *want, struct error *err)
{
    return error_set(err, E_CORRUPT, "record: %.*s is not %s", STR_ARG(field->name), want);
}

static enum code decode_integer(const struct field *field, const struct json *value, int64_t min, int64_t max,
                                int64_t *out, struct error *err)
{
    if (value->type != JSON_INT || value->integer < min || value->integer > max)
        return bad_field(field, "an integer in range", err);
    *out = value->integer;
    return OK;
}

static enum code decode_number(const struct field *field, const struct json *value, unsigned char *base, void *at,
                               struct error *err)
{
    int64_t n = 0;
    enum code rc = OK;
    switch (field->type) {
    case FIELD_U32:
    case FIELD_ATTEMPT:
        rc = decode_integer(field, value, field->type == FIELD_ATTEMPT, UINT32_MAX, &n, err);
        if (!rc) *(uint32_t *)at = (uint32_t)n;
        return rc;
    case FIELD_INDEX:
        rc = decode_integer(field, value, 0, UINT32_MAX - 1, &n, err);
        if (!rc) *(uint32_t *)at = (uint32_t)n + 1;
        return rc;
    case FIELD_U64:
    case FIELD_SEQ:
        rc = decode_integer(field, value, 0, INT64_MAX, &n, err);
        if (!rc) *(uint64_t *)at = (uint64_t)n;
        return rc;
    case FIELD_MS:
    case FIELD_SPAN:
        return decode_integer(field, value, INT64_MIN, INT64_MAX, (int64_t *)at, err);
    default:
        INVARIANT(field->type == FIELD_EXIT);
        rc = decode_integer(field, value, INT32_MIN, INT32_MAX, &n, err);
        if (rc) return rc;
        *(int32_t *)at = (int32_t)n;
        *(bool *)(base + field->present) = true;
        return OK;
    }
}

static enum code decode_string(const struct field *field, const struct json *value, void *at, struct error *err)
{
    if (value->type != JSON_STRING) return bad_field(field, "a string", err);
    switch (field->type) {
    case FIELD_ID:
        if (!uuid_valid(value->text)) return bad_field(field, "a UUID", err);
        memcpy(at, value->text.ptr, UUID_SIZE - 1);
        ((char *)at)[UUID_SIZE - 1] = '\0';
        return OK;
    case FIELD_TIME:
        return civil_parse(value->text, (int64_t *)at) ? OK : bad_field(field, "an RFC 3339 time", err);
    case FIELD_DIGEST:
        return digest_parse(value->text, at) ? OK : bad_field(field, "a SHA-256 in hex", err);
    default:
        INVARIANT(is_text(field));
        *(struct str *)at = value->text;
        return OK;
    }
}

static enum code decode_field(const struct field *field, const struct json *value, const struct facts_out *facts,
                              struct error *err)
{
    unsigned char *base = field->source ? facts->base[field->source] : NULL;
    void *at = base ? base + field->offset : NULL;
    INVARIANT(at || !has_fact(field));
    if (is_text(field)) return decode_string(field, value, at, err);
    switch (field->type) {
    case FIELD_ID:
    case FIELD_TIME:
    case FIELD_DIGEST:
        return decode_string(field, value, at, err);
    case FIELD_U32:
    case FIELD_ATTEMPT:
    case FIELD_INDEX:
    case FIELD_U64:
    case FIELD_SEQ:
    case FIELD_MS:
    case FIELD_SPAN:
    case FIELD_EXIT:
        return decode_number(field, value, base, at, err);
    case FIELD_BOOL:
        if (value->type != JSON_BOOL) return bad_field(field, "true or false", err);
        *(bool *)at = value->boolean;
        return OK;
    case FIELD_JSON:
    case FIELD_MEMBERS:
    case FIELD_OUTCOME:
    case FIELD_SHAPED:
        *(struct json *)at = *value;
        return OK;
    case FIELD_WORD:
    case FIELD_TRUE:
    case FIELD_FALSE:
        return OK;
    case FIELD_OBJECT:
        if (value->type != JSON_OBJECT) return bad_field(field, "an object", err);
        if (field->present) {
            INVARIANT(base);
            *(bool *)(base + field->present) = true;
        }
        return fields_decode(field->table, value, facts, err);
    }
    INVARIANT(!"a field has one of the types");
    return E_INVALID;
}

// Members usually come in the table's order, so the search goes on where the last one was found.
static const struct json *find_member(const struct json *object, struct str name, uint32_t *cursor)
{
    for (uint32_t i = 0; i < object->count; i++) {
        uint32_t at = (*cursor + i) % object->count;
        if (str_eq(object->members[at].key, name)) {
            *cursor = at + 1;
            return &object->members[at].value;
        }
    }
    return NULL;
}

enum code fields_decode(const struct table *table, const struct json *object, const struct facts_out *facts,
                        struct error *err)
{
    static const struct json nothing = {.type = JSON_OBJECT};
    uint32_t cursor = 0;
    if (!object) object = &nothing;
    struct walk walk = walk_table(table);
    for (const struct field *field; (field = walk_next(&walk));) {
        if (field->flags & DERIVED) continue;
        const struct json *value = find_member(object, field->name, &cursor);
        if (value) {
            enum code rc = decode_field(field, value, facts, err);
            if (rc) return rc;
        } else if (field->flags & REQUIRED) {
            return error_set(err, E_CORRUPT, "record: %.*s is missing", STR_ARG(field->name));
        } else if (field->type == FIELD_ATTEMPT) {
            *(uint32_t *)(void *)((unsigned char *)facts->base[field->source] + field->offset) = 1;
        }
    }
    return OK;
}

void table_verify(const struct table *table)
{
    const struct field *last = NULL;
    struct walk walk = walk_table(table);
    for (const struct field *field; (field = walk_next(&walk)); last = field) {
        INVARIANT(!last || str_cmp(last->name, field->name) < 0);
        INVARIANT(field->type >= FIELD_STR && field->type <= FIELD_OBJECT);
        if (field->flags & REQUIRED) INVARIANT(field->flags & ALWAYS);
        if (field->type == FIELD_OBJECT) table_verify(field->table);
        if (has_fact(field)) INVARIANT(field->source >= SOURCE_MOMENT && field->source < SOURCE_COUNT);
    }
}

// Why a value could not be written. Slow, and only for the message.
static enum code explain_failure(const struct json *value, struct error *err)
{
    struct buf buf SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    json_canon(&buf, value);
    bool written = buf_ok(&buf) && buf.len > RECORD_SIZE_MAX;
    size_t size = buf.len;
    if (!written) return error_nomem(err);
    return error_set(err, E_LIMIT, "a record of %zu bytes is larger than %zu", size, RECORD_SIZE_MAX);
}

enum code record_write(const struct json *value, struct arena *arena, struct str *out, struct error *err)
{
    enum { SIZE_USUAL = 1024 };
    struct buf buf SCOPED(buf_release) = buf_of(RECORD_SIZE_MAX);
    (void)buf_reserve(&buf, SIZE_USUAL);
    json_canon(&buf, value);
    enum code rc = OK;
    if (!buf_ok(&buf)) {
        rc = explain_failure(value, err);
    } else if (!str_utf8(buf_str(&buf))) {
        rc = error_set(err, E_INVALID, "a record holds a value that is not UTF-8");
    } else {
        *out = arena_copy(arena, buf_str(&buf));
        if (!out->ptr) rc = error_nomem(err);
    }
    return rc;
}

enum code record_parse(struct str bytes, struct arena *arena, struct json *out, struct error *err)
{
    struct error inner = {0};
    enum code rc = json_parse(bytes, &json_limits_record, arena, out, &inner);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return error_set(err, E_CORRUPT, "not a record: %s", inner.message);
    if (out->type != JSON_OBJECT) return error_set(err, E_CORRUPT, "not a record: no JSON object");
    return OK;
}

struct str contract_join(struct arena *arena, const struct str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += parts[i].len;
    char *text = arena_alloc(arena, len + 1);
    if (!text) return (struct str){NULL, 0};
    char *to = text;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len) memcpy(to, parts[i].ptr, parts[i].len);
        to += parts[i].len;
    }
    return (struct str){text, len};
}
