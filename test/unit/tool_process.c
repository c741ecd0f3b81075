// Starting a process: every fault, arguments and environment byte for byte, nothing inherited that was not meant to be.
#include "tool_kit.h"

#include "base/arena.h"
#include "view/trace.h"

#include <sys/resource.h>
#include <sys/stat.h>

static void success_gives_output_without_trailing_newlines(void)
{
    kit_open(4);
    struct tool_result *result = kit_sh(1, "printf 'a\\nb\\n\\n\\n'");
    CHECK(result->ok);
    CHECK_STR(result->output, STR("a\nb"));
    CHECK(!result->truncated);
    CHECK_STR(result->fault.code, STR(""));
    CHECK(result->duration_ms >= 0);
    kit_close();
}

static void exit_code_and_last_line_of_stderr_are_told(void)
{
    kit_open(4);
    struct tool_result *result = kit_sh(1, "echo out; echo first >&2; echo boom >&2; exit 3");
    kit_check_fault(result, "EXIT_NONZERO", true);
    CHECK(result->fault.has_exit);
    CHECK_INT(result->fault.exit_code, 3);
    CHECK_STR(result->fault.message, STR("exit 3: boom"));
    CHECK_STR(result->fault.detail, STR("first\nboom"));
    CHECK_STR(result->output, STR("out"));
    CHECK_STR(kit_sh(2, "exit 7")->fault.message, STR("exit 7"));
    kit_close();
}

static void death_by_signal_names_the_signal(void)
{
    kit_open(4);
    struct tool_result *result = kit_sh(1, "kill -SEGV $$");
    kit_check_fault(result, "KILLED_BY_SIGNAL", true);
    CHECK_STR(result->fault.message, STR("killed by SIGSEGV (signal 11)"));
    CHECK(!result->fault.has_exit);
    kit_close();
}

static void missing_command_is_not_found_and_not_retried(void)
{
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"no-such-command-here", "x", NULL});
    kit_check_fault(kit_run(&r), "COMMAND_NOT_FOUND", false);
    CHECK_STR(kit.results[1].fault.message, STR("command not found: no-such-command-here"));
    r = kit_request(2, (const char *const[]){"/no/such/file", NULL});
    kit_check_fault(kit_run(&r), "COMMAND_NOT_FOUND", false);
    // PATH of the child decides, not that of the engine.
    r = kit_request(3, (const char *const[]){"sh", "-c", "true", NULL});
    struct tool_env env = {STR("PATH"), STR("/nowhere:/also/nowhere")};
    r.request.env = &env;
    r.request.env_count = 1;
    kit_check_fault(kit_run(&r), "COMMAND_NOT_FOUND", false);
    kit_close();
}

static void what_cannot_be_started_is_spawn_failed(void)
{
    kit_open(4);
    char path[256];
    snprintf(path, sizeof(path), "%s/plain", test_dir());
    test_write_file(path, STR("echo hello\n"));
    chmod(path, 0644);
    struct kit_request r = kit_request(1, (const char *const[]){path, NULL});
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false); // not executable
    chmod(path, 0755);
    r = kit_request(2, (const char *const[]){path, NULL});
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false); // no #! line: never given to a shell
    CHECK_STR(kit.results[2].fault.category, STR("infrastructure"));
    r = kit_request(3, (const char *const[]){"true", NULL});
    r.request.cwd = STR("/no/such/directory");
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false);
    CHECK_STR(kit.results[3].fault.message,
              STR("cannot change to directory /no/such/directory: No such file or directory"));
    kit_close();
}

static void what_no_process_can_be_given_is_spawn_failed(void)
{
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"echo", "x", NULL});
    r.argv[1] = STR("a\0b");
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false);
    r = kit_request(2, (const char *const[]){NULL});
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false);
    struct tool_env env = {STR("A=B"), STR("c")};
    r = kit_request(3, (const char *const[]){"true", NULL});
    r.request.env = &env;
    r.request.env_count = 1;
    kit_check_fault(kit_run(&r), "SPAWN_FAILED", false);
    kit_close();
}

static void no_descriptor_left_is_worth_another_try(void)
{
    kit_open(4);
    CHECK(kit_sh(1, "true")->ok);
    struct rlimit before, tight;
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    int probe = dup(0);
    tight.rlim_cur = (rlim_t)probe + 2;
    setrlimit(RLIMIT_NOFILE, &tight);
    kit_check_fault(kit_sh(2, "true"), "SPAWN_FAILED", true);
    setrlimit(RLIMIT_NOFILE, &before);
    close(probe);
    CHECK(kit_sh(3, "true")->ok);
    kit_close();
}

static void arguments_arrive_verbatim_X1(void)
{
    static const char *const nasty[] = {
        "",         " ",        "  a  b ", "*",        "?",    "[a-z]",  "~",    "$HOME", "${PATH}",
        "$(id)",    "`id`",     "'",       "\"",       "\\",   "\\n",    "\n",   "a\nb",  "\t",
        ";",        "a;b",      "&",       "&&",       "|",    ">x",     "<x",   "#",     "!",
        "!!",       "%s%n",     "-rf",     "--",       "-",    "{a,b}",  "(x)",  "=",     "A=B",
        "\xC3\xA4", "\xFF\xFE", "\x01",    "\x1b[31m", "a\rb", "${IFS}", "$'x'", "^",     "\xE2\x80\xAE",
        "..",       "/",        "{{ x }}",
    };
    enum { COUNT = ARRAY_COUNT(nasty) };
    const char *argv[COUNT + 4] = {"/proc/self/exe", "--helper", "args"};
    char self[512];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(len > 0);
    self[len] = '\0';
    argv[0] = self;
    struct buf want;
    buf_init(&want, 1 << 16);
    for (size_t i = 0; i < COUNT; i++) {
        argv[3 + i] = nasty[i];
        buf_hex(&want, (const uint8_t *)nasty[i], strlen(nasty[i]));
        buf_byte(&want, '\n');
    }
    want.len--; // the last newline is cut
    kit_open(4);
    struct kit_request r = kit_request(1, argv);
    CHECK_STR(kit_run(&r)->output, buf_str(&want));
    buf_release(&want);
    kit_close();
}

static int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

// The entries of `env -0`, sorted, one a line. NULs were made replacement characters.
static void sort_entries(struct str text, struct buf *out)
{
    struct str entries[64];
    size_t count = 0;
    const char *mark = "\xEF\xBF\xBD";
    while (text.len && count < ARRAY_COUNT(entries)) {
        const char *end = memmem(text.ptr, text.len, mark, 3);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        entries[count++] = str_slice(text, 0, len);
        text = str_slice(text, end ? len + 3 : len, text.len);
    }
    qsort(entries, count, sizeof(entries[0]), compare_lines);
    for (size_t i = 0; i < count; i++) buf_printf(out, "%.*s\n", STR_ARG(entries[i]));
}

static void environment_is_the_expected_list_X2(void)
{
    static const char *const hooks[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV",   "ENV",        "BASH_FUNC_x%%",
                                        "IFS",        "PYTHONSTARTUP",   "PYTHONPATH", "PYTHONHOME", "PERL5LIB",
                                        "PERL5OPT",   "RUBYOPT",         "RUBYLIB",    "GIT_DIR",    "NODE_OPTIONS",
                                        "NODE_PATH",  "GIT_SSH",         "CAIRN_X",    "CAIRN_MARK", "CAIRN_RUN_ID"};
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("HOME", "/somewhere", 1);
    setenv("SHARED", "inherited", 1);
    setenv("EMPTY", "", 1);
    setenv("TOKEN_SOURCE", "s3cret-value", 1);
    setenv("LDX", "stays", 1);
    for (size_t i = 0; i < ARRAY_COUNT(hooks); i++) setenv(hooks[i], "", 1);
    struct tool_env env[] = {{STR("SHARED"), STR("from the request")}, {STR("OWN"), STR("a=b c\nd")}};
    struct secret_ref secret = {STR("TOKEN"), STR("env:TOKEN_SOURCE")};
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"env", "-0", NULL});
    r.request.env = env;
    r.request.env_count = ARRAY_COUNT(env);
    r.request.secrets = &secret;
    r.request.secret_count = 1;
    struct buf got, want;
    buf_init(&got, 1 << 16);
    buf_init(&want, 1 << 16);
    sort_entries(kit_run(&r)->output, &got);
    struct str text = buf_str(&got);
    const char *identity = memmem(text.ptr, text.len, "CAIRN_MARK=2:testmark:", 22);
    CHECK(identity);
    char own[16];
    snprintf(own, sizeof(own), "%d-", (int)getpid());
    CHECK(strncmp(identity + 22, own, strlen(own)) == 0);
    char parent[TRACEPARENT_SIZE];
    trace_parent(STR("run-1"), STR("build"), 2, 3, parent);
    buf_printf(&want,
               "CAIRN_ATTEMPT=2\nCAIRN_ENGINE_ATTEMPT=3\nCAIRN_IDEMPOTENCY_KEY=run-1:build:2\n"
               "CAIRN_MARK=2:testmark:%.*s:2:3::run-1:build\nCAIRN_RUN_ID=run-1\nCAIRN_STEP_ID=build\n"
               "EMPTY=\nHOME=/somewhere\nLDX=stays\nOWN=a=b c\nd\nPATH=/usr/bin:/bin\n"
               "SHARED=from the request\nTOKEN=***\nTOKEN_SOURCE=***\nTRACEPARENT=%s\n",
               (int)strcspn(identity + 22, ":"), identity + 22, parent);
    CHECK_STR(buf_str(&got), buf_str(&want));
    buf_release(&got);
    buf_release(&want);
    kit_close();
}

static void no_descriptor_is_inherited_X7(void)
{
    int leaks[] = {open("/dev/null", O_RDONLY), open("/etc/passwd", O_RDONLY), dup2(0, 200)};
    kit_open(4);
    // 3 is the directory that ls reads.
    CHECK_STR(kit_sh(1, "ls /proc/self/fd")->output, STR("0\n1\n2\n3"));
    CHECK_STR(kit_sh(2, "readlink /proc/self/fd/0")->output, STR("/dev/null"));
    for (size_t i = 0; i < ARRAY_COUNT(leaks); i++) close(leaks[i]);
    kit_close();
}

static void closed_standard_files_of_the_engine_do_no_harm(void)
{
    kit_open(4);
    int saved = dup(0);
    close(0);
    struct kit_request r = kit_request(1, (const char *const[]){"cat", NULL});
    r.request.input = STR("through stdin");
    CHECK_STR(kit_run(&r)->output, STR("through stdin"));
    dup2(saved, 0);
    close(saved);
    kit_close();
}

static void child_has_own_session_default_signals_and_no_core(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kit_open(4);
    struct tool_result *result = kit_sh(1, "grep -E '^Sig(Blk|Ign)' /proc/self/status; ulimit -c");
    CHECK_STR(result->output, STR("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0"));
    CHECK_STR(kit_sh(2, "set -- $(cat /proc/self/stat); [ $5 = $6 ] && [ $6 = $$ ] && echo same")->output, STR("same"));
    kit_close();
}

static void input_of_a_mebibyte_arrives(void)
{
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) bytes[i] = "abcdefghijklmnopqrstuvwxyz\n"[i % 27];
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"cat", NULL});
    r.request.input = (struct str){bytes, SIZE};
    CHECK_STR(kit_run(&r)->output, r.request.input);
    CHECK(!kit.results[1].truncated);
    // A script on stdin whose commands read nothing of it.
    r = kit_request(2, (const char *const[]){"sh", NULL});
    r.request.input = STR("echo one\necho two\n");
    CHECK_STR(kit_run(&r)->output, STR("one\ntwo"));
    // Nobody reads it: no SIGPIPE, no waiting.
    r = kit_request(3, (const char *const[]){"true", NULL});
    r.request.input = (struct str){bytes, SIZE};
    CHECK(kit_run(&r)->ok);
    free(bytes);
    kit_close();
}

static void working_directory_is_that_of_the_request(void)
{
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"pwd", NULL});
    r.request.cwd = str_from(test_dir());
    CHECK_STR(kit_run(&r)->output, str_from(test_dir()));
    // A relative program is looked for there.
    char path[256];
    snprintf(path, sizeof(path), "%s/tool", test_dir());
    test_write_file(path, STR("#!/bin/sh\necho found\n"));
    chmod(path, 0755);
    r = kit_request(2, (const char *const[]){"./tool", NULL});
    r.request.cwd = str_from(test_dir());
    CHECK_STR(kit_run(&r)->output, STR("found"));
    kit_close();
}

static void ignored_sigchld_of_the_parent_loses_no_status(void)
{
    signal(SIGCHLD, SIG_IGN);
    kit_open(4);
    kit_check_fault(kit_sh(1, "exit 5"), "EXIT_NONZERO", true);
    CHECK_INT(kit.results[1].fault.exit_code, 5);
    kit_close();
}

static void a_ticket_in_use_is_refused(void)
{
    kit_open(1);
    kit_start_sh(1, "sleep 1000");
    struct kit_request r = kit_request(1, (const char *const[]){"true", NULL});
    struct error err = {0};
    r.request.argv = r.argv;
    CHECK_INT(kit.tools->ops->start(kit.tools, &r.request, &err), E_EXISTS);
    kit_close();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(success_gives_output_without_trailing_newlines),
        TEST(exit_code_and_last_line_of_stderr_are_told),
        TEST(death_by_signal_names_the_signal),
        TEST(missing_command_is_not_found_and_not_retried),
        TEST(what_cannot_be_started_is_spawn_failed),
        TEST(what_no_process_can_be_given_is_spawn_failed),
        TEST(no_descriptor_left_is_worth_another_try),
        TEST(arguments_arrive_verbatim_X1),
        TEST(environment_is_the_expected_list_X2),
        TEST(no_descriptor_is_inherited_X7),
        TEST(closed_standard_files_of_the_engine_do_no_harm),
        TEST(child_has_own_session_default_signals_and_no_core),
        TEST(input_of_a_mebibyte_arrives),
        TEST(working_directory_is_that_of_the_request),
        TEST(ignored_sigchld_of_the_parent_loses_no_status),
        TEST(a_ticket_in_use_is_refused),
    };
    return kit_main("tool_process", tests, ARRAY_COUNT(tests), argc, argv);
}
