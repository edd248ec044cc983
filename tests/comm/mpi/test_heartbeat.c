/* Signs of life among many ranks, whose messages go through the memory of this test and whose clock it turns:
 * how many there are, and how far and how soon news goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "comm/mpi/heartbeat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST    256
#define TIMEOUT 10.0 /* seconds; so beats are 2 apart */
#define BEAT    2.0

/* ---- MPI in memory ---- */

struct tr_mpi_request {
    bool sends;
    int from, to;
    void *data;
    size_t bytes;
    int tests;
};

/* What was sent and not yet taken, of each rank; oldest first. */
struct parcel {
    struct parcel *next;
    int from;
    char data[4096];
};

static struct parcel *parcels[MOST];
static int calling;        /* the rank that calls */
static int patience;       /* tests before a send is done; -1: it is done at once */
static int64_t sent[MOST]; /* messages */

static enum tr_mpi_result start(int sends, int peer, int tag, void *data, size_t bytes, size_t chunk,
                                tr_mpi_request **out, char *message, size_t size)
{
    (void)tag, (void)chunk, (void)message, (void)size;
    struct tr_mpi_request *request = calloc(1, sizeof *request);
    assert_non_null(request);
    *request = (struct tr_mpi_request){sends, sends ? calling : peer, sends ? peer : calling, data, bytes, 0};
    *out = request;
    if (!sends) return TR_MPI_OK;
    struct parcel *parcel = calloc(1, sizeof *parcel), **at = &parcels[peer];
    assert_true(parcel && bytes <= sizeof parcel->data);
    parcel->from = calling;
    memcpy(parcel->data, data, bytes);
    while (*at) at = &(*at)->next;
    *at = parcel;
    sent[calling]++;
    if (patience < 0) {
        free(request);
        *out = NULL;
    }
    return TR_MPI_OK;
}

static enum tr_mpi_result test(tr_mpi_request **handle, char *message, size_t size)
{
    (void)message, (void)size;
    struct tr_mpi_request *request = *handle;
    struct parcel **at = &parcels[request->to];
    while (!request->sends && *at && (*at)->from != request->from) at = &(*at)->next;
    if (!request->sends && !*at) return TR_MPI_OK;
    if (request->sends && request->tests++ < patience) return TR_MPI_OK;
    if (!request->sends) {
        struct parcel *parcel = *at;
        memcpy(request->data, parcel->data, request->bytes);
        *at = parcel->next;
        free(parcel);
    }
    free(request);
    *handle = NULL;
    return TR_MPI_OK;
}

static int withdraw(tr_mpi_request **handle)
{
    free(*handle);
    *handle = NULL;
    return 1;
}

static const struct tr_mpi_module module = {
    .version = TR_MPI_VERSION, .start = start, .test = test, .withdraw = withdraw};

/* ---- ranks ---- */

static const struct tr_comm_class no_class = {.name = "test", .version = TR_COMM_VERSION};
static tr_comm comm[MOST];
static tr_heartbeat *heartbeat[MOST];
static bool stopped[MOST];
static double now;

static void begin(int size)
{
    struct tr_comm_settings settings = {.timeout = TIMEOUT, .patience = TIMEOUT};
    memset(stopped, 0, sizeof stopped);
    for (int r = 0; r < size; r++) {
        calling = r;
        assert_int_equal(tr_comm_prepare(&comm[r], &no_class, r, size, &settings), TR_OK);
        assert_int_equal(tr_heartbeat_create(&comm[r], &module, &heartbeat[r]), TR_OK);
    }
    now = tr_clock_seconds();
}

static void end(int size)
{
    for (int r = 0; r < size; r++) {
        calling = r;
        tr_heartbeat_destroy(&heartbeat[r]);
        tr_comm_release(&comm[r]);
    }
    for (int r = 0; r < size; r++)
        while (parcels[r]) {
            struct parcel *parcel = parcels[r];
            parcels[r] = parcel->next;
            free(parcel);
        }
}

/* Time goes on by `seconds`, in looks. */
static void pass(int size, double seconds)
{
    const double look = 0.25;
    for (double until = now + seconds; now < until; now += look)
        for (int r = 0; r < size; r++) {
            calling = r;
            if (!stopped[r]) tr_heartbeat_beat(heartbeat[r], now + look);
        }
}

static int log_of(int ranks)
{
    int log = 0;
    while (1 << log < ranks) log++;
    return log;
}

static int count(int size, int rank, enum tr_comm_life life)
{
    int ranks = 0;
    for (int r = 0; r < size; r++) {
        double silence;
        char why[512] = "";
        if (r == rank || stopped[r]) continue;
        ranks += tr_heartbeat_life(heartbeat[r], rank, &silence, why, sizeof why) == life;
    }
    return ranks;
}

static const int sizes[] = {2, 4, 8, 9, 16, 48, 100, 256};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* At most 2 log2 W messages of a rank in an interval, and everybody is alive to everybody. */
static void test_messages(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int size = sizes[s], most = size <= 8 ? size - 1 : 2 * log_of(size);
        begin(size);
        pass(size, BEAT);
        memset(sent, 0, sizeof sent);
        pass(size, 10 * BEAT);
        for (int r = 0; r < size; r++) {
            if (sent[r] > 11 * most || sent[r] < 9)
                fail_msg("rank %d of %d sent %lld messages in 10 intervals", r, size, (long long)sent[r]);
            assert_int_equal(count(size, r, TR_COMM_ALIVE), size - 1);
            assert_int_equal(tr_heartbeat_changes(heartbeat[r]), 0);
        }
        end(size);
    }
}

/* That a rank gave up goes to all long before the next beats would, with its words. */
static void test_gives_up(void **state)
{
    (void)state;
    for (int s = 0; s < 3 * SIZES; s++) {
        int size = sizes[s / 3], culprit = s % 3 == 0 ? 0 : s % 3 == 1 ? size / 3 : size - 1;
        begin(size);
        pass(size, 0.5); /* all are in the middle of an interval */
        calling = culprit;
        tr_heartbeat_give_up(heartbeat[culprit], "no more paper");
        stopped[culprit] = true;
        pass(size, 0.25 * (log_of(size) + 1));
        for (int r = 0; r < size; r++) {
            double silence;
            char why[512] = "";
            if (r == culprit) continue;
            if (tr_heartbeat_life(heartbeat[r], culprit, &silence, why, sizeof why) != TR_COMM_GAVE_UP)
                fail_msg("rank %d of %d does not know that rank %d gave up", r, size, culprit);
            assert_string_equal(why, "no more paper");
            assert_int_equal(tr_heartbeat_first_to_give_up(heartbeat[r]), culprit);
            assert_true(tr_heartbeat_changes(heartbeat[r]) > 0);
        }
        end(size);
    }
}

/* A rank whose last beat is still on its way gives up: its reason goes out after that, once. */
static void test_gives_up_while_it_beats(void **state)
{
    (void)state;
    for (patience = 0; patience < 4; patience++) {
        int size = 4;
        begin(size);
        calling = 0;
        tr_heartbeat_beat(heartbeat[0], now);
        memset(sent, 0, sizeof sent);
        tr_heartbeat_give_up(heartbeat[0], "no more paper");
        assert_int_equal(sent[0], size - 1);
        tr_heartbeat_give_up(heartbeat[0], "no more ink");
        tr_heartbeat_beat(heartbeat[0], now + 100);
        assert_int_equal(sent[0], size - 1);
        stopped[0] = true;
        pass(size, 0.5);
        for (int r = 1; r < size; r++) {
            double silence;
            char why[512] = "";
            assert_int_equal(tr_heartbeat_life(heartbeat[r], 0, &silence, why, sizeof why), TR_COMM_GAVE_UP);
            assert_string_equal(why, "no more paper");
        }
        end(size);
    }
    patience = 0;
}

/* The first eight to give up are remembered with their words, as far as a rank learns of others at all. */
static void test_many_give_up(void **state)
{
    enum { SIZE = 100, LISTENER = 40, NEIGHBOURS = 14 };
    int ranks[SIZE], gave_up = 0, worded = 0;
    (void)state;
    begin(SIZE);
    pass(SIZE, 0.5);
    /* One after another, as they are met by all of the listener's neighbours. */
    for (int distance = 1; distance < SIZE; distance *= 2)
        for (int side = 0; side < 2; side++) {
            int rank = (LISTENER + (side ? SIZE - distance : distance)) % SIZE;
            char why[40];
            if (stopped[rank]) continue;
            snprintf(why, sizeof why, "reason %d", rank);
            calling = rank;
            tr_heartbeat_give_up(heartbeat[rank], why);
            stopped[rank] = true;
            ranks[gave_up++] = rank;
            pass(SIZE, 0.25);
        }
    assert_int_equal(gave_up, NEIGHBOURS);
    for (int i = 0; i < gave_up; i++) {
        double silence;
        char why[512] = "", expected[40];
        assert_int_equal(tr_heartbeat_life(heartbeat[LISTENER], ranks[i], &silence, why, sizeof why),
                         TR_COMM_GAVE_UP);
        snprintf(expected, sizeof expected, "reason %d", ranks[i]);
        if (i < 8) assert_string_equal(why, expected);
        if (i >= 8) assert_string_equal(why, "others did before");
        worded += strcmp(why, expected) == 0;
    }
    assert_int_equal(worded, 8);
    assert_int_equal(tr_heartbeat_first_to_give_up(heartbeat[LISTENER]), ranks[0]);
    assert_int_equal(tr_heartbeat_changes(heartbeat[LISTENER]), gave_up);
    end(SIZE);
}

/* That a process ended is seen by a rank of its host, which need not be its neighbour, and goes to all. */
static void test_dies(void **state)
{
    static const int crowds[] = {2, 4, 9, 48};
    (void)state;
    patience = -1; /* nothing that is sent to the dead stays under way */
    for (int s = 0; s < 4; s++) {
        int size = crowds[s], victim = size / 3, finder = (victim + (size > 3 ? 3 : 1)) % size;
        pid_t child = fork();
        assert_true(child >= 0);
        while (child == 0) pause();
        begin(size);
        struct tr_location *location = comm[finder].location;
        memcpy(location[victim].machine, location[finder].machine, sizeof location->machine);
        location[victim].process = child;
        tr_comm_find_hosts(&comm[finder]);
        stopped[victim] = true;
        pass(size, 0.5);
        for (int r = 0; r < size; r++) assert_int_equal(count(size, r, TR_COMM_DEAD), 0);
        assert_int_equal(kill(child, SIGKILL), 0);
        siginfo_t facts;
        assert_int_equal(waitid(P_PID, (id_t)child, &facts, WEXITED | WNOWAIT), 0);
        pass(size, 0.25 * (log_of(size) + 1));
        for (int r = 0; r < size; r++) {
            assert_int_equal(count(size, r, TR_COMM_DEAD), r == victim ? size - 1 : 0);
            if (r != victim) assert_int_equal(tr_heartbeat_changes(heartbeat[r]), 1);
            if (r != victim) assert_int_equal(tr_heartbeat_first_to_give_up(heartbeat[r]), -1);
        }
        waitpid(child, NULL, 0);
        end(size);
    }
    patience = 0;
}

/* Many that end at once, more than a message names, are known to all after some. */
static void test_many_die(void **state)
{
    enum { SIZE = 48, VICTIMS = 20 };
    (void)state;
    patience = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    while (child == 0) pause();
    begin(SIZE);
    struct tr_location *location = comm[0].location;
    for (int r = 1; r <= VICTIMS; r++) {
        memcpy(location[r].machine, location[0].machine, sizeof location->machine);
        location[r].process = child;
        stopped[r] = true;
    }
    tr_comm_find_hosts(&comm[0]);
    pass(SIZE, 0.5);
    for (int r = 0; r < SIZE; r++) assert_int_equal(count(SIZE, r, TR_COMM_DEAD), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    pass(SIZE, 3 * BEAT + log_of(SIZE) * BEAT);
    for (int r = 0; r < SIZE; r++) {
        bool victim = r >= 1 && r <= VICTIMS;
        assert_int_equal(count(SIZE, r, TR_COMM_DEAD), victim ? SIZE - VICTIMS : 0);
        if (!victim) assert_int_equal(tr_heartbeat_changes(heartbeat[r]), VICTIMS);
    }
    end(SIZE);
    patience = 0;
}

/* A rank beats and is heard at once; then nobody looks for some time. */
static double silence_after(double seconds)
{
    double silence;
    begin(2);
    pass(2, 2 * BEAT);
    for (double until = now + BEAT; now < until; now += 0.25) {
        calling = 1;
        tr_heartbeat_beat(heartbeat[1], now + 0.25);
        calling = 0;
        tr_heartbeat_beat(heartbeat[0], now + 0.25);
    }
    tr_heartbeat_life(heartbeat[0], 1, &silence, NULL, 0);
    double before = silence;
    now += seconds;
    tr_heartbeat_beat(heartbeat[0], now);
    tr_heartbeat_life(heartbeat[0], 1, &silence, NULL, 0);
    end(2);
    return silence - before;
}

/* Of the time in which a process did not run itself it accuses nobody, but for three beats that may be
 * missing. */
static void test_pauses(void **state)
{
    (void)state;
    static const double pauses[][2] = {{1, 1}, {5, 5}, {5.75, 5.75}, {6.25, 6}, {50, 6}, {1e6, 6}};
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        double silence = silence_after(pauses[i][0]);
        if (silence < pauses[i][1] - 1e-3 || silence > pauses[i][1] + 1e-3)
            fail_msg("after a pause of %g s the other one is silent for %g s", pauses[i][0], silence);
    }
}

/* Where MPI fails for a pair only silence tells; nothing more is sent there, and what MPI may use stays. In a
   process of its own, whose memory is not looked at. */
static int fails_for = -1; /* the rank of which no test is done */

static enum tr_mpi_result failing_test(tr_mpi_request **handle, char *message, size_t size)
{
    if ((*handle)->from == fails_for || (*handle)->to == fails_for) return TR_MPI_FAILED;
    return test(handle, message, size);
}

static int be_deaf(void)
{
    static struct tr_mpi_module failing;
    double silence;
    char why[64];
    failing = module;
    failing.test = failing_test;
    struct tr_comm_settings settings = {.timeout = TIMEOUT, .patience = TIMEOUT};
    for (int r = 0; r < 3; r++) {
        calling = r;
        if (tr_comm_prepare(&comm[r], &no_class, r, 3, &settings) != TR_OK) return 2;
        if (tr_heartbeat_create(&comm[r], &failing, &heartbeat[r]) != TR_OK) return 3;
    }
    now = tr_clock_seconds();
    pass(3, 2 * BEAT);
    fails_for = 1;
    pass(3, BEAT);
    memset(sent, 0, sizeof sent);
    pass(3, 3 * BEAT);
    if (tr_heartbeat_life(heartbeat[0], 1, &silence, why, sizeof why) != TR_COMM_ALIVE || silence < 3 * BEAT)
        return 4;
    if (tr_heartbeat_life(heartbeat[0], 2, &silence, why, sizeof why) != TR_COMM_ALIVE ||
        silence > 1.5 * BEAT)
        return 5;
    if (sent[1] != 0 || sent[0] < 3 || sent[0] > 4) return 6; /* to rank 2 alone */
    calling = 0;
    tr_heartbeat_destroy(&heartbeat[0]);
    return heartbeat[0] ? 7 : 0;
}

static void test_fails_for_a_pair(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(be_deaf());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A rank that is silent is so to all, whether they are its neighbours or not; once it is heard of again,
   nobody misses it for what was said before. */
static void test_silence(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int size = sizes[s], victim = size - 1;
        begin(size);
        pass(size, 2 * BEAT);
        stopped[victim] = true;
        pass(size, 0.8 * TIMEOUT);
        for (int r = 0; r < victim; r++) {
            double silence;
            tr_heartbeat_life(heartbeat[r], victim, &silence, NULL, 0);
            assert_true(silence <= TIMEOUT);
        }
        stopped[victim] = false;
        for (int turn = 0; turn < 20; turn++) {
            pass(size, 1);
            for (int r = 0; r < victim; r++) {
                double silence;
                tr_heartbeat_life(heartbeat[r], victim, &silence, NULL, 0);
                if (silence > TIMEOUT) fail_msg("%d ranks: rank %d misses one that is back", size, r);
            }
        }
        stopped[victim] = true;
        pass(size, TIMEOUT + 3 * BEAT + log_of(size) * BEAT);
        for (int r = 0; r < victim; r++) {
            double silence;
            tr_heartbeat_life(heartbeat[r], victim, &silence, NULL, 0);
            if (silence <= TIMEOUT)
                fail_msg("%d ranks: to rank %d, rank %d is silent for %g s only", size, r, victim, silence);
        }
        end(size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_gives_up_while_it_beats),
        cmocka_unit_test(test_dies),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_many_give_up),
        cmocka_unit_test(test_many_die),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_fails_for_a_pair),
    };
    return cmocka_run_group_tests_name("comm.heartbeat", tests, NULL, NULL);
}
