#include "cli/commands.h"
#include "cli/document.h"

#include "author/author.h"

#include <stdio.h>

static bool put(struct cli *cli, struct json *object, struct str key, struct json value)
{
    return json_put(&cli->arena, object, key, value);
}

static bool diagnostic_json(struct cli *cli, const struct diagnostic *diagnostic, struct json *out)
{
    *out = json_object();
    bool error = diagnostic->severity == SEVERITY_ERROR;
    return put(cli, out, STR("file"), json_string(diagnostic->file)) &&
           put(cli, out, STR("line"), json_int(diagnostic->line)) &&
           put(cli, out, STR("column"), json_int(diagnostic->column)) &&
           put(cli, out, STR("severity"), json_string(error ? STR("error") : STR("warning"))) &&
           put(cli, out, STR("id"), json_string(str_from(diagnostic->id))) &&
           put(cli, out, STR("code"), json_string(str_from(diagnostic->code))) &&
           put(cli, out, STR("message"), json_string(diagnostic->message)) &&
           put(cli, out, STR("note"), json_string(diagnostic->note)) &&
           put(cli, out, STR("hint"), json_string(diagnostic->hint));
}

static bool collect(struct cli *cli, const struct document *document, struct json *all)
{
    for (size_t i = 0; i < document->diagnostics.count; i++) {
        struct json one;
        if (!diagnostic_json(cli, &document->diagnostics.items[i], &one) || !json_push(&cli->arena, all, one))
            return false;
    }
    return true;
}

static void say_ok(struct cli *cli, struct str path, const struct program *program)
{
    struct buf text;
    buf_init(&text, 4096);
    enum look look = LOOK_DONE;
    tone_text(&text, &cli->out, look_tone(look), look_glyph(look, cli->out.utf8));
    buf_printf(&text, " %s: %s %.*s, %u step%s\n", path.ptr, document_kind_name(program->kind),
               STR_ARG(program->plan_id), program->step_count, program->step_count == 1 ? "" : "s");
    if (!cli->quiet) cli_print(cli, &text);
    buf_release(&text);
}

// One line a fault, or one array of all.
static void print_all(struct cli *cli, enum format format, const struct json *all)
{
    if (format == FORMAT_JSON) print_json(cli, format, all);
    for (uint32_t i = 0; format == FORMAT_JSONL && i < all->count; i++) print_json(cli, format, &all->items[i]);
}

static int prove(struct cli *cli, struct document *document)
{
    struct error err = {0};
    if (sound_check(document->program, &document->diagnostics, &err)) return cli_error(cli, &err);
    diagnostics_sort(&document->diagnostics);
    return EXIT_OK;
}

int command_validate(struct cli *cli)
{
    enum format format = format_of(cli, FORMAT_TEXT);
    bool strict = args_has(&cli->args, FLAG_STRICT);
    uint32_t errors = 0, warnings = 0;
    struct json all = json_array();
    for (size_t i = 0; i < cli->args.word_count; i++) {
        struct document document;
        int code = document_load(cli, cli->args.words[i], &document);
        if (code) return code;
        if (document.program && args_has(&cli->args, FLAG_SOUND)) code = prove(cli, &document);
        if (code) return code;
        errors += document.diagnostics.error_count;
        warnings += document.diagnostics.warning_count;
        if (format != FORMAT_TEXT && !collect(cli, &document, &all)) return cli_nomem(cli);
        if (format == FORMAT_TEXT) document_report(cli, &document);
        bool fine =
            document.program && !document.diagnostics.error_count && !(strict && document.diagnostics.warning_count);
        if (format == FORMAT_TEXT && fine) say_ok(cli, cli->args.words[i], document.program);
        if (document.program) program_release(document.program);
    }
    print_all(cli, format, &all);
    if (errors == 0 && (warnings == 0 || !strict)) return EXIT_OK;
    if (format == FORMAT_TEXT)
        cli_note(cli, "%u error%s, %u warning%s; `cairn help CODE` explains a code", errors, errors == 1 ? "" : "s",
                 warnings, warnings == 1 ? "" : "s");
    return EXIT_INVALID;
}
