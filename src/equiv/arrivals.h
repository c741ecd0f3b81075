// Where attempts arrive that a worker took from a server: nothing is executed, the player has what there is to do and says what came out.
//
// struct arrivals is shared: mutex inside. Threads of the worker bring, the player takes.
#ifndef CAIRN_EQUIV_ARRIVALS_H
#define CAIRN_EQUIV_ARRIVALS_H

#include "tool/tool.h"

#include <pthread.h>

struct arrivals {
    struct tools base;
    pthread_mutex_t mutex;
    struct arena arena; // of what has arrived, until arrivals_clear
    struct tool_request *requests; // not taken yet
    size_t request_count, request_capacity;
    uint64_t *open; // tickets that came and are not over
    size_t open_count, open_capacity;
    uint64_t *stops; // all that were asked to stop; those behind the first `taken` are news
    size_t stop_count, stop_capacity, taken;
};

struct arrivals_news {
    struct tool_request *requests;
    const uint64_t *stops;
    size_t request_count, stop_count;
};

void arrivals_open(struct arrivals *arrivals);
void arrivals_close(struct arrivals *arrivals);
void arrivals_clear(struct arrivals *arrivals); // forgets everything
void arrivals_over(struct arrivals *arrivals, uint64_t ticket); // the player has said what came out: nobody can ask it to stop any more
struct arrivals_news arrivals_look(struct arrivals *arrivals); // counts alone may be looked at; nothing is taken
// What has arrived, in `arena`. False: out of memory.
bool arrivals_take(struct arrivals *arrivals, struct arena *arena, struct arrivals_news *out) MUST_CHECK;

#endif
