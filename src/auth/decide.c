// One decision: the token, then the roles, then the conditions of each cell that is left.
#include "auth/internal.h"

// Failures of one cell, in the order in which they are looked for. Of several roles, the one that came furthest tells why.
enum stage { STAGE_TENANT, STAGE_SCOPE, STAGE_ABSENT, STAGE_CONDITION, STAGE_REASON, STAGE_APPROVAL, STAGE_ALLOWED };

struct outcome {
    enum stage stage;
    const char *unmet;
};

static struct decision refuse(int status, const char *code, const char *audit_code)
{
    return (struct decision){.status = status, .code = code, .audit_code = audit_code};
}

static bool has(struct matrix_cell cell, enum condition condition)
{
    return cell.conditions & 1u << condition;
}

static bool names_hold(struct names names, struct str name)
{
    for (size_t i = 0; i < names.count; i++)
        if (str_eq(names.at[i], name)) return true;
    return !names.count;
}

static bool within(const struct principal *principal, struct str project, struct str environment)
{
    return (!project.len || names_hold(principal->projects, project)) &&
           (!environment.len || names_hold(principal->environments, environment));
}

bool principal_sees(const struct principal *principal, struct str tenant, struct str project, struct str environment)
{
    return principal->tenant.len && str_eq(principal->tenant, tenant) && names_hold(principal->projects, project) &&
           names_hold(principal->environments, environment);
}

struct str principal_person(const struct principal *principal)
{
    return principal->person.len ? principal->person : principal->id;
}

struct str principal_passes_on(const struct principal *maker)
{
    bool own = maker->roles & ROLE_PLATFORM && !maker->is_foreign;
    return !own ? principal_person(maker) : (struct str){0};
}

static bool names_within(struct names inner, struct names outer)
{
    if (!outer.count) return true;
    for (size_t i = 0; i < inner.count; i++)
        if (!names_hold(outer, inner.at[i])) return false;
    return inner.count > 0;
}

static bool operation_held(const struct principal *principal, enum operation operation)
{
    for (size_t i = 0; i < principal->operation_count; i++)
        if (principal->operations[i] == operation) return true;
    return !principal->operation_count;
}

static bool operations_within(const struct principal *inner, const struct principal *outer)
{
    if (!outer->operation_count) return true;
    for (size_t i = 0; i < inner->operation_count; i++)
        if (!operation_held(outer, inner->operations[i])) return false;
    return inner->operation_count > 0;
}

static int top_rank(const struct auth *auth, uint32_t roles)
{
    int top = -1;
    for (int i = 0; i < ROLE_COUNT; i++)
        if (roles & 1u << i && auth->rank[i] > top) top = auth->rank[i];
    return top;
}

// No token can give away more than its holder has: neither roles, nor projects, nor operations.
static bool subject_within(const struct auth *auth, const struct principal *principal, const struct principal *subject)
{
    bool reach = subject && (principal->roles & ROLE_PLATFORM || str_eq(subject->tenant, principal->tenant));
    return reach && !(subject->roles & ~(uint32_t)ROLE_ALL) &&
           top_rank(auth, subject->roles) <= top_rank(auth, principal->roles) &&
           names_within(subject->projects, principal->projects) &&
           names_within(subject->environments, principal->environments) && operations_within(subject, principal);
}

// A token that ends, or is for one service only, makes none that lasts longer or opens another one.
static bool lasts_within(const struct principal *principal, const struct principal *subject)
{
    bool in_time =
        !principal->expires_ms || (subject->expires_ms && subject->expires_ms <= principal->expires_ms);
    return in_time && (!principal->audience.len || str_eq(subject->audience, principal->audience));
}

// Two are the same person, or one of them is not known: what must be another person's is then refused.
static bool may_be_same(struct str a, struct str b)
{
    return !a.len || !b.len || str_eq(a, b);
}

static bool condition_met(const struct auth *auth, const struct auth_ask *ask, const struct auth_object *object,
                          enum condition condition)
{
    const struct principal *principal = ask->principal;
    switch (condition) {
    case CONDITION_APPROVED_PLAN:
        return object->plan_approved;
    case CONDITION_OWN_TASK:
        return object->own_task;
    case CONDITION_OWN_POOL:
        return principal->pool.len && str_eq(object->pool, principal->pool);
    case CONDITION_ASSIGNED:
        return object->assigned;
    case CONDITION_NOT_OWN_REQUEST:
    case CONDITION_NOT_AUTHOR:
        return !may_be_same(object->requested_by, principal_person(principal));
    case CONDITION_ROLE_WITHIN:
        return subject_within(auth, principal, object->subject) &&
               (ask->operation != OPERATION_TOKEN_CREATE || lasts_within(principal, object->subject));
    case CONDITION_UNIX_SOCKET:
        return ask->unix_socket;
    case CONDITION_INTERNAL:
        return ask->internal;
    case CONDITION_OWN:
    case CONDITION_REDACTED:
    case CONDITION_REASON:
    case CONDITION_P1:
    case CONDITION_TWO_PERSON:
    case CONDITION_COUNT:
        break;
    }
    return true;
}

static bool scope_met(enum action_scope scope, const struct principal *principal, const struct auth_object *object)
{
    if (scope == SCOPE_TENANT) return !principal->projects.count && !principal->environments.count;
    return within(principal, object->project, object->environment);
}

static struct outcome try_cell(const struct auth *auth, const struct auth_ask *ask, struct matrix_cell cell)
{
    static const char *const names[] = {
#define X(name, text) text,
        CONDITION_LIST(X)
#undef X
    };
    static const struct auth_object nothing;
    const struct auth_object *object = ask->object ? ask->object : &nothing;
    const struct principal *principal = ask->principal;
    enum action_scope scope = auth->rules[ask->operation].scope;
    if (has(cell, CONDITION_OWN)) {
        if (!principal->tenant.len || !str_eq(object->tenant, principal->tenant))
            return (struct outcome){STAGE_TENANT, "own"};
        if (!scope_met(scope, principal, object)) return (struct outcome){STAGE_SCOPE, "own"};
        if (scope == SCOPE_ITEM && !object->exists) return (struct outcome){STAGE_ABSENT, NULL};
    }
    for (int i = 0; i < CONDITION_COUNT; i++) {
        if (has(cell, (enum condition)i) && !condition_met(auth, ask, object, (enum condition)i))
            return (struct outcome){STAGE_CONDITION, names[i]};
    }
    if (has(cell, CONDITION_REASON) && !str_trim(ask->reason).len) return (struct outcome){STAGE_REASON, "reason"};
    if (has(cell, CONDITION_TWO_PERSON) && may_be_same(object->agreed_by, principal_person(principal)))
        return (struct outcome){STAGE_APPROVAL, "two_person"};
    return (struct outcome){STAGE_ALLOWED, NULL};
}

static struct decision explain(const struct auth *auth, const struct rule *rule, struct outcome outcome)
{
    struct decision decision = {0};
    int outside = rule->scope == SCOPE_ITEM ? auth->outside_item : auth->outside_place;
    switch (outcome.stage) {
    case STAGE_TENANT:
        decision = refuse(rule->other_tenant, "AUTHZ_DENIED", "AUTHZ_TENANT_FORBIDDEN");
        break;
    case STAGE_SCOPE:
        decision = refuse(outside, "AUTHZ_DENIED", "AUTHZ_SCOPE_FORBIDDEN");
        break;
    case STAGE_ABSENT:
        decision = refuse(auth->absent, "NOT_FOUND", "NOT_FOUND");
        break;
    case STAGE_REASON:
        decision = refuse(auth->denied, "AUTHZ_REASON_REQUIRED", "AUTHZ_REASON_REQUIRED");
        break;
    case STAGE_APPROVAL:
        decision = refuse(auth->denied, "AUTHZ_APPROVAL_REQUIRED", "AUTHZ_APPROVAL_REQUIRED");
        break;
    case STAGE_CONDITION:
    case STAGE_ALLOWED:
        decision = refuse(auth->denied, "AUTHZ_DENIED", "AUTHZ_DENIED");
        break;
    }
    // What must look absent must not tell more than what is absent.
    if (decision.status == auth->absent)
        decision.code = "NOT_FOUND";
    else
        decision.unmet = outcome.unmet;
    decision.needs_reason = outcome.stage == STAGE_REASON;
    decision.requires_approval = outcome.stage == STAGE_APPROVAL;
    return decision;
}

static struct decision check_token(const struct auth *auth, const struct auth_ask *ask)
{
    const struct principal *principal = ask->principal;
    const char *fault = "AUTHN_REQUIRED";
    if (principal) {
        bool elsewhere = principal->audience.len && ask->audience.len && !str_eq(principal->audience, ask->audience);
        fault = principal->revoked                                              ? "AUTHN_REVOKED"
                : principal->expires_ms && ask->now_ms >= principal->expires_ms ? "AUTHN_EXPIRED"
                : elsewhere                                                     ? "AUTHN_AUDIENCE"
                                                                                : NULL;
    }
    if (fault) return refuse(auth->unauthenticated, "AUTHN_REQUIRED", fault);
    return (struct decision){.allowed = true, .status = 200, .code = "", .audit_code = ""};
}

struct decision auth_precheck(const struct auth *auth, const struct auth_ask *ask)
{
    const struct rule *rule = &auth->rules[ask->operation];
    if (rule->open) return (struct decision){.allowed = true, .status = 200, .code = "", .audit_code = ""};
    struct decision decision = check_token(auth, ask);
    if (!decision.allowed) return decision;
    for (int i = 0; i < ROLE_COUNT && operation_held(ask->principal, ask->operation); i++)
        if (ask->principal->roles & 1u << i && rule->cells[i].allowed) return decision;
    return refuse(auth->denied, "AUTHZ_DENIED", "AUTHZ_DENIED");
}

enum role auth_least(const struct auth *auth, uint32_t roles)
{
    int least = -1;
    for (int i = 0; i < ROLE_COUNT; i++)
        if (roles & 1u << i && (least < 0 || auth->rank[i] < auth->rank[least])) least = i;
    return least < 0 ? 0 : (enum role)(1u << least);
}

bool auth_sees_payloads(const struct auth *auth, const struct principal *principal)
{
    const struct rule *rule = &auth->rules[OPERATION_RUN_GET];
    for (int i = 0; i < ROLE_COUNT; i++)
        if (principal->roles & 1u << i && rule->cells[i].allowed && !has(rule->cells[i], CONDITION_REDACTED)) return true;
    return false;
}

struct decision auth_decide(const struct auth *auth, const struct auth_ask *ask)
{
    const struct rule *rule = &auth->rules[ask->operation];
    struct decision decision = auth_precheck(auth, ask);
    if (!decision.allowed || rule->open) return decision;
    struct outcome furthest = {STAGE_TENANT, NULL};
    int best = -1;
    bool redacted = true;
    for (int i = 0; i < ROLE_COUNT; i++) {
        struct matrix_cell cell = rule->cells[i];
        if (!(ask->principal->roles & 1u << i) || !cell.allowed) continue;
        struct outcome outcome = try_cell(auth, ask, cell);
        if (outcome.stage >= furthest.stage) furthest = outcome;
        if (outcome.stage != STAGE_ALLOWED) continue;
        if (best < 0 || auth->rank[i] < auth->rank[best]) best = i;
        redacted = redacted && has(cell, CONDITION_REDACTED);
    }
    if (best < 0) return explain(auth, rule, furthest);
    decision.effective = (enum role)(1u << best);
    decision.needs_reason = has(rule->cells[best], CONDITION_REASON);
    decision.p1 = has(rule->cells[best], CONDITION_P1);
    decision.payload_redacted = redacted;
    return decision;
}
