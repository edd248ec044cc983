/* A launch where something is short: descriptors, memory for files, readers of the output; and what it leaves
 * open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "cli/launch/mpi.h"
#include "cli/session.h"

#define MICROBATCHES "train.microbatches=4"
#define FINE         "launch -n 4 train tiny.yaml --steps 2 --overwrite --set " MICROBATCHES

/* Runs `script` with the program as $0. */
static int run_script(struct session *session, const char *script)
{
    return run_with(session, (struct setup){.program = "/bin/sh"}, "-c", script, TRIREME_PROGRAM, NULL);
}

/* ---- descriptors ---- */

static int run_with_files(struct session *session, const char *limit, int files, const char *out)
{
    char script[256];
    snprintf(script, sizeof script, "ulimit %s %d && exec \"$0\" " FINE " -o %s", limit, files, out);
    return run_script(session, script);
}

/* The number that the message asks for is enough, and one less is refused before anything is started. */
static void test_the_descriptors_that_are_asked_for_are_enough(void **state)
{
    (void)state;
    struct session session;
    int code = run_with_files(&session, "-n", 12, "few");
    expect_error(2, "open files each, of which 12 are allowed here; raise the limit (ulimit -n ", &session,
                 code);
    const char *at = strstr(session.text[1], "(ulimit -n ");
    int wanted = at ? atoi(at + strlen("(ulimit -n ")) : 0;
    session_release(&session);
    assert_true(wanted > 12);
    code = run_with_files(&session, "-n", wanted - 1, "few");
    expect_error(2, "open files each", &session, code);
    session_release(&session);
    code = run_with_files(&session, "-n", wanted, "enough");
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    hash_in(session.text[0]);
    session_release(&session);
}

static void test_a_soft_limit_is_raised(void **state)
{
    (void)state;
    struct session session;
    int code = run_with_files(&session, "-Sn", 12, "raised");
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    session_release(&session);
}

/* ---- the output ---- */

static int count(const char *text, const char *part)
{
    int found = 0;
    while ((text = strstr(text, part))) found++, text += strlen(part);
    return found;
}

/* Nobody would see another attempt either. */
static void test_an_output_that_is_closed_ends_the_job(void **state)
{
    (void)state;
    const struct setup setups[] = {{.closed_output = true}, {.no_output = true}, {.output = "/dev/full"}};
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        struct session session;
        int code =
            run_with(&session, setups[i], "launch", "-n", "2", "--restarts", "20", "train", "tiny.yaml", "-o",
                     "unheard", "--overwrite", "--steps", "200", "--set", MICROBATCHES, NULL);
        if (code != 1 || count(session.text[1], "restart ") != 0) session_show(&session);
        assert_int_equal(code, 1);
        assert_int_equal(count(session.text[1], "restart "), 0);
        assert_int_equal(count(session.text[1], "the job is not started again"), 1);
        session_release(&session);
    }
}

/* ---- room ---- */

#define OWN_MOUNTS "sh " TRIREME_SOURCE_DIR "/tests/support/files/own_mounts.sh "
#define SMALL      "mount -t tmpfs -o size=%s none /dev/shm"

static void skip_without_namespaces(void)
{
    struct session session;
    char script[512];
    snprintf(script, sizeof script, "exec " OWN_MOUNTS SMALL, "1m");
    int code = run_script(&session, script);
    session_release(&session);
    if (code == 0) return;
    fprintf(stderr, "skipped: file systems cannot be mounted here\n");
    skip();
}

/* Runs `command` with the program as $0 where /dev/shm holds so much, in a copy of this directory, which may
   lie there. */
static int run_in_small_memory(struct session *session, const char *size, const char *command)
{
    char script[1536];
    snprintf(script, sizeof script,
             "work=$(mktemp -d /tmp/trireme-cli-XXXXXX) && cp tiny.yaml *.idx $work && cd $work || exit "
             "9\n" OWN_MOUNTS "sh -c '" SMALL " && %s' \"$0\"\n"
             "code=$?; rm -rf $work; exit $code",
             size, command);
    return run_script(session, script);
}

static void test_files_go_where_there_is_room(void **state)
{
    (void)state;
    static const char *const sizes[] = {"64k", "7m"};
    skip_without_mpi();
    skip_without_namespaces();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct session session;
        int code = run_in_small_memory(&session, sizes[i],
                                       "exec \"$0\" launch --transport mpi -n 2 train tiny.yaml -o roomy "
                                       "--overwrite --steps 2 --set " MICROBATCHES);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        hash_in(session.text[0]);
        session_release(&session);
    }
}

static void test_no_room_anywhere_is_named(void **state)
{
    (void)state;
    struct session session;
    skip_without_mpi();
    skip_without_namespaces();
    int code =
        run_in_small_memory(&session, "7m",
                            "mount -t tmpfs -o size=6m none /tmp && exec \"$0\" launch --transport mpi -n 2 "
                            "train tiny.yaml -o roomless --set " MICROBATCHES);
    expect_error(1, "/dev/shm has 7.0 MiB free, /tmp has 6.0 MiB", &session, code);
    session_release(&session);
}

/* The user's own choice of a place, where mpirun waits for processes that are gone. */
static void test_an_mpirun_without_processes_is_ended(void **state)
{
    (void)state;
    struct session session;
    skip_without_mpi();
    skip_without_namespaces();
    int code =
        run_in_small_memory(&session, "1m",
                            "export OMPI_MCA_orte_tmpdir_base=/dev/shm PRTE_MCA_prte_tmpdir_base=/dev/shm "
                            "OMPI_MCA_btl_vader_backing_directory=/dev/shm && exec \"$0\" launch --transport "
                            "mpi -n 2 train tiny.yaml -o hung --overwrite --steps 2 --set " MICROBATCHES);
    /* That it ends is the point: some versions of Open MPI notice it by themselves, or find another way. */
    bool ended = strstr(session.text[1], "and does not end; it is ended") != NULL;
    if (ended != (strstr(session.text[1], "Open MPI keeps files in /dev/shm") != NULL))
        session_show(&session);
    assert_int_equal(ended, strstr(session.text[1], "Open MPI keeps files in /dev/shm") != NULL);
    assert_true(code == 0 || code == 1 || code == 2);
    if (ended) assert_int_equal(code, 1);
    session_release(&session);
}

/* ---- what others left ---- */

static void make_left(char path[64], const char *above)
{
    char file[80];
    snprintf(path, 64, "%s/trireme-resume-XXXXXX", above);
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/parameters", path);
    write_text(file, "half of them");
}

static void test_copies_that_nobody_holds_are_removed(void **state)
{
    (void)state;
    char left[64], held[64];
    int lock;
    make_left(left, "/dev/shm");
    make_left(held, "/dev/shm");
    assert_int_equal(tr_file_lock(held, &lock), TR_OK);
    expect_exit(0, "launch", "-n", "2", "train", "tiny.yaml", "-o", "swept", "--overwrite", "--steps", "2",
                "--set", MICROBATCHES);
    assert_false(tr_file_exists(left));
    assert_true(tr_file_is_directory(held));
    assert_int_equal(tr_file_remove(NULL, held), TR_OK);
    close(lock);
}

/* ---- ports ---- */

/* The parent of a process, 0 where it is gone. */
static int parent_of(int process)
{
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool descends(int process, int from)
{
    while (process > 1 && process != from) process = parent_of(process);
    return process == from;
}

/* Whether the process has the socket open. */
static bool has_socket(int process, unsigned long inode)
{
    char path[64], wanted[64], found[64];
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *folder = opendir(path);
    bool has = false;
    for (struct dirent *entry; folder && !has && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, found, sizeof found - 1);
        found[length > 0 ? length : 0] = '\0';
        has = strcmp(found, wanted) == 0;
    }
    if (folder) closedir(folder);
    return has;
}

/* Sockets of `process` that listen to other hosts, as a table of /proc/net has them. */
static int count_open(int process, const char *table)
{
    char path[64], line[512], address[64];
    unsigned long inode;
    unsigned port, condition;
    int open = 0;
    snprintf(path, sizeof path, "/proc/%d/net/%s", process, table);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        bool read = sscanf(line, " %*d: %63[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %lu", address,
                           &port, &condition, &inode) == 4;
        bool here =
            strcmp(address, "0100007F") == 0 || strcmp(address, "00000000000000000000000001000000") == 0;
        if (read && condition == 0x0A && !here && has_socket(process, inode)) open++;
    }
    if (file) fclose(file);
    return open;
}

/* Of all that the session started, but itself: those of the program, and those of mpirun. */
static void count_ports(const struct session *session, int *processes, int *ranks, int *others)
{
    DIR *folder = opendir("/proc");
    *processes = *ranks = *others = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[64], program[4096];
        int process = atoi(entry->d_name);
        if (process <= 1 || process == session->process || !descends(process, session->process)) continue;
        snprintf(path, sizeof path, "/proc/%d/exe", process);
        ssize_t length = readlink(path, program, sizeof program - 1);
        program[length > 0 ? length : 0] = '\0';
        bool rank = strstr(program, "trireme") != NULL;
        *processes += rank;
        *(rank ? ranks : others) += count_open(process, "tcp") + count_open(process, "tcp6");
    }
    if (folder) closedir(folder);
}

/* What SECURITY.md says: nothing without Open MPI; with it two ports of mpirun, and none of the processes. */
static void test_ports_are_those_that_are_documented(void **state)
{
    (void)state;
    static const char *const transports[] = {"local", "mpi"};
    for (int i = 0; i < 2; i++) {
        int processes, ranks, others;
        struct session session;
        const char *const arguments[] = {"launch",      "--transport",
                                         transports[i], "-n",
                                         "2",           "train",
                                         "tiny.yaml",   "-o",
                                         "ports",       "--overwrite",
                                         "--set",       MICROBATCHES,
                                         "--set",       "train.steps=1000000000",
                                         "--set",       "train.log_every=100000000",
                                         NULL};
        if (i == 1) skip_without_mpi();
        session_start(&session, &(struct setup){.arguments = arguments});
        session_wait_for(&session, 0, "step          1/");
        count_ports(&session, &processes, &ranks, &others);
        session_signal(&session, SIGTERM);
        assert_int_equal(session_end(&session), 3);
        session_release(&session);
        assert_int_equal(processes, 2);
        assert_int_equal(ranks, 0);
        assert_true(others <= (i == 0 ? 0 : 2));
    }
}

/* ---- signals ---- */

/* Of SIGBUS, only a file that lost its end is explained; others end the program as they would anyone. */
static void test_a_signal_from_elsewhere_is_passed_on(void **state)
{
    (void)state;
    static const char *const script =
        "\"$0\" train tiny.yaml --steps 1000000000 --overwrite -o bus & pid=$!; i=0; "
        "until grep -q 'SigCgt:.*[4-7c-f].$' /proc/$pid/status; do "
        "sleep 0.05; i=$((i + 1)); test $i -lt 2000 || kill $pid; done; "
        "kill -BUS $pid; wait $pid; echo \"ended with $?\"";
    struct session session;
    run_script(&session, script);
    if (!strstr(session.text[0], "ended with 135")) session_show(&session); /* 128 + SIGBUS */
    assert_non_null(strstr(session.text[0], "ended with 135"));
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_descriptors_that_are_asked_for_are_enough),
        cmocka_unit_test(test_a_soft_limit_is_raised),
        cmocka_unit_test(test_an_output_that_is_closed_ends_the_job),
        cmocka_unit_test(test_a_signal_from_elsewhere_is_passed_on),
        cmocka_unit_test(test_files_go_where_there_is_room),
        cmocka_unit_test(test_no_room_anywhere_is_named),
        cmocka_unit_test(test_an_mpirun_without_processes_is_ended),
        cmocka_unit_test(test_copies_that_nobody_holds_are_removed),
        cmocka_unit_test(test_ports_are_those_that_are_documented),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
