// Configuration of queues and limits as JSON: what callers send, and what the notes hold.
#include "service/queue.h"

#include "json/form.h"
#include "json/make.h"

enum { COUNT_MAX = 1000000, DELAY_MAX_MS = 86400000, PRIORITY_MAX = 1000 };

static const char *const policies[] = {"", "REJECT", "QUEUE", "DELAY", NULL};

static const char *policy_name(enum queue_policy policy)
{
    return policies[policy];
}

enum code queue_config_read(const struct json *value, struct queue_config *out, struct error *err)
{
    struct queue_config config = *out;
    int64_t priority = config.priority;
    int policy = (int)config.policy;
    struct form form;
    form_begin(&form, "", value, NULL, err);
    form_choice(&form, "policy", policies, &policy);
    form_count(&form, "maxRunning", 0, COUNT_MAX, &config.max_running);
    form_count(&form, "maxQueued", 0, COUNT_MAX, &config.max_queued);
    form_number(&form, "delayMs", 0, DELAY_MAX_MS, &config.delay_ms);
    form_number(&form, "priority", -PRIORITY_MAX, PRIORITY_MAX, &priority);
    form_flag(&form, "paused", &config.paused);
    config.policy = (enum queue_policy)policy;
    config.priority = (int32_t)priority;
    enum code rc = form_end(&form);
    if (!rc) *out = config;
    return rc;
}

bool queue_config_write(const struct queue_config *config, struct arena *arena, struct json *out)
{
    *out = JSON_OF(arena, {"policy", json_word(policy_name(config->policy))},
                   {"maxRunning", json_int(config->max_running)}, {"maxQueued", json_int(config->max_queued)},
                   {"delayMs", json_int(config->delay_ms)}, {"priority", json_int(config->priority)},
                   {"paused", json_bool(config->paused)});
    return json_ok(out);
}

enum code tenant_limits_read(const struct json *value, struct tenant_limits *out, struct error *err)
{
    struct tenant_limits limits = *out;
    struct form form;
    form_begin(&form, "", value, NULL, err);
    form_count(&form, "runsInFlight", 0, COUNT_MAX, &limits.runs_in_flight);
    form_count(&form, "startsPerSecond", 0, COUNT_MAX, &limits.starts_per_second);
    enum code rc = form_end(&form);
    if (!rc) *out = limits;
    return rc;
}

bool tenant_limits_write(const struct tenant_limits *limits, struct arena *arena, struct json *out)
{
    *out = JSON_OF(arena, {"runsInFlight", json_int(limits->runs_in_flight)},
                   {"startsPerSecond", json_int(limits->starts_per_second)});
    return json_ok(out);
}
