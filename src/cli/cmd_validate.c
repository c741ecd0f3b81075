#include "cli/commands.h"
#include "cli/trials.h"

#include "author/author.h"
#include "contract/profile.h"

static struct json diagnostic_json(struct cli *cli, const struct diagnostic *d)
{
    return JSON_OF(&cli->io.arena, {"file", json_string(d->file)}, {"line", json_int(d->line)},
                   {"column", json_int(d->column)},
                   {"severity", json_word(d->severity == SEVERITY_ERROR ? "error" : "warning")},
                   {"id", json_word(d->id)}, {"code", json_word(d->code)}, {"message", json_string(d->message)},
                   {"note", json_string(d->note)}, {"hint", json_string(d->hint)});
}

static bool collect(struct cli *cli, const struct diagnostics *found, struct json *all)
{
    for (size_t i = 0; i < found->count; i++)
        json_append(&cli->io.arena, all, diagnostic_json(cli, &found->items[i]));
    return json_ok(all);
}

static void say_ok(struct cli *cli, struct str path, const struct program *program)
{
    struct buf text SCOPED(buf_release) = buf_of(4096);
    enum look look = LOOK_DONE;
    tone_text(&text, &cli->io.out, look_tone(look), look_glyph(look, cli->io.out.utf8));
    buf_printf(&text, " %s: %s %.*s, %u step%s\n", path.ptr, document_kind_name(program->kind),
               STR_ARG(program->plan_id), program->step_count, program->step_count == 1 ? "" : "s");
    if (program->capability_count > 0)
        buf_printf(&text, "  capabilities: %u required of %.*s\n", program->capability_count,
                   STR_ARG(provider_parse(program->target_adapter) ? program->target_adapter : STR("cairn")));
    if (!cli->io.quiet) cli_print(cli, &text);
}

// What the adapter of the plan can do of what it requires (WE-4).
static int check_capabilities(struct cli *cli, struct document *document)
{
    struct capability_report report;
    const struct program *program = document->program;
    if (!capability_validate(program, (struct str){0}, NULL, os_now().wall_ms, &cli->io.arena, &report))
        return cli_nomem(cli);
    const struct json *lists[] = {json_key(&report.json, "errors"), &report.warnings};
    for (size_t k = 0; k < ARRAY_COUNT(lists); k++)
        for (uint32_t i = 0; i < lists[k]->count; i++) {
            const struct json *one = &lists[k]->items[i];
            struct str code = json_text(json_key(one, "code"));
            struct diagnostic *d =
                diagnose(&document->diagnostics, k == 0 ? SEVERITY_ERROR : SEVERITY_WARNING, "E0221", code.ptr,
                         program->file, 1, 1, 1, "%.*s (adapter %s)", STR_ARG(json_text(json_key(one, "message"))),
                         report.provider ? provider_name(report.provider) : "not chosen");
            struct str remedy = json_text(json_at(&report.json, STR("remediation.suggestedFallbackBehavior")));
            if (k == 0 && remedy.len > 0)
                diagnostic_hint(&document->diagnostics, d, "fallbackBehavior: %.*s, or another targetAdapter",
                                STR_ARG(remedy));
        }
    return EXIT_OK;
}

// One line a fault, or one array of all.
static void print_all(struct cli *cli, enum format format, const struct json *all)
{
    if (format == FORMAT_JSON) print_json(&cli->io, format, all);
    for (uint32_t i = 0; format == FORMAT_JSONL && i < all->count; i++) print_json(&cli->io, format, &all->items[i]);
}

static int prove(struct cli *cli, struct document *document)
{
    struct error err = {0};
    if (sound_check(document->program, &document->diagnostics, &err)) return cli_error(cli, &err);
    diagnostics_sort(&document->diagnostics);
    return EXIT_OK;
}

struct validation {
    struct cli *cli;
    enum format format;
    uint32_t errors, warnings;
    struct json all;
};

static int count(struct validation *v, const struct diagnostics *found)
{
    v->errors += found->error_count;
    v->warnings += found->warning_count;
    return v->format == FORMAT_TEXT || collect(v->cli, found, &v->all) ? EXIT_OK : cli_nomem(v->cli);
}

static int validate_document(struct validation *v, struct str path)
{
    struct document document;
    bool strict = args_has(&v->cli->args, FLAG_STRICT);
    int code = document_load(v->cli, path, &document);
    if (!code && document.program && args_has(&v->cli->args, FLAG_SOUND)) code = prove(v->cli, &document);
    if (!code && document.program) code = check_capabilities(v->cli, &document);
    if (!code) code = count(v, &document.diagnostics);
    if (code) return code;
    if (v->format == FORMAT_TEXT) document_report(v->cli, &document);
    bool fine =
        document.program && !document.diagnostics.error_count && !(strict && document.diagnostics.warning_count);
    if (v->format == FORMAT_TEXT && fine) say_ok(v->cli, path, document.program);
    if (document.program) program_release(document.program);
    return EXIT_OK;
}

// Tests lie beside documents and are named by the same patterns, so they are checked too: against their documents.
static int validate_test(struct validation *v, struct str path)
{
    struct loaded_trial loaded;
    struct trials trials = {.cli = v->cli, .silent = v->format != FORMAT_TEXT};
    int code = trial_load(&trials, path, &loaded);
    if (!code) code = count(v, &loaded.diagnostics);
    if (!code && loaded.invalid) code = count(v, &loaded.document.diagnostics);
    if (!code && !loaded.invalid && v->format == FORMAT_TEXT && !v->cli->io.quiet) {
        struct buf text SCOPED(buf_release) = buf_of(4096);
        tone_text(&text, &v->cli->io.out, look_tone(LOOK_DONE), look_glyph(LOOK_DONE, v->cli->io.out.utf8));
        buf_printf(&text, " %s: test of %.*s, %zu case%s\n", path.ptr, STR_ARG(loaded.document.program->plan_id),
                   loaded.file.count, loaded.file.count == 1 ? "" : "s");
        cli_print(v->cli, &text);
    }
    trial_unload(&loaded);
    return code;
}

int command_validate(struct cli *cli)
{
    struct validation v = {.cli = cli, .format = format_of(cli, FORMAT_TEXT), .all = json_array()};
    bool strict = args_has(&cli->args, FLAG_STRICT);
    int unread = EXIT_OK; // the first file that could not be; the others are checked all the same
    for (size_t i = 0; i < cli->args.word_count; i++) {
        struct str path = cli->args.words[i];
        int code = is_test_file(path) ? validate_test(&v, path) : validate_document(&v, path);
        if (unread == EXIT_OK) unread = code;
    }
    print_all(cli, v.format, &v.all);
    if (v.errors == 0 && (v.warnings == 0 || !strict)) return unread;
    if (v.format == FORMAT_TEXT)
        cli_note(cli, "%u error%s, %u warning%s; `cairn help CODE` explains a code", v.errors, v.errors == 1 ? "" : "s",
                 v.warnings, v.warnings == 1 ? "" : "s");
    return EXIT_INVALID;
}
