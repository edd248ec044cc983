/* The transport under a stand-in for MPI: a world of one rank, or of two whose other one sends back what is
 * sent to it. What becomes of an MPI that fails, hangs, or reports messages of another size; and how both
 * ends are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/module.h"
#include "base/text/log.h"
#include "base/threads/clock.h"
#include "comm/class.h"
#include "comm/mpi/module.h"
#include "comm/mpi/mpi.h"
#include "refuse.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the stand-in ---- */

struct tr_mpi_request {
    int sends, tag;
    void *data;
    size_t bytes;
};

/* What was sent to the other rank, which comes back; oldest first. */
struct echo {
    struct echo *next;
    int tag;
    size_t bytes;
    char data[];
};

static struct echo *echoes;
static int world; /* ranks */
static atomic_int opens, closes, withdrawals;
static atomic_bool hangs;                      /* `open` and `close` do not return */
static bool has_no_module, cannot_open, keeps; /* `keeps`: receives cannot be withdrawn */
static size_t last_chunk;
/* The result of the next message that is no sign of life, when it is started or tested. */
static enum tr_mpi_result at_start, at_test;

static void wait_while_it_hangs(void)
{
    while (hangs) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static enum tr_mpi_result open_world(int *rank, int *ranks, char *message, size_t size)
{
    opens++;
    wait_while_it_hangs();
    *rank = 0;
    *ranks = world;
    if (!cannot_open) return TR_MPI_OK;
    snprintf(message, size, "MPI is out of order");
    return TR_MPI_FAILED;
}

static void close_world(void)
{
    closes++;
    wait_while_it_hangs();
}

static enum tr_mpi_result fail_once(enum tr_mpi_result *result, int tag, char *message, size_t size)
{
    enum tr_mpi_result now = TR_MPI_OK;
    bool is_sign_of_life = tag >= TR_COMM_TAG_TRANSPORT && tag < TR_COMM_TAG_SUBGROUPS;
    if (!is_sign_of_life) now = *result, *result = TR_MPI_OK;
    if (now != TR_MPI_OK) snprintf(message, size, "what MPI says");
    return now;
}

static enum tr_mpi_result start(int sends, int peer, int tag, void *data, size_t bytes, size_t chunk,
                                tr_mpi_request **out, char *message, size_t size)
{
    assert_int_equal(peer, 1);
    assert_true(tag >= 0 && tag < TR_MPI_TAGS);
    *out = NULL;
    last_chunk = chunk;
    enum tr_mpi_result result = fail_once(&at_start, tag, message, size);
    if (result != TR_MPI_OK) return result;
    *out = malloc(sizeof **out);
    assert_non_null(*out);
    **out = (struct tr_mpi_request){sends, tag, data, bytes};
    if (!sends) return TR_MPI_OK;
    struct echo *echo = malloc(sizeof *echo + bytes), **at = &echoes;
    assert_non_null(echo);
    *echo = (struct echo){.tag = tag, .bytes = bytes};
    if (bytes > 0) memcpy(echo->data, data, bytes);
    while (*at) at = &(*at)->next;
    *at = echo;
    return TR_MPI_OK;
}

static enum tr_mpi_result test(tr_mpi_request **handle, char *message, size_t size)
{
    tr_mpi_request *request = *handle;
    struct echo **at = &echoes;
    enum tr_mpi_result result = fail_once(&at_test, request->tag, message, size);
    if (result != TR_MPI_OK) return result;
    while (!request->sends && *at && (*at)->tag != request->tag) at = &(*at)->next;
    if (!request->sends && !*at) return TR_MPI_OK;
    if (!request->sends) {
        struct echo *echo = *at;
        assert_int_equal(echo->bytes, request->bytes);
        if (echo->bytes > 0) memcpy(request->data, echo->data, echo->bytes);
        *at = echo->next;
        free(echo);
    }
    free(request);
    *handle = NULL;
    return TR_MPI_OK;
}

static int withdraw(tr_mpi_request **handle)
{
    withdrawals++;
    if (keeps) return 0;
    free(*handle);
    *handle = NULL;
    return 1;
}

static const struct tr_mpi_module module = {.version = TR_MPI_VERSION,
                                            .open = open_world,
                                            .start = start,
                                            .test = test,
                                            .withdraw = withdraw,
                                            .close = close_world};

tr_status __wrap_tr_module_load(const struct tr_module *wanted, const void **out);

tr_status __wrap_tr_module_load(const struct tr_module *wanted, const void **out)
{
    assert_string_equal(wanted->file, "trireme-mpi.so");
    assert_string_equal(wanted->symbol, TR_MPI_SYMBOL);
    assert_int_equal(wanted->version, TR_MPI_VERSION);
    *out = &module;
    return has_no_module ? tr_fail(TR_EUNSUPPORTED, "there is none") : TR_OK;
}

/* ---- tests ---- */

static atomic_int stop;
static struct tr_comm_settings settings;
static tr_comm *comm;

static int begin(void **state)
{
    (void)state;
    settings = (struct tr_comm_settings){.timeout = 30, .patience = 30};
    stop = opens = closes = withdrawals = 0;
    hangs = has_no_module = cannot_open = keeps = false;
    at_start = at_test = TR_MPI_OK;
    return 0;
}

static void forget_echoes(void)
{
    while (echoes) {
        struct echo *echo = echoes;
        echoes = echo->next;
        free(echo);
    }
}

static void join(int ranks)
{
    world = ranks;
    assert_int_equal(tr_comm_mpi_create(&settings, &comm), TR_OK);
}

/* For what abandons memory that MPI may use, or threads: in a process of its own, which ends with 0. */
static void expect_apart(int (*function)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(function());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static double ticking;

/* A clock by which every look takes so long. */
static double tick(void *seconds)
{
    return ticking += *(const double *)seconds;
}

/* Not before it must: whatever is wrong before keeps others from waiting for this rank. */
static void mpi_is_begun_last(void **state)
{
    (void)state;
    settings.timeout = 0;
    comm = (tr_comm *)&settings;
    assert_int_equal(tr_comm_mpi_create(&settings, &comm), TR_EINVAL);
    assert_null(comm);
    settings.timeout = 1;
    has_no_module = true;
    comm = (tr_comm *)&settings;
    assert_int_equal(tr_comm_mpi_create(&settings, &comm), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "there is none");
    assert_null(comm);
    assert_int_equal(tr_comm_mpi_check(), TR_EUNSUPPORTED);
    has_no_module = false;
    assert_int_equal(tr_comm_mpi_check(), TR_OK);
    assert_int_equal(opens, 0);
}

static void an_mpi_that_fails_says_why(void **state)
{
    const int64_t live = tr_alloc_live();
    (void)state;
    cannot_open = true;
    comm = (tr_comm *)&settings;
    assert_int_equal(tr_comm_mpi_create(&settings, &comm), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "MPI is out of order");
    assert_null(comm);
    assert_int_equal(closes, 0);
    assert_int_equal(tr_alloc_live(), live);
}

static void a_world_begins_and_ends(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        const int64_t live = tr_alloc_live();
        begin(NULL);
        join(ranks);
        assert_string_equal(tr_comm_name(comm), "mpi");
        assert_int_equal(tr_comm_rank(comm), 0);
        assert_int_equal(tr_comm_size(comm), ranks);
        assert_int_equal(tr_comm_hosts(comm), 1); /* the echo of this one is where this one is */
        assert_int_equal(tr_comm_local_size(comm), ranks);
        char host[64] = "";
        assert_int_equal(gethostname(host, sizeof host - 1), 0);
        for (int r = 0; r < ranks; r++) assert_string_equal(tr_comm_host(comm, r), host);
        assert_int_equal(closes, 0);
        tr_comm_destroy(&comm);
        assert_null(comm);
        assert_int_equal(opens, 1);
        assert_int_equal(closes, 1);
        assert_int_equal(tr_alloc_live(), live);
        forget_echoes();
    }
}

/* ---- messages ---- */

static void messages_come_and_go(void **state)
{
    static char sent[] = "to the other", got[sizeof sent];
    tr_ticket *ticket, *other;
    (void)state;
    join(2);
    assert_int_equal(tr_comm_receive(comm, 1, 5, got, sizeof got, NULL, &ticket), TR_OK);
    assert_int_equal(last_chunk, 1 << 30);
    tr_comm_mpi_set_chunk(comm, INT_MAX);
    assert_int_equal(tr_comm_send(comm, 1, 5, sent, sizeof sent, NULL, &other), TR_OK);
    assert_int_equal(last_chunk, INT_MAX);
    assert_int_equal(tr_comm_wait(comm, &other), TR_OK);
    assert_int_equal(tr_comm_wait(comm, &ticket), TR_OK);
    assert_string_equal(got, sent);
    /* A receive is taken back, where MPI lets it. */
    assert_int_equal(tr_comm_receive(comm, 1, 6, got, sizeof got, NULL, &ticket), TR_OK);
    assert_true(tr_comm_cancel(comm, &ticket));
    assert_int_equal(withdrawals, 1);
    assert_int_equal(tr_comm_progress(comm), TR_OK);
    tr_comm_destroy(&comm);
    forget_echoes();
}

static int keep_a_receive(void)
{
    static char got[8];
    tr_ticket *ticket;
    join(2);
    keeps = true;
    if (tr_comm_receive(comm, 1, 6, got, sizeof got, NULL, &ticket) != TR_OK) return 2;
    if (tr_comm_cancel(comm, &ticket) || ticket || withdrawals != 1) return 3;
    return tr_comm_progress(comm) == TR_OK ? 0 : 4;
}

static void what_mpi_keeps_stays(void **state)
{
    (void)state;
    expect_apart(keep_a_receive);
}

/* How a message fails: as it is started, or later. */
static const struct {
    enum tr_mpi_result result;
    tr_status status;
    const char *message[2]; /* of a send, and of a receive */
} failures[] = {
    {TR_MPI_NO_MEMORY, TR_ENOMEM, {"out of memory for a message", "out of memory for a message"}},
    {TR_MPI_WRONG_SIZE,
     TR_EMISMATCH,
     {NULL,
      "the message from rank 1 has the wrong size: what MPI says; all ranks must run the same program on "
      "the same job"}},
    {TR_MPI_FAILED, TR_EPEER, {"message to rank 1: what MPI says", "message from rank 1: what MPI says"}},
};
static int failure, receives, late;

static int fail_message(void)
{
    static char byte;
    tr_ticket *ticket = NULL;
    const char *said = failures[failure].message[receives];
    join(2);
    *(late ? &at_test : &at_start) = failures[failure].result;
    tr_status status = receives ? tr_comm_receive(comm, 1, 5, &byte, 1, NULL, &ticket)
                                : tr_comm_send(comm, 1, 5, &byte, 1, NULL, &ticket);
    if (status != failures[failure].status) return 2;
    const char *at = strstr(tr_error_message(), said);
    if (!at || strcmp(at, said) != 0) {
        fprintf(stderr, "\"%s\" does not end with \"%s\"\n", tr_error_message(), said);
        return 3;
    }
    if (ticket || tr_comm_progress(comm) == TR_OK) return 4;
    /* An end that is not clean: MPI is not closed, which would wait for the others. */
    tr_comm_destroy(&comm);
    return closes == 0 && !comm ? 0 : 5;
}

static void failures_are_told(void **state)
{
    (void)state;
    for (failure = 0; failure < 3; failure++)
        for (int i = 0; i < 4; i++) {
            receives = i & 1;
            late = i >> 1;
            if (failures[failure].message[receives]) expect_apart(fail_message);
        }
}

/* ---- an MPI that hangs ---- */

/* Survivors go on after the loss of others: there such a failure is the end of the message only, which is
   never done, and of which MPI may have a part. */
static int fail_among_survivors(void)
{
    static char byte;
    static uint32_t bits;
    tr_comm *crew = NULL;
    tr_ticket *ticket = NULL;
    join(2);
    /* Its echo is the other rank's wish to go on. */
    if (tr_comm_send(comm, 1, TR_COMM_TAG_MOST, &bits, sizeof bits, NULL, &ticket) != TR_OK) return 2;
    if (tr_comm_wait(comm, &ticket) != TR_OK) return 3;
    if (tr_comm_survivors(comm, &crew) != TR_OK || tr_comm_size(crew) != 2) return 4;
    *(late ? &at_test : &at_start) = TR_MPI_FAILED;
    tr_status status = receives ? tr_comm_receive(crew, 1, 5, &byte, 1, NULL, &ticket)
                                : tr_comm_send(crew, 1, 5, &byte, 1, NULL, &ticket);
    if (status != TR_OK || !ticket || tr_comm_is_done(crew, &ticket)) return 5;
    if (at_start != TR_MPI_OK || at_test != TR_MPI_OK) return 6;
    return !tr_comm_cancel(crew, &ticket) && tr_comm_progress(crew) == TR_OK ? 0 : 7;
}

static void failures_among_survivors_are_no_end(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        receives = i & 1;
        late = i >> 1;
        expect_apart(fail_among_survivors);
    }
}

static int begin_too_late(void)
{
    double each = 1;
    static const double limits[][2] = {{0.1, 10}, {10, 10}, {12.5, 12.5}};
    settings.stop = &stop; /* never set: so that it looks often */
    hangs = true;
    for (int i = 0; i < 3; i++) {
        char text[100];
        settings.timeout = limits[i][0];
        settings.patience = 100;
        tr_clock_use(tick, &each);
        double began = ticking;
        if (tr_comm_mpi_create(&settings, &comm) != TR_EPEER || comm) return 2 + i;
        snprintf(text, sizeof text, "MPI did not begin within %g s; check that all ranks were started",
                 limits[i][1]);
        if (strcmp(tr_error_message(), text) != 0) return 5 + i;
        if (ticking - began < limits[i][1]) return 8 + i;
    }
    return 0;
}

static int stop_the_beginning(void)
{
    hangs = true;
    stop = 1;
    settings.stop = &stop;
    if (tr_comm_mpi_create(&settings, &comm) != TR_EINTERRUPTED || comm) return 2;
    return strcmp(tr_error_message(), "the wait for the other processes was ended by a stop") == 0 ? 0 : 3;
}

static char logged[200];

static void keep(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    if (level == TR_LOG_WARNING) snprintf(logged, sizeof logged, "%s", message);
}

static int end_too_late(void)
{
    double each = 9.99;
    settings.timeout = 3;
    settings.patience = 100;
    join(1);
    hangs = true;
    tr_log_set_sink(keep, NULL, TR_LOG_WARNING);
    tr_clock_use(tick, &each);
    tr_comm_destroy(&comm);
    if (comm || closes != 1) return 2;
    return strcmp(logged, "MPI did not end within 10 s; leaving without it") == 0 ? 0 : 3;
}

static void an_mpi_that_hangs_is_left(void **state)
{
    (void)state;
    expect_apart(begin_too_late);
    expect_apart(stop_the_beginning);
    expect_apart(end_too_late);
}

/* What other ranks may still use is not freed. */
static int give_up(void)
{
    join(2);
    tr_comm_abort(comm, "enough");
    tr_comm_destroy(&comm);
    return closes == 0 && withdrawals == 0 && !comm ? 0 : 2;
}

static int dissolve(void)
{
    join(2);
    tr_comm_dissolve(comm);
    tr_comm_destroy(&comm);
    return closes == 0 && withdrawals == 0 && !comm ? 0 : 2;
}

static void an_end_that_is_not_clean_waits_for_nobody(void **state)
{
    (void)state;
    expect_apart(give_up);
    expect_apart(dissolve);
}

static int be_without_memory(void)
{
    int failed = 0;
    world = 1;
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        tr_status status = tr_comm_mpi_create(&settings, &comm);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM) || (comm != NULL) != (status == TR_OK)) return 2;
        failed += !done;
    }
    tr_comm_destroy(&comm);
    return failed > 5 && closes == 1 ? 0 : 3;
}

static void memory_that_fails_is_told(void **state)
{
    (void)state;
    expect_apart(be_without_memory);
}

static void naps_grow(void **state)
{
    (void)state;
    static const double cases[][3] = {
        {0, 1, 20e-6},  {160e-6, 1, 20e-6}, {240e-6, 1, 30e-6}, {8e-3, 1, 1e-3},     {4e-3, 1, 0.5e-3},
        {100, 1, 1e-3}, {100, 5e-4, 5e-4},  {0, 1e-6, 1e-6},    {INFINITY, 1, 1e-3}, {INFINITY, 1e-3, 1e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double nap = tr_mpi_nap(cases[i][0], cases[i][1]);
        if (fabs(nap - cases[i][2]) > 1e-9)
            fail_msg("after %g s at most %g s: %g s", cases[i][0], cases[i][1], nap);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mpi_is_begun_last),
        TEST(an_mpi_that_fails_says_why),
        TEST(a_world_begins_and_ends),
        TEST(messages_come_and_go),
        TEST(what_mpi_keeps_stays),
        TEST(failures_are_told),
        TEST(failures_among_survivors_are_no_end),
        TEST(an_mpi_that_hangs_is_left),
        TEST(an_end_that_is_not_clean_waits_for_nobody),
        TEST(memory_that_fails_is_told),
        TEST(naps_grow),
    };
    return cmocka_run_group_tests_name("comm.mpi_stand_in", tests, NULL, NULL);
}
