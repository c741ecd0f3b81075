// Child runs of a tenant that have not ended. A document can start itself as a child, more than once, and so come to any number of
// runs from one start: they are counted, and beyond the limit none begins. The runs of other tenants have room anyhow.
#include "engine/inside.h"

#include <stdlib.h>
#include <string.h>

enum { CHILDREN_DEFAULT = 50000 };

struct child_count {
    struct child_count *next;
    size_t count, size; // size: of the name
    char tenant[];
};

static struct child_count **find(struct child_count **at, struct str tenant)
{
    while (*at && !str_eq((struct str){(*at)->tenant, (*at)->size}, tenant)) at = &(*at)->next;
    return at;
}

enum code children_count(struct engine *engine, struct resident *child, struct error *err)
{
    struct str tenant = child->ids.tenant;
    struct child_count **at = find(&engine->children, tenant);
    if (child->is_child) return OK;
    if (!*at) {
        struct child_count *made = calloc(1, sizeof(*made) + tenant.len);
        if (!made) return error_nomem(err);
        made->size = tenant.len;
        if (tenant.len) memcpy(made->tenant, tenant.ptr, tenant.len);
        *at = made;
    }
    (*at)->count++;
    child->is_child = true;
    return OK;
}

void children_forget(struct engine *engine, struct resident *resident)
{
    if (!resident->is_child) return;
    struct child_count **at = find(&engine->children, resident->ids.tenant);
    INVARIANT(*at && (*at)->count > 0);
    resident->is_child = false;
    if (--(*at)->count > 0) return;
    struct child_count *none = *at;
    *at = none->next;
    free(none);
}

enum code children_room(const struct engine *engine, struct str tenant, struct error *err)
{
    uint32_t most = engine->options.limits.children_max ? engine->options.limits.children_max : CHILDREN_DEFAULT;
    const struct child_count *known = engine->children;
    while (known && !str_eq((struct str){known->tenant, known->size}, tenant)) known = known->next;
    if (!known || known->count < most) return OK;
    return error_set(err, E_LIMIT,
                     "%zu child runs of this tenant have not ended, and the setting limits.children allows %u: let fewer go on at "
                     "once, or raise the setting",
                     known->count, most);
}
