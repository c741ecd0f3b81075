// Kind postgres: SQL through libpq, never blocking for longer than a look at whether the task is to end. A thread keeps its last
// connections; one that is used again forgets its session first.
#include "task/kind.h"

#include "base/sha256.h"

#include <errno.h>
#include <poll.h>
#include "os/pq.h"

#include <postgresql/libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { BASES_MAX = 4, PARAMETERS_MAX = 1000 };
#define CONNECT_TIMEOUT_MS 15000
#define CANCEL_PATIENCE_MS 2000

struct task_bases {
    struct {
        struct digest key;
        PGconn *link;
    } slots[BASES_MAX];
    size_t next;
};

void bases_release(struct task_bases *bases)
{
    for (size_t i = 0; bases && i < BASES_MAX; i++) PQfinish(bases->slots[i].link);
    free(bases);
}

// ---- waiting

// False: it took too long, or the task is to end and nobody is `patient`.
static bool wait_for(struct task_call *call, PGconn *link, short events, int64_t deadline, bool patient)
{
    for (;;) {
        struct pollfd fd = {.fd = PQsocket(link), .events = events};
        int ready = poll(&fd, 1, TASK_POLL_MS);
        if (ready > 0) return true;
        bool over = os_now().mono_ms >= deadline || (!patient && call_stopped(call));
        if ((ready < 0 && errno != EINTR) || over) return false;
    }
}

static bool connect_wait(struct task_call *call, PGconn *link)
{
    int64_t deadline = os_now().mono_ms + CONNECT_TIMEOUT_MS;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (link && PQstatus(link) != CONNECTION_BAD) {
        if (status == PGRES_POLLING_OK) return true;
        if (status == PGRES_POLLING_FAILED) return false;
        if (!wait_for(call, link, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline, false)) return false;
        status = PQconnectPoll(link);
    }
    return false;
}

// ---- errors

static const struct {
    const char *prefix;
    enum task_error error;
} states[] = {{"08", TASK_DB_CONNECTION},  {"57P0", TASK_DB_CONNECTION}, {"53300", TASK_DB_CONNECTION},
              {"40001", TASK_DB_DEADLOCK}, {"40P01", TASK_DB_DEADLOCK},  {"23", TASK_DB_CONSTRAINT},
              {"57014", TASK_DB_TIMEOUT},  {"55P03", TASK_DB_TIMEOUT},   {"25P03", TASK_DB_TIMEOUT},
              {"28", TASK_AUTH},           {"42501", TASK_AUTH},         {"42601", TASK_PARSE},
              {"42P01", TASK_NOT_FOUND},   {"3D000", TASK_NOT_FOUND},    {"3F000", TASK_NOT_FOUND},
              {"42", TASK_SCHEMA},         {"22", TASK_SCHEMA},          {"53100", TASK_STORAGE_QUOTA}};

static enum task_error error_of(const char *state)
{
    for (size_t i = 0; i < ARRAY_COUNT(states); i++)
        if (strncmp(state, states[i].prefix, strlen(states[i].prefix)) == 0) return states[i].error;
    return TASK_UNKNOWN;
}

static struct str one_line(const char *text)
{
    struct str line = str_trim(str_from(text));
    return str_slice(line, 0, str_find(line, '\n', 0));
}

static bool failed(struct task_call *call, const PGresult *result, const char *otherwise)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    struct json code = json_string(call_printf(call, "%s", state ? state : "08006"));
    struct str text = one_line(message ? message : otherwise);
    call_fail(call, state ? error_of(state) : TASK_DB_CONNECTION, code.text.ptr, "%.*s", STR_ARG(text));
    call->out.pg = json_object();
    return call_put(call, &call->out.pg, "code", code) && call_put(call, &call->out.pg, "sqlstate", code) && false;
}

// ---- values

static bool array_value(struct task_call *call, struct str *text, bool numbers, struct json *out);

static bool array_item(struct task_call *call, struct str *text, bool numbers, struct json *out)
{
    if (text->len && text->ptr[0] == '{') return array_value(call, text, numbers, out);
    bool quoted = text->len && text->ptr[0] == '"', ended = false;
    size_t at = quoted;
    struct buf item = buf_of(TASK_BODY_MAX);
    for (; at < text->len && !ended; at++) {
        char c = text->ptr[at];
        ended = quoted ? c == '"' : c == ',' || c == '}';
        if (ended) break;
        if (c == '\\' && at + 1 < text->len) c = text->ptr[++at];
        buf_byte(&item, c);
    }
    *text = str_slice(*text, at + quoted, text->len);
    struct str word = buf_keep(&item, call->arena);
    int64_t number;
    if (!quoted && str_is(word, "NULL"))
        *out = json_null();
    else if (numbers && str_int64(word, &number))
        *out = json_int(number);
    else
        *out = json_string(word);
    return word.ptr;
}

static bool array_value(struct task_call *call, struct str *text, bool numbers, struct json *out)
{
    *out = json_array();
    *text = str_slice(*text, 1, text->len);
    while (text->len && text->ptr[0] != '}') {
        struct json item;
        if (!array_item(call, text, numbers, &item) || !json_push(call->arena, out, item)) return false;
        if (text->len && text->ptr[0] == ',') *text = str_slice(*text, 1, text->len);
    }
    *text = str_slice(*text, 1, text->len);
    return true;
}

// A float stays one: Postgres writes 1 for 1.0.
static struct json real_of(struct task_call *call, const struct json *value, struct str text)
{
    struct str real = json_is_integer(value) ? call_printf(call, "%.*s.0", STR_ARG(text)) : text;
    return real.ptr ? json_number(real) : json_null();
}

// Numbers as numbers, JSON as JSON, arrays as lists; everything else as the text that Postgres writes.
static struct json value_of(struct task_call *call, Oid type, struct str text)
{
    struct json value;
    int64_t number;
    switch (type) {
    case 16: // bool
        return json_bool(str_is(text, "t"));
    case 20: // int8, int2, int4, oid
    case 21:
    case 23:
    case 26:
        if (str_int64(text, &number)) return json_int(number);
        break;
    case 700: // float4, float8, numeric
    case 701:
    case 1700:
        if (json_parse(text, NULL, call->arena, &value, NULL) == OK) return type == 1700 ? value : real_of(call, &value, text);
        if (str_is(text, "NaN") || str_ends(text, STR("Infinity"))) return json_null();
        break;
    case 114: // json, jsonb
    case 3802:
        if (json_parse(text, &task_limits, call->arena, &value, NULL) == OK) return value;
        break;
    case 1005: // int2[], int4[], int8[], text[], varchar[], uuid[]
    case 1007:
    case 1016:
    case 1009:
    case 1015:
    case 2951:
        if (text.len && text.ptr[0] == '{' && array_value(call, &text, type < 1009 || type == 1016, &value))
            return value;
        break;
    default:
        break;
    }
    return json_string(call_clean(call, text));
}

static bool rows_of(struct task_call *call, const PGresult *result, struct json *rows, struct json *columns)
{
    int width = PQnfields(result), height = PQntuples(result);
    struct str *names = ARENA_ARRAY(call->arena, (size_t)width + 1, struct str);
    if (!names) return call_no_memory(call);
    for (int k = 0; k < width; k++) {
        names[k] = call_clean(call, call_printf(call, "%s", PQfname(result, k)));
        if (!json_push(call->arena, columns, json_string(names[k]))) return call_no_memory(call);
    }
    for (int i = 0; i < height; i++) {
        struct json row = json_object();
        for (int k = 0; k < width; k++) {
            struct json value = json_null();
            struct str text = {PQgetvalue(result, i, k), (size_t)PQgetlength(result, i, k)};
            if (!PQgetisnull(result, i, k)) {
                text = arena_copy(call->arena, text);
                if (!text.ptr) return call_no_memory(call);
                value = value_of(call, PQftype(result, k), text);
            }
            if (!sql_put(call, &row, names[k], value)) return false;
        }
        if (!json_push(call->arena, rows, row)) return call_no_memory(call);
    }
    return true;
}

// ---- one statement

static const char *parameter(struct task_call *call, const struct json *value)
{
    if (value->type == JSON_NULL) return NULL;
    if (value->type == JSON_BOOL) return value->boolean ? "true" : "false";
    struct str text = json_as_text(value, call->arena);
    return call_printf(call, "%.*s", STR_ARG(text)).ptr;
}

static void stop(PGconn *link)
{
    char why[256];
    PGcancel *cancel = PQgetCancel(link);
    if (cancel) PQcancel(cancel, why, sizeof(why));
    PQfreeCancel(cancel);
}

static bool send_query(struct task_call *call, PGconn *link, struct str sql, const struct json *list)
{
    const char *values[PARAMETERS_MAX];
    const char *text = call_printf(call, "%.*s", STR_ARG(sql)).ptr;
    if (list->count > PARAMETERS_MAX)
        return call_fail(call, TASK_CLIENT, "TOO_MANY_PARAMETERS", "more than 1000 parameters"), false;
    for (uint32_t i = 0; i < list->count; i++) values[i] = parameter(call, &list->items[i]);
    if (PQsendQueryParams(link, text, (int)list->count, NULL, values, NULL, NULL, 0)) return true;
    return failed(call, NULL, PQerrorMessage(link));
}

// The last result; earlier ones are cleared. NULL: stopped, or the connection broke.
static PGresult *take_results(struct task_call *call, PGconn *link)
{
    PGresult *last = NULL;
    bool asked = false; // the server was asked to stop
    int64_t asked_ms = 0;
    for (;;) {
        while (PQisBusy(link)) {
            bool ready = wait_for(call, link, POLLIN, asked ? asked_ms + CANCEL_PATIENCE_MS : INT64_MAX, asked);
            if (!ready && asked) return PQclear(last), NULL;
            if (!ready) stop(link), asked = true, asked_ms = os_now().mono_ms;
            if (!PQconsumeInput(link)) return PQclear(last), NULL;
        }
        PGresult *result = PQgetResult(link);
        if (!result) return last;
        PQclear(last);
        last = result;
        ExecStatusType status = PQresultStatus(last);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) return last;
    }
}

static bool query(struct task_call *call, void *base, struct str sql, const struct sql_params *params,
                  struct sql_answer *out)
{
    PGconn *link = base;
    struct str text;
    struct json list;
    *out = (struct sql_answer){.rows = json_array(), .columns = json_array(), .after = STR("")};
    if (!sql_bind(call, sql, params, &text, &list) || !send_query(call, link, text, &list)) return false;
    PGresult *result = take_results(call, link);
    ExecStatusType status = PQresultStatus(result);
    bool good = true;
    if (status == PGRES_TUPLES_OK) {
        good = rows_of(call, result, &out->rows, &out->columns);
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
        call_fail(call, TASK_CLIENT, "COPY_NOT_SUPPORTED", "COPY to or from the client is not possible here");
        good = false;
    } else if (status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
        good = failed(call, result, PQerrorMessage(link));
    }
    int64_t number;
    if (good && str_int64(str_from(PQcmdTuples(result)), &number)) out->affected = number;
    PQclear(result);
    return good;
}

// ---- connecting

static const struct {
    const char *keyword, *names;
} settings[] = {{"host", "host|db_host|hostname|server"}, {"port", "port|db_port"},
                {"user", "user|db_user|username"},        {"password", "password|db_password|pass"},
                {"dbname", "dbname|db_name|database|db"}, {"sslmode", "sslmode|ssl_mode"},
                {"sslrootcert", "sslrootcert"},           {"options", "options"}};

enum { KEYWORDS_MAX = 64 };

struct keywords {
    const char *keys[KEYWORDS_MAX], *values[KEYWORDS_MAX];
    size_t count;
};

static void add_keyword(struct task_call *call, struct keywords *to, const char *key, struct str value)
{
    if (to->count + 1 >= KEYWORDS_MAX) return;
    to->keys[to->count] = key;
    to->values[to->count++] = call_printf(call, "%.*s", STR_ARG(value)).ptr;
}

// A connection text is taken apart here: libpq would do so with any name of a database, also with one that a task has chosen.
static bool add_dsn(struct task_call *call, struct keywords *to, struct str dsn)
{
    struct error err = {0};
    char *why = NULL;
    bool uri = str_starts(dsn, STR("postgres://")) || str_starts(dsn, STR("postgresql://"));
    if (!uri && str_find(dsn, '=', 0) == dsn.len) return add_keyword(call, to, "dbname", dsn), true;
    if (pq_load(&err)) return call_fail(call, TASK_CLIENT, "TOOL_NOT_INSTALLED", "%s", err.message);
    PQconninfoOption *options = PQconninfoParse(call_printf(call, "%.*s", STR_ARG(dsn)).ptr, &why);
    PQfreemem(why);
    if (!options) return call_fail(call, TASK_CLIENT, "CONNECTION_INVALID", "the connection text cannot be read");
    for (const PQconninfoOption *at = options; at->keyword; at++) {
        if (!at->val) continue;
        add_keyword(call, to, call_printf(call, "%s", at->keyword).ptr, str_from(at->val));
        if (strcmp(at->keyword, "password") == 0 && !call_hide(call, str_from(at->val))) break;
    }
    PQconninfoFree(options);
    return true;
}

// What a credential of the service says stands: a task that may name its host has it sent wherever the task likes.
static bool keeps_credential(const char *keyword, struct str own, struct str said, bool dsn)
{
    bool name = strcmp(keyword, "dbname") == 0;
    return str_eq(own, said) || (name && !said.len && !dsn);
}

static bool keywords_of(struct task_call *call, const struct json *auth, const struct json *fields,
                        struct keywords *to)
{
    struct json credential;
    bool trusted;
    struct str dsn = json_text(auth);
    bool is_dsn = str_starts(dsn, STR("postgres://")) || str_starts(dsn, STR("postgresql://"));
    if (is_dsn ? !call_hide(call, dsn) : !call_credential(call, auth, &credential, &trusted)) return false;
    if (is_dsn) credential = json_object(), trusted = false;
    if (!is_dsn) dsn = credential_field(call, &credential, "dsn|connection_string|connection|url|uri");
    struct str own_dsn = credential_field(call, fields, "dsn|db_conn_string|connection_string|connection");
    if (own_dsn.len && (trusted = false, !call_hide(call, own_dsn))) return false;
    if (!dsn.len) dsn = own_dsn;
    // First, so that what is said beside it counts.
    if (dsn.len && !add_dsn(call, to, dsn)) return false;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        const char *keyword = settings[i].keyword;
        struct str own = credential_field(call, fields, settings[i].names);
        struct str said = credential_field(call, &credential, settings[i].names), text = own.len ? own : said;
        if (own.len && !keeps_credential(keyword, own, said, dsn.len > 0)) trusted = false;
        if (!text.len || (dsn.len && strcmp(keyword, "dbname") == 0)) continue;
        if (strcmp(keyword, "password") == 0 && !call_hide(call, text)) return false;
        add_keyword(call, to, keyword, text);
    }
    add_keyword(call, to, "application_name", STR("cairn"));
    add_keyword(call, to, "client_encoding", STR("UTF8"));
    if (!call_strict(call) || trusted) return true;
    return call_fail(call, TASK_AUTH, "CREDENTIAL_NEEDED",
                     "here databases are reached with credentials of the service only (auth: NAME), and as these say");
}

static bool connect_to(struct task_call *call, const char *const *keys, const char *const *values, PGconn **out)
{
    struct error err = {0};
    if (pq_load(&err)) return call_fail(call, TASK_CLIENT, "TOOL_NOT_INSTALLED", "%s", err.message);
    PGconn *link = PQconnectStartParams(keys, values, 0);
    bool good = link && connect_wait(call, link);
    if (good) {
        *out = link;
        return true;
    }
    const char *why = link ? PQerrorMessage(link) : "out of memory";
    bool auth = strstr(why, "password authentication failed") || strstr(why, "no password supplied") ||
                strstr(why, "pg_hba.conf");
    bool gone = strstr(why, "does not exist") && strstr(why, "FATAL");
    struct str line = one_line(why[0] ? why : "no answer in time");
    call_fail(call,
              auth   ? TASK_AUTH
              : gone ? TASK_NOT_FOUND
                     : TASK_DB_CONNECTION,
              "CONNECT_FAILED", "cannot connect to Postgres: %.*s", STR_ARG(line));
    PQfinish(link);
    return false;
}

static struct digest key_of(const char *const *keys, const char *const *values)
{
    struct buf text SCOPED(buf_release) = buf_of(65536);
    for (size_t i = 0; keys[i]; i++) buf_printf(&text, "%s=%s\n", keys[i], values[i]);
    struct digest key = sha256(buf_str(&text));
    secret_wipe(buf_str(&text));
    return key;
}

// What the server says besides (NOTICE: ..., RAISE) is the log of the task that it says it to.
static void note_notice(void *context, const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY);
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    if (text) call_log(context, false, "%s: %s", severity ? severity : "NOTICE", text);
}

static void no_notice(void *context, const PGresult *notice)
{
    (void)context, (void)notice;
}

// A kept connection is clean: nothing of the task before is left in it.
static bool refresh(PGconn *link)
{
    if (PQstatus(link) != CONNECTION_OK || PQtransactionStatus(link) != PQTRANS_IDLE) return false;
    PGresult *result = PQexec(link, "DISCARD ALL");
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return good;
}

bool postgres_open(struct task_call *call, const struct json *auth, const struct json *fields, void **base)
{
    struct keywords to = {0};
    PGconn *link = NULL;
    if (!keywords_of(call, auth, fields, &to)) return false;
    if (!call->room->bases) call->room->bases = calloc(1, sizeof(*call->room->bases));
    struct task_bases *bases = call->room->bases;
    if (!bases) return call_no_memory(call);
    struct digest key = key_of(to.keys, to.values);
    for (size_t i = 0; i < BASES_MAX; i++) {
        if (!bases->slots[i].link || memcmp(&bases->slots[i].key, &key, sizeof(key)) != 0) continue;
        link = bases->slots[i].link;
        bases->slots[i].link = NULL;
        if (refresh(link)) break;
        PQfinish(link);
        link = NULL;
    }
    if (!link && !connect_to(call, to.keys, to.values, &link)) return false;
    PQsetNoticeReceiver(link, note_notice, call);
    call->room->base_key = key;
    *base = link;
    return true;
}

static void close_base(struct task_call *call, void *base)
{
    PGconn *link = base;
    struct task_bases *bases = call->room->bases;
    PQsetNoticeReceiver(link, no_notice, NULL);
    if (PQstatus(link) != CONNECTION_OK || PQtransactionStatus(link) != PQTRANS_IDLE) {
        PQfinish(link);
        return;
    }
    size_t slot = bases->next++ % BASES_MAX;
    for (size_t i = 0; i < BASES_MAX; i++)
        if (!bases->slots[i].link) slot = i;
    PQfinish(bases->slots[slot].link);
    bases->slots[slot].link = link;
    bases->slots[slot].key = call->room->base_key;
}

static struct str holder(struct task_call *call, size_t index)
{
    return call_printf(call, "$%zu", index + 1);
}

const struct base_ops postgres_ops = {.query = query, .close = close_base, .holder = holder};

static void run(struct task_call *call)
{
    void *base;
    const struct json *auth = call_get(call, "auth");
    if (!auth) auth = call_get(call, "credential");
    if (!postgres_open(call, auth, &call->with, &base)) return;
    sql_run(call, &postgres_ops, base);
    postgres_ops.close(call, base);
}

static const char *const fields[] = {"auth",
                                     "credential",
                                     "command",
                                     "commands",
                                     "query",
                                     "queries",
                                     "sql",
                                     "statement",
                                     "statements",
                                     "script",
                                     "command_b64",
                                     "commands_b64",
                                     "params",
                                     "parameters",
                                     "transaction",
                                     "dsn",
                                     "db_conn_string",
                                     "connection",
                                     "connection_string",
                                     "host",
                                     "db_host",
                                     "port",
                                     "db_port",
                                     "user",
                                     "db_user",
                                     "username",
                                     "password",
                                     "db_password",
                                     "dbname",
                                     "db_name",
                                     "database",
                                     "db",
                                     "sslmode",
                                     "options",
                                     NULL};
const struct task_kind kind_postgres = {.name = "postgres", .fields = fields, .run = run, .ready = sql_ready};
