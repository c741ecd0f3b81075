// A test file to scripts. docs/format/test.md and schemas/test.json say the same to people and editors.
#include "trial/inside.h"

#include "base/civil.h"

#include <string.h>

enum { LOST_MAX = 100 };

static const char *const script_fields[] = {"run",     "name",   "document", "inputs", "arguments",
                                            "at",      "seed",   "defaults", "mocks",  "approvals",
                                            "signals", "expect", "golden",   "cases",  NULL};
static const char *const case_fields[] = {"name",  "inputs",    "arguments", "at",     "seed",   "defaults",
                                          "mocks", "approvals", "signals",   "expect", "golden", NULL};
static const char *const mock_fields[] = {"output", "outcome", "exit", "fail", "takes", "real", "idempotent",
                                          "lost", "late", NULL};
static const char *const fail_fields[] = {"code", "message", "detail", "exit", "retryable", "category", NULL};
static const char *const gate_fields[] = {"answer", "by", "reason", "fields", "takes", NULL};
static const char *const signal_fields[] = {"after", "at",     "wait",   "send",     "step",
                                            "by",    "reason", "fields", "rejected", NULL};

static const char *const occasions[] = {
    [AFTER_STARTED] = "started",     [AFTER_COMPLETED] = "completed", [AFTER_FAILED] = "failed",
    [AFTER_SKIPPED] = "skipped",     [AFTER_DELAYED] = "delayed",     [AFTER_RUN_QUEUED] = "queued",
    [AFTER_RUN_STARTED] = "started", [AFTER_RUN_PAUSED] = "paused",   [AFTER_RUN_RESUMED] = "resumed"};

const char *occasion_word(enum trial_occasion occasion)
{
    return occasions[occasion];
}

// ---- mocks

static void set_fault(struct trial_mock *mock, struct str code, struct str message)
{
    mock->fails = true;
    mock->fault.code = code;
    mock->fault.message = message;
    bool final = STR_AMONG(code, "COMMAND_NOT_FOUND", "SECRET_NOT_FOUND", "CANCELLED");
    mock->fault.retryable = !final;
    if (str_is(code, "TIMEOUT")) mock->fault.category = STR("timeout");
    if (str_is(code, "SPAWN_FAILED")) mock->fault.category = STR("infrastructure");
}

static void set_exit(struct kit *kit, struct trial_mock *mock, const struct json *value)
{
    int64_t code = json_integer(value, -1);
    if (code < 0 || code > 255) {
        kit_fault(kit, "E0206", value, "`exit` is a number from 0 to 255");
        return;
    }
    if (code == 0) return;
    if (mock->fault.code.len == 0) set_fault(mock, STR(FAULT_EXIT), trial_format(kit->arena, "exit %d", (int)code));
    mock->fault.has_exit = true;
    mock->fault.exit_code = (int32_t)code;
}

static void read_fail(struct kit *kit, const struct json *fail, struct trial_mock *mock)
{
    if (json_is(fail, JSON_STRING)) { // fail: TIMEOUT
        set_fault(mock, fail->text, fail->text);
        return;
    }
    if (!kit_is(kit, fail, JSON_OBJECT, "fail")) return;
    kit_fields(kit, fail, fail_fields, "`fail`");
    struct str code = STR(FAULT_EXIT), message = {0};
    if (json_key(fail, "code")) kit_text(kit, json_key(fail, "code"), "code", &code);
    if (json_key(fail, "message")) kit_text(kit, json_key(fail, "message"), "message", &message);
    set_fault(mock, code, message.len ? message : code);
    const struct json *exit = json_key(fail, "exit");
    if (exit) set_exit(kit, mock, exit);
    if (!exit && str_is(code, FAULT_EXIT)) {
        mock->fault.has_exit = true;
        mock->fault.exit_code = 1;
    }
    if (message.len == 0 && mock->fault.has_exit)
        mock->fault.message = trial_format(kit->arena, "exit %d", (int)mock->fault.exit_code);
    if (json_key(fail, "detail")) kit_text(kit, json_key(fail, "detail"), "detail", &mock->fault.detail);
    if (json_key(fail, "category")) kit_text(kit, json_key(fail, "category"), "category", &mock->fault.category);
    const struct json *retryable = json_key(fail, "retryable");
    if (retryable && kit_is(kit, retryable, JSON_BOOL, "retryable")) mock->fault.retryable = retryable->boolean;
}

static void read_flag(struct kit *kit, const struct json *object, const char *name, bool *out)
{
    const struct json *value = json_key(object, name);
    if (value && kit_is(kit, value, JSON_BOOL, name)) *out = value->boolean;
}

static void read_lost(struct kit *kit, const struct json *lost, struct trial_mock *mock)
{
    if (!lost) return;
    int64_t times = json_integer(lost, 0);
    if (times < 1 || times > LOST_MAX)
        kit_fault(kit, "E0206", lost, "`lost` is how often the step's executor is gone before it answers: 1 to %d", LOST_MAX);
    else
        mock->lost = (uint32_t)times;
}

static void read_mock(struct kit *kit, const struct json_member *member, struct trial_mock *mock)
{
    const struct json *value = &member->value;
    *mock = (struct trial_mock){.key = member->key, .is_json = true, .line = member->line, .column = member->column};
    if (value->type == JSON_NULL) return; // `load:` alone succeeds with nothing
    if (!kit_is(kit, value, JSON_OBJECT, "a mock")) return;
    kit_fields(kit, value, mock_fields, "a mock");
    const struct json *output = json_key(value, "output"), *fail = json_key(value, "fail"),
                      *exit = json_key(value, "exit"), *takes = json_key(value, "takes");
    if (json_is(output, JSON_STRING))
        mock->output = output->text;
    else if (output && output->type != JSON_NULL)
        mock->output = json_line(kit->arena, output);
    mock->is_json = !json_is(output, JSON_STRING);
    const struct json *whole = json_key(value, "outcome");
    if (whole && kit_is(kit, whole, JSON_OBJECT, "outcome")) {
        mock->output = json_line(kit->arena, whole);
        mock->whole = true;
    }
    if (whole && (output || fail))
        kit_fault(kit, "E0207", whole, "a mock has `outcome`, or one of `output` and `fail`");
    if (fail) read_fail(kit, fail, mock);
    if (exit) set_exit(kit, mock, exit);
    if (takes) (void)kit_ms(kit, takes, "takes", &mock->takes_ms);
    read_flag(kit, value, "real", &mock->real);
    read_flag(kit, value, "idempotent", &mock->idempotent);
    read_flag(kit, value, "late", &mock->late);
    read_lost(kit, json_key(value, "lost"), mock);
    if (fail && output) kit_fault(kit, "E0207", fail, "a mock has `output` or `fail`, not both");
    if (mock->real && (fail || output || exit))
        kit_fault(kit, "E0207", value, "a step that really runs has its own result: no `output`, `exit` or `fail`");
}

static void read_mocks(struct kit *kit, const struct json *from, const char *name, struct trial_mock **list,
                       size_t *count)
{
    if (!from || !kit_is(kit, from, JSON_OBJECT, name)) return;
    struct trial_mock *all = ARENA_ARRAY(kit->arena, *count + from->count + 1, struct trial_mock);
    if (!all) {
        kit->nomem = true;
        return;
    }
    if (*count) memcpy(all, *list, *count * sizeof(*all));
    for (uint32_t i = 0; i < from->count; i++) read_mock(kit, &from->members[i], &all[(*count)++]);
    *list = all;
}

static void check_kinds(struct kit *kit, const struct json *defaults)
{
    for (uint32_t i = 0; json_is(defaults, JSON_OBJECT) && i < defaults->count; i++) {
        struct str key = defaults->members[i].key;
        bool known = str_is(key, "*");
        for (int k = 1; k <= STEP_HOST; k++)
            known = known || (kind_is_external((enum step_kind)k) && str_is(key, step_kind_name((enum step_kind)k)));
        if (known) continue;
        struct json at = json_null();
        json_set_place(&at, defaults->members[i].line, defaults->members[i].column);
        kit_fault(kit, "E0206", &at, "`defaults` are for shell, exec, script, host and \"*\", not for \"%.*s\"",
                  STR_ARG(key));
    }
}

// ---- answers and signals

static bool read_yes(struct kit *kit, const struct json *value, bool *out)
{
    bool yes = json_is(value, JSON_BOOL) ? value->boolean : str_is(json_text(value), "yes");
    bool no = json_is(value, JSON_BOOL) ? !value->boolean : str_is(json_text(value), "no");
    *out = yes;
    if (yes || no) return true;
    kit_fault(kit, "E0206", value, "an approval is answered with `yes` or `no`");
    return false;
}

static void read_gate(struct kit *kit, const struct json_member *member, struct trial_gate *gate)
{
    const struct json *value = &member->value;
    *gate = (struct trial_gate){
        .key = member->key, .yes = true, .by = STR("tester"), .line = member->line, .column = member->column};
    if (value->type != JSON_OBJECT) {
        read_yes(kit, value, &gate->yes);
        return;
    }
    kit_fields(kit, value, gate_fields, "an answer");
    if (json_key(value, "answer")) read_yes(kit, json_key(value, "answer"), &gate->yes);
    if (json_key(value, "by")) kit_text(kit, json_key(value, "by"), "by", &gate->by);
    if (json_key(value, "reason")) kit_text(kit, json_key(value, "reason"), "reason", &gate->reason);
    if (json_key(value, "takes")) kit_ms(kit, json_key(value, "takes"), "takes", &gate->takes_ms);
    const struct json *fields = json_key(value, "fields");
    if (fields && kit_is(kit, fields, JSON_OBJECT, "fields")) gate->fields = *fields;
}

static void read_gates(struct kit *kit, const struct json *from, struct trial_script *script)
{
    if (!from || !kit_is(kit, from, JSON_OBJECT, "approvals")) return;
    struct trial_gate *all = ARENA_ARRAY(kit->arena, script->gate_count + from->count + 1, struct trial_gate);
    if (!all) {
        kit->nomem = true;
        return;
    }
    if (script->gate_count) memcpy(all, script->gates, script->gate_count * sizeof(*all));
    for (uint32_t i = 0; i < from->count; i++) read_gate(kit, &from->members[i], &all[script->gate_count++]);
    script->gates = all;
}

// "load#2 failed", "paused", "run#2 paused" for the second pause.
static void read_after(struct kit *kit, const struct json *value, struct trial_signal *signal)
{
    struct str text, path;
    uint32_t cycle;
    if (!kit_text(kit, value, "after", &text)) return;
    text = str_trim(text);
    size_t blank = text.len;
    while (blank > 0 && text.ptr[blank - 1] != ' ') blank--;
    struct str event = str_slice(text, blank, text.len), key = str_trim(str_slice(text, 0, blank));
    bool of_run = key_split(key, &path, &cycle) && str_is(path, "run");
    for (int i = AFTER_STARTED; key.len > 0 && i <= AFTER_RUN_RESUMED; i++) {
        if ((i >= AFTER_RUN_QUEUED) != of_run || !str_is(event, occasions[i])) continue;
        signal->after = (enum trial_occasion)i;
        if (!of_run) signal->key = key;
        if (of_run) signal->cycle = cycle;
        return;
    }
    struct diagnostic *d =
        kit_fault(kit, "E0206", value, "`after` is \"STEP EVENT\" or \"run EVENT\", not \"%.*s\"", STR_ARG(text));
    diagnostic_hint(kit->diagnostics, d,
                    "STEP started, completed, failed, skipped, delayed; run queued, started, paused, resumed");
}

static enum signal_type signal_of(struct str word)
{
    static const struct {
        const char *word;
        enum signal_type type;
    } words[] = {{"pause", SIGNAL_PAUSE},         {"resume", SIGNAL_RESUME},    {"cancel", SIGNAL_CANCEL},
                 {"stop", SIGNAL_EMERGENCY_STOP}, {"retry", SIGNAL_RETRY_STEP}, {"skip", SIGNAL_SKIP_STEP},
                 {"approve", SIGNAL_APPROVE},     {"reject", SIGNAL_REJECT}};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (str_is(word, words[i].word)) return words[i].type;
    return SIGNAL_NONE;
}

static void read_signal(struct kit *kit, const struct json *value, struct trial_signal *signal)
{
    *signal = (struct trial_signal){.by = STR("tester"), .line = value->line, .column = value->column};
    if (!kit_is(kit, value, JSON_OBJECT, "a signal")) return;
    kit_fields(kit, value, signal_fields, "a signal");
    const struct json *send = json_key(value, "send"), *after = json_key(value, "after"), *at = json_key(value, "at");
    signal->type = send ? signal_of(json_text(send)) : SIGNAL_NONE;
    if (!send)
        kit_fault(kit, "E0204", value, "a signal needs `send`");
    else if (signal->type == SIGNAL_NONE)
        kit_fault(kit, "E0206", send, "`send` is pause, resume, cancel, stop, retry, skip, approve or reject");
    if ((after != NULL) == (at != NULL)) kit_fault(kit, "E0204", value, "a signal has either `after` or `at`");
    if (after) read_after(kit, after, signal);
    if (at) kit_ms(kit, at, "at", &signal->wait_ms);
    if (json_key(value, "wait")) kit_ms(kit, json_key(value, "wait"), "wait", &signal->wait_ms);
    static const struct {
        const char *name;
        size_t offset;
    } texts[] = {{"step", offsetof(struct trial_signal, step)},
                 {"by", offsetof(struct trial_signal, by)},
                 {"reason", offsetof(struct trial_signal, reason)},
                 {"rejected", offsetof(struct trial_signal, rejected)}};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (json_key(value, texts[i].name))
            kit_text(kit, json_key(value, texts[i].name), texts[i].name,
                     (struct str *)(void *)((char *)signal + texts[i].offset));
    const struct json *fields = json_key(value, "fields");
    if (fields && kit_is(kit, fields, JSON_OBJECT, "fields")) signal->fields = *fields;
    bool needs_step = signal->type == SIGNAL_RETRY_STEP || signal->type == SIGNAL_SKIP_STEP;
    if (needs_step && signal->step.len == 0) kit_fault(kit, "E0204", value, "this signal needs `step`");
}

static void read_signals(struct kit *kit, const struct json *from, struct trial_script *script)
{
    if (!from || !kit_is(kit, from, JSON_ARRAY, "signals")) return;
    struct trial_signal *all = ARENA_ARRAY(kit->arena, script->signal_count + from->count + 1, struct trial_signal);
    if (!all) {
        kit->nomem = true;
        return;
    }
    if (script->signal_count) memcpy(all, script->signals, script->signal_count * sizeof(*all));
    for (uint32_t i = 0; i < from->count; i++) read_signal(kit, &from->items[i], &all[script->signal_count++]);
    script->signals = all;
}

// ---- the file

static void merge_inputs(struct kit *kit, const struct json *given, struct json *inputs)
{
    if (!given || !kit_is(kit, given, JSON_OBJECT, "inputs")) return;
    *inputs = json_joined(kit->arena, given, inputs);
    kit->nomem |= !json_ok(inputs);
}

static void read_common(struct kit *kit, const struct json *object, struct trial_script *script, int level)
{
    const struct json *at = json_key(object, "at"), *seed = json_key(object, "seed"),
                      *golden = json_key(object, "golden"), *expect = json_key(object, "expect");
    if (json_key(object, "name")) kit_text(kit, json_key(object, "name"), "name", &script->name);
    if (json_key(object, "arguments")) kit_text(kit, json_key(object, "arguments"), "arguments", &script->arguments);
    merge_inputs(kit, json_key(object, "inputs"), &script->inputs);
    if (at && (!json_is(at, JSON_STRING) || !civil_parse(at->text, &script->at_ms)))
        kit_fault(kit, "E0206", at, "`at` is a time like 2026-02-11T17:00:00Z");
    if (seed && kit_is(kit, seed, JSON_INT, "seed")) script->seed = (uint64_t)seed->integer;
    if (golden && kit_text(kit, golden, "golden", &script->golden)) {
        script->golden_line = golden->line;
        script->golden_column = golden->column;
    }
    check_kinds(kit, json_key(object, "defaults"));
    read_mocks(kit, json_key(object, "defaults"), "defaults", &script->defaults, &script->default_count);
    read_mocks(kit, json_key(object, "mocks"), "mocks", &script->mocks, &script->mock_count);
    read_gates(kit, json_key(object, "approvals"), script);
    read_signals(kit, json_key(object, "signals"), script);
    if (expect && kit_is(kit, expect, JSON_OBJECT, "expect")) {
        kit_expect(kit, expect);
        script->expect[level] = expect;
    }
}

static void read_cases(struct kit *kit, const struct json *cases, const struct trial_script *base,
                       struct trial_file *out)
{
    if (!kit_is(kit, cases, JSON_ARRAY, "cases")) return;
    out->scripts = ARENA_ARRAY(kit->arena, cases->count + 1, struct trial_script);
    if (!out->scripts) {
        kit->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < cases->count; i++) {
        const struct json *one = &cases->items[i];
        struct trial_script *script = &out->scripts[out->count++];
        *script = *base;
        script->name = trial_format(kit->arena, "case %u", i + 1);
        script->line = one->line;
        script->column = one->column;
        if (!kit_is(kit, one, JSON_OBJECT, "a case")) continue;
        kit_fields(kit, one, case_fields, "a case");
        read_common(kit, one, script, 0);
        for (uint32_t k = 0; k < i; k++)
            if (str_eq(out->scripts[k].name, script->name))
                kit_fault(kit, "E0206", one, "two cases are called \"%.*s\"", STR_ARG(script->name));
    }
    if (cases->count == 0) kit_fault(kit, "E0206", cases, "`cases` is empty");
}

enum code trial_parse(struct str text, struct str file, struct arena *arena, struct diagnostics *diagnostics,
                      struct trial_file *out)
{
    struct kit kit = {.arena = arena, .diagnostics = diagnostics, .file = file};
    uint32_t errors = diagnostics->error_count;
    struct json *tree = ARENA_NEW(arena, struct json);
    *out = (struct trial_file){0};
    if (!tree) return E_NOMEM;
    enum code rc = doc_tree(text, file, &doc_limits_default, arena, tree, diagnostics);
    if (rc) return rc;
    if (!kit_is(&kit, tree, JSON_OBJECT, "a test file")) return E_INVALID;
    kit_fields(&kit, tree, script_fields, "a test file");
    struct trial_script base = {.file = file,
                                .run = STR("test"),
                                .inputs = json_object(),
                                .at_ms = TRIAL_START_MS,
                                .seed = 1,
                                .line = 1,
                                .column = 1};
    const struct json *document = json_key(tree, "document"), *cases = json_key(tree, "cases");
    if (!document) kit_fault(&kit, "E0204", tree, "a test needs `document`: the file that it is about");
    if (document && kit_text(&kit, document, "document", &base.document)) {
        base.document_line = document->line;
        base.document_column = document->column;
    }
    const struct json *run = json_key(tree, "run");
    if (run && kit_text(&kit, run, "run", &base.run) && !run_id_valid(base.run))
        kit_fault(&kit, "E0208", run, "\"%.*s\" is not a run id", STR_ARG(base.run));
    read_common(&kit, tree, &base, 1);
    if (cases) {
        base.name = (struct str){0};
        read_cases(&kit, cases, &base, out);
    } else {
        out->scripts = ARENA_NEW(arena, struct trial_script);
        if (!out->scripts) return E_NOMEM;
        out->scripts[out->count++] = base;
    }
    if (kit.nomem || diagnostics->failed) return E_NOMEM;
    return diagnostics->error_count > errors ? E_INVALID : OK;
}
