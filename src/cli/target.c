#include "cli/session.h"
#include "base/civil.h"
#include "contract/profile.h"
#include "reading/reading.h"

enum { PREFIX_MIN = 4, CANDIDATE_COUNT = 5 };

// A run that is not there may have been removed on purpose: its tombstone says so.
static bool tell_tombstone(struct session *session, struct str text)
{
    struct cli *cli = session->cli;
    struct tombstones removed;
    struct error err = {0};
    if (!session->store || session->remote || store_tombstones(session->store, &cli->io.arena, &removed, &err)) return false;
    for (size_t i = removed.count; i > 0; i--) {
        const struct tombstone *one = &removed.items[i - 1];
        char time[CIVIL_SIZE], hex[SHA256_HEX + 1];
        bool same = str_eq(one->run, text) || (text.len >= PREFIX_MIN && str_starts(one->run, text));
        if (!same || !str_eq(one->tenant, session->tenant)) continue;
        civil_format(one->removed_ms, time);
        digest_hex(&one->head, hex);
        cli_fail(cli, EXIT_NOT_FOUND, "run %.*s was removed on %s (%.*s); it had %llu events, its head was %s",
                 STR_ARG(one->run), time, STR_ARG(one->reason), (unsigned long long)one->last_seq, hex);
        return true;
    }
    return false;
}

static int not_found(struct session *session, struct str text)
{
    struct cli *cli = session->cli;
    if (tell_tombstone(session, text)) return EXIT_NOT_FOUND;
    cli_fail(cli, EXIT_NOT_FOUND, "there is no run %.*s in %s", STR_ARG(text), session->url);
    if (text.len < PREFIX_MIN) cli_hint(cli, "of an id at least the first %d characters are needed", PREFIX_MIN);
    cli_next(cli, "ls");
    return EXIT_NOT_FOUND;
}

static int find_newest(struct session *session, struct str text, struct run_filter filter, struct run_head *out)
{
    struct error err = {0};
    struct run_heads heads;
    filter.tenant = session->tenant;
    filter.roots = true;
    filter.limit = 1;
    if (store_list(session->store, &filter, &session->cli->io.arena, &heads, &err))
        return cli_error(session->cli, &err);
    if (heads.count == 0) return not_found(session, text);
    *out = heads.items[0];
    return EXIT_OK;
}

static int find_prefix(struct session *session, struct str text, struct run_head *out)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct run_heads heads;
    struct run_filter filter = {.tenant = session->tenant, .run_prefix = text, .limit = CANDIDATE_COUNT, .roots = true};
    if (text.len < PREFIX_MIN) return not_found(session, text);
    if (store_list(session->store, &filter, &cli->io.arena, &heads, &err)) return cli_error(cli, &err);
    filter.roots = false; // ids of child runs begin with their parent's: they are meant only when no parent is
    if (heads.count == 0 && store_list(session->store, &filter, &cli->io.arena, &heads, &err))
        return cli_error(cli, &err);
    if (heads.count == 0) return not_found(session, text);
    if (heads.count > 1) {
        cli_fail(cli, EXIT_USAGE, "more than one run begins with %.*s", STR_ARG(text));
        for (size_t i = 0; i < heads.count; i++)
            cli_hint(cli, "%.*s  %s", STR_ARG(heads.items[i].ids.run), run_status_name(heads.items[i].summary.status));
        return EXIT_USAGE;
    }
    *out = heads.items[0];
    return EXIT_OK;
}

static int find_run(struct session *session, struct str run, struct run_head *out)
{
    struct error err = {0};
    struct str plan = STR("plan:");
    if (run.len == 0) {
        cli_fail(session->cli, EXIT_USAGE, "a target begins with a run, and there is none");
        return cli_hint(session->cli, "RUN/STEP, @last/STEP; see `cairn help targets`");
    }
    if (!session->store) return not_found(session, run);
    if (str_is(run, "@last")) return find_newest(session, run, (struct run_filter){0}, out);
    if (str_is(run, "@last-failed"))
        return find_newest(session, run, (struct run_filter){.status_mask = 1u << RUN_STATUS_FAILED}, out);
    if (run.len > 0 && run.ptr[0] == '@') {
        cli_fail(session->cli, EXIT_USAGE, "%.*s is not a target", STR_ARG(run));
        return cli_hint(session->cli, "@last, @last-failed, an id or its first characters; see `cairn help targets`");
    }
    enum code rc = store_head(session->store, session->tenant, run, &session->cli->io.arena, out, &err);
    if (rc == E_NOT_FOUND && str_starts(run, plan))
        return find_newest(session, run, (struct run_filter){.plan = str_slice(run, plan.len, run.len)}, out);
    if (rc == E_NOT_FOUND) return find_prefix(session, run, out);
    return rc ? cli_error(session->cli, &err) : EXIT_OK;
}

// Cuts MARK and the number behind it from the end of *text. False: there is something behind MARK that is no number.
static bool cut_number(struct str *text, char mark, uint64_t *out, bool *found)
{
    size_t at = text->len;
    uint64_t number = 0;
    *found = false;
    while (at > 0 && text->ptr[at - 1] != mark && text->ptr[at - 1] != '/') at--;
    if (at < 2 || text->ptr[at - 1] != mark) return true; // none, or an '@' in front: @last
    if (at == text->len || text->len - at > 18) return false;
    for (size_t i = at; i < text->len; i++) {
        if (text->ptr[i] < '0' || text->ptr[i] > '9') return false;
        number = number * 10 + (uint64_t)(text->ptr[i] - '0');
    }
    *out = number;
    *found = true;
    text->len = at - 1;
    return true;
}

static int bad_part(struct session *session, struct str text, const char *what, const char *hint)
{
    cli_fail(session->cli, EXIT_USAGE, "%.*s: %s", STR_ARG(text), what);
    return cli_hint(session->cli, "%s; see `cairn help targets`", hint);
}

// An EngineRunRef is of a whole run.
static int find_ref(struct session *session, struct str text, struct run_head *out)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct str run;
    if (!session->store) return not_found(session, text);
    enum code rc = reading_resolve(session->store, session->tenant, text, &cli->io.arena, &run, &err);
    if (!rc) rc = store_head(session->store, session->tenant, run, &cli->io.arena, out, &err);
    if (rc == E_INVALID) return cli_fail(cli, EXIT_USAGE, "%s", err.message);
    if (rc == E_NOT_FOUND) return not_found(session, text);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int target_find(struct session *session, struct str text, unsigned allowed, struct target *out)
{
    struct str rest = text;
    uint64_t attempt = 0;
    bool has_attempt;
    *out = (struct target){.step = STR(""), .at = TARGET_NOW};
    if (run_ref_is(text)) return find_ref(session, text, &out->head);
    if (!cut_number(&rest, '@', &out->at, &out->has_at))
        return bad_part(session, text, "after @ comes the number of an event",
                        "RUN@12 is the run right after event 12");
    struct str run = str_cut(rest, '/', &out->step);
    if (!cut_number(&out->step, '#', &attempt, &has_attempt) || (has_attempt && (attempt < 1 || attempt > UINT32_MAX)))
        return bad_part(session, text, "after # comes the number of an attempt", "RUN/STEP#2 is its second attempt");
    out->attempt = (uint32_t)attempt;
    if (out->step.len > 0 && !(allowed & TARGET_STEP))
        return bad_part(session, text, "this command takes a run, not a step",
                        cli_format(session->cli, "leave out /%.*s", STR_ARG(out->step)));
    if (has_attempt && !(allowed & TARGET_ATTEMPT))
        return bad_part(session, text, "this command takes no attempt", "leave out the # and its number");
    if (out->has_at && !(allowed & TARGET_MOMENT))
        return bad_part(session, text, "this command acts on a run as it is now", "leave out the @ and its number");
    int code = find_run(session, run, &out->head);
    if (!code && out->has_at && out->at > out->head.last_seq)
        return bad_part(session, text,
                        cli_format(session->cli, "the log ends at event %llu", (unsigned long long)out->head.last_seq),
                        "give a number up to that");
    return code;
}
