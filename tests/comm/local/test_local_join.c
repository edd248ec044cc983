/* How processes of one host come together: tickets, memory that is none of a launcher's, ranks that never
 * come or fail while they do, stops meanwhile, and a launcher that is killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/check.h"
#include "comm/class.h"
#include "comm/local/area.h"
#include "comm/local/launch.h"
#include "comm/process_ranks.h"
#include "refuse.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct tr_comm_settings settings = {.timeout = 60, .patience = 100};
static struct launch launch;

/* ---- tickets ---- */

static void test_world(void **state)
{
    (void)state;
    static const char *const good[] = {"A=b", "TRIREME_LOCAL=5:2:4", NULL};
    static const char *const none[] = {"TRIREME_LOCALE=5:2:4", "XTRIREME_LOCAL=5:2:4", NULL};
    static const char *const bad[] = {
        "",      "5",        "5:2",  "5:2:", "5:2:4:", "5:2:4 ", "-5:2:4",          "5:-2:4",
        "5:4:4", "5:2:1025", "5::4", ":2:4", "5:2:x",  "+5:2:4", "99999999999:2:4", "5:2:4294967300"};
    int rank = -1, size = -1;
    assert_true(tr_comm_local_world(good, &rank, &size));
    assert_int_equal(rank, 2);
    assert_int_equal(size, 4);
    assert_string_equal(tr_comm_local_ticket(good), "5:2:4");
    assert_null(tr_comm_local_ticket(none));
    assert_false(tr_comm_local_world(none, &rank, &size));
    static const char *const great[] = {"TRIREME_LOCAL=2147483647:0:1", NULL},
                             *const too_great[] = {"TRIREME_LOCAL=2147483648:0:1", NULL};
    assert_true(tr_comm_local_world(great, &rank, &size));
    assert_int_equal(rank, 0);
    assert_int_equal(size, 1);
    assert_false(tr_comm_local_world(too_great, &rank, &size));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char variable[64];
        const char *environment[] = {variable, NULL};
        tr_comm *comm;
        snprintf(variable, sizeof variable, "TRIREME_LOCAL=%s", bad[i]);
        if (tr_comm_local_world(environment, &rank, &size)) fail_msg("\"%s\" is taken for a ticket", bad[i]);
        assert_int_equal(tr_comm_local_create(bad[i], &settings, &comm), TR_EINVAL);
        assert_null(comm);
    }
}

static void test_group_refused(void **state)
{
    (void)state;
    tr_local_group *group;
    char ticket[TR_LOCAL_TICKET_SIZE];
    assert_int_equal(tr_local_group_create(0, &group), TR_EINVAL);
    assert_int_equal(tr_local_group_create(TR_LOCAL_RANKS_MOST + 1, &group), TR_EINVAL);
    assert_null(group);
    assert_int_equal(tr_local_group_create(TR_LOCAL_RANKS_MOST, &group), TR_OK);
    assert_int_equal(tr_local_group_ticket(group, TR_LOCAL_RANKS_MOST, ticket, sizeof ticket), TR_EINVAL);
    assert_int_equal(tr_local_group_ticket(group, -1, ticket, sizeof ticket), TR_EINVAL);
    assert_int_equal(tr_local_group_ticket(group, 0, ticket, sizeof ticket - 1), TR_EINVAL);
    assert_int_equal(tr_local_group_ticket(group, TR_LOCAL_RANKS_MOST - 1, ticket, sizeof ticket), TR_OK);
    tr_local_group_destroy(&group);
    assert_null(group);
    tr_local_group_destroy(&group);
}

/* The launcher may give a rank its memory under another descriptor, 0 among them. */
static void test_group_names_its_transport(void **state)
{
    (void)state;
    tr_local_group *group;
    char text[TR_LOCAL_TRANSPORT_SIZE], expected[64];
    assert_int_equal(tr_local_group_create(3, &group), TR_OK);
    assert_int_equal(tr_local_group_transport(group, 2, 0, text, sizeof text), TR_OK);
    assert_string_equal(text, "local:0:2:3");
    assert_int_equal(tr_local_group_transport(group, 0, 7, text, sizeof text), TR_OK);
    assert_string_equal(text, "local:7:0:3");
    assert_int_equal(tr_local_group_transport(group, 1, -1, text, sizeof text), TR_OK);
    snprintf(expected, sizeof expected, "local:%d:1:3", tr_local_group_descriptor(group));
    assert_string_equal(text, expected);
    assert_int_equal(tr_local_group_transport(group, 3, 0, text, sizeof text), TR_EINVAL);
    assert_int_equal(tr_local_group_transport(group, -1, 0, text, sizeof text), TR_EINVAL);
    assert_int_equal(tr_local_group_transport(group, 0, 0, text, sizeof text - 1), TR_EINVAL);
    snprintf(expected, sizeof expected, "a ticket for rank 0 of 3, in %zu bytes (%zu are needed)",
             sizeof text - 1, sizeof text);
    assert_string_equal(tr_error_message(), expected);
    tr_local_group_destroy(&group);
}

/* Nothing of a group has a name, and nobody gets its descriptor who is not given it. */
static void test_group_has_no_name(void **state)
{
    (void)state;
    tr_local_group *group;
    struct stat facts;
    assert_int_equal(tr_local_group_create(3, &group), TR_OK);
    int descriptor = tr_local_group_descriptor(group);
    assert_int_equal(fstat(descriptor, &facts), 0);
    assert_int_equal(facts.st_nlink, 0);
    assert_true(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    assert_true(facts.st_blocks * 512 < 1 << 20); /* and it takes little before somebody uses it */
    tr_local_group_destroy(&group);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
}

/* ---- memory that a launcher did not make, or of another version, or damaged ---- */

static void expect_refused(int descriptor, int size, const char *why)
{
    char ticket[TR_LOCAL_TICKET_SIZE];
    tr_comm *comm;
    int64_t live = tr_alloc_live();
    snprintf(ticket, sizeof ticket, "%d:0:%d", descriptor, size);
    assert_int_equal(tr_comm_local_create(ticket, &settings, &comm), TR_EINVAL);
    assert_null(comm);
    if (!strstr(tr_error_message(), why)) fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), why);
    assert_int_equal(tr_alloc_live(), live);
}

static void test_hostile_memory(void **state)
{
    (void)state;
    struct local_area area;
    int pipes[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    expect_refused(file, 2, "no memory that a launcher made");
    assert_true(fcntl(file, F_GETFD) >= 0); /* and it stays whose it is */
    close(file);
    expect_refused(file, 2, "no memory that a launcher made");
    assert_int_equal(pipe(pipes), 0);
    expect_refused(pipes[0], 2, "no memory that a launcher made");
    close(pipes[0]), close(pipes[1]);
    /* It could be cut off while it is mapped. */
    int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(memory, 1 << 24), 0);
    expect_refused(memory, 2, "no memory that a launcher made");
    assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    expect_refused(memory, 2, "was not made by a launcher");
    expect_refused(memory, TR_LOCAL_RANKS_MOST, "too small");
    close(memory);
    assert_int_equal(tr_local_area_create(4, &area), TR_OK);
    expect_refused(area.descriptor, 3, "made memory for 4 ranks, the ticket says 3");
    area.header->version++;
    expect_refused(area.descriptor, 4, "use one version of the program");
    area.header->magic[3] ^= 1;
    expect_refused(area.descriptor, 4, "was not made by a launcher");
    tr_local_area_close(&area);
}

/* A ticket serves once: a second process with it does no harm to the first. */
static const char *joins_twice(tr_comm *comm, const char *what)
{
    (void)what;
    char ticket[TR_LOCAL_TICKET_SIZE];
    tr_comm *other;
    tr_ticket *barrier;
    CHECK_OK(tr_local_group_ticket(launch.group, tr_comm_rank(comm), ticket, sizeof ticket));
    int copy = dup(tr_local_group_descriptor(launch.group));
    snprintf(ticket, sizeof ticket, "%d:%d:%d", copy, tr_comm_rank(comm), tr_comm_size(comm));
    CHECK(tr_comm_local_create(ticket, &settings, &other) == TR_EINVAL && !other);
    CHECK(strstr(tr_error_message(), "a ticket serves once"));
    CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    return NULL;
}

static void test_joins_twice(void **state)
{
    (void)state;
    launch = (struct launch){.timeout = 60};
    launch_expect_well(&launch, 2, joins_twice, "joins twice");
}

/* ---- ranks that do not come ---- */

static void expect_words(int ranks, int but, const char *words)
{
    for (int rank = 0; rank < ranks; rank++) {
        char text[200];
        if (rank == but) continue;
        snprintf(text, sizeof text, "rank %d does not join: %s", rank, words);
        if (!strstr(launch.output, text)) fail_msg("nobody says \"%s\"; output:\n%s", text, launch.output);
    }
}

static void test_never_comes(void **state)
{
    (void)state;
    launch = (struct launch){.timeout = 60, .stays_away = true};
    launch_run(&launch, 4, process_run, "scenarios");
    expect_words(4, 3, "rank 3 ended before it took part");
    /* Nobody says so: the limit. The others may hear of each other's end first. */
    launch = (struct launch){.timeout = 0.5, .stays_away = true, .silent = true};
    launch_run(&launch, 2, process_run, "scenarios");
    expect_words(2, 1, "rank 1 did not join within 10 s (1 of 2 missing)");
}

/* One that cannot join says why, and the others do not wait for it. */
static int settles_badly(const struct launch *run, const char *ticket, int rank)
{
    struct tr_comm_settings own = settings;
    tr_comm *comm;
    if (rank == run->number) own.timeout = -1;
    tr_status status = tr_comm_local_create(ticket, &own, &comm);
    if (status != (rank == run->number ? TR_EINVAL : TR_EPEER) || comm) return 1;
    if (rank != run->number && !strstr(tr_error_message(), "rank 1 gave up: time limits of the communicator"))
        return 2;
    return 0;
}

static void test_cannot_join(void **state)
{
    (void)state;
    launch = (struct launch){.timeout = 60, .be_rank = settles_badly, .number = 1};
    launch_expect_well(&launch, 3, NULL, "settles badly");
}

enum { REFUSED = 0, ALL_GRANTED = 100 };

/* Rank 0 lacks the memory of one allocation. */
static int lacks_memory(const struct launch *run, const char *ticket, int rank)
{
    tr_comm *comm;
    int64_t live = tr_alloc_live();
    if (rank == 0) refuse_begin(run->number);
    tr_status status = tr_comm_local_create(ticket, &settings, &comm);
    bool granted = rank == 0 && refuse_end();
    if (rank == 0 && status != (granted ? TR_OK : TR_ENOMEM)) return 1;
    if (rank == 0 && !granted) return tr_alloc_live() == live ? REFUSED : 2;
    tr_ticket *ticket_of = NULL;
    if (status == TR_OK) {
        status = tr_comm_barrier(comm, &ticket_of);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket_of);
    }
    if (rank == 0 && status != TR_OK) return 3;
    if (status != TR_OK && (status != TR_EPEER || !strstr(tr_error_message(), "rank 0"))) return 4;
    if (status != TR_OK && !strstr(tr_error_message(), "gave up: out of memory")) return 5;
    tr_comm_destroy(&comm);
    if (tr_alloc_live() != live) return 6;
    return granted ? ALL_GRANTED : REFUSED;
}

static void test_lacks_memory(void **state)
{
    (void)state;
    for (int at = 0, done = 0; !done; at++) {
        launch = (struct launch){.timeout = 60, .be_rank = lacks_memory, .number = at};
        launch_run(&launch, 2, NULL, "lacks memory");
        done = launch.code[0] == ALL_GRANTED;
        if ((launch.code[0] != REFUSED && !done) || launch.code[1] != 0)
            fail_msg("allocation %d: the ranks ended with %d and %d", at, launch.code[0], launch.code[1]);
        assert_true(!done || at > 5);
    }
}

/* ---- stops ---- */

#define STOP_DELAY 50000000 /* nanoseconds */

static atomic_int stop;

static void *stop_later(void *unused)
{
    nanosleep(&(struct timespec){.tv_nsec = STOP_DELAY}, NULL);
    stop = 1;
    return unused;
}

/* The last rank never comes, and nobody says so: rank 0 has enough of it, and the others hear of that. */
static int stops_joining(const struct launch *run, const char *ticket, int rank)
{
    struct tr_comm_settings own = settings;
    int64_t live = tr_alloc_live();
    pthread_t thread;
    tr_comm *comm;
    (void)run;
    if (rank == 0) own.stop = &stop;
    if (rank == 0 && pthread_create(&thread, NULL, stop_later, NULL) != 0) return 1;
    tr_status status = tr_comm_local_create(ticket, &own, &comm);
    if (rank == 0) pthread_join(thread, NULL);
    if (status != (rank == 0 ? TR_EINTERRUPTED : TR_EPEER) || comm) return 2;
    if (!strstr(tr_error_message(), rank == 0 ? "ended by a stop" : "rank 0 gave up: the wait")) return 3;
    return tr_alloc_live() == live ? 0 : 4;
}

static void test_stop_ends_joining(void **state)
{
    (void)state;
    launch = (struct launch){.timeout = 60, .be_rank = stops_joining, .stays_away = true, .silent = true};
    launch_run(&launch, 3, NULL, "stops joining");
    assert_int_equal(launch.code[0], 0);
    assert_int_equal(launch.code[1], 0);
}

/* Rank 0 heeds a stop when it waits for the others, unless it is to ignore stops. */
static int stops_waiting(const struct launch *run, const char *ticket, int rank)
{
    struct tr_comm_settings own = settings;
    pthread_t thread;
    tr_comm *comm, *part = NULL;
    tr_ticket *barrier = NULL;
    int byte = 0;
    if (rank == 0) own.stop = &stop;
    if (tr_comm_local_create(ticket, &own, &comm) != TR_OK) return 1;
    if (run->number && tr_comm_split(comm, 0, rank, &part) != TR_OK) return 2;
    tr_comm *waits = part ? part : comm;
    tr_comm_ignore_stop(comm);
    stop = 1;
    if (tr_comm_barrier(waits, &barrier) != TR_OK || tr_comm_wait(waits, &barrier) != TR_OK) return 3;
    stop = 0;
    comm->settings.stop = own.stop;
    if (rank == 0 && pthread_create(&thread, NULL, stop_later, NULL) != 0) return 4;
    /* Nobody ever sends this. */
    if (tr_comm_receive(waits, 1 - rank, 1, &byte, sizeof byte, "byte", &barrier) != TR_OK) return 5;
    tr_status status = tr_comm_wait(waits, &barrier);
    if (rank == 0) pthread_join(thread, NULL);
    if (status != (rank == 0 ? TR_EINTERRUPTED : TR_EPEER)) return 6;
    if (!strstr(tr_error_message(), "ended by a stop")) return 7;
    tr_comm_destroy(&part);
    tr_comm_destroy(&comm);
    return 0;
}

static void test_stop_ends_waiting(void **state)
{
    (void)state;
    for (int splits = 0; splits < 2; splits++) {
        launch = (struct launch){.timeout = 60, .be_rank = stops_waiting, .number = splits};
        launch_expect_well(&launch, 2, NULL, "stops waiting");
    }
}

/* ---- the launcher dies ---- */

/* Rank 0 kills the launcher, and the ranks go on with each other. */
static const char *orphans(tr_comm *comm, const char *what)
{
    (void)what;
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (tr_comm_rank(comm) == 0) CHECK(kill(getppid(), SIGKILL) == 0);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    CHECK_RUN(process_scenarios(comm));
    process_say(comm, "all is well");
    return NULL;
}

static void test_launcher_is_killed(void **state)
{
    (void)state;
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t launcher = fork();
    assert_true(launcher >= 0);
    if (launcher == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        launch = (struct launch){.timeout = 60, .outlived = true};
        launch_run(&launch, 2, orphans, "orphans");
        _exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    while (length < sizeof launch.output - 1 &&
           poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, 100000) > 0) {
        ssize_t got = read(pipes[0], launch.output + length, sizeof launch.output - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    launch.output[length] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!strstr(launch.output, "rank 0 says: all is well") ||
        !strstr(launch.output, "rank 1 says: all is well"))
        fail_msg("the ranks did not go on; output:\n%s", launch.output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_group_refused),
        cmocka_unit_test(test_group_names_its_transport),
        cmocka_unit_test(test_group_has_no_name),
        cmocka_unit_test(test_hostile_memory),
        cmocka_unit_test(test_joins_twice),
        cmocka_unit_test(test_never_comes),
        cmocka_unit_test(test_cannot_join),
        cmocka_unit_test(test_lacks_memory),
        cmocka_unit_test(test_stop_ends_joining),
        cmocka_unit_test(test_stop_ends_waiting),
        cmocka_unit_test(test_launcher_is_killed),
    };
    return cmocka_run_group_tests_name("comm.local_join", tests, NULL, NULL);
}
