// Loops over a cursor: `claim` is asked for a frame of rows, the tasks run for each of them, and so on until it gives none. Read as
// two steps: NAME__claim asks and leads to NAME, whose first arc leads back as long as there were rows.
#include "program/playbook.h"

#define ROWS "__rows" // the frame, an argument of the token

static struct json text(const char *from)
{
    return json_string(str_from(from));
}

static void give(struct playbook *pb, struct json *object, const char *key, struct json value)
{
    if (!json_put(pb->r->arena, object, str_from(key), value)) pb->r->failed = true;
}

static struct json object_at(const struct json *place)
{
    struct json made = json_object();
    made.line = place->line;
    made.column = place->column;
    return made;
}

static struct json joined(struct playbook *pb, struct str before, const char *after)
{
    struct buf out = buf_of(256);
    buf_add(&out, before);
    buf_text(&out, after);
    struct str made = buf_keep(&out, pb->r->arena);
    if (!made.ptr) pb->r->failed = true;
    return json_string(made.ptr ? made : STR(""));
}

static const struct json *inside(const struct json *object, const char *key)
{
    return json_is(object, JSON_OBJECT) ? json_key(object, key) : NULL;
}

// {step: NAME__claim, input: {__frame_max_rows}, tool: {the cursor, command: claim}, next: {step: NAME, args: {__rows}}}
static struct json claim_step(struct playbook *pb, const struct json *step, const struct json *cursor, struct json name)
{
    struct json made = object_at(step), input = object_at(cursor), tool = object_at(cursor), arc = object_at(step);
    struct json args = object_at(cursor), id = *json_key(step, "step");
    const struct json *frame = inside(inside(json_key(step, "loop"), "spec"), "frame");
    const struct json *most = inside(frame, "max_rows");
    name.line = id.line;
    name.column = id.column;
    give(pb, &input, "__frame_max_rows", most ? *most : json_int(1));
    if (!json_key(cursor, "kind")) give(pb, &tool, "kind", text("postgres"));
    for (uint32_t i = 0; i < cursor->count; i++) {
        struct str key = cursor->members[i].key;
        if (str_is(key, "claim")) key = STR("command");
        if (!json_put(pb->r->arena, &tool, key, cursor->members[i].value)) pb->r->failed = true;
    }
    give(pb, &args, ROWS, text("{{ output.data.command_0.rows }}"));
    give(pb, &arc, "step", id);
    give(pb, &arc, "args", args);
    give(pb, &made, "step", name);
    give(pb, &made, "input", input);
    give(pb, &made, "tool", tool);
    give(pb, &made, "next", arc);
    return made;
}

static struct json loop_of(struct playbook *pb, const struct json *loop)
{
    struct json made = object_at(loop), spec = object_at(loop), in = text("{{ args." ROWS " }}");
    const struct json *given = json_key(loop, "spec"), *most = inside(given, "max_in_flight");
    bool several = most && (most->type != JSON_INT || most->integer > 1);
    give(pb, &spec, "mode", text(several ? "parallel" : "sequential"));
    if (most) give(pb, &spec, "max_in_flight", *most);
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->count; i++)
        if (str_is(given->members[i].key, "policy")) give(pb, &spec, "policy", given->members[i].value);
    give(pb, &made, "in", in);
    for (uint32_t i = 0; i < loop->count; i++)
        if (!str_is(loop->members[i].key, "cursor") && !str_is(loop->members[i].key, "spec") &&
            !str_is(loop->members[i].key, "mode"))
            if (!json_put(pb->r->arena, &made, loop->members[i].key, loop->members[i].value)) pb->r->failed = true;
    give(pb, &made, "spec", spec);
    return made;
}

// Back to the claim first, then where the step leads.
static struct json arcs_of(struct playbook *pb, const struct json *step, struct json claim)
{
    const struct json *next = json_key(step, "next"), *arcs = next;
    struct json list = json_array(), back = object_at(step), made = object_at(next ? next : step);
    if (json_is(next, JSON_OBJECT) && !json_key(next, "step")) arcs = json_key(next, "arcs");
    if (arcs) arcs = arcs_today(pb, arcs);
    give(pb, &back, "step", claim);
    give(pb, &back, "when", text("{{ args." ROWS " | length > 0 }}"));
    if (!json_push(pb->r->arena, &list, back)) pb->r->failed = true;
    uint32_t count = !arcs ? 0 : arcs->type == JSON_ARRAY ? arcs->count : 1;
    for (uint32_t i = 0; i < count; i++)
        if (!json_push(pb->r->arena, &list, arcs->type == JSON_ARRAY ? arcs->items[i] : *arcs)) pb->r->failed = true;
    give(pb, &made, "arcs", list);
    return made;
}

static bool remember(struct playbook *pb, struct str step, struct str claim)
{
    if (!ARENA_ROOM(pb->r->scratch, pb->cursors, pb->cursor_count, &pb->cursor_capacity)) {
        pb->r->failed = true;
        return false;
    }
    pb->cursors[pb->cursor_count++] = (struct cursor_loop){step, claim};
    return true;
}

static bool add_cursor(struct playbook *pb, const struct json *step, struct json *out)
{
    const struct json *loop = json_key(step, "loop"), *cursor = json_key(loop, "cursor");
    struct json name = joined(pb, json_text(json_key(step, "step")), "__claim");
    struct json made = object_at(step);
    struct span at = place_of(pb->r, cursor);
    const struct json *mode = inside(inside(json_key(step, "next"), "spec"), "mode");
    if (!json_is(inside(cursor, "claim"), JSON_STRING))
        ERROR(pb->r, "E0204", at, "a cursor needs \"claim\": SQL that gives the next rows");
    if (str_is(json_text(mode), "inclusive"))
        ERROR(pb->r, "E0215", at, "a step with a cursor has exclusive arcs: the first one leads back");
    if (cursor->type != JSON_OBJECT || !remember(pb, json_text(json_key(step, "step")), name.text)) return false;
    for (uint32_t i = 0; i < step->count; i++) {
        struct json value = step->members[i].value;
        if (str_is(step->members[i].key, "loop")) value = loop_of(pb, loop);
        if (str_is(step->members[i].key, "next")) continue;
        if (!json_put(pb->r->arena, &made, step->members[i].key, value)) pb->r->failed = true;
    }
    give(pb, &made, "next", arcs_of(pb, step, name));
    struct json claim = claim_step(pb, step, cursor, name);
    return json_push(pb->r->arena, out, claim) && json_push(pb->r->arena, out, made);
}

const struct json *cursors_today(struct playbook *pb, const struct json *workflow)
{
    bool any = false;
    for (uint32_t i = 0; workflow->type == JSON_ARRAY && i < workflow->count; i++)
        any = any || inside(inside(&workflow->items[i], "loop"), "cursor");
    struct json *made = any ? ARENA_NEW(pb->r->arena, struct json) : NULL;
    if (!made) return workflow;
    *made = json_array();
    made->line = workflow->line;
    made->column = workflow->column;
    for (uint32_t i = 0; i < workflow->count && !pb->r->failed; i++) {
        const struct json *step = &workflow->items[i];
        bool cursor = inside(inside(step, "loop"), "cursor") && json_is(inside(step, "step"), JSON_STRING);
        bool ok = cursor ? add_cursor(pb, step, made) : json_push(pb->r->arena, made, *step);
        if (!ok) return workflow;
    }
    return made;
}
