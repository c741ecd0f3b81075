// A row has a label and a value; a long value goes on under itself.
//
//   deploy waits for a person: nobody has answered since 2026-02-11 17:00:00Z (4m).
//     state       ◔ approval  event 12
//     depends on  ✓ sign  done, event 9
#include "term/why.h"
#include "term/text.h"

#include "base/civil.h"

#include <string.h>

enum { VALUE_COLUMN = 14, STATE_WIDTH = 12, DEPENDENCY_MAX = 12, ATTEMPT_MAX = 6, DETAIL_LINES = 5, SIGNAL_MAX = 8 };

struct page {
    struct console *console;
    struct buf *out;
    const struct term *term;
    const struct json *answer;
    struct buf line; // value of the row that is being written
};

static struct str text_of(const struct json *object, const char *key)
{
    return json_text(json_key(object, key));
}

static int64_t int_of(const struct json *object, const char *key)
{
    return json_integer(json_key(object, key), 0);
}

static const char *arrow(const struct page *p)
{
    return p->term->utf8 ? "→" : "->";
}

// Words of `text` behind what stands in the line already, which is at column `at`.
static void wrap(struct page *p, struct str text, size_t at, size_t indent)
{
    size_t columns = p->term->tty ? p->term->columns : SIZE_MAX;
    bool first = true;
    while (text.len > 0) {
        struct str rest = text;
        size_t blanks = 0;
        while (blanks < rest.len && rest.ptr[blanks] == ' ') blanks++;
        rest = str_slice(rest, blanks, rest.len);
        struct str word = str_cut(rest, ' ', &rest);
        if (rest.len > 0 || (word.len < text.len - blanks)) rest = str_slice(text, blanks + word.len, text.len);
        size_t width = text_width(word);
        if (!first && at + blanks + width > columns && at > indent) {
            buf_byte(p->out, '\n');
            text_pad(p->out, 0, indent);
            at = indent;
            blanks = 0;
        }
        text_pad(p->out, 0, blanks);
        buf_add(p->out, word);
        at += blanks + width;
        first = false;
        text = rest;
    }
    buf_byte(p->out, '\n');
}

// Ends the row: what was put in p->line is its value.
static void row(struct page *p, const char *label)
{
    buf_text(p->out, "  ");
    tone_text(p->out, p->term, TONE_DIM, label);
    text_pad(p->out, 2 + strlen(label), VALUE_COLUMN);
    wrap(p, buf_str(&p->line), VALUE_COLUMN, VALUE_COLUMN);
    buf_clear(&p->line);
}

static void add(struct page *p, struct str text)
{
    text_safe(&p->line, text);
}

static void add_member(struct page *p, const char *before, const struct json *object, const char *key)
{
    struct str text = text_of(object, key);
    if (text.len == 0) return;
    buf_text(&p->line, before);
    add(p, text);
}

static void add_time(struct page *p, const char *before, const struct json *object, const char *key)
{
    int64_t ms;
    if (!civil_parse(text_of(object, key), &ms)) return;
    buf_text(&p->line, before);
    time_text(&p->line, p->console, ms);
}

// "event 12"; a fact of the ledger stands "after event 12".
static void add_event(struct page *p, const char *before, const struct json *object, const char *prefix)
{
    const struct json *seq = json_key(object, console_format(p->console, "%s%s", prefix, prefix[0] ? "Seq" : "seq"));
    const struct json *after =
        json_key(object, console_format(p->console, "%s%s", prefix, prefix[0] ? "AfterSeq" : "afterSeq"));
    if (seq || after)
        buf_printf(&p->line, "%s%sevent %lld", before, seq ? "" : "after ",
                   (long long)json_integer(seq ? seq : after, 0));
}

static void add_duration(struct page *p, const char *before, int64_t ms)
{
    char text[24];
    duration_format(ms, text);
    buf_printf(&p->line, "%s%s", before, text);
}

static enum look look_of_state(struct str state)
{
    static const struct {
        const char *state;
        enum look look;
    } looks[] = {{"queued", LOOK_QUEUED}, {"running", LOOK_RUNNING}, {"approval", LOOK_APPROVAL}, {"retrying", LOOK_DELAYED},
                 {"held", LOOK_HELD},       {"done", LOOK_DONE},         {"reused", LOOK_DONE},
                 {"skipped", LOOK_SKIPPED}, {"failed", LOOK_FAILED},     {"cancelled", LOOK_CANCELLED},
                 {"not_run", LOOK_NOT_RUN}};
    for (size_t i = 0; i < ARRAY_COUNT(looks); i++)
        if (str_is(state, looks[i].state)) return looks[i].look;
    return LOOK_WAITING;
}

// "✓ done", coloured.
static void add_state(struct page *p, struct str state)
{
    enum look look = look_of_state(state);
    tone_begin(&p->line, p->term, look_tone(look));
    buf_printf(&p->line, "%s ", look_glyph(look, p->term->utf8));
    for (size_t i = 0; i < state.len; i++) buf_byte(&p->line, (char)(state.ptr[i] == '_' ? ' ' : state.ptr[i]));
    tone_end(&p->line, p->term, look_tone(look));
}

static void add_state_padded(struct page *p, struct str state)
{
    add_state(p, state);
    text_pad(&p->line, text_width(buf_str(&p->line)), STATE_WIDTH);
}

// ---- join

static void write_dependency(struct page *p, const struct json *dep, bool first)
{
    add_state_padded(p, text_of(dep, "state"));
    add_member(p, "", dep, "step");
    add_event(p, "  ", dep, "");
    add_member(p, "  ", dep, "errorCode");
    row(p, first ? "depends on" : "");
}

// What is open or went wrong first; of many only some.
static void write_dependencies(struct page *p)
{
    const struct json *list = json_key(p->answer, "dependencies");
    uint32_t shown = 0;
    for (int pass = 0; list && pass < 2; pass++)
        for (uint32_t i = 0; i < list->count; i++) {
            bool done = str_is(text_of(&list->items[i], "state"), "done");
            if ((list->count > DEPENDENCY_MAX) ? done != (pass == 1) : pass == 1) continue;
            if (shown < DEPENDENCY_MAX) write_dependency(p, &list->items[i], shown == 0);
            shown++;
        }
    if (shown <= DEPENDENCY_MAX) return;
    buf_printf(&p->line, "and %u more", shown - DEPENDENCY_MAX);
    row(p, "");
}

static void write_rule(struct page *p)
{
    const struct json *rule = json_key(p->answer, "rule");
    if (!rule) return;
    struct str outlook = text_of(rule, "outlook");
    add_member(p, "", rule, "name");
    add_member(p, " needs ", rule, "needs");
    const struct {
        const char *key, *word;
    } counts[] = {{"success", "succeeded"}, {"failed", "failed"}, {"skipped", "skipped"}, {"open", "open"}};
    bool first = true;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        int64_t count = int_of(rule, counts[i].key);
        if (count == 0) continue;
        buf_printf(&p->line, "%s%lld %s", first ? "; " : ", ", (long long)count, counts[i].word);
        first = false;
    }
    if (outlook.len == 0)
        buf_printf(&p->line, " %s it %s", arrow(p), json_true(json_key(rule, "passes")) ? "passes" : "does not pass");
    else if (!str_is(outlook, "open"))
        buf_text(&p->line,
                 str_is(outlook, "will_pass") ? "; it will pass whatever they do" : "; it can no longer pass");
    row(p, "rule");
}

static void write_atom(struct page *p, const struct json *atom, bool first, bool decided)
{
    add_member(p, "", atom, "joined");
    if (!first) buf_byte(&p->line, ' ');
    add_member(p, "", atom, "text");
    const struct json *result = json_key(atom, "result");
    if (result) {
        buf_printf(&p->line, "  %s '", arrow(p));
        add(p, text_of(atom, "left"));
        buf_text(&p->line, "' ");
        add_member(p, "", atom, "operator");
        buf_text(&p->line, " '");
        add(p, text_of(atom, "right"));
        buf_printf(&p->line, "' %s ", arrow(p));
        tone_text(&p->line, p->term, result->boolean ? TONE_GOOD : TONE_WARN, result->boolean ? "true" : "false");
    } else {
        buf_printf(&p->line, "  %s not known%s", arrow(p), decided ? "" : " yet");
        if (decided) add_member(p, ": ", atom, "error");
    }
    row(p, first ? "when" : "");
}

static void write_when(struct page *p)
{
    const struct json *when = json_key(p->answer, "when");
    if (!when) return;
    const struct json *atoms = json_key(when, "atoms"), *result = json_key(when, "result");
    for (uint32_t i = 0; atoms && i < atoms->count; i++)
        write_atom(p, &atoms->items[i], i == 0, json_true(json_key(when, "decided")));
    if (atoms && atoms->count > 1 && json_is(result, JSON_BOOL)) {
        buf_printf(&p->line, "together %s %s", arrow(p), result->boolean ? "true" : "false");
        row(p, "");
    }
    if (atoms) return;
    add_member(p, "", when, "text");
    bool held_back = !json_is(json_key(when, "decided"), JSON_BOOL) || !json_true(json_key(when, "broken"));
    buf_printf(&p->line, "  %s %s", arrow(p),
               held_back ? "not reached: it is asked when the rule passes" : "cannot be read, which counts as false");
    row(p, "when");
}

// ---- gate, loop, attempts

static void add_values(struct page *p, const struct json *values)
{
    for (uint32_t i = 0; json_is(values, JSON_OBJECT) && i < values->count; i++) {
        struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
        json_write(&text, &values->members[i].value);
        buf_text(&p->line, i == 0 ? "  with " : ", ");
        add(p, values->members[i].key);
        buf_text(&p->line, " = ");
        struct str shown = buf_str(&text);
        if (shown.len > 120) shown.len = 120;
        add(p, shown);
        if (text.len > 120) buf_text(&p->line, "...");
    }
}

// Playbooks: the arcs that lead here, and those that lead on from here, as they were decided.
static void add_arcs(struct page *p, const char *key, const char *end, const char *label, const char *toward)
{
    const struct json *arcs = json_key(p->answer, key);
    for (uint32_t i = 0; json_is(arcs, JSON_ARRAY) && i < arcs->count; i++) {
        const struct json *arc = &arcs->items[i], *taken = json_key(arc, "taken");
        if (!taken->boolean) buf_text(&p->line, "not ");
        buf_text(&p->line, toward);
        add(p, text_of(arc, end));
        add_event(p, "  ", arc, "");
        if (json_key(arc, "merged")) buf_text(&p->line, "  merged with the one under way");
        add_member(p, "  when ", arc, "when");
        add_values(p, json_key(arc, "values"));
        row(p, i == 0 ? label : "");
    }
}

static void write_arcs(struct page *p)
{
    const struct json *admission = json_key(p->answer, "admission");
    add_arcs(p, "arcs", "from", "arcs", "taken from ");
    if (!admission) return;
    const struct json *allowed = json_key(admission, "allowed");
    buf_text(&p->line, allowed->boolean ? "granted" : "refused");
    if (json_key(admission, "rule")) buf_printf(&p->line, " by rule %lld", (long long)int_of(admission, "rule"));
    add_member(p, "  when ", admission, "when");
    add_event(p, "  ", admission, "");
    row(p, "admission");
}

static void write_policy(struct page *p)
{
    const struct json *list = json_key(p->answer, "policy");
    uint32_t count = json_is(list, JSON_ARRAY) ? list->count : 0;
    for (uint32_t i = count > 8 ? count - 8 : 0; i < count; i++) {
        const struct json *one = &list->items[i];
        add(p, text_of(one, "task"));
        if (json_key(one, "iteration")) buf_printf(&p->line, "[%lld]", (long long)int_of(one, "iteration"));
        buf_printf(&p->line, " try %lld: ", (long long)int_of(one, "attempt"));
        add(p, text_of(one, "action"));
        if (json_key(one, "rule")) buf_printf(&p->line, " by rule %lld", (long long)int_of(one, "rule"));
        add_member(p, "  ", one, "when");
        add_event(p, "  ", one, "");
        row(p, i == 0 || i == count - 8 ? "policy" : "");
    }
}

// What a task, or a loop, was given that was not defined, and was nothing therefore.
static void write_undefined(struct page *p)
{
    const struct json *list = json_key(p->answer, "undefined");
    uint32_t count = json_is(list, JSON_ARRAY) ? list->count : 0, first = count > 8 ? count - 8 : 0;
    for (uint32_t i = first; i < count; i++) {
        const struct json *one = &list->items[i];
        add(p, text_of(one, "task"));
        if (json_key(one, "iteration")) buf_printf(&p->line, "[%lld]", (long long)int_of(one, "iteration"));
        add_member(p, text_of(one, "task").len > 0 ? "  " : "", one, "path");
        add_member(p, ": ", one, "text");
        add_member(p, ", ", one, "why");
        add_event(p, "  ", one, "");
        row(p, i == first ? "undefined" : "");
    }
}

static void write_gate(struct page *p)
{
    const struct json *gate = json_key(p->answer, "gate"), *answer = gate ? json_key(gate, "answer") : NULL;
    if (!gate) return;
    if (text_of(gate, "message").len > 0) {
        add_member(p, "", gate, "message");
        row(p, "gate");
    }
    add_member(p, "may be answered by role ", gate, "role");
    buf_text(&p->line, " or above");
    add_time(p, "; until ", gate, "deadline");
    if (int_of(gate, "timeoutMs") > 0) {
        struct str then = text_of(gate, "onTimeout");
        add_duration(p, "; after ", int_of(gate, "timeoutMs"));
        buf_printf(&p->line, " without an answer it %s",
                   str_is(then, "approve")  ? "approves"
                   : str_is(then, "reject") ? "is rejected"
                                            : "fails");
    } else {
        buf_text(&p->line, "; it waits without a limit");
    }
    row(p, text_of(gate, "message").len > 0 ? "" : "gate");
    if (!answer) return;
    buf_text(&p->line, json_true(json_key(answer, "approved")) ? "approved" : "not approved");
    add_member(p, " by ", answer, "by");
    add_time(p, ", ", answer, "at");
    add_event(p, ", ", answer, "");
    row(p, "");
}

static void write_loop(struct page *p)
{
    const struct json *loop = json_key(p->answer, "loop"), *until = loop ? json_key(loop, "until") : NULL;
    if (!loop) return;
    buf_printf(&p->line, "round %lld of at most %lld", (long long)int_of(loop, "iteration"),
               (long long)int_of(loop, "maxIterations"));
    if (until) {
        add_member(p, "; until ", until, "step");
        if (json_key(until, "holds"))
            buf_printf(&p->line, " %s %s", arrow(p), json_true(json_key(until, "holds")) ? "true" : "false");
        else
            add_member(p, ", which is ", until, "state");
    }
    row(p, "loop");
    const struct json *open = json_key(loop, "open");
    for (uint32_t i = 0; open && i < open->count && i < DEPENDENCY_MAX; i++) {
        add_state_padded(p, text_of(&open->items[i], "state"));
        add_member(p, "", &open->items[i], "step");
        row(p, i == 0 ? "in round" : "");
    }
}

static void add_error(struct page *p, const struct json *error)
{
    add_member(p, ": ", error, "code");
    if (json_key(error, "exitCode"))
        buf_printf(&p->line, " exit %lld", (long long)int_of(error, "exitCode"));
    else
        add_member(p, ": ", error, "message");
}

static void write_detail(struct page *p, struct str detail)
{
    size_t from = detail.len;
    for (size_t lines = 0; from > 0; from--)
        if (detail.ptr[from - 1] == '\n' && ++lines == DETAIL_LINES) break;
    detail = str_slice(detail, from, detail.len);
    while (detail.len > 0) {
        struct str line = str_cut(detail, '\n', &detail);
        tone_begin(&p->line, p->term, TONE_DIM);
        buf_text(&p->line, "| ");
        add(p, line);
        tone_end(&p->line, p->term, TONE_DIM);
        row(p, "");
    }
}

static void write_attempt(struct page *p, const struct json *attempt, bool last)
{
    struct str result = text_of(attempt, "result");
    const struct json *error = json_key(attempt, "error");
    buf_add(&p->line, result);
    if (json_key(attempt, "durationMs")) add_duration(p, " after ", int_of(attempt, "durationMs"));
    if (error) add_error(p, error);
    add_time(p, ", started ", attempt, "startedAt");
    add_event(p, ", ", attempt, "");
    add_event(p, " to ", attempt, "end");
    if (str_is(text_of(attempt, "startedBy"), "person")) buf_text(&p->line, ", asked for by a person");
    if (int_of(attempt, "redispatched") > 0) {
        int64_t times = int_of(attempt, "redispatched");
        buf_printf(&p->line, ", dispatched again %lld time%s after a crash", (long long)times, times == 1 ? "" : "s");
        add_event(p, ", last at ", attempt, "redispatch");
    }
    row(p, console_format(p->console, "attempt %lld", (long long)int_of(attempt, "attempt")));
    if (last && error) write_detail(p, text_of(error, "detail"));
}

static void write_attempts(struct page *p)
{
    const struct json *list = json_key(p->answer, "attempts");
    uint32_t count = list ? list->count : 0, from = count > ATTEMPT_MAX ? count - ATTEMPT_MAX : 0;
    if (from > 0) {
        buf_printf(&p->line, "%u earlier ones are left out; -o json has them", from);
        row(p, "attempts");
    }
    for (uint32_t i = from; i < count; i++) write_attempt(p, &list->items[i], i + 1 == count);
}

static void add_policy(struct page *p, const struct json *retry)
{
    struct str backoff = text_of(retry, "backoff");
    int64_t most = int_of(retry, "maxAttempts");
    buf_printf(&p->line, "%lld of %lld attempt%s used", (long long)int_of(retry, "used"), (long long)most,
               most == 1 ? "" : "s");
    if (most <= 1) return;
    buf_text(&p->line, str_is(text_of(retry, "on"), "all") ? "; any failure" : "; transient failures only");
    add_duration(p, str_is(backoff, "none") ? "; delay " : "; delay from ", int_of(retry, "delayMs"));
    if (!str_is(backoff, "none")) add_member(p, ", ", retry, "backoff");
    if (int_of(retry, "maxDelayMs") > 0) add_duration(p, ", at most ", int_of(retry, "maxDelayMs"));
    const struct json *codes = json_key(retry, "nonRetryable");
    for (uint32_t i = 0; codes && i < codes->count; i++) {
        buf_text(&p->line, i ? ", " : "; never for ");
        add(p, json_text(&codes->items[i]));
    }
}

static void write_retry(struct page *p)
{
    const struct json *retry = json_key(p->answer, "retry"), *next = retry ? json_key(retry, "next") : NULL;
    if (!retry) return;
    add_policy(p, retry);
    row(p, "retry");
    if (!next) return;
    buf_printf(&p->line, "attempt %lld", (long long)int_of(next, "attempt"));
    int64_t due;
    char text[24];
    if (civil_parse(text_of(next, "notBefore"), &due)) {
        buf_text(&p->line, " not before ");
        add_member(p, "", next, "notBefore");
        duration_format(due - p->console->now_ms, text);
        if (due > p->console->now_ms) buf_printf(&p->line, " (in %s)", text);
    }
    row(p, "next try");
}

// ---- people, the run, proof

static void write_signals(struct page *p)
{
    const struct json *list = json_key(p->answer, "signals");
    uint32_t count = list ? list->count : 0;
    for (uint32_t i = count > SIGNAL_MAX ? count - SIGNAL_MAX : 0; i < count; i++) {
        const struct json *s = &list->items[i];
        add_member(p, "", s, "type");
        add_member(p, " of ", s, "step");
        buf_text(&p->line, str_is(text_of(s, "decision"), "ACCEPTED") ? " accepted" : " refused");
        add_member(p, " (", s, "errorCode");
        if (text_of(s, "errorCode").len > 0) buf_byte(&p->line, ')');
        add_member(p, ", by ", s, "by");
        add_member(p, " (", s, "role");
        if (text_of(s, "role").len > 0) buf_byte(&p->line, ')');
        add_time(p, ", ", s, "at");
        add_event(p, ", ", s, "");
        add_member(p, ": ", s, "reason");
        add_member(p, "  decision ", s, "decisionId");
        row(p, "person");
    }
}

static void write_pause(struct page *p)
{
    const struct json *pause = json_key(p->answer, "pause");
    if (!pause) return;
    buf_printf(&p->line, "number %lld", (long long)int_of(pause, "cycle"));
    add_member(p, " by ", pause, "by");
    add_time(p, ", ", pause, "since");
    add_event(p, ", ", pause, "");
    add_member(p, ": ", pause, "reason");
    if (int_of(pause, "inFlight") > 0)
        buf_printf(&p->line, "; DRAINING: %lld in flight", (long long)int_of(pause, "inFlight"));
    row(p, "pause");
}

static void add_holders(struct page *p, const struct json *of)
{
    const struct json *list = json_key(of, "holders");
    for (uint32_t i = 0; list && i < list->count; i++) {
        buf_text(&p->line, i ? ", " : "; held by ");
        add_member(p, "", &list->items[i], "runId");
        add_member(p, "/", &list->items[i], "stepId");
    }
    int64_t others = int_of(of, "others");
    if (others > 0) buf_printf(&p->line, "%s%lld other%s", list ? " and " : "; held by ", (long long)others, others == 1 ? "" : "s");
}

// Where it waits, and for what: from the members of the answer, so that those read it too from whom the sentence above is kept.
static void write_place(struct page *p)
{
    const struct json *place = json_key(p->answer, "place"), *queue = json_key(p->answer, "queue");
    if (place && str_is(text_of(place, "state"), "QUEUED")) {
        bool pool = text_of(place, "pool").len > 0, limit = text_of(place, "limit").len > 0, slots = json_key(place, "slots") != NULL;
        buf_printf(&p->line, "number %lld for %s", (long long)int_of(place, "position"), limit ? "limit" : pool ? "a worker" : "a slot");
        add_member(p, " ", place, "limit");
        add_member(p, " of pool ", place, "pool");
        add_time(p, ", ", place, "since");
        if (pool)
            buf_printf(&p->line, "; %lld worker%s", (long long)int_of(place, "workers"), int_of(place, "workers") == 1 ? "" : "s");
        if (slots)
            buf_printf(&p->line, "%s%lld %s%s", pool ? ", " : "; ", (long long)int_of(place, "slots"), limit ? "place" : "slot",
                       int_of(place, "slots") == 1 ? "" : "s");
        add_member(p, ", rate ", place, "rate");
        add_time(p, ", next start ", place, "nextStartAt");
        add_holders(p, place);
        row(p, "queued");
    } else if (place && text_of(place, "worker").len > 0) {
        add_member(p, "", place, "worker");
        add_member(p, " of pool ", place, "pool");
        row(p, "worker");
    }
    if (!queue) return;
    buf_printf(&p->line, "number %lld of %lld in queue ", (long long)int_of(queue, "position"),
               (long long)int_of(queue, "waiting"));
    add_member(p, "", queue, "name");
    buf_printf(&p->line, "; %lld run%s", (long long)int_of(queue, "running"), int_of(queue, "running") == 1 ? "" : "s");
    if (int_of(queue, "limit") > 0) buf_printf(&p->line, ", limit %lld", (long long)int_of(queue, "limit"));
    add_member(p, ", limited by ", queue, "limitedBy");
    add_holders(p, queue);
    row(p, "queue");
}

static void write_owner(struct page *p)
{
    const struct json *owner = json_key(p->answer, "owner");
    if (!owner) return;
    if (json_true(json_key(owner, "alive")))
        buf_printf(&p->line, "process %lld", (long long)int_of(owner, "pid"));
    else
        buf_text(&p->line, "nobody: no process drives this run now");
    row(p, "owner");
}

// schedule:NAME@TIME, or a person, for a run that is called NAME:TIME.
static void write_trigger(struct page *p)
{
    struct str by = text_of(p->answer, "triggeredBy"), name, time, rest;
    if (!str_is(text_of(p->answer, "triggerSource"), "schedule")) return;
    if (str_starts(by, STR("schedule:"))) {
        str_cut(by, ':', &rest);
        name = str_cut(rest, '@', &time);
        buf_printf(&p->line, "schedule %.*s, for %.*s", STR_ARG(name), STR_ARG(time));
    } else {
        name = str_cut(text_of(p->answer, "runId"), ':', &time);
        buf_printf(&p->line, "schedule %.*s, triggered by %.*s", STR_ARG(name), STR_ARG(by));
    }
    row(p, "started by");
}

static void write_proof(struct page *p)
{
    const struct json *proof = json_key(p->answer, "decisions");
    long long checked = int_of(proof, "checked"), same = int_of(proof, "reproduced");
    if (checked == 0) {
        buf_text(&p->line, "nothing was decided about it that could be asked again");
    } else if (checked == same) {
        buf_printf(&p->line, "%lld decision%s asked again, same answer%s as recorded", checked, checked == 1 ? "" : "s",
                   checked == 1 ? "" : "s");
    } else {
        buf_printf(&p->line, "%lld of %lld decisions come out differently when they are asked again: ", checked - same,
                   checked);
        add_member(p, "", proof, "doubt");
    }
    row(p, "proof");
}

static void write_next(struct page *p)
{
    const struct json *list = json_key(p->answer, "next");
    for (uint32_t i = 0; list && i < list->count; i++) {
        buf_text(p->out, "  ");
        tone_text(p->out, p->term, TONE_DIM, i == 0 ? "next" : "");
        text_pad(p->out, i == 0 ? 6 : 2, VALUE_COLUMN);
        text_safe(p->out, str_from(console_command(p->console, "%.*s", STR_ARG(json_text(&list->items[i])))));
        buf_byte(p->out, '\n');
    }
}

static void write_verdict(struct page *p)
{
    tone_begin(p->out, p->term, TONE_BOLD);
    add(p, text_of(p->answer, "verdict"));
    wrap(p, buf_str(&p->line), 0, 0);
    buf_clear(&p->line);
    p->out->len--; // the colour ends before the line does
    tone_end(p->out, p->term, TONE_BOLD);
    buf_byte(p->out, '\n');
}

static void write_at(struct page *p, uint64_t last_seq)
{
    const struct json *at = json_key(p->answer, "at");
    if (last_seq == 0) return;
    buf_printf(&p->line, "event %lld of %llu", (long long)int_of(at, "seq"), (unsigned long long)last_seq);
    add_member(p, ", ", at, "time");
    row(p, "as of");
}

static void write_step(struct page *p)
{
    const struct json *answer = p->answer;
    const struct json *cause = json_key(answer, "cause");
    if (cause) {
        add_member(p, "", cause, "verdict");
        row(p, "because");
    }
    add_state(p, text_of(answer, "state"));
    add_time(p, "  ", answer, "since");
    add_event(p, "  ", answer, "");
    add_member(p, "  in a run that is ", answer, "runStatus");
    row(p, "state");
    write_dependencies(p);
    write_rule(p);
    write_when(p);
    write_arcs(p);
    write_gate(p);
    write_loop(p);
    write_attempts(p);
    write_retry(p);
    write_policy(p);
    write_undefined(p);
    add_arcs(p, "routes", "to", "leads", "to ");
    const struct {
        const char *key, *label;
    } names[] = {{"childRun", "child run"}, {"reusedFrom", "reused from"}, {"givenBy", "given by"}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (text_of(answer, names[i].key).len == 0) continue;
        add_member(p, "", answer, names[i].key);
        row(p, names[i].label);
    }
}

static void write_run(struct page *p)
{
    const struct json *list = json_key(p->answer, "steps"), *error = json_key(p->answer, "error");
    write_trigger(p);
    if (str_is(text_of(p->answer, "runStatus"), "FAILED") && error) write_detail(p, text_of(error, "detail"));
    for (uint32_t i = 0; list && i < list->count; i++) {
        add_state_padded(p, text_of(&list->items[i], "state"));
        add_member(p, "", &list->items[i], "verdict");
        row(p, i == 0 ? "steps" : "");
    }
    if (int_of(p->answer, "stepsLeftOut") > 0) {
        buf_printf(&p->line, "and %lld more", (long long)int_of(p->answer, "stepsLeftOut"));
        row(p, "");
    }
}

void why_write(struct console *console, struct buf *out, const struct term *term, const struct json *answer,
               uint64_t last_seq)
{
    struct page p = {.console = console, .out = out, .term = term, .answer = answer};
    buf_init(&p.line, (size_t)1 << 22);
    write_verdict(&p);
    write_at(&p, last_seq);
    if (json_key(answer, "step"))
        write_step(&p);
    else
        write_run(&p);
    write_pause(&p);
    write_place(&p);
    write_signals(&p);
    write_owner(&p);
    write_proof(&p);
    write_next(&p);
    buf_release(&p.line);
}
