// Results as templates see them: of tasks, steps and loops, in the log or beside it, and of what failed.
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

bool net_reference(struct arena *arena, const struct digest *blob, uint64_t size, enum result_store store,
                   struct json *out)
{
    char hex[SHA256_HEX + 1];
    digest_hex(blob, hex);
    struct str sha = arena_copy(arena, str_from(hex));
    struct json meta;
    return sha.ptr && json_object_with(arena, 3, &meta) &&
           json_put(arena, &meta, STR("bytes"), json_int((int64_t)size)) &&
           json_put(arena, &meta, STR("content_type"), json_string(STR("application/json"))) &&
           json_put(arena, &meta, STR("sha256"), json_string(sha)) && json_object_with(arena, 8, out) &&
           json_put(arena, out, STR("meta"), meta) &&
           json_put(arena, out, STR("scope"), json_string(STR("execution"))) &&
           json_put(arena, out, STR("kind"), json_string(STR("result_ref"))) &&
           json_put(arena, out, STR("store"), json_string(result_store_word(store))) &&
           json_put(arena, out, STR("sha256"), json_string(sha)) &&
           json_put(arena, out, STR("bytes"), json_int((int64_t)size));
}

// noetl:// of what a step or an iteration gave.
struct str net_address(const struct run *run, uint32_t place, uint32_t iteration, struct arena *arena)
{
    struct buf out;
    buf_init(&out, 1024);
    buf_printf(&out, "noetl://execution/%.*s/step/%.*s", STR_ARG(run->ids.run), STR_ARG(run->program->steps[place].id));
    if (run->net->places[place].visit > 1) buf_printf(&out, "/visit/%u", run->net->places[place].visit);
    if (iteration > 0) buf_printf(&out, "/iteration/%u", iteration - 1);
    struct str address = buf_ok(&out) ? arena_copy(arena, buf_str(&out)) : (struct str){0};
    buf_release(&out);
    return address;
}

// What a task gave that failed and was continued with: its error, and the members of its result.
static enum code failed_result(struct arena *arena, struct json *value, struct error *err)
{
    const struct json *result = json_key(value, "result");
    bool failed = json_is(result, JSON_OBJECT) && json_is(json_key(value, "error"), JSON_OBJECT) &&
                  str_is(json_text(json_key(value, "status")), "error");
    struct json made;
    if (!failed) return OK;
    bool ok = json_object_with(arena, value->count + result->count, &made);
    for (uint32_t i = 0; ok && i < value->count; i++)
        ok = json_put(arena, &made, value->members[i].key, value->members[i].value);
    for (uint32_t i = 0; ok && i < result->count; i++)
        if (!json_get(value, result->members[i].key))
            ok = json_put(arena, &made, result->members[i].key, result->members[i].value);
    *value = made;
    return ok ? OK : error_nomem(err);
}

// Whoever reads a result that is kept apart sees all of it, and that it is: `_ref`, `_store`.
enum code net_value_get(const struct run *run, const struct net_value *value, uint32_t place, uint32_t iteration,
                        const struct kernel_env *env, struct arena *arena, struct json *out, struct error *err)
{
    *out = value->value.type == 0 ? json_null() : value->value;
    if (!value->has_blob) return failed_result(arena, out, err);
    struct json whole, made;
    enum code rc = fetch(run, &value->blob, env, arena, &whole, err);
    *out = whole;
    if (rc || whole.type != JSON_OBJECT) return rc;
    struct json ref;
    struct str address = {0};
    if (place != PROGRAM_TOP) address = net_address(run, place, iteration, arena);
    bool ok = net_reference(arena, &value->blob, value->size, value->store, &ref) &&
              (address.len == 0 || (json_put(arena, &ref, STR("ref"), json_string(address)) &&
                                    json_put(arena, &ref, STR("uri"), json_string(address)))) &&
              json_object_with(arena, whole.count + 3 + value->extracted.count, &made);
    for (uint32_t i = 0; ok && i < whole.count; i++)
        ok = json_put(arena, &made, whole.members[i].key, whole.members[i].value);
    for (uint32_t i = 0; ok && json_is(&value->extracted, JSON_OBJECT) && i < value->extracted.count; i++)
        if (!json_get(&whole, value->extracted.members[i].key))
            ok = json_put(arena, &made, value->extracted.members[i].key, value->extracted.members[i].value);
    if (ok && !json_get(&whole, STR("_ref"))) ok = json_put(arena, &made, STR("_ref"), ref);
    if (ok && !json_get(&whole, STR("__ref__"))) ok = json_put(arena, &made, STR("__ref__"), ref);
    if (ok && !json_get(&whole, STR("_store")))
        ok = json_put(arena, &made, STR("_store"), json_string(result_store_word(value->store)));
    *out = made;
    return ok ? OK : error_nomem(err);
}

bool net_fault_value(const struct fault *fault, struct arena *arena, struct json *out)
{
    return json_object_with(arena, 4, out) && json_put(arena, out, STR("code"), json_string(fault->code)) &&
           json_put(arena, out, STR("kind"), json_string(fault->category)) &&
           json_put(arena, out, STR("message"), json_string(fault->message)) &&
           json_put(arena, out, STR("retryable"), json_bool(fault->retryable));
}

static bool put_failure(const struct net_place *p, struct arena *arena, struct json *out)
{
    struct json error;
    return net_fault_value(&p->fault, arena, &error) && json_put(arena, out, STR("error"), error) &&
           json_put(arena, out, STR("status"), json_string(STR("error")));
}

// Of a loop: {results: [...], stats: {total, success, failed}, count}; of one that failed also {status, error}.
static enum code loop_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                            struct json *out, struct error *err)
{
    const struct net_place *p = &run->net->places[place];
    struct json results = json_array(), stats;
    for (uint32_t i = 0; i < p->loop.begun; i++) {
        struct json one;
        enum code rc = net_value_get(run, &p->loop.results[i], place, i + 1, env, arena, &one, err);
        if (rc) return rc;
        if (!json_push(arena, &results, one)) return error_nomem(err);
    }
    bool ok = json_object_with(arena, 4, &stats) && json_put(arena, &stats, STR("failed"), json_int(p->loop.failures)) &&
              json_put(arena, &stats, STR("success"), json_int(p->loop.done)) &&
              json_put(arena, &stats, STR("total"), json_int(p->loop.begun)) && json_object_with(arena, 5, out) &&
              json_put(arena, out, STR("count"), json_int(p->loop.begun)) &&
              json_put(arena, out, STR("results"), results) && json_put(arena, out, STR("stats"), stats);
    return ok && (!p->failed || put_failure(p, arena, out)) ? OK : error_nomem(err);
}

enum code net_failed_outcome(const struct net_place *p, struct arena *arena, struct json *out, struct error *err)
{
    const struct json *given = &p->outcome;
    bool ok = json_object_with(arena, given->count + 2, out) && put_failure(p, arena, out);
    for (uint32_t i = 0; ok && json_is(given, JSON_OBJECT) && i < given->count; i++)
        if (!json_get(out, given->members[i].key) && !str_is(given->members[i].key, "meta"))
            ok = json_put(arena, out, given->members[i].key, given->members[i].value);
    return ok ? OK : error_nomem(err);
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
    struct json made, one;
    if (!ns) return OK;
    if (!json_object_with(arena, ns->task_count, &made)) return error_nomem(err);
    for (uint32_t i = 0; i < ns->task_count; i++) {
        if (tasks[i].value.type == 0 && !tasks[i].has_blob) continue; // it was not its turn
        enum code rc = net_value_get(run, &tasks[i], PROGRAM_TOP, 0, env, arena, &one, err);
        if (rc) return rc;
        if (!json_put(arena, &made, ns->tasks[i].label, one)) return error_nomem(err);
    }
    *out = made;
    return OK;
}
