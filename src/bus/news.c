// Alerts as messages: when one is raised and when it ends, each sink that carries its tenant gets a message. What is to be sent is a note
// for each sink, stored with the alert and removed when the sink has acknowledged it; so it survives everything that an event does.
#include "bus/inside.h"

#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define RAISED "AlertRaised"
#define ENDED "AlertEnded"
enum { AGAIN_NEWS_MS = 30000, LOOK_NEWS_MS = 5000 };

// Alerts of no tenant are of the installation: a sink of some tenants does not carry them.
static bool is_wanted(const struct sink_config *config, struct str tenant, const char *type)
{
    if (config->no_alerts || (tenant.len == 0 && config->tenants)) return false;
    return (tenant.len == 0 || sink_carries(config, tenant)) && sink_wants(config, str_from(type));
}

size_t bus_alert(struct bus *bus, const struct bus_alert *alert, struct arena *arena, struct note_put *out, size_t max)
{
    const char *type = alert->open ? RAISED : ENDED;
    size_t count = 0;
    char id[64];
    snprintf(id, sizeof(id), "alert:%.*s:%u:%s", STR_ARG(alert->id), alert->count, alert->open ? "open" : "closed");
    struct json value = JSON_OF(arena, {"alert", json_ref(alert->alert)}, {"at", json_time(arena, alert->at_ms)},
                                {"eventType", json_string(str_from(type))}, {"id", json_copied(arena, str_from(id))});
    struct buf text = buf_of(64 * 1024);
    json_canon(&text, &value);
    struct str body = buf_keep(&text, arena);
    for (size_t i = 0; body.ptr && i < bus->count && count < max; i++) {
        const struct sink_config *config = &bus->sinks[i].config;
        if (!is_wanted(config, alert->tenant, type)) continue;
        // The end of an alert stands behind its beginning, also within a millisecond.
        struct str key = arena_format(arena, "%.*s/%015lld.%d.%s", STR_ARG(config->name), (long long)alert->at_ms,
                                      alert->open ? 0 : 1, id);
        if (key.ptr)
            out[count++] = (struct note_put){.space = NEWS_SPACE, .key = key, .value = body, .expect = NOTE_ANY};
    }
    return count;
}

void bus_news(struct bus *bus)
{
    for (size_t i = 0; !bus->options.idle && i < bus->count; i++) {
        atomic_store(&bus->sinks[i].news, true);
        sink_poke(&bus->sinks[i]);
    }
}

bool news_due(struct sink *sink)
{
    if (atomic_exchange(&sink->news, false)) sink->news_due = 0;
    return !sink->receipt && mono_now() >= sink->news_due;
}

void news_later(struct sink *sink)
{
    sink->page.count = sink->page.settled = sink->page.open = 0;
    sink->page.news = sink->page.letters = false;
    sink->page.next = sink->cursor.position;
    sink->news_due = mono_now() + AGAIN_NEWS_MS;
}

static void add_slot(struct page *page, const struct note *note)
{
    struct json value;
    struct error err = {0};
    struct page_slot *slot = &page->slots[page->count++];
    *slot = (struct page_slot){.state = SLOT_WAITING, .note = note->key};
    slot->item.record.bytes = note->value;
    if (json_parse(note->value, NULL, &page->arena, &value, &err)) {
        slot->state = SLOT_SETTLED; // nobody can read it
        return;
    }
    const struct json *alert = json_key(&value, "alert");
    slot->item.record.type = json_text(json_key(&value, "eventType"));
    slot->item.tenant = json_text(json_key(alert, "tenantId"));
    slot->item.run = json_text(json_key(alert, "runId"));
    slot->event_id = json_text(json_key(&value, "id"));
    page->open++;
}

enum code page_load_news(struct sink *sink, struct error *err)
{
    struct page *page = &sink->page;
    char first[BUS_SINK_NAME_MAX + 2];
    snprintf(first, sizeof(first), "%.*s/", STR_ARG(sink->config.name));
    struct notes notes;
    enum code rc = page_begin(page, true, err);
    if (!rc) rc = store_notes(sink->store, NEWS_SPACE, str_from(first), PAGE_MAX, &page->arena, &notes, err);
    if (rc) return rc;
    for (size_t i = 0; i < notes.count && str_starts(notes.items[i].key, str_from(first)); i++)
        add_slot(page, &notes.items[i]);
    page->news = page->count > 0;
    page->letters = page->news;
    sink->news_due = page->news ? 0 : mono_now() + LOOK_NEWS_MS; // another engine may write some
    return page->news ? page_link(page, err) : OK;
}

static struct str source_of(const struct message *m, struct arena *arena)
{
    if (m->tenant.len == 0) return STR("/cairn/alerts");
    return arena_format(arena, "/cairn/tenants/%.*s/alerts", STR_ARG(m->tenant));
}

enum code message_alert(const struct sink_config *config, const struct page_slot *slot, struct arena *arena,
                        struct message *out, struct error *err)
{
    struct json value;
    if (json_parse(slot->item.record.bytes, NULL, arena, &value, err)) return E_SCHEMA;
    const struct json *alert = json_key(&value, "alert");
    *out = (struct message){.vocabulary = VOCABULARY_RUN,
                            .id = slot->event_id,
                            .event_id = slot->event_id,
                            .key = slot->event_id,
                            .tenant = slot->item.tenant,
                            .run = slot->item.run,
                            .step = json_text(json_key(alert, "stepId")),
                            .type = slot->item.record.type,
                            .record = slot->item.record.bytes,
                            .body = slot->item.record.bytes,
                            .content_type = STR("application/json")};
    snprintf(out->time, sizeof(out->time), "%.*s", STR_ARG(json_text(json_key(&value, "at"))));
    if (config->format == FORMAT_RECORD) return OK;
    struct str type = arena_format(arena, "cairn.alert.%.*s.v1", STR_ARG(out->type)), source = source_of(out, arena);
    if (!type.ptr || !source.ptr) return error_nomem(err);
    struct str name = json_text(json_key(alert, "name"));
    if (!config->structured) {
        bool good = message_header(out, "ce-specversion", STR("1.0"), arena) &&
                    message_header(out, "ce-id", out->id, arena) && message_header(out, "ce-source", source, arena) &&
                    message_header(out, "ce-type", type, arena) && message_header(out, "ce-subject", name, arena) &&
                    message_header(out, "ce-time", str_from(out->time), arena) &&
                    message_header(out, "ce-tenantid", out->tenant, arena) &&
                    message_header(out, "ce-runid", out->run, arena);
        return good ? OK : error_nomem(err);
    }
    struct json body = JSON_OF(arena, {"specversion", json_string(STR("1.0"))}, {"id", json_string(out->id)},
                               {"source", json_string(source)}, {"type", json_string(type)}, {"subject", json_string(name)},
                               {"time", json_copied(arena, str_from(out->time))}, {"tenantid", json_some(out->tenant)},
                               {"runid", json_some(out->run)}, {"datacontenttype", json_string(STR("application/json"))},
                               {"data", value});
    struct buf text = buf_of(256 * 1024);
    json_write(&text, &body);
    out->body = buf_keep(&text, arena);
    out->content_type = STR("application/cloudevents+json");
    return out->body.ptr ? OK : error_nomem(err);
}
