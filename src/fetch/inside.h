// Private to fetch/: URIs as parsed, rules, addresses, requests on a wire.
#ifndef CAIRN_FETCH_INSIDE_H
#define CAIRN_FETCH_INSIDE_H

#include "fetch/fetch.h"
#include "fetch/wire.h"
#include "os/os.h"

#include <netinet/in.h>

#define NOT_ALLOWED "PLAN_URI_NOT_ALLOWED: "
#define HOST_MAX 253

enum scheme { SCHEME_HTTPS = 1, SCHEME_HTTP, SCHEME_S3, SCHEME_GS, SCHEME_AZURE, SCHEME_CAIRN };

// A URI that passed the grammar. For s3, gs: host is the bucket; azure: host is the account; cairn: host is "plans".
struct uri {
    enum scheme scheme;
    char host[HOST_MAX + 1]; // lower case; of an IPv6 literal without brackets
    bool literal;            // an address, not a name
    uint16_t port;           // of http and https, the default filled in
    struct str path;         // as written, from the first '/'; never empty, no dot or empty segments
    struct str query;        // as written, without '?'
};
// `rule`: a leading dot of the host and IP literals are let through, for rules and endpoints. The reason is a constant.
bool uri_parse(struct str text, bool rule, struct uri *out, const char **reason) MUST_CHECK;
// Names that never leave a machine or a site: localhost, *.local, *.internal, one label.
bool uri_host_local(const char *host);
// Percent-decodes; false on a malformed escape or when memory ran out.
bool uri_decode(struct str text, struct arena *arena, struct str *out) MUST_CHECK;

struct address {
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    };
};
struct fetch_addresses {
    size_t count;
    struct address list[FETCH_ADDRESS_MAX];
};

struct rule {
    struct uri uri; // its path is the prefix
    bool allow_private;
    const struct os_network *networks;
    size_t network_count;
};
bool rule_admits(const struct rule *rule, const struct sockaddr *address);

// A credential by reference. Neither given: there is none.
struct secret_source {
    struct str variable, file;
};
enum code credential_read(const struct secret_source *ref, struct arena *arena, struct str *out,
                          struct error *err) MUST_CHECK;

struct account {
    struct str name;
    struct secret_source key, sas, customer;
};

// Where objects of one scheme live.
struct cloud {
    bool custom;          // an endpoint of one's own: buckets and accounts stand in the path
    struct rule endpoint; // scheme, host, port and who may answer; its host is empty unless custom
    struct str region;
    struct secret_source key_id, secret, token; // s3, gs; no key: requests are not signed
    struct secret_source customer;              // s3: objects are encrypted with this key, which the server does not keep
    const struct account *accounts;          // azure
    size_t account_count;
};

struct fetch_policy {
    const struct rule *rules;
    size_t rule_count;
    struct cloud s3, gs, azure;
    size_t body_max;
    int64_t timeout_ms;
    struct str ca_file;
    struct fetch_resolver resolver;
    struct fetch_plans plans;
};
// The rule that allows `text`, parsed into *uri.
enum code policy_match(const struct fetch_policy *policy, struct str text, struct uri *uri, const struct rule **rule,
                       struct error *err) MUST_CHECK;

// Addresses of a host within the time; literals need no resolver. E_IO, E_TIMEOUT, E_NOMEM.
enum code address_resolve(const struct fetch_resolver *resolver, const struct uri *uri, int64_t timeout_ms,
                          struct fetch_addresses *out, struct error *err) MUST_CHECK;

int64_t mono_ms(void);
enum code wire_dial_uri(struct wire *wire, const struct uri *uri,
                        struct error *err) MUST_CHECK; // by any of its addresses

// ---- one request and its answer on a wire
#define EXCHANGE_ROOM 16384

struct exchange; // parser and buffers; kept from call to call
struct exchange_request {
    struct str method, target, host;
    const struct http_header *headers;
    size_t header_count;
    struct str body;
    size_t body_max;
    int64_t silence_ms; // > 0: the deadline moves on with every piece of the body
    fetch_sink sink;
    void *sink_context;
};
struct exchange *exchange_new(void); // NULL: out of memory
void exchange_free(struct exchange *exchange);
// *heard: a byte of an answer came. *reusable: another request may follow on this wire.
enum code exchange_run(struct exchange *exchange, struct wire *wire, const struct exchange_request *request,
                       struct arena *arena, struct fetch_answer *answer, bool *heard, bool *reusable,
                       struct error *err) MUST_CHECK;
// Whether a request may be sent again that nobody answered.
bool call_repeatable(const struct fetch_call *call);
// "host" or "host:port", as a Host header has it. In arena; ptr NULL on failure.
struct str host_header(const struct uri *uri, struct arena *arena);

// ---- signed requests to object stores
// Where a request goes once its URI is understood.
struct fetch_target {
    struct uri uri;    // scheme, host, port
    struct rule reach; // which addresses may answer
    struct str path;   // and query, as sent
    const struct http_header *headers;
    size_t header_count;
};
struct cloud_time {
    int64_t now_ms;    // wall clock, corrected
    struct str region; // other than the configured one; empty = none
};
// The path of a URI as its request needs it, decoded: of the object, or of the bucket (azure: the container) when that is asked.
enum code object_key(const struct uri *uri, const struct fetch_call *call, struct arena *arena, struct str *out,
                     struct error *err) MUST_CHECK;
// E_NOT_FOUND (a credential), E_NOMEM.
enum code s3_target(const struct fetch_policy *policy, const struct uri *uri, const struct fetch_call *call,
                    const struct cloud_time *time, struct arena *arena, struct fetch_target *out,
                    struct error *err) MUST_CHECK; // s3 and gs
enum code azure_target(const struct fetch_policy *policy, const struct uri *uri, const struct fetch_call *call,
                       const struct cloud_time *time, struct arena *arena, struct fetch_target *out,
                       struct error *err) MUST_CHECK;
// The same with "?query" behind it; empty: nothing.
struct str with_query(struct str path, struct str query, struct arena *arena);
// "/first/key", escaped as signatures want it. ptr NULL: out of memory.
struct str object_path(struct str first, struct str key, struct arena *arena);
bool region_valid(struct str region);
// The key of the customer that objects are encrypted with, as headers: algorithm, key, hash of the key, in base64. Nothing when `ref`
// names none. E_INVALID: not 32 bytes in base64; E_NOT_FOUND, E_NOMEM.
struct customer_names {
    const char *algorithm, *key, *hash;
    bool md5; // else SHA-256
};
enum code customer_headers(const struct secret_source *ref, const struct customer_names *names, struct arena *arena,
                           struct http_header out[3], size_t *count, struct error *err) MUST_CHECK;

struct sigv4 {
    struct str key_id, secret, token, region, service;
    int64_t now_ms;
    struct str method, host, path, query; // path encoded; query encoded, in any order
    const struct http_header *headers;    // all of them are signed
    size_t header_count;
    struct digest body;
};
// Writes x-amz-date, x-amz-content-sha256, x-amz-security-token and Authorization into out[4]; *count says how many.
bool sigv4_sign(const struct sigv4 *request, struct arena *arena, struct http_header out[4], size_t *count) MUST_CHECK;

struct shared_key {
    struct str account, key; // base64
    struct str method, path, query;
    uint64_t length;
    const struct http_header *headers; // x-ms-* and the standard ones
    size_t header_count;
};
// The value of Authorization. E_INVALID: the key is not base64.
enum code shared_key_sign(const struct shared_key *request, struct arena *arena, struct str *out,
                          struct error *err) MUST_CHECK;

#endif
