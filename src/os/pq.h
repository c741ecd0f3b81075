// libpq, loaded when it is first needed (os/library.h). Its functions are called by their own names; os/pq.c defines those that are used.
#ifndef CAIRN_OS_PQ_H
#define CAIRN_OS_PQ_H

#include "base/error.h"

// Before anything of libpq is called. Any thread, any number of times. E_UNSUPPORTED: it is not on this machine.
enum code pq_load(struct error *err) MUST_CHECK;

#endif
