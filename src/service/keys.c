// The key with which this installation signs: made once, kept in the store.
#include "service/inside.h"

#include "archive/archive.h"

static enum code make(struct service *service, struct error *err)
{
    struct str pem;
    enum code rc = key_new(&service->bundle_key, err);
    if (!rc) rc = key_pem(service->bundle_key, true, &service->arena, &pem, err);
    if (rc) return rc;
    struct note_put put = {.space = STR("key"), .key = STR("bundle"), .value = pem};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    return store_append(service->store, &batch, os_now().wall_ms, &service->arena, err);
}

enum code keys_open(struct service *service, struct error *err)
{
    struct note note;
    enum code rc = store_note(service->store, STR("key"), STR("bundle"), &service->arena, &note, err);
    if (rc == OK) return key_parse(note.value, &service->bundle_key, err);
    if (rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    rc = make(service, err);
    if (rc != E_CONFLICT) return rc;
    *err = (struct error){0}; // another engine that starts just now was faster
    keys_close(service);
    return keys_open(service, err);
}

void keys_close(struct service *service)
{
    key_free(service->bundle_key);
    service->bundle_key = NULL;
}

const struct archive_key *service_bundle_key(const struct service *service)
{
    return service->bundle_key;
}
