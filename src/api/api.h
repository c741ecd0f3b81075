// HTTP over the service: one table of routes (route.c), a handler per route, one page that describes them (openapi.c).
//
//   net thread: authenticate, find the route ──▶ handler ──▶ service (engine or reader thread) ──▶ reply.c ──▶ net
//
// Every refusal is problem+json (RFC 9457) with a code. What is streamed goes through the hub (stream.c): engine thread marks,
// a thread of its own reads and sends.
#ifndef CAIRN_API_API_H
#define CAIRN_API_API_H

#include "net/net.h"
#include "service/service.h"

struct api;

struct api_options {
    struct str name;            // of this service in problem types and audiences; empty = "cairn"
    const char *page_dir;       // the page is read from there; NULL = what the binary carries
    uint32_t streams_per_token; // more are refused (429). 0 = 16
};

// Before the service, because the service reports to it; api_serve gives it the service.
enum code api_open(const struct api_options *options, struct api **out, struct error *err) MUST_CHECK;
struct service_hooks api_hooks(struct api *api);
enum code api_serve(struct api *api, struct service *service, struct net_server *server, struct error *err) MUST_CHECK;
void api_handle(void *api, struct net_exchange *exchange);         // for net_options.handle
uint64_t api_body_max(void *api, struct net_exchange *exchange);   // how large a body may be there
// In this order: net_run has returned, service_stop, api_stop, net_close, api_close, service_close. So nothing is answered into a
// door that is gone, and no stream that is over is reported to an owner that is gone.
void api_stop(struct api *api);
void api_close(struct api *api);

#endif
