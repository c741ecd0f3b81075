// Diagnostics: whatever is put into a line, it stays one line, its fields stay the fields of the format, and it ends in time.
#include "harness/test.h"

#include "base/civil.h"
#include "json/json.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char line[16384];
static struct arena arena;
static int saved, pipes[2];

static void listen(enum log_shape form)
{
    saved = dup(2);
    CHECK(saved >= 0);
    CHECK_INT(pipe(pipes), 0);
    CHECK_INT(dup2(pipes[1], 2), 2);
    os_log_level(LOG_WARN);
    os_log_shape(form);
}

static struct str heard(void)
{
    CHECK_INT(dup2(saved, 2), 2);
    close(saved);
    close(pipes[1]);
    size_t len = 0;
    for (ssize_t got; (got = read(pipes[0], line + len, sizeof(line) - 1 - len)) > 0;) len += (size_t)got;
    close(pipes[0]);
    os_log_shape(LOG_TEXT);
    line[len] = '\0';
    return (struct str){line, len};
}

static struct json heard_json(void)
{
    struct json json;
    struct error err = {0};
    struct str text = heard();
    CHECK(text.len > 0 && text.len <= 4096);
    CHECK(memchr(text.ptr, '\n', text.len) == text.ptr + text.len - 1); // one line
    CHECK(strncmp(text.ptr, "{\"time\":\"", 9) == 0);                   // nothing of a user comes first
    arena_release(&arena);
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(json_parse(str_slice(text, 0, text.len - 1), NULL, &arena, &json, &err), &err);
    return json;
}

static const char *const nasty[] = {
    "plain",
    "cr\r\nlf level=error msg=\"forged\"",
    "\033[2J\033]0;title\007",
    "\",\"level\":\"error\"}\n{\"msg\":\"x",
    "back\\slash \\\" quote\"",
    "c1 \xc2\x9b"
    "31m",
    "not utf-8 \xff\xfe\xc3(\xed\xa0\x80\xf5",
    "\xc3\xbc \xe2\x9c\x93 \xf0\x9d\x84\x9e",
    " run=other why=mine",
    "",
    "tab\tnul\x01\x7f",
};

static void fields_are_those_of_the_format_P3(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(nasty); i++) {
        listen(LOG_JSON);
        os_log(LOG_WARN, "said %s run=%s attempt=%d why=\"%s\"", nasty[i], nasty[i], 7, nasty[i]);
        struct json json = heard_json();
        CHECK_INT(json.count, 6);
        static const char *const keys[] = {"time", "level", "msg", "run", "attempt", "why"};
        for (uint32_t k = 0; k < 6; k++) CHECK_STR(json.members[k].key, str_from(keys[k]));
        CHECK_STR(json_text(json_key(&json, "level")), STR("warn"));
        CHECK_STR(json_text(json_key(&json, "attempt")), STR("7"));
        if (i < 1 || i == 7) CHECK_STR(json_text(json_key(&json, "run")), str_from(nasty[i]));
        CHECK_STR(json_text(json_key(&json, "run")), json_text(json_key(&json, "why")));
    }
}

static void times_are_told(void)
{
    int64_t ms, before = os_now().wall_ms;
    listen(LOG_JSON);
    os_log(LOG_ERROR, "now");
    struct json json = heard_json();
    CHECK(civil_parse(json_text(json_key(&json, "time")), &ms));
    CHECK(ms >= before && ms <= os_now().wall_ms);
    CHECK_STR(json_text(json_key(&json, "msg")), STR("now"));
}

static void text_is_one_line_with_no_forged_field_P3(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(nasty); i++) {
        listen(LOG_TEXT);
        os_log(LOG_WARN, "said %s run=%s why=\"%s\"", nasty[i], nasty[i], nasty[i]);
        struct str text = heard();
        CHECK(strncmp(text.ptr, "level=warn msg=\"said ", 21) == 0);
        CHECK(memchr(text.ptr, '\n', text.len) == text.ptr + text.len - 1);
        for (size_t k = 0; k + 1 < text.len; k++) CHECK((unsigned char)text.ptr[k] >= 0x20 && text.ptr[k] != 0x7F);
        size_t quotes = 0; // outside of quotes there are two fields and nothing else
        char outside[256] = "";
        bool in = false;
        for (size_t k = 0, out = 0; k < text.len && out < 255; k++) {
            if (in && text.ptr[k] == '\\') {
                k++;
                continue;
            }
            if (text.ptr[k] == '"') {
                in = !in;
                quotes++;
            } else if (!in) {
                outside[out++] = text.ptr[k];
            }
        }
        CHECK(!in && quotes % 2 == 0);
        size_t signs = 0;
        for (const char *c = outside; *c; c++) signs += *c == '=';
        CHECK_INT(signs, 4); // level, msg, run, why
    }
}

static void simple_values_stay_bare(void)
{
    listen(LOG_TEXT);
    os_log(LOG_WARN, "effects put off run=%s attempt=%u why=\"%s\"", "r-1", 2u, "no memory");
    CHECK_STR(heard(), STR("level=warn msg=\"effects put off\" run=r-1 attempt=2 why=\"no memory\"\n"));
    listen(LOG_TEXT);
    os_log(LOG_WARN, "no fields, 1 + 1 = %d", 2);
    CHECK_STR(heard(), STR("level=warn msg=\"no fields, 1 + 1 = 2\"\n"));
}

static void a_megabyte_is_cut_at_4_kib_P3(void)
{
    size_t size = 1 << 20;
    char *name = malloc(size + 1);
    CHECK(name);
    static const char fills[] = {'x', '"', '\n', '\x01', '\xff'};
    for (size_t i = 0; i < ARRAY_COUNT(fills); i++) {
        memset(name, fills[i], size);
        name[size] = '\0';
        listen(LOG_JSON);
        os_log(LOG_WARN, "odd run=%s step=%s", name, "s");
        struct json json = heard_json();
        CHECK(json_key(&json, "truncated")->boolean);
        CHECK(json_text(json_key(&json, "run")).len > 500);
        listen(LOG_JSON);
        os_log(LOG_WARN, "%s", name);
        json = heard_json();
        CHECK(json_key(&json, "truncated")->boolean);
        listen(LOG_TEXT);
        os_log(LOG_WARN, "odd run=%s step=%s", name, "s");
        struct str text = heard();
        CHECK(text.len <= 4096 && text.ptr[text.len - 1] == '\n');
        CHECK(strstr(text.ptr, "\" truncated=true\n") || strstr(text.ptr, "x truncated=true\n"));
    }
    free(name);
}

static void quiet_below_its_level(void)
{
    listen(LOG_JSON);
    os_log(LOG_INFO, "not shown");
    CHECK_INT(heard().len, 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(fields_are_those_of_the_format_P3),
        TEST(times_are_told),
        TEST(text_is_one_line_with_no_forged_field_P3),
        TEST(simple_values_stay_bare),
        TEST(a_megabyte_is_cut_at_4_kib_P3),
        TEST(quiet_below_its_level),
    };
    return test_main("os_log", tests, ARRAY_COUNT(tests), argc, argv);
}
