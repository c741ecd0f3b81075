// What a document will do, before it does it.
#include "cli/commands.h"
#include "cli/document.h"
#include "term/text.h"

#include "author/author.h"
#include "base/civil.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

static void label(struct cli *cli, struct buf *out, const char *name)
{
    buf_text(out, "  ");
    tone_text(out, &cli->io.out, TONE_DIM, name);
    text_pad(out, strlen(name), 10);
}

static void safe(struct buf *out, const struct json *value)
{
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (value && value->type == JSON_STRING)
        text_safe(out, value->text);
    else if (value) {
        json_write(&text, value);
        text_safe(out, buf_str(&text));
    }
}

enum { NAMES_MAX = 12, LAYER_NAMES_MAX = 30, LAYERS_MAX = 60 }; // -o json has all of them

// The first and the last ones, when there are many.
static void names(struct buf *out, const struct json *list, const char *between)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->count > NAMES_MAX && i == NAMES_MAX - 4) {
            i = list->count - 3;
            buf_printf(out, "%s... %u more ...", between, list->count - NAMES_MAX + 1);
        }
        buf_text(out, i ? between : "");
        safe(out, &list->items[i]);
    }
}

static void write_inputs(struct cli *cli, struct buf *out, const struct json *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct json *one = &inputs->items[i];
        bool required = json_key(one, "required")->boolean;
        label(cli, out, i ? "" : "inputs");
        safe(out, json_key(one, "name"));
        if (required)
            buf_text(out, "  has to be given: --set NAME=VALUE");
        else {
            buf_text(out, " = ");
            struct buf value SCOPED(buf_release) = buf_of(TEXT_MAX);
            json_write(&value, json_key(one, "default"));
            text_safe(out, buf_str(&value));
        }
        buf_byte(out, '\n');
    }
}

static void write_asks(struct cli *cli, struct buf *out, const struct json *plan)
{
    const struct json *asks = json_key(plan, "approvals"), *secrets = json_key(plan, "secrets");
    const struct json *files = json_key(plan, "files");
    if (json_key(plan, "requiresApproval")->boolean) {
        label(cli, out, "asks");
        buf_text(out, "before it starts: the plan requires approval\n");
    }
    for (uint32_t i = 0; i < asks->count; i++) {
        const struct json *timeout = json_key(&asks->items[i], "timeoutMs");
        char text[24];
        label(cli, out, i ? "" : "asks");
        safe(out, json_key(&asks->items[i], "stepId"));
        buf_text(out, ": ");
        safe(out, json_key(&asks->items[i], "message"));
        if (timeout) {
            duration_format(json_integer(timeout, 0), text);
            buf_printf(out, "  (after %s: ", text);
            safe(out, json_key(&asks->items[i], "onTimeout"));
            buf_byte(out, ')');
        }
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < secrets->count; i++) {
        label(cli, out, i ? "" : "secrets");
        safe(out, json_key(&secrets->items[i], "name"));
        buf_text(out, " from ");
        safe(out, json_key(&secrets->items[i], "ref"));
        buf_text(out, " for ");
        safe(out, json_key(&secrets->items[i], "stepId"));
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < files->count; i++) {
        label(cli, out, i ? "" : "reads");
        safe(out, json_key(&files->items[i], "kind"));
        buf_byte(out, ' ');
        safe(out, json_key(&files->items[i], "file"));
        buf_byte(out, '\n');
    }
}

// The steps of one layer, wrapped.
static void write_layer(struct cli *cli, struct buf *out, const struct json *steps, int64_t layer)
{
    char name[32];
    size_t column = 12, columns = cli->io.out.columns > 40 ? cli->io.out.columns : 40;
    uint32_t shown = 0, all = 0;
    bool first = true;
    snprintf(name, sizeof(name), "layer %lld", (long long)layer);
    label(cli, out, name);
    for (uint32_t i = 0; i < steps->count; i++) {
        if (json_integer(json_key(&steps->items[i], "layer"), 0) != layer) continue;
        if (++all > LAYER_NAMES_MAX) continue;
        shown++;
        size_t from = out->len;
        if (!first) buf_text(out, ", ");
        safe(out, json_key(&steps->items[i], "stepId"));
        size_t width = text_width(str_slice(buf_str(out), from, out->len));
        if (!first && column + width > columns) {
            out->len = from;
            buf_text(out, ",\n            ");
            safe(out, json_key(&steps->items[i], "stepId"));
            column = 10 + width;
        } else {
            column += width;
        }
        first = false;
    }
    if (all > shown) buf_printf(out, " and %u more", all - shown);
    buf_byte(out, '\n');
}

static void write_critical(struct cli *cli, struct buf *out, const struct json *critical)
{
    const struct json *open = json_key(critical, "unbounded");
    char text[24];
    duration_format(json_integer(json_key(critical, "boundMs"), 0), text);
    label(cli, out, "longest");
    names(out, json_key(critical, "steps"), cli->io.out.utf8 ? " → " : " -> ");
    buf_printf(out, "\n");
    label(cli, out, "");
    if (json_integer(json_key(critical, "boundMs"), 0) == 0 && open->count == 0)
        buf_text(out, "none of its steps takes time by itself");
    else if (json_integer(json_key(critical, "boundMs"), 0) == 0)
        buf_text(out, "no limit: no timeouts are declared");
    else if (open->count > 0)
        buf_printf(out, "no limit: %s by timeouts, waits and retries, and what has none", text);
    else
        buf_printf(out, "at most %s by timeouts, waits and retries", text);
    if (open->count > 0) {
        buf_text(out, ": ");
        names(out, open, ", ");
    }
    buf_byte(out, '\n');
}

static void write_text(struct cli *cli, struct buf *out, const struct json *plan)
{
    const struct json *ref = json_key(plan, "planRef"), *steps = json_key(plan, "steps");
    int64_t layers = json_integer(json_key(plan, "layers"), 0);
    tone_begin(out, &cli->io.out, TONE_BOLD);
    safe(out, json_key(ref, "planId"));
    tone_end(out, &cli->io.out, TONE_BOLD);
    buf_text(out, " @ ");
    safe(out, json_key(ref, "planVersion"));
    buf_text(out, "  ");
    safe(out, json_key(plan, "kind"));
    buf_printf(out, ", %u step%s in %lld layer%s\n", steps->count, steps->count == 1 ? "" : "s", (long long)layers,
               layers == 1 ? "" : "s");
    label(cli, out, "document");
    safe(out, json_key(ref, "uri"));
    buf_byte(out, '\n');
    label(cli, out, "sha256");
    safe(out, json_key(ref, "sha256"));
    buf_byte(out, '\n');
    write_inputs(cli, out, json_key(plan, "inputs"));
    write_asks(cli, out, plan);
    label(cli, out, "first");
    names(out, json_key(plan, "first"), ", ");
    buf_byte(out, '\n');
    for (int64_t layer = 1; layer <= layers && layer <= LAYERS_MAX; layer++) write_layer(cli, out, steps, layer);
    if (layers > LAYERS_MAX) buf_printf(out, "            and %lld more layers\n", (long long)(layers - LAYERS_MAX));
    write_critical(cli, out, json_key(plan, "criticalPath"));
}

// ---- the canonical plan in a file

static int write_file(struct cli *cli, const char *path, struct str text)
{
    struct error err = {0};
    if (os_write_file(path, text, 0666, true, &err)) return cli_error(cli, &err);
    cli_note(cli, "wrote %s", path);
    return EXIT_OK;
}

static int write_plan(struct cli *cli, struct document *document)
{
    struct error err = {0};
    struct str text = {0};
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    struct program_loader loader = source_loader(&document->sources);
    enum code rc = OK;
    if (document->program->kind != DOCUMENT_PLAN) {
        rc = author_convert(document->program, DOCUMENT_PLAN, &document->diagnostics, &cli->io.arena, &out, &err);
        text = buf_str(&out);
    } else {
        rc = author_canonical(document->program, &loader, &cli->io.arena, &text, &err);
    }
    int code = rc == E_UNSUPPORTED ? EXIT_INVALID : rc ? cli_error(cli, &err) : EXIT_OK;
    if (rc == E_UNSUPPORTED) {
        diagnostics_sort(&document->diagnostics);
        document_report(cli, document);
        cli_note(cli, "nothing was written: a plan cannot say what the %s does",
                 document->program->kind == DOCUMENT_PLAYBOOK ? "playbook" : "workflow");
    }
    if (!code) code = write_file(cli, args_text(&cli->args, FLAG_OUT, "").ptr, text);
    return code;
}

static int show(struct cli *cli, const struct program *program, struct str path)
{
    struct error err = {0};
    struct str absolute;
    struct json plan;
    enum format format = format_of(cli, FORMAT_TEXT);
    enum code rc = os_absolute(path.ptr, &cli->io.arena, &absolute, &err);
    struct str uri = str_is(path, "-") ? STR("-") : str_from(cli_format(cli, "file://%.*s", STR_ARG(absolute)));
    if (!rc) rc = author_plan(program, uri, &cli->io.arena, &plan, &err);
    if (rc) return cli_error(cli, &err);
    if (format != FORMAT_TEXT) {
        print_json(&cli->io, format, &plan);
        return EXIT_OK;
    }
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    write_text(cli, &out, &plan);
    cli_print(cli, &out);
    return EXIT_OK;
}

int command_plan(struct cli *cli)
{
    struct document document;
    int code = document_load(cli, cli->args.words[0], &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    if (args_has(&cli->args, FLAG_OUT)) code = write_plan(cli, &document);
    if (!code) code = show(cli, document.program, cli->args.words[0]);
    program_release(document.program);
    return code;
}
