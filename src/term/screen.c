#include "term/screen.h"
#include "term/text.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_out(const struct screen *screen, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        ssize_t n = write(screen->term->fd, text.ptr + at, text.len - at);
        if (n < 0 && errno != EINTR) return;
        if (n > 0) at += (size_t)n;
    }
}

static bool take_keys(struct screen *screen)
{
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp()) return false;
    if (tcgetattr(STDIN_FILENO, &screen->before)) return false;
    struct termios raw = screen->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; // stopped in the middle of a picture, a terminal would be left unusable
    screen->keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    return screen->keys;
}

void screen_open_keys(struct screen *screen, struct term *term)
{
    *screen = (struct screen){.term = term};
    buf_init(&screen->frame, (size_t)8 << 20);
    take_keys(screen);
}

bool screen_open_full(struct screen *screen, struct term *term)
{
    const char *kind = getenv("TERM");
    *screen = (struct screen){.term = term};
    buf_init(&screen->frame, (size_t)8 << 20);
    if (!term->tty || !kind || !kind[0] || strcmp(kind, "dumb") == 0 || !take_keys(screen)) return false;
    screen->full = true;
    write_out(screen, STR("\x1b[?1049h\x1b[?25l\x1b[2J"));
    return true;
}

void screen_close(struct screen *screen)
{
    if (screen->full) write_out(screen, STR("\x1b[?25h\x1b[?1049l"));
    if (screen->keys) tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
    buf_release(&screen->frame);
    screen->full = screen->keys = false;
}

// What terminals send for keys that are no characters, without the ESC.
static const struct {
    const char *bytes;
    enum key key;
} sequences[] = {
    {"[A", KEY_UP},    {"OA", KEY_UP},    {"[B", KEY_DOWN},     {"OB", KEY_DOWN},
    {"[C", KEY_RIGHT}, {"OC", KEY_RIGHT}, {"[D", KEY_LEFT},     {"OD", KEY_LEFT},
    {"[H", KEY_HOME},  {"OH", KEY_HOME},  {"[1~", KEY_HOME},    {"[F", KEY_END},
    {"OF", KEY_END},   {"[4~", KEY_END},  {"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN},
};

static void drop(struct screen *screen, size_t count)
{
    screen->pending_count -= count;
    memmove(screen->pending, screen->pending + count, screen->pending_count);
}

// A sequence that has come whole is one key; an ESC that stays alone is the key of that name; what is not known is nothing.
static int take_escape(struct screen *screen)
{
    struct str rest = {screen->pending + 1, screen->pending_count - 1};
    for (size_t i = 0; i < ARRAY_COUNT(sequences); i++)
        if (str_starts(rest, str_from(sequences[i].bytes))) {
            drop(screen, 1 + strlen(sequences[i].bytes));
            return sequences[i].key;
        }
    if (rest.len == 0) {
        drop(screen, 1);
        return KEY_ESCAPE;
    }
    drop(screen, screen->pending_count);
    return KEY_NONE;
}

static bool fill(struct screen *screen, int wait_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&in, 1, wait_ms) <= 0) return true;
    ssize_t n =
        read(STDIN_FILENO, screen->pending + screen->pending_count, sizeof(screen->pending) - screen->pending_count);
    if (n > 0) screen->pending_count += (size_t)n;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

int screen_key(struct screen *screen, int wait_ms)
{
    if (!screen->keys) {
        poll(NULL, 0, wait_ms);
        return KEY_NONE;
    }
    if (screen->pending_count == 0 && !fill(screen, wait_ms)) return KEY_CLOSED;
    if (screen->pending_count == 0) return KEY_NONE;
    if (screen->pending[0] != KEY_ESCAPE) {
        int key = (unsigned char)screen->pending[0];
        drop(screen, 1);
        return key == '\n' ? KEY_ENTER : key == '\b' ? KEY_BACKSPACE : key;
    }
    if (screen->pending_count == 1 && !fill(screen, 20)) return KEY_CLOSED;
    return take_escape(screen);
}

void screen_begin(struct screen *screen)
{
    term_measure(screen->term);
    buf_clear(&screen->frame);
    buf_text(&screen->frame, "\x1b[H");
    screen->lines = 0;
}

size_t screen_rows(const struct screen *screen)
{
    return screen->term->rows > screen->lines ? screen->term->rows - screen->lines : 0;
}

// The last line ends without a newline, so that the screen does not scroll.
static void next_line(struct screen *screen)
{
    if (screen->lines > 0) buf_text(&screen->frame, "\r\n");
    screen->lines++;
}

void screen_line(struct screen *screen, struct str text)
{
    if (screen_rows(screen) == 0) return;
    next_line(screen);
    text_cut(&screen->frame, text, screen->term->columns, screen->term->utf8);
    buf_text(&screen->frame, screen->term->color ? "\x1b[0m\x1b[K" : "\x1b[K");
}

void screen_bar(struct screen *screen, struct str text, enum tone tone)
{
    if (screen_rows(screen) == 0) return;
    next_line(screen);
    tone_begin(&screen->frame, screen->term, tone);
    if (screen->term->color) buf_text(&screen->frame, "\x1b[7m");
    size_t from = screen->frame.len;
    text_cut(&screen->frame, text, screen->term->columns, screen->term->utf8);
    text_pad(&screen->frame, text_width(str_slice(buf_str(&screen->frame), from, screen->frame.len)),
             screen->term->columns);
    buf_text(&screen->frame, screen->term->color ? "\x1b[0m\x1b[K" : "\x1b[K");
}

void screen_show(struct screen *screen)
{
    buf_text(&screen->frame, "\x1b[J");
    write_out(screen, buf_str(&screen->frame));
    buf_clear(&screen->frame);
}
