#include "schema/embedded.h"

#include "schema/internal.h"

struct str schema_embedded(const char *name)
{
    for (size_t i = 0; i < embedded_file_count; i++) {
        if (str_is(str_from(name), embedded_files[i].name))
            return (struct str){(const char *)embedded_files[i].bytes, embedded_files[i].size};
    }
    return STR("");
}

const char *schema_embedded_name(size_t index)
{
    return index < embedded_file_count ? embedded_files[index].name : NULL;
}

static bool is_under(const char *name, const char *folder)
{
    struct str path = str_from(name), start = str_from(folder);
    return str_starts(path, start) && path.len > start.len && path.ptr[start.len] == '/';
}

static enum code add_file(struct schema_set *set, const char *name, struct arena *arena, struct error *err)
{
    struct json *document = ARENA_NEW(arena, struct json);
    if (!document) return error_nomem(err);
    enum code rc = json_parse(schema_embedded(name), &json_limits_default, arena, document, err);
    if (!rc) rc = schema_set_add(set, str_from(name), document, err);
    if (rc) error_wrap(err, "schemas/%s", name);
    return rc;
}

enum code schema_set_embed(struct schema_set *set, const char *folder, struct arena *arena, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; i < embedded_file_count && !rc; i++) {
        const char *name = embedded_files[i].name;
        if (!folder || is_under(name, folder)) rc = add_file(set, name, arena, err);
    }
    return rc;
}

struct str schema_components(void)
{
    for (size_t i = 0; i < embedded_table_count; i++)
        if (str_is(str_from(embedded_tables[i].name), "openapi-components.json"))
            return (struct str){(const char *)embedded_tables[i].bytes, embedded_tables[i].size};
    return STR("");
}

enum code schema_set_components(struct schema_set *set, struct arena *arena, const struct json **document,
                                struct error *err)
{
    struct json *whole = ARENA_NEW(arena, struct json), components;
    if (!whole) return error_nomem(err);
    enum code rc = json_parse(schema_components(), NULL, arena, &components, err);
    *whole = json_object();
    if (!rc && !json_put(arena, whole, STR("components"), components)) rc = error_nomem(err);
    if (!rc) rc = schema_set_add(set, STR("openapi.json"), whole, err);
    if (document) *document = whole;
    return rc;
}

enum code schema_set_embedded(struct arena *arena, struct schema_set **out, struct error *err)
{
    struct schema_set *set = NULL;
    if (schema_set_open(arena, &set)) return error_nomem(err);
    enum code rc = schema_set_embed(set, NULL, arena, err);
    if (!rc) *out = set;
    return rc;
}
