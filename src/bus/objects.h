// An object store of NATS as a place for results (store/keep.h): the objects of a bucket, as every client of NATS has them.
// `nats object get BUCKET SHA256` reads what is put here. docs/format/bus.md has names and messages.
//
// Connections are made when they are needed and kept for the next one. A server that does not answer is not asked again for a second.
// What was put or read lately is remembered, so that a template that reads a result ten times does not fetch it ten times.
#ifndef CAIRN_BUS_OBJECTS_H
#define CAIRN_BUS_OBJECTS_H

#include "json/json.h"
#include "store/keep.h"

// `config`: "nats://HOST:PORT/BUCKET", or an object of a sink's settings {"url", "bucket", "caFile", "timeoutMs", "token", "user",
// "password", "credentials"}; copied. Nobody is called yet. E_INVALID names the setting.
enum code objects_open(const struct json *config, struct keep **out, struct error *err) MUST_CHECK;

#endif
