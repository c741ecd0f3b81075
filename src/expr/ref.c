#include "expr/internal.h"

#include <string.h>

enum { NODE_SIZE_MAX = 256 }; // what comes later in a run of name characters is not looked at

static char char_at(struct str s, size_t i)
{
    return i < s.len ? s.ptr[i] : '\0';
}

static bool name_known(const struct scope *scope, struct str name)
{
    return scope && scope->known && scope->known(scope->context, name);
}

// Fields after a node or after "output": ".a.b.0". Returns where they end; a last dot without a field is left alone.
static size_t path_end(struct str text, size_t at, enum ref_style style)
{
    while (char_at(text, at) == '.') {
        size_t end = at + 1;
        while (char_is_word(char_at(text, end)) || (style == REF_IN_WHEN && char_at(text, end) == '-')) end++;
        if (end == at + 1) break;
        at = end;
    }
    return at;
}

static bool finish(struct ref_match *out, struct str text, enum ref_kind kind, size_t path, size_t end, bool known)
{
    out->ref.kind = kind;
    out->ref.path = path < end ? str_slice(text, path, end) : STR("");
    out->ref.text = str_slice(text, out->offset, end);
    out->len = end - out->offset;
    out->known = known;
    return true;
}

static bool reserved_at(struct str text, size_t name, enum ref_style style, struct ref_match *out)
{
    static const struct {
        const char *name;
        enum ref_kind kind;
    } reserved[] = {
        {"ARGUMENTS", REF_ARGUMENTS},
        {"WORKFLOW_ID", REF_WORKFLOW_ID},
        {"ARTIFACTS_DIR", REF_ARTIFACTS_DIR},
    };
    struct str rest = str_slice(text, name, text.len);
    for (size_t i = 0; i < ARRAY_COUNT(reserved); i++) {
        size_t len = strlen(reserved[i].name);
        if (str_starts(rest, str_from(reserved[i].name)) && !char_is_word(char_at(rest, len)))
            return finish(out, text, reserved[i].kind, name + len, name + len, true);
    }
    if (!str_starts(rest, STR("INPUTS."))) return false;
    size_t start = name + strlen("INPUTS");
    size_t end = path_end(text, start, style);
    return end > start && finish(out, text, REF_INPUT, start + 1, end, true);
}

// Does ".output" stand at `dot`, as a whole word?
static bool output_at(struct str text, size_t dot)
{
    struct str rest = str_slice(text, dot, text.len);
    return str_starts(rest, STR(".output")) && !char_is_word(char_at(rest, strlen(".output")));
}

static bool node_at(struct str text, size_t name, size_t dot, enum ref_style style, bool known, struct ref_match *out)
{
    bool output = output_at(text, dot);
    size_t path = output ? dot + strlen(".output") : dot;
    size_t end = path_end(text, path, style);
    if (!output && end == path) return false;
    out->ref.node = str_slice(text, name, dot);
    return finish(out, text, REF_OUTPUT, path + 1, end, known);
}

bool ref_at(struct str text, size_t at, const struct scope *scope, enum ref_style style, struct ref_match *out)
{
    *out = (struct ref_match){.offset = at};
    size_t name = at + 1;
    if (char_at(text, at) != '$' || !char_is_word(char_at(text, name))) return false;
    if (reserved_at(text, name, style, out)) return true;
    size_t end = name;
    while (end - name <= NODE_SIZE_MAX &&
           (char_is_word(char_at(text, end)) || char_at(text, end) == '.' || char_at(text, end) == '-'))
        end++;
    // Longest name first; `unknown` ends as the shortest, preferably one with ".output".
    size_t unknown = end, unknown_output = end;
    for (size_t dot = end; dot-- > name;) {
        bool output = text.ptr[dot] == '.' && output_at(text, dot);
        if (text.ptr[dot] != '.' || (style == REF_IN_TEXT && !output)) continue;
        if (name_known(scope, str_slice(text, name, dot)) && node_at(text, name, dot, style, true, out)) return true;
        unknown = dot;
        unknown_output = output ? dot : unknown_output;
    }
    if (unknown_output < end) unknown = unknown_output;
    return unknown < end && node_at(text, name, unknown, style, false, out);
}

enum code ref_value(const struct ref *ref, const struct scope *scope, struct arena *arena, struct json *out,
                    struct error *err)
{
    if (!scope || !scope->lookup)
        return error_set(err, E_NOT_FOUND, "%.*s: nothing can be referred to here", STR_ARG(ref->text));
    *out = json_null();
    enum code rc = scope->lookup(scope->context, ref, arena, out, err);
    if (rc) error_set(err, rc, "%.*s has no value: %s", STR_ARG(ref->text), code_text(rc));
    return rc;
}

void expr_refs(struct str text, const struct scope *scope, ref_visit each, void *context)
{
    for (size_t at = str_find(text, '$', 0); at < text.len;) {
        struct ref_match match;
        size_t next = at + 1;
        if (ref_at(text, at, scope, REF_IN_TEXT, &match)) {
            each(context, &match.ref, at, match.known);
            next = at + match.len;
        }
        at = str_find(text, '$', next);
    }
}

enum code expr_field(const struct json *output, struct str path, struct arena *arena, struct json *out,
                     struct error *err)
{
    if (!path.len) {
        *out = *output;
        return OK;
    }
    struct json parsed;
    if (output->type == JSON_STRING) {
        struct str text = str_trim(output->text);
        if (!text.len || (text.ptr[0] != '{' && text.ptr[0] != '['))
            return error_set(err, E_NOT_FOUND, "no field %.*s: the output is text, not JSON", STR_ARG(path));
        struct error why = {0};
        enum code rc = json_parse(text, &json_limits_default, arena, &parsed, &why);
        if (rc == E_NOMEM) return error_nomem(err);
        if (rc)
            return error_set(err, E_NOT_FOUND, "no field %.*s: the output is not JSON (%s)", STR_ARG(path),
                             why.message);
        output = &parsed;
    }
    const struct json *found = json_at(output, path);
    if (!found)
        return error_set(err, E_NOT_FOUND, "no field %.*s in the output (%s)", STR_ARG(path),
                         json_type_name((enum json_type)output->type));
    *out = *found;
    return OK;
}

enum code expr_text(const struct json *value, struct arena *arena, struct str *out)
{
    if (value->type == JSON_STRING || value->type == JSON_NUMBER) {
        *out = value->text;
        return OK;
    }
    if (value->type == JSON_NULL) {
        *out = STR("");
        return OK;
    }
    struct buf buf SCOPED(buf_release) = buf_of(json_limits_default.size_max * 2);
    json_write(&buf, value);
    bool ok = buf_ok(&buf);
    *out = ok ? arena_copy(arena, buf_str(&buf)) : (struct str){0};
    return out->ptr ? OK : E_NOMEM;
}
