// What a host recorded, as lines that can be compared: each record of the log and of the ledger, without what may differ.
#include "equiv/inside.h"

#include "json/make.h"

#include <string.h>

static const struct {
    const char *member, *class;
} tolerances[] = {
#define X(member, class) {#member, #class},
    EQUIV_TOLERANCE_LIST(X)
#undef X
};

// Of these classes a host may have none: they are left out. Of the others it must be there.
static bool may_lack(const char *class)
{
    return strcmp(class, "engine") == 0 || strcmp(class, "door") == 0 || strcmp(class, "place") == 0;
}

static const char *tolerated(struct str member)
{
    for (size_t i = 0; i < ARRAY_COUNT(tolerances); i++)
        if (str_is(member, tolerances[i].member)) return tolerances[i].class;
    return NULL;
}

// Inside what a step gave or was given nothing is tolerated: members there are the document's own.
static bool is_users(struct str member)
{
    return STR_AMONG(member, "result", "inputs", "value", "output", "fields", "override", "params", "workload");
}

static bool blur(struct json *value, struct arena *arena)
{
    bool ok = true;
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; ok && i < value->count; i++) ok = blur(&value->items[i], arena);
        return ok;
    }
    if (value->type != JSON_OBJECT) return true;
    uint32_t kept = 0;
    for (uint32_t i = 0; ok && i < value->count; i++) {
        struct json_member member = value->members[i];
        const char *class = tolerated(member.key);
        if (class && may_lack(class)) continue;
        if (class && member.value.type != JSON_NULL) {
            struct str mark = arena_format(arena, "<%s>", class);
            ok = mark.ptr != NULL;
            member.value = json_string(mark);
        } else if (!is_users(member.key)) {
            ok = blur(&member.value, arena);
        }
        value->members[kept++] = member;
    }
    value->count = kept;
    return ok;
}

// Signals that engines send each other have ids of their own, and so have their keys; those of people are the script's.
#define OURS "ca17"
static bool blur_signal(struct json *value)
{
    struct str id = json_text(json_key(value, "signalId"));
    const struct json *payload = json_key(value, "payload");
    if (id.len == 0) id = json_text(json_key(value, "signal_id"));
    if (id.len == 0 && payload) id = json_text(json_key(payload, "signalId"));
    if (id.len == 0 && payload) id = json_text(json_key(payload, "signal_id"));
    return id.len > 0 && !str_starts(id, STR(OURS));
}

static void blur_ids(struct json *value)
{
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++) {
        struct json_member *member = &value->members[i];
        if (STR_AMONG(member->key, "signalId", "signal_id", "idempotencyKey", "idempotency_key"))
            member->value = json_word("<id>");
        else if (str_is(member->key, "payload") || str_is(member->key, "moment"))
            blur_ids(&member->value);
    }
}

struct reading {
    struct equiv_log *log;
    struct arena *arena;
    const struct story_run *run;
    uint32_t index;
    int64_t began_ms;
    struct error *err;
};

// What a moment is about: parallel iterations and tasks of a playbook have an order of their own each.
static struct str slot_of(const struct reading *r, const struct moment *m)
{
    struct buf out = buf_of(8192);
    buf_add(&out, r->run->prefix);
    if (m && m->step.len) {
        buf_add(&out, m->step);
        if (m->visit > 1) buf_printf(&out, ":run:%u", m->visit);
        if (m->visit && m->iteration) buf_printf(&out, "[%u]", m->iteration);
    } else {
        buf_text(&out, "RUN");
    }
    return buf_keep(&out, r->arena);
}

// The engine's own business: that an attempt was handed out once more, and where a segment of the log ends.
static bool is_passed_over(const struct moment *m)
{
    return m && (m->kind == MOMENT_STEP_REDISPATCHED || m->kind == MOMENT_ATTEMPT_RESTS || m->kind == MOMENT_SEGMENT_FULL ||
                 m->kind == MOMENT_SEGMENT_STARTED);
}

static enum code visit(void *context, const struct record *record, const struct moment *m, const struct seal *seal)
{
    (void)seal;
    struct reading *r = context;
    struct equiv_log *log = r->log;
    if (is_passed_over(m)) return OK;
    if (!ARENA_ROOM(r->arena, log->lines, log->count, &log->capacity)) return error_nomem(r->err);
    struct equiv_line *line = &log->lines[log->count];
    struct str bytes = arena_copy(r->arena, record->bytes);
    *line = (struct equiv_line){.run = r->index, .seq = record->seq, .ledger = record->ledger_seq > 0};
    if (!bytes.ptr) return error_nomem(r->err);
    enum code rc = json_parse(bytes, NULL, r->arena, &line->value, r->err);
    if (rc) return rc;
    if (m && r->began_ms == 0) r->began_ms = m->at_ms;
    const char *word = m ? moment_word(m->kind, r->run->vocabulary) : NULL;
    line->event = m ? str_from(word ? word : moment_name(m->kind)) : arena_copy(r->arena, record->type);
    line->step = m ? arena_copy(r->arena, m->step) : (struct str){0};
    line->slot = slot_of(r, m);
    line->at_ms = m ? m->at_ms - r->began_ms : -1;
    struct buf text = buf_of((size_t)64 << 20);
    if (blur_signal(&line->value)) blur_ids(&line->value);
    bool ok = blur(&line->value, r->arena);
    if (ok) json_write(&text, &line->value);
    line->text = buf_keep(&text, r->arena);
    if (!ok || !line->text.ptr || !line->slot.ptr) return error_nomem(r->err);
    log->count++;
    return OK;
}

static enum code verify(struct store *store, struct arena *arena, const struct story *story, struct equiv_log *log, struct error *err)
{
    for (size_t i = 0; i < story->run_count; i++) {
        struct verify_report report = {0};
        enum code rc = store_verify(store, STR("default"), story->runs[i].id, arena, &report, err);
        if (rc) return rc;
        if (report.fault_count == 0 || log->fault.len) continue;
        log->fault = arena_format(arena, "event %llu of run %.*s: %.*s", (unsigned long long)report.faults[0].seq,
                                  STR_ARG(report.faults[0].run), STR_ARG(report.faults[0].what));
    }
    return OK;
}

enum code equiv_log_read(struct store *store, struct arena *arena, struct equiv_log *log, struct error *err)
{
    const struct story *story = &log->result.story;
    struct reading r = {.log = log, .arena = arena, .err = err};
    enum code rc = OK;
    for (size_t i = 0; !rc && i < story->run_count; i++) {
        r.run = &story->runs[i];
        r.index = (uint32_t)i;
        rc = store_replay(store, STR("default"), r.run->id, visit, &r, err);
    }
    if (!rc) rc = verify(store, arena, story, log, err);
    if (!rc) equiv_judge(log, arena);
    return rc;
}
