// Polls for workflow tasks: of which queues, and how many at a time. What comes waits here as a letter until a thread of the host has
// time for it; the next poll of the queue is on its way meanwhile.
#include "temporal/inside.h"

#include <stdlib.h>
#include <string.h>

enum { LETTERS_MAX = 64, LETTER_BYTES_MAX = 64 << 20, PAUSE_MS = 1000 };

struct letter { // the answer to a poll
    struct letter *next;
    size_t size;
    char body[];
};

bool host_serves(const struct temporal_host *host, uint32_t shard)
{
    return shard == 0 ? host->serves_shardless : (host->shards >> (shard - 1) & 1) != 0;
}

static struct str post_queue(const struct post *post)
{
    return post->of_cache ? post->host->cache_queue : post->host->queues[post->shard];
}

static void on_polled(void *context, const struct grpc_answer *got)
{
    struct post *post = context;
    struct temporal_host *host = post->host;
    bool good = got->status == GRPC_OK;
    pthread_mutex_lock(&host->mutex);
    post->is_open = post->is_ending = false;
    struct letter *letter = good && got->body.len > 0 ? malloc(sizeof(*letter) + got->body.len) : NULL;
    if (letter) {
        letter->next = NULL;
        letter->size = got->body.len;
        memcpy(letter->body, got->body.ptr, got->body.len);
        *host->last_letter = letter;
        host->last_letter = &letter->next;
        host->letter_count++;
        host->letter_bytes += letter->size;
    }
    if (!good && got->status != GRPC_CANCELLED && !atomic_load(&host->is_shut)) {
        post->not_before = os_now().mono_ms + PAUSE_MS;
        os_log(LOG_WARN, "no tasks from Temporal queue=%.*s status=%s why=\"%.*s\"", STR_ARG(post_queue(post)),
               grpc_status_name(got->status), STR_ARG(got->message));
    }
    posts_look(host);
    pthread_mutex_unlock(&host->mutex);
    if (letter) pthread_cond_signal(&host->mailed); // who wakes by it needs the lock
}

static void poll(struct temporal_host *host, struct post *post)
{
    struct error err = {0};
    struct temporal_queue queue = {.name = post_queue(post), .kind = post->of_cache ? TEMPORAL_QUEUE_STICKY : TEMPORAL_QUEUE_NORMAL};
    struct temporal_poll request = {.namespace = temporal_settings_of(host->client)->namespace,
                                    .task_queue = &queue,
                                    .identity = temporal_identity(host->client)};
    struct temporal_call call = {.method = TEMPORAL_METHOD("PollWorkflowTaskQueue"),
                                 .in = &temporal_poll,
                                 .request = &request,
                                 .timeout_ms = TEMPORAL_POLL_MS,
                                 .retry = GRPC_POLL};
    post->is_open = temporal_send(host->client, &call, on_polled, post, &post->call, &err) == OK;
}

static bool has_room(const struct temporal_host *host)
{
    return host->letter_count < LETTERS_MAX && host->letter_bytes < LETTER_BYTES_MAX;
}

void posts_look(struct temporal_host *host)
{
    int64_t now = os_now().mono_ms;
    if (atomic_load(&host->is_shut) || !host->is_polling) return;
    for (size_t i = 0; i < ARRAY_COUNT(host->posts); i++) {
        struct post *post = &host->posts[i];
        bool serves = post->of_cache ? host->options.settings.cached_runs > 0 : host_serves(host, post->shard);
        if (!serves && post->is_open && !post->is_ending) {
            post->is_ending = true;
            temporal_cancel(host->client, post->call);
        }
        if (serves && !post->is_open && now >= post->not_before && has_room(host)) poll(host, post);
    }
}

enum code posts_init(struct temporal_host *host, struct error *err)
{
    host->last_letter = &host->letters;
    for (uint32_t i = 0; i <= SHARD_COUNT; i++) {
        host->queues[i] = temporal_runs_queue(host->base_queue, i, &host->arena);
        if (!host->queues[i].ptr) return error_nomem(err);
    }
    for (uint32_t i = 0; i < ARRAY_COUNT(host->posts); i++) {
        bool of_cache = i >= HOST_SHARDLESS_POLLS + SHARD_COUNT, shardless = i < HOST_SHARDLESS_POLLS;
        uint32_t shard = of_cache || shardless ? 0 : i - HOST_SHARDLESS_POLLS + 1;
        host->posts[i] = (struct post){.host = host, .of_cache = of_cache, .shard = shard};
    }
    host->value_queue = host->queues[0];
    char id[UUID_SIZE];
    entropy_uuid(os_entropy(), id);
    struct str identity = temporal_identity(host->client);
    host->cache_queue = arena_format(&host->arena, "%.*s:%s", STR_ARG(identity), id);
    return host->cache_queue.ptr ? OK : error_nomem(err);
}

void posts_free(struct temporal_host *host)
{
    while (host->letters) {
        struct letter *next = host->letters->next;
        free(host->letters);
        host->letters = next;
    }
    host->last_letter = &host->letters;
    host->letter_count = host->letter_bytes = 0;
}

static struct letter *take(struct temporal_host *host)
{
    LOCKED(&host->mutex);
    while (!host->letters && !atomic_load(&host->is_shut)) pthread_cond_wait(&host->mailed, &host->mutex);
    struct letter *letter = atomic_load(&host->is_shut) ? NULL : host->letters;
    if (!letter) return NULL;
    host->letters = letter->next;
    if (!host->letters) host->last_letter = &host->letters;
    host->letter_count--;
    host->letter_bytes -= letter->size;
    posts_look(host);
    return letter;
}

void *host_read(void *context)
{
    struct temporal_host *host = context;
    pthread_setname_np(pthread_self(), "cairn-tasks");
    for (struct letter *letter; (letter = take(host));) {
        struct arena arena SCOPED(arena_release) = arena_of(65536, HOST_HISTORY_ROOM);
        struct temporal_workflow_task task;
        struct error err = {0};
        enum code rc = proto_read(&temporal_workflow_task, (struct str){letter->body, letter->size}, &arena, &task, &err);
        if (rc) os_log(LOG_WARN, "a task of Temporal cannot be read why=\"%s\"", err.message); // it comes again when its time is over
        if (!rc && task.task_token.len > 0) host_task(host, &task, &arena);
        free(letter);
    }
    return NULL;
}

// ---- which runs are this host's

void temporal_host_serve(struct temporal_host *host, uint64_t shards, bool shardless)
{
    LOCKED(&host->mutex);
    if ((shards & ~host->shards) || (shardless && !host->serves_shardless)) {
        host->sweep_at = 0; // what those before left is looked after now
        pthread_cond_signal(&host->changed);
    }
    host->shards = shards;
    host->serves_shardless = shardless || host->keeps_shardless;
    for (size_t i = 0; i < HOST_TABLE; i++) // tasks came for some that the engine has not taken up yet
        for (struct hosted *run = host->table[i]; run; run = run->next)
            if (run->is_placed && !host_serves(host, run->shard) && !run->has_ended && !run->wanted) {
                run->has_left = true;
                hosted_touch(host, run);
            }
    posts_look(host);
}
