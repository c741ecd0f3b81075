#include "cli/follow.h"

#include <time.h>

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 250 };

void follow_init(struct follow *follow, struct session *session)
{
    *follow = (struct follow){.session = session, .pause_ms = PAUSE_MIN_MS};
}

void follow_sleep(struct follow *follow, bool moved, int64_t until_mono_ms)
{
    int64_t left = until_mono_ms - os_now().mono_ms;
    follow->pause_ms = moved ? PAUSE_MIN_MS : follow->pause_ms + follow->pause_ms / 4;
    if (follow->pause_ms > PAUSE_MAX_MS) follow->pause_ms = PAUSE_MAX_MS;
    int64_t ms = left < follow->pause_ms ? left : follow->pause_ms;
    if (ms > 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

const char *need_command(struct cli *cli, const struct run_head *head)
{
    struct str run = head->ids.run;
    switch (head_standing(head).need) {
    case NEED_NOTHING:
        return "";
    case NEED_OWNER:
        return cli_command(cli, "recover %.*s", STR_ARG(run));
    case NEED_PERSON:
        break;
    }
    if (head->summary.status == RUN_STATUS_PAUSED) return cli_command(cli, "resume %.*s", STR_ARG(run));
    if (str_is(str_from(head->summary.substatus), "WAITING_APPROVAL"))
        return cli_command(cli, "approve %.*s", STR_ARG(run));
    return cli_command(cli, "get %.*s", STR_ARG(run));
}

enum need follow_need(struct follow *follow, const struct run_head *head)
{
    struct cli *cli = follow->session->cli;
    enum need need = head_standing(head).need;
    if (need == NEED_NOTHING) follow->told = false;
    if (need == NEED_OWNER && follow->orphan_looks++ == 0) return NEED_NOTHING;
    if (need != NEED_OWNER) follow->orphan_looks = 0;
    if (need != NEED_NOTHING && !follow->told) {
        follow->told = true;
        if (need == NEED_OWNER)
            cli_warn(cli, "%.*s: nobody drives it, its process is gone", STR_ARG(head->ids.run));
        else if (head->summary.status == RUN_STATUS_PAUSED)
            cli_note(cli, "%.*s is paused", STR_ARG(head->ids.run));
        else
            cli_note(cli, "%.*s waits for a person (%s)", STR_ARG(head->ids.run), head->summary.substatus);
        cli_note(cli, "  next: %s", need_command(cli, head));
    }
    return need;
}
