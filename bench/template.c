// Templates rendered as fast as one core can: bench/template FILE [SECONDS]. FILE is {scope, templates}; each template is compiled once and
// rendered in an arena that is emptied after every round, as a turn of the engine does. Prints {"rate": templates per second}.
#include "json/json.h"
#include "os/os.h"
#include "template/template.h"

#include <stdio.h>
#include <stdlib.h>

static enum code look_up(void *context, struct str name, struct json *out, struct error *err)
{
    (void)err;
    const struct json *found = json_get(context, name);
    if (found) *out = *found;
    return OK;
}

static _Noreturn void give_up(const char *what, const struct error *err)
{
    fprintf(stderr, "bench/template: %s: %s\n", what, err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    struct arena kept, turn;
    struct error err = {0};
    struct str text;
    struct json file;
    arena_init(&kept, 65536, (size_t)16 << 20);
    arena_init(&turn, 65536, (size_t)16 << 20);
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    if (argc < 2 || os_read_file(argv[1], (size_t)1 << 20, &kept, &text, &err) ||
        json_parse(text, &json_limits_default, &kept, &file, &err))
        give_up(argc < 2 ? "usage: template FILE [SECONDS]" : argv[1], &err);
    const struct json *list = json_key(&file, "templates");
    struct json scope_value = *json_key(&file, "scope");
    struct template_scope scope = {.context = &scope_value, .lookup = look_up};
    const struct template **all = calloc(list->count, sizeof(*all));
    if (!all) return 1;
    for (uint32_t i = 0; i < list->count; i++)
        if (template_compile(json_text(&list->items[i]), &kept, &all[i], &err)) give_up("compile", &err);
    int64_t began = os_mono_us(), until = began + (int64_t)(seconds * 1e6);
    uint64_t rendered = 0;
    while (os_mono_us() < until) {
        for (int round = 0; round < 100; round++) {
            arena_reset(&turn);
            for (uint32_t i = 0; i < list->count; i++) {
                struct json out;
                if (template_render(all[i], &scope, &template_limits_default, &turn, &out, &err))
                    give_up("render", &err);
            }
        }
        rendered += (uint64_t)100 * list->count;
    }
    printf("{\"rate\": %.0f}\n", (double)rendered * 1e6 / (double)(os_mono_us() - began));
    free(all);
    return 0;
}
