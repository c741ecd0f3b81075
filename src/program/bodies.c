// What a step does: the `with` of every kind, checked and brought to the form program.h promises.
#include "program/internal.h"

#include "base/civil.h"

#include <string.h>

void put(struct reader *r, struct json *object, const char *key, struct json value)
{
    if (!json_put(r->arena, object, str_from(key), value)) r->failed = true;
}

// ---- members that several kinds have

static bool is_variable_name(struct str name)
{
    return name.len > 0 && !memchr(name.ptr, '=', name.len) && !memchr(name.ptr, '\0', name.len);
}

// Values of environment variables are texts; numbers and booleans are taken as they are written.
static bool env_value(struct reader *r, const struct json_member *member, struct json *out)
{
    const struct json *value = &member->value;
    *out = *value;
    switch ((enum json_type)value->type) {
    case JSON_STRING:
        return true;
    case JSON_BOOL:
        *out = json_string(value->boolean ? STR("true") : STR("false"));
        return true;
    case JSON_NUMBER:
        *out = json_string(value->text);
        return true;
    case JSON_INT: {
        struct str text;
        if (expr_text(value, r->arena, &text) != OK) {
            r->failed = true;
            return false;
        }
        *out = json_string(text);
        return true;
    }
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    struct span at = place_of(r, value);
    ERROR(r, "E0205", at, "the environment variable \"%.*s\" must be a text, but it is of type %s", SHOW(member->key),
          json_type_name((enum json_type)value->type));
    return false;
}

void body_env(struct reader *r, struct draft *draft, const struct json *env)
{
    if (!env || !read_object(r, env, "env")) return;
    struct json object;
    if (!json_object_with(r->arena, env->count, &object)) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < env->count; i++) {
        const struct json_member *member = &env->members[i];
        struct json value;
        if (!is_variable_name(member->key)) {
            struct span at = place_of_key(r, member);
            ERROR(r, "E0208", at, "\"%.*s\" cannot be the name of an environment variable", SHOW(member->key));
        } else if (env_value(r, member, &value) && !json_put(r->arena, &object, member->key, value)) {
            r->failed = true;
        }
    }
    put(r, &draft->step.with, "env", object);
}

void body_text(struct reader *r, struct draft *draft, const char *name, const struct json *value)
{
    struct str text;
    if (value && read_text(r, value, name, &text)) put(r, &draft->step.with, name, *value);
}

static bool is_text_list(struct reader *r, const struct json *value, const char *name)
{
    if (value->type != JSON_ARRAY) return wrong_type(r, value, name, "a list of texts");
    bool ok = true;
    struct str text;
    for (uint32_t i = 0; i < value->count; i++) ok = read_text(r, &value->items[i], name, &text) && ok;
    return ok;
}

static void body_args(struct reader *r, struct draft *draft, const struct json *args)
{
    if (args && is_text_list(r, args, "args")) put(r, &draft->step.with, "args", *args);
}

// ---- kinds

void body_message(struct reader *r, struct draft *draft, enum step_kind kind, const struct json *message)
{
    draft->step.kind = kind;
    if (message) put(r, &draft->step.with, "message", *message);
}

void body_argv(struct reader *r, struct draft *draft, const struct json *argv, const char *name)
{
    draft->step.kind = STEP_EXEC;
    if (!argv || !is_text_list(r, argv, name)) return;
    if (argv->count == 0 || json_text(&argv->items[0]).len == 0) {
        struct span at = place_of(r, argv);
        ERROR(r, "E0206", at, "\"%s\" must begin with the program to run", name);
        return;
    }
    put(r, &draft->step.with, "argv", *argv);
}

void body_shell(struct reader *r, struct draft *draft, const struct json *command)
{
    draft->step.kind = STEP_SHELL;
    struct str text;
    if (!command || !read_text(r, command, "command", &text)) return;
    if (str_trim(text).len == 0) {
        struct span at = place_of(r, command);
        ERROR(r, "E0206", at, "there is no command");
        return;
    }
    put(r, &draft->step.with, "command", *command);
}

static bool read_runtime(struct reader *r, const struct json *value, struct str *out)
{
    static const char *const names[] = {"sh", "bash", "python3", "python", "node", "bun", "uv", NULL};
    static const char *const runtimes[] = {"sh", "bash", "python3", "python3", "node", "node", "python3"};
    _Static_assert(ARRAY_COUNT(names) == ARRAY_COUNT(runtimes) + 1, "one runtime for each name");
    size_t index;
    if (!read_choice(r, value, "runtime", names, &index)) return false;
    *out = str_from(runtimes[index]);
    return true;
}

void body_script(struct reader *r, struct draft *draft, const struct json *runtime, const struct json *code,
                 const struct json *file, struct span at)
{
    draft->step.kind = STEP_SCRIPT;
    struct str runtime_text = {"", 0};
    if (!runtime) {
        struct diagnostic *d = ERROR(r, "E0204", at, "a script needs \"runtime\"");
        HINT(r, d, "sh, bash, python3 or node");
    } else if (read_runtime(r, runtime, &runtime_text)) {
        put(r, &draft->step.with, "runtime", json_string(runtime_text));
    }
    struct str text;
    if (code && read_text(r, code, "code", &text)) put(r, &draft->step.with, "code", *code);
    if (!file || !read_text(r, file, "file", &text) || runtime_text.len == 0) return;
    draft->outside = true;
    struct str found;
    struct str bytes;
    if (!part_load(r, PART_SCRIPT, file, runtime_text, &found, &bytes)) return;
    if (!str_utf8(bytes)) {
        struct span place = place_of(r, file);
        ERROR(r, "E0101", place, "the script %.*s is not UTF-8 text", SHOW(found));
        return;
    }
    put(r, &draft->step.with, "code", json_string(bytes));
    put(r, &draft->step.with, "file", json_string(found));
}

void body_wait(struct reader *r, struct draft *draft, const struct json *duration, const struct json *until,
               struct span at)
{
    draft->step.kind = STEP_WAIT;
    if (!duration == !until) {
        ERROR(r, "E0204", at, "a wait needs either \"duration\" or \"until\"");
        return;
    }
    int64_t ms;
    if (duration && read_ms(r, duration, "duration", &ms)) put(r, &draft->step.with, "durationMs", json_int(ms));
    struct str text;
    if (!until || !read_text(r, until, "until", &text)) return;
    if (!str_starts(text, STR("$")) && !civil_parse(text, &ms)) {
        struct span place = place_of(r, until);
        struct diagnostic *d = ERROR(r, "E0209", place, "\"until\" is not a moment: \"%.*s\"", SHOW(text));
        HINT(r, d, "write 2026-02-11T17:00:00Z, or a reference such as $plan.output.at");
        return;
    }
    put(r, &draft->step.with, "until", *until);
}

void body_approval(struct reader *r, struct draft *draft, const struct json *message, const struct json *timeout,
                   const struct json *on_timeout)
{
    static const char *const answers[] = {"approve", "reject", "fail", NULL};
    draft->step.kind = STEP_APPROVAL;
    struct str text;
    if (message && read_text(r, message, "message", &text))
        put(r, &draft->step.with, "message", *message);
    else if (!message)
        put(r, &draft->step.with, "message", json_string(draft->step.name));
    int64_t ms;
    if (timeout && read_ms(r, timeout, "timeout", &ms)) put(r, &draft->step.with, "timeoutMs", json_int(ms));
    size_t index = 2;
    if (on_timeout) read_choice(r, on_timeout, "onTimeout", answers, &index);
    put(r, &draft->step.with, "onTimeout", json_string(str_from(answers[index])));
}

void body_event(struct reader *r, struct draft *draft, const struct json *name, const struct json *correlation)
{
    draft->step.kind = STEP_EVENT;
    struct str text;
    if (name && read_text(r, name, "name", &text)) {
        if (!event_name_valid(text) && !str_starts(text, STR("$"))) {
            struct diagnostic *d = ERROR(r, "E0206", place_of(r, name), "\"%.*s\" is no name of an event", SHOW(text));
            HINT(r, d, "1 to 128 letters, digits, '.', '_', '-' and '/', such as payment.received");
        }
        put(r, &draft->step.with, "name", *name);
    }
    if (correlation && read_text(r, correlation, "correlation", &text))
        put(r, &draft->step.with, "correlation", *correlation);
}

void body_subrun(struct reader *r, struct draft *draft, const struct json *document, const struct json *inputs,
                 const struct json *arguments)
{
    draft->step.kind = STEP_SUBRUN;
    struct str text;
    if (document && read_text(r, document, "document", &text)) {
        if (text.len == 0) {
            struct span at = place_of(r, document);
            ERROR(r, "E0206", at, "\"document\" is empty");
            return;
        }
        put(r, &draft->step.with, "document", *document);
        draft->document = document;
    }
    if (inputs && read_object(r, inputs, "inputs")) put(r, &draft->step.with, "inputs", *inputs);
    body_text(r, draft, "arguments", arguments);
}

bool is_host_kind(const struct reader *r, struct str name)
{
    const struct program_loader *loader = r->load->loader;
    return host_kind_valid(name) && loader && loader->host_kind && loader->host_kind(loader->context, name);
}

// The function alone knows what it wants.
void body_host(struct reader *r, struct draft *draft, const struct json *with)
{
    draft->step.kind = STEP_HOST;
    if (with && read_object(r, with, "with")) draft->step.with = *with;
    if (draft->step.secret_count > 0)
        WARNING(r, "E0219", draft->at, "\"secrets\" has no effect on a step of kind \"%.*s\": it has no environment",
                SHOW(draft->step.function));
}

// ---- plans

struct kind_fields {
    const struct field *fields;
    size_t count;
};

#define FIELDS(...)                                                                                                    \
    {                                                                                                                  \
        (const struct field[]){__VA_ARGS__}, sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field)        \
    }

static const struct kind_fields plan_fields[] = {
    [STEP_NOOP] = {NULL, 0},
    [STEP_ECHO] = FIELDS({"message", NULL}),
    [STEP_MERGE] = FIELDS({"message", NULL}),
    [STEP_EXEC] =
        FIELDS({"argv", NULL}, {"command", NULL}, {"args", NULL}, {"env", NULL}, {"cwd", NULL}, {"stdin", NULL}),
    [STEP_SHELL] = FIELDS({"command", NULL}, {"env", NULL}, {"cwd", NULL}),
    [STEP_SCRIPT] =
        FIELDS({"runtime", NULL}, {"code", NULL}, {"file", NULL}, {"args", NULL}, {"env", NULL}, {"cwd", NULL}),
    [STEP_WAIT] = FIELDS({"duration", "durationMs"}, {"until", NULL}),
    [STEP_APPROVAL] = FIELDS({"message", NULL}, {"timeout", "timeoutMs"}, {"onTimeout", NULL}),
    [STEP_EVENT] = FIELDS({"name", NULL}, {"correlation", NULL}),
    [STEP_SUBRUN] = FIELDS({"document", NULL}, {"inputs", NULL}, {"arguments", NULL}),
};

// argv, or command and args.
static void plan_exec(struct reader *r, struct draft *draft, const struct json *with, struct span at)
{
    const struct json *argv = field(with, "argv", NULL);
    const struct json *command = field(with, "command", NULL);
    const struct json *args = field(with, "args", NULL);
    if (!argv == !command) {
        ERROR(r, argv ? "E0207" : "E0204", at,
              argv ? "an exec step has either \"argv\" or \"command\", not both" : "an exec step needs \"argv\"");
        return;
    }
    if (argv && args) {
        struct span place = place_of(r, args);
        ERROR(r, "E0207", place,
              "\"args\" goes with \"command\"; with \"argv\" everything is in "
              "one list");
    }
    struct str text;
    if (argv) {
        body_argv(r, draft, argv, "argv");
    } else if (read_text(r, command, "command", &text)) {
        struct json list = json_array();
        list.line = command->line;
        list.column = command->column;
        bool ok = json_push(r->arena, &list, *command);
        if (args && is_text_list(r, args, "args"))
            for (uint32_t i = 0; i < args->count; i++) ok = ok && json_push(r->arena, &list, args->items[i]);
        if (!ok)
            r->failed = true;
        else
            body_argv(r, draft, &list, "command");
    }
    body_text(r, draft, "stdin", field(with, "stdin", NULL));
}

static void plan_script(struct reader *r, struct draft *draft, const struct json *with, struct span at)
{
    const struct json *code = field(with, "code", NULL);
    const struct json *file = field(with, "file", NULL);
    if (!code == !file) ERROR(r, code ? "E0207" : "E0204", at, "a script step needs either \"code\" or \"file\"");
    body_script(r, draft, field(with, "runtime", NULL), code, code ? NULL : file, at);
    body_args(r, draft, field(with, "args", NULL));
}

void body_plan(struct reader *r, struct draft *draft, enum step_kind kind, const struct json *with, struct span at)
{
    draft->step.kind = kind;
    if (kind == STEP_HOST) {
        body_host(r, draft, with);
        return;
    }
    INVARIANT(kind >= STEP_NOOP && kind < ARRAY_COUNT(plan_fields));
    if (with && !read_object(r, with, "with")) return;
    if (with) fields_check(r, with, plan_fields[kind].fields, plan_fields[kind].count, step_kind_name(kind));
    switch (kind) {
    case STEP_NOOP:
        break;
    case STEP_ECHO: {
        // A message may be any value, null too.
        const struct json *message = json_key(with, "message");
        if (!message) ERROR(r, "E0204", at, "an echo step needs \"message\"");
        body_message(r, draft, kind, message);
        break;
    }
    case STEP_MERGE:
        body_message(r, draft, kind, field(with, "message", NULL));
        break;
    case STEP_EXEC:
        plan_exec(r, draft, with, at);
        break;
    case STEP_SHELL:
        body_shell(r, draft, field_required(r, with, "command", NULL, at, "a shell step"));
        break;
    case STEP_SCRIPT:
        plan_script(r, draft, with, at);
        break;
    case STEP_WAIT:
        body_wait(r, draft, field(with, "duration", "durationMs"), field(with, "until", NULL), at);
        break;
    case STEP_APPROVAL:
        body_approval(r, draft, field(with, "message", NULL), field(with, "timeout", "timeoutMs"),
                      field(with, "onTimeout", NULL));
        break;
    case STEP_EVENT:
        body_event(r, draft, field_required(r, with, "name", NULL, at, "an event step"),
                   field(with, "correlation", NULL));
        break;
    case STEP_SUBRUN:
        body_subrun(r, draft, field_required(r, with, "document", NULL, at, "a subrun step"),
                    field(with, "inputs", NULL), field(with, "arguments", NULL));
        break;
    case STEP_CANCEL:
    case STEP_LOOP:
    case STEP_HOST:
    case STEP_TASKS:
    case STEP_KIND_FIRST_UNUSED:
        break;
    }
    if (kind == STEP_EXEC || kind == STEP_SHELL || kind == STEP_SCRIPT) {
        body_env(r, draft, field(with, "env", NULL));
        body_text(r, draft, "cwd", field(with, "cwd", NULL));
    }
}

bool step_is_shell_text(const struct program_step *ps, const struct json *with, struct str key)
{
    if (ps->kind == STEP_SHELL) return str_is(key, "command");
    struct str runtime = json_text(json_key(with, "runtime"));
    return ps->kind == STEP_SCRIPT && str_is(key, "code") && (str_is(runtime, "sh") || str_is(runtime, "bash"));
}
