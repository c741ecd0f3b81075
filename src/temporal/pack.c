// What an attempt needs at its worker and no message of Temporal carries is brought to the server before the attempt is sent: inputs that
// are too long, and the files of the run's artifacts directory. Threads of their own do so: it takes calls, and the engine does not wait.
#include "temporal/inside.h"

#include "temporal/parcel.h"

#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000 };

struct packing { // a copy of an attempt, while the lock is open
    struct str workflow, input, dir;
    uint64_t ticket;
    struct arena arena;
};

// With the lock: the next one, marked. *at: when there may be one.
static struct wanted *next_unpacked(struct temporal_host *host, int64_t now, struct hosted **of, int64_t *at)
{
    *at = now + AGAIN_MS;
    for (size_t i = 0; host->unpacked > 0 && i < HOST_TABLE; i++)
        for (struct hosted *run = host->table[i]; run; run = run->next)
            for (struct wanted *wanted = run->wanted; wanted; wanted = wanted->next) {
                if (wanted->is_packed || wanted->is_packing || wanted->is_sent || wanted->is_cancelled) continue;
                if (wanted->pack_at > now) {
                    if (wanted->pack_at < *at) *at = wanted->pack_at;
                    continue;
                }
                wanted->is_packing = true;
                *of = run;
                return wanted;
            }
    return NULL;
}

static bool copy(struct packing *packing, const struct hosted *run, const struct wanted *wanted)
{
    packing->arena = arena_of(65536, (size_t)3 * TEMPORAL_LARGE_MAX);
    packing->ticket = wanted->ticket;
    packing->workflow = arena_copy(&packing->arena, run->id);
    packing->input = arena_copy(&packing->arena, wanted->input);
    packing->dir = arena_copy(&packing->arena, wanted->artifacts_dir);
    return packing->workflow.ptr && packing->input.ptr && packing->dir.ptr;
}

// The task with the files of its run as one more member.
static enum code add_files(struct temporal_host *host, struct packing *packing, struct error *err)
{
    struct buf json = buf_of(TEMPORAL_LARGE_MAX);
    size_t count = 0;
    INVARIANT(packing->input.len > 2 && packing->input.ptr[packing->input.len - 1] == '}');
    buf_add(&json, str_slice(packing->input, 0, packing->input.len - 1));
    buf_text(&json, ",\"files\":");
    enum code rc = parcel_pack(host->client, packing->workflow, packing->dir.ptr, NULL, &json, &count, err);
    buf_byte(&json, '}');
    struct str kept = buf_keep(&json, &packing->arena);
    if (!rc && !kept.ptr) rc = error_nomem(err);
    if (!rc && count > 0) packing->input = kept;
    return rc;
}

static enum code pack(struct temporal_host *host, struct packing *packing, struct error *err)
{
    struct str sent = {0};
    enum code rc = packing->dir.len > 0 ? add_files(host, packing, err) : OK;
    if (!rc) rc = temporal_text_put(host->client, packing->workflow, packing->input, &packing->arena, &sent, err);
    packing->input = sent;
    return rc;
}

// With the lock.
static void packed(struct temporal_host *host, struct packing *packing, enum code rc, const struct error *why)
{
    struct hosted *run = hosted_find(host, packing->workflow);
    struct wanted *wanted = run ? wanted_find(run, packing->ticket) : NULL;
    char *text = rc == OK ? malloc(packing->input.len + 1) : NULL;
    if (wanted && text) {
        memcpy(text, packing->input.ptr, packing->input.len);
        wanted->packed = text;
        wanted->input = (struct str){text, packing->input.len};
        wanted->is_packed = true;
        host->unpacked--;
        hosted_touch(host, run);
        hosted_flush(host);
        return;
    }
    free(text);
    if (wanted && rc == E_LIMIT) {
        struct tool_result result = fault_of("PAYLOAD_TOO_LARGE", str_from(why->message), "validation", false);
        wanted_end(host, run, wanted, &result);
        hosted_flush(host);
    } else if (wanted) {
        wanted->is_packing = false;
        wanted->pack_at = os_now().mono_ms + AGAIN_MS;
        if (!atomic_load(&host->is_shut))
            os_log(LOG_WARN, "what a step needs cannot be brought to Temporal run=%.*s why=\"%s\"", STR_ARG(run->run), why->message);
    }
}

void *host_pack(void *context)
{
    struct temporal_host *host = context;
    pthread_setname_np(pthread_self(), "cairn-pack");
    pthread_mutex_lock(&host->mutex);
    while (!atomic_load(&host->is_shut)) {
        struct hosted *run = NULL;
        int64_t at;
        struct wanted *wanted = next_unpacked(host, os_now().mono_ms, &run, &at);
        if (!wanted) {
            os_wait_until(&host->pack, &host->mutex, at);
            continue;
        }
        struct packing packing;
        struct error err = {0};
        enum code rc = copy(&packing, run, wanted) ? OK : E_NOMEM;
        if (!rc) {
            pthread_mutex_unlock(&host->mutex);
            rc = pack(host, &packing, &err);
            pthread_mutex_lock(&host->mutex);
            packed(host, &packing, rc, &err);
        } else {
            wanted->is_packing = false;
            wanted->pack_at = os_now().mono_ms + AGAIN_MS;
        }
        arena_release(&packing.arena);
    }
    pthread_mutex_unlock(&host->mutex);
    return NULL;
}
