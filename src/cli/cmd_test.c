// `cairn test`: every case of every test file, played on the real engine in virtual time.
#include "cli/commands.h"
#include "term/test_report.h"
#include "cli/trials.h"

#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct found {
    struct str *items;
    size_t count, capacity;
};

struct test_run {
    struct trials trials;
    struct test_report report;
    const char *work_dir;
    struct str filter;
    bool update;
    uint32_t invalid;
};

// ---- finding test files

static bool add_path(struct cli *cli, struct found *found, const char *path)
{
    if (!ARENA_ROOM(&cli->io.arena, found->items, found->count, &found->capacity)) return false;
    found->items[found->count++] = str_from(path);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

// Hidden directories and links are left out.
static int find_in(struct cli *cli, const char *dir, struct found *found, int depth)
{
    DIR *handle = depth < 32 ? opendir(dir) : NULL;
    if (!handle)
        return depth < 32 ? cli_fail(cli, EXIT_NOT_FOUND, "cannot read %s: %s", dir, strerror(errno)) : EXIT_OK;
    int code = EXIT_OK;
    for (struct dirent *entry; code == EXIT_OK && (entry = readdir(handle));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "node_modules") == 0) continue;
        const char *path =
            strcmp(dir, ".") == 0 ? cli_format(cli, "%s", entry->d_name) : cli_format(cli, "%s/%s", dir, entry->d_name);
        struct stat info;
        if (lstat(path, &info) != 0) continue;
        if (S_ISDIR(info.st_mode)) {
            if (access(path, R_OK | X_OK) == 0) code = find_in(cli, path, found, depth + 1);
        } else if (S_ISREG(info.st_mode) && is_test_file(str_from(path)) && !add_path(cli, found, path)) {
            code = cli_nomem(cli);
        }
    }
    closedir(handle);
    return code;
}

static int find_all(struct cli *cli, struct found *found)
{
    if (cli->args.word_count == 0) {
        int code = find_in(cli, ".", found, 0);
        if (found->count) qsort(found->items, found->count, sizeof(*found->items), by_name);
        return code;
    }
    for (size_t i = 0; i < cli->args.word_count; i++) {
        const char *path = cli->args.words[i].ptr;
        if (!os_is_dir(path)) {
            if (!add_path(cli, found, path)) return cli_nomem(cli);
            continue;
        }
        size_t from = found->count, len = strlen(path);
        while (len > 1 && path[len - 1] == '/') len--;
        int code = find_in(cli, cli_format(cli, "%.*s", (int)len, path), found, 0);
        if (code) return code;
        if (found->count > from) qsort(found->items + from, found->count - from, sizeof(*found->items), by_name);
    }
    return EXIT_OK;
}

// ---- playing

static int golden(struct test_run *run, const struct trial_script *script, struct trial_result *result)
{
    struct cli *cli = run->trials.cli;
    if (script->golden.len == 0) return EXIT_OK;
    const char *path = beside(cli, script->file, script->golden);
    struct buf got SCOPED(buf_release) = buf_of((size_t)256 << 20);
    if (!story_golden(&result->story, &got)) return cli_nomem(cli);
    int code = EXIT_OK;
    struct str text = {0};
    struct error err = {0};
    enum code rc = os_read_file(path, (size_t)256 << 20, result->arena, &text, &err);
    if (run->update) {
        bool same = !rc && str_eq(text, buf_str(&got));
        if (!same) code = write_file(cli, path, buf_str(&got));
        if (!same && !code) cli_note(cli, "wrote %s", path);
    } else if (rc) {
        struct trial_fault *grown = arena_grow(result->arena, result->faults, result->fault_count,
                                               result->fault_count + 1, sizeof(*grown), &result->fault_capacity);
        if (grown) {
            result->faults = grown;
            result->faults[result->fault_count++] =
                (struct trial_fault){.line = script->golden_line,
                                     .column = script->golden_column,
                                     .what = STR("golden"),
                                     .expected = str_from(cli_format(cli, "the file %s", path)),
                                     .got = str_from(cli_format(cli, "%s", err.message)),
                                     .more = STR("`cairn test --update` writes it")};
        }
    } else {
        trial_judge_golden(script, result, text, buf_str(&got));
    }
    return code;
}

static int play(struct test_run *run, const struct loaded_trial *loaded, const struct trial_script *script)
{
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, (size_t)2 << 30);
    struct trial_options options = {.contract = run->trials.contract,
                                    .program = loaded->document.program,
                                    .script = script,
                                    .scratch = run->trials.scratch,
                                    .work_dir = run->work_dir};
    struct trial_result result = {0};
    struct error err = {0};
    int64_t began = os_mono_us();
    enum code rc = trial_play(&options, &arena, &result, &err);
    int code = EXIT_OK;
    if (!rc) trial_judge(script, &result);
    if (!rc) code = golden(run, script, &result);
    if (!code) code = test_report_add(&run->report, script, &result, rc ? &err : NULL, os_mono_us() - began);
    return code;
}

static bool wanted(const struct test_run *run, const struct trial_script *script)
{
    return run->filter.len == 0 || strstr(script->file.ptr, run->filter.ptr) ||
           (script->name.len && strstr(cli_format(run->trials.cli, "%.*s", STR_ARG(script->name)), run->filter.ptr));
}

static int play_file(struct test_run *run, struct str path)
{
    struct loaded_trial loaded;
    int code = trial_load(&run->trials, path, &loaded);
    if (loaded.invalid) {
        run->invalid++;
        trial_unload(&loaded);
        test_report_invalid(&run->report, path);
        return code == EXIT_NOT_FOUND || code == EXIT_INVALID ? EXIT_OK : code;
    }
    for (size_t i = 0; !code && i < loaded.file.count; i++)
        if (wanted(run, &loaded.file.scripts[i])) code = play(run, &loaded, &loaded.file.scripts[i]);
    trial_unload(&loaded);
    return code;
}

int command_test(struct cli *cli)
{
    struct test_run run = {.filter = args_text(&cli->args, FLAG_FILTER, ""),
                           .update = args_has(&cli->args, FLAG_UPDATE)};
    struct found found = {0};
    char cwd[4096];
    run.work_dir = getcwd(cwd, sizeof(cwd));
    int code = find_all(cli, &found);
    if (code) return code;
    if (found.count == 0) {
        cli_fail(cli, EXIT_NOT_FOUND, "there is no *.test.yaml here");
        return cli_hint(
            cli, "make one from a run: cairn test record @last --out NAME.test.yaml; the format: cairn help test");
    }
    code = trials_open(&run.trials, cli);
    test_report_open(&run.report, &cli->io, format_of(cli, FORMAT_TEXT));
    for (size_t i = 0; !code && i < found.count; i++) code = play_file(&run, found.items[i]);
    if (!code) test_report_end(&run.report);
    test_report_close(&run.report);
    trials_close(&run.trials);
    if (code) return code;
    if (run.filter.len > 0 && !run.invalid && run.report.passed + run.report.failed == 0) {
        cli_fail(cli, EXIT_NOT_FOUND, "no test has \"%.*s\" in its file or name", STR_ARG(run.filter));
        return EXIT_NOT_FOUND; // green would be a lie
    }
    return run.invalid ? EXIT_INVALID : run.report.failed ? EXIT_DIFFERENCE : EXIT_OK;
}
