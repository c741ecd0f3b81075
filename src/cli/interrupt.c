#include "cli/interrupt.h"

#include "base/arena.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupt_count, interrupt_number, reload_count;

static void on_interrupt(int number)
{
    if (interrupt_count < 1000) interrupt_count++;
    if (!interrupt_number) interrupt_number = number;
}

void interrupts_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct sigaction before;
        // nohup asks for SIGHUP to be ignored: that stays. Shells ignore SIGINT for background jobs, but who sends it
        // to this very process means it.
        if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(numbers[i], &action, NULL);
    }
}

int interrupts_count(void)
{
    return interrupt_count;
}

int interrupts_number(void)
{
    return interrupt_number;
}

static void on_reload(int number)
{
    (void)number;
    reload_count = reload_count < 1000 ? reload_count + 1 : 1;
}

void reloads_catch(void)
{
    struct sigaction action = {.sa_handler = on_reload};
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
}

int reloads_count(void)
{
    return reload_count;
}
