// Calls that wait to read: tenants take turns.
#include "harness/test.h"
#include "service/inside.h"

#include <stdlib.h>

static char order[1000];
static size_t answered, overloaded;

// In the order in which the one reader comes to them. It cannot open its store, so each is answered by it.
static void done(struct call *call)
{
    bool full = call->answer.status == 429;
    overloaded += full;
    if (!full && answered < sizeof(order)) order[answered++] = call->who.tenant.ptr[0];
    call_free(call);
}

static bool never(struct call *call, struct store *store)
{
    (void)call;
    (void)store;
    CHECK(false);
    return false;
}

static void ask(struct service *service, struct str tenant)
{
    struct call *call = call_new(service, 4096);
    CHECK(call);
    call->who.tenant = tenant;
    call->done = done;
    service_read(call, never);
}

static struct service *make(uint32_t reads_max)
{
    struct service *service = calloc(1, sizeof(*service));
    CHECK(service);
    pthread_mutex_init(&service->readers.mutex, NULL);
    pthread_cond_init(&service->readers.arrived, NULL);
    service->settings.store = STR("sqlite:/nowhere/at/all.db");
    service->settings.readers = 1;
    service->settings.reads_max = reads_max;
    answered = overloaded = 0;
    return service;
}

static void serve(struct service *service)
{
    struct error err = {0};
    CHECK_OK(readers_start(service, &err), &err);
    readers_stop(service);
    CHECK(!service->readers.first && !service->readers.last && service->readers.waiting == 0);
    free(service);
}

static void a_tenant_with_many_calls_keeps_others_waiting_for_one(void)
{
    struct service *service = make(1000);
    for (int i = 0; i < 50; i++) ask(service, STR("acme"));
    for (int i = 0; i < 50; i++) ask(service, STR("doe"));
    ask(service, STR("bob"));
    ask(service, STR("bob"));
    serve(service);
    CHECK_INT(answered, 102);
    CHECK_STR(str_slice((struct str){order, answered}, 0, 8), STR("adbadbad"));
}

static void a_tenant_has_no_more_than_half_of_the_places(void)
{
    struct service *service = make(100);
    for (int i = 0; i < 100; i++) ask(service, STR("acme"));
    CHECK_INT(overloaded, 50);
    size_t before = overloaded;
    ask(service, STR("bob"));
    CHECK_INT(overloaded, before);
    serve(service);
    CHECK_STR(str_slice((struct str){order, answered}, 0, 3), STR("aba"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_tenant_with_many_calls_keeps_others_waiting_for_one),
        TEST(a_tenant_has_no_more_than_half_of_the_places),
    };
    return test_main("service_readers", tests, ARRAY_COUNT(tests), argc, argv);
}
