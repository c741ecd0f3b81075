// A moment as a line: "STEP_FAILED a 1.2 TIMEOUT". Header-only.
#ifndef CAIRN_TEST_UNIT_SUPPORT_TOLD_H
#define CAIRN_TEST_UNIT_SUPPORT_TOLD_H

#include "contract/contract.h"

UNUSED static void told_moment(struct buf *out, const struct moment *moment)
{
    buf_printf(out, "%s", moment_name(moment->kind));
    if (moment->step.len > 0) buf_printf(out, " %.*s %u.%u", STR_ARG(moment->step), moment->logical, moment->engine);
    if (moment->fault.code.len > 0) buf_printf(out, " %.*s", STR_ARG(moment->fault.code));
    buf_byte(out, '\n');
}

#endif
