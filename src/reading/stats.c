// What is in a store: runs by state, events, growth, and where its bytes are.
#include "reading/reading.h"

#include "base/civil.h"
#include "json/make.h"

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

static bool count_run(struct store_stats *stats, const struct run_head *head, int64_t now_ms, struct arena *arena)
{
    int64_t created = head->summary.created_ms, age = now_ms / DAY_MS - created / DAY_MS; // days of UTC
    stats->runs++;
    stats->events += head->last_seq;
    stats->entries += head->last_ledger_seq;
    stats->children += head->parent_run.len > 0;
    if ((unsigned)head->summary.status < STATS_STATUSES) stats->by_status[head->summary.status]++;
    if (created > now_ms - STATS_RECENT_DAYS * DAY_MS) stats->recent += head->last_seq;
    if (created > 0 && age >= 0 && age < STATS_DAYS) {
        stats->days[age].runs++;
        stats->days[age].events += head->last_seq;
    }
    if (created && (stats->oldest_ms == 0 || created < stats->oldest_ms)) stats->oldest_ms = created;
    if (created > stats->newest_ms) stats->newest_ms = created;
    if (head->last_seq <= stats->biggest[STATS_BIGGEST - 1].events) return true;
    struct stats_run run = {arena_copy(arena, head->ids.run), head->last_seq};
    if (!run.run.ptr) return false;
    for (size_t i = 0; i < STATS_BIGGEST; i++)
        if (run.events > stats->biggest[i].events) {
            struct stats_run smaller = stats->biggest[i];
            stats->biggest[i] = run;
            run = smaller;
        }
    return true;
}

enum code reading_stats(struct store *store, struct str tenant, int64_t now_ms, struct arena *arena,
                        struct store_stats *out, struct error *err)
{
    struct run_filter filter = {.tenant = tenant, .limit = 1000};
    struct arena page;
    enum code rc = OK;
    *out = (struct store_stats){.now_ms = now_ms};
    arena_init(&page, 64 * 1024, SIZE_MAX);
    do {
        struct run_heads heads = {0};
        arena_reset(&page);
        rc = store_list(store, &filter, &page, &heads, err);
        for (size_t i = 0; !rc && i < heads.count; i++)
            if (!count_run(out, &heads.items[i], now_ms, arena)) rc = error_nomem(err);
        filter.before = heads.next;
    } while (!rc && filter.before);
    arena_release(&page);
    if (!rc) rc = store_usage(store, arena, &out->usages, err);
    return rc ? rc : store_tombstones(store, arena, &out->removed, err);
}

static struct json days_json(const struct store_stats *stats, struct arena *arena)
{
    struct json list = json_array();
    for (int i = STATS_DAYS - 1; i >= 0; i--) {
        char text[CIVIL_SIZE];
        civil_format(stats->now_ms - i * DAY_MS, text);
        json_append(arena, &list, JSON_OF(arena, {"day", json_text_made(arena_format(arena, "%.10s", text))},
                                          {"runs", json_count(stats->days[i].runs)},
                                          {"events", json_count(stats->days[i].events)}));
    }
    return list;
}

bool store_stats_json(const struct store_stats *stats, struct arena *arena, struct json *out)
{
    struct json status = json_object(), biggest = json_array(), usages = json_array();
    for (size_t i = 0; i < stats->usages.count; i++) {
        const struct usage *usage = &stats->usages.items[i];
        json_append(arena, &usages, JSON_OF(arena, {"what", json_string(usage->what)},
                                            {"bytes", json_count(usage->bytes)}, {"count", json_count(usage->count)}));
    }
    for (unsigned i = RUN_STATUS_PENDING; i < STATS_STATUSES; i++)
        JSON_ADD(arena, &status, {run_status_name((enum run_status)i), json_count(stats->by_status[i])});
    for (size_t i = 0; i < STATS_BIGGEST && stats->biggest[i].events; i++)
        json_append(arena, &biggest, JSON_OF(arena, {"runId", json_string(stats->biggest[i].run)},
                                             {"events", json_count(stats->biggest[i].events)}));
    *out = JSON_OF(arena, {"runs", json_count(stats->runs)}, {"status", status}, {"children", json_count(stats->children)},
                   {"events", json_count(stats->events)}, {"ledgerEntries", json_count(stats->entries)},
                   {"eventsPerDay", json_int((int64_t)(stats->recent / STATS_RECENT_DAYS))},
                   {"removed", json_count(stats->removed.count)}, {"oldest", json_time_or_null(arena, stats->oldest_ms)},
                   {"newest", json_time_or_null(arena, stats->newest_ms)}, {"usage", usages}, {"biggest", biggest},
                   {"days", days_json(stats, arena)});
    return json_ok(out);
}
