#include "cli/hosting.h"

#include "cli/serve_config.h"
#include "contract/profile.h"
#include "temporal/host.h"

enum { CLOSE_MS = 20000 };

int hosting_target(struct cli *cli, struct str *out)
{
    *out = args_text(&cli->args, FLAG_TARGET, "");
    if (out->len == 0 || provider_parse(*out)) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, "--target %.*s: there is no such adapter", STR_ARG(*out));
    return cli_hint(cli, "cairn, temporal, conductor or mock");
}

void hosting_flags(struct cli *cli, const struct temporal_settings *said, struct temporal_settings *out)
{
    static const enum flag flags[] = {FLAG_TEMPORAL, FLAG_NAMESPACE, FLAG_TASK_QUEUE};
    *out = said ? *said : (struct temporal_settings){.cached_runs = TEMPORAL_CACHED_RUNS};
    struct str *const to[] = {&out->address, &out->namespace, &out->queue};
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++)
        if (args_has(&cli->args, flags[i])) *to[i] = args_text(&cli->args, flags[i], "");
}

int hosting_settings(struct cli *cli, struct temporal_settings *out)
{
    struct serve_config config;
    if (!serve_config_read(cli, &config)) return cli_nomem(cli);
    int code = serve_config_report(cli, &config);
    if (code) return code;
    hosting_flags(cli, config.settings.temporal, out);
    if (out->address.len > 0) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, "--target temporal: no Temporal server is named");
    return cli_hint(cli, "--temporal HOST:PORT, or address in [serve.temporal] of the config files");
}

int hosting_open(struct session *session, struct temporal_host **out)
{
    struct cli *cli = session->cli;
    struct str target;
    struct error err = {0};
    *out = NULL;
    int code = hosting_target(cli, &target);
    bool named = args_has(&cli->args, FLAG_TEMPORAL);
    if (code || (!str_is(target, "temporal") && !named)) return code;
    if (target.len > 0 && !str_is(target, "temporal"))
        return cli_fail(cli, EXIT_USAGE, "--temporal is of --target temporal, not of %.*s", STR_ARG(target));
    if (session_is_memory(session)) {
        cli_fail(cli, EXIT_USAGE, "--target temporal: a store in memory is of this process alone, and the workflow outlives it");
        return cli_hint(cli, "--store sqlite:PATH or files:DIR");
    }
    struct temporal_host_options options = {.store = str_from(session->url), .contract = session->contract};
    code = hosting_settings(cli, &options.settings);
    if (code) return code;
    return temporal_host_open(&options, out, &err) ? cli_error(cli, &err) : EXIT_OK;
}

void hosting_join(struct temporal_host *host, struct engine_options *options)
{
    options->pools = temporal_host_tools(host);
    options->pools_apart = true;
    options->routes.only_pools = true;
    options->adapters.usual = PROVIDER_TEMPORAL;
    options->adapters.space = temporal_host_settings(host)->namespace;
}

int hosting_begin(struct cli *cli, struct temporal_host *host, struct engine *engine, struct str run)
{
    struct error err = {0};
    if (temporal_host_only(host, run, &err) || temporal_host_attach(host, engine, &err)) return cli_error(cli, &err);
    temporal_host_serve(host, 0, true);
    return EXIT_OK;
}

void hosting_end(struct cli *cli, struct temporal_host *host)
{
    if (!temporal_host_settle(host, CLOSE_MS)) cli_note(cli, "Temporal has not heard yet how the run ended: the server does not answer");
    temporal_host_shut(host);
}
