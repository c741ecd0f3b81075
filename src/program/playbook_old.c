// Earlier generations of the language, written anew in today's before anything else is read: `tool: python` with its fields
// beside it, arcs with then and else, loops over a collection of elements, workbook entries with a type, tasks with retry.
#include "program/playbook.h"

static bool put_at(struct playbook *pb, struct json *object, const struct json_member *from, struct str key,
                   struct json value)
{
    if (!json_put(pb->r->arena, object, key, value)) {
        pb->r->failed = true;
        return false;
    }
    object->members[object->count - 1].line = from->line;
    object->members[object->count - 1].column = from->column;
    return true;
}

static struct json *made_at(struct playbook *pb, const struct json *place)
{
    struct json *made = ARENA_NEW(pb->r->arena, struct json);
    if (!made) {
        pb->r->failed = true;
        return NULL;
    }
    *made = json_object();
    made->line = place->line;
    made->column = place->column;
    return made;
}

// ---- steps

static bool is_one_of(struct str key, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (str_is(key, names[i])) return true;
    return false;
}

const struct json *step_today(struct playbook *pb, const struct json *object)
{
    // What a step has for itself, whatever its tool is, and what it has given up; the rest tells the tool.
    static const char *const own[] = {"step", "desc",    "description", "spec",  "loop",          "next",
                                      "set",  "set_ctx", "set_iter",    "when",  "case",          "type",
                                      "sink", "vars",    "tool",        "retry", "output_select", NULL};
    const struct json *tool = json_key(object, "tool");
    if (!json_is(tool, JSON_STRING)) return object;
    struct json *step = made_at(pb, object), *task = made_at(pb, tool);
    if (!step || !task) return object;
    uint32_t at = 0;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (str_is(member->key, "tool") && !put_at(pb, task, member, STR("kind"), member->value)) return object;
        if (str_is(member->key, "tool")) at = step->count;
        struct json *to = is_one_of(member->key, own) ? step : task;
        if (!put_at(pb, to, member, member->key, member->value)) return object;
    }
    step->members[at].value = *task;
    return step;
}

const struct json *entry_today(struct playbook *pb, const struct json *entry)
{
    const struct json *tool = json_key(entry, "tool");
    bool named = json_is(tool, JSON_STRING);
    if (!named && (tool || !json_is(json_key(entry, "type"), JSON_STRING))) return tool;
    struct json *task = made_at(pb, entry);
    for (uint32_t i = 0; task && i < entry->count; i++) {
        const struct json_member *member = &entry->members[i];
        if (str_is(member->key, "name") || str_is(member->key, "task")) continue;
        bool kind = str_is(member->key, named ? "tool" : "type");
        if (!put_at(pb, task, member, kind ? STR("kind") : member->key, member->value)) return NULL;
    }
    return task;
}

// ---- loops and arcs

const struct json *members_today(struct playbook *pb, const struct json *object, const struct renamed *names,
                                 size_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < object->count; i++)
        for (size_t k = 0; k < count; k++)
            any = any || (str_is(object->members[i].key, names[k].old) && !json_key(object, names[k].now));
    struct json *made = any ? made_at(pb, object) : NULL;
    for (uint32_t i = 0; made && i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        struct str key = member->key;
        for (size_t k = 0; k < count; k++)
            if (str_is(member->key, names[k].old) && !json_key(object, names[k].now) && !json_key(made, names[k].now))
                key = str_from(names[k].now);
        if (!put_at(pb, made, member, key, member->value)) return object;
    }
    return made ? made : object;
}

// {when, then: [a]} and {else: [b]} become arcs; an item that leads to several steps is none, and is left to be refused.
static bool add_branch(struct playbook *pb, struct json *list, const struct json *item)
{
    const struct json *when = json_key(item, "when");
    const struct json *to = json_key(item, when ? "then" : "else");
    if (json_is(to, JSON_ARRAY) && to->count == 1) to = &to->items[0];
    bool named = json_is(to, JSON_STRING), arc = json_is(to, JSON_OBJECT) && json_key(to, "step");
    if (!named && !arc) return false;
    struct json *made = made_at(pb, to);
    if (!made) return false;
    struct json_member self = {.line = to->line, .column = to->column};
    if (named && !put_at(pb, made, &self, STR("step"), *to)) return false;
    for (uint32_t i = 0; arc && i < to->count; i++)
        if (!put_at(pb, made, &to->members[i], to->members[i].key, to->members[i].value)) return false;
    for (uint32_t i = 0; when && i < item->count; i++)
        if (str_is(item->members[i].key, "when") && !json_key(made, "when") &&
            !put_at(pb, made, &item->members[i], STR("when"), *when))
            return false;
    return json_push(pb->r->arena, list, *made);
}

const struct json *arcs_today(struct playbook *pb, const struct json *arcs)
{
    bool old = false;
    for (uint32_t i = 0; arcs->type == JSON_ARRAY && i < arcs->count; i++) {
        const struct json *item = &arcs->items[i];
        bool branch = json_is(item, JSON_OBJECT) && !json_key(item, "step");
        old = old || (branch && (json_key(item, "then") || json_key(item, "else")));
    }
    struct json *list = old ? made_at(pb, arcs) : NULL;
    if (!list) return arcs;
    list->type = JSON_ARRAY;
    for (uint32_t i = 0; i < arcs->count; i++) {
        const struct json *item = &arcs->items[i];
        bool branch = json_is(item, JSON_OBJECT) && !json_key(item, "step");
        if (branch ? !add_branch(pb, list, item) : !json_push(pb->r->arena, list, *item)) return arcs;
    }
    return list;
}

// ---- tasks

static struct json said(struct playbook *pb, const struct json *place, struct buf *text)
{
    struct str kept = buf_keep(text, pb->r->arena);
    if (!kept.ptr) pb->r->failed = true;
    struct json out = json_string(kept);
    json_set_place(&out, place->line, place->column);
    return out;
}

// "{{ a }}" and "a" are the same condition.
static struct str bare(struct str text)
{
    text = str_trim(text);
    bool braces = str_starts(text, STR("{{")) && str_ends(text, STR("}}")) && text.len >= 4;
    return braces ? str_trim(str_slice(text, 2, text.len - 2)) : text;
}

// What must be so for another try.
static struct json retry_when(struct playbook *pb, const struct json *retry)
{
    struct buf text = buf_of(64 * 1024);
    const struct json *when = field(retry, "retry_when", "when"), *stop = field(retry, "stop_when", NULL);
    const struct json *codes = field(retry, "retryable_status_codes", "status_codes");
    buf_text(&text, "{{ output.status == 'error'");
    if (json_is(when, JSON_STRING)) buf_printf(&text, " and (%.*s)", STR_ARG(bare(when->text)));
    if (json_is(stop, JSON_STRING)) buf_printf(&text, " and not (%.*s)", STR_ARG(bare(stop->text)));
    if (json_is(codes, JSON_ARRAY)) {
        buf_text(&text, " and output.http.status in ");
        json_write(&text, codes);
    }
    buf_text(&text, " }}");
    return said(pb, when ? when : retry, &text);
}

static bool is_growing(const struct json *retry)
{
    double factor = 1;
    const struct json *multiplier = field(retry, "backoff_multiplier", "multiplier");
    return multiplier && json_double(multiplier, &factor) && factor > 1;
}

static const struct json *retry_rules(struct playbook *pb, const struct json *retry)
{
    static const char *const known[] = {"attempts",    "max_attempts", "delay",     "delay_s",    "initial_delay",
                                        "backoff",     "when",         "retry_when", "stop_when", "max_delay",
                                        "jitter",      "status_codes", "multiplier", "backoff_multiplier",
                                        "retryable_status_codes", NULL};
    struct json *policy = made_at(pb, retry), *rule = made_at(pb, retry), *then = made_at(pb, retry);
    struct json *fail = made_at(pb, retry), *failing = made_at(pb, retry), rules = json_array();
    struct json_member at = {.line = retry->line, .column = retry->column};
    if (!policy || !rule || !then || !fail || !failing) return NULL;
    bool object = retry->type == JSON_OBJECT;
    if (object) useless_members(pb, retry, known, "retry");
    const struct json *attempts = object ? field(retry, "max_attempts", "attempts") : retry;
    const struct json *delay = object ? field(retry, "initial_delay", "delay") : NULL;
    const struct json *backoff = object ? field(retry, "backoff", NULL) : NULL;
    if (object && !delay) delay = field(retry, "delay_s", NULL);
    bool ok = put_at(pb, then, &at, STR("do"), json_string(STR("retry")));
    if (attempts && attempts->type != JSON_BOOL) ok = ok && put_at(pb, then, &at, STR("attempts"), *attempts);
    if (delay) ok = ok && put_at(pb, then, &at, STR("delay"), *delay);
    if (backoff)
        ok = ok && put_at(pb, then, &at, STR("backoff"), *backoff);
    else if (object && is_growing(retry))
        ok = ok && put_at(pb, then, &at, STR("backoff"), json_string(STR("exponential")));
    struct json none = json_object();
    ok = ok && put_at(pb, rule, &at, STR("when"), retry_when(pb, object ? retry : &none)) &&
         put_at(pb, rule, &at, STR("then"), *then) && put_at(pb, failing, &at, STR("do"), json_string(STR("fail"))) &&
         put_at(pb, fail, &at, STR("when"), json_string(STR("{{ output.status == 'error' }}"))) &&
         put_at(pb, fail, &at, STR("then"), *failing) && json_push(pb->r->arena, &rules, *rule) &&
         json_push(pb->r->arena, &rules, *fail) && put_at(pb, policy, &at, STR("rules"), rules);
    return ok ? policy : NULL;
}

// The text of a script that stands in the document: script: {source: inline, code: ...}.
static const struct json *inline_text(const struct json *script)
{
    static const char *const names[] = {"code", "content", "text", "body", "inline", "command"};
    const struct json *source = json_is(script, JSON_OBJECT) ? json_key(script, "source") : NULL;
    struct str type = json_is(source, JSON_OBJECT) ? json_text(json_key(source, "type")) : json_text(source);
    if (!str_is(type, "inline")) return NULL;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct json *text = json_key(script, names[i]);
        if (!text && json_is(source, JSON_OBJECT)) text = json_key(source, names[i]);
        if (json_is(text, JSON_STRING)) return text;
    }
    return NULL;
}

static bool is_retry(const struct json *retry)
{
    bool number = json_is(retry, JSON_INT) || json_true(retry);
    return number || (json_is(retry, JSON_OBJECT) && !json_key(retry, "next_call") && !json_key(retry, "then"));
}

const struct json *task_today(struct playbook *pb, const struct json *body)
{
    const struct json *spec = json_is(body, JSON_OBJECT) ? json_key(body, "spec") : NULL;
    const struct json *retry = json_is(body, JSON_OBJECT) ? json_key(body, "retry") : NULL;
    const struct json *script = json_is(body, JSON_OBJECT) ? inline_text(json_key(body, "script")) : NULL;
    bool ruled = json_is(body, JSON_OBJECT) && (json_key(body, "policy") || (spec && json_key(spec, "policy")));
    bool again = retry && is_retry(retry) && !ruled;
    if (!again && !script) return body;
    struct json *made = made_at(pb, body);
    const struct json *policy = again ? retry_rules(pb, retry) : NULL;
    struct str kind = json_text(json_key(body, "kind"));
    bool sql = STR_AMONG(kind, "postgres", "sqlite", "duckdb");
    struct str key = str_is(kind, "shell") ? STR("cmds") : sql ? STR("command") : STR("code");
    for (uint32_t i = 0; made && i < body->count; i++) {
        const struct json_member *member = &body->members[i];
        bool ok = true;
        if (policy && str_is(member->key, "retry"))
            ok = put_at(pb, made, member, STR("policy"), *policy);
        else if (script && str_is(member->key, "script"))
            ok = json_get(body, key) || put_at(pb, made, member, key, *script);
        else
            ok = put_at(pb, made, member, member->key, member->value);
        if (!ok) return body;
    }
    return made ? made : body;
}
