// `cairn test record`: the test file of a run that has been. It is played once before it is handed out.
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/trials.h"

#include "engine/engine.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recording {
    struct cli *cli;
    struct session session;
    struct target target;
    struct program *program;
    struct trials trials;
    const char *out;      // file of the test; NULL: stdout
    const char *document; // as the test file calls it
};

static bool same_bytes(struct recording *r, const char *path)
{
    struct str text;
    struct error ignored = {0};
    return os_read_file(path, (size_t)64 << 20, &r->cli->io.arena, &text, &ignored) == OK &&
           str_eq(text, r->program->text);
}

// The path from the directory of the test file to `target`, both absolute.
static const char *relative(struct cli *cli, struct str from_file, struct str target)
{
    size_t common = 0;
    for (size_t i = 0; i < from_file.len && i < target.len && from_file.ptr[i] == target.ptr[i]; i++)
        if (from_file.ptr[i] == '/') common = i + 1;
    struct buf path SCOPED(buf_release) = buf_of(8192);
    for (size_t i = common; i < from_file.len; i++)
        if (from_file.ptr[i] == '/') buf_text(&path, "../");
    buf_add(&path, str_slice(target, common, target.len));
    return cli_format(cli, "%s", path.ptr);
}

static const char *absolute(struct cli *cli, const char *path)
{
    struct str out;
    struct error ignored = {0};
    char *real = realpath(path, NULL);
    const char *copy = real ? cli_format(cli, "%s", real) : NULL;
    free(real);
    if (copy) return copy;
    return os_absolute(path, &cli->io.arena, &out, &ignored) == OK ? out.ptr : path;
}

// What the run was made of, written beside the test: the files it came from have changed or are gone.
static int write_document(struct recording *r)
{
    struct cli *cli = r->cli;
    if (!r->out) {
        cli_fail(cli, EXIT_CONFLICT, "%.*s is not the document that this run was started with",
                 STR_ARG(r->program->file));
        return cli_hint(cli, "with --out FILE.test.yaml the run's own document is written beside the test");
    }
    const char *kind = r->program->text.len && r->program->text.ptr[0] == '{' ? "json" : "yaml";
    struct str base = str_from(r->out);
    size_t cut = base.len;
    for (size_t i = 0; i < base.len; i++)
        if (base.ptr[i] == '/')
            cut = base.len;
        else if (base.ptr[i] == '.' && cut == base.len && i > 0 && base.ptr[i - 1] != '/')
            cut = i;
    const char *path = cli_format(cli, "%.*s.document.%s", (int)cut, base.ptr, kind);
    int code = write_file(cli, path, r->program->text);
    for (uint32_t i = 0; !code && i < r->program->part_count; i++) {
        struct str file = r->program->parts[i].file;
        size_t slash = file.len;
        while (slash > 0 && file.ptr[slash - 1] != '/') slash--;
        code =
            write_file(cli, beside(cli, str_from(r->out), str_slice(file, slash, file.len)), r->program->parts[i].text);
    }
    if (!code) cli_note(cli, "wrote %s, the document of the run", path);
    size_t slash = strlen(path);
    while (slash > 0 && path[slash - 1] != '/') slash--;
    r->document = path + slash;
    return code;
}

static int find_document(struct recording *r)
{
    struct cli *cli = r->cli;
    char cwd[4096];
    const char *file = cli_format(cli, "%.*s", STR_ARG(r->program->file));
    if (!same_bytes(r, file)) return write_document(r);
    const char *base = r->out ? absolute(cli, r->out) : cli_format(cli, "%s/x", getcwd(cwd, sizeof(cwd)) ? cwd : "");
    if (r->out && access(r->out, F_OK) != 0) { // realpath needs the directory only
        struct str out = str_from(r->out);
        size_t slash = out.len;
        while (slash > 0 && out.ptr[slash - 1] != '/') slash--;
        const char *dir = slash ? cli_format(cli, "%.*s", (int)slash, out.ptr) : ".";
        base = cli_format(cli, "%s/x", absolute(cli, dir));
    }
    r->document = relative(cli, str_from(base), str_from(absolute(cli, file)));
    return EXIT_OK;
}

// A fixture that does not pass is worth a word: something in the run depends on what a test cannot hold.
static int try_it(struct recording *r, struct str text)
{
    struct cli *cli = r->cli;
    struct diagnostics diagnostics;
    struct trial_file file;
    struct trial_result result = {0};
    struct error err = {0};
    diagnostics_init(&diagnostics, &cli->io.arena);
    enum code rc = trial_parse(text, str_from(r->out ? r->out : "recorded"), &cli->io.arena, &diagnostics, &file);
    if (!rc) trial_check(&file.scripts[0], r->program, &diagnostics);
    struct buf shown SCOPED(buf_release) = buf_of(65536);
    for (size_t i = 0; i < diagnostics.count; i++) diagnostic_write(&shown, &diagnostics.items[i], text, false);
    cli_talk(cli, &shown);
    if (rc || diagnostics.error_count) return cli_fail(cli, EXIT_ERROR, "the recorded test cannot be read");
    struct trial_options options = {.contract = r->trials.contract,
                                    .program = r->program,
                                    .script = &file.scripts[0],
                                    .scratch = r->trials.scratch};
    if (trial_play(&options, &cli->io.arena, &result, &err)) return cli_error(cli, &err);
    trial_judge(&file.scripts[0], &result);
    for (size_t i = 0; i < result.fault_count; i++) {
        const struct trial_fault *fault = &result.faults[i];
        struct str got = fault->got.len ? fault->got : fault->more;
        cli_warn(cli, "played again, it differs: %.*s: expected %.*s, got %.*s", STR_ARG(fault->what),
                 STR_ARG(fault->expected), STR_ARG(got));
    }
    return result.fault_count ? EXIT_DIFFERENCE : EXIT_OK;
}

static int record(struct recording *r)
{
    struct cli *cli = r->cli;
    struct error err = {0};
    struct story story;
    if (engine_program(r->session.store, &r->target.head, &r->program, &err)) return cli_error(cli, &err);
    int code = find_document(r);
    if (code) return code;
    if (story_read(r->session.store, r->session.tenant, r->target.head.ids.run, r->program, &cli->io.arena, &story,
                   &err))
        return cli_error(cli, &err);
    struct record_options options = {.document = r->document, .redact = args_has(&cli->args, FLAG_REDACT)};
    struct buf text SCOPED(buf_release) = buf_of((size_t)256 << 20);
    if (!story_record(&story, &options, &text)) return cli_nomem(cli);
    struct str whole = arena_copy(&cli->io.arena, buf_str(&text));
    int played = whole.ptr ? try_it(r, whole) : cli_nomem(cli);
    if (r->out)
        code = write_file(cli, r->out, whole);
    else
        cli_print(cli, &text);
    if (!code && r->out) cli_note(cli, "wrote %s", r->out);
    if (!code && r->out && !played) cli_note(cli, "  next: %s test %s", cli->io.self, r->out);
    return code ? code : played;
}

int command_test_record(struct cli *cli)
{
    struct recording r = {.cli = cli};
    struct str out = args_text(&cli->args, FLAG_OUT, "");
    if (out.len) r.out = out.ptr;
    if (r.out && !is_test_file(out)) {
        cli_fail(cli, EXIT_USAGE, "the name of a test ends in .test.yaml");
        return cli_hint(cli, "--out %s.test.yaml", r.out);
    }
    int code = trials_open(&r.trials, cli);
    if (!code) code = session_open(&r.session, cli, STORE_READ);
    bool opened = !code;
    if (!code) code = target_find(&r.session, cli->args.words[0], 0, &r.target);
    if (!code) code = record(&r);
    if (r.program) program_release(r.program);
    if (opened) session_close(&r.session);
    trials_close(&r.trials);
    return code;
}
