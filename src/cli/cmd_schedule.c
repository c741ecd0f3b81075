// Schedules: those of a server, and the times of an expression, for which no server is asked.
#include "cli/at_server.h"
#include "cli/at_service.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "base/civil.h"
#include "schedule/schedule.h"
#include "store/server.h"
#include "term/text.h"

#include <string.h>

enum { NEXT_USUAL = 10, NEXT_MAX = 1000 };

// ---- lists

static const struct column schedule_columns[] = {
    {"name", "SCHEDULE", CELL_TEXT, false, 24}, {"state", "STATE", CELL_TEXT, false, 0},
    {"when", "WHEN", CELL_TEXT, false, 24},     {"zone", "ZONE", CELL_TEXT, false, 24},
    {"nextAt", "NEXT", CELL_TIME, false, 0},    {"lastTick.outcome", "LAST", CELL_TEXT, false, 0},
    {"lastTick.reasonCode", "WHY", CELL_TEXT, false, 16}, {"lastTick.runId", "RUN", CELL_TEXT, true, 0},
    {"plan.planId", "PLAN", CELL_TEXT, true, 24}, {"schedule.overlap", "OVERLAP", CELL_TEXT, true, 0},
    {"updatedAt", "CHANGED", CELL_TIME, true, 0}, {"error", "ERROR", CELL_TEXT, true, 60},
};
static const struct column tick_columns[] = {
    {"time", "TIME", CELL_TEXT, false, 24},      {"kind", "KIND", CELL_TEXT, false, 0},
    {"outcome", "OUTCOME", CELL_TEXT, false, 0}, {"reasonCode", "WHY", CELL_TEXT, false, 24},
    {"count", "TIMES", CELL_NUMBER, false, 0},   {"runId", "RUN", CELL_TEXT, false, 0},
    {"decidedAt", "DECIDED", CELL_TIME, true, 0}, {"detail", "DETAIL", CELL_TEXT, true, 60},
};

static struct str when_of(const struct json *spec)
{
    static const char *const kinds[] = {"cron", "every", "at"};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (json_key(spec, kinds[i])) return json_text(json_key(spec, kinds[i]));
    return (struct str){0};
}

static bool schedule_told(struct cli *cli, struct json *row)
{
    const struct json *next = json_key(row, "next"), *paused = json_key(row, "paused");
    struct str at = next && next->count ? json_text(json_key(&next->items[0], "time")) : (struct str){0};
    const char *state = json_key(row, "error") ? "broken" : paused && paused->boolean ? "paused" : at.len ? "on" : "over";
    JSON_ADD(&cli->io.arena, row, {"when", json_some(when_of(json_key(row, "schedule")))}, {"nextAt", json_some(at)},
             {"state", json_word(state)});
    return json_ok(row);
}

int command_schedule_ls(struct cli *cli)
{
    struct session session;
    struct list list;
    struct json rows;
    if (!list_open(&list, cli, schedule_columns, ARRAY_COUNT(schedule_columns), "name")) return EXIT_USAGE;
    int code = server_open(&session, cli);
    if (!code) {
        code = server_all(&session, "/v1/schedules", &rows);
        for (uint32_t i = 0; !code && i < rows.count; i++)
            if (!schedule_told(cli, &rows.items[i])) code = cli_nomem(cli);
        if (!code) list_page(&list, &rows);
        if (!code && rows.count == 0 && cli->io.err.tty) cli_note(cli, "there are none");
        session_close(&session);
    }
    list_close(&list);
    return code;
}

int command_schedule_ticks(struct cli *cli)
{
    struct session session;
    struct list list;
    struct json rows;
    int64_t limit;
    if (!args_int(&cli->args, FLAG_LIMIT, 1, NEXT_MAX, 50, &cli->io.arena, &limit)) return cli_usage(cli);
    if (!list_open(&list, cli, tick_columns, ARRAY_COUNT(tick_columns), "runId")) return EXIT_USAGE;
    int code = server_open(&session, cli);
    if (!code) {
        code = server_all(&session, cli_format(cli, "/v1/schedules/{}/ticks?limit=%d", (int)limit), &rows);
        if (!code) list_page(&list, &rows);
        if (!code && rows.count == 0 && cli->io.err.tty) cli_note(cli, "none of its times has come yet");
        session_close(&session);
    }
    list_close(&list);
    return code;
}

// ---- times

static const char *mark_words(struct str mark)
{
    if (str_is(mark, "gap")) return "the clock is set forward: in place of a time that it leaves out";
    if (str_is(mark, "first")) return "the clock is set back: the first of two";
    return str_is(mark, "second") ? "the clock is set back: the second of two" : "";
}

// In UTC and in the zone; where the offset changes it is said.
static void add_times(struct buf *out, const struct json *fires)
{
    struct str offset = {0};
    for (uint32_t i = 0; json_is(fires, JSON_ARRAY) && i < fires->count; i++) {
        struct str time = json_text(json_key(&fires->items[i], "time")), local = json_text(json_key(&fires->items[i], "local"));
        struct str mark = json_text(json_key(&fires->items[i], "mark"));
        struct str now = local.len > 6 ? str_slice(local, local.len - 6, local.len) : local;
        bool moved = offset.len > 0 && !str_eq(offset, now);
        buf_printf(out, "%.*s  %.*s", STR_ARG(time), STR_ARG(local));
        if (mark.len)
            buf_printf(out, "  %s", mark_words(mark));
        else if (moved)
            buf_printf(out, "  the clock was set: %.*s was %.*s", STR_ARG(now), STR_ARG(offset));
        buf_byte(out, '\n');
        offset = now;
    }
}

static void print_times(struct cli *cli, const struct json *page)
{
    const struct json *fires = json_key(page, "items");
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (format_of(cli, FORMAT_TEXT) != FORMAT_TEXT) {
        print_json(&cli->io, format_of(cli, FORMAT_TEXT), page);
    } else {
        add_times(&out, fires);
        if (out.len)
            cli_print(cli, &out);
        else
            cli_note(cli, "it has no more times");
    }
}

static int load_zone(struct cli *cli, struct str name, const struct zone **out)
{
    struct error err = {0};
    struct str bytes;
    *out = zone_utc();
    if (name.len == 0 || str_is(name, "UTC")) return EXIT_OK;
    if (!zone_name_valid(name))
        return cli_fail(cli, EXIT_USAGE, "%.*s is no name of a time zone, such as Europe/Berlin", STR_ARG(name));
    const char *path = cli_format(cli, "%.*s", STR_ARG(name));
    enum code rc = os_zoneinfo(path, &cli->io.arena, &bytes, &err);
    if (!rc) rc = zone_parse(name, bytes, &cli->io.arena, out, &err);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

// The times of what is declared, here.
static int next_of(struct cli *cli, const struct json *spec, int64_t limit)
{
    struct schedule_spec read;
    const struct zone *zone;
    struct error err = {0};
    struct fire fire;
    struct json items = json_array();
    int64_t after = os_now().wall_ms;
    static const char *const marks[] = {"", "gap", "first", "second"};
    if (schedule_spec_read(spec, &cli->io.arena, &read, &err)) return cli_error(cli, &err);
    int code = load_zone(cli, read.zone, &zone);
    if (code) return code;
    if (schedule_spec_zone(&read, zone, &err)) return cli_error(cli, &err);
    struct str since = args_text(&cli->args, FLAG_SINCE, "");
    if (since.len && !zone_time(zone, since, &after))
        return cli_fail(cli, EXIT_USAGE, "--since %s is no time like 2026-02-11T17:00:00 (in the zone) or 2026-02-11T16:00:00Z",
                        since.ptr);
    for (int64_t i = 0; i < limit && timing_next(&read.timing, after, &fire); i++) {
        char local[ZONE_TIME_SIZE];
        zone_format(zone, fire.at_ms, local);
        json_append(&cli->io.arena, &items,
                    JSON_OF(&cli->io.arena, {"time", json_time(&cli->io.arena, fire.at_ms)},
                            {"local", json_copied(&cli->io.arena, str_from(local))}, {"mark", json_name(marks[fire.mark])}));
        after = fire.at_ms;
    }
    struct json page = JSON_OF(&cli->io.arena, {"items", items}, {"nextCursor", json_null()});
    if (!json_ok(&page)) return cli_nomem(cli);
    print_times(cli, &page);
    return EXIT_OK;
}

static int next_of_file(struct cli *cli, int64_t limit)
{
    struct document document;
    int code = document_load(cli, cli->args.words[0], &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    if (document.program->schedule)
        code = next_of(cli, document.program->schedule, limit);
    else
        code = cli_fail(cli, EXIT_USAGE, "%s has no schedule:", cli->args.words[0].ptr);
    program_release(document.program);
    return code;
}

static int next_of_server(struct cli *cli, int64_t limit)
{
    struct session session SCOPED(session_close) = {0};
    struct json page;
    struct str since = args_text(&cli->args, FLAG_SINCE, "");
    int code = server_open(&session, cli);
    if (code) return code;
    struct str path = server_path(cli, cli_format(cli, "/v1/schedules/{}/next?limit=%d%s%s", (int)limit,
                                                  since.len ? "&from=" : "", since.len ? since.ptr : ""));
    code = path.ptr ? server_ask(&session, "GET", path, NULL, &page) : EXIT_ERROR;
    if (!code) print_times(cli, &page);
    return code;
}

int command_schedule_next(struct cli *cli)
{
    struct str word = cli->args.words[0];
    int64_t limit, ms;
    if (!args_int(&cli->args, FLAG_LIMIT, 1, NEXT_MAX, NEXT_USUAL, &cli->io.arena, &limit)) return cli_usage(cli);
    bool every = duration_parse(word, &ms), cron = str_find(word, ' ', 0) < word.len || str_starts(word, STR("@"));
    if (!every && !cron && word_is_document(word)) return next_of_file(cli, limit);
    if (!every && !cron) return next_of_server(cli, limit);
    struct json spec = JSON_OF(&cli->io.arena, {cron ? "cron" : "every", json_string(word)},
                               {"zone", json_some(args_text(&cli->args, FLAG_ZONE, ""))},
                               {"gap", json_some(args_text(&cli->args, FLAG_GAP, ""))},
                               {"fold", json_some(args_text(&cli->args, FLAG_FOLD, ""))});
    return json_ok(&spec) ? next_of(cli, &spec, limit) : cli_nomem(cli);
}

// ---- one schedule

static void add_line(struct buf *out, const char *name, struct str value)
{
    if (value.len == 0) return;
    buf_printf(out, "%-10s ", name);
    text_safe(out, value);
    buf_byte(out, '\n');
}

static void show(struct cli *cli, struct json *answer)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (format_of(cli, FORMAT_TEXT) != FORMAT_TEXT) {
        print_json(&cli->io, format_of(cli, FORMAT_TEXT), answer);
        return;
    }
    const struct json *spec = json_key(answer, "schedule"), *tick = json_key(answer, "lastTick");
    (void)schedule_told(cli, answer);
    add_line(&out, "schedule", json_text(json_key(answer, "name")));
    add_line(&out, "state", json_text(json_key(answer, "state")));
    add_line(&out, "why", json_text(json_key(answer, "pausedReason")));
    add_line(&out, "when", json_text(json_key(answer, "when")));
    add_line(&out, "zone", json_text(json_key(answer, "zone")));
    static const char *const policies[] = {"overlap", "gap", "fold", "jitter", "catchup", "from", "until", "queue"};
    for (size_t i = 0; i < ARRAY_COUNT(policies); i++) add_line(&out, policies[i], json_text(json_key(spec, policies[i])));
    add_line(&out, "plan", json_text(json_at(answer, STR("plan.planId"))));
    add_line(&out, "version", json_text(json_at(answer, STR("plan.planVersion"))));
    if (tick) {
        buf_printf(&out, "%-10s %.*s %.*s %.*s%.*s\n", "last", STR_ARG(json_text(json_key(tick, "time"))),
                   STR_ARG(json_text(json_key(tick, "outcome"))), STR_ARG(json_text(json_key(tick, "reasonCode"))),
                   STR_ARG(json_text(json_key(tick, "runId"))));
    }
    const struct json *next = json_key(answer, "next");
    if (json_is(next, JSON_ARRAY) && next->count) buf_text(&out, "\nnext\n");
    add_times(&out, next);
    cli_print(cli, &out);
}

int command_schedule_get(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer;
    int code = server_open(&session, cli);
    if (code) return code;
    struct str path = server_path(cli, "/v1/schedules/{}");
    code = path.ptr ? server_ask(&session, "GET", path, NULL, &answer) : EXIT_ERROR;
    if (!code) show(cli, &answer);
    return code;
}

// ---- changes

// What the flags say of when; none: the document says it.
static int spec_of(struct cli *cli, const struct document *document, struct json *out)
{
    static const struct {
        enum flag flag;
        const char *name;
    } texts[] = {{FLAG_CRON, "cron"},     {FLAG_EVERY, "every"},     {FLAG_AT, "at"},           {FLAG_ZONE, "zone"},
                 {FLAG_GAP, "gap"},       {FLAG_FOLD, "fold"},       {FLAG_JITTER, "jitter"},   {FLAG_CATCHUP, "catchup"},
                 {FLAG_OVERLAP, "overlap"}, {FLAG_UNTIL, "until"}, {FLAG_QUEUE, "queue"}};
    struct json inputs, own = json_object();
    struct schedule_spec read;
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct str text = args_has(&cli->args, texts[i].flag) ? args_text(&cli->args, texts[i].flag, "") : (struct str){0};
        if (text.len) JSON_ADD(&cli->io.arena, &own, {texts[i].name, json_string(text)});
    }
    int code = inputs_read(cli, document->program, &inputs);
    if (code) return code;
    inputs_warn(cli, document->program, &inputs);
    if (inputs.count) JSON_ADD(&cli->io.arena, &own, {"inputs", inputs});
    *out = json_none();
    bool when = when_of(&own).len > 0;
    // flags that do not say when are over what the document says
    if (own.count > 0) *out = when ? own : json_joined(&cli->io.arena, &own, document->program->schedule);
    if (!out->type && !document->program->schedule) {
        cli_fail(cli, EXIT_USAGE, "when is it to be started?");
        return cli_hint(cli,
                        "--cron '30 2 * * *', --every 15m or --at 2027-02-11T17:00:00; or schedule: in the document");
    }
    if (!out->type) return EXIT_OK;
    if (!json_ok(out)) return cli_nomem(cli);
    return schedule_spec_read(out, &cli->io.arena, &read, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static int add(struct session *session, const struct document *document)
{
    struct cli *cli = session->cli;
    struct json body = json_object(), spec, answer = {0};
    struct error err = {0};
    int code = spec_of(cli, document, &spec);
    if (!code) code = put_document(cli, document, &body);
    if (code) return code;
    JSON_ADD(&cli->io.arena, &body, {"schedule", spec}, {"projectId", json_some(args_text(&cli->args, FLAG_PROJECT, ""))},
             {"environmentId", json_some(args_text(&cli->args, FLAG_ENVIRONMENT, ""))},
             {"paused", json_flag(args_has(&cli->args, FLAG_PAUSED))});
    struct str path = server_path(cli, "/v1/schedules/{}");
    if (!json_ok(&body) || !path.ptr) return cli_nomem(cli);
    struct server_call put = {.method = "PUT", .path = path, .body = &body};
    if (send_document(session, document, put, &answer, &err)) return cli_error(cli, &err);
    show(cli, &answer);
    return EXIT_OK;
}

int command_schedule_add(struct cli *cli)
{
    struct session session;
    struct document document;
    int code = document_load(cli, cli->args.words[1], &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) return EXIT_INVALID;
    code = server_open(&session, cli);
    if (!code) {
        code = add(&session, &document);
        session_close(&session);
    }
    program_release(document.program);
    return code;
}

int command_schedule_call(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer, body = JSON_OF(&cli->io.arena, {"reason", json_some(args_text(&cli->args, FLAG_REASON, ""))});
    const char *verb = strchr(cli->args.command->name, ' ') + 1;
    bool removes = strcmp(verb, "rm") == 0;
    int code = server_open(&session, cli);
    if (code) return code;
    struct str path = server_path(cli, removes ? "/v1/schedules/{}" : cli_format(cli, "/v1/schedules/{}/%s", verb));
    code = path.ptr ? server_ask(&session, removes ? "DELETE" : "POST", path, removes ? NULL : &body, &answer) : EXIT_ERROR;
    if (!code && removes)
        cli_note(cli, "schedule %s is removed; its runs stay", cli->args.words[0].ptr);
    else if (!code)
        show(cli, &answer);
    return code;
}

int command_schedule_trigger(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer, inputs;
    char key[UUID_SIZE];
    int code = inputs_read(cli, NULL, &inputs);
    if (!code) code = server_open(&session, cli);
    if (code) return code;
    struct json body = JSON_OF(&cli->io.arena, {"inputs", json_filled(inputs)},
                               {"reason", json_some(args_text(&cli->args, FLAG_REASON, ""))});
    struct str path = server_path(cli, "/v1/schedules/{}/trigger");
    entropy_uuid(os_entropy(), key);
    struct error err = {0};
    struct server_call call = {"POST", path, &body, str_from(key), {0}};
    if (!path.ptr || !json_ok(&body))
        code = cli_nomem(cli);
    else if (store_server_call(session.store, &call, &cli->io.arena, &answer, &err))
        code = cli_error(cli, &err);
    if (!code) {
        struct buf out SCOPED(buf_release) = buf_of(4096);
        enum format format = format_of(cli, FORMAT_TEXT);
        buf_printf(&out, "%.*s\n", STR_ARG(json_text(json_key(&answer, "runId"))));
        if (format == FORMAT_TEXT || format == FORMAT_NAME)
            cli_print(cli, &out);
        else
            print_json(&cli->io, format, &answer);
    }
    return code;
}

int command_schedule_backfill(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer;
    int64_t limit, parallel;
    bool dry = args_has(&cli->args, FLAG_DRY_RUN);
    struct str from = args_text(&cli->args, FLAG_SINCE, ""), to = args_text(&cli->args, FLAG_UNTIL, "");
    if (!args_int(&cli->args, FLAG_LIMIT, 1, 10000, 0, &cli->io.arena, &limit) ||
        !args_int(&cli->args, FLAG_PARALLEL, 1, 100, 0, &cli->io.arena, &parallel))
        return cli_usage(cli);
    if (!from.len || !to.len) {
        cli_fail(cli, EXIT_USAGE, "which times?");
        return cli_hint(cli, "--since 2026-02-01T00:00:00 --until 2026-02-08T00:00:00, in the zone of the schedule "
                             "unless they have an offset");
    }
    int code = server_open(&session, cli);
    if (code) return code;
    struct json body = JSON_OF(&cli->io.arena, {"from", json_string(from)}, {"to", json_string(to)},
                               {"order", json_some(args_text(&cli->args, FLAG_ORDER, ""))}, {"limit", json_nonzero(limit)},
                               {"parallel", json_nonzero(parallel)}, {"dryRun", json_flag(dry)},
                               {"reason", json_some(args_text(&cli->args, FLAG_REASON, ""))});
    struct str path = server_path(cli, "/v1/schedules/{}/backfills");
    code = path.ptr && json_ok(&body) ? server_ask(&session, "POST", path, &body, &answer) : cli_nomem(cli);
    if (!code && format_of(cli, FORMAT_TEXT) != FORMAT_TEXT) {
        print_json(&cli->io, format_of(cli, FORMAT_TEXT), &answer);
    } else if (!code) {
        struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
        add_times(&out, json_key(&answer, "times"));
        if (out.len) cli_print(cli, &out);
        int64_t count = json_integer(json_key(&answer, "count"), 0);
        cli_note(cli, "%lld time%s %s", (long long)count, count == 1 ? "" : "s",
                 dry || count == 0 ? "would run" : cli_format(cli, "run now: backfill %.*s", STR_ARG(json_text(json_key(&answer, "id")))));
    }
    return code;
}
