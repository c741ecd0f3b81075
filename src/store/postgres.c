// Opening and closing of the Postgres store, and what a session is set to.
//
// A server that may lose what it acknowledged (fsync or full_page_writes off) is refused: what we promise rests on it.
#include "store/postgres.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_MIN = 130000, VERSION_MIN_SHOWN = 13, COMING_PAUSE_MS = 50 };

// ---- the URL

static bool is_postgres(struct str url, size_t *scheme)
{
    static const char *const schemes[] = {"postgres://", "postgresql://"};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        *scheme = strlen(schemes[i]);
        if (str_starts(url, str_from(schemes[i]))) return true;
    }
    return false;
}

// Without what is secret in it: after the colon of user:password@, and the value of password=.
void store_hide_password(struct str url, char *out, size_t size)
{
    size_t scheme, at = 0;
    if (!is_postgres(url, &scheme)) {
        snprintf(out, size, "%.*s", STR_ARG(url));
        return;
    }
    size_t path = scheme;
    while (path < url.len && url.ptr[path] != '/' && url.ptr[path] != '?') path++;
    size_t user_end = path;
    while (user_end > scheme && url.ptr[user_end - 1] != '@') user_end--;
    size_t colon = str_find(str_slice(url, 0, user_end), ':', scheme);
    bool hides = false;
    for (size_t i = 0; i < url.len && at + 4 < size; i++) {
        bool secret = user_end > scheme && i > colon && i + 1 < user_end;
        struct str rest = str_slice(url, i, url.len);
        if (i > path && (url.ptr[i - 1] == '?' || url.ptr[i - 1] == '&')) hides = str_starts(rest, STR("password="));
        if (hides && url.ptr[i] != '&' && i > 0 && !str_starts(rest, STR("password="))) {
            size_t equals = i;
            while (equals > path && url.ptr[equals] != '=') equals--;
            secret = i > equals && str_ends(str_slice(url, 0, equals), STR("password"));
        }
        if (!secret)
            out[at++] = url.ptr[i];
        else if (at == 0 || out[at - 1] != '*')
            out[at++] = '*';
    }
    if (size) out[at] = '\0';
}

static bool hex_digit(char c, unsigned *out)
{
    if (c >= '0' && c <= '9')
        *out = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
        *out = (unsigned)(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
        *out = (unsigned)(c - 'A') + 10;
    else
        return false;
    return true;
}

static char *decoded(struct str value)
{
    char *out = malloc(value.len + 1);
    size_t at = 0;
    for (size_t i = 0; out && i < value.len; i++) {
        unsigned high, low;
        if (value.ptr[i] == '%' && i + 2 < value.len && hex_digit(value.ptr[i + 1], &high) &&
            hex_digit(value.ptr[i + 2], &low)) {
            out[at++] = (char)(high * 16 + low);
            i += 2;
        } else {
            out[at++] = value.ptr[i];
        }
    }
    if (out) out[at] = '\0';
    return out;
}

// Lower case, so that it needs no quotes anywhere: 63 bytes is what Postgres keeps of a name.
static bool schema_fits(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > 63 || (name[0] >= '0' && name[0] <= '9') || strncmp(name, "pg_", 3) == 0) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static enum code keep(char **slot, struct str value, struct error *err)
{
    free(*slot);
    *slot = decoded(value);
    return *slot ? OK : error_nomem(err);
}

// One "name=value" of the URL. *ours: it is not for libpq.
static enum code take_parameter(struct pg_place *place, struct str name, struct str value, bool *ours,
                                struct error *err)
{
    *ours = true;
    if (str_is(name, "schema")) {
        enum code rc = keep(&place->schema, value, err);
        if (!rc && !schema_fits(place->schema))
            rc = error_set(err, E_INVALID, "schema \"%s\": a-z, 0-9 and _, at most 63 of them", place->schema);
        return rc;
    }
    if (str_is(name, "files")) {
        enum code rc = keep(&place->files, value, err);
        if (!rc && place->files[0] != '/')
            rc = error_set(err, E_INVALID, "files=%s is not an absolute path", place->files);
        return rc;
    }
    if (str_is(name, "tenant")) return keep(&place->tenant, value, err);
    if (str_is(name, "lease")) {
        if (str_int64(value, &place->lease_ms) && place->lease_ms >= 0 && place->lease_ms <= 3600000) return OK;
        return error_set(err, E_INVALID, "lease=%.*s: milliseconds, 0 to 3600000", STR_ARG(value));
    }
    if (str_is(name, "unsafe")) {
        place->unsafe = str_is(value, "on");
        return place->unsafe || str_is(value, "off") ? OK : error_set(err, E_INVALID, "unsafe is on or off");
    }
    *ours = false;
    return OK;
}

static enum code read_url(struct pg_place *place, struct str url, struct error *err)
{
    struct str query, base = str_cut(url, '?', &query);
    struct buf text SCOPED(buf_release) = buf_of(64 * 1024);
    buf_add(&text, base);
    enum code rc = keep(&place->schema, STR("cairn"), err);
    for (char mark = '?'; query.len && !rc;) {
        struct str value, one = str_cut(query, '&', &query);
        struct str name = str_cut(one, '=', &value);
        bool ours;
        rc = take_parameter(place, name, value, &ours, err);
        if (rc || ours) continue;
        buf_byte(&text, mark);
        buf_add(&text, one);
        mark = '&';
    }
    if (!rc && !(place->conninfo = buf_ok(&text) ? strdup(text.ptr) : NULL)) rc = error_nomem(err);
    if (rc) return rc;
    char *why = NULL;
    PQconninfoOption *parts = PQconninfoParse(place->conninfo, &why);
    if (!parts) rc = error_set(err, E_INVALID, "%.*s", STR_ARG(str_trim(str_from(why ? why : "not a URL"))));
    for (PQconninfoOption *part = parts; part && part->keyword && !rc; part++)
        if (strcmp(part->keyword, "host") == 0 && part->val && strchr(part->val, ',') &&
            !(place->hosts = strdup(part->val)))
            rc = error_nomem(err);
    PQconninfoFree(parts);
    PQfreemem(why);
    return rc;
}

// ---- a session

// Whatever the server says beside its answers is for its own log. A warning may be that a wait for a standby was cancelled (pg_once).
static void note_warning(void *context, const PGresult *notice)
{
    struct pg_store *store = context;
    const char *state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    store->warned |= state && strncmp(state, "00", 2) != 0;
}

// Why libpq could not connect. A server that answers at all gives its SQLSTATE only in the text, so the text is looked at.
static enum code why_unreachable(struct pg_store *store, struct error *err)
{
    struct str text = str_trim(str_from(PQerrorMessage(store->link)));
    static const struct {
        const char *part;
        enum code code;
    } known[] = {{"too many connections", E_UNREACHABLE},
                 {"role \"", E_DENIED},
                 {"password authentication failed", E_DENIED},
                 {"no password supplied", E_DENIED},
                 {"authentication failed", E_DENIED},
                 {"no pg_hba.conf entry", E_DENIED},
                 {"permission denied", E_DENIED},
                 {"not permitted to log in", E_DENIED},
                 {"certificate", E_DENIED}};
    size_t i = 0;
    while (i < ARRAY_COUNT(known) && !strstr(PQerrorMessage(store->link), known[i].part)) i++;
    enum code code = i < ARRAY_COUNT(known) ? known[i].code : E_UNREACHABLE;
    text = str_cut(text, '\n', &(struct str){0});
    return error_set(err, code, "%.*s", STR_ARG(text));
}

static void name_place(struct pg_store *store)
{
    const char *host = PQhost(store->link), *database = PQdb(store->link), *port = PQport(store->link);
    bool local = host && host[0] == '/';
    snprintf(store->where, sizeof(store->where), "database %.60s on %.80s%s%.10s", database ? database : "?",
             host && host[0] ? host : "this machine", local || !port || !port[0] ? "" : ":",
             local || !port ? "" : port);
}

// Plans are by hand: every statement has an index made for it, and a planner that sees an empty table must not settle on reading
// it whole. Our own schema comes first in names; a session without that setting belongs to all tenants.
static enum code set_session(struct pg_store *store, struct error *err)
{
    char sql[1600];
    char *tenant = PQescapeLiteral(store->link, store->place.tenant ? store->place.tenant : "*",
                                   store->place.tenant ? strlen(store->place.tenant) : 1);
    if (!tenant) return error_nomem(err);
    snprintf(sql, sizeof(sql),
             "SET search_path=%s,pg_catalog,pg_temp;SET enable_seqscan=off;SET enable_bitmapscan=off;"
             "SET enable_hashjoin=off;SET enable_mergejoin=off;SET enable_sort=off;SET enable_incremental_sort=off;SET "
             "jit=off;SET plan_cache_mode=force_generic_plan;"
             "SET lock_timeout=%lld;SET default_transaction_isolation='read committed';%s"
             "SELECT set_config('cairn.tenant',%s,false),set_config('synchronous_commit',"
             "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,false);"
             "SELECT current_setting('server_version_num')::int8::text,current_setting('synchronous_commit'),"
             "current_setting('fsync'),current_setting('full_page_writes'),current_setting('server_encoding'),"
             "current_setting('server_version')",
             store->place.schema, (long long)pg_wait_ms(store),
             store->base.options.mode == STORE_READ && !store->posting ? "SET default_transaction_read_only=on;" : "", tenant);
    PQfreemem(tenant);
    store->lock_timeout_ms = pg_wait_ms(store);
    PGresult *result = PQexec(store->link, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        enum code rc = pg_code(store, result, "set up a session", err);
        PQclear(result);
        return rc;
    }
    const char *durable = PQgetvalue(result, 0, 1), *fsync = PQgetvalue(result, 0, 2),
               *pages = PQgetvalue(result, 0, 3);
    enum code rc = OK;
    if (strtoll(PQgetvalue(result, 0, 0), NULL, 10) < VERSION_MIN)
        rc = error_set(err, E_VERSION, "%s is Postgres %s; Cairn needs %d or newer", store->where,
                       PQgetvalue(result, 0, 5), VERSION_MIN_SHOWN);
    else if (strcmp(PQgetvalue(result, 0, 4), "UTF8") != 0)
        rc = error_set(err, E_UNSUPPORTED, "%s has the encoding %s; make one with ENCODING 'UTF8'", store->where,
                       PQgetvalue(result, 0, 4));
    else if (strcmp(durable, "on") != 0 && strcmp(durable, "remote_apply") != 0)
        rc = error_set(err, E_UNSUPPORTED, "%s: synchronous_commit stays %s although it was set to on", store->where,
                       durable);
    else if (!store->place.unsafe && (strcmp(fsync, "on") != 0 || strcmp(pages, "on") != 0))
        rc = error_set(err, E_UNSUPPORTED,
                       "%s: the server runs with %s=off and may lose what it has acknowledged; turn it on",
                       store->where, strcmp(fsync, "on") != 0 ? "fsync" : "full_page_writes");
    PQclear(result);
    return rc;
}

enum code pg_connect(struct pg_store *store, struct error *err)
{
    if (store->link) PQfinish(store->link);
    memset(store->prepared, 0, sizeof(store->prepared));
    store->plans = (struct pg_plans){0};
    char name[64];
    snprintf(name, sizeof(name), "cairn %s", store->id);
    // Those before dbname give way to what the URL says. A peer that is silent for half a minute is gone.
    const char *const keys[] = {"connect_timeout",     "tcp_user_timeout", "keepalives_idle",
                                "keepalives_interval", "keepalives_count", "dbname",
                                "client_encoding",     "application_name", NULL};
    const char *const values[] = {"10", "30000", "10", "5", "3", store->place.conninfo, "UTF8", name, NULL};
    store->link = PQconnectdbParams(keys, values, 1);
    if (!store->link) return error_nomem(err);
    PQsetNoticeReceiver(store->link, note_warning, store);
    name_place(store);
    if (PQstatus(store->link) != CONNECTION_OK) return why_unreachable(store, err);
    return set_session(store, err);
}

// ---- opening

// 57P03: a server that comes up, or goes to come again, says so. An engine that is going to work with it waits as long as one who lost his
// connection; a reader has a person who waits for the answer.
static bool is_coming(const struct pg_store *store)
{
    static const char *const said[] = {"is starting up", "is shutting down", "not yet accepting connections"};
    const char *text = PQerrorMessage(store->link);
    bool coming = false;
    for (size_t i = 0; i < ARRAY_COUNT(said); i++) coming |= strstr(text, said[i]) != NULL;
    return coming && store->base.options.mode == STORE_WRITE;
}

static enum code first_connect(struct pg_store *store, struct error *err)
{
    int64_t until_ms = os_now().mono_ms + pg_wait_ms(store);
    for (;;) {
        struct error local = {0};
        enum code rc = pg_connect(store, &local);
        if (rc != E_UNREACHABLE || !is_coming(store) || os_now().mono_ms > until_ms)
            return rc ? error_set(err, rc, "%s", local.message) : OK;
        pg_pause(COMING_PAUSE_MS);
    }
}

// A role that may only run workflows goes on with what is there: nothing that it needs is missing in an older format.
static enum code bring_forward(struct pg_store *store, bool fresh, int64_t format, struct error *err)
{
    enum code rc = pg_migrate(store, err);
    if (rc != E_DENIED || fresh) return rc;
    if (err) *err = (struct error){0};
    os_log(LOG_WARN,
           "store has format %lld, newest is %lld why=\"the owner of the schema must run cairn store migrate\"",
           (long long)format, (long long)pg_known_format());
    return OK;
}

static enum code prepare_store(struct pg_store *store, struct error *err)
{
    bool fresh = false;
    int64_t format = 0;
    enum code rc = pg_check_schema(store, &fresh, &format, err);
    if (rc) return rc;
    bool write = store->base.options.mode == STORE_WRITE;
    if (fresh && (!write || !store->base.options.create))
        return error_set(err, E_NOT_FOUND, "%s holds no store in schema %s", store->where, store->place.schema);
    if (write && format < pg_known_format()) rc = bring_forward(store, fresh, format, err);
    return rc ? rc : pg_settle(store, err);
}

// Process numbers mean something only on their own machine: the id of its boot says which machine that is.
static void name_host(struct pg_store *store)
{
    char name[40] = "", boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        if (!fgets(boot, sizeof(boot), file)) boot[0] = '\0';
        fclose(file);
    }
    boot[strcspn(boot, "\n")] = '\0';
    gethostname(name, sizeof(name) - 1);
    snprintf(store->host, sizeof(store->host), "%.38s %.36s", name, boot);
}

// Files of a run that are no part of the log: where the URL says, else in a place of this user named after the database. Of several
// hosts the one that takes writes today is not the one of tomorrow: all of them are its name.
static enum code place_files(struct pg_store *store, struct error *err)
{
    if (store->place.files) return OK;
    char what[1200], hex[SHA256_HEX + 1];
    if (store->place.hosts)
        snprintf(what, sizeof(what), "%.60s on %.1000s/%s", PQdb(store->link), store->place.hosts, store->place.schema);
    else
        snprintf(what, sizeof(what), "%s/%s", store->where, store->place.schema);
    struct digest digest = sha256(str_from(what));
    digest_hex(&digest, hex);
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (!home || home[0] != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : "/tmp";
    }
    bool given = state && state[0] == '/';
    size_t size = strlen(given ? state : home) + 64;
    store->place.files = malloc(size);
    if (!store->place.files) return error_nomem(err);
    snprintf(store->place.files, size, "%s%s/cairn/postgres-%.12s", given ? state : home, given ? "" : "/.local/state",
             hex);
    return OK;
}

static enum code pg_run_dir(const struct store *base, const struct run_ids *ids, const char *what, struct arena *arena,
                            struct str *out)
{
    return run_dir_path(str_from(pg_of(base)->place.files), what, ids, arena, out);
}

static struct str pg_beside(const struct store *base)
{
    return str_from(pg_of(base)->place.files);
}

static void pg_close(struct store *base)
{
    struct pg_store *store = pg_of(base);
    if (store->link && PQstatus(store->link) == CONNECTION_OK) pg_leave(store);
    PQfinish(store->link);
    buf_release(&store->args.bytes);
    free(store->released.items);
    free(store->ahead);
    free(store->place.conninfo);
    free(store->place.hosts);
    free(store->place.schema);
    free(store->place.files);
    free(store->place.tenant);
    free(store);
}

static const struct store_ops pg_ops = {
    .kind = "postgres",
    .log =
        {
            .commit = pg_commit,
            .claim = pg_claim,
            .claim_ahead = pg_claim_ahead,
            .release = pg_release,
            .head = pg_head,
            .list = pg_list,
            .count = absent_count,
            .read = sql_read,
            .surplus = absent_surplus,
            .blob = sql_blob,
            .post = pg_post,
            .inbox = pg_inbox,
            .shards = pg_shards,
            .move = pg_move,
            .away = pg_away,
        },
    .notes = NOTES_BY_SQL,
    .feed = FEED_BY_SQL,
    .admin =
        {
            .freeze = absent_freeze,
            .missing = sql_missing,
            .remove = pg_remove,
            .tombstones = sql_tombstones,
            .blobs = pg_blobs,
            .drop_blobs = pg_drop_blobs,
            .usage = pg_usage,
            .format = pg_format,
            .advise = pg_advise,
            .restoring = pg_restoring,
            .beside = pg_beside,
            .run_dir = pg_run_dir,
            .file = store_local_file,
            .close = pg_close,
        },
};

enum code store_open_postgres(struct str url, const struct store_options *options, struct store **out,
                              struct error *err)
{
    size_t scheme;
    if (!is_postgres(url, &scheme))
        return error_set(err, E_INVALID, "expected postgres://[USER@]HOST[:PORT]/DATABASE[?schema=NAME]");
    enum code found = pq_load(err);
    if (found) return found;
    struct pg_store *store = calloc(1, sizeof(*store));
    if (!store) return error_nomem(err);
    store->base.ops = &pg_ops;
    store->base.sql = &pg_asking;
    store->base.options = *options;
    buf_init(&store->args.bytes, SIZE_MAX / 4);
    entropy_uuid(os_entropy(), store->id);
    name_host(store);
    enum code rc = read_url(&store->place, url, err);
    if (!rc) rc = first_connect(store, err);
    if (!rc) rc = place_files(store, err);
    if (!rc) rc = prepare_store(store, err);
    if (rc) {
        pg_close(&store->base);
        return rc;
    }
    if (store->place.tenant) store->base.tenant = str_from(store->place.tenant);
    *out = &store->base;
    return OK;
}
