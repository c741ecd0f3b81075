// Kind container: a program in a container, by who runs containers here (the setting `containers`): runc or crun on a root directory, or
// podman or docker on an image that is there already. What it may come to is the setting's, and a task may only ask for less.
//
// Environment and files go by a private directory that is gone afterwards, never by arguments, which everybody on the machine can read.
// The runtime makes the walls, so it runs without those of steps; nothing that a task says becomes its environment or one of its options.
#include "task/container.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_FORM "cairn-container-%d-XXXXXX" // by whom: what a dead process left is found
#define SCRIPT_NAME "script.sh"
enum { CLEAN_MS = 20000, CLEAN_POLL_MS = 20 };

// ---- what is to run

static const struct json *part(struct task_call *call, const char *name)
{
    const struct json *runtime = call_get(call, "runtime"), *found = call_get(call, name);
    return found ? found : json_is(runtime, JSON_OBJECT) ? json_key(runtime, name) : NULL;
}

static bool add_args(struct task_call *call, const struct json *value, struct str *argv, size_t *count)
{
    uint32_t all = json_is(value, JSON_ARRAY) ? value->count : value && value->type != JSON_NULL;
    if (*count + all > CONTAINER_ARGS_MAX)
        return call_fail(call, TASK_CLIENT, "COMMAND_INVALID", "a container takes at most %d arguments", CONTAINER_ARGS_MAX);
    for (uint32_t i = 0; i < all; i++) {
        argv[*count] = json_as_text(value->type == JSON_ARRAY ? &value->items[i] : value, call->arena);
        if (!argv[*count].ptr) return call_no_memory(call);
        if (argv[*count].len && memchr(argv[*count].ptr, '\0', argv[*count].len))
            return call_fail(call, TASK_CLIENT, "COMMAND_INVALID", "an argument holds a NUL");
        if (!call_argument(call, argv[*count])) return false;
        ++*count;
    }
    return true;
}

static bool env_name(struct str name)
{
    bool good = name.len > 0 && name.len < 256 && !char_is_digit(name.ptr[0]);
    for (size_t i = 0; good && i < name.len; i++) good = char_is_word(name.ptr[i]);
    return good;
}

static bool add_env(struct task_call *call, const struct container_task *c, struct tool_env *list, size_t *count, struct str name,
                    const struct json *value)
{
    struct str text = json_as_text(value, call->arena);
    if (!text.ptr) return call_no_memory(call);
    if (!env_name(name) || *count == CONTAINER_ENV_MAX)
        return call_fail(call, TASK_CLIENT, "ENV_INVALID", "%.*s is no name of a variable, or there are more than %d",
                         STR_ARG(str_slice(name, 0, 64)), CONTAINER_ENV_MAX);
    bool lines = text.len && (memchr(text.ptr, '\n', text.len) || memchr(text.ptr, '\r', text.len));
    if ((text.len && memchr(text.ptr, '\0', text.len)) || (lines && !c->settings->oci))
        return call_fail(call, TASK_CLIENT, "ENV_INVALID", "the variable %.*s has more than one line: give it under files", STR_ARG(name));
    for (size_t i = 0; i < *count; i++)
        if (str_eq(list[i].name, name)) return list[i].value = text, true;
    list[(*count)++] = (struct tool_env){name, text};
    return true;
}

// A mapping, or the list of Kubernetes: [{name, value}].
static bool read_env(struct task_call *call, struct container_task *c)
{
    static const struct json path = {.type = JSON_STRING, .text = STR_INIT("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")};
    struct tool_env *list = ARENA_ARRAY(call->arena, CONTAINER_ENV_MAX, struct tool_env);
    const struct json *runtime = call_get(call, "runtime");
    const struct json *sources[] = {call_get(call, "env"), json_is(runtime, JSON_OBJECT) ? json_key(runtime, "env") : NULL};
    if (!list) return call_no_memory(call);
    if (c->settings->oci && !add_env(call, c, list, &c->env_count, STR("PATH"), &path)) return false;
    for (size_t s = 0; s < ARRAY_COUNT(sources); s++) {
        const struct json *from = sources[s];
        for (uint32_t i = 0; json_is(from, JSON_OBJECT) && i < from->count; i++)
            if (!add_env(call, c, list, &c->env_count, from->members[i].key, &from->members[i].value)) return false;
        for (uint32_t i = 0; json_is(from, JSON_ARRAY) && i < from->count; i++) {
            const struct json *value = json_key(&from->items[i], "value");
            if (!value)
                return call_fail(call, TASK_CLIENT, "ENV_INVALID",
                                 "a variable needs name and value; secrets come from the keychain, not from a cluster");
            if (!add_env(call, c, list, &c->env_count, json_text(json_key(&from->items[i], "name")), value)) return false;
        }
    }
    c->env = list;
    return true;
}

static bool file_name(struct str name)
{
    bool good = name.len > 0 && name.len < 128 && name.ptr[0] != '.' && name.ptr[0] != '-';
    for (size_t i = 0; good && i < name.len; i++) good = char_is_word(name.ptr[i]) || name.ptr[i] == '.' || name.ptr[i] == '-';
    return good;
}

static bool script_text(struct task_call *call, const struct json *script, struct str *text)
{
    struct script_place place;
    const struct json *source = json_key(script, "source"), *code = json_key(script, "code");
    if (!code) code = json_key(script, "content");
    if (json_is(script, JSON_STRING)) return *text = script->text, true;
    if (json_is(code, JSON_STRING)) return *text = code->text, true; // source: inline, or none
    (void)source;
    if (!script_find(call, script, &place)) return false;
    return place.web ? script_fetch(call, &place, text) : call_read_file(call, place.uri, text);
}

static bool read_files(struct task_call *call, struct container_task *c)
{
    struct container_file *list = ARENA_ARRAY(call->arena, CONTAINER_FILES_MAX + 1, struct container_file);
    const struct json *files = call_get(call, "files"), *script = call_get(call, "script");
    if (!list) return call_no_memory(call);
    if (script) {
        list[0].name = STR(SCRIPT_NAME);
        if (!script_text(call, script, &list[0].text)) return false;
        c->file_count = 1;
    }
    if (files && files->type != JSON_OBJECT)
        return call_fail(call, TASK_CLIENT, "FILES_INVALID", "files is an object of names and texts");
    for (uint32_t i = 0; files && i < files->count; i++) {
        struct str name = files->members[i].key;
        if (!file_name(name) || i == CONTAINER_FILES_MAX)
            return call_fail(call, TASK_CLIENT, "FILES_INVALID", "%.*s is no plain name of a file, or there are more than %d",
                             STR_ARG(str_slice(name, 0, 128)), CONTAINER_FILES_MAX);
        list[c->file_count].name = name;
        list[c->file_count].text = json_as_text(&files->members[i].value, call->arena);
        if (!list[c->file_count++].text.ptr) return call_no_memory(call);
    }
    c->files = list;
    return true;
}

static bool read_command(struct task_call *call, struct container_task *c)
{
    struct str *argv = ARENA_ARRAY(call->arena, CONTAINER_ARGS_MAX, struct str);
    if (!argv) return call_no_memory(call);
    const struct json *command = part(call, "command");
    if (!command && call_get(call, "script")) {
        argv[c->argc++] = STR("/bin/sh");
        argv[c->argc++] = STR(CONTAINER_FILES_AT "/" SCRIPT_NAME);
    }
    c->argv = argv;
    return add_args(call, command, argv, &c->argc) && add_args(call, part(call, "args"), argv, &c->argc);
}

// "512Mi", "1G", 1048576 as bytes; "500m", 2 as thousandths of a processor. 0: it makes no sense.
static uint64_t amount(struct task_call *call, const struct json *value, bool processors)
{
    static const struct {
        const char *unit;
        double times;
    } units[] = {{"", 1},        {"k", 1e3},     {"K", 1e3},        {"M", 1e6},         {"G", 1e9},        {"T", 1e12},
                 {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}, {"m", 1e-3}};
    struct str text = json_as_text(value, call->arena);
    char copy[64];
    char *end;
    if (!text.ptr || !text.len || text.len >= sizeof(copy)) return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    double number = strtod(copy, &end);
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (strcmp(end, units[i].unit) != 0) continue;
        number *= units[i].times * (processors ? 1000 : 1);
        return number >= 1 && number < 9e18 ? (uint64_t)number : 0;
    }
    return 0;
}

static bool lower(struct task_call *call, const char *what, const struct json *wanted, bool processors, uint64_t *limit)
{
    if (!wanted || wanted->type == JSON_NULL) return true;
    uint64_t asked = amount(call, wanted, processors);
    struct str shown = json_as_text(wanted, call->arena);
    if (!asked) return call_fail(call, TASK_CLIENT, "LIMIT_INVALID", "%s: %.*s is no amount", what, STR_ARG(str_slice(shown, 0, 64)));
    if (asked > *limit)
        return call_fail(call, TASK_CLIENT, "LIMIT_TOO_HIGH", "%s: %.*s is more than the setting containers.limits allows (%llu)", what,
                         STR_ARG(str_slice(shown, 0, 64)), (unsigned long long)*limit);
    *limit = asked;
    return true;
}

static bool read_limits(struct task_call *call, struct container_task *c)
{
    const struct json *limits = json_key(part(call, "resources"), "limits");
    uint64_t cpus = (uint64_t)c->settings->cpus_thousandths, memory = c->settings->memory;
    if (!lower(call, "resources.limits.memory", json_key(limits, "memory"), false, &memory) ||
        !lower(call, "resources.limits.cpu", json_key(limits, "cpu"), true, &cpus))
        return false;
    c->memory = memory;
    c->cpus_thousandths = (int64_t)cpus;
    c->processes = c->settings->processes;
    return true;
}

static bool read_container(struct task_call *call, struct container_task *c)
{
    struct str image = json_as_text(part(call, "image"), call->arena);
    c->settings = tasks_options(call->tasks)->containers;
    if (!c->settings || !c->settings->command_count)
        return call_fail(call, TASK_CLIENT, "CONTAINERS_NOT_CONFIGURED",
                         "nobody runs containers here: the setting containers says who does, such as {\"command\": [\"podman\"]}");
    bool good = image.ptr && image.len > 0 && image.len < 512 && image.ptr[0] != '-';
    for (size_t i = 0; good && i < image.len; i++) good = image.ptr[i] > ' ' && image.ptr[i] < 0x7F;
    if (!good) return call_fail(call, TASK_CLIENT, "IMAGE_MISSING", "container needs image: the name of an image that is there");
    c->image = image;
    c->cwd = call_string(call, "cwd", "");
    if (c->cwd.len && c->cwd.ptr[0] != '/')
        return call_fail(call, TASK_CLIENT, "CWD_INVALID", "cwd of a container is an absolute path inside of it");
    return read_files(call, c) && read_env(call, c) && read_command(call, c) && read_limits(call, c);
}

// ---- the private directory

static const char *temporary(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && dir[0] == '/' && strlen(dir) < 30 ? dir : "/tmp";
}

static bool write_private(struct task_call *call, const char *path, struct str text, unsigned mode)
{
    struct error err = {0};
    enum code rc = os_write_file(path, text, mode, true, &err);
    if (!rc && chmod(path, mode) < 0) rc = os_errno(&err, "change", path); // whatever the umask: another user reads it
    return !rc || call_fail(call, rc == E_FULL ? TASK_STORAGE_QUOTA : TASK_UNKNOWN, "SPAWN_FAILED", "%s", err.message);
}

static bool make_dir(struct task_call *call, struct container_task *c)
{
    static atomic_uint count;
    char files[80];
    snprintf(c->dir, sizeof(c->dir), "%s/" NAME_FORM, temporary(), (int)getpid());
    if (!mkdtemp(c->dir)) {
        c->dir[0] = '\0';
        return call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "no directory can be made below %s", temporary());
    }
    c->id = call_printf(call, "cairn-%d-%u-%s", (int)getpid(), atomic_fetch_add(&count, 1), c->dir + strlen(c->dir) - 6);
    snprintf(files, sizeof(files), "%s/files", c->dir);
    if (c->file_count && (mkdir(files, 0755) < 0 || chmod(files, 0755) < 0))
        return call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "%s cannot be made", files);
    for (size_t i = 0; i < c->file_count; i++)
        if (!write_private(call, call_printf(call, "%s/%.*s", files, STR_ARG(c->files[i].name)).ptr, c->files[i].text, 0444))
            return false;
    return true;
}

// ---- a command beside the task: it has to be done also when the task was cancelled

static void run_quietly(struct task_call *call, const struct str *argv, size_t argc)
{
    const char **list = ARENA_ARRAY(call->arena, argc + 1, const char *);
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (!list || posix_spawn_file_actions_init(&actions) != 0) return;
    for (size_t i = 0; i < argc; i++) list[i] = call_printf(call, "%.*s", STR_ARG(argv[i])).ptr;
    bool made = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
                posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawnp(&pid, list[0], &actions, NULL, (char *const *)(uintptr_t)list, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    for (int waited = 0; made; waited += CLEAN_POLL_MS) {
        pid_t ended = waitpid(pid, NULL, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return;
        if (waited == CLEAN_MS) kill(pid, SIGKILL);
        poll(NULL, 0, CLEAN_POLL_MS);
    }
}

static struct str state_of(struct task_call *call)
{
    return call_printf(call, "%s/cairn-containers-%u", temporary(), (unsigned)geteuid());
}

static void remove_container(struct task_call *call, const struct container_settings *settings, struct str id)
{
    size_t count = settings->command_count;
    struct str *argv = ARENA_ARRAY(call->arena, count + 6, struct str);
    if (!argv) return;
    memcpy(argv, settings->command, count * sizeof(*argv));
    if (settings->oci) argv[count++] = STR("--root"), argv[count++] = state_of(call);
    argv[count++] = settings->oci ? STR("delete") : STR("rm");
    argv[count++] = settings->oci ? STR("--force") : STR("-f");
    argv[count++] = id;
    run_quietly(call, argv, count);
}

// What processes that are dead have left: containers of theirs that still run, and private directories. Once in a process.
static void sweep(struct task_call *call, const struct container_settings *settings)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&done)) return;
    const struct str places[] = {state_of(call), str_from(temporary())};
    static const struct str starts[] = {STR_INIT("cairn-"), STR_INIT("cairn-container-")};
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        DIR *dir = opendir(call_printf(call, "%.*s", STR_ARG(places[i])).ptr);
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
            int64_t pid = 0;
            struct str name = str_from(entry->d_name);
            if (!str_starts(name, starts[i])) continue;
            struct str number = str_slice(name, starts[i].len, name.len);
            struct stat stat;
            struct str path = call_printf(call, "%.*s/%s", STR_ARG(places[i]), entry->d_name);
            bool ours = str_int64(str_slice(number, 0, str_find(number, '-', 0)), &pid) && pid > 0 && pid <= INT32_MAX;
            if (!ours || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
            if (lstat(path.ptr, &stat) < 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid()) continue;
            if (i == 0 && settings->oci) remove_container(call, settings, name);
            if (i == 1) os_remove_tree(path.ptr);
        }
        if (dir) closedir(dir);
    }
}

// ---- who runs it

static bool cli_arguments(struct task_call *call, const struct container_task *c, struct str *argv, size_t *count)
{
    const struct container_settings *s = c->settings;
    struct buf env = buf_of(TASK_BODY_MAX);
    for (size_t i = 0; i < c->env_count; i++)
        buf_printf(&env, "%.*s=%.*s\n", STR_ARG(c->env[i].name), STR_ARG(c->env[i].value));
    struct str text = buf_keep(&env, call->arena);
    struct str file = call_printf(call, "%s/env", c->dir);
    if (!text.ptr) return call_no_memory(call);
    if (!write_private(call, file.ptr, text, 0600)) return false;
    const struct str fixed[] = {STR("run"),       STR("--rm"),     STR("--init"),    STR("--pull=never"),
                                STR("--name"),    c->id,           STR("--network"), s->network,
                                STR("--read-only"), STR("--cap-drop=ALL"), STR("--security-opt=no-new-privileges"),
                                STR("--env-file"), file};
    for (size_t i = 0; i < ARRAY_COUNT(fixed); i++) argv[(*count)++] = fixed[i];
    argv[(*count)++] = call_printf(call, "--tmpfs=/tmp:rw,nosuid,nodev,size=%llu", (unsigned long long)s->temporary);
    argv[(*count)++] = call_printf(call, "--user=%u:%u", s->uid, s->gid);
    argv[(*count)++] = call_printf(call, "--memory=%llu", (unsigned long long)c->memory);
    argv[(*count)++] = call_printf(call, "--pids-limit=%lld", (long long)c->processes);
    argv[(*count)++] = call_printf(call, "--cpus=%lld.%03lld", (long long)c->cpus_thousandths / 1000,
                                   (long long)c->cpus_thousandths % 1000);
    if (c->file_count) argv[(*count)++] = call_printf(call, "--volume=%s/files:" CONTAINER_FILES_AT ":ro", c->dir);
    if (c->cwd.len) argv[(*count)++] = call_printf(call, "--workdir=%.*s", STR_ARG(c->cwd));
    argv[(*count)++] = c->image;
    for (size_t i = 0; i < c->argc; i++) argv[(*count)++] = c->argv[i];
    return true;
}

static bool oci_arguments(struct task_call *call, const struct container_task *c, struct str *argv, size_t *count)
{
    if (!container_write_bundle(call, c)) return false;
    const struct str fixed[] = {STR("--root"), state_of(call), STR("run"), STR("--bundle"), str_from(c->dir), c->id};
    for (size_t i = 0; i < ARRAY_COUNT(fixed); i++) argv[(*count)++] = fixed[i];
    return true;
}

static bool execute(struct task_call *call, const struct container_task *c, struct tool_result *ended, size_t *most)
{
    enum { OWN_MAX = 32 };
    size_t count = c->settings->command_count;
    struct str *argv = ARENA_ARRAY(call->arena, count + OWN_MAX + c->argc, struct str);
    if (!argv) return call_no_memory(call);
    memcpy(argv, c->settings->command, count * sizeof(*argv));
    if (!(c->settings->oci ? oci_arguments : cli_arguments)(call, c, argv, &count)) return false;
    struct tool_request request = {.argv = argv, .argc = count, .cwd = str_from(c->dir), .walled = true};
    bool ran = call_process(call, &request, ended);
    *most = request.output_max;
    return ran;
}

static void run(struct task_call *call)
{
    struct container_task c = {0};
    struct tool_result ended;
    size_t most = 0;
    if (!read_container(call, &c)) return;
    sweep(call, c.settings);
    bool ran = make_dir(call, &c) && execute(call, &c, &ended, &most);
    // By then it has ended; one that was cancelled, was late or belongs to a daemon has not.
    if (c.id.len && !(ran && ended.ok)) remove_container(call, c.settings, c.id);
    if (c.dir[0]) os_remove_tree(c.dir);
    if (!ran) return;
    process_done(call, &ended, most, json_string(c.image));
    tool_result_free(&ended);
}

static const char *const fields[] = {"image", "command", "args", "env",     "files", "script", "cwd", "resources", "runtime", NULL};
const struct task_kind kind_container = {.name = "container", .fields = fields, .run = run, .process = true};
