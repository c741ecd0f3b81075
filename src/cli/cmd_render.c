// The steps of a document as the engine will give them to its tools.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "term/text.h"

#include "author/author.h"
#include "reading/reading.h"

struct rendering {
    struct cli *cli;
    const struct program *program;
    struct render_facts facts;
    struct render_result *results;
};

// ---- what is known

static uint32_t find_step(const struct program *program, struct str id)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct program_step *ps = &program->steps[i];
        if (str_eq(ps->id, id)) return i;
        if (ps->scope == PROGRAM_TOP) continue;
        struct str loop = program->steps[ps->scope].id; // loop[2].tick and loop.tick mean the child, whatever the round
        size_t dot = id.len > ps->id.len ? id.len - ps->id.len - 1 : 0;
        if (dot > 0 && id.ptr[dot] == '.' && str_ends(id, ps->id) && str_starts(id, loop)) return i;
    }
    return PROGRAM_TOP;
}

static int no_step(struct cli *cli, const struct program *program, struct str id)
{
    const char **names = ARENA_ARRAY(&cli->io.arena, program->step_count + 1, const char *);
    for (uint32_t i = 0; names && i < program->step_count; i++)
        names[i] = cli_format(cli, "%.*s", STR_ARG(program->steps[i].id));
    const char *near = names ? nearest_name(id, names, program->step_count) : NULL;
    int code = cli_fail(cli, EXIT_NOT_FOUND, "the document has no step %.*s", STR_ARG(id));
    if (near) cli_hint(cli, "did you mean %s?", near);
    return code;
}

// --result STEP=JSON: as if the step had come out like this.
static int read_results(struct rendering *r)
{
    struct cli *cli = r->cli;
    struct str pair, text;
    size_t cursor = 0;
    r->results = ARENA_ARRAY(&cli->io.arena, args_count(&cli->args, FLAG_RESULT) + r->program->step_count + 1,
                             struct render_result);
    if (!r->results) return cli_nomem(cli);
    while (args_next(&cli->args, FLAG_RESULT, &cursor, &pair)) {
        struct str id = str_cut(pair, '=', &text);
        uint32_t step = find_step(r->program, id);
        if (id.len == pair.len) return cli_fail(cli, EXIT_USAGE, "--result takes STEP=JSON, not %.*s", STR_ARG(pair));
        if (step == PROGRAM_TOP) return no_step(cli, r->program, id);
        struct render_result *result = &r->results[r->facts.result_count++];
        *result = (struct render_result){.step = step};
        if (json_parse(text, NULL, &cli->io.arena, &result->value, NULL)) result->value = json_string(text);
    }
    r->facts.results = r->results;
    return EXIT_OK;
}

static int read_facts(struct rendering *r)
{
    struct cli *cli = r->cli;
    struct json given;
    int code = inputs_read(cli, r->program, &given);
    if (code) return code;
    for (uint32_t i = 0; !r->program->net && i < r->program->inputs.count; i++) { // a playbook makes its workload of what is given
        const struct json_member *m = &r->program->inputs.members[i];
        bool required = false;
        for (uint32_t k = 0; k < r->program->required_count; k++) required |= str_eq(r->program->required[k], m->key);
        if (required || json_get(&given, m->key)) continue;
        if (!json_put(&cli->io.arena, &given, m->key, m->value)) return cli_nomem(cli);
    }
    r->facts.inputs = given;
    r->facts.arguments = arguments_read(cli);
    return read_results(r);
}

static int take_view(struct rendering *r, struct session *session, const struct run_view *view)
{
    r->facts.ids = view->ids;
    r->facts.inputs = view->start.inputs;
    r->facts.arguments = view->start.arguments;
    r->facts.artifacts_dir = view->start.artifacts_dir;
    int code = read_results(r);
    for (size_t i = 0; !code && i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        uint32_t index = find_step(r->program, step->id);
        bool ended = step->status == STEP_STATUS_SUCCESS || step->status == STEP_STATUS_SKIPPED ||
                     (step->status == STEP_STATUS_FAILED && !step->retrying && !step->held);
        if (!ended || index == PROGRAM_TOP) continue;
        struct render_result result = {.step = index,
                                       .skipped = step->status == STEP_STATUS_SKIPPED,
                                       .failed = step->status == STEP_STATUS_FAILED,
                                       .value = step->value.type ? step->value : json_null()};
        struct str bytes;
        struct error err = {0};
        if (step->has_blob && (store_blob(session->store, &step->blob, &r->cli->io.arena, &bytes, &err) ||
                               json_parse(bytes, &json_limits_result, &r->cli->io.arena, &result.value, &err)))
            return cli_error(r->cli, &err);
        uint32_t at = 0; // a later round takes the place of an earlier one
        while (at < r->facts.result_count && r->results[at].step != index) at++;
        if (at == r->facts.result_count) r->facts.result_count++;
        r->results[at] = result;
    }
    return code;
}

// ---- showing

static void label(struct cli *cli, struct buf *out, const char *name, size_t len)
{
    struct buf text SCOPED(buf_release) = buf_of(4096);
    text_safe(&text, (struct str){name, len});
    buf_text(out, "  ");
    tone_text(out, &cli->io.out, TONE_DIM, text.ptr);
    text_pad(out, text_width(buf_str(&text)), 11);
}

// A value behind its name; texts of several lines below it.
static void write_value(struct cli *cli, struct buf *out, const char *name, size_t len, const struct json *value)
{
    label(cli, out, name, len);
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (value->type == JSON_STRING)
        buf_add(&text, value->text);
    else
        json_write(&text, value);
    struct str rest = buf_str(&text);
    bool lines = str_find(rest, '\n', 0) + 1 < rest.len;
    if (!lines) {
        text_safe(out, str_trim(rest));
        buf_byte(out, '\n');
    } else {
        text_trim(out);
        buf_byte(out, '\n');
        while (rest.len > 0) {
            buf_text(out, "    ");
            text_safe(out, str_cut(rest, '\n', &rest));
            buf_byte(out, '\n');
        }
    }
}

static const char *truth(const struct json *value)
{
    return value->type == JSON_NULL ? "not known yet" : value->boolean ? "true" : "false";
}

static void write_when(struct cli *cli, struct buf *out, const struct json *when)
{
    const char *arrow = cli->io.out.utf8 ? "→" : "->";
    const struct json *atoms = json_key(when, "comparisons"), *error = json_key(when, "error");
    label(cli, out, "when", 4);
    text_safe(out, json_text(json_key(when, "text")));
    if (atoms && atoms->count == 1) {
        buf_printf(out, "  %s '", arrow);
        text_safe(out, json_text(json_key(&atoms->items[0], "left")));
        buf_byte(out, '\'');
    }
    buf_printf(out, "  %s %s\n", arrow, error ? "the step fails" : truth(json_key(when, "result")));
    if (error) write_value(cli, out, "", 0, error);
    for (uint32_t i = 0; atoms && atoms->count > 1 && i < atoms->count; i++) {
        label(cli, out, "", 0);
        text_safe(out, json_text(json_key(&atoms->items[i], "text")));
        buf_printf(out, "  %s '", arrow);
        text_safe(out, json_text(json_key(&atoms->items[i], "left")));
        buf_printf(out, "' %s %s\n", arrow, truth(json_key(&atoms->items[i], "result")));
    }
}

// Of a playbook: a task that began, or one that has not.
static void write_task(struct cli *cli, struct buf *out, const struct json *task, bool begun)
{
    const struct json *with = json_key(task, "with"), *missing = json_key(task, begun ? "undefined" : "unknown");
    int64_t iteration = json_integer(json_key(task, "iteration"), 0), attempt = json_integer(json_key(task, "attempt"), 0);
    buf_text(out, "  ");
    text_safe(out, json_text(json_key(task, "task")));
    if (iteration > 0) buf_printf(out, "[%lld]", (long long)iteration);
    if (attempt > 1) buf_printf(out, " try %lld", (long long)attempt);
    buf_text(out, "  ");
    text_safe(out, json_text(json_key(task, "kind")));
    if (begun) buf_printf(out, "  given at event %lld", (long long)json_integer(json_key(task, "seq"), 0));
    buf_text(out, begun ? "\n" : "  has not begun\n");
    for (uint32_t i = 0; with && i < with->count; i++)
        write_value(cli, out, with->members[i].key.ptr, with->members[i].key.len, &with->members[i].value);
    for (uint32_t i = 0; missing && i < missing->count; i++) {
        label(cli, out, i ? "" : begun ? "undefined" : "unknown", i ? 0 : begun ? 9 : 7);
        text_safe(out, json_text(json_key(&missing->items[i], "path")));
        buf_text(out, ": ");
        text_safe(out, json_text(json_key(&missing->items[i], "why")));
        buf_byte(out, '\n');
    }
}

static void write_tasks(struct cli *cli, struct buf *out, const struct json *step)
{
    const struct json *given = json_key(step, "given"), *ahead = json_key(step, "ahead");
    int64_t visit = json_integer(json_key(step, "visit"), 0), left_out = json_integer(json_key(step, "leftOut"), 0);
    tone_begin(out, &cli->io.out, TONE_BOLD);
    text_safe(out, json_text(json_key(step, "stepId")));
    tone_end(out, &cli->io.out, TONE_BOLD);
    if (visit > 1) buf_printf(out, "  visit %lld", (long long)visit);
    buf_byte(out, '\n');
    if (left_out > 0) buf_printf(out, "  %lld attempts before these are not shown\n", (long long)left_out);
    for (uint32_t i = 0; given && i < given->count; i++) write_task(cli, out, &given->items[i], true);
    for (uint32_t i = 0; ahead && i < ahead->count; i++) write_task(cli, out, &ahead->items[i], false);
}

static void write_step(struct cli *cli, struct buf *out, const struct json *step)
{
    if (json_key(step, "given") || json_key(step, "ahead")) {
        write_tasks(cli, out, step);
        return;
    }
    const struct json *with = json_key(step, "with"), *env = json_key(step, "referenceEnvironment");
    const struct json *secrets = json_key(step, "secrets"), *when = json_key(step, "when");
    tone_begin(out, &cli->io.out, TONE_BOLD);
    text_safe(out, json_text(json_key(step, "stepId")));
    tone_end(out, &cli->io.out, TONE_BOLD);
    buf_text(out, "  ");
    text_safe(out, json_text(json_key(step, "kind")));
    buf_byte(out, '\n');
    if (when) write_when(cli, out, when);
    for (uint32_t i = 0; i < with->count; i++)
        write_value(cli, out, with->members[i].key.ptr, with->members[i].key.len, &with->members[i].value);
    for (uint32_t i = 0; env && i < env->count; i++) {
        label(cli, out, i ? "" : "gets", i ? 0 : 4);
        text_safe(out, env->members[i].key);
        buf_byte(out, '=');
        text_safe(out, env->members[i].value.text);
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; secrets && i < secrets->count; i++) {
        label(cli, out, i ? "" : "secrets", i ? 0 : 7);
        text_safe(out, json_text(json_key(&secrets->items[i], "name")));
        buf_text(out, "=*** from ");
        text_safe(out, json_text(json_key(&secrets->items[i], "from")));
        buf_byte(out, '\n');
    }
    if (json_key(step, "error")) write_value(cli, out, "fails", 5, json_key(step, "error"));
}

static int print_steps(struct cli *cli, const struct json *all, bool one)
{
    enum format format = format_of(cli, FORMAT_TEXT);
    if (format != FORMAT_TEXT) {
        print_json(&cli->io, format, one ? &all->items[0] : all);
        return EXIT_OK;
    }
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (uint32_t i = 0; i < all->count; i++) {
        if (i > 0) buf_byte(&out, '\n');
        write_step(cli, &out, &all->items[i]);
    }
    cli_print(cli, &out);
    return EXIT_OK;
}

static int render_all(struct rendering *r, struct str only)
{
    struct cli *cli = r->cli;
    uint32_t chosen = only.len > 0 ? find_step(r->program, only) : PROGRAM_TOP;
    struct json all = json_array();
    struct error err = {0};
    if (only.len > 0 && chosen == PROGRAM_TOP) return no_step(cli, r->program, only);
    for (uint32_t i = 0; i < r->program->step_count; i++) {
        struct json one;
        if (only.len > 0 && i != chosen) continue;
        enum code rc = author_render(r->program, i, &r->facts, &cli->io.arena, &one, &err);
        if (rc == E_INVALID) return cli_fail(cli, EXIT_INVALID, "%s", err.message);
        if (rc) return cli_error(cli, &err);
        if (!json_push(&cli->io.arena, &all, one)) return cli_nomem(cli);
    }
    return print_steps(cli, &all, only.len > 0);
}

// Of a playbook's run: what the tasks of a step were given at the time, and what those will be given that have not begun.
static int render_net(struct session *session, const struct target *target, const struct program *program, struct str only)
{
    struct cli *cli = session->cli;
    struct explained_run explained SCOPED(explained_release) = {0};
    struct json all = json_array(), one;
    struct error err = {0};
    int code = explained_load(session, &target->head, target->at, only, true, &explained);
    for (uint32_t i = 0; !code && i < (only.len > 0 ? 1 : program->step_count); i++) {
        struct str path = only.len > 0 ? only : program->steps[i].id;
        enum code rc = explain_given(explained.explain, path, &cli->io.arena, &one, &err);
        if (rc == E_NOT_FOUND) return no_step(cli, program, path);
        if (rc) return cli_error(cli, &err);
        if (json_key(&one, "given") || json_key(&one, "ahead") || only.len > 0)
            if (!json_push(&cli->io.arena, &all, one)) return cli_nomem(cli);
    }
    return code ? code : print_steps(cli, &all, only.len > 0);
}

static int render_file(struct cli *cli, struct str path)
{
    struct document document;
    int code = document_load(cli, path, &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    struct rendering r = {.cli = cli, .program = document.program};
    code = read_facts(&r);
    if (!code) code = render_all(&r, args_text(&cli->args, FLAG_STEP, ""));
    program_release(document.program);
    return code;
}

static int render_run(struct cli *cli, struct str word)
{
    struct session session SCOPED(session_close) = {0};
    struct target target = {.at = TARGET_NOW};
    struct card card SCOPED(card_release) = {0};
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, word, TARGET_STEP | TARGET_MOMENT, &target);
    if (!code) code = card_load(&session, &target.head, target.at, &card);
    struct str step = target.step.len > 0 ? target.step : args_text(&cli->args, FLAG_STEP, "");
    if (!code && card.program && card.program->net) {
        code = render_net(&session, &target, card.program, step);
    } else if (!code && card.program) {
        struct rendering r = {.cli = cli, .program = card.program};
        code = take_view(&r, &session, &card.view);
        if (!code) code = render_all(&r, step);
    } else if (!code) {
        code = cli_fail(cli, EXIT_NOT_FOUND, "the document of the run cannot be read");
    }
    return code;
}

int command_render(struct cli *cli)
{
    struct str word = cli->args.words[0];
    return word_is_document(word) ? render_file(cli, word) : render_run(cli, word);
}
