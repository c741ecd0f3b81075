// The seams of os/: the file system and its simulation behave alike; nothing leads out of the root; what goes wrong comes back as a code.
#include "harness/test.h"
#include "os/os.h"
#include "sim/vfs.c"
#include "trial/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sys/syscall.h>

static struct error err;

// Instead of the C library's: what was synced is noted.
static char synced[4096];
int fsync(int fd)
{
    char link[64], path[512] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    size_t used = strlen(synced);
    if (len > 0) snprintf(synced + used, sizeof(synced) - used, "%s;", path);
    return (int)syscall(SYS_fsync, fd);
}

#define OK_DISK(call) CHECK_OK((err = (struct error){0}, (call)), &err)

// ---- what every disk does

static struct file *must_open(struct disk *disk, const char *path, unsigned flags)
{
    struct file *file = NULL;
    OK_DISK(disk->ops->open(disk, path, flags, &file, &err));
    return file;
}

static void check_content(struct disk *disk, const char *path, struct str want)
{
    struct file *file = must_open(disk, path, OPEN_READ);
    char bytes[256];
    size_t got = 0;
    uint64_t size = 0;
    OK_DISK(disk->ops->read(file, 0, bytes, sizeof(bytes), &got, &err));
    OK_DISK(disk->ops->size(file, &size, &err));
    CHECK_STR(((struct str){bytes, got}), want);
    CHECK_INT(size, want.len);
    disk->ops->close(file);
}

struct seen {
    char names[256];
    int directories;
};

static enum code see(void *context, struct str name, bool directory)
{
    struct seen *seen = context;
    size_t len = strlen(seen->names);
    snprintf(seen->names + len, sizeof(seen->names) - len, "%.*s;", STR_ARG(name));
    seen->directories += directory;
    return OK;
}

static void check_files(struct disk *disk)
{
    const struct disk_ops *posix = disk->ops;
    struct file *file = NULL;
    CHECK_INT(posix->open(disk, "a", OPEN_READ, &file, NULL), E_NOT_FOUND);
    CHECK_INT(posix->open(disk, "no/a", OPEN_READ | OPEN_WRITE | OPEN_CREATE, &file, NULL), E_NOT_FOUND);
    file = must_open(disk, "a", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_EXCLUSIVE);
    struct file *other = NULL;
    CHECK_INT(posix->open(disk, "a", OPEN_WRITE | OPEN_CREATE | OPEN_EXCLUSIVE, &other, NULL), E_EXISTS);
    OK_DISK(posix->write(file, 0, "hello", 5, &err));
    OK_DISK(posix->write(file, 8, "you", 3, &err));
    check_content(disk, "a", (struct str){"hello\0\0\0you", 11});
    OK_DISK(posix->truncate(file, 5, &err));
    OK_DISK(posix->allocate(file, 8, &err));
    OK_DISK(posix->allocate(file, 3, &err)); // never makes it smaller
    check_content(disk, "a", (struct str){"hello\0\0\0", 8});
    char bytes[8];
    size_t got = 1;
    OK_DISK(posix->read(file, 100, bytes, sizeof(bytes), &got, &err));
    CHECK_INT(got, 0);
    OK_DISK(posix->read(file, 4, bytes, sizeof(bytes), &got, &err));
    CHECK_INT(got, 4);
    OK_DISK(posix->sync(file, &err));
    posix->close(file);
    posix->close(must_open(disk, "a", OPEN_READ | OPEN_WRITE | OPEN_TRUNCATE));
    check_content(disk, "a", STR(""));
}

static void check_names(struct disk *disk)
{
    const struct disk_ops *posix = disk->ops;
    struct file *file = NULL;
    OK_DISK(posix->make_dir(disk, "d", &err));
    OK_DISK(posix->make_dir(disk, "d", &err));
    OK_DISK(posix->make_dir(disk, "d/e", &err));
    CHECK_INT(posix->make_dir(disk, "x/y", NULL), E_NOT_FOUND);
    CHECK_INT(posix->make_dir(disk, "a", NULL), E_INVALID);
    CHECK_INT(posix->open(disk, "d", OPEN_READ | OPEN_WRITE, &file, NULL), E_INVALID);
    posix->close(must_open(disk, "d/f", OPEN_WRITE | OPEN_CREATE));
    OK_DISK(posix->sync_dir(disk, "d", &err));
    OK_DISK(posix->sync_dir(disk, "", &err));
    OK_DISK(posix->rename(disk, "d/f", "d/g", &err));
    CHECK_INT(posix->rename(disk, "d/f", "d/g", NULL), E_NOT_FOUND);
    CHECK_INT(posix->remove(disk, "d", NULL), E_EXISTS);
    struct seen seen = {{0}, 0};
    OK_DISK(posix->list(disk, "d", see, &seen, &err));
    CHECK(strcmp(seen.names, "e;g;") == 0 || strcmp(seen.names, "g;e;") == 0);
    CHECK_INT(seen.directories, 1);
    CHECK_INT(posix->list(disk, "nowhere", see, &seen, NULL), E_NOT_FOUND);
    OK_DISK(posix->remove(disk, "d/g", &err));
    OK_DISK(posix->remove(disk, "d/e", &err));
    OK_DISK(posix->remove(disk, "d", &err));
    CHECK_INT(posix->remove(disk, "d", NULL), E_NOT_FOUND);
    OK_DISK(posix->sync_all(disk, &err));
}

static void check_locks(struct disk *disk)
{
    const struct disk_ops *posix = disk->ops;
    struct file *first = must_open(disk, "lock", OPEN_READ | OPEN_WRITE | OPEN_CREATE);
    struct file *second = must_open(disk, "lock", OPEN_READ | OPEN_WRITE);
    struct file *reader = must_open(disk, "lock", OPEN_READ);
    CHECK(!posix->locked(reader, 0));
    OK_DISK(posix->lock(first, 0, &err));
    CHECK_INT(posix->lock(second, 0, NULL), E_LOCKED);
    CHECK(posix->locked(second, 0));
    CHECK(posix->locked(reader, 0));
    CHECK(!posix->locked(first, 0));
    CHECK(!posix->locked(reader, 1));
    OK_DISK(posix->lock(second, 1, &err));
    posix->close(first);
    CHECK(!posix->locked(reader, 0));
    posix->close(second);
    posix->close(reader);
}

static void the_file_system_and_its_simulation_behave_alike(void)
{
    char root[600];
    snprintf(root, sizeof(root), "%s/disk", test_dir());
    struct disk *posix = NULL;
    OK_DISK(os_disk_open(root, &posix, &err));
    struct sim_disk *sim = sim_disk_new();
    struct disk *const both[] = {posix, sim_disk_ops(sim)};
    for (size_t i = 0; i < ARRAY_COUNT(both); i++) {
        check_files(both[i]);
        check_names(both[i]);
        check_locks(both[i]);
    }
    CHECK(os_disk_remote(posix) == NULL);
    CHECK(os_disk_remote(sim_disk_ops(sim)) == NULL);
    sim_disk_free(sim);
    os_disk_close(posix);
}

// ---- the file system

static struct disk *open_root(void)
{
    char root[600];
    snprintf(root, sizeof(root), "%s/root", test_dir());
    struct disk *disk = NULL;
    OK_DISK(os_disk_open(root, &disk, &err));
    return disk;
}

static const char *below(const char *name)
{
    static char path[700];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

static void nothing_leads_out_of_the_root_I39(void)
{
    static const char *const paths[] = {"../outside", "d/../../outside",     "link", "dirlink/outside", "hard", "fifo",
                                        "socketlink", "d/../d/../../outside"};
    struct disk *disk = open_root();
    test_write_file(below("outside"), STR("precious"));
    OK_DISK(disk->ops->make_dir(disk, "d", &err));
    CHECK_INT(symlink("../outside", below("root/link")), 0);
    CHECK_INT(symlink("..", below("root/dirlink")), 0);
    CHECK_INT(symlink("/proc/self/root", below("root/socketlink")), 0);
    char target[700];
    snprintf(target, sizeof(target), "%s", below("outside"));
    CHECK_INT(link(target, below("root/hard")), 0);
    CHECK_INT(mkfifo(below("root/fifo"), 0600), 0);
    for (int walk = 0; walk < 2; walk++) {
        for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
            struct file *file = NULL;
            CHECK_INT(disk->ops->open(disk, paths[i], OPEN_READ, &file, NULL), E_INVALID);
            CHECK_INT(
                disk->ops->open(disk, paths[i], OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &file, NULL),
                E_INVALID);
        }
        CHECK_INT(disk->ops->make_dir(disk, "dirlink/new", NULL), E_INVALID);
        CHECK_INT(disk->ops->make_dir(disk, "link", NULL), E_INVALID);
        CHECK_INT(disk->ops->rename(disk, "dirlink/outside", "stolen", NULL), E_INVALID);
        CHECK_INT(disk->ops->remove(disk, "dirlink/outside", NULL), E_INVALID);
        CHECK_INT(disk->ops->list(disk, "dirlink", see, &(struct seen){{0}, 0}, NULL), E_INVALID);
        CHECK_STR(test_read_file(below("outside")), STR("precious"));
        // The same where openat2 is not to be had.
        struct {
            struct disk base;
            int root;
            bool walk;
        } *inside = (void *)disk;
        inside->walk = true;
    }
    os_disk_close(disk);
}

static void files_and_directories_are_private(void)
{
    umask(0);
    struct disk *disk = open_root();
    OK_DISK(disk->ops->make_dir(disk, "d", &err));
    disk->ops->close(must_open(disk, "d/f", OPEN_WRITE | OPEN_CREATE));
    static const struct {
        const char *path;
        mode_t mode;
    } want[] = {{"root", 0700}, {"root/d", 0700}, {"root/d/f", 0600}};
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        struct stat status;
        CHECK_INT(stat(below(want[i].path), &status), 0);
        CHECK_INT(status.st_mode & 07777, want[i].mode);
    }
    os_disk_close(disk);
}

static void a_full_file_is_E_FULL_and_what_was_written_before_stays(void)
{
    struct disk *disk = open_root();
    struct file *file = must_open(disk, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE);
    struct rlimit limit = {4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char bytes[8192] = {1};
    CHECK_INT(disk->ops->write(file, 0, bytes, sizeof(bytes), &err), E_FULL); // a short write, then no more
    CHECK_INT(disk->ops->allocate(file, 1 << 20, NULL), E_FULL);
    uint64_t size = 0;
    OK_DISK(disk->ops->size(file, &size, &err));
    CHECK_INT(size, 4096);
    OK_DISK(disk->ops->truncate(file, 10, &err));
    OK_DISK(disk->ops->write(file, 10, bytes, 100, &err));
    disk->ops->close(file);
    os_disk_close(disk);
}

static void descriptors_that_run_out_are_a_limit(void)
{
    struct disk *disk = open_root();
    disk->ops->close(must_open(disk, "f", OPEN_WRITE | OPEN_CREATE));
    struct rlimit usual, none;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 3;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct file *file = NULL;
    CHECK_INT(disk->ops->open(disk, "f", OPEN_READ, &file, NULL), E_LIMIT);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &usual), 0);
    os_disk_close(disk);
}

// ---- files by path, entropy, log, crash points

static void a_file_is_read_whole_or_refused(void)
{
    struct arena arena;
    struct str text;
    arena_init(&arena, 4096, SIZE_MAX);
    test_write_file(below("f"), STR("some bytes"));
    OK_DISK(os_read_file(below("f"), 10, &arena, &text, &err));
    CHECK_STR(text, STR("some bytes"));
    CHECK_INT(os_read_file(below("f"), 9, &arena, &text, NULL), E_LIMIT);
    CHECK_INT(os_read_file(below("none"), 9, &arena, &text, NULL), E_NOT_FOUND);
    CHECK_INT(os_read_file(test_dir(), 9, &arena, &text, NULL), E_INVALID);
    CHECK(os_is_dir(test_dir()) && !os_is_dir(below("f")));
    OK_DISK(os_make_dirs(below("a/b//c/"), &err));
    OK_DISK(os_make_dirs(below("a/b//c"), &err));
    CHECK(os_is_dir(below("a/b/c")));
    CHECK(os_make_dirs(below("f/x"), NULL) != OK);
    OK_DISK(os_absolute("x/y", &arena, &text, &err));
    CHECK(text.ptr[0] == '/' && str_ends(text, STR("/x/y")));
    arena_release(&arena);
}

enum { DRAWING_THREADS = 4, DRAWN_BY_EACH = 20000 };

static void *draw(void *numbers)
{
    struct entropy *entropy = os_entropy();
    for (size_t i = 0; i < DRAWN_BY_EACH; i++) entropy->fill(entropy, (uint64_t *)numbers + i, sizeof(uint64_t));
    return NULL;
}

static int order_of(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void entropy_never_repeats_in_another_thread(void)
{
    static uint64_t numbers[DRAWING_THREADS * DRAWN_BY_EACH];
    pthread_t threads[DRAWING_THREADS];
    for (size_t i = 0; i < DRAWING_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, draw, numbers + i * DRAWN_BY_EACH), 0);
    for (size_t i = 0; i < DRAWING_THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
    qsort(numbers, ARRAY_COUNT(numbers), sizeof(numbers[0]), order_of);
    for (size_t i = 1; i < ARRAY_COUNT(numbers); i++) CHECK(numbers[i] != numbers[i - 1]);
}

static void entropy_never_repeats_not_even_in_a_child(void)
{
    struct entropy *entropy = os_entropy();
    uint8_t first[5000], second[5000], of_child[16], of_parent[16];
    entropy->fill(entropy, first, sizeof(first));
    entropy->fill(entropy, second, sizeof(second));
    CHECK(memcmp(first, second, sizeof(first)) != 0);
    int pipes[2];
    CHECK_INT(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        entropy->fill(entropy, of_child, sizeof(of_child));
        _exit(write(pipes[1], of_child, sizeof(of_child)) == sizeof(of_child) ? 0 : 1);
    }
    entropy->fill(entropy, of_parent, sizeof(of_parent));
    CHECK_INT(read(pipes[0], of_child, sizeof(of_child)), sizeof(of_child));
    CHECK(memcmp(of_child, of_parent, sizeof(of_child)) != 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
}

static void a_log_line_is_one_line_whatever_is_in_it_P3(void)
{
    int saved = dup(2), pipes[2];
    CHECK_INT(pipe(pipes), 0);
    CHECK_INT(dup2(pipes[1], 2), 2);
    os_log_level(LOG_WARN);
    os_log(LOG_WARN, "retried \"%s\" run=%s attempt=%d", "a\nb", "x\033[1m", 2);
    os_log(LOG_INFO, "not shown");
    CHECK_INT(dup2(saved, 2), 2);
    char line[4096];
    ssize_t got = read(pipes[0], line, sizeof(line));
    CHECK(got > 0);
    CHECK_STR(((struct str){line, (size_t)got}),
              STR("level=warn msg=\"retried \\\"a\\x0ab\\\"\" run=\"x\\x1b[1m\" attempt=2\n"));
}

static int exit_of(const char *name, const char *value, bool *wrote)
{
    pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        struct disk *disk = open_root();
        struct file *file = must_open(disk, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE); // 1
        if (disk->ops->write(file, 0, "x", 1, NULL) != OK) _exit(1);                                    // 2
        _exit(0);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    *wrote = test_read_file(below("root/f")).len == 1;
    return WEXITSTATUS(status);
}

static void the_process_dies_at_the_call_it_is_told_to(void)
{
    bool wrote;
    CHECK(test_dir() != NULL); // made here, not by the children
    CHECK_INT(exit_of("CAIRN_CRASH_AT", "3", &wrote), 0);
    CHECK(wrote);
#ifdef CAIRN_FAULTS
    CHECK_INT(exit_of("CAIRN_CRASH_AT", "2", &wrote), 137);
    CHECK(!wrote);
    CHECK_INT(exit_of("CAIRN_CRASH_AFTER", "2", &wrote), 137);
    CHECK(wrote);
#endif
}

// ---- the simulation itself

static uint32_t pick_second(void *context UNUSED, uint32_t n)
{
    return n > 1 ? 1 : 0;
}

static uint32_t pick_first(void *context UNUSED, uint32_t n UNUSED)
{
    return 0;
}

static void what_was_not_synced_may_be_gone_and_what_was_is_not(void)
{
    const struct sim_choice lose = {pick_second, NULL}, keep = {pick_first, NULL};
    struct sim_disk *sim = sim_disk_new();
    struct disk *disk = sim_disk_ops(sim);
    struct file *file = must_open(disk, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE);
    OK_DISK(disk->ops->write(file, 0, "abc", 3, &err));
    OK_DISK(disk->ops->sync(file, &err));
    struct sim_snapshot *image = sim_disk_snapshot(sim);
    struct str text;
    sim_disk_crash(sim, lose, SIM_LOSE | SIM_LOSE_NAMES);
    CHECK(!sim_disk_get(sim, "f", &text)); // synced, but its name was not
    CHECK_INT(disk->ops->write(file, 0, "x", 1, NULL), E_IO);
    disk->ops->close(file);

    sim_disk_restore(sim, image);
    OK_DISK(disk->ops->sync_dir(disk, "", &err));
    file = must_open(disk, "f", OPEN_READ | OPEN_WRITE);
    OK_DISK(disk->ops->write(file, 3, "def", 3, &err));
    OK_DISK(disk->ops->rename(disk, "f", "g", &err));
    sim_disk_crash(sim, lose, SIM_LOSE | SIM_LOSE_NAMES);
    CHECK(sim_disk_get(sim, "f", &text) && str_eq(text, STR("abc")));
    CHECK(!sim_disk_get(sim, "g", &text));
    disk->ops->close(file);

    file = must_open(disk, "f", OPEN_READ | OPEN_WRITE);
    OK_DISK(disk->ops->write(file, 3, "def", 3, &err));
    sim_disk_fault(sim, (struct sim_fault){.call = SIM_SYNC, .at = 1, .count = 1, .code = E_IO});
    CHECK_INT(disk->ops->sync(file, NULL), E_IO);
    OK_DISK(disk->ops->sync(file, &err)); // says yes, and is of no use
    CHECK(sim_disk_get(sim, "f", &text) && str_eq(text, STR("abcdef")));
    sim_disk_crash(sim, keep, SIM_CRASH_ALL);
    CHECK(sim_disk_get(sim, "f", &text) && str_eq(text, STR("abc")));
    disk->ops->close(file);
    sim_snapshot_free(image);
    sim_disk_free(sim);
}

static int first_number(void *context, int count UNUSED, char **values, char **names UNUSED)
{
    *(int64_t *)context = strtoll(values[0], NULL, 10);
    return 0;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    int64_t number = -1;
    char *text = NULL;
    if (sqlite3_exec(db, sql, first_number, &number, &text) != SQLITE_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, text);
    return number;
}

static sqlite3 *open_database(void)
{
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open_v2("test.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "sim"), SQLITE_OK);
    ask(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
    return db;
}

static void sqlite_in_wal_mode_keeps_what_it_committed_on_a_disk_that_loses_the_rest(void)
{
    struct sim_disk *sim = sim_disk_new();
    struct sim_vfs *vfs = sim_vfs_new("sim", sim_disk_ops(sim));
    sqlite3 *db = open_database();
    ask(db, "CREATE TABLE t(n INTEGER PRIMARY KEY, x)");
    uint64_t syncs = sim_disk_calls(sim, SIM_SYNC);
    for (int i = 0; i < 100; i++) ask(db, "INSERT INTO t(x) VALUES(randomblob(50))");
    CHECK_INT(sim_disk_calls(sim, SIM_SYNC) - syncs, 100);
    ask(db, "BEGIN; INSERT INTO t(x) VALUES(1)");
    sim_disk_stop_after(sim, 0);
    sqlite3_close(db);
    sim_disk_crash(sim, (struct sim_choice){pick_second, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
    db = open_database();
    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 100);
    sim_disk_fault(sim, (struct sim_fault){.call = SIM_WRITE, .at = 1, .code = E_FULL});
    CHECK_INT(sqlite3_exec(db, "INSERT INTO t(x) VALUES(2)", NULL, NULL, NULL), SQLITE_FULL);
    sim_disk_heal(sim);
    sim_disk_fault(sim, (struct sim_fault){.call = SIM_SYNC, .at = 1, .count = 1, .code = E_IO});
    CHECK_INT(sqlite3_exec(db, "INSERT INTO t(x) VALUES(3)", NULL, NULL, NULL), SQLITE_IOERR);
    sim_disk_heal(sim);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
    sim_vfs_free(vfs);
    sim_disk_free(sim);
}

static void a_file_is_written_whole_and_replaced_only_when_asked(void)
{
    struct arena arena;
    struct str text;
    struct stat about;
    char link_path[4096], file_path[4096];
    arena_init(&arena, 4096, 1 << 20);
    snprintf(file_path, sizeof(file_path), "%s/f", test_dir());
    snprintf(link_path, sizeof(link_path), "%s/l", test_dir());
    CHECK_OK(os_write_file(file_path, STR("one"), 0600, false, &err), &err);
    CHECK_INT(os_write_file(file_path, STR("two"), 0600, false, NULL), E_EXISTS);
    CHECK_OK(os_read_file(file_path, 10, &arena, &text, &err), &err);
    CHECK_STR(text, STR("one"));
    CHECK_INT(chmod(file_path, 0640), 0);
    CHECK_INT(symlink("f", link_path), 0);
    CHECK_OK(os_write_file(link_path, STR("three"), 0600, true, &err), &err); // the file, not the link
    CHECK_INT(lstat(link_path, &about), 0);
    CHECK(S_ISLNK(about.st_mode));
    CHECK_OK(os_read_file(file_path, 10, &arena, &text, &err), &err);
    CHECK_STR(text, STR("three"));
    CHECK_INT(stat(file_path, &about), 0);
    CHECK_INT(about.st_mode & 07777, 0640);
    CHECK_INT(os_write_file("/nowhere/at/all", STR("x"), 0600, true, NULL), E_NOT_FOUND);
    CHECK_OK(os_write_file("/dev/null", STR("x"), 0600, true, &err), &err); // written to, not replaced
    CHECK_INT(stat("/dev/null", &about), 0);
    CHECK(S_ISCHR(about.st_mode));
    arena_release(&arena);
}

static void *write_again_and_again(void *path)
{
    struct error *first = calloc(1, sizeof(*first));
    for (int i = 0; first && !first->code && i < 40; i++) (void)!os_write_file(path, STR("same"), 0600, true, first);
    return first;
}

// In a container the next process has the number of the one that died, and threads have one number anyway.
static void a_file_is_written_beside_what_others_write_or_left_behind(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    char path[4096], left[4200];
    struct arena arena;
    struct str text;
    arena_init(&arena, 4096, 1 << 20);
    snprintf(path, sizeof(path), "%s/shared", test_dir());
    snprintf(left, sizeof(left), "%s.new-%ld", path, (long)getpid());
    CHECK_OK(os_write_file(left, STR("half a fi"), 0600, false, &err), &err);
    CHECK_OK(os_write_file(path, STR("same"), 0600, true, &err), &err);
    for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, write_again_and_again, path), 0);
    for (int i = 0; i < THREADS; i++) {
        void *first;
        CHECK_INT(pthread_join(threads[i], &first), 0);
        CHECK(first);
        CHECK_TEXT(((struct error *)first)->message, "");
        free(first);
    }
    CHECK_OK(os_read_file(path, 10, &arena, &text, &err), &err);
    CHECK_STR(text, STR("same"));
    arena_release(&arena);
}

static void only_a_regular_file_is_opened_where_others_write(void)
{
    char dir[] = "/tmp/cairn-os-XXXXXX", path[128], link[128], fifo[128];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    int fd;
    uint64_t size = 0;
    OK_DISK(os_write_file(path, STR("hello"), 0600, false, &err));
    CHECK(symlink(path, link) == 0 && mkfifo(fifo, 0600) == 0);
    OK_DISK(os_open_regular(path, &fd, &size, &err));
    close(fd);
    CHECK_INT(size, 5);
    const char *const others[] = {fifo, link, dir, "/dev/zero"}; // and the pipe has nobody at its other end
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        CHECK_INT(os_open_regular(others[i], &fd, &size, &err), E_INVALID);
        CHECK_INT(fd, -1);
    }
    snprintf(link, sizeof(link), "%s/none", dir);
    CHECK_INT(os_open_regular(link, &fd, &size, &err), E_NOT_FOUND);
    os_remove_tree(dir);
}

// A store in a directory that a power cut takes away is gone with it.
static void the_names_of_made_directories_are_durable_S1(void)
{
    char path[512], parents[3][520];
    static const char *const below[] = {"", "/a", "/a/b"};
    snprintf(path, sizeof(path), "%s/a/b/c", test_dir());
    synced[0] = '\0';
    OK_DISK(os_make_kept_dirs(path, &err));
    for (size_t i = 0; i < ARRAY_COUNT(below); i++) {
        snprintf(parents[i], sizeof(parents[i]), "%s%s;", test_dir(), below[i]);
        if (!strstr(synced, parents[i])) test_fail(__FILE__, __LINE__, "%s was not synced", parents[i]);
    }
    synced[0] = '\0';
    OK_DISK(os_make_kept_dirs(path, &err));
    CHECK_TEXT(synced, ""); // they were there
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_names_of_made_directories_are_durable_S1),
        TEST(the_file_system_and_its_simulation_behave_alike),
        TEST(only_a_regular_file_is_opened_where_others_write),
        TEST(nothing_leads_out_of_the_root_I39),
        TEST(files_and_directories_are_private),
        TEST(a_full_file_is_E_FULL_and_what_was_written_before_stays),
        TEST(descriptors_that_run_out_are_a_limit),
        TEST(a_file_is_read_whole_or_refused),
        TEST(a_file_is_written_whole_and_replaced_only_when_asked),
        TEST(a_file_is_written_beside_what_others_write_or_left_behind),
        TEST(entropy_never_repeats_in_another_thread),
        TEST(entropy_never_repeats_not_even_in_a_child),
        TEST(a_log_line_is_one_line_whatever_is_in_it_P3),
        TEST(the_process_dies_at_the_call_it_is_told_to),
        TEST(what_was_not_synced_may_be_gone_and_what_was_is_not),
        TEST(sqlite_in_wal_mode_keeps_what_it_committed_on_a_disk_that_loses_the_rest),
    };
    return test_main("os_disk", tests, ARRAY_COUNT(tests), argc, argv);
}
