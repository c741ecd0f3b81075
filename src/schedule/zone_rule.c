// The rule at the end of a zone's file: the TZ text of POSIX, with the longer times of RFC 9636.
#include "schedule/inside.h"

#include "base/civil.h"

#include <string.h>

enum { HOUR = 3600, DAY = 86400, TIME_USUAL = 2 * HOUR };

static bool take(struct str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c) return false;
    *s = str_slice(*s, 1, s->len);
    return true;
}

static bool take_number(struct str *s, int64_t low, int64_t high, int64_t *out)
{
    size_t n = 0;
    int64_t value = 0;
    while (n < s->len && n < 4 && char_is_digit(s->ptr[n])) value = value * 10 + (s->ptr[n++] - '0');
    if (n == 0 || value < low || value > high) return false;
    *s = str_slice(*s, n, s->len);
    *out = value;
    return true;
}

static bool take_letters(struct str *s, char out[16])
{
    bool quoted = take(s, '<');
    size_t n = 0;
    while (n < s->len) {
        char c = s->ptr[n];
        if (quoted ? c == '>' : !char_is_letter(c)) break;
        n++;
    }
    if (n < 3 || n > 15 || (quoted && n == s->len)) return false;
    memcpy(out, s->ptr, n);
    out[n] = '\0';
    *s = str_slice(*s, n + quoted, s->len);
    return true;
}

// [+-]hh[:mm[:ss]]
static bool take_time(struct str *s, int64_t hours_max, int64_t *out)
{
    bool minus = take(s, '-');
    int64_t hour, minute = 0, second = 0;
    if (!minus) take(s, '+');
    if (!take_number(s, 0, hours_max, &hour)) return false;
    if (take(s, ':') && !take_number(s, 0, 59, &minute)) return false;
    if (take(s, ':') && !take_number(s, 0, 59, &second)) return false;
    *out = hour * HOUR + minute * 60 + second;
    if (minus) *out = -*out;
    return true;
}

static bool take_change(struct str *s, struct zone_change *out)
{
    int64_t month = 0, week = 0, day = 0;
    *out = (struct zone_change){.kind = RULE_DAY, .time = TIME_USUAL};
    if (take(s, 'M')) {
        out->kind = RULE_WEEK;
        if (!take_number(s, 1, 12, &month) || !take(s, '.') || !take_number(s, 1, 5, &week) || !take(s, '.') ||
            !take_number(s, 0, 6, &day))
            return false;
    } else if (take(s, 'J')) {
        out->kind = RULE_JULIAN;
        if (!take_number(s, 1, 365, &day)) return false;
    } else if (!take_number(s, 0, 365, &day)) {
        return false;
    }
    out->month = (int32_t)month;
    out->week = (int32_t)week;
    out->day = (int32_t)day;
    return !take(s, '/') || take_time(s, 167, &out->time);
}

static bool read_rule(struct str s, struct zone_rule *out)
{
    int64_t west;
    if (!take_letters(&s, out->standard.letters) || !take_time(&s, 24, &west)) return false;
    out->standard.offset = -west;
    if (s.len == 0) return true;
    out->changes = true;
    out->summer = (struct zone_type){.offset = out->standard.offset + HOUR, .summer = true};
    if (!take_letters(&s, out->summer.letters)) return false;
    if (s.len > 0 && s.ptr[0] != ',') {
        if (!take_time(&s, 24, &west)) return false;
        out->summer.offset = -west;
    }
    return take(&s, ',') && take_change(&s, &out->begin) && take(&s, ',') && take_change(&s, &out->end) && s.len == 0;
}

enum code zone_rule_parse(struct str text, struct zone_rule *out, struct error *err)
{
    *out = (struct zone_rule){0};
    if (text.len == 0) return OK;
    if (!read_rule(text, out)) return error_set(err, E_CORRUPT, "the rule \"%.*s\" cannot be read", STR_ARG(text));
    out->there = true;
    return OK;
}

static int64_t day_of(const struct zone_change *change, int64_t year)
{
    int64_t first = civil_days(year, 1, 1);
    if (change->kind == RULE_DAY) return first + change->day;
    if (change->kind == RULE_JULIAN) {
        bool leap = civil_month_days(year, 2) == 29;
        return first + change->day - 1 + (leap && change->day > 59);
    }
    int64_t month = civil_days(year, change->month, 1);
    int64_t weekday = ((month % 7) + 11) % 7; // 1970-01-01 was a Thursday
    int64_t day = month + (change->day - weekday + 7) % 7 + (int64_t)(change->week - 1) * 7;
    return day >= month + civil_month_days(year, change->month) ? day - 7 : day;
}

// When the clock is set in that year, in UTC: it shows the other offset until then.
static int64_t begin_of(const struct zone_rule *rule, int64_t year)
{
    return day_of(&rule->begin, year) * DAY + rule->begin.time - rule->standard.offset;
}

static int64_t end_of(const struct zone_rule *rule, int64_t year)
{
    return day_of(&rule->end, year) * DAY + rule->end.time - rule->summer.offset;
}

static struct zone_span span_of(const struct zone_type *type, int64_t from, int64_t to)
{
    struct zone_span span = {.from = from, .to = to, .offset = type->offset, .summer = type->summer};
    memcpy(span.letters, type->letters, sizeof(span.letters));
    return span;
}

struct zone_span zone_rule_at(const struct zone_rule *rule, int64_t second)
{
    struct zone_span span = span_of(&rule->standard, INT64_MIN, ZONE_ALWAYS);
    int64_t year, month, day, from = INT64_MIN, to = ZONE_ALWAYS;
    bool summer = false;
    if (!rule->changes) return span;
    civil_date((second >= 0 ? second : second - (DAY - 1)) / DAY, &year, &month, &day);
    for (int64_t y = year - 1; y <= year + 1; y++) { // the last change before, the first after
        int64_t at[2] = {begin_of(rule, y), end_of(rule, y)};
        for (int i = 0; i < 2; i++) {
            if (at[i] <= second && at[i] >= from) {
                from = at[i];
                summer = i == 0;
            }
            if (at[i] > second && at[i] < to) to = at[i];
        }
    }
    return span_of(summer ? &rule->summer : &rule->standard, from, to);
}
