// What the files of template/ share.
#ifndef CAIRN_TEMPLATE_INTERNAL_H
#define CAIRN_TEMPLATE_INTERNAL_H

#include "base/buf.h"
#include "template/template.h"

enum {
    NESTING_MAX = 32,  // brackets and blocks within each other
    DEPTH_MAX = 200,   // of the tree of an expression: a + b + c + ... leans to the left
    VALUE_DEPTH = 512, // of values that are compared or written
    ARG_COUNT_MAX = 32,
    TARGET_COUNT_MAX = 8,
    BRANCH_COUNT_MAX = 200, // of one if
    BYTES_PER_STEP = 64,    // what making a string costs
    BYTES_WALKED = 12,      // the same where each character is looked at, or a pattern is
    BYTES_COUNTED = 128,    // where the characters are only counted
};

// Types of struct json that exist only while a template runs.
enum {
    VALUE_FLOAT = 32, // the double is in .integer
    VALUE_TUPLE,      // as JSON_ARRAY
    VALUE_LOOP,       // .text.ptr is a struct loop
    VALUE_NAMESPACE,  // .text.ptr is the object of its members
    VALUE_MACRO,      // .text.ptr is a struct macro
};

// ---- the tree

enum node_kind {
    NODE_CONST = 1, // value
    NODE_NAME,      // text
    NODE_LIST,      // args
    NODE_TUPLE,     // args
    NODE_DICT,      // args: key, value, key, value ...
    NODE_BINARY,    // a op b
    NODE_NEGATE,    // a
    NODE_PLUS,      // a
    NODE_NOT,       // a
    NODE_AND,       // a, b
    NODE_OR,        // a, b
    NODE_CONCAT,    // args
    NODE_COMPARE,   // a, then args: operand with its op
    NODE_IF,        // a if b else c (c may be NULL)
    NODE_MEMBER,    // a.text
    NODE_ITEM,      // a[b]
    NODE_SLICE,     // a[args[0]:args[1]:args[2]]; NULL values for what is left out
    NODE_METHOD,    // a.text(args)
    NODE_CALL,      // text(args); function NULL: a macro
    NODE_FILTER,    // a | text(args)
    NODE_TEST,      // a is text(args)
};

enum operator{
    OPERATOR_ADD = 1,
    OPERATOR_SUB,
    OPERATOR_MUL,
    OPERATOR_DIV,
    OPERATOR_FLOOR_DIV,
    OPERATOR_MOD,
    OPERATOR_POW,
    OPERATOR_EQ,
    OPERATOR_NE,
    OPERATOR_LT,
    OPERATOR_LE,
    OPERATOR_GT,
    OPERATOR_GE,
    OPERATOR_IN,
    OPERATOR_NOT_IN,
};

struct node;

struct arg {
    struct str name; // of a keyword argument
    const struct node *value;
    enum operator op; // NODE_COMPARE
    struct arg *next;
};

struct node {
    uint8_t kind; // enum node_kind
    uint8_t op;   // enum operator
    uint16_t depth;
    uint32_t at; // offset in the text
    struct str text;
    struct node *a, *b, *c;
    struct arg *args, *last;
    uint32_t arg_count;
    struct json value;
    const struct function *function; // of a filter, test, method or global function
};

enum block_kind {
    BLOCK_TEXT = 1, // text
    BLOCK_PRINT,    // expression
    BLOCK_IF,       // expression, body, otherwise
    BLOCK_FOR,      // targets in expression if condition: body, otherwise
    BLOCK_SET,      // targets = expression; with `text`: targets[0].text of a namespace
    BLOCK_CAPTURE,  // targets[0] = the text of body, through the filters of expression (whose innermost value it is)
    BLOCK_MACRO,    // text(params): body
    BLOCK_CALL,     // expression calls a macro, whose caller(params) is body
    BLOCK_WITH,     // params: body
};

struct block {
    uint8_t kind; // enum block_kind
    uint8_t target_count;
    bool unpacks; // the targets take the items of one value
    uint32_t at;
    struct str text;
    const struct str *targets;
    struct node *expression, *condition;
    struct arg *params; // names with their values; of macros those may be NULL
    struct block *body, *otherwise;
    struct block *next;
};

struct template
{
    struct str text;
    struct block *blocks;
    const struct node *lone; // the only expression; blocks is NULL
};

// ---- reading

enum token_kind {
    TOKEN_END = 1, // of the whole text
    TOKEN_NAME,
    TOKEN_INT,    // value
    TOKEN_FLOAT,  // value
    TOKEN_STRING, // value
    TOKEN_OPERATOR,
    TOKEN_BLOCK_END, // %} and its kin
    TOKEN_PRINT_END, // }}
};

struct lexeme {
    uint8_t kind; // enum token_kind
    bool trims;   // an end with '-'
    struct str text;
    struct json value;
    uint32_t at;
};

enum expression_end { END_EXPRESSION = 1, END_PRINT, END_BLOCK }; // which end of an expression there is

struct known_macro {
    struct str name;
    const struct known_macro *next;
};

struct blocks { // a list that grows
    struct block **end;
};

struct parser {
    struct str text;
    size_t at; // behind the token
    struct lexeme token;
    enum expression_end place;
    uint32_t open;    // brackets
    uint32_t nesting; // brackets and blocks
    bool has_comment;
    bool trim_next;                   // the text that follows loses its leading white space
    const struct known_macro *macros; // defined so far
    uint32_t in_macro;
    struct arena *arena;
    struct error *err;
};

void text_position(struct str text, size_t at, uint32_t *line, uint32_t *column);
enum code parser_fault(const struct parser *p, enum code code, size_t at, const char *what, struct str name);
#ifdef __clang_analyzer__ // as in base/error.h: the code given is the code that comes back
#define parser_fault(p, code, at, what, name) (parser_fault(p, code, at, what, name), (code))
#endif
enum code token_next(struct parser *p) MUST_CHECK;
bool token_is(const struct parser *p, const char *text); // a name or an operator
// Moves on when the token is this.
enum code token_accept(struct parser *p, const char *text, bool *accepted) MUST_CHECK;
enum code token_expect(struct parser *p, const char *text) MUST_CHECK;
// Python's int() of a text: E_INVALID when it is none, E_LIMIT, E_NOMEM. And its float(); false: it is none.
enum code text_int(struct arena *arena, struct str text, int base, struct json *out) MUST_CHECK;
bool text_float(struct str text, double *out);

enum code parse_expression(struct parser *p, bool with_if, struct node **out) MUST_CHECK; // one value
enum code parse_tuple(struct parser *p, bool with_if, struct node **out) MUST_CHECK;      // also a, b
enum code parse_filters(struct parser *p, struct node **value) MUST_CHECK;                // | a | b
enum code parse_blocks(struct parser *p, struct block **out) MUST_CHECK;
struct block *block_add(struct parser *p, struct blocks *list, enum block_kind kind, size_t at) MUST_CHECK;
enum code close_braces(struct parser *p) MUST_CHECK;
enum code end_tag(struct parser *p) MUST_CHECK; // the tag that ends a body is the token
enum code parse_body(struct parser *p, struct block **out, const char *const *ends) MUST_CHECK;
enum code parse_macro(struct parser *p, struct blocks *list, size_t at) MUST_CHECK;
enum code parse_call_block(struct parser *p, struct blocks *list, size_t at) MUST_CHECK;
enum code parse_with(struct parser *p, struct blocks *list, size_t at) MUST_CHECK;
bool parser_knows_macro(const struct parser *p, struct str name);
struct node *node_new(struct parser *p, enum node_kind kind, size_t at) MUST_CHECK;
void node_names(const struct node *n, void (*visit)(void *context, struct str name), void *context);

// ---- running

struct local {
    struct str name;
    struct json value;
    const struct local *next;
};

struct loop {
    const struct json *items;
    uint32_t count, index;
};

struct known_pattern { // compiled once a rendering
    const struct pattern *pattern;
    const struct known_pattern *next;
};

struct eval {
    const struct template *template;
    const struct template_scope *scope;
    struct template_limits limits;
    struct arena *arena;
    struct error *err;
    struct buf *out;
    const struct local *locals;
    const struct known_pattern *patterns;
    struct json caller; // of the macro that is about to be called
    uint32_t calls;     // of macros, within each other
    uint32_t steps;     // taken
    uint32_t shared_max; // step_count_max is what others left of so many; 0: it is its own
    const char *shared_by;
    uint32_t at;        // offset of what is being evaluated
    const struct node *missing; // what was undefined last; NULL: nothing
};
// The text of a chain of members that are known without evaluating; false: it is none, or too long.
bool node_path(const struct node *n, struct buf *out);

struct function_call {
    const struct function *function;
    struct json self; // the value before the filter, test or method
    struct json args[ARG_COUNT_MAX];
    struct str names[ARG_COUNT_MAX]; // empty: by position
    bool given[ARG_COUNT_MAX];
    uint32_t count;
};

struct function {
    const char *name;
    const char *parameters; // "a,b,c"; "*": any, unbound; NULL: none
    uint32_t required;
    enum code (*run)(struct eval *e, struct function_call *call, struct json *out);
};

const struct function *filter_find(struct str name);
const struct function *test_find(struct str name);
const struct function *method_find(struct str name);
const struct function *global_find(struct str name);
// More filters, by file.
const struct function *filter_list_find(struct str name);
const struct function *filter_text_find(struct str name);
enum code run_strftime(struct eval *e, struct function_call *call, struct json *out); // also a method
const struct function *function_in(const struct function *table, size_t count, struct str name);

uint32_t eval_line(const struct eval *e);
uint32_t eval_column(const struct eval *e);
// Fails at the place that is being evaluated.
#define eval_fault(e, code, ...) error_at((e)->err, code, eval_line(e), eval_column(e), "template: " __VA_ARGS__)
enum code eval_undefined(struct eval *e, const char *what);
#ifdef __clang_analyzer__
#define eval_undefined(e, what) (eval_undefined(e, what), E_NOT_FOUND)
#endif
enum code eval_charge(struct eval *e, size_t steps) MUST_CHECK;
enum code eval_walk(struct eval *e, struct str s) MUST_CHECK; // before each character of it is looked at
struct tree_steps { // of all templates of one tree
    uint32_t max, taken;
};
enum code render_within(const struct template *t, const struct template_scope *scope,
                        const struct template_limits *limits, struct tree_steps *tree, struct arena *arena,
                        struct json *out, struct error *err) MUST_CHECK;
enum code eval_use(struct eval *e, const struct json *v) MUST_CHECK; // may not be undefined when that is strict
enum code eval_node(struct eval *e, const struct node *n, struct json *out) MUST_CHECK;
enum code eval_blocks(struct eval *e, const struct block *b) MUST_CHECK;
// Binds the arguments to the parameters and calls.
enum code eval_call(struct eval *e, const struct function *f, struct function_call *call, struct json *out) MUST_CHECK;
// A filter or test by its name, as map and select have it: arguments from `from` on are its own.
enum code eval_named(struct eval *e, bool test, const struct function_call *call, uint32_t from, struct str name,
                     struct json value, struct json *out) MUST_CHECK;
enum code eval_arguments(struct eval *e, const struct node *n, struct function_call *call) MUST_CHECK;
enum code eval_macro(struct eval *e, const struct node *n, struct json *out) MUST_CHECK;
enum code eval_caller(struct eval *e, const struct block *b) MUST_CHECK;
enum code eval_with(struct eval *e, const struct block *b) MUST_CHECK;
enum code define_macro(struct eval *e, const struct block *b, struct str name) MUST_CHECK;
enum code run_dict(struct eval *e, struct function_call *call, struct json *out) MUST_CHECK;
enum code run_namespace(struct eval *e, struct function_call *call, struct json *out) MUST_CHECK;
const struct json *namespace_members(const struct json *value); // an object
enum code namespace_set(struct eval *e, struct str name, struct str member, struct json value) MUST_CHECK;
bool eval_push_local(struct eval *e, struct str name, struct json value) MUST_CHECK;

// ---- values

struct json value_undefined(void);
struct json value_float(double d);
struct json value_tuple(void);
double value_double(const struct json *v); // of a VALUE_FLOAT

struct number {
    bool is_float, is_large; // large: an integer beyond int64
    int64_t integer;         // of one that is not large
    double real;             // set in every case; infinite beyond the range of a double
};
bool value_number(const struct json *v, struct number *out); // int, float, bool
struct json value_integer(const struct json *v);             // of an int or a bool
bool value_is_list(const struct json *v);                    // list or tuple
bool value_truth(const struct json *v);
const char *value_type_name(const struct json *v); // Python's name
enum code value_equal(struct eval *e, const struct json *a, const struct json *b, bool *out) MUST_CHECK;
enum code value_compare(struct eval *e, const struct json *a, const struct json *b, int *out) MUST_CHECK;
enum code value_in(struct eval *e, const struct json *item, const struct json *container, bool *out) MUST_CHECK;
// As a list: the items of a list, the keys of a dict, the characters of a string.
enum code value_items(struct eval *e, const struct json *v, struct json *out) MUST_CHECK;
enum code value_length(struct eval *e, const struct json *v, int64_t *out) MUST_CHECK;
// Attribute or item: a.name, a['name'], a[0]. Undefined when there is none.
enum code value_member(struct eval *e, const struct json *v, struct str name, struct json *out) MUST_CHECK;
enum code value_item(struct eval *e, const struct json *v, const struct json *key, struct json *out) MUST_CHECK;
enum code value_slice(struct eval *e, const struct json *v, const struct json bounds[3], struct json *out) MUST_CHECK;
enum code value_index(struct eval *e, const struct json *v, const char *what, int64_t *out) MUST_CHECK; // an int
// Without tuples, floats and undefined values in it.
enum code value_plain(struct eval *e, const struct json *v, struct json *out) MUST_CHECK;
// Grows the list by one.
enum code value_push(struct eval *e, struct json *list, struct json item) MUST_CHECK;
enum code value_put(struct eval *e, struct json *dict, struct str key, struct json item) MUST_CHECK; // replaces

// Python's str() and repr(). *_str: in the arena.
enum code value_write(struct eval *e, const struct json *v, struct buf *out) MUST_CHECK;
enum code value_repr(struct eval *e, const struct json *v, struct buf *out, uint32_t depth) MUST_CHECK;
enum code value_str(struct eval *e, const struct json *v, struct str *out) MUST_CHECK;
void float_write(struct buf *out, double d);
// Ends a buf that was made for this evaluation: its text in the arena as a string, and what went wrong.
enum code eval_take(struct eval *e, struct buf *buf, enum code rc, struct json *out) MUST_CHECK;
void eval_buf(struct eval *e, struct buf *buf);
enum code value_json(struct eval *e, const struct json *v, int64_t indent, struct buf *out) MUST_CHECK; // json.dumps

enum code arithmetic(struct eval *e, enum operator op, const struct json *a, const struct json *b,
                     struct json *out) MUST_CHECK;
enum code number_negate(struct eval *e, const struct json *v, struct json *out) MUST_CHECK;
enum code number_round(struct eval *e, const struct json *v, int64_t digits, char method,
                       struct json *out) MUST_CHECK; // method: 'c'ommon, 'u'p, 'd'own
enum code number_finite(struct eval *e, const struct number *n) MUST_CHECK; // within the range of a double
enum code number_done(struct eval *e, enum code rc) MUST_CHECK;             // what json/integer.h gave
enum code number_to_int(struct eval *e, double d, struct json *out) MUST_CHECK;
// "%05.2f" % values
enum code text_percent(struct eval *e, struct str format, const struct json *values, struct json *out) MUST_CHECK;
// "{0} {name:>8.2f}".format(...)
enum code text_format(struct eval *e, struct str format, const struct function_call *values,
                      struct json *out) MUST_CHECK;

// ---- text; places and counts are in code points
size_t text_count(struct str s);
size_t text_offset(struct str s, size_t index);               // bytes before code point `index`, at most s.len
size_t text_find(struct str s, struct str part, size_t from); // byte offset or SIZE_MAX; linear
bool code_is_space(uint32_t c);
uint32_t code_lower(uint32_t c);
uint32_t code_upper(uint32_t c);
bool code_is_letter(uint32_t c);
struct str text_strip(struct str s, struct str set, bool spaces, bool left, bool right);
enum code text_case(struct eval *e, struct str s, char mode, struct json *out) MUST_CHECK; // 'l','u','t'itle,'c'apital
enum code text_replace(struct eval *e, struct str s, struct str old, struct str new, int64_t count,
                       struct json *out) MUST_CHECK;
enum code text_split(struct eval *e, struct str s, const struct json *separator, int64_t max, bool from_right,
                     struct json *out) MUST_CHECK;

// Argument `index` of a bound call, or NULL.
static inline const struct json *call_arg(const struct function_call *call, uint32_t index)
{
    return call->given[index] ? &call->args[index] : NULL;
}

static inline bool call_truth(const struct function_call *call, uint32_t index)
{
    return call->given[index] && value_truth(&call->args[index]);
}

static inline enum code call_int(struct eval *e, const struct function_call *call, uint32_t index, int64_t otherwise,
                                 int64_t *out)
{
    const struct json *arg = call_arg(call, index);
    *out = otherwise;
    return arg && arg->type != JSON_NULL ? value_index(e, arg, call->function->name, out) : OK;
}

#endif
