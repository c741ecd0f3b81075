// A bundle for runc and its like: a file config.json beside a root directory (the OCI runtime specification, 1.0). The
// container sees no network, no other process and nothing of the machine but its root directory, which it cannot write; it has no
// capability and can get none.
#include "task/container.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct json texts(struct task_call *call, const char *const *list)
{
    struct json out = json_array();
    for (; *list; list++) json_append(call->arena, &out, json_word(*list));
    return out;
}

static struct json mount_of(struct task_call *call, const char *at, const char *type, struct str source, const char *const *options)
{
    return JSON_OF(call->arena, {"destination", json_word(at)}, {"type", json_word(type)}, {"source", json_string(source)},
                   {"options", texts(call, options)});
}

static struct json mounts_of(struct task_call *call, const struct container_task *c)
{
    static const char *const proc[] = {"nosuid", "noexec", "nodev", NULL};
    static const char *const dev[] = {"nosuid", "strictatime", "mode=755", "size=65536k", NULL};
    static const char *const pts[] = {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", NULL};
    static const char *const shm[] = {"nosuid", "noexec", "nodev", "mode=1777", "size=16m", NULL};
    static const char *const files[] = {"rbind", "ro", "nosuid", "nodev", NULL};
    char size[48];
    snprintf(size, sizeof(size), "size=%llu", (unsigned long long)c->settings->temporary);
    const char *const temporary[] = {"nosuid", "nodev", "mode=1777", size, NULL};
    struct json out = json_array();
    json_append(call->arena, &out, mount_of(call, "/proc", "proc", STR("proc"), proc));
    json_append(call->arena, &out, mount_of(call, "/dev", "tmpfs", STR("tmpfs"), dev));
    json_append(call->arena, &out, mount_of(call, "/dev/pts", "devpts", STR("devpts"), pts));
    json_append(call->arena, &out, mount_of(call, "/dev/shm", "tmpfs", STR("shm"), shm));
    json_append(call->arena, &out, mount_of(call, "/tmp", "tmpfs", STR("tmpfs"), temporary));
    if (c->file_count)
        json_append(call->arena, &out,
                    mount_of(call, CONTAINER_FILES_AT, "bind", call_printf(call, "%s/files", c->dir), files));
    return out;
}

static struct json limit_of(struct task_call *call, const char *name, uint64_t most)
{
    return JSON_OF(call->arena, {"type", json_word(name)}, {"hard", json_count(most)}, {"soft", json_count(most)});
}

static struct json process_of(struct task_call *call, const struct container_task *c, bool root)
{
    struct json args = json_array(), env = json_array(), limits = json_array(), none = json_array();
    for (size_t i = 0; i < c->argc; i++) json_append(call->arena, &args, json_string(c->argv[i]));
    for (size_t i = 0; i < c->env_count; i++)
        json_append(call->arena, &env,
                    json_string(call_printf(call, "%.*s=%.*s", STR_ARG(c->env[i].name), STR_ARG(c->env[i].value))));
    json_append(call->arena, &limits, limit_of(call, "RLIMIT_NOFILE", 1024));
    json_append(call->arena, &limits, limit_of(call, "RLIMIT_CORE", 0));
    // Without root there is no control group: the limit is then one of each process.
    if (!root) json_append(call->arena, &limits, limit_of(call, "RLIMIT_DATA", c->memory));
    struct json no = JSON_OF(call->arena, {"bounding", none}, {"effective", none}, {"permitted", none}, {"ambient", none});
    uint32_t uid = root ? c->settings->uid : 0, gid = root ? c->settings->gid : 0; // 0 is the user of the engine then
    return JSON_OF(call->arena, {"terminal", json_bool(false)},
                   {"user", JSON_OF(call->arena, {"uid", json_int(uid)}, {"gid", json_int(gid)})}, {"args", args},
                   {"env", env}, {"cwd", json_string(c->cwd.len ? c->cwd : STR("/"))}, {"capabilities", no},
                   {"rlimits", limits}, {"noNewPrivileges", json_bool(true)});
}

static struct json mapping(struct task_call *call, int64_t host)
{
    struct json list = json_array();
    json_append(call->arena, &list,
                JSON_OF(call->arena, {"containerID", json_int(0)}, {"hostID", json_int(host)}, {"size", json_int(1)}));
    return list;
}

static struct json linux_of(struct task_call *call, const struct container_task *c, bool root)
{
    static const char *const spaces[] = {"pid", "network", "ipc", "uts", "mount", NULL};
    static const char *const masked[] = {"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                                         "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
                                         "/sys/firmware", NULL};
    static const char *const only_read[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL};
    enum { PERIOD_US = 100000 };
    struct json list = json_array();
    for (size_t i = 0; spaces[i]; i++)
        json_append(call->arena, &list, JSON_OF(call->arena, {"type", json_word(spaces[i])}));
    if (!root) json_append(call->arena, &list, JSON_OF(call->arena, {"type", json_word("user")}));
    struct json out = JSON_OF(call->arena, {"namespaces", list}, {"maskedPaths", texts(call, masked)},
                              {"readonlyPaths", texts(call, only_read)});
    if (!root) {
        JSON_ADD(call->arena, &out, {"uidMappings", mapping(call, geteuid())}, {"gidMappings", mapping(call, getegid())});
        return out;
    }
    struct json denied = json_array();
    json_append(call->arena, &denied, JSON_OF(call->arena, {"allow", json_bool(false)}, {"access", json_word("rwm")}));
    struct json resources = JSON_OF(
        call->arena, {"devices", denied}, {"memory", JSON_OF(call->arena, {"limit", json_count(c->memory)})},
        {"pids", JSON_OF(call->arena, {"limit", json_int(c->processes)})},
        {"cpu", JSON_OF(call->arena, {"quota", json_int(c->cpus_thousandths * PERIOD_US / 1000)}, {"period", json_int(PERIOD_US)})});
    JSON_ADD(call->arena, &out, {"cgroupsPath", json_string(call_printf(call, "/cairn/%.*s", STR_ARG(c->id)))},
             {"resources", resources});
    return out;
}

// The root directory of an image: DIR/NAME/rootfs, or DIR/NAME. A name is one word, and no link is followed.
static bool root_of(struct task_call *call, const struct container_task *c, struct str *out)
{
    struct stat stat;
    bool plain = c->image.len > 0 && c->image.len < 128 && char_is_alnum(c->image.ptr[0]);
    for (size_t i = 0; plain && i < c->image.len; i++)
        plain = char_is_word(c->image.ptr[i]) || strchr(".-:@", c->image.ptr[i]);
    if (!plain)
        return call_fail(call, TASK_CLIENT, "IMAGE_INVALID", "%.*s is no name of an image here: one word of letters, digits and . _ - : @",
                         STR_ARG(str_slice(c->image, 0, 128)));
    struct str place = call_printf(call, "%.*s/%.*s", STR_ARG(c->settings->images), STR_ARG(c->image));
    struct str inner = call_printf(call, "%.*s/rootfs", STR_ARG(place));
    bool there = lstat(place.ptr, &stat) == 0 && S_ISDIR(stat.st_mode);
    *out = there && lstat(inner.ptr, &stat) == 0 && S_ISDIR(stat.st_mode) ? inner : place;
    return there || call_fail(call, TASK_NOT_FOUND, "IMAGE_NOT_FOUND", "there is no image %.*s here (containers.images)",
                              STR_ARG(c->image));
}

bool container_write_bundle(struct task_call *call, const struct container_task *c)
{
    struct str place;
    struct error err = {0};
    bool root = geteuid() == 0;
    if (!root_of(call, c, &place)) return false;
    if (!c->argc)
        return call_fail(call, TASK_CLIENT, "COMMAND_MISSING", "container needs command or script: a root directory has none of its own");
    struct json config = JSON_OF(call->arena, {"ociVersion", json_word("1.0.2")}, {"process", process_of(call, c, root)},
                                 {"root", JSON_OF(call->arena, {"path", json_string(place)}, {"readonly", json_bool(true)})},
                                 {"hostname", json_word("container")}, {"mounts", mounts_of(call, c)},
                                 {"linux", linux_of(call, c, root)});
    struct str text = json_ok(&config) ? json_as_text(&config, call->arena) : (struct str){0};
    if (!text.ptr) return call_no_memory(call);
    enum code rc = os_write_file(call_printf(call, "%s/config.json", c->dir).ptr, text, 0600, true, &err);
    return !rc || call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "%s", err.message);
}
