#include "cli/program/signals.h"

#include "cli/launch/launched.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
#define CAUGHT ((int)(sizeof caught / sizeof caught[0]))

/* One stop may arrive twice: from timeout(1), which signals a process and its group, or from a terminal
   and the shell in it. */
#define REPEAT_SECONDS 0.3

/* Everything the handler uses is prepared: it may neither allocate nor print by stdio. */
static tr_trainer *_Atomic target;
static tr_stop *_Atomic stopped;
static atomic_int received;
static double first; /* its time */
static struct sigaction before[CAUGHT];
static char notice[160];
static size_t notice_length;

static void say(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, text, length);
        if (written <= 0 && errno != EINTR) return;
        if (written <= 0) continue;
        text += written;
        length -= (size_t)written;
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void handle(int number)
{
    int saved = errno, none = 0;
    if (atomic_compare_exchange_strong(&received, &none, number)) {
        first = now();
        tr_trainer *trainer = atomic_load(&target);
        tr_stop *stop = atomic_load(&stopped);
        if (trainer) tr_trainer_stop(trainer);
        if (stop) tr_stop_set(stop, 1);
        say(notice, notice_length);
        cli_launched_stopping();
    } else if (number != SIGHUP && number != SIGUSR1 && now() - first > REPEAT_SECONDS) {
        say("\n", 1);
        _exit(128 + number);
    }
    errno = saved;
}

/* Blocks or unblocks the signal that a launcher forwards. */
static void hold(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(how, &set, NULL);
}

void cli_signals_hold(void)
{
    hold(SIG_BLOCK);
}

void cli_signals_catch(tr_trainer *trainer, const char *what)
{
    /* A progress line may be on the screen: the notice replaces it, and the line is drawn again below. */
    int length = !what ? 0
                       : snprintf(notice, sizeof notice, "%s%s%s (once more: leave at once)\n",
                                  cli_terminal_interactive(STDERR_FILENO) ? "\r\033[K" : "",
                                  cli_output_prefix(), what);
    notice_length = (size_t)length < sizeof notice ? (size_t)length : sizeof notice - 1;
    atomic_store(&received, 0);
    atomic_store(&target, trainer);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++) {
        sigaction(caught[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
    }
    hold(SIG_UNBLOCK);
}

void cli_signals_stop(tr_stop *stop)
{
    atomic_store(&stopped, stop);
    if (atomic_load(&received)) tr_stop_set(stop, 1);
}

void cli_signals_release(void)
{
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &before[i], NULL);
    atomic_store(&target, NULL);
    atomic_store(&stopped, NULL);
}

void cli_signals_ignore(void)
{
    for (int i = 0; i < CAUGHT; i++) signal(caught[i], SIG_IGN);
    atomic_store(&target, NULL);
    atomic_store(&stopped, NULL);
}

int cli_signals_received(void)
{
    return atomic_load(&received);
}
