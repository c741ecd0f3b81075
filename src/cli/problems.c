// The table behind `cairn help CODE` for codes of problems. A test holds it against the sources.
#include "cli/problems.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const struct problem_info problems[] = {
    {"ADAPTER_INVALID_RUN_REF",
     "The reference to a run cannot be understood, or is of another engine. Send engineRunRef as the service gave it."},
    {"ANSWER_TOO_LARGE",
     "The answer would be larger than an answer may be. Ask for less: limit, fields, Range, or a page of events."},
    {"APPROVAL_REJECTED", "A person who was asked has said no. What waited for the answer does not happen."},
    {"ARTIFACT_CHANGED", "The file is not the one that the step left, or changes while it is read. What the log says "
                         "of it (digest, size) no longer holds."},
    {"ARTIFACT_MISSING", "The log knows the file, but it is not on the disk any more."},
    {"ARTIFACT_NOT_FOUND", "No step of the run has left a file of this name. GET /v1/runs/RUN/artifacts lists them."},
    {"ARTIFACT_TOO_LARGE",
     "The file is larger than an answer may be. Ask for it in parts with Range: bytes=FIRST-LAST."},
    {"ATTEMPT_NOT_FOUND", "The step has no attempt of this number. They count from 1."},
    {"AUTHN_RATE_LIMITED",
     "Too many tokens that do not fit came from this address, or under this id. Wait as long as Retry-After says."},
    {"AUTHN_REQUIRED", "There is no token, or it is unknown, expired or revoked: which of these is not told. Send "
                       "Authorization: Bearer cairn_ID_SECRET."},
    {"AUTHZ_APPROVAL_REQUIRED", "The wish is noted; another person has to send the same request within a day."},
    {"AUTHZ_DENIED", "The roles of the token do not allow this, or not in this way: the detail says what is lacking. "
                     "GET /v1/whoami tells the roles."},
    {"AUTHZ_REASON_REQUIRED",
     "This is only done for a reason, which is recorded: give one (in a body: reason; of DELETE: ?reason=)."},
    {"BODY_TOO_LARGE", "The body is larger than this route takes: 1 MiB, documents 8 MiB, signals 64 KiB."},
    {"BUNDLE_TOO_LARGE",
     "The bundle is larger than an answer may be. `cairn log export` on the machine of the store has no limit."},
    {"CAPABILITY_NOT_SUPPORTED", "The plan requires what its target cannot do, and does not allow to do without it. "
                                 "validationReport names it; GET /v1/capabilities has the matrix."},
    {"CONFLICT", "Somebody else changed the same thing at the same moment. Look again, then decide again."},
    {"ENGINE_STARTING", "The service has just begun and takes up its runs. Try again in a moment."},
    {"EXPECTATION_FAILED", "The header Expect asks for something else than 100-continue."},
    {"FORK_CONFLICT", "What the fork is to take over and what it is to change contradict each other. The preview twin "
                      "of the route shows what would happen."},
    {"FORK_INVALID", "The run has no such event, or nothing can be gone on from it. The preview twin of the route "
                     "shows what would happen."},
    {"HEADERS_TOO_LARGE", "The headers have more than 16 KiB, or are more than 64."},
    {"HOST_NOT_ALLOWED",
     "The header Host names none of the addresses of the service. `cairn serve --host NAME` allows a further one."},
    {"IDEMPOTENCY_KEY_REUSED", "The key was used for another request. Every request has a key of its own; only the "
                               "same one sent again has the same."},
    {"INTERNAL", "Something went wrong that should not. The log of the service has the reason, under the requestId."},
    {"INVALID_CURSOR", "The cursor is not one that this list has given to this tenant. Begin anew without a cursor."},
    {"INVALID_PLAN_SCHEMA",
     "The document has mistakes; errors lists them with line and column. `cairn validate` shows the same."},
    {"INVALID_QUERY", "q cannot be understood; the detail says where. `cairn help query` has the language."},
    {"INVALID_REQUEST", "The request is not what the route takes: a parameter, a header or a member of the body. "
                        "/openapi.json describes it."},
    {"INVALID_RUN_ID",
     "A run id has letters, digits, '.', '_' and '-', begins with a letter or digit, and has at most 128 of them."},
    {"INVALID_STEP_SCHEMA",
     "A step of the document has members that its kind does not know, or lacks one. errors lists them."},
    {"INVALID_TRANSITION", "The run is in a state in which this cannot happen: it has not started."},
    {"LIMIT_EXCEEDED", "A limit of the engine is reached; the detail names it."},
    {"LOG_CORRUPT", "The log of the run does not fold: it was damaged or written by somebody else. `cairn log verify "
                    "RUN` tells where."},
    {"LOG_NOT_FOUND", "The attempt has written nothing, or its log is on another machine."},
    {"MALFORMED_REQUEST", "This is not HTTP as it should be; the connection is closed."},
    {"METHOD_NOT_ALLOWED", "The path has other methods; Allow lists them."},
    {"MIN_SEQ_NOT_REACHED",
     "The event of Cairn-Min-Seq is not there after two seconds. Either it is still to come, or it is of another run."},
    {"NOTHING_TO_ANSWER", "The run waits for no approval now."},
    {"NOT_AN_APPROVAL", "The step is none that can be approved or rejected."},
    {"NOT_FOUND",
     "There is nothing of this name for this token: it may be absent, or another tenant's. Both are answered alike."},
    {"NOT_IMPLEMENTED", "The method, or the way the body is sent, is none that the service knows."},
    {"ORIGIN_NOT_ALLOWED", "A page of another origin has sent this. The service is not for other pages."},
    {"OUTPUT_NOT_FOUND", "The step has not given anything (yet)."},
    {"OVERLOADED", "More waits than can be done at once, or the queue of the run takes no more. Try again after "
                   "Retry-After, and not faster."},
    {"PLAN_INTEGRITY_VALIDATION_FAILED",
     "The bytes of the plan do not have the SHA-256 that was said. Nothing was started; an alert (P1) was raised."},
    {"PLAN_NOT_FOUND", "The place that the reference names has no such plan, or not for this tenant."},
    {"PLAN_REFUSED", "The server that has the plan does not hand it out."},
    {"PLAN_REF_EXPIRED", "expiresAt of the reference is over. Ask the planner for a new one."},
    {"PLAN_REF_MISMATCH", "The plan calls itself otherwise than its reference: planId, planVersion, schemaVersion and "
                          "size must be the same."},
    {"PLAN_SCHEMA_VERSION_UNKNOWN", "schemaVersion is none that this engine knows; GET /v1/capabilities lists them."},
    {"PLAN_URI_NOT_ALLOWED", "Plans are fetched only from places that [serve.fetch] allows; nothing was asked there."},
    {"PLAN_VERSION_TAKEN",
     "This version of the plan was approved with other content. Give the new content a new version."},
    {"QUEUE_NOT_EMPTY", "Runs wait in the queue. Let them start or cancel them; then it can be removed."},
    {"QUEUE_NOT_FOUND", "The tenant has no queue of this name. PUT /v1/queues/NAME makes one."},
    {"RANGE_NOT_SATISFIABLE", "The range lies behind the end; Content-Range tells how much there is."},
    {"REFERENCE_NOT_AVAILABLE", "The result that the reference names is not there, or cannot be reached now."},
    {"REQUEST_IN_PROGRESS", "The request with this Idempotency-Key is being carried out. Ask again in a moment."},
    {"REQUEST_TIMEOUT", "The request came too slowly; the connection is closed."},
    {"RUN_ALREADY_EXISTS", "The tenant has a run of this id. Leave runId out to get a new one."},
    {"RUN_ALREADY_PAUSED", "The run is paused already."},
    {"RUN_CANCELLING", "The run is being cancelled and takes no other signal."},
    {"RUN_HAS_MOVED",
     "If-Match did not hold: something happened since the run was looked at. Look again, then decide again."},
    {"RUN_IS_PAUSED", "The run is paused: resume it first."},
    {"RUN_NOT_FOUND", "There is no such run for this token."},
    {"RUN_NOT_PAUSED", "Only a paused run can be resumed. `cairn get RUN` tells what it does."},
    {"RUN_NOT_TERMINAL", "This is only for runs that have ended."},
    {"RUN_OWNED_ELSEWHERE", "Another process has the run. Try again: it is taken up, or its engine answers."},
    {"RUN_QUEUE_FULL", "As many runs wait in the queue as may (maxQueued). Try again after Retry-After."},
    {"RUN_TERMINAL",
     "The run has ended, and nothing changes that. `cairn rerun` and `cairn fork` make a new one of it."},
    {"SCHEMA_VALIDATION_FAILED", "A value does not fit the schema of its event; the detail says which."},
    {"SHUTTING_DOWN", "The service is stopping. Another engine, or the next start, takes this."},
    {"SIGNAL_DUPLICATE", "The signalId was used for another signal. Every signal has an id of its own."},
    {"SIGNAL_INVALID_PAYLOAD",
     "The signal does not fit its schema: the detail says where. It was not decided, and is in no record."},
    {"SIGNAL_NOT_DECIDED",
     "Nobody has decided the signal within ten seconds. It may still be: GET /v1/runs/RUN/signals/ID."},
    {"SIGNAL_NOT_FOUND", "No signal of this id was decided in this run."},
    {"SIGNAL_NOT_SUPPORTED", "This run cannot be given such a signal."},
    {"SIGNAL_RATE_LIMITED", "A run takes 60 signals a minute. Try again after Retry-After."},
    {"SIGNAL_REJECTED", "The signal was decided and refused; the record has the reason."},
    {"STALE_ATTEMPT",
     "The attempt is over: another one runs, or the run has ended. Drop the task; nothing of it was kept."},
    {"STEP_FAILURE_SETTLED", "The failure was passed on to other steps. Retry the run, or fork it from this step."},
    {"STEP_NOT_FAILED", "Only steps that failed can be tried again."},
    {"STEP_NOT_FOUND", "The run has no step of this name. GET /v1/runs/RUN/steps lists them."},
    {"STEP_NOT_RUNNING", "The step waits for no answer."},
    {"STEP_NOT_TERMINAL", "The step has not ended."},
    {"STEP_REQUIRED", "Several approvals wait: name the step."},
    {"STEP_TERMINAL", "The step has ended, and that stays so."},
    {"STORE_FAILED", "The store cannot be written or read now. The log of the service has the reason; GET /readyz "
                     "tells when it is well."},
    {"STORE_FULL", "The disk, or the quota, is full. Runs go on when there is room."},
    {"STORE_VERSION", "The store is of another version of Cairn."},
    {"TARGET_TOO_LONG", "The path and its parameters have more than 8 KiB."},
    {"TASK_TOKEN_INVALID", "The token of the task is none that this service gave out."},
    {"TENANT_OVERLOADED", "The tenant has more calls waiting than it may. Try again after Retry-After."},
    {"TIMEOUT", "It takes longer than the caller wanted to wait. It goes on."},
    {"TOO_MANY_CONNECTIONS",
     "There are more connections than there may be, in all or from this address. Use those that are open."},
    {"TOO_MANY_STREAMS", "The token has as many streams of events and logs open as it may. Close one."},
    {"UNAVAILABLE", "The service is stopping. Hand in results, then ask again later, or another engine."},
    {"UNREACHABLE", "Something that is needed for this is away. Try again after Retry-After."},
    {"UNSUPPORTED",
     "This engine cannot do that: a kind of step or tool that nobody here knows, or a feature that is switched off."},
    {"UNSUPPORTED_MEDIA_TYPE", "Bodies are application/json in UTF-8, without Content-Encoding."},
    {"VERSION_NOT_SUPPORTED", "HTTP/1.0 and HTTP/1.1 are spoken here."},
};

const struct problem_info *problem_at(size_t index)
{
    return index < sizeof(problems) / sizeof(problems[0]) ? &problems[index] : NULL;
}

static bool is_code(struct str word, const char *code)
{
    for (size_t i = 0; i < word.len; i++)
        if (toupper((unsigned char)word.ptr[i]) != code[i]) return false;
    return code[word.len] == '\0';
}

const struct problem_info *problem_find(struct str word)
{
    struct str urn = STR("urn:cairn:problem:");
    if (str_starts(word, urn)) word = str_slice(word, urn.len, word.len);
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
        if (word.len > 0 && is_code(word, problems[i].code)) return &problems[i];
    return NULL;
}
