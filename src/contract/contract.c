#include "contract/internal.h"

#include <string.h>

static const struct codec *const codecs[] = {
    [VOCABULARY_RUN] = &run_codec, [VOCABULARY_NOETL] = &noetl_codec, [VOCABULARY_NODES] = &node_codec};

static const struct codec *codec_of(enum vocabulary vocabulary)
{
    INVARIANT(vocabulary >= VOCABULARY_RUN && vocabulary <= VOCABULARY_NODES);
    return codecs[vocabulary];
}

static enum code check(const struct schema *schema, struct str type, const struct json *record, struct error *err)
{
    if (schema_valid(schema, record, NULL)) return OK;
    struct schema_fault fault;
    (void)schema_valid(schema, record, &fault);
    return error_set(err, E_SCHEMA, "SCHEMA_VALIDATION_FAILED: %.*s: %s %s", STR_ARG(type), fault.pointer,
                     fault.message);
}

static enum code ask_schema(const struct contract *contract, enum vocabulary vocabulary, enum moment_kind kind,
                            const struct json *record, struct error *err)
{
    const struct schema *schema = NULL;
    enum code rc = event_schema(contract, vocabulary, kind, &schema, err);
    COVER(record_in_doubt);
    return rc ? rc : check(schema, str_from(moment_word(kind, vocabulary)), record, err);
}

enum code contract_check(const struct contract *contract, enum vocabulary vocabulary, const struct json *record,
                         struct error *err)
{
    const struct codec *codec = codec_of(vocabulary);
    struct str type = json_text(json_get(record, codec->type_key));
    enum moment_kind kind = moment_of_word(vocabulary, type);
    if (kind == MOMENT_UNKNOWN)
        return error_set(err, E_SCHEMA, "SCHEMA_VALIDATION_FAILED: \"%.*s\" is not an event type of the vocabulary %s",
                         STR_ARG(type), vocabulary_name(vocabulary));
    return ask_schema(contract, vocabulary, kind, record, err);
}

// Looked for by hand: the third byte tells most places apart, and memcmp on bytes that were written a moment ago stalls.
static bool stands_at(struct str text, size_t at, struct str part)
{
    return text.ptr[at] == part.ptr[0] && text.ptr[at + 2] == part.ptr[2] &&
           memcmp(text.ptr + at, part.ptr, part.len) == 0;
}

static size_t find_first(struct str text, struct str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (stands_at(text, i, part)) return i;
    }
    return text.len;
}

static size_t find_last(struct str text, struct str part)
{
    for (size_t i = text.len - part.len; i > 0; i--) {
        if (stands_at(text, i, part)) return i;
    }
    return 0;
}

// The members around the payload are strings and numbers, in which a bare quote cannot stand: the first `,"payload":` of
// a record is the payload's and the last occurrence of the member after it is that member.
static struct str payload_of(const struct codec *codec, struct str bytes)
{
    size_t start = find_first(bytes, codec->payload_start) + codec->payload_start.len;
    size_t end = bytes.len < codec->payload_end.len ? 0 : find_last(bytes, codec->payload_end);
    return start < end ? str_slice(bytes, start, end) : (struct str){bytes.ptr, 0};
}

struct record_parts contract_parts(enum vocabulary vocabulary, struct str bytes)
{
    const struct codec *codec = codec_of(vocabulary);
    struct record_parts parts = {.payload = payload_of(codec, bytes)};
    const struct str member = STR(",\"idempotencyKey\":\"");
    size_t end = parts.payload.len ? (size_t)(parts.payload.ptr - bytes.ptr) : bytes.len;
    struct str before = str_slice(bytes, 0, end);
    size_t key = find_first(before, member) + member.len;
    if (key < before.len) parts.key = str_slice(before, key, str_find(before, '"', key));
    return parts;
}

#ifdef CAIRN_VERIFY
// What is known to fit does: every record that a test writes, of the simulator and of the end-to-end tests too, is held against its schema.
static enum code verify_fit(const struct contract *contract, enum vocabulary vocabulary, enum moment_kind kind,
                            const struct json *record, struct error *err)
{
    const struct schema *schema = NULL;
    enum code rc = event_schema(contract, vocabulary, kind, &schema, err);
    INVARIANT(rc || schema_valid(schema, record, NULL));
    return rc;
}

// decode(encode(moment)) is the moment: a fact that the vocabulary has no place for must not get lost in silence.
static enum code verify_facts(const struct codec *codec, const struct moment *moment, struct str bytes,
                              struct arena *arena, struct error *err)
{
    struct moment back, sent = *moment;
    struct seal seal;
    struct str want = {0}, got = {0};
    if (!sent.by) sent.by = moment_emitter(sent.kind);
    enum code rc = contract_decode(codec->vocabulary, bytes, arena, &back, &seal, NULL, err);
    if (!rc) rc = contract_encode_ledger(&sent, arena, &want, err);
    if (!rc) rc = contract_encode_ledger(&back, arena, &got, err);
    if (rc || str_eq(want, got)) return rc;
    return error_set(err, E_INVALID, "the vocabulary %s loses a fact: sent %.*s, read %.*s",
                     vocabulary_name(codec->vocabulary), STR_ARG(want), STR_ARG(got));
}
#endif

enum code contract_encode(const struct contract *contract, enum vocabulary vocabulary, const struct run_ids *ids,
                          const struct moment *moment, const struct seal *seal, struct arena *arena,
                          struct encoded *out, struct error *err)
{
    const struct codec *codec = codec_of(vocabulary);
    const char *word = moment_word(moment->kind, vocabulary);
    INVARIANT(word);
    // In node workflows the engine attempt is all that tells the two kinds of node_started apart.
    if (moment->kind == MOMENT_STEP_STARTED) INVARIANT(vocabulary != VOCABULARY_NODES || moment->engine <= 1);
    if (moment->kind == MOMENT_STEP_REDISPATCHED) INVARIANT(moment->engine >= 2);
    *out = (struct encoded){.type = str_from(word), .key = moment_key(vocabulary, ids, moment)};
    struct json record;
    bool doubt = false;
    enum code rc = codec->build(ids, moment, seal, &out->key, arena, &record, &doubt, err);
#ifdef CAIRN_VERIFY
    if (!rc && !doubt) rc = verify_fit(contract, vocabulary, moment->kind, &record, err);
#endif
    if (!rc && doubt) rc = ask_schema(contract, vocabulary, moment->kind, &record, err);
    if (!rc) rc = record_write(&record, arena, &out->bytes, err);
    if (rc) return rc;
    out->payload = payload_of(codec, out->bytes);
    INVARIANT(out->payload.len >= 2 && out->payload.ptr[0] == '{');
    out->hash = sha256(out->bytes);
#ifdef CAIRN_VERIFY
    rc = verify_facts(codec, moment, out->bytes, arena, err);
#endif
    return rc;
}

enum code contract_decode(enum vocabulary vocabulary, struct str bytes, struct arena *arena, struct moment *out,
                          struct seal *seal, struct run_ids *ids, struct error *err)
{
    const struct codec *codec = codec_of(vocabulary);
    struct json record;
    struct run_ids read = {0};
    *out = (struct moment){0};
    *seal = (struct seal){0};
    enum code rc = record_parse(bytes, arena, &record, err);
    if (!rc) rc = codec->read(&record, arena, out, seal, &read, err);
    if (!rc && ids) *ids = read;
    return rc;
}

// Moments of playbooks in words of documents whose steps have no visits and no tasks.
static bool plainly(const struct moment *moment, struct arena *arena, struct moment *out)
{
    *out = *moment;
    if (moment->kind == MOMENT_RUN_STARTED && !moment->start) { // the facts are in RUN_REQUESTED
        struct start_facts *start = ARENA_NEW(arena, struct start_facts);
        if (!start) return false;
        start->document_kind = STR("playbook");
        start->inputs = moment->value;
        out->start = start;
    }
    if (!moment->visit) return true;
    const struct json *allow = json_get(&moment->value, STR("allow"));
    if (moment->kind == MOMENT_ADMIT_EVALUATED && json_is(allow, JSON_BOOL) && !allow->boolean) {
        out->kind = MOMENT_STEP_SKIPPED;
        out->reason = STR(SKIP_CONDITION_FALSE);
    }
    if (moment->task.len) out->kind = MOMENT_UNKNOWN; // attempts of a task are not attempts of its step
    out->step = moment_step_id(moment, arena);
    return out->step.ptr;
}

const char *contract_word(const struct moment *moment, enum vocabulary to)
{
    enum moment_kind kind = moment->kind;
    const struct json *allow = json_get(&moment->value, STR("allow"));
    bool denied = kind == MOMENT_ADMIT_EVALUATED && json_is(allow, JSON_BOOL) && !allow->boolean;
    if (to == VOCABULARY_NOETL && kind == MOMENT_STEP_SKIPPED) kind = MOMENT_ADMIT_EVALUATED;
    if (to != VOCABULARY_NOETL && moment->visit && denied) kind = MOMENT_STEP_SKIPPED;
    if (to != VOCABULARY_NOETL && moment->visit && moment->task.len) kind = MOMENT_UNKNOWN;
    return kind == MOMENT_UNKNOWN ? NULL : moment_word(kind, to);
}

enum code contract_show(const struct contract *contract, enum vocabulary to, const struct run_ids *ids,
                        const struct moment *moment, const struct seal *seal, struct arena *arena, struct json *out,
                        struct error *err)
{
    INVARIANT(contract);
    struct moment told;
    *out = (struct json){0};
    bool ok = to == VOCABULARY_NOETL ? noetl_shown(moment, arena, &told) : plainly(moment, arena, &told);
    bool doubt = false; // it is shown, not stored
    if (!ok) return error_nomem(err);
    if (told.kind == MOMENT_UNKNOWN || !moment_word(told.kind, to)) return OK;
    struct digest key = moment_key(to, ids, &told);
    return codec_of(to)->build(ids, &told, seal, &key, arena, out, &doubt, err);
}
