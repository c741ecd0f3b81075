#include "cli/interrupt.h"

#include "base/arena.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { SAME_SIGNAL_MS = 1000 };

static atomic_int interrupt_count, interrupt_number, reload_count;
static _Atomic uint64_t interrupt_last; // the last one that was counted: monotonic milliseconds << 8 | number; 0 = none yet

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// A leader signals this process, and then its group with this process in it: that is timeout(1), and a parent that passes on what
// the terminal has sent to all of them. Signals merge only as long as they are pending, so the second one may come by itself, and
// to another thread.
static bool is_same_again(uint64_t last, int number, const siginfo_t *info, uint64_t now_ms)
{
    return info->si_code <= 0 && info->si_pid == getpgrp() && (last & 0xff) == (uint64_t)number &&
           now_ms - (last >> 8) < SAME_SIGNAL_MS;
}

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    uint64_t now_ms = monotonic_ms(), last = atomic_load(&interrupt_last);
    int none = 0;
    (void)context;
    do
        if (is_same_again(last, number, info, now_ms)) return;
    while (!atomic_compare_exchange_strong(&interrupt_last, &last, now_ms << 8 | (uint64_t)number));
    atomic_compare_exchange_strong(&interrupt_number, &none, number);
    if (atomic_load(&interrupt_count) < 1000) atomic_fetch_add(&interrupt_count, 1);
}

void interrupts_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO};
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
