// A plugin with two kinds of steps: one answers at once, the other later, from a thread of its own.
//   cc -shared -fPIC -o greet.so greet.c $(pkg-config --cflags cairn) && cairn run --plugin ./greet.so greet.yaml
#define _POSIX_C_SOURCE 200809L
#include <cairn/plugin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct later {
    const struct cairn_host *host;
    uint64_t token;
};

static void *answer(void *context)
{
    struct later *later = context;
    struct cairn_result result = {.size = sizeof(result), .output = "{\"greeting\":\"hello, later\"}"};
    later->host->complete(later->host, later->token, &result, NULL); // refused when nobody waits any more
    free(later);
    return NULL;
}

static enum cairn_answer greet(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    const struct cairn_host *host = context;
    host->log(host, attempt->token, "greeting");
    result->output = result->memory = strdup(attempt->input); // a JSON object: the `with` of the step
    result->release = free;
    return CAIRN_DONE;
}

static enum cairn_answer greet_later(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    pthread_t thread;
    struct later *later = malloc(sizeof(*later));
    if (later) *later = (struct later){context, attempt->token};
    if (later && pthread_create(&thread, NULL, answer, later) == 0) {
        pthread_detach(thread);
        return CAIRN_PENDING;
    }
    free(later);
    result->code = "NO_THREAD";
    result->retryable = 1;
    return CAIRN_FAIL;
}

int cairn_plugin_init(const struct cairn_host *host)
{
    if (host->abi != CAIRN_PLUGIN_ABI) return 1;
    struct cairn_kind kinds[] = {
        {.size = sizeof(struct cairn_kind), .name = "greet", .run = greet},
        {.size = sizeof(struct cairn_kind), .name = "greet-later", .run = greet_later},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        kinds[i].context = (void *)(uintptr_t)host;
        if (host->add(host, &kinds[i], NULL) != CAIRN_OK) return 2;
    }
    return 0;
}
