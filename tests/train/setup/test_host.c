/* What the ranks of a host take together: each what is its own, and the parameters once where they share
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/ranks.h"
#include "support/operations/shadow.h"

#include "job/job.h"
#include "train/loop/trainer.h"

enum { SIZE = 4 };
enum { TOGETHER, APART, IN_PAIRS }; /* as for run_ranks() */

static struct {
    int64_t own;   /* bytes that a rank says it keeps for the steps */
    int64_t taken; /* by its host, or by the device of it */
} seen[SIZE];
static int64_t arena; /* bytes of the parameters */

static void *look(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    rank->outcome.status = trainer_create(rank->settings, rank->comm, &trainer);
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_info(trainer, &info);
    if (rank->outcome.status == TR_OK) {
        seen[info.rank].own = info.memory;
        seen[info.rank].taken = trainer_memory(trainer)->ranks + trainer_memory(trainer)->device;
        if (info.rank == 0) arena = trainer_job(trainer)->model->arena_floats * (int64_t)sizeof(float);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void look_at(const char *strategy, const char *device, const char *holder, int apart)
{
    struct rank ranks[RANKS];
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=7");
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    job.settings.device = device;
    job.settings.parameters_on = holder;
    run_ranks_by(look, &job.settings, SIZE, apart, ranks);
    expect_well(ranks, SIZE, strategy);
}

/* Of `count` ranks of a host, which have `saved` copies of the parameters less than one each. */
static void expect_sum(const char *what, int first, int count, int64_t evaluations, int saved)
{
    int64_t sum = count * evaluations - saved * arena;
    for (int r = first; r < first + count; r++) sum += seen[r].own;
    for (int r = first; r < first + count; r++)
        if (seen[r].taken != sum)
            fail_msg("%s: rank %d says that its host gives %lld bytes, expected are %lld", what, r,
                     (long long)seen[r].taken, (long long)sum);
}

static void expect_by(const char *strategy, const char *device, const char *holder, bool shares,
                      bool evaluates)
{
    look_at(strategy, device, holder, APART);
    const int64_t evaluations = seen[0].taken - seen[0].own;
    if (evaluates)
        assert_true(evaluations > 0); /* passes over the test set */
    else
        assert_int_equal(evaluations, 0);
    for (int r = 0; r < SIZE; r++) expect_sum(strategy, r, 1, evaluations, 0);
    look_at(strategy, device, holder, IN_PAIRS);
    for (int r = 0; r < SIZE; r += 2) expect_sum(strategy, r, 2, evaluations, shares);
    look_at(strategy, device, holder, TOGETHER);
    expect_sum(strategy, 0, SIZE, evaluations, shares ? SIZE - 1 : 0);
}

static void ranks_share_the_parameters_of_a_host(void **state)
{
    (void)state;
    expect_by("allreduce", "cpu", NULL, true, true);
}

/* They differ until they meet. */
static void replicas_have_their_own(void **state)
{
    (void)state;
    expect_by("local-sgd,replicas=4", "cpu", NULL, false, true);
    expect_by("gossip,replicas=4", "cpu", NULL, false, true);
}

static void parts_are_no_copies(void **state)
{
    (void)state;
    expect_by("pipeline", "cpu", NULL, false, false);
    expect_by("parameter-server", "cpu", NULL, false, false);
}

/* What lies there is each rank's; the host has what it holds itself. */
static void devices_with_memory_share_nothing(void **state)
{
    (void)state;
    shadow_memory = (int64_t)1 << 40;
    expect_by("allreduce", "shadow", NULL, false, true);
    expect_by("allreduce", "shadow", "cpu", true, true);
    shadow_memory = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_the_parameters_of_a_host),
        cmocka_unit_test(replicas_have_their_own),
        cmocka_unit_test(parts_are_no_copies),
        cmocka_unit_test(devices_with_memory_share_nothing),
    };
    return cmocka_run_group_tests_name("train.host", tests, family_place_make, family_place_remove);
}
