// How a playbook's run begins: its workload, which the start may change, and whose values may be made of each other.
#include "json/make.h"
#include "kernel/net_inside.h"

// A text of the workload that is a template. What it reads of the others is rendered before it.
struct leaf {
    const struct json *written;
    struct str path; // "db.hosts.0"
    enum { LEAF_OPEN = 0, LEAF_BUSY, LEAF_DONE } state;
    const struct leaf *asked_by; // BUSY
    struct json value;           // DONE
};

struct beginning {
    const struct run *run;
    struct arena *arena;
    struct leaf *leaves;
    size_t count, capacity;
};

static bool add_leaves(struct beginning *b, const struct json *written, struct str path)
{
    if (written->type == JSON_STRING && template_is_dynamic(written->text)) {
        if (json_at(&b->run->start.inputs, path)) return true; // the start says otherwise
        if (!ARENA_ROOM(b->arena, b->leaves, b->count, &b->capacity)) return false;
        b->leaves[b->count++] = (struct leaf){.written = written, .path = path};
        return true;
    }
    bool array = written->type == JSON_ARRAY;
    for (uint32_t i = 0; (array || written->type == JSON_OBJECT) && i < written->count; i++) {
        struct buf text = buf_of(4096);
        if (path.len > 0) buf_printf(&text, "%.*s.", STR_ARG(path));
        if (array)
            buf_int(&text, i);
        else
            buf_add(&text, written->members[i].key);
        struct str inner = buf_keep(&text, b->arena);
        if (!inner.ptr || !add_leaves(b, array ? &written->items[i] : &written->members[i].value, inner)) return false;
    }
    return true;
}

// The workload as far as it is known: texts that are not rendered yet are left out, of lists nothing.
static struct json known_part(const struct beginning *b, const struct json *written, size_t *leaf)
{
    struct arena *arena = b->arena;
    if (*leaf < b->count && b->leaves[*leaf].written == written) {
        const struct leaf *one = &b->leaves[(*leaf)++];
        return one->state == LEAF_DONE ? one->value : json_none();
    }
    bool array = written->type == JSON_ARRAY;
    if (!array && written->type != JSON_OBJECT)
        return written->type == JSON_STRING && template_is_dynamic(written->text) ? json_none() : *written;
    struct json made = array ? json_array() : json_object();
    for (uint32_t i = 0; i < written->count; i++) {
        struct json part = known_part(b, array ? &written->items[i] : &written->members[i].value, leaf);
        if (array)
            json_append(arena, &made, part.type == 0 ? json_null() : part);
        else if (part.type != 0)
            json_set(arena, &made, written->members[i].key, part);
    }
    return made;
}

// What the start gave over what the workload has.
static enum code known_workload(const struct beginning *b, struct json *out, struct error *err)
{
    size_t leaf = 0;
    struct json plain = known_part(b, &b->run->program->inputs, &leaf);
    if (!json_ok(&plain)) return error_nomem(err);
    return merge_values(b->arena, &plain, &b->run->start.inputs, out) ? OK : error_nomem(err);
}

static enum code look_input(void *context, struct str name, struct json *out, struct error *err)
{
    const struct beginning *b = context;
    const struct run *run = b->run;
    const struct json *given = &run->start.inputs;
    if (STR_AMONG(name, "input", "payload", "request")) *out = *given;
    if (str_is(name, "execution_id")) *out = json_string(run->ids.run);
    if (str_is(name, "job") || str_is(name, "execution")) *out = net_job(run, b->arena);
    if (!json_ok(out)) return error_nomem(err);
    if (str_is(name, TEMPLATE_NOW)) return net_now(run, b->arena, out, err);
    struct json known;
    enum code rc = known_workload(b, &known, err);
    if (rc) return rc;
    const struct json *value = json_get(&known, name);
    if (value) *out = *value;
    if (!value && str_is(name, "workload")) *out = known;
    return OK;
}

struct needing {
    struct beginning *b;
    struct leaf *leaf;
    enum code rc;
    struct error *err;
};

static enum code render_leaf(struct beginning *b, struct leaf *leaf, const struct leaf *by, struct error *err);

// "a['b'][0]" is a.b.0
static struct str plain_path(struct arena *arena, struct str path)
{
    struct buf out = buf_of(4096);
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (c == '[')
            buf_byte(&out, '.');
        else if (c != ']' && c != '\'')
            buf_byte(&out, c);
    }
    return buf_keep(&out, arena);
}

static bool is_within(struct str inner, struct str outer)
{
    return str_starts(inner, outer) && (inner.len == outer.len || inner.ptr[outer.len] == '.');
}

static void need_path(void *context, struct str path)
{
    struct needing *need = context;
    struct beginning *b = need->b;
    struct str plain = plain_path(b->arena, path), prefix = STR("workload.");
    if (need->rc) return;
    if (!plain.ptr) {
        need->rc = error_nomem(need->err);
        return;
    }
    bool all = str_is(plain, "workload"); // whatever it wants of it: what can be known before it is
    if (str_starts(plain, prefix)) plain = str_slice(plain, prefix.len, plain.len);
    for (size_t i = 0; i < b->count && !need->rc; i++) {
        struct leaf *other = &b->leaves[i];
        bool read = all ? other->state != LEAF_BUSY : is_within(other->path, plain) || is_within(plain, other->path);
        if (read && other != need->leaf) need->rc = render_leaf(b, other, need->leaf, need->err);
    }
}

static enum code in_a_ring(const struct leaf *leaf, const struct leaf *by, struct error *err)
{
    struct buf ring SCOPED(buf_release) = buf_of(2048);
    buf_add(&ring, leaf->path);
    for (const struct leaf *at = by; at && at != leaf; at = at->asked_by)
        buf_printf(&ring, ", which %.*s needs", STR_ARG(at->path));
    buf_printf(&ring, ", which %.*s needs", STR_ARG(leaf->path));
    return error_set(err, E_INVALID, "the workload needs itself: %.*s", STR_ARG(buf_str(&ring)));
}

static enum code render_leaf(struct beginning *b, struct leaf *leaf, const struct leaf *by, struct error *err)
{
    const struct kernel_env *env = b->run->env;
    struct template_scope scope = {.context = b, .lookup = look_input, .spent = env ? env->spent : NULL};
    const struct template *text;
    if (leaf->state == LEAF_DONE) return OK;
    if (leaf->state == LEAF_BUSY) return in_a_ring(leaf, by, err);
    leaf->state = LEAF_BUSY;
    leaf->asked_by = by;
    struct needing need = {b, leaf, template_compile(leaf->written->text, b->arena, &text, err), err};
    if (!need.rc) template_paths(text, need_path, &need);
    if (need.rc) return need.rc;
    enum code rc = template_render(text, &scope, net_limits(b->run), b->arena, &leaf->value, err);
    if (rc && !net_is_grave(rc)) error_wrap(err, "%.*s", STR_ARG(leaf->path));
    leaf->state = LEAF_DONE;
    return rc;
}

static enum code render_workload(struct beginning *b, struct json *out, struct error *err)
{
    const struct json *written = &b->run->program->inputs;
    *out = *written;
    if (!template_tree_dynamic(net_of_run(b->run)->workload)) return OK;
    if (!add_leaves(b, written, (struct str){0})) return error_nomem(err);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < b->count; i++) rc = render_leaf(b, &b->leaves[i], NULL, err);
    size_t leaf = 0;
    if (!rc) *out = known_part(b, written, &leaf);
    return rc ? rc : json_made(out, err);
}

// Marks of secrets come of templates alone: the caller that starts a run cannot ask for one by writing it into an input.
static bool without_marks(struct arena *arena, const struct json *value, struct json *out)
{
    *out = *value;
    if (value->type == JSON_STRING) {
        if (str_find(value->text, '\x01', 0) == value->text.len) return true;
        char *text = arena_alloc(arena, value->text.len);
        for (size_t i = 0; text && i < value->text.len; i++) {
            char c = value->text.ptr[i];
            text[i] = c == '\x01' ? ' ' : c;
        }
        *out = json_string((struct str){text, value->text.len});
        return text != NULL;
    }
    bool array = value->type == JSON_ARRAY;
    if (!array && value->type != JSON_OBJECT) return true;
    struct json made = array ? json_array() : json_object();
    for (uint32_t i = 0; i < value->count; i++) {
        struct json part;
        if (!without_marks(arena, array ? &value->items[i] : &value->members[i].value, &part)) return false;
        if (!(array ? json_push(arena, &made, part) : json_put(arena, &made, value->members[i].key, part)))
            return false;
    }
    *out = made;
    return true;
}

// `out` is empty when there is a fault.
static enum code make_workload(const struct run *run, struct arena *arena, struct json *out, struct fault *fault,
                               struct error *err)
{
    struct beginning beginning = {.run = run, .arena = arena};
    struct error local = {0};
    *fault = (struct fault){0};
    enum code rc = render_workload(&beginning, out, &local);
    if (net_is_grave(rc)) return error_set(err, rc, "%s", local.message);
    if (!rc) return OK;
    *fault = kernel_template_fault(arena, &local);
    *out = json_object();
    return OK;
}

enum code kernel_workload_fault(const struct run *run, struct arena *arena, struct fault *out, struct error *err)
{
    struct json made;
    *out = (struct fault){0};
    return run->program->net ? make_workload(run, arena, &made, out, err) : OK;
}

enum code net_workload_of(const struct run *run, struct arena *arena, struct json *out, struct fault *fault, struct error *err)
{
    struct json rendered, given;
    enum code rc = make_workload(run, arena, &rendered, fault, err);
    if (rc) return rc;
    if (!merge_values(arena, &rendered, &run->start.inputs, &given) || !without_marks(arena, &given, out)) return error_nomem(err);
    return net_canon(arena, out, err);
}

enum code net_workload(struct decide *d, struct json *out, struct fault *fault)
{
    return net_workload_of(d->run, d->out->turn, out, fault, d->err);
}

enum code net_begin(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_RUN_STARTED, PROGRAM_TOP);
    struct fault fault;
    enum code rc = net_workload(d, &m.value, &fault);
    if (!rc) rc = net_emit(d, &m);
    m = moment_of(d, MOMENT_WORKFLOW_STARTED, PROGRAM_TOP);
    if (!rc) rc = net_emit(d, &m);
    if (rc || fault.code.len == 0) return rc;
    return run_end(d, MOMENT_RUN_FAILED, &(struct cause){.name = STR(NET_WORKLOAD), .fault = fault});
}
