// Private to engine/: what fork.c finds out and fork_start.c carries out.
#ifndef CAIRN_ENGINE_FORK_H
#define CAIRN_ENGINE_FORK_H

#include "engine/inside.h"

struct fork_private {
    struct arena *arena; // holds everything; handed over to the queue by engine_fork
    struct store *store;
    struct run *source, *run;
    struct past whole, past; // all of it; what the new run takes over
    struct reuse *reuse;
    uint32_t reuse_count;
    struct append_blob *blobs;
    size_t blob_count;
    struct preface *decisions; // of the source up to the event
    size_t decision_count;
    int64_t now_ms;
};

#endif
