#include "store/note_list.h"

#include <stdlib.h>
#include <string.h>

struct name {
    char text[NOTE_SPACE_MAX + 1 + NOTE_KEY_MAX];
    size_t len;
};

static struct str name_of(struct str space, struct str key, struct name *out)
{
    INVARIANT(space.len <= NOTE_SPACE_MAX && key.len <= NOTE_KEY_MAX);
    memcpy(out->text, space.ptr, space.len);
    out->text[space.len] = '\0';
    if (key.len > 0) memcpy(out->text + space.len + 1, key.ptr, key.len);
    return (struct str){out->text, space.len + 1 + key.len};
}

// A quarter of the nodes reaches each further level.
static uint32_t height_of(struct str name)
{
    uint64_t hash = str_hash(name) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t height = 1;
    for (hash ^= hash >> 32; height < NOTE_HEIGHT_MAX && (hash & 3) == 0; hash >>= 2) height++;
    return height;
}

struct note_node *note_node_new(struct str space, struct str key, uint64_t version, struct str value)
{
    struct name text;
    struct str name = name_of(space, key, &text);
    uint32_t height = height_of(name);
    size_t links = height * sizeof(struct note_node *);
    struct note_node *node = malloc(sizeof(*node) + links + name.len + value.len);
    if (!node) return NULL;
    char *bytes = (char *)node + sizeof(*node) + links;
    memcpy(bytes, name.ptr, name.len);
    if (value.len > 0) memcpy(bytes + name.len, value.ptr, value.len);
    *node = (struct note_node){.version = version,
                               .space = {bytes, space.len},
                               .key = {bytes + space.len + 1, key.len},
                               .value = {bytes + name.len, value.len},
                               .name = {bytes, name.len},
                               .height = height};
    for (uint32_t i = 0; i < height; i++) node->next[i] = NULL;
    return node;
}

// The links that lead to the first node not below `name`, one for each level.
static void find_links(struct note_list *list, struct str name, struct note_node **links[NOTE_HEIGHT_MAX])
{
    struct note_node **row = list->first;
    for (uint32_t level = NOTE_HEIGHT_MAX; level-- > 0;) {
        while (row[level] && str_cmp(row[level]->name, name) < 0) row = row[level]->next;
        links[level] = &row[level];
    }
}

static const struct note_node *not_below(const struct note_list *list, struct str name)
{
    struct note_node *const *row = list->first;
    for (uint32_t level = NOTE_HEIGHT_MAX; level-- > 0;)
        while (row[level] && str_cmp(row[level]->name, name) < 0) row = row[level]->next;
    return row[0];
}

const struct note_node *note_list_find(const struct note_list *list, struct str space, struct str key)
{
    struct name text;
    struct str name = name_of(space, key, &text);
    const struct note_node *node = not_below(list, name);
    return node && str_eq(node->name, name) ? node : NULL;
}

const struct note_node *note_list_above(const struct note_list *list, struct str space, struct str after)
{
    struct name text;
    if (after.len > NOTE_KEY_MAX) after.len = NOTE_KEY_MAX; // no key is longer, so none is between
    struct str name = name_of(space, after, &text);
    const struct note_node *node = not_below(list, name);
    if (node && str_eq(node->name, name)) node = node->next[0];
    return node && str_eq(node->space, space) ? node : NULL;
}

const struct note_node *note_list_beyond(const struct note_list *list, struct str space)
{
    // Above every key of the space and below every longer name: spaces have no such byte.
    char room[NOTE_SPACE_MAX + 1];
    struct name text;
    INVARIANT(space.len < sizeof(room));
    if (space.len) memcpy(room, space.ptr, space.len);
    room[space.len] = '\x01';
    return space.len ? not_below(list, name_of((struct str){room, space.len + 1}, STR(""), &text)) : list->first[0];
}

static void unlink_at(struct note_list *list, struct note_node **links[NOTE_HEIGHT_MAX], struct str name)
{
    struct note_node *old = *links[0];
    if (!old || !str_eq(old->name, name)) return;
    for (uint32_t i = 0; i < old->height; i++) *links[i] = old->next[i];
    list->count--;
    list->bytes -= old->name.len + old->value.len;
    free(old);
}

void note_list_put(struct note_list *list, struct note_node *node)
{
    struct note_node **links[NOTE_HEIGHT_MAX];
    find_links(list, node->name, links);
    unlink_at(list, links, node->name);
    for (uint32_t i = 0; i < node->height; i++) {
        node->next[i] = *links[i];
        *links[i] = node;
    }
    list->count++;
    list->bytes += node->name.len + node->value.len;
}

void note_list_drop(struct note_list *list, struct str space, struct str key)
{
    struct name text;
    struct note_node **links[NOTE_HEIGHT_MAX];
    struct str name = name_of(space, key, &text);
    find_links(list, name, links);
    unlink_at(list, links, name);
}

enum code note_list_check(const struct note_list *list, const struct commit *commit, struct error *err)
{
    for (size_t i = 0; i < commit->note_count; i++) {
        const struct note_change *note = &commit->notes[i];
        const struct note_node *there = note_list_find(list, note->space, note->key);
        if ((there ? there->version : 0) == note->before) continue;
        size_t k = i; // seldom: the same name once more in one batch
        while (k > 0 &&
               !(str_eq(commit->notes[k - 1].key, note->key) && str_eq(commit->notes[k - 1].space, note->space)))
            k--;
        if (k == 0 || commit->notes[k - 1].after != note->before) return note_conflict(note, err);
    }
    return OK;
}

void note_list_release(struct note_list *list)
{
    for (struct note_node *node = list->first[0]; node;) {
        struct note_node *next = node->next[0];
        free(node);
        node = next;
    }
    *list = (struct note_list){0};
}
