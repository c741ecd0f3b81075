// Private to store/: records as lines of text. An event's line is its bytes. A ledger entry's line is
//   {"after":n,"body":b,"crc":c,"hash":h,"kind":k,"seq":n,"signalId":s}
// where the hash is of the body and chained, and crc is the CRC-32C of the line with eight zeros for crc.
#ifndef CAIRN_STORE_LINES_H
#define CAIRN_STORE_LINES_H

#include "store/backend.h"

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t size); // for comparison

// The value of a member of the canonical object `line`, as it stands there. Empty when there is none.
struct str line_member(struct str line, const char *name);
void event_line_read(struct str line, uint64_t number, enum vocabulary vocabulary, struct arena *arena,
                     struct record *out);
void ledger_line_write(struct buf *out, const struct record *entry); // with its newline
// A line that is not whole comes out with what could be read; its hash will not fit.
void ledger_line_read(struct str line, uint64_t number, struct arena *arena, struct record *out);

#endif
