// Lines at the end of a file, into a pipe or to standard output. A line is acknowledged when it is written, and in a file when it is
// on the disk; a line that was cut by a crash or a full disk is taken away before the next one.
#include "bus/inside.h"

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 4096 // a pipe that polls as writable takes this much without waiting
#define SLICE_MS 100
#define LINES_MAX (4 * PAGE_BYTES)

struct lines {
    int fd;
    bool regular;
    off_t size; // up to the last whole line
    struct buf text;
    uint32_t slots[PAGE_MAX];
    size_t count;
};

// Cuts what follows the last newline.
static enum code mend(struct lines *lines, const char *path, struct error *err)
{
    struct stat status;
    if (fstat(lines->fd, &status) != 0) return os_errno(err, "look at", path);
    lines->regular = S_ISREG(status.st_mode);
    if (!lines->regular) return OK;
    off_t end = status.st_size;
    char piece[PIECE];
    while (end > 0) {
        size_t size = end < PIECE ? (size_t)end : PIECE;
        ssize_t got = pread(lines->fd, piece, size, end - (off_t)size);
        if (got != (ssize_t)size) return os_errno(err, "read", path);
        const char *newline = memrchr(piece, '\n', size);
        if (newline) {
            end -= (off_t)size - (newline - piece) - 1;
            break;
        }
        end -= (off_t)size;
    }
    lines->size = end;
    if (end < status.st_size && ftruncate(lines->fd, end) != 0) return os_errno(err, "mend", path);
    return OK;
}

static int open_path(const char *path)
{
    struct stat status;
    // A pipe that nobody reads must not hold the thread: it cannot be opened.
    bool pipe = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
    int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    return pipe ? open(path, O_WRONLY | flags) : open(path, O_RDWR | O_CREAT | flags, 0640);
}

static void file_close(struct sink *sink)
{
    struct lines *lines = sink->wire;
    if (!lines) return;
    if (lines->fd >= 0) close(lines->fd);
    buf_release(&lines->text);
    free(lines);
    sink->wire = NULL;
}

static enum code file_open(struct sink *sink, struct error *err)
{
    char path[PATH_MAX] = "standard output";
    struct str given = sink->config.path;
    if (given.len >= sizeof(path)) return error_set(err, E_INVALID, "the path is too long");
    if (sink->config.type == SINK_FILE) snprintf(path, sizeof(path), "%.*s", STR_ARG(given));
    struct lines *lines = calloc(1, sizeof(*lines));
    if (!lines) return error_nomem(err);
    buf_init(&lines->text, LINES_MAX);
    sink->wire = lines;
    lines->fd = sink->config.type == SINK_FILE ? open_path(path) : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    enum code rc = lines->fd < 0 ? os_errno(err, "open", path) : OK;
    // What stands in the standard output of another program is not ours to mend.
    if (!rc && sink->config.type == SINK_FILE) rc = mend(lines, path, err);
    if (rc) file_close(sink);
    return rc;
}

static void file_send(struct sink *sink, uint32_t slot, const struct message *message)
{
    struct lines *lines = sink->wire;
    buf_add(&lines->text, message->body);
    buf_byte(&lines->text, '\n');
    lines->slots[lines->count++] = slot;
}

static enum code wait_room(struct sink *sink, struct lines *lines, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = lines->fd, .events = POLLOUT};
        int ready = poll(&fd, 1, SLICE_MS);
        if (sink_stopping(sink)) return error_set(err, E_CANCELLED, "stopped while nobody read");
        if (ready > 0) return OK;
        if (ready < 0 && errno != EINTR) return os_errno(err, "wait for", "the reader");
    }
}

static enum code write_all(struct sink *sink, struct lines *lines, struct error *err)
{
    struct str rest = buf_str(&lines->text);
    while (rest.len) {
        enum code rc = lines->regular ? OK : wait_room(sink, lines, err);
        if (rc) return rc;
        size_t size = lines->regular || rest.len < PIECE ? rest.len : PIECE;
        ssize_t done = write(lines->fd, rest.ptr, size);
        if (done < 0 && errno != EINTR && errno != EAGAIN) return os_errno(err, "write to", "the file");
        if (done > 0) rest = str_slice(rest, (size_t)done, rest.len);
    }
    if (lines->regular && fdatasync(lines->fd) != 0) return os_errno(err, "sync", "the file");
    return OK;
}

static void file_flush(struct sink *sink)
{
    struct lines *lines = sink->wire;
    struct error err = {0};
    enum code rc = buf_ok(&lines->text) ? write_all(sink, lines, &err) : error_nomem(&err);
    if (rc) {
        if (lines->regular && ftruncate(lines->fd, lines->size) != 0)
            os_log(LOG_WARN, "a cut line stays in the file sink=%.*s", STR_ARG(sink->config.name));
        sink_down(sink, err.message);
        return;
    }
    lines->size += (off_t)lines->text.len;
    buf_clear(&lines->text);
    size_t count = lines->count;
    lines->count = 0;
    for (size_t i = 0; i < count; i++) sink_answer(sink, lines->slots[i], &(struct delivery){.kind = ANSWER_DELIVERED});
}

const struct transport file_transport = {
    .ordered = true,
    .open = file_open,
    .send = file_send,
    .flush = file_flush,
    .close = file_close,
};
