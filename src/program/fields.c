// Fields that plans and node workflows share, and how their faults are reported.
#include "program/internal.h"

#include "base/civil.h"

#include <inttypes.h>
#include <string.h>

// ---- did you mean

struct nearest nearest_to(struct str name)
{
    size_t limit = name.len / 3;
    if (limit < 1) limit = 1;
    if (limit > 3) limit = 3;
    return (struct nearest){.name = name, .best = {"", 0}, .distance = limit + 1};
}

void nearest_try(struct nearest *nearest, struct str candidate)
{
    if (nearest->distance == 0 || candidate.len == 0) return;
    size_t distance = str_distance(nearest->name, candidate, nearest->distance - 1);
    if (distance >= candidate.len && distance >= nearest->name.len) return; // they have nothing in common
    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->best = candidate;
    }
}

void hint_nearest(struct reader *r, struct diagnostic *d, const struct nearest *nearest)
{
    if (nearest->best.len) HINT(r, d, "did you mean \"%.*s\"?", SHOW(nearest->best));
}

// ---- members of objects

static const struct field *find_field(const struct field *fields, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(key, fields[i].name) || (fields[i].other && str_is(key, fields[i].other))) return &fields[i];
    return NULL;
}

void fields_check(struct reader *r, const struct json *object, const struct field *fields, size_t count,
                  const char *what)
{
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        const struct field *known = find_field(fields, count, member->key);
        if (!known) {
            struct span at = place_of_key(r, member);
            struct diagnostic *d = ERROR(r, "E0203", at, "unknown field \"%.*s\" in %s", SHOW(member->key), what);
            if (!d) continue;
            struct nearest nearest = nearest_to(member->key);
            for (size_t k = 0; k < count; k++) {
                nearest_try(&nearest, str_from(fields[k].name));
                nearest_try(&nearest, str_from(fields[k].other));
            }
            hint_nearest(r, d, &nearest);
        } else if (known->other && str_is(member->key, known->other) && json_key(object, known->name)) {
            struct span at = place_of_key(r, member);
            struct diagnostic *d =
                ERROR(r, "E0207", at, "\"%s\" and \"%s\" are two names of one field", known->name, known->other);
            HINT(r, d, "keep \"%s\"", known->name);
        }
    }
}

const struct json *field(const struct json *object, const char *name, const char *other)
{
    const struct json *value = json_key(object, name);
    if (!value && other) value = json_key(object, other);
    return json_is(value, JSON_NULL) ? NULL : value;
}

const struct json *field_required(struct reader *r, const struct json *object, const char *name, const char *other,
                                  struct span at, const char *what)
{
    const struct json *value = field(object, name, other);
    if (!value) ERROR(r, "E0204", at, "%s needs \"%s\"", what, name);
    return value;
}

// ---- values

bool wrong_type(struct reader *r, const struct json *value, const char *name, const char *wanted)
{
    struct span at = place_of(r, value);
    struct diagnostic *d = ERROR(r, "E0205", at, "\"%s\" must be %s, but it is of type %s", name, wanted,
                                 json_type_name((enum json_type)value->type));
    bool scalar = value->type == JSON_INT || value->type == JSON_NUMBER || value->type == JSON_BOOL;
    if (scalar && strcmp(wanted, "a text") == 0) HINT(r, d, "put it in quotes");
    return false;
}

bool read_text(struct reader *r, const struct json *value, const char *name, struct str *out)
{
    if (value->type != JSON_STRING) return wrong_type(r, value, name, "a text");
    *out = value->text;
    return true;
}

bool read_bool(struct reader *r, const struct json *value, const char *name, bool *out)
{
    if (value->type != JSON_BOOL) return wrong_type(r, value, name, "true or false");
    *out = value->boolean;
    return true;
}

bool read_count(struct reader *r, const struct json *value, const char *name, int64_t min, int64_t max, int64_t *out)
{
    if (value->type != JSON_INT) return wrong_type(r, value, name, "a whole number");
    if (value->integer < min || value->integer > max) {
        struct span at = place_of(r, value);
        ERROR(r, "E0210", at, "\"%s\" must be from %" PRId64 " to %" PRId64 ", but it is %" PRId64, name, min, max,
              value->integer);
        return false;
    }
    *out = value->integer;
    return true;
}

bool read_ms(struct reader *r, const struct json *value, const char *name, int64_t *out)
{
    if (value->type == JSON_INT) return read_count(r, value, name, 0, DURATION_MAX_MS, out);
    if (value->type != JSON_STRING)
        return wrong_type(r, value, name, "a duration such as \"5s\" or a number of milliseconds");
    struct span at = place_of(r, value);
    int64_t ms;
    if (!duration_parse(value->text, &ms) || ms < 0) {
        struct diagnostic *d = ERROR(r, "E0209", at, "\"%s\" is not a duration: \"%.*s\"", name, SHOW(value->text));
        HINT(r, d, "write 250ms, 5s, 1m30s, 2h, 1d or PT1H30M");
        return false;
    }
    if (ms > DURATION_MAX_MS) {
        ERROR(r, "E0210", at, "\"%s\" must be at most ten years", name);
        return false;
    }
    *out = ms;
    return true;
}

static void list_choices(char *out, size_t size, const char *const *choices)
{
    size_t len = 0;
    for (size_t i = 0; choices[i]; i++) {
        const char *before = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
        const char *const parts[] = {before, choices[i]};
        for (size_t k = 0; k < ARRAY_COUNT(parts); k++) {
            size_t part = strlen(parts[k]);
            if (part > size - 1 - len) part = size - 1 - len;
            memcpy(out + len, parts[k], part);
            len += part;
        }
    }
    out[len] = '\0';
}

bool read_choice(struct reader *r, const struct json *value, const char *name, const char *const *choices, size_t *out)
{
    struct str text;
    if (!read_text(r, value, name, &text)) return false;
    struct nearest nearest = nearest_to(text);
    for (size_t i = 0; choices[i]; i++) {
        if (str_is(text, choices[i])) {
            *out = i;
            return true;
        }
        nearest_try(&nearest, str_from(choices[i]));
    }
    char listed[400];
    list_choices(listed, sizeof(listed), choices);
    struct span at = place_of(r, value);
    struct diagnostic *d = ERROR(r, "E0206", at, "\"%s\" cannot be \"%.*s\"; it is %s", name, SHOW(text), listed);
    hint_nearest(r, d, &nearest);
    return false;
}

bool read_texts(struct reader *r, const struct json *value, const char *name, const struct str **out, uint32_t *count)
{
    *out = NULL;
    *count = 0;
    if (value->type != JSON_ARRAY) return wrong_type(r, value, name, "a list of texts");
    struct str *texts = ARENA_ARRAY(r->arena, value->count, struct str);
    if (!texts) {
        r->failed = true;
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < value->count; i++) ok = read_text(r, &value->items[i], name, &texts[i]) && ok;
    *out = texts;
    *count = ok ? value->count : 0;
    return ok;
}

bool read_object(struct reader *r, const struct json *value, const char *name)
{
    if (value->type == JSON_OBJECT) return true;
    return wrong_type(r, value, name, "a mapping");
}

bool read_item(struct reader *r, const struct json *value, const char *what)
{
    if (value->type == JSON_OBJECT) return true;
    struct span at = place_of(r, value);
    ERROR(r, "E0205", at, "%s must be a mapping, but it is of type %s", what,
          json_type_name((enum json_type)value->type));
    return false;
}

// ---- parts of documents

void read_tags(struct reader *r, const struct json *value)
{
    if (value) read_texts(r, value, "tags", &r->program->tags, &r->program->tag_count);
}

bool input_type_fits(struct str type, const struct json *value)
{
    if (type.len == 0) return true;
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return str_is(type, "boolean");
    case JSON_INT:
        return str_is(type, "integer") || str_is(type, "number");
    case JSON_NUMBER:
        return str_is(type, "number") || (str_is(type, "integer") && json_is_integer(value));
    case JSON_STRING:
        return str_is(type, "string");
    case JSON_ARRAY:
        return str_is(type, "array");
    case JSON_OBJECT:
        return str_is(type, "object");
    }
    return false;
}

static const struct field input_fields[] = {
    {"default", NULL}, {"description", NULL}, {"type", NULL}, {"required", NULL}};

// {default, description, type, required}: what the default is, and whether it fits.
static struct json read_input_declaration(struct reader *r, struct str name, const struct json *value,
                                          struct str *declared)
{
    static const char *const types[] = {"string", "number", "integer", "boolean", "object", "array", "any", NULL};
    fields_check(r, value, input_fields, ARRAY_COUNT(input_fields), "an input");
    const struct json *otherwise = field(value, "default", NULL);
    const struct json *type = field(value, "type", NULL);
    const struct json *required = field(value, "required", NULL);
    const struct json *description = field(value, "description", NULL);
    struct str text;
    size_t index;
    bool must = false;
    if (description) read_text(r, description, "description", &text);
    if (type && read_choice(r, type, "type", types, &index) && strcmp(types[index], "any") != 0)
        *declared = str_from(types[index]);
    if (otherwise && !input_type_fits(*declared, otherwise)) {
        struct span at = place_of(r, otherwise);
        ERROR(r, "E0205", at, "the default of input \"%.*s\" is of type %s, not %s", SHOW(name),
              json_type_name((enum json_type)otherwise->type), declared->ptr);
    }
    if (required && read_bool(r, required, "required", &must) && must) {
        if (otherwise) {
            struct span at = place_of(r, required);
            ERROR(r, "E0206", at,
                  "input \"%.*s\" is required and has a default: one excludes "
                  "the other",
                  SHOW(name));
        }
        r->program->required[r->program->required_count++] = name;
    }
    return otherwise ? *otherwise : json_null();
}

static bool is_declaration(const struct json *value)
{
    if (value->type != JSON_OBJECT) return false;
    for (size_t i = 0; i < ARRAY_COUNT(input_fields); i++)
        if (json_key(value, input_fields[i].name)) return true;
    return false;
}

void read_inputs(struct reader *r, const struct json *value)
{
    struct program *program = r->program;
    program->inputs = json_object();
    if (!value || !read_object(r, value, "inputs")) return;
    program->required = ARENA_ARRAY(r->arena, value->count, struct str);
    program->input_types = ARENA_ARRAY(r->arena, value->count, struct str);
    if (!program->required || !program->input_types || !json_object_with(r->arena, value->count, &program->inputs)) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json_member *member = &value->members[i];
        struct json otherwise = is_declaration(&member->value)
                                    ? read_input_declaration(r, member->key, &member->value, &program->input_types[i])
                                    : member->value;
        if (!json_put(r->arena, &program->inputs, member->key, otherwise)) r->failed = true;
    }
}

void version_read(struct reader *r, const struct json *version)
{
    struct program *program = r->program;
    struct str text;
    program->plan_version = (struct str){program->sha256_hex, 12}; // C-64
    if (!version) return;
    if (version->type == JSON_INT || version->type == JSON_NUMBER) {
        if (expr_text(version, r->arena, &text) != OK) {
            r->failed = true;
            return;
        }
    } else if (!read_text(r, version, "version", &text)) {
        return;
    }
    if (name_valid(text)) {
        program->plan_version = text;
        return;
    }
    struct span at = place_of(r, version);
    ERROR(r, "E0208", at, "\"version\" must have 1 to 128 bytes without '|' and control characters");
}
