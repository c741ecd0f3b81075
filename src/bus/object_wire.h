// Private to bus/: what the messages of an object store look like.
#ifndef CAIRN_BUS_OBJECT_WIRE_H
#define CAIRN_BUS_OBJECT_WIRE_H

#include "base/buf.h"
#include "base/sha256.h"
#include "json/json.h"

#define OBJECT_CHUNK 131072u // as other clients have it
#define OBJECT_NUID 22       // characters
#define OBJECT_SUBJECT 256   // bytes that any subject here fits into

struct object_meta {
    struct str nuid; // of its chunks
    uint64_t size, chunks;
    struct digest digest;
    bool deleted;
};

// Letters and digits from random bytes.
void object_nuid(const unsigned char random[OBJECT_NUID], char out[OBJECT_NUID + 1]);
void object_stream(struct str bucket, char out[OBJECT_SUBJECT]);
void object_chunks(struct str bucket, struct str nuid, char out[OBJECT_SUBJECT]);            // their subject
void object_subject(struct str bucket, const struct digest *name, char out[OBJECT_SUBJECT]); // of what is said about it
// Texts, in `arena`; ptr NULL: out of memory.
struct str object_config(struct str bucket, struct arena *arena); // of the stream
struct str object_describe(struct str bucket, const struct digest *name, const struct object_meta *meta,
                           const char *time, struct arena *arena);
// What is asked for by subject: {member: subject} and, unless it is 0, {"seq": seq}.
struct str object_question(const char *member, const char *subject, uint64_t seq, struct arena *arena);
// False: it is not the description of an object that can be read. Texts borrow `arena`.
bool object_described(struct str text, struct arena *arena, struct object_meta *out);

#endif
