#include "base/civil.h"
#include "cli/bundles.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "term/text.h"

bool faults_json(struct cli *cli, const struct verify_report *report, struct json *out)
{
    struct json faults = json_array();
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct verify_fault *fault = &report->faults[i];
        struct json one = JSON_OF(&cli->io.arena, {"runId", json_string(fault->run)}, {"seq", json_count(fault->seq)},
                                  {"ledger", json_bool(fault->ledger)}, {"what", json_string(fault->what)});
        json_append(&cli->io.arena, &faults, one);
        bool ok = json_ok(&faults);
        if (!ok) return false;
    }
    *out = JSON_OF(&cli->io.arena, {"runs", json_count(report->run_count)}, {"events", json_count(report->event_count)},
                   {"intact", json_bool(report->fault_count == 0)}, {"faults", faults},
                   {"redactedEvents", json_count(report->redacted_count)});
    return json_ok(out);
}

void faults_write(const struct term *term, struct buf *out, const struct verify_report *report)
{
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct verify_fault *fault = &report->faults[i];
        tone_text(out, term, TONE_BAD, look_glyph(LOOK_FAILED, term->utf8));
        buf_text(out, " run ");
        text_safe(out, fault->run);
        if (fault->seq > 0)
            buf_printf(out, " %s %llu", fault->ledger ? "ledger entry" : "event", (unsigned long long)fault->seq);
        buf_text(out, ": ");
        text_safe(out, fault->what);
        buf_byte(out, '\n');
    }
}

static void print_text(struct cli *cli, const struct verify_report *report)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    faults_write(&cli->io.out, &out, report);
    enum look look = report->fault_count ? LOOK_FAILED : LOOK_DONE;
    tone_text(&out, &cli->io.out, look_tone(look), look_glyph(look, cli->io.out.utf8));
    buf_printf(&out, " %llu run%s, %llu events: ", (unsigned long long)report->run_count,
               report->run_count == 1 ? "" : "s", (unsigned long long)report->event_count);
    if (report->fault_count)
        buf_printf(&out, "%zu fault%s\n", report->fault_count, report->fault_count == 1 ? "" : "s");
    else if (report->redacted_count)
        buf_printf(&out, "intact by their hashes (values of %llu left out)\n",
                   (unsigned long long)report->redacted_count);
    else
        buf_text(&out, "intact\n");
    cli_print(cli, &out);
}

static int verify(struct session *session, struct str run)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct verify_report report = {0};
    struct json json;
    // --all means all tenants unless one is named.
    struct str tenant = run.len || args_has(&cli->args, FLAG_TENANT) ? session->tenant : STR("");
    if (session->store && store_verify(session->store, tenant, run, &cli->io.arena, &report, &err))
        return cli_error(cli, &err);
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        if (!faults_json(cli, &report, &json)) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
    } else {
        print_text(cli, &report);
    }
    return report.fault_count ? EXIT_INTEGRITY : EXIT_OK;
}

int command_log_verify(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target;
    bool one = cli->args.word_count > 0;
    if (one == args_has(&cli->args, FLAG_ALL)) {
        cli_fail(cli, EXIT_USAGE, one ? "give a run or --all, not both" : "give a run, or --all for every run");
        return cli_next(cli, "log verify --all");
    }
    if (one && bundle_named(cli->args.words[0])) return bundle_verify(cli, cli->args.words[0]);
    if (args_has(&cli->args, FLAG_PUBKEY))
        return cli_fail(cli, EXIT_USAGE, "--pubkey is for bundles; runs in a store are not signed");
    int code = session_open(&session, cli, STORE_READ);
    if (!code && one) code = target_find(&session, cli->args.words[0], 0, &target);
    if (!code) code = verify(&session, one ? target.head.ids.run : STR(""));
    return code;
}
