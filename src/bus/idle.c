// Sinks that another process carries: what their notes say of them, for readers of this process.
#include "bus/inside.h"

static enum code look_at(struct sink *sink, struct error *err)
{
    enum code rc = sink_cursor(sink, err);
    sink->page.next = sink->cursor.position;
    sink->page.count = sink->page.settled = sink->page.open = 0;
    if (!rc) rc = page_load(sink, err);
    if (!rc) rc = dead_load(&sink->dead, sink->store, sink->config.name, err);
    if (rc) return rc;
    if (sink->cursor.down[0]) sink_face_error(sink, sink->cursor.down);
    pthread_mutex_lock(&sink->mutex);
    sink->face.state = sink->cursor.disabled ? STATE_DISABLED : sink->cursor.down[0] ? STATE_DOWN : STATE_RUNNING;
    if (!sink->cursor.down[0]) sink->face.error[0] = '\0';
    if (!sink->cursor.down[0]) sink->face.error_ms = 0;
    pthread_mutex_unlock(&sink->mutex);
    sink_show(sink, true);
    return OK;
}

enum code bus_look(struct bus *bus, struct store *reader, struct error *err)
{
    enum code rc = OK;
    if (!bus->options.idle) return OK;
    LOCKED(&bus->look);
    for (size_t i = 0; !rc && i < bus->count; i++) {
        bus->sinks[i].store = reader;
        rc = look_at(&bus->sinks[i], err);
        bus->sinks[i].store = NULL;
    }
    return rc;
}
