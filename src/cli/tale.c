#include "cli/tale.h"

int tale_load(struct session *session, const struct run_head *head, uint64_t at, struct tale *out)
{
    struct error err = {0};
    enum code rc = reading_explain(session->store, head, at, &session->cli->io.arena, out, &err);
    return rc ? cli_error(session->cli, &err) : EXIT_OK;
}
