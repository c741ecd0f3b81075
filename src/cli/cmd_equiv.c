// `cairn equiv`: one document on several hosts, with the same outcomes of its steps; do they record the same?
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/trials.h"
#include "equiv/equiv.h"
#include "term/equiv_report.h"

#include "engine/engine.h"
#include "os/os.h"

#include <string.h>

enum { CASES_DEFAULT = 10, FAULTS_MAX = 1000 };
#define HOSTS_DEFAULT "embedded,sqlite,files"

struct equiv_run {
    struct cli *cli;
    struct trials trials;
    struct equiv *equiv;
    struct equiv_show show;
    int64_t seed, faults, cases;
    struct str filter;
};

static int unknown_host(struct cli *cli, const struct error *err)
{
    int code = cli_error(cli, err);
    if (err->code != E_INVALID && err->code != E_EXISTS) return code;
    struct buf names SCOPED(buf_release) = buf_of(4096);
    for (size_t i = 0; equiv_host_kind(i); i++) {
        const struct equiv_host_kind *kind = equiv_host_kind(i);
        buf_printf(&names, "%s%s%s", i ? ", " : "", kind->name, kind->needs_place ? "=..." : "");
    }
    cli_hint(cli, "hosts are %s", names.ptr);
    return EXIT_USAGE;
}

static int add_hosts(struct equiv_run *run)
{
    struct cli *cli = run->cli;
    struct str rest = args_text(&cli->args, FLAG_ON, HOSTS_DEFAULT);
    while (rest.len > 0) {
        struct error err = {0};
        struct str name = str_trim(str_cut(rest, ',', &rest));
        if (name.len && equiv_add_host(run->equiv, name, &err)) return unknown_host(cli, &err);
    }
    if (equiv_host_count(run->equiv) >= (run->faults ? 1 : 2)) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, "--on names at least two hosts%s", run->faults ? "" : ", or one with --faults");
    return cli_hint(cli, "--on embedded,files");
}

static int play(struct equiv_run *run, struct str file, struct str name, const struct program *program, const struct trial_script *script)
{
    struct arena arena SCOPED(arena_release) = arena_of(256 * 1024, (size_t)4 << 30);
    struct equiv_report report;
    struct error err = {0};
    enum code rc = equiv_case(run->equiv, program, script, &arena, &report, &err);
    int code = rc ? cli_error(run->cli, &err) : equiv_show_case(&run->show, file, name, &report);
    equiv_case_end(run->equiv);
    return code;
}

static bool wanted(const struct equiv_run *run, struct str name)
{
    return run->filter.len == 0 || strstr(cli_format(run->cli, "%.*s", STR_ARG(name)), run->filter.ptr);
}

// ---- where scripts come from

// Without a test: once everything succeeds, then as the seed draws it.
static int play_document(struct equiv_run *run, struct str path)
{
    struct cli *cli = run->cli;
    struct document document;
    int code = document_load(cli, path, &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    for (int64_t i = 0; !code && i <= run->cases; i++) {
        struct trial_script script;
        uint64_t seed = (uint64_t)(run->seed + i - 1);
        enum code rc = i ? equiv_generate(document.program, seed, run->faults > 0, &cli->io.arena, &script)
                         : trial_script_default(document.program, &cli->io.arena, &script);
        for (uint32_t k = 0; !rc && k < document.program->required_count; k++)
            if (!json_put(&cli->io.arena, &script.inputs, document.program->required[k], json_string(document.program->required[k])))
                rc = E_NOMEM;
        if (rc) {
            code = cli_nomem(cli);
            break;
        }
        struct str name = str_from(i ? cli_format(cli, "seed %llu", (unsigned long long)seed) : "everything succeeds");
        if (wanted(run, name)) code = play(run, path, name, document.program, &script);
    }
    program_release(document.program);
    return code;
}

static int play_test(struct equiv_run *run, struct str path)
{
    struct loaded_trial loaded;
    int code = trial_load(&run->trials, path, &loaded);
    if (!code && loaded.invalid) code = EXIT_INVALID;
    for (size_t i = 0; !code && i < loaded.file.count; i++) {
        const struct trial_script *script = &loaded.file.scripts[i];
        struct str name = script->name.len ? script->name : script->document;
        if (wanted(run, name)) code = play(run, path, name, loaded.document.program, script);
    }
    trial_unload(&loaded);
    return code;
}

// What a run that has been got from its steps and from people, as a script: the same text that `cairn test record` writes.
static int script_of_run(struct equiv_run *run, struct session *session, struct target *target, struct program *program,
                         struct trial_file *out)
{
    struct cli *cli = run->cli;
    struct error err = {0};
    struct story story;
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &cli->io.arena);
    if (story_read(session->store, session->tenant, target->head.ids.run, program, &cli->io.arena, &story, &err))
        return cli_error(cli, &err);
    struct record_options options = {.document = "recorded"};
    struct buf text SCOPED(buf_release) = buf_of((size_t)256 << 20);
    if (!story_record(&story, &options, &text)) return cli_nomem(cli);
    struct str whole = arena_copy(&cli->io.arena, buf_str(&text));
    if (!whole.ptr) return cli_nomem(cli);
    if (trial_parse(whole, STR("recorded"), &cli->io.arena, &diagnostics, out) == OK) return EXIT_OK;
    struct buf shown SCOPED(buf_release) = buf_of(65536);
    for (size_t i = 0; i < diagnostics.count; i++) diagnostic_write(&shown, &diagnostics.items[i], whole, false);
    cli_talk(cli, &shown);
    return cli_fail(cli, EXIT_ERROR, "what the run recorded cannot be played again");
}

// The document is that of the run, unless another one is named: so an edited plan can be held against what really happened.
static int play_like(struct equiv_run *run, struct str like)
{
    struct cli *cli = run->cli;
    struct session session;
    struct target target;
    struct error err = {0};
    struct program *program = NULL;
    struct trial_file file = {0};
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    code = target_find(&session, like, 0, &target);
    if (!code && engine_program(session.store, &target.head, &program, &err)) code = cli_error(cli, &err);
    if (!code) code = script_of_run(run, &session, &target, program, &file);
    for (size_t i = 0; !code && i < file.count; i++)
        code = play(run, program->file, str_from(cli_format(cli, "like %.*s", STR_ARG(like))), program, &file.scripts[i]);
    if (program) program_release(program);
    session_close(&session);
    return code;
}

static int play_all(struct equiv_run *run)
{
    struct cli *cli = run->cli;
    struct str like = args_text(&cli->args, FLAG_LIKE, "");
    int code = EXIT_OK;
    if (like.len && cli->args.word_count > 0)
        return cli_fail(cli, EXIT_USAGE, "--like plays the document of that run: no file is named with it");
    if (like.len) return play_like(run, like);
    if (cli->args.word_count == 0) return cli_fail(cli, EXIT_USAGE, "a document or a test file is wanted, or --like RUN");
    for (size_t i = 0; !code && i < cli->args.word_count; i++) {
        struct str path = cli->args.words[i];
        code = is_test_file(path) ? play_test(run, path) : play_document(run, path);
    }
    if (!code && run->show.same + run->show.different == 0)
        code = cli_fail(cli, EXIT_NOT_FOUND, "no case has \"%.*s\" in its name", STR_ARG(run->filter)); // green would be a lie
    return code;
}

int command_equiv(struct cli *cli)
{
    struct equiv_run run = {.cli = cli, .filter = args_text(&cli->args, FLAG_FILTER, "")};
    struct error err = {0};
    if (!args_int(&cli->args, FLAG_SEED, 1, INT64_MAX / 2, 1, &cli->io.arena, &run.seed) ||
        !args_int(&cli->args, FLAG_FAULTS, 0, FAULTS_MAX, 0, &cli->io.arena, &run.faults) ||
        !args_int(&cli->args, FLAG_CASES, 0, 1000000, CASES_DEFAULT, &cli->io.arena, &run.cases))
        return cli_usage(cli);
    if (cli->io.verbose == 0) os_log_level(LOG_ERROR);
    int code = trials_open(&run.trials, cli);
    struct equiv_options options = {.contract = run.trials.contract,
                                    .scratch = run.trials.scratch,
                                    .seed = (uint64_t)run.seed,
                                    .faults = (uint32_t)run.faults};
    equiv_show_open(&run.show, &cli->io, format_of(cli, FORMAT_TEXT));
    if (!code && equiv_open(&options, &run.equiv, &err)) code = cli_error(cli, &err);
    if (!code) code = add_hosts(&run);
    if (!code) code = play_all(&run);
    if (!code) code = equiv_show_end(&run.show);
    equiv_close(run.equiv);
    equiv_show_close(&run.show);
    trials_close(&run.trials);
    return code ? code : run.show.different ? EXIT_DIFFERENCE : EXIT_OK;
}
