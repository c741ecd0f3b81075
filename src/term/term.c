#include "term/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// A variable that is set and not empty, else NULL.
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *value = environment(names[i]);
        if (value) return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

static bool wants_color(struct str flag, bool tty)
{
    if (str_is(flag, "always")) return true;
    if (str_is(flag, "never")) return false;
    const char *forced = environment("CLICOLOR_FORCE"), *term = environment("TERM");
    if (forced && strcmp(forced, "0") != 0) return true;
    if (environment("NO_COLOR")) return false;
    if (term && strcmp(term, "dumb") == 0) return false;
    return tty;
}

void term_measure(struct term *term)
{
    struct winsize size;
    const char *given = term->tty ? NULL : environment("COLUMNS");
    int64_t columns = 0;
    term->columns = 80;
    term->rows = 24;
    if (given && str_int64(str_from(given), &columns) && columns >= 20 && columns <= 1000)
        term->columns = (size_t)columns;
    if (term->tty && ioctl(term->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        term->columns = size.ws_col;
        term->rows = size.ws_row;
    }
}

void term_open(struct term *term, int fd, struct str color_flag, bool ascii_flag)
{
    *term = (struct term){.fd = fd, .tty = isatty(fd) == 1};
    term->color = wants_color(color_flag, term->tty);
    term->utf8 = !ascii_flag && locale_is_utf8();
    term_measure(term);
}

const char *tone_code(enum tone tone)
{
    switch (tone) {
    case TONE_NONE:
        return "";
    case TONE_GOOD:
        return "\x1b[32m";
    case TONE_BAD:
        return "\x1b[1;31m";
    case TONE_WARN:
        return "\x1b[33m";
    case TONE_LIVE:
        return "\x1b[36m";
    case TONE_DIM:
        return "\x1b[2m";
    case TONE_BOLD:
        return "\x1b[1m";
    }
    return "";
}

void tone_begin(struct buf *out, const struct term *term, enum tone tone)
{
    if (term->color && tone != TONE_NONE) buf_text(out, tone_code(tone));
}

void tone_end(struct buf *out, const struct term *term, enum tone tone)
{
    if (term->color && tone != TONE_NONE) buf_text(out, "\x1b[0m");
}

void tone_text(struct buf *out, const struct term *term, enum tone tone, const char *text)
{
    tone_begin(out, term, tone);
    buf_text(out, text);
    tone_end(out, term, tone);
}

static const struct {
    const char *glyph, *ascii, *word;
    enum tone tone;
} looks[] = {
    [LOOK_DONE] = {"✓", "+", "done", TONE_GOOD},      [LOOK_RUNNING] = {"●", "*", "running", TONE_LIVE},
    [LOOK_WAITING] = {"◌", ".", "waiting", TONE_DIM}, [LOOK_DELAYED] = {"↻", "~", "retrying", TONE_WARN},
    [LOOK_SKIPPED] = {"⊘", "-", "skipped", TONE_DIM}, [LOOK_FAILED] = {"✗", "x", "failed", TONE_BAD},
    [LOOK_HELD] = {"◆", "#", "held", TONE_BAD},       [LOOK_APPROVAL] = {"◔", "?", "approval", TONE_WARN},
    [LOOK_PAUSED] = {"‖", "=", "paused", TONE_WARN},  [LOOK_CANCELLED] = {"■", "!", "cancelled", TONE_WARN},
    [LOOK_QUEUED] = {"◷", ",", "queued", TONE_WARN},
    [LOOK_NOT_RUN] = {"■", "!", "not run", TONE_DIM},
};

const char *look_glyph(enum look look, bool utf8)
{
    return utf8 ? looks[look].glyph : looks[look].ascii;
}

const char *look_word(enum look look)
{
    return looks[look].word;
}

enum tone look_tone(enum look look)
{
    return looks[look].tone;
}

enum look look_at_end(enum look look, bool stopped, enum run_status status)
{
    if (!run_status_terminal(status)) return look;
    bool cancelled = status == RUN_STATUS_CANCELLED;
    if (look == LOOK_FAILED && stopped && cancelled) return LOOK_CANCELLED;
    if (look == LOOK_HELD) return LOOK_FAILED;
    if (look == LOOK_DELAYED) return cancelled ? LOOK_CANCELLED : LOOK_FAILED;
    if (look == LOOK_WAITING) return cancelled ? LOOK_CANCELLED : LOOK_NOT_RUN;
    return look;
}

int look_width(enum run_status status)
{
    return status == RUN_STATUS_CANCELLED ? 10 : 9;
}

struct str short_id(struct str run)
{
    return uuid_valid(run) ? str_slice(run, 0, 8) : run;
}

enum look look_of_run(enum run_status status)
{
    switch (status) {
    case RUN_STATUS_PENDING:
        return LOOK_WAITING;
    case RUN_STATUS_APPROVED:
    case RUN_STATUS_RUNNING:
        return LOOK_RUNNING;
    case RUN_STATUS_PAUSED:
        return LOOK_PAUSED;
    case RUN_STATUS_COMPLETED:
        return LOOK_DONE;
    case RUN_STATUS_FAILED:
        return LOOK_FAILED;
    case RUN_STATUS_CANCELLED:
        return LOOK_CANCELLED;
    }
    return LOOK_WAITING;
}

void look_run(struct buf *out, const struct term *term, enum run_status status)
{
    enum look look = look_of_run(status);
    tone_begin(out, term, look_tone(look));
    buf_printf(out, "%s %s", look_glyph(look, term->utf8), run_status_name(status));
    tone_end(out, term, look_tone(look));
}
