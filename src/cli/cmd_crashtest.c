// `cairn crashtest`: a document, or the cases of a test file, killed at every boundary and recovered to the end.
#include "cli/commands.h"
#include "term/crash_report.h"
#include "cli/trials.h"

#include "os/os.h"

#include <string.h>

struct crash_run {
    struct cli *cli;
    struct trials trials;
    struct crash_options options;
    struct crash_show show;
    bool one; // --world
    uint32_t first, second;
    uint32_t failed, unguarded;
};

// "17" or "17.3".
static int read_world(struct crash_run *run)
{
    struct str text = args_text(&run->cli->args, FLAG_WORLD, "");
    if (text.len == 0) return EXIT_OK;
    struct str rest, head = str_cut(text, '.', &rest);
    int64_t first = 0, second = 0;
    bool ok = str_int64(head, &first) && first > 0 && first < UINT32_MAX;
    if (ok && head.len < text.len) ok = str_int64(rest, &second) && second > 0 && second < UINT32_MAX;
    if (!ok) {
        cli_fail(run->cli, EXIT_USAGE, "--world is the number of a world, or two with a dot between them");
        return cli_hint(run->cli, "the report names worlds: --world 17, with --double --world 17.3");
    }
    run->one = true;
    run->first = (uint32_t)first;
    run->second = (uint32_t)second;
    return EXIT_OK;
}

static int read_options(struct crash_run *run)
{
    struct cli *cli = run->cli;
    int64_t seed = 1, max = -1;
    if (!args_int(&cli->args, FLAG_SEED, 0, INT64_MAX, 1, &cli->io.arena, &seed) ||
        !args_int(&cli->args, FLAG_MAX, 0, 100000000, -1, &cli->io.arena, &max))
        return cli_usage(cli);
    run->options.seed = (uint64_t)seed;
    run->options.max = max < 0 ? SIZE_MAX : (size_t)max;
    run->options.twice = args_has(&cli->args, FLAG_DOUBLE);
    run->options.sandbox = args_has(&cli->args, FLAG_SANDBOX);
    return read_world(run);
}

static void print_line(void *context, const char *text)
{
    struct crash_run *run = context;
    crash_show_line(&run->show, text);
}

static int play(struct crash_run *run, const struct program *program, const struct trial_script *script)
{
    struct error err = {0};
    struct crash_report report = {0};
    struct arena arena SCOPED(arena_release) = arena_of(256 * 1024, (size_t)4 << 30);
    run->options.contract = run->trials.contract;
    run->options.scratch = run->trials.scratch;
    run->options.program = program;
    run->options.script = script;
    run->show.script = script;
    struct crash_kill kill = {.first = run->first, .second = run->second, .line = print_line, .context = run};
    enum code rc = run->one ? crash_replay(&run->options, &kill, &arena, &report, &err)
                            : crash_test(&run->options, &arena, &report, &err);
    int code = EXIT_OK;
    if (rc)
        code = cli_error(run->cli, &err);
    else if (run->one)
        crash_show_world(&run->show, &report);
    else
        code = crash_show_report(&run->show, &report);
    run->failed += report.failed;
    run->unguarded += report.unguarded;
    run->options.script = run->show.script = NULL; // the caller's
    run->options.program = NULL;
    return code;
}

// Inputs without a default get their own name as value: a crash test has no use for what they mean.
static int play_document(struct crash_run *run, struct str path)
{
    struct cli *cli = run->cli;
    struct document document;
    int code = document_load(cli, path, &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    struct trial_script script;
    if (trial_script_default(document.program, &cli->io.arena, &script)) return cli_nomem(cli);
    for (uint32_t i = 0; i < document.program->required_count; i++) {
        struct str name = document.program->required[i];
        cli_note(cli, "input %.*s has no default: it is \"%.*s\" here", STR_ARG(name), STR_ARG(name));
        if (!json_put(&cli->io.arena, &script.inputs, name, json_string(name))) code = cli_nomem(cli);
    }
    if (!code) code = play(run, document.program, &script);
    program_release(document.program);
    return code;
}

// Steps that the test says nothing about succeed.
static bool with_default(struct cli *cli, const struct trial_script *from, struct trial_script *to)
{
    *to = *from;
    to->defaults = ARENA_ARRAY(&cli->io.arena, from->default_count + 1, struct trial_mock);
    if (!to->defaults) return false;
    to->defaults[0] = (struct trial_mock){.key = STR("*")};
    if (from->default_count) memcpy(&to->defaults[1], from->defaults, from->default_count * sizeof(*to->defaults));
    to->default_count = from->default_count + 1;
    return true;
}

static int play_cases(struct crash_run *run, struct str path)
{
    struct loaded_trial loaded;
    struct str filter = args_text(&run->cli->args, FLAG_FILTER, "");
    int code = trial_load(&run->trials, path, &loaded);
    if (!code && loaded.invalid) code = EXIT_INVALID;
    size_t played = 0;
    for (size_t i = 0; !code && i < loaded.file.count; i++) {
        struct trial_script script;
        struct str name = loaded.file.scripts[i].name;
        if (filter.len && !strstr(cli_format(run->cli, "%.*s", STR_ARG(name)), filter.ptr)) continue;
        if (run->one && played > 0) {
            code = cli_fail(run->cli, EXIT_USAGE, "the file has several cases: choose one with --filter");
            break;
        }
        played++;
        code = with_default(run->cli, &loaded.file.scripts[i], &script) ? play(run, loaded.document.program, &script)
                                                                        : cli_nomem(run->cli);
    }
    if (!code && played == 0) code = cli_fail(run->cli, EXIT_NOT_FOUND, "no case is called \"%s\"", filter.ptr);
    trial_unload(&loaded);
    return code;
}

int command_crashtest(struct cli *cli)
{
    struct crash_run run = {.cli = cli};
    struct str path = cli->args.words[0];
    bool strict = args_has(&cli->args, FLAG_STRICT);
    int code = read_options(&run);
    if (code) return code;
    if (cli->io.verbose == 0) os_log_level(LOG_ERROR); // recovery says what it cut, world after world
    run.show = (struct crash_show){.console = &cli->io,
                                   .format = format_of(cli, FORMAT_TEXT),
                                   .path = path,
                                   .seed = args_text(&cli->args, FLAG_SEED, "1"),
                                   .strict = strict,
                                   .sandbox = args_has(&cli->args, FLAG_SANDBOX),
                                   .all = json_array()};
    code = trials_open(&run.trials, cli);
    if (!code) code = is_test_file(path) ? play_cases(&run, path) : play_document(&run, path);
    if (!code) crash_show_end(&run.show);
    trials_close(&run.trials);
    if (code) return code;
    return run.failed || (strict && run.unguarded) ? EXIT_DIFFERENCE : EXIT_OK;
}
