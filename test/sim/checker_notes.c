// Notes and the feed, as somebody outside remembers them.
#include "sim/checker.h"

#include <string.h>

static struct str copy(struct checker *checker, struct str s)
{
    struct str kept = arena_copy(&checker->arena, s);
    INVARIANT(kept.ptr);
    return kept;
}

const struct model_note *checker_note(const struct checker *checker, struct str space, struct str key)
{
    for (size_t i = 0; i < checker->note_count; i++)
        if (str_eq(checker->notes[i].space, space) && str_eq(checker->notes[i].key, key)) return &checker->notes[i];
    return NULL;
}

void model_offer_notes(struct checker *checker, const struct commit *commit)
{
    checker->note_draft_count = 0;
    for (size_t i = 0; i < commit->note_count; i++) {
        const struct note_change *change = &commit->notes[i];
        struct model_note *grown =
            arena_grow(&checker->arena, checker->note_drafts, checker->note_draft_count, checker->note_draft_count + 1,
                       sizeof(*grown), &checker->note_draft_capacity);
        INVARIANT(grown);
        checker->note_drafts = grown;
        grown[checker->note_draft_count++] = (struct model_note){.space = copy(checker, change->space),
                                                                 .key = copy(checker, change->key),
                                                                 .value = copy(checker, change->value),
                                                                 .version = change->after};
    }
}

void model_absorb_notes(struct checker *checker)
{
    for (size_t i = 0; i < checker->note_draft_count; i++) {
        const struct model_note *draft = &checker->note_drafts[i];
        struct model_note *known = (struct model_note *)(uintptr_t)checker_note(checker, draft->space, draft->key);
        if (!known) {
            struct model_note *grown = arena_grow(&checker->arena, checker->notes, checker->note_count,
                                                  checker->note_count + 1, sizeof(*grown), &checker->note_capacity);
            INVARIANT(grown);
            checker->notes = grown;
            known = &grown[checker->note_count++];
        }
        *known = *draft;
    }
    checker->note_draft_count = 0;
}

static uint64_t stored_version(struct checker *checker, struct store *store, const struct model_note *note,
                               struct str *value)
{
    struct note found = {0};
    struct error err = {0};
    enum code rc = store_note(store, note->space, note->key, &checker->scratch, &found, &err);
    if (rc && rc != E_NOT_FOUND) checker_fail(checker, "S15", "store_note: %s", err.message);
    *value = found.value;
    return found.version;
}

// Of the batch that got no answer: 1 = its notes are there, 0 = they are not, -1 = it had none. Part of them is a failure.
int model_find_notes(struct checker *checker, struct store *store)
{
    int found = -1;
    for (size_t i = 0; i < checker->note_draft_count && !checker->failed; i++) {
        const struct model_note *draft = &checker->note_drafts[i];
        bool last = true; // the last put of a name is what the store holds
        for (size_t k = i + 1; k < checker->note_draft_count; k++)
            last = last && !(str_eq(checker->note_drafts[k].key, draft->key) &&
                             str_eq(checker->note_drafts[k].space, draft->space));
        if (!last) continue;
        struct str value;
        int there = stored_version(checker, store, draft, &value) == draft->version;
        if (found >= 0 && there != found)
            checker_fail(checker, "S3", "some of the notes of a batch are there, but not %.*s", STR_ARG(draft->key));
        found = there;
    }
    return found;
}

void model_check_notes(struct checker *checker, struct store *store)
{
    for (size_t i = 0; i < checker->note_count && !checker->failed; i++) {
        const struct model_note *note = &checker->notes[i];
        struct str value;
        uint64_t version = stored_version(checker, store, note, &value);
        checker->checks++;
        if (version != note->version || (version && !str_eq(value, note->value)))
            checker_fail(checker, "S15", "note %.*s/%.*s is at version %llu (%.*s), acknowledged was %llu (%.*s)",
                         STR_ARG(note->space), STR_ARG(note->key), (unsigned long long)version, STR_ARG(value),
                         (unsigned long long)note->version, STR_ARG(note->value));
    }
}

static void see_item(struct checker *checker, const struct feed_item *item)
{
    struct model_run *run = checker_run(checker, item->run);
    if (!run || item->record.seq != run->fed + 1 || item->record.seq > run->events.count ||
        !str_eq(item->record.bytes, run->events.items[item->record.seq - 1].bytes)) {
        checker_fail(checker, "S16", "position %llu: %.*s %llu is not the next event of its run",
                     (unsigned long long)item->position, STR_ARG(item->run), (unsigned long long)item->record.seq);
        return;
    }
    struct model_feed *grown = arena_grow(&checker->arena, checker->feed, checker->feed_count, checker->feed_count + 1,
                                          sizeof(*grown), &checker->feed_capacity);
    INVARIANT(grown);
    checker->feed = grown;
    grown[checker->feed_count++] = (struct model_feed){item->position, run, item->record.seq};
    run->fed = item->record.seq;
}

void checker_feed(struct checker *checker, struct store *store)
{
    uint64_t after = checker->feed_count ? checker->feed[checker->feed_count - 1].position : 0;
    struct feed feed;
    struct error err = {0};
    if (checker->failed) return;
    arena_reset(&checker->scratch);
    enum code rc = store_feed(store, after, SIZE_MAX, &checker->scratch, &feed, &err);
    if (rc == E_IO) return; // it dies, and will be opened again
    if (rc) checker_fail(checker, "S16", "store_feed: %s", err.message);
    for (size_t i = 0; i < feed.count && !checker->failed; i++) see_item(checker, &feed.items[i]);
}

// What was seen before is there, at the same positions; and now the feed tells of every event.
void model_check_feed(struct checker *checker, struct store *store)
{
    struct feed feed;
    struct error err = {0};
    if (checker->failed) return;
    arena_reset(&checker->scratch);
    enum code rc = store_feed(store, 0, SIZE_MAX, &checker->scratch, &feed, &err);
    if (rc) checker_fail(checker, "S16", "store_feed: %s", err.message);
    if (!rc && feed.count < checker->feed_count)
        checker_fail(checker, "S16", "%zu positions were seen, %zu are there", checker->feed_count, feed.count);
    for (size_t i = 0; i < checker->feed_count && !checker->failed; i++) {
        const struct model_feed *seen = &checker->feed[i];
        const struct feed_item *item = &feed.items[i];
        if (item->position != seen->position || item->record.seq != seen->seq || !str_eq(item->run, seen->run->ids.run))
            checker_fail(checker, "S16", "%.*s %llu was at position %llu, where %.*s %llu is now",
                         STR_ARG(seen->run->ids.run), (unsigned long long)seen->seq, (unsigned long long)seen->position,
                         STR_ARG(item->run), (unsigned long long)item->record.seq);
    }
    for (size_t i = checker->feed_count; i < feed.count && !checker->failed; i++) see_item(checker, &feed.items[i]);
    for (size_t i = 0; i < checker->run_count && !checker->failed; i++)
        if (checker->runs[i]->fed != checker->runs[i]->events.count)
            checker_fail(checker, "S16", "%.*s has %zu events, the feed tells of %llu",
                         STR_ARG(checker->runs[i]->ids.run), checker->runs[i]->events.count,
                         (unsigned long long)checker->runs[i]->fed);
    checker->checks++;
}
