// A bundle: runs, proved and portable, in one file that `tar`, `sha256sum` and `openssl` can read. docs/format/bundle.md is normative.
//
//   SHA256SUMS           the hash of every member below, in order; what is signed
//   SHA256SUMS.sig       Ed25519 signature of SHA256SUMS (64 bytes) ┐ only in
//   SHA256SUMS.pub       the signer's public key (PEM)              ┘ signed bundles
//   manifest.json        {"events":n,"format":"cairn-bundle","redacted":bool,"runs":n,"version":1}
//   runs.jsonl           one line per run: its identity, numbers, heads, summary
//   runs/N/events.jsonl  the events of the run in line N, one record a line
//   runs/N/ledger.jsonl  its ledger, when there is one
//   blobs/SHA256         documents and results, in order
//
// The container is ustar and canonical: the same runs give the same bytes, and a reader accepts nothing else. "bundle:FILE" opens one as a
// store that can only be read.
//
// A redacted event is a line {"record":R,"redacted":{"hash":H}}: R is the record without its values, H the hash that the whole
// record had, so that the chain can be followed over it.
#ifndef CAIRN_STORE_BUNDLE_H
#define CAIRN_STORE_BUNDLE_H

#include "store/store.h"

#define BUNDLE_BLOCK 512u
#define BUNDLE_VERSION 1
#define BUNDLE_SUMS "SHA256SUMS"
#define BUNDLE_SIGNATURE "SHA256SUMS.sig"
#define BUNDLE_KEY "SHA256SUMS.pub"
#define BUNDLE_MANIFEST "manifest.json"
#define BUNDLE_RUNS "runs.jsonl"
#define BUNDLE_MEMBER_MAX (UINT64_C(077777777777)) // bytes: eleven octal digits

// ---- the container
struct bundle_member {
    struct str path, bytes;
};
struct bundle {
    struct str file; // all of it
    struct bundle_member *members;
    size_t count, capacity;
    struct arena arena;
};
// The header of a member. False: its name does not fit (100 bytes) or it is too large.
bool bundle_header(struct str path, uint64_t size, uint8_t out[BUNDLE_BLOCK]);
uint64_t bundle_padding(uint64_t size); // zeros after so many bytes
// E_INVALID: not a bundle at all. E_CORRUPT: cut off, or not in its canonical form (err says where).
enum code bundle_open(const char *path, struct bundle *out, struct error *err) MUST_CHECK;
void bundle_close(struct bundle *bundle);
const struct bundle_member *bundle_find(const struct bundle *bundle, struct str path); // NULL: not there

// ---- lines
bool bundle_run_write(const struct run_head *head, struct arena *arena, struct buf *out); // a line of runs.jsonl
void bundle_ledger_write(const struct record *entry, struct buf *out);

#endif
