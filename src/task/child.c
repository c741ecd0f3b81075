// Kinds that run a user's SQL, or speak with a user's program: not in the memory of a service, but in a process of their own, which is
// program once more (`cairn __task`).
//
//   call --child_run--> {"kind", "with", "keychain", "credentials", ...} on stdin --task_child_main--> outcome on descriptor 3
//
// Secrets are in their places before the child begins: it gets the entries and credentials that its fields name, and no others. Texts
// that stand elsewhere are fetched here, under the policy; the child fetches nothing.
#include "task/kind.h"

#include <errno.h>
#include <unistd.h>

enum { OUTCOME_FD = 3, READS_MAX = 16 };

bool child_wanted(const struct task_call *call)
{
    const struct task_kind *kind = call->kind;
    return kind->ready && tasks_options(call->tasks)->self && (kind->apart ? kind->apart(call) : call_confined(call));
}

// ---- here

struct parcel {
    struct task_call *call;
    struct json credentials, keychain;
    struct str reads[READS_MAX]; // files that a connection needs
    size_t read_count;
};

static void add_read(struct parcel *parcel, struct str path)
{
    if (path.len && path.ptr[0] == '/' && parcel->read_count < READS_MAX) parcel->reads[parcel->read_count++] = path;
}

static bool add_named(struct parcel *parcel, struct str name)
{
    static const char *const files[] = {"sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"};
    struct task_call *call = parcel->call;
    struct json found, entry = json_object();
    bool trusted;
    if (!name.len || json_get(&parcel->credentials, name)) return true;
    if (!call_named(call, name, &found, &trusted)) return false;
    if (found.type == 0) return true;
    for (size_t i = 0; trusted && i < ARRAY_COUNT(files); i++) add_read(parcel, credential_field(call, &found, files[i]));
    if (trusted)
        return call_put(call, &entry, "tenant", json_string(STR("*"))) && call_put(call, &entry, "data", found) &&
               (json_put(call->arena, &parcel->credentials, name, entry) || call_no_memory(call));
    return call_put(call, &entry, "name", json_string(name)) &&
           call_put(call, &entry, "kind", json_string(STR("static"))) && call_put(call, &entry, "map", found) &&
           (json_push(call->arena, &parcel->keychain, entry) || call_no_memory(call));
}

static bool add_all(struct parcel *parcel, const struct json *value)
{
    static const char *const names[] = {"auth", "credential", "credential_name", "key", "name"};
    bool good = true;
    for (uint32_t i = 0; good && json_is(value, JSON_ARRAY) && i < value->count; i++)
        good = add_all(parcel, &value->items[i]);
    for (uint32_t i = 0; good && json_is(value, JSON_OBJECT) && i < value->count; i++) {
        const struct json_member *member = &value->members[i];
        bool named = false;
        for (size_t n = 0; n < ARRAY_COUNT(names); n++) named |= str_is(member->key, names[n]);
        if (named && json_is(&member->value, JSON_STRING))
            good = add_named(parcel, member->value.text);
        else
            good = add_all(parcel, &member->value);
    }
    return good;
}

static bool put_paths(struct task_call *call, struct json *whole, const char *name, const struct str *paths, size_t count)
{
    struct json list = json_array();
    for (size_t i = 0; i < count; i++)
        if (!json_push(call->arena, &list, json_string(paths[i]))) return call_no_memory(call);
    return call_put(call, whole, name, list);
}

uint64_t sql_bytes(const struct task_call *call)
{
    uint64_t said = tasks_options(call->tasks)->sql_bytes;
    return said ? said : TASK_SQL_BYTES;
}

bool call_sql_memory(struct task_call *call)
{
    return call_fail(call, TASK_CLIENT, "SQL_MEMORY_LIMIT",
                     "the statement needs more memory than the setting limits.sqlBytes allows (%llu bytes): let it work on "
                     "fewer rows at once, or raise the setting",
                     (unsigned long long)sql_bytes(call));
}

static bool write_parcel(struct parcel *parcel, struct buf *out)
{
    struct task_call *call = parcel->call;
    const struct tool_request *request = call_request(call);
    const struct tool_confinement *cage = tasks_options(call->tasks)->confinement;
    struct json with, whole = json_object();
    // Only SQL is reached with credentials from there, and has a network for it: what is called so elsewhere is a word like any other.
    bool good = call->kind->ready(call, &with) && (call->kind->apart || add_all(parcel, &with)) &&
                call_put(call, &whole, "kind", json_string(str_from(call->kind->name))) &&
                call_put(call, &whole, "with", with) && call_put(call, &whole, "keychain", parcel->keychain) &&
                call_put(call, &whole, "credentials", parcel->credentials) &&
                call_put(call, &whole, "tenant", json_string(request->tenant)) &&
                call_put(call, &whole, "project", json_string(request->project)) &&
                call_put(call, &whole, "environment", json_string(request->environment)) &&
                call_put(call, &whole, "run", json_string(request->run)) &&
                call_put(call, &whole, "step", json_string(request->step)) &&
                call_put(call, &whole, "artifactsDir", json_string(request->artifacts_dir)) &&
                call_put(call, &whole, "sqlBytes", json_count(sql_bytes(call))) &&
                put_paths(call, &whole, "read", cage ? cage->read : NULL, cage ? cage->read_count : 0) &&
                put_paths(call, &whole, "write", cage ? cage->write : NULL, cage ? cage->write_count : 0);
    if (!good) return false;
    json_write(out, &whole);
    return buf_ok(out) || call_no_memory(call);
}

void child_run(struct task_call *call)
{
    const char *self = tasks_options(call->tasks)->self;
    const struct str argv[] = {str_from(self), STR(TASK_CHILD)};
    struct parcel parcel = {.call = call, .credentials = json_object(), .keychain = json_array()};
    struct buf input SCOPED(buf_release) = buf_of(task_limits.size_max);
    struct tool_result ended;
    struct error ignored = {0};
    struct str artifacts = call_request(call)->artifacts_dir;
    if (artifacts.len) (void)!os_make_dirs(artifacts.ptr, &ignored); // a database may be made there
    bool ran = write_parcel(&parcel, &input);
    add_read(&parcel, str_from(self));
    struct tool_request request = {.argv = argv,
                                   .argc = ARRAY_COUNT(argv),
                                   .input = buf_str(&input),
                                   .report = OUTCOME_FD,
                                   .reads = parcel.reads,
                                   .read_count = parcel.read_count,
                                   .network = parcel.credentials.count > 0};
    if (ran) ran = call_process(call, &request, &ended);
    secret_wipe(buf_str(&input));
    if (!ran) return;
    struct json answer;
    struct str text = arena_copy(call->arena, ended.report);
    if (ended.ok && text.ptr && json_parse(text, &task_limits, call->arena, &answer, NULL) == OK) {
        call_take_outcome(call, &answer);
        const struct json *pg = json_key(&answer, "pg");
        if (pg) call->out.pg = *pg;
    } else {
        call_process_failed(call, &ended);
    }
    tool_result_free(&ended);
}

// ---- in the child

struct waiting {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ended, written;
};

static void on_outcome(void *context, struct tool_result *result)
{
    struct waiting *waiting = context;
    bool written = result->ok && os_write_all(OUTCOME_FD, result->output);
    tool_result_free(result);
    LOCKED(&waiting->mutex);
    waiting->ended = true;
    waiting->written = written;
    pthread_cond_signal(&waiting->changed);
}

static void on_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    (void)context, (void)ticket;
    int fd = is_stderr ? STDERR_FILENO : STDOUT_FILENO;
    if (os_write_all(fd, line)) (void)!os_write_all(fd, STR("\n"));
}

static bool read_input(struct buf *out)
{
    enum { PIECE = 65536 };
    for (;;) {
        char *room = buf_reserve(out, PIECE);
        ssize_t got = room ? read(STDIN_FILENO, room, PIECE) : -1;
        if (got < 0 && room && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        out->len += (size_t)got;
    }
}

static const struct str *texts_of(const struct json *list, struct arena *arena, size_t *count)
{
    *count = json_is(list, JSON_ARRAY) ? list->count : 0;
    struct str *texts = ARENA_ARRAY(arena, *count + 1, struct str);
    for (size_t i = 0; texts && i < *count; i++) texts[i] = arena_copy(arena, json_text(&list->items[i]));
    if (!texts) *count = 0;
    return texts;
}

static enum code run_parcel(const struct json *parcel, struct arena *arena, struct waiting *waiting, struct error *err)
{
    struct fetch_policy *nowhere;
    struct tasks *tasks;
    // The kernel has the walls; this makes names mean here what they mean in the service.
    struct tool_confinement cage = {.level = TOOL_LEVEL_BASIC};
    cage.read = texts_of(json_key(parcel, "read"), arena, &cage.read_count);
    cage.write = texts_of(json_key(parcel, "write"), arena, &cage.write_count);
    struct buf input SCOPED(buf_release) = buf_of(task_limits.size_max);
    json_write(&input, parcel);
    enum code rc = fetch_policy_parse(NULL, arena, &nowhere, err);
    if (rc) return rc;
    struct task_options options = {.mark = "task",
                                   .confinement = &cage,
                                   .secrets = &tool_secrets_none,
                                   .policy = nowhere,
                                   .thread_max = 1,
                                   .sql_bytes = (uint64_t)json_integer(json_key(parcel, "sqlBytes"), 0)};
    sqlite_memory(options.sql_bytes);
    const struct json *credentials = json_key(parcel, "credentials");
    if (credentials) options.credentials = *credentials;
    if ((rc = tasks_open(&options, &tasks, err))) return rc;
    tasks_connect(tasks, on_outcome, on_line, waiting);
    struct tool_request request = {.ticket = 1,
                                   .tenant = json_text(json_key(parcel, "tenant")),
                                   .project = json_text(json_key(parcel, "project")),
                                   .environment = json_text(json_key(parcel, "environment")),
                                   .run = json_text(json_key(parcel, "run")),
                                   .step = json_text(json_key(parcel, "step")),
                                   .kind = json_text(json_key(parcel, "kind")),
                                   .function = json_text(json_key(parcel, "kind")),
                                   .artifacts_dir = json_text(json_key(parcel, "artifactsDir")),
                                   .input = buf_str(&input),
                                   .logical = 1,
                                   .engine = 1};
    struct tools *tools = tasks_tools(tasks);
    rc = tools->ops->start(tools, &request, err);
    pthread_mutex_lock(&waiting->mutex);
    while (!rc && !waiting->ended) pthread_cond_wait(&waiting->changed, &waiting->mutex);
    pthread_mutex_unlock(&waiting->mutex);
    tasks_close(tasks);
    return rc;
}

int task_child_main(void)
{
    struct waiting waiting = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct error err = {0};
    struct json parcel;
    struct buf text SCOPED(buf_release) = buf_of(task_limits.size_max);
    struct arena arena SCOPED(arena_release) = arena_of(65536, TASK_MEMORY_MAX);
    enum code rc = read_input(&text) ? json_parse(buf_str(&text), &task_limits, &arena, &parcel, &err) : E_IO;
    if (!rc) rc = run_parcel(&parcel, &arena, &waiting, &err);
    secret_wipe(buf_str(&text));
    return !rc && waiting.written ? 0 : 1;
}
