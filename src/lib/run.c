// Starting runs, taking them up, waiting for their end, signals.
#include "contract/profile.h"
#include "reading/reading.h"
#include "lib/inside.h"

#include "base/uuid.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT_MAX ((size_t)64 << 20) // the reader's own limits are lower and say more
enum {
    LOOK_MS = 50,           // at a run of another process
    LOOK_AT_OURS_MS = 1000, // its end is reported; that another process took it is not
    POSTED_MS = 10000,
};

// call_begin for a function that waits.
static enum code wait_begin(struct cairn *cairn, struct error *err)
{
    enum code rc = call_begin(cairn, err);
    if (rc || may_wait(cairn)) return rc;
    call_end(cairn);
    return error_set(err, E_CONFLICT, "this waits, and must not be called from a hook of the engine");
}

// ---- documents

struct document {
    struct arena arena; // texts, inputs, diagnostics
    struct cairn_start start;
    struct str text, file;
    struct json inputs;
    struct diagnostics diagnostics;
    struct program *program;
    const char *hint; // of the first mistake
};

static bool know_function(void *context, struct str name)
{
    const struct cairn *cairn = context;
    return functions_know(cairn->functions, name);
}

static enum code document_text(struct document *d, struct error *err)
{
    const struct cairn_start *start = &d->start;
    if (!start->document && !start->file) return error_set(err, E_INVALID, "neither a document nor a file was given");
    d->file = str_from(start->file ? start->file : "<document>");
    bool measured = start->document && start->document_len > 0; // then it need not end in NUL
    d->text = measured ? (struct str){start->document, start->document_len} : str_from(start->document);
    return start->document ? OK : os_read_file(start->file, DOCUMENT_MAX, &d->arena, &d->text, err);
}

static enum code document_inputs(struct document *d, struct error *err)
{
    d->inputs = json_object();
    if (!d->start.inputs) return OK;
    struct str text = arena_copy(&d->arena, str_from(d->start.inputs));
    if (!text.ptr) return error_nomem(err);
    enum code rc = json_parse(text, &json_limits_default, &d->arena, &d->inputs, err);
    if (rc) error_wrap(err, "inputs");
    if (!rc && d->inputs.type != JSON_OBJECT) rc = error_set(err, E_INVALID, "inputs are a JSON object");
    return rc;
}

static enum code document_open(struct document *d, const struct cairn_start *start, struct error *err)
{
    *d = (struct document){0};
    arena_init(&d->arena, 4096, (size_t)256 << 20);
    diagnostics_init(&d->diagnostics, &d->arena);
    if (!start || start->size < offsetof(struct cairn_start, file))
        return error_set(err, E_INVALID, "cairn_start.size is not set");
    memcpy(&d->start, start, start->size < sizeof(*start) ? start->size : sizeof(*start));
    return document_text(d, err);
}

static void document_close(struct document *d)
{
    program_release(d->program);
    arena_release(&d->arena);
}

static enum code document_compile(struct cairn *cairn, struct document *d, struct error *err)
{
    struct program_loader loader = {.context = cairn,
                                    .steps_max = cairn->options.max_steps,
                                    .load = engine_find_part,
                                    .host_kind = know_function};
    enum code rc = program_load(d->text, d->file, &loader, &d->diagnostics, &d->program, err);
    if (rc != E_INVALID) return rc;
    d->program = NULL;
    diagnostics_sort(&d->diagnostics);
    for (size_t i = 0; i < d->diagnostics.count; i++) {
        const struct diagnostic *first = &d->diagnostics.items[i];
        if (first->severity != SEVERITY_ERROR) continue;
        *err = (struct error){0};
        error_at(err, rc, first->line, first->column, "%.*s:%u:%u: %s %.*s", STR_ARG(first->file), first->line,
                 first->column, first->id, STR_ARG(first->message));
        struct str hint = arena_copy(&d->arena, first->hint);
        d->hint = hint.ptr;
        break;
    }
    return rc;
}

// A program that needs no other file means the same every time it is read.
static struct program *cached(struct cairn *cairn, const struct document *d)
{
    struct digest sha = sha256(d->text);
    for (size_t i = 0; i < PROGRAMS_CACHED; i++) {
        const struct program *program = cairn->programs[i];
        if (program && digest_eq(&program->sha256, &sha) && str_eq(program->file, d->file))
            return program_retain(program);
    }
    return NULL;
}

static void cache(struct cairn *cairn, const struct program *program)
{
    if (program->part_count > 0) return;
    for (size_t i = 0; i < PROGRAMS_CACHED; i++)
        if (cairn->programs[i] == program) return;
    struct program **slot = &cairn->programs[cairn->next_program++ % PROGRAMS_CACHED];
    program_release(*slot);
    *slot = program_retain(program);
}

// ---- starting

// The run is there already: that is fine when it is of this document.
static enum code attach(struct cairn *cairn, const struct document *d, struct error *err)
{
    struct run_head head;
    struct str run = str_from(d->start.run);
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)1 << 20);
    *err = (struct error){0};
    enum code rc = store_head(cairn->store, cairn->tenant, run, &arena, &head, err);
    if (!rc && !digest_eq(&head.document, &d->program->sha256))
        rc = error_set(err, E_CONFLICT, "run %s was started from another document (%.*s)", d->start.run,
                       STR_ARG(head.ids.plan_id));
    if (!rc && !head.terminal) {
        rc = engine_adopt(cairn->engine, cairn->tenant, run, err);
        if (rc == E_LOCKED || rc == E_TERMINAL) rc = OK; // it goes on elsewhere, or it has ended meanwhile
    }
    return rc;
}

static enum code start_stored(struct cairn *cairn, const struct document *d, char run[CAIRN_RUN_SIZE],
                              struct error *err)
{
    struct visit visit;
    char directory[PATH_MAX];
    struct start_request request = {.program = d->program,
                                    .tenant = cairn->tenant,
                                    .run = str_from(d->start.run),
                                    .inputs = d->inputs,
                                    .arguments = str_from(d->start.arguments),
                                    .work_dir = str_from(d->start.work_dir),
                                    .triggered_by = cairn->actor,
                                    .trigger_source = STR("api")};
    if (!d->start.work_dir && getcwd(directory, sizeof(directory))) request.work_dir = str_from(directory);
    enum code rc = visit_engine(cairn, &visit, err);
    if (rc) return rc;
    bool may_attach = (d->start.flags & CAIRN_ATTACH) && d->start.run;
    if (cairn->draining) rc = error_set(err, E_CONFLICT, "the engine is being closed");
    if (!rc) rc = engine_start(cairn->engine, &request, run, err);
    if (!rc) {
        cache(cairn, d->program);
        struct waiter waiter = {.run = str_from(run)};
        waiter_add(cairn, &waiter);
        engine_wake(cairn->engine);
        while (!waiter.stored && waiter.refused.code == OK && cairn->dead.code == OK)
            waiter_wait(cairn, &visit, &waiter, until_of(-1));
        waiter_remove(cairn, &waiter);
        const struct error *why = waiter.refused.code ? &waiter.refused : &cairn->dead;
        if (!waiter.stored) {
            rc = why->code;
            *err = *why;
        }
    }
    if (rc == E_EXISTS && may_attach) {
        memcpy(run, d->start.run, strlen(d->start.run) + 1); // a valid id: the run is there
        rc = attach(cairn, d, err);
        engine_wake(cairn->engine);
    }
    visit_end(cairn, &visit);
    return rc;
}

enum cairn_code cairn_start(struct cairn *cairn, const struct cairn_start *start, char run[CAIRN_RUN_SIZE],
                            struct cairn_error *error)
{
    struct error err = {0};
    struct document d;
    struct visit routes, visit;
    char id[CAIRN_RUN_SIZE] = "";
    enum code rc = wait_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    visit_routes(cairn, &routes);
    rc = document_open(&d, start, &err);
    if (!rc) rc = document_inputs(&d, &err);
    if (!rc) rc = visit_engine(cairn, &visit, &err);
    if (!rc) {
        d.program = cached(cairn, &d);
        visit_end(cairn, &visit);
        if (!d.program) rc = document_compile(cairn, &d, &err);
    }
    if (!rc) rc = start_stored(cairn, &d, id, &err);
    if (run) memcpy(run, id, sizeof(id));
    enum cairn_code told = tell(error, rc, &err, d.hint);
    document_close(&d);
    visit_routes_end(&routes);
    call_end(cairn);
    return told;
}

enum cairn_code cairn_check(struct cairn *cairn, const struct cairn_start *start, char **report,
                            struct cairn_error *error)
{
    struct error err = {0};
    struct document d;
    struct visit routes;
    *report = NULL;
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    visit_routes(cairn, &routes);
    rc = document_open(&d, start, &err);
    if (!rc) rc = document_compile(cairn, &d, &err);
    struct buf text SCOPED(buf_release) = buf_of((size_t)16 << 20);
    for (size_t i = 0; i < d.diagnostics.count; i++) diagnostic_write(&text, &d.diagnostics.items[i], d.text, false);
    if (buf_ok(&text)) *report = strdup(text.ptr);
    if (!*report && !rc) rc = error_nomem(&err);
    enum cairn_code told = tell(error, rc, &err, d.hint);
    document_close(&d);
    visit_routes_end(&routes);
    call_end(cairn);
    return told;
}

// ---- taking up

static enum code recover_one(struct cairn *cairn, struct str run, size_t *count, struct error *err)
{
    enum code rc = engine_adopt(cairn->engine, cairn->tenant, run, err);
    *count += rc == OK;
    return rc;
}

static enum code recover_all(struct cairn *cairn, size_t *count, struct error *err)
{
    struct run_filter filter = {.tenant = cairn->tenant, .unfinished = true, .limit = 256};
    struct arena arena SCOPED(arena_release) = arena_of(16384, (size_t)64 << 20);
    enum code rc;
    do {
        struct run_heads heads;
        arena_reset(&arena);
        rc = store_list(cairn->store, &filter, &arena, &heads, err);
        for (size_t i = 0; !rc && i < heads.count; i++) {
            struct error why = {0};
            rc = recover_one(cairn, heads.items[i].ids.run, count, &why);
            if (rc && rc != E_LOCKED && rc != E_TERMINAL)
                os_log(LOG_WARN, "run not taken up run=%.*s why=\"%s\"", STR_ARG(heads.items[i].ids.run), why.message);
            rc = rc == E_NOMEM || rc == E_IO ? error_set(err, rc, "%s", why.message) : OK;
        }
        filter.before = rc ? 0 : heads.next;
    } while (filter.before > 0);
    return rc;
}

enum cairn_code cairn_recover(struct cairn *cairn, const char *run, size_t *count, struct cairn_error *error)
{
    struct error err = {0};
    struct visit visit;
    size_t taken = 0;
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = visit_engine(cairn, &visit, &err);
    if (!rc) {
        if (cairn->draining) rc = error_set(&err, E_CONFLICT, "the engine is being closed");
        if (!rc) rc = run ? recover_one(cairn, str_from(run), &taken, &err) : recover_all(cairn, &taken, &err);
        engine_wake(cairn->engine);
        visit_end(cairn, &visit);
    }
    call_end(cairn);
    if (count) *count = taken;
    return tell(error, rc, &err, NULL);
}

// ---- waiting

// OK: *status is that of the run, *ours whether it is in this engine.
static enum code look_at_run(struct cairn *cairn, struct str run, enum run_status *status, bool *ours,
                             struct error *err)
{
    const struct run *resident = engine_run(cairn->engine, cairn->tenant, run);
    *ours = resident != NULL;
    if (resident) {
        *status = resident->status;
        return OK;
    }
    struct run_head head;
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)1 << 20);
    enum code rc = store_head(cairn->store, cairn->tenant, run, &arena, &head, err);
    if (!rc) *status = head.summary.status;
    return rc;
}

static enum code wait_for_end(struct cairn *cairn, struct visit *visit, struct waiter *waiter, int64_t until,
                              enum run_status *seen, struct error *err)
{
    for (;;) {
        bool ours = true;
        enum code rc = cairn->dead.code;
        if (rc) {
            *err = cairn->dead;
            return rc;
        }
        if (waiter->ended)
            *seen = waiter->status; // it has left the engine with its last event
        else
            rc = look_at_run(cairn, waiter->run, seen, &ours, err);
        if (rc || run_status_terminal(*seen)) return rc;
        int64_t now = os_now().mono_ms;
        if (now >= until)
            return error_set(err, E_TIMEOUT, "run %.*s has not ended: it is %s", STR_ARG(waiter->run),
                             run_status_name(*seen));
        int64_t next = now + (ours ? LOOK_AT_OURS_MS : LOOK_MS);
        waiter->stored = false;
        waiter_wait(cairn, visit, waiter, next < until ? next : until);
    }
}

enum cairn_code cairn_wait(struct cairn *cairn, const char *run, int64_t timeout_ms, enum cairn_status *status,
                           struct cairn_error *error)
{
    struct error err = {0};
    struct visit visit;
    enum code rc = wait_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    struct waiter waiter = {.run = str_from(run)};
    enum run_status seen = RUN_STATUS_PENDING;
    rc = visit_engine(cairn, &visit, &err);
    if (!rc) {
        waiter_add(cairn, &waiter);
        rc = wait_for_end(cairn, &visit, &waiter, until_of(timeout_ms), &seen, &err);
        waiter_remove(cairn, &waiter);
        visit_end(cairn, &visit);
    }
    call_end(cairn);
    if (status && (rc == OK || rc == E_TIMEOUT)) *status = (enum cairn_status)seen;
    return tell(error, rc, &err, NULL);
}

// ---- signals

struct sending {
    struct arena arena;
    struct signal signal;
    struct str bytes;
    char id[UUID_SIZE];
    struct cairn_decision decision;
};

static enum code signal_of(struct cairn *cairn, const struct cairn_signal *given, struct sending *out,
                           struct error *err)
{
    struct cairn_signal s = {0};
    if (!given || given->size < offsetof(struct cairn_signal, step))
        return error_set(err, E_INVALID, "cairn_signal.size is not set");
    memcpy(&s, given, given->size < sizeof(s) ? given->size : sizeof(s));
    entropy_uuid(&cairn->entropy, out->id);
    struct signal *signal = &out->signal;
    *signal = (struct signal){.type = signal_parse(str_from(s.type)),
                              .id = str_from(s.id ? s.id : out->id),
                              .step = str_from(s.step),
                              .reason = str_from(s.reason),
                              .actor = cairn->actor,
                              .role = STR("Admin"),
                              .force = s.force != 0};
    if (signal->type == SIGNAL_NONE)
        return error_set(err, E_INVALID, "there is no signal \"%s\"", s.type ? s.type : "");
    if (s.payload) {
        struct str text = arena_copy(&out->arena, str_from(s.payload));
        if (!text.ptr) return error_nomem(err);
        enum code rc = json_parse(text, &json_limits_default, &out->arena, &signal->payload, err);
        if (rc) return rc;
    }
    enum code rc = signal_encode(signal, &out->arena, &out->bytes, err);
    struct signal checked;
    return rc ? rc : signal_decode(cairn->contract, out->bytes, &out->arena, &checked, err);
}

static void tell_decision(const struct json *record, uint64_t seq, struct cairn_decision *out)
{
    struct str code = json_text(json_at(record, STR("engineResult.errorCode")));
    struct str why = json_text(json_key(record, "reason"));
    out->accepted = str_is(json_text(json_key(record, "decision")), "ACCEPTED");
    out->seq = seq;
    memcpy(out->code, code.ptr ? code.ptr : "", code.len < sizeof(out->code) ? code.len : sizeof(out->code) - 1);
    memcpy(out->message, why.ptr ? why.ptr : "", why.len < sizeof(out->message) ? why.len : sizeof(out->message) - 1);
}

static void read_decision(const struct record *record, struct arena *arena, struct cairn_decision *out)
{
    struct json body;
    struct error ignored = {0};
    struct str bytes = arena_copy(arena, record->bytes);
    if (bytes.ptr && !json_parse(bytes, &json_limits_record, arena, &body, &ignored))
        tell_decision(&body, record->seq, out);
}

// It was decided before: what was said then holds.
static enum code recall_decision(struct cairn *cairn, struct str run, struct sending *sending, struct error *err)
{
    struct visit visit;
    struct json record;
    uint64_t seq = 0;
    enum code rc = visit_reader(cairn, &visit, err);
    if (rc) return rc;
    rc = engine_find_decision(visit.store, cairn->tenant, run, sending->signal.id, &sending->arena, &record, &seq, err);
    visit_reader_end(cairn, &visit);
    if (!rc && !engine_same_signal(&sending->signal, &record))
        rc = error_set(err, E_CONFLICT, "SIGNAL_DUPLICATE: this id was used for another signal");
    if (rc) return rc;
    tell_decision(&record, seq, &sending->decision);
    struct str made = json_text(json_at(&record, STR("engineResult.newRunId")));
    if (made.len > 0 && made.len < sizeof(sending->decision.new_run))
        memcpy(sending->decision.new_run, made.ptr, made.len);
    return OK;
}

static enum code look_for_decision(struct cairn *cairn, struct str run, uint64_t after, struct sending *sending,
                                   struct error *err)
{
    struct visit visit;
    struct records page = {0};
    enum code rc = visit_reader(cairn, &visit, err);
    if (rc) return rc;
    struct record_range range = {.tenant = cairn->tenant, .run = run, .ledger = true, .after = after, .limit = 256};
    rc = store_read(visit.store, &range, &sending->arena, &page, err);
    bool found = false;
    for (size_t i = 0; !rc && !found && i < page.count; i++) {
        found = str_eq(page.items[i].signal_id, sending->signal.id) && str_is(page.items[i].type, "decision");
        if (found) read_decision(&page.items[i], &sending->arena, &sending->decision);
    }
    visit_reader_end(cairn, &visit);
    return rc ? rc : found ? OK : E_NOT_FOUND;
}

// Another process has the run: the signal goes to its inbox, the answer comes through the ledger.
static enum code post(struct cairn *cairn, struct str run, struct sending *sending, struct error *err)
{
    struct visit visit;
    struct run_head head;
    *err = (struct error){0};
    enum code rc = visit_engine(cairn, &visit, err);
    if (rc) return rc;
    rc = store_head(cairn->store, cairn->tenant, run, &sending->arena, &head, err);
    if (!rc) rc = store_post(cairn->store, cairn->tenant, run, sending->signal.id, sending->bytes, err);
    visit_end(cairn, &visit);
    int64_t until = until_of(POSTED_MS);
    while (!rc) {
        rc = look_for_decision(cairn, run, head.last_ledger_seq, sending, err);
        if (rc != E_NOT_FOUND) return rc;
        if (atomic_load(&cairn->closed)) return error_set(err, E_CONFLICT, "the engine is closed");
        if (os_now().mono_ms >= until)
            return error_set(err, E_TIMEOUT, "the process that has the run did not answer in ten seconds");
        *err = (struct error){0};
        rc = OK;
        usleep(20000);
    }
    return rc;
}

static enum code send(struct cairn *cairn, struct str run, struct sending *sending, struct error *err)
{
    struct visit visit;
    enum code rc = visit_engine(cairn, &visit, err);
    if (rc) return rc;
    struct waiter waiter = {.signal = sending->signal.id, .decision = &sending->decision};
    rc = engine_signal(cairn->engine, cairn->tenant, run, &sending->signal, err);
    if (!rc) {
        waiter_add(cairn, &waiter);
        engine_wake(cairn->engine);
        while (!waiter.decided && cairn->dead.code == OK) waiter_wait(cairn, &visit, &waiter, until_of(-1));
        waiter_remove(cairn, &waiter);
        if (!waiter.decided) {
            rc = cairn->dead.code;
            *err = cairn->dead;
        }
    }
    visit_end(cairn, &visit);
    return rc;
}

// The run that is meant by an id or an EngineRunRef.
static enum code named_run(struct cairn *cairn, struct str text, struct arena *arena, struct str *out, struct error *err)
{
    struct visit visit;
    *out = text;
    if (!run_ref_is(text)) return OK;
    enum code rc = reader_begin(cairn, &visit, err);
    if (rc) return rc;
    rc = reading_resolve(visit.store, cairn->tenant, text, arena, out, err);
    reader_end(cairn, &visit);
    return rc;
}

enum cairn_code cairn_signal(struct cairn *cairn, const char *run, const struct cairn_signal *signal,
                             struct cairn_decision *decision, struct cairn_error *error)
{
    struct error err = {0};
    struct visit routes;
    enum code rc = wait_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    struct sending *sending = calloc(1, sizeof(*sending));
    if (!sending) {
        call_end(cairn);
        return tell(error, E_NOMEM, NULL, NULL);
    }
    visit_routes(cairn, &routes);
    arena_init(&sending->arena, 4096, (size_t)64 << 20);
    struct str id = {0};
    rc = signal_of(cairn, signal, sending, &err);
    if (!rc) rc = named_run(cairn, str_from(run), &sending->arena, &id, &err);
    if (!rc) rc = send(cairn, id, sending, &err);
    if (rc == E_LOCKED) rc = post(cairn, id, sending, &err);
    if (!rc && sending->decision.duplicate) rc = recall_decision(cairn, id, sending, &err);
    if (!rc && decision) {
        size_t size = decision->size < sizeof(*decision) ? decision->size : sizeof(*decision);
        sending->decision.size = size;
        memcpy(decision, &sending->decision, size);
    }
    arena_release(&sending->arena);
    free(sending);
    visit_routes_end(&routes);
    call_end(cairn);
    return tell(error, rc, &err, NULL);
}
