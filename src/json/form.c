#include "json/form.h"

#include "base/buf.h"

enum { ASKED_MAX = 64 };

void form_begin(struct form *form, const char *what, const struct json *object, struct arena *arena, struct error *err)
{
    *form = (struct form){.what = what, .object = object, .arena = arena, .err = err};
    if (object && object->type != JSON_OBJECT) form_fail(form, NULL, "must be an object");
}

static const char *dot(const struct form *form, const char *name)
{
    return form->what[0] && name ? "." : "";
}

enum code form_fail(struct form *form, const char *name, const char *why)
{
    if (form->rc) return form->rc;
    const struct json *value = name ? json_key(form->object, name) : NULL;
    struct json nowhere = json_null();
    const struct json *at = value ? value : form->object ? form->object : &nowhere;
    form->rc = error_at(form->err, E_INVALID, at->line, at->column, "%s%s%s%s%s", form->what, dot(form, name),
                        name ? name : "", form->what[0] || name ? ": " : "", why);
    return form->rc;
}

enum code form_nomem(struct form *form)
{
    if (!form->rc) form->rc = error_nomem(form->err);
    return form->rc;
}

enum code form_end(struct form *form)
{
    for (uint32_t i = 0; !form->rc && form->object && i < form->object->count; i++) {
        const struct json_member *m = &form->object->members[i];
        if (i < ASKED_MAX && (form->asked >> i & 1)) continue;
        form->rc = error_at(form->err, E_INVALID, m->line, m->column, "%s%sthere is no setting \"%.*s\"", form->what,
                            form->what[0] ? ": " : "", STR_ARG(str_slice(m->key, 0, 64)));
    }
    return form->rc;
}

const struct json *form_any(struct form *form, const char *name)
{
    if (form->rc || !form->object) return NULL;
    for (uint32_t i = 0; i < form->object->count; i++) {
        if (!str_is(form->object->members[i].key, name)) continue;
        if (i < ASKED_MAX) form->asked |= (uint64_t)1 << i;
        return &form->object->members[i].value;
    }
    return NULL;
}

const struct json *form_take(struct form *form, const char *name, enum json_type type)
{
    const struct json *value = form_any(form, name);
    if (!value || value->type == type) return value;
    form_fail(form, name,
              type == JSON_STRING  ? "must be a text"
              : type == JSON_BOOL  ? "must be true or false"
              : type == JSON_ARRAY ? "must be a list"
              : type == JSON_INT   ? "must be a whole number"
                                   : "must be an object");
    return NULL;
}

bool form_part(struct form *form, const char *name, struct form *part)
{
    const struct json *value = form_take(form, name, JSON_OBJECT);
    if (value) form_begin(part, name, value, form->arena, form->err);
    return value != NULL;
}

static bool is_text(const struct json *value, bool path)
{
    struct str text = json_text(value);
    return text.len > 0 && (!path || text.ptr[0] == '/') && str_find(text, '\0', 0) == text.len;
}

static struct str keep(struct form *form, struct str text)
{
    struct str kept = form->arena ? arena_copy(form->arena, text) : text;
    if (!kept.ptr) form_nomem(form);
    return kept;
}

static void take_text(struct form *form, const char *name, bool path, struct str *out)
{
    const struct json *value = form_any(form, name);
    if (!value) return;
    if (is_text(value, path))
        *out = keep(form, value->text);
    else
        form_fail(form, name, path ? "must be an absolute path" : "must be a text");
}

void form_text(struct form *form, const char *name, struct str *out)
{
    take_text(form, name, false, out);
}

void form_path(struct form *form, const char *name, struct str *out)
{
    take_text(form, name, true, out);
}

void form_flag(struct form *form, const char *name, bool *out)
{
    const struct json *value = form_take(form, name, JSON_BOOL);
    if (value) *out = value->boolean;
}

void form_number(struct form *form, const char *name, int64_t low, int64_t high, int64_t *out)
{
    const struct json *value = form_any(form, name);
    if (!value) return;
    if (value->type == JSON_INT && value->integer >= low && value->integer <= high)
        *out = value->integer;
    else
        form->rc = error_at(form->err, E_INVALID, value->line, value->column,
                            "%s%s%s: must be a whole number from %lld to %lld", form->what, dot(form, name), name,
                            (long long)low, (long long)high);
}

void form_count(struct form *form, const char *name, uint32_t low, uint32_t high, uint32_t *out)
{
    int64_t number = *out;
    form_number(form, name, low, high, &number);
    *out = (uint32_t)number;
}

void form_choice(struct form *form, const char *name, const char *const *words, int *out)
{
    const struct json *value = form_any(form, name);
    struct str text = json_text(value);
    struct buf why SCOPED(buf_release) = buf_of(1024);
    buf_text(&why, "is one of");
    for (int i = 0; value && words[i]; i++) {
        if (!words[i][0]) continue; // no word for it
        buf_printf(&why, "%s %s", why.len > sizeof("is one of") ? "," : "", words[i]);
        if (!str_is(text, words[i])) continue;
        *out = i;
        value = NULL;
    }
    if (value) form_fail(form, name, why.ptr);
}

void form_texts(struct form *form, const char *name, bool paths, size_t most, const struct str **out, size_t *count)
{
    const struct json *value = form_take(form, name, JSON_ARRAY);
    if (!value) return;
    struct str *list = ARENA_ARRAY(form->arena, value->count + 1, struct str);
    if (!list) form_nomem(form);
    if (value->count > most) form_fail(form, name, "has too many elements");
    for (uint32_t i = 0; !form->rc && i < value->count; i++) {
        if (is_text(&value->items[i], paths))
            list[i] = keep(form, value->items[i].text);
        else
            form_fail(form, name, paths ? "must hold absolute paths" : "must hold texts");
    }
    *out = list;
    *count = form->rc ? 0 : value->count;
}
