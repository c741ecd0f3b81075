// Private to store/: verifying one run (verify.c), and many runs by several threads (verify_all.c).
#ifndef CAIRN_STORE_VERIFY_H
#define CAIRN_STORE_VERIFY_H

#include "base/map.h"
#include "store/backend.h"

struct verify {
    struct store *store;
    struct arena *arena; // of the report
    struct arena page, scratch, run_arena;
    struct arena document_arena;
    struct map documents; // hashes of those that were found right
    struct verify_report *report; // its faults are set by verify_end
    struct faults faults;
    struct error *err;
    enum code rc; // the search itself broke down
    const struct run_head *head;
};

void verify_begin(struct verify *verify, struct store *store, struct arena *arena, struct verify_report *report,
                  struct error *err);
// Adds to the report. The head must live until it returns.
void verify_run(struct verify *verify, const struct run_head *head);
void verify_end(struct verify *verify);

#endif
