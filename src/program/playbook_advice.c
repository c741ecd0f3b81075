// Warnings about a task that may run as it is: what its tool lacks, what it does not look at, code that is taken for a template.
#include "program/playbook.h"

#include <string.h>

// What a tool cannot do without. It may never be asked for, so that this is no mistake before it is.
static void read_needs(struct playbook *pb, const struct net_task *task)
{
    static const struct {
        const char *kind, *told, *any[8];
    } needs[] = {
        {"http", "url", {"url"}},
        {"python", "code or script", {"code", "script"}},
        {"shell", "cmds", {"cmds", "cmd", "command", "commands"}},
        {"postgres", "command", {"command", "script", "command_b64", "commands_b64", "queries", "statements"}},
        {"sqlite", "command", {"command", "script", "command_b64", "commands_b64", "queries", "statements"}},
        {"duckdb", "command", {"command", "script", "command_b64", "commands_b64", "queries", "statements"}},
        {"transfer", "source", {"source"}},
        {"transfer", "target", {"target"}},
    };
    struct reader *r = pb->r;
    struct span at = {task->line, task->column, 1};
    const struct json *with = task->with ? template_tree_source(task->with) : NULL;
    for (size_t i = 0; with && i < ARRAY_COUNT(needs); i++) {
        bool has = !str_is(task->kind, needs[i].kind);
        for (size_t k = 0; !has && k < ARRAY_COUNT(needs[i].any) && needs[i].any[k]; k++)
            has = json_key(with, needs[i].any[k]) != NULL;
        if (has) continue;
        struct diagnostic *d = WARNING(r, "E0204", at, "a task of kind %s needs %s: as it is it fails when it runs",
                                       needs[i].kind, needs[i].told);
        HINT(r, d, "is it indented as \"kind\" is? What a tool gets stands beside its kind, or under spec");
    }
}

// What no tool of that kind looks at. There is no warning about what is the engine's, nor about what a plug-in takes.
static void read_strange(struct playbook *pb, const struct net_task *task)
{
    struct reader *r = pb->r;
    const struct program_loader *loader = r->load->loader;
    const struct json *with = task->with && loader && loader->task_field ? template_tree_source(task->with) : NULL;
    for (uint32_t i = 0; with && i < with->count; i++) {
        struct str key = with->members[i].key;
        bool told = str_starts(key, STR("x-")) || task_field_gone(key);
        if (told || loader->task_field(loader->context, task->kind, key)) continue;
        struct span at = place_of(r, &with->members[i].value);
        struct diagnostic *d = WARNING(r, "E0219", at, "the tool %.*s does not look at \"%.*s\": it has no effect",
                                       SHOW(task->kind), SHOW(key));
        if (str_is(key, "pagination"))
            HINT(r, d, "ask for the next page with a rule that jumps back to the task while there is one: do: jump");
        if (str_is(key, "save")) HINT(r, d, "store a result with a task of its own, after this one");
    }
}

// Code is never a template; who takes it for one gets the braces as they are.
static void read_code(struct playbook *pb, const struct net_task *task)
{
    static const char *const scopes[] = {"workload", "ctx", "iter", "args", "keychain", "execution_id"};
    const struct json *code = task->with ? field(template_tree_source(task->with), "code", NULL) : NULL;
    struct str text = json_text(code);
    for (size_t at = str_find(text, '{', 0); at + 1 < text.len; at = str_find(text, '{', at + 1)) {
        if (text.ptr[at + 1] != '{') continue;
        struct str inner = str_trim(str_slice(text, at + 2, text.len));
        for (size_t i = 0; i < ARRAY_COUNT(scopes); i++) {
            size_t len = strlen(scopes[i]);
            if (!str_starts(inner, str_from(scopes[i])) || len >= inner.len || !strchr(". |}", inner.ptr[len]))
                continue;
            struct span where = place_of(pb->r, code);
            struct diagnostic *d =
                WARNING(pb->r, "E0219", where, "{{ %s ... }} in code stays as it is: code is no template", scopes[i]);
            HINT(pb->r, d, "pass the value in: input: {name: \"{{ ... }}\"}, and use the variable name");
            return;
        }
    }
}

void advise_task(struct playbook *pb, const struct net_task *task)
{
    read_needs(pb, task);
    read_strange(pb, task);
    read_code(pb, task);
}
