// The state of a run as text, all of it that is made of the log: two runs whose texts are equal are in the same state (K1).
#ifndef CAIRN_TEST_HARNESS_DUMP_H
#define CAIRN_TEST_HARNESS_DUMP_H

#include "kernel/kernel.h"

void kernel_dump(const struct run *run, struct buf *out);

#endif
