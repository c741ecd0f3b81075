// Putting values into text. For shells the value goes into an environment variable and the text gets an expansion of it;
// shell.c says what kind of place the reference stands in.
#include "expr/internal.h"

#include "base/text.h"

#include <string.h>

enum {
    TEXT_SIZE_MAX = 16 * 1024 * 1024,
    ENV_VALUE_MAX = 100 * 1024,  // Linux takes 128 KiB for name, '=' and value
    ENV_TOTAL_MAX = 1536 * 1024, // of 2 MiB for arguments and environment together
    JSON_DEPTH = 128
};

static enum code finish(struct buf *buf, struct arena *arena, struct str *out, struct error *err)
{
    bool ok = buf_ok(buf);
    bool large = buf->len >= TEXT_SIZE_MAX / 2;
    *out = ok ? arena_copy(arena, buf_str(buf)) : (struct str){0};
    buf_release(buf);
    if (out->ptr) return OK;
    if (!ok && large)
        return error_set(err, E_LIMIT, "the text is larger than %d bytes once its references are filled in",
                         TEXT_SIZE_MAX);
    return error_nomem(err);
}

enum code subst_text(struct str text, const struct scope *scope, struct arena *arena, struct str *out,
                     struct error *err)
{
    struct buf buf SCOPED(buf_release) = buf_of(TEXT_SIZE_MAX);
    size_t copied = 0;
    for (size_t at = str_find(text, '$', 0); at < text.len;) {
        struct ref_match match;
        if (!ref_at(text, at, scope, REF_IN_TEXT, &match) || !match.known) {
            at = str_find(text, '$', at + 1);
            continue;
        }
        struct json value;
        struct str value_text = {0};
        enum code rc = ref_value(&match.ref, scope, arena, &value, err);
        if (!rc && expr_text(&value, arena, &value_text)) rc = error_nomem(err);
        if (rc) return rc;
        buf_add(&buf, str_slice(text, copied, at));
        buf_add(&buf, value_text);
        if (!buf_ok(&buf)) break; // it is too large already
        copied = at + match.len;
        at = str_find(text, '$', copied);
    }
    buf_add(&buf, str_slice(text, copied, text.len));
    return finish(&buf, arena, out, err);
}

// ---- JSON

static enum code subst_string(struct str text, const struct scope *scope, struct arena *arena, struct json *out,
                              struct error *err)
{
    struct ref_match match;
    if (ref_at(text, 0, scope, REF_IN_TEXT, &match) && match.known && match.len == text.len)
        return ref_value(&match.ref, scope, arena, out, err);
    struct str filled;
    enum code rc = subst_text(text, scope, arena, &filled, err);
    if (!rc) *out = json_string(filled);
    return rc;
}

static enum code subst_value(const struct json *value, const struct scope *scope, struct arena *arena, int depth,
                             struct json *out, struct error *err)
{
    if (depth > JSON_DEPTH) return error_set(err, E_LIMIT, "value nested deeper than %d", JSON_DEPTH);
    enum code rc = OK;
    if (value->type == JSON_STRING) return subst_string(value->text, scope, arena, out, err);
    if (value->type == JSON_ARRAY) {
        *out = json_array();
        for (uint32_t i = 0; i < value->count && !rc; i++) {
            struct json item;
            rc = subst_value(&value->items[i], scope, arena, depth + 1, &item, err);
            if (!rc && !json_push(arena, out, item)) rc = error_nomem(err);
        }
        return rc;
    }
    if (value->type != JSON_OBJECT) {
        *out = *value;
        return OK;
    }
    if (!json_object_with(arena, value->count, out)) return error_nomem(err);
    for (uint32_t i = 0; i < value->count && !rc; i++) {
        struct json item;
        rc = subst_value(&value->members[i].value, scope, arena, depth + 1, &item, err);
        if (!rc && !json_put(arena, out, value->members[i].key, item)) rc = error_nomem(err);
    }
    return rc;
}

enum code subst_json(const struct json *value, const struct scope *scope, struct arena *arena, struct json *out,
                     struct error *err)
{
    return subst_value(value, scope, arena, 0, out, err);
}

// ---- shell

void shell_copy(struct shell *sh, size_t to)
{
    if (to > sh->copied) buf_add(&sh->out, str_slice(sh->text, sh->copied, to));
    sh->copied = to > sh->copied ? to : sh->copied;
}

static enum code check_value(struct shell *sh, struct str ref, struct str value)
{
    if (str_find(value, '\0', 0) < value.len)
        return error_set(sh->err, E_INVALID, "%.*s holds a NUL byte, which no shell can carry", STR_ARG(ref));
    return OK;
}

// CAIRN_REF_1, CAIRN_REF_2, ...; NULL ptr when memory ran out.
static struct str fresh_name(struct shell *sh)
{
    static const char prefix[] = "CAIRN_REF_";
    char text[sizeof(prefix) + 20];
    size_t at = sizeof(text);
    size_t rest = ++sh->ref_count;
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    at -= sizeof(prefix) - 1;
    memcpy(text + at, prefix, sizeof(prefix) - 1);
    return arena_copy(sh->arena, (struct str){text + at, sizeof(text) - at});
}

static enum code env_put(struct shell *sh, struct str name, struct str ref, struct str value)
{
    value = arena_copy(sh->arena, value);
    sh->env = arena_grow(sh->arena, sh->env, sh->env_count, sh->env_count + 1, sizeof(sh->env[0]), &sh->env_capacity);
    sh->env_refs = arena_grow(sh->arena, sh->env_refs, sh->env_count, sh->env_count + 1, sizeof(sh->env_refs[0]),
                              &sh->ref_capacity);
    if (!name.ptr || !value.ptr || !sh->env || !sh->env_refs) {
        sh->env_count = 0;
        return error_nomem(sh->err);
    }
    sh->env[sh->env_count] = (struct subst_env){name, value};
    sh->env_refs[sh->env_count++] = ref;
    return OK;
}

// What is too large for one variable of the environment travels in several, which the shell puts together before anything else:
// a variable of its own may have any size. They are gone then, or no program that it starts would have room for its own.
static enum code env_parts(struct shell *sh, struct str name, struct str ref, struct str value)
{
    struct buf *out = &sh->prelude;
    enum code rc = env_put(sh, name, ref, STR("")); // so that it is found; the shell sets it
    struct buf gone SCOPED(buf_release) = buf_of(TEXT_SIZE_MAX);
    buf_printf(out, "unset -v %.*s; %.*s=", STR_ARG(name), STR_ARG(name)); // not of the environment any more
    for (size_t at = 0, part = 1; !rc && at < value.len; at += ENV_VALUE_MAX, part++) {
        struct buf text = buf_of(256);
        buf_add(&text, name);
        buf_byte(&text, '_');
        buf_int(&text, (int64_t)part);
        struct str own = buf_keep(&text, sh->arena);
        size_t end = value.len - at < ENV_VALUE_MAX ? value.len : at + ENV_VALUE_MAX;
        rc = env_put(sh, own, STR(""), str_slice(value, at, end));
        buf_printf(out, "${%.*s}", STR_ARG(own));
        buf_printf(&gone, " %.*s", STR_ARG(own));
    }
    buf_text(out, "; unset -v");
    buf_add(out, buf_str(&gone));
    buf_text(out, "; ");
    if (!buf_ok(&gone)) rc = error_nomem(sh->err);
    return rc;
}

// Sets `name` (or, when it is empty, a fresh CAIRN_REF_n) once per reference as written; *out is the name.
static enum code env_add(struct shell *sh, struct str name, struct str ref, struct str value, struct str *out)
{
    for (size_t i = 0; i < sh->env_count; i++) {
        if (str_eq(sh->env_refs[i], ref)) {
            *out = sh->env[i].name;
            return OK;
        }
    }
    enum code rc = check_value(sh, ref, value);
    if (rc) return rc;
    bool own = name.len == 0; // ours alone: programs that the script starts do not look for it
    if (value.len > ENV_VALUE_MAX && !own)
        return error_set(sh->err, E_LIMIT, "%.*s holds %zu bytes; a shell variable can carry %d", STR_ARG(ref),
                         value.len, ENV_VALUE_MAX);
    sh->env_size += value.len;
    if (sh->env_size > ENV_TOTAL_MAX)
        return error_set(sh->err, E_LIMIT, "with %.*s the values for this script exceed %d bytes", STR_ARG(ref),
                         ENV_TOTAL_MAX);
    name = own ? fresh_name(sh) : arena_copy(sh->arena, name);
    if (!name.ptr) return error_nomem(sh->err);
    *out = name;
    return value.len > ENV_VALUE_MAX ? env_parts(sh, name, ref, value) : env_put(sh, name, ref, value);
}

static bool is_number_text(struct str text)
{
    text = str_trim(text);
    size_t i = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
    for (size_t j = i; j < text.len; j++) {
        if (text.ptr[j] < '0' || text.ptr[j] > '9') return false;
    }
    return text.len != 1 || i == 0;
}

static enum code check_number(struct shell *sh, struct str ref, struct str value)
{
    if (is_number_text(value) || (sh->scope->preview && str_starts(value, STR("<$")))) return OK;
    return error_set(sh->err, E_INVALID,
                     "%.*s stands where the shell computes, and its value is not an integer: computing could run it",
                     STR_ARG(ref));
}

// "$name" right before the reference would swallow plain digits or letters.
static bool follows_variable(const struct shell *sh, size_t at)
{
    size_t i = at;
    while (i && char_is_word(sh->text.ptr[i - 1])) i--;
    return i && i < at && sh->text.ptr[i - 1] == '$';
}

static void put_expansion(struct shell *sh, struct str name, const char *before, const char *after)
{
    buf_text(&sh->out, before);
    buf_text(&sh->out, "${");
    buf_add(&sh->out, name);
    buf_text(&sh->out, "}");
    buf_text(&sh->out, after);
}

static enum code put_variable(struct shell *sh, const struct ref_match *match, struct str value, enum quoting place)
{
    struct str name;
    enum code rc = env_add(sh, STR(""), match->ref.text, value, &name);
    if (rc) return rc;
    switch (place) {
    case QUOTING_BARE:
        put_expansion(sh, name, "\"", "\"");
        break;
    case QUOTING_SINGLE:
        put_expansion(sh, name, "'\"", "\"'");
        break;
    case QUOTING_ANSI:
        put_expansion(sh, name, "'\"", "\"$'");
        break;
    case QUOTING_DOUBLE:
    case QUOTING_ARITH:
    case QUOTING_TEXT:
        put_expansion(sh, name, "", "");
        break;
    }
    return OK;
}

// $ARGUMENTS and its like stay in the text: they are variables already.
static enum code keep_variable(struct shell *sh, const struct ref_match *match, struct str value, enum quoting place,
                               bool number)
{
    struct str name = str_slice(match->ref.text, 1, match->ref.text.len);
    enum code rc = number ? check_number(sh, match->ref.text, value) : OK;
    if (!rc) rc = env_add(sh, name, name, value, &name);
    if (rc || place != QUOTING_BARE) return rc;
    shell_copy(sh, match->offset);
    buf_text(&sh->out, "\"");
    buf_add(&sh->out, match->ref.text);
    buf_text(&sh->out, "\"");
    sh->copied = match->offset + match->len;
    return OK;
}

enum code shell_replace(struct shell *sh, const struct ref_match *match, enum quoting place, bool number)
{
    struct json value;
    struct str text = {0};
    enum code rc = ref_value(&match->ref, sh->scope, sh->arena, &value, sh->err);
    if (!rc && expr_text(&value, sh->arena, &text)) rc = error_nomem(sh->err);
    if (rc) return rc;
    if (match->ref.kind >= REF_ARGUMENTS) return keep_variable(sh, match, text, place, number);
    shell_copy(sh, match->offset);
    sh->copied = match->offset + match->len;
    if (place == QUOTING_TEXT) {
        rc = check_value(sh, match->ref.text, text);
        buf_add(&sh->out, text);
        return rc;
    }
    bool scalar = value.type == JSON_INT || value.type == JSON_NUMBER || value.type == JSON_BOOL;
    if (number && !scalar && (rc = check_number(sh, match->ref.text, text))) return rc;
    bool literal = place == QUOTING_SINGLE || place == QUOTING_ANSI;
    if (place == QUOTING_ARITH) {
        buf_add(&sh->out, str_trim(text));
    } else if (!scalar || (!literal && follows_variable(sh, match->offset))) {
        rc = put_variable(sh, match, text, place);
    } else {
        // A bare number before < or > would name a file descriptor.
        size_t next = match->offset + match->len;
        bool quote =
            place == QUOTING_BARE && next < sh->text.len && (sh->text.ptr[next] == '<' || sh->text.ptr[next] == '>');
        buf_text(&sh->out, quote ? "\"" : "");
        buf_add(&sh->out, text);
        buf_text(&sh->out, quote ? "\"" : "");
    }
    return rc;
}

enum code shell_variable(struct shell *sh, struct str name)
{
    struct ref ref = {.text = name, .path = STR("")};
    if (str_is(name, "ARGUMENTS"))
        ref.kind = REF_ARGUMENTS;
    else if (str_is(name, "WORKFLOW_ID"))
        ref.kind = REF_WORKFLOW_ID;
    else if (str_is(name, "ARTIFACTS_DIR"))
        ref.kind = REF_ARTIFACTS_DIR;
    else
        return OK;
    struct json value;
    struct str text = {0}, unused;
    enum code rc = ref_value(&ref, sh->scope, sh->arena, &value, sh->err);
    if (!rc && expr_text(&value, sh->arena, &text)) rc = error_nomem(sh->err);
    return rc ? rc : env_add(sh, name, name, text, &unused);
}

enum code subst_shell(struct str text, const struct scope *scope, struct arena *arena, struct subst *out,
                      struct error *err)
{
    struct shell *sh = ARENA_NEW(arena, struct shell);
    if (!sh) return error_nomem(err);
    sh->text = text;
    sh->scope = scope;
    sh->arena = arena;
    sh->err = err;
    buf_init(&sh->out, TEXT_SIZE_MAX);
    buf_init(&sh->prelude, TEXT_SIZE_MAX);
    enum code rc = shell_scan(sh);
    if (rc) {
        buf_release(&sh->prelude);
        buf_release(&sh->out);
        return rc;
    }
    shell_copy(sh, text.len);
    *out = (struct subst){.env = sh->env, .env_count = sh->env_count};
    if (sh->prelude.len > 0) { // on the first line: those of the text keep their numbers
        buf_add(&sh->prelude, buf_str(&sh->out));
        struct buf swap = sh->out;
        sh->out = sh->prelude;
        sh->prelude = swap;
    }
    buf_release(&sh->prelude);
    return finish(&sh->out, arena, &out->text, err);
}
