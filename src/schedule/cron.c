// Cron expressions: the text to sets of numbers, and the next local time that is in all of them.
#include "schedule/schedule.h"

#include "base/civil.h"

#include <string.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, CENTURY_MONTHS = 1200, FIELDS = 6 };
enum field_kind { SECOND_FIELD = 0, MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, WEEKDAY_FIELD };

static const struct field {
    const char *name;
    int64_t low, high;
} fields[FIELDS] = {{"second", 0, 59}, {"minute", 0, 59}, {"hour", 0, 23},
                    {"day", 1, 31},    {"month", 1, 12},  {"weekday", 0, 7}};
static const char month_names[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", weekday_names[] = "SUNMONTUEWEDTHUFRISAT";

// ---- text

struct reading {
    struct str whole; // for places
    enum field_kind kind;
    uint64_t set;
    struct cron *cron;
    struct error *err;
};

static enum code fault(struct reading *reading, struct str at, const char *why)
{
    uint32_t column = (uint32_t)(at.ptr - reading->whole.ptr) + 1;
    const struct field *field = &fields[reading->kind];
    return error_at(reading->err, E_INVALID, 0, column, "the %s field: %s (\"%.*s\", from %lld to %lld)", field->name,
                    why, STR_ARG(at), (long long)field->low, (long long)field->high);
}

static bool named(struct str text, const char *names, int64_t first, int64_t *out)
{
    if (text.len != 3) return false;
    for (size_t i = 0; names[i]; i += 3) {
        bool same = true;
        for (size_t k = 0; same && k < 3; k++) same = char_lower(text.ptr[k]) == char_lower(names[i + k]);
        if (!same) continue;
        *out = first + (int64_t)(i / 3);
        return true;
    }
    return false;
}

static enum code value_of(struct reading *reading, struct str text, int64_t *out)
{
    const struct field *field = &fields[reading->kind];
    if (reading->kind == MONTH_FIELD && named(text, month_names, 1, out)) return OK;
    if (reading->kind == WEEKDAY_FIELD && named(text, weekday_names, 0, out)) return OK;
    if (text.len == 0) return fault(reading, text, "a value is missing");
    if (text.len > 2 || !char_is_digit(text.ptr[0]) || !str_int64(text, out)) return fault(reading, text, "is no value");
    return *out < field->low || *out > field->high ? fault(reading, text, "is out of range") : OK;
}

static bool is_letter(struct str text, size_t at, char c)
{
    return at < text.len && char_lower(text.ptr[at]) == char_lower(c);
}

// L, L-n, LW, nW. *taken: it was one of them.
static enum code special_day(struct reading *reading, struct str item, bool *taken)
{
    int64_t n = 0;
    *taken = true;
    if (item.len == 1 && is_letter(item, 0, 'L')) {
        reading->cron->before_last |= 1;
    } else if (item.len == 2 && is_letter(item, 0, 'L') && is_letter(item, 1, 'W')) {
        reading->cron->last_workday = true;
    } else if (item.len > 2 && is_letter(item, 0, 'L') && item.ptr[1] == '-') {
        if (!str_int64(str_slice(item, 2, item.len), &n) || n < 1 || n > 30)
            return fault(reading, item, "L- needs a number of days from 1 to 30");
        reading->cron->before_last |= UINT32_C(1) << n;
    } else if (item.len > 1 && is_letter(item, item.len - 1, 'W')) {
        enum code rc = value_of(reading, str_slice(item, 0, item.len - 1), &n);
        if (rc) return rc;
        reading->cron->nearest |= UINT32_C(1) << n;
    } else {
        *taken = false;
    }
    return OK;
}

// d#n, dL
static enum code special_weekday(struct reading *reading, struct str item, bool *taken)
{
    struct str nth, day = str_cut(item, '#', &nth);
    int64_t value, n;
    bool last = item.len > 1 && is_letter(item, item.len - 1, 'L');
    *taken = day.len < item.len || last;
    if (!*taken) return OK;
    if (last) day = str_slice(item, 0, item.len - 1);
    enum code rc = value_of(reading, day, &value);
    if (rc) return rc;
    uint8_t bit = (uint8_t)(1u << value % 7);
    if (last)
        reading->cron->last_weekdays |= bit;
    else if (!str_int64(nth, &n) || n < 1 || n > 5)
        return fault(reading, item, "# needs a number from 1 to 5");
    else
        reading->cron->nth_weekdays[n - 1] |= bit;
    return OK;
}

static enum code read_item(struct reading *reading, struct str item)
{
    const struct field *field = &fields[reading->kind];
    struct str step_text, range = str_cut(item, '/', &step_text), to_text;
    int64_t low = field->low, high = field->high, step = 1;
    bool taken = false, stepped = range.len < item.len;
    enum code rc = OK;
    if (reading->kind == DAY_FIELD) rc = special_day(reading, item, &taken);
    if (reading->kind == WEEKDAY_FIELD) rc = special_weekday(reading, item, &taken);
    if (rc || taken) return rc;
    if (stepped && (!str_int64(step_text, &step) || step < 1 || step > 999))
        return fault(reading, item, "behind '/' stands a number from 1 on");
    if (!str_is(range, "*")) {
        struct str from_text = str_cut(range, '-', &to_text);
        bool open = from_text.len == range.len;
        rc = value_of(reading, from_text, &low);
        if (!rc && !open) rc = value_of(reading, to_text, &high);
        if (!rc && open && !stepped) high = low;
        if (!rc && low > high) rc = fault(reading, item, "the range ends before it begins");
        if (rc) return rc;
    }
    for (int64_t n = low; n <= high; n += step) reading->set |= UINT64_C(1) << n;
    return OK;
}

static enum code read_field(struct reading *reading, struct str text)
{
    enum code rc = OK;
    reading->set = 0;
    for (bool more = true; more && !rc;) {
        struct str rest, item = str_cut(text, ',', &rest);
        more = item.len < text.len;
        rc = item.len ? read_item(reading, item) : fault(reading, text, "a value is missing");
        text = rest;
    }
    return rc;
}

static void keep_field(struct reading *reading)
{
    struct cron *cron = reading->cron;
    switch (reading->kind) {
    case SECOND_FIELD:
        cron->seconds = reading->set;
        break;
    case MINUTE_FIELD:
        cron->minutes = reading->set;
        break;
    case HOUR_FIELD:
        cron->hours = (uint32_t)reading->set;
        break;
    case DAY_FIELD:
        cron->days = (uint32_t)reading->set;
        break;
    case MONTH_FIELD:
        cron->months = (uint32_t)reading->set;
        break;
    case WEEKDAY_FIELD:
        cron->weekdays = (uint8_t)((reading->set & 127) | (reading->set >> 7 & 1));
        break;
    }
}

static struct str macro_of(struct str text)
{
    static const struct {
        const char *name, *means;
    } table[] = {{"@yearly", "0 0 1 1 *"},  {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
                 {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};
    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        if (str_is(text, table[i].name)) return str_from(table[i].means);
    return text;
}

static size_t split(struct str text, struct str out[FIELDS + 1])
{
    size_t count = 0, i = 0;
    while (i < text.len && count <= FIELDS) {
        size_t from = i;
        while (i < text.len && text.ptr[i] != ' ' && text.ptr[i] != '\t') i++;
        if (i > from) out[count++] = str_slice(text, from, i);
        else i++;
    }
    return count;
}

enum code cron_parse(struct str text, struct cron *out, struct error *err)
{
    struct str parts[FIELDS + 1], expression = macro_of(str_trim(text));
    *out = (struct cron){.seconds = 1};
    if (expression.len > 0 && expression.ptr[0] == '@')
        return error_set(err, E_INVALID, "%.*s is none of @yearly, @monthly, @weekly, @daily, @hourly", STR_ARG(expression));
    size_t count = split(expression, parts);
    if (count != 5 && count != FIELDS)
        return error_set(err, E_INVALID,
                         "a cron expression has 5 fields (minute hour day month weekday) or 6 (second before them), this "
                         "one has %zu%s",
                         count, count > FIELDS ? " or more" : "");
    const struct str *first = parts + (count == FIELDS);
    struct reading reading = {.whole = expression, .cron = out, .err = err};
    for (size_t i = 0; i < count; i++) {
        reading.kind = (enum field_kind)(i + FIELDS - count);
        enum code rc = read_field(&reading, parts[i]);
        if (rc) return rc;
        keep_field(&reading);
    }
    out->either = first[2].ptr[0] != '*' && first[4].ptr[0] != '*';
    out->fixed = first[0].ptr[0] != '*' && first[1].ptr[0] != '*';
    int64_t never;
    if (!cron_next(out, civil_days(2000, 1, 1) * DAY, &never))
        return error_set(err, E_INVALID, "\"%.*s\" means no date of any year", STR_ARG(expression));
    return OK;
}

// ---- dates

static int64_t weekday_of(int64_t days)
{
    return ((days % 7) + 11) % 7; // 1970-01-01 was a Thursday
}

// The working day nearest to that one, within its month.
static int64_t nearest_workday(int64_t day, int64_t weekday, int64_t length)
{
    if (weekday == 6) return day > 1 ? day - 1 : day + 2;
    if (weekday == 0) return day < length ? day + 1 : day - 2;
    return day;
}

static bool day_fits(const struct cron *cron, int64_t day, int64_t first, int64_t length)
{
    if (cron->days >> day & 1 || cron->before_last >> (length - day) & 1) return true;
    if (cron->last_workday && nearest_workday(length, (first + length - 1) % 7, length) == day) return true;
    for (int64_t n = day > 3 ? day - 2 : 1; cron->nearest && n <= day + 2 && n <= length; n++)
        if (cron->nearest >> n & 1 && nearest_workday(n, (first + n - 1) % 7, length) == day) return true;
    return false;
}

static bool weekday_fits(const struct cron *cron, int64_t day, int64_t first, int64_t length)
{
    int64_t weekday = (first + day - 1) % 7;
    return (cron->weekdays >> weekday & 1) || (cron->nth_weekdays[(day - 1) / 7] >> weekday & 1) ||
           (day + 7 > length && cron->last_weekdays >> weekday & 1);
}

static bool date_fits(const struct cron *cron, int64_t day, int64_t first, int64_t length)
{
    bool by_day = day_fits(cron, day, first, length), by_weekday = weekday_fits(cron, day, first, length);
    return cron->either ? by_day || by_weekday : by_day && by_weekday;
}

// ---- times of a day

static int64_t next_bit(uint64_t set, int64_t from) // -1: none
{
    uint64_t rest = from > 63 ? 0 : set >> from;
    return rest ? from + __builtin_ctzll(rest) : -1;
}

// The first at or after `from` seconds of the day, -1: none.
static int64_t time_of_day(const struct cron *cron, int64_t from)
{
    int64_t hour = from / HOUR, minute = from % HOUR / MINUTE, second = from % MINUTE;
    if (!(cron->hours >> hour & 1)) minute = second = 0;
    else if (!(cron->minutes >> minute & 1)) second = 0;
    if (cron->hours >> hour & 1) {
        if (cron->minutes >> minute & 1) {
            int64_t found = next_bit(cron->seconds, second);
            if (found >= 0) return hour * HOUR + minute * MINUTE + found;
            minute++;
        }
        int64_t found = next_bit(cron->minutes, minute);
        if (found >= 0) return hour * HOUR + found * MINUTE + next_bit(cron->seconds, 0);
        hour++;
    }
    hour = next_bit(cron->hours, hour);
    return hour < 0 ? -1 : hour * HOUR + next_bit(cron->minutes, 0) * MINUTE + next_bit(cron->seconds, 0);
}

bool cron_next(const struct cron *cron, int64_t from, int64_t *out)
{
    int64_t days = (from >= 0 ? from : from - (DAY - 1)) / DAY, time = from - days * DAY, year, month, day;
    civil_date(days, &year, &month, &day);
    for (int i = 0; i <= CENTURY_MONTHS; i++) {
        int64_t length = civil_month_days(year, month), begin = civil_days(year, month, 1), first = weekday_of(begin);
        for (; (cron->months >> month & 1) && day <= length; day++, time = 0) {
            int64_t found = date_fits(cron, day, first, length) ? time_of_day(cron, time) : -1;
            if (found < 0) continue;
            *out = (begin + day - 1) * DAY + found;
            return true;
        }
        day = 1;
        time = 0;
        year += month == 12;
        month = month % 12 + 1;
    }
    return false;
}
