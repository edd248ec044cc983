#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/local/launch.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "comm/process_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 110 /* seconds for one run */

/* ---- a rank ---- */

static void be_rank(const struct launch *launch, int rank, int size, launch_function function,
                    const char *what)
{
    char variable[TR_LOCAL_TICKET_SIZE + sizeof TR_LOCAL_VARIABLE + 1] = TR_LOCAL_VARIABLE "=";
    const char *const environment[] = {"HOME=/", variable, NULL};
    size_t length = strlen(variable);
    struct tr_comm_settings settings = {.timeout = launch->timeout, .patience = 100};
    int named, count;
    int64_t live = tr_alloc_live();
    tr_comm *comm;
    if (tr_local_group_ticket(launch->group, rank, variable + length, sizeof variable - length) != TR_OK ||
        !tr_comm_local_world(environment, &named, &count) || named != rank || count != size)
        _exit(4);
    if (launch->stays_away && rank == size - 1) _exit(0);
    if (launch->be_rank) _exit(launch->be_rank(launch, variable + length, rank));
    if (tr_comm_local_create(tr_comm_local_ticket(environment), &settings, &comm) != TR_OK) {
        char text[1200];
        snprintf(text, sizeof text, "rank %d does not join: %s", rank, tr_error_message());
        process_say(NULL, text);
        _exit(3);
    }
    const char *wrong = tr_comm_rank(comm) == rank && tr_comm_size(comm) == size ? function(comm, what)
                                                                                 : "another rank or size";
    if (wrong) {
        process_say(comm, wrong);
        tr_comm_abort(comm, wrong);
        _exit(1);
    }
    tr_comm_destroy(&comm);
    if (tr_alloc_live() != live) {
        process_say(NULL, "memory was left behind");
        _exit(5);
    }
    _exit(0);
}

/* ---- the launcher ---- */

static void start(struct launch *launch, int size, launch_function function, const char *what, pid_t *pid,
                  int output)
{
    pid_t launcher = getpid();
    for (int rank = 0; rank < size; rank++) {
        pid[rank] = fork();
        assert_true(pid[rank] >= 0);
        if (pid[rank] > 0) continue;
        if (!launch->outlived) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != launcher) _exit(9);
            dup2(output, STDOUT_FILENO);
        }
        be_rank(launch, rank, size, function, what);
    }
}

/* Takes leave of those that ended; returns how many run. */
static int reap(struct launch *launch, int size, pid_t *pid)
{
    int running = 0, status;
    for (int rank = 0; rank < size; rank++) {
        if (pid[rank] == 0) continue;
        if (waitpid(pid[rank], &status, WNOHANG) != pid[rank]) {
            running++;
            continue;
        }
        pid[rank] = 0;
        launch->code[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (!launch->silent) tr_local_group_ended(launch->group, rank);
    }
    return running;
}

static size_t collect(struct launch *launch, int from, size_t length)
{
    while (length < sizeof launch->output - 1) {
        ssize_t got = read(from, launch->output + length, sizeof launch->output - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    launch->output[length] = 0;
    return length;
}

void launch_run(struct launch *launch, int size, launch_function function, const char *what)
{
    int pipes[2];
    pid_t pid[LAUNCH_MOST];
    size_t length = 0;
    bool late = false;
    assert_true(size <= LAUNCH_MOST);
    assert_int_equal(tr_local_group_create(size, &launch->group), TR_OK);
    assert_int_equal(pipe(pipes), 0);
    start(launch, size, function, what, pid, pipes[1]);
    close(pipes[1]);
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    double end = tr_clock_seconds() + DEADLINE;
    while (reap(launch, size, pid) > 0) {
        poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, 20);
        length = collect(launch, pipes[0], length);
        if (late || tr_clock_seconds() < end) continue;
        late = true;
        for (int rank = 0; rank < size; rank++)
            if (pid[rank] > 0) kill(pid[rank], SIGKILL);
    }
    collect(launch, pipes[0], length);
    close(pipes[0]);
    tr_local_group_destroy(&launch->group);
    if (late)
        fail_msg("%s on %d ranks took longer than %d s; output:\n%s", what, size, DEADLINE, launch->output);
}

void launch_expect_well(struct launch *launch, int size, launch_function function, const char *what)
{
    launch_run(launch, size, function, what);
    for (int rank = 0; rank < size; rank++)
        if (launch->code[rank] != 0)
            fail_msg("%s: rank %d of %d ended with %d; output:\n%s", what, rank, size, launch->code[rank],
                     launch->output);
}
