// The contract of store/store.h as tests: one or more per clause S1..S17, run on every store as it ships.
//
//   static const struct store_case files = {.name = "files", .scratch = ..., .durable = true, ...};
//   int main(int argc, char **argv) { return store_suite(&files, argc, argv); }
//
// A test that needs what a store does not have (a second writer, a life after closing) is skipped for it, by the flags.
#ifndef CAIRN_TEST_CONFORMANCE_STORE_SUITE_H
#define CAIRN_TEST_CONFORMANCE_STORE_SUITE_H

#include "harness/test.h"
#include "store/store.h"

// Damage done to a stored run behind the store's back, with all the force that takes (triggers dropped, files edited).
enum tamper {
    TAMPER_FLIP = 1,    // bit `bit` of the bytes of event `seq`
    TAMPER_DELETE,      // event `seq` is gone; what follows stays as it is
    TAMPER_SWAP,        // events `seq` and `seq` + 1 change places (their bytes, not their numbers)
    TAMPER_CUT,         // event `seq` and all after it are gone; the head stays
    TAMPER_REPEAT,      // a copy of event `seq` is put after the last one, numbered as its successor
    TAMPER_LEDGER_FLIP, // the same for ledger entry `seq`
    TAMPER_LEDGER_DELETE,
    TAMPER_LEDGER_CUT,
    TAMPER_DOCUMENT, // the store keeps the hash of "another document" for the run
    TAMPER_RUN,      // what tells of the run itself is gone; `seq` says how, from 1 on
};

struct store_case {
    const char *name;  // "sqlite"; the program is called conformance_<name>
    bool durable;      // what was appended is there after closing, or dying, and opening again
    bool shared;       // a READ handle may look while a WRITE handle is open
    bool many_writers; // two WRITE handles may be open at once, each for its own runs
    // URL of a store that does not exist yet, inside test_dir(); valid until the test ends.
    const char *(*scratch)(void);
    // The same of one that several engines share (S17); NULL: it has one at a time.
    const char *(*several)(void);
    // Options as the product opens it; NULL: {mode, create = (mode == STORE_WRITE), contract, os_entropy()}.
    void (*options)(struct store_options *options);
    // False when there is no such bit, or this damage makes no sense for this store. NULL: the test is skipped.
    // `store` is an open handle on it (READ or WRITE); run "r" belongs to tenant "default".
    bool (*tamper)(struct store *store, enum tamper what, struct str run, uint64_t seq, size_t bit);
    size_t
        flip_stride; // only every so many bits are flipped (one that has no factor 2 meets each bit of a byte); 0 = 1
    // Takes the run away from the handle that holds it, as if its process were dead although it is not: afterwards another
    // holder has appended one event of its own choice or at least raised the epoch. NULL: cannot happen, skipped.
    void (*usurp)(struct store *store, struct str tenant, struct str run);
    // Tests of its own, run after the suite's.
    const struct test *more;
    size_t more_count;
};

int store_suite(const struct store_case *store_case, int argc, char **argv);

#endif
