// Private to bus/: a connection to a NATS server. nats.c sends and hears; nats_open.c finds the server and says who we are.
#ifndef CAIRN_BUS_NATS_H
#define CAIRN_BUS_NATS_H

#include "bus/inside.h"
#include "bus/nats_client.h"
#include "fetch/wire.h"

#define NATS_IN_MAX (24u << 20) // of what was not taken yet: a message of 16 MB in base64

enum nats_frame_kind { FRAME_INFO = 1, FRAME_PING, FRAME_PONG, FRAME_OK, FRAME_ERROR, FRAME_MESSAGE };

struct nats_frame { // borrows the input
    enum nats_frame_kind kind;
    struct str subject, head;
    struct str text; // of a message, an error or INFO
};

struct nats_pending {     // a message without an answer
    uint64_t ticket; // 0 = free
    uint32_t slot;
    int64_t deadline;
    char subject[256];
};

struct nats {
    struct wire wire;
    struct buf in, out, head;
    size_t taken;   // of `in`
    char inbox[48]; // "_INBOX.….": what answers are sent to, with the number of the message behind it
    uint64_t max_payload, tickets;
    struct nats_pending pending[PAGE_MAX];
};

// The next whole frame. False: there is none yet, or (*bad) what came is not NATS.
bool nats_frame(struct nats *nats, struct nats_frame *frame, bool *bad);
void nats_compact(struct nats *nats); // forgets frames that were taken

enum code nats_write(struct nats *nats, struct str bytes, int64_t deadline, struct error *err) MUST_CHECK; // all of it
// Waits for a frame of a kind (and subject, unless that is empty); answers PINGs; everything else is passed over.
enum code nats_await(struct nats *nats, enum nats_frame_kind kind, struct str subject, int64_t deadline, struct nats_frame *frame,
                     struct error *err) MUST_CHECK;

enum code nats_open(struct sink *sink, struct error *err);
void nats_close(struct sink *sink);

// What the secrets of a sink say, read now. E_NOT_FOUND.
enum code nats_identify(const struct sink_config *config, struct arena *arena, struct nats_identity *out,
                        struct error *err) MUST_CHECK;
// What CONNECT says after this INFO, at the end of `out`. E_INVALID: credentials that cannot be read.
enum code nats_connect_write(const struct nats_identity *who, const struct json *info, struct arena *arena,
                             struct buf *out, struct error *err) MUST_CHECK;

#endif
