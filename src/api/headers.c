// What request headers say: which form is wanted, what the caller has seen, how long it waits.
#include "api/inside.h"

#include <stdio.h>

// The next line of a header that may have several, from *at on.
static bool next_line(const struct http_request *request, const char *name, size_t *at, struct str *out)
{
    while (*at < request->header_count) {
        const struct http_header *header = &request->headers[(*at)++];
        if (!http_name_is(header->name, name)) continue;
        *out = header->value;
        return true;
    }
    return false;
}

// Elements of a list, on however many lines.
struct elements {
    const char *name;
    struct str rest;
    size_t at;
};

static bool next_element(const struct http_request *request, struct elements *list, struct str *out)
{
    do {
        while (list->rest.len == 0)
            if (!next_line(request, list->name, &list->at, &list->rest)) return false;
        *out = str_trim(str_cut(list->rest, ',', &list->rest));
    } while (out->len == 0);
    return true;
}

bool headers_fit(struct ask *ask)
{
    static const char *const once[] = {"authorization", "content-type",  "idempotency-key",
                                       "cairn-min-seq", "last-event-id", "range",
                                       "cookie",        "cairn-session"};
    for (size_t i = 0; i < ARRAY_COUNT(once); i++) {
        struct str line;
        size_t at = 0;
        if (!next_line(ask->request, once[i], &at, &line) || !next_line(ask->request, once[i], &at, &line)) continue;
        return call_problem(ask->call, 400, "INVALID_REQUEST", "header %s is given more than once", once[i]);
    }
    return true;
}

int64_t prefer_wait_ms(const struct http_request *request)
{
    struct elements list = {.name = "prefer"};
    struct str word, value;
    while (next_element(request, &list, &word)) {
        struct str name = str_trim(str_cut(word, '=', &value));
        int64_t seconds;
        if (!http_name_is(name, "wait") || !str_int64(str_trim(value), &seconds) || seconds < 0) continue;
        return seconds < WAIT_MAX_MS / 1000 ? seconds * 1000 : WAIT_MAX_MS;
    }
    return 0;
}

bool idempotency_key(struct ask *ask, struct str *out)
{
    struct str line;
    size_t at = 0;
    *out = (struct str){0};
    if (!next_line(ask->request, "idempotency-key", &at, &line)) return true;
    if (line.len >= 2 && line.ptr[0] == '"' && line.ptr[line.len - 1] == '"') line = str_slice(line, 1, line.len - 1);
    *out = line;
    if (line.len > 0) return true;
    // A client that sends one wants the effect once.
    return call_problem(ask->call, 400, "INVALID_REQUEST", "Idempotency-Key is empty");
}

// ---- content

bool is_json(struct str type)
{
    struct str rest, value, media = str_trim(str_cut(type, ';', &rest));
    if (!http_name_is(media, "application/json")) return false;
    while (rest.len > 0) {
        struct str name = str_trim(str_cut(str_cut(rest, ';', &rest), '=', &value));
        value = str_trim(value);
        if (value.len >= 2 && value.ptr[0] == '"') value = str_slice(value, 1, value.len - 1);
        if (http_name_is(name, "charset") && !http_name_is(value, "utf-8")) return false;
    }
    return true;
}

bool is_plain(const struct http_request *request)
{
    struct str coding = http_find(request, "content-encoding");
    return coding.len == 0 || http_name_is(coding, "identity");
}

// "q=0.5" in thousandths; what cannot be read is 1.
static int weight_of(struct str parameters)
{
    while (parameters.len > 0) {
        struct str value, name = str_trim(str_cut(str_cut(parameters, ';', &parameters), '=', &value));
        value = str_trim(value);
        if (!http_name_is(name, "q") || value.len == 0 || value.ptr[0] < '0' || value.ptr[0] > '1') continue;
        int weight = (value.ptr[0] - '0') * 1000, unit = 100;
        for (size_t i = 2; i < value.len && unit > 0 && value.ptr[i] >= '0' && value.ptr[i] <= '9'; i++, unit /= 10)
            weight += (value.ptr[i] - '0') * unit;
        return weight < 1000 ? weight : 1000;
    }
    return 1000;
}

enum { NOT_NAMED = -1 };

static int accept_weight(const struct http_request *request, const char *type)
{
    struct elements list = {.name = "accept"};
    struct str word, parameters;
    int weight = NOT_NAMED;
    while (next_element(request, &list, &word)) {
        struct str range = str_trim(str_cut(word, ';', &parameters));
        if (http_name_is(range, type)) weight = weight_of(parameters);
    }
    return weight;
}

// What is there for everybody is also meant by a range that does not name it.
static int usual_weight(const struct http_request *request, const char *type)
{
    int weight = accept_weight(request, type);
    struct str rest, major = str_cut(str_from(type), '/', &rest);
    char range[64];
    if (weight != NOT_NAMED) return weight;
    snprintf(range, sizeof(range), "%.*s/*", STR_ARG(major));
    weight = accept_weight(request, range);
    return weight != NOT_NAMED ? weight : accept_weight(request, "*/*");
}

bool accept_names(const struct http_request *request, const char *type)
{
    return accept_weight(request, type) > 0;
}

size_t accept_best(const struct http_request *request, const char *const *types, size_t count)
{
    size_t best = count - 1;
    int most = usual_weight(request, types[count - 1]);
    if (most < 0) most = 0;
    for (size_t i = count - 1; i-- > 0;) {
        int weight = accept_weight(request, types[i]);
        if (weight <= 0 || weight < most) continue;
        best = i;
        most = weight;
    }
    return best;
}

// Only by its name: "*" would be a promise that every coding is understood, and no client means that.
bool coding_taken(const struct http_request *request, const char *coding)
{
    struct elements list = {.name = "accept-encoding"};
    struct str word, parameters;
    while (next_element(request, &list, &word))
        if (http_name_is(str_trim(str_cut(word, ';', &parameters)), coding)) return weight_of(parameters) > 0;
    return false;
}

// ---- what the caller has seen

bool tag_seen(const struct http_request *request, struct str etag)
{
    struct elements list = {.name = "if-none-match"};
    struct str tag;
    while (next_element(request, &list, &tag)) {
        if (str_starts(tag, STR("W/"))) tag = str_slice(tag, 2, tag.len);
        if (str_is(tag, "*") || str_eq(tag, etag)) return true;
    }
    return false;
}

// "r-88", also where something on the way has made it weak. 0: another.
static uint64_t tag_seq(struct str tag)
{
    int64_t seq;
    if (str_starts(tag, STR("W/"))) tag = str_slice(tag, 2, tag.len);
    if (tag.len < 5 || !str_starts(tag, STR("\"r-")) || tag.ptr[tag.len - 1] != '"') return 0;
    return str_int64(str_slice(tag, 3, tag.len - 1), &seq) && seq > 0 ? (uint64_t)seq : 0;
}

bool etag_seen(const struct http_request *request, uint64_t seq)
{
    struct elements list = {.name = "if-none-match"};
    struct str tag;
    while (next_element(request, &list, &tag))
        if (str_is(tag, "*") || tag_seq(tag) == seq) return true;
    return false;
}

bool etag_wanted(struct ask *ask, uint64_t *seq)
{
    struct elements list = {.name = "if-match"};
    struct str tag;
    bool any = false;
    *seq = 0;
    while (next_element(ask->request, &list, &tag)) {
        uint64_t one = tag_seq(tag);
        if (str_is(tag, "*")) {
            *seq = 0; // whatever it is like, as long as it is there
            return true;
        }
        any = true;
        if (one > *seq) *seq = one; // of several the newest: logs only grow
    }
    if (!any || *seq > 0) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "If-Match must be the ETag of the run, such as \"r-88\"");
}

bool min_seq(struct ask *ask, int64_t *out)
{
    struct str text = http_find(ask->request, "cairn-min-seq");
    *out = 0;
    if (text.len == 0 || (str_int64(text, out) && *out >= 0)) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "Cairn-Min-Seq must be the number of an event");
}
