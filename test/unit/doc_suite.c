// yaml-test-suite, when it is there. Each case must end in one of these ways:
//
//   equal     the tree is the JSON the suite gives
//   policy    refused on purpose: tags, several documents, keys that are not texts, empty documents, ...
//   invalid   the suite says it is not YAML, and it is refused
//   libyaml   what libyaml 0.2.5 does otherwise; every such case is listed below by name, so that a
//             change of either side is seen
//
// The files of the suite are YAML themselves and are read by the reader under test.
#include "doc/internal.h"
#include "harness/test.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

// Valid YAML that libyaml does not parse (tabs between tokens, line breaks before a colon in flow, other directives...).
static const char *const not_parsed[] = {
    "2LFX/0", "4MUZ/0", "4MUZ/1", "4MUZ/2", "58MP/0", "5MUD/0", "5T43/0", "6BCT/0", "6CA3/0", "6LVF/0", "8XYN/0",
    "96NN/0", "96NN/1", "9SA2/0", "A2M4/0", "BEC7/0", "DBG4/0", "DK3J/0", "DK95/0", "DK95/3", "DK95/4", "FP8R/0",
    "HM87/0", "K3WX/0", "MUS6/5", "MUS6/6", "NJ66/0", "Q5MG/0", "R4YG/0", "VJP3/1", "W5VH/0", "Y79Y/1", "Y79Y/10",
};
// Not YAML, but libyaml takes it.
static const char *const taken[] = {
    "9C9N/0", "9JBA/0", "CVW2/0", "DK95/1", "G5U8/0", "MUS6/0",
    "QB6E/0", "S98Z/0", "SU5Z/0", "X4QW/0", "Y79Y/3", "YJV2/0",
};
// `?x` inside flow collections is a text, which libyaml reads as the key x.
static const char *const different[] = {"652Z/0", "HM87/1"};
static const char *const policy[] = {"E0104", "E0105", "E0107", "E0108", "E0109", "E0110", "E0111"};

static struct arena arena;
static unsigned equal_count, policy_count, invalid_count, libyaml_count, silent_count;

static bool contains(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

// The suite shows what cannot be seen: blanks, tabs, ends of lines.
static struct str decode(struct str shown)
{
    static const struct {
        struct str mark;
        const char *text;
    } marks[] = {
        {{"\u2423", 3}, " "},  // open box
        {{"\u21B5", 3}, ""},   // return arrow: the line end is there anyway
        {{"\u2190", 3}, "\r"}, // left arrow
        {{"\u21D4", 3}, "\xEF\xBB\xBF"},
    };
    struct buf out;
    buf_init(&out, 1 << 20);
    for (size_t at = 0; at < shown.len;) {
        struct str rest = str_slice(shown, at, shown.len);
        size_t dashes = 0;
        while (str_starts(str_slice(rest, dashes, rest.len), STR("\u2014"))) dashes += 3;
        if (str_starts(str_slice(rest, dashes, rest.len), STR("\u00BB"))) {
            buf_byte(&out, '\t');
            at += dashes + 2;
            continue;
        }
        if (str_starts(rest, STR("\u220E"))) { // no line end at the end of the file
            at += 4;
            continue;
        }
        bool marked = false;
        for (size_t i = 0; i < ARRAY_COUNT(marks) && !marked; i++) {
            if (!str_starts(rest, marks[i].mark)) continue;
            buf_text(&out, marks[i].text);
            at += 3;
            marked = true;
        }
        if (!marked) buf_byte(&out, shown.ptr[at++]);
    }
    struct str text = arena_copy(&arena, buf_str(&out));
    CHECK(text.ptr);
    buf_release(&out);
    return text;
}

static enum code read_case(struct str text, struct json *value, const char **id)
{
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena);
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_slice(text, 3, text.len);
    enum code rc = yaml_tree(text, STR("case"), &doc_limits_default, &arena, value, &diagnostics);
    CHECK((rc == E_INVALID) == (diagnostics.error_count > 0));
    *id = diagnostics.count ? diagnostics.items[0].id : "";
    if (diagnostics.count) CHECK(diagnostics.items[0].line > 0 && diagnostics.items[0].message.len > 0);
    return rc;
}

static void run_case(const char *name, struct str yaml, struct str json, bool fail)
{
    struct json got;
    struct json want;
    const char *id;
    struct error err = {0};
    enum code rc = read_case(yaml, &got, &id);
    if (fail) {
        if ((rc == OK) != contains(taken, ARRAY_COUNT(taken), name))
            test_fail(__FILE__, __LINE__, "%s: not YAML, but it was %s", name,
                      rc ? "refused: take it off the list" : "taken");
        *(rc ? &invalid_count : &libyaml_count) += 1;
        return;
    }
    // Cases without JSON, or with several documents of it, have nothing to compare with.
    if (json.len == 0 || json_parse(json, NULL, &arena, &want, &err) != OK) {
        silent_count++;
        return;
    }
    if (rc && contains(policy, ARRAY_COUNT(policy), id)) {
        policy_count++;
        return;
    }
    if ((rc != OK) != contains(not_parsed, ARRAY_COUNT(not_parsed), name))
        test_fail(__FILE__, __LINE__, "%s: %s", name, rc ? id : "parses: take it off the list");
    if (rc) {
        libyaml_count++;
        return;
    }
    if (json_equal(&got, &want) == contains(different, ARRAY_COUNT(different), name))
        test_fail(__FILE__, __LINE__, "%s: the value is not what was expected", name);
    *(json_equal(&got, &want) ? &equal_count : &libyaml_count) += 1;
}

// Later cases of a file inherit the JSON of the ones before.
static void run_file(const char *path, const char *base)
{
    struct diagnostics diagnostics;
    struct json root;
    diagnostics_init(&diagnostics, &arena);
    if (doc_tree(test_read_file(path), str_from(path), NULL, &arena, &root, &diagnostics) != OK)
        test_fail(__FILE__, __LINE__, "%s: %s", path, diagnostics.items[0].message.ptr);
    struct str json = {"", 0};
    for (uint32_t i = 0; i < root.count; i++) {
        const struct json *item = &root.items[i];
        if (json_key(item, "skip")) continue;
        if (json_key(item, "json")) json = json_text(json_key(item, "json"));
        const struct json *fail = json_key(item, "fail");
        char name[300];
        snprintf(name, sizeof(name), "%.4s/%u", base, i);
        run_case(name, decode(json_text(json_key(item, "yaml"))), json, fail && fail->boolean);
    }
}

static void yaml_test_suite(void)
{
    const char *suites = test_suites_dir();
    char path[PATH_MAX];
    if (!suites) test_skip("no suites here; set CAIRN_SUITES");
    snprintf(path, sizeof(path), "%s/yaml", suites);
    DIR *dir = opendir(path);
    if (!dir) test_skip("no directory %s", path);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!str_ends(str_from(entry->d_name), STR(".yaml"))) continue;
        char file[PATH_MAX + 300];
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        arena_init(&arena, 65536, 1 << 26);
        run_file(file, entry->d_name);
        arena_release(&arena);
    }
    closedir(dir);
    printf("# yaml-test-suite: %u equal, %u refused by policy, %u invalid and refused, %u where "
           "libyaml differs, %u without JSON\n",
           equal_count, policy_count, invalid_count, libyaml_count, silent_count);
    CHECK(equal_count >= 200);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(yaml_test_suite)};
    return test_main("doc_suite", tests, ARRAY_COUNT(tests), argc, argv);
}
