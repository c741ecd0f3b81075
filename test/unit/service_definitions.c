// Approvals as an engine among others sees them: they are read again every two seconds, for as long as it lives.
#include "conformance/store_kit.h"
#include "service/inside.h"

#include <stdlib.h>

static struct kit kit;
static struct service *service;

static void begin(void)
{
    kit_init(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &kit.store, &kit.err), &kit.err);
    service = calloc(1, sizeof(*service));
    CHECK(service);
    service->store = kit.store;
    pthread_rwlock_init(&service->approvals.lock, NULL);
}

static void end(void)
{
    free(service->approvals.items);
    pthread_rwlock_destroy(&service->approvals.lock);
    free(service);
    kit_release(&kit);
}

static void note(const char *key, const char *value, bool remove)
{
    struct note_put put = {
        .space = STR("approved"), .key = str_from(key), .value = str_from(value), .remove = remove, .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK_OK(definitions_reload(service, &kit.err), &kit.err);
}

static bool approved(const char *tenant, const char *hash)
{
    return definitions_approved(service, str_from(tenant), str_from(hash));
}

static void approvals_read_again_take_the_place_of_those_before(void)
{
    begin();
    note("a", "{\"sha256\":\"aa\",\"tenantId\":\"one\"}", false);
    note("b", "{\"sha256\":\"bb\",\"tenantId\":\"two\"}", false);
    for (int i = 0; i < 100; i++) CHECK_OK(definitions_reload(service, &kit.err), &kit.err);
    CHECK_INT(service->approvals.count, 2);
    CHECK(approved("one", "aa") && approved("two", "bb"));
    CHECK(!approved("two", "aa") && !approved("one", "bb"));
    note("a", "", true);
    CHECK_INT(service->approvals.count, 1);
    CHECK(!approved("one", "aa") && approved("two", "bb"));
    end();
}

static void a_note_that_cannot_be_read_leaves_them_as_they_were(void)
{
    begin();
    note("a", "{\"sha256\":\"aa\",\"tenantId\":\"one\"}", false);
    struct note_put put = {.space = STR("approved"), .key = STR("b"), .value = STR("{"), .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK(definitions_reload(service, NULL) != OK);
    CHECK_INT(service->approvals.count, 1);
    CHECK(approved("one", "aa"));
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(approvals_read_again_take_the_place_of_those_before),
        TEST(a_note_that_cannot_be_read_leaves_them_as_they_were),
    };
    return test_main("service_definitions", tests, ARRAY_COUNT(tests), argc, argv);
}
