// Kind snowflake: SQL through Snowflake's SQL API, version 2, over the one HTTP client.
//
//   POST /api/v2/statements?requestId=U -> 200 rows | 202 it runs: GET .../HANDLE until 200
//                                       -> GET .../HANDLE?partition=N for each further part
//
// A request that nobody answered is made again under the same requestId with retry=true, so that a statement is not executed twice; the id
// comes of run, step, task, attempt and number of the statement, so that this holds for an engine that takes over, too. A task that ends
// early cancels its statement. The token is signed with the credential's key (jwt.c); nothing of the key leaves this process.
#include "task/kind.h"

#include "base/civil.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 5, PARTS_MAX = 10000, POLL_FIRST_MS = 50, POLL_MAX_MS = 2000, CANCEL_MS = 5000, TOKEN_SECONDS = 3600 };
#define DAY_MS INT64_C(86400000)

struct snowflake {
    struct str url, account, user;
    struct str warehouse, database, schema, role;
    struct http_header headers[6];
    size_t header_count, statement; // how many were asked
};

// ---- who asks

static struct json claims(struct task_call *call, struct str fingerprint, const void *context)
{
    const struct snowflake *s = context;
    int64_t now = os_now().wall_ms / 1000;
    struct str who = call_printf(call, "%.*s.%.*s", STR_ARG(s->account), STR_ARG(s->user));
    return JSON_OF(call->arena, {"iss", json_string(call_printf(call, "%.*s.%.*s", STR_ARG(who), STR_ARG(fingerprint)))},
                   {"sub", json_string(who)}, {"iat", json_int(now)}, {"exp", json_int(now + TOKEN_SECONDS)});
}

// An account in a token: in capitals, without its region.
static struct str upper(struct task_call *call, struct str text)
{
    struct str copy = call_printf(call, "%.*s", STR_ARG(text));
    for (size_t i = 0; i < copy.len; i++)
        if (copy.ptr[i] >= 'a' && copy.ptr[i] <= 'z') ((char *)(uintptr_t)copy.ptr)[i] -= 32;
    return copy;
}

static struct str either(struct task_call *call, const char *field, const struct json *auth, const char *names)
{
    struct str text = call_string(call, field, "");
    return text.len ? text : credential_field(call, auth, names);
}

static bool is_host_word(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!char_is_word(text.ptr[i]) && text.ptr[i] != '-' && text.ptr[i] != '.') return false;
    return text.len > 0;
}

static bool authorize(struct task_call *call, struct snowflake *s, const struct json *auth)
{
    struct str key = credential_field(call, auth, "private_key|sf_private_key|private_key_pem"), token, type = STR("KEYPAIR_JWT");
    struct str passphrase = credential_field(call, auth, "private_key_passphrase|sf_private_key_passphrase");
    token = credential_field(call, auth, "token|access_token");
    if (key.len) {
        if (!call_hide(call, key) || (passphrase.len && !call_hide(call, passphrase)) ||
            !jwt_rs256(call, key, passphrase, claims, s, &token))
            return false;
    } else if (token.len) {
        type = credential_field(call, auth, "token_type");
        if (!type.len) type = STR("OAUTH");
        if (!call_hide(call, token)) return false;
    } else {
        return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE",
                         "the credential has neither private_key nor token: the SQL API takes no passwords");
    }
    const struct http_header list[] = {
        {STR("Authorization"), call_printf(call, "Bearer %.*s", STR_ARG(token))},
        {STR("X-Snowflake-Authorization-Token-Type"), type},
        {STR("Content-Type"), STR("application/json")},
        {STR("Accept"), STR("application/json")},
        {STR("User-Agent"), STR("cairn")},
    };
    memcpy(s->headers, list, sizeof(list));
    s->header_count = ARRAY_COUNT(list);
    return true;
}

static bool open_base(struct task_call *call, struct snowflake *s)
{
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth");
    if (!call_credential(call, written ? written : call_get(call, "credential"), &auth, &trusted)) return false;
    if (!auth.type) return call_fail(call, TASK_AUTH, "CREDENTIAL_NEEDED", "snowflake needs a credential: auth: NAME");
    struct str account = either(call, "account", &auth, "account|sf_account");
    s->user = upper(call, either(call, "user", &auth, "user|username|sf_user"));
    s->warehouse = either(call, "warehouse", &auth, "warehouse|sf_warehouse");
    s->database = either(call, "database", &auth, "database|sf_database");
    s->schema = either(call, "schema", &auth, "schema|sf_schema");
    s->role = either(call, "role", &auth, "role|sf_role");
    s->url = either(call, "url", &auth, "url|host|sf_url");
    if (!account.len || !s->user.len)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE", "the credential has no account and user");
    if (!s->url.len && !is_host_word(account))
        return call_fail(call, TASK_CLIENT, "ACCOUNT_INVALID", "%.*s is no name of an account", STR_ARG(str_slice(account, 0, 100)));
    if (!s->url.len) s->url = call_printf(call, "https://%.*s.snowflakecomputing.com", STR_ARG(account));
    if (!memmem(s->url.ptr, s->url.len, "://", 3)) s->url = call_printf(call, "https://%.*s", STR_ARG(s->url));
    if (str_ends(s->url, STR("/"))) s->url.len--;
    s->account = upper(call, str_slice(account, 0, str_find(account, '.', 0)));
    return authorize(call, s, &auth);
}

// ---- one request

static bool refused(struct task_call *call, const struct fetch_answer *answer)
{
    struct json said = call_parse(call, answer->body, true);
    struct str message = json_text(json_key(&said, "message")), state = json_text(json_key(&said, "sqlState"));
    struct str code = json_text(json_key(&said, "code"));
    int status = answer->status;
    enum task_error kind = status == 401 || status == 403          ? TASK_AUTH
                           : status == 429                         ? TASK_RATE_LIMIT
                           : status == 408 || status == 504        ? TASK_TIMEOUT
                           : status >= 500                         ? TASK_SERVER
                           : str_starts(state, STR("23"))          ? TASK_DB_CONSTRAINT
                           : status == 422                         ? TASK_SCHEMA
                                                                   : TASK_CLIENT;
    call_fail(call, kind, code.len ? call_printf(call, "%.*s", STR_ARG(code)).ptr : call_printf(call, "HTTP_%d", status).ptr,
              "%.*s", STR_ARG(message.len ? str_slice(message, 0, 1500) : call_printf(call, "Snowflake answered %d", status)));
    call->out.pg = JSON_OF(call->arena, {"code", json_some(code)}, {"sqlstate", json_some(state)});
    if (!json_ok(&call->out.pg)) call->out.pg = json_none();
    return false;
}

// Waits, unless the task ends meanwhile.
static bool rest(struct task_call *call, int64_t ms)
{
    for (int64_t waited = 0; waited < ms && !call_stopped(call); waited += TASK_POLL_MS)
        poll(NULL, 0, ms - waited < TASK_POLL_MS ? (int)(ms - waited) : TASK_POLL_MS);
    return !call_stopped(call) || call_fail(call, TASK_TIMEOUT, "STOPPED", "the task ended while its statement ran");
}

static bool is_passing(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

// Asks, and asks again what nobody answered or nobody could answer just now. `again`: what is added to the query then.
static bool ask(struct task_call *call, const struct snowflake *s, const char *method, struct str path, const char *again, struct str body,
                struct fetch_answer *answer)
{
    for (int tries = 1;; tries++) {
        struct web_call request = {.method = str_from(method),
                                   .url = call_printf(call, "%.*s%.*s%s", STR_ARG(s->url), STR_ARG(path), tries > 1 ? again : ""),
                                   .headers = s->headers,
                                   .header_count = s->header_count,
                                   .body = body};
        bool answered = web_call(call, &request, answer);
        bool passing = answered ? is_passing(answer->status)
                                : call->out.error == TASK_CONNECTION || (call->out.error == TASK_TIMEOUT && !call_stopped(call));
        if (!passing || tries == TRIES_MAX) return answered;
        if (!rest(call, (int64_t)100 << tries)) return false;
    }
}

static void cancel(struct task_call *call, const struct snowflake *s, struct str handle)
{
    // The task has ended; what is asked now has a time of its own.
    struct task_outcome kept = call->out;
    struct fetch_answer ignored;
    struct web_call request = {.method = STR("POST"),
                               .url = call_printf(call, "%.*s/api/v2/statements/%.*s/cancel", STR_ARG(s->url), STR_ARG(handle)),
                               .headers = s->headers,
                               .header_count = s->header_count,
                               .timeout_ms = CANCEL_MS,
                               .regardless = true};
    (void)web_call(call, &request, &ignored);
    call->out = kept;
}

// ---- values: the API writes each as a text, and says of the column what it is

static int64_t whole(struct str text)
{
    int64_t number = 0;
    (void)str_int64(text, &number);
    return number;
}

// Seconds since 1970 with nine digits of fraction, and perhaps minutes of the zone + 1440, as 2026-01-02T03:04:05.000000006+01:00.
static struct json moment(struct task_call *call, struct str text, const char *zone)
{
    char out[CIVIL_SIZE];
    size_t blank = str_find(text, ' ', 0), dot = str_find(text, '.', 0);
    int64_t shift = blank < text.len ? whole(str_slice(text, blank + 1, text.len)) - 1440 : 0;
    struct str fraction = dot < blank ? str_slice(text, dot + 1, blank) : STR("");
    int64_t seconds = whole(str_slice(text, 0, dot < blank ? dot : blank));
    bool negative = text.len && text.ptr[0] == '-' && fraction.len;
    while (fraction.len && fraction.ptr[fraction.len - 1] == '0') fraction.len--;
    if (negative && fraction.len) return json_string(text); // before 1970, and not on a second: as the server wrote it
    civil_format((seconds + shift * 60) * 1000, out);
    struct str clock = str_slice(str_from(out), 0, 19);
    char offset[8] = "";
    if (blank < text.len)
        snprintf(offset, sizeof(offset), "%c%02d:%02d", shift < 0 ? '-' : '+', (int)(llabs(shift) / 60), (int)(llabs(shift) % 60));
    return json_string(call_printf(call, "%.*s%s%.*s%s", STR_ARG(clock), fraction.len ? "." : "", STR_ARG(fraction),
                                   blank < text.len ? offset : zone));
}

static struct json value_of(struct task_call *call, const struct json *cell, struct str type)
{
    struct json value;
    char out[CIVIL_SIZE];
    if (cell->type != JSON_STRING) return *cell; // null
    struct str text = cell->text;
    if (str_is(type, "boolean")) return json_bool(STR_AMONG(text, "true", "1"));
    if (STR_AMONG(type, "variant", "object", "array")) return call_parse(call, text, true);
    if (str_is(type, "date")) {
        civil_format(whole(text) * DAY_MS, out);
        return json_string(call_printf(call, "%.10s", out));
    }
    if (str_is(type, "time")) {
        struct json at = moment(call, text, "");
        return json_string(str_slice(at.text, 11, at.text.len));
    }
    if (str_is(type, "timestamp_ntz")) return moment(call, text, "");
    if (STR_AMONG(type, "timestamp_ltz", "timestamp_tz")) return moment(call, text, "Z");
    bool number = str_is(type, "fixed") || STR_AMONG(type, "real", "float", "double");
    if (number && json_parse(text, &task_limits, call->arena, &value, NULL) == OK && (value.type == JSON_INT || value.type == JSON_NUMBER))
        return value; // exact, however long
    return json_string(call_clean(call, text));
}

static bool read_rows(struct task_call *call, const struct json *types, const struct json *data, struct sql_answer *out)
{
    for (uint32_t i = 0; json_is(data, JSON_ARRAY) && i < data->count; i++) {
        const struct json *cells = &data->items[i];
        struct json row = json_object();
        if (!json_is(cells, JSON_ARRAY) || cells->count != types->count)
            return call_fail(call, TASK_PARSE, "RESULT_INVALID", "a row of Snowflake has not as many values as there are columns");
        for (uint32_t k = 0; k < types->count; k++) {
            const struct json *type = &types->items[k];
            struct json value = value_of(call, &cells->items[k], json_text(json_key(type, "type")));
            if (!json_ok(&value) || !sql_put(call, &row, json_text(json_key(type, "name")), value)) return call_no_memory(call);
        }
        if (!json_push(call->arena, &out->rows, row)) return call_no_memory(call);
    }
    return true;
}

// The parts after the first are compressed.
static bool read_part(struct task_call *call, const struct fetch_answer *answer, struct json *out)
{
    struct error err = {0};
    struct str body = answer->body;
    if (str_is(fetch_header(answer, "content-encoding"), "gzip") && fetch_inflate(answer->body, call->arena, &body, &err))
        return call_fail(call, TASK_PARSE, "RESULT_INVALID", "a part of the result cannot be read: %s", err.message);
    if (json_parse(body, &task_limits, call->arena, out, &err) == OK) return true;
    return call_fail(call, TASK_PARSE, "RESULT_INVALID", "what Snowflake answered is no JSON: %s", err.message);
}

static bool read_answer(struct task_call *call, const struct snowflake *s, struct str handle, const struct json *first,
                        struct sql_answer *out)
{
    const struct json *meta = json_key(first, "resultSetMetaData"), *types = json_key(meta, "rowType");
    const struct json *parts = json_key(meta, "partitionInfo"), *stats = json_key(first, "stats");
    static const char *const counts[] = {"numRowsInserted", "numRowsUpdated", "numRowsDeleted"};
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) out->affected += json_integer(json_key(stats, counts[i]), 0);
    if (!json_is(types, JSON_ARRAY)) return true;
    for (uint32_t i = 0; i < types->count; i++)
        if (!json_push(call->arena, &out->columns, json_string(json_text(json_key(&types->items[i], "name"))))) return call_no_memory(call);
    if (!read_rows(call, types, json_key(first, "data"), out)) return false;
    for (uint32_t i = 1; json_is(parts, JSON_ARRAY) && i < parts->count; i++) {
        struct fetch_answer answer;
        struct json part;
        struct str path = call_printf(call, "/api/v2/statements/%.*s?partition=%u", STR_ARG(handle), i);
        if (i == PARTS_MAX) return call_fail(call, TASK_CLIENT, "ANSWER_TOO_LARGE", "the result has more than %d parts", PARTS_MAX);
        if (!ask(call, s, "GET", path, "", STR(""), &answer)) return false;
        if (answer.status != 200) return refused(call, &answer);
        if (!read_part(call, &answer, &part) || !read_rows(call, types, json_key(&part, "data"), out)) return false;
    }
    return true;
}

// ---- a statement

// The same for the same statement of the same attempt, also for another engine.
static struct str request_id(struct task_call *call, const struct snowflake *s)
{
    static const char *const names[] = {"execution_id", "step", "task", "attempt"};
    const struct tool_request *request = call_request(call);
    struct buf text = buf_of(TASK_BODY_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        buf_printf(&text, "%.*s|", STR_ARG(json_as_text(json_key(&call->input, names[i]), call->arena)));
    buf_printf(&text, "%.*s|%.*s|%.*s|%u|%zu", STR_ARG(request->tenant), STR_ARG(request->run), STR_ARG(request->step),
               (unsigned)request->logical, s->statement);
    struct digest hash = sha256(buf_str(&text));
    buf_release(&text);
    char hex[SHA256_HEX + 1];
    digest_hex(&hash, hex);
    hex[12] = '4', hex[16] = 'a'; // as a UUID of version 4 has it
    return call_printf(call, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static bool add_binding(struct task_call *call, struct json *bindings, const struct json *value)
{
    struct str text = json_as_text(value, call->arena);
    const char *type = value->type == JSON_BOOL               ? "BOOLEAN"
                       : json_is_integer(value)               ? "FIXED"
                       : value->type == JSON_NUMBER           ? "REAL"
                                                              : "TEXT";
    bool null = value->type == JSON_NULL;
    if (!text.ptr) return call_no_memory(call);
    return call_put(call, bindings, call_printf(call, "%u", bindings->count + 1).ptr,
                    JSON_OF(call->arena, {"type", json_word(type)}, {"value", null ? json_null() : json_string(text)}));
}

// Parameters as the API takes them: `?` for each, in their order.
static bool bind(struct task_call *call, struct str sql, const struct sql_params *params, struct str *out, struct json *bindings)
{
    struct json list;
    struct str numbered;
    *bindings = json_object();
    if (!sql_bind(call, sql, params, &numbered, &list)) return false;
    struct buf text = buf_of(TASK_BODY_MAX);
    for (size_t at = 0; at < numbered.len;) {
        size_t end = sql_hidden(numbered, at), to = at + 1;
        int64_t number = 0;
        while (to < numbered.len && char_is_digit(numbered.ptr[to])) to++;
        bool parameter = end == at && numbered.ptr[at] == '$' && str_int64(str_slice(numbered, at + 1, to), &number);
        parameter = parameter && number >= 1 && number <= list.count;
        if (parameter && !add_binding(call, bindings, &list.items[number - 1])) return buf_release(&text), false;
        if (end == at) end = parameter ? to : at + 1;
        buf_add(&text, parameter ? STR("?") : str_slice(numbered, at, end));
        at = end;
    }
    *out = buf_keep(&text, call->arena);
    return out->ptr || call_no_memory(call);
}

static bool query(struct task_call *call, void *base, struct str sql, const struct sql_params *params, struct sql_answer *out)
{
    struct snowflake *s = base;
    struct json bindings, first;
    struct str text, handle;
    struct fetch_answer answer;
    *out = (struct sql_answer){.rows = json_array(), .columns = json_array(), .after = STR("")};
    if (!bind(call, sql, params, &text, &bindings)) return false;
    s->statement++;
    struct json body = JSON_OF(call->arena, {"statement", json_string(text)}, {"warehouse", json_some(s->warehouse)},
                               {"database", json_some(s->database)}, {"schema", json_some(s->schema)}, {"role", json_some(s->role)},
                               {"bindings", json_filled(bindings)});
    struct str sent = json_ok(&body) ? json_as_text(&body, call->arena) : (struct str){0};
    if (!sent.ptr) return call_no_memory(call);
    // An attempt that another engine makes again asks for the same request.
    const char *again = "&retry=true";
    struct str path = call_printf(call, "/api/v2/statements?requestId=%.*s%s", STR_ARG(request_id(call, s)),
                                  call_request(call)->engine > 1 ? again : "");
    if (!ask(call, s, "POST", path, call_request(call)->engine > 1 ? "" : again, sent, &answer)) return false;
    for (int64_t pause = POLL_FIRST_MS;; pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS) {
        if (answer.status != 200 && answer.status != 202) return refused(call, &answer);
        if (!read_part(call, &answer, &first)) return false;
        handle = json_text(json_key(&first, "statementHandle"));
        for (size_t i = 0; i < handle.len; i++)
            if (!char_is_word(handle.ptr[i]) && handle.ptr[i] != '-') handle.len = 0;
        if (!handle.len) return call_fail(call, TASK_PARSE, "RESULT_INVALID", "Snowflake's answer has no handle of its statement");
        if (answer.status == 200) return read_answer(call, s, handle, &first, out);
        struct str place = call_printf(call, "/api/v2/statements/%.*s", STR_ARG(handle));
        if (rest(call, pause) && ask(call, s, "GET", place, "", STR(""), &answer)) continue;
        cancel(call, s, handle);
        return false;
    }
}

static const struct base_ops ops = {.query = query};

static void run(struct task_call *call)
{
    struct snowflake snowflake = {0};
    if (call_flag(call, "transaction", false)) {
        call_fail(call, TASK_CLIENT, "TRANSACTION_UNSUPPORTED",
                  "the SQL API has no transactions over several statements: write one block of Snowflake Scripting in $$");
        return;
    }
    if (open_base(call, &snowflake)) sql_run(call, &ops, &snowflake);
}

static const char *const fields[] = {"auth",      "credential", "account", "user",   "warehouse",  "database",   "schema",
                                     "role",      "url",        "command", "commands", "query",    "queries",    "sql",
                                     "statement", "statements", "script",  "command_b64", "commands_b64", "params", "parameters",
                                     "transaction", NULL};
const struct task_kind kind_snowflake = {.name = "snowflake", .fields = fields, .run = run};
