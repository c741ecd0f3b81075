#include "cli/commands.h"
#include "cli/interrupt.h"
#include "term/text.h"
#include "cli/top.h"

#include <stdarg.h>
#include <stdio.h>

enum { FRAME_MS = 100 };

void top_say(struct top *top, const char *format, ...)
{
    char text[sizeof(top->message)];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct buf safe SCOPED(buf_release) = buf_of(sizeof(text) * 8);
    text_safe(&safe, str_from(text));
    snprintf(top->message, sizeof(top->message), "%.*s", STR_ARG(buf_str(&safe)));
}

void top_ask(struct top *top, void (*answer)(struct top *, const char *), const char *format, ...)
{
    va_list list;
    va_start(list, format);
    top->ask = (struct top_ask){.open = true, .answer = answer};
    vsnprintf(top->ask.label, sizeof(top->ask.label), format, list);
    va_end(list);
}

static void ask_key(struct top *top, int key)
{
    struct top_ask *ask = &top->ask;
    if (key == KEY_ESCAPE) {
        ask->open = false;
    } else if (key == KEY_ENTER) {
        ask->open = false;
        ask->answer(top, ask->text);
    } else if (key == KEY_BACKSPACE) {
        while (ask->len > 0 && ((unsigned char)ask->text[--ask->len] & 0xC0) == 0x80) {
        } // a whole character
        ask->text[ask->len] = '\0';
    } else if (key >= ' ' && key < 256 && ask->len + 1 < sizeof(ask->text)) {
        ask->text[ask->len++] = (char)key;
        ask->text[ask->len] = '\0';
    }
}

static const char *const help[] = {
    "",
    "  up down, j k    move                      enter, right   open a run",
    "  page up, down   a page; scrolls the pane  esc, left      back",
    "",
    "  runs   /        show runs whose id, plan or status holds a text; esc shows all again",
    "         f        all, active, failed",
    "  run    tab      the next pane; w why, l logs, e events, g graph",
    "",
    "  p   pause, or resume when it is paused",
    "  r   retry a held step; run an ended run again; go on with a run that nobody drives",
    "  a   approve the gate (the selected one)      x   reject it",
    "  s   skip the selected step                   c   cancel the run",
    "",
    "  q, ^C   leave; runs go on                    any key closes this",
};

static void draw_bottom(struct top *top, struct buf *line)
{
    while (screen_rows(&top->screen) > 1) screen_line(&top->screen, STR(""));
    buf_clear(line);
    if (top->ask.open) {
        buf_printf(line, " %s: ", top->ask.label);
        text_safe(line, str_from(top->ask.text));
        buf_text(line, "_    (enter, esc)");
    } else if (top->message[0]) {
        buf_printf(line, " %s", top->message);
    } else if (top->run.open) {
        buf_text(line,
                 " p pause/resume  r retry  a approve  x reject  s skip  c cancel  tab pane  esc back  ? help  q quit");
    } else {
        buf_text(line, " enter open  p pause/resume  r retry  a approve  c cancel  / find  f filter  ? help  q quit");
    }
    screen_bar(&top->screen, buf_str(line), top->ask.open ? TONE_WARN : TONE_NONE);
}

static void draw(struct top *top, struct buf *line, int64_t now_ms)
{
    buf_clear(line);
    screen_begin(&top->screen);
    if (top->help) {
        screen_bar(&top->screen, STR(" cairn top: keys"), TONE_BOLD);
        for (size_t i = 0; i < ARRAY_COUNT(help); i++) screen_line(&top->screen, str_from(help[i]));
    } else if (top->run.open) {
        top_run_draw(top, line, now_ms);
    } else {
        top_runs_draw(top, line, now_ms);
    }
    draw_bottom(top, line);
    screen_show(&top->screen);
}

static void press(struct top *top, int key)
{
    if (top->ask.open) {
        ask_key(top, key);
        return;
    }
    if (top->command.fd < 0) top->message[0] = '\0';
    if (top->help) {
        top->help = false;
    } else if (key == 'q') {
        top->quit = true;
    } else if (key == '?') {
        top->help = true;
    } else if (top->run.open) {
        top_run_key(top, key);
    } else {
        top_runs_key(top, key);
    }
}

static void loop(struct top *top)
{
    struct buf line SCOPED(buf_release) = buf_of((size_t)1 << 20);
    while (!top->quit && interrupts_count() == 0) {
        int64_t now_ms = os_now().wall_ms;
        top_listen(top);
        if (top->run.open)
            top_run_look(top, now_ms);
        else
            top_runs_look(top, now_ms);
        draw(top, &line, now_ms);
        int key = screen_key(&top->screen, FRAME_MS);
        for (; key != KEY_NONE && key != KEY_CLOSED && !top->quit; key = screen_key(&top->screen, 0)) press(top, key);
        if (key == KEY_CLOSED) top->quit = true;
    }
}

static int show(struct top *top, const struct target *target)
{
    struct cli *cli = top->cli;
    if (!screen_open_full(&top->screen, &cli->io.out)) {
        screen_close(&top->screen);
        cli_fail(cli, EXIT_USAGE, "`cairn top` needs a terminal that can move its cursor");
        return cli_next(cli, "ls");
    }
    interrupts_catch();
    arena_init(&top->runs.arena, 64 * 1024, (size_t)256 << 20);
    buf_init(&top->command.text, (size_t)1 << 20);
    top->command.fd = -1;
    if (target) top_run_open(top, target->head.ids.run);
    loop(top);
    top_run_close(top);
    top_forget(top);
    screen_close(&top->screen);
    buf_release(&top->command.text);
    arena_release(&top->runs.arena);
    return EXIT_OK;
}

int command_top(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target;
    struct top top = {.cli = cli, .session = &session};
    bool one = cli->args.word_count > 0;
    int code = session_open(&session, cli, STORE_READ);
    if (!code && one) code = target_find(&session, cli->args.words[0], 0, &target);
    if (!code) code = show(&top, one ? &target : NULL);
    return code;
}
