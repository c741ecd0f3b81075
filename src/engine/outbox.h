// The outbox (ES-5b, ADR 0036, docs/format/outbox.md): starts of attempts that are durable on this machine while their store takes
// nothing. An entry names the run and the last records of its log: it stands behind exactly those, or nowhere.
//
// A directory beside the store has a file for each process that ever needed one. The process that writes a file holds its lock; a file
// whose lock is free is read by each process that takes up a run. owner: engine thread.
#ifndef CAIRN_ENGINE_OUTBOX_H
#define CAIRN_ENGINE_OUTBOX_H

#include "os/os.h"
#include "store/store.h"

enum { OUTBOX_SIZE_MAX = 64 << 20 }; // bytes of one file: beyond it starts wait for the store

struct outbox {
    struct disk *disk; // NULL: there is no such directory yet
    bool borrowed;     // the disk is the caller's
    char *root;        // the directory; NULL: this store has nothing beside it
    struct file *file; // ours; NULL: nothing was written by this process
    char name[48];
    uint64_t size;
    bool broken;             // nobody knows what is in the file: nothing more is written to it
    bool left;               // an entry of ours is another owner's to log or to give up
    int64_t next_sweep_mono; // when files that others left are looked at; INT64_MAX: there is no directory
};

struct outbox_entry { // what one run put there at once
    struct str tenant, run;
    uint64_t epoch;
    struct replay_cursor after; // the records that it stands behind
    const struct str *moments;  // each as contract_encode_ledger writes it
    size_t count;
};

// `disk` NULL: BESIDE-outbox of the file system, made when the first entry is written.
enum code outbox_open(struct outbox *outbox, const struct store *store, struct disk *disk, struct error *err) MUST_CHECK;
void outbox_close(struct outbox *outbox);
bool outbox_takes(const struct outbox *outbox); // an entry may be written

// The line of an entry, behind what is in `out`. E_NOMEM.
enum code outbox_line(const struct outbox_entry *entry, struct buf *out, struct error *err) MUST_CHECK;
// Durable on OK. Otherwise nothing of it counts: E_FULL, E_LIMIT, E_DENIED, E_IO, E_NOMEM.
enum code outbox_write(struct outbox *outbox, struct str lines, struct entropy *entropy, struct error *err) MUST_CHECK;
void outbox_clear(struct outbox *outbox); // all entries of ours are in the log
// Our file is nobody's from now on: the next entry is written to another, and the sweep of a living process removes this one when the log
// has settled all of it.
void outbox_leave(struct outbox *outbox);

typedef enum code (*outbox_visit)(void *context, const struct outbox_entry *entry);
// Every entry of a run, of all files, in the order in which they were written: by epoch, then by line. Texts live in `arena`. An entry
// that was not written whole ends its file.
enum code outbox_of_run(struct outbox *outbox, struct str tenant, struct str run, struct arena *arena, outbox_visit visit,
                        void *context, struct error *err) MUST_CHECK;
// The entries of files that no living process writes. When `settled` says so of each, the file goes.
enum code outbox_sweep(struct outbox *outbox, bool (*settled)(void *context, const struct outbox_entry *entry),
                       void *context, struct error *err) MUST_CHECK;

#endif
