// UUID version 4 text from 16 random bytes given by the caller.
#ifndef CAIRN_BASE_UUID_H
#define CAIRN_BASE_UUID_H

#include "base/str.h"

#define UUID_SIZE 37

void uuid_format(const uint8_t random[16], char out[UUID_SIZE]);
// The same one for the same words, as the id of what must not happen twice.
void uuid_named(struct str words, char out[UUID_SIZE]);
bool uuid_valid(struct str text); // 8-4-4-4-12 hex digits, any version

#endif
