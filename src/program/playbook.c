// The root of a playbook.
#include "program/playbook.h"

void unknown_member(struct playbook *pb, const struct json_member *member, const char *const *known, const char *what,
                    bool strict)
{
    struct reader *r = pb->r;
    struct nearest nearest = nearest_to(member->key);
    for (size_t i = 0; known[i]; i++) nearest_try(&nearest, str_from(known[i]));
    if (nearest.best.len && nearest.distance == 0) return;
    if (str_starts(member->key, STR("x-"))) return;
    struct span at = place_of_key(r, member);
    if (strict || nearest.best.len) {
        struct diagnostic *d = ERROR(r, "E0203", at, "unknown field \"%.*s\" in %s", SHOW(member->key), what);
        hint_nearest(r, d, &nearest);
    } else {
        WARNING(r, "E0219", at, "\"%.*s\" is no field of %s and has no effect", SHOW(member->key), what);
    }
}

void useless_members(struct playbook *pb, const struct json *object, const char *const *known, const char *what)
{
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        struct nearest nearest = nearest_to(member->key);
        for (size_t k = 0; known[k]; k++) nearest_try(&nearest, str_from(known[k]));
        if ((nearest.best.len && nearest.distance == 0) || str_starts(member->key, STR("x-"))) continue;
        struct diagnostic *d = WARNING(pb->r, "E0219", place_of_key(pb->r, member),
                                       "\"%.*s\" is no field of %s and has no effect", SHOW(member->key), what);
        if (nearest.best.len) hint_nearest(pb->r, d, &nearest);
    }
}

bool refuse_deprecated(struct playbook *pb, const struct json_member *member, const struct deprecated *list,
                       size_t count, const char *where)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_is(member->key, list[i].name)) continue;
        struct span at = place_of_key(pb->r, member);
        struct diagnostic *d = ERROR(pb->r, "E0222", at, "\"%s\" is not part of %s any more", list[i].name, where);
        HINT(pb->r, d, "%s", list[i].instead);
        return true;
    }
    return false;
}

// ---- metadata

static bool read_identity(struct playbook *pb, const struct json *value, const char *name, struct str *out)
{
    struct str text;
    if (!value || !read_text(pb->r, value, name, &text)) return false;
    if (!name_valid(text)) {
        struct span at = place_of(pb->r, value);
        ERROR(pb->r, "E0208", at, "\"%s\" of a playbook has 1 to 128 bytes without '|' and control characters", name);
        return false;
    }
    *out = text;
    return true;
}

static void read_metadata(struct playbook *pb, const struct json *root)
{
    struct reader *r = pb->r;
    struct program *program = r->program;
    const struct json *metadata = field(root, "metadata", NULL);
    program->plan_version = (struct str){program->sha256_hex, 12};
    if (!metadata) {
        struct span at = place_of(r, root);
        struct diagnostic *d = ERROR(r, "E0204", at, "a playbook needs \"metadata\" with a name and a path");
        HINT(r, d, "metadata: {name: hello, path: examples/hello}");
        return;
    }
    if (!read_object(r, metadata, "metadata")) return;
    const struct json *name = field(metadata, "name", NULL), *path = field(metadata, "path", NULL);
    bool named = read_identity(pb, name, "name", &program->name);
    bool placed = read_identity(pb, path, "path", &program->plan_id);
    if (!name && !path) {
        struct span at = place_of(r, metadata);
        ERROR(r, "E0204", at, "metadata needs \"name\" and \"path\"");
    }
    if (!placed && named) program->plan_id = program->name;
    if (placed && !named) program->name = program->plan_id;
    const struct json *description = field(metadata, "description", "desc");
    if (description) read_text(r, description, "description", &program->description);
    version_read(pb->r, field(metadata, "version", NULL));
    const struct json *tags = field(metadata, "tags", NULL);
    if (json_is(tags, JSON_ARRAY)) read_tags(r, tags);
}

// ---- the executor

static void read_requires(struct playbook *pb, const struct json *requires)
{
    struct reader *r = pb->r;
    if (!requires || !read_object(r, requires, "requires")) return;
    const struct json *tools = field(requires, "tools", NULL);
    if (!tools || !read_texts(r, tools, "tools", &pb->net->requires_tools, &pb->net->requires_tool_count)) return;
    for (uint32_t i = 0; i < tools->count; i++) {
        if (net_kind_known(tools->items[i].text) || is_task_kind(r, tools->items[i].text)) continue;
        struct span at = place_of(r, &tools->items[i]);
        struct diagnostic *d = ERROR(r, "E0223", at, "the playbook requires the tool \"%.*s\", which is not here",
                                     SHOW(tools->items[i].text));
        hint_kinds(r, d, tools->items[i].text);
    }
}

// What holds for the whole document: at the root, or under the executor's spec.
static void read_choices(struct playbook *pb, const struct json *spec)
{
    static const char *const compats[] = {"cairn", "noetl-4", NULL};
    static const char *const undefined[] = {"chain", "strict", NULL};
    size_t index;
    const struct json *compat = field(spec, "compat", NULL), *strictness = field(spec, "undefined", NULL);
    if (compat && read_choice(pb->r, compat, "compat", compats, &index)) pb->net->as_noetl = index == 1;
    if (strictness && read_choice(pb->r, strictness, "undefined", undefined, &index)) pb->net->strict = index == 1;
}

static void read_executor(struct playbook *pb, const struct json *executor)
{
    static const char *const known[] = {"profile", "version", "requires", "spec", "name", "kind", NULL};
    static const char *const profiles[] = {"local", "distributed", "auto", NULL};
    static const char *const spec_known[] = {"entry_step", "final_step", "no_next_is_error", "policy",
                                             "timeout",    "timeout_s",  "result",           "compat",
                                             "undefined",  NULL};
    struct reader *r = pb->r;
    if (!executor || !read_object(r, executor, "executor")) return;
    for (uint32_t i = 0; i < executor->count; i++)
        unknown_member(pb, &executor->members[i], known, "the executor", false);
    size_t index;
    const struct json *profile = field(executor, "profile", NULL);
    if (profile) read_choice(r, profile, "profile", profiles, &index);
    read_requires(pb, field(executor, "requires", NULL));
    const struct json *spec = field(executor, "spec", NULL);
    if (!spec || !read_object(r, spec, "spec")) return;
    for (uint32_t i = 0; i < spec->count; i++)
        unknown_member(pb, &spec->members[i], spec_known, "the executor's spec", false);
    pb->spec = spec;
    read_choices(pb, spec);
    pb->entry = field(spec, "entry_step", NULL);
    pb->final = field(spec, "final_step", NULL);
    const struct json *strict = field(spec, "no_next_is_error", NULL);
    if (strict) read_bool(r, strict, "no_next_is_error", &pb->net->no_next_is_error);
    const struct json *policy = field(spec, "policy", NULL);
    if (policy && read_object(r, policy, "policy")) pb->profile = policy;
}

static void read_root_spec(struct playbook *pb, const struct json *root)
{
    static const char *const known[] = {"compat", "undefined", NULL};
    const struct json *spec = field(root, "spec", NULL), *tracing = field(root, "tracing", NULL);
    if (tracing) {
        struct diagnostic *d = WARNING(pb->r, "E0219", place_of(pb->r, tracing), "\"tracing\" has no effect");
        HINT(pb->r, d, "cairn trace RUN prints a run as OpenTelemetry spans");
    }
    if (!spec || !read_object(pb->r, spec, "spec")) return;
    useless_members(pb, spec, known, "the root's spec");
    read_choices(pb, spec);
}

// ---- workload and keychain

static void read_workload(struct playbook *pb, const struct json *workload)
{
    struct reader *r = pb->r;
    pb->workload = json_object();
    if (workload && read_object(r, workload, "workload")) pb->workload = *workload;
    r->program->inputs = pb->workload;
    r->program->input_types = ARENA_ARRAY(r->arena, pb->workload.count, struct str);
    if (!r->program->input_types) r->failed = true;
    pb->net->workload = tree_of(pb, &pb->workload);
}

// A mapping by name is a list whose entries have their names.
static struct json keychain_list(struct playbook *pb, const struct json *keychain)
{
    struct reader *r = pb->r;
    if (keychain->type != JSON_OBJECT) return *keychain;
    struct json list = json_array();
    for (uint32_t i = 0; i < keychain->count; i++) {
        const struct json_member *member = &keychain->members[i];
        if (!read_object(r, &member->value, "keychain")) continue;
        struct json entry = member->value;
        if (!json_key(&entry, "name")) {
            struct json named = json_object();
            if (!json_put(r->arena, &named, STR("name"), json_string(member->key))) r->failed = true;
            entry = merged(pb, &named, &member->value);
            json_set_place(&entry, member->line, member->column);
        }
        if (!json_push(r->arena, &list, entry)) r->failed = true;
    }
    return list;
}

static void read_keychain(struct playbook *pb, const struct json *keychain)
{
    struct reader *r = pb->r;
    if (!keychain) return;
    if (keychain->type != JSON_ARRAY && keychain->type != JSON_OBJECT) {
        wrong_type(r, keychain, "keychain", "a list of entries");
        return;
    }
    struct json list = keychain_list(pb, keychain);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct json *entry = &list.items[i];
        if (!read_object(r, entry, "keychain")) continue;
        struct span at = place_of(r, entry);
        struct str name = {0};
        const struct json *given = field_required(r, entry, "name", NULL, at, "an entry of the keychain");
        if (given) read_text(r, given, "name", &name);
        field_required(r, entry, "kind", "type", at, "an entry of the keychain");
        for (uint32_t k = 0; k < i && name.len; k++) {
            if (!str_eq(json_text(json_key(&list.items[k], "name")), name)) continue;
            struct span twice = place_of(r, given);
            ERROR(r, "E0301", twice, "the keychain has two entries \"%.*s\"", SHOW(name));
        }
    }
    tree_check(pb, &list);
    pb->net->keychain = list;
}

// ---- all of it

static const struct deprecated root_deprecated[] = {
    {"vars", "put defaults under workload, and what steps find out in ctx with set: {ctx.name: value}"},
    {"steps", "a playbook lists its steps under workflow"},
};

static void check_root(struct playbook *pb, const struct json *root)
{
    static const char *const known[] = {"apiVersion", "kind",     "metadata", "keychain", "executor", "spec",
                                        "workload",   "workflow", "workbook", "tracing",  "schedule", "limits",
                                        NULL};
    struct reader *r = pb->r;
    for (uint32_t i = 0; i < root->count; i++) {
        const struct json_member *member = &root->members[i];
        if (!refuse_deprecated(pb, member, root_deprecated, ARRAY_COUNT(root_deprecated), "playbooks"))
            unknown_member(pb, member, known, "a playbook", true);
    }
    struct span at = place_of(r, root);
    const struct json *kind = field_required(r, root, "kind", NULL, at, "a playbook");
    if (kind && !str_is(json_text(kind), "Playbook")) {
        struct span place = place_of(r, kind);
        struct diagnostic *d = ERROR(r, "E0206", place, "\"kind\" of a playbook is Playbook");
        HINT(r, d, "kind: Playbook");
    }
    const struct json *version = field_required(r, root, "apiVersion", NULL, at, "a playbook");
    if (!version || str_is(json_text(version), "noetl.io/v2") || str_is(json_text(version), "noetl.io/v10")) return;
    struct span place = place_of(r, version);
    struct diagnostic *d =
        ERROR(r, "E0224", place, "playbooks of version \"%.*s\" are not supported", SHOW(json_text(version)));
    HINT(r, d, "noetl.io/v2 and noetl.io/v10 are");
}

static void read_workflow_list(struct playbook *pb, const struct json *root, struct draft_list *list)
{
    struct reader *r = pb->r;
    struct span at = place_of(r, root);
    const struct json *workflow = field_required(r, root, "workflow", NULL, at, "a playbook");
    if (!workflow) return;
    if (workflow->type != JSON_ARRAY) {
        wrong_type(r, workflow, "workflow", "a list of steps");
        return;
    }
    workflow = cursors_today(pb, workflow);
    at = place_of(r, workflow);
    if (workflow->count == 0) ERROR(r, "E0214", at, "the workflow has no steps");
    if (workflow->count > r->load->steps_max) {
        HINT(r, ERROR(r, "E0505", at, "the workflow has more than %u steps", r->load->steps_max), DOC_MORE_STEPS);
        return;
    }
    drafts_reserve(r, list, workflow->count);
    pb->steps = ARENA_ARRAY(r->arena, workflow->count, struct net_step);
    if (!pb->steps) r->failed = true;
    for (uint32_t i = 0; i < workflow->count && !r->failed; i++) {
        struct draft *draft = draft_add(r, list);
        if (draft) read_playbook_step(pb, &workflow->items[i], draft, &pb->steps[i]);
    }
    pb->net->steps = pb->steps;
}

struct playbook *playbook_read(struct reader *r, const struct json *root, struct draft_list *list)
{
    r->code = "";
    struct playbook *pb = ARENA_NEW(r->scratch, struct playbook);
    struct net *net = ARENA_NEW(r->arena, struct net);
    if (!pb || !net) {
        r->failed = true;
        return NULL;
    }
    pb->r = r;
    pb->net = net;
    net->final = PROGRAM_TOP;
    r->program->net = net;
    check_root(pb, root);
    read_metadata(pb, root);
    read_executor(pb, field(root, "executor", NULL));
    read_root_spec(pb, root);
    read_workload(pb, field(root, "workload", NULL));
    schedule_field_read(r, field(root, "schedule", NULL));
    document_limits_read(r, field(root, "limits", NULL));
    read_keychain(pb, field(root, "keychain", NULL));
    read_workbook(pb, field(root, "workbook", NULL));
    if (!r->failed) read_workflow_list(pb, root, list);
    if (!r->failed) find_env(pb, root);
    return pb;
}
