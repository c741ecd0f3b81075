// The events that a sink is working on: a page of the feed, or of dead letters that are sent once more. The cursor is at the end of
// the settled ones at its beginning, so a page is also how far a sink runs ahead of an event that it cannot deliver.
#include "bus/inside.h"

#include <stdio.h>

#define LETTERS_LOOK 500

static bool listed(const struct json *list, struct str word)
{
    if (!list) return true;
    for (size_t i = 0; i < list->count; i++) {
        struct str item = list->items[i].text;
        if (str_eq(item, word)) return true;
        // "task.*" is everything that begins with "task."
        if (str_ends(item, STR("*")) && str_starts(word, str_slice(item, 0, item.len - 1))) return true;
    }
    return false;
}

bool sink_carries(const struct sink_config *config, struct str tenant)
{
    return tenant.len == 0 || listed(config->tenants, tenant);
}

bool sink_is_only_of(const struct sink_config *config, struct str tenant)
{
    return config->tenants && config->tenants->count == 1 && str_eq(config->tenants->items[0].text, tenant);
}

bool sink_wants(const struct sink_config *config, struct str type)
{
    return listed(config->types, type);
}

static bool wanted(const struct sink_config *config, const struct feed_item *item)
{
    return listed(config->tenants, item->tenant) && listed(config->types, item->record.type);
}

enum code page_link(struct page *page, struct error *err)
{
    struct map runs;
    map_init(&runs, &page->arena);
    uint32_t *last = ARENA_ARRAY(&page->arena, page->count + 1, uint32_t);
    if (!last) return error_nomem(err);
    for (size_t i = 0; i < page->count; i++) {
        struct page_slot *slot = &page->slots[i];
        slot->before = PAGE_MAX;
        if (slot->state != SLOT_WAITING) continue;
        char key[512];
        int size = snprintf(key, sizeof(key), "%.*s\n%.*s", STR_ARG(slot->item.tenant), STR_ARG(slot->item.run));
        struct str name =
            arena_copy(&page->arena, (struct str){key, size < (int)sizeof(key) ? (size_t)size : sizeof(key) - 1});
        uint32_t there = MAP_NONE;
        if (!name.ptr || !map_put(&runs, name, (uint32_t)i, &there)) return error_nomem(err);
        uint32_t first = there == MAP_NONE ? (uint32_t)i : there;
        if (there != MAP_NONE) slot->before = last[first];
        last[first] = (uint32_t)i;
    }
    return OK;
}

static void restore_attempts(const struct sink_cursor *cursor, struct page_slot *slot)
{
    for (size_t i = 0; i < cursor->retry_count; i++) {
        if (cursor->retries[i].position != slot->item.position) continue;
        slot->attempts = cursor->retries[i].attempts;
        slot->first_ms = cursor->retries[i].first_ms;
    }
}

enum code page_begin(struct page *page, bool letters, struct error *err)
{
    arena_reset(&page->arena);
    page->count = page->settled = page->open = 0;
    page->letters = letters;
    page->news = false;
    page->slots = ARENA_ARRAY(&page->arena, PAGE_MAX, struct page_slot);
    return page->slots ? OK : error_nomem(err);
}

static void page_advance(struct page *page)
{
    while (page->settled < page->count &&
           (page->slots[page->settled].state == SLOT_SETTLED || page->slots[page->settled].state == SLOT_DEAD))
        page->settled++;
}

enum code page_load(struct sink *sink, struct error *err)
{
    struct page *page = &sink->page;
    struct feed feed;
    size_t bytes = 0;
    enum code rc = page_begin(page, false, err);
    if (!rc) rc = store_feed(sink->store, page->next, PAGE_MAX, &page->arena, &feed, err);
    if (rc) return rc;
    uint64_t before = page->next;
    for (size_t i = 0; i < feed.count && bytes < PAGE_BYTES; i++) {
        struct page_slot *slot = &page->slots[page->count++];
        *slot = (struct page_slot){.item = feed.items[i], .state = SLOT_WAITING};
        if (!wanted(&sink->config, &slot->item)) slot->state = SLOT_SETTLED;
        restore_attempts(&sink->cursor, slot);
        page->open += slot->state == SLOT_WAITING;
        bytes += slot->item.record.bytes.len;
        page->next = slot->item.position;
    }
    if (page->count == feed.count) page->next = feed.next;
    page_advance(page);
    if (page->next != before && page->settled == page->count) sink->cursor_dirty = true;
    if (!page->count) sink->cursor.position = page->next; // only what was removed lay behind it
    return page_link(page, err);
}

static enum code add_letter(struct sink *sink, const struct letter *letter, struct error *err)
{
    struct page *page = &sink->page;
    struct feed feed;
    enum code rc = store_feed(sink->store, letter->position - 1, 1, &page->arena, &feed, err);
    if (rc) return rc;
    struct page_slot *slot = &page->slots[page->count++];
    bool there = feed.count == 1 && feed.items[0].position == letter->position;
    *slot = (struct page_slot){.state = there ? SLOT_WAITING : SLOT_SETTLED, .letter = true, .first_ms = letter->first_ms};
    slot->item.position = letter->position;
    if (there) slot->item = feed.items[0];
    page->open += there; // else its run has been removed
    return OK;
}

enum code page_load_letters(struct sink *sink, struct error *err)
{
    struct page *page = &sink->page;
    char first[BUS_SINK_NAME_MAX + 2];
    snprintf(first, sizeof(first), "%.*s/", STR_ARG(sink->config.name));
    struct str prefix = str_from(first), from = prefix;
    enum code rc = page_begin(page, true, err);
    for (bool more = true; more && !rc;) {
        struct notes notes;
        rc = store_notes(sink->store, LETTER_SPACE, from, LETTERS_LOOK, &page->arena, &notes, err);
        more = !rc && notes.count == LETTERS_LOOK;
        for (size_t i = 0; !rc && i < notes.count && page->count < PAGE_MAX; i++) {
            struct letter letter;
            from = notes.items[i].key;
            if (!str_starts(from, prefix)) more = false;
            if (!str_starts(from, prefix)) break;
            rc = letter_read(&notes.items[i], &page->arena, &letter, err);
            if (!rc && letter.redrive && letter.position) rc = add_letter(sink, &letter, err);
        }
        more = more && page->count < PAGE_MAX;
    }
    page_advance(page);
    return rc ? rc : page_link(page, err);
}

// What goes before it has its answer, or comes with it.
static bool passed(const struct sink *sink, const struct page_slot *slot)
{
    if (slot->before == PAGE_MAX) return true;
    enum slot_state state = sink->page.slots[slot->before].state;
    return state == SLOT_SETTLED || state == SLOT_DEAD || (state == SLOT_SENT && sink->transport->ordered);
}

uint32_t page_next(const struct sink *sink, int64_t now, int64_t *due)
{
    const struct page *page = &sink->page;
    for (size_t i = page->settled; i < page->count; i++) {
        const struct page_slot *slot = &page->slots[i];
        if (slot->state != SLOT_WAITING || !passed(sink, slot)) continue;
        if (slot->due_ms <= now) return (uint32_t)i;
        if (slot->due_ms < *due) *due = slot->due_ms;
    }
    return PAGE_MAX;
}

void page_settle(struct page *page, struct page_slot *slot, enum slot_state state)
{
    slot->state = state;
    page->open--;
    page_advance(page);
}

bool page_done(const struct page *page)
{
    if (page->open) return false;
    for (size_t i = 0; i < page->count; i++) {
        const struct page_slot *slot = &page->slots[i];
        if ((slot->letter || slot->note.len || slot->state == SLOT_DEAD) && !slot->recorded) return false;
    }
    return true;
}
