// From pattern text to automaton: a recursive descent parser builds a tree, the tree is written out as code. Counted
// repetition is copied out, so the size of the code is bounded by PATTERN_CODE_MAX and nothing else.
#include "schema/pattern.h"

#include <string.h>

enum {
    GROUP_DEPTH_MAX = 64,
    REPEAT_MAX = 2048,
    RANGE_COUNT_MAX = 4096,
    EMIT_WORK_MAX = 65536,
    UNBOUNDED = -1,
    NO_CODE_POINT = -1
};

enum tree_kind { TREE_EMPTY = 1, TREE_SET, TREE_ASSERT, TREE_CONCAT, TREE_ALTERNATE, TREE_REPEAT };

struct tree {
    enum tree_kind kind;
    uint16_t value;          // TREE_SET: index of the set; TREE_ASSERT: enum pattern_op
    int32_t min, max;        // TREE_REPEAT
    const struct tree *left; // CONCAT and ALTERNATE are lists: an element and what follows it
    const struct tree *right;
};

struct builder {
    struct range *ranges;
    size_t count, capacity;
};

struct parser {
    struct str text;
    size_t at;
    struct arena *arena;
    struct error *err;
    struct range_set *sets;
    size_t set_count, set_capacity;
    struct pattern_code *code;
    uint32_t code_count;
    uint32_t work;
    bool has_word_edge;
};

static const struct range digit_ranges[] = {{'0', '9'}};
static const struct range word_ranges[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct range space_ranges[] = {
    {0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF},
};
static const struct range line_end_ranges[] = {{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}};

static enum code parse_alternatives(struct parser *p, int depth, const struct tree **out);

static enum code refuse(struct parser *p, enum code code, const char *what)
{
    return error_set(p->err, code, "%s, at offset %zu of the pattern", what, p->at);
}

static bool at_end(const struct parser *p)
{
    return p->at == p->text.len;
}

static char peek(const struct parser *p)
{
    return at_end(p) ? '\0' : p->text.ptr[p->at];
}

static bool accept(struct parser *p, const char *token)
{
    struct str rest = str_slice(p->text, p->at, p->text.len);
    if (!str_starts(rest, str_from(token))) return false;
    p->at += strlen(token);
    return true;
}

uint32_t pattern_decode(struct str text, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text.ptr + *at;
    if (s[0] < 0x80) {
        *at += 1;
        return s[0];
    }
    size_t size = str_utf8_size(text, *at);
    *at += size ? size : 1;
    if (size == 2) return (uint32_t)(s[0] & 0x1F) << 6 | (uint32_t)(s[1] & 0x3F);
    if (size == 3) return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (uint32_t)(s[2] & 0x3F);
    if (size == 4)
        return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 |
               (uint32_t)(s[3] & 0x3F);
    return 0xFFFD;
}

// ---- sets of code points

static enum code add_range(struct parser *p, struct builder *b, uint32_t first, uint32_t last)
{
    if (b->count >= RANGE_COUNT_MAX) return refuse(p, E_LIMIT, "too many ranges in a class");
    if (!ARENA_ROOM(p->arena, b->ranges, b->count, &b->capacity)) return error_nomem(p->err);
    b->ranges[b->count++] = (struct range){first, last};
    return OK;
}

static enum code add_set(struct parser *p, struct builder *b, struct range_set set, bool negated)
{
    uint32_t from = 0;
    for (size_t i = 0; i < set.count; i++) {
        struct range r = set.ranges[i];
        enum code rc = OK;
        if (!negated)
            rc = add_range(p, b, r.first, r.last);
        else if (r.first > from)
            rc = add_range(p, b, from, r.first - 1);
        if (rc) return rc;
        from = r.last + 1;
    }
    return negated && from <= CODE_POINT_MAX ? add_range(p, b, from, CODE_POINT_MAX) : OK;
}

static bool same_ranges(struct range_set a, struct range_set b)
{
    if (a.count != b.count) return false;
    for (size_t i = 0; i < a.count; i++) {
        if (a.ranges[i].first != b.ranges[i].first || a.ranges[i].last != b.ranges[i].last) return false;
    }
    return true;
}

// Sorts and joins; negates when asked.
static enum code finish_set(struct parser *p, struct builder *b, bool negated, const struct tree **out)
{
    range_sort(b->ranges, b->count);
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (kept && b->ranges[i].first <= b->ranges[kept - 1].last + 1) {
            if (b->ranges[i].last > b->ranges[kept - 1].last) b->ranges[kept - 1].last = b->ranges[i].last;
        } else {
            b->ranges[kept++] = b->ranges[i];
        }
    }
    struct range_set set = {b->ranges, kept};
    if (negated) {
        struct builder other = {0};
        enum code rc = add_set(p, &other, set, true);
        if (rc) return rc;
        set = (struct range_set){other.ranges, other.count};
    }
    size_t index = 0;
    while (index < p->set_count && !same_ranges(p->sets[index], set)) index++;
    if (index == p->set_count) {
        if (!ARENA_ROOM(p->arena, p->sets, p->set_count, &p->set_capacity)) return error_nomem(p->err);
        p->sets[p->set_count++] = set;
    }
    if (index > UINT16_MAX) return refuse(p, E_LIMIT, "too many classes");
    struct tree *tree = ARENA_NEW(p->arena, struct tree);
    if (!tree) return error_nomem(p->err);
    *tree = (struct tree){.kind = TREE_SET, .value = (uint16_t)index};
    *out = tree;
    return OK;
}

// ---- escapes

static bool hex_digits(struct parser *p, size_t count, uint32_t *out)
{
    if (p->text.len - p->at < count) return false;
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = char_hex(p->text.ptr[p->at + i]);
        if (digit < 0) return false;
        *out = *out * 16 + (uint32_t)digit;
    }
    p->at += count;
    return true;
}

// After "\u": four digits (perhaps a surrogate pair) or {digits}.
static enum code unicode_escape(struct parser *p, int32_t *out)
{
    uint32_t value = 0, low = 0;
    if (accept(p, "{")) {
        size_t start = p->at;
        for (int digit; (digit = char_hex(peek(p))) >= 0 && value <= CODE_POINT_MAX; p->at++)
            value = value * 16 + (uint32_t)digit;
        if (p->at == start || value > CODE_POINT_MAX || !accept(p, "}"))
            return refuse(p, E_INVALID, "malformed \\u{...}");
    } else {
        if (!hex_digits(p, 4, &value)) return refuse(p, E_INVALID, "malformed \\u escape");
        size_t before = p->at;
        if (value >= 0xD800 && value < 0xDC00 && accept(p, "\\u") && hex_digits(p, 4, &low) && low >= 0xDC00 &&
            low < 0xE000)
            value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
        else
            p->at = before;
    }
    *out = (int32_t)value;
    return OK;
}

// After "\p" or "\P": {L}, {Letter}, {Nd}, {digit}, {Decimal_Number}, with or without General_Category=.
static enum code property_escape(struct parser *p, bool negated, struct builder *b)
{
    size_t end = str_find(p->text, '}', p->at);
    if (peek(p) != '{' || end == p->text.len) return refuse(p, E_INVALID, "malformed \\p{...}");
    struct str name = str_slice(p->text, p->at + 1, end);
    if (str_starts(name, STR("General_Category=")))
        name = str_slice(name, strlen("General_Category="), name.len);
    else if (str_starts(name, STR("gc=")))
        name = str_slice(name, strlen("gc="), name.len);
    const struct range_set *set = NULL;
    if (str_is(name, "L") || str_is(name, "Letter"))
        set = &unicode_letter;
    else if (STR_AMONG(name, "Nd", "digit", "Decimal_Number"))
        set = &unicode_decimal_digit;
    if (!set) return refuse(p, E_UNSUPPORTED, "Unicode property other than Letter and Decimal_Number");
    p->at = end + 1;
    return add_set(p, b, *set, negated);
}

static bool class_escape(char c, struct range_set *set)
{
    if (c == 'd' || c == 'D')
        *set = (struct range_set){digit_ranges, ARRAY_COUNT(digit_ranges)};
    else if (c == 'w' || c == 'W')
        *set = (struct range_set){word_ranges, ARRAY_COUNT(word_ranges)};
    else if (c == 's' || c == 'S')
        *set = (struct range_set){space_ranges, ARRAY_COUNT(space_ranges)};
    else
        return false;
    return true;
}

static bool control_escape(char c, int32_t *out)
{
    static const char names[] = "tnvfr";
    static const unsigned char values[] = {'\t', '\n', '\v', '\f', '\r'};
    const char *found = c ? strchr(names, c) : NULL;
    if (found) *out = values[found - names];
    return found != NULL;
}

// After the backslash. Either one code point (*single) or a class (added to b, *single is NO_CODE_POINT).
static enum code parse_escape(struct parser *p, struct builder *b, int32_t *single)
{
    *single = NO_CODE_POINT;
    if (at_end(p)) return refuse(p, E_INVALID, "backslash at the end");
    char c = p->text.ptr[p->at++];
    struct range_set set;
    uint32_t value;
    if (class_escape(c, &set)) return add_set(p, b, set, c < 'a');
    if (c == 'p' || c == 'P') return property_escape(p, c == 'P', b);
    if (c == 'u') return unicode_escape(p, single);
    if (control_escape(c, single)) return OK;
    if (c == 'x') {
        if (!hex_digits(p, 2, &value)) return refuse(p, E_INVALID, "malformed \\x escape");
        *single = (int32_t)value;
        return OK;
    }
    if (c == 'c' && char_is_letter(peek(p))) {
        *single = p->text.ptr[p->at++] % 32;
        return OK;
    }
    if (c == '0' && !char_is_digit(peek(p))) {
        *single = 0;
        return OK;
    }
    if (c == 'k' || char_is_digit(c)) return refuse(p, E_UNSUPPORTED, "back references are not supported");
    if (char_is_letter(c) || (unsigned char)c >= 0x80) return refuse(p, E_INVALID, "unknown escape");
    *single = (unsigned char)c;
    return OK;
}

// ---- grammar

static enum code class_atom(struct parser *p, struct builder *b, int32_t *single)
{
    if (accept(p, "\\b")) {
        *single = '\b';
        return OK;
    }
    if (accept(p, "\\")) return parse_escape(p, b, single);
    *single = (int32_t)pattern_decode(p->text, &p->at);
    return OK;
}

// After "[".
static enum code parse_class(struct parser *p, const struct tree **out)
{
    bool negated = accept(p, "^");
    struct builder b = {0};
    while (!at_end(p) && peek(p) != ']') {
        int32_t first, last;
        enum code rc = class_atom(p, &b, &first);
        if (rc) return rc;
        last = first;
        bool dash = peek(p) == '-' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']';
        if (dash) {
            p->at++;
            rc = class_atom(p, &b, &last);
            if (rc) return rc;
            if (first < 0 || last < first) return refuse(p, E_INVALID, "range out of order in a class");
        }
        if (first >= 0 && (rc = add_range(p, &b, (uint32_t)first, (uint32_t)last))) return rc;
    }
    if (!accept(p, "]")) return refuse(p, E_INVALID, "class without ]");
    return finish_set(p, &b, negated, out);
}

static enum code new_tree(struct parser *p, struct tree value, const struct tree **out)
{
    struct tree *tree = ARENA_NEW(p->arena, struct tree);
    if (!tree) return error_nomem(p->err);
    *tree = value;
    *out = tree;
    return OK;
}

// After "(".
static enum code parse_group(struct parser *p, int depth, const struct tree **out)
{
    if (depth >= GROUP_DEPTH_MAX) return refuse(p, E_LIMIT, "groups nested too deep");
    if (accept(p, "?=") || accept(p, "?!") || accept(p, "?<=") || accept(p, "?<!"))
        return refuse(p, E_UNSUPPORTED, "look-around is not supported");
    if (accept(p, "?<")) {
        size_t end = str_find(p->text, '>', p->at);
        if (end == p->text.len || end == p->at) return refuse(p, E_INVALID, "malformed group name");
        p->at = end + 1;
    } else if (accept(p, "?") && !accept(p, ":")) {
        return refuse(p, E_INVALID, "unknown kind of group");
    }
    enum code rc = parse_alternatives(p, depth + 1, out);
    if (rc) return rc;
    return accept(p, ")") ? OK : refuse(p, E_INVALID, "group without )");
}

static enum code parse_assertion(struct parser *p, const struct tree **out)
{
    enum pattern_op op;
    if (accept(p, "^"))
        op = OP_START;
    else if (accept(p, "$"))
        op = OP_END;
    else if (accept(p, "\\b"))
        op = OP_WORD_EDGE;
    else if (accept(p, "\\B"))
        op = OP_NOT_WORD_EDGE;
    else
        return OK;
    p->has_word_edge |= op == OP_WORD_EDGE || op == OP_NOT_WORD_EDGE;
    return new_tree(p, (struct tree){.kind = TREE_ASSERT, .value = (uint16_t)op}, out);
}

static enum code parse_atom(struct parser *p, int depth, const struct tree **out)
{
    if (accept(p, "(")) return parse_group(p, depth, out);
    if (accept(p, "[")) return parse_class(p, out);
    struct builder b = {0};
    if (accept(p, ".")) {
        struct range_set ends = {line_end_ranges, ARRAY_COUNT(line_end_ranges)};
        enum code rc = add_set(p, &b, ends, true);
        return rc ? rc : finish_set(p, &b, false, out);
    }
    if (peek(p) && strchr("*+?{", peek(p))) return refuse(p, E_INVALID, "nothing to repeat");
    if (peek(p) == '}' || peek(p) == ']') return refuse(p, E_INVALID, "lone bracket; write a backslash before it");
    int32_t single;
    enum code rc = OK;
    if (accept(p, "\\"))
        rc = parse_escape(p, &b, &single);
    else
        single = (int32_t)pattern_decode(p->text, &p->at);
    if (rc) return rc;
    if (single >= 0 && (rc = add_range(p, &b, (uint32_t)single, (uint32_t)single))) return rc;
    return finish_set(p, &b, false, out);
}

static bool parse_count(struct parser *p, int32_t *out)
{
    size_t start = p->at;
    int32_t value = 0;
    for (; char_is_digit(peek(p)); p->at++) {
        if (value <= REPEAT_MAX) value = value * 10 + (peek(p) - '0');
    }
    *out = value;
    return p->at > start;
}

static enum code parse_quantifier(struct parser *p, const struct tree *atom, const struct tree **out)
{
    int32_t min = 0, max = UNBOUNDED;
    if (accept(p, "*")) {
        min = 0;
    } else if (accept(p, "+")) {
        min = 1;
    } else if (accept(p, "?")) {
        max = 1;
    } else if (accept(p, "{")) {
        if (!parse_count(p, &min)) return refuse(p, E_INVALID, "malformed count");
        max = min;
        if (accept(p, ",") && !parse_count(p, &max)) max = UNBOUNDED;
        if (!accept(p, "}") || (max != UNBOUNDED && max < min)) return refuse(p, E_INVALID, "malformed count");
    } else {
        *out = atom;
        return OK;
    }
    if (min > REPEAT_MAX || max > REPEAT_MAX) return refuse(p, E_LIMIT, "repetition above 2048");
    accept(p, "?"); // lazy or greedy: the same strings match
    return new_tree(p, (struct tree){.kind = TREE_REPEAT, .min = min, .max = max, .left = atom}, out);
}

static enum code parse_term(struct parser *p, int depth, const struct tree **out)
{
    const struct tree *atom = NULL;
    enum code rc = parse_assertion(p, &atom);
    if (rc) return rc;
    if (atom) {
        *out = atom;
        return OK;
    }
    rc = parse_atom(p, depth, &atom);
    return rc ? rc : parse_quantifier(p, atom, out);
}

// Lists grow at their end, so that long patterns do not recurse.
struct links {
    struct tree *first, *last;
};

static struct tree *add_link(struct parser *p, struct links *links, enum tree_kind kind) // NULL: out of memory
{
    struct tree *link = ARENA_NEW(p->arena, struct tree);
    if (!link) return NULL;
    link->kind = kind;
    if (links->last)
        links->last->right = link;
    else
        links->first = link;
    links->last = link;
    return link;
}

static enum code parse_sequence(struct parser *p, int depth, const struct tree **out)
{
    struct links links = {0};
    while (!at_end(p) && peek(p) != '|' && peek(p) != ')') {
        struct tree *link = add_link(p, &links, TREE_CONCAT);
        enum code rc = link ? parse_term(p, depth, &link->left) : error_nomem(p->err);
        if (rc) return rc;
    }
    *out = links.first;
    return links.first ? OK : new_tree(p, (struct tree){.kind = TREE_EMPTY}, out);
}

static enum code parse_alternatives(struct parser *p, int depth, const struct tree **out)
{
    struct links links = {0};
    do {
        struct tree *link = add_link(p, &links, TREE_ALTERNATE);
        enum code rc = link ? parse_sequence(p, depth, &link->left) : error_nomem(p->err);
        if (rc) return rc;
    } while (accept(p, "|"));
    *out = links.first;
    return OK;
}

// ---- code. After PATTERN_CODE_MAX or EMIT_WORK_MAX everything is a no-op and emit_full is true.

static bool emit_full(const struct parser *p)
{
    return p->code_count >= PATTERN_CODE_MAX || p->work >= EMIT_WORK_MAX;
}

static uint16_t emit(struct parser *p, enum pattern_op op, uint16_t x)
{
    if (emit_full(p)) return 0;
    p->code[p->code_count] = (struct pattern_code){.op = (uint8_t)op, .x = x};
    return (uint16_t)p->code_count++;
}

static uint16_t here(const struct parser *p)
{
    return (uint16_t)p->code_count;
}

static void emit_tree(struct parser *p, const struct tree *tree);

static void emit_repeat(struct parser *p, const struct tree *tree)
{
    uint16_t start = here(p);
    for (int32_t i = 0; i < tree->min && !emit_full(p); i++) {
        start = here(p);
        emit_tree(p, tree->left);
    }
    if (tree->max == UNBOUNDED && tree->min > 0) {
        uint16_t split = emit(p, OP_SPLIT, start);
        p->code[split].y = here(p);
        return;
    }
    if (tree->max == UNBOUNDED) {
        uint16_t split = emit(p, OP_SPLIT, (uint16_t)(here(p) + 1));
        emit_tree(p, tree->left);
        emit(p, OP_JUMP, split);
        p->code[split].y = here(p);
        return;
    }
    // Every optional copy may leave for the end; until that is known, y links to the copy before.
    uint16_t chain = UINT16_MAX;
    for (int32_t i = tree->min; i < tree->max && !emit_full(p); i++) {
        uint16_t split = emit(p, OP_SPLIT, (uint16_t)(here(p) + 1));
        p->code[split].y = chain;
        chain = split;
        emit_tree(p, tree->left);
    }
    while (chain != UINT16_MAX) {
        uint16_t before = p->code[chain].y;
        p->code[chain].y = here(p);
        chain = before;
    }
}

static void emit_alternate(struct parser *p, const struct tree *tree)
{
    uint16_t chain = UINT16_MAX; // the jumps to the end, linked through x
    for (; tree->right && !emit_full(p); tree = tree->right) {
        uint16_t split = emit(p, OP_SPLIT, (uint16_t)(here(p) + 1));
        emit_tree(p, tree->left);
        chain = emit(p, OP_JUMP, chain);
        p->code[split].y = here(p);
    }
    emit_tree(p, tree->left);
    while (chain != UINT16_MAX && !emit_full(p)) {
        uint16_t before = p->code[chain].x;
        p->code[chain].x = here(p);
        chain = before;
    }
}

static void emit_tree(struct parser *p, const struct tree *tree)
{
    if (emit_full(p)) return;
    p->work++;
    switch (tree->kind) {
    case TREE_EMPTY:
        return;
    case TREE_SET:
        emit(p, OP_SET, tree->value);
        return;
    case TREE_ASSERT:
        emit(p, (enum pattern_op)tree->value, 0);
        return;
    case TREE_CONCAT:
        for (; tree && !emit_full(p); tree = tree->right) emit_tree(p, tree->left);
        return;
    case TREE_ALTERNATE:
        emit_alternate(p, tree);
        return;
    case TREE_REPEAT:
        emit_repeat(p, tree);
        return;
    }
}

enum code pattern_compile(struct str text, struct arena *arena, const struct pattern **out, struct error *err)
{
    struct pattern_code scratch[PATTERN_CODE_MAX];
    struct parser p = {.text = text, .arena = arena, .err = err, .code = scratch};
    const struct tree *tree = NULL;
    enum code rc = parse_alternatives(&p, 0, &tree);
    if (rc) return rc;
    if (!at_end(&p)) return refuse(&p, E_INVALID, "unmatched )");
    emit_tree(&p, tree);
    emit(&p, OP_MATCH, 0);
    if (emit_full(&p)) return refuse(&p, E_LIMIT, "the pattern is too large once its repetitions are written out");
    struct pattern *pattern = ARENA_NEW(arena, struct pattern);
    struct pattern_code *code = ARENA_ARRAY(arena, p.code_count, struct pattern_code);
    if (!pattern || !code) return error_nomem(p.err);
    memcpy(code, p.code, p.code_count * sizeof(*code));
    *pattern = (struct pattern){
        .text = text,
        .code = code,
        .code_count = p.code_count,
        .sets = p.sets,
        .set_count = (uint32_t)p.set_count,
        .has_word_edge = p.has_word_edge,
    };
    rc = pattern_table_build(pattern, arena, &pattern->table);
    if (rc) return error_nomem(err);
    *out = pattern;
    return OK;
}
