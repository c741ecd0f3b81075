// A query asked about one run. Three answers: what is not read yet is UNKNOWN, and only matters when nothing else decides.
#include "view/query_inside.h"

// ---- texts

static bool holds(struct str text, struct str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        size_t i = 0;
        while (i < part.len && char_lower(text.ptr[at + i]) == char_lower(part.ptr[i])) i++;
        if (i == part.len) return true;
    }
    return false;
}

// = or ~ with any of the values; != and !~ are turned round by the caller.
static bool text_fits(const struct query_clause *clause, struct str text)
{
    bool part = clause->op == OP_LIKE || clause->op == OP_UNLIKE;
    for (size_t i = 0; i < clause->count; i++) {
        struct str value = clause->values[i].text;
        if (part ? holds(text, value) : str_like(text, value)) return true;
    }
    return false;
}

static bool is_negative(enum query_op op)
{
    return op == OP_NE || op == OP_UNLIKE;
}

static enum query_answer answer(bool yes)
{
    return yes ? QUERY_YES : QUERY_NO;
}

// ---- numbers and times

// order: of the left value to the right one
static bool compares(enum query_op op, int order)
{
    switch (op) {
    case OP_EQ:
    case OP_LIKE:
        return order == 0;
    case OP_NE:
    case OP_UNLIKE:
        return order != 0;
    case OP_LT:
        return order < 0;
    case OP_LE:
        return order <= 0;
    case OP_GT:
        return order > 0;
    case OP_GE:
        return order >= 0;
    }
    return false;
}

static bool number_fits(const struct query_clause *clause, int64_t number)
{
    bool any = false;
    for (size_t i = 0; i < clause->count; i++) {
        enum query_op op = clause->op == OP_NE ? OP_EQ : clause->op;
        int64_t other = clause->values[i].from;
        any = any || compares(op, (number > other) - (number < other));
    }
    return any != (clause->op == OP_NE);
}

// A value may be a whole day: > is after its end, >= from its beginning on.
static bool time_fits(const struct query_clause *clause, int64_t ms)
{
    bool any = false;
    for (size_t i = 0; ms != 0 && i < clause->count; i++) {
        const struct query_value *value = &clause->values[i];
        switch (clause->op) {
        case OP_LT:
            any = any || ms < value->from;
            break;
        case OP_LE:
            any = any || ms < value->until;
            break;
        case OP_GT:
            any = any || ms >= value->until;
            break;
        case OP_GE:
            any = any || ms >= value->from;
            break;
        case OP_EQ:
        case OP_NE:
        case OP_LIKE:
        case OP_UNLIKE:
            any = any || (ms >= value->from && ms < value->until);
            break;
        }
    }
    return any != (clause->op == OP_NE);
}

// ---- fields

static struct str text_of(enum query_field field, const struct query_facts *facts)
{
    switch ((int)field) {
    case FIELD_SUBSTATUS:
        return facts->substatus;
    case FIELD_PLAN:
        return facts->plan;
    case FIELD_VERSION:
        return facts->version;
    case FIELD_NAME:
        return facts->name;
    case FIELD_RUN:
        return facts->run;
    case FIELD_PROJECT:
        return facts->project;
    case FIELD_ENVIRONMENT:
        return facts->environment;
    case FIELD_PARENT:
        return facts->parent;
    case FIELD_ORIGINAL:
        return facts->original;
    case FIELD_VOCABULARY:
        return str_from(vocabulary_name(facts->vocabulary));
    case FIELD_CAUSE:
        return facts->cause;
    case FIELD_OWNED:
        return facts->owned ? STR("yes") : STR("no");
    default:
        return STR("");
    }
}

static int64_t time_of(enum query_field field, const struct query_facts *facts)
{
    if (field == FIELD_CREATED) return facts->created_ms;
    if (field == FIELD_STARTED) return facts->started_ms;
    return field == FIELD_ENDED ? facts->ended_ms : facts->updated_ms;
}

static int64_t number_of(enum query_field field, const struct query_facts *facts)
{
    switch ((int)field) {
    case FIELD_EVENTS:
        return (int64_t)facts->events;
    case FIELD_RUNNING:
        return facts->running;
    case FIELD_FAILED:
        return facts->failed;
    case FIELD_COMPLETED:
        return facts->completed;
    default:
        return facts->skipped;
    }
}

static enum query_answer ask_duration(const struct query *query, const struct query_clause *clause,
                                      const struct query_facts *facts)
{
    if (clause->field == FIELD_AGE) return answer(number_fits(clause, query->now_ms - facts->created_ms));
    if (facts->started_ms == 0) return answer(clause->op == OP_NE);
    int64_t until = facts->ended_ms ? facts->ended_ms : query->now_ms;
    return answer(number_fits(clause, until - facts->started_ms));
}

static enum query_answer ask_tags(const struct query_clause *clause, const struct query_facts *facts)
{
    bool any = false;
    if (!facts->program) return QUERY_UNKNOWN;
    for (uint32_t i = 0; i < facts->program->tag_count; i++) any = any || text_fits(clause, facts->program->tags[i]);
    return answer(any != is_negative(clause->op));
}

static bool error_fits(const struct query_clause *clause, const struct step_view *step)
{
    for (size_t i = 0; i < step->attempt_count; i++)
        if (step->attempts[i].fault.code.len && text_fits(clause, step->attempts[i].fault.code)) return true;
    return false;
}

static bool step_fits(const struct query_clause *clause, const struct step_view *step)
{
    if (clause->field == FIELD_STEP) return text_fits(clause, step->id);
    if (clause->path.len && !str_like(step->id, clause->path)) return false;
    if (clause->field != FIELD_STEP_OF) return error_fits(clause, step);
    bool any = false;
    for (size_t i = 0; i < clause->count; i++) any = any || (clause->values[i].mask >> step->status & 1);
    return any;
}

static enum query_answer ask_steps(const struct query_clause *clause, const struct query_facts *facts)
{
    const struct run_view *view = facts->view;
    if (!view) return QUERY_UNKNOWN;
    bool any = clause->field == FIELD_ERROR && view->fault.code.len && text_fits(clause, view->fault.code);
    for (size_t i = 0; !any && i < view->step_count; i++) any = step_fits(clause, &view->steps[i]);
    return answer(any != is_negative(clause->op));
}

static enum query_answer ask_input(const struct query_clause *clause, const struct query_facts *facts)
{
    if (!facts->view) return QUERY_UNKNOWN;
    const struct json *input = json_at(&facts->view->start.inputs, clause->path);
    bool is_number = json_is_number(input), any = false;
    if (!input) return answer(is_negative(clause->op));
    if (clause->op >= OP_LT)
        return answer(is_number && compares(clause->op, json_number_cmp(input, &clause->values[0].number)));
    for (size_t i = 0; is_number && i < clause->count; i++)
        any = any || (clause->values[i].is_number && json_number_cmp(input, &clause->values[i].number) == 0);
    struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
    if (input->type == JSON_STRING)
        buf_add(&text, input->text);
    else
        json_write(&text, input);
    any = any || text_fits(clause, buf_str(&text));
    return answer(any != is_negative(clause->op));
}

static enum query_answer ask_word(const struct query_clause *clause, const struct query_facts *facts)
{
    return answer(text_fits(clause, facts->run) || text_fits(clause, facts->plan) || text_fits(clause, facts->name));
}

static enum query_answer ask_clause(const struct query *query, const struct query_clause *clause,
                                    const struct query_facts *facts)
{
    bool any = false;
    if (clause->field == FIELD_WORD) return ask_word(clause, facts);
    if (clause->field == FIELD_TAG) return ask_tags(clause, facts);
    if (clause->field == FIELD_INPUT) return ask_input(clause, facts);
    if (query_field_level(clause->field) == LEVEL_LOG) return ask_steps(clause, facts);
    switch (query_field_type(clause->field)) {
    case TYPE_STATUS:
        for (size_t i = 0; i < clause->count; i++) any = any || (clause->values[i].mask >> facts->status & 1);
        return answer(any != is_negative(clause->op));
    case TYPE_TIME:
        return answer(time_fits(clause, time_of(clause->field, facts)));
    case TYPE_DURATION:
        return ask_duration(query, clause, facts);
    case TYPE_NUMBER:
        return answer(number_fits(clause, number_of(clause->field, facts)));
    case TYPE_TEXT:
    case TYPE_STEP_STATUS:
    case TYPE_ANY:
        return answer(text_fits(clause, text_of(clause->field, facts)) != is_negative(clause->op));
    }
    return QUERY_NO;
}

// Depth is bounded by the size of a query. The last part is asked first: chains lean to the left.
static enum query_answer ask(const struct query *query, const struct query_node *node, const struct query_facts *facts)
{
    enum query_answer left, right;
    switch (node->kind) {
    case QUERY_ALL:
        return QUERY_YES;
    case QUERY_CLAUSE:
        return ask_clause(query, &node->clause, facts);
    case QUERY_NOT:
        left = ask(query, node->left, facts);
        return left == QUERY_UNKNOWN ? left : answer(left == QUERY_NO);
    case QUERY_AND:
        right = ask(query, node->right, facts);
        if (right == QUERY_NO) return QUERY_NO;
        left = ask(query, node->left, facts);
        return left == QUERY_NO ? QUERY_NO : left == QUERY_UNKNOWN ? left : right;
    case QUERY_OR:
        right = ask(query, node->right, facts);
        if (right == QUERY_YES) return QUERY_YES;
        left = ask(query, node->left, facts);
        return left == QUERY_YES ? QUERY_YES : left == QUERY_UNKNOWN ? left : right;
    }
    return QUERY_NO;
}

enum query_answer query_ask(const struct query *query, const struct query_facts *facts)
{
    return ask(query, query->root, facts);
}

// ---- bounds

static bool has_wildcard(struct str text)
{
    return str_find(text, '*', 0) < text.len || str_find(text, '?', 0) < text.len;
}

static void bound_status(const struct query_clause *clause, struct query_bounds *out)
{
    uint32_t mask = 0, all = 0;
    for (unsigned s = RUN_STATUS_PENDING; s <= RUN_STATUS_CANCELLED; s++) all |= 1u << s;
    for (size_t i = 0; i < clause->count; i++) mask |= clause->values[i].mask;
    if (clause->op == OP_NE) mask = all & ~mask;
    if (out->status_mask) mask &= out->status_mask;
    out->nothing = out->nothing || mask == 0;
    out->status_mask = mask ? mask : all;
}

static void bound_created(const struct query_clause *clause, struct query_bounds *out)
{
    const struct query_value *value = &clause->values[0];
    if (clause->count != 1) return;
    int64_t since = clause->op == OP_GT ? value->until : value->from;
    int64_t until = clause->op == OP_LT ? value->from - 1 : value->until - 1;
    bool lower_bound = clause->op == OP_GT || clause->op == OP_GE || clause->op == OP_EQ;
    bool upper_bound = clause->op == OP_LT || clause->op == OP_LE || clause->op == OP_EQ;
    if (lower_bound && since > out->since_ms) out->since_ms = since;
    if (upper_bound && (!out->until_ms || until < out->until_ms)) out->until_ms = until;
}

static void bound_text(const struct query_clause *clause, struct query_bounds *out)
{
    if (clause->op != OP_EQ || clause->count != 1) return;
    struct str text = clause->values[0].text;
    if (clause->field == FIELD_PLAN && !has_wildcard(text) && text.len) out->plan = text;
    if (clause->field != FIELD_RUN) return;
    size_t len = 0;
    while (len < text.len && text.ptr[len] != '*' && text.ptr[len] != '?') len++;
    if (len > out->run_prefix.len) out->run_prefix = str_slice(text, 0, len);
}

static void bound(const struct query_node *node, struct query_bounds *out)
{
    for (; node->kind == QUERY_AND; node = node->left) bound(node->right, out);
    if (node->kind != QUERY_CLAUSE) return;
    if (node->clause.field == FIELD_STATUS) bound_status(&node->clause, out);
    if (node->clause.field == FIELD_CREATED) bound_created(&node->clause, out);
    bound_text(&node->clause, out);
}

void query_bounds(const struct query *query, struct query_bounds *out)
{
    *out = (struct query_bounds){0};
    bound(query->root, out);
}

static bool names_payload(const struct query_node *node)
{
    if (node->kind == QUERY_CLAUSE) return node->clause.field == FIELD_INPUT || node->clause.field == FIELD_CAUSE;
    return (node->left && names_payload(node->left)) || (node->right && names_payload(node->right));
}

bool query_names_payload(const struct query *query)
{
    return names_payload(query->root);
}
