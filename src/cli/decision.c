#include "cli/decision.h"

#include <time.h>

enum { WAIT_MS = 10000, POLL_MS = 25, CAUSED_MAX = 64 };

// The last event after the decision that names the signal.
static enum code find_caused(struct session *session, const struct run_head *head, const struct record *record,
                             struct str signal_id, uint64_t *seq, struct error *err)
{
    struct records events;
    struct arena *arena = &session->cli->io.arena;
    uint64_t after = record->seq > 0 ? record->seq - 1 : 0;
    struct record_range range = {.tenant = head->ids.tenant, .run = head->ids.run, .after = after, .limit = CAUSED_MAX};
    enum code rc = store_read(session->store, &range, arena, &events, err);
    for (size_t i = 0; !rc && i < events.count; i++) {
        struct moment moment;
        struct seal seal;
        rc = contract_decode(head->vocabulary, events.items[i].bytes, arena, &moment, &seal, NULL, err);
        if (!rc && str_eq(moment.signal_id, signal_id)) *seq = events.items[i].seq;
    }
    return rc;
}

static enum code read_decision(struct session *session, const struct run_head *head, const struct record *record,
                               struct signal_decision *out, struct error *err)
{
    enum code rc = json_parse(record->bytes, &json_limits_record, &session->cli->io.arena, &out->record, err);
    if (rc) return rc;
    out->accepted = str_is(json_text(json_key(&out->record, "decision")), "ACCEPTED");
    out->error_code = json_text(json_at(&out->record, STR("engineResult.errorCode")));
    out->error_message = json_text(json_key(&out->record, "reason"));
    out->new_run = json_text(json_at(&out->record, STR("engineResult.newRunId")));
    if (head->terminal || out->seq > 0) return OK;
    return find_caused(session, head, record, record->signal_id, &out->seq, err);
}

enum code decision_find(struct session *session, const struct run_head *head, struct str signal_id,
                        struct signal_decision *out, struct error *err)
{
    struct arena *arena = &session->cli->io.arena;
    for (uint64_t after = 0;;) {
        struct records page;
        struct record_range range = {
            .tenant = head->ids.tenant, .run = head->ids.run, .ledger = true, .after = after, .limit = 256};
        enum code rc = store_read(session->store, &range, arena, &page, err);
        if (rc) return rc;
        if (page.count == 0) return E_NOT_FOUND;
        for (size_t i = 0; i < page.count; i++) {
            after = page.items[i].ledger_seq;
            if (str_eq(page.items[i].signal_id, signal_id) && str_is(page.items[i].type, "decision"))
                return read_decision(session, head, &page.items[i], out, err);
        }
    }
}

// The same, looking only at what came after `head` was read.
static enum code find_new(struct session *session, const struct run_head *head, struct str signal_id,
                          struct signal_decision *out, struct error *err)
{
    struct records page;
    struct record_range range = {
        .tenant = head->ids.tenant, .run = head->ids.run, .ledger = true, .after = head->last_ledger_seq, .limit = 256};
    enum code rc = store_read(session->store, &range, &session->cli->io.arena, &page, err);
    for (size_t i = 0; !rc && i < page.count; i++)
        if (str_eq(page.items[i].signal_id, signal_id) && str_is(page.items[i].type, "decision"))
            return read_decision(session, head, &page.items[i], out, err);
    return rc ? rc : E_NOT_FOUND;
}

enum code decision_post(struct session *session, const struct run_head *head, const struct signal *signal,
                        struct signal_decision *out, struct error *err)
{
    struct arena *arena = &session->cli->io.arena;
    struct str bytes;
    enum code rc = signal_encode(signal, arena, &bytes, err);
    if (!rc) rc = decision_find(session, head, signal->id, out, err);
    out->again = !rc;
    if (rc == E_NOT_FOUND)
        rc = store_post(session->store, head->ids.tenant, head->ids.run, signal->id, bytes, err);
    else
        return rc;
    int64_t until = os_now().mono_ms + WAIT_MS;
    while (!rc && os_now().mono_ms < until) {
        struct run_head now;
        rc = find_new(session, head, signal->id, out, err);
        if (rc != E_NOT_FOUND) return rc;
        rc = store_head(session->store, head->ids.tenant, head->ids.run, arena, &now, err);
        if (!rc && !now.owned && head->owned && !store_is_remote(session->store)) return E_CONFLICT;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
    }
    return rc ? rc : E_TIMEOUT;
}

static void advise(struct session *session, const struct run_head *head, const struct signal *signal, struct str code)
{
    struct cli *cli = session->cli;
    struct str run = head->ids.run;
    if (str_is(code, "RUN_TERMINAL") && head->summary.status != RUN_STATUS_COMPLETED)
        cli_next(cli, "retry %.*s", STR_ARG(run));
    else if (str_is(code, "RUN_NOT_TERMINAL"))
        cli_hint(cli, "to run one failed step again: %s", cli_command(cli, "retry %.*s --step STEP", STR_ARG(run)));
    else if (str_is(code, "RUN_IS_PAUSED"))
        cli_next(cli, "resume %.*s", STR_ARG(run));
    else if (str_is(code, "STEP_REQUIRED") || str_is(code, "STEP_NOT_FOUND") || signal->step.len > 0)
        cli_next(cli, "get %.*s", STR_ARG(run));
}

static int refuse(struct session *session, const struct run_head *head, const struct signal *signal,
                  const struct signal_decision *decision)
{
    enum exit_code code = EXIT_CONFLICT;
    if (str_starts(decision->error_code, STR("AUTHZ_")))
        code = EXIT_DENIED;
    else if (str_is(decision->error_code, "STEP_NOT_FOUND") || str_is(decision->error_code, "RUN_NOT_FOUND"))
        code = EXIT_NOT_FOUND;
    cli_fail(session->cli, code, "%s of run %.*s was rejected: %.*s: %.*s", signal_name(signal->type),
             STR_ARG(head->ids.run), STR_ARG(decision->error_code), STR_ARG(decision->error_message));
    advise(session, head, signal, decision->error_code);
    return (int)code;
}

static bool complete_record(struct cli *cli, const struct run_head *head, const struct signal_decision *decision,
                            struct json *out)
{
    *out = decision->record;
    JSON_ADD(&cli->io.arena, out, {"runId", json_string(head->ids.run)}, {"seq", json_nonzero((int64_t)decision->seq)},
             {"newRunId", json_some(decision->new_run)});
    return json_ok(out);
}

// False: the id was that of another signal, and this one was not decided at all.
static bool told_before(struct cli *cli, const struct run_head *head, const struct signal *signal,
                        const struct signal_decision *decision)
{
    struct str other = json_text(json_key(&decision->record, "signalType"));
    if (engine_same_signal(signal, &decision->record)) {
        cli_note(cli, "the signal %.*s had been decided before", STR_ARG(signal->id));
        return true;
    }
    cli_fail(cli, EXIT_CONFLICT, "SIGNAL_DUPLICATE: --id %.*s was used for another signal of run %.*s (%.*s)",
             STR_ARG(signal->id), STR_ARG(head->ids.run), STR_ARG(other));
    cli_hint(cli, "one id is one signal; without --id each one gets its own");
    return false;
}

int decision_print(struct session *session, const struct run_head *head, const struct signal *signal,
                   const struct signal_decision *decision)
{
    struct cli *cli = session->cli;
    if (decision->again && !told_before(cli, head, signal, decision)) return EXIT_CONFLICT;
    enum format format = format_of(cli, FORMAT_TEXT);
    struct json record;
    struct buf out SCOPED(buf_release) = buf_of(1 << 16);
    if (format == FORMAT_JSON || format == FORMAT_YAML) {
        if (!complete_record(cli, head, decision, &record)) return cli_nomem(cli);
        print_json(&cli->io, format, &record);
    } else if (format == FORMAT_NAME) {
        struct str name = decision->new_run.len ? decision->new_run : signal->id;
        buf_printf(&out, "%.*s\n", STR_ARG(name));
    } else if (decision->accepted && !cli->io.quiet) {
        tone_text(&out, &cli->io.out, TONE_GOOD, look_glyph(LOOK_DONE, cli->io.out.utf8));
        buf_printf(&out, " %s accepted: run %.*s%s%.*s", signal_name(signal->type), STR_ARG(head->ids.run),
                   signal->step.len ? "/" : "", STR_ARG(signal->step));
        if (decision->seq > 0) buf_printf(&out, ", event %llu", (unsigned long long)decision->seq);
        if (decision->new_run.len > 0) buf_printf(&out, ", new run %.*s", STR_ARG(decision->new_run));
        buf_byte(&out, '\n');
    }
    cli_print(cli, &out);
    return decision->accepted ? EXIT_OK : refuse(session, head, signal, decision);
}
