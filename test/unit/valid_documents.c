// schemas/plan.json, nodes.json and playbook.json against the readers: every document that compiles fits its schema, and what
// a schema can know about a broken one, it refuses.
#include "harness/test.h"
#include "program/program.h"
#include "schema/schema.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

static struct arena arena;
static const struct schema *plan_schema, *nodes_schema, *playbook_schema;

static const struct schema *open_schema(const char *name)
{
    static struct schema_set *set;
    struct error err = {0};
    char path[100];
    struct json *document = ARENA_NEW(&arena, struct json);
    const struct schema *schema;
    CHECK(document);
    snprintf(path, sizeof(path), "schemas/%s", name);
    if (!set) CHECK_INT(schema_set_open(&arena, &set), OK);
    CHECK_OK(json_parse(test_read_file(path), NULL, &arena, document, &err), &err);
    CHECK_OK(schema_set_add(set, str_from(name), document, &err), &err);
    CHECK_OK(schema_compile(set, str_from(name), &schema, &err), &err);
    return schema;
}

static void open_schemas(void)
{
    arena_init(&arena, 65536, 1 << 28);
    plan_schema = open_schema("plan.json");
    nodes_schema = open_schema("nodes.json");
    playbook_schema = open_schema("playbook.json");
}

static bool fits(struct str text, struct schema_fault *fault)
{
    struct diagnostics diagnostics;
    struct json root;
    diagnostics_init(&diagnostics, &arena);
    CHECK_INT(doc_tree(text, STR("t"), NULL, &arena, &root, &diagnostics), OK);
    const struct schema *schema = json_key(&root, "steps") ? plan_schema : nodes_schema;
    return schema_valid(json_key(&root, "apiVersion") ? playbook_schema : schema, &root, fault);
}

static unsigned check_directory(const char *dir, const char *prefix)
{
    unsigned count = 0;
    DIR *open = opendir(dir);
    if (!open) return 0;
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        struct str name = str_from(entry->d_name);
        if (!str_starts(name, str_from(prefix)) || (!str_ends(name, STR(".yaml")) && !str_ends(name, STR(".json"))))
            continue;
        char path[PATH_MAX];
        struct schema_fault fault;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (!fits(test_read_file(path), &fault))
            test_fail(__FILE__, __LINE__, "%s: %s %s", path, fault.pointer, fault.message);
        count++;
    }
    closedir(open);
    return count;
}

static void every_valid_document_fits_its_schema(void)
{
    char path[PATH_MAX];
    open_schemas();
    unsigned count = check_directory("test/golden/programs", "");
    count += check_directory("test/golden/programs/parts", "");
    CHECK(count >= 4);
    const char *corpus = test_corpus_dir();
    if (corpus) {
        snprintf(path, sizeof(path), "%s/plans", corpus);
        count += check_directory(path, "plan-");
        snprintf(path, sizeof(path), "%s/workflows", corpus);
        count += check_directory(path, "e2e-");
        snprintf(path, sizeof(path), "%s/playbooks", corpus);
        for (char first[2] = "c"; first[0] <= 'z'; first[0]++)
            count += check_directory(path, first); // not actions, batch, broken
        count += check_directory(path, "a") + check_directory(path, "batch");
        CHECK(count >= 36);
    }
    printf("# %u documents\n", count);
}

static void broken_documents_do_not_fit(void)
{
#define PLAN(step) "planId: p\nplanVersion: '1'\nsteps: [{id: a, kind: noop}, " step "]\n"
#define BOOK(step)                                                                                                     \
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p}\nworkflow: [{step: a, tool: {kind: noop}}, " step    \
    "]\n"
#define NODES(node) "name: n\nnodes: [{id: a, noop: true}, " node "]\n"
    static const char *const broken[] = {
        "planId: p\nsteps: [{id: a, kind: noop}]\n",
        "planId: p\nplanVersion: v\nsteps: []\n",
        "planId: p\nplanVersion: v\nstep: 1\nsteps: [{id: a, kind: noop}]\n",
        "planId: p\nmetadata: {planId: p, planVersion: v}\nsteps: [{id: a, kind: noop}]\n",
        PLAN("{id: b}"),
        PLAN("{kind: noop}"),
        PLAN("{id: b, stepId: b, kind: noop}"),
        PLAN("{id: RUN, kind: noop}"),
        PLAN("{id: a..b, kind: noop}"),
        PLAN("{id: 'a|b', kind: noop}"),
        PLAN("{id: b, kind: loop}"),
        PLAN("{id: b, kind: noop, dependOn: []}"),
        PLAN("{id: b, kind: echo}"),
        PLAN("{id: b, kind: exec, with: {argv: []}}"),
        PLAN("{id: b, kind: exec, with: {argv: [a], command: b}}"),
        PLAN("{id: b, kind: shell, with: {cmd: a}}"),
        PLAN("{id: b, kind: wait, with: {}}"),
        PLAN("{id: b, kind: noop, secrets: [{name: A, value: x}]}"),
        PLAN("{id: b, kind: noop, retry: {maxAttempts: 0}}"),
        PLAN("{id: b, kind: merge, simulateError: permanent}"),
        "apiVersion: noetl.io/v1\nkind: Playbook\nmetadata: {name: p}\nworkflow: [{step: a, tool: {kind: noop}}]\n",
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {}\nworkflow: [{step: a, tool: {kind: noop}}]\n",
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p}\nvars: {}\nworkflow: [{step: a, tool: {kind: "
        "noop}}]\n",
        BOOK("{tool: {kind: noop}}"),
        BOOK("{step: b, tool: []}"),
        BOOK("{step: b, tool: {code: x}}"),
        BOOK("{step: b, tool: {kind: noop}, when: x}"),
        BOOK("{step: b, tool: {kind: noop, spec: {policy: {}}}}"),
        BOOK("{step: b, tool: {kind: noop, spec: {policy: {rules: [{when: a, then: {do: stop}}]}}}}"),
        BOOK("{step: b, loop: {in: []}, tool: {kind: noop}}"),
        BOOK("{step: b, next: {arcs: [{when: a}]}}"),
        BOOK("{step: b, next: {spec: {mode: some}, arcs: [a]}}"),
        BOOK("{step: b, spec: {next_mode: inclusive}, next: a}"),
        "nodes: []\n",
        NODES("{bash: x}"),
        NODES("{id: b}"),
        NODES("{id: b, bash: x, noop: true}"),
        NODES("{id: b, prompt: x}"),
        NODES("{id: 1b, bash: x}"),
        NODES("{id: b, script: x}"),
        NODES("{id: b, bash: x, retry: {max_attempts: 6}}"),
        NODES("{id: b, bash: x, trigger_rule: sometimes}"),
        NODES("{id: b, loop_group: {nodes: [{id: c, bash: x}]}}"),
        NODES("{id: b, loop_group: {max_iterations: 1, nodes: [{id: c, prompt: x}]}}"),
    };
    open_schemas();
    for (size_t i = 0; i < ARRAY_COUNT(broken); i++)
        if (fits(str_from(broken[i]), NULL)) test_fail(__FILE__, __LINE__, "fits: %s", broken[i]);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_valid_document_fits_its_schema),
        TEST(broken_documents_do_not_fit),
    };
    return test_main("valid_documents", tests, ARRAY_COUNT(tests), argc, argv);
}
