// One call under a policy: text, addresses, connection, TLS, request; each step only after the one before has been found good.
#include "fetch/inside.h"

#include "base/civil.h"
#include "http/http.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SKEW_MS (5 * 60 * 1000) // beyond which a signature is refused
#define KEPT_MS (60 * 1000)     // of a connection

// Headers that are the client's to write. An object store's are signed, so nobody else writes those either.
static enum code headers_check(const struct fetch_call *call, bool object, struct error *err)
{
    static const char *const ours[] = {
        "host",    "content-length", "transfer-encoding", "connection",         "te", "trailer",
        "upgrade", "expect",         "keep-alive",        "proxy-authorization"};
    static const char *const signed_by_us[] = {"authorization",        "x-amz-date", "x-amz-content-sha256",
                                               "x-amz-security-token", "x-ms-date",  "x-ms-version"};
    for (size_t i = 0; i < call->header_count; i++) {
        struct str name = call->headers[i].name;
        bool taken = !http_header_valid(call->headers[i]);
        for (size_t k = 0; k < ARRAY_COUNT(ours); k++) taken |= http_name_is(name, ours[k]);
        for (size_t k = 0; object && k < ARRAY_COUNT(signed_by_us); k++) taken |= http_name_is(name, signed_by_us[k]);
        if (taken) return error_set(err, E_INVALID, "the header %.*s cannot be given", STR_ARG(str_slice(name, 0, 64)));
    }
    return OK;
}

static enum code plain_target(const struct uri *uri, const struct rule *rule, const struct fetch_call *call,
                              struct arena *arena, struct fetch_target *out, struct error *err)
{
    *out = (struct fetch_target){.uri = *uri, .reach = *rule, .headers = call->headers, .header_count = call->header_count};
    out->path = with_query(uri->path, uri->query, arena);
    return out->path.ptr ? OK : error_nomem(err);
}

// The tenant that named the URI does not learn why nothing answered: that would be a map of ports. The log of the service has it.
static enum code unreachable(const struct fetch_target *target, const struct error *why, struct error *err)
{
    os_log(LOG_INFO, "a fetch did not reach its server host=%s why=\"%s\"", target->uri.host, why->message);
    return error_set(err, E_IO, "the server of the URI cannot be reached");
}

static enum code refuse_address(struct error *err)
{
    return error_set(err, E_DENIED, NOT_ALLOWED "the host leads to an address that is not allowed");
}

// Is the other end one of the addresses that were checked?
static bool peer_admitted(const struct wire *wire, const struct rule *reach)
{
    struct address peer = {.size = sizeof(peer.room)};
    return getpeername(wire->fd, &peer.any, &peer.size) == 0 && rule_admits(reach, &peer.any);
}

static enum code reach(const struct fetch_policy *policy, const struct fetch_target *target, struct wire *wire,
                       struct error *err)
{
    struct fetch_addresses addresses;
    struct error why = {0};
    enum code rc = address_resolve(&policy->resolver, &target->uri, wire->deadline - mono_ms(), &addresses, &why);
    if (rc) return unreachable(target, &why, err);
    for (size_t i = 0; i < addresses.count; i++)
        if (!rule_admits(&target->reach, &addresses.list[i].any)) return refuse_address(err);
    int64_t deadline = wire->deadline;
    for (size_t i = 0; i < addresses.count; i++) {
        // What is left is shared by the addresses that are left: one that swallows packets does not eat it all.
        wire->deadline = mono_ms() + (deadline - mono_ms()) / (int64_t)(addresses.count - i);
        why = (struct error){0};
        rc = wire_connect(wire, &addresses.list[i], &why);
        if (!rc) break;
    }
    wire->deadline = deadline;
    if (rc) return unreachable(target, &why, err);
    if (!peer_admitted(wire, &target->reach)) return refuse_address(err);
    if (target->uri.scheme != SCHEME_HTTPS) return OK;
    struct wire_tls tls = {.host = target->uri.host, .ca_file = policy->ca_file, .alpn = "http/1.1"};
    return wire_secure(wire, &tls, err);
}

// ---- the connection: of this call, or kept

struct fetch_keep {
    struct wire wire;
    struct exchange *exchange;
    struct uri uri; // scheme, host and port that it leads to
    int64_t since;
};

struct fetch_keep *fetch_keep_open(void)
{
    struct fetch_keep *keep = calloc(1, sizeof(*keep));
    if (!keep) return NULL;
    keep->wire.fd = -1;
    keep->exchange = exchange_new();
    if (keep->exchange) return keep;
    free(keep);
    return NULL;
}

void fetch_keep_close(struct fetch_keep *keep)
{
    if (!keep) return;
    wire_close(&keep->wire);
    exchange_free(keep->exchange);
    free(keep);
}

// Is the connection still good for this place?
static bool leads_to(const struct fetch_keep *keep, const struct fetch_target *target)
{
    return keep->wire.fd >= 0 && keep->uri.scheme == target->uri.scheme && keep->uri.port == target->uri.port &&
           strcmp(keep->uri.host, target->uri.host) == 0 && mono_ms() - keep->since < KEPT_MS && wire_idle(&keep->wire);
}

// ---- one call on its way

struct trip {
    const struct fetch_policy *policy;
    const struct fetch_call *call;
    struct fetch_keep *keep;
    bool once; // the connection ends with the answer
    struct arena *arena;
    struct fetch_answer *answer;
};

static size_t body_limit(const struct trip *trip)
{
    size_t asked = trip->call->body_max, allowed = trip->policy->body_max;
    return asked && asked < allowed ? asked : allowed;
}

// *heard: the server has begun to answer. *reusable: the connection is good for another request.
static enum code ask(const struct trip *trip, const struct fetch_target *target, bool *heard, bool *reusable,
                     struct error *err)
{
    const struct fetch_call *call = trip->call;
    struct http_header *headers = ARENA_ARRAY(trip->arena, target->header_count + 1, struct http_header);
    struct str host = host_header(&target->uri, trip->arena);
    if (!headers || !host.ptr) return error_nomem(err);
    if (target->header_count) memcpy(headers, target->headers, target->header_count * sizeof(*headers));
    headers[target->header_count] = (struct http_header){STR("Connection"), STR("close")};
    struct exchange_request request = {.method = call->method.len ? call->method : STR("GET"),
                                       .target = target->path,
                                       .host = host,
                                       .headers = headers,
                                       .header_count = target->header_count + trip->once,
                                       .body = call->body,
                                       .body_max = body_limit(trip),
                                       .sink = call->sink,
                                       .sink_context = call->sink_context};
    return exchange_run(trip->keep->exchange, &trip->keep->wire, &request, trip->arena, trip->answer, heard, reusable,
                        err);
}

static enum code connect_to(const struct trip *trip, const struct fetch_target *target, struct error *err)
{
    struct fetch_keep *keep = trip->keep;
    enum code rc = reach(trip->policy, target, &keep->wire, err);
    keep->uri = target->uri;
    keep->since = mono_ms();
    if (rc) wire_close(&keep->wire);
    return rc;
}

static enum code ask_kept(const struct trip *trip, const struct fetch_target *target, struct error *err)
{
    struct fetch_keep *keep = trip->keep;
    bool kept = leads_to(keep, target), heard = false, reusable = false;
    if (!kept) wire_close(&keep->wire);
    for (;;) {
        struct error why = {0};
        enum code rc = kept ? OK : connect_to(trip, target, err);
        if (rc) return rc;
        rc = ask(trip, target, &heard, &reusable, &why);
        if (rc || trip->once || !reusable) wire_close(&keep->wire);
        // It may have been closed by the server while the request was on its way.
        if (rc == E_IO && kept && !heard && call_repeatable(trip->call)) {
            kept = false;
            continue;
        }
        if (rc && err) *err = why;
        return rc;
    }
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
static bool date_parse(struct str text, int64_t *ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.len != 29) return false;
    for (int month = 0; month < 12; month++) {
        if (memcmp(months + 3 * month, text.ptr + 8, 3) != 0) continue;
        struct buf out SCOPED(buf_release) = buf_of(64);
        buf_printf(&out, "%.4s-%02d-%.2sT%.8sZ", text.ptr + 12, month + 1, text.ptr + 5, text.ptr + 17);
        return buf_ok(&out) && civil_parse(buf_str(&out), ms);
    }
    return false;
}

// An object store that knows another time or another region says so, and is asked once more.
static bool better_time(const struct fetch_answer *answer, struct arena *arena, struct cloud_time *time)
{
    int64_t theirs;
    struct str region = fetch_header(answer, "x-amz-bucket-region");
    bool moved = answer->status == 301 || answer->status == 307 || answer->status == 400;
    if (moved && region_valid(region) && !str_eq(region, time->region)) {
        time->region = arena_copy(arena, region);
        return time->region.ptr != NULL;
    }
    if (answer->status != 403 || !date_parse(fetch_header(answer, "Date"), &theirs)) return false;
    bool skewed = theirs > time->now_ms + SKEW_MS || theirs < time->now_ms - SKEW_MS;
    time->now_ms = theirs;
    return skewed;
}

static enum code go(const struct trip *trip, const struct uri *uri, const struct rule *rule,
                    const struct cloud_time *time, struct error *err)
{
    struct fetch_target target;
    const struct fetch_call *call = trip->call;
    enum code rc = OK;
    if (uri->port)
        rc = plain_target(uri, rule, call, trip->arena, &target, err);
    else if (uri->scheme == SCHEME_AZURE)
        rc = azure_target(trip->policy, uri, call, time, trip->arena, &target, err);
    else
        rc = s3_target(trip->policy, uri, call, time, trip->arena, &target, err);
    return rc ? rc : ask_kept(trip, &target, err);
}

enum code fetch_call_kept(const struct fetch_policy *policy, struct fetch_keep *given, const struct fetch_call *call,
                          struct arena *arena, struct fetch_answer *answer, struct error *err)
{
    struct uri uri;
    const struct rule *rule;
    enum code rc = policy_match(policy, call->uri, &uri, &rule, err);
    if (rc) return rc;
    if (uri.scheme == SCHEME_CAIRN) return error_set(err, E_UNSUPPORTED, "cairn: names plans, which are not called");
    rc = headers_check(call, !uri.port, err);
    if (rc) return rc;
    int64_t timeout = policy->timeout_ms;
    if (call->timeout_ms > 0 && call->timeout_ms < timeout) timeout = call->timeout_ms;
    struct cloud_time time = {.now_ms = os_now().wall_ms};
    bool dated = uri.scheme == SCHEME_S3 || uri.scheme == SCHEME_GS;
    struct fetch_keep *keep = given ? given : fetch_keep_open();
    if (!keep) return error_nomem(err);
    keep->wire.deadline = mono_ms() + timeout;
    keep->wire.stopped = call->stopped;
    keep->wire.stop_context = call->stop_context;
    struct trip trip = {policy, call, keep, .once = !given || !uri.port, arena, answer};
    rc = go(&trip, &uri, rule, &time, err);
    if (!rc && dated && better_time(answer, arena, &time)) rc = go(&trip, &uri, rule, &time, err);
    if (!given) fetch_keep_close(keep);
    return rc;
}

enum code fetch_call(const struct fetch_policy *policy, const struct fetch_call *call, struct arena *arena,
                     struct fetch_answer *answer, struct error *err)
{
    return fetch_call_kept(policy, NULL, call, arena, answer, err);
}
