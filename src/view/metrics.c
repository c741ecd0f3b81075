#include "view/metrics.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOT_COUNT = 2 * METRIC_SERIES_MAX }; // a power of two, never more than half full
enum kind { KIND_COUNTER = 1, KIND_GAUGE, KIND_HISTOGRAM };
enum unit { UNIT_NONE = 1, UNIT_SECONDS, UNIT_BYTES };

static const struct metric_info {
    enum kind kind;
    enum unit unit;
    const char *name, *labels, *help;
} infos[METRIC_COUNT] = {
#define X(name, kind, text, unit, labels, help) [METRIC_##name] = {KIND_##kind, UNIT_##unit, text, labels, help},
    METRIC_LIST(X)
#undef X
};

// Upper edges in microseconds.
static const int64_t edges[METRIC_BUCKET_COUNT] = {
    100,    250,    500,    1000,    2500,    5000,     10000,     25000,     50000,
    100000, 250000, 500000, 1000000, 5000000, 30000000, 120000000, 600000000, 3600000000,
};

struct series {
    char labels[METRIC_LABELS_MAX][METRIC_LABEL_SIZE]; // written once, before it is published in a slot
    uint8_t sizes[METRIC_LABELS_MAX];
    atomic_bool touched;
    atomic_llong value; // of a histogram: the sum
    atomic_ullong buckets[METRIC_BUCKET_COUNT + 1];
};

// Series 0 is the one of a metric without labels, or "other". `slots` holds indexes of series that are ready.
struct family {
    atomic_uint used;
    atomic_uint slots[SLOT_COUNT];
    struct series series[METRIC_SERIES_MAX];
};

struct metrics {
    struct family families[METRIC_COUNT];
};

static uint32_t label_count(enum metric metric)
{
    const char *labels = infos[metric].labels;
    uint32_t count = labels[0] ? 1 : 0;
    for (; *labels; labels++) count += *labels == ',';
    return count;
}

struct metrics *metrics_open(struct arena *arena)
{
    struct metrics *metrics = ARENA_NEW(arena, struct metrics);
    for (uint32_t m = 0; metrics && m < METRIC_COUNT; m++) {
        struct series *other = &metrics->families[m].series[0];
        for (uint32_t i = 0; i < label_count((enum metric)m); i++) {
            memcpy(other->labels[i], "other", 5);
            other->sizes[i] = 5;
        }
        atomic_init(&metrics->families[m].used, 1);
    }
    return metrics;
}

// ---- finding a series

static uint32_t hash_of(const struct str *labels, uint32_t count)
{
    uint32_t hash = 2166136261u; // FNV-1a
    for (uint32_t i = 0; i < count; i++) {
        // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): `count` of them are set
        struct str value = str_head(labels[i], METRIC_LABEL_SIZE);
        for (size_t k = 0; k < value.len; k++) hash = (hash ^ (unsigned char)value.ptr[k]) * 16777619u;
        hash = (hash ^ 0xFFu) * 16777619u;
    }
    return hash;
}

static bool is_series(const struct series *series, const struct str *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!str_eq(str_head(labels[i], METRIC_LABEL_SIZE), (struct str){series->labels[i], series->sizes[i]}))
            return false;
    }
    return true;
}

// A series of one's own, not seen by others yet; 0 when there is none left.
static uint32_t reserve(struct family *family, const struct str *labels, uint32_t count)
{
    if (atomic_load(&family->used) >= METRIC_SERIES_MAX) return 0;
    uint32_t index = atomic_fetch_add(&family->used, 1);
    if (index >= METRIC_SERIES_MAX) return 0;
    struct series *series = &family->series[index];
    for (uint32_t i = 0; i < count; i++) {
        // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above
        struct str value = str_head(labels[i], METRIC_LABEL_SIZE);
        if (value.len > 0) memcpy(series->labels[i], value.ptr, value.len);
        series->sizes[i] = (uint8_t)value.len;
    }
    return index;
}

// A slot is filled once and never emptied. Who loses the race for one looks at what the winner put there and goes on; when
// that is the same series, the reserved one stays unused (one per lost race).
static struct series *find(struct metrics *metrics, enum metric metric, const struct str *labels)
{
    struct family *family = &metrics->families[metric];
    uint32_t count = label_count(metric), own = 0;
    if (count == 0) return &family->series[0];
    uint32_t at = hash_of(labels, count);
    for (uint32_t tries = 0; tries < SLOT_COUNT; tries++, at++) {
        atomic_uint *slot = &family->slots[at % SLOT_COUNT];
        uint32_t index = atomic_load_explicit(slot, memory_order_acquire);
        if (index == 0) {
            if (own == 0) own = reserve(family, labels, count);
            if (own == 0) return &family->series[0];
            if (atomic_compare_exchange_strong(slot, &index, own)) return &family->series[own];
        }
        if (is_series(&family->series[index], labels, count)) return &family->series[index];
    }
    return &family->series[0];
}

static void touch(struct series *series)
{
    if (!atomic_load_explicit(&series->touched, memory_order_relaxed)) atomic_store(&series->touched, true);
}

void metric_add(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t by)
{
    INVARIANT(infos[metric].kind == KIND_GAUGE || (infos[metric].kind == KIND_COUNTER && by >= 0));
    struct series *series = find(metrics, metric, labels);
    atomic_fetch_add_explicit(&series->value, by, memory_order_relaxed);
    touch(series);
}

void metric_set(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t value)
{
    INVARIANT(infos[metric].kind == KIND_GAUGE);
    struct series *series = find(metrics, metric, labels);
    atomic_store_explicit(&series->value, value, memory_order_relaxed);
    touch(series);
}

void metric_time(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t micros)
{
    INVARIANT(infos[metric].kind == KIND_HISTOGRAM);
    struct series *series = find(metrics, metric, labels);
    uint32_t bucket = 0;
    if (micros < 0) micros = 0; // a clock that was set back
    while (bucket < METRIC_BUCKET_COUNT && micros > edges[bucket]) bucket++;
    atomic_fetch_add_explicit(&series->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&series->value, micros, memory_order_relaxed);
    touch(series);
}

static void move_active(struct metrics *metrics, struct str plan, enum run_status status, int64_t by)
{
    if (!status || run_status_terminal(status)) return;
    metric_add(metrics, METRIC_RUNS_ACTIVE, (struct str[]){plan, str_from(run_status_name(status))}, by);
}

void metrics_run(struct metrics *metrics, const struct metric_run *run)
{
    if (run->from == run->to) return;
    move_active(metrics, run->plan, run->from, -1);
    move_active(metrics, run->plan, run->to, 1);
    if (!run->to || !run_status_terminal(run->to) || (run->from && run_status_terminal(run->from))) return;
    metric_add(metrics, METRIC_RUNS, (struct str[]){run->plan, str_from(run_status_name(run->to))}, 1);
    if (run->duration_ms >= 0) metric_time(metrics, METRIC_RUN_DURATION, &run->plan, run->duration_ms * 1000);
    if (run->to == RUN_STATUS_FAILED) metric_add(metrics, METRIC_RUN_ERRORS, (struct str[]){run->plan, run->code}, 1);
}

// ---- writing

const char *metrics_content_type(enum metrics_format format)
{
    return format == METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                         : "text/plain; version=0.0.4; charset=utf-8";
}

// Length of the UTF-8 character at the start of `text`; 0 when there is none.
static size_t character(struct str text)
{
    unsigned char c = (unsigned char)text.ptr[0];
    size_t len = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (len > text.len) return 0;
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)text.ptr[i] & 0xC0) != 0x80) return 0;
    }
    return len;
}

static void write_value(struct buf *out, struct str value)
{
    buf_byte(out, '"');
    while (value.len > 0) {
        size_t len = character(value);
        unsigned char c = (unsigned char)value.ptr[0];
        if (len == 0 || (len == 1 && c != '\n' && (c < 0x20 || c == 0x7F)))
            buf_byte(out, '?');
        else if (c == '\n')
            buf_text(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_add(out, str_slice(value, 0, len));
        value = str_slice(value, len ? len : 1, value.len);
    }
    buf_byte(out, '"');
}

static void write_labels(struct buf *out, enum metric metric, const struct series *series, const char *edge)
{
    struct str names = str_from(infos[metric].labels);
    uint32_t count = label_count(metric);
    if (count == 0 && !edge) return;
    buf_byte(out, '{');
    for (uint32_t i = 0; i < count; i++) {
        struct str name = str_cut(names, ',', &names);
        if (i > 0) buf_byte(out, ',');
        buf_add(out, name);
        buf_byte(out, '=');
        write_value(out, (struct str){series->labels[i], series->sizes[i]});
    }
    if (edge) buf_printf(out, "%sle=\"%s\"", count ? "," : "", edge);
    buf_byte(out, '}');
}

// Microseconds as seconds, without a trip through floating point.
static void write_micros(struct buf *out, int64_t micros)
{
    int64_t whole = micros / 1000000, part = micros % 1000000;
    if (part == 0) {
        buf_int(out, whole);
        return;
    }
    if (part < 0) part = -part;
    buf_printf(out, "%s%lld.%06lld", micros < 0 && whole == 0 ? "-" : "", (long long)whole, (long long)part);
    while (buf_ok(out) && out->ptr[out->len - 1] == '0') out->ptr[--out->len] = '\0';
}

static void write_number(struct buf *out, enum unit unit, int64_t value)
{
    if (unit == UNIT_SECONDS)
        write_micros(out, value);
    else
        buf_int(out, value);
}

static void write_name(struct buf *out, enum metric metric)
{
    static const char *const units[] = {"", "", "_seconds", "_bytes"};
    buf_printf(out, "%s%s", infos[metric].name, units[infos[metric].unit]);
}

static void write_sample(struct buf *out, enum metric metric, const struct series *series, const char *ending)
{
    write_name(out, metric);
    buf_text(out, ending);
    write_labels(out, metric, series, NULL);
    buf_byte(out, ' ');
}

static void write_histogram(struct buf *out, enum metric metric, const struct series *series)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i <= METRIC_BUCKET_COUNT; i++) {
        struct buf edge SCOPED(buf_release) = buf_of(64);
        if (i < METRIC_BUCKET_COUNT)
            write_micros(&edge, edges[i]);
        else
            buf_text(&edge, "+Inf");
        total += atomic_load_explicit(&series->buckets[i], memory_order_relaxed);
        write_name(out, metric);
        buf_text(out, "_bucket");
        write_labels(out, metric, series, edge.ptr);
        buf_printf(out, " %llu\n", (unsigned long long)total);
    }
    write_sample(out, metric, series, "_sum");
    write_micros(out, atomic_load_explicit(&series->value, memory_order_relaxed));
    buf_byte(out, '\n');
    write_sample(out, metric, series, "_count");
    buf_printf(out, "%llu\n", (unsigned long long)total); // the sum of the buckets, so that both always agree
}

static int compare(const struct series *a, const struct series *b)
{
    for (uint32_t i = 0; i < METRIC_LABELS_MAX; i++) {
        int order = str_cmp((struct str){a->labels[i], a->sizes[i]}, (struct str){b->labels[i], b->sizes[i]});
        if (order != 0) return order;
    }
    return 0;
}

static size_t sorted(const struct family *family, bool labelled, const struct series *order[METRIC_SERIES_MAX])
{
    size_t count = 0;
    if (!labelled || atomic_load(&family->series[0].touched)) order[count++] = &family->series[0];
    for (uint32_t i = 0; i < SLOT_COUNT && count < METRIC_SERIES_MAX; i++) {
        uint32_t index = atomic_load_explicit(&family->slots[i], memory_order_acquire);
        if (index == 0 || !atomic_load(&family->series[index].touched)) continue;
        size_t at = count++;
        for (; at > 0 && compare(order[at - 1], &family->series[index]) > 0; at--) order[at] = order[at - 1];
        order[at] = &family->series[index];
    }
    return count;
}

static void write_head(struct buf *out, enum metric metric, enum metrics_format format)
{
    static const char *const kinds[] = {"", "counter", "gauge", "histogram"};
    const char *total = format == METRICS_PROMETHEUS && infos[metric].kind == KIND_COUNTER ? "_total" : "";
    buf_text(out, "# HELP ");
    write_name(out, metric);
    buf_printf(out, "%s %s\n# TYPE ", total, infos[metric].help);
    write_name(out, metric);
    buf_printf(out, "%s %s\n", total, kinds[infos[metric].kind]);
    if (format != METRICS_OPENMETRICS || infos[metric].unit == UNIT_NONE) return;
    buf_text(out, "# UNIT ");
    write_name(out, metric);
    buf_printf(out, " %s\n", infos[metric].unit == UNIT_SECONDS ? "seconds" : "bytes");
}

static bool names_things(enum metric metric)
{
    static const char *const labels[] = {"plan", "queue", "pool", "sink"};
    struct str rest, first = str_cut(str_from(infos[metric].labels), ',', &rest);
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++)
        if (str_is(first, labels[i])) return true;
    return false;
}

void metrics_write(const struct metrics *metrics, enum metrics_format format, bool names, struct buf *out)
{
    for (uint32_t m = 0; m < METRIC_COUNT; m++) {
        const struct series *order[METRIC_SERIES_MAX];
        enum metric metric = (enum metric)m;
        if (!names && names_things(metric)) continue;
        size_t count = sorted(&metrics->families[m], label_count(metric) > 0, order);
        write_head(out, metric, format); // also of one that has counted nothing yet: names do not come and go
        for (size_t i = 0; i < count; i++) {
            if (infos[m].kind == KIND_HISTOGRAM) {
                write_histogram(out, metric, order[i]);
                continue;
            }
            write_sample(out, metric, order[i], infos[m].kind == KIND_COUNTER ? "_total" : "");
            write_number(out, infos[m].unit, atomic_load_explicit(&order[i]->value, memory_order_relaxed));
            buf_byte(out, '\n');
        }
    }
    if (format == METRICS_OPENMETRICS) buf_text(out, "# EOF\n");
}
