// Kind nats: keys, publishing and streams of a NATS server, over a connection that lasts as long as the task. Keys are messages of the
// stream KV_<bucket>, as every client of NATS has them.
#include "task/kind.h"

#include "base/base64.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_MAX ((size_t)16 << 20)
#define TIMEOUT_MS 10000

struct nats_link {
    struct task_call *call;
    int fd;
    struct buf in;
    int64_t deadline;
    char inbox[64]; // what answers are sent to: this connection's alone
};

static bool broken(struct nats_link *line, const char *what, const char *why)
{
    return call_fail(line->call, TASK_CONNECTION, "NATS_FAILED", "%s%s%s", what, *why ? ": " : "", why);
}

// ---- bytes

static bool wait_for(struct nats_link *line, short events)
{
    for (;;) {
        struct pollfd fd = {.fd = line->fd, .events = events};
        int ready = poll(&fd, 1, TASK_POLL_MS);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return broken(line, "the connection broke", strerror(errno));
        if (call_stopped(line->call)) return broken(line, "it is to end", "");
        if (os_now().mono_ms >= line->deadline)
            return call_fail(line->call, TASK_TIMEOUT, "TIMEOUT", "the NATS server does not answer in time");
    }
}

static bool send_all(struct nats_link *line, struct str bytes)
{
    while (bytes.len) {
        ssize_t put = send(line->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) return broken(line, "the connection broke", strerror(errno));
        if (put < 0 && !wait_for(line, POLLOUT)) return false;
        if (put > 0) bytes = str_slice(bytes, (size_t)put, bytes.len);
    }
    return true;
}

static bool more(struct nats_link *line)
{
    char *room = buf_reserve(&line->in, 65536);
    if (!room) return broken(line, "the answer is too large", "");
    if (!wait_for(line, POLLIN)) return false;
    ssize_t got = recv(line->fd, room, 65536, 0);
    if (got <= 0) return broken(line, "the server has closed the connection", "");
    line->in.len += (size_t)got;
    return true;
}

static void drop(struct nats_link *line, size_t size)
{
    memmove(line->in.ptr, line->in.ptr + size, line->in.len - size);
    line->in.len -= size;
}

// The next line, without its end; in the arena.
static bool read_line(struct nats_link *line, struct str *out)
{
    for (;;) {
        size_t end = str_find(buf_str(&line->in), '\n', 0);
        if (end < line->in.len) {
            *out = arena_copy(line->call->arena, str_trim(str_slice(buf_str(&line->in), 0, end)));
            drop(line, end + 1);
            return out->ptr ? true : (call_no_memory(line->call), false);
        }
        if (!more(line)) return false;
    }
}

static bool read_bytes(struct nats_link *line, size_t size, struct str *out)
{
    while (line->in.len < size + 2)
        if (!more(line)) return false;
    *out = arena_copy(line->call->arena, str_slice(buf_str(&line->in), 0, size));
    drop(line, size + 2);
    return out->ptr ? true : (call_no_memory(line->call), false);
}

// ---- frames

struct reply {
    struct str head, body;
};

// The last number of "MSG subject sid [reply] size" or "HMSG subject sid [reply] head size".
static size_t number_at_end(struct str text, size_t back)
{
    int64_t number = 0;
    for (;; back--) {
        size_t from = text.len;
        while (from > 0 && text.ptr[from - 1] != ' ') from--;
        if (back == 0) return str_int64(str_slice(text, from, text.len), &number) && number >= 0 ? (size_t)number : 0;
        text = str_trim(str_slice(text, 0, from));
    }
}

static bool read_reply(struct nats_link *line, struct reply *out)
{
    for (;;) {
        struct str text, bytes;
        if (!read_line(line, &text)) return false;
        if (str_is(text, "PING") && !send_all(line, STR("PONG\r\n"))) return false;
        if (str_starts(text, STR("-ERR"))) {
            bool auth = memmem(text.ptr, text.len, "uthorization", 12) || memmem(text.ptr, text.len, "Permissions", 11);
            return call_fail(line->call, auth ? TASK_AUTH : TASK_CLIENT, "NATS_REFUSED", "the NATS server says: %.*s",
                             STR_ARG(text));
        }
        bool headed = str_starts(text, STR("HMSG "));
        if (!headed && !str_starts(text, STR("MSG "))) {
            if (str_is(text, "PONG")) return *out = (struct reply){0}, true;
            continue;
        }
        size_t size = number_at_end(text, 0), head = headed ? number_at_end(text, 1) : 0;
        if (size > IN_MAX || head > size || !read_bytes(line, size, &bytes)) return false;
        *out = (struct reply){str_slice(bytes, 0, head), str_slice(bytes, head, size)};
        return true;
    }
}

static bool publish(struct nats_link *line, struct str subject, bool reply, struct str head, struct str body)
{
    struct buf out = buf_of(IN_MAX);
    if (head.len)
        buf_printf(&out, "HPUB %.*s %s%s%zu %zu\r\n", STR_ARG(subject), reply ? line->inbox : "", reply ? " " : "",
                   head.len, head.len + body.len);
    else
        buf_printf(&out, "PUB %.*s %s%s%zu\r\n", STR_ARG(subject), reply ? line->inbox : "", reply ? " " : "",
                   body.len);
    buf_add(&out, head);
    buf_add(&out, body);
    buf_text(&out, "\r\n");
    bool good = buf_ok(&out) ? send_all(line, buf_str(&out)) : broken(line, "the message is too large", "");
    buf_release(&out);
    return good;
}

// An answer of JetStream. *none: nobody is there who would give one.
static bool ask(struct nats_link *line, struct str subject, struct str head, struct str body, struct json *out,
                bool *none)
{
    struct reply reply;
    if (!publish(line, subject, true, head, body) || !read_reply(line, &reply)) return false;
    *none = memmem(reply.head.ptr ? reply.head.ptr : "", reply.head.len, " 503", 4) != NULL;
    *out = json_object();
    if (*none) return true;
    struct error err = {0};
    if (json_parse(reply.body, &task_limits, line->call->arena, out, &err))
        return broken(line, "an answer cannot be read", err.message);
    return true;
}

// ---- connecting

static bool dial(struct nats_link *line, struct str host, struct str port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(call_printf(line->call, "%.*s", STR_ARG(host)).ptr,
                         call_printf(line->call, "%.*s", STR_ARG(port)).ptr, &hints, &list);
    if (rc) return broken(line, "the NATS server is not known", gai_strerror(rc));
    for (struct addrinfo *at = list; at && line->fd < 0; at = at->ai_next) {
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) continue;
        int error = 0;
        socklen_t size = sizeof(error);
        line->fd = fd;
        bool good = connect(fd, at->ai_addr, at->ai_addrlen) == 0 ||
                    (errno == EINPROGRESS && wait_for(line, POLLOUT) &&
                     getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error);
        if (good) continue;
        close(fd);
        line->fd = -1;
    }
    freeaddrinfo(list);
    return line->fd >= 0 || broken(line, "the NATS server cannot be reached", "");
}

static bool greet(struct nats_link *line, const struct json *auth)
{
    struct task_call *call = line->call;
    struct str info, user = credential_field(call, auth, "user|username|nats_user"),
                     token = credential_field(call, auth, "token|nats_token"),
                     password = credential_field(call, auth, "password|pass|nats_password");
    struct json hello = json_object();
    struct buf out;
    if (!read_line(line, &info)) return false;
    if (memmem(info.ptr, info.len, "\"tls_required\":true", 19))
        return broken(line, "the NATS server wants TLS, which kind nats does not speak", "");
    bool good =
        call_put(call, &hello, "verbose", json_bool(false)) && call_put(call, &hello, "headers", json_bool(true)) &&
        call_put(call, &hello, "no_responders", json_bool(true)) &&
        call_put(call, &hello, "name", json_string(STR("cairn"))) &&
        (!user.len || call_put(call, &hello, "user", json_string(user))) &&
        (!password.len || (call_put(call, &hello, "pass", json_string(password)) && call_hide(call, password))) &&
        (!token.len || (call_put(call, &hello, "auth_token", json_string(token)) && call_hide(call, token)));
    buf_init(&out, 65536);
    buf_text(&out, "CONNECT ");
    json_write(&out, &hello);
    buf_printf(&out, "\r\nSUB %s 1\r\nPING\r\n", line->inbox);
    if (good) good = buf_ok(&out) ? send_all(line, buf_str(&out)) : (call_no_memory(call), false);
    secret_wipe(buf_str(&out));
    buf_release(&out);
    struct reply pong;
    return good && read_reply(line, &pong);
}

static bool open_line(struct nats_link *line)
{
    struct task_call *call = line->call;
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth");
    if (!call_credential(call, written ? written : call_get(call, "credential"), &auth, &trusted)) return false;
    struct str url = credential_field(call, &auth, "url|nats_url|servers|server"), own = call_string(call, "url", "");
    if (own.len) url = own, trusted = false;
    if (!url.len && !tasks_options(call->tasks)->policy) url = str_from(getenv("NATS_URL"));
    if (!url.len) url = STR("nats://127.0.0.1:4222");
    if (tasks_options(call->tasks)->policy && !trusted)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_NEEDED",
                         "here NATS is reached with credentials of the service only: auth: NAME");
    if (str_starts(url, STR("nats://"))) url = str_slice(url, 7, url.len);
    struct str port, host = str_cut(url, ':', &port);
    return dial(line, host, port.len ? port : STR("4222")) && greet(line, &auth);
}

// ---- operations

static bool said_no(struct nats_link *line, const struct json *answer)
{
    const struct json *error = json_key(answer, "error");
    if (!error) return false;
    bool gone = json_integer(json_key(error, "code"), 0) == 404;
    call_fail(line->call, gone ? TASK_NOT_FOUND : TASK_CLIENT, gone ? "NATS_NOT_FOUND" : "NATS_REFUSED", "%.*s",
              STR_ARG(json_text(json_key(error, "description"))));
    return true;
}

static bool is_name(struct task_call *call, struct str text, const char *what, bool dots)
{
    bool good = text.len > 0 && text.len < 256;
    for (size_t i = 0; good && i < text.len; i++)
        good = text.ptr[i] > ' ' && text.ptr[i] < 0x7F && !strchr(dots ? "*>" : ".*>", text.ptr[i]);
    if (!good) call_fail(call, TASK_CLIENT, "NAME_INVALID", "nats needs a %s without blanks and wildcards", what);
    return good;
}

static bool make_bucket(struct nats_link *line, struct str bucket)
{
    struct task_call *call = line->call;
    struct json config = json_object(), subjects = json_array(), answer;
    struct buf body;
    bool none;
    bool good = json_push(call->arena, &subjects, json_string(call_printf(call, "$KV.%.*s.>", STR_ARG(bucket)))) &&
                call_put(call, &config, "name", json_string(call_printf(call, "KV_%.*s", STR_ARG(bucket)))) &&
                call_put(call, &config, "subjects", subjects) &&
                call_put(call, &config, "max_msgs_per_subject", json_int(1)) &&
                call_put(call, &config, "discard", json_string(STR("new"))) &&
                call_put(call, &config, "allow_rollup_hdrs", json_bool(true)) &&
                call_put(call, &config, "deny_delete", json_bool(true)) &&
                call_put(call, &config, "allow_direct", json_bool(true)) &&
                call_put(call, &config, "storage", json_string(STR("file")));
    buf_init(&body, 4096);
    json_write(&body, &config);
    struct str subject = call_printf(call, "$JS.API.STREAM.CREATE.KV_%.*s", STR_ARG(bucket));
    good = good && ask(line, subject, STR(""), buf_str(&body), &answer, &none);
    buf_release(&body);
    if (good && none) return broken(line, "JetStream is not there", "");
    // Another process is making it just now: 10058 the name is in use, 10065 so are its subjects.
    int64_t why = good ? json_integer(json_at(&answer, STR("error.err_code")), 0) : 0;
    return good && (why == 10058 || why == 10065 || !said_no(line, &answer));
}

enum { BUCKET_TRIES = 12 }; // about half a second

static void kv_put(struct nats_link *line, struct str bucket, struct str key, struct str head)
{
    struct task_call *call = line->call;
    struct json answer, result = json_object();
    bool none;
    struct str subject = call_printf(call, "$KV.%.*s.%.*s", STR_ARG(bucket), STR_ARG(key));
    struct str value = head.len ? STR("") : json_as_text(call_find(call, "value"), call->arena);
    if (!ask(line, subject, head, value, &answer, &none)) return;
    if (none && head.len) {
        call_fail(call, TASK_NOT_FOUND, "NATS_NOT_FOUND", "there is no bucket %.*s", STR_ARG(bucket));
        return;
    }
    if (none && !make_bucket(line, bucket)) return;
    // The server has the bucket, and a moment later it also listens for it.
    for (int tries = 0; none && tries < BUCKET_TRIES; tries++) {
        if (tries > 0) poll(NULL, 0, 1 << (tries < 6 ? tries : 6));
        if (!ask(line, subject, head, value, &answer, &none)) return;
    }
    if (none ? !broken(line, "JetStream is not there", "") : said_no(line, &answer)) return;
    if (call_put(call, &result, "status", json_string(STR("success"))) &&
        call_put(call, &result, "key", json_string(key)) &&
        call_put(call, &result, "revision", json_int(json_integer(json_key(&answer, "seq"), 0))))
        call_done(call, result);
}

static void kv_get(struct nats_link *line, struct str bucket, struct str key)
{
    struct task_call *call = line->call;
    struct json query = json_object(), answer, result = json_object();
    struct buf body;
    bool none;
    if (!call_put(call, &query, "last_by_subj",
                  json_string(call_printf(call, "$KV.%.*s.%.*s", STR_ARG(bucket), STR_ARG(key)))))
        return;
    buf_init(&body, 4096);
    json_write(&body, &query);
    bool good = ask(line, call_printf(call, "$JS.API.STREAM.MSG.GET.KV_%.*s", STR_ARG(bucket)), STR(""), buf_str(&body),
                    &answer, &none);
    buf_release(&body);
    if (!good || (none ? !broken(line, "JetStream is not there", "") : said_no(line, &answer))) return;
    struct str hdrs = base64_read(json_text(json_at(&answer, STR("message.hdrs"))), call->arena);
    if (hdrs.len && memmem(hdrs.ptr, hdrs.len, "KV-Operation:", 13)) {
        call_fail(call, TASK_NOT_FOUND, "NATS_NOT_FOUND", "the key %.*s was deleted", STR_ARG(key));
        return;
    }
    struct str value = base64_read(json_text(json_at(&answer, STR("message.data"))), call->arena);
    if (call_put(call, &result, "status", json_string(STR("success"))) &&
        call_put(call, &result, "key", json_string(key)) &&
        call_put(call, &result, "value", call_parse(call, value, true)) &&
        call_put(call, &result, "revision", json_int(json_integer(json_at(&answer, STR("message.seq")), 0))))
        call_done(call, result);
}

static void kv_keys(struct nats_link *line, struct str bucket)
{
    struct task_call *call = line->call;
    struct json answer, keys = json_array(), result = json_object();
    struct str prefix = call_printf(call, "$KV.%.*s.", STR_ARG(bucket));
    bool none;
    struct buf body;
    struct json query = json_object();
    if (!call_put(call, &query, "subjects_filter", json_string(call_printf(call, "%.*s>", STR_ARG(prefix))))) return;
    buf_init(&body, 4096);
    json_write(&body, &query);
    bool good = ask(line, call_printf(call, "$JS.API.STREAM.INFO.KV_%.*s", STR_ARG(bucket)), STR(""), buf_str(&body),
                    &answer, &none);
    buf_release(&body);
    if (!good || (none ? !broken(line, "JetStream is not there", "") : said_no(line, &answer))) return;
    const struct json *subjects = json_at(&answer, STR("state.subjects"));
    for (uint32_t i = 0; json_is(subjects, JSON_OBJECT) && i < subjects->count; i++) {
        struct str key = str_slice(subjects->members[i].key, prefix.len, subjects->members[i].key.len);
        if (!json_push(call->arena, &keys, json_string(key))) {
            call_no_memory(call);
            return;
        }
    }
    if (call_put(call, &result, "status", json_string(STR("success"))) && call_put(call, &result, "keys", keys))
        call_done(call, result);
}

static void publish_one(struct nats_link *line, bool stored)
{
    struct task_call *call = line->call;
    struct json answer, result = json_object();
    struct reply pong;
    struct str subject = call_string(call, "subject", "");
    static const char *const names[] = {"message", "payload", "data", "value"};
    const struct json *value = NULL;
    for (size_t i = 0; !value && i < ARRAY_COUNT(names); i++) value = call_find(call, names[i]);
    struct str body = json_as_text(value, call->arena);
    bool none = false;
    if (!is_name(call, subject, "subject", true)) return;
    if (stored ? !ask(line, subject, STR(""), body, &answer, &none)
               : !publish(line, subject, false, STR(""), body) || !send_all(line, STR("PING\r\n")) ||
                     !read_reply(line, &pong))
        return;
    if (none) {
        call_fail(call, TASK_NOT_FOUND, "NATS_NOT_FOUND", "no stream takes %.*s", STR_ARG(subject));
        return;
    }
    if (stored && said_no(line, &answer)) return;
    bool good = call_put(call, &result, "status", json_string(STR("success"))) &&
                call_put(call, &result, "subject", json_string(subject));
    if (good && stored)
        good = call_put(call, &result, "stream", json_string(json_text(json_key(&answer, "stream")))) &&
               call_put(call, &result, "seq", json_int(json_integer(json_key(&answer, "seq"), 0)));
    if (good) call_done(call, result);
}

static void operate_key(struct nats_link *line, struct str what, struct str bucket, struct str key)
{
    if (str_is(what, "kv_get"))
        kv_get(line, bucket, key);
    else if (str_is(what, "kv_put"))
        kv_put(line, bucket, key, STR(""));
    else if (str_is(what, "kv_delete"))
        kv_put(line, bucket, key, STR("NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"));
    else
        kv_put(line, bucket, key, STR("NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\n\r\n"));
}

static void operate(struct nats_link *line)
{
    static const char *const keyed[] = {"kv_get", "kv_put", "kv_delete", "kv_purge"};
    struct task_call *call = line->call;
    struct str what = call_string(call, "operation", ""), bucket = call_string(call, "bucket", "");
    struct str key = call_string(call, "key", "");
    if (!what.len) what = call_string(call, "action", "");
    bool by_key = false;
    for (size_t i = 0; i < ARRAY_COUNT(keyed); i++) by_key |= str_is(what, keyed[i]);
    if (str_is(what, "publish") || str_is(what, "js_publish")) {
        publish_one(line, str_is(what, "js_publish"));
    } else if (by_key) {
        if (is_name(call, bucket, "bucket", false) && is_name(call, key, "key", true))
            operate_key(line, what, bucket, key);
    } else if (str_is(what, "kv_keys")) {
        if (is_name(call, bucket, "bucket", false)) kv_keys(line, bucket);
    } else {
        call_fail(call, TASK_CLIENT, "OPERATION_UNKNOWN",
                  "nats does kv_get, kv_put, kv_delete, kv_purge, kv_keys, publish and js_publish, not \"%.*s\"",
                  STR_ARG(what));
    }
}

static void run(struct task_call *call)
{
    struct nats_link line = {
        .call = call, .fd = -1, .deadline = os_now().mono_ms + seconds_ms(call_get(call, "timeout"), TIMEOUT_MS)};
    snprintf(line.inbox, sizeof(line.inbox), "_INBOX.cairn%ld.%llx.%llx", (long)getpid(),
             (unsigned long long)call_request(call)->ticket, (unsigned long long)os_mono_us());
    buf_init(&line.in, IN_MAX);
    if (open_line(&line)) operate(&line);
    if (line.fd >= 0) close(line.fd);
    buf_release(&line.in);
}

static const char *const fields[] = {"auth",  "credential", "url",     "operation", "action", "bucket", "key",
                                     "value", "subject",    "message", "payload",   "data",   NULL};
const struct task_kind kind_nats = {.name = "nats", .fields = fields, .run = run};
