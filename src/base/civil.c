// Days are counted in years that begin in March, so that the leap day is the last day of its year
// and the length of the months before any month is one linear formula.
#include "base/civil.h"

#include "base/invariant.h"

#include <string.h>

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

// Years 0000 to 9999 are all that RFC 3339 can write.
#define CIVIL_MS_MIN INT64_C(-62167219200000)
#define CIVIL_MS_MAX INT64_C(253402300799999)

enum { DAYS_PER_ERA = 146097, DAYS_TO_1970 = 719468, YEARS_PER_ERA = 400 };

int64_t civil_days(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = (y >= 0 ? y : y - (YEARS_PER_ERA - 1)) / YEARS_PER_ERA;
    int64_t year_of_era = y - era * YEARS_PER_ERA;
    int64_t month_from_march = (month + 9) % 12;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

void civil_date(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    int64_t z = days + DAYS_TO_1970;
    int64_t era = (z >= 0 ? z : z - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    int64_t day_of_era = z - era * DAYS_PER_ERA;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    *month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    *year = year_of_era + era * YEARS_PER_ERA + (*month <= 2);
}

static char *put_digits(char *to, int64_t n, int width)
{
    INVARIANT(n >= 0);
    for (int i = width - 1; i >= 0; i--) {
        to[i] = (char)('0' + n % 10);
        n /= 10;
    }
    return to + width;
}

void civil_format(int64_t ms, char out[CIVIL_SIZE])
{
    if (ms < CIVIL_MS_MIN) ms = CIVIL_MS_MIN;
    if (ms > CIVIL_MS_MAX) ms = CIVIL_MS_MAX;
    int64_t days = (ms >= 0 ? ms : ms - (DAY_MS - 1)) / DAY_MS;
    int64_t rest = ms - days * DAY_MS;
    int64_t year, month, day;
    civil_date(days, &year, &month, &day);

    char *p = put_digits(out, year, 4);
    *p++ = '-';
    p = put_digits(p, month, 2);
    *p++ = '-';
    p = put_digits(p, day, 2);
    *p++ = 'T';
    p = put_digits(p, rest / HOUR_MS, 2);
    *p++ = ':';
    p = put_digits(p, rest / MINUTE_MS % 60, 2);
    *p++ = ':';
    p = put_digits(p, rest / SECOND_MS % 60, 2);
    *p++ = '.';
    p = put_digits(p, rest % SECOND_MS, 3);
    *p++ = 'Z';
    *p = '\0';
    INVARIANT(p == out + CIVIL_SIZE - 1);
}

// Takes exactly `width` digits off the front of *s.
static bool take_digits(struct str *s, size_t width, int64_t *out)
{
    if (s->len < width) return false;
    int64_t n = 0;
    for (size_t i = 0; i < width; i++) {
        if (!char_is_digit(s->ptr[i])) return false;
        n = n * 10 + (s->ptr[i] - '0');
    }
    *s = str_slice(*s, width, s->len);
    *out = n;
    return true;
}

static bool take_one_of(struct str *s, const char *set, char *out)
{
    if (s->len == 0 || s->ptr[0] == '\0' || !strchr(set, s->ptr[0])) return false;
    *out = s->ptr[0];
    *s = str_slice(*s, 1, s->len);
    return true;
}

int64_t civil_month_days(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool take_date(struct str *s, int64_t *days)
{
    int64_t year, month, day;
    char c;
    if (!take_digits(s, 4, &year) || !take_one_of(s, "-", &c) || !take_digits(s, 2, &month) ||
        !take_one_of(s, "-", &c) || !take_digits(s, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > civil_month_days(year, month)) return false;
    *days = civil_days(year, month, day);
    return true;
}

static bool take_time(struct str *s, int64_t *ms, bool *leap)
{
    int64_t hour, minute, second;
    char c;
    if (!take_digits(s, 2, &hour) || !take_one_of(s, ":", &c) || !take_digits(s, 2, &minute) ||
        !take_one_of(s, ":", &c) || !take_digits(s, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 60) return false;
    int64_t fraction = 0;
    if (take_one_of(s, ".", &c)) {
        if (s->len == 0 || !char_is_digit(s->ptr[0])) return false;
        int64_t weight = 100;
        while (s->len && char_is_digit(s->ptr[0])) {
            fraction += weight * (s->ptr[0] - '0');
            weight /= 10;
            *s = str_slice(*s, 1, s->len);
        }
    }
    *ms = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + fraction;
    *leap = second == 60;
    return true;
}

static bool take_offset(struct str *s, int64_t *ms)
{
    char sign, c;
    int64_t hour, minute;
    *ms = 0;
    if (take_one_of(s, "Zz", &c)) return true;
    if (!take_one_of(s, "+-", &sign) || !take_digits(s, 2, &hour) || !take_one_of(s, ":", &c) ||
        !take_digits(s, 2, &minute))
        return false;
    if (hour > 23 || minute > 59) return false;
    *ms = hour * HOUR_MS + minute * MINUTE_MS;
    if (sign == '-') *ms = -*ms;
    return true;
}

bool civil_parse(struct str text, int64_t *ms)
{
    int64_t days, time_ms, offset_ms;
    bool leap;
    char c;
    if (!take_date(&text, &days) || !take_one_of(&text, "Tt ", &c) || !take_time(&text, &time_ms, &leap) ||
        !take_offset(&text, &offset_ms))
        return false;
    if (text.len) return false;
    int64_t result = days * DAY_MS + time_ms - offset_ms;
    // A leap second is the last of a day in UTC, so the "next second" is a midnight.
    int64_t second = result - (time_ms % SECOND_MS);
    if (leap && second % DAY_MS != 0) return false;
    *ms = result;
    return true;
}

struct unit {
    const char *name;
    int64_t ms;
};

// A number as read, exact to a billionth: enough for a day to be exact to a millisecond.
struct amount {
    int64_t whole;
    int64_t billionths;
    bool fraction;
};

static bool take_amount(struct str *s, struct amount *out)
{
    *out = (struct amount){0};
    if (s->len == 0 || !char_is_digit(s->ptr[0])) return false;
    while (s->len && char_is_digit(s->ptr[0])) {
        if (__builtin_mul_overflow(out->whole, 10, &out->whole) ||
            __builtin_add_overflow(out->whole, s->ptr[0] - '0', &out->whole))
            return false;
        *s = str_slice(*s, 1, s->len);
    }
    if (s->len == 0 || s->ptr[0] != '.') return true;
    *s = str_slice(*s, 1, s->len);
    if (s->len == 0 || !char_is_digit(s->ptr[0])) return false;
    out->fraction = true;
    int64_t weight = 100000000;
    while (s->len && char_is_digit(s->ptr[0])) {
        out->billionths += weight * (s->ptr[0] - '0');
        weight /= 10;
        *s = str_slice(*s, 1, s->len);
    }
    return true;
}

static bool add_amount(int64_t *total, const struct amount *amount, int64_t unit_ms)
{
    int64_t whole_ms;
    if (__builtin_mul_overflow(amount->whole, unit_ms, &whole_ms) || __builtin_add_overflow(*total, whole_ms, total))
        return false;
    int64_t fraction_ms = amount->billionths * unit_ms / 1000000000;
    return !__builtin_add_overflow(*total, fraction_ms, total);
}

// A run of amounts with units in falling order, each at most once. *next is the first unit still
// allowed, so that an ISO duration can go on after its "T".
static bool take_units(struct str *s, const struct unit *units, size_t count, size_t *next, int64_t *total)
{
    while (s->len && char_is_digit(s->ptr[0])) {
        struct amount amount;
        if (!take_amount(s, &amount)) return false;
        size_t letters = 0;
        while (letters < s->len && !char_is_digit(s->ptr[letters]) && s->ptr[letters] != 'T') letters++;
        struct str name = str_slice(*s, 0, letters);
        while (*next < count && !str_is(name, units[*next].name)) (*next)++;
        if (*next == count || !add_amount(total, &amount, units[*next].ms)) return false;
        (*next)++;
        *s = str_slice(*s, letters, s->len);
    }
    return true;
}

static bool parse_iso(struct str s, int64_t *ms)
{
    static const struct unit units[] = {{"D", DAY_MS}, {"H", HOUR_MS}, {"M", MINUTE_MS}, {"S", SECOND_MS}};
    int64_t total = 0;
    size_t next = 0;
    s = str_slice(s, 1, s.len);
    bool some = s.len && char_is_digit(s.ptr[0]);
    if (some && (!take_units(&s, units, 1, &next, &total))) return false;
    if (s.len && s.ptr[0] == 'T') {
        s = str_slice(s, 1, s.len);
        some = s.len != 0;
        next = 1;
        if (!take_units(&s, units, ARRAY_COUNT(units), &next, &total)) return false;
    }
    if (!some || s.len) return false;
    *ms = total;
    return true;
}

bool duration_parse(struct str text, int64_t *ms)
{
    static const struct unit units[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"m", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};
    if (text.len && text.ptr[0] == 'P') return parse_iso(text, ms);
    struct str bare = text;
    struct amount amount;
    if (!take_amount(&bare, &amount)) return false;
    if (bare.len == 0 && !amount.fraction) {
        *ms = amount.whole;
        return true;
    }
    int64_t total = 0;
    size_t next = 0;
    if (!take_units(&text, units, ARRAY_COUNT(units), &next, &total) || text.len) return false;
    *ms = total;
    return true;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    while (count) *to++ = digits[--count];
    return to;
}

// Two units, the second with two digits; never rounded up, so 59.99 s is not "60.0s".
void duration_format(int64_t ms, char out[24])
{
    uint64_t n = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    char *p = out;
    if (ms < 0) *p++ = '-';
    if (n < SECOND_MS) {
        p = put_number(p, n);
        *p++ = 'm';
        *p++ = 's';
    } else if (n < MINUTE_MS) {
        p = put_number(p, n / SECOND_MS);
        *p++ = '.';
        p = put_digits(p, (int64_t)(n % SECOND_MS / 100), 1);
        *p++ = 's';
    } else if (n < HOUR_MS) {
        p = put_number(p, n / MINUTE_MS);
        *p++ = 'm';
        p = put_digits(p, (int64_t)(n % MINUTE_MS / SECOND_MS), 2);
        *p++ = 's';
    } else if (n < DAY_MS) {
        p = put_number(p, n / HOUR_MS);
        *p++ = 'h';
        p = put_digits(p, (int64_t)(n % HOUR_MS / MINUTE_MS), 2);
        *p++ = 'm';
    } else {
        p = put_number(p, n / DAY_MS);
        *p++ = 'd';
        p = put_digits(p, (int64_t)(n % DAY_MS / HOUR_MS), 2);
        *p++ = 'h';
    }
    *p = '\0';
}
