#include "bus/nats.h"

#include <stdio.h>

#define ANSWER_MAX ((size_t)16 << 20)

static enum code broke(struct nats_client *client, enum code rc)
{
    if (rc) client->broken = true;
    return rc;
}

void nats_reply_name(struct nats_client *client, char out[NATS_REPLY_SIZE])
{
    snprintf(out, NATS_REPLY_SIZE, "%s%llu", client->nats->inbox, (unsigned long long)++client->asked);
}

enum code nats_publish(struct nats_client *client, const char *subject, const char *reply, struct str head,
                       struct str body, struct error *err)
{
    struct buf *out = &client->nats->out;
    buf_clear(out);
    buf_printf(out, "%s %s %s%s", head.len ? "HPUB" : "PUB", subject, reply ? reply : "", reply ? " " : "");
    if (head.len) buf_printf(out, "%zu ", head.len);
    buf_printf(out, "%zu\r\n", head.len + body.len);
    buf_add(out, head);
    buf_add(out, body);
    buf_text(out, "\r\n");
    enum code rc = buf_ok(out) ? nats_write(client->nats, buf_str(out), client->deadline, err) : error_nomem(err);
    buf_clear(out);
    return broke(client, rc);
}

enum code nats_settle(struct nats_client *client, struct error *err)
{
    struct nats_frame frame;
    enum code rc = nats_write(client->nats, STR("PING\r\n"), client->deadline, err);
    if (!rc) rc = nats_await(client->nats, FRAME_PONG, (struct str){0}, client->deadline, &frame, err);
    return broke(client, rc);
}

enum code nats_answer(struct nats_client *client, const char *reply, struct json *out, bool *none, struct error *err)
{
    struct nats_frame frame;
    enum code rc = nats_await(client->nats, FRAME_MESSAGE, str_from(reply), client->deadline, &frame, err);
    if (rc) return broke(client, rc);
    *none = str_starts(frame.head, STR("NATS/1.0 503"));
    *out = json_object();
    struct str text = arena_copy(client->arena, frame.text);
    nats_compact(client->nats);
    if (!text.ptr) return error_nomem(err);
    if (*none) return OK;
    struct json_limits limits = json_limits_default;
    limits.size_max = limits.string_size_max = ANSWER_MAX;
    if (json_parse(text, &limits, client->arena, out, NULL) == OK && json_is(out, JSON_OBJECT)) return OK;
    return broke(client, error_set(err, E_UNREACHABLE, "the answer is not one of JetStream"));
}

enum code nats_request(struct nats_client *client, const char *subject, struct str head, struct str body,
                       struct json *out, bool *none, struct error *err)
{
    char reply[NATS_REPLY_SIZE];
    nats_reply_name(client, reply);
    enum code rc = nats_publish(client, subject, reply, head, body, err);
    return rc ? rc : nats_answer(client, reply, out, none, err);
}

int64_t nats_error_of(const struct json *answer, const char *which)
{
    return json_integer(json_key(json_key(answer, "error"), which), 0);
}
