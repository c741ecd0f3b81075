// A document or a run as a picture.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/document.h"

#include "author/author.h"
#include "base/civil.h"

struct marks {
    struct cli *cli;
    const struct card *card;
    bool utf8, color;
};

// The step as the view of the run names it: children of loops by their last round.
static const struct step_view *find_view(const struct marks *marks, uint32_t step)
{
    const struct run_view *view = &marks->card->view;
    const struct program *program = marks->card->program;
    const struct program_step *ps = &program->steps[step];
    if (ps->scope == PROGRAM_TOP) return view_step(view, ps->id);
    const struct step_view *loop = find_view(marks, ps->scope);
    if (!loop || loop->iteration == 0) return NULL;
    const char *path = cli_format(marks->cli, "%.*s[%u].%.*s", STR_ARG(loop->id), loop->iteration, STR_ARG(ps->id));
    return view_step(view, str_from(path));
}

static struct str note_of(struct cli *cli, const struct step_view *step, enum look look)
{
    char took[24] = "";
    if (look == LOOK_SKIPPED) return step->skip_reason;
    if (look == LOOK_FAILED || look == LOOK_HELD) return step->fault.code;
    bool timed = look == LOOK_DONE && step->began_ms > 0 && step->ended_ms >= step->began_ms;
    if (timed) duration_format(step->ended_ms - step->began_ms, took);
    if (step->child_run.len > 0)
        return str_from(cli_format(cli, "%s%srun %.*s", timed ? took : "", timed ? " " : "", STR_ARG(step->child_run)));
    return timed ? str_from(cli_format(cli, "%s", took)) : STR("");
}

static bool mark_step(void *context, uint32_t step, struct graph_mark *out)
{
    const struct marks *marks = context;
    const struct step_view *view = find_view(marks, step);
    enum look look =
        view ? look_in_run(&marks->card->view, view) : look_at_end(LOOK_WAITING, false, marks->card->view.status);
    *out = (struct graph_mark){.glyph = look_glyph(look, marks->utf8), .word = look_word(look), .note = STR("")};
    if (marks->color) out->paint = tone_code(look_tone(look));
    if (view) out->note = note_of(marks->cli, view, look);
    return true;
}

static int draw(struct cli *cli, const struct program *program, const struct card *card)
{
    static const enum graph_format formats[] = {GRAPH_TEXT, GRAPH_TEXT, GRAPH_DOT, GRAPH_MERMAID, GRAPH_SVG};
    struct str asked = args_text(&cli->args, FLAG_OUTPUT, "text");
    enum graph_format format = formats[choice_index(asked, cli->args.command->formats)];
    bool text = format == GRAPH_TEXT;
    struct graph_options options = {
        .format = format,
        .columns = cli->io.out.columns,
        .utf8 = str_is(asked, "text") && cli->io.out.utf8,
        .all = args_has(&cli->args, FLAG_ALL),
    };
    struct marks marks = {.cli = cli, .card = card, .utf8 = !text || options.utf8, .color = text && cli->io.out.color};
    if (card) {
        options.mark = mark_step;
        options.context = &marks;
    }
    struct error err = {0};
    struct buf out SCOPED(buf_release) = buf_of((size_t)256 << 20);
    enum code rc = graph_write(&out, program, &options, &cli->io.arena, &err);
    if (!rc) cli_print(cli, &out);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

static int draw_file(struct cli *cli, struct str path)
{
    struct document document;
    int code = document_load(cli, path, &document);
    if (code) return code;
    if (!document.program) {
        document_report(cli, &document);
        return EXIT_INVALID;
    }
    code = draw(cli, document.program, NULL);
    program_release(document.program);
    return code;
}

static int draw_run(struct cli *cli, struct str word)
{
    struct session session SCOPED(session_close) = {0};
    struct target target = {.at = TARGET_NOW};
    struct card card SCOPED(card_release) = {0};
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, word, TARGET_MOMENT, &target);
    if (code == EXIT_NOT_FOUND) cli_hint(cli, "there is no file of that name either");
    if (!code) code = card_load(&session, &target.head, target.at, &card);
    if (!code && !card.program) code = cli_fail(cli, EXIT_NOT_FOUND, "the document of the run cannot be read");
    if (!code) code = draw(cli, card.program, &card);
    return code;
}

int command_graph(struct cli *cli)
{
    struct str word = cli->args.words[0];
    return word_is_document(word) ? draw_file(cli, word) : draw_run(cli, word);
}
