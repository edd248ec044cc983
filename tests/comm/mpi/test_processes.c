/* Where a rank runs, whether its process does, and which processes of a host have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/location.h"
#include "comm/mpi/processes.h"
#include "support/files/descriptors.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    while (child == 0) pause();
    return child;
}

/* Ends it; a zombie remains where `waits` is false. */
static void end(pid_t child, bool waits)
{
    siginfo_t how;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &how, WEXITED | (waits ? 0 : WNOWAIT)), 0);
}

/* ---- locations ---- */

static void a_process_has_a_place(void **state)
{
    struct tr_location here, other, again;
    (void)state;
    tr_location_here(&here);
    assert_int_equal(here.process, getpid());
    assert_true(here.began > 0);
    assert_true(here.host[0] && here.machine[0]);
    assert_true(tr_location_runs(&here));
    /* Its name may hold anything. */
    char name[16] = "";
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) Z 1 (b"), 0);
    tr_location_here(&again);
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    assert_memory_equal(&again, &here, sizeof here);
    /* Another one of this machine, which began later or at the same time. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tr_location_here(&other);
        if (write(ends[1], &other, sizeof other) != sizeof other) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], &other, sizeof other), sizeof other);
    assert_string_equal(other.machine, here.machine);
    assert_string_equal(other.host, here.host);
    assert_int_equal(other.process, child);
    assert_true(other.began >= here.began);
    assert_true(tr_location_runs(&other));
    other.began++; /* another process got its number */
    assert_false(tr_location_runs(&other));
    other.began--;
    end(child, false);
    assert_false(tr_location_runs(&other)); /* a zombie */
    waitpid(child, NULL, 0);
    assert_false(tr_location_runs(&other));
    other.began = 0; /* of which nothing is known */
    assert_true(tr_location_runs(&other));
    close(ends[0]);
    close(ends[1]);
}

static void what_is_no_process_is_not_watched(void **state)
{
    struct tr_location location = {0};
    static const int64_t none[] = {0, -1, (int64_t)INT32_MAX + 1, ((int64_t)1 << 32) + 1};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        location.process = none[i];
        assert_int_equal(tr_location_watch(&location), -1);
    }
    location.process = getpid();
    int descriptor = tr_location_watch(&location);
    assert_true(descriptor >= 0);
    close(descriptor);
}

/* ---- processes of a host ---- */

enum { RANKS = 5, ME = 1 };

static const struct tr_comm_class class = {.name = "test", .version = TR_COMM_VERSION};
static const struct tr_comm_settings settings = {.timeout = 1, .patience = 1};
static tr_comm comm;
static struct tr_processes *processes;

/* Ranks of which the last is on another host. */
static void begin(const pid_t *process)
{
    assert_int_equal(tr_comm_prepare(&comm, &class, ME, RANKS, &settings), TR_OK);
    processes = tr_processes_create();
    assert_non_null(processes);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1); /* nobody knows the hosts yet */
    for (int r = 0; r < RANKS; r++) {
        strcpy(comm.location[r].machine, r == RANKS - 1 ? "there" : "here");
        comm.location[r].process = process[r];
        comm.location[r].began = 0;
    }
    tr_comm_find_hosts(&comm);
}

static void finish(void)
{
    tr_processes_destroy(&processes);
    assert_null(processes);
    tr_processes_destroy(&processes);
    tr_comm_release(&comm);
}

static void ends_are_told_once(void **state)
{
    pid_t process[RANKS];
    (void)state;
    const int open = descriptors_open();
    for (int r = 0; r < RANKS; r++) process[r] = r == ME ? getpid() : start();
    begin(process);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
    assert_int_equal(descriptors_open(), open + 3); /* not itself, nor those of another host */
    end(process[4], true);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
    end(process[0], false);
    assert_int_equal(tr_processes_next_gone(processes, &comm), 0);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
    assert_int_equal(descriptors_open(), open + 2);
    end(process[3], true);
    end(process[2], true);
    /* From the next rank on. */
    assert_int_equal(tr_processes_next_gone(processes, &comm), 2);
    assert_int_equal(tr_processes_next_gone(processes, &comm), 3);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
    waitpid(process[0], NULL, 0);
    finish();
    assert_int_equal(descriptors_open(), open);
}

/* A process that has the number of one that ended is another one. */
static void numbers_are_used_again(void **state)
{
    pid_t process[RANKS];
    (void)state;
    const int open = descriptors_open();
    for (int r = 0; r < RANKS; r++) process[r] = getpid();
    begin(process);
    struct tr_location here;
    tr_location_here(&here);
    comm.location[0].began = here.began;
    comm.location[2].began = here.began + 1;
    comm.location[3].began = here.began;
    assert_int_equal(tr_processes_next_gone(processes, &comm), 2);
    assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
    assert_int_equal(descriptors_open(), open + 2);
    finish();
    assert_int_equal(descriptors_open(), open);
}

/* A part of the descriptors that a process may have: an eighth. */
static void not_all_are_watched(void **state)
{
    pid_t process[RANKS];
    struct rlimit before, limit;
    (void)state;
    const int open = descriptors_open();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int most = 1; most <= 4; most++) {
        pid_t child = start();
        for (int r = 0; r < RANKS; r++) process[r] = child;
        begin(process);
        limit = before;
        limit.rlim_cur = (rlim_t)(8 * most + 7);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int gone = tr_processes_next_gone(processes, &comm);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(gone, -1);
        assert_int_equal(descriptors_open(), open + (most < 3 ? most : 3));
        end(child, true);
        static const int order[] = {2, 3, 0};
        for (int i = 0; i < most && i < 3; i++)
            assert_int_equal(tr_processes_next_gone(processes, &comm), order[i]);
        assert_int_equal(tr_processes_next_gone(processes, &comm), -1);
        finish();
        assert_int_equal(descriptors_open(), open);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_a_place), cmocka_unit_test(what_is_no_process_is_not_watched),
        cmocka_unit_test(ends_are_told_once),    cmocka_unit_test(numbers_are_used_again),
        cmocka_unit_test(not_all_are_watched),
    };
    return cmocka_run_group_tests_name("comm.processes", tests, NULL, NULL);
}
