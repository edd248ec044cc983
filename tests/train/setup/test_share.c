/* Ranks of a host have one copy of the data; ranks of different hosts have their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "support/comm_thread/thread.h"
#include "support/ranks.h"

#include "base/fail.h"
#include "base/files/mapped.h"
#include "train/loop/trainer.h"
#include "train/setup/share.h"

/* What a rank sees of its training data. */
struct seen {
    bool shared;
    uint64_t inode; /* of the memory that they lie in */
};

/* The inode of the mapping at an address, as the kernel lists it; 0 where there is none. */
static uint64_t inode_at(const void *address)
{
    char line[512];
    unsigned long long inode = 0, begin, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (inode == 0 && fgets(line, sizeof line, maps)) {
        unsigned long long found;
        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &begin, &end, &found) != 3) continue;
        if ((uintptr_t)address >= begin && (uintptr_t)address < end) inode = found;
    }
    fclose(maps);
    return inode;
}

static void *look(void *user)
{
    struct rank *rank = user;
    struct seen *seen = &((struct seen *)rank->user)[tr_comm_rank(rank->comm)];
    tr_trainer *trainer = NULL;
    tr_ticket *ticket = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        const tr_source *source = trainer_job(trainer)->source[TR_SET_TRAIN];
        seen->shared = tr_mapped_at(source->resident) != NULL;
        seen->inode = inode_at(source->resident);
        rank->outcome.status = tr_comm_barrier(rank->comm, &ticket); /* all look while all are there */
        if (rank->outcome.status == TR_OK) rank->outcome.status = tr_comm_wait(rank->comm, &ticket);
    }
    if (rank->outcome.status != TR_OK) {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void run(const struct job *job, bool apart, struct seen seen[RANKS])
{
    struct rank ranks[RANKS] = {{0}};
    for (int r = 0; r < RANKS; r++) ranks[r].user = seen;
    memset(seen, 0, RANKS * sizeof *seen);
    run_ranks_by(look, &job->settings, RANKS, apart, ranks);
    expect_well(ranks, RANKS, apart ? "apart" : "together");
}

static void ranks_of_a_host_have_one_copy(void **state)
{
    (void)state;
    struct job job;
    struct seen seen[RANKS];
    char cache[SCRATCH_PATH];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=8");
    job_set(&job, "train.steps=2");
    job.settings.set = job.set;
    scratch_join(cache, family_place, "cache");
    for (int with_cache = 0; with_cache < 2; with_cache++) {
        job.settings.data_cache = with_cache ? cache : NULL;
        run(&job, false, seen);
        for (int r = 0; r < RANKS; r++) {
            assert_true(seen[r].shared);
            assert_true(seen[r].inode != 0);
            assert_true(seen[r].inode == seen[0].inode);
        }
    }
    job.settings.data_cache = NULL;
    run(&job, true, seen);
    for (int r = 0; r < RANKS; r++) assert_false(seen[r].shared);
}

/* A rank that finds another gone says so at once. */
static void who_is_gone_is_told(void **state)
{
    (void)state;
    const struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    const int host[2] = {0, 0};
    tr_comm *comm[2];
    tr_store *store;
    must_train(tr_comm_thread_create(2, host, &patience, comm));
    must_train(tr_store_create(NULL, NULL, 0, &store));
    tr_comm_abort(comm[1], "no more data");
    assert_int_equal(tr_train_share_store(comm[0], 1, store), TR_EPEER);
    assert_non_null(strstr(tr_error_message(), "no more data"));
    tr_store_destroy(&store);
    for (int r = 0; r < 2; r++) tr_comm_destroy(&comm[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_host_have_one_copy),
        cmocka_unit_test(who_is_gone_is_told),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
