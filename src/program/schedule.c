// `schedule:` of a document: when a service starts it by itself. It is checked here, and kept as it was written.
#include "program/internal.h"

#include "schedule/schedule.h"

void schedule_field_read(struct reader *r, const struct json *value)
{
    struct schedule_spec spec;
    struct error err = {0};
    if (!value || !read_object(r, value, "schedule")) return;
    enum code rc = schedule_spec_read(value, r->scratch, &spec, &err);
    struct json *kept = ARENA_NEW(r->arena, struct json);
    if (rc == E_NOMEM || !kept || !json_copy(r->arena, value, kept)) {
        r->failed = true;
        return;
    }
    if (!rc) {
        r->program->schedule = kept;
        return;
    }
    struct json at = *value;
    if (err.line) json_set_place(&at, err.line, err.column);
    struct diagnostic *d = ERROR(r, "E0228", place_of(r, &at), "%s", err.message);
    HINT(r, d, "`cairn schedule next EXPRESSION` shows when an expression fires; `cairn help schedule` has the fields");
}
