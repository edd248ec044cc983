/* Windows where memory cannot be shared or mapped: every rank learns which one failed and why, nothing is
 * left, and the ranks work without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/class.h"
#include "comm/ranks.h"
#include "support/comm_thread/thread.h"

#include <stdatomic.h>
#include <string.h>

static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};

/* The transport of a rank whose slots fail, and which counts what it has mapped. */
static _Thread_local const struct tr_comm_class *real;
static _Thread_local struct tr_comm_class own;
static _Thread_local bool fails_to_share, fails_to_map;
static atomic_int mapped;

static tr_status share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                       char key[TR_SHARE_KEY])
{
    if (fails_to_share) return tr_fail(TR_ENOMEM, "no room for %zu bytes", bytes);
    tr_status status = real->share_memory(comm, bytes, begin, end, memory, key);
    mapped += status == TR_OK;
    return status;
}

static tr_status map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    if (fails_to_map) return tr_fail(TR_EIO, "the memory of another is gone");
    tr_status status = real->map(comm, bytes, key, memory);
    mapped += status == TR_OK;
    return status;
}

static void unmap(tr_comm *comm, size_t bytes, void *memory)
{
    mapped--;
    real->unmap(comm, bytes, memory);
}

static void take_over(tr_comm *comm)
{
    real = comm->class;
    own = *real;
    own.share_memory = share;
    own.map = map;
    own.unmap = unmap;
    comm->class = &own;
    fails_to_share = fails_to_map = false;
}

static const char *meet(tr_comm *comm)
{
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    return NULL;
}

static const char *expect_none(tr_comm *comm, size_t bytes, const char *message)
{
    tr_window *window = (tr_window *)&window;
    CHECK(tr_window_create(comm, bytes, &window) == TR_EUNSUPPORTED && !window);
    if (strcmp(tr_error_message(), message) != 0) {
        snprintf(check_text(), 1600, "\"%s\" is not \"%s\"", tr_error_message(), message);
        return check_text();
    }
    CHECK_RUN(meet(comm));
    CHECK(mapped == 0);
    return meet(comm);
}

static const char *fail_somewhere(tr_comm *comm)
{
    int me = tr_comm_rank(comm);
    take_over(comm);
    fails_to_share = me == 2;
    CHECK_RUN(
        expect_none(comm, 100 + (size_t)me,
                    "memory shared by the ranks of a host: rank 2 on host thread-host-0: no room for 102 "
                    "bytes"));
    /* The first one is named. */
    fails_to_share = me > 0;
    CHECK_RUN(expect_none(comm, 7,
                          "memory shared by the ranks of a host: rank 1 on host thread-host-0: no room for "
                          "7 bytes"));
    fails_to_share = false;
    fails_to_map = me == 1;
    CHECK_RUN(expect_none(comm, 100,
                          "memory shared by the ranks of a host: rank 1 on host thread-host-0: the memory "
                          "of another is gone"));
    fails_to_map = false;
    own.share_memory = NULL;
    tr_window *window = (tr_window *)&window;
    CHECK(tr_window_create(comm, 100, &window) == TR_EUNSUPPORTED && !window);
    CHECK(strcmp(tr_error_message(), "ranks of \"thread\" cannot share memory; work without") == 0);
    own.share_memory = share;
    /* And then there is one; who has nothing is asked for nothing. */
    size_t bytes = 1;
    CHECK_OK(tr_window_create(comm, me == 1 ? 0 : 64, &window));
    CHECK(!tr_window_segment(window, 1, &bytes) && bytes == 0);
    CHECK(tr_window_segment(window, 2, &bytes) && bytes == 64);
    CHECK_RUN(meet(comm));
    CHECK(mapped == 2 * 3);
    CHECK_RUN(meet(comm));
    char *memory = tr_window_segment(window, 0, NULL);
    CHECK(tr_window_holds(window, memory, 64) && tr_window_holds(window, memory + 63, 1));
    CHECK(tr_window_holds(window, memory, 0) && tr_window_holds(window, memory + 64, 0));
    CHECK(!tr_window_holds(window, memory, 65) && !tr_window_holds(window, memory + 1, 64));
    CHECK(!tr_window_holds(window, memory - 1, 2) && !tr_window_holds(window, &bytes, 1));
    tr_window_destroy(&window);
    CHECK(!window);
    tr_window_destroy(&window);
    CHECK_RUN(meet(comm));
    CHECK(mapped == 0);
    return meet(comm);
}

static void who_fails_is_named(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    ranks_run(3, NULL, &settings, fail_somewhere);
    assert_int_equal(tr_alloc_live(), live);
}

/* Other hosts hear of it, too, but map nothing. */
static const char *fail_elsewhere(tr_comm *comm)
{
    int me = tr_comm_rank(comm);
    tr_window *window;
    take_over(comm);
    fails_to_map = me == 3;
    CHECK_RUN(expect_none(comm, 100,
                          "memory shared by the ranks of a host: rank 3 on host thread-host-1: the memory "
                          "of another is gone"));
    fails_to_map = false;
    CHECK_OK(tr_window_create(comm, 100, &window));
    CHECK_RUN(meet(comm));
    CHECK(mapped == 4 * 2);
    CHECK_RUN(meet(comm));
    tr_window_destroy(&window);
    return meet(comm);
}

static void hosts_fail_together(void **state)
{
    static const int host[] = {0, 0, 1, 1};
    (void)state;
    ranks_run(4, host, &settings, fail_elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_fails_is_named),
        cmocka_unit_test(hosts_fail_together),
    };
    return cmocka_run_group_tests_name("comm.windows", tests, NULL, NULL);
}
