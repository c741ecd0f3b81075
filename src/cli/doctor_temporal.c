// Whether the Temporal server that runs are to be workflows of is there, and is what the host needs.
#include "cli/doctor.h"
#include "cli/serve_config.h"
#include "temporal/temporal.h"


#include <stdlib.h>

enum { CALL_MS = 3000, DAY_S = 86400, HOPS = 40, HOPS_WANTED = 25, HOP_MS = 10000, SKEW_MS = 5000, LEFT_MS = 60000 };
#define PROBE "cairn.doctor.v1"

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

static void check_attributes(struct visit *v)
{
    struct error err = {0};
    if (!temporal_settings_of(v->temporal)->searchable || temporal_attributes_look(v->temporal, &err) == OK) return;
    doctor_problem(v->d, "temporal operator search-attribute create --name tenantId --type Keyword --name planId --type Keyword",
                   "serve.temporal.searchAttributes: %s", err.message);
}

// ---- a workflow that does nothing but move

struct probe {
    struct visit *v;
    struct str id, queue;
    int64_t skew_ms; // skew: of the server's clock, as far as the time that the start took allows to say
};

static enum code probe_start(struct probe *probe, struct error *err)
{
    struct visit *v = probe->v;
    struct temporal_name type = {STR(PROBE)};
    struct temporal_queue queue = {.name = probe->queue, .kind = TEMPORAL_QUEUE_NORMAL};
    struct temporal_duration most = temporal_duration_of(LEFT_MS);
    struct temporal_start request = {.namespace = v->namespace,
                                     .workflow_id = probe->id,
                                     .workflow_type = &type,
                                     .task_queue = &queue,
                                     .execution_timeout = &most,
                                     .identity = temporal_identity(v->temporal),
                                     .request_id = probe->id,
                                     .reuse_policy = TEMPORAL_REUSE_REJECT};
    struct temporal_execution execution = {.workflow_id = probe->id};
    struct temporal_describe look = {.namespace = v->namespace, .execution = &execution};
    struct temporal_described told = {0};
    int64_t before = os_now().wall_ms;
    enum code rc = ask(v, TEMPORAL_METHOD("StartWorkflowExecution"), &temporal_start, &request, NULL, NULL, err);
    int64_t after = os_now().wall_ms;
    if (!rc) rc = ask(v, TEMPORAL_METHOD("DescribeWorkflowExecution"), &temporal_describe, &look, &temporal_described, &told, err);
    if (rc || !told.info) return rc;
    int64_t there = temporal_duration_ms(told.info->start_time);
    probe->skew_ms = there < before ? there - before : there > after ? there - after : 0;
    return OK;
}

// A task is taken and answered, and asks for the next; the last one ends the workflow.
static enum code probe_hop(struct probe *probe, bool last, struct error *err)
{
    struct visit *v = probe->v;
    struct arena arena SCOPED(arena_release) = arena_of(16384, 4 << 20);
    struct temporal_queue queue = {.name = probe->queue, .kind = TEMPORAL_QUEUE_NORMAL};
    struct temporal_poll poll = {.namespace = v->namespace, .task_queue = &queue, .identity = temporal_identity(v->temporal)};
    struct temporal_workflow_task task = {0};
    struct temporal_call call = {.method = TEMPORAL_METHOD("PollWorkflowTaskQueue"),
                                 .in = &temporal_poll,
                                 .request = &poll,
                                 .out = &temporal_workflow_task,
                                 .answer = &task,
                                 .timeout_ms = HOP_MS,
                                 .retry = GRPC_ONCE};
    enum code rc = temporal_ask(v->temporal, &call, &arena, NULL, err);
    if (rc) return rc;
    if (task.task_token.len == 0) return error_set(err, E_TIMEOUT, "a workflow task did not come within %d s", HOP_MS / 1000);
    struct temporal_complete_workflow done = {0};
    struct temporal_command command = {.type = TEMPORAL_COMPLETE_WORKFLOW, .complete = &done};
    struct temporal_respond_workflow answer = {.task_token = task.task_token,
                                               .commands = &command,
                                               .commands_count = last,
                                               .identity = temporal_identity(v->temporal),
                                               .force_new_task = !last,
                                               .namespace = v->namespace};
    return ask(v, TEMPORAL_METHOD("RespondWorkflowTaskCompleted"), &temporal_respond_workflow, &answer, NULL, NULL, err);
}

static void probe_delete(struct probe *probe)
{
    struct temporal_execution execution = {.workflow_id = probe->id};
    struct temporal_describe request = {.namespace = probe->v->namespace, .execution = &execution};
    struct error err = {0};
    (void)!ask(probe->v, TEMPORAL_METHOD("DeleteWorkflowExecution"), &temporal_describe, &request, NULL, NULL, &err); // it ends by itself
}

// How fast the server moves one workflow. Only where this check was asked for by its name: a workflow appears in the namespace meanwhile.
static void check_speed(struct visit *v)
{
    struct arena *arena = &v->d->cli->io.arena;
    char id[UUID_SIZE];
    struct error err = {0};
    entropy_uuid(os_entropy(), id);
    struct str base = temporal_settings_of(v->temporal)->queue;
    struct probe probe = {.v = v,
                          .id = arena_format(arena, "cairn.doctor/%s", id),
                          .queue = arena_format(arena, "%.*s.doctor.%s", STR_ARG(base), id)};
    if (!probe.id.ptr || !probe.queue.ptr) return;
    enum code rc = probe_start(&probe, &err);
    int64_t began = os_now().mono_ms;
    for (int hop = 0; !rc && hop < HOPS; hop++) rc = probe_hop(&probe, hop == HOPS - 1, &err);
    int64_t took = os_now().mono_ms - began;
    if (rc)
        doctor_problem(v->d, "the log of the server says more", "a workflow of namespace %.*s does not move: %s",
                       STR_ARG(v->namespace), err.message);
    int64_t rate = (int64_t)HOPS * 1000 / (took > 0 ? took : 1);
    if (!rc && rate < HOPS_WANTED)
        doctor_problem(v->d,
                       "an idle server that is near 20: history.transferProcessorMaxPollRPS of its dynamic configuration (20 for a "
                       "shard unless it is lifted); else it, or its disk, is busy",
                       "the server moves a workflow %lld times a second: a run does about %lld steps a second, whatever it is given",
                       (long long)rate, (long long)(rate / 2 > 0 ? rate / 2 : 1));
    else if (!rc && v->d->cli->io.verbose > 0)
        cli_note(v->d->cli, "temporal: a workflow moves %lld times a second", (long long)rate);
    if (llabs(probe.skew_ms) > SKEW_MS)
        doctor_problem(v->d, "set the clocks of both machines by NTP", "the clock of the Temporal server is %lld s %s of this machine's",
                       (long long)(llabs(probe.skew_ms) / 1000), probe.skew_ms > 0 ? "ahead" : "behind");
    probe_delete(&probe);
}

void check_temporal(struct doctor *d)
{
    struct serve_config config;
    struct error err = {0};
    size_t before = d->problem_count;
    if (!serve_config_read(d->cli, &config) || !config.settings.temporal) return; // runs are not workflows
    struct visit v = {.d = d, .address = config.settings.temporal->address};
    if (temporal_open(config.settings.temporal, &v.temporal, &err)) {
        doctor_problem(d, "docs/temporal.md", "serve.temporal: %s", err.message);
        return;
    }
    v.namespace = temporal_settings_of(v.temporal)->namespace;
    bool answers = check_answers(&v);
    if (answers) check_namespace(&v);
    if (answers) check_attributes(&v);
    if (answers && d->cli->args.word_count > 0 && d->problem_count == before) check_speed(&v);
    temporal_close(v.temporal);
}
