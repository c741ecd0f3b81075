// Reading back: pages, replay, heads, lists, blobs, inbox.
#include "conformance/store_suite_private.h"

#define SIGNAL "7c9e6679-7425-40de-944b-e07fc1f90ae7"

static void S8_stored_bytes_stay_what_they_were_EL_1a_EL_1b_I5(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    struct append_item items[8];
    char step[8];
    for (size_t i = 0; i < ARRAY_COUNT(items); i++) {
        snprintf(step, sizeof(step), "n%zu", i);
        items[i] = kit_step(&kit, log, step);
        struct records records = kit_read(&kit, "r");
        CHECK_INT(records.count, i + 1);
        for (size_t k = 0; k <= i; k++) CHECK_STR(records.items[k].bytes, items[k].bytes);
    }
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_READ);
    struct records records = kit_read(&kit, "r");
    for (size_t k = 0; k < ARRAY_COUNT(items); k++) CHECK_STR(records.items[k].bytes, items[k].bytes);
    kit_release(&kit);
}

static void pages_follow_each_other_in_order_ES_1_1g(void)
{
    enum { EVENTS = 25, PAGE = 7 };
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    char step[8];
    for (size_t i = 0; i < EVENTS; i++) {
        snprintf(step, sizeof(step), "s%zu", i);
        kit_step(&kit, log, step);
    }
    uint64_t after = 0;
    size_t pages = 0;
    struct records page;
    do {
        struct record_range range = {.tenant = STR("default"), .run = STR("r"), .after = after, .limit = PAGE};
        CHECK_OK(store_read(kit.store, &range, &kit.arena, &page, &kit.err), &kit.err);
        CHECK(page.count <= PAGE);
        for (size_t i = 0; i < page.count; i++) CHECK_INT(page.items[i].seq, ++after);
        pages++;
    } while (page.count == PAGE);
    CHECK_INT(after, EVENTS);
    CHECK_INT(pages, 4);
    struct record_range beyond = {.tenant = STR("default"), .run = STR("r"), .after = 1000, .limit = PAGE};
    CHECK_OK(store_read(kit.store, &beyond, &kit.arena, &page, &kit.err), &kit.err);
    CHECK_INT(page.count, 0);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

// ---- replay

struct told {
    struct buf text;
    size_t count, stop_at;
};

static enum code tell(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct told *told = context;
    buf_printf(&told->text, "%llu%s", (unsigned long long)record->seq, record->ledger_seq ? "+" : "");
    if (!record->ledger_seq) {
        CHECK(seal && moment);
        CHECK_INT(seal->seq, record->seq);
        CHECK(uuid_valid(str_from(seal->event_id)));
    } else {
        CHECK(!seal);
    }
    buf_printf(&told->text, ":%s%s%.*s ", moment ? moment_name(moment->kind) : "decision",
               moment && moment->step.len ? "." : "", moment ? (int)moment->step.len : 0,
               moment ? moment->step.ptr : "");
    return ++told->count == told->stop_at ? E_CANCELLED : OK;
}

static void append_life(struct kit *kit, struct run_log *log)
{
    kit_append(kit, log, kit_moment(MOMENT_SIGNAL_ACCEPTED, "", 1)); // before the first event
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    struct moment moments[] = {kit_moment(MOMENT_RUN_PAUSED, "", 1), kit_moment(MOMENT_STEP_STARTED, "a", 1),
                               kit_moment(MOMENT_RUN_RESUMED, "", 1)};
    struct append_item items[] = {
        {.log = log, .moment = &moments[0]}, {.log = log, .moment = &moments[1]}, {.log = log, .moment = &moments[2]}};
    struct store_batch batch = {.items = items, .item_count = ARRAY_COUNT(items)};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    CHECK_INT(items[0].seq, 1);
    CHECK_INT(items[1].seq, 2);
    CHECK_INT(items[2].seq, 2);
    CHECK_OK(kit_decide(kit, log, SIGNAL, "APPLIED", NULL), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_LATE_RESULT, "a", 1)); // after the end
}

static const char life[] = "0+:SIGNAL_ACCEPTED 1:RUN_STARTED 1+:RUN_PAUSED 2:STEP_STARTED.a 2+:RUN_RESUMED 2+:decision "
                           "3:STEP_COMPLETED.a 4:RUN_COMPLETED 4+:LATE_RESULT.a ";

static void replay_tells_events_and_ledger_in_the_order_they_happened_EL_1d_EL_3a(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    append_life(&kit, log);
    struct told told = {.count = 0};
    buf_init(&told.text, 1 << 20);
    CHECK_OK(store_replay(kit.store, STR("default"), STR("r"), tell, &told, &kit.err), &kit.err);
    CHECK_STR(buf_str(&told.text), str_from(life));
    buf_clear(&told.text);
    told.count = 0;
    told.stop_at = 2;
    CHECK_INT(store_replay(kit.store, STR("default"), STR("r"), tell, &told, NULL), E_CANCELLED);
    CHECK_INT(told.count, 2);
    CHECK_INT(store_replay(kit.store, STR("default"), STR("nobody"), tell, &told, NULL), E_NOT_FOUND);
    store_release_run(kit.store, log);
    buf_clear(&told.text);
    told = (struct told){.text = told.text};
    suite_reopen(&kit, STORE_READ);
    CHECK_OK(store_replay(kit.store, STR("default"), STR("r"), tell, &told, &kit.err), &kit.err);
    CHECK_STR(buf_str(&told.text), str_from(life));
    buf_release(&told.text);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static enum code count_visit(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    size_t *count = context;
    CHECK(seal || record->ledger_seq);
    if (moment && moment->kind == MOMENT_STEP_STARTED) CHECK_INT(record->seq, ++*count);
    return OK;
}

static void replay_of_a_long_run_crosses_pages(void)
{
    enum { EVENTS = 1500 };
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    struct moment *moments = ARENA_ARRAY(&kit.arena, EVENTS * 2, struct moment);
    struct append_item *items = ARENA_ARRAY(&kit.arena, EVENTS * 2, struct append_item);
    char(*steps)[24] = arena_array(&kit.arena, EVENTS, sizeof(*steps));
    CHECK(moments && items && steps);
    for (size_t i = 0; i < EVENTS; i++) {
        snprintf(steps[i], sizeof(steps[i]), "s%zu", i);
        moments[2 * i] = kit_moment(MOMENT_STEP_STARTED, steps[i], 1);
        moments[2 * i + 1] = kit_moment(MOMENT_RUN_PAUSED, "", (uint32_t)i + 1);
        items[2 * i] = (struct append_item){.log = log, .moment = &moments[2 * i]};
        items[2 * i + 1] = (struct append_item){.log = log, .moment = &moments[2 * i + 1]};
    }
    struct store_batch batch = {.items = items, .item_count = EVENTS * 2};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    size_t count = 0;
    CHECK_OK(store_replay(kit.store, STR("default"), STR("r"), count_visit, &count, &kit.err), &kit.err);
    CHECK_INT(count, EVENTS);
    CHECK_INT(kit_head(&kit, "r").last_ledger_seq, EVENTS);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// ---- heads and lists

static void set_summary(struct kit *kit, struct run_log *log, enum run_status status, int64_t created_ms)
{
    struct append_summary summary = {.log = log,
                                     .summary = {.status = status,
                                                 .substatus = "DRAINING",
                                                 .counts = {4, 3, 2, 1},
                                                 .running = 5,
                                                 .created_ms = created_ms,
                                                 .started_ms = created_ms + 1,
                                                 .ended_ms = created_ms + 2,
                                                 .cause = "failed at load"}};
    struct store_batch batch = {.summaries = &summary, .summary_count = 1};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
}

static void the_head_of_a_run_tells_its_identity_and_summary(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_create create = kit_run("default", "r", VOCABULARY_NODES);
    create.parent_run = STR("parent");
    create.original_run = STR("original");
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit.store, &create, &log, &kit.err), &kit.err);
    kit_step(&kit, log, "a");
    set_summary(&kit, log, RUN_STATUS_PAUSED, 1000);
    struct run_head head = kit_head(&kit, "r");
    CHECK_STR(head.ids.tenant, STR("default"));
    CHECK_STR(head.ids.project, STR("default"));
    CHECK_STR(head.ids.environment, STR("local"));
    CHECK_STR(head.ids.run, STR("r"));
    CHECK_STR(head.ids.plan_id, STR("orders"));
    CHECK_STR(head.ids.plan_version, STR("1.0.0"));
    CHECK_STR(head.name, STR("orders"));
    CHECK_STR(head.parent_run, STR("parent"));
    CHECK_STR(head.original_run, STR("original"));
    CHECK_INT(head.vocabulary, VOCABULARY_NODES);
    CHECK(digest_eq(&head.document, &create.document));
    CHECK_INT(head.summary.status, RUN_STATUS_PAUSED);
    CHECK_TEXT(head.summary.substatus, "DRAINING");
    CHECK_INT(head.summary.counts.total, 4);
    CHECK_INT(head.summary.counts.skipped, 1);
    CHECK_INT(head.summary.running, 5);
    CHECK_INT(head.summary.ended_ms, 1002);
    CHECK_TEXT(head.summary.cause, "failed at load");
    CHECK_INT(head.last_seq, 1);
    CHECK(!head.terminal);
    CHECK(head.position > 0);
    struct digest hash = kit_read(&kit, "r").items[0].hash;
    CHECK(digest_eq(&hash, &head.head));
    kit_step(&kit, log, "b"); // a batch without a summary leaves it as it is
    CHECK_INT(kit_head(&kit, "r").summary.status, RUN_STATUS_PAUSED);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

enum { LISTED = 30 };

static const enum run_status states[] = {RUN_STATUS_RUNNING, RUN_STATUS_COMPLETED, RUN_STATUS_FAILED};

// Run i: state i % 3, plan "p0" or "p1", tenant acme for every fifth, created at 1000 + i, a child when i % 4 == 3.
static void fill_list(struct kit *kit)
{
    for (size_t i = 0; i < LISTED; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s-%02zu", i % 2 ? "odd" : "even", i);
        struct run_create create = kit_run(i % 5 == 4 ? "acme" : "default", name, VOCABULARY_RUN);
        create.ids.plan_id = i % 2 ? STR("p1") : STR("p0");
        if (i % 4 == 3) create.parent_run = STR("even-00");
        struct run_log *log = NULL;
        CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
        kit_step(kit, log, "a");
        if (states[i % 3] == RUN_STATUS_COMPLETED) kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
        if (states[i % 3] == RUN_STATUS_FAILED) kit_append(kit, log, kit_moment(MOMENT_RUN_FAILED, "", 1));
        set_summary(kit, log, states[i % 3], 1000 + (int64_t)i);
        store_release_run(kit->store, log);
    }
}

static bool wanted(const struct run_filter *filter, size_t i)
{
    bool acme = i % 5 == 4;
    bool odd = i % 2;
    int64_t created = 1000 + (int64_t)i;
    return (!filter->tenant.len || str_is(filter->tenant, acme ? "acme" : "default")) &&
           (!filter->status_mask || (filter->status_mask >> states[i % 3] & 1)) &&
           (!filter->plan.len || str_is(filter->plan, odd ? "p1" : "p0")) &&
           (!filter->run_prefix.len || str_starts(odd ? STR("odd-") : STR("even-"), filter->run_prefix)) &&
           (!filter->since_ms || created >= filter->since_ms) && (!filter->until_ms || created <= filter->until_ms) &&
           (!filter->unfinished || states[i % 3] == RUN_STATUS_RUNNING) && (!filter->roots || i % 4 != 3);
}

// Walks the list in pages of `limit` and compares with what the filter says about run LISTED-1 ... 0.
static void check_list(struct kit *kit, struct run_filter filter, size_t limit, uint64_t span)
{
    size_t next = LISTED;
    filter.limit = limit;
    filter.span = span;
    do {
        struct run_heads heads;
        CHECK_OK(store_list(kit->store, &filter, &kit->arena, &heads, &kit->err), &kit->err);
        CHECK(heads.count <= limit);
        CHECK(heads.count == limit || heads.next == 0 || span);
        CHECK(!heads.next || !filter.before || heads.next < filter.before);
        for (size_t i = 0; i < heads.count; i++) {
            do CHECK(next-- > 0);
            while (!wanted(&filter, next));
            char name[32];
            snprintf(name, sizeof(name), "%s-%02zu", next % 2 ? "odd" : "even", next);
            CHECK_STR(heads.items[i].ids.run, str_from(name));
            CHECK_INT(heads.items[i].terminal, states[next % 3] != RUN_STATUS_RUNNING);
        }
        filter.before = heads.next;
    } while (filter.before);
    while (next-- > 0) CHECK(!wanted(&filter, next));
    uint64_t told = 0, count = 0;
    if (store_count(kit->store, &filter, &told, &kit->err)) return; // not every store, nor every filter
    for (size_t i = 0; i < LISTED; i++) count += wanted(&filter, i);
    CHECK_INT(told, count);
}

static void lists_are_newest_first_filtered_and_paged(void)
{
    struct kit kit;
    suite_start(&kit);
    fill_list(&kit);
    const struct run_filter filters[] = {
        {.tenant = STR("default")},
        {.tenant = STR("")},
        {.tenant = STR("acme")},
        {.tenant = STR("nobody")},
        {.tenant = STR("default"), .status_mask = 1u << RUN_STATUS_RUNNING},
        {.tenant = STR("default"), .status_mask = 1u << RUN_STATUS_COMPLETED | 1u << RUN_STATUS_FAILED},
        {.tenant = STR("default"), .unfinished = true},
        {.tenant = STR("default"), .unfinished = true, .status_mask = 1u << RUN_STATUS_FAILED},
        {.tenant = STR("default"), .plan = STR("p1")},
        {.tenant = STR("default"), .plan = STR("p0"), .status_mask = 1u << RUN_STATUS_FAILED},
        {.tenant = STR("default"), .run_prefix = STR("odd-")},
        {.tenant = STR("default"), .run_prefix = STR("ev"), .unfinished = true},
        {.tenant = STR("default"), .run_prefix = STR("even-%")},
        {.tenant = STR("default"), .since_ms = 1010, .until_ms = 1019},
        {.tenant = STR("default"), .since_ms = 1020},
        {.tenant = STR("default"), .since_ms = 1005, .status_mask = 1u << RUN_STATUS_FAILED, .plan = STR("p1")},
        {.tenant = STR("default"), .run_prefix = STR("odd"), .plan = STR("p1"), .since_ms = 1003},
        {.tenant = STR(""), .unfinished = true},
        {.tenant = STR(""), .unfinished = true, .roots = true, .plan = STR("p0"), .since_ms = 1004},
        {.tenant = STR("default"), .roots = true},
        {.tenant = STR(""), .roots = true, .status_mask = 1u << RUN_STATUS_RUNNING, .plan = STR("p0")},
        {.tenant = STR("acme"),
         .roots = true,
         .since_ms = 1005,
         .status_mask = 1u << RUN_STATUS_RUNNING,
         .plan = STR("p1")},
    };
    static const size_t limits[] = {1, 3, 50};
    static const uint64_t spans[] = {0, 1, 7, 1000};
    for (size_t i = 0; i < ARRAY_COUNT(filters) * ARRAY_COUNT(limits) * ARRAY_COUNT(spans); i++) {
        const struct run_filter *filter = &filters[i % ARRAY_COUNT(filters)];
        size_t rest = i / ARRAY_COUNT(filters);
        if (!str_is(filter->run_prefix, "even-%"))
            check_list(&kit, *filter, limits[rest % ARRAY_COUNT(limits)], spans[rest / ARRAY_COUNT(limits)]);
    }
    struct run_heads heads;
    CHECK_OK(store_list(kit.store, &filters[12], &kit.arena, &heads, &kit.err), &kit.err);
    CHECK_INT(heads.count, 0);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// ---- blobs and inbox

static void blobs_come_with_their_batch_S3(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    char *big = arena_alloc(&kit.arena, 100000);
    CHECK(big);
    memset(big, 'x', 100000);
    struct append_blob blobs[] = {{sha256(STR("hello")), STR("hello")},
                                  {sha256((struct str){big, 100000}), {big, 100000}},
                                  {sha256(STR("a\0b")), STR("a\0b")},
                                  {sha256(STR("hello")), STR("hello")}};
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = blobs, .blob_count = ARRAY_COUNT(blobs)};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    moment = kit_moment(MOMENT_STEP_STARTED, "b", 1);
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err); // the same again
    for (size_t i = 0; i < ARRAY_COUNT(blobs); i++) {
        struct str got;
        CHECK_OK(store_blob(kit.store, &blobs[i].sha256, &kit.arena, &got, &kit.err), &kit.err);
        CHECK_STR(got, blobs[i].bytes);
    }
    struct digest missing = sha256(STR("missing"));
    struct str got;
    CHECK_INT(store_blob(kit.store, &missing, &kit.arena, &got, NULL), E_NOT_FOUND);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void the_inbox_holds_signals_until_a_batch_settles_them_I23(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct inbox_item *items;
    size_t count;
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(count, 0);
    CHECK_OK(store_post(kit.store, STR("default"), STR("r"), STR(SIGNAL), STR("{\"signalType\":\"PAUSE\"}"), &kit.err),
             &kit.err);
    CHECK_OK(store_post(kit.store, STR("default"), STR("r"), STR("second"), STR("{}"), &kit.err), &kit.err);
    for (int look = 0; look < 2; look++) { // looking does not take
        CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
        CHECK_INT(count, 2);
        CHECK_STR(items[0].signal_id, STR(SIGNAL));
        CHECK_STR(items[0].run, STR("r"));
        CHECK_STR(items[0].tenant, STR("default"));
        CHECK_STR(items[0].bytes, STR("{\"signalType\":\"PAUSE\"}"));
        CHECK_STR(items[1].signal_id, STR("second"));
    }
    int64_t done = items[0].id;
    struct store_batch batch = {.inbox_done = &done, .inbox_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(count, 1);
    CHECK_STR(items[0].signal_id, STR("second"));
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_WRITE);
    log = kit_claim(&kit, "r");
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(count, 1);
    CHECK_STR(items[0].signal_id, STR("second"));
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void a_reader_posts_to_the_owner_of_a_run_I23(void)
{
    if (!suite_case->shared) test_skip("%s has one handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct inbox_item *items;
    size_t count;
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(count, 0);
    struct store *reader = suite_open(&kit, store_url(kit.store).ptr, STORE_READ);
    CHECK_OK(store_post(reader, STR("default"), STR("r"), STR(SIGNAL), STR("{}"), &kit.err), &kit.err);
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(count, 1);
    CHECK_STR(items[0].signal_id, STR(SIGNAL));
    struct run_head head;
    CHECK_OK(store_head(reader, STR("default"), STR("r"), &kit.arena, &head, &kit.err), &kit.err);
    CHECK(head.owned);
    CHECK(head.owner_pid > 0);
    store_close(reader);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

const struct test suite_read_tests[] = {
    TEST(S8_stored_bytes_stay_what_they_were_EL_1a_EL_1b_I5),
    TEST(pages_follow_each_other_in_order_ES_1_1g),
    TEST(replay_tells_events_and_ledger_in_the_order_they_happened_EL_1d_EL_3a),
    TEST(replay_of_a_long_run_crosses_pages),
    TEST(the_head_of_a_run_tells_its_identity_and_summary),
    TEST(lists_are_newest_first_filtered_and_paged),
    TEST(blobs_come_with_their_batch_S3),
    TEST(the_inbox_holds_signals_until_a_batch_settles_them_I23),
    TEST(a_reader_posts_to_the_owner_of_a_run_I23),
};
const size_t suite_read_count = ARRAY_COUNT(suite_read_tests);
