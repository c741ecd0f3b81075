// What is wrong with a server although the store works on it: each row of the question is one advice.
#include "store/postgres.h"

// clang-format off
const char pg_advise_sql[] =
    "SELECT 'this role is a superuser: rights and row-level security do not hold for it',"
    "  'make a role for engines, and as the owner: SELECT allow_engine(''ROLE'')'"
    " FROM pg_roles WHERE rolname=current_user AND rolsuper"
    " UNION ALL SELECT 'autovacuum is off: tables grow with every change of a head','ALTER SYSTEM RESET autovacuum'"
    "  WHERE current_setting('autovacuum')='off'"
    " UNION ALL SELECT format('%s of %s connections are taken',n,m),'raise max_connections, or share them by a pooler'"
    "  FROM (SELECT count(*) AS n,current_setting('max_connections')::int AS m FROM pg_stat_activity"
    "   WHERE backend_type='client backend') x WHERE n>m*0.9"
    " UNION ALL SELECT format('process %s has a transaction open for %s: nothing is vacuumed meanwhile',pid,"
    "   date_trunc('second',clock_timestamp()-xact_start)),'end it: SELECT pg_terminate_backend('||pid||')'"
    "  FROM pg_stat_activity WHERE xact_start<clock_timestamp()-interval '15 minutes' AND backend_type='client backend'"
    " UNION ALL SELECT format('%s standbys follow and none is synchronous: a failover loses what they had not received',n),"
    "   'set synchronous_standby_names' FROM (SELECT count(*) AS n FROM pg_stat_replication) x"
    "  WHERE n>0 AND current_setting('synchronous_standby_names')=''"
    " UNION ALL SELECT 'triggers of '||c.relname||' are disabled: the log is not kept from being changed',"
    "   'ALTER TABLE '||c.relname||' ENABLE TRIGGER ALL' FROM pg_trigger t JOIN pg_class c ON c.oid=t.tgrelid"
    "  WHERE c.relnamespace=$1::text::regnamespace AND NOT t.tgisinternal AND t.tgenabled='D' GROUP BY c.relname";
// clang-format on

enum code pg_advise(struct store *base, struct arena *arena, struct advices *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, str_from(store->place.schema));
    enum code rc = pg_query(store, PG_ADVISE, "look at the server", &rows, err);
    for (int i = 0; !rc && i < PQntuples(rows); i++) {
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &out->capacity);
        if (!out->items || !pg_copy(rows, i, 0, arena, &out->items[out->count].what) ||
            !pg_copy(rows, i, 1, arena, &out->items[out->count].hint))
            rc = error_nomem(err);
        else
            out->count++;
    }
    PQclear(rows);
    return rc;
}
