#include "grpc/inside.h"

#include "grpc/h2.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    KEEPALIVE_MS = 30000,
    ANSWER_MAX = 128 << 20,
    REQUEST_MAX = 64 << 20,
    TEXT_MAX = 16 << 10,
    CONNECT_FIRST_MS = 200,
    CONNECT_MOST_MS = 10000,
    TOKEN_MAX = 64 << 10,
    CONNS_MAX = 32 // that are looked at in one wait; more drain a little later
};

int64_t grpc_now(void)
{
    return os_now().mono_ms;
}

void grpc_wake(struct grpc *grpc)
{
    uint64_t one = 1;
    while (write(grpc->wake, &one, sizeof(one)) < 0 && errno == EINTR) continue;
}

// ---- tries

// Between half and all of it, so that many clients do not come back together.
static int64_t jitter(struct grpc *grpc, int64_t ms)
{
    grpc->random = grpc->random * 6364136223846793005u + 1442695040888963407u;
    return ms / 2 + (int64_t)((grpc->random >> 33) % (uint64_t)(ms / 2 + 1));
}

static int64_t grown(int64_t first, int64_t most, unsigned times)
{
    for (; times > 0 && first < most; times--) first *= 2;
    return first < most ? first : most;
}

static int64_t pause_before(struct grpc *grpc, struct rpc *call)
{
    if (call->status == GRPC_RESOURCE_EXHAUSTED) return jitter(grpc, grown(1000, 10000, call->throttled++));
    if (call->status == GRPC_DEADLINE_EXCEEDED) return 0; // of a long poll: nothing was there
    return jitter(grpc, call->retry == GRPC_POLL ? grown(200, 10000, call->tries - 1) : grown(100, 5000, call->tries - 1));
}

static void unlink_call(struct grpc *grpc, struct rpc *call)
{
    for (struct rpc **at = &grpc->calls; *at; at = &(*at)->next)
        if (*at == call) {
            *at = call->next;
            return;
        }
}

static void call_free(struct rpc *call)
{
    buf_release(&call->request);
    buf_release(&call->answer);
    buf_release(&call->message);
    buf_release(&call->details);
    free(call);
}

static void call_finish(struct grpc *grpc, struct rpc *call)
{
    struct grpc_answer answer = {.status = call->status,
                                 .message = buf_str(&call->message),
                                 .details = buf_str(&call->details),
                                 .tries = call->tries};
    if (call->status == GRPC_OK) answer.body = str_slice(buf_str(&call->answer), FRAME_HEAD, call->answer.len);
    unlink_call(grpc, call);
    call->done(call->context, &answer);
    call_free(call);
}

static void call_end_with(struct grpc *grpc, struct rpc *call, int status, const char *why)
{
    if (call->conn) h2_conn_reset(call->conn, call);
    call->status = status;
    buf_clear(&call->message);
    buf_text(&call->message, why);
    call_finish(grpc, call);
}

// A call that ended lies here until the library has returned: what `done` does may touch the connection.
void call_ended(struct rpc *call)
{
    call->conn = NULL;
    call->stream = 0;
    call->due = -1;
}

static void call_settle(struct grpc *grpc, struct rpc *call, int64_t now)
{
    bool again = call->refused || status_again(call, buf_str(&call->message));
    int64_t pause = again && !call->refused ? pause_before(grpc, call) : 0;
    if (call->refused && call->tries > 16) again = false;
    if (call->retry != GRPC_POLL && !call->refused && now + pause > call->give_up) again = false;
    if (atomic_load(&grpc->stopping)) again = false;
    if (!again) {
        call_finish(grpc, call);
        return;
    }
    call->due = now + pause;
    if (call->status == GRPC_DEADLINE_EXCEEDED) call->tries = 0;
}

// ---- connections

static void read_token(struct grpc *grpc)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, TOKEN_MAX * 2);
    struct str text = {0};
    struct error err = {0};
    if (grpc->token_variable.len > 0)
        text = str_from(getenv(grpc->token_variable.ptr));
    else if (grpc->token_file.len > 0 && os_read_file(grpc->token_file.ptr, TOKEN_MAX, &arena, &text, &err) != OK)
        os_log(LOG_WARN, "no key for the server why=\"%s\"", err.message);
    text = str_trim(text);
    buf_clear(&grpc->token);
    if (text.len > 0) buf_printf(&grpc->token, "Bearer %.*s", STR_ARG(text));
}

// Calls that cannot wait for a connection hear why there is none.
static void tell_waiting(struct grpc *grpc, const struct error *why, int64_t now)
{
    int status = why->code == E_DENIED || why->code == E_INVALID ? GRPC_UNAUTHENTICATED : GRPC_UNAVAILABLE;
    for (struct rpc *call = grpc->calls, *next; call; call = next) {
        next = call->next;
        if (call->conn || call->due < 0) continue;
        call->status = status;
        call->tries++;
        buf_clear(&call->message);
        buf_text(&call->message, why->message);
        call_settle(grpc, call, now);
    }
}

static void take_fresh(struct grpc *grpc, int64_t now)
{
    pthread_mutex_lock(&grpc->mutex);
    bool dialled = grpc->dialled;
    struct wire wire = grpc->fresh;
    struct error why = grpc->why;
    if (dialled) grpc->dialling = grpc->dialled = false;
    if (dialled && wire.fd >= 0) grpc->counts.connections++;
    if (dialled) grpc->away = wire.fd < 0 ? why : (struct error){0};
    pthread_mutex_unlock(&grpc->mutex);
    if (!dialled) return;
    if (wire.fd < 0) {
        grpc->retry_at = now + jitter(grpc, grown(CONNECT_FIRST_MS, CONNECT_MOST_MS, grpc->failures++));
        tell_waiting(grpc, &why, now);
        return;
    }
    read_token(grpc);
    struct conn *conn = h2_conn_open(grpc, &wire);
    if (!conn) {
        grpc->retry_at = now + CONNECT_MOST_MS;
        return;
    }
    grpc->failures = 0;
    conn->next = grpc->conns;
    grpc->conns = grpc->current = conn;
}

static void drop_dead(struct grpc *grpc)
{
    for (struct conn **at = &grpc->conns, *conn; (conn = *at);) {
        if (conn->draining && conn->calls == 0 && conn->sent == conn->out.len) conn->dead = true;
        if (!conn->dead) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        if (grpc->current == conn) grpc->current = NULL;
        for (struct rpc *call = grpc->calls; call; call = call->next) {
            if (call->conn != conn) continue;
            if (call->status < 0) {
                call->status = GRPC_UNAVAILABLE;
                buf_clear(&call->message);
                buf_text(&call->message, "the connection to the server broke off");
            }
            call_ended(call);
        }
        h2_conn_free(conn);
    }
}

static void want_connection(struct grpc *grpc, int64_t now)
{
    if (now < grpc->retry_at) return;
    LOCKED(&grpc->mutex);
    if (!grpc->dialling) {
        grpc->dialling = true;
        pthread_cond_signal(&grpc->wanted);
    }
}

// ---- the thread

static bool has_incoming(struct grpc *grpc)
{
    LOCKED(&grpc->mutex);
    return grpc->incoming != NULL;
}

static void take_incoming(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->mutex);
    struct rpc *list = grpc->incoming;
    grpc->incoming = NULL;
    grpc->last_incoming = &grpc->incoming;
    pthread_mutex_unlock(&grpc->mutex);
    struct rpc **end = &grpc->calls;
    while (*end) end = &(*end)->next;
    *end = list;
}

static void end_polls(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->mutex);
    bool shut = grpc->polls_shut;
    pthread_mutex_unlock(&grpc->mutex);
    for (struct rpc *call = grpc->calls, *next; shut && call; call = next) {
        next = call->next;
        if (call->retry == GRPC_POLL) call_end_with(grpc, call, GRPC_CANCELLED, "the client wants no more");
    }
}

static void take_cancelled(struct grpc *grpc)
{
    for (;;) {
        pthread_mutex_lock(&grpc->mutex);
        uint64_t id = grpc->cancelled_count > 0 ? grpc->cancelled[--grpc->cancelled_count] : 0;
        pthread_mutex_unlock(&grpc->mutex);
        if (id == 0) return;
        for (struct rpc *call = grpc->calls; call; call = call->next)
            if (call->id == id) {
                call_end_with(grpc, call, GRPC_CANCELLED, "cancelled");
                break;
            }
    }
}

// Calls that have ended are settled, calls whose time has come are sent. Each may end by it, so the list is walked from its start again.
static bool step_one(struct grpc *grpc, int64_t now)
{
    for (struct rpc *call = grpc->calls; call; call = call->next) {
        if (call->conn) {
            if (now < call->deadline) continue;
            h2_conn_reset(call->conn, call);
            call->status = GRPC_DEADLINE_EXCEEDED;
            buf_clear(&call->message);
            buf_text(&call->message, "the server took too long");
            call_settle(grpc, call, now);
            return true;
        }
        if (call->due < 0) {
            call->due = 0;
            call_settle(grpc, call, now);
            return true;
        }
        if (call->due > now) continue;
        if (call->retry != GRPC_POLL && now >= call->give_up) {
            call_end_with(grpc, call, call->tries ? call->status : GRPC_DEADLINE_EXCEEDED, "the server could not be reached in time");
            return true;
        }
        if (!grpc->current) continue;
        call->tries++;
        call->deadline = now + call->timeout_ms;
        pthread_mutex_lock(&grpc->mutex);
        grpc->counts.tries++;
        pthread_mutex_unlock(&grpc->mutex);
        if (h2_conn_submit(grpc->current, call)) continue;
        grpc->current->draining = true; // its stream numbers are used up, or there is no memory
        grpc->current = NULL;
    }
    return false;
}

static int64_t next_due(const struct grpc *grpc, int64_t now, bool *wants)
{
    int64_t due = now + 60000;
    *wants = false;
    for (const struct rpc *call = grpc->calls; call; call = call->next) {
        int64_t mine = call->conn ? call->deadline : call->due;
        if (!call->conn && call->due <= now) {
            *wants = true; // of a connection
            mine = call->retry == GRPC_POLL ? INT64_MAX : call->give_up;
        }
        if (mine < due) due = mine;
    }
    for (const struct conn *conn = grpc->conns; conn; conn = conn->next)
        if (h2_conn_due(conn) < due) due = h2_conn_due(conn);
    if (*wants && !grpc->current && grpc->retry_at > now && grpc->retry_at < due) due = grpc->retry_at;
    return due;
}

static void wait_and_read(struct grpc *grpc, int64_t until)
{
    struct pollfd fds[CONNS_MAX + 1] = {{.fd = grpc->wake, .events = POLLIN}};
    struct conn *whose[CONNS_MAX + 1] = {NULL};
    nfds_t count = 1;
    for (struct conn *conn = grpc->conns; conn && count <= CONNS_MAX; conn = conn->next, count++) {
        bool more = conn->sent < conn->out.len;
        fds[count] = (struct pollfd){.fd = conn->wire.fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))};
        whose[count] = conn;
        if (conn->more) until = 0; // has not been read to its end: nothing would wake us
    }
    int64_t left = until - grpc_now();
    (void)poll(fds, count, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);
    uint64_t seen;
    if (fds[0].revents) (void)!read(grpc->wake, &seen, sizeof(seen));
    for (nfds_t i = 1; i < count; i++)
        if (fds[i].revents || whose[i]->more) h2_conn_read(whose[i]);
}

static void *grpc_main(void *context)
{
    struct grpc *grpc = context;
    atomic_store(&grpc->self, pthread_self());
    while (!atomic_load(&grpc->stopping)) {
        int64_t now = grpc_now();
        bool wants;
        take_incoming(grpc);
        take_cancelled(grpc);
        end_polls(grpc);
        take_fresh(grpc, now);
        drop_dead(grpc);
        while (step_one(grpc, now)) continue;
        for (struct conn *conn = grpc->conns; conn; conn = conn->next) {
            h2_conn_tick(conn, now);
            h2_conn_flush(conn);
        }
        drop_dead(grpc);
        int64_t until = next_due(grpc, now, &wants);
        if (wants && !grpc->current) want_connection(grpc, now);
        wait_and_read(grpc, has_incoming(grpc) ? now : until); // what was sent meanwhile on this thread has woken nobody
    }
    take_incoming(grpc);
    while (grpc->calls) call_end_with(grpc, grpc->calls, GRPC_CANCELLED, "the client is ending");
    return NULL;
}

// ---- from outside

static bool is_here(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0;
}

static enum code take_address(struct grpc *grpc, struct str address, struct error *err)
{
    size_t colon = address.len;
    while (colon > 0 && address.ptr[colon - 1] != ':') colon--;
    struct str host = colon > 0 ? str_slice(address, 0, colon - 1) : (struct str){0};
    struct str port = str_slice(address, colon, address.len);
    int64_t number = 0;
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') host = str_slice(host, 1, host.len - 1);
    bool plain = host.len > 0 && host.len < sizeof(grpc->host) && str_find(host, '/', 0) == host.len;
    if (!plain || !str_int64(port, &number) || number < 1 || number > 65535)
        return error_set(err, E_INVALID, "\"%.*s\" is no address: it must be HOST:PORT", STR_ARG(address));
    snprintf(grpc->host, sizeof(grpc->host), "%.*s", STR_ARG(host));
    snprintf(grpc->port, sizeof(grpc->port), "%lld", (long long)number);
    return OK;
}

static enum code take_texts(struct grpc *grpc, const struct grpc_options *options, struct error *err)
{
    const struct {
        struct str from, *to;
    } texts[] = {{options->address, &grpc->authority},
                 {options->ca_file, &grpc->ca_file},
                 {options->cert_file, &grpc->cert_file},
                 {options->key_file, &grpc->key_file},
                 {options->token_variable, &grpc->token_variable},
                 {options->token_file, &grpc->token_file},
                 {options->server_name.len ? options->server_name : str_from(grpc->host), &grpc->server_name}};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        *texts[i].to = arena_copy(&grpc->arena, texts[i].from);
        if (!texts[i].to->ptr) return error_nomem(err);
    }
    struct grpc_header *headers = ARENA_ARRAY(&grpc->arena, options->header_count + 1, struct grpc_header);
    for (size_t i = 0; headers && i < options->header_count; i++) {
        headers[i].name = arena_copy(&grpc->arena, options->headers[i].name);
        headers[i].value = arena_copy(&grpc->arena, options->headers[i].value);
        if (!headers[i].name.ptr || !headers[i].value.ptr) headers = NULL;
    }
    grpc->headers = headers;
    grpc->header_count = options->header_count;
    return headers ? OK : error_nomem(err);
}

static enum code start_threads(struct grpc *grpc, struct error *err)
{
    grpc->has_thread = os_thread(&grpc->thread, NULL, grpc_main, grpc) == 0;
    grpc->has_dialler = grpc->has_thread && os_thread(&grpc->dialler, NULL, dial_main, grpc) == 0;
    return grpc->has_dialler ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

enum code grpc_open(const struct grpc_options *options, struct grpc **out, struct error *err)
{
    enum code rc = h2_load(err);
    if (rc) return rc;
    struct grpc *grpc = calloc(1, sizeof(*grpc));
    if (!grpc) return error_nomem(err);
    INVARIANT(pthread_mutex_init(&grpc->mutex, NULL) == 0 && pthread_cond_init(&grpc->wanted, NULL) == 0);
    arena_init(&grpc->arena, 1024, 1 << 20);
    buf_init(&grpc->token, TOKEN_MAX);
    grpc->last_incoming = &grpc->incoming;
    grpc->tls = options->tls;
    grpc->fresh.fd = -1;
    grpc->answer_max = options->answer_max ? options->answer_max : ANSWER_MAX;
    grpc->keepalive_ms = options->keepalive_ms ? options->keepalive_ms : KEEPALIVE_MS;
    os_entropy()->fill(os_entropy(), &grpc->random, sizeof(grpc->random));
    grpc->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool secret = options->token_variable.len > 0 || options->token_file.len > 0;
    if (grpc->wake < 0) rc = os_errno(err, "make", "an event");
    if (!rc) rc = take_address(grpc, options->address, err);
    if (!rc && (options->cert_file.len > 0) != (options->key_file.len > 0))
        rc = error_set(err, E_INVALID, "a certificate needs its key, and a key its certificate");
    if (!rc && secret && !options->tls && !is_here(grpc->host))
        rc = error_set(err, E_INVALID, "a key is sent over TLS only; the address \"%.*s\" is used without it",
                       STR_ARG(options->address));
    if (!rc) rc = take_texts(grpc, options, err);
    if (!rc) rc = start_threads(grpc, err);
    if (rc)
        grpc_close(grpc);
    else
        *out = grpc;
    return rc;
}

void grpc_shut(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->mutex);
    bool first = !grpc->shut;
    grpc->shut = true;
    atomic_store(&grpc->stopping, true);
    pthread_cond_broadcast(&grpc->wanted);
    pthread_mutex_unlock(&grpc->mutex);
    if (!first) return;
    if (grpc->wake >= 0) grpc_wake(grpc);
    if (grpc->has_thread) pthread_join(grpc->thread, NULL);
    if (grpc->has_dialler) pthread_join(grpc->dialler, NULL);
}

void grpc_shut_polls(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->mutex);
    grpc->polls_shut = true;
    pthread_mutex_unlock(&grpc->mutex);
    grpc_wake(grpc);
}

void grpc_close(struct grpc *grpc)
{
    if (!grpc) return;
    grpc_shut(grpc);
    while (grpc->conns) {
        struct conn *conn = grpc->conns;
        grpc->conns = conn->next;
        h2_conn_free(conn);
    }
    if (grpc->dialled) wire_close(&grpc->fresh);
    if (grpc->wake >= 0) close(grpc->wake);
    free(grpc->cancelled);
    if (grpc->token.len > 0) memset(grpc->token.ptr, 0, grpc->token.len);
    buf_release(&grpc->token);
    arena_release(&grpc->arena);
    pthread_cond_destroy(&grpc->wanted);
    pthread_mutex_destroy(&grpc->mutex);
    free(grpc);
}

static struct rpc *call_new(struct grpc *grpc, const struct grpc_call *from, grpc_done done, void *context)
{
    struct rpc *call = calloc(1, sizeof(*call));
    if (!call) return NULL;
    *call = (struct rpc){.path = from->path,
                          .timeout_ms = from->timeout_ms,
                          .budget_ms = from->budget_ms ? from->budget_ms : from->timeout_ms,
                          .retry = from->retry,
                          .done = done,
                          .context = context,
                          .status = -1,
                          .began = grpc_now()};
    call->give_up = call->began + call->budget_ms;
    size_t size = from->body.len;
    char head[FRAME_HEAD] = {0, (char)(size >> 24), (char)(size >> 16), (char)(size >> 8), (char)size};
    buf_init(&call->request, REQUEST_MAX);
    buf_init(&call->answer, grpc->answer_max + FRAME_HEAD);
    buf_init(&call->message, TEXT_MAX);
    buf_init(&call->details, TEXT_MAX);
    buf_add(&call->request, (struct str){head, sizeof(head)});
    buf_add(&call->request, from->body);
    if (buf_ok(&call->request)) return call;
    call_free(call);
    return NULL;
}

enum code grpc_send(struct grpc *grpc, const struct grpc_call *from, grpc_done done, void *context, uint64_t *id,
                    struct error *err)
{
    INVARIANT(from->timeout_ms > 0 && from->retry);
    struct rpc *call = call_new(grpc, from, done, context);
    if (!call) return error_nomem(err);
    pthread_mutex_lock(&grpc->mutex);
    bool shut = grpc->shut || (grpc->polls_shut && call->retry == GRPC_POLL), first = grpc->incoming == NULL;
    call->id = ++grpc->next_id;
    if (id) *id = call->id;
    if (!shut) {
        grpc->counts.calls++;
        *grpc->last_incoming = call;
        grpc->last_incoming = &call->next;
    }
    pthread_mutex_unlock(&grpc->mutex);
    if (!shut) {
        // Who sent the one before this has woken it, and from its own thread it looks before it sleeps.
        if (first && atomic_load(&grpc->self) != pthread_self()) grpc_wake(grpc);
        return OK;
    }
    done(context, &(struct grpc_answer){.status = GRPC_CANCELLED, .message = STR("the client is ending")});
    call_free(call);
    return OK;
}

void grpc_cancel(struct grpc *grpc, uint64_t id)
{
    pthread_mutex_lock(&grpc->mutex);
    bool kept = LIST_ROOM(grpc->cancelled, grpc->cancelled_count, &grpc->cancelled_capacity);
    if (kept) grpc->cancelled[grpc->cancelled_count++] = id;
    pthread_mutex_unlock(&grpc->mutex);
    if (kept) grpc_wake(grpc);
}

struct waiting { // a call whose caller sleeps. Posting is the last thing that is done to it, with no lock that who wakes would wait for
    sem_t done;
    struct arena *arena;
    struct grpc_answer answer;
};

static struct str kept(struct waiting *waiting, struct str text)
{
    struct str copy = arena_copy(waiting->arena, text);
    if (!copy.ptr && waiting->answer.status == GRPC_OK) waiting->answer.status = GRPC_INTERNAL;
    return copy.ptr ? copy : STR("out of memory");
}

static void on_answer(void *context, const struct grpc_answer *answer)
{
    struct waiting *waiting = context;
    waiting->answer = *answer;
    waiting->answer.message = kept(waiting, answer->message);
    waiting->answer.details = kept(waiting, answer->details);
    waiting->answer.body = kept(waiting, answer->body);
    INVARIANT(sem_post(&waiting->done) == 0);
}

enum code grpc_call(struct grpc *grpc, const struct grpc_call *call, struct arena *arena, struct grpc_answer *answer,
                    struct error *err)
{
    struct waiting waiting = {.arena = arena};
    INVARIANT(sem_init(&waiting.done, 0, 0) == 0);
    enum code rc = grpc_send(grpc, call, on_answer, &waiting, NULL, err);
    if (!rc) {
        while (sem_wait(&waiting.done) != 0) INVARIANT(errno == EINTR);
        *answer = waiting.answer;
        rc = grpc_status_code(answer->status);
        if (rc)
            (void)error_set(err, rc, "%s: %.*s", grpc_status_name(answer->status),
                            STR_ARG(str_head(answer->message, 300)));
    }
    sem_destroy(&waiting.done);
    return rc;
}

bool grpc_is_away(struct grpc *grpc, struct error *why)
{
    LOCKED(&grpc->mutex);
    *why = grpc->away;
    return why->code != OK;
}

struct grpc_counts grpc_counts(struct grpc *grpc)
{
    LOCKED(&grpc->mutex);
    return grpc->counts;
}
