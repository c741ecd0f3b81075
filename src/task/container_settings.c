// The setting `containers`: who runs containers, and what each of them may come to.
#include "task/container.h"

#include "json/form.h"

#include <string.h>

#define MEMORY_DEFAULT (UINT64_C(512) << 20)

static void read_command(struct form *form, struct container_settings *out)
{
    const struct json *list = form_take(form, "command", JSON_ARRAY);
    if (!list || !list->count || list->count > 16) {
        form_fail(form, "command", "is a list: a program and its first arguments, such as [\"podman\"]");
        return;
    }
    struct str *argv = ARENA_ARRAY(form->arena, list->count, struct str);
    if (!argv) form_nomem(form);
    for (uint32_t i = 0; argv && !form->rc && i < list->count; i++) {
        argv[i] = json_text(&list->items[i]);
        if (!argv[i].len) form_fail(form, "command", "is a list of texts");
    }
    out->command = argv;
    out->command_count = list->count;
}

static bool is_runtime(struct str program)
{
    size_t slash = program.len;
    while (slash > 0 && program.ptr[slash - 1] != '/') slash--;
    return STR_AMONG(str_slice(program, slash, program.len), "runc", "crun", "youki", "runsc");
}

static void read_limits(struct form *form, struct container_settings *out)
{
    struct form part;
    int64_t memory = (int64_t)out->memory, temporary = (int64_t)out->temporary;
    if (!form_part(form, "limits", &part)) return;
    form_number(&part, "memoryBytes", 1 << 20, INT64_MAX, &memory);
    form_number(&part, "cpuThousandths", 1, 1000000, &out->cpus_thousandths);
    form_number(&part, "processes", 1, 1000000, &out->processes);
    form_number(&part, "temporaryBytes", 4096, INT64_MAX, &temporary);
    out->memory = (uint64_t)memory;
    out->temporary = (uint64_t)temporary;
    form->rc = form_end(&part);
}

enum code container_settings_parse(const struct json *config, struct arena *arena, struct container_settings *out,
                                   struct error *err)
{
    struct form form, part;
    struct str style = STR("");
    *out = (struct container_settings){.network = STR("none"),
                                       .uid = 65534,
                                       .gid = 65534,
                                       .memory = MEMORY_DEFAULT,
                                       .temporary = UINT64_C(64) << 20,
                                       .cpus_thousandths = 1000,
                                       .processes = 256};
    form_begin(&form, "containers", config, arena, err);
    read_command(&form, out);
    form_text(&form, "style", &style);
    if (style.len && !STR_AMONG(style, "oci", "cli")) form_fail(&form, "style", "is oci (runc, crun) or cli (podman, docker)");
    out->oci = style.len ? str_is(style, "oci") : out->command_count > 0 && is_runtime(out->command[0]);
    form_path(&form, "images", &out->images);
    if (!form.rc && out->oci && !out->images.len) form_fail(&form, "images", "is missing: the directory with a root directory per image");
    form_text(&form, "network", &out->network);
    if (!form.rc && out->oci && !str_is(out->network, "none")) form_fail(&form, "network", "is none for runc and its like");
    if (!form.rc && (!out->network.len || out->network.ptr[0] == '-')) form_fail(&form, "network", "is none, or the name of a network");
    if (form_part(&form, "user", &part)) {
        int64_t uid = out->uid, gid = out->gid;
        form_number(&part, "uid", 0, UINT32_MAX - 1, &uid);
        form_number(&part, "gid", 0, UINT32_MAX - 1, &gid);
        out->uid = (uint32_t)uid;
        out->gid = (uint32_t)gid;
        form.rc = form_end(&part);
    }
    read_limits(&form, out);
    return form_end(&form);
}
