// Documents in their canonical layout.
#include "cli/commands.h"
#include "term/text.h"
#include "cli/trials.h"

#include "author/author.h"
#include "os/os.h"

struct tally {
    size_t changed, refused;
};

static int format_one(struct cli *cli, struct str path, struct tally *tally)
{
    struct document document;
    struct error err = {0};
    struct str text;
    bool check = args_has(&cli->args, FLAG_CHECK), in_place = args_has(&cli->args, FLAG_WRITE);
    int code = document_load(cli, path, &document);
    if (code) return code;
    if (!document.program) {
        document_report(cli, &document);
        return EXIT_INVALID;
    }
    struct program_loader loader = source_loader(&document.sources);
    enum code rc = author_format(document.program, &loader, &cli->io.arena, &text, &err);
    struct str before = document.program->text;
    if (rc == E_UNSUPPORTED) {
        cli_warn(cli, "%s is left as it is: %s", path.ptr, err.message);
        tally->refused++;
        text = before;
        rc = OK;
    }
    bool changed = !rc && !str_eq(text, before);
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    tally->changed += changed;
    if (rc || (changed && in_place && os_write_file(path.ptr, text, 0666, true, &err))) {
        code = cli_error(cli, &err);
    } else if (check && changed) {
        if (author_diff(&out, path, before, text, &cli->io.arena, &err)) code = cli_error(cli, &err);
    } else if (!check && !in_place) {
        buf_add(&out, text);
    } else if (in_place && changed) {
        cli_note(cli, "formatted %s", path.ptr);
    }
    cli_print(cli, &out);
    program_release(document.program);
    return code;
}

int command_fmt(struct cli *cli)
{
    struct tally tally = {0};
    int worst = EXIT_OK;
    bool check = args_has(&cli->args, FLAG_CHECK);
    if (check && args_has(&cli->args, FLAG_WRITE))
        return cli_fail(cli, EXIT_USAGE, "--write and --check exclude each other");
    for (size_t i = 0; i < cli->args.word_count; i++) {
        if (args_has(&cli->args, FLAG_WRITE) && str_is(cli->args.words[i], "-"))
            return cli_fail(cli, EXIT_USAGE, "stdin cannot be written in place; leave --write out");
        if (is_test_file(cli->args.words[i])) { // beside documents, and named by the same patterns
            cli_note(cli, "%s is a test and left as it is", cli->args.words[i].ptr);
            continue;
        }
        int code = format_one(cli, cli->args.words[i], &tally);
        if (!worst) worst = code; // the others are laid out all the same
    }
    if (!check || tally.changed == 0) return worst;
    cli_note(cli, "%zu document%s not formatted", tally.changed, tally.changed == 1 ? " is" : "s are");
    cli_hint(cli, "cairn fmt -w FILE... formats them");
    return worst ? worst : EXIT_DIFFERENCE;
}
