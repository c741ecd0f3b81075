// Private to fetch/: URIs as parsed, rules, addresses, wires.
#ifndef CAIRN_FETCH_INSIDE_H
#define CAIRN_FETCH_INSIDE_H

#include "fetch/fetch.h"

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

struct cidr {
    uint8_t bytes[16]; // of v4 the first four
    uint8_t size;      // 4 or 16
    uint8_t bits;
};
bool cidr_parse(struct str text, struct cidr *out) MUST_CHECK;
bool cidr_has(const struct cidr *cidr, const struct sockaddr *address);

struct rule {
    struct uri uri; // its path is the prefix
    bool allow_private;
    const struct cidr *networks;
    size_t network_count;
};
bool rule_admits(const struct rule *rule, const struct sockaddr *address);

// A credential by reference. Neither given: there is none.
struct secret_ref {
    struct str variable, file;
};
enum code secret_read(const struct secret_ref *ref, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;

struct account {
    struct str name;
    struct secret_ref key, sas;
};

// Where objects of one scheme live.
struct cloud {
    bool custom;          // an endpoint of one's own: buckets and accounts stand in the path
    struct rule endpoint; // scheme, host, port and who may answer; its host is empty unless custom
    struct str region;
    struct secret_ref key_id, secret, token; // s3, gs; no key: requests are not signed
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
enum code system_resolve(void *context, const char *host, int64_t timeout_ms, struct fetch_addresses *out,
                         struct error *err) MUST_CHECK;

#endif
