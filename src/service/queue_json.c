// Configuration of queues and limits as JSON: what callers send, and what the notes hold.
#include "service/queue.h"

#include "json/make.h"

enum { COUNT_MAX = 1000000, DELAY_MAX_MS = 86400000, PRIORITY_MAX = 1000 };

static const char *const policies[] = {"", "REJECT", "QUEUE", "DELAY"};

static const char *policy_name(enum queue_policy policy)
{
    return policies[policy];
}

static enum code read_policy(const struct json *value, enum queue_policy *out, struct error *err)
{
    if (!value) return OK;
    for (size_t i = POLICY_REJECT; i <= POLICY_DELAY; i++)
        if (str_is(json_text(value), policies[i])) {
            *out = (enum queue_policy)i;
            return OK;
        }
    return error_set(err, E_INVALID, "policy is one of REJECT, QUEUE, DELAY");
}

static enum code read_number(const struct json *object, const char *key, int64_t low, int64_t high, int64_t *out,
                             struct error *err)
{
    const struct json *value = json_key(object, key);
    if (!value) return OK;
    int64_t number = json_integer(value, INT64_MIN);
    if (number < low || number > high)
        return error_set(err, E_INVALID, "%s must be a whole number from %lld to %lld", key, (long long)low,
                         (long long)high);
    *out = number;
    return OK;
}

static enum code only_known(const struct json *object, const char *const *names, struct error *err)
{
    if (!json_is(object, JSON_OBJECT)) return error_set(err, E_INVALID, "an object is needed");
    for (uint32_t i = 0; i < object->count; i++) {
        struct str key = object->members[i].key;
        bool known = false;
        for (size_t k = 0; names[k]; k++) known = known || str_is(key, names[k]);
        if (!known) return error_set(err, E_INVALID, "%.*s is not known here", STR_ARG(key));
    }
    return OK;
}

enum code queue_config_read(const struct json *value, struct queue_config *out, struct error *err)
{
    static const char *const names[] = {"policy", "maxRunning", "maxQueued", "delayMs", "priority", "paused", NULL};
    struct queue_config config = *out;
    int64_t running = config.max_running, queued = config.max_queued, priority = config.priority;
    enum code rc = only_known(value, names, err);
    if (!rc) rc = read_policy(json_key(value, "policy"), &config.policy, err);
    if (!rc) rc = read_number(value, "maxRunning", 0, COUNT_MAX, &running, err);
    if (!rc) rc = read_number(value, "maxQueued", 0, COUNT_MAX, &queued, err);
    if (!rc) rc = read_number(value, "delayMs", 0, DELAY_MAX_MS, &config.delay_ms, err);
    if (!rc) rc = read_number(value, "priority", -PRIORITY_MAX, PRIORITY_MAX, &priority, err);
    const struct json *paused = rc ? NULL : json_key(value, "paused");
    if (paused && paused->type != JSON_BOOL) rc = error_set(err, E_INVALID, "paused must be true or false");
    if (rc) return rc;
    if (paused) config.paused = paused->boolean;
    config.max_running = (uint32_t)running;
    config.max_queued = (uint32_t)queued;
    config.priority = (int32_t)priority;
    *out = config;
    return OK;
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
    static const char *const names[] = {"runsInFlight", "startsPerSecond", NULL};
    int64_t runs = out->runs_in_flight, starts = out->starts_per_second;
    enum code rc = only_known(value, names, err);
    if (!rc) rc = read_number(value, "runsInFlight", 0, COUNT_MAX, &runs, err);
    if (!rc) rc = read_number(value, "startsPerSecond", 0, COUNT_MAX, &starts, err);
    if (rc) return rc;
    *out = (struct tenant_limits){(uint32_t)runs, (uint32_t)starts};
    return OK;
}

bool tenant_limits_write(const struct tenant_limits *limits, struct arena *arena, struct json *out)
{
    *out = JSON_OF(arena, {"runsInFlight", json_int(limits->runs_in_flight)},
                   {"startsPerSecond", json_int(limits->starts_per_second)});
    return json_ok(out);
}
