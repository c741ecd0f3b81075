// The runs that a query means.
#include "reading/reading.h"

enum { PAGE_MAX = 500, PROGRAMS_MAX = 64, SPAN_MIN = 2048, SPAN_MAX = 1 << 24, QUICK_US = 2000, LOOKED_MIN = 100 };

// Documents are few and runs are many.
struct kept_program {
    struct digest document;
    struct program *program; // NULL: cannot be read
};

// What the filter and the query both say about the same thing is the narrower of the two.
static void narrow(struct select *select)
{
    struct query_bounds bounds;
    struct run_filter *filter = &select->filter;
    query_bounds(select->query, &bounds);
    uint32_t both = bounds.status_mask & filter->status_mask;
    select->nothing = bounds.nothing || (bounds.status_mask && filter->status_mask && !both) ||
                      (bounds.plan.len && filter->plan.len && !str_eq(bounds.plan, filter->plan));
    filter->status_mask = bounds.status_mask && filter->status_mask ? both : bounds.status_mask | filter->status_mask;
    if (bounds.plan.len) filter->plan = bounds.plan;
    if (bounds.run_prefix.len) filter->run_prefix = bounds.run_prefix;
    if (bounds.since_ms > filter->since_ms) filter->since_ms = bounds.since_ms;
    if (bounds.until_ms && (!filter->until_ms || bounds.until_ms < filter->until_ms))
        filter->until_ms = bounds.until_ms;
}

enum code select_open(struct select *select, struct store *store, const struct run_filter *filter, struct str query,
                      int64_t now_ms, struct query_fault *fault)
{
    *select = (struct select){.store = store, .filter = *filter};
    arena_init(&select->arena, 16 * 1024, (size_t)1 << 28);
    arena_init(&select->scratch, 64 * 1024, (size_t)4 << 30);
    arena_init(&select->page, 64 * 1024, (size_t)1 << 28);
    query = str_trim(query);
    *fault = (struct query_fault){0};
    select->query = query_parse(query, now_ms, &select->arena, fault);
    if (!select->query) return fault->error.code ? fault->error.code : E_NOMEM;
    select->programs = ARENA_ARRAY(&select->arena, PROGRAMS_MAX, struct kept_program);
    if (!select->programs) return error_nomem(&fault->error);
    select->asks = query.len > 0;
    narrow(select);
    return OK;
}

static void forget_programs(struct select *select)
{
    for (size_t i = 0; i < select->program_count; i++)
        if (select->programs[i].program) program_release(select->programs[i].program);
    select->program_count = 0;
}

void select_close(struct select *select)
{
    forget_programs(select);
    arena_release(&select->scratch);
    arena_release(&select->page);
    arena_release(&select->arena);
}

static const struct program *program_of(struct select *select, const struct run_head *head)
{
    struct error err = {0};
    for (size_t i = 0; i < select->program_count; i++)
        if (digest_eq(&select->programs[i].document, &head->document)) return select->programs[i].program;
    if (select->program_count == PROGRAMS_MAX) forget_programs(select);
    struct kept_program *kept = &select->programs[select->program_count++];
    *kept = (struct kept_program){.document = head->document};
    if (engine_program(select->store, head, &kept->program, &err)) kept->program = NULL;
    return kept->program;
}

static enum code fold_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    (void)seal;
    return !moment || view_fold(context, moment, record->seq) ? OK : E_NOMEM;
}

static bool read_log(struct select *select, const struct run_head *head, const struct program *program,
                     struct run_view *view)
{
    struct error err = {0};
    arena_reset(&select->scratch);
    if (!view_init(view, &select->scratch, &head->ids)) return false;
    if (program && !view_plan(view, program)) return false;
    if (store_replay(select->store, head->ids.tenant, head->ids.run, fold_record, view, &err) == OK) return true;
    if (select->left_out) select->left_out(select->context, head, &err);
    return false;
}

static struct query_facts facts_of(const struct run_head *head)
{
    const struct run_summary *s = &head->summary;
    return (struct query_facts){.status = s->status,
                                .vocabulary = head->vocabulary,
                                .substatus = str_from(s->substatus),
                                .plan = head->ids.plan_id,
                                .version = head->ids.plan_version,
                                .name = head->name,
                                .run = head->ids.run,
                                .project = head->ids.project,
                                .environment = head->ids.environment,
                                .parent = head->parent_run,
                                .original = head->original_run,
                                .cause = str_from(s->cause),
                                .created_ms = s->created_ms,
                                .started_ms = s->started_ms,
                                .ended_ms = s->ended_ms,
                                .updated_ms = head->updated_ms,
                                .events = head->last_seq,
                                .running = s->running,
                                .failed = s->counts.failed,
                                .completed = s->counts.completed,
                                .skipped = s->counts.skipped,
                                .owned = head->owned};
}

bool select_meets(struct select *select, const struct run_head *head)
{
    if (!select->asks) return true;
    struct query_facts facts = facts_of(head);
    struct run_view view;
    enum query_answer answer = query_ask(select->query, &facts);
    if (answer != QUERY_UNKNOWN) return answer == QUERY_YES;
    static const struct program no_program; // a document that cannot be read has no tags
    const struct program *program = program_of(select, head);
    facts.program = program ? program : &no_program;
    answer = query_ask(select->query, &facts);
    if (answer != QUERY_UNKNOWN) return answer == QUERY_YES;
    if (!read_log(select, head, program, &view)) return false;
    facts.view = &view;
    return query_ask(select->query, &facts) == QUERY_YES;
}

// Pages are read into memory of their own: most of what a narrow query looks at is not kept.
static bool keep_head(struct run_heads *out, const struct run_head *head, struct arena *arena, size_t *capacity)
{
    if (!ARENA_ROOM(arena, out->items, out->count, capacity)) return false;
    struct run_head *kept = &out->items[out->count];
    *kept = *head;
    if (!ids_keep(arena, &kept->ids) || !ARENA_KEEP(arena, &kept->name, &kept->parent_run, &kept->original_run)) return false;
    out->count++;
    return true;
}

struct sieve {
    struct select *select;
    size_t want;
    int64_t until_us;
    struct run_heads *out;
    struct arena *arena; // of what is kept
    size_t capacity;
    bool stop;
};

// Those of a page that are meant. It stops when there are as many as were wanted and a further one, or nobody waits any longer; then the
// cursor stands behind the last one that was taken or looked at. On a busy machine time goes by without anything being done: some are
// looked at in any case.
static enum code sift(struct sieve *s, const struct run_heads *page, struct error *err)
{
    struct select *select = s->select;
    for (size_t i = 0; i < page->count && !s->stop; i++) {
        bool meets = select_meets(select, &page->items[i]);
        if (meets && s->out->count == s->want) {
            select->filter.before = s->out->items[s->want - 1].position;
            s->stop = true;
        } else if (meets && !keep_head(s->out, &page->items[i], s->arena, &s->capacity)) {
            return error_nomem(err);
        } else if (i + 1 < page->count && select->asks && i + 1 >= LOOKED_MIN && os_mono_us() > s->until_us) {
            select->filter.before = page->items[i].position;
            s->stop = true;
        }
    }
    return OK;
}

// How far the store looks at once: further as long as that is quick, so that a walk over little is not made of many steps.
static uint64_t next_span(uint64_t span, int64_t took_us)
{
    if (took_us < QUICK_US) return span < SPAN_MAX ? span * 2 : span;
    return took_us > 4 * QUICK_US && span > SPAN_MIN ? span / 2 : span;
}

enum code select_page(struct select *select, size_t want, struct arena *arena, struct run_heads *out, struct error *err)
{
    struct sieve s = {.select = select,
                      .want = want,
                      .until_us = select->patience_ms ? os_mono_us() + select->patience_ms * 1000 : INT64_MAX,
                      .out = out,
                      .arena = arena,
                      .stop = select->nothing || !select->store};
    size_t size = want;
    uint64_t span = SPAN_MIN;
    *out = (struct run_heads){0};
    if (s.stop) select->filter.before = 0;
    while (!s.stop) {
        struct run_heads page = {0};
        int64_t before = os_mono_us();
        arena_reset(&select->page);
        select->filter.limit = size < PAGE_MAX ? size : PAGE_MAX;
        select->filter.span = select->patience_ms ? span : 0;
        enum code rc = store_list(select->store, &select->filter, &select->page, &page, err);
        if (rc) return rc;
        span = next_span(span, os_mono_us() - before);
        select->filter.before = page.next;
        rc = sift(&s, &page, err);
        if (rc) return rc;
        size = select->asks ? 2 * select->filter.limit : want - out->count; // few match: look at more at once
        s.stop = s.stop || out->count >= want || select->filter.before == 0 || os_mono_us() > s.until_us;
    }
    out->next = select->filter.before;
    return OK;
}
