// Private to schedule/: how a zone is kept, and the rule at the end of its file.
#ifndef CAIRN_SCHEDULE_INSIDE_H
#define CAIRN_SCHEDULE_INSIDE_H

#include "schedule/schedule.h"

struct zone_type {
    int64_t offset;
    bool summer;
    char letters[16];
};

// A day of a POSIX rule and its time, in seconds of local time; -167 to 167 hours.
enum rule_day { RULE_JULIAN = 1, RULE_DAY, RULE_WEEK }; // Jn: without 29 February; n: with it, from 0; Mm.w.d
struct zone_change {
    enum rule_day kind;
    int32_t month, week, day;
    int64_t time;
};

// "CET-1CEST,M3.5.0,M10.5.0/3": the offsets for ever after.
struct zone_rule {
    bool there, changes;
    struct zone_type standard, summer;
    struct zone_change begin, end; // of summer
};
enum code zone_rule_parse(struct str text, struct zone_rule *out, struct error *err) MUST_CHECK;
struct zone_span zone_rule_at(const struct zone_rule *rule, int64_t second); // only what the rule says

#endif
