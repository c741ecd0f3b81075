// The words that stand in Conductor: definitions, keys of attempts, ids of signals.
#include "conductor/inside.h"
#include "schema/embedded.h"

#include <stdio.h>

enum { TABLE_SIZE = 1 << 16 };

// schemas/conductor.json, which the binary carries.
static enum code read_table(struct arena *arena, struct json *out, struct error *err)
{
    for (size_t i = 0; i < embedded_table_count; i++) {
        const struct embedded_file *file = &embedded_tables[i];
        if (str_is(str_from(file->name), "conductor.json"))
            return json_parse((struct str){(const char *)file->bytes, file->size}, NULL, arena, out, err);
    }
    return error_set(err, E_CORRUPT, "this program has no definitions for Conductor");
}

// OK: it is there, by us or by others. What people changed about it, such as limits of rate and concurrency, stays.
static enum code make(struct line *line, const char *what, const struct json *definition, struct error *err)
{
    struct reply reply;
    bool task = what[0] == 't';
    struct str name = json_text(json_key(definition, "name"));
    char version[32] = "";
    if (!task)
        snprintf(version, sizeof(version), "?version=%lld", (long long)json_integer(json_key(definition, "version"), 1));
    enum code rc = line_ask(line, &reply, err, "GET", (struct str){0}, "/metadata/%s/%.*s%s", what, STR_ARG(name), version);
    if (rc || reply.status == 200) return rc;
    struct buf body SCOPED(buf_release) = buf_of(TABLE_SIZE);
    if (task) buf_byte(&body, '[');
    json_write(&body, definition);
    if (task) buf_byte(&body, ']');
    if (!buf_ok(&body)) return error_nomem(err);
    rc = line_ask(line, &reply, err, "POST", buf_str(&body), "/metadata/%s", what);
    if (rc || reply.status == 200 || reply.status == 409) return rc; // 409: another host was faster
    struct str why = json_text(json_key(&reply.body, "message"));
    return error_set(err, E_INVALID, "Conductor refuses the definition of %.*s: status %d %.*s", STR_ARG(name),
                     reply.status, STR_ARG(why));
}

static enum code make_all(struct line *line, const char *what, const struct json *list, struct error *err)
{
    enum code rc = OK;
    for (uint32_t i = 0; !rc && json_is(list, JSON_ARRAY) && i < list->count; i++)
        rc = make(line, what, &list->items[i], err);
    return rc;
}

enum code definitions_make(struct line *line, struct error *err)
{
    struct arena arena SCOPED(arena_release);
    struct json table;
    arena_init(&arena, 4096, TABLE_SIZE * 4);
    enum code rc = read_table(&arena, &table, err);
    if (!rc) rc = make_all(line, "taskdefs", json_key(&table, "taskdefs"), err);
    return rc ? rc : make_all(line, "workflow", json_key(&table, "workflows"), err);
}

struct str carried_key(struct arena *arena, struct str tenant, struct str run, struct str step, uint32_t logical,
                       uint32_t engine)
{
    return arena_format(arena, "%.*s/%.*s:%.*s:%u:%u", STR_ARG(tenant), STR_ARG(run), STR_ARG(step), logical, engine);
}

// The same for every host that sees the same action, however often it says so.
void signal_id(char out[UUID_SIZE], const char *workflow, const char *action, const char *stamp)
{
    char text[320];
    int size = snprintf(text, sizeof(text), "cairn.conductor|%s|%s|%s", workflow, action, stamp);
    uuid_named((struct str){text, size > 0 && (size_t)size < sizeof(text) ? (size_t)size : 0}, out);
}
