// Kind nats: keys, publishing and streams of a NATS server, over a connection that lasts as long as the task. Keys are messages of the
// stream KV_<bucket>, as every client of NATS has them.
#include "task/kind.h"

#include "base/base64.h"
#include "bus/nats_client.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 10000

struct nats_link {
    struct task_call *call;
    struct nats_client client;
};

static bool says(const struct error *err, const char *word)
{
    return strstr(err->message, word) != NULL;
}

// What went wrong on the way, as an outcome.
static bool broken(struct nats_link *line, const struct error *err)
{
    struct task_call *call = line->call;
    if (err->code == E_NOMEM) return call_no_memory(call);
    if (err->code == E_TIMEOUT)
        return call_fail(call, TASK_TIMEOUT, "TIMEOUT", "the NATS server does not answer in time");
    if (err->code != E_DENIED || says(err, "certificate"))
        return call_fail(call, TASK_CONNECTION, "NATS_FAILED", "%s", err->message);
    bool auth = says(err, "uthorization") || says(err, "Permissions");
    return call_fail(call, auth ? TASK_AUTH : TASK_CLIENT, "NATS_REFUSED", "the NATS server says: %s", err->message);
}

static bool absent(struct nats_link *line)
{
    return call_fail(line->call, TASK_CONNECTION, "NATS_FAILED", "JetStream is not there");
}

// An answer of JetStream. *none: nobody is there who would give one.
static bool ask(struct nats_link *line, struct str subject, struct str head, struct str body, struct json *out,
                bool *none)
{
    struct error err = {0};
    return !nats_request(&line->client, subject.ptr, head, body, out, none, &err) || broken(line, &err);
}

static bool dial(struct nats_link *line, struct str url, const struct json *auth, int64_t timeout_ms)
{
    struct task_call *call = line->call;
    struct error err = {0};
    struct nats_call to = {
        .url = memmem(url.ptr, url.len, "://", 3) ? url : call_printf(call, "nats://%.*s", STR_ARG(url)),
        .ca_file = credential_field(call, auth, "ca_file"),
        .timeout_ms = timeout_ms,
        .who = {.user = credential_field(call, auth, "user|username|nats_user"),
                .password = credential_field(call, auth, "password|pass|nats_password"),
                .token = credential_field(call, auth, "token|nats_token"),
                .credentials = credential_field(call, auth, "credentials|creds|nkey_seed")},
        .arena = call->arena,
        .stopped = call_stopped,
        .context = call};
    const struct str secrets[] = {to.who.password, to.who.token, to.who.credentials};
    for (size_t i = 0; i < ARRAY_COUNT(secrets); i++)
        if (secrets[i].len && !call_hide(call, secrets[i])) return false;
    return !nats_dial(&to, &line->client.nats, &err) || broken(line, &err);
}

static bool open_line(struct nats_link *line, int64_t timeout_ms)
{
    struct task_call *call = line->call;
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth");
    if (!call_credential(call, written ? written : call_get(call, "credential"), &auth, &trusted)) return false;
    struct str url = credential_field(call, &auth, "url|nats_url|servers|server"), own = call_string(call, "url", "");
    if (own.len) url = own, trusted = false;
    if (!url.len && !call_strict(call)) url = str_from(getenv("NATS_URL"));
    if (!url.len) url = STR("nats://127.0.0.1:4222");
    if (call_strict(call) && !trusted)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_NEEDED",
                         "here NATS is reached with credentials of the service only: auth: NAME");
    return dial(line, url, &auth, timeout_ms);
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

// A question to the stream of a bucket. False: the outcome says why there is no answer, or what the answer refuses.
static bool ask_bucket(struct nats_link *line, const char *verb, struct str bucket, struct json question,
                       struct json *answer)
{
    struct task_call *call = line->call;
    bool none;
    struct str body = json_as_text(&question, call->arena);
    if (!json_ok(&question) || !body.ptr) return call_no_memory(call);
    struct str subject = call_printf(call, "$JS.API.STREAM.%s.KV_%.*s", verb, STR_ARG(bucket));
    if (!ask(line, subject, STR(""), body, answer, &none)) return false;
    if (none) return absent(line);
    // Another process is making it just now: 10058 the name is in use, 10065 so are its subjects.
    int64_t why = nats_error_of(answer, "err_code");
    return why == 10058 || why == 10065 || !said_no(line, answer);
}

static bool make_bucket(struct nats_link *line, struct str bucket)
{
    struct task_call *call = line->call;
    struct arena *arena = call->arena;
    struct json subjects = json_array(), answer;
    json_append(arena, &subjects, json_string(call_printf(call, "$KV.%.*s.>", STR_ARG(bucket))));
    return ask_bucket(line, "CREATE", bucket,
                      JSON_OF(arena, {"name", json_string(call_printf(call, "KV_%.*s", STR_ARG(bucket)))},
                              {"subjects", subjects}, {"max_msgs_per_subject", json_int(1)},
                              {"discard", json_word("new")}, {"allow_rollup_hdrs", json_bool(true)},
                              {"deny_delete", json_bool(true)}, {"allow_direct", json_bool(true)},
                              {"storage", json_word("file")}),
                      &answer);
}

enum { BUCKET_TRIES = 12 }; // about half a second

static void kv_put(struct nats_link *line, struct str bucket, struct str key, struct str head)
{
    struct task_call *call = line->call;
    struct json answer;
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
    if (none ? !absent(line) : said_no(line, &answer)) return;
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"key", json_string(key)},
                            {"revision", json_int(json_integer(json_key(&answer, "seq"), 0))}));
}

static void kv_get(struct nats_link *line, struct str bucket, struct str key)
{
    struct task_call *call = line->call;
    struct json answer, name = json_string(call_printf(call, "$KV.%.*s.%.*s", STR_ARG(bucket), STR_ARG(key)));
    if (!ask_bucket(line, "MSG.GET", bucket, JSON_OF(call->arena, {"last_by_subj", name}), &answer)) return;
    struct str hdrs = base64_read(json_text(json_at(&answer, STR("message.hdrs"))), call->arena);
    if (hdrs.len && memmem(hdrs.ptr, hdrs.len, "KV-Operation:", 13)) {
        call_fail(call, TASK_NOT_FOUND, "NATS_NOT_FOUND", "the key %.*s was deleted", STR_ARG(key));
        return;
    }
    struct str value = base64_read(json_text(json_at(&answer, STR("message.data"))), call->arena);
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"key", json_string(key)},
                            {"value", call_parse(call, value, true)},
                            {"revision", json_int(json_integer(json_at(&answer, STR("message.seq")), 0))}));
}

static void kv_keys(struct nats_link *line, struct str bucket)
{
    struct task_call *call = line->call;
    struct json answer, keys = json_array();
    struct str prefix = call_printf(call, "$KV.%.*s.", STR_ARG(bucket));
    struct json filter = json_string(call_printf(call, "%.*s>", STR_ARG(prefix)));
    if (!ask_bucket(line, "INFO", bucket, JSON_OF(call->arena, {"subjects_filter", filter}), &answer)) return;
    const struct json *subjects = json_at(&answer, STR("state.subjects"));
    for (uint32_t i = 0; json_is(subjects, JSON_OBJECT) && i < subjects->count; i++) {
        struct str subject = subjects->members[i].key;
        json_append(call->arena, &keys, json_string(str_slice(subject, prefix.len, subject.len)));
    }
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"keys", keys}));
}

// Without a stream: the server has read it, and who listens has it or not.
static bool publish_plain(struct nats_link *line, struct str subject, struct str body)
{
    struct error err = {0};
    enum code rc = nats_publish(&line->client, subject.ptr, NULL, STR(""), body, &err);
    if (!rc) rc = nats_settle(&line->client, &err);
    return !rc || broken(line, &err);
}

static void publish_one(struct nats_link *line, bool stored)
{
    struct task_call *call = line->call;
    struct json answer = json_object();
    struct str subject = call_printf(call, "%.*s", STR_ARG(call_string(call, "subject", "")));
    static const char *const names[] = {"message", "payload", "data", "value"};
    const struct json *value = NULL;
    for (size_t i = 0; !value && i < ARRAY_COUNT(names); i++) value = call_find(call, names[i]);
    struct str body = json_as_text(value, call->arena);
    bool none = false;
    if (!is_name(call, subject, "subject", true)) return;
    if (stored ? !ask(line, subject, STR(""), body, &answer, &none) : !publish_plain(line, subject, body)) return;
    if (none) {
        call_fail(call, TASK_NOT_FOUND, "NATS_NOT_FOUND", "no stream takes %.*s", STR_ARG(subject));
        return;
    }
    if (stored && said_no(line, &answer)) return;
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"subject", json_string(subject)},
                            {"stream", json_when(stored, json_string(json_text(json_key(&answer, "stream"))))},
                            {"seq", json_when(stored, json_int(json_integer(json_key(&answer, "seq"), 0)))}));
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
    int64_t timeout_ms = seconds_ms(call_get(call, "timeout"), TIMEOUT_MS);
    struct nats_link line = {.call = call, .client = {.arena = call->arena, .deadline = os_now().mono_ms + timeout_ms}};
    if (open_line(&line, timeout_ms)) operate(&line);
    nats_hang_up(line.client.nats);
}

static const char *const fields[] = {"auth",  "credential", "url",     "operation", "action", "bucket", "key",
                                     "value", "subject",    "message", "payload",   "data",   NULL};
const struct task_kind kind_nats = {.name = "nats", .fields = fields, .run = run};
