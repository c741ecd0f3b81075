// What came out of an attempt, as its activity ended: the result, and with it files of the run and what the step wrote.
#include "temporal/inside.h"

#include "remote/remote.h"
#include "temporal/parcel.h"

struct tool_result fault_of(const char *code, struct str message, const char *category, bool retryable)
{
    struct fault fault = {
        .code = str_from(code), .message = message, .category = str_from(category), .retryable = retryable};
    return (struct tool_result){.fault = fault};
}

static struct tool_result completed(const struct ended *ended, struct str json, struct arena *arena)
{
    struct tool_result result = {0};
    struct error err = {0};
    struct json value;
    if (!ended->is_function && remote_result_read(json, arena, &result, &err) == OK) return result;
    if (!ended->is_function || json_parse(json, &json_limits_result, arena, &value, &err))
        return fault_of("INVALID_RESULT", STR("the worker's result cannot be read"), "validation", false);
    return (struct tool_result){.ok = true, .is_json = true, .output = json};
}

// A worker of Cairn puts its whole result into the details; one of an SDK says type and message.
static struct tool_result failed(const struct temporal_event *event, struct str json, struct arena *arena)
{
    const struct temporal_failure *failure = event->activity_failed->failure;
    const struct temporal_application_failure *info = failure ? failure->application : NULL;
    struct tool_result result = {0};
    struct error err = {0};
    if (json.len > 0 && remote_result_read(json, arena, &result, &err) == OK && !result.ok) return result;
    struct str message = failure && failure->message.len > 0 ? failure->message : STR("the activity failed");
    result = fault_of("ACTIVITY_FAILED", message, "business", !info || !info->non_retryable);
    if (info && info->type.len > 0) result.fault.code = info->type;
    return result;
}

static struct tool_result timed_out(const struct ended *ended, const struct temporal_event *event)
{
    const struct temporal_failure *failure = event->activity_timed_out->failure;
    int64_t type = failure && failure->timeout ? failure->timeout->timeout_type : 0;
    if (type == TEMPORAL_TIMEOUT_START_TO_CLOSE && ended->timeout_ms > 0)
        return fault_of("TIMEOUT", STR("it took longer than it may"), "timeout", true);
    return (struct tool_result){.lost = true};
}

// What the worker sent with its end; NULL: nothing.
static const struct temporal_payloads *sent_with(const struct temporal_event *event)
{
    const struct temporal_failure *failure = event->activity_failed ? event->activity_failed->failure : NULL;
    if (event->activity_completed) return event->activity_completed->result;
    if (event->activity_canceled) return event->activity_canceled->details;
    return failure && failure->application ? failure->application->details : NULL;
}

// Without it what came out is not known, whatever the activity says.
static bool is_gone(enum code rc)
{
    return rc == E_NOT_FOUND || rc == E_INVALID;
}

static enum code keep_parcel(struct temporal_host *host, struct str workflow, const struct ended *ended, struct str json,
                             const struct tool_result *result, struct arena *arena, struct error *err)
{
    struct json sent;
    struct buf how = buf_of(16384);
    if (json_parse(json, &json_limits_result, arena, &sent, err)) { // the result says what is wrong with it
        *err = (struct error){0};
        return OK;
    }
    remote_result_told(&how, result);
    parcel_log_keep(json_key(&sent, "log"), ended->log, ended->log_max, buf_str(&how));
    buf_release(&how);
    const struct json *files = json_key(&sent, "files");
    if (!files || ended->artifacts_dir.len == 0) return OK;
    return parcel_unpack(host->client, workflow, files, ended->artifacts_dir.ptr, err);
}

enum code outcome_read(struct temporal_host *host, struct str workflow, const struct ended *ended, const struct temporal_event *event,
                       struct arena *arena, struct tool_result *out, struct error *err)
{
    const struct temporal_payloads *sent = sent_with(event);
    struct str json = {0};
    enum code rc = OK;
    bool read = !sent || temporal_json_read(sent, &json);
    if (read && json.len > 0) rc = temporal_text_get(host->client, workflow, json, arena, &json, err);
    if (!rc && event->activity_completed && !read)
        *out = fault_of("INVALID_RESULT", STR("the worker's result is not JSON"), "validation", false);
    else if (!rc && event->activity_completed)
        *out = completed(ended, json.len > 0 ? json : STR("null"), arena);
    else if (!rc && event->activity_failed)
        *out = failed(event, read ? json : (struct str){0}, arena);
    else if (!rc && event->activity_timed_out)
        *out = timed_out(ended, event);
    else if (!rc)
        *out = fault_of("CANCELLED", STR("cancelled"), "", false);
    if (!rc && read && json.len > 0 && !ended->is_function) rc = keep_parcel(host, workflow, ended, json, out, arena, err);
    if (!is_gone(rc)) return rc;
    os_log(LOG_WARN, "a result at Temporal is lost workflow=%.*s why=\"%s\"", STR_ARG(workflow), err->message);
    *err = (struct error){0};
    *out = (struct tool_result){.lost = true};
    return OK;
}
