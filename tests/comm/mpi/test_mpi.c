/* Ranks as processes, started by mpirun: every scenario over shared memory and TCP, and what happens when a
 * process dies, hangs, leaves or is slow. Skipped, saying so, where MPI is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads/clock.h"
#include "base/files/module.h"
#include "comm/mpi/module.h"
#include "comm/transport.h"
#include "comm/local/launch.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 100 /* seconds for one run */

static char output[1 << 16];

static bool have_mpirun(void)
{
    char path[1024];
    const char *from = getenv("PATH");
    while (from && *from) {
        size_t length = strcspn(from, ":");
        snprintf(path, sizeof path, "%.*s/mpirun", (int)length, from);
        if (access(path, X_OK) == 0) return true;
        from += length + (from[length] == ':');
    }
    return false;
}

static void skip_without_mpi(void)
{
#ifdef TRIREME_WITH_MPI
    if (have_mpirun()) return;
    print_message("skipped: there is no mpirun (Debian: openmpi-bin)\n");
#else
    print_message("skipped: built without MPI (Debian: libopenmpi-dev openmpi-bin)\n");
#endif
    skip();
}

/* More ranks than processors, as root in containers, ranks that outlive others; for Open MPI 4 and 5. */
static void set_environment(void)
{
    static const char *const names[] = {"OMPI_ALLOW_RUN_AS_ROOT",
                                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                        "OMPI_MCA_rmaps_base_oversubscribe",
                                        "OMPI_MCA_orte_enable_recovery",
                                        "PRTE_MCA_state_base_recoverable",
                                        "OMPI_MCA_mpi_ft_enable"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) setenv(names[i], "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
}

/* Runs `ranks` ranks, fills `output` and returns mpirun's exit code. Its group is killed when the deadline
 * passes. */
static int run(int ranks, bool tcp, const char *what)
{
    int pipes[2], status;
    char count[12];
    snprintf(count, sizeof count, "%d", ranks);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        set_environment();
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        if (tcp)
            execlp("mpirun", "mpirun", "-np", count, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                   "--mca", "btl_tcp_if_include", "lo", TRIREME_MPI_RANK, what, (char *)NULL);
        else
            execlp("mpirun", "mpirun", "-np", count, TRIREME_MPI_RANK, what, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    double end = tr_clock_seconds() + DEADLINE;
    size_t size = 0;
    bool late = false;
    for (;;) {
        struct pollfd polled = {.fd = pipes[0], .events = POLLIN};
        double left = end - tr_clock_seconds();
        late = left <= 0 || poll(&polled, 1, (int)(left * 1000) + 1) == 0;
        if (late) break;
        ssize_t got = read(pipes[0], output + size, sizeof output - 1 - size);
        if (got <= 0) break;
        size += (size_t)got;
    }
    output[size] = 0;
    close(pipes[0]);
    if (late) kill(-child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (late) fail_msg("%s on %d ranks took longer than %d s; output:\n%s", what, ranks, DEADLINE, output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void expect_well(int ranks, bool tcp, const char *what)
{
    int code = run(ranks, tcp, what);
    if (code != 0 || !strstr(output, "all is well") || strstr(output, "left behind"))
        fail_msg("%s on %d ranks%s ended with %d; output:\n%s", what, ranks, tcp ? " over TCP" : "", code,
                 output);
}

static void test_scenarios(void **state)
{
    (void)state;
    skip_without_mpi();
    for (int ranks = 1; ranks <= 4; ranks++) expect_well(ranks, false, "scenarios");
}

static void test_scenarios_tcp(void **state)
{
    (void)state;
    skip_without_mpi();
    for (int ranks = 2; ranks <= 4; ranks++) expect_well(ranks, true, "scenarios");
}

static void test_pieces(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_well(2, false, "pieces");
    expect_well(3, true, "pieces");
}

static void test_messages_leave_while_a_rank_computes(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_well(2, true, "compute");
}

static void test_slow(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_well(3, false, "slow");
    expect_well(2, false, "hiccups");
}

static void expect_loss_of(int victim, int ranks, bool tcp, const char *what, const char *how)
{
    run(ranks, tcp, what);
    launch_expect_loss(output, victim, ranks, what, how);
}

static void expect_loss(int ranks, bool tcp, const char *what, const char *how)
{
    expect_loss_of(ranks - 1, ranks, tcp, what, how);
}

/* The root is no exception. */
static void test_killed_at_work(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_loss_of(0, 3, false, "work-0", "died");
    expect_loss_of(1, 3, false, "work-1", "died");
    expect_loss_of(0, 3, true, "work-0", "died");
    expect_loss_of(2, 4, true, "work-2", "died");
}

static void test_killed(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_loss(3, false, "kill", "died");
    expect_loss(2, true, "kill", "died");
    expect_loss(4, false, "exit", "died");
}

static void test_stopped(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_loss(3, false, "stop", "has not been heard of for");
    expect_loss(2, true, "stop", "has not been heard of for");
}

static void test_gives_up(void **state)
{
    (void)state;
    skip_without_mpi();
    expect_loss(3, false, "abort", "gave up: no more paper");
    /* Long before its next sign of life would be. */
    expect_loss(3, false, "words", "gave up: no more paper");
    expect_loss(2, true, "words", "gave up: no more paper");
}

static void test_survivors(void **state)
{
    (void)state;
    skip_without_mpi();
    run(4, false, "survive");
    for (int rank = 0; rank < 3; rank++) {
        char text[40];
        snprintf(text, sizeof text, "rank %d says: survived", rank);
        if (!strstr(output, text)) fail_msg("rank %d did not survive; output:\n%s", rank, output);
    }
}

static void test_never_joins(void **state)
{
    (void)state;
    skip_without_mpi();
    run(2, false, "away");
    if (!strstr(output, "MPI did not begin within 10 s")) fail_msg("output:\n%s", output);
}

/* ---- without MPI ---- */

static void test_world(void **state)
{
    (void)state;
    int rank = -1, size = -1;
    const char *none[] = {"HOME=/", "OMPI_COMM_WORLD_RANKS=1", NULL};
    const char *mpirun[] = {"OMPI_COMM_WORLD_SIZE=4", "A=b", "OMPI_COMM_WORLD_RANK=3", NULL};
    const char *srun[] = {"PMIX_RANK=1", "SLURM_STEP_NUM_TASKS=2", NULL};
    const char *batch[] = {"SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0", NULL};
    const char *beyond[] = {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=4", NULL};
    const char *words[] = {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=x", NULL};
    const char *alone[] = {"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0", NULL};
    const char *most[] = {"OMPI_COMM_WORLD_RANK=2147483646", "OMPI_COMM_WORLD_SIZE=2147483647", NULL};
    const char *more[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2147483648", NULL};
    const char *less[] = {"OMPI_COMM_WORLD_RANK=-1", "OMPI_COMM_WORLD_SIZE=4", NULL};
    const char *both[] = {"OMPI_COMM_WORLD_RANK=x", "PMIX_RANK=2", "SLURM_STEP_NUM_TASKS=3", NULL};
    assert_true(tr_comm_mpi_world(alone, &rank, &size));
    assert_int_equal(rank, 0);
    assert_int_equal(size, 1);
    assert_true(tr_comm_mpi_world(most, &rank, &size));
    assert_int_equal(rank, INT_MAX - 1);
    assert_int_equal(size, INT_MAX);
    assert_false(tr_comm_mpi_world(more, &rank, &size));
    assert_false(tr_comm_mpi_world(less, &rank, &size));
    assert_true(tr_comm_mpi_world(both, &rank, &size));
    assert_int_equal(rank, 2);
    assert_int_equal(size, 3);
    assert_false(tr_comm_mpi_world(none, &rank, &size));
    assert_true(tr_comm_mpi_world(mpirun, &rank, &size));
    assert_int_equal(rank, 3);
    assert_int_equal(size, 4);
    assert_true(tr_comm_mpi_world(srun, &rank, &size));
    assert_int_equal(rank, 1);
    assert_int_equal(size, 2);
    assert_false(tr_comm_mpi_world(batch, &rank, &size));
    assert_false(tr_comm_mpi_world(beyond, &rank, &size));
    assert_false(tr_comm_mpi_world(words, &rank, &size));
}

/* What a person reads where the module is missing, or of another version. */
static void test_module_missing(void **state)
{
    (void)state;
    const void *loaded;
    struct tr_module module = {.file = "trireme-none.so",
                               .symbol = "x",
                               .version = 1,
                               .purpose = "nothing needs",
                               .advice = "leave it"};
    assert_int_equal(tr_module_load(&module, &loaded), TR_EUNSUPPORTED);
    assert_null(loaded);
    assert_non_null(
        strstr(tr_error_message(), "nothing needs the module trireme-none.so, which was not found"));
    assert_non_null(strstr(tr_error_message(), "; leave it"));
#ifdef TRIREME_WITH_MPI
    module.file = "trireme-mpi.so";
    module.symbol = TR_MPI_SYMBOL;
    module.version = TR_MPI_VERSION + 1;
    assert_int_equal(tr_module_load(&module, &loaded), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "another version"));
    module.version = TR_MPI_VERSION;
    assert_int_equal(tr_module_load(&module, &loaded), TR_OK);
    assert_non_null(loaded);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_module_missing),
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_scenarios_tcp),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_at_work),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_survivors),
        cmocka_unit_test(test_never_joins),
        cmocka_unit_test(test_messages_leave_while_a_rank_computes),
    };
    return cmocka_run_group_tests_name("comm.mpi", tests, NULL, NULL);
}
