// What a confined step can and cannot do (reliability X2 to X9, I40). The steps are programs that try.
#include "tool_kit.h"

#include "tool/internal.h"

#include <sys/prctl.h>
#include <sys/stat.h>

static struct tool_confinement confinement;

static void skip_without(enum tool_level level)
{
    struct tool_confinement wanted = {.level = level};
    struct error err = {0};
    if (tool_confinement_check(&wanted, &err)) test_skip("%s", err.message);
}

// Tools whose steps are confined to `level`; working directories are made in a directory of the test.
static void open_at(enum tool_level level)
{
    static char root[300];
    skip_without(level);
    snprintf(root, sizeof(root), "%s/work", test_dir());
    CHECK(mkdir(root, 0755) == 0 || errno == EEXIST);
    confinement.level = level;
    if (!confinement.limits.files) confinement.limits = tool_limits_default;
    confinement.work_root = str_from(root);
    kit_open_with("testmark", 8, &confinement, NULL);
}

static size_t entries_of(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    CHECK(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count - 2;
}

static void close_all_gone(void)
{
    kit_close();
    CHECK_INT(entries_of(confinement.work_root.ptr), 0);
}

static const char *self_path(void)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    CHECK(size > 0);
    path[size] = '\0';
    return path;
}

static struct tool_result *run_helper(uint64_t ticket, const char *mode, const char *argument)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){self_path(), "--helper", mode, argument, NULL});
    return kit_run(&r);
}

// The helper is this program, which is outside of what a step may see.
static void allow_helper(void)
{
    static struct str directory;
    const char *path = self_path();
    directory = (struct str){path, (size_t)(strrchr(path, '/') - path)};
    static char kept[4096];
    snprintf(kept, sizeof(kept), "%.*s", STR_ARG(directory));
    directory = str_from(kept);
    confinement.read = &directory;
    confinement.read_count = 1;
    // The sanitizers reserve more than any limit.
    confinement.limits = tool_limits_default;
    confinement.limits.memory = 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void environment_is_built_from_nothing_X2(void)
{
    static const char *const names[] = {"LD_PRELOAD",   "LD_LIBRARY_PATH", "BASH_ENV", "IFS",        "PYTHONPATH",
                                        "NODE_OPTIONS", "GIT_DIR",         "AWS_KEY",  "https_proxy"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) setenv(names[i], "leak", 1);
    open_at(TOOL_LEVEL_BASIC);
    struct kit_request r = kit_request(1, (const char *const[]){"env", NULL});
    struct tool_env env = {STR("DECLARED"), STR("yes")};
    r.request.env = &env;
    r.request.env_count = 1;
    struct tool_result *result = kit_run(&r);
    CHECK(result->ok);
    char *lines[64], *text = strndup(result->output.ptr, result->output.len), *rest = text;
    size_t count = 0;
    for (char *line; (line = strsep(&rest, "\n")) && count < ARRAY_COUNT(lines);) {
        *strchr(line, '=') = '\0';
        lines[count++] = line;
    }
    qsort(lines, count, sizeof(lines[0]), by_text);
    static const char *const want[] = {"CAIRN_ATTEMPT",
                                       "CAIRN_ENGINE_ATTEMPT",
                                       "CAIRN_IDEMPOTENCY_KEY",
                                       "CAIRN_MARK",
                                       "CAIRN_RUN_ID",
                                       "CAIRN_STEP_ID",
                                       "DECLARED",
                                       "HOME",
                                       "LANG",
                                       "PATH",
                                       "TMPDIR",
                                       "TRACEPARENT",
                                       "TZ"};
    CHECK_INT(count, ARRAY_COUNT(want));
    for (size_t i = 0; i < count; i++) CHECK_TEXT(lines[i], want[i]);
    free(text);
    CHECK_STR(kit_sh(2, "[ \"$HOME\" = \"$(pwd)\" ] && echo home")->output, STR("home"));
    close_all_gone();
}

static void no_descriptor_is_inherited_X7(void)
{
    int open_files[20];
    for (size_t i = 0; i < ARRAY_COUNT(open_files); i++) open_files[i] = open("/dev/null", O_RDONLY); // not cloexec
    open_at(TOOL_LEVEL_BASIC);
    struct kit_request r = kit_request(1, (const char *const[]){"ls", "/proc/self/fd", NULL});
    CHECK_STR(kit_run(&r)->output, STR("0\n1\n2\n3")); // 3 is the directory that is listed
    CHECK_STR(kit_sh(2, "readlink /proc/self/fd/0")->output, STR("/dev/null"));
    close_all_gone();
    for (size_t i = 0; i < ARRAY_COUNT(open_files); i++) close(open_files[i]);
}

static void limits_are_set_and_hold_X6(void)
{
    confinement.limits =
        (struct tool_limits){.memory = 64 << 20, .cpu = 1, .files = 32, .file_size = 1 << 20, .stack = 1 << 20};
    open_at(TOOL_LEVEL_BASIC);
    struct tool_result *result =
        kit_sh(1, "for r in d t n f s c; do for h in S H; do ulimit -$h$r; done; done | paste -sd' '");
    CHECK_STR(result->output, STR("65536 65536 1 1 32 32 2048 2048 1024 1024 0 0"));
    result = kit_sh(2, "exec head -c 8M /dev/zero > big"); // disk
    kit_check_fault(result, "KILLED_BY_SIGNAL", true);
    CHECK_STR(result->fault.message, STR("killed by SIGXFSZ (signal 25)"));
    CHECK(!kit_sh(3, "exec tail /dev/zero")->ok); // memory: it keeps the last line, which never ends
    CHECK(!kit_sh(4, "i=3; while exec 2>/dev/null; [ $i -lt 40 ]; do eval \"exec $i</dev/null\" || exit 1; "
                     "i=$((i+1)); done")
               ->ok); // descriptors
    struct moment_in_time before = os_now();
    kit_check_fault(kit_sh(5, "while :; do :; done"), "KILLED_BY_SIGNAL", true); // CPU
    CHECK(os_now().mono_ms - before.mono_ms < 30000);
    // The parent sets it, and may be a moment behind.
    CHECK_STR(kit_sh(6, "for i in 1 2 3 4 5 6 7 8 9; do [ $(cat /proc/self/oom_score_adj) = 500 ] && break; sleep 0.1; "
                        "done; cat /proc/self/oom_score_adj")
                  ->output,
              STR("500"));
    close_all_gone();
}

static void privileges_are_gone_for_good_X3(void)
{
    open_at(TOOL_LEVEL_BASIC);
    struct tool_result *result =
        kit_sh(1, "grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '");
    CHECK_STR(result->output, STR("CapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapAmb: 0000000000000000\n"
                                  "NoNewPrivs: 1\nSeccomp: 2"));
    close_all_gone();
}

static void dangerous_system_calls_are_refused_X5(void)
{
    allow_helper();
    open_at(TOOL_LEVEL_BASIC);
    CHECK_STR(run_helper(1, "calls", NULL)->output,
              STR("ptrace EPERM\nmount EPERM\nunshare EPERM\nclone EPERM\nclone3 ENOSYS\nbpf EPERM\nkeyctl EPERM\n"
                  "userfaultfd EPERM\nio_uring EPERM\nperf EPERM\nkexec EPERM\nmodule EPERM\nunix done\ntcp done\n"
                  "udp6 done\nnetlink done"));
    close_all_gone();
}

static void full_confinement_has_no_network_X4(void)
{
    allow_helper();
    open_at(TOOL_LEVEL_FULL);
    struct str output = run_helper(1, "calls", NULL)->output;
    CHECK(str_ends(output, STR("unix EAFNOSUPPORT\ntcp EAFNOSUPPORT\nudp6 EAFNOSUPPORT\nnetlink EAFNOSUPPORT")));
    close_all_gone();
    confinement.unix_sockets = true;
    open_at(TOOL_LEVEL_FULL);
    output = run_helper(2, "calls", NULL)->output;
    CHECK(str_ends(output, STR("unix done\ntcp EAFNOSUPPORT\nudp6 EAFNOSUPPORT\nnetlink EAFNOSUPPORT")));
    close_all_gone();
    confinement.unix_sockets = false;
}

static void files_outside_are_out_of_reach_X4(void)
{
    char secret[300], artifacts[300], script[2000];
    snprintf(secret, sizeof(secret), "%s/secret", test_dir());
    snprintf(artifacts, sizeof(artifacts), "%s/artifacts", test_dir());
    test_write_file(secret, STR("top"));
    CHECK(mkdir(artifacts, 0700) == 0);
    open_at(TOOL_LEVEL_FILES);
    snprintf(script, sizeof(script),
             "cat %s && echo read; cat /etc/shadow >/dev/null && echo shadow; ls /root && echo root; ls / && echo top; "
             "echo x > %s.new && echo wrote; echo x > /tmp/cairn-confine-probe && echo tmp; ln -s %s link; "
             "cat link && echo link; mknod dev c 1 3 && echo node; echo x > /proc/self/comm && echo proc; "
             "echo mine > here && cat here; mkdir -p a/b && mv here a/b/ && cat a/b/here; "
             "echo art > %s/out && echo kept; t=$(mktemp) && echo temp; echo null > /dev/null && python3 -c "
             "'print(\"python\")'",
             secret, secret, secret, artifacts);
    struct kit_request r = kit_request(1, (const char *const[]){"sh", "-c", script, NULL});
    r.request.artifacts_dir = str_from(artifacts);
    struct tool_result *result = kit_run(&r);
    CHECK_STR(result->output, STR("mine\nmine\nkept\ntemp\npython"));
    CHECK(result->ok);
    close_all_gone();
    CHECK(access("/tmp/cairn-confine-probe", F_OK) < 0);
    CHECK_STR(test_read_file(secret), STR("top"));
}

static void further_paths_are_configuration_X4(void)
{
    char readable[300], writable[300], script[2000];
    snprintf(readable, sizeof(readable), "%s/in", test_dir());
    snprintf(writable, sizeof(writable), "%s/out", test_dir());
    CHECK(mkdir(readable, 0700) == 0 && mkdir(writable, 0700) == 0);
    snprintf(script, sizeof(script), "%s/x", readable);
    test_write_file(script, STR("given"));
    struct str in = str_from(readable), out = str_from(writable);
    confinement = (struct tool_confinement){.read = &in, .read_count = 1, .write = &out, .write_count = 1};
    open_at(TOOL_LEVEL_FILES);
    snprintf(script, sizeof(script), "cat %s/x; echo y > %s/x && echo wrong; cp %s/x %s/y && cat %s/y", readable,
             readable, readable, writable, writable);
    CHECK_STR(kit_sh(1, script)->output, STR("givengiven"));
    close_all_gone();
}

static void check_engine_is_out_of_reach(void)
{
    char engine[32];
    snprintf(engine, sizeof(engine), "%d", (int)getpid());
    struct tool_result *result = run_helper(1, "poke", engine);
    CHECK(result->ok);
    CHECK_STR(result->output, STR("0"));
}

static void engine_cannot_be_read_signalled_or_traced_X3(void)
{
    setenv("ENGINE_TOKEN", "only the engine knows", 1);
    allow_helper();
    open_at(TOOL_LEVEL_FULL);
    CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    check_engine_is_out_of_reach();
    CHECK(!kit_sh(2, "kill -0 $PPID")->ok);
    CHECK(kit_sh(3, "sleep 60 & kill $! && wait $!; [ $? = 143 ]")->ok); // its own it may
    close_all_gone();
    CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
}

static void another_user_runs_the_step_X3(void)
{
    if (geteuid() != 0) test_skip("only root can run steps as another user");
    char artifacts[300];
    snprintf(artifacts, sizeof(artifacts), "%s/artifacts", test_dir());
    CHECK(mkdir(artifacts, 0755) == 0);
    CHECK(chmod(test_dir(), 0755) == 0); // the user must be able to come there
    confinement = (struct tool_confinement){.run_as = true, .uid = 65534, .gid = 65534};
    open_at(TOOL_LEVEL_BASIC);
    struct kit_request r = kit_request(
        1, (const char *const[]){"sh", "-c",
                                 "id -u; id -g; id -G; echo x > file && stat -c '%u %a' . && echo y > "
                                 "\"$ART\"/z && kill -0 $PPID || sed -n 's/^Max processes *\\([0-9]*\\) .*/\\1/p' "
                                 "/proc/self/limits",
                                 NULL});
    struct tool_env env = {STR("ART"), str_from(artifacts)};
    r.request.env = &env;
    r.request.env_count = 1;
    r.request.artifacts_dir = str_from(artifacts);
    struct tool_result *result = kit_run(&r);
    CHECK_STR(result->fault.message, STR(""));
    CHECK_STR(result->output, STR("65534\n65534\n65534\n65534 700\n512"));
    // It dies with its engine all the same, and with its step.
    kit_start_sh(2, "setsid sleep 88000031 & exec sleep 88000031");
    kit_await_count("88000031", 2);
    kit.tools->ops->cancel(kit.tools, 2, 0);
    kit_check_fault(kit_wait(2), "CANCELLED", false);
    CHECK_INT(kit_count("88000031"), 0);
    close_all_gone();
}

static void a_level_that_is_not_there_refuses_the_step_X4(void)
{
    char flag[300], script[320];
    snprintf(flag, sizeof(flag), "%s/started", test_dir());
    snprintf(script, sizeof(script), "touch %s", flag);
    CHECK(chmod(test_dir(), 0777) == 0);
    if (geteuid() == 0) CHECK(setresuid(65534, 65534, 65534) == 0);
    confinement = (struct tool_confinement){
        .level = TOOL_LEVEL_BASIC, .run_as = true, .uid = 1, .gid = 1, .limits = tool_limits_default};
    kit_open_with("testmark", 8, &confinement, NULL);
    struct tool_result *result = kit_sh(1, script);
    kit_check_fault(result, "CONFINEMENT_UNAVAILABLE", false);
    CHECK_STR(result->fault.message, STR("steps cannot run as uid 1: only root may do that"));
    CHECK_STR(result->fault.category, STR("infrastructure"));
    kit_close();
    CHECK(access(flag, F_OK) < 0);
}

static void working_directory_is_fresh_private_and_removed_X9(void)
{
    char precious[300], script[2000];
    snprintf(precious, sizeof(precious), "%s/precious", test_dir());
    test_write_file(precious, STR("still here"));
    open_at(TOOL_LEVEL_BASIC);
    CHECK_STR(kit_sh(1, "ls -A; stat -c %a .; echo x > left")->output, STR("700"));
    snprintf(script, sizeof(script),
             "ls -A; ln -s %s to-dir; ln -s %s to-file; ln -s / root; mkdir -p a/b c; ln -s %s a/b/up; "
             "touch a/f a/b/f; mkfifo p; mkdir locked; touch locked/x; chmod 000 locked a/b; "
             "i=0; while [ $i -lt 1500 ]; do mkdir d && cd -P d || exit 1; i=$((i+1)); done; echo deep",
             test_dir(), precious, test_dir());
    CHECK_STR(kit_sh(2, script)->output, STR("deep"));
    CHECK_INT(entries_of(confinement.work_root.ptr), 0);
    kit_check_fault(kit_sh(3, "touch x; exit 1"), "EXIT_NONZERO", true);
    struct kit_request r = kit_request(4, (const char *const[]){"/no/such/program", NULL});
    kit_check_fault(kit_run(&r), "COMMAND_NOT_FOUND", false);
    kit_start_sh(5, "touch x; exec sleep 88000032");
    kit_await_count("88000032", 1);
    close_all_gone(); // in the middle of a step
    CHECK_STR(test_read_file(precious), STR("still here"));
}

// A directory that was given is the step's, and stays.
static void hold_the_first(struct kit *k, struct tool_result *result)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&k->mutex);
    while (result->ticket == 1 && !k->delivered[2] && !pthread_cond_timedwait(&k->changed, &k->mutex, &until)) continue;
    pthread_mutex_unlock(&k->mutex);
}

static void start_for(uint64_t ticket, const char *tenant, const char *script, size_t artifacts)
{
    static const struct artifact_decl declared = {.path = {"f", 1}};
    struct kit_request r = kit_request(ticket, (const char *const[]){"sh", "-c", script, NULL});
    r.request.tenant = str_from(tenant);
    r.request.artifacts = &declared;
    r.request.artifact_count = artifacts;
    kit_start(&r);
}

// The first result is handed over for as long as the second one has not come: what one step leaves behind keeps no other from ending.
static void check_others_end_meanwhile(const char *script, size_t artifacts)
{
    kit.on_result = hold_the_first;
    open_at(TOOL_LEVEL_BASIC);
    start_for(1, "large", script, artifacts);
    start_for(2, "small", script, artifacts);
    start_for(3, "large", script, artifacts);
    kit_wait_total(3);
    for (int i = 1; i <= 3; i++) CHECK_INT(kit.delivered[i], 1);
    CHECK(kit.results[1].ok && kit.results[2].ok && kit.results[3].ok);
    close_all_gone();
}

static void many_files_that_a_step_leaves_keep_nobody_waiting_X6(void)
{
    check_others_end_meanwhile("mkdir d; i=0; while [ $i -lt 1000 ]; do echo >d/$i; i=$((i+1)); done", 0);
}

static void artifacts_of_a_step_keep_nobody_waiting_X6(void)
{
    check_others_end_meanwhile("true", 1);
}

static void a_given_directory_stays_X9(void)
{
    char path[300];
    open_at(TOOL_LEVEL_FILES);
    struct kit_request r = kit_request(1, (const char *const[]){"sh", "-c", "echo kept > file; echo $HOME", NULL});
    r.request.home = str_from(test_dir());
    CHECK(!str_eq(kit_run(&r)->output, str_from(test_dir()))); // named by a document: nothing is the step's by that
    close_all_gone();
    confinement.trusts_home = true;
    open_at(TOOL_LEVEL_FILES);
    r.request.ticket = 2;
    CHECK_STR(kit_run(&r)->output, str_from(test_dir()));
    close_all_gone();
    confinement.trusts_home = false;
    snprintf(path, sizeof(path), "%s/file", test_dir());
    CHECK_STR(test_read_file(path), STR("kept\n"));
}

// setsid, double fork, a daemon, SIGTERM ignored, a stopped child, a wiped environment: all at once, many times.
static void cancel_of_a_confined_step_leaves_nothing_behind_X8(void)
{
    enum { TRIES = 100 };
    allow_helper();
    open_at(TOOL_LEVEL_AUTO);
    char script[5000];
    snprintf(script, sizeof(script), "%s --helper zoo 88000033; echo up; exec sleep 88000033", self_path());
    for (uint64_t i = 1; i <= TRIES; i++) {
        char up[32];
        kit_start_sh(i, script);
        snprintf(up, sizeof(up), "out %d up", (int)i);
        kit_await_line(up);
        kit.tools->ops->cancel(kit.tools, i, i % 2 ? 0 : 5);
        kit_check_fault(kit_wait(i), "CANCELLED", false);
        CHECK_INT(kit_count("88000033"), 0);
    }
    close_all_gone();
}

static struct arena arena;

static enum code parse(const char *text, struct tool_confinement *out, struct error *err)
{
    struct json config;
    arena_reset(&arena);
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &config, err), err);
    return tool_confinement_parse(&config, &arena, out, err);
}

static void confinement_is_read_from_a_configuration(void)
{
    struct tool_confinement c;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(parse("{}", &c, &err), &err);
    CHECK_INT(c.level, TOOL_LEVEL_AUTO);
    CHECK_INT(c.limits.files, 256);
    CHECK_OK(
        parse("{\"level\":\"full\",\"limits\":{\"memoryBytes\":7,\"files\":9,\"processes\":0},\"runAs\":{\"uid\":5,"
              "\"gid\":6},\"path\":\"/p\",\"read\":[\"/a\",\"/b\"],\"write\":[\"/c\"],\"workRoot\":\"/w\"}",
              &c, &err),
        &err);
    CHECK(c.level == TOOL_LEVEL_FULL && c.limits.memory == 7 && c.limits.files == 9 && c.limits.processes == 0);
    CHECK(c.limits.stack == tool_limits_default.stack && c.run_as && c.uid == 5 && c.gid == 6);
    CHECK(c.read_count == 2 && c.write_count == 1 && str_is(c.path, "/p") && str_is(c.work_root, "/w"));
    static const char *const wrong[] = {"[]",
                                        "{\"level\":\"some\"}",
                                        "{\"levle\":\"full\"}",
                                        "{\"limits\":{\"files\":-1}}",
                                        "{\"limits\":{\"file\":1}}",
                                        "{\"runAs\":{\"uid\":0,\"gid\":5}}",
                                        "{\"read\":[\"relative\"]}",
                                        "{\"workRoot\":\"tmp\"}"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error why = {0};
        CHECK_INT(parse(wrong[i], &c, &why), E_INVALID);
        CHECK(why.message[0]);
    }
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(environment_is_built_from_nothing_X2),
        TEST(no_descriptor_is_inherited_X7),
        TEST(limits_are_set_and_hold_X6),
        TEST(privileges_are_gone_for_good_X3),
        TEST(dangerous_system_calls_are_refused_X5),
        TEST(full_confinement_has_no_network_X4),
        TEST(files_outside_are_out_of_reach_X4),
        TEST(further_paths_are_configuration_X4),
        TEST(engine_cannot_be_read_signalled_or_traced_X3),
        TEST(another_user_runs_the_step_X3),
        TEST(a_level_that_is_not_there_refuses_the_step_X4),
        TEST(working_directory_is_fresh_private_and_removed_X9),
        TEST(many_files_that_a_step_leaves_keep_nobody_waiting_X6),
        TEST(artifacts_of_a_step_keep_nobody_waiting_X6),
        TEST(a_given_directory_stays_X9),
        TEST(cancel_of_a_confined_step_leaves_nothing_behind_X8),
        TEST(confinement_is_read_from_a_configuration),
    };
    return kit_main("tool_confine", tests, ARRAY_COUNT(tests), argc, argv);
}
