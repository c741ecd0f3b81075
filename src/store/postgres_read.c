#include "store/postgres.h"

// ---- heads

static struct str row_bytes(const struct sql_row *row, int column)
{
    return pg_get(row->answer, row->index, column);
}

static int64_t row_number(const struct sql_row *row, int column)
{
    return PQgetlength(row->answer, row->index, column) == 1 ? pg_get_bool(row->answer, row->index, column)
                                                             : pg_get_int(row->answer, row->index, column);
}

static struct sql_row row_of(const PGresult *rows, int row)
{
    return (struct sql_row){.bytes = row_bytes, .number = row_number, .answer = rows, .index = row};
}

static enum code take_head(const PGresult *rows, int row, struct arena *arena, struct run_head *out, int64_t *owner,
                           struct error *err)
{
    struct sql_row at = row_of(rows, row);
    enum code rc = sql_take_head(&at, arena, out, owner, err);
    if (!rc) out->shard = (uint32_t)pg_get_int(rows, row, SQL_HEAD_END);
    return rc;
}

enum code pg_head(struct store *base, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    int64_t owner = 0;
    pg_clear(store);
    pg_text(store, tenant);
    pg_text(store, run);
    enum code rc = pg_query(store, PG_HEAD, "read a run", &rows, err);
    if (rc) return rc;
    rc = PQntuples(rows) == 1 ? take_head(rows, 0, arena, out, &owner, err) : run_missing(run, err);
    PQclear(rows);
    return rc ? rc : pg_mark_owned(store, out, &owner, 1, err);
}

// ---- lists

static enum pg_statement choose_list(const struct run_filter *filter)
{
    if (filter->shards || filter->shardless) return PG_LIST_OF_SHARDS;
    if (filter->tenant.len && filter->run_prefix.len) return PG_LIST_BY_PREFIX;
    if (filter->tenant.len && filter->plan.len) return PG_LIST_BY_PLAN;
    if (filter->unfinished) return PG_LIST_UNFINISHED;
    return filter->tenant.len ? PG_LIST_BY_STATUS : PG_LIST;
}

static void status_args(struct pg_store *store, uint32_t mask)
{
    pg_array(store, PG_TEXT);
    for (unsigned status = RUN_STATUS_PENDING; status <= RUN_STATUS_CANCELLED; status++)
        if (mask & (1u << status)) pg_array_text(store, str_from(run_status_name((enum run_status)status)));
    pg_array_end(store);
}

// The lowest number to be looked at: `span` below where the page begins.
static enum code find_bound(struct pg_store *store, const struct run_filter *filter, int64_t *from, struct error *err)
{
    *from = 0;
    if (!filter->span) return OK;
    uint64_t before = filter->before;
    if (!before) {
        int64_t newest;
        enum code rc = sql_newest_run(&store->base, &newest, err);
        if (rc) return rc;
        before = (uint64_t)newest + 1;
    }
    if (before > filter->span) *from = sql_clamp(before - filter->span);
    return OK;
}

static void shard_args(struct pg_store *store, const struct run_filter *filter)
{
    pg_array(store, PG_INT8);
    if (filter->shardless) pg_array_int(store, 0);
    for (unsigned i = 0; i < SHARD_COUNT; i++)
        if (filter->shards >> i & 1) pg_array_int(store, (int64_t)i + 1);
    pg_array_end(store);
}

static void list_args(struct pg_store *store, const struct run_filter *filter, enum pg_statement which, int64_t from)
{
    pg_clear(store);
    pg_text(store, filter->tenant);
    pg_int(store, filter->before ? sql_clamp(filter->before) : INT64_MAX);
    pg_text(store, filter->plan);
    pg_int(store, filter->since_ms);
    pg_int(store, filter->until_ms);
    pg_bool(store, filter->unfinished);
    pg_bool(store, filter->roots);
    pg_text(store, filter->run_prefix);
    status_args(store, filter->status_mask);
    pg_int(store,
           filter->limit < INT64_MAX ? (int64_t)filter->limit + 1 : INT64_MAX); // one more tells whether it ends here
    pg_int(store, from);
    if (which == PG_LIST_OF_SHARDS) shard_args(store, filter);
    if (which == PG_LIST_BY_STATUS) status_args(store, filter->status_mask ? filter->status_mask : UINT32_MAX);
}

enum code pg_list(struct store *base, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    enum pg_statement which = choose_list(filter);
    PGresult *rows = NULL;
    int64_t from = 0;
    enum code rc = find_bound(store, filter, &from, err);
    if (rc) return rc;
    list_args(store, filter, which, from);
    rc = pg_query(store, which, "list runs", &rows, err);
    if (rc) return rc;
    size_t count = (size_t)PQntuples(rows);
    bool more = count > filter->limit;
    if (more) count = filter->limit;
    out->items = ARENA_ARRAY(arena, count + 1, struct run_head);
    int64_t *owners = ARENA_ARRAY(arena, count + 1, int64_t);
    if (!out->items || !owners) rc = error_nomem(err);
    for (size_t i = 0; i < count && !rc; i++) rc = take_head(rows, (int)i, arena, &out->items[i], &owners[i], err);
    PQclear(rows);
    if (rc) return rc;
    out->count = count;
    out->next = more && count ? out->items[count - 1].position : from > 1 ? (uint64_t)from : 0;
    return pg_mark_owned(store, out->items, owners, count, err);
}

// ---- questions (sql.h)

static const enum pg_statement statements[] = {
#define X(name) [SQL_##name] = PG_##name,
    SQL_QUERIES(X)
#undef X
};

static void begin(struct sql_ask *ask)
{
    pg_clear(pg_of(ask->store));
}

static void text(struct sql_ask *ask, struct str text)
{
    pg_text(pg_of(ask->store), text);
}

static void number(struct sql_ask *ask, int64_t number)
{
    pg_int(pg_of(ask->store), number);
}

static bool next(struct sql_ask *ask)
{
    PGresult *rows = NULL;
    if (ask->row.answer) {
        ask->row.index++;
    } else {
        ask->rc = pg_query(pg_of(ask->store), statements[ask->which], ask->what, &rows, ask->err);
        if (!ask->rc) ask->row = row_of(rows, 0);
    }
    return !ask->rc && ask->row.index < PQntuples(ask->row.answer);
}

static void end(struct sql_ask *ask)
{
    PQclear((PGresult *)(uintptr_t)ask->row.answer);
}

const struct sql_ops pg_asking = {
    .begin = begin, .text = text, .blob = text, .number = number, .next = next, .end = end};
