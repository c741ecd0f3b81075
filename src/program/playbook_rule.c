// What playbooks say in templates: conditions, patches, rules; and where a template that does not parse stands.
#include "program/playbook.h"

#include <string.h>

// ---- templates

// The place of line and column of a text inside the document. Folded and escaped texts have no lines of their own there: then
// what stands at the fault is looked for, and else the whole text is marked.
static struct span template_place(struct reader *r, const struct json *value, const struct error *err)
{
    struct str text = json_text(value);
    struct str rest = text;
    struct str line = {0};
    for (uint32_t i = 0; i < err->line || i == 0; i++) line = str_cut(rest, '\n', &rest);
    size_t column = err->column ? err->column - 1 : 0;
    if (column > line.len) column = line.len;
    struct span none = place_of(r, value);
    struct str trimmed = str_trim(line);
    if (trimmed.len) {
        struct span found = place_inside(r, value, trimmed, NULL);
        size_t before = (size_t)(trimmed.ptr - line.ptr);
        bool there = found.line != none.line || found.column != none.column;
        bool plain = value->type == JSON_STRING && found.width == trimmed.len;
        if ((there || plain) && column >= before)
            return (struct span){found.line, found.column + (uint32_t)(column - before), 1};
    }
    struct str part = str_trim(str_slice(line, column, column + 24));
    return part.len > 2 ? place_inside(r, value, part, NULL) : none;
}

// Braces as the templates of Go have them: {{json .}}, {{range .Items}}, {{end}}.
static bool is_foreign(struct str text)
{
    static const char *const words[] = {"end", "range", "json", "with", "printf", "index", "len"};
    for (size_t at = 0; (at = str_find(text, '{', at)) + 2 < text.len; at++) {
        if (text.ptr[at + 1] != '{') continue;
        struct str inner = str_trim(str_slice(text, at + 2, text.len));
        for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
            size_t len = strlen(words[i]);
            if (str_starts(inner, str_from(words[i])) && inner.len > len && strchr(" }", inner.ptr[len])) return true;
        }
    }
    return false;
}

static void bad_template(struct playbook *pb, const struct json *value, const struct error *err)
{
    struct reader *r = pb->r;
    if (err->code == E_NOMEM) {
        r->failed = true;
        return;
    }
    struct span at = template_place(r, value, err);
    struct diagnostic *d = ERROR(r, "E0406", at, "%s", err->message);
    if (is_foreign(json_text(value)))
        HINT(r, d, "braces of another language stand between {%% raw %%} and {%% endraw %%}");
}

// Every text of `value` that is no template is reported.
static void report_texts(struct playbook *pb, const struct json *value, const char *constant)
{
    if (value->type == JSON_STRING) {
        const struct template *made;
        struct error err = {0};
        if (template_is_dynamic(value->text) && template_compile(value->text, pb->r->scratch, &made, &err))
            bad_template(pb, value, &err);
    }
    bool array = value->type == JSON_ARRAY;
    for (uint32_t i = 0; (array || value->type == JSON_OBJECT) && i < value->count && !pb->r->failed; i++) {
        if (!array && constant && str_is(value->members[i].key, constant)) continue;
        report_texts(pb, array ? &value->items[i] : &value->members[i].value, NULL);
    }
}

const struct template_tree *tree_but(struct playbook *pb, const struct json *value, const char *constant)
{
    const struct template_tree *tree = NULL;
    const struct json *where = NULL;
    struct error err = {0};
    struct str kept = str_from(constant);
    enum code rc = template_tree_compile_but(value, kept, pb->r->arena, &tree, &where, &err);
    if (rc == E_NOMEM)
        pb->r->failed = true;
    else if (rc)
        report_texts(pb, value, constant);
    return rc ? NULL : tree;
}

const struct template_tree *tree_of(struct playbook *pb, const struct json *value)
{
    return tree_but(pb, value, NULL);
}

void tree_check(struct playbook *pb, const struct json *value)
{
    report_texts(pb, value, NULL);
}

// ---- values that are needed when the document is read

static enum code find_workload(void *context, struct str name, struct json *out, struct error *err)
{
    (void)err;
    const struct playbook *pb = context;
    const struct json *found = json_get(&pb->workload, name);
    if (str_is(name, "workload")) found = &pb->workload;
    if (found) *out = *found;
    return OK;
}

static enum code settled(struct playbook *pb, const struct template *made, struct json *out, struct error *err)
{
    struct template_scope scope = {.context = pb, .lookup = find_workload};
    struct template_limits limits = template_limits_default;
    limits.undefined = TEMPLATE_STRICT;
    enum code rc = template_render(made, &scope, &limits, pb->r->scratch, out, err);
    if (rc == E_NOMEM) pb->r->failed = true;
    if (!rc && out->type == JSON_STRING) out->text = arena_copy(pb->r->arena, out->text);
    if (!rc && out->type == JSON_STRING && !out->text.ptr) pb->r->failed = true;
    return rc;
}

bool read_known(struct playbook *pb, const struct json *value, struct json *out)
{
    const struct template *made = NULL;
    struct error err = {0};
    if (template_compile(value->text, pb->r->scratch, &made, &err)) return false; // reported with the other texts
    if (settled(pb, made, out, &err) || out->type != JSON_STRING || out->text.len == 0) return false;
    out->line = value->line;
    out->column = value->column;
    return !template_is_dynamic(out->text) && !pb->r->failed;
}

// A template is answered from the workload as written; what the start of a run gives does not change it any more. False: what
// is usual is taken.
static bool settle(struct playbook *pb, const struct json *value, const char *name, struct json *out)
{
    struct reader *r = pb->r;
    *out = *value;
    if (value->type != JSON_STRING || !template_is_dynamic(value->text)) return true;
    const struct template *made = NULL;
    struct error err = {0};
    enum code rc = template_compile(value->text, r->scratch, &made, &err);
    if (rc) {
        bad_template(pb, value, &err);
        return false;
    }
    rc = settled(pb, made, out, &err);
    struct span at = place_of(r, value);
    if (rc) {
        struct diagnostic *d =
            WARNING(r, "E0225", at, "\"%s\" is not known when the document is read, so the usual one is taken: %s",
                    name, err.message);
        HINT(r, d, "write it, or a template over values of the workload");
        return false;
    }
    out->line = value->line;
    out->column = value->column;
    WARNING(r, "E0225", at, "\"%s\" is taken from the workload as it is written here, not as a run is started with it",
            name);
    return !r->failed;
}

// The text as a template that is rendered where it applies, and with *known what it is now.
static bool later(struct playbook *pb, const struct json *value, const struct template_tree **made, struct json *known)
{
    const struct template *text = NULL;
    struct error err = {0};
    *known = *value;
    if (value->type != JSON_STRING || !template_is_dynamic(value->text)) return false;
    *made = tree_of(pb, value);
    *known = json_null();
    if (*made && !template_compile(value->text, pb->r->scratch, &text, &err) && settled(pb, text, known, &err))
        *known = json_null();
    return true;
}

void read_seconds(struct playbook *pb, const struct json *value, const char *name, int64_t *ms,
                  const struct template_tree **made)
{
    struct reader *r = pb->r;
    struct json known;
    bool dynamic = later(pb, value, made, &known);
    enum code rc = net_seconds(&known, ms);
    if (rc == OK || dynamic) return;
    struct span at = place_of(r, value);
    if (rc == E_LIMIT) {
        ERROR(r, "E0210", at, "\"%s\" must be from 0 seconds to ten years", name);
        return;
    }
    struct diagnostic *d = ERROR(r, "E0209", at, "\"%s\" must be a number of seconds", name);
    HINT(r, d, "write 30, 0.5 or \"5m\"");
}

void read_many(struct playbook *pb, const struct json *value, const char *name, uint32_t max, uint32_t *count,
               const struct template_tree **made)
{
    struct json known;
    int64_t number;
    bool dynamic = later(pb, value, made, &known);
    enum code rc = dynamic ? net_count(&known, 1, max, &number) : OK;
    if (!dynamic && !read_number(pb, value, name, 1, max, &number)) return;
    if (rc == OK) *count = (uint32_t)number;
}

bool read_word(struct playbook *pb, const struct json *value, const char *name, const char *const *choices, size_t *out)
{
    struct json word;
    return settle(pb, value, name, &word) && read_choice(pb->r, &word, name, choices, out);
}

bool read_number(struct playbook *pb, const struct json *value, const char *name, int64_t min, int64_t max,
                 int64_t *out)
{
    struct json settled;
    int64_t number;
    if (!settle(pb, value, name, &settled)) return false;
    if (settled.type == JSON_STRING && str_int64(str_trim(settled.text), &number)) {
        struct json read = json_int(number);
        json_set_place(&read, settled.line, settled.column);
        settled = read;
    }
    return read_count(pb->r, &settled, name, min, max, out);
}

// ---- conditions

static void see_name(void *context, struct str name)
{
    static const char *const knowing[] = {"event", "outcome", "output", "error"};
    struct net_when *when = context;
    for (size_t i = 0; i < ARRAY_COUNT(knowing); i++) when->event = when->event || str_is(name, knowing[i]);
}

static bool names_event(struct str text, const char *event)
{
    size_t len = strlen(event);
    for (size_t at = str_find(text, event[0], 0); at + len <= text.len; at = str_find(text, event[0], at + 1)) {
        if (at == 0 || memcmp(text.ptr + at, event, len) != 0 || at + len >= text.len) continue;
        char before = text.ptr[at - 1], after = text.ptr[at + len];
        if (before == after && (before == '\'' || before == '"')) return true;
    }
    return false;
}

// Other names of events inside quotes become the ones that the log has (C-47).
static struct str canonical_events(struct reader *r, struct str text)
{
    static const struct {
        const char *from, *to;
    } names[] = {{"call.done", "step.done"}, {"call.error", "step.failed"}};
    bool any = false;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) any = any || names_event(text, names[i].from);
    if (!any) return text;
    struct buf out = buf_of(text.len * 2 + 64);
    for (size_t at = 0; at < text.len; at++) {
        size_t used = 0;
        for (size_t i = 0; i < ARRAY_COUNT(names) && at > 0 && !used; i++) {
            size_t len = strlen(names[i].from);
            char before = text.ptr[at - 1];
            if ((before != '\'' && before != '"') || at + len >= text.len || text.ptr[at + len] != before) continue;
            if (memcmp(text.ptr + at, names[i].from, len) != 0) continue;
            buf_text(&out, names[i].to);
            used = len;
        }
        if (used)
            at += used - 1;
        else
            buf_byte(&out, text.ptr[at]);
    }
    struct str made = buf_keep(&out, r->arena);
    if (!made.ptr) r->failed = true;
    return made.ptr ? made : text;
}

static enum code compile_condition(struct reader *r, struct str text, const struct template **out, struct error *err)
{
    if (template_is_dynamic(text)) return template_compile(text, r->arena, out, err);
    return template_expression(text, r->arena, out, err);
}

static bool is_true(struct str text)
{
    bool braces = str_starts(text, STR("{{")) && str_ends(text, STR("}}")) && text.len >= 4;
    if (braces) text = str_trim(str_slice(text, 2, text.len - 2));
    return str_is(text, "true") || str_is(text, "True");
}

void read_condition(struct playbook *pb, const struct json *value, enum when_site site, struct net_when *out)
{
    struct reader *r = pb->r;
    *out = (struct net_when){0};
    struct json given = *value;
    if (value->type == JSON_BOOL)
        given.text = value->boolean ? STR("true") : STR("false");
    else if (value->type == JSON_INT)
        given.text = value->integer ? STR("true") : STR("false");
    else if (value->type != JSON_STRING) {
        wrong_type(r, value, "when", "a condition such as \"{{ ctx.count > 3 }}\"");
        return;
    }
    given.type = JSON_STRING;
    struct str text = str_trim(given.text);
    if (text.len == 0) {
        struct span at = place_of(r, value);
        struct diagnostic *d = ERROR(r, "E0401", at, "the condition is empty");
        HINT(r, d, "leave \"when\" out: what has no condition is true");
        return;
    }
    struct error err = {0};
    enum code rc = compile_condition(r, given.text, &out->test, &err);
    if (rc) {
        bad_template(pb, value, &err);
        return;
    }
    out->text = given.text;
    template_names(out->test, see_name, out);
    if (site == WHEN_RULE) return;
    if (is_true(text)) out->test = NULL; // as if it was not written
    out->exit = names_event(given.text, "step.exit");
    struct str canonical = canonical_events(r, given.text);
    if (canonical.ptr != given.text.ptr && compile_condition(r, canonical, &out->test, &err)) r->failed = true;
}

// ---- patches

struct set_list {
    struct net_set *items;
    size_t count, capacity;
};

static void add_set(struct playbook *pb, struct set_list *list, enum net_scope scope, struct str path,
                    const struct json_member *member)
{
    struct reader *r = pb->r;
    bool dotted = path.len == 0 || path.ptr[0] == '.' || path.ptr[path.len - 1] == '.';
    for (size_t i = 0; i + 1 < path.len; i++) dotted = dotted || (path.ptr[i] == '.' && path.ptr[i + 1] == '.');
    if (dotted) {
        struct span at = place_of_key(r, member);
        struct diagnostic *d = ERROR(r, "E0208", at, "\"%.*s\" names nothing that can be set", SHOW(member->key));
        HINT(r, d, "write ctx.name or iter.name");
        return;
    }
    if (!ARENA_ROOM(r->arena, list->items, list->count, &list->capacity)) {
        r->failed = true;
        return;
    }
    list->items[list->count++] = (struct net_set){scope, path, tree_of(pb, &member->value)};
}

static void add_scoped(struct playbook *pb, struct set_list *list, const struct json_member *member, enum set_site site)
{
    static const char *const fixed[] = {"workload.", "keychain.", "args.", "event."};
    struct str key = member->key;
    enum net_scope otherwise = site == SET_ITERATION ? NET_ITER : NET_CTX;
    bool ctx = str_is(key, "ctx"), iter = str_is(key, "iter");
    if ((ctx || iter) && member->value.type == JSON_OBJECT) {
        for (uint32_t i = 0; i < member->value.count; i++)
            add_set(pb, list, ctx ? NET_CTX : NET_ITER, member->value.members[i].key, &member->value.members[i]);
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(fixed); i++) {
        if (!str_starts(key, str_from(fixed[i]))) continue;
        struct span at = place_of_key(pb->r, member);
        struct diagnostic *d = ERROR(pb->r, "E0206", at, "\"%.*s\" cannot be set: it never changes", SHOW(key));
        HINT(pb->r, d, "write ctx.name or iter.name");
        return;
    }
    if (str_starts(key, STR("ctx.")))
        add_set(pb, list, NET_CTX, str_slice(key, 4, key.len), member);
    else if (str_starts(key, STR("iter.")))
        add_set(pb, list, NET_ITER, str_slice(key, 5, key.len), member);
    else if (str_starts(key, STR("step.")))
        // {{ step.name }} is found in the iteration or the visit, and what the step leaves behind in ctx.
        add_set(pb, list, site == SET_STEP ? NET_CTX : NET_ITER, key, member);
    else
        add_set(pb, list, otherwise, key, member);
}

void read_sets(struct playbook *pb, const struct json *object, enum set_site site, struct net_sets *out)
{
    struct reader *r = pb->r;
    struct set_list list = {0};
    static const char *const names[] = {"set", "set_ctx", "set_iter", "vars"};
    for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
        const struct json *sets = field(object, names[k], NULL);
        if (!sets || !read_object(r, sets, names[k])) continue;
        for (uint32_t i = 0; i < sets->count && !r->failed; i++) {
            const struct json_member *member = &sets->members[i];
            bool scoped = k == 0 || str_starts(member->key, STR("ctx.")) || str_starts(member->key, STR("iter."));
            if (scoped)
                add_scoped(pb, &list, member, site);
            else
                add_set(pb, &list, k == 2 ? NET_ITER : NET_CTX, member->key, member);
        }
    }
    *out = (struct net_sets){list.items, (uint32_t)list.count};
}

// ---- rules

void read_rules(struct playbook *pb, const struct json *rules,
                void (*each)(struct playbook *pb, void *context, const struct json *rule, struct net_when when,
                             bool otherwise, const struct json *then),
                void *context)
{
    static const char *const known[] = {"when",    "then",        "else", "do",      "allow",    "name",
                                        "desc",    "description", "set",  "set_ctx", "set_iter", "attempts",
                                        "backoff", "delay",       "to",   NULL};
    static const struct deprecated gone[] = {{"expr", "write the condition under when"},
                                             {"if", "write the condition under when"}};
    struct reader *r = pb->r;
    if (!rules || rules->type != JSON_ARRAY) {
        if (rules) wrong_type(r, rules, "rules", "a list of rules");
        return;
    }
    for (uint32_t i = 0; i < rules->count && !r->failed; i++) {
        const struct json *rule = &rules->items[i];
        struct net_when when = {0};
        if (!read_object(r, rule, "rules")) continue;
        for (uint32_t k = 0; k < rule->count; k++)
            if (!refuse_deprecated(pb, &rule->members[k], gone, ARRAY_COUNT(gone), "rules"))
                unknown_member(pb, &rule->members[k], known, "a rule", false);
        const struct json *condition = field(rule, "when", NULL), *otherwise = json_key(rule, "else");
        if (condition) read_condition(pb, condition, WHEN_RULE, &when);
        if (condition && otherwise) {
            struct span at = place_of(r, rule);
            ERROR(r, "E0215", at, "a rule has \"when\" or \"else\", not both");
        }
        if (otherwise && i + 1 < rules->count) {
            struct span at = place_of(r, rule);
            WARNING(r, "E0219", at, "rules after \"else\" are never asked");
        }
        const struct json *then = field(rule, "then", NULL);
        if (json_is(otherwise, JSON_OBJECT)) {
            const struct json *inner = field(otherwise, "then", NULL);
            then = inner ? inner : otherwise;
        } else if (json_is(otherwise, JSON_STRING)) {
            then = otherwise;
        }
        if (json_is(then, JSON_ARRAY) && then->count == 1) then = &then->items[0];
        if (!then && (json_key(rule, "do") || json_key(rule, "allow") || json_key(rule, "set"))) then = rule;
        each(pb, context, rule, when, otherwise != NULL, then);
    }
}

struct rule_list {
    struct net_rule *items;
    uint32_t count;
    const struct task_site *site;
    const struct json **targets; // of jumps, beside `items`
};

static void read_retry(struct playbook *pb, const struct json *then, struct net_rule *rule)
{
    static const char *const backoffs[] = {"none", "fixed", "constant", "linear", "exponential", NULL};
    size_t index;
    const struct json *given = field(then, "attempts", "max_attempts");
    if (given) read_many(pb, given, "attempts", NET_ATTEMPTS_MAX, &rule->attempts, &rule->attempts_of);
    const struct json *delay = field(then, "delay", "delay_s");
    if (delay) read_seconds(pb, delay, "delay", &rule->delay_ms, &rule->delay_of);
    const struct json *backoff = field(then, "backoff", NULL);
    if (backoff && read_choice(pb->r, backoff, "backoff", backoffs, &index))
        rule->backoff = index < 3 ? BACKOFF_NONE : index == 3 ? BACKOFF_LINEAR : BACKOFF_EXPONENTIAL;
}

static void add_rule(struct playbook *pb, void *context, const struct json *written, struct net_when when,
                     bool otherwise, const struct json *then)
{
    static const char *const actions[] = {"continue", "retry", "jump", "break", "fail", NULL};
    static const char *const known[] = {"do",   "attempts", "max_attempts", "backoff",     "delay", "delay_s",
                                        "to",   "set",      "set_ctx",      "set_iter",    "when",  "else",
                                        "then", "name",     "desc",         "description", NULL};
    struct reader *r = pb->r;
    struct rule_list *list = context;
    uint32_t at = list->count++;
    struct net_rule *rule = &list->items[at];
    *rule = (struct net_rule){
        .when = when,
        .otherwise = otherwise,
        .action = NET_CONTINUE,
        .attempts = 3,
        .delay_ms = 1000,
        .backoff = BACKOFF_NONE,
        .target = PROGRAM_TOP,
        .line = written->line,
        .column = written->column,
    };
    if (!then) {
        struct span place = place_of(r, written);
        struct diagnostic *d = ERROR(r, "E0204", place, "a rule needs \"then\" with what to do");
        HINT(r, d, "then: {do: continue}");
        return;
    }
    size_t action = 0;
    if (then->type == JSON_STRING) {
        if (read_choice(r, then, "do", actions, &action)) rule->action = (enum net_do)(action + NET_CONTINUE);
        return;
    }
    if (!read_object(r, then, "then")) return;
    for (uint32_t i = 0; i < then->count; i++) unknown_member(pb, &then->members[i], known, "a rule's then", false);
    const struct json *what = field(then, "do", NULL);
    if (what && read_choice(r, what, "do", actions, &action)) rule->action = (enum net_do)(action + NET_CONTINUE);
    if (rule->action == NET_RETRY) read_retry(pb, then, rule);
    list->targets[at] = field(then, "to", NULL);
    if (rule->action == NET_JUMP && !list->targets[at]) {
        struct span place = place_of(r, what);
        ERROR(r, "E0204", place, "do: jump needs \"to\" with the label of a task");
    }
    read_sets(pb, then, list->site->sets, &rule->sets);
}

static const struct json **remember_targets(struct playbook *pb, uint32_t count)
{
    return (const struct json **)arena_array(pb->r->scratch, count, sizeof(struct json *));
}

const struct json **read_policy(struct playbook *pb, const struct json *policy, const struct task_site *site,
                                struct net_task *task)
{
    static const char *const known[] = {"rules", "mode", "on_unmatched", "before", "after", "finally", "limit", NULL};
    static const char *const unmatched[] = {"continue", "fail", NULL};
    struct reader *r = pb->r;
    size_t index;
    if (!policy || !read_object(r, policy, "policy")) return NULL;
    for (uint32_t i = 0; i < policy->count; i++) {
        const struct json_member *member = &policy->members[i];
        unknown_member(pb, member, known, "a task's policy", false);
        if (!str_is(member->key, "before") && !str_is(member->key, "after") && !str_is(member->key, "finally"))
            continue;
        struct span at = place_of_key(r, member);
        WARNING(r, "E0219", at, "\"%.*s\" has no effect", SHOW(member->key));
    }
    const struct json *otherwise = field(policy, "on_unmatched", NULL);
    if (otherwise && read_choice(r, otherwise, "on_unmatched", unmatched, &index)) task->unmatched_fails = index == 1;
    const struct json *rules = field(policy, "rules", NULL);
    struct span at = place_of(r, policy);
    if (!rules || (rules->type == JSON_ARRAY && rules->count == 0)) {
        struct diagnostic *d = ERROR(r, "E0226", at, "the policy of task \"%.*s\" has no rules", SHOW(task->label));
        HINT(r, d, "rules: [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 3}}]");
        return NULL;
    }
    uint32_t room = rules->type == JSON_ARRAY ? rules->count : 1;
    struct rule_list list = {ARENA_ARRAY(r->arena, room, struct net_rule), 0, site, remember_targets(pb, room)};
    if (!list.items || !list.targets) {
        r->failed = true;
        return NULL;
    }
    read_rules(pb, rules, add_rule, &list);
    task->has_policy = true;
    task->rules = list.items;
    task->rule_count = list.count;
    return list.targets;
}
