// Goldens: the compiled form of documents that use everything, and the full output for every document in
// test/golden/errors. CAIRN_GOLDEN_UPDATE=1 rewrites them.
#include "program_kit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static struct kit kit;
static char parts_dir[PATH_MAX];

static enum code find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context;
    char path[PATH_MAX + 300];
    snprintf(path, sizeof(path), "%s/parts/%.*s", parts_dir, (int)part->request.len, part->request.ptr);
    FILE *there = fopen(path, "rb");
    if (!there && errno == ENOENT && str_ends(part->request, STR(".yaml"))) {
        snprintf(path, sizeof(path), "%s/%.*s", parts_dir, (int)part->request.len, part->request.ptr);
        there = fopen(path, "rb");
    }
    if (!there)
        return error_set(err, E_NOT_FOUND, "%s \"%.*s\" was not found in parts/",
                         part->kind == PART_SCRIPT ? "script" : "document", STR_ARG(part->request));
    fclose(there);
    part->file = arena_copy(arena, part->request);
    part->text = arena_copy(arena, test_read_file(path));
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static void load_file(const char *dir, const char *name, struct str *text)
{
    char path[PATH_MAX + 300];
    struct program_loader loader = {.context = NULL, .load = find_part};
    snprintf(parts_dir, sizeof(parts_dir), "%s", dir);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    *text = test_read_file(path);
    kit_release(&kit);
    arena_init(&kit.arena, 4096, 1 << 26);
    diagnostics_init(&kit.diagnostics, &kit.arena);
    kit.rc = program_load(*text, str_from(name), &loader, &kit.diagnostics, &kit.program, &kit.err);
    diagnostics_sort(&kit.diagnostics);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Names of the documents in a directory, sorted.
static size_t list_documents(const char *dir, char **names, size_t max)
{
    DIR *open = opendir(dir);
    size_t count = 0;
    if (!open) return 0;
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        struct str name = str_from(entry->d_name);
        if (!str_ends(name, STR(".yaml")) && !str_ends(name, STR(".json"))) continue;
        CHECK(count < max);
        names[count++] = strdup(entry->d_name);
    }
    closedir(open);
    qsort(names, count, sizeof(names[0]), by_name);
    return count;
}

static void broken_documents_say_what_is_wrong(void)
{
    char *names[100];
    size_t count = list_documents("test/golden/errors", names, ARRAY_COUNT(names));
    CHECK(count >= 20);
    for (size_t i = 0; i < count; i++) {
        struct str text;
        char golden[300];
        load_file("test/golden/errors", names[i], &text);
        if (kit.rc != E_INVALID) test_fail(__FILE__, __LINE__, "%s: %s", names[i], code_name(kit.rc));
        snprintf(golden, sizeof(golden), "errors/%s.txt", names[i]);
        test_golden(golden, kit_shown(&kit, text));
        free(names[i]);
    }
    kit_release(&kit);
    printf("# %zu broken documents\n", count);
}

static void documents_that_use_everything(void)
{
    char *names[100];
    size_t count = list_documents("test/golden/programs", names, ARRAY_COUNT(names));
    CHECK(count >= 3);
    for (size_t i = 0; i < count; i++) {
        struct str text;
        char golden[300];
        load_file("test/golden/programs", names[i], &text);
        if (kit.rc || kit.diagnostics.count)
            test_fail(__FILE__, __LINE__, "%s: %s", names[i], kit_shown(&kit, text).ptr);
        snprintf(golden, sizeof(golden), "programs/%s.txt", names[i]);
        kit_golden(&kit, golden);
        free(names[i]);
    }
    kit_release(&kit);
}

// ---- the corpus

static enum code find_script(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context;
    if (part->kind != PART_SCRIPT) return error_set(err, E_NOT_FOUND, "no document %.*s", STR_ARG(part->request));
    part->file = arena_copy(arena, part->request);
    part->text = arena_copy(arena, STR("true\n"));
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static void load_corpus(const char *folder, const char *name)
{
    const char *corpus = test_corpus_dir();
    struct program_loader loader = {.context = NULL, .load = find_script};
    char path[PATH_MAX];
    if (!corpus) test_skip("no corpus here; set CAIRN_CORPUS");
    snprintf(path, sizeof(path), "%s/%s/%s", corpus, folder, name);
    struct str text = test_read_file(path);
    kit_release(&kit);
    arena_init(&kit.arena, 4096, 1 << 26);
    diagnostics_init(&kit.diagnostics, &kit.arena);
    kit.rc = program_load(text, str_from(name), &loader, &kit.diagnostics, &kit.program, &kit.err);
}

static void plans_of_the_corpus_compile(void)
{
    static const char *const names[] = {
        "plan-minimal.json",       "plan-minimal.v1.1.json",      "plan-parallel.json",
        "plan-parallel.v1.1.json", "plan-cancel-and-resume.json", "plan-cancel-and-resume.v1.1.json",
    };
    static const char *const hashes[] = {
        "b422db2a11ba44d392c9b03394cd6d8e8c6aded91b839c7f9bb7769337a4c59b", NULL,
        "6a996eb23d0a2ed8428dcb98abd551251e503795cab12a36dfc62cd8b4ec8385", NULL,
        "541c85f68ee5ce99e7d10164d6e8d7d4bcc57fd82a5a11f4e44bc444cfa2a7b2", NULL,
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char golden[100];
        load_corpus("plans", names[i]);
        CHECK_OK(kit.rc, &kit.err);
        CHECK_INT(kit.diagnostics.count, 0);
        if (hashes[i]) CHECK_TEXT(kit.program->sha256_hex, hashes[i]);
        snprintf(golden, sizeof(golden), "corpus/%s.txt", names[i]);
        kit_golden(&kit, golden);
    }
}

static void workflows_of_the_corpus_compile(void)
{
    static const char *const names[] = {"e2e-deterministic.yaml", "e2e-joins.yaml"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char golden[100];
        load_corpus("workflows", names[i]);
        CHECK_OK(kit.rc, &kit.err);
        CHECK_INT(kit.diagnostics.count, 0);
        snprintf(golden, sizeof(golden), "corpus/%s.txt", names[i]);
        kit_golden(&kit, golden);
    }
}

static void check_only_ai(const char *name, const char *const *nodes)
{
    load_corpus("workflows", name);
    CHECK_INT(kit.rc, E_INVALID);
    size_t count = 0;
    for (size_t i = 0; i < kit.diagnostics.count; i++) {
        const struct diagnostic *d = &kit.diagnostics.items[i];
        if (d->severity != SEVERITY_ERROR) continue;
        char want[100];
        CHECK(nodes[count]);
        snprintf(want, sizeof(want), "node \"%s\" needs an AI provider", nodes[count++]);
        CHECK_TEXT(d->id, "E0216");
        if (!strstr(d->message.ptr, want)) test_fail(__FILE__, __LINE__, "%s: %s", want, d->message.ptr);
    }
    CHECK(!nodes[count]);
    CHECK_INT(kit.diagnostics.error_count, count);
}

static void workflows_with_models_are_refused_for_these_nodes_only(void)
{
    check_only_ai("archon-release.yaml",
                  (const char *const[]){"draft-changelog", "review-summary", "merge-summary", NULL});
    check_only_ai("archon-validate-pr.yaml",
                  (const char *const[]){"code-review-main", "code-review-feature", "classify-testability",
                                        "e2e-test-main", "e2e-test-feature", "final-report", NULL});
}

static void playbooks_of_the_corpus_compile_C_47(void)
{
    const char *corpus = test_corpus_dir();
    char dir[PATH_MAX];
    char *names[100];
    if (!corpus) test_skip("no corpus here; set CAIRN_CORPUS");
    snprintf(dir, sizeof(dir), "%s/playbooks", corpus);
    size_t count = list_documents(dir, names, ARRAY_COUNT(names));
    CHECK(count >= 25);
    for (size_t i = 0; i < count; i++) {
        load_corpus("playbooks", names[i]);
        bool broken = strncmp(names[i], "broken_", 7) == 0;
        if (broken ? kit.rc != E_INVALID : kit.rc != OK || kit.diagnostics.count > 0)
            test_fail(__FILE__, __LINE__, "%s: %s\n%s", names[i], code_name(kit.rc), kit_shown(&kit, STR("")).ptr);
        if (broken) CHECK(strstr(kit_found(&kit, "E0227")->message.ptr, "\"tool\" is required"));
        free(names[i]);
    }
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(broken_documents_say_what_is_wrong),
        TEST(documents_that_use_everything),
        TEST(plans_of_the_corpus_compile),
        TEST(workflows_of_the_corpus_compile),
        TEST(workflows_with_models_are_refused_for_these_nodes_only),
        TEST(playbooks_of_the_corpus_compile_C_47),
    };
    return test_main("program_golden", tests, ARRAY_COUNT(tests), argc, argv);
}
