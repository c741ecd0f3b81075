// What is left to do for a job whose processes are gone: its working directory is removed, its output is kept where it is a file, and its
// result is delivered, for which the files that it declared are read. And what comes before: providers of secrets are asked. A step
// decides how much that is, and the tool thread serves all tenants: what is not done in a moment is done by a thread of these, of
// which a tenant has one at most.
#include "tool/internal.h"

#include <string.h>

enum { IN_A_MOMENT = 256 };

static void end(struct aftermath *aftermath, struct job *job)
{
    job->work_dir = STR("");
    struct tool_result result = job_result(job, os_now().mono_ms);
    job_end_log(job);
    aftermath->options->deliver(aftermath->options->context, &result);
}

// ---- the threads

static bool has_thread(const struct aftermath *aftermath, const struct digest *tenant)
{
    for (size_t i = 0; i < AFTERMATH_THREADS; i++)
        if (memcmp(&aftermath->at_work[i], tenant, sizeof(*tenant)) == 0) return true;
    return false;
}

static struct job *next(struct aftermath *aftermath, struct digest *tenant) // locked
{
    for (struct job *job = aftermath->waiting.first; job; job = job->next) {
        *tenant = sha256(job->tenant);
        if (has_thread(aftermath, tenant)) continue;
        job_list_remove(&aftermath->waiting, job);
        return job;
    }
    return NULL;
}

static struct job *wait_for_one(struct aftermath *aftermath, size_t self)
{
    struct job *job = NULL;
    struct digest tenant;
    LOCKED(&aftermath->mutex);
    aftermath->at_work[self] = (struct digest){0};
    aftermath->idle++;
    while (!atomic_load(&aftermath->closing) && !(job = next(aftermath, &tenant)))
        pthread_cond_wait(&aftermath->changed, &aftermath->mutex);
    aftermath->idle--;
    if (job) aftermath->at_work[self] = tenant;
    return job;
}

static size_t number_of(struct aftermath *aftermath)
{
    size_t number = 0;
    LOCKED(&aftermath->mutex); // until all of `threads` is written
    while (!pthread_equal(aftermath->threads[number], pthread_self())) number++;
    return number;
}

static void *work(void *context)
{
    struct aftermath *aftermath = context;
    struct job *job;
    os_log_through(aftermath->log);
    pthread_setname_np(pthread_self(), "cairn-after");
    size_t self = number_of(aftermath);
    if (self == 0 && aftermath->sweeps) workdir_sweep(aftermath->options->confinement, &aftermath->closing);
    while ((job = wait_for_one(aftermath, self))) {
        if (job->away) {
            job_read_secrets(job, aftermath->options);
            aftermath->give_back(aftermath, job);
            continue;
        }
        bool gone = !job->work_dir.len || workdir_remove(job->work_dir, WORKDIR_ALL, &aftermath->closing);
        if (gone)
            end(aftermath, job);
        else
            job_free(job); // closing
    }
    return NULL;
}

static void add_thread(struct aftermath *aftermath) // locked
{
    if (aftermath->count == AFTERMATH_THREADS) return;
    if (os_thread(&aftermath->threads[aftermath->count], NULL, work, aftermath) == 0) aftermath->count++;
}

// ---- for the tools

void aftermath_init(struct aftermath *aftermath, const struct tool_options *options, struct os_log_route log)
{
    *aftermath = (struct aftermath){.options = options, .log = log};
    pthread_mutex_init(&aftermath->mutex, NULL);
    pthread_cond_init(&aftermath->changed, NULL);
    atomic_init(&aftermath->closing, false);
}

void aftermath_sweep(struct aftermath *aftermath)
{
    LOCKED(&aftermath->mutex);
    aftermath->sweeps = true;
    add_thread(aftermath);
}

static bool hand_over(struct aftermath *aftermath, struct job *job)
{
    LOCKED(&aftermath->mutex);
    if (aftermath->idle == 0 || aftermath->waiting.first) add_thread(aftermath);
    if (aftermath->count == 0) return false;
    job_list_add(&aftermath->waiting, job);
    pthread_cond_signal(&aftermath->changed);
    return true;
}

bool aftermath_prepare(struct aftermath *aftermath, struct job *job)
{
    return hand_over(aftermath, job);
}

void aftermath_take(struct aftermath *aftermath, struct job *job)
{
    bool little = !job->declares && !job->spill.begun && (!job->work_dir.len || workdir_remove(job->work_dir, IN_A_MOMENT, NULL));
    if (!little && hand_over(aftermath, job)) return;
    if (!little && job->work_dir.len) (void)workdir_remove(job->work_dir, WORKDIR_ALL, NULL); // there are no threads
    end(aftermath, job);
}

void aftermath_close(struct aftermath *aftermath)
{
    pthread_mutex_lock(&aftermath->mutex);
    atomic_store(&aftermath->closing, true);
    pthread_cond_broadcast(&aftermath->changed);
    pthread_mutex_unlock(&aftermath->mutex);
    for (size_t i = 0; i < aftermath->count; i++) pthread_join(aftermath->threads[i], NULL);
    for (struct job *job = aftermath->waiting.first, *following; job; job = following) {
        following = job->next;
        job_free(job);
    }
    pthread_cond_destroy(&aftermath->changed);
    pthread_mutex_destroy(&aftermath->mutex);
}
