// Verifying all runs. Runs are independent of each other, so threads take them from one list, a run at a time; each thread has a handle,
// arenas and a report of its own, and the reports are put together in the order of the list afterwards.
#include "store/verify.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_PAGE = 128, THREADS_MAX = 16, RUNS_WORTH = 4 /* so many runs are worth a second thread */ };

// Runs as they were listed. The last thread that looks at one of them frees them.
struct page {
    struct arena arena;
    struct run_heads heads;
    size_t next, users;
    bool retired; // a newer page is in its place
};

struct crowd {
    struct store *store; // for the list; under `lock`
    pthread_mutex_t lock;
    struct run_filter filter;
    struct page *page;
    bool listed;       // no more pages
    uint64_t run_next; // place in the list of the run that is taken next
    enum code rc;      // of listing
    struct error err;
};

// Faults of one run, with its place in the list.
struct found {
    uint64_t place;
    size_t first, count;
};

struct worker {
    struct crowd *crowd;
    pthread_t thread;
    bool started;
    struct store *store;
    struct arena arena;
    struct verify_report report;
    struct found *found;
    size_t found_count, found_capacity;
    enum code rc;
    struct error err;
};

// ---- the list

static void page_free(struct page *page)
{
    arena_release(&page->arena);
    free(page);
}

static void page_leave(struct page *page)
{
    INVARIANT(page->users > 0);
    page->users--;
    if (page->users == 0 && page->retired) page_free(page);
}

static enum code turn_page(struct crowd *crowd)
{
    struct page *page = calloc(1, sizeof(*page));
    if (!page) return error_nomem(&crowd->err);
    arena_init(&page->arena, 64 * 1024, SIZE_MAX);
    enum code rc = store_list(crowd->store, &crowd->filter, &page->arena, &page->heads, &crowd->err);
    if (rc) {
        page_free(page);
        return rc;
    }
    if (crowd->page) {
        crowd->page->retired = true;
        if (crowd->page->users == 0) page_free(crowd->page);
    }
    crowd->page = page;
    crowd->filter.before = page->heads.next;
    crowd->listed = page->heads.next == 0;
    return OK;
}

// The next run, NULL at the end. *page is to be left with leave().
static const struct run_head *take(struct crowd *crowd, struct page **page, uint64_t *place)
{
    const struct run_head *head = NULL;
    LOCKED(&crowd->lock);
    while (!crowd->rc && !head) {
        if (crowd->page && crowd->page->next < crowd->page->heads.count) {
            head = &crowd->page->heads.items[crowd->page->next++];
            *page = crowd->page;
            crowd->page->users++;
            *place = crowd->run_next++;
        } else if (crowd->listed) {
            break;
        } else {
            crowd->rc = turn_page(crowd);
        }
    }
    return head;
}

static void leave(struct crowd *crowd, struct page *page)
{
    LOCKED(&crowd->lock);
    page_leave(page);
}

static void stop(struct crowd *crowd, enum code rc)
{
    LOCKED(&crowd->lock);
    if (!crowd->rc) crowd->rc = rc;
}

// ---- workers

static bool note_found(struct worker *worker, uint64_t place, size_t first, size_t end)
{
    INVARIANT(end >= first);
    size_t count = end - first;
    if (count == 0) return true;
    if (!ARENA_ROOM(&worker->arena, worker->found, worker->found_count, &worker->found_capacity)) return false;
    worker->found[worker->found_count++] = (struct found){place, first, count};
    return true;
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct verify verify;
    struct page *page;
    uint64_t place;
    verify_begin(&verify, worker->store, &worker->arena, &worker->report, &worker->err);
    for (const struct run_head *head; (head = take(worker->crowd, &page, &place));) {
        size_t first = verify.faults.count;
        verify_run(&verify, head);
        leave(worker->crowd, page);
        if (!verify.rc && !note_found(worker, place, first, verify.faults.count)) verify.rc = error_nomem(&worker->err);
        if (verify.rc) {
            stop(worker->crowd, verify.rc);
            break;
        }
    }
    worker->rc = verify.rc;
    verify_end(&verify);
    return NULL;
}

// A store that only this handle can see (tests, memory) or that may hold what others do not see yet is verified by one thread.
static size_t thread_count(const struct store *store)
{
    const struct store_options *options = &store->options;
    if (options->mode != STORE_READ || options->disk || options->vfs || strcmp(store->ops->kind, "memory") == 0)
        return 1;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > THREADS_MAX ? THREADS_MAX : (size_t)processors;
}

// The first worker is the calling thread with the caller's handle; a thread that cannot be had is done without.
static void start_others(struct worker *workers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct store *store = workers[0].store;
        if (store_open(str_from(store->url), &store->options, &workers[i].store, NULL)) continue;
        workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
}

// ---- one report

struct shown {
    uint64_t place;
    const struct worker *worker;
    size_t first, count;
};

static int compare_shown(const void *a, const void *b)
{
    uint64_t x = ((const struct shown *)a)->place, y = ((const struct shown *)b)->place;
    return x < y ? -1 : x > y;
}

static bool gather(const struct worker *workers, size_t count, struct arena *arena, struct verify_report *out,
                   struct faults *faults)
{
    size_t runs = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct verify_report *report = &workers[i].report;
        out->run_count += report->run_count;
        out->event_count += report->event_count;
        out->redacted_count += report->redacted_count;
        runs += workers[i].found_count;
    }
    struct shown *shown = ARENA_ARRAY(arena, runs + 1, struct shown);
    if (!shown) return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < workers[i].found_count; k++) {
            const struct found *found = &workers[i].found[k];
            shown[at++] = (struct shown){found->place, &workers[i], found->first, found->count};
        }
    INVARIANT(at == runs);
    qsort(shown, runs, sizeof(*shown), compare_shown);
    for (size_t i = 0; i < runs; i++)
        for (size_t k = 0; k < shown[i].count; k++)
            if (!fault_add(faults, arena, &shown[i].worker->report.faults[shown[i].first + k])) return false;
    return true;
}

static enum code verify_all(struct store *store, struct str tenant, struct arena *arena, struct verify_report *out,
                            struct error *err)
{
    struct crowd crowd = {.store = store, .filter = {.tenant = tenant, .limit = RUNS_PAGE}};
    struct worker workers[THREADS_MAX] = {{0}};
    pthread_mutex_init(&crowd.lock, NULL);
    size_t count = thread_count(store);
    if (count > 1) {
        crowd.rc = turn_page(&crowd);
        if (crowd.rc || (crowd.listed && crowd.page->heads.count < RUNS_WORTH)) count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        workers[i].crowd = &crowd;
        arena_init(&workers[i].arena, 16 * 1024, SIZE_MAX);
    }
    // The list goes through a handle of its own when there are helpers: the first worker reads through the caller's meanwhile.
    struct store *lister = NULL;
    if (count > 1 && store_open(str_from(store->url), &store->options, &lister, NULL) == OK) crowd.store = lister;
    workers[0].store = store;
    if (lister) start_others(workers, count);
    work(&workers[0]);
    for (size_t i = 1; i < count; i++)
        if (workers[i].started) pthread_join(workers[i].thread, NULL);
    enum code rc = OK;
    for (size_t i = 0; i < count && !rc; i++)
        if (workers[i].rc) rc = error_set(err, workers[i].rc, "%s", workers[i].err.message);
    if (!rc && crowd.rc) rc = error_set(err, crowd.rc, "%s", crowd.err.message);
    struct faults faults = {0};
    if (!rc && !gather(workers, count, arena, out, &faults)) rc = error_nomem(err);
    // What is not there belongs to no tenant.
    if (!rc && !tenant.len) rc = store->ops->admin.missing(store, arena, &faults, err);
    out->faults = faults.items;
    out->fault_count = faults.count;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) store_close(workers[i].store);
        arena_release(&workers[i].arena);
    }
    store_close(lister);
    if (crowd.page) page_free(crowd.page);
    pthread_mutex_destroy(&crowd.lock);
    return rc;
}

enum code store_verify(struct store *store, struct str tenant, struct str run, struct arena *arena,
                       struct verify_report *out, struct error *err)
{
    *out = (struct verify_report){0};
    if (!run.len) return verify_all(store, tenant, arena, out, err);
    return store_verify_run(store, tenant, run, arena, out, err);
}
