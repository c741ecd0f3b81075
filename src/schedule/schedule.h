// When a schedule fires, and what becomes of each of its times. Pure: time zones are bytes that the caller has read, "now" is given.
//
//   text ──cron_parse──▶ cron ─┐
//   TZif ──zone_parse──▶ zone ─┴▶ timing ──timing_next──▶ fire, fire, fire ──schedule_decide──▶ start, queue, skip: one at a time
//
// A time of a schedule is the instant that its expression means. Jitter moves the work, never the time: what is recorded, and what the
// inputs of the run say, is the time.
#ifndef CAIRN_SCHEDULE_SCHEDULE_H
#define CAIRN_SCHEDULE_SCHEDULE_H

#include "json/make.h"

// ---- time zones: a file of the IANA database as it lies in /usr/share/zoneinfo (RFC 9636, version 2 and later)
#define ZONE_NAME_MAX 64
#define ZONE_ALWAYS INT64_MAX

struct zone; // in an arena; immutable

// One stretch of time with one offset. `from` is INT64_MIN for the first, `to` is ZONE_ALWAYS for the last.
struct zone_span {
    int64_t from, to; // seconds since 1970, UTC; `to` is not part of it
    int64_t offset;   // seconds east of UTC
    bool summer;      // as the database says: it is what `date` calls daylight saving time
    char letters[16]; // "CEST", "+0545"
};

// A name of the database: letters, digits, '_', '+', '-', '.' in parts that '/' separates; no part begins with '.'.
bool zone_name_valid(struct str name);
// E_CORRUPT: these bytes are no such file. `name` is kept for people.
enum code zone_parse(struct str name, struct str bytes, struct arena *arena, const struct zone **out,
                     struct error *err) MUST_CHECK;
const struct zone *zone_utc(void);
struct str zone_name(const struct zone *zone);
struct zone_span zone_at(const struct zone *zone, int64_t second); // the span that holds it
// RFC 3339 with the offset of the zone: "2026-03-29T03:00:00+02:00". Milliseconds appear when there are any.
#define ZONE_TIME_SIZE 40
void zone_format(const struct zone *zone, int64_t ms, char out[ZONE_TIME_SIZE]);
// RFC 3339, or the same without an offset as local time of the zone: in a gap it is what follows the gap, in a fold the first.
bool zone_time(const struct zone *zone, struct str text, int64_t *ms);

// ---- cron expressions
// minute hour day month weekday, or second before them. '*', values, names (JAN, MON), a-b, a-b/n, */n, a/n, lists. Days: L (the last),
// L-n, nW (the weekday nearest to the n-th), LW. Weekdays: 0-7 (both are Sunday), d#n (the n-th d of a month), dL (the last d).
// When days and weekdays both begin without '*', a date has to fit one of them; otherwise both (as in Debian's cron).
struct cron {
    uint64_t seconds, minutes; // bit n
    uint32_t hours, days, months, before_last, nearest; // before_last: bit n for L-n; nearest: bit n for nW
    uint8_t weekdays, last_weekdays, nth_weekdays[5];
    bool last_workday, either, fixed; // fixed: neither minute nor hour begins with '*'
};
// Also @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly. E_INVALID: err->column is where, 1-based in `text`.
enum code cron_parse(struct str text, struct cron *out, struct error *err) MUST_CHECK;
// The first local time (seconds since 1970 as if it were UTC) at or after `from`. False: there is none within a century.
bool cron_next(const struct cron *cron, int64_t from, int64_t *out);

// ---- times
// What a fixed time means where the clock is set. A gap has no such time, a fold has it twice. Expressions whose minute or hour begins
// with '*' run by the clock as it is: whatever it shows, whenever it shows it.
enum gap_policy { GAP_RUN = 1, GAP_SKIP };               // run: once, when the gap is over
enum fold_policy { FOLD_ONCE = 1, FOLD_TWICE, FOLD_SKIP }; // once: the first
enum timing_kind { TIMING_CRON = 1, TIMING_EVERY, TIMING_AT };

struct timing {
    enum timing_kind kind;
    struct cron cron;
    int64_t every_ms, offset_ms; // EVERY: offset + n * every since 1970
    int64_t at_ms;
    const struct zone *zone;
    enum gap_policy gap;
    enum fold_policy fold;
    int64_t from_ms, until_ms; // 0: open. No time before `from` nor after `until`
};

enum fire_mark { FIRE_PLAIN = 0, FIRE_GAP, FIRE_FIRST, FIRE_SECOND };
struct fire {
    int64_t at_ms;
    enum fire_mark mark; // GAP: in place of times that the clock leaves out; FIRST, SECOND: of two that look the same
};
// The first time after `after_ms`. False: there is none.
bool timing_next(const struct timing *timing, int64_t after_ms, struct fire *out);
// The same for every call: how much later than its time a fire begins, below `jitter_ms`.
int64_t schedule_jitter(struct str schedule, int64_t at_ms, int64_t jitter_ms);

// ---- a schedule as it is declared (docs/format/schedule.md)
enum overlap_policy { OVERLAP_SKIP = 1, OVERLAP_QUEUE, OVERLAP_CANCEL, OVERLAP_ALLOW };
enum { SCHEDULE_QUEUED_MAX = 100 };
struct schedule_spec {
    struct timing timing; // its zone is zone_utc() until schedule_spec_zone
    struct str text;      // of cron, every or at, as it was given
    struct str zone;      // empty: UTC
    struct str at;        // local time of a zone: read again with it (schedule_spec_zone)
    struct str from, until;
    int64_t jitter_ms, catchup_ms;
    enum overlap_policy overlap;
    uint32_t queued; // QUEUE: so many times may wait
    const struct json *inputs; // object; NULL: none
    struct str queue;          // of runs; empty: the usual one
};
// {"cron" | "every" [, "offset"] | "at", "zone", "gap", "fold", "from", "until", "jitter", "catchup", "overlap", "queued", "inputs",
// "queue"}. Texts borrow `value`. E_INVALID, with a place when `value` has one.
enum code schedule_spec_read(const struct json *value, struct arena *arena, struct schedule_spec *out,
                             struct error *err) MUST_CHECK;
// Its times are those of this zone from now on.
enum code schedule_spec_zone(struct schedule_spec *spec, const struct zone *zone, struct error *err) MUST_CHECK;
bool schedule_name_valid(struct str name); // letters, digits, '.', '_', '-'; at most 64, the first a letter or digit

// Texts of inputs with what is in ${schedule.NAME} replaced: name, time (RFC 3339, UTC), local (with the offset of the zone), date (of
// local), previous (the time before, or empty), zone, kind ("fire", "trigger", "backfill"). E_INVALID: there is no such NAME.
struct schedule_facts {
    struct str name, kind;
    int64_t at_ms;
    int64_t previous_ms; // 0: none
    const struct zone *zone;
};
enum code schedule_inputs(const struct json *inputs, const struct schedule_facts *facts, struct arena *arena,
                          struct json *out, struct error *err) MUST_CHECK;

// ---- what is due
struct schedule_state {
    int64_t decided_ms;                    // every time up to here has been decided
    int64_t waiting[SCHEDULE_QUEUED_MAX];  // QUEUE, CANCEL: times whose runs have not begun, ascending
    uint32_t waiting_count;
};
enum tick_kind { TICK_NONE = 0, TICK_START, TICK_QUEUE, TICK_CANCEL, TICK_SKIP };
enum tick_reason { REASON_NONE = 0, REASON_PAUSED, REASON_OVERLAP, REASON_LATE, REASON_FULL };
struct tick {
    enum tick_kind kind;
    enum tick_reason reason; // SKIP
    int64_t at_ms, last_ms;  // the time; of a SKIP of several the first and the last
    uint32_t count;          // of times
    bool waited;             // START: the first of those that wait
    int64_t due_ms;          // NONE: nothing is due before; INT64_MAX: never
};
// The next thing to be decided at `now_ms`. `active`: how many of its runs have not ended. One decision; the caller makes it durable with
// schedule_apply and asks again.
struct tick schedule_decide(struct str name, const struct schedule_spec *spec, bool paused,
                            const struct schedule_state *state, int64_t now_ms, size_t active);
// The state after the decision.
void schedule_apply(struct schedule_state *state, const struct tick *tick);
const char *tick_reason_name(enum tick_reason reason); // "PAUSED"

#endif
