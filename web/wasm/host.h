// What the tree wants of an operating system, in a browser that has none: one file, which the page has put into memory.
#ifndef CAIRN_WASM_HOST_H
#define CAIRN_WASM_HOST_H

#include "base/str.h"

extern struct str host_file; // what a bundle is read from, whatever its name

#endif
