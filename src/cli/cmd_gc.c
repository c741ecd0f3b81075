// What is in a store, and what may leave it.
#include "archive/archive.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "json/make.h"
#include "reading/reading.h"
#include "term/card.h"
#include "term/text.h"

#include <stdio.h>
#include <unistd.h>

#define MINUTE_MS ((int64_t)60 * 1000)
#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

static void add_bytes(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double shown = (double)bytes;
    for (; shown >= 1024 && unit + 1 < ARRAY_COUNT(units); unit++) shown /= 1024;
    buf_printf(out, unit ? "%.1f %s" : "%.0f %s", shown, units[unit]);
}

// ---- stat

static int count_all(struct session *session, struct store_stats *stats)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct str tenant = args_has(&cli->args, FLAG_TENANT) ? session->tenant : STR("");
    if (reading_stats(session->store, tenant, cli->io.now_ms, &cli->io.arena, stats, &err)) return cli_error(cli, &err);
    return EXIT_OK;
}

static bool stats_json(struct session *session, const struct store_stats *stats, struct json *out)
{
    struct arena *arena = &session->cli->io.arena;
    struct json all;
    *out = JSON_OF(arena, {"store", json_word(session->url)}, {"kind", json_word(store_kind(session->store))});
    if (!store_stats_json(stats, arena, &all)) return false;
    for (uint32_t i = 0; i < all.count; i++) json_set(arena, out, all.members[i].key, all.members[i].value);
    return json_ok(out);
}

static void write_usages(struct cli *cli, struct buf *out, const struct store_stats *stats)
{
    bool first = true;
    for (size_t i = 0; i < stats->usages.count; i++) {
        const struct usage *usage = &stats->usages.items[i];
        if (usage->bytes == 0 && usage->count == 0) continue;
        card_label(out, &cli->io.out, first ? "bytes" : "");
        first = false;
        size_t from = out->len;
        add_bytes(out, usage->bytes);
        text_pad(out, out->len - from, 11);
        text_safe(out, usage->what);
        if (usage->count) buf_printf(out, " (%llu)", (unsigned long long)usage->count);
        buf_byte(out, '\n');
    }
}

static void print_stats(struct session *session, const struct store_stats *stats)
{
    struct cli *cli = session->cli;
    const struct term *term = &cli->io.out;
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    card_label(&out, term, "store");
    buf_printf(&out, "%s\n", session->url);
    card_label(&out, term, "runs");
    buf_printf(&out, "%llu", (unsigned long long)stats->runs);
    const char *before = ": ";
    for (unsigned i = RUN_STATUS_PENDING; i < STATS_STATUSES; i++) {
        if (!stats->by_status[i]) continue;
        buf_printf(&out, "%s%llu %s", before, (unsigned long long)stats->by_status[i],
                   run_status_name((enum run_status)i));
        before = ", ";
    }
    if (stats->removed.count) buf_printf(&out, "; %zu were removed", stats->removed.count);
    buf_byte(&out, '\n');
    card_label(&out, term, "events");
    buf_printf(&out, "%llu, and %llu ledger entries; %llu events a day in the last %d days\n",
               (unsigned long long)stats->events, (unsigned long long)stats->entries,
               (unsigned long long)(stats->recent / STATS_RECENT_DAYS), STATS_RECENT_DAYS);
    if (stats->runs) {
        card_label(&out, term, "oldest");
        time_text(&out, &cli->io, stats->oldest_ms);
        buf_text(&out, ", newest ");
        time_text(&out, &cli->io, stats->newest_ms);
        buf_byte(&out, '\n');
    }
    write_usages(cli, &out, stats);
    for (size_t i = 0; i < STATS_BIGGEST && stats->biggest[i].events; i++) {
        card_label(&out, term, i ? "" : "biggest");
        buf_printf(&out, "%-10llu ", (unsigned long long)stats->biggest[i].events);
        text_safe(&out, stats->biggest[i].run);
        buf_byte(&out, '\n');
    }
    cli_print(cli, &out);
}

int command_store_stat(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct store_stats stats = {0};
    struct json json;
    int code = session_open(&session, cli, STORE_READ);
    if (!code && !session.store) code = cli_fail(cli, EXIT_NOT_FOUND, "there is no store at %s", session.url);
    if (!code) code = count_all(&session, &stats);
    if (!code && format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        if (stats_json(&session, &stats, &json))
            print_json(&cli->io, FORMAT_JSON, &json);
        else
            code = cli_nomem(cli);
    } else if (!code) {
        print_stats(&session, &stats);
    }
    return code;
}

// ---- gc

static bool read_statuses(struct cli *cli, uint32_t *mask)
{
    struct str rest = args_text(&cli->args, FLAG_STATUS, "");
    while (rest.len > 0) {
        struct str word = str_trim(str_cut(rest, ',', &rest));
        enum run_status status = run_status_parse(word);
        if (!status || !run_status_terminal(status)) {
            cli_fail(cli, EXIT_USAGE, "%.*s is not how a run ends", STR_ARG(word));
            cli_hint(cli, "COMPLETED, FAILED or CANCELLED");
            return false;
        }
        *mask |= 1u << status;
    }
    return true;
}

static void print_expired(struct cli *cli, const struct expiry_report *expired, bool dry)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&out, "%s %llu expired artifact%s of %llu run%s: ", dry ? "would remove" : "removed",
               (unsigned long long)expired->file_count, expired->file_count == 1 ? "" : "s",
               (unsigned long long)expired->run_count, expired->run_count == 1 ? "" : "s");
    add_bytes(&out, expired->file_bytes);
    buf_byte(&out, '\n');
    cli_print(cli, &out);
}

static int report_gc(struct cli *cli, const struct gc_report *report, const struct expiry_report *expired, bool dry, bool runs)
{
    struct json json = json_object();
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        JSON_ADD(&cli->io.arena, &json, {"dryRun", json_bool(dry)}, {"runs", json_count(report->run_count)},
                 {"events", json_count(report->event_count)}, {"logBytes", json_count(report->byte_count)},
                 {"files", json_count(report->file_count)}, {"fileBytes", json_count(report->file_bytes)},
                 {"blobs", json_count(report->blob_count)}, {"blobBytes", json_count(report->blob_bytes)},
                 {"blobsKept", json_bool(report->blobs_locked || report->blobs_unsure)},
                 {"objects", json_count(report->object_count)}, {"objectBytes", json_count(report->object_bytes)},
                 {"objectsKept", json_bool(report->objects_stay[0] != '\0')}, {"kept", json_count(report->kept_count)},
                 {"referred", json_count(report->referred_count)}, {"expiredArtifacts", json_count(expired->file_count)},
                 {"expiredBytes", json_count(expired->file_bytes)});
        bool ok = json_ok(&json);
        if (!ok) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
        return EXIT_OK;
    }
    if (expired->file_count || !runs) print_expired(cli, expired, dry);
    if (!runs) return EXIT_OK;
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&out, "%s %llu run%s, %llu events: ", dry ? "would remove" : "removed",
               (unsigned long long)report->run_count, report->run_count == 1 ? "" : "s",
               (unsigned long long)report->event_count);
    add_bytes(&out, report->byte_count);
    buf_text(&out, " of logs, ");
    add_bytes(&out, report->file_bytes);
    buf_printf(&out, " in %llu files, ", (unsigned long long)report->file_count);
    add_bytes(&out, report->blob_bytes);
    buf_text(&out, " of blobs");
    if (report->object_count) {
        buf_text(&out, ", ");
        add_bytes(&out, report->object_bytes);
        buf_printf(&out, " in %llu object%s elsewhere", (unsigned long long)report->object_count,
                   report->object_count == 1 ? "" : "s");
    }
    buf_printf(&out, "; %llu run%s", (unsigned long long)report->kept_count,
               report->kept_count == 1 ? " stays" : "s stay");
    if (report->referred_count)
        buf_printf(&out, ", %llu because an unfinished run was made from %s",
                   (unsigned long long)report->referred_count, report->referred_count == 1 ? "it" : "them");
    buf_byte(&out, '\n');
    cli_print(cli, &out);
    if (report->blobs_unsure) cli_note(cli, "blobs stay: a run is damaged, and what it refers to is not known");
    if (report->blobs_locked) cli_note(cli, "blobs stay while another process runs something in this store");
    if (report->objects_stay[0]) cli_note(cli, "results elsewhere stay: %s", report->objects_stay);
    return EXIT_OK;
}

// On a terminal a person is asked. Elsewhere what would leave no ended run behind wants --yes; all else is a clock's daily work.
static int agree(struct session *session, const struct gc_options *options)
{
    struct cli *cli = session->cli;
    struct gc_report report;
    struct error err = {0};
    struct gc_options look = *options;
    char answer[8] = "";
    bool person = isatty(STDIN_FILENO) && cli->io.err.tty;
    bool all = options->keep_last == 0 && options->before_ms > options->now_ms - MINUTE_MS;
    look.dry = true;
    if (options->dry || args_has(&cli->args, FLAG_YES) || (!person && !all)) return EXIT_OK;
    if (archive_gc(session->store, &look, &cli->io.arena, &report, &err)) return cli_error(cli, &err);
    if (report.run_count == 0) return EXIT_OK;
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&out, "this removes %llu run%s for good, with logs and artifacts; %llu stay%s%s", (unsigned long long)report.run_count,
               report.run_count == 1 ? "" : "s", (unsigned long long)report.kept_count, report.kept_count == 1 ? "s" : "",
               person ? ". Go on? [y/N] " : "\n");
    cli_talk(cli, &out);
    if (person && fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y')) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, person ? "nothing was removed" : "nothing was removed: what keeps no run wants --yes");
    return cli_hint(cli, "--dry-run shows what goes, --yes removes it without asking");
}

// Runs that go take their files with them; of those that stay, the artifacts go whose time is over.
static int collect(struct session *session, const struct gc_options *options, bool runs)
{
    struct cli *cli = session->cli;
    struct gc_report report = {0};
    struct expiry how = {.tenant = options->tenant, .now_ms = options->now_ms, .dry = options->dry};
    struct expiry_report expired = {0};
    struct error err = {0};
    if (runs && archive_gc(session->store, options, &cli->io.arena, &report, &err)) return cli_error(cli, &err);
    if (archive_expire(session->store, &how, &expired, &err)) return cli_error(cli, &err);
    int code = report_gc(cli, &report, &expired, options->dry, runs);
    if (code) return code;
    return args_has(&cli->args, FLAG_CHECK) && (report.run_count || expired.file_count) ? EXIT_DIFFERENCE : EXIT_OK;
}

int command_store_gc(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    int64_t last = 0, before = 0;
    uint32_t mask = 0;
    bool dry = args_has(&cli->args, FLAG_DRY_RUN) || args_has(&cli->args, FLAG_CHECK);
    bool runs = args_has(&cli->args, FLAG_KEEP) || args_has(&cli->args, FLAG_KEEP_LAST);
    if (!runs && !args_has(&cli->args, FLAG_EXPIRED)) {
        cli_fail(cli, EXIT_USAGE, "say what to keep: --keep AGE, --keep-last N, or both; --expired: only artifacts whose time is over");
        return cli_next(cli, "store gc --keep 30d --dry-run");
    }
    if (!args_int(&cli->args, FLAG_KEEP_LAST, 0, INT32_MAX, 0, &cli->io.arena, &last)) return cli_usage(cli);
    if (!time_flag(cli, FLAG_KEEP, &before) || !read_statuses(cli, &mask)) return EXIT_USAGE;
    int code = session_open(&session, cli, dry ? STORE_READ : STORE_WRITE);
    if (!code && !session.store) code = cli_fail(cli, EXIT_NOT_FOUND, "there is no store at %s", session.url);
    const char *why = cli_format(cli, "store gc%s%s%s%s", before ? " --keep " : "",
                                 before ? args_text(&cli->args, FLAG_KEEP, "").ptr : "", last ? " --keep-last " : "",
                                 last ? args_text(&cli->args, FLAG_KEEP_LAST, "").ptr : "");
    struct gc_options options = {.tenant = args_has(&cli->args, FLAG_TENANT) ? session.tenant : STR(""),
                                 .before_ms = before ? before : INT64_MAX,
                                 .status_mask = mask,
                                 .keep_last = (size_t)last,
                                 .dry = dry,
                                 .now_ms = cli->io.now_ms,
                                 .reason = args_text(&cli->args, FLAG_REASON, why)};
    if (!code && runs) code = agree(&session, &options);
    if (!code) code = collect(&session, &options, runs);
    return code;
}
