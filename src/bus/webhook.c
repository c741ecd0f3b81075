// A webhook: one POST an event, through the client that goes only where the policy allows. Nobody follows redirects.
#include "bus/inside.h"

#include "base/base64.h"

#include "auth/auth.h"

#include <stdio.h>

#define REPLY_MAX (64 * 1024) // of a body that nobody reads

// The first call connects; the connection is kept from event to event, by the one thread of the sink.
static enum code webhook_open(struct sink *sink, struct error *err)
{
    if (!sink->wire) sink->wire = fetch_keep_open();
    return sink->wire ? OK : error_nomem(err);
}

static void webhook_close(struct sink *sink)
{
    fetch_keep_close(sink->wire);
    sink->wire = NULL;
}

// ---- signatures

// A secret as standardwebhooks.com writes it is base64 behind its prefix; any other is taken as it is.
static struct str signing_key(struct str secret, struct arena *arena)
{
    struct str prefix = STR("whsec_");
    if (!str_starts(secret, prefix)) return secret;
    struct str key = base64_read(str_slice(secret, prefix.len, secret.len), arena);
    return key.ptr && key.len > 0 ? key : secret;
}

static bool sign(struct sink *sink, struct message *message, const char *time, struct arena *arena, struct error *err)
{
    struct str secret;
    char hex[SHA256_HEX + 1], text[SHA256_HEX + 64];
    if (!sink_has_secret(&sink->config.signing)) return true;
    if (sink_secret(&sink->config.signing, arena, &secret, err)) return false;
    secret = signing_key(secret, arena);
    struct buf signed_text SCOPED(buf_release) = buf_of(4096 + message->body.len);
    buf_printf(&signed_text, "%s.", time);
    buf_add(&signed_text, message->body);
    struct digest digest = hmac_sha256(secret, buf_str(&signed_text));
    digest_hex(&digest, hex);
    snprintf(text, sizeof(text), "t=%s,v1=%s", time, hex);
    bool ok = buf_ok(&signed_text) && message_header(message, "X-Cairn-Signature", str_from(text), arena);
    buf_clear(&signed_text); // the same in the way of standardwebhooks.com
    buf_printf(&signed_text, "%.*s.%s.", STR_ARG(message->id), time);
    buf_add(&signed_text, message->body);
    digest = hmac_sha256(secret, buf_str(&signed_text));
    ok = ok && buf_ok(&signed_text);
    buf_clear(&signed_text);
    buf_text(&signed_text, "v1,");
    buf_base64(&signed_text, (struct str){(const char *)digest.b, SHA256_SIZE});
    ok = ok && message_header(message, "webhook-signature", buf_str(&signed_text), arena);
    return ok || error_nomem(err) == OK;
}

static bool dress(struct sink *sink, struct message *message, struct arena *arena, struct error *err)
{
    char time[24], missing[24] = "";
    const struct json *own = &sink->config.headers;
    snprintf(time, sizeof(time), "%lld", (long long)(wall_now() / 1000));
    if (message->missing) snprintf(missing, sizeof(missing), "%llu", (unsigned long long)message->missing);
    bool ok = message_header(message, "Content-Type", message->content_type, arena) &&
              message_header(message, "webhook-id", message->id, arena) &&
              message_header(message, "webhook-timestamp", str_from(time), arena) &&
              message_header(message, "X-Cairn-Missing", str_from(missing), arena) &&
              message_header(message, "traceparent", message->trace, arena);
    for (size_t i = 0; ok && own->type == JSON_OBJECT && i < own->count && message->header_count < HEADERS_MAX; i++)
        message->headers[message->header_count++] =
            (struct http_header){.name = own->members[i].key, .value = own->members[i].value.text};
    if (!ok) return error_nomem(err) == OK;
    if (sink_has_secret(&sink->config.token)) {
        struct str token;
        char text[1024];
        if (sink_secret(&sink->config.token, arena, &token, err)) return false;
        snprintf(text, sizeof(text), "Bearer %.*s", STR_ARG(token));
        struct str value = arena_copy(arena, str_from(text));
        if (!value.ptr || message->header_count == HEADERS_MAX) return error_nomem(err) == OK;
        message->headers[message->header_count++] = (struct http_header){.name = STR("Authorization"), .value = value};
    }
    return sign(sink, message, time, arena, err);
}

// ---- answers

static int64_t retry_after(const struct fetch_answer *answer)
{
    int64_t seconds = 0;
    struct str text = fetch_header(answer, "Retry-After");
    return text.len && str_int64(text, &seconds) && seconds > 0 && seconds < 86400 ? seconds * 1000 : 0;
}

static void judge(const struct fetch_answer *got, struct delivery *out)
{
    int status = got->status;
    snprintf(out->why, sizeof(out->why), "the receiver answered %d", status);
    out->class = "REFUSED";
    if (status >= 200 && status < 300) {
        out->kind = ANSWER_DELIVERED;
    } else if (status == 410) {
        out->kind = ANSWER_GONE;
    } else if (status == 429 || status == 503) {
        out->kind = ANSWER_LATER;
        out->after_ms = retry_after(got);
    } else if (status >= 300 && status < 500 && status != 408) {
        out->kind = ANSWER_POISON;
        out->class = status < 400 ? "REDIRECT" : "REJECTED";
    } else {
        out->kind = ANSWER_REFUSED;
    }
}

static void webhook_send(struct sink *sink, uint32_t slot, const struct message *given)
{
    struct message message = *given;
    struct error err = {0};
    struct fetch_answer got = {0};
    struct delivery answer = {0};
    if (!dress(sink, &message, &sink->scratch, &err)) {
        sink_down(sink, err.message);
        return;
    }
    struct fetch_call call = {.method = STR("POST"),
                              .uri = sink->config.url,
                              .headers = message.headers,
                              .header_count = message.header_count,
                              .body = message.body,
                              .timeout_ms = sink->config.timeout_ms,
                              .body_max = REPLY_MAX,
                              .repeatable = true}; // receivers know events by their ids
    enum code rc = fetch_call_kept(sink->bus->options.fetch, sink->wire, &call, &sink->scratch, &got, &err);
    if (!rc) judge(&got, &answer);
    if (rc == E_LIMIT ||
        (rc == E_TIMEOUT && sink->config.silence_counts)) { // it did say something, if not what was expected
        answer = (struct delivery){.kind = ANSWER_REFUSED, .class = rc == E_LIMIT ? "REFUSED" : "TIMEOUT"};
        snprintf(answer.why, sizeof(answer.why), "%.190s", err.message);
        rc = OK;
    }
    if (rc)
        sink_down(sink, err.message);
    else
        sink_answer(sink, slot, &answer);
}

const struct transport webhook_transport = {
    .open = webhook_open,
    .send = webhook_send,
    .close = webhook_close,
};
