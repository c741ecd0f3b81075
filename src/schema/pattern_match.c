// Running an automaton. A thread set holds the instructions alive at one place of the subject. The simulation moves it
// along code point by code point; the table is the same walk done beforehand for every class of code points that the
// pattern can tell apart.
#include "schema/pattern.h"

#include <string.h>

enum {
    TABLE_STATE_MAX = 1280,
    TABLE_SET_MAX = 64, // sets of a pattern whose table is tried: one bit each
    TABLE_CLASS_MAX = 64,
    TABLE_CUT_MAX = 4096,
    TABLE_ITEM_MAX = 65536,
    TABLE_WORK_MAX = 16000000,
    SLOT_COUNT = 4096, // power of two above TABLE_STATE_MAX
    STATE_DEAD = 0,
    STATE_START = 1
};

// A sparse set: constant time to clear, add and test, and no initialisation of `where`.
struct threads {
    uint32_t count;
    uint16_t items[PATTERN_CODE_MAX];
    uint16_t where[PATTERN_CODE_MAX];
};

struct edges { // what assertions see
    bool start, end, word_edge;
};

// `where` may hold anything for the set to work; it is cleared for the tools that watch.
static void threads_init(struct threads *t, const struct pattern *pattern)
{
    t->count = 0;
    memset(t->where, 0, pattern->code_count * sizeof(t->where[0]));
}

static bool threads_hold(const struct threads *t, uint16_t pc)
{
    return t->where[pc] < t->count && t->items[t->where[pc]] == pc;
}

static bool threads_put(struct threads *t, uint16_t pc)
{
    if (threads_hold(t, pc)) return false;
    t->where[pc] = (uint16_t)t->count;
    t->items[t->count++] = pc;
    return true;
}

// Adds pc and all that is reached from it without a code point. The set itself is the work list: what is after `done` has
// not been followed yet.
static void follow(const struct pattern *pattern, struct threads *t, uint16_t pc, struct edges place)
{
    uint32_t done = t->count;
    threads_put(t, pc);
    while (done < t->count) {
        uint16_t at = t->items[done++];
        const struct pattern_code *c = &pattern->code[at];
        bool pass = false;
        switch ((enum pattern_op)c->op) {
        case OP_SPLIT:
            threads_put(t, c->x);
            threads_put(t, c->y);
            break;
        case OP_JUMP:
            threads_put(t, c->x);
            break;
        case OP_START:
            pass = place.start;
            break;
        case OP_END:
            pass = place.end;
            break;
        case OP_WORD_EDGE:
            pass = place.word_edge;
            break;
        case OP_NOT_WORD_EDGE:
            pass = !place.word_edge;
            break;
        case OP_SET:
        case OP_MATCH:
            break;
        }
        if (pass) threads_put(t, (uint16_t)(at + 1));
    }
}

static bool set_holds(const struct range_set *set, uint32_t code_point)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->ranges[middle].last < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->ranges[low].first <= code_point;
}

static bool is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static bool matched(const struct pattern *pattern, const struct threads *t)
{
    return threads_hold(t, (uint16_t)(pattern->code_count - 1)); // OP_MATCH is last
}

// Those of `from` that take the character, one instruction further on.
static void consume(const struct pattern *pattern, const struct threads *from, uint32_t c, struct threads *to)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct pattern_code *code = &pattern->code[from->items[i]];
        if (code->op == OP_SET && set_holds(&pattern->sets[code->x], c))
            threads_put(to, (uint16_t)(from->items[i] + 1));
    }
}

// Where both ways of matching are: between two characters of the subject, knowing the one that comes.
struct walk {
    struct str subject;
    size_t at, start;       // behind and before the character
    uint32_t c;             // 0 at the end
    bool end, word, before; // the character is part of a word; the one before it was
};

static struct edges look(struct walk *walk)
{
    walk->start = walk->at;
    walk->end = walk->at == walk->subject.len;
    walk->c = walk->end ? 0 : pattern_decode(walk->subject, &walk->at);
    walk->word = !walk->end && is_word(walk->c);
    return (struct edges){walk->start == 0, walk->end, walk->before != walk->word};
}

static void go_on(const struct pattern *pattern, struct walk *walk, const struct threads *from, struct threads *to)
{
    consume(pattern, from, walk->c, to);
    walk->before = walk->word;
}

static bool simulate(const struct pattern *pattern, struct str subject)
{
    struct threads sets[2];
    struct threads *now = &sets[0], *next = &sets[1];
    struct walk walk = {.subject = subject};
    threads_init(now, pattern);
    threads_init(next, pattern);
    for (;;) {
        struct edges place = look(&walk);
        // Assertions need to know what comes next, so a set is followed only now.
        next->count = 0;
        for (uint32_t i = 0; i < now->count; i++) follow(pattern, next, now->items[i], place);
        follow(pattern, next, 0, place);
        if (matched(pattern, next)) return true;
        if (walk.end) return false;
        go_on(pattern, &walk, next, now);
    }
}

// A set whose threads know where they began. Those that began earlier come first, so that of two that meet the earlier one stays.
struct begun {
    struct threads set;
    uint32_t from[PATTERN_CODE_MAX]; // by instruction
};

static void follow_from(const struct pattern *pattern, struct begun *t, uint16_t pc, struct edges place, uint32_t from)
{
    uint32_t before = t->set.count;
    follow(pattern, &t->set, pc, place);
    for (uint32_t i = before; i < t->set.count; i++) t->from[t->set.items[i]] = from;
}

static void consume_from(const struct pattern *pattern, const struct begun *from, uint32_t c, struct begun *to)
{
    to->set.count = 0;
    for (uint32_t i = 0; i < from->set.count; i++) {
        uint16_t pc = from->set.items[i];
        const struct pattern_code *code = &pattern->code[pc];
        if (code->op == OP_SET && set_holds(&pattern->sets[code->x], c) && threads_put(&to->set, (uint16_t)(pc + 1)))
            to->from[pc + 1] = from->from[pc];
    }
}

size_t pattern_search(const struct pattern *pattern, struct str subject, size_t from, size_t most, size_t *start,
                      size_t *work)
{
    struct begun sets[2];
    struct begun *now = &sets[0], *next = &sets[1];
    struct walk walk = {.subject = subject, .at = from};
    uint16_t match = (uint16_t)(pattern->code_count - 1);
    size_t found = SIZE_MAX;
    INVARIANT(subject.len < UINT32_MAX);
    threads_init(&now->set, pattern);
    threads_init(&next->set, pattern);
    walk.before = from && is_word((unsigned char)subject.ptr[from - 1]);
    do {
        struct edges place = look(&walk);
        next->set.count = 0;
        for (uint32_t i = 0; i < now->set.count; i++) {
            uint16_t pc = now->set.items[i];
            if (found == SIZE_MAX || now->from[pc] <= *start) follow_from(pattern, next, pc, place, now->from[pc]);
        }
        if (found == SIZE_MAX) follow_from(pattern, next, 0, place, (uint32_t)walk.start);
        if (matched(pattern, &next->set)) {
            *start = next->from[match];
            found = walk.start;
        }
        *work += 1 + next->set.count;
        if (*work > most) return SIZE_MAX;
        if (walk.end) break;
        consume_from(pattern, next, walk.c, now);
        walk.before = walk.word;
    } while (found == SIZE_MAX || now->set.count);
    return found;
}

static uint16_t class_of(const struct pattern_table *table, uint32_t c)
{
    size_t low = 0, high = table->cut_count; // the last cut <= c; cuts[0] is 0
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (table->cuts[middle] <= c)
            low = middle;
        else
            high = middle;
    }
    return table->cut_classes[low];
}

bool pattern_match(const struct pattern *pattern, struct str subject)
{
    const struct pattern_table *table = pattern->table;
    if (!table) return simulate(pattern, subject);
    const uint32_t *next = table->next;
    uint32_t row =
        (uint32_t)STATE_START * table->class_count; // states as they stand in the table: no product on the way
    for (size_t at = 0; at < subject.len;) {
        if (table->early && table->accepts[row / table->class_count] & ACCEPT_NOW) return true;
        unsigned char byte = (unsigned char)subject.ptr[at];
        uint16_t class;
        if (byte < 0x80) {
            class = table->ascii[byte];
            at++;
        } else {
            class = class_of(table, pattern_decode(subject, &at));
        }
        row = next[row + class];
        if (row == STATE_DEAD) return false;
    }
    return table->accepts[row / table->class_count] != 0;
}

// ---- the table

static void sift(struct range *ranges, size_t root, size_t count)
{
    struct range moved = ranges[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && ranges[child + 1].first > ranges[child].first) child++;
        if (ranges[child].first <= moved.first) break;
        ranges[root] = ranges[child];
    }
    ranges[root] = moved;
}

void range_sort(struct range *ranges, size_t count)
{
    for (size_t root = count / 2; root-- > 0;) sift(ranges, root, count);
    for (size_t end = count; end-- > 1;) {
        struct range largest = ranges[0];
        ranges[0] = ranges[end];
        ranges[end] = largest;
        sift(ranges, 0, end);
    }
}

struct build {
    const struct pattern *pattern;
    struct arena *arena;
    struct pattern_table *table;
    uint64_t *signatures; // class -> which sets hold it
    uint16_t *items;      // of all states, one after the other
    uint32_t starts[TABLE_STATE_MAX + 1];
    uint16_t slots[SLOT_COUNT]; // hash of the items -> state
    uint8_t accepts[TABLE_STATE_MAX];
    uint32_t state_count;
    uint32_t work;
    bool too_large;
};

// Cuts the code points into intervals that no set divides, and intervals into classes that no set tells apart.
static enum code build_classes(struct build *b)
{
    const struct pattern *pattern = b->pattern;
    size_t count = 1;
    for (uint32_t i = 0; i < pattern->set_count; i++) count += 2 * pattern->sets[i].count;
    b->too_large = count > TABLE_CUT_MAX;
    if (b->too_large) return OK;
    struct range *edges = ARENA_ARRAY(b->arena, count, struct range);
    uint32_t *cuts = ARENA_ARRAY(b->arena, count, uint32_t);
    uint8_t *classes = ARENA_ARRAY(b->arena, count, uint8_t);
    if (!edges || !cuts || !classes) return E_NOMEM;
    count = 1; // the first edge is 0
    for (uint32_t i = 0; i < pattern->set_count; i++) {
        for (size_t j = 0; j < pattern->sets[i].count; j++) {
            edges[count++].first = pattern->sets[i].ranges[j].first;
            edges[count++].first = pattern->sets[i].ranges[j].last + 1;
        }
    }
    range_sort(edges, count);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (edges[i].first != cuts[kept - 1]) cuts[kept++] = edges[i].first;
    }
    uint16_t class_count = 0;
    for (size_t i = 0; i < kept; i++) {
        uint64_t signature = 0;
        for (uint32_t j = 0; j < pattern->set_count; j++)
            signature |= (uint64_t)set_holds(&pattern->sets[j], cuts[i]) << j;
        uint16_t class = 0;
        while (class < class_count && b->signatures[class] != signature) class ++;
        b->too_large = class == TABLE_CLASS_MAX;
        if (b->too_large) return OK;
        if (class == class_count) b->signatures[class_count++] = signature;
        classes[i] = (uint8_t) class;
    }
    b->table->cuts = cuts;
    b->table->cut_classes = classes;
    b->table->cut_count = kept;
    b->table->class_count = class_count;
    for (uint32_t c = 0; c < 128; c++) b->table->ascii[c] = (uint8_t)class_of(b->table, c);
    return OK;
}

// The state of a thread set: those of its instructions that wait for something, in order. Makes it when it is new.
static uint16_t state_of(struct build *b, const struct threads *t, bool start)
{
    const struct pattern *pattern = b->pattern;
    uint32_t from = b->starts[b->state_count];
    uint32_t to = from;
    if (b->state_count == TABLE_STATE_MAX || TABLE_ITEM_MAX - from < t->count) {
        b->too_large = true;
        return STATE_DEAD;
    }
    for (uint16_t pc = 0; pc < pattern->code_count; pc++) {
        uint8_t op = pattern->code[pc].op;
        if ((op == OP_SET || op == OP_END || op == OP_MATCH) && threads_hold(t, pc)) b->items[to++] = pc;
    }
    b->work += pattern->code_count;
    size_t size = (to - from) * sizeof(b->items[0]);
    if (to == from) return STATE_DEAD;
    uint64_t hash = str_hash((struct str){(const char *)(b->items + from), size});
    size_t slot = hash & (SLOT_COUNT - 1);
    for (; b->slots[slot] && !start; slot = (slot + 1) & (SLOT_COUNT - 1)) {
        uint16_t state = b->slots[slot];
        if (b->starts[state + 1] - b->starts[state] == to - from &&
            !memcmp(b->items + b->starts[state], b->items + from, size))
            return state;
    }
    uint16_t state = (uint16_t)b->state_count++;
    if (!start) // the start state sees ^ and is never come back to
        b->slots[slot] = state;
    b->starts[b->state_count] = to;
    struct threads last;
    threads_init(&last, pattern);
    for (uint32_t i = from; i < to; i++) follow(pattern, &last, b->items[i], (struct edges){start, true, false});
    b->accepts[state] =
        (uint8_t)((matched(pattern, t) ? ACCEPT_NOW : 0) | (matched(pattern, &last) ? ACCEPT_AT_END : 0));
    return state;
}

static uint16_t step(struct build *b, uint16_t state, uint16_t class)
{
    const struct pattern *pattern = b->pattern;
    struct threads t;
    threads_init(&t, pattern);
    struct edges place = {false, false, false};
    for (uint32_t i = b->starts[state]; i < b->starts[state + 1]; i++) {
        const struct pattern_code *code = &pattern->code[b->items[i]];
        if (code->op == OP_SET && (b->signatures[class] >> code->x & 1))
            follow(pattern, &t, (uint16_t)(b->items[i] + 1), place);
    }
    follow(pattern, &t, 0, place);
    b->work += t.count;
    return state_of(b, &t, false);
}

static enum code build_states(struct build *b)
{
    uint16_t class_count = b->table->class_count;
    uint32_t *next = ARENA_ARRAY(b->arena, (size_t)TABLE_STATE_MAX * class_count, uint32_t);
    if (!next) return E_NOMEM;
    b->state_count = 1; // STATE_DEAD, without items
    struct threads t;
    threads_init(&t, b->pattern);
    follow(b->pattern, &t, 0, (struct edges){true, false, false});
    uint16_t first = state_of(b, &t, true);
    INVARIANT(first == STATE_START || b->too_large);
    for (uint32_t state = STATE_START; state < b->state_count && !b->too_large; state++) {
        for (uint16_t class = 0; class < class_count && !b->too_large; class ++) {
            next[state * class_count + class] = (uint32_t)step(b, (uint16_t)state, class) * class_count;
            b->too_large |= b->work > TABLE_WORK_MAX;
        }
    }
    b->table->next = next;
    return OK;
}

static enum code table_keep(const struct build *b, struct arena *arena, const struct pattern_table **out)
{
    struct pattern_table *table = ARENA_NEW(arena, struct pattern_table);
    size_t next_count = (size_t)b->state_count * b->table->class_count;
    uint32_t *next = ARENA_ARRAY(arena, next_count, uint32_t);
    uint8_t *accepts = ARENA_ARRAY(arena, b->state_count, uint8_t);
    uint32_t *cuts = ARENA_ARRAY(arena, b->table->cut_count, uint32_t);
    uint8_t *cut_classes = ARENA_ARRAY(arena, b->table->cut_count, uint8_t);
    if (!table || !next || !accepts || !cuts || !cut_classes) return E_NOMEM;
    *table = *b->table;
    table->next = memcpy(next, b->table->next, next_count * sizeof(next[0]));
    table->accepts = memcpy(accepts, b->accepts, b->state_count);
    for (uint32_t i = 0; i < b->state_count; i++) table->early |= (accepts[i] & ACCEPT_NOW) != 0;
    table->cuts = memcpy(cuts, b->table->cuts, table->cut_count * sizeof(cuts[0]));
    table->cut_classes = memcpy(cut_classes, b->table->cut_classes, table->cut_count);
    *out = table;
    return OK;
}

enum code pattern_table_build(const struct pattern *pattern, struct arena *arena, const struct pattern_table **out)
{
    *out = NULL;
    if (pattern->has_word_edge || pattern->set_count > TABLE_SET_MAX) return OK;
    struct arena scratch SCOPED(arena_release) = arena_of(64 * 1024, 4 * 1024 * 1024);
    struct build *b = ARENA_NEW(&scratch, struct build);
    enum code rc = E_NOMEM;
    if (b) {
        b->pattern = pattern;
        b->arena = &scratch;
        b->table = ARENA_NEW(&scratch, struct pattern_table);
        b->signatures = ARENA_ARRAY(&scratch, TABLE_CLASS_MAX, uint64_t);
        b->items = ARENA_ARRAY(&scratch, TABLE_ITEM_MAX, uint16_t);
        if (b->table && b->signatures && b->items) rc = build_classes(b);
        if (!rc && !b->too_large) rc = build_states(b);
        if (!rc && !b->too_large) rc = table_keep(b, arena, out);
    }
    return rc;
}
