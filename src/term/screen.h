// A terminal taken over: keys as they are pressed, and, for a full-screen view, a screen of its own that leaves the shell's
// lines untouched. Whatever happens, screen_close gives the terminal back as it was.
// owner: main thread.
#ifndef CAIRN_TERM_SCREEN_H
#define CAIRN_TERM_SCREEN_H

#include "term/term.h"

#include <termios.h>

enum key {
    KEY_NONE = 0, // nothing was pressed in time
    KEY_ENTER = '\r',
    KEY_ESCAPE = 27,
    KEY_BACKSPACE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_CLOSED, // nobody can press anything any more
};

struct screen {
    struct term *term;
    struct termios before;
    bool keys, full;
    struct buf frame;
    size_t lines; // of the frame so far
    char pending[16];
    size_t pending_count;
};

// Keys only, when stdin is a terminal of which this process is in the foreground: without one there are none. ^C stays a signal.
void screen_open_keys(struct screen *screen, struct term *term);
// The whole screen. False: stdin or the terminal cannot do that.
bool screen_open_full(struct screen *screen, struct term *term);
void screen_close(struct screen *screen);
// A byte of text or an enum key. Waits at most `wait_ms`.
int screen_key(struct screen *screen, int wait_ms);

// A frame: lines from the top, each cut to the width; what is not written is empty. Shown at once by screen_show.
void screen_begin(struct screen *screen);
void screen_line(struct screen *screen, struct str text); // safe already, may hold colours
void screen_bar(struct screen *screen, struct str text,
                enum tone tone);                 // padded to the width, reversed where there is colour
size_t screen_rows(const struct screen *screen); // that are left in this frame
void screen_show(struct screen *screen);

#endif
