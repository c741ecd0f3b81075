// `limits` of a document, and the `limit` of its steps and tasks: how many attempts of a name work at once, and how many begin in a time.
#include "program/internal.h"

#include "base/civil.h"
#include "json/form.h"

#include <string.h>

enum { STARTS_MAX = 1000, CONCURRENCY_MAX = 1000, PER_MAX_MS = 7 * 24 * 3600 * 1000 }; // LIMIT_RATE_MOST

bool limit_name_valid(struct str name)
{
    return run_id_valid(name);
}

// "10/s", "600/m", "5/30s"
bool limit_rate_parse(struct str text, uint32_t *starts, int64_t *per_ms)
{
    struct str per, count = str_cut(text, '/', &per);
    uint64_t number = 0;
    if (count.len == 0 || count.len > 4 || per.len == 0) return false;
    for (size_t i = 0; i < count.len; i++) {
        if (count.ptr[i] < '0' || count.ptr[i] > '9') return false;
        number = number * 10 + (uint64_t)(count.ptr[i] - '0');
    }
    char one[24];
    bool unit = per.ptr[0] < '0' || per.ptr[0] > '9';
    if (per.len > sizeof(one) - 1) return false;
    one[0] = '1'; // of a unit alone
    memcpy(one + unit, per.ptr, per.len);
    if (!duration_parse((struct str){one, per.len + unit}, per_ms)) return false;
    *starts = (uint32_t)number;
    return number >= 1 && number <= STARTS_MAX && *per_ms >= 1 && *per_ms <= PER_MAX_MS;
}

void limit_rate_write(const struct step_limit *limit, struct buf *out)
{
    char per[24];
    duration_format(limit->per_ms, per);
    const char *unit = limit->per_ms == 1000 ? "s" : limit->per_ms == 60000 ? "m" : limit->per_ms == 3600000 ? "h" : per;
    buf_printf(out, "%u/%s", limit->starts, unit);
}

enum code step_limit_read(const struct json *value, struct step_limit *out, struct error *err)
{
    struct step_limit limit = *out;
    struct str rate = {0};
    struct form form;
    form_begin(&form, "", value, NULL, err);
    form_count(&form, "concurrency", 0, CONCURRENCY_MAX, &limit.concurrency);
    form_text(&form, "rate", &rate);
    bool none = str_is(rate, "none");
    if (none) limit.starts = 0;
    if (rate.len > 0 && !none && !limit_rate_parse(rate, &limit.starts, &limit.per_ms))
        return form_fail(&form, "rate", "must be so many in a time, as 10/s, 600/m or 5/30s (at most " LIMIT_RATE_MOST "), or none");
    enum code rc = form_end(&form);
    if (!rc) *out = limit;
    return rc;
}

// ---- of documents

static void read_limit(struct reader *r, const struct json_member *member, struct step_limit *out)
{
    struct error err = {0};
    const struct json *value = &member->value;
    *out = (struct step_limit){.name = member->key};
    if (!limit_name_valid(member->key)) {
        struct span at = place_of_key(r, member);
        struct diagnostic *d = ERROR(r, "E0208", at, "\"%.*s\" cannot be the name of a limit", SHOW(member->key));
        HINT(r, d, "1 to 128 letters, digits, '.', '_', ':' and '-', beginning with a letter or digit");
    }
    if (value->type == JSON_NULL) return; // the service says how many
    if (!read_object(r, value, "limits") || step_limit_read(value, out, &err) == OK) return;
    struct json at = *value;
    if (err.line) json_set_place(&at, err.line, err.column);
    struct diagnostic *d = ERROR(r, "E0229", place_of(r, &at), "limit \"%.*s\": %s", SHOW(member->key), err.message);
    HINT(r, d, "limits: {payments: {concurrency: 2, rate: 10/s}}");
}

void document_limits_read(struct reader *r, const struct json *value)
{
    struct program *program = r->program;
    if (!value || !read_object(r, value, "limits") || value->count == 0) return;
    struct step_limit *limits = ARENA_ARRAY(r->arena, value->count, struct step_limit);
    if (!limits) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) read_limit(r, &value->members[i], &limits[i]);
    program->limits = limits;
    program->limit_count = value->count;
}

// A name that `limits` does not have is a mistake: it would hold nobody back.
void limit_of_read(struct reader *r, const struct json *value, const struct step_limit **out)
{
    const struct program *program = r->program;
    struct str name;
    if (!value || !read_text(r, value, "limit", &name)) return;
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = 0; i < program->limit_count; i++) {
        nearest_try(&nearest, program->limits[i].name);
        if (!str_eq(program->limits[i].name, name)) continue;
        *out = &program->limits[i];
        return;
    }
    struct diagnostic *d = ERROR(r, "E0230", place_of(r, value), "the document has no limit \"%.*s\"", SHOW(name));
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d, "say it at the top: limits: {%.*s: {concurrency: 2, rate: 10/s}}, or {} where the service says how many",
             SHOW(name));
}

void step_limit_of_read(struct reader *r, const struct json *value, struct program_step *step)
{
    if (!value) return;
    limit_of_read(r, value, &step->limit);
    bool executed = step->kind == STEP_EXEC || step->kind == STEP_SHELL || step->kind == STEP_SCRIPT || step->kind == STEP_HOST;
    if (executed || !step->kind) return;
    struct diagnostic *d = ERROR(r, "E0217", place_of(r, value), "\"limit\" is not supported on this kind of step");
    HINT(r, d, "it is for steps that run a process or a function");
}
