// Readiness is what the last batches came to.
#include "harness/test.h"
#include "service/inside.h"

#include <stdlib.h>

static struct service *make(void)
{
    struct service *service = calloc(1, sizeof *service);
    CHECK(service);
    CHECK_INT(pthread_mutex_init(&service->mutex, NULL), 0);
    health_start(service);
    return service;
}

static bool writes_at_last(struct service *service)
{
    bool writes = service_health(service).writes;
    pthread_mutex_destroy(&service->mutex);
    free(service);
    return writes;
}

static bool writes_after(enum code rc)
{
    struct service *service = make();
    health_stored(service, rc);
    return writes_at_last(service);
}

// A quiet service was asked for its health, and the note that this caused is on its way since so long.
static bool writes_while_probing(int64_t since_ms)
{
    struct service *service = make();
    int64_t now = os_now().mono_ms;
    service->health.stored_ms = now - 3600000;
    service->health.probing_ms = now - since_ms;
    return writes_at_last(service);
}

static void a_second_question_after_a_quiet_hour_waits_for_the_first_ones_note(void)
{
    CHECK(writes_while_probing(1));
    CHECK(!writes_while_probing(3600000));
}

static void an_input_that_cannot_be_stored_tells_nothing_about_the_store(void)
{
    static const enum code of_input[] = {E_SCHEMA, E_LIMIT, E_INVALID, E_TERMINAL, E_DENIED};
    for (size_t i = 0; i < ARRAY_COUNT(of_input); i++) {
        CHECK(writes_after(of_input[i]));
        struct service *service = make();
        health_stored(service, E_FULL);
        health_stored(service, of_input[i]);
        CHECK(!writes_at_last(service));
    }
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
        TEST(a_second_question_after_a_quiet_hour_waits_for_the_first_ones_note),
        TEST(an_input_that_cannot_be_stored_tells_nothing_about_the_store),
    };
    return test_main("service_health", tests, ARRAY_COUNT(tests), argc, argv);
}
