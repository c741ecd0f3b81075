// The table of sinks and their threads.
#include "bus/inside.h"

#include "os/os.h"

#include <signal.h>
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
    sigset_t all, before;
    sigfillset(&all); // signals, and SIGPIPE above all, are for the threads that want them
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&sink->thread, NULL, sink_main, sink);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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

// ---- what readers are told

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

struct object {
    struct arena *arena;
    struct json value;
    bool ok;
};

static void add(struct object *object, const char *key, struct json value)
{
    object->ok = object->ok && json_put(object->arena, &object->value, str_from(key), value);
}

static void add_text(struct object *object, const char *key, const char *text)
{
    struct str copy = arena_copy(object->arena, str_from(text));
    object->ok = object->ok && copy.ptr;
    if (copy.len) add(object, key, json_string(copy));
}

static void add_time(struct object *object, const char *key, int64_t ms)
{
    char text[CIVIL_SIZE];
    civil_format(ms, text);
    if (ms) add_text(object, key, text);
}

static bool face_json(struct sink *sink, struct arena *arena, struct json *out)
{
    pthread_mutex_lock(&sink->mutex);
    struct sink_face face = sink->face;
    pthread_mutex_unlock(&sink->mutex);
    struct object object = {.arena = arena, .value = json_object(), .ok = true};
    struct str name = arena_copy(arena, sink->config.name);
    add(&object, "name", json_string(name));
    add_text(&object, "type", type_name(sink->config.type));
    add_text(&object, "state", state_name(face.state));
    add_text(&object, "circuit", circuit_name(face.state));
    add(&object, "position", json_int((int64_t)face.position));
    add(&object, "end", json_int((int64_t)face.end));
    add(&object, "waiting", json_int((int64_t)face.waiting));
    add(&object, "lagMs", json_int(face.lag_ms));
    add(&object, "delivered", json_int((int64_t)face.delivered));
    add(&object, "duplicates", json_int((int64_t)face.duplicates));
    add(&object, "deadLetters", json_int((int64_t)face.dead));
    add(&object, "attempts", json_int(face.attempts));
    add_time(&object, "nextTryAt", face.next_ms);
    add_time(&object, "lastDeliveredAt", face.delivered_ms);
    add_time(&object, "lastErrorAt", face.error_ms);
    add_text(&object, "lastError", face.error);
    *out = object.value;
    return object.ok && name.ptr;
}

enum code bus_list(struct bus *bus, struct arena *arena, struct json *out, struct error *err)
{
    *out = json_array();
    for (size_t i = 0; i < bus->count; i++) {
        struct json one;
        if (!face_json(&bus->sinks[i], arena, &one) || !json_push(arena, out, one)) return error_nomem(err);
    }
    return OK;
}
