// What the files of contract/ share: facts to JSON members and back, driven by tables.
//
// A table lists the members of one object in canonical order (RFC 8785), so that what is built needs no sorting. It may take
// in another one (`also`), whose members then stand among its own: what several kinds or vocabularies say alike is one table
// (shared.c). Records of attempts have tables without, because merging costs a comparison a member. A field says where its
// fact lives: in the moment, its start facts, the run's ids, the seal, or in `struct derived`, which holds what a vocabulary
// computes (words, references) before it writes and after it reads.
//
// A field's type also says what its fact must be, so that a record of facts that are so fits its schema without being held against it:
// what is written is known to fit, or it is in doubt (facts_in.doubt), and only a record in doubt is shown to the schema, which decides.
// Builds for tests show every record (contract.c). Nothing of that is asked of what is read.
#ifndef CAIRN_CONTRACT_INTERNAL_H
#define CAIRN_CONTRACT_INTERNAL_H

#include "contract/contract.h"
#include "schema/schema.h"

enum field_type {
    FIELD_STR = 1, // struct str, any text
    FIELD_SOME,    // a text that is not empty
    FIELD_NAME,    // part of a key: at most 128, no '|' and no control characters
    FIELD_RUN,     // id of a run
    FIELD_STEP,    // path of a step: as a name, at most 1024
    FIELD_KEY,     // of a run of a step or task: as a name, at most 1100
    FIELD_PART,    // what an event is about, or is in: at most 1200, not empty
    FIELD_UUID,
    FIELD_HEX,    // SHA-256
    FIELD_CODE,   // for machines: capital letters, digits and '_'
    FIELD_CHOICE, // one of those in `word`, which are parted by blanks
    FIELD_ID,     // char[UUID_SIZE]
    FIELD_U32,
    FIELD_ATTEMPT, // uint32_t >= 1; an absent member is 1
    FIELD_INDEX,   // uint32_t counted from 1, written from 0; 0 is absent
    FIELD_U64,
    FIELD_SEQ,  // uint64_t >= 1
    FIELD_MS,   // int64_t as a number
    FIELD_SPAN, // the same, not negative
    FIELD_TIME, // int64_t as RFC 3339
    FIELD_EXIT, // int32_t with a bool at `present`
    FIELD_BOOL,
    FIELD_JSON,    // any value
    FIELD_MEMBERS, // an object
    FIELD_OUTCOME, // of a task (contract_outcome_fits)
    FIELD_SHAPED,  // a value that its schema has more to say of: always in doubt
    FIELD_DIGEST,
    FIELD_WORD, // the constant `word`; not read
    FIELD_TRUE, // constants; not read
    FIELD_FALSE,
    FIELD_OBJECT, // `table`; left out when it has no members. With `present`: written and read as that bool says
};

enum field_source { SOURCE_MOMENT = 1, SOURCE_START, SOURCE_IDS, SOURCE_SEAL, SOURCE_DERIVED, SOURCE_COUNT };

enum {
    ALWAYS = 1,   // written even when zero or empty
    DERIVED = 2,  // written, not read: it repeats another fact
    REQUIRED = 4, // E_CORRUPT when missing
};

struct field {
    struct str name;
    uint8_t type, source, flags;
    uint16_t offset, present; // present 0: none
    struct str word;
    const struct table *table;
};

struct table {
    const struct field *fields;
    uint32_t count;
    const struct table *also; // members of the same object; NULL: none
};
enum { TABLE_PARTS_MAX = 3 }; // a table and what it takes in, and what that takes in

#define TABLE_WITH(fields, others)                                                                                     \
    {                                                                                                                  \
        (fields), ARRAY_COUNT(fields), (others)                                                                        \
    }
#define TABLE(fields) TABLE_WITH(fields, NULL)
// A table of its own: {fields}, in the order of their names.
#define TABLE_OF_WITH(others, ...) TABLE_WITH(((const struct field[])__VA_ARGS__), others)
#define TABLE_OF(...) TABLE_OF_WITH(NULL, __VA_ARGS__)

// Said alike by the vocabularies that write their names like that. `counts` has all four members, always.
extern const struct table start_in_camel, start_in_snake, counts_table;

#define FIELD_AT(text, kind, from, whole, member, how)                                                                 \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = (kind), .source = (from), .flags = (how),                          \
        .offset = offsetof(whole, member)                                                                              \
    }
#define MOMENT_FIELD(text, kind, member, how) FIELD_AT(text, kind, SOURCE_MOMENT, struct moment, member, how)
#define START_FIELD(text, kind, member, how) FIELD_AT(text, kind, SOURCE_START, struct start_facts, member, how)
#define IDS_FIELD(text, member, how) FIELD_AT(text, FIELD_NAME, SOURCE_IDS, struct run_ids, member, how)
#define RUN_FIELD(text) FIELD_AT(text, FIELD_RUN, SOURCE_IDS, struct run_ids, run, ALWAYS | REQUIRED)
#define SEAL_FIELD(text, kind, member, how) FIELD_AT(text, kind, SOURCE_SEAL, struct seal, member, how)
#define DERIVED_FIELD(text, kind, member, how) FIELD_AT(text, kind, SOURCE_DERIVED, struct derived, member, how)
#define EXIT_FIELD(text)                                                                                               \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_EXIT, .source = SOURCE_MOMENT,                               \
        .offset = offsetof(struct moment, fault.exit_code), .present = offsetof(struct moment, fault.has_exit)         \
    }
#define WORD_FIELD(text, constant)                                                                                     \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_WORD, .word = {(constant), sizeof(constant) - 1 }            \
    }
#define CHOICE_FIELD(text, from, whole, member, how, choices)                                                          \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_CHOICE, .source = (from), .flags = (how),                    \
        .offset = offsetof(whole, member), .word = {(choices), sizeof(choices) - 1 }                                   \
    }
#define START_CHOICE(text, member, how, choices) CHOICE_FIELD(text, SOURCE_START, struct start_facts, member, how, choices)
#define MOMENT_CHOICE(text, member, how, choices) CHOICE_FIELD(text, SOURCE_MOMENT, struct moment, member, how, choices)
#define TRIGGER_WORDS "manual schedule webhook api"
#define SIGNAL_WORDS                                                                                                   \
    "PAUSE RESUME CANCEL RETRY_STEP SKIP_STEP RETRY_RUN EMERGENCY_STOP APPROVE REJECT UPDATE_PARAMS INJECT_OVERRIDE "  \
    "UPDATE_TARGET ESCALATE_ALERT DELIVER_EVENT"
#define BOOL_FIELD(text, kind)                                                                                         \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = (kind)                                                             \
    }
#define OBJECT_FIELD(text, members, how)                                                                               \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_OBJECT, .flags = (how), .table = &(members)                  \
    }
// {sha256, size} of a result kept as a blob: there when has_blob is.
#define BLOB_FIELD(text, members)                                                                                      \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_OBJECT, .flags = ALWAYS, .source = SOURCE_MOMENT,            \
        .present = offsetof(struct moment, has_blob), .table = &(members)                                              \
    }
// {run, event} that a run was forked from: there when it was forked.
#define FORK_FIELD(text, members)                                                                                      \
    {                                                                                                                  \
        .name = {(text), sizeof(text) - 1}, .type = FIELD_OBJECT, .flags = ALWAYS, .source = SOURCE_START,             \
        .present = offsetof(struct start_facts, forked), .table = &(members)                                           \
    }

struct derived {
    struct str type;                // the word; in the ledger the moment's name
    struct str by;                  // emitter; empty when it is the one that the contract names
    struct str reason;              // skip reason in the vocabulary's words
    struct str cause, expr, detail; // node workflows: of a skip
    struct str engine_run_ref, engine_type;
    struct str plan_uri, plan_sha256, document_sha256; // the last when it is not what the reference says
    // Playbooks: words and ids of the envelope
    struct str alias, entity_type, entity_id, parent_id, source, status;
    struct str workflow_run_id, step_run_id, task_run_id, iteration_id;
    struct str ref;   // noetl:// of a result kept as a blob
    struct str store; // and where that is
    int64_t appended; // ms from the event's time to its being stored
    bool resume;
    struct digest key;
    struct json payload;
};

struct facts_in {
    const void *base[SOURCE_COUNT];
    bool *doubt; // set when a fact is written that may not fit the schema of the record
};

struct facts_out {
    void *base[SOURCE_COUNT];
};

// Where the facts of a record are.
struct facts_in facts_of(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                         const struct derived *derived, bool *doubt);
struct facts_out facts_into(struct run_ids *ids, struct moment *moment, struct seal *seal, struct derived *derived);
// Gives the moment start facts to be read into.
enum code facts_start(struct facts_out *facts, struct arena *arena, struct moment *moment,
                      struct error *err) MUST_CHECK;
enum code start_missing(struct error *err); // a moment to be written that ought to have start facts
// The emitter that the record names, else the one that the contract does.
enum emitter emitter_told(struct str by, enum moment_kind kind);

enum code fields_encode(const struct table *table, const struct facts_in *facts, struct arena *arena, struct json *out,
                        struct error *err) MUST_CHECK;
// `object` may be NULL: an empty object.
enum code fields_decode(const struct table *table, const struct json *object, const struct facts_out *facts,
                        struct error *err) MUST_CHECK;
void table_verify(const struct table *table); // INVARIANT: canonical order, no repeats, sane flags
// The tables of a vocabulary with one per kind: a kind has a payload when it has a word.
void payloads_verify(enum vocabulary vocabulary, const struct table payloads[MOMENT_COUNT]);

// The value in canonical form, in `arena`. E_LIMIT, E_INVALID (no canonical form), E_NOMEM.
enum code record_write(const struct json *value, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;
// Bytes to an object. E_CORRUPT, E_NOMEM.
enum code record_parse(struct str bytes, struct arena *arena, struct json *out, struct error *err) MUST_CHECK;

struct str contract_join(struct arena *arena, const struct str *parts, size_t count); // ptr NULL: no memory

// First moment with this word; MOMENT_UNKNOWN when there is none.
enum moment_kind moment_of_word(enum vocabulary vocabulary, struct str word);

// One vocabulary: record to JSON and back.
struct codec {
    enum vocabulary vocabulary;
    const char *folder;       // of its schemas
    struct str type_key;      // "eventType"
    struct str payload_start; // bytes just before the payload in a record
    struct str payload_end;   // and just after it
    // *doubt: the record may not fit its schema; else it does.
    enum code (*build)(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, bool *doubt, struct error *err);
    enum code (*read)(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err);
    void (*verify)(void);
};
extern const struct codec run_codec, node_codec, noetl_codec;
// The moment of another document with what this vocabulary needs besides, for contract_show.
bool noetl_shown(const struct moment *moment, struct arena *arena, struct moment *out); // false: out of memory
bool noetl_cut_run(struct str *id, uint32_t *n); // takes ":run:<n>" off its end; false: it has none
void ledger_verify(void);

enum {
    SIGNAL_COUNT = SIGNAL_LAST + 1,
    VOCABULARY_COUNT = VOCABULARY_NODES + 1,
};

struct contract {
    const struct schema *events[VOCABULARY_COUNT][MOMENT_COUNT]; // not of playbooks: see event_schema
    const struct schema *signals[SIGNAL_COUNT];
    const struct schema *request;
};
// The schemas of playbooks are compiled when the first is asked for, once in a process: others do not pay for them.
enum code event_schema(const struct contract *contract, enum vocabulary vocabulary, enum moment_kind kind,
                       const struct schema **out, struct error *err) MUST_CHECK;

#endif
