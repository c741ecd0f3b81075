// What the encoder knows to fit its schema, it knows: moments with hostile facts are encoded, and the general validator has the last
// word about each (contract.c asks it in builds for tests, and ends the process where the two differ). And the usual moment is not in
// doubt: a log is not written at the price of the validator.
#include "contract_moments.h"

#include "base/error.h"

#include <stdio.h>

enum { ROUNDS = 2000, CHANGES_MAX = 3 };

static struct arena arena;
static const struct contract *contract;

static void open_contract(void)
{
    static struct arena long_lived;
    struct error err = {0};
    arena_init(&long_lived, 64 * 1024, 64 << 20);
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK_OK(contract_open(&long_lived, &contract, &err), &err);
}

// ---- hostile facts

static struct str repeated(struct source *source, const char *piece, size_t count)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < count; i++) buf_text(&text, piece);
    struct str kept = arena_copy(source->arena, buf_str(&text));
    buf_release(&text);
    CHECK(kept.ptr);
    return kept;
}

static struct str hostile_text(struct source *source)
{
    static const struct str texts[] = {
        LITERAL(""),       LITERAL("a|b"),      LITERAL("\x01"),          LITERAL("a\x7f"),     LITERAL("../etc"), LITERAL("-x"),
        LITERAL("a b"),    LITERAL("\xff\xfe"), LITERAL("\xc3\xbc"),      LITERAL("PAUSE"),     LITERAL("RESUME PAUSE"),
        LITERAL("manual"), LITERAL("lower"),    LITERAL("BORED"),         LITERAL("B-ORED"),    LITERAL("playbook"),
        LITERAL("plan"),   LITERAL("temporal"), LITERAL("QUEUE"),         LITERAL("nul\0inside"), LITERAL("ok"),
        LITERAL("7c9e6679-7425-40de-944b-e07fc1f90ae7"), LITERAL("7C9E6679-7425-40DE-944B-E07FC1F90AE7"),
        LITERAL("7c9e6679742540de944be07fc1f90ae7"),     LITERAL(" "),
    };
    static const size_t sizes[] = {64, 65, 128, 129, 1024, 1025, 1090, 1101, 1190, 1201};
    uint32_t which = pick(source, (uint32_t)ARRAY_COUNT(texts) + 3);
    if (which < ARRAY_COUNT(texts)) return texts[which];
    size_t size = sizes[pick(source, (uint32_t)ARRAY_COUNT(sizes))];
    if (which == ARRAY_COUNT(texts)) return repeated(source, "x", size);
    if (which == ARRAY_COUNT(texts) + 1) return repeated(source, "\xc3\xbc", size);
    struct str hex = pick_hex(source);
    return maybe(source) ? hex : str_slice(hex, 1, hex.len);
}

static struct json hostile_value(struct source *source)
{
    static const char *const values[] = {
        "null", "1", "\"x\"", "[]", "{}", "[1]", "[{}]", "{\"status\":\"ok\"}", "{\"status\":\"fine\"}",
        "{\"status\":\"ok\",\"meta\":1}", "{\"status\":\"error\",\"error\":\"x\"}", "{\"status\":\"error\",\"error\":{},\"meta\":{}}",
        "{\"allow\":1}", "{\"allow\":true,\"matched_rule_index\":-1}", "{\"allow\":false,\"matched_rule_index\":null}",
        "{\"allow\":true,\"matched_rule_index\":1.5}", "{\"action\":{\"do\":\"dance\"}}", "{\"action\":{\"do\":\"jump\"},\"set\":1}",
        "{\"action\":{\"do\":\"fail\"},\"matched_rule_index\":2}", "{\"mode\":\"none\",\"selected\":[]}",
        "{\"mode\":\"inclusive\",\"selected\":{}}", "{\"mode\":\"exclusive\",\"selected\":[{}],\"matched\":[1]}",
        "{\"mode\":\"exclusive\",\"selected\":[{}],\"event\":1}", "{\"mode\":\"exclusive\",\"selected\":[],\"set\":[]}",
        "[{\"uri\":\"\",\"kind\":\"x\"}]", "[{\"uri\":\"u\"}]", "[{\"uri\":\"u\",\"kind\":\"k\",\"sizeBytes\":-1}]",
        "[{\"sha256\":\"x\"}]", "[{\"code\":\"c\"}]", "[\"load\"]", "[\"a|b\"]", "{\"kind\":\"other\"}", "{\"kind\":\"manifest\"}",
        "{\"code\":\"c\",\"message\":\"m\"}", "{\"code\":1}",
    };
    struct json value;
    struct error err = {0};
    const char *text = values[pick(source, (uint32_t)ARRAY_COUNT(values))];
    CHECK_OK(json_parse(str_from(text), &json_limits_default, source->arena, &value, &err), &err);
    return value;
}

#define AT(member) offsetof(struct moment, member)
static const size_t moment_texts[] = {AT(step),       AT(task),        AT(reason),      AT(detail), AT(signal_id),   AT(signal_type),
                                      AT(signal_step), AT(actor),       AT(role),        AT(run_ref), AT(decision_id), AT(fault.code),
                                      AT(fault.message), AT(fault.category), AT(fault.detail)};
static const size_t moment_values[] = {AT(value), AT(artifacts), AT(extracted), AT(preview)};
static const size_t moment_numbers[] = {AT(visit), AT(iteration), AT(task_run), AT(logical), AT(engine), AT(counts.total),
                                        AT(counts.failed)};
static const size_t moment_times[] = {AT(at_ms), AT(due_ms), AT(duration_ms)};
#undef AT
#define AT(member) offsetof(struct start_facts, member)
static const size_t start_texts[] = {
    AT(document_sha256), AT(document_kind), AT(document_file), AT(schema_version), AT(name),       AT(triggered_by),
    AT(trigger_source),  AT(original_run),  AT(parent_run),    AT(parent_step),    AT(forked_run), AT(admission),
    AT(queue),           AT(profile),       AT(report),        AT(engine_type),    AT(plan_uri),   AT(work_dir),
    AT(plan_sha256)};
static const size_t start_values[] = {AT(inputs), AT(parts), AT(reuse), AT(refusal), AT(warnings)};
static const size_t start_times[] = {AT(not_before_ms), AT(drain_timeout_ms)};
#undef AT
#define AT(member) offsetof(struct run_ids, member)
static const size_t id_texts[] = {AT(tenant), AT(project), AT(environment), AT(run), AT(plan_id), AT(plan_version)};
#undef AT

#define ONE_OF(source, list) (list)[pick((source), (uint32_t)ARRAY_COUNT(list))]

static void *member_of(void *whole, size_t at)
{
    return (unsigned char *)whole + at;
}

static void change_start(struct source *source, struct start_facts *start)
{
    static const int64_t times[] = {-1, INT64_MIN, INT64_MAX, 1};
    uint32_t how = pick(source, 4);
    if (how == 0) *(struct json *)member_of(start, ONE_OF(source, start_values)) = hostile_value(source);
    if (how == 1) *(int64_t *)member_of(start, ONE_OF(source, start_times)) = ONE_OF(source, times);
    if (how >= 2) *(struct str *)member_of(start, ONE_OF(source, start_texts)) = hostile_text(source);
}

static void change(struct source *source, struct moment *moment, struct start_facts *start, struct run_ids *ids)
{
    static const int64_t times[] = {-1, INT64_MIN, INT64_MAX, 253402300800000, 0};
    static const uint32_t numbers[] = {0, UINT32_MAX, 7};
    uint32_t how = pick(source, 8);
    if (how <= 2) *(struct str *)member_of(moment, ONE_OF(source, moment_texts)) = hostile_text(source);
    if (how == 3) *(struct json *)member_of(moment, ONE_OF(source, moment_values)) = hostile_value(source);
    if (how == 4) *(uint32_t *)member_of(moment, ONE_OF(source, moment_numbers)) = ONE_OF(source, numbers);
    if (how == 5) *(int64_t *)member_of(moment, ONE_OF(source, moment_times)) = ONE_OF(source, times);
    if (how == 6) *(struct str *)member_of(ids, ONE_OF(source, id_texts)) = hostile_text(source);
    if (how == 7 && moment->start) change_start(source, start);
}

// Kinds that tell themselves apart by the engine attempt have the one that is theirs (contract_encode asserts it).
static void keep_engine(struct moment *moment, enum vocabulary vocabulary)
{
    if (moment->kind == MOMENT_STEP_STARTED && vocabulary == VOCABULARY_NODES && moment->engine > 1) moment->engine = 1;
    if (moment->kind == MOMENT_STEP_REDISPATCHED && moment->engine < 2) moment->engine = 2;
}

struct tally {
    unsigned stored, refused;
};

// decode(encode()) of what nobody would write is of no interest here; a record that loses a fact is refused by builds for tests.
static void encode_hostile(struct source *source, enum vocabulary vocabulary, enum moment_kind kind, struct tally *tally)
{
    struct moment moment =
        vocabulary == VOCABULARY_NOETL ? pick_playbook_moment(source, kind) : pick_moment(source, kind);
    struct start_facts start = moment.start ? *moment.start : (struct start_facts){0};
    if (moment.start) moment.start = &start;
    struct run_ids ids = test_ids;
    struct seal seal = pick_seal(source);
    if (pick(source, 50) == 0) seal.seq = 0;
    for (uint32_t i = 1 + pick(source, CHANGES_MAX); i > 0; i--) change(source, &moment, &start, &ids);
    keep_engine(&moment, vocabulary);
    struct encoded encoded;
    struct json record;
    struct error err = {0};
    enum code rc = contract_encode(contract, vocabulary, &ids, &moment, &seal, &arena, &encoded, &err);
    CHECK(rc == OK || rc == E_SCHEMA || rc == E_INVALID || rc == E_CORRUPT || rc == E_LIMIT);
    tally->stored += rc == OK;
    tally->refused += rc == E_SCHEMA;
    if (rc) return;
    CHECK_OK(json_parse(encoded.bytes, &json_limits_default, &arena, &record, &err), &err);
    CHECK_OK(contract_check(contract, vocabulary, &record, &err), &err);
}

static void check_vocabulary(enum vocabulary vocabulary)
{
    open_contract();
    struct tally tally = {0};
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        for (uint64_t seed = 0; moment_word((enum moment_kind)kind, vocabulary) && seed < ROUNDS; seed++) {
            arena_reset(&arena);
            struct source source = {.state = kind * 1000033 + seed, .arena = &arena};
            encode_hostile(&source, vocabulary, (enum moment_kind)kind, &tally);
        }
    }
    CHECK(tally.stored > ROUNDS && tally.refused > ROUNDS);
    COVERED(record_in_doubt);
}

static void what_a_run_writes_fits_its_schema_or_is_refused_ES_A2c(void)
{
    check_vocabulary(VOCABULARY_RUN);
}

static void what_a_node_workflow_writes_fits_its_schema_or_is_refused(void)
{
    check_vocabulary(VOCABULARY_NODES);
}

static void what_a_playbook_writes_fits_its_schema_or_is_refused(void)
{
    check_vocabulary(VOCABULARY_NOETL);
}

// ---- usual facts

// Values that the schemas say more of are there for some runs and steps only.
static void keep_usual(struct moment *moment, struct start_facts *start)
{
    moment->artifacts = start->parts = start->reuse = start->warnings = start->refusal = (struct json){0};
}

static void the_usual_record_is_not_held_against_its_schema(void)
{
    open_contract();
    for (int v = VOCABULARY_RUN; v <= VOCABULARY_NODES; v++) {
        enum vocabulary vocabulary = (enum vocabulary)v;
        for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
            if (!moment_word((enum moment_kind)kind, vocabulary) || kind == MOMENT_MANIFEST_UPDATED) continue;
            for (uint64_t seed = 0; seed < 100; seed++) {
                arena_reset(&arena);
                struct source source = {.state = kind * 7919 + seed, .arena = &arena};
                struct moment moment = vocabulary == VOCABULARY_NOETL ? pick_playbook_moment(&source, (enum moment_kind)kind)
                                                                      : pick_moment(&source, (enum moment_kind)kind);
                struct start_facts start = moment.start ? *moment.start : (struct start_facts){0};
                if (moment.start) moment.start = &start;
                keep_usual(&moment, &start);
                struct seal seal = pick_seal(&source);
                struct encoded encoded;
                struct error err = {0};
                CHECK_OK(contract_encode(contract, vocabulary, &test_ids, &moment, &seal, &arena, &encoded, &err), &err);
                if (cover_hits("record_in_doubt") > 0)
                    test_fail(__FILE__, __LINE__, "%s is in doubt: %.*s", moment_name(moment.kind), STR_ARG(encoded.bytes));
            }
        }
    }
}

static void an_outcome_has_a_status_and_objects_beside_it(void)
{
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {{"{\"status\":\"ok\"}", true},
                 {"{\"status\":\"error\",\"error\":{},\"meta\":{},\"more\":1}", true},
                 {"{\"status\":\"fine\"}", false},
                 {"{\"status\":\"ok\",\"meta\":null}", false},
                 {"{\"status\":\"error\",\"error\":\"x\"}", false},
                 {"{}", false},
                 {"[]", false},
                 {"null", false}};
    open_contract();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct json outcome;
        struct error err = {0};
        CHECK_OK(json_parse(str_from(cases[i].text), &json_limits_default, &arena, &outcome, &err), &err);
        CHECK_INT(contract_outcome_fits(&outcome), cases[i].fits);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(what_a_run_writes_fits_its_schema_or_is_refused_ES_A2c),
        TEST(what_a_node_workflow_writes_fits_its_schema_or_is_refused),
        TEST(what_a_playbook_writes_fits_its_schema_or_is_refused),
        TEST(the_usual_record_is_not_held_against_its_schema),
        TEST(an_outcome_has_a_status_and_objects_beside_it),
    };
    return test_main("contract_fits", tests, ARRAY_COUNT(tests), argc, argv);
}
