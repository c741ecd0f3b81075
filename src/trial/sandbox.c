// The directory in which the steps of one world really run, and what they left in it.
#include "trial/crash_inside.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 2000
#define SIZE_MAX_KEPT ((size_t)64 << 20)

const char *sandbox_enter(const struct crash_options *options, struct arena *arena)
{
    struct str path = trial_format(arena, "%s/sandbox-%ld", options->scratch, (long)getpid());
    struct str work = trial_format(arena, "%.*s/work", STR_ARG(path));
    struct error ignored = {0};
    return os_make_dirs(work.ptr, &ignored) == OK ? path.ptr : NULL;
}

// nftw has no context. One world at a time in a process.
static struct walk {
    struct arena *arena;
    size_t skip; // length of the directory's own name
    struct str *lines;
    size_t count, capacity;
    bool removing;
} walk;

static int visit(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place;
    if (walk.removing) {
        remove(path);
        return 0;
    }
    if (kind != FTW_F || walk.count >= FILES_MAX) return 0;
    struct str text = {0};
    struct error ignored = {0};
    char hex[SHA256_HEX + 1] = "?";
    if (os_read_file(path, SIZE_MAX_KEPT, walk.arena, &text, &ignored) == OK) {
        struct digest digest = sha256(text);
        digest_hex(&digest, hex);
    }
    size_t rows = 0;
    for (size_t i = 0; i < text.len; i++) rows += text.ptr[i] == '\n';
    if (!ARENA_ROOM(walk.arena, walk.lines, walk.count, &walk.capacity)) return 0;
    walk.lines[walk.count++] = trial_format(walk.arena, "%s\t%lld bytes, %zu lines\t%.16s", path + walk.skip,
                                            (long long)info->st_size, rows, hex);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

struct str sandbox_leave(const char *dir, struct arena *arena)
{
    walk = (struct walk){.arena = arena, .skip = strlen(dir) + 1};
    nftw(dir, visit, 16, FTW_PHYS);
    if (walk.count) qsort(walk.lines, walk.count, sizeof(*walk.lines), by_text);
    struct buf text = buf_of((size_t)4 << 20);
    for (size_t i = 0; i < walk.count; i++) buf_printf(&text, "%.*s\n", STR_ARG(walk.lines[i]));
    struct str copy = buf_keep(&text, arena);
    walk.removing = true;
    nftw(dir, visit, 16, FTW_PHYS | FTW_DEPTH);
    return copy.ptr ? copy : STR("");
}

// "work/out.txt: 4 bytes, 2 lines instead of 2 bytes, 1 lines". Both lists are sorted by name.
struct str sandbox_difference(struct str calm, struct str world, struct arena *arena)
{
    size_t told = 0;
    struct buf text = buf_of(4096);
    while ((calm.len > 0 || world.len > 0) && told < 3) {
        struct str calm_rest, world_rest, calm_facts, world_facts;
        struct str a = str_cut(calm, '\n', &calm_rest), b = str_cut(world, '\n', &world_rest);
        struct str calm_name = str_cut(a, '\t', &calm_facts), world_name = str_cut(b, '\t', &world_facts);
        int order = calm.len == 0 ? 1 : world.len == 0 ? -1 : str_cmp(calm_name, world_name);
        if (order <= 0) calm = calm_rest;
        if (order >= 0) world = world_rest;
        if (order == 0 && str_eq(a, b)) continue;
        struct str ignored, had = str_cut(calm_facts, '\t', &ignored), has = str_cut(world_facts, '\t', &ignored);
        const char *separator = told++ ? "; " : "";
        if (order == 0 && str_eq(had, has))
            buf_printf(&text, "%s%.*s: other bytes", separator, STR_ARG(calm_name));
        else if (order == 0)
            buf_printf(&text, "%s%.*s: %.*s instead of %.*s", separator, STR_ARG(calm_name), STR_ARG(has),
                       STR_ARG(had));
        else
            buf_printf(&text, "%s%.*s: %s", separator, STR_ARG(order < 0 ? calm_name : world_name),
                       order < 0 ? "missing" : "too much");
    }
    struct str copy = buf_keep(&text, arena);
    return copy.ptr ? copy : STR("");
}
