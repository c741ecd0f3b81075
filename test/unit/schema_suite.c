// The official JSON Schema test suite (draft 2020-12): every case of every claimed keyword must come out as written there;
// what is not claimed must be refused when compiling, never accepted and ignored.
#include "harness/test.h"
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const claimed_files[] = {
    "additionalProperties",
    "allOf",
    "anchor",
    "anyOf",
    "boolean_schema",
    "const",
    "contains",
    "content",
    "default",
    "defs",
    "dependentRequired",
    "dependentSchemas",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if-then-else",
    "infinite-loop-detection",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "ref",
    "required",
    "type",
    "uniqueItems",
    "optional/anchor",
    "optional/bignum",
    "optional/ecmascript-regex",
    "optional/float-overflow",
    "optional/id",
    "optional/no-schema",
    "optional/non-bmp-regex",
};

// Groups inside claimed files that are not claimed.
static const struct {
    const char *file, *group;
    enum code code; // how they are refused
} not_claimed[] = {
    // Need the meta-schema, which rests on $dynamicRef.
    {"defs", "validate definition against metaschema", E_NOT_FOUND},
    {"ref", "remote ref, containing refs itself", E_NOT_FOUND},
    // Need unevaluatedProperties or unevaluatedItems.
    {"ref", "ref creates new scope when adjacent to keywords", E_UNSUPPORTED},
    {"not", "collect annotations inside a 'not', even if collection is disabled", E_UNSUPPORTED},
};

// Files whose every group must be refused, and with what.
static const struct {
    const char *file;
    enum code code;
} refused_files[] = {
    {"unevaluatedItems", E_UNSUPPORTED},        {"unevaluatedProperties", E_UNSUPPORTED},
    {"optional/dynamicRef", E_UNSUPPORTED},     {"optional/refOfUnknownKeyword", E_UNSUPPORTED},
    {"optional/unknownKeyword", E_UNSUPPORTED}, {"optional/dependencies-compatibility", E_UNSUPPORTED},
};

struct tally {
    uint32_t groups, cases, skipped;
};

static const char *suite_path(const char *file)
{
    static char path[1024];
    const char *suites = test_suites_dir();
    if (!suites) test_skip("no suites");
    snprintf(path, sizeof(path), "%s/json-schema/draft2020-12/%s.json", suites, file);
    FILE *probe = fopen(path, "r");
    if (!probe) test_skip("no %s", path);
    fclose(probe);
    return path;
}

static struct json load(struct arena *arena, const char *file)
{
    struct error err = {0};
    struct json suite;
    CHECK_OK(json_parse(test_read_file(suite_path(file)), NULL, arena, &suite, &err), &err);
    return suite;
}

static enum code compile(struct arena *arena, const struct json *document, const struct schema **out, struct error *err)
{
    struct schema_set *set = NULL;
    CHECK_INT(schema_set_open(arena, &set), OK);
    enum code rc = schema_set_add(set, STR("case.json"), document, err);
    return rc ? rc : schema_compile(set, STR("case.json"), out, err);
}

static enum code expected_code(const char *file, struct str group)
{
    for (size_t i = 0; i < ARRAY_COUNT(not_claimed); i++) {
        if (!strcmp(not_claimed[i].file, file) && str_is(group, not_claimed[i].group)) return not_claimed[i].code;
    }
    return OK;
}

static void run_group(struct arena *arena, const char *file, const struct json *group, struct tally *tally)
{
    struct error err = {0};
    struct str name = json_text(json_key(group, "description"));
    const struct json *tests = json_key(group, "tests");
    const struct schema *schema = NULL;
    enum code rc = compile(arena, json_key(group, "schema"), &schema, &err);
    enum code want = expected_code(file, name);
    if (rc != want) test_fail(__FILE__, __LINE__, "%s: %.*s: %s %s", file, STR_ARG(name), code_name(rc), err.message);
    tally->groups++;
    if (want) {
        tally->skipped += tests->count;
        return;
    }
    for (uint32_t i = 0; i < tests->count; i++) {
        const struct json *test = &tests->items[i];
        bool valid = json_key(test, "valid")->boolean;
        struct schema_fault fault;
        const struct json *data = json_key(test, "data");
        if (schema_valid(schema, data, &fault) != valid || schema_valid(schema, data, NULL) != valid)
            test_fail(__FILE__, __LINE__, "%s: %.*s: %.*s: wanted %s, %s: %s", file, STR_ARG(name),
                      STR_ARG(json_text(json_key(test, "description"))), valid ? "valid" : "invalid", fault.pointer,
                      fault.message);
        if (!valid && !fault.message[0]) test_fail(__FILE__, __LINE__, "%s: %.*s: no message", file, STR_ARG(name));
        tally->cases++;
    }
}

static void every_claimed_case_passes(void)
{
    struct tally tally = {0};
    for (size_t i = 0; i < ARRAY_COUNT(claimed_files); i++) {
        struct arena arena;
        arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
        struct json suite = load(&arena, claimed_files[i]);
        for (uint32_t j = 0; j < suite.count; j++) run_group(&arena, claimed_files[i], &suite.items[j], &tally);
        arena_release(&arena);
    }
    printf("# JSON Schema suite: %u cases in %u groups of %zu files pass, %u cases not claimed\n", tally.cases,
           tally.groups, ARRAY_COUNT(claimed_files), tally.skipped);
    CHECK(tally.cases > 1000);
}

static void other_files_are_refused(void)
{
    uint32_t groups = 0;
    for (size_t i = 0; i < ARRAY_COUNT(refused_files); i++) {
        struct arena arena;
        arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
        struct json suite = load(&arena, refused_files[i].file);
        for (uint32_t j = 0; j < suite.count; j++) {
            struct error err = {0};
            const struct schema *schema = NULL;
            const struct json *group = &suite.items[j];
            enum code rc = compile(&arena, json_key(group, "schema"), &schema, &err);
            // Everything in this one is a known keyword, and a pointer may lead anywhere.
            if (!rc && str_is(json_text(json_key(group, "description")), "reference internals of known non-applicator"))
                continue;
            if (rc != refused_files[i].code)
                test_fail(__FILE__, __LINE__, "%s: %.*s: %s %s", refused_files[i].file,
                          STR_ARG(json_text(json_key(group, "description"))), code_name(rc), err.message);
            groups++;
        }
        arena_release(&arena);
    }
    printf("# JSON Schema suite: %u groups refused\n", groups);
}

// Files that need documents from a server, or another dialect: not one group may compile.
static void remote_documents_are_not_found(void)
{
    static const char *const files[] = {"refRemote", "vocabulary", "dynamicRef", "optional/cross-draft",
                                        "optional/format-assertion"};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct arena arena;
        arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
        struct json suite = load(&arena, files[i]);
        for (uint32_t j = 0; j < suite.count; j++) {
            struct error err = {0};
            const struct schema *schema = NULL;
            enum code rc = compile(&arena, json_key(&suite.items[j], "schema"), &schema, &err);
            CHECK(rc == E_NOT_FOUND || rc == E_UNSUPPORTED);
            CHECK(err.message[0]);
        }
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_claimed_case_passes),
        TEST(other_files_are_refused),
        TEST(remote_documents_are_not_found),
    };
    return test_main("schema_suite", tests, ARRAY_COUNT(tests), argc, argv);
}
