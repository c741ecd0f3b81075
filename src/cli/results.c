// --results: where large results of playbooks go that want to be elsewhere (bus/objects.h).
#include "cli/session.h"

#include "bus/objects.h"
#include "doc/doc.h"

#include <string.h>

static int read_file(struct cli *cli, struct str file, struct json *out)
{
    struct error err = {0};
    struct str text;
    struct diagnostics diagnostics;
    if (os_read_file(file.ptr, doc_limits_default.size_max, &cli->io.arena, &text, &err))
        return cli_fail(cli, EXIT_NOT_FOUND, "--results: %s", err.message);
    diagnostics_init(&diagnostics, &cli->io.arena);
    enum code rc = doc_tree(text, file, &doc_limits_default, &cli->io.arena, out, &diagnostics);
    if (rc == E_NOMEM) return cli_nomem(cli);
    if (!rc && json_is(out, JSON_OBJECT)) return EXIT_OK;
    int code = cli_fail(cli, EXIT_USAGE, "--results %.*s: it is no JSON or YAML table", STR_ARG(file));
    cli_hint(cli, "docs/format/playbook.md shows what such a file holds");
    return code;
}

int results_open(struct cli *cli, struct keep **out)
{
    struct error err = {0};
    struct str place = args_text(&cli->args, FLAG_RESULTS, "");
    struct json config = json_string(place);
    *out = NULL;
    if (place.len == 0) return EXIT_OK;
    int code = memmem(place.ptr, place.len, "://", 3) ? EXIT_OK : read_file(cli, place, &config);
    if (code) return code;
    if (objects_open(&config, out, &err)) return cli_fail(cli, EXIT_USAGE, "--%s", err.message);
    return EXIT_OK;
}
