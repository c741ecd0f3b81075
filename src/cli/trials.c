#include "cli/trials.h"

#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_SIZE_MAX ((size_t)8 << 20)

// ^C must not leave the directory behind. Only what a signal handler may call: another program removes it.
static char scratch[4096];
static pid_t owner;

static void on_signal(int number)
{
    if (getpid() == owner) {
        crash_stop_players();
        pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/rm", "rm", "-rf", "--", scratch, (char *)NULL);
            _exit(127);
        }
        if (pid > 0) waitpid(pid, NULL, 0);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void clean_up_on_signals(const char *path)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    if (strlen(path) >= sizeof(scratch)) return;
    memcpy(scratch, path, strlen(path) + 1);
    owner = getpid();
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(numbers[i], &action, NULL);
    }
}

int trials_open(struct trials *trials, struct cli *cli)
{
    struct error err = {0};
    *trials = (struct trials){.cli = cli};
    if (contract_open(&cli->io.arena, &trials->contract, &err)) return cli_error(cli, &err);
    const char *tmp = getenv("TMPDIR");
    struct str name = str_from(cli_format(cli, "%s/cairn-trial.XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp"));
    char *path = arena_alloc(&cli->io.arena, name.len + 1);
    if (!path) return cli_nomem(cli);
    memcpy(path, name.ptr, name.len);
    if (!mkdtemp(path)) return cli_fail(cli, EXIT_ERROR, "cannot make a directory %s: %s", path, strerror(errno));
    trials->scratch = path;
    clean_up_on_signals(path);
    return EXIT_OK;
}

void trials_close(struct trials *trials)
{
    if (trials->scratch) os_remove_tree(trials->scratch);
}

bool is_test_file(struct str path)
{
    return str_ends(path, STR(".test.yaml")) || str_ends(path, STR(".test.yml")) || str_ends(path, STR(".test.json"));
}

const char *beside(struct cli *cli, struct str file, struct str name)
{
    size_t slash = file.len;
    while (slash > 0 && file.ptr[slash - 1] != '/') slash--;
    if (name.len > 0 && name.ptr[0] == '/') slash = 0;
    return cli_format(cli, "%.*s%.*s", (int)slash, file.ptr, STR_ARG(name));
}

int write_file(struct cli *cli, const char *path, struct str text)
{
    struct error err = {0};
    return os_write_file(path, text, 0666, true, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static void report(struct cli *cli, const struct diagnostics *all, struct str text)
{
    struct buf out SCOPED(buf_release) = buf_of((size_t)16 << 20);
    for (size_t i = 0; i < all->count; i++) diagnostic_write(&out, &all->items[i], text, cli->io.err.color);
    cli_talk(cli, &out);
}

// The same mistake in the part that all cases share is reported once.
static void check_all(const struct loaded_trial *loaded, struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < loaded->file.count; i++) {
        size_t before = diagnostics->count;
        uint32_t errors = diagnostics->error_count;
        trial_check(&loaded->file.scripts[i], loaded->document.program, diagnostics);
        size_t kept = before;
        for (size_t k = before; k < diagnostics->count; k++) {
            bool known = false;
            for (size_t n = 0; n < before; n++)
                known = known || (diagnostics->items[n].line == diagnostics->items[k].line &&
                                  diagnostics->items[n].column == diagnostics->items[k].column);
            if (!known) diagnostics->items[kept++] = diagnostics->items[k];
        }
        diagnostics->count = kept;
        diagnostics->error_count = errors + (uint32_t)(kept - before);
    }
}

int trial_load(struct trials *trials, struct str path, struct loaded_trial *out)
{
    struct cli *cli = trials->cli;
    struct error err = {0};
    struct str text;
    struct diagnostics *diagnostics = &out->diagnostics;
    *out = (struct loaded_trial){0};
    diagnostics_init(diagnostics, &cli->io.arena);
    if (os_read_file(path.ptr, TEST_SIZE_MAX, &cli->io.arena, &text, &err)) return cli_error(cli, &err);
    enum code rc = trial_parse(text, path, &cli->io.arena, diagnostics, &out->file);
    if (rc == E_NOMEM) return cli_nomem(cli);
    int code = EXIT_OK;
    if (!rc) {
        code = document_load(cli, str_from(beside(cli, path, out->file.scripts[0].document)), &out->document);
        if (code)
            cli_note(cli, "  %.*s:%u:%u names this document", STR_ARG(path), out->file.scripts[0].document_line,
                     out->file.scripts[0].document_column);
        if (!code && out->document.program)
            check_all(out, diagnostics);
        else if (!code && !trials->silent)
            document_report(cli, &out->document);
    }
    out->invalid = rc || code || !out->document.program || diagnostics->error_count > 0;
    diagnostics_sort(diagnostics);
    if (!trials->silent) report(cli, diagnostics, text);
    return code;
}

void trial_unload(struct loaded_trial *loaded)
{
    if (loaded->document.program) program_release(loaded->document.program);
    loaded->document.program = NULL;
}
