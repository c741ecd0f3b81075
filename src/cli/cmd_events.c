// The log of a run. With -o jsonl the stored bytes are printed as they are; every other format shows rows made of them.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/drive.h"
#include "cli/follow.h"

#include "base/civil.h"
#include "reading/reading.h"

#include <fnmatch.h>
#include <stdio.h>

enum { PAGE = 500 };

static const struct column columns[] = {
    {"seq", "SEQ", CELL_NUMBER, false, 0},      {"time", "TIME", CELL_TIME, false, 0},
    {"type", "TYPE", CELL_TEXT, false, 0},      {"step", "STEP", CELL_TEXT, false, 32},
    {"attempt", "TRY", CELL_NUMBER, false, 0},  {"took", "TOOK", CELL_MS, false, 0},
    {"detail", "DETAIL", CELL_TEXT, false, 64}, {"ledger", "LEDGER", CELL_NUMBER, true, 0},
    {"hash", "HASH", CELL_TEXT, true, 0},
};

struct reader {
    struct session *session;
    struct run_head head;
    enum vocabulary as; // 0: as stored
    const char *type_glob;
    struct str step;
    uint64_t after, until;
    int64_t since_ms, last_ms;
    bool ledger;
    struct replay_cursor cursor;
    uint64_t left;      // rows that may still be printed
    struct arena arena; // one page
    struct list list;
    struct json rows;
    bool raw; // whole records instead of rows
    struct error err;
};

static struct json copied(struct reader *reader, const char *text)
{
    struct str copy = text && text[0] ? arena_copy(&reader->arena, str_from(text)) : (struct str){0};
    return copy.ptr ? json_string(copy) : json_null();
}

// Where a token of a playbook goes: "-> a, b"; nowhere: "-> (end)".
static void route_text(const struct json *selected, char *text, size_t size)
{
    size_t len = (size_t)snprintf(text, size, "->");
    for (uint32_t i = 0; json_is(selected, JSON_ARRAY) && i < selected->count && len < size; i++) {
        struct str step = json_text(json_key(&selected->items[i], "step"));
        len += (size_t)snprintf(text + len, size - len, "%s %.*s", i ? "," : "", STR_ARG(step));
    }
    if (!json_is(selected, JSON_ARRAY) || selected->count == 0) snprintf(text, size, "-> (end)");
}

static bool playbook_detail(const struct moment *m, char *text, size_t size)
{
    struct str action = json_text(json_at(&m->value, STR("action.do")));
    if (m->kind == MOMENT_ROUTED)
        route_text(json_key(&m->value, "selected"), text, size);
    else if (m->kind == MOMENT_TASK_DECIDED)
        snprintf(text, size, "%.*s", STR_ARG(action));
    else if (m->kind == MOMENT_LOOP_STARTED)
        snprintf(text, size, "%u items", m->counts.total);
    else if (m->kind == MOMENT_LOOP_DONE)
        snprintf(text, size, "%u of %u done, %u failed", m->counts.completed, m->counts.total, m->counts.failed);
    else
        return false;
    return true;
}

static struct json detail_of(struct reader *reader, const struct moment *m)
{
    char text[512] = "";
    if (m->visit && playbook_detail(m, text, sizeof(text))) return copied(reader, text);
    if (m->fault.code.len > 0 && m->fault.has_exit)
        snprintf(text, sizeof(text), "%.*s exit %d", STR_ARG(m->fault.code), m->fault.exit_code);
    else if (m->fault.code.len > 0)
        snprintf(text, sizeof(text), "%.*s: %.*s", STR_ARG(m->fault.code), STR_ARG(m->fault.message));
    else if (m->signal_type.len > 0)
        snprintf(text, sizeof(text), "%.*s%s%.*s", STR_ARG(m->signal_type), m->signal_step.len ? " " : "",
                 STR_ARG(m->signal_step));
    else if (m->reason.len > 0 && m->detail.len > 0)
        snprintf(text, sizeof(text), "%.*s: %.*s", STR_ARG(m->reason), STR_ARG(m->detail));
    else if (m->reason.len > 0)
        snprintf(text, sizeof(text), "%.*s", STR_ARG(m->reason));
    else if (m->run_ref.len > 0)
        snprintf(text, sizeof(text), "run %.*s", STR_ARG(m->run_ref));
    else if (m->actor.len > 0)
        snprintf(text, sizeof(text), "by %.*s", STR_ARG(m->actor));
    return copied(reader, text);
}

static bool has_duration(enum moment_kind kind)
{
    return kind == MOMENT_STEP_COMPLETED || kind == MOMENT_STEP_FAILED || kind == MOMENT_ATTEMPT_FAILED ||
           kind == MOMENT_ATTEMPT_DONE || kind == MOMENT_TASK_DONE || kind == MOMENT_TASK_FAILED ||
           kind == MOMENT_ITERATION_DONE || kind == MOMENT_ITERATION_FAILED || kind == MOMENT_LOOP_DONE ||
           kind == MOMENT_WORKFLOW_FINISHED || moment_is_terminal(kind);
}

// Decisions have no moment: what a reader wants is inside their body.
static void decision_row(struct reader *reader, const struct record *record, struct json *row)
{
    struct json body;
    struct error err = {0};
    struct str bytes = arena_copy(&reader->arena, record->bytes); // the row is written after the record is gone
    if (!bytes.ptr || json_parse(bytes, &json_limits_record, &reader->arena, &body, &err)) body = json_object();
    const struct json *at = json_key(&body, "engineProcessedAt");
    struct str type = json_text(json_key(&body, "signalType")), decision = json_text(json_key(&body, "decision"));
    struct str code = json_text(json_at(&body, STR("engineResult.errorCode")));
    if (str_is(record->type, "report")) { // what a worker says of an event: when, and under which id
        at = json_key(&body, "timestamp");
        type = json_text(json_key(&body, "event_type"));
        decision = json_text(json_key(&body, "event_id"));
    }
    char text[256];
    snprintf(text, sizeof(text), "%.*s %.*s %.*s", STR_ARG(type), STR_ARG(decision), STR_ARG(code));
    JSON_ADD(&reader->arena, row, {"time", at ? *at : json_null()}, {"step", json_null()}, {"attempt", json_null()},
             {"took", json_null()}, {"detail", copied(reader, text)});
}

// The step; of a playbook "each[3]/fetch:run:2" besides: the third item, the second run of the task.
static struct str place_of(struct reader *reader, const struct moment *m)
{
    if (!m->visit) return arena_copy(&reader->arena, m->step);
    struct buf text = buf_of(4096);
    buf_add(&text, moment_step_id(m, &reader->arena));
    if (m->iteration) buf_printf(&text, "[%u]", m->iteration);
    if (m->task.len) buf_printf(&text, "/%.*s", STR_ARG(m->task));
    if (m->task_run > 1) buf_printf(&text, ":run:%u", m->task_run);
    return buf_keep(&text, &reader->arena);
}

static void moment_row(struct reader *reader, const struct moment *m, struct json *row)
{
    char time[CIVIL_SIZE];
    civil_format(m->at_ms, time);
    struct str step = m->step.len ? place_of(reader, m) : (struct str){0};
    bool counted = moment_is_step(m->kind) && m->logical > 0 && (!m->visit || m->task.len);
    JSON_ADD(&reader->arena, row, {"time", copied(reader, time)}, {"step", step.ptr ? json_string(step) : json_null()},
             {"attempt", counted ? json_int(m->logical) : json_null()},
             {"took", has_duration(m->kind) ? json_int(m->duration_ms) : json_null()},
             {"detail", detail_of(reader, m)});
}

static bool make_row(struct reader *reader, const struct record *record, struct str type, const struct moment *moment,
                     struct json *row)
{
    struct arena *arena = &reader->arena;
    *row = JSON_OF(arena, {"seq", json_count(record->seq)}, {"type", json_copied(arena, type)});
    if (moment)
        moment_row(reader, moment, row);
    else
        decision_row(reader, record, row);
    JSON_ADD(arena, row, {"ledger", record->ledger_seq ? json_count(record->ledger_seq) : json_null()},
             {"hash", reader->as ? json_null() : json_digest(arena, &record->hash)});
    return json_ok(row);
}

static bool wanted(const struct reader *reader, struct str type, const struct moment *moment)
{
    char word[128];
    snprintf(word, sizeof(word), "%.*s", STR_ARG(type));
    if (reader->type_glob && fnmatch(reader->type_glob, word, 0) != 0) return false;
    if (reader->step.len == 0) return true;
    if (!moment || !str_starts(moment->step, reader->step)) return false;
    return moment->step.len == reader->step.len || moment->step.ptr[reader->step.len] == '[';
}

static void flush(struct reader *reader)
{
    list_page(&reader->list, &reader->rows);
    reader->rows = json_array();
    arena_reset(&reader->arena);
}

// One record on its way out. `shown` is the record in another vocabulary (--as), else NULL.
static enum code add(struct reader *reader, const struct record *record, struct str type, const struct moment *moment,
                     const struct json *shown)
{
    struct json row;
    if (reader->left == 0 || !wanted(reader, type, moment)) return OK;
    reader->left--;
    if (reader->raw && reader->list.format == FORMAT_JSONL && !shown) {
        buf_add(&reader->list.text, record->bytes);
        buf_byte(&reader->list.text, '\n');
        reader->list.row_count++;
        return buf_ok(&reader->list.text) ? OK : error_nomem(&reader->err);
    }
    bool ok = true;
    if (!reader->raw) {
        ok = make_row(reader, record, type, moment, &row);
    } else if (shown) {
        ok = json_copy(&reader->arena, shown, &row);
    } else {
        struct str bytes = arena_copy(&reader->arena, record->bytes);
        ok = bytes.ptr && json_parse(bytes, &json_limits_record, &reader->arena, &row, &reader->err) == OK;
    }
    if (!ok || !json_push(&reader->arena, &reader->rows, row))
        return error_set(&reader->err, E_NOMEM, "record %llu cannot be shown", (unsigned long long)record->seq);
    return OK;
}

static bool is_early(struct reader *reader, const struct moment *moment)
{
    if (moment) reader->last_ms = moment->at_ms; // a decision has the time of what it follows
    return reader->last_ms < reader->since_ms;
}

// The log alone, record by record: also what is damaged can be looked at.
static enum code read_stored(struct reader *reader)
{
    struct cli *cli = reader->session->cli;
    const struct run_ids *ids = &reader->head.ids;
    bool needs_moment = !reader->raw || reader->step.len > 0 || reader->since_ms;
    for (uint64_t after = reader->after; reader->left > 0 && !cli->io.out_closed && after < reader->until;) {
        struct records page = {0};
        struct record_range range = {.tenant = ids->tenant, .run = ids->run, .after = after, .limit = PAGE};
        enum code rc = store_read(reader->session->store, &range, &reader->arena, &page, &reader->err);
        if (rc || page.count == 0) return rc;
        for (size_t i = 0; i < page.count; i++) {
            const struct record *record = &page.items[i];
            struct moment moment = {0};
            struct seal seal;
            after = record->seq;
            if (after > reader->until) break;
            rc = needs_moment ? contract_decode(reader->head.vocabulary, record->bytes, &reader->arena, &moment, &seal,
                                                NULL, &reader->err)
                              : OK;
            if (!rc && !(needs_moment && is_early(reader, &moment)))
                rc = add(reader, record, record->type, needs_moment ? &moment : NULL, NULL);
            if (rc) return rc;
        }
        flush(reader);
    }
    return OK;
}

// The log and, with --ledger, what is kept beside it, in the order it happened.
static enum code show_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    struct reader *reader = context;
    bool entry = record->ledger_seq > 0;
    (void)seal;
    if (record->seq <= reader->after && !(entry && record->seq == reader->after && reader->after == 0)) return OK;
    if (is_early(reader, moment) || record->seq > reader->until || (entry && !reader->ledger)) return OK;
    struct str type = entry && moment ? str_from(moment_name(moment->kind)) : record->type;
    enum code rc = add(reader, record, type, moment, NULL);
    if (!rc && reader->rows.count >= PAGE) flush(reader);
    return rc;
}

static enum code show_moment(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    struct reader *reader = context;
    struct json shown = {0};
    if (!moment || moment->kind == MOMENT_UNKNOWN || record->seq <= reader->after) return OK;
    if (is_early(reader, moment) || record->seq > reader->until) return OK;
    const char *word = contract_word(moment, reader->as);
    if (!word) return OK;
    // A fact from the ledger has no number or id of its own: it is shown at the event before it.
    struct seal beside = {
        .seq = record->seq, .persisted_ms = moment->at_ms, .event_id = "00000000-0000-0000-0000-000000000000"};
    enum code rc = OK;
    struct showing showing = {.store = reader->session->store,
                              .contract = reader->session->contract,
                              .head = &reader->head,
                              .to = reader->as};
    if (reader->raw) rc = reading_show(&showing, moment, seal ? seal : &beside, &reader->arena, &shown, &reader->err);
    if (!rc && (!reader->raw || shown.type != 0))
        rc = add(reader, record, str_from(word), moment, reader->raw ? &shown : NULL);
    if (!rc && reader->rows.count >= PAGE) flush(reader);
    return rc;
}

// What has happened since the cursor.
static int replay(struct reader *reader)
{
    struct error err = {0};
    enum code rc = store_replay_from(reader->session->store, reader->head.ids.tenant, reader->head.ids.run,
                                     &reader->cursor, reader->as ? show_moment : show_record, reader, &err);
    if (rc && reader->err.code == OK) reader->err = err;
    flush(reader);
    return rc ? cli_error(reader->session->cli, &reader->err) : EXIT_OK;
}

static int follow_run(struct reader *reader)
{
    struct cli *cli = reader->session->cli;
    struct error err = {0};
    struct follow follow;
    struct run_head head;
    follow_init(&follow, reader->session);
    for (;;) {
        uint64_t before = reader->cursor.seq + reader->cursor.ledger_seq;
        int code = replay(reader);
        if (code) return code;
        arena_reset(&reader->arena);
        if (store_head(reader->session->store, reader->head.ids.tenant, reader->head.ids.run, &reader->arena, &head,
                       &err))
            return cli_error(cli, &err);
        bool seen = reader->cursor.seq == head.last_seq && reader->cursor.ledger_seq == head.last_ledger_seq;
        if ((head.terminal && seen) || cli->io.out_closed || reader->left == 0)
            return exit_of_status(head.summary.status);
        if (follow_need(&follow, &head) != NEED_NOTHING && args_has(&cli->args, FLAG_EXIT_ON_WAIT)) return EXIT_WAITING;
        follow_sleep(&follow, reader->cursor.seq + reader->cursor.ledger_seq != before || !seen, INT64_MAX);
    }
}

static int read_all(struct reader *reader)
{
    const struct args *args = &reader->session->cli->args;
    if (reader->as) {
        int code = session_contract(reader->session);
        if (code) return code;
    }
    if (args_has(args, FLAG_FOLLOW)) return follow_run(reader);
    if (reader->as || reader->ledger) return replay(reader);
    enum code rc = read_stored(reader);
    flush(reader);
    return rc ? cli_error(reader->session->cli, &reader->err) : EXIT_OK;
}

// A misspelt step is not a step without events.
static int check_step(struct session *session, const struct run_head *head, struct str step)
{
    struct card card SCOPED(card_release) = {0};
    int code = card_load(session, head, TARGET_NOW, &card);
    if (!code && !card_has_step(session, &card, step)) code = EXIT_NOT_FOUND;
    return code;
}

static int prepare(struct reader *reader, struct session *session)
{
    struct cli *cli = session->cli;
    struct target target;
    int64_t after, limit;
    *reader = (struct reader){.session = session, .rows = json_array()};
    int code = target_find(session, cli->args.words[0], TARGET_STEP | TARGET_MOMENT, &target);
    if (code) return code;
    if (!args_int(&cli->args, FLAG_AFTER, 0, INT64_MAX, 0, &cli->io.arena, &after) ||
        !args_int(&cli->args, FLAG_LIMIT, 1, INT64_MAX, INT64_MAX, &cli->io.arena, &limit))
        return cli_usage(cli);
    if (!time_flag(cli, FLAG_SINCE, &reader->since_ms)) return EXIT_USAGE;
    if (target.has_at && args_has(&cli->args, FLAG_FOLLOW)) {
        cli_fail(cli, EXIT_USAGE, "-f goes on after the end of the log, and RUN@SEQ ends before it");
        return cli_hint(cli, "leave out -f or the @ and its number");
    }
    reader->head = target.head;
    reader->until = target.at;
    reader->ledger = args_has(&cli->args, FLAG_LEDGER);
    reader->after = (uint64_t)after;
    reader->left = (uint64_t)limit;
    reader->step = args_has(&cli->args, FLAG_STEP) ? args_text(&cli->args, FLAG_STEP, "") : target.step;
    if (reader->step.len > 0) code = check_step(session, &target.head, reader->step);
    if (code) return code;
    reader->type_glob = args_has(&cli->args, FLAG_TYPE) ? args_text(&cli->args, FLAG_TYPE, "").ptr : NULL;
    reader->as = vocabulary_parse(args_text(&cli->args, FLAG_AS, ""));
    if (!list_open(&reader->list, cli, columns, ARRAY_COUNT(columns), "seq")) return EXIT_USAGE;
    enum format format = reader->list.format;
    if (args_has(&cli->args, FLAG_RAW)) {
        buf_clear(&reader->list.text);
        format = reader->list.format = FORMAT_JSONL;
    }
    reader->raw = !args_has(&cli->args, FLAG_FIELDS) &&
                  (format == FORMAT_JSON || format == FORMAT_JSONL || format == FORMAT_YAML);
    return EXIT_OK;
}

int command_events(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct reader reader;
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = prepare(&reader, &session);
    if (!code) {
        arena_init(&reader.arena, (size_t)1 << 20, (size_t)1 << 30);
        code = read_all(&reader);
        list_close(&reader.list);
        arena_release(&reader.arena);
    }
    return code;
}
