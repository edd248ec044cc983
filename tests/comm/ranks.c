#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "support/comm_thread/thread.h"

#include <pthread.h>
#include <stdio.h>

struct rank {
    tr_comm *comm;
    scenario_function run;
    char wrong[1600];
};

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    const char *wrong = rank->run(rank->comm);
    snprintf(rank->wrong, sizeof rank->wrong, "%s", wrong ? wrong : "");
    if (wrong) tr_comm_abort(rank->comm, wrong); /* or the others would wait for it */
    tr_comm_destroy(&rank->comm);
    return NULL;
}

void ranks_run(int size, const int *host, const struct tr_comm_settings *settings, scenario_function run)
{
    ranks_run_made(tr_comm_thread_create, size, host, settings, run);
}

void ranks_run_made(ranks_maker make, int size, const int *host, const struct tr_comm_settings *settings,
                    scenario_function run)
{
    struct rank rank[RANKS_MOST] = {{0}};
    pthread_t thread[RANKS_MOST];
    tr_comm *comm[RANKS_MOST];
    assert_true(size <= RANKS_MOST);
    assert_int_equal(make(size, host, settings, comm), TR_OK);
    for (int i = 0; i < size; i++) {
        rank[i].comm = comm[i];
        rank[i].run = run;
        assert_int_equal(pthread_create(&thread[i], NULL, rank_main, &rank[i]), 0);
    }
    for (int i = 0; i < size; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < size; i++)
        if (rank[i].wrong[0]) fail_msg("rank %d of %d: %s", i, size, rank[i].wrong);
}
