#include "program/playbook.h"

#include <string.h>

enum { BLOCK_SIZE = 4096 };

static const struct load_options options_default = {.size_max = 256 * 1024 * 1024};

// ---- loading

static void start_arena(struct arena *arena, const struct load_options *options)
{
    arena_init(arena, BLOCK_SIZE, options->size_max);
    arena->fail_in = options->fail_in;
    arena->fail_sticky = options->fail_sticky;
}

static struct program *program_new(struct load *load, struct str text, struct str file)
{
    struct arena arena;
    start_arena(&arena, load->options);
    struct program *program = ARENA_NEW(&arena, struct program);
    if (!program) {
        arena_release(&arena);
        return NULL;
    }
    program->arena = arena;
    program->references = 1;
    program->text = arena_copy(&program->arena, text);
    program->file = arena_copy(&program->arena, file);
    if (!program->text.ptr || !program->file.ptr) {
        program_release(program);
        return NULL;
    }
    program->sha256 = sha256(program->text);
    digest_hex(&program->sha256, program->sha256_hex);
    program->plan_id = program->plan_version = program->schema_version = STR("");
    program->name = program->description = STR("");
    program->inputs = json_object();
    return program;
}

static bool is_playbook(const struct json *root)
{
    if (str_starts(json_text(json_key(root, "apiVersion")), STR("noetl.io/"))) return true;
    if (str_is(json_text(json_key(root, "kind")), "Playbook")) return true;
    return json_key(root, "workflow") && !json_key(root, "steps") && !json_key(root, "nodes");
}

// Returns what is left to do for a playbook once its steps have their numbers; NULL for other documents.
static struct playbook *read_document(struct reader *r, const struct json *root, struct draft_list *list)
{
    struct span at = place_of(r, root);
    if (root->type != JSON_OBJECT) {
        ERROR(r, "E0201", at, "a document is a mapping of fields, but this one is of type %s",
              json_type_name((enum json_type)root->type));
        return NULL;
    }
    if (is_playbook(root)) {
        r->program->kind = DOCUMENT_PLAYBOOK;
        return playbook_read(r, root, list);
    }
    bool steps = json_key(root, "steps") != NULL;
    bool nodes = json_key(root, "nodes") != NULL;
    if (steps == nodes) {
        ERROR(r, "E0202", at,
              steps ? "the document has both \"steps\" and \"nodes\""
                    : "the document has neither \"steps\" (a plan) nor \"nodes\" (a workflow) nor \"workflow\" (a "
                      "playbook)");
        return NULL;
    }
    r->program->kind = steps ? DOCUMENT_PLAN : DOCUMENT_NODES;
    if (steps)
        plan_read(r, root, list);
    else
        nodes_read(r, root, list);
    return NULL;
}

// The messages of doc_tree know no contract codes.
static void give_code(struct diagnostics *diagnostics, size_t first)
{
    for (size_t i = first; i < diagnostics->count; i++)
        if (diagnostics->items[i].code[0] == '\0') diagnostics->items[i].code = "INVALID_PLAN_SCHEMA";
}

static enum code compile_document(struct reader *r, const struct chain *chain)
{
    struct json root;
    size_t first = r->diagnostics->count;
    struct doc_limits limits = doc_limits_default;
    limits.size_max *= program_scale(r->load->steps_max);
    limits.yaml_size_max *= program_scale(r->load->steps_max);
    limits.node_count_max *= program_scale(r->load->steps_max);
    enum code rc = doc_tree(r->program->text, r->file, &limits, r->arena, &root, r->diagnostics);
    if (rc) {
        give_code(r->diagnostics, first);
        return rc;
    }
    struct draft_list list = {0};
    struct playbook *playbook = read_document(r, &root, &list);
    struct draft **drafts = compile(r, &list);
    if (drafts) children_load(r, drafts, chain);
    if (drafts && playbook) playbook_finish(playbook, chain);
    parts_finish(r);
    return r->failed || r->diagnostics->failed ? E_NOMEM : OK;
}

enum code load_document(struct load *load, struct str text, struct str file, const struct chain *outer,
                        struct program **out, uint32_t *height)
{
    *out = NULL;
    struct program *program = program_new(load, text, file);
    if (!program) return E_NOMEM;
    struct diagnostics *diagnostics = load->diagnostics;
    struct reader r = {
        .load = load,
        .program = program,
        .arena = &program->arena,
        .scratch = &load->scratch,
        .diagnostics = diagnostics,
        .file = file,
        .text = str_starts(program->text, STR("\xEF\xBB\xBF")) ? str_slice(program->text, 3, program->text.len)
                                                               : program->text,
        .code = "INVALID_PLAN_SCHEMA",
        .on_failure = ON_FAILURE_FAIL_RUN,
        .height = 1,
    };
    map_init(&r.part_by_key, r.scratch);
    struct chain chain = {.file = program->file, .outer = outer, .depth = 1};
    if (outer) chain.depth = outer->depth + 1;
    uint32_t errors = diagnostics->error_count;
    enum code rc = compile_document(&r, &chain);
    if (rc == OK && diagnostics->error_count > errors) rc = E_INVALID;
    if (rc) {
        program_release(program);
        return rc;
    }
    INVARIANT(program->step_count > 0 && program->order);
    *height = r.height;
    *out = program;
    return OK;
}

enum code program_load_with(struct str text, struct str file, const struct program_loader *loader,
                            const struct load_options *options, struct diagnostics *diagnostics, struct program **out,
                            struct error *err)
{
    struct load_options scaled = *options;
    struct load load = {.loader = loader, .diagnostics = diagnostics, .options = &scaled};
    load.steps_max = loader && loader->steps_max ? loader->steps_max : PROGRAM_STEPS;
    INVARIANT(load.steps_max <= PROGRAM_STEPS_MAX);
    load.edges_max = EDGE_COUNT_MAX * program_scale(load.steps_max);
    scaled.size_max *= program_scale(load.steps_max);
    start_arena(&load.scratch, &scaled);
    map_init(&load.loaded_by_file, &load.scratch);
    uint32_t errors = diagnostics->error_count;
    uint32_t height;
    enum code rc = load_document(&load, text, file, NULL, out, &height);
    for (size_t i = 0; i < load.loaded_count; i++) program_release(load.loaded[i].program);
    arena_release(&load.scratch);
    if (rc == E_INVALID) {
        uint32_t count = diagnostics->error_count - errors;
        INVARIANT(count > 0);
        return error_set(err, rc, "%.*s has %u error%s", SHOW(file), count, count == 1 ? "" : "s");
    }
    if (rc) return error_set(err, rc, "out of memory reading %.*s", SHOW(file));
    return OK;
}

enum code program_load(struct str text, struct str file, const struct program_loader *loader,
                       struct diagnostics *diagnostics, struct program **out, struct error *err)
{
    return program_load_with(text, file, loader, &options_default, diagnostics, out, err);
}

// ---- sharing

struct program *program_retain(const struct program *program)
{
    // Only the count changes; the program itself stays as it is.
    union {
        const struct program *given;
        struct program *kept;
    } same = {program};
    int before = __atomic_fetch_add(&same.kept->references, 1, __ATOMIC_RELAXED);
    INVARIANT(before > 0);
    return same.kept;
}

void program_release(struct program *program)
{
    if (!program) return;
    int before = __atomic_fetch_sub(&program->references, 1, __ATOMIC_ACQ_REL);
    INVARIANT(before > 0);
    if (before > 1) return;
    for (uint32_t i = 0; i < program->step_count; i++) {
        union {
            const struct program *given;
            struct program *kept;
        } child = {program->steps[i].child};
        program_release(child.kept);
    }
    for (uint32_t i = 0; program->net && program->net->steps && i < program->step_count; i++) {
        const struct net_step *step = &program->net->steps[i];
        for (uint32_t k = 0; k < step->task_count; k++) {
            union {
                const struct program *given;
                struct program *kept;
            } child = {step->tasks[k].child};
            program_release(child.kept);
        }
    }
    arena_release(&program->arena);
}

// ---- names

struct str id_key(uint32_t scope, struct str id, char out[static 160])
{
    if (id.len > 128) return (struct str){out, 0};
    size_t len = 0;
    if (scope != PROGRAM_TOP) {
        do {
            out[len++] = (char)('0' + scope % 10);
            scope /= 10;
        } while (scope);
        out[len++] = '/';
    }
    if (id.len) memcpy(out + len, id.ptr, id.len);
    return (struct str){out, len + id.len};
}

uint32_t program_scope(const struct program *program, uint32_t scope, uint32_t *first)
{
    *first = scope == PROGRAM_TOP ? 0 : program->steps[scope].first_child;
    return scope == PROGRAM_TOP ? program->top_count : program->steps[scope].child_count;
}

uint32_t program_find(const struct program *program, uint32_t scope, struct str id)
{
    char buffer[160];
    struct str key = id_key(scope, id, buffer);
    uint32_t found = key.len ? map_get(&program->ids, key) : MAP_NONE;
    return found == MAP_NONE ? PROGRAM_TOP : found;
}

bool host_kind_valid(struct str name)
{
    static const char *const ours[] = {
#define X(name, text, what) text,
        STEP_KIND_LIST(X)
#undef X
            "bash",
    };
    if (name.len == 0 || name.len > 64 || name.ptr[0] < 'a' || name.ptr[0] > 'z') return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!ok) return false;
    }
    for (size_t i = 0; i < ARRAY_COUNT(ours); i++)
        if (str_is(name, ours[i])) return false;
    return true;
}

struct str program_input_type(const struct program *program, struct str name)
{
    for (uint32_t i = 0; json_is(&program->inputs, JSON_OBJECT) && i < program->inputs.count; i++)
        if (str_eq(program->inputs.members[i].key, name)) return program->input_types[i];
    return (struct str){0};
}

const char *step_kind_name(enum step_kind kind)
{
    switch (kind) {
    case STEP_KIND_FIRST_UNUSED:
        break;
#define X(name, text, what)                                                                                            \
    case STEP_##name:                                                                                                  \
        return text;
        STEP_KIND_LIST(X)
#undef X
    }
    return "unknown";
}

const char *document_kind_name(enum document_kind kind)
{
    if (kind == DOCUMENT_PLAYBOOK) return "playbook";
    return kind == DOCUMENT_PLAN ? "plan" : "nodes";
}

const char *backoff_name(enum backoff backoff)
{
    switch (backoff) {
    case BACKOFF_NONE:
        return "none";
    case BACKOFF_LINEAR:
        return "linear";
    case BACKOFF_EXPONENTIAL:
        return "exponential";
    }
    return "unknown";
}
