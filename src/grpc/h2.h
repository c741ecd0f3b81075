// libnghttp2, found when it is first needed: a machine without it runs everything else. As os/pq.h does for PostgreSQL's library.
#ifndef CAIRN_GRPC_H2_H
#define CAIRN_GRPC_H2_H

#include "base/error.h"

#include <nghttp2/nghttp2.h>

enum code h2_load(struct error *err) MUST_CHECK; // E_UNSUPPORTED says what is missing

#endif
