// Copies of directories that are bounded.
#ifndef CAIRN_OS_COPY_H
#define CAIRN_OS_COPY_H

#include "os/os.h"

struct copy_most {
    uint64_t bytes, entries; // bytes of data, not of holes
};
// Files, directories and symbolic links of `from` (a directory), with their modes; anything else is left out. OK when there is
// no `from`. E_EXISTS when there is a `to`. What was copied before a failure stays, but E_LIMIT beyond `most` (may be NULL): then nothing
// does. Holes of files stay holes, and root gives copies to the owners of the originals.
enum code os_copy_some(const char *from, const char *to, const struct copy_most *most, struct error *err) MUST_CHECK;

#endif
