// Secrets reach the process and nothing else (S1, S2, I36): where they come from, and every form in which they are masked.
#include "tool_kit.h"

#include "tool/internal.h"

// Masks `text` in pieces cut at `cut` (0: in one piece).
static struct str mask_in_two(const char *secret, struct str text, size_t cut, struct buf *out)
{
    struct arena arena;
    arena_init(&arena, 4096, 64 << 20);
    struct secret_value value = {STR("X"), str_from(secret)};
    struct mask *mask = mask_new(&value, 1, &arena);
    CHECK(mask);
    struct mask_stream stream;
    mask_stream_init(&stream, mask);
    buf_clear(out);
    if (cut) mask_feed(&stream, str_slice(text, 0, cut), false, out);
    mask_feed(&stream, str_slice(text, cut, text.len), false, out);
    mask_feed(&stream, STR(""), true, out);
    mask_stream_release(&stream);
    mask_wipe(mask);
    arena_release(&arena);
    return buf_str(out);
}

static void check_mask(const char *secret, struct str text, const char *want)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    for (size_t cut = 0; cut < text.len; cut++) CHECK_STR(mask_in_two(secret, text, cut, &out), str_from(want));
    buf_release(&out);
}

static void plain_form_is_masked_wherever_it_is_cut_S2(void)
{
    check_mask("hunter22", STR("hunter22"), "***");
    check_mask("hunter22", STR("a hunter22 b hunter22hunter22 hunter2 2"), "a *** b ****** hunter2 2");
    check_mask("abab", STR("xababab y"), "x*** y"); // overlapping matches become one
    check_mask("four", STR("four fou\nr"), "*** fou\nr");
    check_mask("abc", STR("abc stays: too short"), "abc stays: too short");
}

static void encoded_forms_are_masked_S2(void)
{
    // The values are written out, made by base64(1), xxd(1), jq(1) and python.
    check_mask("s3cr3t/pass word+1", STR("czNjcjN0L3Bhc3Mgd29yZCsx"), "***");
    check_mask("hunter2222", STR("aHVudGVyMjIyMg=="), "***");
    check_mask("hunter2222", STR("aHVudGVyMjIyMg"), "***");
    check_mask("hunter2222", STR("eGh1bnRlcjIyMjI="), "eG***");  // behind one byte
    check_mask("hunter2222", STR("eHlodW50ZXIyMjIy"), "eHl***"); // behind two
    check_mask("hunter2222", STR("eHlodW50ZXIyMjIyenp6"), "eHl***enp6");
    check_mask("~~~?!?>>>~~~", STR("fn5-PyE_Pj4-fn5-"), "***"); // the other alphabet
    check_mask("s3cr3t/pass word+1", STR("q=s3cr3t%2Fpass%20word%2B1&x"), "q=***&x");
    check_mask("s3cr3t/pass word+1", STR("q=s3cr3t%2fpass+word%2b1&x"), "q=***&x");
    check_mask("s3cr3t/pass word+1", STR("q=s3cr3t/pass%20word+1&x"), "q=***&x");
    check_mask("a\"b\\c\nd\te", STR("{\"k\":\"a\\\"b\\\\c\\nd\\te\"}"), "{\"k\":\"***\"}");
    check_mask("a/b/c/d", STR("\"a\\/b\\/c\\/d\""), "\"***\"");
    check_mask("p\xC3\xA4ss\xF0\x9F\x98\x80", STR("\"p\\u00e4ss\\ud83d\\uDE00\""), "\"***\"");
    check_mask("p\xC3\xA4ss\xF0\x9F\x98\x80", STR("p%C3%A4ss%f0%9f%98%80"), "***");
    // JSON in JSON, and an address in an address.
    check_mask("a\"b\\c", STR("{\"k\":\"{\\\"v\\\":\\\"a\\\\\\\"b\\\\\\\\c\\\"}\"}"), "{\"k\":\"{\\\"v\\\":\\\"***\\\"}\"}");
    check_mask("s3cr3t/pass word+1", STR("u=q%3Ds3cr3t%252Fpass%2520word%252B1"), "u=q%3D***");
    check_mask("hunter22", STR("68756e7465723232"), "***");
    check_mask("hunter22", STR("68756E7465723232"), "***");
    check_mask("hunter22", STR("68:75:6e:74:65:72:32:32"), "***");
    check_mask("hunter22", STR("h\0u\0n\0t\0e\0r\0002\0002\0"), "***");
    check_mask("hunter22", STR("\0h\0u\0n\0t\0e\0r\0002\0002"), "***");
}

static void wrapped_and_multiline_forms_are_masked_S2(void)
{
    check_mask("hunter2222", STR("aHVudG\nVyMjIyMg=="), "***");
    check_mask("hunter2222", STR("aHVudGVy\r\n  MjIyMg=="), "***");
    check_mask("hunter2222", STR("aH\nVudGVyMjIyMg=="), "aH\nV***"); // a wrap in the first characters
    check_mask("-----KEY-----\nabcdefgh\nijklmnop\n-----END-----",
               STR("x\n-----KEY-----\nabcdefgh\nijklmnop\n-----END-----\ny"), "x\n***\ny");
    check_mask("-----KEY-----\nabcdefgh\nijklmnop\n-----END-----", STR("only ijklmnop here"), "only *** here");
    check_mask("line one\nline two", STR("{\"k\":\"line one\\nline two\"}"), "{\"k\":\"***\"}");
}

static void ordinary_text_passes_unchanged(void)
{
    struct buf text, out;
    buf_init(&text, 1 << 20);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 2000; i++)
        buf_printf(&text, "line %d of 2000: %%41 \\n \\u0041 c2VjcmV0 68756e 100%% done\n", i);
    CHECK_STR(mask_in_two("hunter22", buf_str(&text), 77, &out), buf_str(&text));
    buf_release(&text);
    buf_release(&out);
}

static struct tool_result *run_with_secret(uint64_t ticket, const char *script, const char *ref)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){"bash", "-c", script, NULL});
    struct secret_ref secret = {STR("TOKEN"), str_from(ref)};
    r.request.secrets = &secret;
    r.request.secret_count = 1;
    return kit_run(&r);
}

static void secrets_come_from_environment_and_files_S1(void)
{
    char path[256], ref[300];
    setenv("SOURCE", "hunter22", 1);
    snprintf(path, sizeof(path), "%s/secret", test_dir());
    test_write_file(path, STR("from a file\n\n"));
    snprintf(ref, sizeof(ref), "file:%s", path);
    kit_open(4);
    CHECK_STR(run_with_secret(1, "echo ${#TOKEN} $TOKEN", "env:SOURCE")->output, STR("8 ***"));
    CHECK_STR(run_with_secret(2, "echo ${#TOKEN}", ref)->output, STR("12")); // one newline is cut
    static char big[100000];
    memset(big, 'x', sizeof(big));
    test_write_file(path, (struct str){big, sizeof(big)});
    kit_check_fault(run_with_secret(3, "echo ${#TOKEN}", ref), "SECRET_NOT_FOUND",
                    false); // half a key is worse than none
    kit_close();
}

static void a_missing_secret_starts_nothing_S1(void)
{
    char path[256], ref[300], flag[256], script[300];
    unsetenv("NOT_SET");
    snprintf(flag, sizeof(flag), "%s/started", test_dir());
    snprintf(script, sizeof(script), "touch %s", flag);
    kit_open(4);
    kit_check_fault(run_with_secret(1, script, "env:NOT_SET"), "SECRET_NOT_FOUND", false);
    CHECK_STR(kit.results[1].fault.message, STR("secret TOKEN: env:NOT_SET is not set"));
    kit_check_fault(run_with_secret(2, script, "file:/no/such/file"), "SECRET_NOT_FOUND", false);
    CHECK_STR(kit.results[2].fault.message, STR("secret TOKEN: file:/no/such/file does not exist"));
    kit_check_fault(run_with_secret(3, script, "vault:x"), "SECRET_NOT_FOUND", false);
    kit_check_fault(run_with_secret(4, script, "file:/"), "SECRET_NOT_FOUND", false);
    snprintf(path, sizeof(path), "%s/nul", test_dir());
    test_write_file(path, STR("secret\0part"));
    snprintf(ref, sizeof(ref), "file:%s", path);
    kit_check_fault(run_with_secret(5, script, ref), "SECRET_NOT_FOUND", false);
    CHECK(!memmem(kit.results[5].fault.message.ptr, kit.results[5].fault.message.len, "part", 4));
    CHECK(access(flag, F_OK) != 0);
    kit_close();
}

static const char canary[] = "C4n\"ary/Value+42 x";

static void no_form_is_seen_in_output_errors_or_live_lines_S2(void)
{
    static const char script[] =
        "printf '%s\\n' \"$TOKEN\"; printf '%s' \"$TOKEN\" | base64; printf 'a%s' \"$TOKEN\" | base64;"
        "printf 'ab%s' \"$TOKEN\" | base64; printf '%s' \"$TOKEN\" | od -An -v -tx1 | tr -d ' \\n'; echo;"
        "printf '%s' \"$TOKEN\" | sed 's/%/%25/g; s/\"/%22/g; s,/,%2F,g; s/+/%2B/g; s/ /%20/g'; echo;"
        "printf '%s' \"$TOKEN\" | sed 's/\"/\\\\\"/g'; echo; echo \"error $TOKEN\" >&2; exit 1";
    setenv("CANARY", canary, 1);
    kit_open(4);
    struct tool_result *result = run_with_secret(1, script, "env:CANARY");
    CHECK_STR(result->output, STR("***\n***\nYU***\nYWJ***\n***\n***\n***"));
    CHECK_STR(result->fault.message, STR("exit 1: error ***"));
    CHECK_STR(result->fault.detail, STR("error ***"));
    CHECK(!strstr(kit.lines.ptr, "C4n") && !strstr(kit.lines.ptr, "QzRu"));
    CHECK(strstr(kit.lines.ptr, "err 1 error ***\n") && strstr(kit.lines.ptr, "out 1 YWJ***\n"));
    kit_close();
}

static void a_secret_in_two_writes_is_masked_at_every_cut_S2(void)
{
    setenv("CANARY", canary, 1);
    kit_open(4);
    uint64_t ticket = 1;
    for (size_t cut = 1; cut < strlen(canary); cut++, ticket++) {
        char script[200];
        snprintf(script, sizeof(script), "printf '<%%s' \"${TOKEN:0:%zu}\"; sleep 0.02; printf '%%s>' \"${TOKEN:%zu}\"",
                 cut, cut);
        CHECK_STR(run_with_secret(ticket, script, "env:CANARY")->output, STR("<***>"));
    }
    CHECK(!strstr(kit.lines.ptr, "C4n") && !strstr(kit.lines.ptr, "42 x"));
    kit_close();
}

static void limits_do_not_cut_a_secret_open_S2(void)
{
    setenv("CANARY", canary, 1);
    kit_open(4);
    for (uint64_t max = 1; max < 30; max++) {
        struct kit_request r = kit_request(max, (const char *const[]){"bash", "-c", "echo \"12345$TOKEN\"6789", NULL});
        struct secret_ref secret = {STR("TOKEN"), STR("env:CANARY")};
        r.request.secrets = &secret;
        r.request.secret_count = 1;
        r.request.output_max = (size_t)max;
        struct str want = str_slice(STR("12345***6789"), 0, (size_t)max);
        CHECK_STR(kit_run(&r)->output, want);
    }
    // The end of stderr is kept: its beginning must not show the end of a secret.
    for (uint64_t fill = 4080; fill < 4100; fill++) {
        char script[200];
        snprintf(script, sizeof(script), "echo \"$TOKEN$(head -c %d /dev/zero | tr '\\0' y)\" >&2; exit 1", (int)fill);
        struct tool_result *result = run_with_secret(fill, script, "env:CANARY");
        CHECK(!memmem(result->fault.detail.ptr, result->fault.detail.len, "42 x", 4));
    }
    kit_close();
}

static void secrets_are_not_in_the_arguments_I36(void)
{
    setenv("CANARY", canary, 1);
    kit_open(4);
    struct tool_result *result = run_with_secret(1, "tr '\\0' '\\n' < /proc/$$/cmdline | wc -l", "env:CANARY");
    CHECK_STR(result->output, STR("3"));
    kit_close();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(plain_form_is_masked_wherever_it_is_cut_S2),
        TEST(encoded_forms_are_masked_S2),
        TEST(wrapped_and_multiline_forms_are_masked_S2),
        TEST(ordinary_text_passes_unchanged),
        TEST(secrets_come_from_environment_and_files_S1),
        TEST(a_missing_secret_starts_nothing_S1),
        TEST(no_form_is_seen_in_output_errors_or_live_lines_S2),
        TEST(a_secret_in_two_writes_is_masked_at_every_cut_S2),
        TEST(limits_do_not_cut_a_secret_open_S2),
        TEST(secrets_are_not_in_the_arguments_I36),
    };
    return kit_main("tool_secret", tests, ARRAY_COUNT(tests), argc, argv);
}
