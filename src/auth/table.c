// schemas/authorization.json to struct auth. Strict: a name that is not known is an error, never ignored.
#include "auth/internal.h"

#include "schema/embedded.h"

static const char *const role_names[ROLE_COUNT][2] = {
    {"operator", "Operator"}, {"engineer", "Engineer"}, {"admin", "Admin"},       {"system", "System"},
    {"worker", "Worker"},     {"auditor", "Auditor"},   {"platform", "Platform"}, {"host", "Host"},
};

static const char *role_text(enum role role, int column)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if ((unsigned)role == 1u << i) return role_names[i][column];
    return column ? "None" : "none";
}

const char *role_name(enum role role)
{
    return role_text(role, 0);
}

const char *role_word(enum role role)
{
    return role_text(role, 1);
}

static int role_index(struct str text)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if (str_is(text, role_names[i][0]) || str_is(text, role_names[i][1])) return i;
    return -1;
}

enum role role_parse(struct str text)
{
    int index = role_index(text);
    return index < 0 ? (enum role)0 : (enum role)(1u << index);
}

static const char *const operation_names[] = {
#define X(name, text) text,
    OPERATION_LIST(X)
#undef X
};

const char *operation_name(enum operation operation)
{
    return (size_t)operation < ARRAY_COUNT(operation_names) ? operation_names[operation] : "unknown";
}

bool operation_parse(struct str text, enum operation *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(operation_names); i++) {
        if (!str_is(text, operation_names[i])) continue;
        *out = (enum operation)i;
        return true;
    }
    return false;
}

bool operation_of_signal(struct str type, bool force, enum operation *out)
{
    static const struct {
        const char *type;
        enum operation operation;
    } signals[] = {
        {"PAUSE", OPERATION_SIGNAL_PAUSE},
        {"RESUME", OPERATION_SIGNAL_RESUME},
        {"CANCEL", OPERATION_SIGNAL_CANCEL},
        {"RETRY_STEP", OPERATION_SIGNAL_RETRY_STEP},
        {"SKIP_STEP", OPERATION_SIGNAL_SKIP_STEP},
        {"RETRY_RUN", OPERATION_SIGNAL_RETRY_RUN},
        {"UPDATE_PARAMS", OPERATION_SIGNAL_UPDATE_PARAMS},
        {"INJECT_OVERRIDE", OPERATION_SIGNAL_INJECT_OVERRIDE},
        {"UPDATE_TARGET", OPERATION_SIGNAL_UPDATE_TARGET},
        {"EMERGENCY_STOP", OPERATION_SIGNAL_EMERGENCY_STOP},
        {"ESCALATE_ALERT", OPERATION_SIGNAL_ESCALATE_ALERT},
        {"APPROVE", OPERATION_APPROVAL_DECIDE},
        {"REJECT", OPERATION_APPROVAL_DECIDE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(signals); i++) {
        if (!str_is(type, signals[i].type)) continue;
        *out = signals[i].operation;
        if (force && *out == OPERATION_SIGNAL_RETRY_STEP) *out = OPERATION_SIGNAL_RETRY_STEP_FORCE;
        return true;
    }
    return false;
}

static bool find_name(const char *const *names, size_t count, struct str text, size_t *out)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_is(text, names[i])) continue;
        *out = i;
        return true;
    }
    return false;
}

static enum code read_cell(const struct json *value, struct matrix_cell *cell, struct error *err)
{
    static const char *const names[] = {
#define X(name, text) text,
        CONDITION_LIST(X)
#undef X
    };
    if (!json_is(value, JSON_ARRAY)) return error_set(err, E_INVALID, "a cell is a list of conditions");
    cell->allowed = true;
    for (uint32_t i = 0; i < value->count; i++) {
        size_t condition = 0;
        struct str name = json_text(&value->items[i]);
        if (!find_name(names, ARRAY_COUNT(names), name, &condition))
            return error_set(err, E_INVALID, "no such condition: \"%.*s\"", STR_ARG(name));
        cell->conditions |= 1u << condition;
    }
    return OK;
}

static enum code read_status(const struct json *object, const char *key, int *out, struct error *err)
{
    int64_t status = json_integer(json_key(object, key), 0);
    if (status < 400 || status > 499) return error_set(err, E_INVALID, "%s must be a status from 400 to 499", key);
    *out = (int)status;
    return OK;
}

static enum code read_cells(const struct json *roles, struct rule *rule, struct error *err)
{
    if (!json_is(roles, JSON_OBJECT)) return error_set(err, E_INVALID, "roles are missing");
    for (uint32_t i = 0; i < roles->count; i++) {
        const struct json_member *member = &roles->members[i];
        int index = role_index(member->key);
        struct matrix_cell none = {0};
        if (index < 0 && !str_is(member->key, "none"))
            return error_set(err, E_INVALID, "no such role: \"%.*s\"", STR_ARG(member->key));
        struct matrix_cell *cell = index < 0 ? &none : &rule->cells[index];
        enum code rc = read_cell(&member->value, cell, err);
        if (rc) return rc;
        bool own = cell->conditions & 1u << CONDITION_OWN;
        bool placed = rule->scope != SCOPE_OPEN && rule->scope != SCOPE_PLATFORM;
        // Who looks after the whole installation is of no tenant, and makes the first token of each.
        bool of_none = !own && rule->scope == SCOPE_PLACE && index >= 0 && 1u << index == ROLE_PLATFORM;
        if (own != placed && !of_none)
            return error_set(err, E_INVALID, "\"own\" goes with the scopes place, item and tenant, and only there");
        if (index >= 0) continue;
        if (none.conditions || rule->scope != SCOPE_OPEN)
            return error_set(err, E_INVALID, "none has no conditions and needs the scope open");
        rule->open = true;
    }
    return OK;
}

static enum code read_rule(const struct json *row, int other_tenant, struct rule *rule, struct error *err)
{
    static const char *const scopes[] = {"open", "place", "item", "tenant", "platform"};
    size_t scope = 0;
    if (rule->scope) return error_set(err, E_INVALID, "there is another row of that name");
    if (!find_name(scopes, ARRAY_COUNT(scopes), json_text(json_key(row, "scope")), &scope))
        return error_set(err, E_INVALID, "scope must be open, place, item, tenant or platform");
    rule->scope = (enum action_scope)(scope + 1);
    rule->other_tenant = other_tenant;
    if (json_key(row, "otherTenant")) {
        enum code rc = read_status(row, "otherTenant", &rule->other_tenant, err);
        if (rc) return rc;
    }
    return read_cells(json_key(row, "roles"), rule, err);
}

static enum code read_rules(const struct json *rows, int other_tenant, struct auth *auth, struct error *err)
{
    if (!json_is(rows, JSON_ARRAY)) return error_set(err, E_INVALID, "operations are missing");
    for (uint32_t i = 0; i < rows->count; i++) {
        struct str name = json_text(json_key(&rows->items[i], "name"));
        enum operation operation;
        if (!operation_parse(name, &operation))
            return error_set(err, E_INVALID, "no such operation: \"%.*s\"", STR_ARG(name));
        enum code rc = read_rule(&rows->items[i], other_tenant, &auth->rules[operation], err);
        if (rc) {
            error_wrap(err, "operation %.*s", STR_ARG(name));
            return rc;
        }
    }
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        if (!auth->rules[i].scope) return error_set(err, E_INVALID, "operation %s is missing", operation_names[i]);
    return OK;
}

// "roles" lists them all, the most permissive first.
static enum code read_order(const struct json *roles, struct auth *auth, struct error *err)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; json_is(roles, JSON_ARRAY) && i < roles->count && i < ROLE_COUNT; i++) {
        int index = role_index(json_text(&roles->items[i]));
        if (index < 0) break;
        auth->rank[index] = (uint8_t)(ROLE_COUNT - 1 - i);
        seen |= 1u << index;
    }
    if (seen != ROLE_ALL || roles->count != ROLE_COUNT)
        return error_set(err, E_INVALID, "roles must list each role once");
    return OK;
}

static enum code read_table(const struct json *table, struct auth *auth, struct error *err)
{
    const struct json *answers = json_key(table, "answers");
    int other_tenant = 0;
    const struct {
        const char *key;
        int *out;
    } fields[] = {{"unauthenticated", &auth->unauthenticated},
                  {"denied", &auth->denied},
                  {"absent", &auth->absent},
                  {"otherTenant", &other_tenant},
                  {"outsideItem", &auth->outside_item},
                  {"outsidePlace", &auth->outside_place}};
    if (json_integer(json_key(table, "version"), 0) != 1) return error_set(err, E_INVALID, "version must be 1");
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        enum code rc = read_status(answers, fields[i].key, fields[i].out, err);
        if (rc) return rc;
    }
    enum code rc = read_order(json_key(table, "roles"), auth, err);
    return rc ? rc : read_rules(json_key(table, "operations"), other_tenant, auth, err);
}

static struct str embedded_table(void)
{
    for (size_t i = 0; i < embedded_table_count; i++) {
        if (str_is(STR("authorization.json"), embedded_tables[i].name))
            return (struct str){(const char *)embedded_tables[i].bytes, embedded_tables[i].size};
    }
    return STR("");
}

enum code auth_open(struct str table, struct arena *arena, struct auth **out, struct error *err)
{
    struct json document;
    struct auth *auth = ARENA_NEW(arena, struct auth);
    if (!auth) return error_nomem(err);
    enum code rc = json_parse(table.len ? table : embedded_table(), NULL, arena, &document, err);
    if (!rc) rc = read_table(&document, auth, err);
    if (rc) {
        error_wrap(err, "authorization table");
        return rc;
    }
    *out = auth;
    return OK;
}
