// What the codes of problems (RFC 9457) mean that `cairn serve` answers with, and what to do about them. Their `type` is
// urn:cairn:problem:CODE, which `cairn help` takes as well as the code.
#ifndef CAIRN_CLI_PROBLEMS_H
#define CAIRN_CLI_PROBLEMS_H

#include "base/str.h"

struct problem_info {
    const char *code, *text;
};
const struct problem_info *
problem_find(struct str word); // in any case, with or without the urn; NULL: there is no such code
const struct problem_info *problem_at(size_t index); // in the order of the alphabet; NULL past the end

#endif
