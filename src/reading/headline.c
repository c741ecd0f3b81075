// What is going on with a stored run, for lists: from its log, or from the summary that the store keeps beside it.
#include "reading/reading.h"

#include "json/make.h"

bool reading_headline_brief(const struct run_head *head, struct arena *arena, struct json *out)
{
    static const struct {
        enum run_status status;
        const char *substatus, *state, *text;
    } known[] = {
        {RUN_STATUS_PENDING, "WAITING_APPROVAL", "approval", "its start waits for a person"},
        {RUN_STATUS_PENDING, "", "waiting", "has not started"},
        {RUN_STATUS_APPROVED, "", "waiting", "has not started"},
        {RUN_STATUS_RUNNING, "WAITING_APPROVAL", "approval", "a step waits for a person"},
        {RUN_STATUS_RUNNING, "RETRYING", "retrying", "a step failed and is tried again"},
        {RUN_STATUS_RUNNING, "", "running", "steps run"},
        {RUN_STATUS_PAUSED, "", "paused", "paused"},
        {RUN_STATUS_FAILED, "", "failed", "failed"},
        {RUN_STATUS_CANCELLED, "", "cancelled", "cancelled"},
    };
    const struct run_summary *s = &head->summary;
    struct str cause = str_from(s->cause), substatus = str_from(s->substatus);
    *out = json_null();
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (known[i].status != s->status || (known[i].substatus[0] && !str_is(substatus, known[i].substatus))) continue;
        bool held = s->status == RUN_STATUS_RUNNING && cause.len > 0 && !head_standing(head).goes_on;
        *out = JSON_OF(arena, {"state", json_word(held ? "held" : known[i].state)},
                       {"text", json_word(held ? "a step failed and waits for a person" : known[i].text)},
                       {"detail", json_some(cause)}, {"brief", json_bool(true)}, {"parts", json_array()});
        break;
    }
    return json_ok(out);
}

enum code reading_headline(struct store *store, const struct run_head *head, struct arena *arena, struct json *out,
                           struct error *err)
{
    struct folded folded SCOPED(folded_release) = {0};
    enum code rc = reading_fold(store, head, READING_NOW, arena, &folded, err);
    if (!rc && !view_headline(&folded.view, arena, out)) rc = error_nomem(err);
    return rc;
}
