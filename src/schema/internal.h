// What the files of schema/ share: the compiled form and the set it is compiled from.
//
// A compiled schema is a graph: references are followed when compiling, so validation never looks a name up. Subschemas
// that apply to the same value (allOf, $ref, if, ...) never form a cycle; compile refuses those. Cycles through properties
// and items are fine, since each turn goes one level down in the value.
#ifndef CAIRN_SCHEMA_INTERNAL_H
#define CAIRN_SCHEMA_INTERNAL_H

#include "base/map.h"
#include "json/decimal.h"
#include "schema/pattern.h"
#include "schema/schema.h"

// ---- URI references (RFC 3986 §5.2), without the fragment
// NULL ptr: out of memory.
struct str uri_resolve(struct arena *arena, struct str base, struct str reference) MUST_CHECK;
struct str uri_without_fragment(struct str uri, struct str *fragment);
// Undoes %XX. NULL ptr: out of memory.
struct str uri_unescape(struct arena *arena, struct str text) MUST_CHECK;

// ---- compiled
enum type_bit {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INTEGER = 4,
    TYPE_FRACTION = 8, // a number that is not an integer
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
    TYPE_NUMBER = TYPE_INTEGER | TYPE_FRACTION,
    TYPE_ANY = 127
};

struct bound {
    const struct json *source; // NULL: no such bound
    struct decimal value;
};

struct number_rules {
    struct bound minimum, maximum, exclusive_minimum, exclusive_maximum;
    const struct json *multiple_of; // NULL: none
    struct divisor divisor;
};

struct schemas {
    const struct schema **at;
    uint32_t count;
};

struct array_rules {
    uint64_t min_items, max_items;
    struct schemas prefix;
    const struct schema *items;    // after the prefix; NULL: anything
    const struct schema *contains; // NULL: none
    uint64_t min_contains, max_contains;
    bool unique;
};

// A name that the schema speaks of. Presence of those with a bit is remembered while walking the members.
struct name_rule {
    struct str key;
    const struct schema *schema; // of `properties`; NULL: none
    int32_t bit;                 // -1: presence does not matter
};

enum { TRACKED_NAME_MAX = 1024 };

struct dependency {
    uint32_t trigger;            // bit
    const uint32_t *required;    // bits
    const struct schema *schema; // of dependentSchemas
    uint32_t required_count;
};

struct pattern_rule {
    const struct pattern *pattern;
    const struct schema *schema;
};

struct object_rules {
    uint64_t min_properties, max_properties;
    struct map by_name; // key -> index in names
    const struct name_rule *names;
    uint32_t name_count;
    uint32_t tracked_count;
    const struct str *tracked; // bit -> name
    const uint32_t *required;  // bits
    uint32_t required_count;
    const struct dependency *dependencies;
    uint32_t dependency_count;
    const struct pattern_rule *patterns;
    uint32_t pattern_count;
    const struct schema *additional;     // NULL: anything
    const struct schema *property_names; // NULL: none
};

struct schema {
    uint8_t types;   // enum type_bit, allowed
    bool never;      // the schema `false`
    bool in_place;   // one of the applicators below is there
    uint8_t visit;   // compile: 0 not seen, 1 on the path, 2 done
    uint16_t height; // longest path of in-place applicators from here
    const struct json *source;
    const struct json *constant;
    const struct json *options; // the array of `enum`
    const struct number_rules *number;
    uint64_t min_length, max_length;
    const struct pattern *pattern;
    const struct array_rules *array;
    const struct object_rules *object;
    const struct schema *ref;
    struct schemas all_of, any_of, one_of;
    const struct schema *not_schema, *if_schema, *then_schema, *else_schema;
};

// ---- the set
struct resource {
    struct str uri; // without fragment; what references inside are relative to
    const struct json *root;
};

struct schema_site {
    const struct json *schema;
    const struct resource *resource;
};

struct memo {
    const struct json *source;
    const struct resource *resource;
    struct schema *schema;
};

struct schema_set {
    struct arena *arena;
    struct map by_uri; // "uri" and "uri#anchor" -> index in places
    struct schema_site *places;
    size_t place_count, place_capacity;
    struct memo *memos; // open addressing by source
    size_t memo_count, memo_capacity;
    struct memo *queue; // schemas met and not yet compiled
    size_t queue_count, queue_capacity;
};

// Where a keyword's value holds schemas.
enum keyword_kind {
    KEYWORD_PLAIN = 1,
    KEYWORD_SCHEMA,
    KEYWORD_SCHEMA_ARRAY,
    KEYWORD_SCHEMA_MAP,
    KEYWORD_ANNOTATION,
    KEYWORD_REFUSED,
};

struct keyword {
    const char *name;
    enum keyword_kind kind;
};
const struct keyword *keyword_find(struct str name); // NULL: unknown

// The resource `schema` (an object with $id) opens, or `outer`. NULL: out of memory.
const struct resource *set_resource(struct schema_set *set, const struct json *schema, const struct resource *outer);
// Finds what `reference`, written inside `resource`, names. E_NOT_FOUND, E_NOMEM.
enum code set_find(struct schema_set *set, const struct resource *resource, struct str reference,
                   const struct json **schema, const struct resource **found, struct error *err) MUST_CHECK;

// The schema for `source`, compiled later. NULL: out of memory.
const struct schema *compile_later(struct schema_set *set, const struct json *source, const struct resource *resource);
// Rules of one kind of value. `node` is where they go.
struct compile {
    struct schema_set *set;
    const struct resource *resource;
    const struct json *source; // the object
    struct schema *node;
    struct error *err;
};
enum code compile_number(struct compile *c) MUST_CHECK;
enum code compile_array(struct compile *c) MUST_CHECK;
enum code compile_object(struct compile *c) MUST_CHECK;
enum code compile_fault(const struct compile *c, enum code code, const struct json *at, const char *keyword,
                        const char *demand);
enum code compile_child(const struct compile *c, const char *keyword, const struct schema **out) MUST_CHECK;
enum code compile_count(const struct compile *c, const char *keyword, uint64_t *out) MUST_CHECK;
enum code compile_pattern(const struct compile *c, const char *keyword, struct str text, const struct json *at,
                          const struct pattern **out) MUST_CHECK;

// ---- validation
struct step { // how deep we are; a list on the stack, innermost first
    const struct step *above;
    struct str key; // ptr NULL: an index
    size_t index;
    const struct json *value;
    uint32_t depth;
};

struct check {
    struct schema_fault *fault; // NULL while looking without telling
    uint32_t fault_depth;       // depth + 1 of what it tells; deeper faults win
    uint32_t nesting;
    uint32_t steps;
    bool stopped; // a limit was hit: the answer is no, whatever stands around
};

struct count_range {
    uint64_t min, max;
};
bool fault_text(struct check *c, const struct step *at, const char *text);
bool fault_count(struct check *c, const struct step *at, const char *verb, const char *things, struct count_range limits,
                 uint64_t found);
bool fault_pair(struct check *c, const struct step *at, const char *before, uint64_t a, uint64_t b, const char *after);
// Puts what has been reported for one alternative into a fault about all of them.
void fault_none(struct check *c, const struct step *at, uint64_t count);
void fault_type(struct check *c, const struct step *at, uint8_t types);
bool fault_value(struct check *c, const struct step *at, const char *demand, const struct json *wanted);
bool fault_key(struct check *c, const struct step *at, const char *demand, struct str key);
void fault_unknown(struct check *c, const struct step *at, const struct object_rules *rules);
bool values_unique(const struct json *array, uint32_t *first, uint32_t *second);

#endif
