// The public suites, when they are there: JSONTestSuite for the reader, the files of RFC 8785's
// author for the canonical form.
#include "harness/test.h"
#include "json/json.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct arena arena;

static DIR *open_suite(const char *name, char path[PATH_MAX])
{
    const char *suites = test_suites_dir();
    if (!suites) test_skip("no suites here; set CAIRN_SUITES");
    int len = snprintf(path, PATH_MAX, "%s/%s", suites, name);
    CHECK(len > 0 && len < PATH_MAX);
    DIR *dir = opendir(path);
    if (!dir) test_skip("no directory %s", path);
    return dir;
}

static struct str read_in(const char *dir, const char *name)
{
    char path[PATH_MAX + 300];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return test_read_file(path);
}

// Whatever was read must survive the canonical form.
static void check_stable(const char *name, const struct json *value)
{
    struct buf first, second;
    struct json again;
    struct error err = {0};
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    json_canon(&first, value);
    CHECK(buf_ok(&first));
    CHECK_OK(json_parse(buf_str(&first), NULL, &arena, &again, &err), &err);
    json_canon(&second, &again);
    if (!str_eq(buf_str(&first), buf_str(&second)))
        test_fail(__FILE__, __LINE__, "%s: canonical form is not stable", name);
    buf_release(&first);
    buf_release(&second);
}

// y_ must be read, n_ refused, i_ may be either. Our policy: duplicate keys are refused.
static bool is_fine(const char *name, enum code rc)
{
    if (strncmp(name, "y_object_duplicated_key", strlen("y_object_duplicated_key")) == 0) return rc == E_INVALID;
    if (name[0] == 'y') return rc == OK;
    if (name[0] == 'n') return rc == E_INVALID || rc == E_LIMIT;
    return name[0] == 'i';
}

static void json_test_suite(void)
{
    char path[PATH_MAX];
    DIR *dir = open_suite("json-parsing", path);
    size_t count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (!str_ends(str_from(name), STR(".json"))) continue;
        arena_init(&arena, 4096, SIZE_MAX);
        struct json value;
        struct error err = {0};
        enum code rc = json_parse(read_in(path, name), NULL, &arena, &value, &err);
        if (!is_fine(name, rc)) test_fail(__FILE__, __LINE__, "%s: %s: %s", name, code_name(rc), err.message);
        if (rc)
            CHECK(err.code == rc && err.line > 0 && err.column > 0 && err.message[0]);
        else
            check_stable(name, &value);
        arena_release(&arena);
        count++;
    }
    closedir(dir);
    CHECK(count >= 300);
}

// RFC 8785 knows doubles alone, so that 56.0 is 56 and 333333333.33333329 is 333333333.3333333 in the suite. Everything else of
// it holds here too.
static void make_doubles(struct json *value)
{
    double real;
    char text[32];
    if (value->type == JSON_NUMBER && json_double(value, &real))
        *value = json_number(arena_copy(&arena, (struct str){text, json_double_format(real, text)}));
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) make_doubles(&value->items[i]);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++) make_doubles(&value->members[i].value);
}

static void canonical_suite(void)
{
    char path[PATH_MAX];
    DIR *dir = open_suite("json-canonical/input", path);
    char wanted[PATH_MAX + 16];
    snprintf(wanted, sizeof(wanted), "%s/../output", path);
    size_t count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (!str_ends(str_from(name), STR(".json"))) continue;
        arena_init(&arena, 4096, SIZE_MAX);
        struct json value;
        struct error err = {0};
        struct buf out;
        buf_init(&out, 1 << 20);
        CHECK_OK(json_parse(read_in(path, name), NULL, &arena, &value, &err), &err);
        make_doubles(&value);
        json_canon(&out, &value);
        CHECK_STR(buf_str(&out), read_in(wanted, name));
        buf_release(&out);
        arena_release(&arena);
        count++;
    }
    closedir(dir);
    CHECK(count >= 6);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(json_test_suite), TEST(canonical_suite)};
    return test_main("json_suites", tests, ARRAY_COUNT(tests), argc, argv);
}
