// A run lived again from its log.
#include "archive/archive.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/session.h"
#include "term/text.h"

static bool put(struct cli *cli, struct json *object, const char *key, struct json value)
{
    return json_put(&cli->io.arena, object, str_from(key), value);
}

static bool report_json(struct cli *cli, struct str run, const struct replay_report *report, struct json *out)
{
    struct json difference = json_null();
    if (report->differs) {
        difference = json_object();
        if (!put(cli, &difference, "seq", json_int((int64_t)report->seq)) ||
            !put(cli, &difference, "recorded", json_string(str_from(report->recorded))) ||
            !put(cli, &difference, "decided", json_string(str_from(report->decided))))
            return false;
    }
    *out = json_object();
    return put(cli, out, "runId", json_string(run)) &&
           put(cli, out, "events", json_int((int64_t)report->event_count)) &&
           put(cli, out, "facts", json_int((int64_t)report->fact_count)) &&
           put(cli, out, "decided", json_int((int64_t)report->decided_count)) &&
           put(cli, out, "same", json_bool(!report->differs)) && put(cli, out, "difference", difference) &&
           put(cli, out, "stateSame", json_bool(!report->state_differs)) &&
           put(cli, out, "state", report->state_differs ? json_string(str_from(report->state)) : json_null());
}

static void print_report(struct cli *cli, struct str run, const struct replay_report *report, bool other)
{
    struct buf out;
    const struct term *term = &cli->io.out;
    buf_init(&out, TEXT_MAX);
    enum look look = report->differs ? LOOK_FAILED : LOOK_DONE;
    tone_text(&out, term, look_tone(look), look_glyph(look, term->utf8));
    buf_text(&out, " run ");
    text_safe(&out, run);
    if (report->differs) {
        buf_printf(&out, " event %llu: ", (unsigned long long)report->seq);
        buf_text(&out, other ? "from here on it would go another way\n" : "decided differently\n");
        buf_text(&out, "    recorded  ");
        text_safe(&out, str_from(report->recorded));
        buf_text(&out, "\n    decided   ");
        text_safe(&out, str_from(report->decided));
    } else if (report->folded_only) {
        buf_printf(&out, ": %llu events fold to what the store says; decisions of playbooks are not asked again here",
                   (unsigned long long)report->event_count);
    } else {
        buf_printf(&out, ": %llu events, %llu facts; all %llu moments came out as recorded",
                   (unsigned long long)report->event_count, (unsigned long long)report->fact_count,
                   (unsigned long long)report->decided_count);
    }
    buf_byte(&out, '\n');
    if (report->state_differs) {
        tone_text(&out, term, TONE_BAD, look_glyph(LOOK_FAILED, term->utf8));
        buf_text(&out, " state ");
        text_safe(&out, str_from(report->state));
        buf_byte(&out, '\n');
    }
    cli_print(cli, &out);
    buf_release(&out);
}

static int replay(struct session *session, const struct run_head *head, const struct program *other)
{
    struct cli *cli = session->cli;
    struct replay_report report;
    struct error err = {0};
    struct json json;
    if (archive_replay(session->store, head, other, &report, &err)) return cli_error(cli, &err);
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        if (!report_json(cli, head->ids.run, &report, &json)) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
    } else {
        print_report(cli, head->ids.run, &report, other != NULL);
    }
    return report.differs || report.state_differs ? EXIT_DIFFERENCE : EXIT_OK;
}

int command_log_replay(struct cli *cli)
{
    struct session session;
    struct target target;
    struct document document = {0};
    struct str file = args_text(&cli->args, FLAG_PLAN, "");
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], 0, &target);
    if (!code && file.len) {
        code = document_load(cli, file, &document);
        if (!code && !document.program) {
            document_report(cli, &document);
            code = EXIT_INVALID;
        }
    }
    if (!code) code = replay(&session, &target.head, document.program);
    if (document.program) program_release(document.program);
    session_close(&session);
    return code;
}
