/* Jobs that mpirun starts, here by a stand-in for it: its words and its environment, what its code means, and
 * that it is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fail.h"
#include "base/files/file.h"
#include "cli/launch/stand_in.h"
#include "comm/transport.h"
#include "refuse.h"

#include <signal.h>

/* ---- words ---- */

static const char tell[] = "for w in \"$@\"; do printf '%s\\n' \"$w\"; done > words; env > environment";

static void expect_words(const char *beginning)
{
    static const char end[] = "\n/the/program\ntrain\na b\n";
    const char *text = attempt_file("words");
    size_t length = strlen(text);
    if (strncmp(text, beginning, strlen(beginning)) != 0)
        fail_msg("\"%s\" begins otherwise: %s", beginning, text);
    assert_true(length > strlen(end));
    assert_string_equal(text + length - strlen(end), end);
    /* Other hosts get all variables of ours, by name. */
    assert_int_equal(attempt_count(text, "-x\nTRIREME_TRANSPORT\n"), 1);
    assert_int_equal(attempt_count(text, "-x\nTRIREME_LAUNCHED\n"), 1);
    assert_int_equal(attempt_count(text, "-x\nTRIREME_MINE\n"), 1);
    assert_null(strstr(text, "="));
    assert_null(strstr(text, "-x\nPATH\n"));
    assert_null(strstr(text, "TRIREMES"));
}

static void mpirun_is_given_words(void **state)
{
    (void)state;
    stand_in_forget();
    setenv("TRIREME_MINE", "a=b", 1);
    setenv("TRIREMES", "no", 1);
    stand_in_run((struct cli_job_orders){.processes = 3}, tell, NULL);
    expect_words("-n\n3\n-x\n");
    stand_in_run((struct cli_job_orders){.processes = 1024, .hosts = "a:1,b:2"}, tell, NULL);
    expect_words("-n\n1024\n--host\na:1,b:2\n-x\n");
    stand_in_run((struct cli_job_orders){.processes = 4, .hostfile = "the hosts"}, tell, NULL);
    expect_words("-n\n4\n--hostfile\nthe hosts\n-x\n");
    stand_in_run((struct cli_job_orders){.processes = 4, .hosts = "a", .hostfile = "b"}, tell, NULL);
    expect_words("-n\n4\n--host\na\n--hostfile\nb\n-x\n");
    unsetenv("TRIREMES");
}

/* ---- the environment ---- */

static const char *const always[] = {
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "OMPI_MCA_rmaps_base_oversubscribe=1",
    "PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe",
    "OMPI_MCA_hwloc_base_binding_policy=none",
    "PRTE_MCA_hwloc_default_binding_policy=none",
    "OMPI_MCA_orte_keep_fqdn_hostnames=1",
    "PRTE_MCA_prte_keep_fqdn_hostnames=1",
    "OMPI_MCA_orte_execute_quiet=1",
    "PRTE_MCA_prte_execute_quiet=1",
    "OMPI_MCA_mpi_ft_enable=1",
    "HWLOC_COMPONENTS=-opencl",
    "TRIREME_TRANSPORT=mpi",
    "TRIREME_BIND=true",
    "TRIREME_LAUNCHED=token",
};

/* Where no other host takes part. */
static const char *const here[] = {"OMPI_MCA_btl=self,vader", "OMPI_MCA_btl_tcp_if_include=lo",
                                   "OMPI_MCA_oob_tcp_if_include=lo", "PMIX_MCA_ptl_tcp_if_include=lo"};

static const char *environment_of(struct cli_job_orders orders)
{
    stand_in_run(orders, tell, NULL);
    return attempt_file("environment");
}

static void expect_lines(const char *text, const char *const *lines, size_t count, bool there)
{
    for (size_t i = 0; i < count; i++)
        if (attempt_has_line(text, lines[i]) != there) fail_msg("%s %s", there ? "no" : "there is", lines[i]);
}

static void mpirun_is_given_settings(void **state)
{
    (void)state;
    stand_in_forget();
    const char *text = environment_of((struct cli_job_orders){0});
    expect_lines(text, always, sizeof always / sizeof always[0], true);
    expect_lines(text, here, 4, true);
    assert_true(attempt_has_line(text, "OMPI_MCA_orte_enable_recovery=0"));
    assert_true(attempt_has_line(text, "PRTE_MCA_state_base_recoverable=0"));
    assert_null(strstr(text, "TRIREME_OUTLIVES"));
    assert_null(strstr(text, "TRIREME_THREADS"));
    if (!isatty(STDOUT_FILENO)) assert_true(attempt_has_line(text, "TERM=dumb"));
    stand_in_forget();
    text = environment_of(
        (struct cli_job_orders){.tolerant = true, .outlives = true, .threads = 3, .hosts = "a:2"});
    expect_lines(text, always, sizeof always / sizeof always[0], true);
    expect_lines(text, here, 4, false);
    assert_true(attempt_has_line(text, "OMPI_MCA_orte_enable_recovery=1"));
    assert_true(attempt_has_line(text, "PRTE_MCA_state_base_recoverable=1"));
    assert_true(attempt_has_line(text, "TRIREME_OUTLIVES=true"));
    assert_true(attempt_has_line(text, "TRIREME_THREADS=3"));
    stand_in_forget();
    expect_lines(environment_of((struct cli_job_orders){.hostfile = "b"}), here, 4, false);
}

/* What users set stays, and what it excludes is not set. */
static void settings_of_the_user_stay(void **state)
{
    static const struct {
        const char *name, *value;
        bool set[4]; /* of `here` */
    } cases[] = {
        {"OMPI_MCA_btl", "tcp,self", {false, true, true, true}},
        {"OMPI_MCA_btl_tcp_if_exclude", "eth0", {true, false, true, true}},
        {"OMPI_MCA_oob_tcp_if_exclude", "eth0", {true, true, false, false}},
        {"PMIX_MCA_ptl_tcp_if_exclude", "eth0", {true, true, true, false}},
        {"OMPI_MCA_oob_tcp_if_include", "eth0", {true, true, false, true}},
        {"OMPI_MCA_hwloc_base_binding_policy", "core", {true, true, true, true}},
        {"OMPI_MCA_orte_enable_recovery", "1", {true, true, true, true}},
        {"PRTE_MCA_state_base_recoverable", "1", {true, true, true, true}},
        {"TRIREME_BIND", "false", {true, true, true, true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[100];
        stand_in_forget();
        setenv(cases[i].name, cases[i].value, 1);
        const char *text = environment_of((struct cli_job_orders){0});
        snprintf(line, sizeof line, "%s=%s", cases[i].name, cases[i].value);
        assert_true(attempt_has_line(text, line));
        for (int k = 0; k < 4; k++) expect_lines(text, &here[k], 1, cases[i].set[k]);
    }
    stand_in_forget();
}

static const char *const places[] = {"OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base",
                                     "OMPI_MCA_btl_vader_backing_directory"};

/* The directory for Open MPI's files, as long as the job, where the user names none. */
static void files_have_a_place(void **state)
{
    (void)state;
    for (int own = -1; own < 3; own++) {
        stand_in_forget();
        if (own >= 0) setenv(places[own], "/mine", 1);
        stand_in_run((struct cli_job_orders){0},
                     "for n in OMPI_MCA_orte_tmpdir_base PRTE_MCA_prte_tmpdir_base "
                     "OMPI_MCA_btl_vader_backing_directory; do eval p=\\$$n; echo $p; "
                     "[ -d $p ] && echo x > $p/file; done > places",
                     NULL);
        char path[3][200];
        assert_int_equal(sscanf(attempt_file("places"), "%199s %199s %199s", path[0], path[1], path[2]), 3);
        for (int i = 0; i < 3; i++) {
            const char *left = getenv(places[i]);
            assert_string_equal(path[i], i == own ? "/mine" : path[own == 0 ? 1 : 0]);
            if (i == own) assert_string_equal(left, "/mine");
            if (i == own) continue;
            assert_null(left);
            assert_non_null(strstr(path[i], "/trireme-launch-"));
            assert_false(tr_file_exists(path[i]));
        }
    }
    stand_in_forget();
    stand_in_run((struct cli_job_orders){.hosts = "a"}, tell, NULL);
    for (int i = 0; i < 3; i++) assert_null(strstr(attempt_file("environment"), places[i]));
}

/* ---- how it ended ---- */

static void codes_are_told(void **state)
{
    static const struct {
        const char *script;
        bool tolerant;
        int code, signal;
        const char *whose;
    } cases[] = {
        {"exit 0", false, 0, 0, "a process"},
        {"exit 0", true, 1, 0, "a process"}, /* nobody said that it ended well */
        {"say ended 0; exit 0", true, 0, 0, "a process"},
        {"say ended 3; exit 1", false, 3, 0, "a process"},
        {"say ended 0; exit 1", false, 0, 0, "a process"},
        {"exit 1", false, 2, 0, "a process"}, /* none has started */
        {"exit 4", false, 2, 0, "a process"},
        {"say started 1; exit 1", false, 1, 0, "a process"},
        {"say started 1; exit 2", false, 2, 0, "a process"},
        {"say started 1; exit 3", false, 3, 0, "a process"},
        {"say started 1; exit 4", true, 4, 0, "a process"},
        {"say started 1; exit 5", false, 5, 0, "a process"},
        {"say started 1; exit 6", false, 1, 0, "a process"},
        {"say started 1; exit 128", false, 1, 0, "a process"},
        {"exit 128", false, 2, 0, "a process"},
        {"exit 129", false, 1, 1, "a process"},
        {"exit 137", false, 1, 9, "a process"},
        {"exit 159", false, 1, 31, "a process"},
        {"exit 160", false, 2, 0, "a process"},
        {"kill -9 $$", false, 1, 9, "mpirun"},
        {"say ended 0; kill -15 $$", false, 0, 15, "mpirun"},
    };
    (void)state;
    stand_in_forget();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_job_end end =
            stand_in_run((struct cli_job_orders){.tolerant = cases[i].tolerant}, cases[i].script, NULL);
        if (end.code != cases[i].code || end.signal != cases[i].signal ||
            strcmp(end.whose, cases[i].whose) != 0)
            fail_msg("%s: code %d, signal %d, whose \"%s\"", cases[i].script, end.code, end.signal,
                     end.whose);
        attempt_expect_said("");
    }
}

/* What it leaves in its group is ended with it where it was killed, and else goes on. */
static void a_killed_mpirun_takes_others_along(void **state)
{
    static const char *const ends[] = {"kill -9 $$", "exit 0"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char script[200];
        snprintf(script, sizeof script, "sleep 1000 2>/dev/null & echo $! > left; %s", ends[i]);
        stand_in_run((struct cli_job_orders){0}, script, NULL);
        int process = atoi(attempt_file("left"));
        assert_true(process > 1);
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", process);
        bool lives = true;
        for (int k = 0; k < 3000 && lives; k++) {
            FILE *file = fopen(path, "r");
            size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
            if (file) fclose(file);
            text[length] = '\0';
            lives = length > 0 && !strstr(text, ") Z "); /* it has no parent that waits for it */
            if (lives && i == 1) break;
            if (lives) usleep(10000);
        }
        assert_int_equal(lives, i == 1);
        if (lives) kill(process, SIGKILL);
    }
}

/* ---- what is missing ---- */

static void nothing_is_left_without_memory(void **state)
{
    (void)state;
    stand_in_forget();
    stand_in_write("exit 0");
    static char *const words[] = {"/the/program", NULL};
    attempt_tick = 0.1; /* a launcher that pauses does so */
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_job_orders orders = {.words = words, .processes = 2};
        struct cli_job_end end;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = attempt_run(&cli_launcher_mpi, &orders, &end);
        done = refuse_end();
        if (done) assert_int_equal(status, TR_OK);
        assert_true(status == TR_OK || status == TR_ENOMEM || status == TR_EIO);
        assert_int_equal(tr_alloc_live(), live);
        attempt_expect_no_child();
        for (int i = 0; i < 3; i++) assert_null(getenv(places[i]));
    }
    attempt_tick = 0;
    stand_in_forget();
}

/* Where MPI is part of this build. */
static void mpirun_is_looked_for(void **state)
{
    struct cli_job_orders orders = {.processes = 1};
    char path[600], before[8192], here_[512];
    (void)state;
    if (tr_comm_mpi_check() != TR_OK) {
        fprintf(stderr, "skipped: built without MPI\n");
        skip();
    }
    stand_in_write("exit 0");
    assert_non_null(getcwd(here_, sizeof here_));
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    static const char *const found[] = {"%s/stand-in", "/nowhere:%s/stand-in", "%s/stand-in:/nowhere",
                                        "::%s/stand-in:", "stand-in"};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        const char *at = strstr(found[i], "%s");
        snprintf(path, sizeof path, "%.*s%s%s", at ? (int)(at - found[i]) : 0, found[i], at ? here_ : "",
                 at ? at + 2 : found[i]);
        setenv("PATH", path, 1);
        if (cli_launcher_mpi.check(&orders) != TR_OK) fail_msg("PATH=%s: %s", path, tr_error_message());
    }
    static const char *const none[] = {"", "/nowhere", ":", "stand", "stand-in/mpirun"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        setenv("PATH", none[i], 1);
        if (cli_launcher_mpi.check(&orders) != TR_EUNSUPPORTED) fail_msg("found in %s", none[i]);
        assert_string_equal(tr_error_message(),
                            "there is no mpirun; install Open MPI (Debian: openmpi-bin and libopenmpi-dev)");
    }
    unsetenv("PATH");
    assert_int_equal(cli_launcher_mpi.check(&orders), TR_EUNSUPPORTED);
    assert_int_equal(chdir("stand-in"), 0);
    setenv("PATH", ":/nowhere", 1); /* an empty place is the working directory */
    assert_int_equal(cli_launcher_mpi.check(&orders), TR_OK);
    assert_int_equal(chdir(".."), 0);
    setenv("PATH", before, 1);
    orders.hostfile = "no-hosts";
    assert_int_equal(cli_launcher_mpi.check(&orders), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "--hostfile no-hosts cannot be read: No such file or directory");
    orders.hostfile = "stand-in/mpirun";
    assert_int_equal(cli_launcher_mpi.check(&orders), TR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpirun_is_given_words),
        cmocka_unit_test(mpirun_is_given_settings),
        cmocka_unit_test(settings_of_the_user_stay),
        cmocka_unit_test(files_have_a_place),
        cmocka_unit_test(codes_are_told),
        cmocka_unit_test(a_killed_mpirun_takes_others_along),
        cmocka_unit_test(nothing_is_left_without_memory),
        cmocka_unit_test(mpirun_is_looked_for),
    };
    return cmocka_run_group_tests_name("cli.mpi_jobs", tests, attempt_place_make, attempt_place_drop);
}
