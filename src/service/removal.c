// Removing a run, by two people: the first asks and gives the reason, another one asks again within a day, and then it is done.
//
//   reader   the run is there, has ended, the caller may; who asked before?          first time: the wish is noted, and refused
//   engine   the audit is durable before anything goes
//   engine   run and the runs it started leave the store; a tombstone stays
//   reader   their files go
#include "service/inside.h"

#include "archive/archive.h"
#include "base/civil.h"

#define WISH_MS ((int64_t)24 * 3600 * 1000)

struct removing {
    struct str run, reason, key;
    struct run_name *names; // the run and those it started
    struct run_ids *ids;
    size_t count, capacity;
};

// ---- reader: files

static bool remove_files(struct call *call, struct store *store)
{
    const struct removing *removing = call->state;
    for (size_t i = 0; i < removing->count; i++) {
        struct str dirs[2] = {{0}};
        uint64_t files = 0, bytes = 0;
        struct error err = {0};
        enum code rc = store_artifacts_dir(store, &removing->ids[i], &call->arena, &dirs[0]);
        if (!rc) rc = store_logs_dir(store, &removing->ids[i], &call->arena, &dirs[1]);
        for (size_t k = 0; !rc && k < ARRAY_COUNT(dirs); k++)
            if (dirs[k].len > 0) rc = tree_remove(dirs[k].ptr, &files, &bytes, &err);
        if (rc)
            os_log(LOG_WARN, "files of a removed run stay run=%.*s why=\"%s\"", STR_ARG(removing->names[i].run),
                   err.message);
    }
    call->answer.status = 204;
    call->done(call);
    return true;
}

// ---- engine

static bool remove_on_engine(struct call *call)
{
    const struct removing *removing = call->state;
    struct error err = {0};
    enum code rc =
        store_remove(call->service->store, removing->names, removing->count, os_now().wall_ms, removing->reason, &err);
    if (rc == E_CONFLICT)
        return call_problem(call, 409, "RUN_NOT_TERMINAL", "the run, or one that it started, has not ended");
    if (rc) return call_failed(call, &err);
    return service_read(call, remove_files);
}

static void audited(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    if (rc)
        call_failed(call, why);
    else
        service_post(call, remove_on_engine);
}

static bool settle_on_engine(struct call *call)
{
    const struct removing *removing = call->state;
    struct error err = {0};
    struct note_put put = {.space = STR("removal"), .key = removing->key, .remove = true, .expect = NOTE_ANY};
    enum code rc = audit_call(call, OPERATION_RUN_DELETE, removing->run, removing->reason, &err);
    if (!rc) rc = audit_flush(call->service, &err); // before the note, so that both are durable together
    if (!rc) rc = engine_put(call->service->engine, &put, 1, audited, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

static void wished(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    if (rc) {
        call_failed(call, why);
        return;
    }
    call->answer.hint = STR("another person sends the same request within a day");
    call_problem(call, 403, "AUTHZ_APPROVAL_REQUIRED", "the wish is noted; another person has to agree");
}

static bool wish_on_engine(struct call *call)
{
    const struct removing *removing = call->state;
    struct error err = {0};
    struct json wish = json_object();
    char now[CIVIL_SIZE];
    civil_format(os_now().wall_ms, now);
    JSON_ADD(&call->arena, &wish, {"at", json_word(now)}, {"by", json_string(call->who.id)},
             {"reason", json_string(removing->reason)});
    bool ok = json_ok(&wish);
    struct buf text SCOPED(buf_release) = buf_of(16 * 1024);
    if (ok) json_canon(&text, &wish);
    struct note_put put = {.space = STR("removal"), .key = removing->key, .value = buf_str(&text), .expect = NOTE_ANY};
    enum code rc =
        ok && buf_ok(&text) ? engine_put(call->service->engine, &put, 1, wished, call, &err) : error_nomem(&err);
    if (rc) return call_failed(call, &err);
    return true;
}

// ---- reader: may it be?

// The person who asked before, while that still counts.
static enum code read_wish(struct call *call, struct store *store, struct str *by, struct error *err)
{
    const struct removing *removing = call->state;
    struct note note;
    struct json wish;
    int64_t at;
    *by = (struct str){0};
    enum code rc = store_note(store, STR("removal"), removing->key, &call->arena, &note, err);
    if (rc == E_NOT_FOUND) return OK;
    if (!rc) rc = json_parse(note.value, NULL, &call->arena, &wish, err);
    if (!rc && civil_parse(json_text(json_key(&wish, "at")), &at) && at + WISH_MS > os_now().wall_ms)
        rc = tokens_person(call->service, store, json_text(json_key(&wish, "by")), &call->arena, by, err);
    return rc;
}

static enum code add(struct call *call, const struct run_head *head, struct error *err)
{
    struct removing *removing = call->state;
    size_t capacity = removing->capacity;
    struct run_name *names =
        arena_grow(&call->arena, removing->names, removing->count, removing->count + 1, sizeof(*names), &capacity);
    struct run_ids *ids = arena_grow(&call->arena, removing->ids, removing->count, removing->count + 1, sizeof(*ids),
                                     &removing->capacity);
    if (!names || !ids) return error_nomem(err);
    removing->names = names;
    removing->ids = ids;
    names[removing->count] = (struct run_name){head->ids.tenant, head->ids.run};
    ids[removing->count++] = head->ids;
    return OK;
}

// The runs that it started, and theirs.
static enum code collect(struct call *call, struct store *store, const struct run_head *head, struct error *err)
{
    struct removing *removing = call->state;
    enum code rc = add(call, head, err);
    for (size_t at = 0; !rc && at < removing->count; at++) {
        struct run_image image;
        rc = archive_read(store, removing->names[at].tenant, removing->names[at].run, &call->arena, &image, err);
        for (size_t i = 0; !rc && i < image.child_count; i++) {
            struct run_head child;
            enum code found = store_head(store, call->who.tenant, image.children[i], &call->arena, &child, err);
            if (found == OK)
                rc = add(call, &child, err);
            else if (found != E_NOT_FOUND)
                rc = found;
        }
    }
    return rc;
}

static bool check(struct call *call, struct store *store)
{
    struct removing *removing = call->state;
    struct run_head head;
    struct error err = {0};
    struct str wished_by = {0};
    bool waits = false;
    enum code rc = store_head(store, call->who.tenant, removing->run, &call->arena, &head, &err);
    bool absent = rc == E_NOT_FOUND;
    if (!rc) rc = read_wish(call, store, &wished_by, &err);
    if (rc && !absent) return call_failed(call, &err);
    struct auth_object object = {.tenant = call->who.tenant};
    if (!absent)
        object = (struct auth_object){.tenant = head.ids.tenant,
                                      .project = head.ids.project,
                                      .environment = head.ids.environment,
                                      .agreed_by = wished_by,
                                      .exists = true};
    bool may = service_may_after(call, OPERATION_RUN_DELETE, &object, removing->reason, &waits);
    if (!may && !waits) return false;
    if (!head.terminal) return call_problem(call, 409, "RUN_NOT_TERMINAL", "only runs that have ended can be removed");
    if (waits) return service_post(call, wish_on_engine);
    rc = collect(call, store, &head, &err);
    if (rc) return call_failed(call, &err);
    return service_post(call, settle_on_engine);
}

bool service_remove(struct call *call, struct str run, struct str reason)
{
    struct removing *removing = CALL_NEW(call, struct removing);
    if (!removing) return false;
    call->state = removing;
    call->resource = run;
    removing->run = run;
    removing->reason = reason;
    removing->key = call_text(call, "%.*s/%.*s", STR_ARG(call->who.tenant), STR_ARG(run));
    if (removing->key.ptr) return service_read(call, check);
    return call_nomem(call);
}
