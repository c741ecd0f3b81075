// The log of an attempt: what is in it, what is masked, where it stops, what is not made.
#include "base/civil.h"
#include "tool_kit.h"

#include <sys/stat.h>

static char directory[64];

static const char *log_name(const char *name)
{
    static char paths[4][128];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/deep/er/%s", directory, name);
    return path;
}

static struct kit_request logged(uint64_t ticket, const char *script, const char *path)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){"sh", "-c", script, NULL});
    r.request.log = str_from(path);
    r.request.log_max = 1 << 20;
    return r;
}

// The lines of a log without their times: "out text\n"; each must parse.
static struct str lines_of(const char *path, struct arena *arena)
{
    struct error err = {0};
    struct str text;
    struct buf out;
    CHECK_OK(os_read_file(path, 64 << 20, arena, &text, &err), &err);
    CHECK(str_ends(text, STR("\n")));
    buf_init(&out, 64 << 20);
    while (text.len) {
        struct tool_log_line line;
        struct str whole = str_cut(text, '\n', &text);
        CHECK(tool_log_parse(whole, &line));
        CHECK(line.at_ms > 1700000000000);
        buf_add(&out, str_slice(whole, CIVIL_SIZE, whole.len));
        buf_byte(&out, '\n');
    }
    struct str copy = arena_copy(arena, buf_str(&out));
    buf_release(&out);
    return copy;
}

static void a_log_holds_lines_streams_and_the_end(void)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    kit_open(4);
    const char *path = log_name("a.1.1.log");
    struct kit_request r =
        logged(1, "echo one; sleep 0.05; echo two >&2; sleep 0.05; printf 'cr\\r\\n\\n'; printf open; exit 3", path);
    CHECK(!kit_run(&r)->ok);
    CHECK_STR(lines_of(path, &arena), STR("out one\nerr two\nout cr\nout \nout+ open\nend EXIT_NONZERO exit 3: two\n"));
    struct stat status;
    CHECK_INT(stat(path, &status), 0);
    CHECK_INT(status.st_mode & 0777, 0600);
    kit_close();
    arena_release(&arena);
}

static void a_silent_step_leaves_no_file(void)
{
    kit_open(4);
    struct kit_request r = logged(1, "exit 0", log_name("silent.1.1.log"));
    CHECK(kit_run(&r)->ok);
    CHECK_INT(access(log_name("silent.1.1.log"), F_OK), -1);
    kit_close();
}

static void a_log_is_written_while_the_step_runs(void)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    kit_open(4);
    const char *path = log_name("live.1.1.log");
    struct kit_request r = logged(1, "echo up; exec sleep 1000", path);
    kit_start(&r);
    struct stat status = {0};
    for (int i = 0; i < 2000 && (stat(path, &status) || !status.st_size); i++) usleep(5000);
    CHECK_STR(lines_of(path, &arena), STR("out up\n"));
    kit.tools->ops->cancel(kit.tools, 1, 0);
    kit_wait(1);
    CHECK_STR(lines_of(path, &arena), STR("out up\nend CANCELLED cancelled\n"));
    kit_close();
    arena_release(&arena);
}

static void secrets_are_masked_in_logs(void)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    CHECK_INT(setenv("LOG_TEST_TOKEN", "swordfish-1234", 1), 0);
    kit_open(4);
    const char *path = log_name("secret.1.1.log");
    struct kit_request r =
        logged(1, "printf 'a sword'; sleep 0.05; echo \"fish-1234 $TOKEN b\"; echo $TOKEN >&2", path);
    struct secret_ref secret = {.name = STR("TOKEN"), .ref = STR("env:LOG_TEST_TOKEN")};
    r.request.secrets = &secret;
    r.request.secret_count = 1;
    CHECK(kit_run(&r)->ok);
    struct str text = lines_of(path, &arena);
    CHECK(!memmem(text.ptr, text.len, "swordfish", 9));
    CHECK(memmem(text.ptr, text.len, "out a *** *** b\n", 16));
    CHECK(memmem(text.ptr, text.len, "err ***\n", 8));
    kit_close();
    arena_release(&arena);
}

static void a_log_stops_at_its_limit_with_a_mark(void)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    kit_open(4);
    const char *path = log_name("cut.1.1.log");
    struct kit_request r = logged(1, "yes abcdefgh | head -c 3000000; echo late >&2", path);
    r.request.log_max = 10000;
    CHECK(kit_run(&r)->ok);
    struct stat status;
    CHECK_INT(stat(path, &status), 0);
    CHECK(status.st_size <= 10000 && status.st_size > 9000);
    struct str text = lines_of(path, &arena);
    const char *cut = memmem(text.ptr, text.len, "\ncut at ", 8);
    CHECK(cut != NULL);
    CHECK(strstr(cut, "\nend exit 0\n") != NULL);
    CHECK(!memmem(text.ptr, text.len, "late", 4));
    kit_close();
    arena_release(&arena);
}

static void long_lines_and_bytes_that_are_no_text(void)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    kit_open(4);
    const char *path = log_name("long.1.1.log");
    struct kit_request r =
        logged(1, "printf 'x%.0s' $(seq 8191); printf '\\303\\244y\\n'; printf 'a\\377\\000b\\n'", path);
    CHECK(kit_run(&r)->ok);
    struct str text = lines_of(path, &arena);
    CHECK(str_utf8(text));
    CHECK(str_starts(text, STR("out+ xxxx")));
    CHECK(str_ends(text, STR("x\nout \xC3\xA4y\nout a\xEF\xBF\xBD\xEF\xBF\xBD"
                             "b\nend exit 0\n"))); // the character at the border is whole
    kit_close();
    arena_release(&arena);
}

static void a_log_that_cannot_be_written_stops_nothing(void)
{
    kit_open(4);
    struct kit_request r = logged(1, "echo x; exit 0", "/dev/null/not/here.log");
    CHECK(kit_run(&r)->ok);
    CHECK_STR(kit.results[1].output, STR("x"));
    kit_close();
}

static void names_are_plain_and_differ(void)
{
    char name[TOOL_LOG_NAME_SIZE], other[TOOL_LOG_NAME_SIZE], long_path[400];
    tool_log_name(STR("loop[2].tick"), 1, 3, name);
    CHECK_STR(str_from(name), STR("loop[2].tick.1.3.log"));
    tool_log_name(STR("../a b/%"), 1, 1, name);
    CHECK_STR(str_from(name), STR("%2E.%2Fa%20b%2F%25.1.1.log"));
    memset(long_path, '/', sizeof(long_path));
    for (size_t len = 1; len < sizeof(long_path); len++) {
        tool_log_name((struct str){long_path, len}, 4000000000u, 4000000000u, name);
        tool_log_name((struct str){long_path, len + 1}, 4000000000u, 4000000000u, other);
        CHECK(strlen(name) < 220);
        CHECK(strcmp(name, other) != 0);
        CHECK(strchr(name, '/') == NULL);
    }
    struct tool_log_line line;
    CHECK(!tool_log_parse(STR(""), &line));
    CHECK(!tool_log_parse(STR("2026-02-11T17:00:00.000Z what x"), &line));
    CHECK(!tool_log_parse(STR("yesterday out x"), &line));
    CHECK(tool_log_parse(STR("2026-02-11T17:00:00.000Z err+  two blanks"), &line));
    CHECK(line.open && line.kind == TOOL_LOG_ERR);
    CHECK_STR(line.text, STR(" two blanks"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_log_holds_lines_streams_and_the_end),      TEST(a_silent_step_leaves_no_file),
        TEST(a_log_is_written_while_the_step_runs),       TEST(secrets_are_masked_in_logs),
        TEST(a_log_stops_at_its_limit_with_a_mark),       TEST(long_lines_and_bytes_that_are_no_text),
        TEST(a_log_that_cannot_be_written_stops_nothing), TEST(names_are_plain_and_differ),
    };
    char command[128];
    snprintf(directory, sizeof(directory), "/tmp/cairn-tool-log-XXXXXX");
    if (!mkdtemp(directory)) return 1;
    int code = kit_main("tool_log", tests, ARRAY_COUNT(tests), argc, argv);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) == 0 ? code : 1;
}
