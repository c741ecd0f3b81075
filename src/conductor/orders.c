// The table of attempts: what the worker says of them, and whose turn it is.
#include "conductor/inside.h"

#include <stdlib.h>
#include <string.h>

static size_t bucket_of(struct str text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++) hash = (hash ^ (uint8_t)text.ptr[i]) * 16777619u;
    return hash % BUCKETS;
}

struct order *order_find(const struct conductor *host, struct str key)
{
    struct order *order = host->buckets[bucket_of(key)];
    while (order && !str_eq(order->key, key)) order = order->next;
    return order;
}

// A poll should bring it: not when it begins at once.
static bool is_expected(const struct conductor *host, const struct order *order)
{
    bool open = order->state == ORDER_NEW || order->state == ORDER_STARTED;
    return open && !order->gone && (order->external || !host->options.mirror);
}

void order_is(struct conductor *host, struct order *order, enum order_state state)
{
    host->expected -= is_expected(host, order);
    host->to_tell -= order->state == ORDER_OVER;
    order->state = state;
    host->expected += is_expected(host, order);
    host->to_tell += order->state == ORDER_OVER;
}

static void order_free(struct order *order)
{
    free(order->output);
    free(order->reason);
    free(order);
}

void order_drop(struct conductor *host, struct order *order)
{
    struct order **at = &host->buckets[bucket_of(order->key)];
    if (!order->gone) {
        host->expected -= is_expected(host, order);
        host->to_tell -= order->state == ORDER_OVER;
        order->gone = true;
        while (*at != order) at = &(*at)->next;
        *at = order->next;
        host->order_count--;
        struct order **slot = &host->by_slot[order->ticket & UINT32_MAX];
        if (*slot == order) *slot = NULL;
    }
    if (!order->busy && !order->queued) order_free(order);
}

void order_job(struct conductor *host, struct order *order)
{
    order->again = order->again || order->busy;
    if (order->busy || order->queued || order->gone) return;
    order->queued = true;
    order->job_next = NULL;
    *host->last_job = order;
    host->last_job = &order->job_next;
    pthread_cond_signal(&host->jobs_changed);
}

struct order *job_take(struct conductor *host)
{
    LOCKED(&host->mutex);
    for (;;) {
        while (!host->jobs && !host->stopping)
            os_wait_until(&host->jobs_changed, &host->mutex, os_now().mono_ms + 1000);
        if (host->stopping) return NULL;
        struct order *order = host->jobs;
        host->jobs = order->job_next;
        if (!host->jobs) host->last_job = &host->jobs;
        order->queued = false;
        if (!order->gone) {
            order->busy = true;
            return order;
        }
        order_free(order);
    }
}

void job_done(struct conductor *host, struct order *order)
{
    order->busy = false;
    if (order->gone) {
        order_free(order);
    } else if (order->again) {
        order->again = false;
        order_job(host, order);
    }
}

static struct str put(char **at, struct str text)
{
    struct str copy = {*at, text.len};
    if (text.len) memcpy(*at, text.ptr, text.len);
    *at += text.len;
    *(*at)++ = '\0';
    return copy;
}

static struct str type_of(const struct conductor *host, struct str kind)
{
    for (size_t i = 0; i < host->options.type_count; i++)
        if (str_eq(host->options.types[i].kind, kind)) return host->options.types[i].type;
    return (struct str){0};
}

static struct order *order_new(const struct conductor *host, uint64_t ticket, const struct tool_request *request,
                               struct str key)
{
    struct str type = type_of(host, request->kind), input = type.len ? request->input : (struct str){0};
    size_t size = key.len + request->tenant.len + request->run.len + request->step.len + request->kind.len + type.len +
                  input.len + 7;
    struct order *order = malloc(sizeof(*order) + size);
    if (!order) return NULL;
    *order = (struct order){.state = ORDER_NEW,
                            .ticket = ticket,
                            .logical = request->logical,
                            .engine = request->engine,
                            .timeout_ms = request->timeout_ms,
                            .external = type.len > 0};
    order->since_ms = os_now().mono_ms;
    char *at = order->text;
    order->key = put(&at, key);
    order->tenant = put(&at, request->tenant);
    order->run = put(&at, request->run);
    order->step = put(&at, request->step);
    order->kind = put(&at, request->kind);
    order->type = put(&at, type);
    order->input = put(&at, input);
    return order;
}

bool host_taken(void *context, uint64_t ticket, const struct remote_task *task)
{
    struct conductor *host = context;
    const struct tool_request *request = &task->request;
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 1024, 1 << 16);
    struct str key =
        carried_key(&arena, request->tenant, request->run, request->step, request->logical, request->engine);
    struct order *order = key.ptr ? order_new(host, ticket, request, key) : NULL;
    if (!order) return false;
    LOCKED(&host->mutex);
    struct order *old =
        order_find(host, key); // the same attempt once more: a server that was started anew; the old one is stale
    if (old) order_drop(host, old);
    struct order **bucket = &host->buckets[bucket_of(key)];
    order->next = *bucket;
    *bucket = order;
    host->by_slot[ticket & UINT32_MAX] = order;
    host->order_count++;
    host->expected += is_expected(host, order);
    host_heard(host, order->tenant, order->run);
    order_job(host, order);
    pthread_cond_broadcast(&host->expects);
    return true;
}

// A copy of its beginning; NULL: there is nothing, or no memory.
static char *kept(struct str text, size_t max, size_t *len)
{
    if (text.len > max) text.len = max;
    while (text.len > 0 && !str_utf8(text)) text.len--;
    char *copy = text.len ? malloc(text.len + 1) : NULL;
    *len = copy ? text.len : 0;
    if (!copy) return NULL;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static enum ending ending_of(const struct tool_result *result, enum remote_state state)
{
    if (state != REMOTE_OK) return ENDING_STALE;
    if (result->lost) return ENDING_LOST;
    if (result->ok) return ENDING_OK;
    return str_is(result->fault.code, "CANCELLED") ? ENDING_CANCELLED : ENDING_FAILED;
}

void host_over(void *context, uint64_t ticket, const struct tool_result *result, enum remote_state state)
{
    struct conductor *host = context;
    struct digest hash = sha256(result->output);
    LOCKED(&host->mutex);
    struct order *order = host->by_slot[ticket & UINT32_MAX];
    if (!order || order->ticket != ticket) return;
    host->by_slot[ticket & UINT32_MAX] = NULL; // the slot is another's from here on
    order->ending = ending_of(result, state);
    order->duration_ms = result->duration_ms;
    order->output_size = result->output_size ? result->output_size : result->output.len;
    order->output_hash = hash;
    if (result->ok && result->output.len <= host->options.inline_max)
        order->output = kept(result->output, CONDUCTOR_INLINE_MAX, &order->output_len);
    if (order->ending == ENDING_FAILED) {
        struct buf why SCOPED(buf_release) = buf_of(4096);
        buf_printf(&why, "%.*s: %.*s", STR_ARG(result->fault.code), STR_ARG(result->fault.message));
        size_t ignored;
        order->reason = kept(buf_str(&why), REASON_MAX, &ignored);
    }
    host_heard(host, order->tenant, order->run);
    bool unknown = order->state == ORDER_NEW && !order->busy && !order->workflow[0];
    order_is(host, order, ORDER_OVER);
    if (unknown && !order->asked)
        order_drop(host, order); // Conductor never heard of it
    else
        order_job(host, order);
}
