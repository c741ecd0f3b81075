// The only place that knows POSIX: clock, entropy, disk, threads, processes, diagnostics. errno stops here.
//
// disk is a seam: product code goes to the file system, tests to a simulated one that crashes, tears, fills up and lies.
// A path is relative to the disk's root unless it starts with '/'; the simulated disk knows no absolute paths.
#ifndef CAIRN_OS_OS_H
#define CAIRN_OS_OS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/uuid.h"

#include <pthread.h>
#include <sys/types.h>

// ---- time
struct moment_in_time {
    int64_t wall_ms; // since 1970, may jump
    int64_t mono_ms; // never goes back
};
struct moment_in_time os_now(void);
int64_t os_mono_us(void);
int64_t os_boot_ms(void); // never goes back, and goes on while the machine sleeps: for promises made to other machines
#define BOOT_SIZE 37
void os_boot_id(char out[BOOT_SIZE]); // another one after each start of the machine; empty: not known
// A lock outlives its process for a moment when a child was between fork and exec: the child's copy of the descriptor holds
// it. Call this between looks at a lock whose owner is `pid`: true after a millisecond's wait when that process is gone
// and looking again is worth while, false when it lives or *tries (start at 0) has been used up.
bool os_lock_lingers(int64_t pid, unsigned *tries);
// Holds a mutex until the end of the block, whichever way it is left.
#define LOCKED(mutex) pthread_mutex_t *const mutex_of_block SCOPED(os_unlock) = os_lock(mutex)
pthread_mutex_t *os_lock(pthread_mutex_t *mutex);
void os_unlock(pthread_mutex_t *const *mutex);
// A thread that gets no signals: they, and SIGPIPE above all, are for the threads that want them. 0, or what keeps it from being made.
int os_thread(pthread_t *out, const pthread_attr_t *how, void *(*body)(void *context), void *context) MUST_CHECK;
// A condition that is waited for by the monotonic clock: a wall clock that is set back does not make anyone wait longer.
void os_condition(pthread_cond_t *condition);
bool os_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t mono_ms); // false: the time has come

// ---- processes
struct process_stat {
    char state;
    pid_t parent, group, session;
    uint64_t start; // in ticks since the machine was started
    bool dying;     // it has given its memory back: a zombie, or on its way there
};
bool os_process_stat(pid_t pid, struct process_stat *out); // false: gone, or it cannot be looked at
// Who is unknown is not taken for dead.
enum liveness { LIVE_NO = 1, LIVE_YES, LIVE_UNKNOWN };
#define OS_IDENTITY_SIZE 112
// This process: "<pid>-<start>-<boot id>-<namespace of pids>". Whether the process of an identity lives; those of former versions end
// after the start.
void os_identity(char out[OS_IDENTITY_SIZE]);
enum liveness os_identity_alive(struct str identity);

// The file of a time zone (src/schedule reads it): below $TZDIR, or where systems have them. `name` has been checked. E_NOT_FOUND.
enum code os_zoneinfo(const char *name, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;

// ---- entropy
struct entropy {
    void (*fill)(struct entropy *entropy, void *bytes, size_t size); // never fails: aborts when the system has none
};
struct entropy *os_entropy(void); // getrandom, buffered; any thread
uint64_t entropy_number(struct entropy *entropy);
void entropy_uuid(struct entropy *entropy, char out[UUID_SIZE]); // version 4

// ---- disk
struct disk;
struct file;

enum open_flags {
    OPEN_READ = 1,
    OPEN_WRITE = 2,
    OPEN_CREATE = 4,
    OPEN_EXCLUSIVE = 8 /* must not exist */,
    OPEN_TRUNCATE = 16
};

typedef enum code (*disk_visit)(void *context, struct str name, bool directory);

// E_NOT_FOUND, E_EXISTS, E_FULL (also quotas), E_DENIED (permissions), E_INVALID (a link, directory or device where a file should be),
// E_LIMIT (descriptors), E_NOMEM; everything else is E_IO.
struct disk_ops {
    enum code (*open)(struct disk *, const char *path, unsigned flags, struct file **, struct error *);
    enum code (*make_dir)(struct disk *, const char *path, struct error *); // one level; OK when it exists
    enum code (*rename)(struct disk *, const char *from, const char *to, struct error *);
    enum code (*remove)(struct disk *, const char *path, struct error *); // file or empty directory; E_NOT_FOUND
    enum code (*list)(struct disk *, const char *path, disk_visit visit, void *context, struct error *);
    enum code (*sync_dir)(struct disk *, const char *path, struct error *);
    enum code (*sync_all)(struct disk *, struct error *); // everything written to this file system so far (syncfs)
    enum code (*read)(struct file *, uint64_t offset, void *bytes, size_t size, size_t *got, struct error *);
    // All or an error; E_FULL for no space.
    enum code (*write)(struct file *, uint64_t offset, const void *bytes, size_t size, struct error *);
    enum code (*size)(struct file *, uint64_t *size, struct error *);
    enum code (*truncate)(struct file *, uint64_t size, struct error *);
    enum code (*allocate)(struct file *, uint64_t size, struct error *); // zero-filled up to `size`, blocks reserved
    enum code (*sync)(struct file *, struct error *); // fdatasync; E_IO is final for the process (I8)
    // Tries an exclusive OFD lock on one byte. E_LOCKED when another process has it. Released by close.
    enum code (*lock)(struct file *, uint64_t byte, struct error *);
    bool (*locked)(struct file *, uint64_t byte); // by another open file description
    void (*close)(struct file *);
};
struct disk {
    const struct disk_ops *ops;
};
struct file {
    struct disk *disk;
};

// A disk rooted at `root` (created when missing, one level). Close with disk_close.
enum code os_disk_open(const char *root, struct disk **out, struct error *err) MUST_CHECK;
void os_disk_close(struct disk *disk);
// The same lock on one byte of a file that is there, by whatever path or link; *fd holds it until it is closed, and is open after E_LOCKED.
// Closing it lets go of every POSIX lock that this process has on that file. E_NOT_FOUND.
enum code os_lock_byte(const char *path, uint64_t byte, int *fd, struct error *err) MUST_CHECK;
// "nfs", "smb" or "9p" when the disk of os_disk_open is on such a file system (their locks and syncs promise too little), else NULL.
const char *os_disk_remote(const struct disk *disk);
// All of them, whatever signals come; false: errno says why. Up to `size` bytes, or to the end.
bool os_write_all(int fd, struct str bytes) MUST_CHECK;
bool os_read_up_to(int fd, void *bytes, size_t size, size_t *got) MUST_CHECK;
// Whole file; E_LIMIT when larger than `max`.
enum code os_read_file(const char *path, size_t max, struct arena *arena, struct str *out,
                       struct error *err) MUST_CHECK;
// For files in places that others write to: only a regular file is opened. A pipe, a device or a link is E_INVALID and blocks nobody.
enum code os_open_regular(const char *path, int *fd, uint64_t *size, struct error *err) MUST_CHECK;
// The same, read whole.
enum code os_read_regular(const char *path, size_t max, struct arena *arena, struct str *out,
                          struct error *err) MUST_CHECK;
// A regular file as memory, read only, for as long as nobody makes it shorter. Ends with os_unmap.
enum code os_map_file(const char *path, struct str *out, struct error *err) MUST_CHECK;
void os_unmap(struct str bytes);
// A name that was just given becomes durable with the directory that holds it. E_IO.
enum code os_sync_parent(const char *path, struct error *err) MUST_CHECK;
// A whole file, synced, name and all, or none: it is written beside its place and then takes it, by any thread, also at the same
// time as others. With `replace` a file that is there gives way and leaves its mode to the new one; without, E_EXISTS. `mode` is for a
// new file; the umask applies.
enum code os_write_file(const char *path, struct str text, unsigned mode, bool replace, struct error *err) MUST_CHECK;
// The same for what only we may read: mode 0600, whatever was there. A link that was put in its place gives way, and is not followed.
enum code os_write_secret(const char *path, struct str text, struct error *err) MUST_CHECK;
bool os_directory_is_ours(const char *path); // false: a directory where everybody may remove what is there
enum code os_make_dirs(const char *path, struct error *err) MUST_CHECK; // with parents
void os_remove_tree(const char *path); // as much of it as can be removed
// The same for what must be there after a power cut: the name of each directory that was made is durable.
enum code os_make_kept_dirs(const char *path, struct error *err) MUST_CHECK;
// Renames what stands at `path` to "PATH.ENDING". OK when there is nothing.
enum code os_set_aside(const char *path, const char *ending, struct error *err) MUST_CHECK;
bool os_is_dir(const char *path); // follows symbolic links
// `path` itself when it starts with '/', else below the working directory. Nothing is resolved.
enum code os_absolute(const char *path, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;

// With CAIRN_FAULTS and $CAIRN_CRASH_AT=n the n-th mutating disk call of the process is preceded by _exit(137);
// $CAIRN_CRASH_AFTER=n the same directly after it. Product builds do not have this code.

// errno as code and text: "cannot open x: No such file or directory".
enum code os_errno(struct error *err, const char *what, const char *path);

// ---- diagnostics: one line per fact on stderr, level=warn msg="..." k=v; never the log of events
enum log_level { LOG_ERROR = 1, LOG_WARN, LOG_INFO, LOG_DEBUG };
void os_log_level(enum log_level level);
// LOG_JSON: an object a line, {"time", "level", "msg", the fields as strings}; a line that was cut has "truncated": true.
enum log_shape { LOG_TEXT = 1, LOG_JSON };
void os_log_shape(enum log_shape shape);
bool os_log_is_json(void);
// "words run=%s attempt=%u": the words become msg, what follows the first " key=" of the format stays as fields.
void os_log(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
// Where the lines of this thread go instead, whatever their level: one text without a newline. fn NULL: stderr.
struct os_log_route {
    void (*fn)(void *context, enum log_level level, const char *line);
    void *context;
};
struct os_log_route os_log_through(struct os_log_route route); // returns what it was

// ---- networks
struct os_network {
    uint8_t bytes[16]; // of v4 the first four
    uint8_t size;      // 4 or 16
    uint8_t bits;      // that count; all of them: one address
};
bool os_network_parse(struct str text, struct os_network *out) MUST_CHECK; // ADDRESS or ADDRESS/BITS
bool os_network_has(const struct os_network *network, const uint8_t *bytes, size_t size);

// ---- the service manager ($NOTIFY_SOCKET, $WATCHDOG_USEC): nothing happens when there is none
bool os_file_identity(const char *path, char out[64]); // which file it is, by whatever path; false: there is none
void os_notify(const char *state); // "READY=1", "STATUS=..."; several on lines of their own. Never waits
int64_t os_watchdog_ms(void);      // how often it wants to hear WATCHDOG=1; 0 = it does not

#endif
