#include "bus/objects.h"

#include "base/base64.h"
#include "bus/nats.h"
#include "bus/object_wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define IDLE_MAX 4
#define AWAY_MS 1000
#define OBJECT_MAX ((uint64_t)64 << 20) // bytes of an object that is read
#define CACHE_MAX ((size_t)64 << 20)
#define BUCKET_WAIT_MS 20 // until a stream that was just made listens

enum { MISSING = 404, NAME_TAKEN = 10058, SUBJECTS_TAKEN = 10065 };

struct object_link { // a connection, and what is read over it
    struct object_link *next;
    struct nats_client client;
    struct arena arena;
    bool fresh;
};

struct cached {
    struct cached *next;
    struct digest sha256;
    size_t len;
    char bytes[];
};

struct objects {
    struct keep base;
    struct arena arena; // of the configuration
    struct sink_config config;
    pthread_mutex_t mutex; // of all below
    struct object_link *idle;
    size_t idle_count, cached_bytes;
    struct cached *cached; // used last, first
    int64_t away_until;
    char away[200];
};

// ---- what was put or read lately

static bool cache_get(struct objects *objects, const struct digest *sha256, struct arena *arena, struct str *out)
{
    LOCKED(&objects->mutex);
    struct cached **at = &objects->cached, *found = NULL;
    while (*at && !digest_eq(&(*at)->sha256, sha256)) at = &(*at)->next;
    if (*at) {
        found = *at;
        *at = found->next;
        found->next = objects->cached;
        objects->cached = found;
        *out = arena_copy(arena, (struct str){found->bytes, found->len});
    }
    return found && out->ptr;
}

static void cache_forget(struct objects *objects, const struct digest *sha256)
{
    LOCKED(&objects->mutex);
    for (struct cached **at = &objects->cached; *at; at = &(*at)->next) {
        struct cached *one = *at;
        if (!digest_eq(&one->sha256, sha256)) continue;
        *at = one->next;
        objects->cached_bytes -= one->len;
        free(one);
        break;
    }
}

static void cache_put(struct objects *objects, const struct digest *sha256, struct str bytes)
{
    if (bytes.len > CACHE_MAX) return;
    cache_forget(objects, sha256);
    struct cached *one = malloc(sizeof(*one) + bytes.len);
    if (!one) return; // it is fetched again
    *one = (struct cached){.sha256 = *sha256, .len = bytes.len};
    memcpy(one->bytes, bytes.ptr, bytes.len);
    LOCKED(&objects->mutex);
    one->next = objects->cached;
    objects->cached = one;
    objects->cached_bytes += one->len;
    while (objects->cached && objects->cached_bytes > CACHE_MAX) {
        struct cached **last = &objects->cached;
        while ((*last)->next) last = &(*last)->next;
        objects->cached_bytes -= (*last)->len;
        free(*last);
        *last = NULL;
    }
}

// ---- connections

static void line_free(struct object_link *line)
{
    if (!line) return;
    nats_hang_up(line->client.nats);
    arena_release(&line->arena);
    free(line);
}

static enum code line_dial(struct objects *objects, struct object_link **out, struct error *err)
{
    struct object_link *line = calloc(1, sizeof(*line));
    if (!line) return error_nomem(err);
    arena_init(&line->arena, 64 * 1024, (size_t)64 << 20);
    line->client.arena = &line->arena;
    line->fresh = true;
    struct nats_call call = {.url = objects->config.url,
                             .ca_file = objects->config.ca_file,
                             .timeout_ms = objects->config.timeout_ms,
                             .arena = &line->arena};
    enum code rc = nats_identify(&objects->config, &line->arena, &call.who, err);
    if (!rc) rc = nats_dial(&call, &line->client.nats, err);
    if (rc)
        line_free(line);
    else
        *out = line;
    return rc;
}

// One that is there, or a new one. A server that was just away is not waited for again.
static enum code line_take(struct objects *objects, struct object_link **out, struct error *err)
{
    *out = NULL;
    pthread_mutex_lock(&objects->mutex);
    struct object_link *line = objects->idle;
    bool away = mono_now() < objects->away_until;
    if (line) {
        objects->idle = line->next;
        objects->idle_count--;
    } else if (away) {
        (void)error_set(err, E_UNREACHABLE, "%s", objects->away);
    }
    pthread_mutex_unlock(&objects->mutex);
    if (!line && away) return E_UNREACHABLE;
    enum code rc = line ? OK : line_dial(objects, &line, err);
    if (rc) return rc;
    line->fresh = line->client.asked == 0;
    line->client.deadline = mono_now() + objects->config.timeout_ms;
    *out = line;
    return OK;
}

static void line_give(struct objects *objects, struct object_link *line)
{
    arena_reset(&line->arena);
    nats_compact(line->client.nats);
    pthread_mutex_lock(&objects->mutex);
    bool room = !line->client.broken && objects->idle_count < IDLE_MAX;
    if (room) {
        line->next = objects->idle;
        objects->idle = line;
        objects->idle_count++;
    }
    pthread_mutex_unlock(&objects->mutex);
    if (!room) line_free(line);
}

// ---- asking

// What JetStream says no with.
static enum code refused(const struct json *reply, struct error *err)
{
    struct str text = json_text(json_at(reply, STR("error.description")));
    int64_t code = nats_error_of(reply, "code");
    return error_set(err,
                     code == MISSING ? E_NOT_FOUND
                     : code == 503   ? E_UNREACHABLE
                                     : E_LIMIT,
                     "%.*s (%lld)", STR_ARG(str_slice(text, 0, 200)), (long long)nats_error_of(reply, "err_code"));
}

static enum code api(struct object_link *line, const char *verb, struct str bucket, struct str body, struct json *out,
                     struct error *err)
{
    char stream[OBJECT_SUBJECT], subject[OBJECT_SUBJECT + 64];
    bool none = false;
    object_stream(bucket, stream);
    snprintf(subject, sizeof(subject), "$JS.API.STREAM.%s.%s", verb, stream);
    enum code rc = nats_request(&line->client, subject, (struct str){0}, body, out, &none, err);
    if (!rc && none) rc = error_set(err, E_UNREACHABLE, "JetStream is not there");
    if (!rc && json_key(out, "error")) rc = refused(out, err);
    return rc;
}

static enum code make_bucket(struct object_link *line, struct str bucket, struct error *err)
{
    struct json reply;
    struct error why = {0};
    struct str config = object_config(bucket, &line->arena);
    if (!config.ptr) return error_nomem(err);
    enum code rc = api(line, "CREATE", bucket, config, &reply, &why);
    int64_t number = rc == E_LIMIT ? nats_error_of(&reply, "err_code") : 0;
    if (!rc || number == NAME_TAKEN || number == SUBJECTS_TAKEN) return OK; // another process is making it just now
    return error_set(err, rc, "%s", why.message);
}

// The first message at or above `seq` (0: the last one) of a subject. E_NOT_FOUND: none, or no such bucket.
static enum code fetch(struct object_link *line, struct str bucket, const char *subject, uint64_t seq, struct str *data,
                       uint64_t *at, struct error *err)
{
    struct json reply;
    struct str question = object_question(seq ? "next_by_subj" : "last_by_subj", subject, seq, &line->arena);
    enum code rc = question.ptr ? api(line, "MSG.GET", bucket, question, &reply, err) : error_nomem(err);
    if (rc) return rc;
    *at = (uint64_t)json_integer(json_at(&reply, STR("message.seq")), 0);
    *data = base64_read(json_text(json_at(&reply, STR("message.data"))), &line->arena);
    return data->ptr ? OK : error_set(err, E_CORRUPT, "a message of the object cannot be read");
}

// What the bucket says about an object. E_NOT_FOUND.
static enum code describe(struct object_link *line, struct str bucket, const struct digest *sha256,
                          struct object_meta *out, uint64_t *version, struct error *err)
{
    char subject[OBJECT_SUBJECT];
    struct str text;
    struct error why = {0};
    object_subject(bucket, sha256, subject);
    enum code rc = fetch(line, bucket, subject, 0, &text, version, &why);
    if (rc) return error_set(err, rc, "%s", rc == E_NOT_FOUND ? "there is no such object" : why.message);
    if (!object_described(text, &line->arena, out))
        return error_set(err, E_CORRUPT, "what the bucket says about the object cannot be read");
    return out->deleted ? error_set(err, E_NOT_FOUND, "the object was deleted") : OK;
}

// Messages of a subject with numbers below `before` (0: all) go.
static enum code purge(struct object_link *line, struct str bucket, const char *subject, uint64_t before,
                       struct error *err)
{
    struct json reply;
    struct str question = object_question("filter", subject, before, &line->arena);
    return question.ptr ? api(line, "PURGE", bucket, question, &reply, err) : error_nomem(err);
}

// ---- putting

static enum code stored(struct object_link *line, const char *reply, bool *none, struct error *err)
{
    struct json said;
    enum code rc = nats_answer(&line->client, reply, &said, none, err);
    if (rc || *none) return rc;
    if (json_key(&said, "error")) return refused(&said, err);
    return json_key(&said, "seq") ? OK : error_set(err, E_UNREACHABLE, "the answer is not one of JetStream");
}

// All are sent, then all answers are read: each is a few bytes.
static enum code put_chunks(struct object_link *line, struct str bucket, const char *nuid, struct str bytes,
                            uint64_t *count, bool *none, struct error *err)
{
    char subject[OBJECT_SUBJECT], reply[NATS_REPLY_SIZE];
    uint64_t max = line->client.nats->max_payload;
    size_t piece = max > 0 && max < OBJECT_CHUNK ? (size_t)max : OBJECT_CHUNK;
    object_chunks(bucket, str_from(nuid), subject);
    nats_reply_name(&line->client, reply);
    *count = 0;
    for (size_t at = 0; at < bytes.len; at += piece) {
        size_t end = bytes.len - at < piece ? bytes.len : at + piece;
        enum code rc = nats_publish(&line->client, subject, reply, (struct str){0}, str_slice(bytes, at, end), err);
        if (rc) return rc;
        ++*count;
    }
    for (uint64_t i = 0; i < *count; i++) {
        bool nobody = false;
        enum code rc = stored(line, reply, &nobody, err);
        if (rc) return rc;
        *none |= nobody;
    }
    return OK;
}

static enum code put_meta(struct object_link *line, struct str bucket, const struct digest *sha256,
                          const struct object_meta *meta, struct error *err)
{
    static const struct str rollup = {"NATS/1.0\r\nNats-Rollup: sub\r\n\r\n", 31};
    char subject[OBJECT_SUBJECT], reply[NATS_REPLY_SIZE], time[CIVIL_SIZE];
    bool none = false;
    civil_format(wall_now(), time);
    object_subject(bucket, sha256, subject);
    nats_reply_name(&line->client, reply);
    struct str text = object_describe(bucket, sha256, meta, time, &line->arena);
    enum code rc = text.ptr ? nats_publish(&line->client, subject, reply, rollup, text, err) : error_nomem(err);
    if (!rc) rc = stored(line, reply, &none, err);
    return !rc && none ? error_set(err, E_UNREACHABLE, "the bucket is not there") : rc;
}

static enum code put_once(struct object_link *line, struct str bucket, const struct digest *sha256, struct str bytes,
                          bool *none, struct error *err)
{
    unsigned char random[OBJECT_NUID];
    char nuid[OBJECT_NUID + 1], subject[OBJECT_SUBJECT];
    struct object_meta meta = {.size = bytes.len, .digest = *sha256};
    if (getrandom(random, sizeof(random), 0) != sizeof(random)) return error_set(err, E_NOMEM, "no random bytes");
    object_nuid(random, nuid);
    meta.nuid = str_from(nuid);
    *none = false;
    enum code rc = put_chunks(line, bucket, nuid, bytes, &meta.chunks, none, err);
    if (!rc && !*none) rc = put_meta(line, bucket, sha256, &meta, err);
    if (rc && !line->client.broken) { // what nobody refers to goes again
        object_chunks(bucket, meta.nuid, subject);
        (void)!purge(line, bucket, subject, 0, NULL);
    }
    return rc;
}

static enum code put_object(struct objects *objects, struct object_link *line, const struct digest *sha256,
                            struct str bytes, struct error *err)
{
    struct str bucket = objects->base.place;
    struct object_meta old = {0};
    char subject[OBJECT_SUBJECT];
    uint64_t version;
    bool none = false;
    struct error ignored = {0};
    bool replaces = describe(line, bucket, sha256, &old, &version, &ignored) == OK;
    if (line->client.broken) return error_set(err, E_UNREACHABLE, "%s", ignored.message);
    if (replaces) old.nuid = arena_copy(&line->arena, old.nuid);
    enum code rc = put_once(line, bucket, sha256, bytes, &none, err);
    if (!rc && none) rc = make_bucket(line, bucket, err);
    while (!rc && none) { // the server has it, and a moment later it also listens
        rc = put_once(line, bucket, sha256, bytes, &none, err);
        if (!none || rc) break;
        if (mono_now() >= line->client.deadline) return error_set(err, E_UNREACHABLE, "the bucket is not there");
        poll(NULL, 0, BUCKET_WAIT_MS);
    }
    if (rc || !replaces || !old.nuid.ptr) return rc;
    object_chunks(bucket, old.nuid, subject);
    (void)!purge(line, bucket, subject, 0, &ignored); // the object is whole without it
    return OK;
}

// ---- getting

static enum code get_chunks(struct object_link *line, struct str bucket, const struct object_meta *meta, char *out,
                            struct error *err)
{
    char subject[OBJECT_SUBJECT];
    uint64_t seq = 1, at = 0, done = 0;
    object_chunks(bucket, meta->nuid, subject);
    while (done < meta->size) {
        struct str data;
        struct error why = {0};
        enum code rc = fetch(line, bucket, subject, seq, &data, &at, &why);
        if (rc == E_NOT_FOUND) return error_set(err, E_CORRUPT, "the object is not whole");
        if (rc) return error_set(err, rc, "%s", why.message);
        if (data.len == 0 || data.len > meta->size - done)
            return error_set(err, E_CORRUPT, "the object is larger than it says");
        memcpy(out + done, data.ptr, data.len);
        done += data.len;
        seq = at + 1;
    }
    return OK;
}

static enum code get_once(struct object_link *line, struct str bucket, const struct digest *sha256, struct arena *arena,
                          struct str *out, struct error *err)
{
    struct object_meta meta;
    uint64_t version;
    enum code rc = describe(line, bucket, sha256, &meta, &version, err);
    if (rc) return rc;
    if (meta.size > OBJECT_MAX) return error_set(err, E_CORRUPT, "the object is too large to be one of ours");
    char *bytes = arena_alloc(arena, meta.size + 1);
    if (!bytes) return error_nomem(err);
    rc = get_chunks(line, bucket, &meta, bytes, err);
    if (rc) return rc;
    bytes[meta.size] = '\0';
    *out = (struct str){bytes, meta.size};
    struct digest found = sha256_parts(out, 1);
    if (digest_eq(&found, sha256) && digest_eq(&found, &meta.digest)) return OK;
    return error_set(err, E_CORRUPT, "the object does not have the digest that it was stored with");
}

// ---- the vtable

struct object_request {
    enum { JOB_PUT = 1, JOB_GET, JOB_LOOK, JOB_DROP } what;
    struct str place, bytes;
    const struct digest *sha256;
    struct arena *arena;
    struct str *out;
    uint64_t *version;
};

static enum code drop_object(struct object_link *line, const struct object_request *job, struct error *err)
{
    struct object_meta meta;
    char subject[OBJECT_SUBJECT], chunks[OBJECT_SUBJECT];
    uint64_t version;
    struct error why = {0};
    enum code rc = describe(line, job->place, job->sha256, &meta, &version, &why);
    if (rc == E_NOT_FOUND || (!rc && version != *job->version)) return OK;
    if (rc && rc != E_CORRUPT) return error_set(err, rc, "%s", why.message);
    object_subject(job->place, job->sha256, subject);
    if (!rc) object_chunks(job->place, meta.nuid, chunks);
    enum code gone = purge(line, job->place, subject, *job->version + 1, err);
    if (!gone && !rc) gone = purge(line, job->place, chunks, 0, err);
    return gone;
}

static enum code do_job(struct objects *objects, struct object_link *line, const struct object_request *job,
                        struct error *err)
{
    struct object_meta meta;
    enum code rc;
    switch (job->what) {
    case JOB_PUT:
        return put_object(objects, line, job->sha256, job->bytes, err);
    case JOB_LOOK:
        return describe(line, job->place, job->sha256, &meta, job->version, err);
    case JOB_DROP:
        return drop_object(line, job, err);
    case JOB_GET:
        break;
    }
    struct error why = {0};
    rc = get_once(line, job->place, job->sha256, job->arena, job->out, &why);
    // It may have been put anew while its chunks were read.
    if (rc == E_CORRUPT) return get_once(line, job->place, job->sha256, job->arena, job->out, err);
    return rc ? error_set(err, rc, "%s", why.message) : OK;
}

static enum code away(struct objects *objects, enum code rc, struct error *err)
{
    bool plain = rc == E_NOMEM || rc == E_NOT_FOUND || rc == E_CORRUPT || rc == E_LIMIT;
    if (plain) return rc;
    pthread_mutex_lock(&objects->mutex);
    if (mono_now() >= objects->away_until) objects->away_until = mono_now() + AWAY_MS;
    snprintf(objects->away, sizeof(objects->away), "%.190s", err->message);
    pthread_mutex_unlock(&objects->mutex);
    err->code = E_UNREACHABLE;
    return E_UNREACHABLE;
}

// A connection that was idle may be dead by now: everything here can be done twice.
static enum code with_line(struct objects *objects, const struct object_request *job, struct error *err)
{
    struct error why = {0};
    enum code rc = OK;
    for (bool again = true; again;) {
        struct object_link *line;
        why = (struct error){0};
        rc = line_take(objects, &line, &why);
        if (rc) break;
        rc = do_job(objects, line, job, &why);
        again = line->client.broken && !line->fresh && rc != E_NOMEM && rc != E_TIMEOUT;
        line_give(objects, line);
    }
    if (!rc) return OK;
    rc = away(objects, rc, &why);
    return error_set(err, rc, "%s", why.message);
}

static enum code objects_put(struct keep *keep, const struct digest *sha256, struct str bytes, struct error *err)
{
    struct objects *objects = (struct objects *)keep;
    struct object_request job = {.what = JOB_PUT, .sha256 = sha256, .bytes = bytes};
    enum code rc = with_line(objects, &job, err);
    if (!rc) cache_put(objects, sha256, bytes);
    return rc;
}

static bool objects_have(struct keep *keep, const struct digest *sha256, struct arena *arena, struct str *out)
{
    return cache_get((struct objects *)keep, sha256, arena, out);
}

static enum code objects_get(struct keep *keep, struct str place, const struct digest *sha256, struct arena *arena,
                             struct str *out, struct error *err)
{
    struct objects *objects = (struct objects *)keep;
    struct object_request job = {.what = JOB_GET, .place = place, .sha256 = sha256, .arena = arena, .out = out};
    if (cache_get(objects, sha256, arena, out)) return OK;
    enum code rc = with_line(objects, &job, err);
    if (!rc) cache_put(objects, sha256, *out);
    return rc;
}

static enum code objects_look(struct keep *keep, struct str place, const struct digest *sha256, uint64_t *version,
                              struct error *err)
{
    struct object_request job = {.what = JOB_LOOK, .place = place, .sha256 = sha256, .version = version};
    return with_line((struct objects *)keep, &job, err);
}

static enum code objects_drop(struct keep *keep, struct str place, const struct digest *sha256, uint64_t version,
                              struct error *err)
{
    struct object_request job = {.what = JOB_DROP, .place = place, .sha256 = sha256, .version = &version};
    cache_forget((struct objects *)keep, sha256);
    return with_line((struct objects *)keep, &job, err);
}

static void objects_close(struct keep *keep)
{
    struct objects *objects = (struct objects *)keep;
    while (objects->idle) {
        struct object_link *line = objects->idle;
        objects->idle = line->next;
        line_free(line);
    }
    while (objects->cached) {
        struct cached *one = objects->cached;
        objects->cached = one->next;
        free(one);
    }
    pthread_mutex_destroy(&objects->mutex);
    arena_release(&objects->arena);
    free(objects);
}

static const struct keep_ops objects_ops = {.name = "nats_object",
                                            .put = objects_put,
                                            .get = objects_get,
                                            .have = objects_have,
                                            .look = objects_look,
                                            .drop = objects_drop,
                                            .close = objects_close};

enum code objects_open(const struct json *config, struct keep **out, struct error *err)
{
    struct objects *objects = calloc(1, sizeof(*objects));
    struct json copy;
    if (!objects) return error_nomem(err);
    objects->base.ops = &objects_ops;
    arena_init(&objects->arena, 4096, (size_t)1 << 20);
    INVARIANT(pthread_mutex_init(&objects->mutex, NULL) == 0);
    enum code rc = json_copy(&objects->arena, config, &copy) ? OK : error_nomem(err);
    if (!rc) rc = results_parse(&copy, &objects->arena, &objects->config, &objects->base.place, err);
    if (rc) {
        objects_close(&objects->base);
        return rc;
    }
    *out = &objects->base;
    return OK;
}
