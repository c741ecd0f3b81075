// Fields of one step that plans and node workflows share.
#include "program/internal.h"

#include "base/text.h"

#include <string.h>

void drafts_reserve(struct reader *r, struct draft_list *list, size_t count)
{
    struct draft *grown =
        arena_grow(r->scratch, list->items, list->count, count, sizeof(struct draft), &list->capacity);
    if (grown)
        list->items = grown;
    else
        r->failed = true;
}

struct draft *draft_add(struct reader *r, struct draft_list *list)
{
    if (!ARENA_ROOM(r->scratch, list->items, list->count, &list->capacity)) {
        r->failed = true;
        return NULL;
    }
    struct draft *draft = &list->items[list->count++];
    *draft = (struct draft){.step = {
                                .id = {"", 0},
                                .name = {"", 0},
                                .kind = STEP_NOOP,
                                .rule = RULE_ALL_SUCCESS,
                                .when_text = {"", 0},
                                .retry = {.max_attempts = 1, .backoff = BACKOFF_NONE, .on = RETRY_TRANSIENT},
                                .on_failure = r->on_failure,
                                .with = json_object(),
                                .scope = PROGRAM_TOP,
                                .until = PROGRAM_TOP,
                            }};
    r->step_count++;
    return draft;
}

void drafts_reserve_undo(struct reader *r, struct draft_list *list, const struct json *steps)
{
    size_t count = steps->count;
    for (uint32_t i = 0; i < steps->count; i++) count += json_key(&steps->items[i], "compensate") != NULL;
    drafts_reserve(r, list, count);
}

struct draft *undo_draft(struct reader *r, const struct undo_at *at, struct draft_list *list)
{
    struct str id = json_text(at->id);
    struct json *deps = ARENA_NEW(r->arena, struct json);
    struct json *items = ARENA_NEW(r->arena, struct json);
    struct str name = arena_format(r->arena, "%.*s.undo", STR_ARG(id));
    struct draft *draft = name.ptr && deps && items ? draft_add(r, list) : NULL;
    if (!draft) {
        r->failed = true;
        return NULL;
    }
    *items = *at->id;
    *deps = *at->value;
    deps->type = JSON_ARRAY;
    deps->items = items;
    deps->count = 1;
    draft->deps = deps;
    draft->at = place_of(r, at->value);
    draft->step.id = draft->step.name = name;
    draft->step.undo = true;
    draft->step.on_failure = ON_FAILURE_FAIL_RUN;
    draft->step.line = at->value->line;
    draft->step.column = at->value->column;
    r->program->undo_count++;
    if (!step_id_valid(name)) ERROR(r, "E0208", draft->at, "\"%.*s\", which undoes the step, is too long for an id", SHOW(name));
    return draft;
}

void read_rule(struct reader *r, const struct json *value, const char *name, enum trigger_rule *out)
{
    struct str text;
    if (!value || !read_text(r, value, name, &text)) return;
    enum trigger_rule rule = rule_parse(text);
    if (rule != RULE_NONE) {
        *out = rule;
        return;
    }
    struct span at = place_of(r, value);
    struct diagnostic *d = ERROR(r, "E0206", at, "\"%s\" cannot be \"%.*s\"", name, SHOW(text));
    struct nearest nearest = nearest_to(text);
#define X(rule_id, rule_text) nearest_try(&nearest, STR(rule_text));
    TRIGGER_RULE_LIST(X)
#undef X
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d,
             "the usual ones are all_success, one_success, none_failed_min_one_success "
             "and all_done");
}

void read_when(struct reader *r, const struct json *value, struct draft *draft)
{
    if (!value || !read_text(r, value, "when", &draft->step.when_text)) return;
    draft->when = value;
}

void read_deps(struct reader *r, const struct json *value, const char *name, struct draft *draft)
{
    if (!value) return;
    if (value->type != JSON_ARRAY) {
        struct span at = place_of(r, value);
        struct diagnostic *d = ERROR(r, "E0205", at, "\"%s\" must be a list of ids, but it is of type %s", name,
                                     json_type_name((enum json_type)value->type));
        if (value->type == JSON_STRING) HINT(r, d, "write [\"%.*s\"]", SHOW(value->text));
        return;
    }
    draft->deps = value;
}

// ---- retry

static const char *const retry_on_names[] = {"transient", "all", NULL};

static void read_retry_on(struct reader *r, const struct json *value, const char *name, struct retry_policy *retry)
{
    size_t index;
    if (value && read_choice(r, value, name, retry_on_names, &index))
        retry->on = index == 0 ? RETRY_TRANSIENT : RETRY_ALL;
}

static void read_backoff(struct reader *r, const struct json *value, struct retry_policy *retry)
{
    static const char *const names[] = {"none", "linear", "exponential", NULL};
    static const enum backoff backoffs[] = {BACKOFF_NONE, BACKOFF_LINEAR, BACKOFF_EXPONENTIAL};
    size_t index;
    if (value && read_choice(r, value, "backoff", names, &index)) retry->backoff = backoffs[index];
}

static void read_jitter(struct reader *r, const struct json *value, struct retry_policy *retry)
{
    double jitter;
    if (!value) return;
    if (value->type == JSON_BOOL) { // a switch: all of the delay is drawn, or nothing of it
        retry->jitter = value->boolean ? 1 : 0;
    } else if (!json_double(value, &jitter)) {
        wrong_type(r, value, "jitter", "a number from 0 to 1, true or false");
    } else if (!(jitter >= 0 && jitter <= 1)) {
        struct span at = place_of(r, value);
        ERROR(r, "E0210", at, "\"jitter\" must be from 0 to 1");
    } else {
        retry->jitter = jitter;
    }
}

void read_retry_plan(struct reader *r, const struct json *value, struct retry_policy *retry)
{
    static const struct field fields[] = {
        {"maxAttempts", NULL}, {"delay", "delayMs"},   {"backoff", NULL}, {"maxDelay", "maxDelayMs"},
        {"jitter", NULL},      {"nonRetryable", NULL}, {"on", NULL},
    };
    if (!value || !read_object(r, value, "retry")) return;
    fields_check(r, value, fields, ARRAY_COUNT(fields), "a retry policy");
    struct span at = place_of(r, value);
    const struct json *attempts = field_required(r, value, "maxAttempts", NULL, at, "a retry policy");
    int64_t count;
    if (attempts && read_count(r, attempts, "maxAttempts", 1, 1000, &count)) retry->max_attempts = (uint32_t)count;
    retry->delay_ms = 1000;
    const struct json *delay = field(value, "delay", "delayMs");
    if (delay) read_ms(r, delay, "delay", &retry->delay_ms);
    const struct json *max_delay = field(value, "maxDelay", "maxDelayMs");
    if (max_delay) read_ms(r, max_delay, "maxDelay", &retry->max_delay_ms);
    read_backoff(r, field(value, "backoff", NULL), retry);
    read_jitter(r, field(value, "jitter", NULL), retry);
    read_retry_on(r, field(value, "on", NULL), "on", retry);
    const struct json *codes = field(value, "nonRetryable", NULL);
    if (codes) read_texts(r, codes, "nonRetryable", &retry->non_retryable, &retry->non_retryable_count);
}

// max_attempts of a node counts what comes after the first try.
void read_retry_nodes(struct reader *r, const struct json *value, struct retry_policy *retry)
{
    static const struct field fields[] = {
        {"max_attempts", NULL},
        {"delay_ms", "delay"},
        {"on_error", NULL},
        {"non_retryable", NULL},
    };
    if (!value || !read_object(r, value, "retry")) return;
    fields_check(r, value, fields, ARRAY_COUNT(fields), "a retry policy");
    struct span at = place_of(r, value);
    const struct json *attempts = field_required(r, value, "max_attempts", NULL, at, "a retry policy");
    int64_t count;
    if (attempts && read_count(r, attempts, "max_attempts", 1, 5, &count)) retry->max_attempts = (uint32_t)count + 1;
    retry->delay_ms = 3000;
    retry->backoff = BACKOFF_EXPONENTIAL;
    const struct json *delay = field(value, "delay_ms", "delay");
    if (delay && read_ms(r, delay, "delay_ms", &retry->delay_ms) && retry->delay_ms > 60000) {
        struct span place = place_of(r, delay);
        ERROR(r, "E0210", place, "\"delay_ms\" must be at most 60000");
    }
    read_retry_on(r, field(value, "on_error", NULL), "on_error", retry);
    const struct json *codes = field(value, "non_retryable", NULL);
    if (codes) read_texts(r, codes, "non_retryable", &retry->non_retryable, &retry->non_retryable_count);
}

// ---- secrets and artifacts

static bool is_env_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
    }
    return name.len > 0;
}

static void read_secret(struct reader *r, const struct json *value, struct secret_ref *out)
{
    static const struct field fields[] = {{"name", NULL}, {"ref", NULL}};
    *out = (struct secret_ref){.name = {"", 0}, .ref = {"", 0}};
    if (!read_item(r, value, "an entry of \"secrets\"")) return;
    for (uint32_t i = 0; i < value->count; i++) {
        if (!str_is(value->members[i].key, "value")) continue;
        struct span at = place_of_key(r, &value->members[i]);
        struct diagnostic *d = ERROR(r, "E0213", at, "a secret has a value in the document");
        HINT(r, d,
             "remove the value, change the secret, and write ref: env:NAME, "
             "file:/path or secret://PROVIDER/NAME");
        if (d) d->hidden = true;
        return;
    }
    fields_check(r, value, fields, ARRAY_COUNT(fields), "a secret");
    struct span at = place_of(r, value);
    const struct json *name = field_required(r, value, "name", NULL, at, "a secret");
    const struct json *ref = field_required(r, value, "ref", NULL, at, "a secret");
    if (name && read_text(r, name, "name", &out->name) && !is_env_name(out->name)) {
        at = place_of(r, name);
        ERROR(r, "E0208", at,
              "the name of a secret is the name of an environment variable, "
              "which \"%.*s\" cannot be",
              SHOW(out->name));
    }
    if (!ref || !read_text(r, ref, "ref", &out->ref)) return;
    bool known = (str_starts(out->ref, STR("env:")) && out->ref.len > 4) ||
                 (str_starts(out->ref, STR("file:/")) && out->ref.len > 6) ||
                 (str_starts(out->ref, STR("secret://")) && out->ref.len > 9);
    if (!known) {
        at = place_of(r, ref);
        ERROR(r, "E0206", at, "\"ref\" must be env:NAME, file:/path or secret://PROVIDER/NAME");
    }
}

void read_secrets(struct reader *r, const struct json *value, struct program_step *step)
{
    if (!value) return;
    if (value->type != JSON_ARRAY) {
        wrong_type(r, value, "secrets", "a list of {name, ref}");
        return;
    }
    struct secret_ref *secrets = ARENA_ARRAY(r->arena, value->count, struct secret_ref);
    if (!secrets) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) read_secret(r, &value->items[i], &secrets[i]);
    step->secrets = secrets;
    step->secret_count = value->count;
}

static bool is_inside(struct str path)
{
    if (path.len == 0 || path.ptr[0] == '/' || memchr(path.ptr, '\0', path.len)) return false;
    for (struct str rest = path; rest.len;) {
        struct str part = str_cut(rest, '/', &rest);
        if (str_eq(part, STR(".."))) return false;
    }
    return true;
}

void read_artifacts(struct reader *r, const struct json *value, struct program_step *step)
{
    static const struct field fields[] = {{"path", NULL}, {"kind", NULL}};
    if (!value) return;
    if (value->type != JSON_ARRAY) {
        wrong_type(r, value, "artifacts", "a list of {path, kind}");
        return;
    }
    uint32_t most = ARTIFACT_COUNT_MAX * program_scale(r->load->steps_max);
    if (value->count > most)
        ERROR(r, "E0509", place_of(r, value), "the step declares %u artifacts; %u are allowed", value->count, most);
    struct artifact_decl *artifacts = ARENA_ARRAY(r->arena, value->count, struct artifact_decl);
    if (!artifacts) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json *item = &value->items[i];
        artifacts[i] = (struct artifact_decl){.path = {"", 0}, .kind = {"", 0}};
        if (!read_item(r, item, "an entry of \"artifacts\"")) continue;
        fields_check(r, item, fields, ARRAY_COUNT(fields), "an artifact");
        struct span at = place_of(r, item);
        const struct json *path = field_required(r, item, "path", NULL, at, "an artifact");
        const struct json *kind = field(item, "kind", NULL);
        if (path && read_text(r, path, "path", &artifacts[i].path) && !is_inside(artifacts[i].path)) {
            at = place_of(r, path);
            ERROR(r, "E0206", at,
                  "\"path\" must be relative to the artifact directory and stay "
                  "inside it");
        }
        if (kind) read_text(r, kind, "kind", &artifacts[i].kind);
    }
    step->artifacts = artifacts;
    step->artifact_count = value->count;
}

void read_overflow(struct reader *r, const struct json *value, enum overflow *out)
{
    static const char *const names[] = OVERFLOW_NAMES;
    size_t index;
    if (value && read_choice(r, value, "on_overflow", names, &index)) *out = (enum overflow)index;
}

// Only what processes and functions give can be too long: other kinds give what the document has.
void read_output(struct reader *r, const struct json *value, struct program_step *step)
{
    static const struct field fields[] = {{"on_overflow", "onOverflow"}};
    if (!value || !read_object(r, value, "output")) return;
    fields_check(r, value, fields, ARRAY_COUNT(fields), "\"output\"");
    read_overflow(r, field(value, "on_overflow", "onOverflow"), &step->overflow);
    bool executed = step->kind == STEP_EXEC || step->kind == STEP_SHELL || step->kind == STEP_SCRIPT || step->kind == STEP_HOST;
    if (executed || !step->kind) return;
    struct diagnostic *d = WARNING(r, "E0219", place_of(r, value), "\"output\" has no effect on this kind of step");
    HINT(r, d, "it is for steps that run a process or a function");
}
