#include "cli/session.h"

enum { PREFIX_MIN = 4, CANDIDATE_COUNT = 5 };

static int not_found(struct session *session, struct str text)
{
    struct cli *cli = session->cli;
    cli_fail(cli, EXIT_NOT_FOUND, "there is no run %.*s in %s", STR_ARG(text), session->url);
    if (text.len < PREFIX_MIN)
        cli_hint(cli, "the first characters of an id are looked for when there are %d", PREFIX_MIN);
    cli_next(cli, "ls");
    return EXIT_NOT_FOUND;
}

static int find_newest(struct session *session, struct str text, uint32_t status_mask, struct run_head *out)
{
    struct error err = {0};
    struct run_heads heads;
    struct run_filter filter = {.tenant = session->tenant, .status_mask = status_mask, .roots = true, .limit = 1};
    if (store_list(session->store, &filter, &session->cli->arena, &heads, &err)) return cli_error(session->cli, &err);
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
    if (store_list(session->store, &filter, &cli->arena, &heads, &err)) return cli_error(cli, &err);
    filter.roots = false; // ids of child runs begin with their parent's: they are meant only when no parent is
    if (heads.count == 0 && store_list(session->store, &filter, &cli->arena, &heads, &err)) return cli_error(cli, &err);
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

int target_find(struct session *session, struct str text, struct target *out)
{
    struct error err = {0};
    *out = (struct target){.step = STR("")};
    struct str run = str_cut(text, '/', &out->step);
    if (!session->store) return not_found(session, run);
    if (str_is(run, "@last")) return find_newest(session, run, 0, &out->head);
    if (str_is(run, "@last-failed")) return find_newest(session, run, 1u << RUN_STATUS_FAILED, &out->head);
    if (run.len > 0 && run.ptr[0] == '@') {
        cli_fail(session->cli, EXIT_USAGE, "%.*s is not a target", STR_ARG(run));
        cli_hint(session->cli, "@last, @last-failed, an id or its first characters; see `cairn help targets`");
        return EXIT_USAGE;
    }
    enum code rc = store_head(session->store, session->tenant, run, &session->cli->arena, &out->head, &err);
    if (rc == E_NOT_FOUND) return find_prefix(session, run, &out->head);
    return rc ? cli_error(session->cli, &err) : EXIT_OK;
}
