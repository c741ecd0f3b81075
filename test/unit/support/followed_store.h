// Every run of a store, followed through its feed: nothing is told about it, and what comes out is what a fold of its whole log
// has. Header-only: for the ends of tests whose stores are sound.
#ifndef CAIRN_TEST_UNIT_SUPPORT_FOLLOWED_STORE_H
#define CAIRN_TEST_UNIT_SUPPORT_FOLLOWED_STORE_H

#include "harness/test.h"
#include "reading/reading.h"

#include <stdio.h>
#include <string.h>

enum { FOLLOWED_MAX = 64 };

struct following {
    const struct snapshot *latest[FOLLOWED_MAX]; // of each run
    size_t count;
    char told[2048]; // names of reports, each with a blank
};

UNUSED static void following_report(void *context, const struct project_report *report)
{
    struct following *following = context;
    size_t used = strlen(following->told);
    snprintf(following->told + used, sizeof(following->told) - used, "%s ", project_report_name(report->kind));
}

UNUSED static size_t following_find(const struct following *following, const struct run_ids *ids)
{
    for (size_t i = 0; i < following->count; i++) {
        const struct run_ids *of = &snapshot_view(following->latest[i])->ids;
        if (str_eq(of->run, ids->run) && str_eq(of->tenant, ids->tenant)) return i;
    }
    return following->count;
}

UNUSED static void following_publish(void *context, const struct snapshot *snapshot)
{
    struct following *following = context;
    size_t at = following_find(following, &snapshot_view(snapshot)->ids);
    if (at == FOLLOWED_MAX) return;
    if (at == following->count)
        following->count++;
    else
        snapshot_release(following->latest[at]);
    following->latest[at] = snapshot_keep(snapshot);
}

UNUSED static struct follower *following_open(struct following *following, size_t page, size_t run_max, int64_t now_ms)
{
    *following = (struct following){0};
    struct follower_options options = {
        .page = page, .run_max = run_max, .sink = {following, following_publish, following_report}};
    struct follower *follower = follower_open(&options, now_ms);
    CHECK(follower);
    return follower;
}

UNUSED static void following_round(struct follower *follower, struct store *store, int64_t now_ms)
{
    struct error err = {0};
    bool more = true;
    while (more) CHECK_OK(follower_round(follower, store, now_ms, &more, &err), &err);
}

// The last that was published of the run is what its whole log gives.
UNUSED static void following_check(const struct following *following, struct store *store, const struct run_head *head)
{
    struct arena arena;
    struct folded folded;
    struct error err = {0};
    struct digest want;
    size_t at = following_find(following, &head->ids);
    CHECK(at < following->count);
    struct digest have = snapshot_hash(following->latest[at]);
    arena_init(&arena, 64 * 1024, (size_t)256 << 20);
    CHECK_OK(reading_fold(store, head, READING_NOW, &arena, &folded, &err), &err);
    CHECK(view_hash(&folded.view, &arena, &want));
    CHECK_INT(snapshot_seq(following->latest[at]), head->last_seq);
    CHECK(digest_eq(&have, &want));
    folded_release(&folded);
    arena_release(&arena);
}

UNUSED static void following_close(struct following *following, struct follower *follower)
{
    follower_close(follower);
    for (size_t i = 0; i < following->count; i++) snapshot_release(following->latest[i]);
}

UNUSED static void followed_store(struct store *store)
{
    struct arena arena;
    struct run_filter filter = {.limit = FOLLOWED_MAX - 1};
    struct run_heads heads;
    struct following following;
    struct error err = {0};
    arena_init(&arena, 64 * 1024, (size_t)256 << 20);
    CHECK_OK(store_list(store, &filter, &arena, &heads, &err), &err);
    struct follower *follower = following_open(&following, 7, 8, 0);
    following_round(follower, store, 0);
    CHECK_TEXT(following.told, "");
    for (size_t i = 0; i < heads.count; i++) following_check(&following, store, &heads.items[i]);
    following_close(&following, follower);
    arena_release(&arena);
}

#endif
