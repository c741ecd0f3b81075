#include "cli/commands.h"
#include "cli/session.h"
#include "term/text.h"
#include "reading/reading.h"
#include "store/server.h"

// The same object for every verifier.
static int ask(struct session *session, struct json *out)
{
    struct cli *cli = session->cli;
    struct audit_report report = {0};
    struct error err = {0};
    if (session->remote) {
        struct server_call call = {"GET", STR("/v1/audit:verify"), NULL, STR(""), {0}};
        return store_server_call(session->store, &call, &cli->io.arena, out, &err) ? cli_error(cli, &err) : EXIT_OK;
    }
    if (session->store && reading_audit(session->store, session->tenant, &report, &err)) return cli_error(cli, &err);
    return audit_report_json(&report, session->tenant, &cli->io.arena, out) ? EXIT_OK : cli_nomem(cli);
}

static void print_text(struct cli *cli, const struct json *report)
{
    const struct json *fault = json_key(report, "fault");
    struct str hash = json_text(json_key(report, "headHash"));
    int64_t records = json_integer(json_key(report, "records"), 0);
    enum look look = fault ? LOOK_FAILED : LOOK_DONE;
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    tone_text(&out, &cli->io.out, look_tone(look), look_glyph(look, cli->io.out.utf8));
    buf_text(&out, " audit of tenant ");
    text_safe(&out, json_text(json_key(report, "tenantId")));
    buf_printf(&out, ": %lld record%s intact", (long long)records, records == 1 ? "" : "s");
    if (fault)
        buf_printf(&out, ", record %lld: %.*s\n", (long long)json_integer(json_key(fault, "seq"), 0),
                   STR_ARG(json_text(json_key(fault, "what"))));
    else if (records > 0)
        buf_printf(&out, ", the last is %.*s\n", STR_ARG(hash));
    else
        buf_byte(&out, '\n');
    cli_print(cli, &out);
}

int command_audit_verify(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json report;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    code = ask(&session, &report);
    if (!code) {
        if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON)
            print_json(&cli->io, FORMAT_JSON, &report);
        else
            print_text(cli, &report);
        if (json_key(&report, "fault")) code = EXIT_INTEGRITY;
    }
    return code;
}
