#include "doc/internal.h"

const struct doc_limits doc_limits_default = {
    .size_max = 8 * 1024 * 1024,
    .yaml_size_max = 1024 * 1024,
    .depth_max = 64,
    .node_count_max = 100000,
};

static struct diagnostic *fault(struct diagnostics *diagnostics, const char *id, struct str file, uint32_t line,
                                uint32_t column, const char *message)
{
    return diagnose(diagnostics, SEVERITY_ERROR, id, "", file, line, column, 1, "%s", message);
}

static enum code malformed(struct str text, struct str file, struct diagnostics *diagnostics)
{
    uint32_t line = 1;
    size_t line_start = 0;
    size_t at = 0;
    for (size_t size; at < text.len && (size = str_utf8_size(text, at)) != 0; at += size) {
        if (text.ptr[at] == '\n') {
            line++;
            line_start = at + 1;
        }
    }
    INVARIANT(at < text.len);
    struct diagnostic *d =
        diagnose(diagnostics, SEVERITY_ERROR, "E0101", "", file, line, (uint32_t)(at - line_start + 1), 1,
                 "byte 0x%02x is not part of a UTF-8 character", (unsigned)(unsigned char)text.ptr[at]);
    diagnostic_hint(diagnostics, d, "save the document as UTF-8");
    return E_INVALID;
}

static enum code too_large(size_t size, size_t size_max, const char *format, struct str file,
                           struct diagnostics *diagnostics)
{
    diagnose(diagnostics, SEVERITY_ERROR, "E0501", "", file, 0, 0, 1,
             "the document has %zu bytes; %s documents may have %zu", size, format, size_max);
    return E_INVALID;
}

// What people bring along from YAML, JavaScript or Python; NULL when the message says it all.
static const char *json_advice(struct str text, uint32_t line, uint32_t column)
{
    size_t at = 0;
    for (uint32_t i = 1; i < line && at < text.len; i++) at = str_find(text, '\n', at) + 1;
    at += column ? column - 1 : 0;
    if (at >= text.len) return NULL;
    struct str before = str_trim(str_slice(text, 0, at)), rest = str_slice(text, at, text.len);
    bool after_comma = before.len > 0 && before.ptr[before.len - 1] == ',';
    if (after_comma && (rest.ptr[0] == ']' || rest.ptr[0] == '}')) return "JSON has no comma after the last value";
    if (rest.ptr[0] == '#' || str_starts(rest, STR("//")) || str_starts(rest, STR("/*")))
        return "JSON has no comments; YAML has them, from # to the end of the line";
    if (rest.ptr[0] == '\'') return "texts stand in \"double quotes\"";
    bool key = before.len > 0 && (after_comma || before.ptr[before.len - 1] == '{') && rest.ptr[0] != '"';
    if (key) return "a document that begins with { or [ is read as JSON; for YAML, begin with a key";
    return NULL;
}

static enum code json_tree(struct str text, struct str file, const struct doc_limits *limits, struct arena *arena,
                           struct json *out, struct diagnostics *diagnostics)
{
    struct json_limits json_limits = json_limits_default;
    json_limits.size_max = limits->size_max;
    json_limits.depth_max = limits->depth_max;
    json_limits.node_count_max = limits->node_count_max;
    struct error err = {0};
    enum code rc = json_parse(text, &json_limits, arena, out, &err);
    if (rc == OK || rc == E_NOMEM) return rc;
    struct diagnostic *d =
        fault(diagnostics, rc == E_LIMIT ? "E0508" : "E0102", file, err.line, err.column, err.message);
    bool values = rc == E_LIMIT && str_starts(str_from(err.message), STR("too many values"));
    const char *advice = values ? DOC_MORE_STEPS : rc == E_LIMIT ? NULL : json_advice(text, err.line, err.column);
    if (advice) diagnostic_hint(diagnostics, d, "%s", advice);
    return E_INVALID;
}

static struct str without_mark(struct str text)
{
    return str_starts(text, STR("\xEF\xBB\xBF")) ? str_slice(text, 3, text.len) : text;
}

enum code doc_tree(struct str text, struct str file, const struct doc_limits *limits, struct arena *arena,
                   struct json *out, struct diagnostics *diagnostics)
{
    if (!limits) limits = &doc_limits_default;
    text = without_mark(text);
    if (text.len > limits->size_max && text.len > limits->yaml_size_max)
        return too_large(text.len, limits->size_max, "JSON", file, diagnostics);
    if (!str_utf8(text)) return malformed(text, file, diagnostics);
    struct str inside = str_trim(text);
    if (inside.len == 0) {
        fault(diagnostics, "E0111", file, 1, 1, "the document is empty");
        return E_INVALID;
    }
    enum code rc;
    if (inside.ptr[0] == '{' || inside.ptr[0] == '[') {
        if (text.len > limits->size_max) return too_large(text.len, limits->size_max, "JSON", file, diagnostics);
        rc = json_tree(text, file, limits, arena, out, diagnostics);
    } else {
        if (text.len > limits->yaml_size_max)
            return too_large(text.len, limits->yaml_size_max, "YAML", file, diagnostics);
        rc = yaml_tree(text, file, limits, arena, out, diagnostics);
    }
    return rc == E_INVALID && diagnostics->failed ? E_NOMEM : rc;
}
