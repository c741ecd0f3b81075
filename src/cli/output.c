#include "cli/output.h"
#include "cli/cli.h"
#include "cli/text.h"

#include "base/civil.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MESSAGE_MAX (64 * 1024)

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

enum format format_of(const struct cli *cli, enum format otherwise)
{
    static const char *const names[] = {"",
#define X(name, text) text,
                                        FORMAT_LIST(X)
#undef X
    };
    struct str text = args_text(&cli->args, FLAG_OUTPUT, "");
    for (size_t i = 1; i < ARRAY_COUNT(names); i++)
        if (str_is(text, names[i])) return (enum format)i;
    return otherwise;
}

void print_data(struct cli *cli, struct buf *text)
{
    if (cli->out.tty) {
        struct buf safe;
        buf_init(&safe, TEXT_MAX);
        text_safe_json(&safe, buf_str(text));
        cli_print(cli, &safe);
        buf_release(&safe);
        buf_clear(text);
    } else {
        cli_print(cli, text);
    }
}

void print_json(struct cli *cli, enum format format, const struct json *value)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    if (format == FORMAT_YAML) {
        yaml_write(&text, value);
    } else {
        if (format == FORMAT_JSON)
            json_write_pretty(&text, value);
        else
            json_write(&text, value);
        buf_byte(&text, '\n');
    }
    print_data(cli, &text);
    buf_release(&text);
}

void time_text(struct buf *out, const struct cli *cli, int64_t ms)
{
    struct str style = args_text(&cli->args, FLAG_TIME, "relative");
    char text[CIVIL_SIZE];
    civil_format(ms, text);
    if (str_is(style, "unix")) {
        buf_printf(out, "%lld", (long long)(ms / 1000));
    } else if (str_is(style, "iso")) {
        buf_text(out, text);
    } else if (cli->now_ms - ms > 30 * 86400000LL || ms - cli->now_ms > 30 * 86400000LL) {
        buf_printf(out, "%.10s %.8s", text, text + 11);
    } else {
        static const struct {
            int64_t seconds;
            const char *unit;
        } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
        int64_t seconds = (cli->now_ms - ms) / 1000;
        bool future = seconds < 0;
        if (future) seconds = -seconds;
        size_t i = 0;
        while (i < ARRAY_COUNT(units) && seconds < units[i].seconds) i++;
        if (i == ARRAY_COUNT(units))
            buf_text(out, "just now");
        else
            buf_printf(out, "%s%lld%s%s", future ? "in " : "", (long long)(seconds / units[i].seconds), units[i].unit,
                       future ? "" : " ago");
    }
}

bool time_flag(struct cli *cli, enum flag flag, int64_t *ms)
{
    struct str text = args_text(&cli->args, flag, "");
    int64_t ago;
    *ms = 0;
    if (!args_has(&cli->args, flag) || civil_parse(text, ms)) return true;
    if (duration_parse(text, &ago)) {
        *ms = cli->now_ms - ago;
        return true;
    }
    cli_fail(cli, EXIT_USAGE, "--%s cannot be %.*s", flag_info(flag)->name, STR_ARG(text));
    cli_hint(cli, "2h, 7d, or 2026-02-11T17:00:00Z");
    return false;
}

static bool write_all(int fd, struct str text)
{
    size_t at = 0;
    while (at < text.len) {
        ssize_t n = write(fd, text.ptr + at, text.len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        at += (size_t)n;
    }
    return true;
}

void cli_print(struct cli *cli, struct buf *text)
{
    if (!cli->out_closed && !write_all(STDOUT_FILENO, buf_str(text))) {
        cli->out_closed = true;
        if (errno != EPIPE) { // a reader that has seen enough is no error
            cli->out_failed = true;
            cli_fail(cli, EXIT_ERROR, "cannot write to stdout: %s", strerror(errno));
        }
    }
    buf_clear(text);
}

void cli_talk(struct cli *cli, struct buf *text)
{
    (void)cli;
    (void)!write_all(STDERR_FILENO, buf_str(text));
    buf_clear(text);
}

static void say(struct cli *cli, enum tone tone, const char *head, const char *format, va_list list)
    __attribute__((format(printf, 4, 0)));

static void say(struct cli *cli, enum tone tone, const char *head, const char *format, va_list list)
{
    char message[2048];
    struct buf line;
    buf_init(&line, MESSAGE_MAX);
    vsnprintf(message, sizeof(message), format, list);
    tone_text(&line, &cli->err, tone, head);
    text_safe_lines(&line, str_from(message));
    buf_byte(&line, '\n');
    cli_talk(cli, &line);
    buf_release(&line);
}

int cli_fail(struct cli *cli, enum exit_code code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(cli, TONE_BAD, "error: ", format, list);
    va_end(list);
    return (int)code;
}

static enum exit_code exit_from_code(enum code code)
{
    switch (code) {
    case OK:
        return EXIT_OK;
    case E_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case E_EXISTS:
    case E_CONFLICT:
    case E_LOCKED:
    case E_TERMINAL:
        return EXIT_CONFLICT;
    case E_CORRUPT:
        return EXIT_INTEGRITY;
    case E_TIMEOUT:
        return EXIT_TIMEOUT;
    case E_UNREACHABLE:
        return EXIT_UNREACHABLE;
    case E_CANCELLED:
        return EXIT_RUN_CANCELLED;
    case E_DENIED:
        return EXIT_DENIED;
    case E_UNSUPPORTED:
    case E_INVALID:
        return EXIT_USAGE;
    case E_NOMEM:
    case E_LIMIT:
    case E_IO:
    case E_FULL:
    case E_VERSION:
    case E_SCHEMA:
        return EXIT_ERROR;
    }
    return EXIT_ERROR;
}

int cli_error(struct cli *cli, const struct error *err)
{
    return cli_fail(cli, exit_from_code(err->code), "%s", err->message);
}

int cli_nomem(struct cli *cli)
{
    return cli_fail(cli, EXIT_ERROR, "out of memory");
}

void cli_hint(struct cli *cli, const char *format, ...)
{
    if (cli->quiet) return;
    va_list list;
    va_start(list, format);
    say(cli, TONE_DIM, "  hint: ", format, list);
    va_end(list);
}

static const char *command_line(struct cli *cli, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

static const char *command_line(struct cli *cli, const char *format, va_list list)
{
    char words[2048];
    vsnprintf(words, sizeof(words), format, list);
    return cli_format(cli, "%s %s%s", cli->self, words, cli->tail);
}

const char *cli_command(struct cli *cli, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *line = command_line(cli, format, list);
    va_end(list);
    return line;
}

void cli_next(struct cli *cli, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *line = command_line(cli, format, list);
    va_end(list);
    if (!cli->quiet) cli_note(cli, "  next: %s", line);
}

void cli_note(struct cli *cli, const char *format, ...)
{
    if (cli->quiet) return;
    va_list list;
    va_start(list, format);
    say(cli, TONE_NONE, "", format, list);
    va_end(list);
}

void cli_warn(struct cli *cli, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(cli, TONE_WARN, "warning: ", format, list);
    va_end(list);
}

int cli_usage(struct cli *cli)
{
    cli_fail(cli, EXIT_USAGE, "%s", cli->args.message.ptr);
    if (cli->args.hint.len > 0) cli_hint(cli, "%s", cli->args.hint.ptr);
    return EXIT_USAGE;
}

const char *cli_format(struct cli *cli, const char *format, ...)
{
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct str copy = arena_copy(&cli->arena, str_from(text));
    return copy.ptr ? copy.ptr : "";
}
