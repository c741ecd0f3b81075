// Headlines of runs in lists. Each is a fold of a log, so it is worked out once for a state of the run and kept: as many as there are
// places, the one that was there before goes. What would take a list too long is answered from the summaries.
#include "service/inside.h"

#include "reading/reading.h"

#include <stdlib.h>
#include <string.h>

enum { HEADLINE_EVENTS_MAX = 4000, HEADLINES_MS = 150 };

struct kept_headline {
    char *bytes; // the key (tenant and run) and behind it the JSON; NULL: none
    size_t key_len, text_len;
    uint64_t last_seq, ledger_seq;
};

void headlines_release(struct headlines *headlines)
{
    for (size_t i = 0; headlines->kept && i < HEADLINES_KEPT; i++) free(headlines->kept[i].bytes);
    free(headlines->kept);
    *headlines = (struct headlines){0};
}

static size_t place_of(struct str key)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < key.len; i++) hash = (hash ^ (unsigned char)key.ptr[i]) * 1099511628211u;
    return (size_t)(hash % HEADLINES_KEPT);
}

static bool is_of(const struct kept_headline *kept, const struct run_head *head, struct str key)
{
    struct str own = {kept->bytes, kept->key_len};
    return kept->bytes && str_eq(own, key) && kept->last_seq == head->last_seq && kept->ledger_seq == head->last_ledger_seq;
}

static bool find_kept(struct service *service, const struct run_head *head, struct str key, struct arena *arena, struct str *out)
{
    bool found = false;
    LOCKED(&service->headline_mutex);
    const struct kept_headline *kept = service->headlines.kept ? &service->headlines.kept[place_of(key)] : NULL;
    if (kept && is_of(kept, head, key)) {
        *out = arena_copy(arena, (struct str){kept->bytes + kept->key_len, kept->text_len});
        found = out->ptr != NULL;
    }
    return found;
}

// Without memory it is not kept, and worked out again the next time.
static void keep(struct service *service, const struct run_head *head, struct str key, struct str text)
{
    char *bytes = malloc(key.len + text.len + 1);
    if (!bytes) return;
    memcpy(bytes, key.ptr, key.len);
    memcpy(bytes + key.len, text.ptr, text.len);
    pthread_mutex_lock(&service->headline_mutex);
    struct headlines *headlines = &service->headlines;
    if (!headlines->kept) headlines->kept = calloc(HEADLINES_KEPT, sizeof(*headlines->kept));
    if (headlines->kept) {
        struct kept_headline *place = &headlines->kept[place_of(key)];
        char *before = place->bytes;
        *place = (struct kept_headline){bytes, key.len, text.len, head->last_seq, head->last_ledger_seq};
        // cppcheck-suppress memleak ; the place has what was made, and what it had goes
        bytes = before;
    }
    pthread_mutex_unlock(&service->headline_mutex);
    free(bytes);
}

static bool work_out(struct service *service, struct store *store, const struct run_head *head, struct str key,
                     struct arena *arena, struct str *out)
{
    struct arena own;
    struct json headline;
    struct error err = {0};
    struct buf text SCOPED(buf_release) = buf_of(1 << 20);
    arena_init(&own, 64 * 1024, (size_t)256 << 20);
    bool ok = reading_headline(store, head, &own, &headline, &err) == OK;
    if (ok) json_write(&text, &headline);
    ok = ok && buf_ok(&text);
    if (ok) {
        *out = arena_copy(arena, buf_str(&text));
        keep(service, head, key, buf_str(&text));
        ok = out->ptr != NULL;
    }
    arena_release(&own);
    return ok;
}

bool service_headline(struct service *service, struct store *store, const struct run_head *head, int64_t until_ms,
                      struct arena *arena, struct json *out)
{
    struct str key = arena_format(arena, "%.*s/%.*s", STR_ARG(head->ids.tenant), STR_ARG(head->ids.run)), text;
    struct error err = {0};
    if (!key.ptr) return false;
    bool has = find_kept(service, head, key, arena, &text);
    if (!has && !head->unreadable && head->last_seq + head->last_ledger_seq <= HEADLINE_EVENTS_MAX && os_now().mono_ms < until_ms)
        has = work_out(service, store, head, key, arena, &text);
    if (has && json_parse(text, NULL, arena, out, &err) == OK) return true;
    return reading_headline_brief(head, arena, out);
}

int64_t service_headlines_until(void)
{
    return os_now().mono_ms + HEADLINES_MS;
}
