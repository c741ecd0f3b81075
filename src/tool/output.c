// What a process writes: read -> masked -> kept for the result (the first bytes of stdout, the last of stderr) and cut into
// lines for the observer.
#include "tool/internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 65536, LINE_MAX_SIZE = 4096, MASKED_MAX = 64 << 20 };

static const struct str replacement = {"\xEF\xBF\xBD", 3}; // U+FFFD

void stream_init(struct stream *stream, bool is_stderr, size_t max)
{
    *stream = (struct stream){.fd = -1, .is_stderr = is_stderr, .max = max};
    INVARIANT(max < SIZE_MAX / 8);
    buf_init(&stream->kept, max * 3); // stderr is kept longer than shown
    buf_init(&stream->line, LINE_MAX_SIZE);
    mask_stream_init(&stream->mask, NULL);
}

void stream_open(struct stream *stream, int fd, const struct mask *mask)
{
    INVARIANT(stream->fd < 0);
    stream->fd = fd;
    stream->mask.mask = mask;
}

void stream_release(struct stream *stream)
{
    stream_close(stream);
    mask_stream_release(&stream->mask);
    buf_release(&stream->kept);
    buf_release(&stream->line);
}

size_t text_unfinished(struct str text)
{
    for (size_t back = 1; back <= 3 && back <= text.len; back++) {
        unsigned char c = (unsigned char)text.ptr[text.len - back];
        if ((c & 0xC0) == 0x80) continue;
        size_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        return size > back ? back : 0;
    }
    return 0;
}

static bool is_clean(struct str text)
{
    return str_utf8(text) && str_find(text, '\0', 0) == text.len;
}

void text_add_clean(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t size = text.ptr[at] ? str_utf8_size(text, at) : 0;
        buf_add(out, size ? str_slice(text, at, at + size) : replacement);
        at += size ? size : 1;
    }
}

static void emit_line(struct stream *stream, const struct line_sink *sink)
{
    struct str line = buf_str(&stream->line);
    if (stream->line_cut) line.len -= text_unfinished(line);
    if (str_ends(line, STR("\r"))) line.len--;
    struct buf clean SCOPED(buf_release) = buf_of(LINE_MAX_SIZE * 3);
    if (!is_clean(line)) {
        text_add_clean(&clean, line);
        line = str_slice(buf_str(&clean), 0, LINE_MAX_SIZE);
        line.len -= text_unfinished(line);
    }
    sink->output(sink->context, sink->ticket, stream->is_stderr, line);
    buf_clear(&stream->line);
    stream->line_cut = false;
}

static void add_to_line(struct stream *stream, struct str part)
{
    size_t room = LINE_MAX_SIZE - stream->line.len;
    if (part.len > room) stream->line_cut = true;
    buf_add(&stream->line, str_slice(part, 0, room));
}

static void add_lines(struct stream *stream, struct str text, const struct line_sink *sink)
{
    while (text.len) {
        size_t end = str_find(text, '\n', 0);
        add_to_line(stream, str_slice(text, 0, end));
        if (end == text.len) break;
        emit_line(stream, sink);
        text = str_slice(text, end + 1, text.len);
    }
}

static void keep_first(struct stream *stream, struct str text)
{
    spill_take(stream->spill, buf_str(&stream->kept), text, stream->max);
    size_t room = stream->max > stream->kept.len ? stream->max - stream->kept.len : 0;
    if (text.len > room) stream->truncated = true;
    buf_add(&stream->kept, str_slice(text, 0, room));
    if (!buf_ok(&stream->kept)) stream->truncated = true;
}

static void keep_last(struct stream *stream, struct str text)
{
    if (text.len > stream->max) text = str_slice(text, text.len - stream->max, text.len);
    buf_add(&stream->kept, text);
    // Twice the size before it is moved, so that a long text is not moved for each line.
    if (stream->kept.len >= stream->max * 2) {
        size_t drop = stream->kept.len - stream->max;
        memmove(stream->kept.ptr, stream->kept.ptr + drop, stream->max + 1);
        stream->kept.len = stream->max;
    }
}

static void take(struct stream *stream, struct str bytes, bool end, const struct line_sink *sink)
{
    struct buf masked SCOPED(buf_release) = buf_of(MASKED_MAX);
    mask_feed(&stream->mask, bytes, end, &masked);
    if (!buf_ok(&masked)) stream->truncated = true;
    struct str text = buf_str(&masked);
    stream->size += text.len;
    if (stream->is_stderr)
        keep_last(stream, text);
    else
        keep_first(stream, text);
    if (sink->output) add_lines(stream, text, sink);
    step_log_take(sink->log, stream->is_stderr, text);
}

bool stream_read(struct stream *stream, const struct line_sink *sink, unsigned rounds)
{
    char bytes[READ_SIZE];
    INVARIANT(stream->fd >= 0);
    for (unsigned i = 0; i < rounds; i++) {
        ssize_t got = read(stream->fd, bytes, sizeof(bytes));
        if (got > 0)
            take(stream, (struct str){bytes, (size_t)got}, false, sink);
        else if (got == 0 || (errno != EINTR && errno != EAGAIN))
            return false;
        else if (errno == EAGAIN)
            break;
    }
    return true;
}

void stream_close(struct stream *stream)
{
    if (stream->fd >= 0) close(stream->fd);
    stream->fd = -1;
}

void stream_end(struct stream *stream, const struct line_sink *sink)
{
    take(stream, STR(""), true, sink);
    if (sink->output && (stream->line.len || stream->line_cut)) emit_line(stream, sink);
}

// Whole characters within max: of stdout the first, of stderr the last.
static struct str cut(const struct stream *stream, struct str text)
{
    if (text.len <= stream->max) return text;
    if (!stream->is_stderr) {
        text = str_slice(text, 0, stream->max);
        text.len -= text_unfinished(text);
        return text;
    }
    text = str_slice(text, text.len - stream->max, text.len);
    while (text.len && ((unsigned char)text.ptr[0] & 0xC0) == 0x80) text = str_slice(text, 1, text.len);
    return text;
}

struct str stream_text(struct stream *stream)
{
    struct str text = buf_str(&stream->kept);
    if (stream->is_stderr)
        text = cut(stream, text);
    else if (stream->truncated)
        text.len -= text_unfinished(text);
    if (!is_clean(text)) {
        struct buf clean = buf_of(text.len * replacement.len);
        text_add_clean(&clean, text);
        if (!buf_ok(&clean) || clean.len > stream->max) {
            if (!stream->is_stderr) spill_all(stream->spill, buf_str(&stream->kept));
            if (stream->size < clean.len) stream->size = clean.len;
            stream->truncated = true;
        }
        buf_release(&stream->kept);
        stream->kept = clean;
        text = cut(stream, buf_str(&stream->kept));
    }
    while (str_ends(text, STR("\n"))) text.len -= str_ends(text, STR("\r\n")) ? 2 : 1;
    return text;
}
