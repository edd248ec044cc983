/* How ranks of a host share its processors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "base/fail.h"
#include "base/threads/team.h"
#include "train/setup/join.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static struct tr_train_settings settings; /* of all ranks */
static atomic_uint users[CPU_SETSIZE];    /* ranks that keep to a processor */
static atomic_int keepers;                /* ranks that keep to fewer processors than they had */

static const char *share(tr_comm *comm)
{
    cpu_set_t before, after;
    int threads = -1, each = tr_team_processors() / tr_comm_local_size(comm);
    sched_getaffinity(0, sizeof before, &before);
    if (tr_train_share_processors(comm, &settings, &threads) != TR_OK) return tr_error_message();
    sched_getaffinity(0, sizeof after, &after);
    if (settings.threads > 0 && threads != settings.threads) return "not the threads that were asked for";
    if (settings.threads == 0 && threads != (each > 0 ? each : 1)) return "not an even share of threads";
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &after)) continue;
        if (!CPU_ISSET(i, &before)) return "a processor that was not to be used";
        atomic_fetch_add(&users[i], 1);
    }
    if (CPU_COUNT(&after) < threads && each >= threads) return "fewer processors than threads";
    atomic_fetch_add(&keepers, !CPU_EQUAL(&before, &after));
    return NULL;
}

/* Returns how many ranks were tied, after checking that those have no processor in common. */
static int run(int size, const int *host, int threads, bool bind)
{
    settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings.threads = threads;
    settings.bind = bind;
    for (int i = 0; i < CPU_SETSIZE; i++) atomic_store(&users[i], 0);
    atomic_store(&keepers, 0);
    ranks_run(size, host, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, share);
    int tied = atomic_load(&keepers);
    for (int i = 0; i < CPU_SETSIZE; i++) assert_true(tied == 0 || atomic_load(&users[i]) <= 1);
    return tied;
}

static void processors_are_shared_out(void **state)
{
    (void)state;
    int processors = tr_team_processors();
    for (int size = 2; size <= 4; size++) {
        assert_int_equal(run(size, NULL, 0, true), size <= processors ? size : 0);
        assert_int_equal(run(size, NULL, 1, true), size <= processors ? size : 0);
        assert_int_equal(run(size, NULL, 0, false), 0);
    }
}

static void threads_that_do_not_fit_are_not_tied(void **state)
{
    (void)state;
    assert_int_equal(run(2, NULL, tr_team_processors() / 2 + 1, true), 0);
}

static void a_rank_alone_on_its_host_is_not_tied(void **state)
{
    (void)state;
    const int apart[] = {0, 1};
    assert_int_equal(run(2, apart, 0, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_are_shared_out),
        cmocka_unit_test(threads_that_do_not_fit_are_not_tied),
        cmocka_unit_test(a_rank_alone_on_its_host_is_not_tied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
