// What comes back of what a process writes: limits, bytes that are no text, live lines.
#include "tool_kit.h"

static void output_beyond_the_limit_is_dropped_and_told(void)
{
    kit_open(4);
    struct kit_request r =
        kit_request(1, (const char *const[]){"sh", "-c", "yes abcdefg | head -c 5000000; echo e >&2", NULL});
    r.request.output_max = 1000;
    struct tool_result *result = kit_run(&r);
    CHECK(result->ok);
    CHECK(result->truncated);
    CHECK_INT(result->output.len, 999); // the limit falls behind a newline, which is cut
    CHECK(str_starts(result->output, STR("abcdefg\nabcdefg\n")));
    r = kit_request(2, (const char *const[]){"printf", "1234567890", NULL});
    r.request.output_max = 10;
    CHECK_STR(kit_run(&r)->output, STR("1234567890"));
    CHECK(!kit.results[2].truncated);
    r = kit_request(3, (const char *const[]){"printf", "1234567890", NULL});
    r.request.output_max = 9;
    CHECK_STR(kit_run(&r)->output, STR("123456789"));
    CHECK(kit.results[3].truncated);
    r = kit_request(4, (const char *const[]){"echo", "x", NULL});
    r.request.output_max = 0;
    CHECK_STR(kit_run(&r)->output, STR(""));
    CHECK(kit.results[4].truncated);
    kit_close();
}

// A2: all of it, masked, in a file beneath the directory; no link that a step left there is followed.
static void long_output_is_a_file_where_it_is_asked_for(void)
{
    kit_open(4);
    char dir[] = "/tmp/cairn-spill-XXXXXX", path[128], bytes[64];
    CHECK(mkdtemp(dir));
    static const struct artifact_decl file = {.path = STR_INIT("outputs/a.txt")};
    static const struct secret_value hidden = {.name = STR_INIT("S"), .value = STR_INIT("topsecret")};
    const char *const argv[] = {"sh", "-c", 
                                "ln -s /dev/null $0/x; mkdir $0/outputs; ln -s /etc/passwd $0/outputs/a.txt; "
                                "printf 12345topsecret67890",
                                dir, NULL};
    for (size_t max = 4; max <= 40; max += 36) {
        struct kit_request r = kit_request(max, argv);
        r.request.output_max = max;
        r.request.overflow = OVERFLOW_ARTIFACT;
        r.request.artifacts_dir = str_from(dir);
        r.request.artifacts = &file;
        r.request.artifact_count = 1;
        r.request.hidden = &hidden;
        r.request.hidden_count = 1;
        struct tool_result *result = kit_run(&r);
        CHECK_INT(result->spilled, max == 4);
        CHECK_INT(result->output_size, 13);
    }
    snprintf(path, sizeof(path), "%s/outputs/a.txt", dir);
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    CHECK(fd >= 0);
    ssize_t got = read(fd, bytes, sizeof(bytes));
    CHECK_STR(((struct str){bytes, got > 0 ? (size_t)got : 0}), STR("12345***67890"));
    close(fd);
    CHECK_INT(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/outputs", dir);
    CHECK_INT(rmdir(path), 0);
    snprintf(path, sizeof(path), "%s/x", dir);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(dir), 0);
    // No room to keep it: the attempt has no output.
    struct kit_request r = kit_request(50, (const char *const[]){"echo", "12345", NULL});
    r.request.output_max = 2;
    r.request.overflow = OVERFLOW_ARTIFACT;
    r.request.artifacts_dir = STR("/proc/nowhere");
    r.request.artifacts = &file;
    r.request.artifact_count = 1;
    struct tool_result *result = kit_run(&r);
    CHECK(!result->ok && !result->spilled);
    CHECK_STR(result->fault.code, STR("PAYLOAD_TOO_LARGE"));
    CHECK(str_starts(result->fault.message, STR("its output has 6 bytes, above the limit of 2, and it could not be kept")));
    kit_close();
}

static void limit_never_cuts_a_character(void)
{
    kit_open(4);
    for (uint64_t max = 1; max <= 12; max++) {
        struct kit_request r =
            kit_request(max, (const char *const[]){"printf", "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z", NULL});
        r.request.output_max = (size_t)max;
        struct tool_result *result = kit_run(&r);
        static const size_t want[] = {1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
        CHECK(str_utf8(result->output));
        CHECK_INT(result->output.len, want[max - 1]);
        CHECK_INT(result->truncated, max < 11);
    }
    kit_close();
}

static void bytes_that_are_no_text_are_replaced(void)
{
    kit_open(4);
    struct tool_result *result = kit_sh(1, "printf 'a\\000b\\377c\\303\\244\\303'; printf '\\001\\200' >&2; exit 1");
    CHECK_STR(result->output, STR("a\xEF\xBF\xBD"
                                  "b\xEF\xBF\xBD"
                                  "c\xC3\xA4\xEF\xBF\xBD"));
    CHECK_STR(result->fault.detail, STR("\x01\xEF\xBF\xBD"));
    CHECK(str_utf8(result->fault.message));
    struct kit_request r = kit_request(2, (const char *const[]){"head", "-c", "100000", "/dev/urandom", NULL});
    r.request.output_max = 50000;
    result = kit_run(&r);
    CHECK(str_utf8(result->output));
    CHECK(result->output.len <= 50000 && result->output.len > 49990);
    CHECK(str_find(result->output, '\0', 0) == result->output.len);
    CHECK(result->truncated);
    kit_close();
}

static void detail_is_the_end_of_stderr(void)
{
    kit_open(4);
    struct tool_result *result =
        kit_sh(1, "seq 1 100000 >&2; printf '\\303\\244\\n%.0s' $(seq 1 3000) >&2; echo last >&2; exit 1");
    CHECK(result->fault.detail.len <= 4096 && result->fault.detail.len > 4000);
    CHECK(str_utf8(result->fault.detail));
    CHECK(str_ends(result->fault.detail, STR("\xC3\xA4\nlast")));
    CHECK_STR(result->fault.message, STR("exit 1: last"));
    kit_close();
}

static void lines_are_shown_while_they_come(void)
{
    kit_open(4);
    kit_start_sh(1, "echo one; echo two >&2; printf 'thr'; printf 'ee\\r\\n'; exec sleep 1000");
    kit_await_line("out 1 one\n");
    kit_await_line("err 1 two\n");
    kit_await_line("out 1 three\n");
    CHECK_INT(kit.delivered[1], 0); // while it still runs
    kit.tools->ops->cancel(kit.tools, 1, 1000);
    kit_wait(1);
    kit_close();
}

static void nobody_needs_to_watch(void)
{
    struct error err = {0};
    struct tool_options options = {.mark = "m", .process_max = 1, .deliver = kit_deliver, .context = &kit};
    CHECK_OK(tools_open(&options, &kit.tools, &err), &err);
    buf_init(&kit.lines, 0);
    CHECK_STR(kit_sh(1, "echo one; echo two")->output, STR("one\ntwo"));
    kit_close();
}

static void last_line_needs_no_newline_and_long_ones_are_cut(void)
{
    kit_open(4);
    CHECK(kit_sh(1, "head -c 10000 /dev/zero | tr '\\0' x; echo; echo; printf 'short'")->ok);
    struct str rest = buf_str(&kit.lines);
    struct str line = str_cut(rest, '\n', &rest);
    CHECK_INT(line.len, 4096 + 6);
    CHECK_STR(rest, STR("out 1 \nout 1 short\n"));
    CHECK_INT(kit.results[1].output.len, 10000 + 2 + 5);
    kit_close();
}

static void output_of_a_background_process_is_no_reason_to_wait(void)
{
    kit_open(4);
    struct tool_result *result = kit_sh(1, "echo now; (sleep 1000; echo late) & exit 0");
    CHECK(result->ok);
    CHECK_STR(result->output, STR("now"));
    CHECK(result->duration_ms < 5000);
    kit_close();
}

static void both_streams_are_drained_at_once(void)
{
    kit_open(4);
    const char *script =
        "i=0; while [ $i -lt 400 ]; do head -c 1000 /dev/zero; head -c 1000 /dev/zero >&2; i=$((i+1)); done";
    struct kit_request r = kit_request(1, (const char *const[]){"sh", "-c", script, NULL});
    r.request.output_max = 400 * 3000;
    CHECK_INT(kit_run(&r)->output.len, 400 * 1000 * 3);
    kit_close();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(output_beyond_the_limit_is_dropped_and_told),
        TEST(long_output_is_a_file_where_it_is_asked_for),
        TEST(limit_never_cuts_a_character),
        TEST(bytes_that_are_no_text_are_replaced),
        TEST(detail_is_the_end_of_stderr),
        TEST(lines_are_shown_while_they_come),
        TEST(nobody_needs_to_watch),
        TEST(last_line_needs_no_newline_and_long_ones_are_cut),
        TEST(output_of_a_background_process_is_no_reason_to_wait),
        TEST(both_streams_are_drained_at_once),
    };
    return kit_main("tool_output", tests, ARRAY_COUNT(tests), argc, argv);
}
