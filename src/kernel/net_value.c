// Results as templates see them: of tasks, steps and loops, in the log or beside it, and of what failed.
#include "json/make.h"
#include "kernel/net_inside.h"

static enum code fetch(const struct run *run, const struct digest *blob, const struct kernel_env *env,
                       struct arena *arena, struct json *out, struct error *err)
{
    struct str bytes;
    if (!env) env = run->env;
    if (!env || !env->blob) return error_set(err, E_UNSUPPORTED, "what is kept beside the log cannot be read here");
    struct error why = {0};
    enum code rc = env->blob(env->context, blob, arena, &bytes, &why);
    // Gone is not undefined: no template may take the one for the other.
    if (rc == E_NOT_FOUND) return error_set(err, E_INVALID, KERNEL_GONE "%s", why.message);
    if (rc) return error_set(err, rc, "%s", why.message);
    return json_parse(bytes, &json_limits_result, arena, out, err);
}

enum code net_payload(const struct run *run, const struct moment *m, struct arena *arena, struct json *out,
                      struct error *err)
{
    return fetch(run, &m->blob, run->env, arena, out, err);
}

struct json net_reference(struct arena *arena, const struct digest *blob, uint64_t size, enum result_store store)
{
    struct json sha = json_digest(arena, blob), bytes = json_count(size);
    struct json meta = JSON_OF(arena, {"bytes", bytes}, {"content_type", json_word("application/json")}, {"sha256", sha});
    return JSON_OF(arena, {"meta", meta}, {"scope", json_word("execution")}, {"kind", json_word("result_ref")},
                   {"store", json_string(result_store_word(store))}, {"sha256", sha}, {"bytes", bytes});
}

// noetl:// of what a step or an iteration gave.
struct str net_address(const struct run *run, uint32_t place, uint32_t iteration, struct arena *arena)
{
    struct buf out = buf_of(1024);
    buf_printf(&out, "noetl://execution/%.*s/step/%.*s", STR_ARG(run->ids.run), STR_ARG(run->program->steps[place].id));
    if (run->net->places[place].visit > 1) buf_printf(&out, "/visit/%u", run->net->places[place].visit);
    if (iteration > 0) buf_printf(&out, "/iteration/%u", iteration - 1);
    return buf_keep(&out, arena);
}

// What a task gave that failed and was continued with: its error, and the members of its result.
static enum code failed_result(struct arena *arena, struct json *value, struct error *err)
{
    const struct json *result = json_key(value, "result");
    bool failed = json_is(result, JSON_OBJECT) && json_is(json_key(value, "error"), JSON_OBJECT) &&
                  str_is(json_text(json_key(value, "status")), "error");
    if (failed) *value = json_joined(arena, value, result);
    return json_made(value, err);
}

// The last of the statements command_0, command_1, ...
static const struct json *last_statement(const struct json *value)
{
    const struct json *last = NULL;
    int64_t at = -1, number;
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json_member *member = &value->members[i];
        if (!str_starts(member->key, STR("command_")) || !json_is(json_key(&member->value, "row_count"), JSON_INT))
            return NULL; // something else beside them: not what SQL gives
        if (!str_int64(str_slice(member->key, 8, member->key.len), &number)) return NULL;
        if (number > at) last = &member->value;
        if (number > at) at = number;
    }
    return last;
}

enum code net_sql_seen(struct arena *arena, struct json *value, struct error *err)
{
    const struct json *first = json_is(value, JSON_OBJECT) ? json_key(value, "command_0") : NULL;
    const struct json *last = json_is(first, JSON_OBJECT) ? last_statement(value) : NULL;
    if (!last) return OK;
    struct json made = *value, count = JSON_OF(arena, {"statement_count", json_int(value->count)});
    json_fill(arena, &made, last);
    json_fill(arena, &made, &count);
    *value = made;
    return json_made(value, err);
}

// A template that reads a result which is kept apart sees all of it, and that it is: `_ref`, `_store`.
enum code net_value_get(const struct run *run, const struct net_value *value, uint32_t place, uint32_t iteration,
                        const struct kernel_env *env, struct arena *arena, struct json *out, struct error *err)
{
    *out = value->value.type == 0 ? json_null() : value->value;
    enum code rc = value->has_blob ? fetch(run, &value->blob, env, arena, out, err) : failed_result(arena, out, err);
    if (!rc) rc = net_sql_seen(arena, out, err);
    if (rc || !value->has_blob || out->type != JSON_OBJECT) return rc;
    struct json ref = net_reference(arena, &value->blob, value->size, value->store);
    struct str address = {0};
    if (place != PROGRAM_TOP) address = net_address(run, place, iteration, arena);
    JSON_ADD(arena, &ref, {"ref", json_some(address)}, {"uri", json_some(address)});
    struct json apart =
        JSON_OF(arena, {"_ref", ref}, {"__ref__", ref}, {"_store", json_string(result_store_word(value->store))});
    *out = json_joined(arena, out, &value->extracted);
    json_fill(arena, out, &apart);
    return json_ok(&apart) ? json_made(out, err) : error_nomem(err);
}

struct json net_fault_value(const struct fault *fault, struct arena *arena)
{
    return JSON_OF(arena, {"code", json_string(fault->code)}, {"kind", json_string(fault->category)},
                   {"message", json_string(fault->message)}, {"retryable", json_bool(fault->retryable)});
}

static void put_failure(const struct net_place *p, struct arena *arena, struct json *out)
{
    JSON_ADD(arena, out, {"error", net_fault_value(&p->fault, arena)}, {"status", json_word("error")});
}

// Of a loop: {results: [...], stats: {total, success, failed}, count}; of one that failed also {status, error}.
static enum code loop_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                            struct json *out, struct error *err)
{
    const struct net_place *p = &run->net->places[place];
    struct json results = json_array();
    for (uint32_t i = 0; i < p->loop.begun; i++) {
        struct json one;
        enum code rc = net_value_get(run, &p->loop.results[i], place, i + 1, env, arena, &one, err);
        if (rc) return rc;
        if (!json_push(arena, &results, one)) return error_nomem(err);
    }
    struct json stats = JSON_OF(arena, {"failed", json_int(p->loop.failures)}, {"success", json_int(p->loop.done)},
                                {"total", json_int(p->loop.begun)});
    *out = JSON_OF(arena, {"count", json_int(p->loop.begun)}, {"results", results}, {"stats", stats});
    if (p->failed) put_failure(p, arena, out);
    return json_made(out, err);
}

enum code net_failed_outcome(const struct net_place *p, struct arena *arena, struct json *out, struct error *err)
{
    const struct json *given = &p->outcome;
    *out = json_object();
    put_failure(p, arena, out);
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->count; i++)
        if (json_ok(out) && !json_get(out, given->members[i].key) && !str_is(given->members[i].key, "meta"))
            json_set(arena, out, given->members[i].key, given->members[i].value);
    return json_made(out, err);
}

// Of a step whose failure an arc has taken further.
static enum code failed_value(const struct net_place *p, struct arena *arena, struct json *out, struct error *err)
{
    enum code rc = net_failed_outcome(p, arena, out, err);
    return rc ? rc : failed_result(arena, out, err);
}

enum code net_place_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                          struct json *out, struct error *err)
{
    const struct net_place *p = &run->net->places[place];
    *out = (struct json){0};
    bool under_way = p->phase == PLACE_RUNNING || p->phase == PLACE_PENDING;
    bool loop = net_of_run(run)->steps[place].has_loop;
    if (loop && p->looped && !under_way && p->visit > 0 && !p->skipped)
        return loop_value(run, place, env, arena, out, err);
    if (p->failed && !under_way && !p->skipped) return failed_value(p, arena, out, err);
    if (loop || (p->value.value.type == 0 && !p->value.has_blob)) return OK;
    return net_value_get(run, &p->value, place, 0, env, arena, out, err);
}

enum code net_tasks_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                          struct json *out, struct error *err)
{
    const struct net_value *tasks = run->net->places[place].tasks;
    const struct net_step *ns = tasks ? &net_of_run(run)->steps[place] : NULL;
    struct json made = json_object(), one;
    if (!ns) return OK;
    for (uint32_t i = 0; i < ns->task_count; i++) {
        if (tasks[i].value.type == 0 && !tasks[i].has_blob) continue; // it was not its turn
        enum code rc = net_value_get(run, &tasks[i], PROGRAM_TOP, 0, env, arena, &one, err);
        if (rc) return rc;
        json_set(arena, &made, ns->tasks[i].label, one);
    }
    *out = made;
    return json_made(out, err);
}
