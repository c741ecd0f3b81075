#include "cli/browse.h"

#include "fetch/fetch.h"
#include "os/os.h"
#include "term/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024 };

// Nobody waits for the browser: its parent ends at once, and it belongs to init.
static void launch(const char *target)
{
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        if (fork() != 0) _exit(0);
        int nothing = open("/dev/null", O_RDWR);
        setsid();
        for (int fd = 0; nothing >= 0 && fd < 3; fd++) dup2(nothing, fd);
        closefrom(3);
        execlp("xdg-open", "xdg-open", target, (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, NULL, 0) < 0) continue;
}

static bool has_desktop(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

void browse(struct cli *cli, const char *url, struct str ticket, const char *beside)
{
    struct error err = {0};
    const char *address = ticket.len ? cli_format(cli, "%s/#ticket=%.*s", url, STR_ARG(ticket)) : url;
    struct buf line SCOPED(buf_release) = buf_of(8192);
    buf_printf(&line, "%s\n", address);
    cli_print(cli, &line);
    if (!has_desktop()) return;
    if (!ticket.len) {
        launch(url);
        return;
    }
    const char *file = cli_format(cli, "%s.ui.html", beside);
    struct str page = str_from(cli_format(cli, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", address));
    if (os_write_secret(file, page, &err))
        cli_warn(cli, "the browser was not opened: %s", err.message);
    else
        launch(file);
}

int browse_server(struct cli *cli, const char *url, struct str token, struct str ca_file, const char *beside)
{
    struct fetch_link *link = NULL;
    struct fetch_answer answer = {0};
    struct json body = {0};
    struct error err = {0};
    struct fetch_link_options options = {.url = str_from(url), .token = token, .ca_file = ca_file};
    struct fetch_call call = {.method = STR("POST"), .uri = STR("/v1/tickets"), .body_max = ANSWER_MAX};
    enum code rc = fetch_link_open(&options, &link, &err);
    if (!rc) rc = fetch_link_call(link, &call, &cli->io.arena, &answer, &err);
    if (!rc && answer.status == 201) rc = json_parse(answer.body, NULL, &cli->io.arena, &body, &err);
    fetch_link_close(link);
    if (rc == E_IO || rc == E_TIMEOUT || rc == E_UNREACHABLE) return cli_fail(cli, EXIT_UNREACHABLE, "%s", err.message);
    if (rc) return cli_error(cli, &err);
    if (answer.status == 404) return cli_fail(cli, EXIT_UNREACHABLE, "%s has no page: it is an older version", url);
    if (answer.status != 201) return cli_fail(cli, EXIT_DENIED, "%s gives no ticket: it answers %d", url, answer.status);
    browse(cli, url, json_text(json_key(&body, "ticket")), beside);
    return EXIT_OK;
}
