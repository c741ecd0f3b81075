// An event as a message: ids, headers, body. The same event gives the same message whenever it is sent, but for `missing`.
#include "bus/inside.h"

#include "view/trace.h"

#include <stdio.h>
#include <string.h>

// CloudEvents over HTTP: what is not visible ASCII is percent-encoded. It also makes every value one line.
static bool add_encoded(struct buf *out, struct str text, const char *also)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c > ' ' && c < 127 && c != '%' && !strchr(also, c))
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
    return buf_ok(out);
}

static struct str encoded(struct str text, const char *also, struct arena *arena)
{
    struct buf out SCOPED(buf_release) = buf_of(64 * 1024);
    struct str copy = {0};
    if (add_encoded(&out, text, also)) copy = arena_copy(arena, buf_str(&out));
    return copy;
}

bool message_header(struct message *message, const char *name, struct str value, struct arena *arena)
{
    if (value.len == 0) return true;
    if (message->header_count == HEADERS_MAX) return false;
    struct http_header *header = &message->headers[message->header_count++];
    header->name = str_from(name);
    header->value = encoded(value, "\"", arena);
    return header->value.ptr != NULL;
}

static struct str number_text(uint64_t number, struct arena *arena)
{
    char text[24];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return arena_copy(arena, (struct str){text + at, sizeof(text) - at});
}

// ---- what the record tells

static enum code read_record(const struct feed_item *item, struct arena *arena, struct message *out, struct error *err)
{
    struct moment moment;
    struct seal seal;
    struct run_ids ids = {0};
    enum code rc = contract_decode(item->vocabulary, item->record.bytes, arena, &moment, &seal, &ids, err);
    if (rc == E_NOMEM) return rc;
    if (rc) return E_SCHEMA;
    out->project = ids.project;
    out->environment = ids.environment;
    out->plan_id = ids.plan_id;
    out->plan_version = ids.plan_version;
    if (moment.step.len > 0) out->step = moment_step_id(&moment, arena);
    out->logical = moment.logical;
    out->engine = moment.engine;
    out->event_id = arena_copy(arena, str_from(seal.event_id));
    out->key = contract_parts(item->vocabulary, item->record.bytes).key;
    civil_format(moment.at_ms ? moment.at_ms : seal.persisted_ms, out->time);
    return out->event_id.ptr && (moment.step.len == 0 || out->step.ptr) ? OK : error_nomem(err);
}

// Node events and those of playbooks tell project and plan in the first event only.
static enum code read_head(struct store *store, struct arena *arena, struct message *out, struct error *err)
{
    struct run_head head;
    if (!store || (out->project.len && out->plan_id.len)) return OK;
    enum code rc = store_head(store, out->tenant, out->run, arena, &head, err);
    if (rc == E_NOT_FOUND) return OK;
    if (rc) return rc;
    out->project = head.ids.project;
    out->environment = head.ids.environment;
    out->plan_id = head.ids.plan_id;
    out->plan_version = head.ids.plan_version;
    return OK;
}

// Runs are identified by tenant and id, so an id that two tenants chose must not make one event look like the other's.
static bool make_id(struct message *message, uint32_t life, struct arena *arena)
{
    struct buf text = buf_of(4096);
    if (!str_is(message->tenant, "default")) buf_printf(&text, "%.*s/", STR_ARG(message->tenant));
    buf_printf(&text, "%.*s:%llu", STR_ARG(message->run), (unsigned long long)message->seq);
    if (life > 1) buf_printf(&text, "~%u", life);
    message->id = buf_keep(&text, arena);
    return message->id.ptr != NULL;
}

// ---- CloudEvents 1.0

static struct str ce_type(const struct message *message, struct arena *arena)
{
    struct buf text = buf_of(4096);
    if (message->vocabulary == VOCABULARY_NOETL)
        buf_printf(&text, "noetl.%.*s", STR_ARG(message->type));
    else
        buf_printf(&text, "cairn.%s.%.*s.v1", vocabulary_name(message->vocabulary), STR_ARG(message->type));
    return buf_keep(&text, arena);
}

static struct str ce_source(const struct message *message, struct arena *arena)
{
    struct buf text SCOPED(buf_release) = buf_of(8192);
    buf_text(&text, "/cairn/tenants/");
    bool good = add_encoded(&text, message->tenant, "/?#");
    if (message->project.len) {
        buf_text(&text, "/projects/");
        good = good && add_encoded(&text, message->project, "/?#");
        buf_text(&text, "/environments/");
        good = good && add_encoded(&text, message->environment, "/?#");
    }
    buf_text(&text, "/runs/");
    good = good && add_encoded(&text, message->run, "/?#");
    return good && buf_ok(&text) ? arena_copy(arena, buf_str(&text)) : (struct str){0};
}

struct attribute {
    const char *name; // with the prefix of headers
    struct str value;
};
#define CE_MAX 22
#define CE_PREFIX (sizeof("ce-") - 1)

static size_t ce_attributes(const struct message *m, struct arena *arena, struct attribute out[CE_MAX])
{
    char sequence[24];
    struct str number = number_text(m->seq, arena);
    snprintf(sequence, sizeof(sequence), "%020llu", (unsigned long long)m->seq);
    const struct attribute all[CE_MAX] = {
        {"ce-specversion", STR("1.0")},
        {"ce-id", m->event_id.len ? m->event_id : m->id},
        {"ce-source", ce_source(m, arena)},
        {"ce-type", ce_type(m, arena)},
        {"ce-subject", m->step},
        {"ce-time", arena_copy(arena, str_from(m->time))},
        {"ce-runid", m->run},
        {"ce-runseq", number},
        {"ce-sequence", arena_copy(arena, str_from(sequence))}, // orders as text
        {"ce-tenantid", m->tenant},
        {"ce-projectid", m->project},
        {"ce-environmentid", m->environment},
        {"ce-planid", m->plan_id},
        {"ce-planversion", m->plan_version},
        {"ce-logicalattempt", m->logical ? number_text(m->logical, arena) : (struct str){0}},
        {"ce-engineattempt", m->engine ? number_text(m->engine, arena) : (struct str){0}},
        {"ce-idempotencykey", m->key},
        {"ce-partitionkey", m->run},
        {"ce-traceparent", m->trace},
        {"ce-missing", m->missing ? number_text(m->missing, arena) : (struct str){0}},
    };
    memcpy(out, all, sizeof(all));
    return CE_MAX;
}

static enum code ce_headers(struct message *message, struct arena *arena, struct error *err)
{
    struct attribute list[CE_MAX];
    size_t count = ce_attributes(message, arena, list);
    for (size_t i = 0; i < count; i++)
        if (list[i].name && !message_header(message, list[i].name, list[i].value, arena)) return error_nomem(err);
    return OK;
}

static enum code ce_body(struct message *message, struct arena *arena, struct error *err)
{
    struct attribute list[CE_MAX];
    size_t count = ce_attributes(message, arena, list);
    struct json object = json_object(), data;
    bool good = json_parse(message->record, NULL, arena, &data, err) == OK;
    if (!good) return E_SCHEMA;
    for (size_t i = 0; good && i < count; i++)
        if (list[i].name && list[i].value.len)
            good = json_put(arena, &object, str_from(list[i].name + CE_PREFIX), json_string(list[i].value));
    good = good && json_put(arena, &object, STR("datacontenttype"), json_string(STR("application/json"))) &&
           json_put(arena, &object, STR("data"), data);
    struct buf text SCOPED(buf_release) = buf_of(4 * RECORD_SIZE_MAX);
    if (good) json_write(&text, &object);
    good = good && buf_ok(&text);
    if (good) message->body = arena_copy(arena, buf_str(&text));
    message->content_type = STR("application/cloudevents+json");
    return good && message->body.ptr ? OK : error_nomem(err);
}

// ---- all of it

static bool make_trace(struct message *message, struct arena *arena)
{
    char parent[TRACEPARENT_SIZE];
    trace_parent(message->run, message->step, message->logical, message->engine, parent);
    if (!message->step.len) {
        trace_run_span(message->run, parent + 3 + TRACE_ID_HEX + 1);
        parent[3 + TRACE_ID_HEX + 1 + SPAN_ID_HEX] = '-';
    }
    message->trace = arena_copy(arena, str_from(parent));
    return message->trace.ptr != NULL;
}

enum code message_make(const struct sink_config *config, struct store *store, const struct feed_item *item,
                       uint64_t missing, struct arena *arena, struct message *out, struct error *err)
{
    *out = (struct message){.vocabulary = item->vocabulary,
                            .tenant = item->tenant,
                            .run = item->run,
                            .type = item->record.type,
                            .seq = item->record.seq,
                            .record = item->record.bytes,
                            .body = item->record.bytes,
                            .missing = missing,
                            .content_type = STR("application/json")};
    enum code rc = read_record(item, arena, out, err);
    if (!rc) rc = read_head(store, arena, out, err);
    if (rc) return rc;
    if (!make_id(out, life_of(&config->lives, item->position), arena) || !make_trace(out, arena))
        return error_nomem(err);
    if (config->format == FORMAT_RECORD) return OK;
    return config->structured ? ce_body(out, arena, err) : ce_headers(out, arena, err);
}

// ---- subjects

static struct str subject_word(struct str word, const struct message *message)
{
    if (str_is(word, "tenant")) return message->tenant;
    if (str_is(word, "project")) return message->project;
    if (str_is(word, "environment")) return message->environment;
    if (str_is(word, "run")) return message->run;
    if (str_is(word, "plan")) return message->plan_id;
    if (str_is(word, "step")) return message->step;
    if (str_is(word, "vocabulary")) return str_from(vocabulary_name(message->vocabulary));
    return (struct str){0};
}

// Values cannot make tokens of their own: dots, wildcards and blanks are percent-encoded, and nothing is "_". Only the dots of a
// type count, which is how noetl.events.task.attempt.failed gets its five tokens.
static bool add_token(struct buf *out, struct str word, const struct message *message)
{
    if (str_is(word, "type")) return add_encoded(out, message->type, "*>");
    if (str_is(word, "seq")) {
        buf_printf(out, "%llu", (unsigned long long)message->seq);
        return buf_ok(out);
    }
    struct str value = subject_word(word, message);
    if (value.len == 0) buf_byte(out, '_');
    return add_encoded(out, value, ".*>");
}

struct str message_subject(struct str pattern, const struct message *message, struct arena *arena)
{
    struct buf out SCOPED(buf_release) = buf_of(4096);
    bool good = true;
    if (!pattern.len)
        pattern =
            message->vocabulary == VOCABULARY_NOETL ? STR("noetl.events.{type}") : STR("cairn.events.{tenant}.{type}");
    while (good && pattern.len) {
        size_t open = str_find(pattern, '{', 0), close = str_find(pattern, '}', open);
        buf_add(&out, str_slice(pattern, 0, open));
        if (close >= pattern.len) break;
        good = add_token(&out, str_slice(pattern, open + 1, close), message);
        pattern = str_slice(pattern, close + 1, pattern.len);
    }
    return good && buf_ok(&out) ? arena_copy(arena, buf_str(&out)) : (struct str){0};
}
