// Private to store/: notes in memory, ascending by space and key. A skip list whose heights come from the names, so that the same
// notes always make the same list. owner: one handle.
#ifndef CAIRN_STORE_NOTE_LIST_H
#define CAIRN_STORE_NOTE_LIST_H

#include "store/backend.h"

#define NOTE_HEIGHT_MAX 16

struct note_node {
    uint64_t version;
    struct str space, key, value; // inside the node; `value` is whatever the backend keeps
    struct str name;              // "space NUL key", which is the order
    uint32_t height;
    struct note_node *next[];
};

struct note_list {
    struct note_node *first[NOTE_HEIGHT_MAX];
    size_t count;
    uint64_t bytes; // of names and values
};

struct note_node *note_node_new(struct str space, struct str key, uint64_t version,
                                struct str value) MUST_CHECK; // copies; NULL: out of memory
const struct note_node *note_list_find(const struct note_list *list, struct str space, struct str key);
// The first one of the space with a key above `after`; NULL: none. The next one is next[0], as long as its space is the same.
const struct note_node *note_list_above(const struct note_list *list, struct str space, struct str after);
const struct note_node *note_list_beyond(const struct note_list *list, struct str space); // the first of a later space
void note_list_put(struct note_list *list, struct note_node *node); // takes it over, in the place of one of that name
void note_list_drop(struct note_list *list, struct str space, struct str key);
// Each change finds the version that it expects, in the list or made by one before it; else E_CONFLICT.
enum code note_list_check(const struct note_list *list, const struct commit *commit, struct error *err) MUST_CHECK;
void note_list_release(struct note_list *list);

#endif
