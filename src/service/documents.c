// Documents that came through a door: compiled once, found again by the hash of their bytes. A tenant's document may name only
// what came with it; nothing is read from the server's own files.
#include "service/inside.h"

#include "author/author.h"
#include "base/map.h"
#include "base/text.h"
#include "contract/profile.h"

struct enclosed {
    const struct json *parts; // may be NULL
    struct map by_name;       // who asks and for what, to the number of the part
};

static uint32_t count_of(const struct json *parts)
{
    return json_is(parts, JSON_ARRAY) ? parts->count : 0;
}

static struct str name_of(struct arena *arena, struct str from, struct str request)
{
    return arena_format(arena, "%zu:%.*s%.*s", from.len, STR_ARG(from), STR_ARG(request));
}

static bool same_file(const struct json *a, const struct json *b)
{
    return json_equal(json_key(a, "file"), json_key(b, "file")) && json_equal(json_key(a, "text"), json_key(b, "text"));
}

// Each part as the schema of requests has it (a set was held against none), and one file for each name: who approves a set has read
// what runs.
static bool enclosed_open(struct call *call, const struct json *parts, struct enclosed *out)
{
    static const char *const needed[] = {"from", "request", "file", "text"};
    *out = (struct enclosed){.parts = parts};
    map_init(&out->by_name, &call->arena);
    for (uint32_t i = 0, before; i < count_of(parts); i++) {
        const struct json *part = &parts->items[i];
        for (size_t k = 0; k < ARRAY_COUNT(needed); k++)
            if (!json_is(json_key(part, needed[k]), JSON_STRING))
                return call_problem(call, 422, "INVALID_PLAN_SCHEMA", "/parts/%u/%s must be a text", i, needed[k]);
        struct str from = json_text(json_key(part, "from")), request = json_text(json_key(part, "request"));
        struct str name = name_of(&call->arena, from, request);
        if (!name.ptr || !map_put(&out->by_name, name, i, &before)) return call_nomem(call);
        if (before != MAP_NONE && !same_file(part, &parts->items[before]))
            return call_problem(call, 422, "INVALID_PLAN_SCHEMA", "/parts/%u is what /parts/%u is, and another file", i, before);
    }
    return true;
}

static enum code load_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    const struct enclosed *enclosed = context;
    struct str name = name_of(arena, part->from, part->request);
    if (!name.ptr) return error_nomem(err);
    uint32_t at = map_get(&enclosed->by_name, name);
    if (at == MAP_NONE) return error_set(err, E_NOT_FOUND, "it did not come with the document: send it in `parts`");
    const struct json *sent = &enclosed->parts->items[at];
    // The program keeps them, longer than the request lives.
    part->file = arena_copy(arena, json_text(json_key(sent, "file")));
    part->text = arena_copy(arena, json_text(json_key(sent, "text")));
    return part->file.ptr && part->text.ptr ? OK : error_nomem(err);
}

// Which functions there are is known by the workers; a step that nobody takes waits for one that does.
static bool any_function(void *context, struct str name)
{
    (void)context;
    return name.len > 0;
}

// Of everything that the program is made from, piece by piece, so that none can pose as two.
static bool hash_of(struct arena *arena, struct str text, struct str file, const struct json *parts, struct digest *out)
{
    static const char *const keys[] = {"from", "request", "file", "text"};
    size_t count = 2 + (size_t)count_of(parts) * ARRAY_COUNT(keys), n = 0;
    struct str *pieces = ARENA_ARRAY(arena, count, struct str);
    struct digest *digests = ARENA_ARRAY(arena, count, struct digest);
    if (!pieces || !digests) return false;
    pieces[n++] = text;
    pieces[n++] = file;
    for (uint32_t i = 0; i < count_of(parts); i++)
        for (size_t k = 0; k < ARRAY_COUNT(keys); k++) pieces[n++] = json_text(json_key(&parts->items[i], keys[k]));
    for (size_t i = 0; i < n; i++) digests[i] = sha256(pieces[i]);
    *out = sha256((struct str){(const char *)digests, n * sizeof(*digests)});
    return true;
}

static struct program *find(struct documents *documents, const struct digest *sha256)
{
    struct program *program = NULL;
    LOCKED(&documents->mutex);
    for (size_t i = 0; i < documents->count; i++) {
        if (!digest_eq(&documents->items[i].sha256, sha256)) continue;
        documents->items[i].used = ++documents->clock;
        program = program_retain(documents->items[i].program);
        break;
    }
    return program;
}

static void keep(struct documents *documents, const struct digest *sha256, struct program *program)
{
    struct program *dropped = NULL;
    pthread_mutex_lock(&documents->mutex);
    size_t place = documents->count;
    if (place == DOCUMENTS_KEPT) {
        place = 0;
        for (size_t i = 1; i < documents->count; i++)
            if (documents->items[i].used < documents->items[place].used) place = i;
        dropped = documents->items[place].program;
    } else {
        documents->count++;
    }
    documents->items[place] = (struct known_document){*sha256, program_retain(program), ++documents->clock};
    pthread_mutex_unlock(&documents->mutex);
    if (dropped) program_release(dropped);
}

static bool mistake_json(struct call *call, const struct diagnostic *d, struct json *out)
{
    struct arena *arena = &call->arena;
    *out = JSON_OF(arena, {"id", json_word(d->id)}, {"code", json_when(d->code[0], json_word(d->code))},
                   {"severity", json_word(d->severity == SEVERITY_ERROR ? "error" : "warning")},
                   {"file", json_string(arena_copy(arena, d->file))}, {"line", json_int(d->line)},
                   {"column", json_int(d->column)}, {"message", json_string(arena_copy(arena, d->message))},
                   {"hint", d->hint.len ? json_string(arena_copy(arena, d->hint)) : json_none()});
    return json_ok(out);
}

static bool tell_mistakes(struct call *call, struct diagnostics *diagnostics)
{
    struct json list = json_array(), body = json_object();
    const char *code = "INVALID_PLAN_SCHEMA";
    diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        struct json one;
        if (!mistake_json(call, &diagnostics->items[i], &one) || !json_push(&call->arena, &list, one)) break;
        if (diagnostics->items[i].code[0] && diagnostics->items[i].severity == SEVERITY_ERROR)
            code = diagnostics->items[i].code;
    }
    if (json_put(&call->arena, &body, STR("errors"), list)) call->answer.body = body;
    return call_problem(call, 422, code, "the document has %u mistake%s", diagnostics->error_count,
                        diagnostics->error_count == 1 ? "" : "s");
}

bool documents_is_set(struct str text)
{
    return text.len > 0 && text.ptr[0] == '{' && str_starts(str_slice(text, 1, text.len), STR("\"document\""));
}

bool documents_unpack(struct call *call, struct str *text, struct str *file, const struct json **parts)
{
    struct error err = {0};
    if (!documents_is_set(*text)) return true;
    struct json *set = ARENA_NEW(&call->arena, struct json);
    enum code rc = set ? json_parse(*text, NULL, &call->arena, set, &err) : E_NOMEM;
    if (rc == E_NOMEM) return call_nomem(call);
    const struct json *document = rc ? NULL : json_key(set, "document"), *name = rc ? NULL : json_key(set, "file");
    const struct json *rest = rc ? NULL : json_key(set, "parts");
    bool known = !rc && set->count == (uint32_t)((document != NULL) + (name != NULL) + (rest != NULL));
    if (!known || !json_is(document, JSON_STRING) || !json_is(name, JSON_STRING) || !json_is(rest, JSON_ARRAY))
        return call_problem(call, 422, "INVALID_PLAN_SCHEMA",
                            "a set of documents is an object of document, file and parts, and of nothing else");
    *text = json_text(document);
    *file = json_text(name);
    *parts = rest;
    return true;
}

enum document_result documents_get(struct call *call, struct str text, struct str file, const struct json *parts,
                                   struct program **out)
{
    struct documents *documents = &call->service->documents;
    struct digest key;
    if (!hash_of(&call->arena, text, file, parts, &key)) {
        call_nomem(call);
        return DOCUMENT_FAILED;
    }
    *out = find(documents, &key);
    if (*out) return DOCUMENT_OK;
    struct enclosed enclosed;
    if (!enclosed_open(call, parts, &enclosed)) return call->answer.status == 422 ? DOCUMENT_INVALID : DOCUMENT_FAILED;
    struct program_loader loader = {.context = &enclosed,
                                    .steps_max = call->service->settings.steps_max,
                                    .load = load_part,
                                    .host_kind = any_function};
    struct diagnostics diagnostics;
    struct error err = {0};
    diagnostics_init(&diagnostics, &call->arena);
    enum code rc = program_load(text, file, &loader, &diagnostics, out, &err);
    if (rc == E_INVALID) {
        tell_mistakes(call, &diagnostics);
        return DOCUMENT_INVALID;
    }
    if (rc) {
        call_failed(call, &err);
        return DOCUMENT_FAILED;
    }
    keep(documents, &key, *out);
    return DOCUMENT_OK;
}

bool documents_know(struct call *call, struct str text, struct str file, const struct json *parts)
{
    struct digest key;
    if (!hash_of(&call->arena, text, file, parts, &key)) return false;
    struct program *program = find(&call->service->documents, &key);
    if (program) program_release(program);
    return program != NULL;
}

void documents_release(struct documents *documents)
{
    for (size_t i = 0; i < documents->count; i++) program_release(documents->items[i].program);
    documents->count = 0;
}

bool service_validate(struct call *call, const struct validate_call *given)
{
    struct program *program;
    struct capability_report report;
    struct json body;
    struct str file = given->file.len ? given->file : STR("<document>");
    if (given->document.len == 0) return call_problem(call, 400, "INVALID_REQUEST", "document is needed");
    if (documents_get(call, given->document, file, given->parts, &program) != DOCUMENT_OK) return false;
    struct error err = {0};
    struct run_ids ids = {
        .tenant = call->who.tenant,
        .environment = call->place.environment.len > 0 ? call->place.environment : STR("default"),
    };
    if (engine_supports(call->service->engine, &ids, program, &err)) { // as a start would say
        program_release(program);
        return call_failed(call, &err);
    }
    // The report borrows the program's texts.
    bool ok = capability_validate(program, given->target_adapter, &call->service->settings.adapters,
                                  os_now().wall_ms, &call->arena, &report) &&
              json_copy(&call->arena, &report.json, &body);
    program_release(program);
    if (ok) return call_answer(call, 200, body);
    return call_nomem(call);
}

bool service_draw(struct call *call, const struct validate_call *given)
{
    struct program *program;
    struct json drawn, body;
    struct error err = {0};
    struct str file = given->file.len ? given->file : STR("<document>");
    if (given->document.len == 0) return call_problem(call, 400, "INVALID_REQUEST", "document is needed");
    if (documents_get(call, given->document, file, given->parts, &program) != DOCUMENT_OK) return false;
    enum code rc = graph_json(program, &call->arena, &drawn, &err);
    if (!rc && !json_copy(&call->arena, &drawn, &body)) rc = error_nomem(&err); // what was drawn borrows the program's texts
    program_release(program);
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, body);
}
