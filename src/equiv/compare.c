// Two logs, line by line and slot by slot. Lines of one slot have an order; between slots only virtual time has: what happened at one
// moment in independent branches may stand in either order.
#include "equiv/inside.h"

#include "json/make.h"
#include "reading/reading.h"

enum { SHOWN_MAX = 160, CHANGES_MAX = 12 };

const char *equiv_what_name(enum equiv_what what)
{
    static const char *const names[] = {"same", "changed", "missing", "more", "elsewhen", "wrong"};
    return names[what];
}

// ---- members that differ

struct changing {
    struct arena *arena;
    struct equiv_difference *out;
    size_t capacity;
};

static struct str shown(struct arena *arena, const struct json *value)
{
    if (!value || value->type == 0) return (struct str){0};
    struct buf text = buf_of((size_t)64 << 20);
    json_write(&text, value);
    struct str whole = buf_keep(&text, arena);
    if (whole.len <= SHOWN_MAX) return whole;
    size_t cut = SHOWN_MAX;
    while (cut > 0 && (whole.ptr[cut] & 0xc0) == 0x80) cut--; // between characters
    return arena_format(arena, "%.*s…", (int)cut, whole.ptr);
}

static void add_change(struct changing *c, struct str path, const struct json *a, const struct json *b)
{
    struct equiv_difference *out = c->out;
    if (out->change_count == CHANGES_MAX || !ARENA_ROOM(c->arena, out->changes, out->change_count, &c->capacity)) return;
    out->changes[out->change_count++] = (struct equiv_change){.path = path, .a = shown(c->arena, a), .b = shown(c->arena, b)};
}

static struct str below(struct arena *arena, struct str path, struct str key)
{
    return path.len ? arena_format(arena, "%.*s.%.*s", STR_ARG(path), STR_ARG(key)) : key;
}

static void find_changes(struct changing *c, struct str path, const struct json *a, const struct json *b)
{
    if (a && b && a->type == JSON_OBJECT && b->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < a->count; i++)
            find_changes(c, below(c->arena, path, a->members[i].key), &a->members[i].value, json_get(b, a->members[i].key));
        for (uint32_t i = 0; i < b->count; i++)
            if (!json_get(a, b->members[i].key)) add_change(c, below(c->arena, path, b->members[i].key), NULL, &b->members[i].value);
        return;
    }
    if (a && b && json_equal(a, b)) return;
    add_change(c, path, a, b);
}

// ---- slots

struct slot_lines {
    size_t *at[2]; // indexes of lines, of a and of b
    size_t count[2], capacity[2];
};
struct slots {
    struct map index;
    struct slot_lines *items;
    size_t count, capacity;
};

static bool sort_into(struct slots *slots, const struct equiv_log *log, int side, struct arena *arena)
{
    for (size_t i = 0; i < log->count; i++) {
        struct str slot = log->lines[i].slot;
        uint32_t at = map_get(&slots->index, slot), before;
        if (at == MAP_NONE) {
            if (!ARENA_ROOM(arena, slots->items, slots->count, &slots->capacity)) return false;
            at = (uint32_t)slots->count++;
            slots->items[at] = (struct slot_lines){0};
            if (!map_put(&slots->index, slot, at, &before)) return false;
        }
        struct slot_lines *lines = &slots->items[at];
        if (!ARENA_ROOM(arena, lines->at[side], lines->count[side], &lines->capacity[side])) return false;
        lines->at[side][lines->count[side]++] = i;
    }
    return true;
}

struct finding {
    const struct equiv_log *a, *b;
    enum equiv_what what;
    const struct equiv_line *line_a, *line_b;
    size_t rank; // place in its own log: the smallest is the first difference
    size_t more;
};

static enum equiv_what judge_pair(const struct equiv_line *a, const struct equiv_line *b)
{
    if (!a) return EQUIV_MORE;
    if (!b) return EQUIV_MISSING;
    if (!str_eq(a->text, b->text)) return EQUIV_CHANGED;
    return a->at_ms == b->at_ms ? EQUIV_SAME : EQUIV_ELSEWHEN;
}

static void look_at_slot(struct finding *finding, const struct slot_lines *lines)
{
    size_t most = lines->count[0] > lines->count[1] ? lines->count[0] : lines->count[1];
    bool first = true;
    for (size_t i = 0; i < most; i++) {
        const struct equiv_line *a = i < lines->count[0] ? &finding->a->lines[lines->at[0][i]] : NULL;
        const struct equiv_line *b = i < lines->count[1] ? &finding->b->lines[lines->at[1][i]] : NULL;
        enum equiv_what what = judge_pair(a, b);
        if (what == EQUIV_SAME) continue;
        finding->more++;
        size_t rank = a ? lines->at[0][i] : lines->at[1][i];
        if (!first || (finding->what && rank >= finding->rank)) continue;
        first = false;
        finding->what = what;
        finding->line_a = a;
        finding->line_b = b;
        finding->rank = rank;
    }
}

enum code equiv_compare(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *out,
                        struct error *err)
{
    struct slots slots = {0};
    struct finding finding = {.a = a, .b = b};
    *out = (struct equiv_difference){0};
    map_init(&slots.index, arena);
    if (!sort_into(&slots, a, 0, arena) || !sort_into(&slots, b, 1, arena)) return error_nomem(err);
    for (size_t i = 0; i < slots.count; i++) look_at_slot(&finding, &slots.items[i]);
    if (finding.what == EQUIV_SAME) return OK;
    *out = (struct equiv_difference){.what = finding.what, .a = finding.line_a, .b = finding.line_b, .more = finding.more - 1};
    out->slot = finding.line_a ? finding.line_a->slot : finding.line_b->slot;
    struct changing changing = {.arena = arena, .out = out};
    if (finding.what == EQUIV_CHANGED) find_changes(&changing, (struct str){0}, &finding.line_a->value, &finding.line_b->value);
    if (finding.what == EQUIV_ELSEWHEN) {
        struct json at_a = json_int(finding.line_a->at_ms), at_b = json_int(finding.line_b->at_ms);
        add_change(&changing, STR("ms after the start"), &at_a, &at_b);
    }
    return OK;
}

void equiv_compare_ends(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *out)
{
    struct story_parting parting;
    *out = (struct equiv_difference){0};
    if (story_same_end(&a->result.story, &b->result.story, &parting)) return;
    *out = (struct equiv_difference){.what = EQUIV_WRONG, .slot = parting.step.len ? parting.step : STR("RUN")};
    out->text = arena_format(arena, "%s: %s", parting.rule, parting.message);
}

// ---- causes

static struct str verdict(const struct equiv_log *log, const struct equiv_line *line, struct str step, uint32_t run, struct arena *arena)
{
    struct explained_run explained = {0};
    struct run_head head;
    struct error err = {0};
    struct json answer = {0};
    const struct story *story = &log->result.story;
    if (!log->store || run >= story->run_count) return (struct str){0};
    enum code rc = store_head(log->store, STR("default"), story->runs[run].id, arena, &head, &err);
    uint64_t at = line ? reading_at(line->seq, -1) : READING_NOW;
    if (!rc) rc = reading_explain(log->store, &head, at, (struct str){0}, false, arena, &explained, &err);
    if (!rc && step.len) rc = explain_step(explained.explain, step, 0, arena, &answer, &err);
    if (!rc && !step.len) rc = explain_run(explained.explain, 0, arena, &answer, &err);
    struct str text = !rc ? arena_copy(arena, json_text(json_key(&answer, "verdict"))) : (struct str){0};
    explained_release(&explained);
    return text;
}

void equiv_explain(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *difference)
{
    const struct equiv_line *line = difference->a ? difference->a : difference->b;
    const struct story_step *step = line ? NULL : story_find(&a->result.story, difference->slot);
    if (!line && !step) return;
    if (step) {
        const struct story_run *run = &a->result.story.runs[step->run];
        struct str path = str_slice(step->path, run->prefix.len, step->path.len);
        difference->why_a = verdict(a, NULL, path, step->run, arena);
        difference->why_b = verdict(b, NULL, path, step->run, arena);
        return;
    }
    difference->why_a = verdict(a, difference->a, line->step, line->run, arena);
    difference->why_b = verdict(b, difference->b, line->step, line->run, arena);
}
