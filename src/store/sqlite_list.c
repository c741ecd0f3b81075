// Lists of runs, newest first.
//
// A way to list walks an index that is in the order of the answer; several states are several such walks, merged. So a page costs
// what it returns, unless a filter that is no part of the index throws many rows away. Prefixes and times have indexes in another
// order: what they find is sorted, and they are taken only when that is little. Which way is the shortest is found out by
// counting entries of the indexes, up to WEIGHED_MAX of each.
#include "store/sqlite.h"

#include <stdio.h>

enum { WEIGHED_MAX = 4000, STATUSES_SIZE = 128 };

#define LIST_FROM(first, second) "SELECT " SQL_HEAD_COLUMNS " FROM " first " CROSS JOIN " second " USING(run_no) WHERE "
#define LIST_FILTER                                                                                                    \
    "h.run_no<?2 AND h.run_no>=?11 AND (?4='' OR r.plan_id=?4) AND (?5=0 OR h.created_ms>=?5) "                        \
    "AND (?6=0 OR h.created_ms<=?6) AND (?7=0 OR h.terminal=0) AND (?8=0 OR r.parent_run='') "                         \
    "AND substr(r.run_id,1,length(?9))=?9 AND (?10='' OR instr(?10,','||h.status||','))"
#define NEWEST_FIRST " ORDER BY h.run_no DESC"
#define PREFIX "r.tenant_id=?1 AND r.run_id>=?9 AND r.run_id<?9||char(1114111)"
#define TIME "h.tenant_id=?1 AND h.created_ms>=?5 AND h.created_ms<=ifnull(nullif(?6,0),9223372036854775807)"

static const char *const lists[LIST_WAY_COUNT] = {
    [LIST_EVERYTHING] = LIST_FROM("run_heads h", "runs r") LIST_FILTER NEWEST_FIRST,
    // In the order of the index it would be one tenant after the other. The few that are open are sorted, ?12 of them kept.
    [LIST_EVERYTHING_OPEN] = LIST_FROM("run_heads h INDEXED BY run_heads_unfinished",
                                       "runs r") "h.terminal=0 AND " LIST_FILTER NEWEST_FIRST " LIMIT ?12",
    [LIST_OPEN] = LIST_FROM("run_heads h", "runs r") "h.tenant_id=?1 AND h.terminal=0 AND " LIST_FILTER NEWEST_FIRST,
    [LIST_BY_STATUS] =
        LIST_FROM("run_heads h", "runs r") "h.tenant_id=?1 AND h.status=?3 AND " LIST_FILTER NEWEST_FIRST,
    [LIST_BY_PLAN] =
        LIST_FROM("runs r", "run_heads h") "r.tenant_id=?1 AND r.plan_id=?4 AND r.run_no<?2 AND r.run_no>=?11 "
                                           "AND " LIST_FILTER " ORDER BY r.run_no DESC",
    [LIST_BY_PREFIX] = LIST_FROM("runs r", "run_heads h") PREFIX " AND " LIST_FILTER NEWEST_FIRST " LIMIT ?12",
    [LIST_BY_TIME] = LIST_FROM("run_heads h INDEXED BY run_heads_by_time", "runs r") TIME
    " AND " LIST_FILTER NEWEST_FIRST " LIMIT ?12",
};

#define WEIGH(from, where) "SELECT count(*) FROM (SELECT 1 FROM " from " WHERE " where " LIMIT ?12)"

static const char *const weighings[LIST_WAY_COUNT] = {
    [LIST_BY_STATUS] = WEIGH("run_heads h", "h.tenant_id=?1 AND h.status=?3 AND h.run_no<?2"),
    [LIST_BY_PLAN] = WEIGH("runs r", "r.tenant_id=?1 AND r.plan_id=?4 AND r.run_no<?2"),
    [LIST_BY_PREFIX] = WEIGH("runs r", PREFIX),
    [LIST_BY_TIME] = WEIGH("run_heads h INDEXED BY run_heads_by_time", TIME),
};

struct walk {
    sqlite3_stmt *statement;
    bool row;
};

// What one call asks for, ready to be bound.
struct listing {
    struct sqlite_store *store;
    const struct run_filter *filter;
    int64_t before, from;         // positions below, and not below
    char statuses[STATUSES_SIZE]; // ",RUNNING,PAUSED,"; empty = all
    struct walk walks[SQLITE_WALKS_MAX];
    size_t walk_count;
};

void sqlite_forget_lists(struct sqlite_store *store)
{
    for (size_t way = 0; way < LIST_WAY_COUNT; way++) {
        sqlite3_finalize(store->weighings[way]);
        store->weighings[way] = NULL;
        for (size_t i = 0; i < SQLITE_WALKS_MAX; i++) {
            sqlite3_finalize(store->lists[way][i]);
            store->lists[way][i] = NULL;
        }
    }
}

static enum code ready(struct listing *listing, const char *sql, sqlite3_stmt **slot, const char *status, size_t limit,
                       struct error *err)
{
    const struct run_filter *filter = listing->filter;
    int got = SQLITE_OK;
    if (!*slot) got = sqlite3_prepare_v3(listing->store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
    if (got != SQLITE_OK) return sqlite_code(listing->store, got, "list runs", err);
    sqlite3_stmt *statement = *slot;
    const struct {
        int at;
        struct str text;
    } texts[] = {{1, filter->tenant},
                 {3, str_from(status)},
                 {4, filter->plan},
                 {9, filter->run_prefix},
                 {10, str_from(listing->statuses)}};
    const struct {
        int at;
        int64_t number;
    } numbers[] = {{2, listing->before},
                   {5, filter->since_ms},
                   {6, filter->until_ms},
                   {7, filter->unfinished},
                   {8, filter->roots},
                   {11, listing->from},
                   {12, limit < INT64_MAX ? (int64_t)limit : INT64_MAX}};
    int used = sqlite3_bind_parameter_count(statement); // the highest number: not all ways have the last ones
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (texts[i].at <= used) sqlite_bind_str(statement, texts[i].at, texts[i].text);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        if (numbers[i].at <= used) sqlite3_bind_int64(statement, numbers[i].at, numbers[i].number);
    return OK;
}

// ---- which way

static bool wants(const struct run_filter *filter, unsigned status)
{
    return !filter->status_mask || (filter->status_mask & (1u << status));
}

static enum code weigh_one(struct listing *listing, enum list_way way, const char *status, size_t max, size_t *weight,
                           struct error *err)
{
    enum code rc = ready(listing, weighings[way], &listing->store->weighings[way], status, max, err);
    if (rc) return rc;
    sqlite3_stmt *statement = listing->store->weighings[way];
    int got = sqlite3_step(statement);
    if (got == SQLITE_ROW)
        *weight += (size_t)sqlite3_column_int64(statement, 0);
    else
        rc = sqlite_code(listing->store, got, "list runs", err);
    sqlite_done(statement);
    return rc;
}

static enum code weigh(struct listing *listing, enum list_way way, size_t max, size_t *weight, struct error *err)
{
    enum code rc = OK;
    *weight = 0;
    if (way != LIST_BY_STATUS) return weigh_one(listing, way, NULL, max, weight, err);
    for (unsigned status = RUN_STATUS_PENDING; !rc && status <= RUN_STATUS_CANCELLED; status++)
        if (wants(listing->filter, status))
            rc = weigh_one(listing, way, run_status_name((enum run_status)status), max, weight, err);
    return rc;
}

// A store that only older versions have written to is without this index.
static bool has_times(struct sqlite_store *store)
{
    static const char sql[] = "SELECT 1 FROM sqlite_schema WHERE name='run_heads_by_time'";
    sqlite3_stmt *statement = NULL;
    if (store->times == TIMES_UNKNOWN && sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK)
        store->times = sqlite3_step(statement) == SQLITE_ROW ? TIMES_INDEXED : TIMES_NOT_INDEXED;
    sqlite3_finalize(statement);
    return store->times == TIMES_INDEXED;
}

// The lightest of the ways that the filter offers. One whose rows must be sorted has to be light, not only lighter.
static enum code choose(struct listing *listing, enum list_way *out, struct error *err)
{
    const struct run_filter *filter = listing->filter;
    const struct {
        enum list_way way;
        bool offered, sorts;
    } ways[] = {{LIST_BY_STATUS, true, false},
                {LIST_BY_PLAN, filter->plan.len > 0, false},
                {LIST_BY_PREFIX, filter->run_prefix.len > 0, true},
                {LIST_BY_TIME, filter->since_ms > 0 && has_times(listing->store), true}};
    if (!filter->tenant.len || filter->unfinished) {
        *out = filter->tenant.len ? LIST_OPEN : filter->unfinished ? LIST_EVERYTHING_OPEN : LIST_EVERYTHING;
        return OK;
    }
    size_t lightest = SIZE_MAX;
    *out = LIST_BY_STATUS;
    if (!filter->plan.len && !filter->run_prefix.len && !filter->since_ms) return OK;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        size_t weight = SIZE_MAX;
        if (!ways[i].offered) continue;
        bool whole = ways[i].way == LIST_BY_STATUS && !filter->status_mask; // the whole tenant
        enum code rc = whole ? OK : weigh(listing, ways[i].way, WEIGHED_MAX, &weight, err);
        if (rc) return rc;
        // Of two heavy ones the narrower: a plan is more telling than all states together.
        if (weight > lightest || (ways[i].sorts && weight >= WEIGHED_MAX)) continue;
        lightest = weight;
        *out = ways[i].way;
    }
    return OK;
}

// ---- walking

static enum code advance(struct listing *listing, struct walk *walk, struct error *err)
{
    int got = sqlite3_step(walk->statement);
    walk->row = got == SQLITE_ROW;
    return got == SQLITE_ROW || got == SQLITE_DONE ? OK : sqlite_code(listing->store, got, "list runs", err);
}

static enum code start_walk(struct listing *listing, enum list_way way, const char *status, struct error *err)
{
    struct walk *walk = &listing->walks[listing->walk_count];
    sqlite3_stmt **slot = &listing->store->lists[way][listing->walk_count];
    enum code rc = ready(listing, lists[way], slot, status, listing->filter->limit + 1, err);
    if (rc) return rc;
    walk->statement = *slot;
    listing->walk_count++;
    return advance(listing, walk, err);
}

static enum code start_walks(struct listing *listing, struct error *err)
{
    enum list_way way = LIST_BY_STATUS;
    enum code rc = choose(listing, &way, err);
    if (rc || way != LIST_BY_STATUS) return rc ? rc : start_walk(listing, way, NULL, err);
    for (unsigned status = RUN_STATUS_PENDING; !rc && status <= RUN_STATUS_CANCELLED; status++)
        if (wants(listing->filter, status))
            rc = start_walk(listing, way, run_status_name((enum run_status)status), err);
    return rc;
}

static struct walk *newest(struct walk *walks, size_t count)
{
    struct walk *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (walks[i].row &&
            (!best || sqlite3_column_int64(walks[i].statement, 0) > sqlite3_column_int64(best->statement, 0)))
            best = &walks[i];
    return best;
}

static enum code merge_walks(struct listing *listing, struct arena *arena, struct run_heads *out, struct error *err)
{
    const struct run_filter *filter = listing->filter;
    size_t capacity = 0, rows = 0;
    uint64_t last = 0;
    struct walk *walk;
    while ((walk = newest(listing->walks, listing->walk_count))) {
        if (out->count == filter->limit) {
            out->next = out->items[out->count - 1].position;
            return OK;
        }
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) return error_nomem(err);
        struct run_head *head = &out->items[out->count];
        enum code rc = sqlite_take_head(listing->store, walk->statement, arena, head, err);
        rows++;
        last = head->position;
        if (!rc && run_filter_matches(filter, head)) out->count++;
        if (!rc) rc = advance(listing, walk, err);
        if (rc) return rc;
    }
    if (listing->from > 1) out->next = (uint64_t)listing->from;
    if (rows > filter->limit) out->next = last; // a way that sorts gives no more at once
    return OK;
}

// ---- the list

static void name_statuses(const struct run_filter *filter, char out[STATUSES_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned status = RUN_STATUS_PENDING; status <= RUN_STATUS_CANCELLED; status++)
        if (filter->status_mask & (1u << status))
            len += (size_t)snprintf(out + len, STATUSES_SIZE - len, "%s%s,", len ? "" : ",",
                                    run_status_name((enum run_status)status));
    INVARIANT(len < STATUSES_SIZE);
}

static enum code bound(struct listing *listing, struct error *err)
{
    const struct run_filter *filter = listing->filter;
    listing->before = filter->before && filter->before < INT64_MAX ? (int64_t)filter->before : INT64_MAX;
    listing->from = 0;
    if (!filter->span) return OK;
    enum code rc = OK;
    if (listing->before == INT64_MAX) {
        rc = sql_newest_run(&listing->store->base, &listing->before, err);
        listing->before++;
    }
    if ((uint64_t)listing->before > filter->span) listing->from = listing->before - (int64_t)filter->span;
    return rc;
}

// A handle that shows one moment is in a transaction already.
static enum code look(struct sqlite_store *store, enum statement which, struct error *err)
{
    enum code rc = OK;
    if (store->frozen) return OK;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    return statement ? sqlite_step(store, statement, "list runs", err) : rc;
}

enum code sqlite_freeze(struct store *base, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    enum code rc = store->frozen ? OK : look(store, STATEMENT_LOOK, err);
    if (rc || store->frozen) return rc;
    store->frozen = true;
    // The moment is that of the first look.
    int64_t newest;
    return sql_newest_run(base, &newest, err);
}

enum code sqlite_list(struct store *base, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct listing listing = {.store = store, .filter = filter};
    // All walks must see the same moment, or a run that changes state meanwhile would be listed twice or not at all.
    enum code rc = look(store, STATEMENT_LOOK, err);
    if (rc) return rc;
    name_statuses(filter, listing.statuses);
    rc = bound(&listing, err);
    if (!rc) rc = start_walks(&listing, err);
    if (!rc) rc = merge_walks(&listing, arena, out, err);
    for (size_t i = 0; i < listing.walk_count; i++) sqlite_done(listing.walks[i].statement);
    if (look(store, STATEMENT_LOOKED, NULL)) sqlite_rollback(store);
    return rc;
}

// Entries of one index, without looking at the runs.
enum code sqlite_count(struct store *base, const struct run_filter *filter, uint64_t *out, struct error *err)
{
    struct listing listing = {.store = sqlite_of(base), .filter = filter, .before = INT64_MAX};
    size_t weight = 0;
    bool more = filter->run_prefix.len || filter->since_ms || filter->until_ms || filter->unfinished || filter->roots;
    if (!filter->tenant.len || more || (filter->plan.len && filter->status_mask)) return E_UNSUPPORTED;
    enum code rc = look(listing.store, STATEMENT_LOOK, err);
    if (rc) return rc;
    rc = weigh(&listing, filter->plan.len ? LIST_BY_PLAN : LIST_BY_STATUS, SIZE_MAX, &weight, err);
    if (look(listing.store, STATEMENT_LOOKED, NULL)) sqlite_rollback(listing.store);
    *out = weight;
    return rc;
}
