// Stores as wholes.
#include "archive/archive.h"
#include "cli/bundles.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "term/text.h"

#include <string.h>
#include <unistd.h>

// ---- copy

static void tell_copy(void *context, const struct copy_report *report, uint64_t total)
{
    struct cli *cli = context;
    if (cli->io.quiet || !cli->io.err.tty) return;
    struct buf text SCOPED(buf_release) = buf_of(256);
    unsigned long long done = report->new_count;
    done += report->same_count;
    done += report->extended_count;
    buf_printf(&text, "\r%llu of %llu runs, %llu events \r", done, (unsigned long long)total,
               (unsigned long long)report->event_count);
    cli_talk(cli, &text);
}

static int report_copy(struct cli *cli, const struct copy_report *report, const struct notes_report *notes,
                       const struct verify_report *proof)
{
    struct buf text;
    bool intact = proof->fault_count == 0;
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        struct json faults = json_array();
        struct json out = JSON_OF(&cli->io.arena, {"copied", json_count(report->new_count)},
                                  {"extended", json_count(report->extended_count)},
                                  {"present", json_count(report->same_count)},
                                  {"events", json_count(report->event_count)},
                                  {"blobs", json_count(report->blob_count)}, {"files", json_count(report->file_count)},
                                  {"notes", json_int((int64_t)(notes->put_count + notes->removed_count))},
                                  {"void", json_count(notes->void_count)});
        bool ok = json_ok(&out);
        for (size_t i = 0; ok && i < report->fault_count; i++) {
            struct json fault = json_object();
            ok = json_put(&cli->io.arena, &fault, STR("runId"), json_string(report->faults[i].run)) &&
                 json_put(&cli->io.arena, &fault, STR("what"), json_string(report->faults[i].what)) &&
                 json_push(&cli->io.arena, &faults, fault);
        }
        JSON_ADD(&cli->io.arena, &out, {"leftOut", faults}, {"intact", json_bool(intact)});
        ok = ok && json_ok(&out);
        if (!ok) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &out);
        return EXIT_OK;
    }
    buf_init(&text, TEXT_MAX);
    faults_write(&cli->io.out, &text, proof);
    enum look look = intact && report->fault_count == 0 ? LOOK_DONE : LOOK_FAILED;
    tone_text(&text, &cli->io.out, look_tone(look), look_glyph(look, cli->io.out.utf8));
    buf_printf(&text, " %llu run%s copied", (unsigned long long)report->new_count, report->new_count == 1 ? "" : "s");
    if (report->extended_count)
        buf_printf(&text, ", %llu brought up to date", (unsigned long long)report->extended_count);
    if (report->same_count) buf_printf(&text, ", %llu were there", (unsigned long long)report->same_count);
    if (report->fault_count) buf_printf(&text, ", %zu left out", report->fault_count);
    buf_printf(&text, ": %llu events, %llu blobs, %llu files", (unsigned long long)report->event_count,
               (unsigned long long)report->blob_count, (unsigned long long)report->file_count);
    unsigned long long note_count = notes->put_count + notes->removed_count;
    if (note_count) buf_printf(&text, ", %llu notes", note_count);
    buf_printf(&text, "; the copy is %s\n", intact ? "intact" : "damaged");
    cli_print(cli, &text);
    buf_release(&text);
    return EXIT_OK;
}

// Notes refer to runs, never the other way: of a store that cannot be read as of one moment they are read first, so that nothing they
// speak of is missing. A life begins where the feed ends, when all runs are there.
static enum code copy_all(struct cli *cli, struct store *from, struct store *to, const struct copy_options *options,
                          enum notes_how how, struct copy_report *report, struct notes_report *notes, struct error *err)
{
    int64_t now = os_now().wall_ms;
    enum code rc = store_freeze(from, err);
    if (rc == E_UNSUPPORTED) {
        *err = (struct error){0};
        rc = OK;
    }
    if (!rc && how == NOTES_MIRROR) rc = archive_backup_begin(to, now, err);
    if (!rc && how == NOTES_MIRROR) rc = archive_notes(from, to, how, now, &cli->io.arena, notes, err);
    if (!rc) rc = archive_copy(from, to, options, &cli->io.arena, report, err);
    if (!rc && how && how != NOTES_MIRROR) rc = archive_notes(from, to, how, now, &cli->io.arena, notes, err);
    if (!rc && how == NOTES_MIRROR) rc = archive_backup_end(to, now, err);
    return rc;
}

static int copy_and_verify(struct cli *cli, struct store *from, struct store *to, enum notes_how how)
{
    struct copy_report report;
    struct notes_report notes = {0};
    struct verify_report proof = {0};
    struct error err = {0};
    struct str tenant = args_text(&cli->args, FLAG_TENANT, "");
    struct copy_options options = {.tenant = tenant, .files = true, .extend = true, .tell = tell_copy, .context = cli};
    if (tenant.len) how = 0; // tokens and the audit are not of one tenant alone
    if (copy_all(cli, from, to, &options, how, &report, &notes, &err)) return cli_error(cli, &err);
    if (store_is_restoring(to) && store_restoring(to, false, &err)) return cli_error(cli, &err);
    if (store_verify(to, tenant, STR(""), &cli->io.arena, &proof, &err)) return cli_error(cli, &err);
    for (size_t i = 0; i < report.fault_count; i++) cli_warn(cli, "left out: %.*s", STR_ARG(report.faults[i].what));
    if (notes.void_count)
        cli_note(
            cli,
            "%llu tokens, cursors and keys of the former life are void; the next `cairn serve` writes a first token",
            (unsigned long long)notes.void_count);
    int code = report_copy(cli, &report, &notes, &proof);
    if (code) return code;
    return proof.fault_count ? EXIT_INTEGRITY : report.fault_count ? EXIT_CONFLICT : EXIT_OK;
}

int command_store_copy(struct cli *cli)
{
    struct session from SCOPED(session_close) = {0}, to SCOPED(session_close) = {0};
    const struct str *words = cli->args.words;
    if (str_eq(words[0], words[1])) return cli_fail(cli, EXIT_USAGE, "the two stores are the same");
    int code = session_open_url(&from, cli, words[0].ptr, STORE_READ);
    if (!code) code = session_open_url(&to, cli, words[1].ptr, STORE_WRITE);
    if (!code)
        code = copy_and_verify(cli, from.store, to.store,
                               archive_has_notes(to.store, &cli->io.arena) ? NOTES_DEFINITIONS : NOTES_NEXT_LIFE);
    return code;
}

// ---- backup and restore

// A path is the store that is there; when there is none, one of the kind that the other one has.
static const char *same_kind(struct cli *cli, const struct session *session, struct str word)
{
    static const char *const kinds[] = {"sqlite:", "files:", "bundle:"};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (str_starts(word, str_from(kinds[i]))) return word.ptr;
    bool files = strncmp(session->url, "files:", 6) == 0;
    if (access(word.ptr, F_OK) == 0) files = os_is_dir(word.ptr);
    return cli_format(cli, "%s:%s", files ? "files" : "sqlite", word.ptr);
}

int command_store_backup(struct cli *cli)
{
    struct session from SCOPED(session_close) = {0}, to SCOPED(session_close) = {0};
    int code = session_open(&from, cli, STORE_READ);
    if (!code && !from.store) code = cli_fail(cli, EXIT_NOT_FOUND, "there is no store at %s", from.url);
    if (!code) code = session_open_url(&to, cli, same_kind(cli, &from, cli->args.words[0]), STORE_WRITE);
    if (!code && str_eq(store_url(from.store), store_url(to.store)))
        code = cli_fail(cli, EXIT_USAGE, "the backup would be the store itself");
    if (!code) code = copy_and_verify(cli, from.store, to.store, NOTES_MIRROR);
    return code;
}

static int check_empty(struct session *session)
{
    struct cli *cli = session->cli;
    struct run_heads heads;
    struct error err = {0};
    struct run_filter filter = {.limit = 1};
    if (store_list(session->store, &filter, &cli->io.arena, &heads, &err)) return cli_error(cli, &err);
    if (heads.count == 0 && !archive_has_notes(session->store, &cli->io.arena)) return EXIT_OK;
    cli_fail(cli, EXIT_CONFLICT, "the store %s is not empty", session->url);
    return cli_hint(cli, "`cairn store copy FROM TO` adds runs to a store");
}

int command_store_restore(struct cli *cli)
{
    struct session from SCOPED(session_close) = {0}, to SCOPED(session_close) = {0};
    int code = session_open(&to, cli, STORE_WRITE);
    if (!code && !store_is_restoring(to.store)) code = check_empty(&to);
    if (!code) code = session_open_url(&from, cli, same_kind(cli, &to, cli->args.words[0]), STORE_READ);
    struct error err = {0};
    if (!code && archive_backup_check(from.store, &err)) code = cli_error(cli, &err);
    if (!code && store_restoring(to.store, true, &err)) code = cli_error(cli, &err);
    if (!code) code = copy_and_verify(cli, from.store, to.store, NOTES_NEXT_LIFE);
    return code;
}

// ---- formats

int command_store_migrate(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct store_format format;
    struct error err = {0};
    struct json out = json_object();
    bool check = args_has(&cli->args, FLAG_CHECK);
    int code = session_open(&session, cli, check ? STORE_READ : STORE_WRITE);
    if (!code && !session.store) code = cli_fail(cli, EXIT_NOT_FOUND, "there is no store at %s", session.url);
    if (!code && store_format(session.store, &format, &err)) code = cli_error(cli, &err);
    if (code) return code;
    bool behind = format.have < format.newest;
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        JSON_ADD(&cli->io.arena, &out, {"format", json_int(format.have)}, {"newest", json_int(format.newest)});
        if (!json_ok(&out)) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &out);
    } else {
        cli_note(cli, "format %lld, %s", (long long)format.have,
                 behind ? cli_format(cli, "to be brought to %lld", (long long)format.newest) : "up to date");
    }
    return behind ? EXIT_DIFFERENCE : EXIT_OK;
}
