// Readiness is what the last batches came to.
#include "harness/test.h"
#include "service/inside.h"

#include <stdlib.h>

static bool writes_after(enum code rc)
{
    struct service *service = calloc(1, sizeof *service);
    CHECK(service);
    CHECK_INT(pthread_mutex_init(&service->mutex, NULL), 0);
    health_start(service);
    health_stored(service, rc);
    bool writes = service_health(service).writes;
    pthread_mutex_destroy(&service->mutex);
    free(service);
    return writes;
}

static void a_service_that_lost_a_race_for_a_run_id_is_ready(void)
{
    CHECK(writes_after(OK));
    CHECK(writes_after(E_EXISTS));
    CHECK(writes_after(E_CONFLICT));
}

static void a_service_whose_store_fails_is_not_ready(void)
{
    static const enum code fails[] = {E_IO, E_FULL, E_LOCKED, E_NOMEM, E_UNREACHABLE};
    for (size_t i = 0; i < ARRAY_COUNT(fails); i++) CHECK(!writes_after(fails[i]));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_service_that_lost_a_race_for_a_run_id_is_ready),
        TEST(a_service_whose_store_fails_is_not_ready),
    };
    return test_main("service_health", tests, ARRAY_COUNT(tests), argc, argv);
}
