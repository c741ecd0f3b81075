// Copies of directories that are bounded.
#ifndef CAIRN_OS_COPY_H
#define CAIRN_OS_COPY_H

#include "os/os.h"

struct copy_most {
    uint64_t bytes, entries; // bytes of data, not of holes
};
// As os_copy_tree, and E_LIMIT beyond `most` (may be NULL): then nothing stays. Holes of files stay holes, and root gives copies to the
// owners of the originals.
enum code os_copy_some(const char *from, const char *to, const struct copy_most *most, struct error *err) MUST_CHECK;

#endif
