// Whether the Temporal server that runs are to be workflows of is there, and is what the host needs.
#include "cli/doctor.h"
#include "cli/serve_config.h"
#include "temporal/temporal.h"

enum { CALL_MS = 3000, DAY_S = 86400 };

struct visit {
    struct doctor *d;
    struct temporal *temporal;
    struct str address, namespace;
};

static enum code ask(struct visit *v, const char *method, const struct proto_message *in, const void *request,
                     const struct proto_message *out, void *answer, struct error *err)
{
    struct temporal_call call = {.method = method,
                                 .in = in,
                                 .request = request,
                                 .out = out,
                                 .answer = answer,
                                 .timeout_ms = CALL_MS,
                                 .retry = GRPC_ONCE};
    return temporal_ask(v->temporal, &call, &v->d->cli->io.arena, NULL, err);
}

static bool check_answers(struct visit *v)
{
    struct temporal_nothing nothing = {0};
    struct temporal_system_info info;
    struct error err = {0};
    enum code rc = ask(v, TEMPORAL_METHOD("GetSystemInfo"), &temporal_nothing, &nothing, &temporal_system_info, &info, &err);
    if (rc)
        doctor_problem(v->d,
                       rc == E_DENIED ? "serve.temporal: tls and apiKeyFile"
                                      : "is the server running, and is serve.temporal.address its frontend?",
                       "Temporal at %.*s: %s", STR_ARG(v->address), err.message);
    else if (v->d->cli->io.verbose > 0)
        cli_note(v->d->cli, "temporal: server %.*s at %.*s", STR_ARG(info.server_version), STR_ARG(v->address));
    return rc == OK;
}

static void check_namespace(struct visit *v)
{
    struct temporal_describe_namespace request = {.namespace = v->namespace};
    struct temporal_namespace answer;
    struct error err = {0};
    enum code rc = ask(v, TEMPORAL_METHOD("DescribeNamespace"), &temporal_describe_namespace, &request, &temporal_namespace, &answer, &err);
    if (rc) {
        doctor_problem(v->d, "temporal operator namespace create -n NAME; serve.temporal.namespace names it", "namespace %.*s: %s",
                       STR_ARG(v->namespace), err.message);
        return;
    }
    int64_t kept = answer.config ? temporal_duration_ms(answer.config->retention) / 1000 : 0;
    if (kept > 0 && kept < DAY_S)
        doctor_problem(v->d, "temporal operator namespace update --retention 72h", "namespace %.*s forgets workflows after %lld s",
                       STR_ARG(v->namespace), (long long)kept);
    int64_t most = answer.info && answer.info->limits ? answer.info->limits->blob_size_error : 0;
    if (most > 0 && most < TEMPORAL_VALUE_MAX)
        doctor_problem(v->d, "limit.blobSize.error of the server",
                       "namespace %.*s takes values of %lld bytes at most, and the host sends up to %d", STR_ARG(v->namespace),
                       (long long)most, TEMPORAL_VALUE_MAX);
}

void check_temporal(struct doctor *d)
{
    struct serve_config config;
    struct error err = {0};
    if (!serve_config_read(d->cli, &config) || !config.settings.temporal) return; // runs are not workflows
    struct visit v = {.d = d, .address = config.settings.temporal->address};
    if (temporal_open(config.settings.temporal, &v.temporal, &err)) {
        doctor_problem(d, "docs/temporal.md", "serve.temporal: %s", err.message);
        return;
    }
    v.namespace = temporal_settings_of(v.temporal)->namespace;
    if (check_answers(&v)) check_namespace(&v);
    temporal_close(v.temporal);
}
