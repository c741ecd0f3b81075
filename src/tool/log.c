// What a step writes, kept for people: one file per attempt, a line a line, masked like everything that leaves the tools.
// The file is made with the first byte, so a silent step costs nothing. Nothing waits for the disk (no sync), and a log
// that cannot be written never stops a step.
#include "tool/internal.h"

#include "base/civil.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_MAX = 8192, NAME_KEPT_MAX = 180, NAME_CUT = 150, MARK_ROOM = 128, TAIL_MAX = 64 };

// ---- the format

static bool is_plain(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c && strchr("._-[]", c)) ||
           c >= 0x80;
}

void tool_log_name(struct str step, uint32_t logical, uint32_t engine, char out[TOOL_LOG_NAME_SIZE])
{
    static const char hex[] = "0123456789ABCDEF";
    char name[NAME_KEPT_MAX + 4] = "";
    size_t len = 0, at = 0;
    for (; at < step.len && len <= NAME_KEPT_MAX; at++) {
        unsigned char c = (unsigned char)step.ptr[at];
        if (is_plain(c) && !(at == 0 && c == '.')) {
            name[len++] = (char)c;
            continue;
        }
        name[len++] = '%';
        name[len++] = hex[c >> 4];
        name[len++] = hex[c & 15];
    }
    if (at < step.len || len > NAME_KEPT_MAX) { // a hash stands for what is left out
        char digest[SHA256_HEX + 1];
        struct digest whole = sha256(step);
        digest_hex(&whole, digest);
        len = NAME_CUT;
        while (((unsigned char)name[len] & 0xC0) == 0x80) len--;
        name[len++] = '~';
        memcpy(name + len, digest, 16);
        len += 16;
    }
    snprintf(out, TOOL_LOG_NAME_SIZE, "%.*s.%u.%u.log", (int)len, name, logical, engine);
}

static const char *const kinds[] = {
    [TOOL_LOG_OUT] = "out", [TOOL_LOG_ERR] = "err", [TOOL_LOG_CUT] = "cut", [TOOL_LOG_END] = "end"};

bool tool_log_parse(struct str line, struct tool_log_line *out)
{
    struct str rest;
    struct str time = str_cut(line, ' ', &rest);
    struct str word = str_cut(rest, ' ', &rest);
    *out = (struct tool_log_line){.text = rest, .open = str_ends(word, STR("+"))};
    if (out->open) word.len--;
    for (size_t i = TOOL_LOG_OUT; i <= TOOL_LOG_END; i++)
        if (str_is(word, kinds[i])) out->kind = (enum tool_log_kind)i;
    return out->kind && civil_parse(time, &out->at_ms);
}

// ---- writing

void step_log_init(struct step_log *log, struct str path, size_t max)
{
    *log = (struct step_log){.path = path, .fd = -1, .max = max};
    buf_init(&log->text, SIZE_MAX / 4);
    buf_init(&log->held[0], PIECE_MAX * 2);
    buf_init(&log->held[1], PIECE_MAX * 2);
}

void step_log_release(struct step_log *log)
{
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
    buf_release(&log->text);
    buf_release(&log->held[0]);
    buf_release(&log->held[1]);
}

static void give_up(struct step_log *log, const char *what)
{
    struct error why = {0};
    os_errno(&why, what, log->path.ptr);
    os_log(LOG_WARN, "the log of a step is lost why=\"%s\"", why.message);
    log->failed = true;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
}

static bool make_parent(struct step_log *log)
{
    struct error why = {0};
    const char *slash = strrchr(log->path.ptr, '/');
    struct buf parent SCOPED(buf_release) = buf_of(4096);
    buf_add(&parent, str_slice(log->path, 0, slash ? (size_t)(slash - log->path.ptr) : 0));
    enum code rc = parent.len ? os_make_dirs(parent.ptr, &why) : OK;
    if (rc == OK) return true;
    os_log(LOG_WARN, "the log of a step is lost why=\"%s\"", why.message);
    log->failed = true;
    return false;
}

static bool is_open(struct step_log *log)
{
    if (log->fd >= 0 || log->failed) return !log->failed;
    log->fd = open_file(log->path.ptr);
    if (log->fd < 0 && errno == ENOENT) {
        if (!make_parent(log)) return false;
        log->fd = open_file(log->path.ptr);
    }
    if (log->fd < 0) give_up(log, "open");
    return log->fd >= 0;
}

static void flush(struct step_log *log)
{
    if (log->text.len && is_open(log) && !os_write_all(log->fd, buf_str(&log->text))) give_up(log, "write");
    buf_clear(&log->text);
}

static void add_line(struct step_log *log, const char *time, enum tool_log_kind kind, bool open, struct str text)
{
    if (log->cut && kind != TOOL_LOG_END) return;
    char mark[MARK_ROOM];
    size_t size = strlen(time) + text.len + 8;
    if (kind != TOOL_LOG_END && log->size + size + MARK_ROOM + TAIL_MAX > log->max) {
        log->cut = true;
        kind = TOOL_LOG_CUT;
        open = false;
        snprintf(mark, sizeof(mark), "at %zu bytes: what follows was not kept", log->size);
        text = str_from(mark);
    }
    size_t before = log->text.len;
    buf_printf(&log->text, "%s %s%s ", time, kinds[kind], open ? "+" : "");
    if (str_utf8(text) && str_find(text, '\0', 0) == text.len)
        buf_add(&log->text, text);
    else
        text_add_clean(&log->text, text);
    buf_byte(&log->text, '\n');
    log->size += log->text.len - before;
}

// A line that is longer than a piece is written in pieces; all but the last are marked as going on.
static void add_pieces(struct step_log *log, const char *time, bool is_stderr, struct str part, bool ends)
{
    struct buf *held = &log->held[is_stderr];
    enum tool_log_kind kind = is_stderr ? TOOL_LOG_ERR : TOOL_LOG_OUT;
    while (held->len + part.len > PIECE_MAX) {
        size_t room = PIECE_MAX - held->len;
        buf_add(held, str_slice(part, 0, room));
        part = str_slice(part, room, part.len);
        struct str piece = buf_str(held);
        size_t rest = text_unfinished(piece);
        char kept[4];
        memcpy(kept, piece.ptr + piece.len - rest, rest);
        add_line(log, time, kind, true, str_slice(piece, 0, piece.len - rest));
        buf_clear(held);
        buf_add(held, (struct str){kept, rest});
    }
    buf_add(held, part);
    if (!ends) return;
    struct str line = buf_str(held);
    if (str_ends(line, STR("\r"))) line.len--;
    add_line(log, time, kind, false, line);
    buf_clear(held);
}

void step_log_take(struct step_log *log, bool is_stderr, struct str text)
{
    if (!text.len || !log->path.len || log->failed) return;
    char time[CIVIL_SIZE];
    civil_format(os_now().wall_ms, time);
    while (text.len && !log->cut) {
        size_t end = str_find(text, '\n', 0);
        bool whole = end < text.len;
        add_pieces(log, time, is_stderr, str_slice(text, 0, end), whole);
        text = str_slice(text, end + whole, text.len);
    }
    flush(log);
}

void step_log_end(struct step_log *log, struct str how)
{
    char time[CIVIL_SIZE];
    if (!log->path.len || log->failed) return;
    civil_format(os_now().wall_ms, time);
    for (unsigned i = 0; i < 2; i++) {
        if (log->held[i].len) add_line(log, time, i ? TOOL_LOG_ERR : TOOL_LOG_OUT, true, buf_str(&log->held[i]));
        buf_clear(&log->held[i]);
    }
    if (log->fd >= 0 || log->text.len) {
        size_t end = str_find(how, '\n', 0);
        add_line(log, time, TOOL_LOG_END, false, str_slice(how, 0, end));
        flush(log);
    }
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
    log->failed = true; // nothing more is taken
}
