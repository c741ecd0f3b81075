// A document in the other format.
#include "cli/commands.h"
#include "cli/document.h"
#include "term/text.h"

#include "author/author.h"

static int convert(struct cli *cli, struct document *document, enum document_kind to, struct buf *out)
{
    struct error err = {0};
    if (document->program->kind == to) {
        int code = cli_fail(cli, EXIT_USAGE, "it is a %s document already", document_kind_name(to));
        cli_hint(cli, "cairn fmt lays it out in the canonical way");
        return code;
    }
    enum code rc = author_convert(document->program, to, &document->diagnostics, &cli->io.arena, out, &err);
    if (rc == E_UNSUPPORTED) {
        diagnostics_sort(&document->diagnostics);
        document_report(cli, document);
        cli_note(cli, "nothing was converted: %s", err.message);
        return EXIT_INVALID;
    }
    if (rc) return cli_error(cli, &err);
    cli_note(cli, "comments are not carried over");
    return EXIT_OK;
}

int command_convert(struct cli *cli)
{
    struct document document;
    struct str asked = args_text(&cli->args, FLAG_TO, "");
    if (!args_has(&cli->args, FLAG_TO)) {
        int code = cli_fail(cli, EXIT_USAGE, "say which format: --to plan or --to nodes");
        return code;
    }
    int code = document_load(cli, cli->args.words[0], &document);
    if (code) return code;
    if (!document.program) {
        document_report(cli, &document);
        return EXIT_INVALID;
    }
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    code = convert(cli, &document, str_is(asked, "plan") ? DOCUMENT_PLAN : DOCUMENT_NODES, &out);
    if (!code) cli_print(cli, &out);
    program_release(document.program);
    return code;
}
