// A list of child runs: a step of a node workflow runs its document once for each item, so many at a time, and gives the list of what
// they gave. LIST_STARTED has the items as they were when the attempt began, CHILD_ENDED what came of one of them. Which of them have
// begun follows from the two: they begin in the order of the list, as soon as there is room.
#include "kernel/list.h"

#include "json/make.h"
#include "kernel/route.h"

enum { LIST_INLINE_MAX = 48 * 1024 }; // bytes of items in a moment; more is kept beside the log

struct run_list *list_of(const struct run *run, uint32_t step)
{
    struct run_list *list = run->lists;
    while (list && list->step != step) list = list->next;
    return list;
}

// ---- the fold

static void begin_members(const struct run *run, struct run_list *list)
{
    bool stop = !run_goes(run) || run->cancelling;
    while (container_next(&list->of, list->most, stop) == CONTAINER_BEGIN) list->of.begun++;
}

void lists_begin(struct run *run)
{
    for (struct run_list *list = run->lists; list; list = list->next) begin_members(run, list);
}

void list_drop(struct run *run, uint32_t step)
{
    for (struct run_list **at = &run->lists; *at; at = &(*at)->next) {
        struct run_list *list = *at;
        if (list->step != step) continue;
        *at = list->next;
        arena_release(&list->memory); // the list lives inside it
        return;
    }
}

// Items beside the log are fetched now when the reader can; else when one is asked for.
static enum code fetch_items(const struct run *run, struct run_list *list, struct json *out, struct error *err)
{
    if (!list->has_blob || out->type == JSON_ARRAY || !run->env) return OK;
    struct str bytes;
    COVER(list_items_fetched);
    enum code rc = run->env->blob(run->env->context, &list->blob, &list->memory, &bytes, err);
    return rc ? rc : json_parse(bytes, &json_limits_result, &list->memory, out, err);
}

static enum code fold_list(struct run *run, const struct moment *m, uint32_t step, struct error *err)
{
    struct arena memory SCOPED(arena_release) = arena_of(4096, (size_t)1 << 30);
    struct run_list *list = ARENA_NEW(&memory, struct run_list);
    if (!list) return error_nomem(err);
    *list = (struct run_list){.step = step,
                              .logical = m->logical,
                              .most = (uint32_t)json_integer(json_key(&m->value, "most"), FAN_OUT_PARALLEL),
                              .all_success = str_is(json_text(json_key(&m->value, "join")), "all_success"),
                              .taken_up = m->reason.len > 0,
                              .blob = m->blob,
                              .has_blob = m->has_blob,
                              .memory = arena_take(&memory)};
    struct json items = json_ref(json_key(&m->value, "items"));
    enum code rc = fetch_items(run, list, &items, err);
    list->as = arena_copy(&list->memory, json_text(json_key(&m->value, "as")));
    list->states = ARENA_ARRAY(&list->memory, (size_t)m->counts.total + 1, uint8_t);
    bool made = list->as.ptr && list->states && container_make(&list->of, m->counts.total, &items, &list->memory);
    if (!rc && !made) rc = error_nomem(err);
    if (rc) {
        arena_release(&list->memory);
        return rc;
    }
    list_drop(run, step); // taken up: what is in the log counts
    list->next = run->lists;
    run->lists = list;
    begin_members(run, list);
    return OK;
}

// What the list tells of a child that did not complete.
static struct json failed_entry(struct arena *arena, const struct moment *m)
{
    return JSON_OF(arena, {"archon_failed", json_bool(true)}, {"error", json_copied(arena, m->fault.message)},
                   {"status", json_word(str_is(m->reason, "cancelled") ? "cancelled" : "failed")});
}

static enum code fold_child(struct run *run, struct run_list *list, const struct moment *m, struct error *err)
{
    uint32_t index = m->iteration - 1;
    struct container *of = &list->of;
    INVARIANT(index < of->total && list->states[index] == MEMBER_OPEN);
    struct net_value *result = &of->results[index];
    bool completed = str_is(m->reason, "completed");
    if (index >= of->begun) of->begun = index + 1;
    list->states[index] = completed ? MEMBER_COMPLETED : MEMBER_FAILED;
    of->done += completed;
    of->failures += !completed;
    *result = (struct net_value){.value = json_null()};
    if (completed && m->has_blob) {
        *result = (struct net_value){.blob = m->blob, .has_blob = true, .size = m->blob_size};
        if (m->blob_size > KERNEL_INLINE_MAX) list->size += m->blob_size; // smaller ones stand in the log of their run
    } else if (!completed) {
        result->value = failed_entry(&list->memory, m);
    } else if (m->value.type != 0 && !json_copy(&list->memory, &m->value, &result->value)) {
        return error_nomem(err);
    }
    begin_members(run, list);
    return json_made(&result->value, err);
}

static bool may_end(const struct run *run, const struct run_list *list, const struct moment *m)
{
    if (!list || m->iteration == 0 || m->iteration > list->of.total) return false;
    if (list->states[m->iteration - 1] != MEMBER_OPEN) return false;
    return m->iteration <= list->of.begun || (list->taken_up && run->cancelling);
}

enum code list_fold(struct run *run, const struct moment *m, uint32_t step, bool *possible, struct error *err)
{
    const struct run_lane *s = lane_ref(run, step);
    struct run_list *list = list_of(run, step);
    bool starts = m->kind == MOMENT_LIST_STARTED;
    *possible = kernel_fans_out(run, step) && s->state == NODE_RUNNING && m->logical == s->logical &&
                (starts ? (!list || m->reason.len > 0) && m->counts.total <= FAN_OUT_MAX : may_end(run, list, m));
    if (!*possible) return OK;
    return starts ? fold_list(run, m, step, err) : fold_child(run, list, m, err);
}

// ---- the items

// A list, or the text of one: what a shell prints is text.
static enum code read_items(const struct json *given, struct arena *arena, struct json *out, struct error *err)
{
    struct json parsed;
    struct error local = {0};
    if (json_is(given, JSON_STRING)) {
        if (json_parse(given->text, &json_limits_default, arena, &parsed, &local) == E_NOMEM) return error_nomem(err);
        given = local.code ? NULL : &parsed;
    }
    if (!json_is(given, JSON_ARRAY))
        return error_set(err, E_INVALID, "the items of fan_out are no JSON list%s%s", local.code ? ": " : "",
                         local.code ? local.message : "");
    if (given->count > FAN_OUT_MAX)
        return error_set(err, E_LIMIT, "fan_out has %u items; %d are the most", given->count, FAN_OUT_MAX);
    *out = *given;
    return net_canon(arena, out, err);
}

// As the document and the run have it now. *fault has a code when it cannot be had.
static enum code read_list(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                           struct json *how, struct json *items, struct fault *fault, struct error *err)
{
    struct json with;
    struct error local = {0};
    *fault = (struct fault){0};
    enum code rc = kernel_render(run, lane, env, arena, &with, &local);
    if (!rc) *how = json_ref(json_key(&with, "fanOut"));
    if (!rc) rc = read_items(json_key(how, "items"), arena, items, &local);
    if (!rc) return OK;
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    *fault = (struct fault){.code = rc == E_INVALID ? STR("INVALID_ITEMS")
                                    : rc == E_LIMIT ? STR("LIMIT_EXCEEDED")
                                                    : STR("REFERENCE_NOT_AVAILABLE"),
                            .message = arena_copy(arena, str_from(local.message)),
                            .category = STR("validation")};
    return fault->message.ptr ? OK : error_nomem(err);
}

enum code list_instant(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                       struct instant *out, struct error *err)
{
    struct json how, items = json_array();
    enum code rc = read_list(run, lane, env, arena, &how, &items, &out->fault, err);
    out->ok = out->fault.code.len == 0;
    out->value = json_array();
    return rc;
}

uint32_t kernel_members(const struct run *run, uint32_t step)
{
    const struct run_list *list = list_of(run, step);
    return list ? list->of.begun : 0;
}

uint64_t kernel_list_size(const struct run *run, uint32_t step)
{
    const struct run_list *list = list_of(run, step);
    return list ? list->size : 0;
}

enum code kernel_item(const struct run *run, uint32_t step, uint32_t member, const struct kernel_env *env,
                      struct arena *arena, struct json *item, struct str *as, struct error *err)
{
    const struct run_list *list = list_of(run, step);
    INVARIANT(list && member >= 1 && member <= list->of.total);
    struct json items = list->of.items;
    if (items.type != JSON_ARRAY && list->has_blob) {
        struct str bytes;
        enum code rc = env->blob(env->context, &list->blob, arena, &bytes, err);
        if (!rc) rc = json_parse(bytes, &json_limits_result, arena, &items, err);
        if (rc) return rc;
    }
    if (items.type != JSON_ARRAY || items.count < member)
        return error_set(err, E_CORRUPT, "the items of the list are not those that it was started with");
    *item = items.items[member - 1];
    *as = list->as;
    return OK;
}

enum code kernel_is_child(const struct run *run, uint32_t step, struct str child, struct arena *arena, uint32_t *member)
{
    const struct run_list *list = list_of(run, step);
    bool many = kernel_fans_out(run, step);
    uint32_t last = list ? list->of.begun : 0;
    for (*member = many; *member <= last; ++*member) { // 0: the only one
        if (many && list->states[*member - 1] != MEMBER_OPEN) continue;
        struct str id = kernel_child(run, step, *member, arena);
        if (!id.ptr) return E_NOMEM;
        if (str_eq(id, child)) return OK;
    }
    return E_NOT_FOUND;
}

// ---- decisions

static enum code order_member(struct decide *d, uint32_t lane, uint32_t member)
{
    INVARIANT(member >= 1 && member <= list_of(d->run, lane)->of.begun);
    return is_held(d, lane, member) ? OK : order_child(d, lane, member);
}

enum code list_look(struct decide *d, uint32_t lane, uint32_t member)
{
    const struct run *run = d->run;
    const struct run_list *list = list_of(run, lane);
    bool begun = list && member >= 1 && member <= list->of.begun && list->states[member - 1] == MEMBER_OPEN;
    if (!begun || d->input->idle || !run_goes(run) || run->cancelling) return OK;
    return order_member(d, lane, member);
}

static enum code record_list(struct decide *d, uint32_t lane, bool taken_up, bool *recorded, struct fault *fault)
{
    struct arena *turn = d->out->turn;
    struct json how, items;
    enum code rc = read_list(d->run, lane, d->env, turn, &how, &items, fault, d->err);
    bool fits = !rc && fault->code.len == 0 && !kernel_too_many(d->env, items.count, turn, fault);
    *recorded = fits && items.count > 0;
    if (!*recorded) return rc;
    struct moment m = moment_of(d, MOMENT_LIST_STARTED, lane), told;
    int64_t most = json_integer(json_key(&how, "maxParallel"), FAN_OUT_PARALLEL);
    INVARIANT(most >= 1 && items.count <= FAN_OUT_MAX);
    m.counts.total = items.count;
    if (taken_up) {
        COVER(list_taken_up);
        m.reason = STR("taken up");
    }
    bool small = net_weight(&items, LIST_INLINE_MAX) < LIST_INLINE_MAX;
    m.value = items;
    if (!small) {
        COVER(list_items_beside_the_log);
        rc = keep_apart(d, &m);
    }
    told = m;
    told.value = JSON_OF(turn, {"as", json_some(json_text(json_key(&how, "as")))}, {"items", json_when(small, items)},
                         {"join", json_ref(json_key(&how, "join"))}, {"most", json_int(most)});
    m.value = told.value;
    if (!small) json_set(turn, &m.value, STR("items"), items); // folded as it is, recorded with the reference
    if (!rc) rc = json_made(&m.value, d->err);
    if (!rc) rc = emit(d, &m, lane);
    if (!rc) d->out->moments[d->out->moment_count - 1] = told;
    return rc;
}

enum code list_start(struct decide *d, uint32_t lane)
{
    bool recorded;
    struct fault fault;
    enum code rc = record_list(d, lane, false, &recorded, &fault);
    if (rc) return rc;
    // Without members there is nothing to wait for: answered as kinds without a tool are, after what the attempt is part of is stored.
    return recorded ? list_go_on(d, lane) : order(d, EFFECT_EXECUTE, lane);
}

static bool is_over(const struct run *run, const struct run_list *list)
{
    uint32_t ended = list->of.done + list->of.failures;
    return ended == (run->cancelling && !list->taken_up ? list->of.begun : list->of.total);
}

static enum code value_of(struct decide *d, const struct run_list *list, struct json *out, struct error *err)
{
    struct arena *turn = d->out->turn;
    *out = json_array();
    for (uint32_t i = 0; i < list->of.total; i++) {
        const struct net_value *result = &list->of.results[i];
        struct json one;
        struct str bytes;
        enum code rc = OK;
        if (!result->has_blob) {
            if (!json_copy(turn, &result->value, &one)) return error_nomem(err);
        } else {
            rc = d->env->blob(d->env->context, &result->blob, turn, &bytes, err);
            if (!rc) rc = json_parse(bytes, &json_limits_result, turn, &one, err);
        }
        if (rc) return rc;
        if (!json_push(turn, out, one)) return error_nomem(err);
    }
    return OK;
}

static enum code tell_value(struct decide *d, uint32_t lane, const struct run_list *list)
{
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, lane);
    struct error local = {0};
    m.by = EMITTER_WORKER;
    INVARIANT(list->of.done + list->of.failures == list->of.total);
    m.duration_ms = elapsed_ms(d, lane_ref(d->run, lane)->started_ms);
    enum code rc = value_of(d, list, &m.value, &local);
    if (rc == E_NOMEM || rc == E_IO || rc == E_UNREACHABLE) return error_set(d->err, rc, "%s", local.message);
    struct str bytes = rc ? arena_copy(d->out->turn, str_from(local.message))
                          : json_canon_kept(d->out->turn, &m.value, SIZE_MAX / 4);
    if (!bytes.ptr) return error_nomem(d->err);
    bool fits = bytes.len <= RESULT_MAX;
    if (rc || !fits) {
        COVER(list_value_cannot_be_had);
        struct fault fault = kernel_unavailable(rc ? rc : E_LIMIT, rc ? bytes : STR(RESULT_TOO_LARGE));
        return d->run->route->fail(d, lane, &fault);
    }
    if (bytes.len <= (d->env->inline_max ? d->env->inline_max : KERNEL_INLINE_MAX)) return emit(d, &m, lane);
    COVER(list_value_beside_the_log);
    rc = keep_apart(d, &m);
    m.value = json_none();
    return rc ? rc : emit(d, &m, lane);
}

static enum code tell_failure(struct decide *d, uint32_t lane, const struct run_list *list)
{
    uint32_t first = 0;
    while (list->states[first] != MEMBER_FAILED) first++;
    INVARIANT(first < list->of.total);
    struct buf text SCOPED(buf_release) = buf_of(8192);
    buf_printf(&text, "%u of %u children failed; item %u: %.*s", list->of.failures, list->of.total, first + 1,
               STR_ARG(json_text(json_key(&list->of.results[first].value, "error"))));
    struct fault fault = {
        .code = STR("CHILD_FAILED"), .message = buf_str(&text), .category = STR("business"), .retryable = true};
    fault.message = arena_copy(d->out->turn, buf_str(&text));
    return fault.message.ptr ? d->run->route->fail(d, lane, &fault) : error_nomem(d->err);
}

static enum code end_list(struct decide *d, uint32_t lane, const struct run_list *list)
{
    if (d->run->cancelling) return d->run->route->fail(d, lane, &cancelled_fault);
    bool failed = list->all_success && list->of.failures > 0;
    return failed ? tell_failure(d, lane, list) : tell_value(d, lane, list);
}

enum code list_go_on(struct decide *d, uint32_t lane)
{
    const struct run *run = d->run;
    const struct run_list *list = list_of(run, lane);
    if (!list) { // of a log from before lists were recorded, or of a run that took over another one's past; or it has no members
        if (is_held(d, lane, 0)) return OK;
        bool recorded;
        struct fault fault;
        enum code rc = record_list(d, lane, true, &recorded, &fault);
        if (rc || !recorded) return rc ? rc : order(d, EFFECT_EXECUTE, lane);
        list = list_of(run, lane);
    }
    INVARIANT(list && list->logical == lane_ref(run, lane)->logical);
    if (is_over(run, list)) return end_list(d, lane, list);
    bool rests = d->input->idle || !run_goes(run) || run->cancelling;
    enum code rc = OK;
    for (uint32_t i = 0; !rc && !rests && i < list->of.begun; i++)
        if (list->states[i] == MEMBER_OPEN) rc = order_member(d, lane, i + 1);
    return rc;
}

enum code list_result(struct decide *d, uint32_t lane)
{
    const struct input *in = d->input;
    const struct run_list *list = list_of(d->run, lane);
    bool open = list && in->member <= list->of.total && list->states[in->member - 1] == MEMBER_OPEN;
    if (!open) { // its end is recorded
        COVER(list_child_ended_twice);
        return OK;
    }
    struct moment m = moment_of(d, MOMENT_CHILD_ENDED, lane);
    INVARIANT(in->member <= list->of.begun || list->taken_up); // what did not begin does not end
    bool cancelled = str_is(in->fault.code, "CHILD_CANCELLED") || str_is(in->fault.code, "CANCELLED");
    m.iteration = in->member;
    m.reason = in->ok ? STR("completed") : cancelled ? STR("cancelled") : STR("failed");
    m.run_ref = kernel_child(d->run, lane, in->member, d->out->turn);
    if (!m.run_ref.ptr) return error_nomem(d->err);
    m.duration_ms = in->duration_ms;
    m.fault = in->fault;
    m.value = in->value;
    m.blob = in->blob;
    m.has_blob = in->has_blob;
    m.blob_size = in->blob_size;
    let_go(d, lane, in->member);
    enum code rc = emit(d, &m, lane);
    return rc ? rc : list_go_on(d, lane);
}

enum code list_stop(struct decide *d, uint32_t lane, bool waits)
{
    const struct run *run = d->run;
    const struct run_list *list = list_of(run, lane);
    bool recorded = true, hurry = run->emergency && d->input->kind == INPUT_SIGNAL;
    struct fault fault;
    enum code rc = OK;
    if (!list && is_held(d, lane, 0)) return OK; // its answer is on its way
    if (!list) rc = record_list(d, lane, true, &recorded, &fault);
    if (!rc && !list) list = list_of(run, lane);
    if (rc || (!list && !waits)) return rc;
    if (!list || is_over(run, list)) {
        COVER(list_cancelled_between_children);
        return run->route->fail(d, lane, &cancelled_fault);
    }
    uint32_t reach = list->taken_up ? list->of.total : list->of.begun;
    for (uint32_t i = 0; !rc && i < reach; i++) {
        if (list->states[i] != MEMBER_OPEN || (is_stopping(d, lane, i + 1) && !hurry)) continue;
        if (waits) rc = ask_to_stop(d, lane, i + 1);
        if (!rc) rc = cancel_child(d, lane, i + 1);
    }
    return rc;
}
