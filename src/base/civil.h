// Civil time: milliseconds since 1970 in UTC to and from text, and durations. Pure: never asks what time it is.
#ifndef CAIRN_BASE_CIVIL_H
#define CAIRN_BASE_CIVIL_H

#include "base/str.h"

// Days since 1970-01-01 of a date in the Gregorian calendar, and back. Months are 1 to 12.
int64_t civil_days(int64_t year, int64_t month, int64_t day);
void civil_date(int64_t days, int64_t *year, int64_t *month, int64_t *day);
int64_t civil_month_days(int64_t year, int64_t month);

#define CIVIL_SIZE 25 // "2026-02-11T17:00:00.000Z" and its NUL

void civil_format(int64_t ms, char out[CIVIL_SIZE]);
// RFC 3339 with any offset and any fraction (cut to ms). Leap second 60, at the end of a UTC day only, counts as the next
// second.
bool civil_parse(struct str text, int64_t *ms);
// "5s", "250ms", "1m30s", "2h", "1d", "0.5s", "PT1H30M" (ISO 8601 days and time part); a bare number is milliseconds.
// Units fall and appear once; no sign, no blanks; less than a millisecond is cut.
bool duration_parse(struct str text, int64_t *ms);
// "412ms", "3.1s", "1m03s", "2h05m", "1d02h": for people; cut, not rounded.
void duration_format(int64_t ms, char out[24]);

#endif
