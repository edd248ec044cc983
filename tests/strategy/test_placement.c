/* What each rank does is told as it is: all microbatches, layers and numbers of the network are somebody's,
 * once.
 */
#include "support/ranks.h"

#include "strategy/strategy.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BATCHES 5

static struct {
    struct tr_placement rank[RANKS][RANKS]; /* of the second one, as the first one tells it */
    int64_t floats, parameters;
    int layers;
} told;

static void *tell(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    int me = tr_comm_rank(rank->comm), size = tr_comm_size(rank->comm);
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    for (int r = 0; r < size; r++) tr_strategy_placement(trainer_strategy(trainer), r, &told.rank[me][r]);
    if (me == 0) {
        told.floats = trainer_job(trainer)->model->arena_floats;
        told.parameters = trainer_job(trainer)->model->parameter_total;
        told.layers = trainer_job(trainer)->model->layer_count;
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Has the ranks tell; all must say the same. */
static const struct tr_placement *hear(const char *strategy, int size)
{
    struct rank ranks[RANKS];
    struct job job;
    family_job(&job, &families[family_count - 1], family_place);
    job_set(&job, "train.microbatches=5");
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    memset(&told, 0, sizeof told);
    run_ranks_by(tell, &job.settings, size, 0, ranks);
    for (int me = 0; me < size; me++)
        for (int r = 0; r < size; r++) {
            const struct tr_placement *first = &told.rank[0][r], *other = &told.rank[me][r];
            assert_string_equal(other->role, first->role);
            assert_int_equal(other->first_update, first->first_update);
            assert_int_equal(other->end_update, first->end_update);
            assert_int_equal(other->updates, first->updates);
            assert_int_equal(other->first_microbatch, first->first_microbatch);
            assert_int_equal(other->end_microbatch, first->end_microbatch);
            assert_int_equal(other->parameters, first->parameters);
        }
    return told.rank[0];
}
/* Each microbatch passes each layer on one rank. */
static void expect_all_computed(const struct tr_placement *rank, int size)
{
    for (int layer = 0; layer < told.layers; layer++)
        for (int64_t batch = 0; batch < BATCHES; batch++) {
            int computed = 0;
            for (int r = 0; r < size; r++)
                computed += layer >= rank[r].first_layer && layer < rank[r].end_layer &&
                            batch >= rank[r].first_microbatch && batch < rank[r].end_microbatch;
            if (computed != 1) fail_msg("layer %d of microbatch %d on %d ranks", layer, (int)batch, computed);
        }
}

/* Each number is updated on one rank; `scattered`: which are whose is not told, only how many. */
static void expect_all_updated(const struct tr_placement *rank, int size, bool scattered)
{
    int64_t updates = 0;
    for (int r = 0; r < size; r++) {
        updates += rank[r].updates;
        if (scattered) {
            assert_int_equal(rank[r].first_update, -1);
            assert_int_equal(rank[r].end_update, -1);
        } else {
            assert_int_equal(rank[r].end_update - rank[r].first_update, rank[r].updates);
        }
    }
    assert_int_equal(updates, told.floats);
    for (int64_t i = 0; i < told.floats && !scattered; i++) {
        int updated = 0;
        for (int r = 0; r < size; r++) updated += i >= rank[r].first_update && i < rank[r].end_update;
        if (updated != 1) fail_msg("number %d is updated by %d ranks", (int)i, updated);
    }
}

static void workers_divide_it(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++)
        for (int few = 0; few < 2; few++) {
            const struct tr_placement *rank = hear(few ? "allreduce" : "allreduce,bucket=0.004", size);
            expect_all_computed(rank, size);
            expect_all_updated(rank, size, !few);
            for (int r = 0; r < size; r++) {
                assert_string_equal(rank[r].role, "worker");
                assert_int_equal(rank[r].parameters, told.parameters);
                assert_true(rank[r].updates > 0);
            }
        }
}

static void servers_update(void **state)
{
    (void)state;
    const struct tr_placement *rank = hear("parameter-server,mode=sync,servers=2", 4);
    expect_all_computed(rank, 4);
    expect_all_updated(rank, 4, false);
    for (int r = 0; r < 4; r++) {
        assert_string_equal(rank[r].role, r < 2 ? "worker" : "server");
        assert_int_equal(rank[r].updates > 0, r >= 2);
        assert_int_equal(rank[r].end_microbatch > rank[r].first_microbatch, r < 2);
    }
}

/* Each worker computes whole steps. */
static void asynchronous_servers_update(void **state)
{
    (void)state;
    const struct tr_placement *rank = hear("parameter-server,mode=async,servers=2", 4);
    expect_all_updated(rank, 4, false);
    for (int r = 0; r < 4; r++) {
        assert_string_equal(rank[r].role, r < 2 ? "worker" : "server");
        assert_int_equal(rank[r].updates > 0, r >= 2);
        assert_int_equal(rank[r].end_microbatch - rank[r].first_microbatch, r < 2 ? BATCHES : 0);
        assert_int_equal(rank[r].end_layer - rank[r].first_layer, r < 2 ? told.layers : 0);
    }
}

static void stages_have_layers(void **state)
{
    static const struct {
        const char *strategy;
        int stages, size;
    } grids[] = {{"pipeline,stages=2", 2, 2}, {"pipeline,stages=3", 3, 3}, {"pipeline,stages=2", 2, 4}};
    (void)state;
    for (int g = 0; g < 3; g++) {
        int size = grids[g].size;
        int64_t parameters = 0;
        const struct tr_placement *rank = hear(grids[g].strategy, size);
        expect_all_computed(rank, size);
        expect_all_updated(rank, size, false);
        for (int r = 0; r < size; r++) {
            assert_string_equal(rank[r].role, "stage");
            assert_true(rank[r].confined);
            parameters += rank[r].parameters;
        }
        assert_int_equal(parameters, told.parameters * (size / grids[g].stages));
    }
}

/* Three replicas on two ranks. */
static void replicas_update_all_of_theirs(void **state)
{
    (void)state;
    const struct tr_placement *rank = hear("local-sgd,replicas=3,every=2", 2);
    expect_all_computed(rank, 2);
    for (int r = 0; r < 2; r++) {
        assert_string_equal(rank[r].role, "worker");
        assert_int_equal(rank[r].first_update, 0);
        assert_int_equal(rank[r].end_update, told.floats);
        assert_int_equal(rank[r].parameters, told.parameters);
    }
    assert_int_equal(rank[0].updates + rank[1].updates, 3 * told.floats);
    assert_int_equal(rank[0].updates % told.floats, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_divide_it),
        cmocka_unit_test(servers_update),
        cmocka_unit_test(asynchronous_servers_update),
        cmocka_unit_test(stages_have_layers),
        cmocka_unit_test(replicas_update_all_of_theirs),
    };
    return cmocka_run_group_tests_name("strategy.placement", tests, family_place_make, family_place_remove);
}
