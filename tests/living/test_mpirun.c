/* What is mpirun's: what it leaves when it is killed, the hosts it cannot reach, the ports it opens, and
 * stops and ends that it does not heed. Skipped where Open MPI is missing. */
#include "living/job.h"

#include "base/threads/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void start(struct job *job, const char *out)
{
    job_start(job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", out, "--log", "none", "-t", "1",
              NULL);
    session_wait_for(&job->session, 0, "output ");
}

static void killed_mpiruns_leave_nothing(void **state)
{
    (void)state;
    skip_without_mpi();
    struct job job;
    start(&job, "orphans");
    assert_int_equal(kill(job_mpirun(&job), SIGKILL), 0);
    assert_int_equal(job_end(&job), 1);
    assert_non_null(strstr(job.session.text[1], "mpirun was ended by signal 9"));
    job_expect_gone(&job, 0.5);
    job_release(&job);
}

/* A process that is stopped cannot see that its job is over. What Open MPI then leaves, a later launch
 * removes.
 */
static void stopped_processes_do_not_stay(void **state)
{
    (void)state;
    skip_without_mpi();
    struct job job;
    start(&job, "orphans");
    pid_t launcher = job.session.process, mpirun = job_mpirun(&job), rank = job_rank(&job, 1);
    char place[200];
    process_variable(mpirun, "OMPI_MCA_orte_tmpdir_base", place, sizeof place);
    assert_int_equal(kill(rank, SIGSTOP), 0);
    assert_int_equal(kill(launcher, SIGKILL), 0);
    assert_int_equal(kill(mpirun, SIGKILL), 0);
    assert_int_equal(job_end(&job), -SIGKILL);
    job_expect_gone(&job, 5);
    job_release(&job);
    struct timespec hour_ago[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
    assert_int_equal(utimensat(AT_FDCWD, place, hour_ago, 0), 0);
    job_start(&job, "-n", "2", "train", "job.yaml", "--overwrite", "-o", "orphans", "--steps", "1", NULL);
    assert_int_equal(job_end(&job), 0);
    job_release(&job);
    assert_int_equal(access(place, F_OK), -1);
}

static void unknown_hosts_are_told(void **state)
{
    (void)state;
    static const char agent[] = "#!/bin/sh\necho \"agent: cannot resolve $1\" >&2\nexit 255\n";
    char path[512], directory[400];
    skip_without_mpi();
    assert_non_null(getcwd(directory, sizeof directory));
    snprintf(path, sizeof path, "%s/agent", directory);
    write_text("agent", agent);
    assert_int_equal(chmod("agent", 0755), 0);
    assert_int_equal(setenv("OMPI_MCA_plm_rsh_agent", path, 1), 0);
    assert_int_equal(setenv("PRTE_MCA_plm_ssh_agent", path, 1), 0);
    struct job job;
    job_start(&job, "-n", "2", "--hosts", "nowhere.invalid:2", "train", "job.yaml", "-o", "nowhere", NULL);
    int code = job_end(&job);
    unsetenv("OMPI_MCA_plm_rsh_agent");
    unsetenv("PRTE_MCA_plm_ssh_agent");
    if (code != 2) session_show(&job.session);
    assert_int_equal(code, 2);
    assert_non_null(strstr(job.session.text[1], "cannot resolve nowhere.invalid"));
    assert_non_null(strstr(job.session.text[1], "mpirun could not start the processes"));
    job_expect_gone(&job, 5);
    job_release(&job);
}

static void other_model_files_are_refused(void **state)
{
    (void)state;
    skip_without_mpi();
    struct session session;
    static const char *const arguments[] = {"-n",
                                            "2",
                                            "sh",
                                            "-c",
                                            "[ $OMPI_COMM_WORLD_RANK = 0 ] || set -- -s optimizer.rate=0.5\n"
                                            "exec " TRIREME_PROGRAM
                                            " train job.yaml -o differ --transport mpi -t 1 \"$@\"",
                                            "sh",
                                            NULL};
    static const char *const environment[] = {
        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
        "PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe", NULL};
    session_start(&session,
                  &(struct setup){.program = "mpirun", .arguments = arguments, .environment = environment});
    int code = session_end(&session);
    const char *said = strstr(session.text[1], "settings: rank 1 on host "), *both;
    if (code != 2 || !said) session_show(&session);
    assert_int_equal(code, 2);
    assert_non_null(said);
    /* Both digests. */
    said = strchr(said, '"') + 1;
    assert_int_equal(strspn(said, "0123456789abcdef"), 64);
    both = strstr(said, "rank 0 on host ");
    assert_non_null(both);
    both = strchr(both, '"') + 1;
    assert_int_equal(strspn(both, "0123456789abcdef"), 64);
    assert_memory_not_equal(said, both, 64);
    session_release(&session);
}

/* ---- ports ---- */

/* Whether the process has the socket of this number. */
static bool has_socket(pid_t process, unsigned long inode)
{
    char path[64], wanted[64], name[64];
    bool found = false;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *open = opendir(path);
    assert_non_null(open);
    for (struct dirent *entry; !found && (entry = readdir(open));) {
        ssize_t length = readlinkat(dirfd(open), entry->d_name, name, sizeof name - 1);
        name[length > 0 ? length : 0] = '\0';
        found = strcmp(name, wanted) == 0;
    }
    closedir(open);
    return found;
}

/* Ports on which the process listens. */
static int count_listening(pid_t process)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    char line[512];
    unsigned state;
    unsigned long inode;
    int count = 0;
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(tables[i], "r");
        if (!file) continue; /* a system without IPv6 */
        while (fgets(line, sizeof line, file))
            if (sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*u %*u %lu", &state, &inode) == 2 &&
                state == 10 /* LISTEN */ && has_socket(process, inode))
                count++;
        fclose(file);
    }
    return count;
}

/* Where no other host takes part, processes open no port, which would ask for no password; nor does mpirun
   tell anybody of another than that of the loopback. */
static void processes_of_one_host_open_no_port(void **state)
{
    (void)state;
    skip_without_mpi();
    struct job job;
    char value[200];
    start(&job, "ports");
    for (int rank = 0; rank < 3; rank++) {
        pid_t process = job_rank(&job, rank);
        assert_true(process > 0);
        assert_int_equal(count_listening(process), 0);
    }
    process_variable(job_mpirun(&job), "OMPI_MCA_oob_tcp_if_include", value, sizeof value);
    assert_string_equal(value, "lo");
    session_signal(&job.session, SIGTERM);
    assert_int_equal(job_end(&job), 3);
    job_release(&job);
}

/* Who wants TCP gets it, on the loopback. */
static void what_the_user_sets_stays(void **state)
{
    (void)state;
    skip_without_mpi();
    struct job job;
    setenv("OMPI_MCA_btl", "tcp,self", 1);
    setenv("OMPI_MCA_oob_tcp_if_exclude", "sppp", 1);
    start(&job, "set");
    pid_t process = job_rank(&job, 1);
    assert_true(process > 0);
    assert_true(count_listening(process) > 0);
    session_signal(&job.session, SIGTERM);
    int code = job_end(&job);
    unsetenv("OMPI_MCA_btl");
    unsetenv("OMPI_MCA_oob_tcp_if_exclude");
    if (code != 3) session_show(&job.session);
    assert_int_equal(code, 3);
    job_release(&job);
}

/* ---- stops ---- */

static void expect_stop(void)
{
    struct job job;
    /* Long enough for the launcher to have waited for an answer first. */
    job_start(&job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", "deaf", "--steps", "1000000",
              "--log", "none", "-t", "1", NULL);
    session_wait_for(&job.session, 0, "output ");
    session_signal(&job.session, SIGTERM);
    int code = job_end(&job);
    if (code != 3) session_show(&job.session);
    assert_int_equal(code, 3);
    job_expect_gone(&job, 5);
    job_release(&job);
}

/* Makes this script the mpirun that is found; returns what use_again() takes. */
static char *use_as_mpirun(const char *script)
{
    char path[8192], directory[400], *before = strdup(getenv("PATH"));
    assert_non_null(before);
    assert_non_null(getcwd(directory, sizeof directory));
    mkdir("other-bin", 0755);
    write_text("other-bin/mpirun", script);
    assert_int_equal(chmod("other-bin/mpirun", 0755), 0);
    snprintf(path, sizeof path, "%s/other-bin:%s", directory, before);
    setenv("PATH", path, 1);
    return before;
}

static void use_again(char *before)
{
    setenv("PATH", before, 1);
    free(before);
}

/* An mpirun that hands no signal on. */
static void stops_reach_processes_past_a_deaf_mpirun(void **state)
{
    (void)state;
    static const char deaf[] = "#!/bin/sh\n"
                               "trap '' USR1\n"
                               "/usr/bin/mpirun \"$@\" &\n"
                               "trap \"kill $!\" TERM\n"
                               "wait $!\n";
    skip_without_mpi();
    char *before = use_as_mpirun(deaf);
    expect_stop();
    use_again(before);
}

/* ---- ends ---- */

/* An mpirun that stays, with a process, after the end of its job, and that no request ends. */
static void an_mpirun_that_heeds_no_request_is_killed(void **state)
{
    (void)state;
    static const char stays[] = "#!/bin/sh\n"
                                "trap '' TERM\n"
                                "say() { printf '\\036%s %s\\n' \"$TRIREME_LAUNCHED\" \"$1\" >&2; }\n"
                                "say \"started $$\"\n"
                                "say 'begun 0'\n"
                                "say 'ended 0'\n"
                                "sleep 120\n"
                                "echo > survived\n";
    struct job job;
    skip_without_mpi();
    char *before = use_as_mpirun(stays);
    job_start(&job, "-n", "2", "--on-loss", "shrink", "train", "job.yaml", "--overwrite", "-o", "stays",
              NULL);
    int code = job_end(&job);
    use_again(before);
    if (code != 0) session_show(&job.session);
    assert_int_equal(code, 0); /* as the job ended */
    assert_int_equal(access("survived", F_OK), -1);
    job_expect_gone(&job, 5);
    job_release(&job);
}

/* hwloc's part for OpenCL loads the compiler of pocl, which takes mpirun's handlers away: with it and
 * without. */
static void stops_are_not_lost_where_opencl_is_installed(void **state)
{
    (void)state;
    skip_without_mpi();
    if (access("/usr/lib/x86_64-linux-gnu/hwloc/hwloc_opencl.so", R_OK) != 0 ||
        access("/etc/OpenCL/vendors/pocl.icd", R_OK) != 0) {
        fprintf(stderr, "skipped: hwloc's plugin for OpenCL, or pocl, was not found (Debian: "
                        "libhwloc-plugins, pocl-opencl-icd)\n");
        skip();
    }
    expect_stop();
    setenv("HWLOC_COMPONENTS", "opencl", 1);
    expect_stop();
    unsetenv("HWLOC_COMPONENTS");
}

/* ---- children of others ---- */

/* A program that becomes the launcher leaves it its children. Not even when mpirun is killed and its
   processes are ended are they touched, or waited for. */
static void kill_mpirun(struct job *job)
{
    assert_int_equal(kill(job_mpirun(job), SIGKILL), 0);
}

static void inherited_children_are_left_alone(void **state)
{
    (void)state;
    skip_without_mpi();
    job_expect_strangers_alive(kill_mpirun);
}

static int make(void **state)
{
    int code = place_make(state);
    job_transport = "mpi";
    job_write(2000);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_mpiruns_leave_nothing),
        cmocka_unit_test(stopped_processes_do_not_stay),
        cmocka_unit_test(unknown_hosts_are_told),
        cmocka_unit_test(other_model_files_are_refused),
        cmocka_unit_test(processes_of_one_host_open_no_port),
        cmocka_unit_test(what_the_user_sets_stays),
        cmocka_unit_test(stops_reach_processes_past_a_deaf_mpirun),
        cmocka_unit_test(an_mpirun_that_heeds_no_request_is_killed),
        cmocka_unit_test(stops_are_not_lost_where_opencl_is_installed),
        cmocka_unit_test(inherited_children_are_left_alone),
    };
    return cmocka_run_group_tests_name("living.mpirun", tests, make, place_remove);
}
