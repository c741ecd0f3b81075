// Runs beyond the process that made them: copied between stores, bundled into one signed file, proved, removed when their time is over.
//
//   image.c    one run, read whole
//   copy.c     runs of one store into another, as they are
//   notes.c    what a service remembers beside them, mirrored or put back
//   expire.c   artifacts whose time is over
//   export.c   runs into a bundle (store/bundle.h, docs/format/bundle.md)
//   redact.c   a record without its values
//   proof.c    a bundle checked: container, hashes, signature, chains
//   key.c      Ed25519 keys in PEM files
//   replay.c   a run lived again from its log
//   gc.c       runs whose time is over
//   tree.c     directories beside a store: artifacts and step logs
//
// Thread: the caller's; every function uses only the handles that it is given.
#ifndef CAIRN_ARCHIVE_ARCHIVE_H
#define CAIRN_ARCHIVE_ARCHIVE_H

#include "program/program.h"
#include "store/store.h"

// ---- one run in memory
struct image_blob {
    struct digest sha256;
    bool document; // the document or a part of it; else a result
};
struct run_image {
    struct run_head head;
    struct records events, ledger;
    struct image_blob *blobs; // that its events refer to, each once
    size_t blob_count, blob_capacity;
    struct str *children; // runs that its steps started
    size_t child_count, child_capacity;
    uint64_t size; // bytes of events and ledger
};
// Everything in `arena`. What is read is what the head said when it began, also when a writer is at work. E_CORRUPT: a record is
// missing or unreadable.
enum code archive_read(struct store *store, struct str tenant, struct str run, struct arena *arena,
                       struct run_image *out, struct error *err) MUST_CHECK;
// The same up to where `head` says, which the image borrows.
enum code archive_read_at(struct store *store, const struct run_head *head, struct arena *arena, struct run_image *out,
                          struct error *err) MUST_CHECK;

// ---- copying
struct copy_fault {
    struct str run, what;
};

struct copy_report {
    uint64_t new_count, same_count, extended_count; // runs
    uint64_t event_count, blob_count, byte_count;   // written
    uint64_t file_count;                            // of artifacts and step logs
    struct copy_fault *faults;                      // runs that were left out, and why
    size_t fault_count, fault_capacity;
};

struct copy_options {
    struct str tenant; // empty: all
    bool files;        // artifacts and step logs, too, where both stores keep them as files
    bool mark;         // unfinished runs become IMPORTED: nobody goes on with them unless he names them
    bool extend;       // runs that are there with less are brought up to date
    // Called after each batch; may be NULL.
    void (*tell)(void *context, const struct copy_report *report, uint64_t run_total);
    void *context;
};

// Copies all runs of a tenant, oldest first, many in one batch. Runs that are there with the same log cost one look, so that a copy
// that was cut short goes on where it was. A run that cannot be taken (damaged, or another log under its id) is left out and reported; the
// others are copied.
enum code archive_copy(struct store *from, struct store *to, const struct copy_options *options, struct arena *arena,
                       struct copy_report *out, struct error *err) MUST_CHECK;

// ---- what a service remembers beside the runs (S15)
enum notes_how {
    NOTES_MIRROR = 1, // a backup: the notes of `to` become those of `from`. E_CONFLICT: `to` has those of another store
    // A restore: `to` begins its next life (I46). Cursors of sinks and their dead letters, tokens of workers and of callers are void.
    NOTES_NEXT_LIFE,
    NOTES_DEFINITIONS // only definitions and their documents that `to` does not have
};
struct notes_report {
    uint64_t put_count, removed_count, void_count;
};
enum code archive_notes(struct store *from, struct store *to, enum notes_how how, int64_t now_ms, struct arena *arena,
                        struct notes_report *out, struct error *err) MUST_CHECK;
bool archive_has_notes(struct store *store, struct arena *arena);
// Between the two a backup is not whole, and a restore refuses it (E_CONFLICT).
enum code archive_backup_begin(struct store *to, int64_t now_ms, struct error *err) MUST_CHECK;
enum code archive_backup_end(struct store *to, int64_t now_ms, struct error *err) MUST_CHECK;
enum code archive_backup_check(struct store *from, struct error *err) MUST_CHECK;


// ---- keys
#define SIGNATURE_SIZE 64u
#define KEY_ID_SIZE (SHA256_HEX + 1)

struct archive_key; // Ed25519; private or public

enum code key_new(struct archive_key **out, struct error *err) MUST_CHECK;
// PEM files as `openssl genpkey` and `openssl pkey -pubout` make them. Either kind is found out; E_INVALID: not an Ed25519 key.
enum code key_load(const char *path, struct archive_key **out, struct error *err) MUST_CHECK;
enum code key_parse(struct str pem, struct archive_key **out, struct error *err) MUST_CHECK;
void key_free(struct archive_key *key);
bool key_is_private(const struct archive_key *key);
enum code key_pem(const struct archive_key *key, bool secret, struct arena *arena, struct str *out,
                  struct error *err) MUST_CHECK;
// SHA-256 of the public key in DER: what `openssl pkey -pubin -outform DER | sha256sum` prints.
enum code key_id(const struct archive_key *key, char out[KEY_ID_SIZE], struct error *err) MUST_CHECK;
enum code key_sign(const struct archive_key *key, struct str bytes, uint8_t out[SIGNATURE_SIZE],
                   struct error *err) MUST_CHECK;
bool key_verifies(const struct archive_key *key, struct str bytes, struct str signature);
// Adds {signature, keyId, publicKey} to `object`: of the canonical form of `part`.
enum code key_seal(const struct archive_key *key, const struct json *part, struct arena *arena, struct json *object,
                   struct error *err) MUST_CHECK;

// ---- bundles
struct export_options {
    const struct run_name *runs;
    size_t run_count;
    bool children;                                                          // runs that they started, too
    const struct archive_key *sign;                                         // NULL: unsigned
    const struct contract *contract;                                        // set: redact
    enum code (*write)(void *context, struct str bytes, struct error *err); // in order
    void *context;
};
struct export_report {
    uint64_t run_count, event_count, blob_count, redacted_count, byte_count;
};
// The same runs give the same bytes, whatever store they come from. E_UNSUPPORTED: a redaction of an event whose type is not known.
enum code archive_export(struct store *store, const struct export_options *options, struct arena *arena,
                         struct export_report *out, struct error *err) MUST_CHECK;

struct proof {
    struct verify_report runs;
    struct str *faults; // of the container, the hashes and the signature
    size_t fault_count, fault_capacity;
    bool redacted;
    bool is_signed;
    bool trusted;             // the signature was made by the key that was given
    char key_id[KEY_ID_SIZE]; // of the signer, as the bundle says
};
// Everything about a bundle that can be known from its bytes and, when it is given, the public key of who must have signed it. E_CORRUPT,
// E_INVALID: it cannot even be opened.
enum code archive_prove(const char *path, const struct archive_key *key, struct arena *arena, struct proof *out,
                        struct error *err) MUST_CHECK;
struct redaction {
    const struct contract *contract; // checks what comes out
    bool persons;                    // who asked for something stays
};
// Values taken out of an event's bytes; *changed is false when there were none.
enum code archive_redact(const struct redaction *how, const struct run_head *head, const struct record *record,
                         struct arena *arena, struct str *out, bool *changed, struct error *err) MUST_CHECK;
enum code archive_redact_entry(const struct redaction *how, const struct record *entry, struct arena *arena,
                               struct str *out, struct error *err) MUST_CHECK;

// ---- living a run again
#define REPLAY_TEXT 200

struct replay_report {
    uint64_t event_count;
    uint64_t fact_count;    // inputs that were given to the kernel again, and accidents
    uint64_t decided_count; // moments that came out as they were recorded
    uint64_t unasked_count; // decisions of playbooks over results that nobody has any more: taken as recorded
    bool state_differs;     // the summary that the store keeps is not what the log says
    char state[REPLAY_TEXT];
    bool
        differs; // the kernel decides something else; `seq` is the event (for the ledger, the event before) where it does
    uint64_t seq;
    char recorded[REPLAY_TEXT], decided[REPLAY_TEXT];
};
// `other` instead of the run's own document: how would the same facts have been answered? NULL: its own. E_CORRUPT: the log is broken, or
// cannot be folded.
enum code archive_replay(struct store *store, const struct run_head *head, const struct program *other,
                         struct replay_report *out, struct error *err) MUST_CHECK;

// ---- removing artifacts whose time is over, of runs that have ended
struct expiry {
    struct str tenant; // empty: all
    int64_t now_ms;
    bool dry;                    // only look
    bool (*rest)(void *context); // between pages of runs; false: that is enough for now. May be NULL
    void *context;
};
struct expiry_report {
    uint64_t run_count, file_count, file_bytes;
};
enum code archive_expire(struct store *store, const struct expiry *how, struct expiry_report *out,
                         struct error *err) MUST_CHECK;

// ---- removing runs whose time is over
struct gc_options {
    struct str tenant;    // empty: all
    int64_t before_ms;    // runs that ended before; INT64_MAX: whenever
    uint32_t status_mask; // of ended runs; 0 = all
    size_t keep_last;     // the newest so many families stay
    bool dry;             // only look
    int64_t now_ms;
    struct str reason; // for the tombstones
};
struct gc_report {
    uint64_t run_count, event_count, byte_count; // of logs
    uint64_t file_count, file_bytes;             // artifacts and step logs
    uint64_t blob_count, blob_bytes;
    uint64_t object_count, object_bytes; // results that are elsewhere (store/keep.h)
    uint64_t kept_count;                 // runs that stay
    uint64_t referred_count;             // of them: old enough, but needed by a run that has not ended
    bool blobs_unsure;                   // they stay: a run that stays is damaged, and nobody knows what it refers to
    bool blobs_locked;                   // they stay until nobody else uses the store
    char objects_stay[200];              // they do, and this is why; empty: they do not
};
// A run and the runs it started go together, when all of them have ended and are old enough. A run that an unfinished one was made from
// stays. Blobs, and results that are elsewhere, go when no run that stays refers to them.
enum code archive_gc(struct store *store, const struct gc_options *options, struct arena *arena, struct gc_report *out,
                     struct error *err) MUST_CHECK;

// ---- directories
// Regular files below `from` into `to`, which is made; links and special files are passed over. A `from` that is not there is fine.
enum code tree_copy(const char *from, const char *to, uint64_t *file_count, uint64_t *bytes,
                    struct error *err) MUST_CHECK;
enum code tree_size(const char *path, uint64_t *file_count, uint64_t *bytes, struct error *err) MUST_CHECK;
// Everything below, and the directory. Links are removed, never followed.
enum code tree_remove(const char *path, uint64_t *file_count, uint64_t *bytes, struct error *err) MUST_CHECK;

#endif
