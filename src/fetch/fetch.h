// The one HTTP client. Two ways out of the process, and no third:
//
//   fetch_call, fetch_plan   to places that a document or a tenant names. A policy of rules decides, in this order: the text of the
//                            URI (strict, before any packet), the addresses its host resolves to (once; every one must be public
//                            unicast or allowed by the rule), the address that the socket is really connected to. No redirects, no
//                            proxies, no .netrc, no cookies, no environment. One code for every refusal: E_DENIED, whose message
//                            starts with PLAN_URI_NOT_ALLOWED. https verifies chain and name, always.
//   fetch_link               to a server that the user named on the command line: http, https or a Unix socket; kept alive.
//
// s3:, gs: and azure: URIs name objects, never hosts: the endpoint comes from the configuration, requests are signed here.
// Credentials are given by reference (a variable, a file), read when a request is signed, and never part of a message.
//
// Everything blocks, with a deadline. A policy may be used by any number of threads; a link or a kept connection by one at a time.
#ifndef CAIRN_FETCH_FETCH_H
#define CAIRN_FETCH_FETCH_H

#include "base/sha256.h"
#include "http/http.h"
#include "json/json.h"

struct sockaddr;

#define FETCH_URI_MAX 2048
#define FETCH_BODY_MAX (8u << 20) // of an answer, unless the policy says less
#define FETCH_TIMEOUT_MS 10000    // of a whole call, unless the policy says less
#define FETCH_INFLATED_MAX (16u << 20)
#define FETCH_RATIO_MAX 100
#define FETCH_ADDRESS_MAX 64 // addresses of one host

// ---- policy
struct fetch_policy;

// The configuration (docs/format/fetch.md): {"allow": [...], "s3": {...}, "gs": {...}, "azure": {...}, "limits": {...}, "caFile": "..."}.
// NULL or an empty object allows nothing. What is built borrows `config` and lives in `arena`. E_INVALID names the place.
enum code fetch_policy_parse(const struct json *config, struct arena *arena, struct fetch_policy **out,
                             struct error *err) MUST_CHECK;

// Textual: no name is resolved, nothing is sent. OK or E_DENIED.
enum code fetch_uri_check(const struct fetch_policy *policy, struct str uri, struct error *err) MUST_CHECK;
// Public unicast: neither private, loopback, link-local, multicast, reserved nor documentation, in any v6 disguise of v4.
bool fetch_address_public(const struct sockaddr *address);

// Who answers for names: getaddrinfo unless a test says otherwise. Fills at most FETCH_ADDRESS_MAX.
struct fetch_addresses;
struct fetch_resolver {
    void *context;
    enum code (*resolve)(void *context, const char *host, int64_t timeout_ms, struct fetch_addresses *out,
                         struct error *err);
};
void fetch_policy_resolver(struct fetch_policy *policy, struct fetch_resolver resolver);
// "10.0.0.5" or "::1"; for resolvers of tests. False: no address, or no room.
bool fetch_address_add(struct fetch_addresses *to, const char *text) MUST_CHECK;

// Who has the bytes of cairn://plans/SHA256 (the content store of this machine). E_NOT_FOUND when it has none.
struct fetch_plans {
    void *context;
    enum code (*load)(void *context, struct str sha256, struct arena *arena, struct str *bytes, struct error *err);
};
void fetch_policy_plans(struct fetch_policy *policy, struct fetch_plans plans);

// ---- calls
// Who asks an object store instead of whom the configuration names: a task's own credential. Where the store is, the configuration says
// all the same. Members that the scheme does not know are not looked at; all empty: the request is not signed.
struct fetch_signer {
    struct str key_id, secret, session; // s3, gs
    struct str bearer;                  // gs: an access token instead of a signature
    struct str key, sas;                // azure
    struct str region;                  // empty: as configured
};

// Gets the body as it arrives, in pieces of any size. False: enough, the call ends with E_CANCELLED.
typedef bool (*fetch_sink)(void *context, struct str bytes);

struct fetch_call {
    struct str method; // empty = GET
    struct str uri;    // of a link: path and query
    const struct http_header *headers;
    size_t header_count; // beside those of the client: Host, Content-Length, Connection, Authorization
    struct str body;
    int64_t timeout_ms; // of the whole call; 0 = the policy's or link's. With a sink on a link: of silence
    size_t body_max;    // of the answer's body; 0 = the policy's or link's. Not for a sink
    bool repeatable;    // may be sent again after a kept connection broke (GET, HEAD, PUT and DELETE always may)
    const struct fetch_signer *signer; // of an object store; NULL: as the policy says
    struct str query;   // of an object store: what is asked of it, escaped. A URI has none
    bool container;     // the bucket or container is asked, not the object; the URI is what the policy looks at all the same
    fetch_sink sink;    // of the body of a 2xx; other bodies come in the answer
    void *sink_context;
    bool (*stopped)(
        void *context); // true: the call ends with E_CANCELLED, within 100 ms. NULL: never, or as the link says
    void *stop_context;
};

struct fetch_answer {
    int status;
    const struct http_header *headers;
    size_t header_count;
    struct str body;
};

struct str fetch_header(const struct fetch_answer *answer, const char *name); // case folded; empty when absent

// Any status is OK, 3xx too: nobody follows it. E_DENIED (policy, or the server's certificate), E_IO (not reachable, broken
// off, not HTTP), E_TIMEOUT, E_LIMIT (head or body too large), E_UNSUPPORTED (cairn:), E_NOMEM, E_CANCELLED (the sink).
enum code fetch_call(const struct fetch_policy *policy, const struct fetch_call *call, struct arena *arena,
                     struct fetch_answer *answer, struct error *err) MUST_CHECK;

// A connection kept between calls to one place, under the same policy: what was checked when it was made holds for as long as it
// lives, a minute at most, so that names are looked up again. For http and https; other schemes connect anew each time.
struct fetch_keep;
struct fetch_keep *fetch_keep_open(void);       // nothing is connected yet; NULL: out of memory
void fetch_keep_close(struct fetch_keep *keep); // NULL is fine
// As fetch_call. A call that may be repeated is sent once more when the kept connection turns out to be closed. `keep` may be NULL.
enum code fetch_call_kept(const struct fetch_policy *policy, struct fetch_keep *keep, const struct fetch_call *call,
                          struct arena *arena, struct fetch_answer *answer, struct error *err) MUST_CHECK;

// ---- objects of a store
// "s3://bucket/key", the key escaped. In arena; ptr NULL: out of memory.
struct str fetch_object_uri(const char *scheme, struct str bucket, struct str key, struct arena *arena);

struct fetch_object {
    struct str key;  // of azure without the container
    int64_t size;    // -1: not said
    struct str etag, modified; // as the store writes them
};
struct fetch_listing {
    const struct fetch_object *objects;
    size_t count;
    struct str next; // where the next page begins; empty: this was the last one
    int status;      // what the store answered; other than 200: no objects, and its answer is there
    struct fetch_answer answer;
};
// A page of the names that begin with what call->uri names: s3://BUCKET/PREFIX, azure://ACCOUNT/CONTAINER/PREFIX. Names that the policy
// does not allow are left out. `from` is `next` of the page before, or empty. Errors as fetch_call; E_CORRUPT: no list came.
enum code fetch_list(const struct fetch_policy *policy, const struct fetch_call *call, struct str from, int64_t max,
                     struct arena *arena, struct fetch_listing *out, struct error *err) MUST_CHECK;

// What gzip has made small, up to FETCH_INFLATED_MAX and FETCH_RATIO_MAX: E_CORRUPT, E_LIMIT, E_NOMEM.
enum code fetch_inflate(struct str from, struct arena *arena, struct str *bytes, struct error *err) MUST_CHECK;

// ---- plans
struct plan_ref {
    struct str uri, sha256, schema_version, plan_id, plan_version;
    struct str compression; // "gzip", "none" or empty
    uint64_t size;          // bytes as stored; 0 = not said
    int64_t expires_ms;     // wall clock; 0 = never
};
// From {"uri", "sha256", "schemaVersion", "planId", "planVersion"} and perhaps "sizeBytes", "expiresAt", "compression"; other
// members are not looked at. Borrows. E_INVALID names the member. Nothing is checked but types: fetch_plan does the rest.
enum code fetch_plan_ref(const struct json *value, struct plan_ref *out, struct error *err) MUST_CHECK;
struct plan_trip {
    // Of what came, for the audit alone: to a tenant it would tell what stands behind an address. All zero: nothing came.
    struct digest actual;
    int status;           // what the server answered instead of the plan, or 200; 0: none answered
    bool object;          // of an object store: the configuration says which server it is, not the reference
};
// Downloads, inflates, compares.
// As fetch_call, and E_CORRUPT (PLAN_INTEGRITY_VALIDATION_FAILED), E_DENIED (expired too), E_NOT_FOUND, E_INVALID (the reference),
// E_UNREACHABLE (not now: 429, 5xx).
enum code fetch_plan(const struct fetch_policy *policy, const struct plan_ref *ref, struct arena *arena,
                     struct str *bytes, struct plan_trip *trip, struct error *err) MUST_CHECK;

// ---- a link to our own server
// Where an http: or https: URI leads, by the grammar that plans are fetched by; addresses are hosts too. E_INVALID says why it cannot
// be read. Nothing is sent.
struct fetch_place {
    bool secure; // https
    bool here;   // localhost, 127.0.0.1 or [::1]: only this machine hears what is sent there
    char host[256];
};
enum code fetch_place_parse(struct str uri, struct fetch_place *out, struct error *err) MUST_CHECK;

struct fetch_link;

struct fetch_link_options {
    struct str url;   // "http://HOST:PORT", "https://HOST[:PORT]", "unix:PATH"; a path is put before that of each call
    struct str token; // sent as bearer token; empty = none. Never part of a message
    struct str ca_file;             // instead of the system's; empty = the system's
    struct str cert_file, key_file; // PEM: shown to a server that asks for one; both or none
    int64_t timeout_ms;             // of a call; 0 = 30 s
    size_t body_max;                // 0 = 64 MiB
    bool (*stopped)(void *context); // true: calls end with E_CANCELLED, within 100 ms. NULL = never
    void *stop_context;
};
// Nothing is sent yet. Copies. E_INVALID (the URL), E_NOMEM.
enum code fetch_link_open(const struct fetch_link_options *options, struct fetch_link **out,
                          struct error *err) MUST_CHECK;
// As fetch_call, without a policy. Connects when there is no connection; one that the server has closed meanwhile is made
// anew. E_IO after the request was sent means: it may or may not have been done.
enum code fetch_link_call(struct fetch_link *link, const struct fetch_call *call, struct arena *arena,
                          struct fetch_answer *answer, struct error *err) MUST_CHECK;
bool fetch_link_sent(const struct fetch_link *link); // whether anything of the last call may have reached the server
void fetch_link_close(struct fetch_link *link);      // NULL is fine

#endif
