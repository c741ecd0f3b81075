// The table of sinks and their threads.
#include "bus/inside.h"

#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct transport *transport_of(enum sink_type type)
{
    switch (type) {
    case SINK_WEBHOOK:
        return &webhook_transport;
    case SINK_NATS:
        return &nats_transport;
    case SINK_FILE:
    case SINK_STDOUT:
        break;
    }
    return &file_transport;
}

struct sink *bus_find(struct bus *bus, struct str name)
{
    for (size_t i = 0; i < bus->count; i++)
        if (str_eq(bus->sinks[i].config.name, name)) return &bus->sinks[i];
    return NULL;
}

static enum code sink_init(struct sink *sink, struct bus *bus, const struct sink_config *config, struct error *err)
{
    sink->bus = bus;
    sink->config = *config;
    sink->transport = transport_of(config->type);
    sink->face.state = STATE_STARTING;
    sink->random = str_hash(config->name) ^ (uint64_t)os_mono_us() ^ ((uint64_t)getpid() << 32);
    arena_init(&sink->scratch, 64 * 1024, SIZE_MAX);
    arena_init(&sink->loading, 16 * 1024, SIZE_MAX);
    arena_init(&sink->page.arena, 256 * 1024, SIZE_MAX);
    pthread_mutex_init(&sink->mutex, NULL);
    sink->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return sink->wake < 0 ? os_errno(err, "make", "an event descriptor") : OK;
}

static void sink_release(struct sink *sink)
{
    if (sink->wake >= 0) close(sink->wake);
    pthread_mutex_destroy(&sink->mutex);
    arena_release(&sink->scratch);
    arena_release(&sink->loading);
    arena_release(&sink->page.arena);
    dead_release(&sink->dead);
}

static enum code sink_start(struct sink *sink, struct error *err)
{
    int failed = os_thread(&sink->thread, NULL, sink_main, sink);
    return failed ? error_set(err, E_LIMIT, "cannot start a thread: %s", strerror(failed)) : OK;
}

static enum code make_sinks(struct bus *bus, struct error *err)
{
    struct sink_config *configs;
    struct json *copy = ARENA_NEW(&bus->arena, struct json);
    size_t count = 0;
    if (!copy) return error_nomem(err);
    *copy = json_array();
    if (bus->options.sinks && !json_copy(&bus->arena, bus->options.sinks, copy)) return error_nomem(err);
    enum code rc = config_parse(copy, bus->options.fetch, &bus->arena, &configs, &count, err);
    if (rc) return rc;
    bus->sinks = ARENA_ARRAY(&bus->arena, count + 1, struct sink);
    if (!bus->sinks) return error_nomem(err);
    for (size_t i = 0; !rc && i < count; i++) {
        rc = sink_init(&bus->sinks[i], bus, &configs[i], err);
        bus->count++;
    }
    // The table is whole before anybody looks at it.
    for (size_t i = 0; !rc && i < count && !bus->options.idle; i++) {
        rc = sink_start(&bus->sinks[i], err);
        bus->sinks[i].started = rc == OK;
    }
    return rc;
}

enum code bus_open(const struct bus_options *options, struct bus **out, struct error *err)
{
    struct bus *bus = calloc(1, sizeof(*bus));
    *out = NULL;
    if (!bus) return error_nomem(err);
    bus->options = *options; // but for the configuration, which is copied
    arena_init(&bus->arena, 64 * 1024, SIZE_MAX);
    pthread_mutex_init(&bus->look, NULL);
    bus->gate = gate_make();
    enum code rc = bus->gate ? make_sinks(bus, err) : error_nomem(err);
    if (rc) {
        bus_close(bus);
        return rc;
    }
    *out = bus;
    return OK;
}

size_t bus_sinks(const struct bus *bus)
{
    return bus->count;
}

void bus_moved(struct bus *bus)
{
    if (bus->options.idle) return;
    for (size_t i = 0; i < bus->count; i++) sink_poke(&bus->sinks[i]);
}

void bus_close(struct bus *bus)
{
    if (!bus) return;
    for (size_t i = 0; i < bus->count; i++) {
        atomic_store(&bus->sinks[i].stopping, true);
        sink_poke(&bus->sinks[i]);
    }
    for (size_t i = 0; i < bus->count; i++)
        if (bus->sinks[i].started) pthread_join(bus->sinks[i].thread, NULL);
    if (bus->gate) {
        pthread_mutex_lock(&bus->gate->mutex);
        bus->gate->closed = true;
        pthread_mutex_unlock(&bus->gate->mutex);
        gate_leave(bus->gate);
    }
    for (size_t i = 0; i < bus->count; i++) sink_release(&bus->sinks[i]);
    arena_release(&bus->arena);
    pthread_mutex_destroy(&bus->look);
    free(bus);
}

// ---- what readers get

static const char *type_name(enum sink_type type)
{
    static const char *const names[] = {"", "file", "stdout", "webhook", "nats"};
    return names[type];
}

static const char *state_name(enum sink_state state)
{
    static const char *const names[] = {"", "starting", "running", "down", "probing", "disabled", "stopped"};
    return names[state];
}

static const char *circuit_name(enum sink_state state)
{
    return state == STATE_DOWN || state == STATE_DISABLED ? "open" : state == STATE_PROBING ? "half-open" : "closed";
}

static struct json face_json(struct sink *sink, bool whole, struct arena *arena)
{
    pthread_mutex_lock(&sink->mutex);
    struct sink_face face = sink->face;
    pthread_mutex_unlock(&sink->mutex);
    if (!whole)
        return JSON_OF(arena, {"name", json_copied(arena, sink->config.name)},
                       {"type", json_name(type_name(sink->config.type))}, {"state", json_name(state_name(face.state))},
                       {"circuit", json_word(circuit_name(face.state))});
    return JSON_OF(arena, {"name", json_copied(arena, sink->config.name)},
                   {"type", json_name(type_name(sink->config.type))}, {"state", json_name(state_name(face.state))},
                   {"circuit", json_word(circuit_name(face.state))}, {"position", json_count(face.position)},
                   {"end", json_count(face.end)}, {"waiting", json_count(face.waiting)},
                   {"lagMs", json_int(face.lag_ms)}, {"delivered", json_count(face.delivered)},
                   {"duplicates", json_count(face.duplicates)}, {"deadLetters", json_count(face.dead)},
                   {"attempts", json_int(face.attempts)}, {"nextTryAt", json_time_some(arena, face.next_ms)},
                   {"lastDeliveredAt", json_time_some(arena, face.delivered_ms)},
                   {"lastErrorAt", json_time_some(arena, face.error_ms)},
                   {"lastError", json_copied_some(arena, str_from(face.error))});
}

enum code bus_list(struct bus *bus, struct str tenant, bool whole, struct arena *arena, struct json *out,
                   struct error *err)
{
    *out = json_array();
    for (size_t i = 0; i < bus->count; i++)
        if (sink_carries(&bus->sinks[i].config, tenant))
            json_append(arena, out, face_json(&bus->sinks[i], whole, arena));
    return json_made(out, err);
}
