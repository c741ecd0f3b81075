// Private to engine/: what fork.c finds out and fork_start.c carries out.
#ifndef CAIRN_ENGINE_FORK_H
#define CAIRN_ENGINE_FORK_H

#include "engine/inside.h"

struct fork_private {
    struct arena *arena; // holds everything; handed over to the queue by engine_fork
    struct store *store;
    struct run *source, *run;
    struct past whole, past; // all of it; what the new run takes over
    struct moment *moments;  // playbooks: as the source's log has them,
    uint64_t *seqs;          // the event that each is, or comes behind,
    size_t moment_count;
    struct moment next;      // and what followed; UNKNOWN: nothing
    uint64_t taken_seq;      // playbooks: the event up to which the past is taken over
    struct kernel_env env;   // of the source
    struct reuse *reuse;
    uint32_t reuse_count;
    struct append_blob *blobs;
    size_t blob_count;
    struct preface *decisions; // of the source up to the event
    size_t decision_count;
    int64_t now_ms;
};

// fork_net.c: how far a playbook's past is taken over, and what that means for its steps.
enum code fork_net_decide(struct fork *fork, const struct fork_request *request, struct error *err) MUST_CHECK;

#endif
