// Numbers of a net as people write them: counts, and lengths of time in seconds.
#include "program/internal.h"
#include "program/net.h"

#include "base/civil.h"

static bool number_of(const struct json *value, double *out)
{
    if (value->type != JSON_STRING) return json_double(value, out);
    struct str text = str_trim(value->text);
    size_t digits = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] >= '0' && text.ptr[i] <= '9')
            digits++;
        else if (text.ptr[i] != '.' || str_find(text, '.', i + 1) < text.len || i == 0 || i + 1 == text.len)
            return false;
    }
    if (digits == 0 || text.len > 18) return false;
    while (text.len > 1 && text.ptr[0] == '0' && text.ptr[1] != '.') text = str_slice(text, 1, text.len);
    struct json number = json_number(text);
    return json_double(&number, out);
}

enum code net_seconds(const struct json *value, int64_t *ms)
{
    double seconds;
    int64_t found;
    if (number_of(value, &seconds)) {
        if (!(seconds >= 0 && seconds <= (double)DURATION_MAX_MS / 1000)) return E_LIMIT;
        *ms = (int64_t)(seconds * 1000 + 0.5);
        return OK;
    }
    if (value->type != JSON_STRING || !duration_parse(str_trim(value->text), &found)) return E_INVALID;
    if (found < 0 || found > DURATION_MAX_MS) return E_LIMIT;
    *ms = found;
    return OK;
}

enum code net_count(const struct json *value, int64_t min, int64_t max, int64_t *out)
{
    double number;
    if (!number_of(value, &number)) return E_INVALID;
    if (!(number >= (double)min && number <= (double)max)) return E_LIMIT;
    if (number != (double)(int64_t)number) return E_INVALID;
    *out = (int64_t)number;
    return OK;
}
