// Steps that really run, one at a time, with the tools of the product. To the world their result is there at once.
#include "trial/inside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct real_tools {
    struct tools *tools;
    char mark[40];
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    bool there;
    struct tool_result result;
};

static void deliver(void *context, struct tool_result *result)
{
    struct real_tools *real = context;
    LOCKED(&real->mutex);
    real->result = *result;
    real->there = true;
    pthread_cond_signal(&real->arrived);
}

static enum code open_real(struct stage *stage, struct error *err)
{
    if (stage->real) return OK;
    struct real_tools *real = calloc(1, sizeof(*real));
    if (!real) return error_nomem(err);
    snprintf(real->mark, sizeof(real->mark), "trial-%ld", (long)getpid());
    pthread_mutex_init(&real->mutex, NULL);
    pthread_cond_init(&real->arrived, NULL);
    struct tool_options options = {.mark = real->mark, .process_max = 1, .deliver = deliver, .context = real};
    enum code rc = tools_open(&options, &real->tools, err);
    if (rc)
        free(real);
    else
        stage->real = real;
    return rc;
}

void real_close(struct real_tools *real)
{
    if (!real) return;
    real->tools->ops->close(real->tools);
    pthread_cond_destroy(&real->arrived);
    pthread_mutex_destroy(&real->mutex);
    free(real);
}

enum code real_run(struct stage *stage, const struct tool_request *request, struct fake_answer *answer,
                   struct error *err)
{
    enum code rc = open_real(stage, err);
    if (rc) return rc;
    struct real_tools *real = stage->real;
    real->there = false;
    rc = real->tools->ops->start(real->tools, request, err);
    if (rc) return rc;
    pthread_mutex_lock(&real->mutex);
    while (!real->there) pthread_cond_wait(&real->arrived, &real->mutex);
    pthread_mutex_unlock(&real->mutex);
    answer->ok = real->result.ok;
    answer->output = real->result.output;
    answer->fault = real->result.fault;
    if (!ARENA_KEEP(stage->arena, &answer->output) || !fault_keep(stage->arena, &answer->fault)) rc = error_nomem(err);
    tool_result_free(&real->result);
    return rc;
}
