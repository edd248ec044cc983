/* The processes that the launcher of this host starts, here scripts of the shell or this program: what they
 * are given, how they are asked to end, or ended, and what becomes of their codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/launch/attempt.h"
#include "cli/program/exit_codes.h"
#include "comm/transport.h"
#include "refuse.h"
#include "support/files/descriptors.h"

/* For scripts: r is the rank. */
#define PRELUDE "r=${TRIREME_LOCAL#*:}; r=${r%%:*}\n" ATTEMPT_SHELL

typedef void (*listener)(struct cli_job *job, const struct cli_note *note);

static struct cli_job_end run_words(struct cli_job_orders orders, char *const *words, listener hear)
{
    struct cli_launcher launcher = cli_launcher_local;
    orders.words = words;
    launcher.hear = hear;
    return attempt_whole(&launcher, orders);
}

static struct cli_job_end run(struct cli_job_orders orders, const char *script, listener hear)
{
    char text[2048];
    char *words[] = {"/bin/sh", "-c", text, NULL};
    assert_true(snprintf(text, sizeof text, "%s%s", PRELUDE, script) < (int)sizeof text);
    return run_words(orders, words, hear);
}

/* ---- how it ended ---- */

static void codes_are_those_of_the_processes(void **state)
{
    static const struct {
        const char *script;
        int code, signal;
        const char *whose;
    } cases[] = {
        {"exit 0", 0, 0, ""},
        {"exit $r", 1, 0, "rank 1"},
        {"exit $((r * 2))", 2, 0, "rank 1"},
        {"exit $((r * 3))", 3, 0, "rank 1"},
        {"exit $((r * 4))", 4, 0, "rank 1"},
        {"exit $((r * 5))", 5, 0, "rank 1"},
        {"exit $((r * 6))", 1, 0, "rank 1"},
        {"exit $((r * 127))", 1, 0, "rank 1"},
        {"[ $r = 1 ] && kill -9 $$; exit 0", 1, 9, "rank 1"},
        {"[ $r = 0 ] && kill -15 $$; exit 0", 1, 15, "rank 0"},
        /* The first to end is named; a code that says more than a loss counts, whosever it is. */
        {"[ $r = 1 ] && exit 1; sleep 0.3; exit 2", 2, 0, "rank 1"},
        {"[ $r = 0 ] && exit 5; sleep 0.3; exit 2", 5, 0, "rank 0"},
        {"[ $r = 1 ] && kill -9 $$; sleep 0.3; exit 4", 4, 9, "rank 1"},
        /* What the root reports counts more. */
        {"[ $r = 0 ] && say ended 3; exit 0", 3, 0, ""},
        {"[ $r = 0 ] && say ended 0; exit $((r * 2))", 0, 0, "rank 1"},
        {"[ $r = 0 ] && say ended 0; kill -9 $$", 0, 9, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_job_end end = run((struct cli_job_orders){.processes = 2}, cases[i].script, NULL);
        if (end.code != cases[i].code || end.signal != cases[i].signal ||
            (cases[i].whose && strcmp(end.whose, cases[i].whose) != 0))
            fail_msg("%s: code %d, signal %d, whose \"%s\"; %s", cases[i].script, end.code, end.signal,
                     end.whose, attempt_said());
        attempt_expect_said("");
        assert_false(end.stop_twice);
        assert_int_equal(end.stop_signal, 0);
    }
}

static void what_is_no_program_is_named(void **state)
{
    static char *const words[] = {"/nowhere/program", NULL};
    (void)state;
    struct cli_job_end end = run_words((struct cli_job_orders){.processes = 1}, words, NULL);
    assert_int_equal(end.code, CLI_EXIT_FAILED);
    assert_non_null(
        strstr(attempt_said(), "/nowhere/program cannot be started: No such file or directory\n"));
}

/* ---- what they are given ---- */

static void forget_variables(void)
{
    static const char *const names[] = {"TRIREME_TRANSPORT", "TRIREME_BIND",    "TRIREME_LAUNCHED",
                                        "TRIREME_OUTLIVES",  "TRIREME_THREADS", TR_LOCAL_VARIABLE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
}

static void variables_say_what_they_are(void **state)
{
    static const char script[] = "env > env.$r";
    (void)state;
    forget_variables();
    run((struct cli_job_orders){.processes = 3}, script, NULL);
    for (int rank = 0; rank < 3; rank++) {
        char name[20], ticket[40];
        int descriptor;
        snprintf(name, sizeof name, "env.%d", rank);
        const char *text = attempt_file(name), *at = strstr(text, TR_LOCAL_VARIABLE "=");
        assert_non_null(at);
        assert_int_equal(sscanf(at + strlen(TR_LOCAL_VARIABLE "="), "%d:", &descriptor), 1);
        snprintf(ticket, sizeof ticket, TR_LOCAL_VARIABLE "=%d:%d:3", descriptor, rank);
        assert_true(attempt_has_line(text, ticket));
        assert_true(attempt_has_line(text, "TRIREME_TRANSPORT=local"));
        assert_true(attempt_has_line(text, "TRIREME_BIND=true"));
        assert_true(attempt_has_line(text, "TRIREME_LAUNCHED=token"));
        assert_null(strstr(text, "TRIREME_OUTLIVES"));
        assert_null(strstr(text, "TRIREME_THREADS"));
    }
    setenv("TRIREME_BIND", "false", 1); /* the user's own */
    setenv("TRIREME_TRANSPORT", "mpi", 1);
    run((struct cli_job_orders){.processes = 1, .outlives = true, .threads = 12}, script, NULL);
    const char *text = attempt_file("env.0");
    assert_true(attempt_has_line(text, "TRIREME_BIND=false"));
    assert_true(attempt_has_line(text, "TRIREME_TRANSPORT=local"));
    assert_true(attempt_has_line(text, "TRIREME_OUTLIVES=true"));
    assert_true(attempt_has_line(text, "TRIREME_THREADS=12"));
    forget_variables();
}

/* They have no input, share the launcher's memory, and leave signals of a terminal to the launcher. */
static void signals_of_a_terminal_are_not_theirs(void **state)
{
    (void)state;
    run((struct cli_job_orders){.processes = 2},
        "grep '^SigIgn' /proc/self/status > signals.$r; cat > input.$r; "
        "readlink /proc/$$/fd/${TRIREME_LOCAL%%:*} > memory.$r",
        NULL);
    for (int rank = 0; rank < 2; rank++) {
        char name[20];
        unsigned long long ignored = 0;
        snprintf(name, sizeof name, "signals.%d", rank);
        assert_int_equal(sscanf(attempt_file(name), "SigIgn: %llx", &ignored), 1);
        assert_int_equal(ignored & 3, 1ull << (SIGINT - 1) | 1ull << (SIGHUP - 1));
        assert_int_equal(ignored >> (SIGUSR1 - 1) & 1, 0);
        snprintf(name, sizeof name, "input.%d", rank);
        assert_string_equal(attempt_file(name), "");
        snprintf(name, sizeof name, "memory.%d", rank);
        assert_non_null(strstr(attempt_file(name), "memfd:"));
    }
}

/* ---- stops ---- */

static int begun;

/* As the user would, once all have begun. */
static void stop_when_all_have_begun(struct cli_job *job, const struct cli_note *note)
{
    if (note->kind == CLI_NOTE_BEGUN && ++begun == job->orders->processes) raise(SIGINT);
}

static void all_are_asked_to_stop(void **state)
{
    static char *const words[] = {"/proc/self/exe", "rank", NULL};
    (void)state;
    begun = 0;
    struct cli_job_end end =
        run_words((struct cli_job_orders){.processes = 3}, words, stop_when_all_have_begun);
    assert_int_equal(end.stop_signal, SIGINT);
    assert_false(end.stop_twice);
    assert_int_equal(end.code, CLI_EXIT_INTERRUPTED);
    assert_int_equal(end.signal, 0);
}

/* Is this program as a process of that job: it waits until it is asked, which may have come before. */
static void ask(int number)
{
    (void)number;
}

static int be_rank(void)
{
    static const char text[] = "\036token begun 0\n";
    sigset_t none, blocked;
    sigemptyset(&none);
    signal(SIGUSR1, ask);
    if (sigprocmask(SIG_BLOCK, &none, &blocked) != 0 || !sigismember(&blocked, SIGUSR1)) return 8;
    if (sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGCHLD)) return 7;
    if (write(STDERR_FILENO, text, sizeof text - 1) != sizeof text - 1) return 9;
    sigsuspend(&none);
    return CLI_EXIT_INTERRUPTED;
}

static void stop_twice(struct cli_job *job, const struct cli_note *note)
{
    stop_when_all_have_begun(job, note);
    if (note->kind != CLI_NOTE_SAVED || job->end->stop_signal == 0 || job->end->stop_twice) return;
    attempt_clock += 0.4;
    raise(SIGTERM);
}

/* They have not reacted to the first request. */
static void who_insists_ends_them_all(void **state)
{
    (void)state;
    begun = 0;
    struct cli_job_end end = run((struct cli_job_orders){.processes = 4},
                                 "trap '' USR1; say begun 0; sleep 0.1; if [ $r = 0 ]; then while :; do say "
                                 "saved 1; sleep 0.02; done; fi; "
                                 "exec sleep 1000",
                                 stop_twice);
    assert_int_equal(end.stop_signal, SIGINT);
    assert_true(end.stop_twice);
    assert_int_equal(end.code, CLI_EXIT_FAILED);
    assert_int_equal(end.signal, 0); /* the launcher's own */
    assert_string_equal(end.whose, "");
    assert_int_equal(end.saved, 1);
}

/* ---- losses ---- */

static int notes_heard;
static bool turned;

/* A moment before the last call all still run; then it comes. */
static void wait_for_the_last_call(struct cli_job *job, const struct cli_note *note)
{
    (void)note;
    if (job->over == 0) return;
    if (!turned) attempt_clock = job->over + 9.9;
    if (turned && ++notes_heard == 5) attempt_clock = job->over + 10;
    turned = true;
}

static void the_others_have_some_time(void **state)
{
    static const char *const scripts[] = {
        "[ $r = 1 ] && exit 1; go_on",
        "[ $r = 0 ] && kill -9 $$; go_on",
        "[ $r = 0 ] && exit 0; go_on", /* the root is done: no other is to stay */
        "[ $r = 0 ] && exit 0; [ $r = 1 ] && kill -STOP $$; go_on",
        "[ $r = 1 ] && say lost 2; go_on",
    };
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        notes_heard = 0;
        turned = false;
        struct cli_job_end end =
            run((struct cli_job_orders){.processes = 3}, scripts[i], wait_for_the_last_call);
        assert_int_equal(end.code, CLI_EXIT_FAILED);
        if (notes_heard < 5) fail_msg("%s: ended after %d notes", scripts[i], notes_heard);
        assert_string_equal(end.whose, i == 0 ? "rank 1" : i == 1 ? "rank 0" : "");
        assert_int_equal(end.signal, i == 1 ? 9 : 0);
    }
}

/* They would not leave by themselves: no time goes by. */
static void stopped_processes_are_ended_at_once(void **state)
{
    (void)state;
    struct cli_job_end end = run((struct cli_job_orders){.processes = 3},
                                 "[ $r = 0 ] && exit 0; kill -STOP $$; exec sleep 1000", NULL);
    assert_int_equal(end.code, CLI_EXIT_FAILED);
    assert_string_equal(end.whose, "");
    end = run((struct cli_job_orders){.processes = 2},
              "[ $r = 0 ] && say ended 0; [ $r = 0 ] && exit 0; kill -STOP $$; exec sleep 1000", NULL);
    assert_int_equal(end.code, CLI_EXIT_DONE); /* as the root said */
}

/* One that goes on after a stop runs like any other. */
static void a_process_that_goes_on_is_waited_for(void **state)
{
    (void)state;
    notes_heard = 0;
    turned = false;
    run((struct cli_job_orders){.processes = 2},
        "if [ $r = 1 ]; then echo $$ > new && mv new process; kill -STOP $$; go_on; fi\n"
        "until [ -e process ] && grep -q '^State:.T' /proc/$(cat process)/status; do sleep 0.01; done\n"
        "sleep 0.1; kill -CONT $(cat process); sleep 0.1; exit 0",
        wait_for_the_last_call);
    assert_true(notes_heard >= 5);
}

/* ---- jobs that go on ---- */

static bool was_over;

static void see_whether_it_is_over(struct cli_job *job, const struct cli_note *note)
{
    if (note->kind == CLI_NOTE_FEWER) was_over |= job->over > 0;
}

/* Whoever it was: only the root's end is that of a job that tolerates losses, and not even that where ranks
   outlive each other. */
static void the_others_may_go_on(void **state)
{
    static const struct {
        bool tolerant, outlives, over;
        const char *script, *whose;
    } cases[] = {
        {true, false, false, "[ $r = 1 ] && exit 1", "rank 1"},
        {true, true, false, "[ $r = 1 ] && kill -9 $$", "rank 1"},
        {true, true, false, "[ $r = 0 ] && exit 1", "rank 0"},
        {true, true, false, "[ $r = 1 ] && exit 0", ""},
        {true, false, true, "[ $r = 0 ] && exit 1", "rank 0"},
        {true, true, true, "[ $r = 0 ] && exit 0", ""},
        {false, false, true, "[ $r = 1 ] && exit 1", "rank 1"},
        {false, false, false, "[ $r = 1 ] && exit 0", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[300];
        was_over = false;
        snprintf(
            script, sizeof script,
            "%s; sleep 0.1; [ $r = 2 ] || exec sleep 0.4; for i in 1 2 3 4 5; do say fewer 2; sleep 0.05; "
            "done; say ended 0; exit 0",
            cases[i].script);
        struct cli_job_end end = run((struct cli_job_orders){.processes = 3,
                                                             .tolerant = cases[i].tolerant,
                                                             .outlives = cases[i].outlives},
                                     script, see_whether_it_is_over);
        if (was_over != cases[i].over) fail_msg("case %zu: %s", i, was_over ? "is over" : "is not over");
        assert_int_equal(end.code, 0);
        assert_string_equal(end.whose, cases[i].whose);
    }
}

/* ---- shortage ---- */

/* Those that were started before the one that cannot be are ended, and nothing is left. */
static void nothing_is_left_of_a_start_that_fails(void **state)
{
    static char *const words[] = {"/bin/sleep", "1000", NULL};
    struct cli_job_orders orders = {.words = words, .processes = 3};
    struct rlimit before, limit;
    struct cli_job_end end;
    tr_status status = TR_OK;
    (void)state;
    attempt_tick = 0.1;
    for (int64_t at = 0, done = 0; !done; at++) {
        static char *const at_once[] = {"/bin/true", NULL};
        const int64_t live = tr_alloc_live();
        orders.words = at_once;
        refuse_begin(at);
        status = attempt_run(&cli_launcher_local, &orders, &end);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        attempt_expect_no_child();
    }
    attempt_tick = 0;
    orders.words = words;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int open = descriptors_open();
    int pipes = 0;
    /* One for what was said before, one for memory, and one for each process, two while it starts. */
    for (int more = 1; more < 6; more++) {
        limit = before;
        limit.rlim_cur = descriptors_limit(more);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        status = attempt_run(&cli_launcher_local, &orders, &end);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_not_equal(status, TR_OK);
        pipes += strstr(tr_error_message(), "no pipe for a process: ") != NULL;
        attempt_expect_no_child();
        assert_int_equal(descriptors_open(), open);
    }
    assert_int_equal(pipes, 4);
}

static void other_hosts_are_refused(void **state)
{
    struct cli_job_orders orders = {.processes = 1};
    (void)state;
    assert_int_equal(cli_launcher_local.check(&orders), TR_OK);
    orders.hosts = "a:1";
    assert_int_equal(cli_launcher_local.check(&orders), TR_EINVAL);
    orders.hosts = NULL;
    orders.hostfile = "hosts";
    assert_int_equal(cli_launcher_local.check(&orders), TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "--transport local is for processes of this host; with --hosts and --hostfile it is mpi");
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_processes),
        cmocka_unit_test(what_is_no_program_is_named),
        cmocka_unit_test(variables_say_what_they_are),
        cmocka_unit_test(signals_of_a_terminal_are_not_theirs),
        cmocka_unit_test(all_are_asked_to_stop),
        cmocka_unit_test(who_insists_ends_them_all),
        cmocka_unit_test(the_others_have_some_time),
        cmocka_unit_test(stopped_processes_are_ended_at_once),
        cmocka_unit_test(a_process_that_goes_on_is_waited_for),
        cmocka_unit_test(the_others_may_go_on),
        cmocka_unit_test(nothing_is_left_of_a_start_that_fails),
        cmocka_unit_test(other_hosts_are_refused),
    };
    if (count > 1 && strcmp(arguments[1], "rank") == 0) return be_rank();
    return cmocka_run_group_tests_name("cli.local_jobs", tests, attempt_place_make, attempt_place_drop);
}
