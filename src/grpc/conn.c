#include "grpc/inside.h"

#include "base/base64.h"
#include "grpc/h2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAM_WINDOW = 4 << 20,
    CONNECTION_WINDOW = 16 << 20,
    IN_MAX = 1 << 20,
    OUT_HELD = 1 << 20, // frames are made while less than this waits to be sent
    OUT_MAX = 8 << 20,
    TEXT_MAX = 16 << 10, // of a message and of details
    HEADERS_MAX = 32,
    SMALL_ANSWER = 4 << 20, // that each call may have
    READS_PER_TURN = 64
};

// ---- what the library calls

static ssize_t on_body(nghttp2_session *session, int32_t stream, uint8_t *room, size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *context)
{
    (void)session;
    (void)stream;
    (void)context;
    struct rpc *call = source->ptr;
    size_t left = call->request.len - call->sent;
    if (size > left) size = left;
    memcpy(room, call->request.ptr + call->sent, size);
    call->sent += size;
    if (call->sent == call->request.len) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

// All that is on its way, together: a server that fills every call that waits for it has one answer's share of the memory.
static bool is_too_much(const struct rpc *call)
{
    const struct grpc *grpc = call->conn->grpc;
    size_t all = 0;
    if (call->answer.len <= SMALL_ANSWER) return false;
    for (const struct rpc *each = grpc->calls; each; each = each->next) all += each->answer.len;
    return all > grpc->answer_max + SMALL_ANSWER;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size,
                   void *context)
{
    (void)flags;
    (void)context;
    struct rpc *call = nghttp2_session_get_stream_user_data(session, stream);
    if (!call || call->too_large) return 0;
    buf_add(&call->answer, (struct str){(const char *)bytes, size});
    if (buf_ok(&call->answer) && !is_too_much(call)) return 0;
    call->too_large = true;
    (void)nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_CANCEL);
    return 0;
}

static void take_details(struct rpc *call, struct str text)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, 4 * TEXT_MAX);
    struct buf padded SCOPED(buf_release) = buf_of(2 * TEXT_MAX);
    buf_add(&padded, text);
    while (padded.len % 4 != 0 && !padded.failed) buf_byte(&padded, '=');
    struct str bytes = buf_ok(&padded) ? base64_read(buf_str(&padded), &arena) : (struct str){0};
    buf_clear(&call->details);
    if (bytes.ptr) buf_add(&call->details, bytes);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_bytes, size_t name_size,
                     const uint8_t *value_bytes, size_t value_size, uint8_t flags, void *context)
{
    (void)flags;
    (void)context;
    struct rpc *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct str name = {(const char *)name_bytes, name_size}, value = {(const char *)value_bytes, value_size};
    int64_t number;
    if (!call) return 0;
    if (str_is(name, ":status") && str_int64(value, &number)) call->http = (int)number;
    if (str_is(name, "grpc-status")) call->status = str_int64(value, &number) && number >= 0 && number < 256 ? (int)number : GRPC_UNKNOWN;
    if (str_is(name, "grpc-message")) {
        buf_clear(&call->message);
        percent_decode(&call->message, str_head(value, TEXT_MAX / 2));
    }
    if (str_is(name, "grpc-status-details-bin")) take_details(call, value);
    return 0;
}

static void no_status(struct rpc *call, uint32_t why)
{
    if (call->http != 0 && call->http != 200) {
        call->status = status_of_http(call->http);
        buf_printf(&call->message, "the server answered with HTTP status %d", call->http);
    } else if (why == NGHTTP2_CANCEL) {
        call->status = GRPC_CANCELLED;
        buf_text(&call->message, "the server cancelled the call");
    } else if (why != NGHTTP2_NO_ERROR) {
        call->status = GRPC_UNAVAILABLE;
        buf_printf(&call->message, "the server reset the call (HTTP/2 error %u)", why);
    } else {
        call->status = GRPC_UNKNOWN;
        buf_text(&call->message, "the server ended its answer without a status");
    }
}

// The one message of the answer, as its head says.
static void check_answer(struct rpc *call)
{
    const uint8_t *head = (const uint8_t *)call->answer.ptr;
    size_t size = call->answer.len;
    const char *fault = NULL;
    if (size < FRAME_HEAD)
        fault = "the server's answer has no message";
    else if (head[0] != 0)
        fault = "the server's answer is compressed, which was not asked for";
    else if (size - FRAME_HEAD != ((size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4]))
        fault = "the server's answer is not as long as it says";
    if (!fault) return;
    call->status = GRPC_INTERNAL;
    buf_clear(&call->message);
    buf_text(&call->message, fault);
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t why, void *context)
{
    struct conn *conn = context;
    struct rpc *call = nghttp2_session_get_stream_user_data(session, stream);
    if (!call) return 0;
    (void)nghttp2_session_set_stream_user_data(session, stream, NULL);
    INVARIANT(conn->calls > 0);
    conn->calls--;
    call->refused = why == NGHTTP2_REFUSED_STREAM;
    if (call->too_large) {
        call->status = GRPC_RESOURCE_EXHAUSTED;
        buf_clear(&call->message);
        buf_printf(&call->message, "the server's answer is larger than %zu bytes, or is that with others that are on their way",
                   conn->grpc->answer_max);
    } else if (call->status < 0) {
        no_status(call, why);
    } else if (call->status == GRPC_OK) {
        check_answer(call);
    } else if (call->message.len == 0) {
        buf_text(&call->message, "the server gives no reason");
    }
    call_ended(call);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    struct conn *conn = context;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) conn->pinged = 0;
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    conn->draining = true;
    if (conn->grpc->current == conn) conn->grpc->current = NULL;
    LOCKED(&conn->grpc->mutex);
    conn->grpc->counts.goaways++;
    return 0;
}

// ---- a connection

static bool begin(struct conn *conn)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return false;
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session *session = NULL;
    bool made = nghttp2_session_client_new(&session, callbacks, conn) == 0;
    nghttp2_session_callbacks_del(callbacks);
    if (!made) return false;
    conn->session = session;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW}};
    return nghttp2_submit_settings(session, 0, settings, ARRAY_COUNT(settings)) == 0 &&
           nghttp2_session_set_local_window_size(session, 0, 0, CONNECTION_WINDOW) == 0;
}

struct conn *h2_conn_open(struct grpc *grpc, struct wire *wire)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        wire_close(wire);
        return NULL;
    }
    *conn = (struct conn){.grpc = grpc, .wire = *wire, .heard = grpc_now()};
    buf_init(&conn->in, IN_MAX);
    buf_init(&conn->out, OUT_MAX);
    if (begin(conn)) return conn;
    h2_conn_free(conn);
    return NULL;
}

void h2_conn_free(struct conn *conn)
{
    if (conn->session) nghttp2_session_del(conn->session);
    wire_close(&conn->wire);
    buf_release(&conn->in);
    buf_release(&conn->out);
    free(conn);
}

static nghttp2_nv pair(struct str name, struct str value)
{
    // The library copies both and changes neither.
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.ptr, (uint8_t *)(uintptr_t)value.ptr, name.len, value.len,
                        NGHTTP2_NV_FLAG_NONE};
}

bool h2_conn_submit(struct conn *conn, struct rpc *call)
{
    const struct grpc *grpc = conn->grpc;
    char timeout[24];
    snprintf(timeout, sizeof(timeout), "%lldm", (long long)(call->timeout_ms < 99999999 ? call->timeout_ms : 99999999));
    nghttp2_nv headers[HEADERS_MAX] = {pair(STR(":method"), STR("POST")),
                                       pair(STR(":scheme"), grpc->tls ? STR("https") : STR("http")),
                                       pair(STR(":authority"), grpc->authority),
                                       pair(STR(":path"), str_from(call->path)),
                                       pair(STR("content-type"), STR("application/grpc")),
                                       pair(STR("te"), STR("trailers")),
                                       pair(STR("grpc-timeout"), str_from(timeout)),
                                       pair(STR("grpc-accept-encoding"), STR("identity"))};
    size_t count = 8;
    for (size_t i = 0; i < grpc->header_count && count < HEADERS_MAX - 1; i++)
        headers[count++] = pair(grpc->headers[i].name, grpc->headers[i].value);
    if (grpc->token.len > 0) {
        headers[count] = pair(STR("authorization"), buf_str(&grpc->token));
        headers[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    nghttp2_data_provider body = {.source = {.ptr = call}, .read_callback = on_body};
    call->sent = 0;
    call->http = 0;
    call->status = -1;
    call->refused = false;
    buf_clear(&call->answer);
    buf_clear(&call->message);
    buf_clear(&call->details);
    call->stream = nghttp2_submit_request(conn->session, NULL, headers, count, &body, call);
    if (call->stream < 0) return false;
    call->conn = conn;
    conn->calls++;
    return true;
}

void h2_conn_reset(struct conn *conn, struct rpc *call)
{
    INVARIANT(call->conn == conn && conn->calls > 0);
    (void)nghttp2_session_set_stream_user_data(conn->session, call->stream, NULL);
    (void)nghttp2_submit_rst_stream(conn->session, 0, call->stream, NGHTTP2_CANCEL);
    conn->calls--;
    call->conn = NULL;
}

void h2_conn_flush(struct conn *conn)
{
    struct error err = {0};
    while (!conn->dead) {
        if (conn->sent == conn->out.len) {
            buf_clear(&conn->out);
            conn->sent = 0;
        }
        const uint8_t *bytes = NULL;
        ssize_t size = 0;
        while (conn->out.len < OUT_HELD && (size = nghttp2_session_mem_send(conn->session, &bytes)) > 0)
            buf_add(&conn->out, (struct str){(const char *)bytes, (size_t)size});
        if (size < 0 || !buf_ok(&conn->out)) conn->dead = true;
        if (conn->sent == conn->out.len) return;
        size_t sent = 0;
        struct str rest = str_slice(buf_str(&conn->out), conn->sent, conn->out.len);
        if (wire_send_now(&conn->wire, rest, &sent, &err)) conn->dead = true;
        conn->sent += sent;
        if (sent < rest.len) return;
    }
}

void h2_conn_read(struct conn *conn)
{
    struct error err = {0};
    conn->more = false;
    // A peer that sends without end does not keep the deadlines of calls, other connections and the end from being looked at.
    unsigned reads = 0;
    for (bool more = true; !conn->dead && more; reads++) {
        size_t got = 0;
        if (reads == READS_PER_TURN) {
            COVER(grpc_chatter);
            conn->more = true;
            return;
        }
        buf_clear(&conn->in);
        if (wire_recv_now(&conn->wire, &conn->in, &got, &err)) {
            conn->dead = true;
            return;
        }
        more = got > 0 && (conn->wire.ssl || got == WIRE_TURN);
        if (got == 0) break;
        conn->heard = grpc_now();
        ssize_t taken = nghttp2_session_mem_recv(conn->session, (const uint8_t *)conn->in.ptr, conn->in.len);
        if (taken < 0) conn->dead = true;
    }
    if (!nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session)) conn->dead = true;
}

int64_t h2_conn_due(const struct conn *conn)
{
    int64_t keep = conn->grpc->keepalive_ms;
    if (conn->pinged) return conn->pinged + keep / 2;
    return conn->calls > 0 ? conn->heard + keep : INT64_MAX;
}

void h2_conn_tick(struct conn *conn, int64_t now)
{
    if (conn->dead || now < h2_conn_due(conn)) return;
    if (conn->pinged) {
        conn->dead = true; // nobody is there
        return;
    }
    conn->pinged = now;
    if (nghttp2_submit_ping(conn->session, 0, NULL) != 0) conn->dead = true;
}
