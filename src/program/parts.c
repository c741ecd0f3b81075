// Other files that a document needs: named scripts and child documents.
//
// A part is asked for once per (kind, runtime, asking file, name) and remembered with its bytes, so that a run that is
// resumed later executes what it was started with. Child documents are compiled once per call of program_load, however
// many steps run them, and share the program.
#include "program/internal.h"

#include <string.h>

// ---- parts

static struct str part_key(struct reader *r, enum part_kind kind, struct str runtime, struct str from,
                           struct str request)
{
    const struct str pieces[] = {kind == PART_SCRIPT ? STR("s") : STR("d"), runtime, from, request};
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) size += pieces[i].len + 1;
    char *key = arena_alloc(r->scratch, size);
    if (!key) return (struct str){NULL, 0};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        if (pieces[i].len) memcpy(key + len, pieces[i].ptr, pieces[i].len);
        len += pieces[i].len;
        key[len++] = '\0';
    }
    return (struct str){key, len};
}

// Adds the part unless it is there; NULL when memory ran out.
static const struct program_part *part_add(struct reader *r, const struct program_part *part)
{
    struct str key = part_key(r, part->kind, part->runtime, part->from, part->request);
    uint32_t existing;
    if (!key.ptr || !map_put(&r->part_by_key, key, (uint32_t)r->part_count, &existing)) return NULL;
    if (existing != MAP_NONE) return &r->parts[existing];
    if (!ARENA_ROOM(r->arena, r->parts, r->part_count, &r->part_capacity)) return NULL;
    r->parts[r->part_count] = *part;
    return &r->parts[r->part_count++];
}

static bool refuse_part(struct reader *r, const struct json *request, const struct error *err, enum child_need need)
{
    struct span at = place_of(r, request);
    if (need == CHILD_MAYBE) return false;
    if (need == CHILD_LATER) {
        struct diagnostic *d = WARNING(r, "E0218", at, "%s", err->message);
        HINT(r, d, "it is looked for again when the task runs");
    } else {
        ERROR(r, "E0218", at, "%s", err->message);
    }
    return false;
}

static bool part_find(struct reader *r, enum part_kind kind, const struct json *request, struct str runtime,
                      enum child_need need, struct str *file, struct str *text)
{
    struct program *program = r->program;
    struct error err = {0};
    struct str key = part_key(r, kind, runtime, program->file, request->text);
    if (!key.ptr) {
        r->failed = true;
        return false;
    }
    uint32_t known = map_get(&r->part_by_key, key);
    if (known != MAP_NONE) {
        *file = r->parts[known].file;
        *text = r->parts[known].text;
        return true;
    }
    const struct program_loader *loader = r->load->loader;
    if (!loader || !loader->load) {
        error_set(&err, E_NOT_FOUND, "\"%.*s\" is another file, and none can be read here", SHOW(request->text));
        return refuse_part(r, request, &err, need);
    }
    struct program_part part = {.kind = kind, .from = program->file, .request = request->text, .runtime = runtime};
    enum code rc = loader->load(loader->context, &part, r->arena, &err);
    *file = part.file;
    *text = part.text;
    if (rc == E_NOMEM) {
        r->failed = true;
        return false;
    }
    if (rc) {
        if (err.code == OK) error_set(&err, rc, "\"%.*s\" cannot be read", SHOW(request->text));
        return refuse_part(r, request, &err, need);
    }
    part.sha256 = sha256(part.text);
    if (!part_add(r, &part)) r->failed = true;
    return !r->failed;
}

bool part_load(struct reader *r, enum part_kind kind, const struct json *request, struct str runtime, struct str *file,
               struct str *text)
{
    return part_find(r, kind, request, runtime, CHILD_REQUIRED, file, text);
}

void parts_finish(struct reader *r)
{
    r->program->parts = r->parts;
    r->program->part_count = (uint32_t)r->part_count;
}

// ---- child documents

static void report_recursion(struct reader *r, const struct json *document, struct str file, const struct chain *chain)
{
    const struct chain *links[NESTING_MAX + 1];
    size_t count = 0;
    for (const struct chain *link = chain; link; link = link->outer) {
        INVARIANT(count < ARRAY_COUNT(links));
        links[count++] = link;
        if (str_eq(link->file, file)) break;
    }
    struct buf path SCOPED(buf_release) = buf_of(4096);
    while (count-- > 0) buf_printf(&path, "%.*s -> ", SHOW(links[count]->file));
    buf_printf(&path, "%.*s", SHOW(file));
    if (!buf_ok(&path)) r->failed = true;
    struct span at = place_of(r, document);
    ERROR(r, "E0307", at, "a document runs itself: %s", path.ptr);
}

static const struct loaded *remember(struct reader *r, struct loaded entry)
{
    struct load *load = r->load;
    struct loaded *grown = arena_grow(&load->scratch, load->loaded, load->loaded_count, load->loaded_count + 1,
                                      sizeof(entry), &load->loaded_capacity);
    if (grown) load->loaded = grown;
    entry.file = arena_copy(&load->scratch, entry.file);
    if (!grown || !entry.file.ptr || !map_put(&load->loaded_by_file, entry.file, (uint32_t)load->loaded_count, NULL)) {
        program_release(entry.program);
        r->failed = true;
        return NULL;
    }
    load->loaded[load->loaded_count] = entry;
    return &load->loaded[load->loaded_count++];
}

// The child's diagnostics point into its text, which dies with the program: they get a copy.
static void keep_source(struct reader *r, struct diagnostics *diagnostics, size_t first, struct str text)
{
    struct str copy = {NULL, 0};
    for (size_t i = first; i < diagnostics->count; i++) {
        if (diagnostics->items[i].source.ptr != text.ptr) continue;
        if (!copy.ptr) copy = arena_copy(diagnostics->arena, text);
        if (!copy.ptr) r->failed = true;
        diagnostics->items[i].source = copy;
    }
}

static const struct loaded *load_child(struct reader *r, struct str file, struct str text, const struct chain *chain,
                                       struct diagnostics *diagnostics)
{
    uint32_t known = map_get(&r->load->loaded_by_file, file);
    if (known != MAP_NONE) return &r->load->loaded[known];
    struct diagnostics *outer = r->load->diagnostics;
    struct loaded entry = {.file = file};
    struct str outer_source = diagnostics->source;
    size_t first = diagnostics->count;
    struct str shown = arena_copy(diagnostics->arena, file);
    if (!shown.ptr) {
        r->failed = true;
        return NULL;
    }
    diagnostics->source = text;
    r->load->diagnostics = diagnostics;
    enum code rc = load_document(r->load, text, shown, chain, &entry.program, &entry.height);
    r->load->diagnostics = outer;
    keep_source(r, diagnostics, first, text);
    diagnostics->source = outer_source;
    if (rc == E_NOMEM) r->failed = true;
    if (rc && rc != E_INVALID) return NULL;
    return remember(r, entry);
}

// What is wrong with a child that may be another one when it is needed.
static const struct program *doubt(struct reader *r, const struct json *document, const char *why, struct str file)
{
    struct span at = place_of(r, document);
    struct diagnostic *d = WARNING(r, "E0308", at, "%.*s %s", SHOW(file), why);
    HINT(r, d, "the task fails when it runs it, unless it is another document by then");
    return NULL;
}

const struct program *child_of(struct reader *r, const struct json *document, const struct chain *chain,
                               enum child_need need, struct str *around)
{
    INVARIANT(chain); // its first link is the outermost document
    struct str file;
    struct str text;
    bool later = need != CHILD_REQUIRED;
    if (!part_find(r, PART_DOCUMENT, document, STR(""), need, &file, &text)) return NULL;
    for (const struct chain *link = chain; link; link = link->outer) {
        if (!str_eq(link->file, file)) continue;
        if (later) { // it is there when it runs; how deep it goes is seen then
            *around = link->file;
            return NULL;
        }
        report_recursion(r, document, file, chain);
        return NULL;
    }
    struct span at = place_of(r, document);
    if (chain->depth == NESTING_MAX) {
        ERROR(r, "E0507", at, "documents run documents more than %d deep", NESTING_MAX);
        return NULL;
    }
    struct diagnostics aside;
    diagnostics_init(&aside, r->scratch);
    const struct loaded *child = load_child(r, file, text, chain, later ? &aside : r->diagnostics);
    if (aside.failed) r->failed = true;
    if (!child) return NULL;
    if (!child->program && need == CHILD_MAYBE) return NULL;
    if (!child->program && later) return doubt(r, document, "has errors (cairn validate lists them)", file);
    if (!child->program) {
        ERROR(r, "E0308", at, "the document %.*s has errors", SHOW(file));
        return NULL;
    }
    if (chain->depth + child->height > NESTING_MAX) {
        ERROR(r, "E0507", at, "documents run documents more than %d deep", NESTING_MAX);
        return NULL;
    }
    if (child->height + 1 > r->height) r->height = child->height + 1;
    for (uint32_t i = 0; i < child->program->part_count; i++)
        if (!part_add(r, &child->program->parts[i])) r->failed = true;
    return program_retain(child->program);
}

void children_load(struct reader *r, struct draft **drafts, const struct chain *chain)
{
    for (uint32_t i = 0; i < r->program->step_count && !r->failed; i++)
        if (drafts[i]->document)
            r->program->steps[i].child = child_of(r, drafts[i]->document, chain, CHILD_REQUIRED, NULL);
}
