// A schedule as it is declared, in a document or beside it, and what its inputs say of the time.
#include "schedule/schedule.h"

#include "base/civil.h"
#include "json/form.h"

#include <string.h>

#define HOUR_MS INT64_C(3600000)
#define YEAR_MS (INT64_C(366) * 24 * HOUR_MS)
enum { NAME_MAX_SIZE = 64, QUEUED_USUAL = 10 };

bool schedule_name_valid(struct str name)
{
    if (name.len == 0 || name.len > NAME_MAX_SIZE || !char_is_alnum(name.ptr[0])) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!char_is_word(name.ptr[i]) && name.ptr[i] != '.' && name.ptr[i] != '-') return false;
    return true;
}

static void read_duration(struct form *form, const char *name, int64_t low, int64_t high, int64_t *out)
{
    struct str text = {0};
    form_text(form, name, &text);
    if (form->rc || text.len == 0) return;
    if (!duration_parse(text, out) || *out < low || *out > high)
        form_fail(form, name,
                  low > 0 ? "must be a duration from 1s to 366d, such as 15m" : "must be a duration of at most 366d, such as 30s");
}

// Texts that may be local: what they mean follows with the zone.
static void read_time(struct form *form, const char *name, struct str *text, int64_t *out)
{
    form_text(form, name, text);
    if (form->rc || text->len == 0) return;
    if (!zone_time(zone_utc(), *text, out))
        form_fail(form, name, "must be a time, such as 2026-03-29T02:30:00 (in the zone) or 2026-03-29T00:30:00Z");
}

static void read_cron(struct form *form, struct schedule_spec *out)
{
    struct error why = {0};
    if (!cron_parse(out->text, &out->timing.cron, &why)) return;
    form_fail(form, "cron", why.message);
}

static void read_kind(struct form *form, struct schedule_spec *out)
{
    struct str cron = {0}, every = {0};
    struct timing *timing = &out->timing;
    form_text(form, "cron", &cron);
    form_text(form, "every", &every);
    read_time(form, "at", &out->at, &timing->at_ms);
    read_duration(form, "every", 1000, YEAR_MS, &timing->every_ms);
    read_duration(form, "offset", 0, YEAR_MS, &timing->offset_ms);
    if (form->rc) return;
    if ((cron.len > 0) + (every.len > 0) + (out->at.len > 0) != 1) {
        form_fail(form, NULL, "a schedule has exactly one of cron, every and at");
        return;
    }
    timing->kind = cron.len ? TIMING_CRON : every.len ? TIMING_EVERY : TIMING_AT;
    out->text = cron.len ? cron : every.len ? every : out->at;
    if (timing->kind == TIMING_CRON) read_cron(form, out);
    if (timing->kind != TIMING_EVERY && timing->offset_ms) form_fail(form, "offset", "goes with every");
    if (timing->kind == TIMING_EVERY && timing->offset_ms >= timing->every_ms && timing->every_ms)
        form_fail(form, "offset", "must be below every");
}

static void read_policies(struct form *form, struct schedule_spec *out)
{
    static const char *const gaps[] = {"run", "skip", NULL}, *const folds[] = {"once", "twice", "skip", NULL},
                             *const overlaps[] = {"skip", "queue", "cancel", "allow", NULL};
    int gap = 0, fold = 0, overlap = 0;
    form_choice(form, "gap", gaps, &gap);
    form_choice(form, "fold", folds, &fold);
    form_choice(form, "overlap", overlaps, &overlap);
    out->timing.gap = (enum gap_policy)(gap + GAP_RUN);
    out->timing.fold = (enum fold_policy)(fold + FOLD_ONCE);
    out->overlap = (enum overlap_policy)(overlap + OVERLAP_SKIP);
    form_count(form, "queued", 1, SCHEDULE_QUEUED_MAX, &out->queued);
}

enum code schedule_spec_read(const struct json *value, struct arena *arena, struct schedule_spec *out, struct error *err)
{
    struct form form;
    *out = (struct schedule_spec){.catchup_ms = HOUR_MS, .queued = QUEUED_USUAL, .timing.zone = zone_utc()};
    if (!json_is(value, JSON_OBJECT)) return error_set(err, E_INVALID, "a schedule is an object");
    form_begin(&form, "schedule", value, arena, err);
    read_kind(&form, out);
    form_text(&form, "zone", &out->zone);
    if (!form.rc && out->zone.len > 0 && !zone_name_valid(out->zone))
        form_fail(&form, "zone", "must be a name of the time zone database, such as Europe/Berlin");
    read_policies(&form, out);
    read_time(&form, "from", &out->from, &out->timing.from_ms);
    read_time(&form, "until", &out->until, &out->timing.until_ms);
    read_duration(&form, "jitter", 0, 24 * HOUR_MS, &out->jitter_ms);
    read_duration(&form, "catchup", 0, YEAR_MS, &out->catchup_ms);
    form_text(&form, "queue", &out->queue);
    out->inputs = form_take(&form, "inputs", JSON_OBJECT);
    enum code rc = form_end(&form);
    struct schedule_facts facts = {.zone = zone_utc()};
    struct json made;
    return rc || !out->inputs ? rc : schedule_inputs(out->inputs, &facts, arena, &made, err);
}

static bool again(const struct zone *zone, struct str text, int64_t *out)
{
    return text.len == 0 || zone_time(zone, text, out);
}

enum code schedule_spec_zone(struct schedule_spec *spec, const struct zone *zone, struct error *err)
{
    struct timing *timing = &spec->timing;
    timing->zone = zone;
    if (!again(zone, spec->at, &timing->at_ms) || !again(zone, spec->from, &timing->from_ms) ||
        !again(zone, spec->until, &timing->until_ms))
        return error_set(err, E_INVALID, "a time of the schedule cannot be read");
    if (timing->from_ms && timing->until_ms && timing->until_ms < timing->from_ms)
        return error_set(err, E_INVALID, "schedule: until is before from");
    return OK;
}

// ---- inputs

static enum code fact(const struct schedule_facts *facts, struct str name, struct buf *out, struct error *err)
{
    char text[ZONE_TIME_SIZE];
    if (str_is(name, "name")) {
        buf_add(out, facts->name);
    } else if (str_is(name, "kind")) {
        buf_add(out, facts->kind);
    } else if (str_is(name, "zone")) {
        buf_add(out, zone_name(facts->zone));
    } else if (str_is(name, "time") || str_is(name, "previous")) {
        int64_t ms = str_is(name, "time") ? facts->at_ms : facts->previous_ms;
        civil_format(ms, text);
        if (ms) buf_text(out, text);
    } else if (str_is(name, "local") || str_is(name, "date")) {
        zone_format(facts->zone, facts->at_ms, text);
        buf_add(out, str_slice(str_from(text), 0, str_is(name, "date") ? 10 : strlen(text)));
    } else {
        return error_set(err, E_INVALID,
                         "schedule.inputs: ${schedule.%.*s} is none of name, time, local, date, previous, zone, kind",
                         STR_ARG(name));
    }
    return OK;
}

static enum code replace(struct str text, const struct schedule_facts *facts, struct arena *arena, struct json *out,
                         struct error *err)
{
    const struct str mark = STR("${schedule.");
    struct buf made = buf_of((size_t)1 << 20);
    enum code rc = OK;
    size_t at = 0, end = 0; // end: where the next '}' is, looked for once
    while (!rc && at < text.len) {
        size_t from = str_find(text, '$', at);
        buf_add(&made, str_slice(text, at, from));
        at = from;
        if (end <= at) end = str_find(text, '}', at);
        if (str_starts(str_slice(text, at, text.len), mark) && end < text.len) {
            rc = fact(facts, str_slice(text, at + mark.len, end), &made, err);
            at = end + 1;
        } else if (at < text.len) {
            buf_byte(&made, text.ptr[at++]);
        }
    }
    struct str kept = buf_keep(&made, arena);
    if (!rc && !kept.ptr) return error_nomem(err);
    *out = json_string(kept);
    return rc;
}

enum code schedule_inputs(const struct json *inputs, const struct schedule_facts *facts, struct arena *arena,
                          struct json *out, struct error *err)
{
    enum code rc = OK;
    struct json part;
    if (inputs->type == JSON_STRING) return replace(inputs->text, facts, arena, out, err);
    if (inputs->type != JSON_ARRAY && inputs->type != JSON_OBJECT) {
        *out = *inputs;
        return OK;
    }
    bool list = inputs->type == JSON_ARRAY;
    *out = list ? json_array() : json_object();
    for (uint32_t i = 0; !rc && i < inputs->count; i++) {
        rc = schedule_inputs(list ? &inputs->items[i] : &inputs->members[i].value, facts, arena, &part, err);
        if (rc) break;
        if (list)
            json_append(arena, out, part);
        else
            json_set(arena, out, inputs->members[i].key, part);
    }
    return rc ? rc : json_made(out, err);
}
