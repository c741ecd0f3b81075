// A run lived again from its log.
#include "archive/archive.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/session.h"
#include "term/text.h"

static bool report_json(struct cli *cli, struct str run, const struct replay_report *report, struct json *out)
{
    struct json difference = json_null();
    if (report->differs) {
        difference = JSON_OF(&cli->io.arena, {"seq", json_count(report->seq)},
                             {"recorded", json_word(report->recorded)}, {"decided", json_word(report->decided)});
        if (!json_ok(&difference)) return false;
    }
    *out = JSON_OF(&cli->io.arena, {"runId", json_string(run)}, {"events", json_count(report->event_count)},
                   {"facts", json_count(report->fact_count)}, {"decided", json_count(report->decided_count)},
                   {"unasked", json_count(report->unasked_count)}, {"same", json_bool(!report->differs)}, {"difference", difference},
                   {"stateSame", json_bool(!report->state_differs)},
                   {"state", report->state_differs ? json_word(report->state) : json_null()});
    return json_ok(out);
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
    } else {
        buf_printf(&out, ": %llu events, %llu facts; all %llu moments came out as recorded",
                   (unsigned long long)report->event_count, (unsigned long long)report->fact_count,
                   (unsigned long long)report->decided_count);
        if (report->unasked_count > 0)
            buf_printf(&out, "; %llu outcomes are taken as recorded, because their results are not kept",
                       (unsigned long long)report->unasked_count);
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
    struct session session SCOPED(session_close) = {0};
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
    return code;
}
