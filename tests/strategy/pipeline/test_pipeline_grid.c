/* Who gets which layers, microbatches and parameters, and how many microbatches flow together: the division
 * with the shortest step, by costs that are the test's own instead of measured ones.
 */
#include "strategy/numbers.h"
#include "strategy/pipeline/measure.h"
#include "strategy/pipeline/pipeline.h"
#include "support/ranks.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A layer and the activation behind it; any of them may begin a stage. */
#define LAYERS 6
#define SIZES  5 /* of units, at most: 1, 2, 4, ... */

static int make(void **state)
{
    scratch_place_make(state);
    numbers_write(40, "{dense: {units: 40, name: a}}, {dense: {units: 9, name: b}}, "
                      "{dense: {units: 12, name: c}}, {dense: {units: 33, name: d}}, "
                      "{dense: {units: 5, name: e}}, {dense: {units: 3, name: f}}");
    return 0;
}

/* ---- costs ---- */

static struct pipeline_cost table[SIZES][LAYERS]; /* of single layers, by the size of units */
static int64_t asked[2 * SIZES];                  /* sizes of units, one call after the other */
static int calls, ranges;
static int asked_bound[LAYERS + 1];

static int size_of(int64_t per_unit)
{
    int size = 0;
    while (size < SIZES - 1 && 1 << size < per_unit) size++;
    return size;
}

static struct pipeline_cost cost_of(int64_t per_unit, int first, int end)
{
    struct pipeline_cost sum = {0};
    for (int i = first; i < end; i++) {
        const struct pipeline_cost *layer = &table[size_of(per_unit)][i];
        sum.flow += layer->flow;
        sum.add += layer->add;
        sum.update += layer->update;
    }
    return sum;
}

tr_status __wrap_pipeline_measure(tr_strategy *strategy, int64_t per_unit, const int *bound, int count,
                                  struct pipeline_cost *cost);
tr_status __wrap_pipeline_measure(tr_strategy *strategy, int64_t per_unit, const int *bound, int count,
                                  struct pipeline_cost *cost)
{
    (void)strategy;
    assert_true(calls < 2 * SIZES && count <= LAYERS);
    asked[calls++] = per_unit;
    ranges = count;
    memcpy(asked_bound, bound, ((size_t)count + 1) * sizeof *bound);
    for (int k = 0; k < count; k++) cost[k] = cost_of(per_unit, bound[k], bound[k + 1]);
    return TR_OK;
}

/* Microseconds; larger units take longer. */
static struct pipeline_cost random_cost(int size, int flow, int more, int add, int update)
{
    return (struct pipeline_cost){1e-6 * ((1 << size) * (10 + rand() % flow) + more), 1e-6 * (rand() % add),
                                  1e-6 * (rand() % update)};
}

/* ---- the best division, by trying everything ---- */

/* Of units of a size: how long the slowest stage takes at the least, and a step of the divisions that have
   it, which may be several, at the most. */
struct best {
    double most, seconds;
};

struct wanted {
    int stages, replicas;
    int64_t most; /* microbatches of a replica */
    const int *named;
};

/* A stage computes all its units, adds their gradients and updates its share; the first unit comes through
   the other stages before or behind it. *most: of the slowest stage. */
static double seconds_of(const struct wanted *wanted, const int *layer, int64_t per_unit, double *most)
{
    double flows = 0, own = 0;
    double units = (double)((wanted->most + per_unit - 1) / per_unit);
    *most = 0;
    for (int s = 0; s < wanted->stages; s++) {
        struct pipeline_cost cost = cost_of(per_unit, layer[s], layer[s + 1]);
        double whole = units * cost.flow + (units - 1) * cost.add + cost.update / wanted->replicas;
        flows += cost.flow;
        if (whole > *most) own = cost.flow;
        if (whole > *most) *most = whole;
    }
    return *most + flows - own;
}

static void divide(const struct wanted *wanted, int64_t per_unit, int stage, int *layer, struct best *best)
{
    if (stage == wanted->stages) {
        double most, seconds = seconds_of(wanted, layer, per_unit, &most);
        if (most < best->most || (most == best->most && seconds > best->seconds))
            *best = (struct best){most, seconds};
        return;
    }
    for (int begin = wanted->named ? wanted->named[stage] : layer[stage - 1] + 1;
         begin <= LAYERS - (wanted->stages - stage); begin++) {
        layer[stage] = begin;
        divide(wanted, per_unit, stage + 1, layer, best);
        if (wanted->named) break;
    }
}

static struct best best_of(const struct wanted *wanted, int64_t per_unit)
{
    struct best best = {INFINITY, INFINITY};
    int layer[LAYERS + 1] = {0};
    layer[wanted->stages] = LAYERS;
    divide(wanted, per_unit, 1, layer, &best);
    return best;
}

/* ---- what ranks get ---- */

struct got {
    int size;
    struct tr_placement placement[RANKS];
    int64_t per_unit;
    int64_t arena_floats, bound[RANKS]; /* floats before a rank's layers */
};

static void *run_made(void *user)
{
    struct rank *rank = user;
    struct got *got = rank->user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    const tr_strategy *strategy = trainer_strategy(trainer);
    const struct pipeline *self = (const struct pipeline *)strategy;
    const struct tr_model *model = trainer_job(trainer)->model;
    got->size = strategy->size;
    got->per_unit = self->per_unit;
    got->arena_floats = model->arena_floats;
    for (int r = 0; r < strategy->size; r++) {
        tr_strategy_placement(strategy, r, &got->placement[r]);
        got->bound[r] = model->parameters[model->layers[got->placement[r].first_layer].parameter[0]].offset;
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* All ranks know the same of all. */
static void make_ranks(const char *strategy, const char *const *set, int size, struct got *got)
{
    struct job job;
    struct rank ranks[RANKS] = {0};
    struct got each[RANKS] = {0};
    char model[SCRATCH_PATH];
    calls = ranges = 0;
    job_begin(&job, scratch_join(model, scratch_place, "numbers.yaml"));
    job_set_all(&job, set);
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    for (int r = 0; r < size; r++) ranks[r].user = &each[r];
    run_ranks_by(run_made, &job.settings, size, false, ranks);
    for (int r = 0; r < size; r++) {
        assert_int_equal(each[r].per_unit, each[0].per_unit);
        for (int i = 0; i < size; i++) {
            const struct tr_placement *a = &each[0].placement[i], *b = &each[r].placement[i];
            assert_true(a->first_layer == b->first_layer && a->end_layer == b->end_layer);
            assert_true(a->first_update == b->first_update && a->end_update == b->end_update);
        }
    }
    *got = each[0];
}

/* Replicas of a stage share its microbatches and parameters; stages have all layers one behind the other,
   from layer[0] on. */
static void expect_placements(const struct got *got, int stages, int64_t all, int *layer)
{
    const int replicas = got->size / stages;
    int64_t update = 0;
    layer[0] = 0;
    for (int r = 0; r < got->size; r++) {
        const struct tr_placement *placement = &got->placement[r];
        const int stage = r / replicas, replica = r % replicas;
        if (replica == 0) layer[stage + 1] = placement->end_layer;
        assert_int_equal(placement->first_layer, layer[stage]);
        assert_int_equal(placement->end_layer, layer[stage + 1]);
        assert_string_equal(placement->role, "stage");
        assert_int_equal(placement->first_microbatch, all * replica / replicas);
        assert_int_equal(placement->end_microbatch, all * (replica + 1) / replicas);
        assert_int_equal(placement->first_update, update);
        assert_int_equal(placement->updates, placement->end_update - placement->first_update);
        if (replica == 0) assert_int_equal(update, got->bound[r]);
        update = placement->end_update;
    }
    assert_int_equal(update, got->arena_floats);
    assert_int_equal(layer[stages], LAYERS);
}

/* The slowest stage is as fast as can be with these units, and no other of these sizes has a shorter step. */
static void expect_best(const struct wanted *wanted, const struct got *got, const int64_t *size, int sizes)
{
    int layer[LAYERS + 1];
    double most;
    expect_placements(got, wanted->stages, wanted->most * wanted->replicas, layer);
    double seconds = seconds_of(wanted, layer, got->per_unit, &most);
    bool known = false;
    if (most > best_of(wanted, got->per_unit).most * (1 + 1e-9))
        fail_msg("%d stages of %d: the slowest takes %g, %g is possible", wanted->stages, wanted->replicas,
                 most, best_of(wanted, got->per_unit).most);
    for (int i = 0; i < sizes; i++) {
        const struct best best = best_of(wanted, size[i]);
        known |= size[i] == got->per_unit;
        if (seconds > best.seconds * (1 + 1e-9))
            fail_msg("%d stages of %d: a step of units of %d takes %g, one of units of %d %g", wanted->stages,
                     wanted->replicas, (int)got->per_unit, seconds, (int)size[i], best.seconds);
    }
    assert_true(known);
    assert_int_equal(calls, sizes);
    for (int i = 0; i < sizes; i++) assert_int_equal(asked[i], size[i]);
}

static void the_shortest_step_is_taken(void **state)
{
    /* Sizes of units, of which there are enough for all stages. */
    static const struct {
        int stages, replicas, sizes, most;
    } grids[] = {{2, 1, 4, 12}, {3, 1, 3, 12}, {4, 1, 2, 12}, {2, 2, 3, 6},
                 {3, 2, 2, 6},  {2, 3, 2, 4},  {2, 4, 2, 3},  {5, 1, 1, 3}};
    static const int64_t sizes[] = {1, 2, 4, 8};
    int chosen[SIZES] = {0};
    (void)state;
    srand(11);
    for (int trial = 0; trial < 144; trial++) {
        const int stages = grids[trial % 8].stages, replicas = grids[trial % 8].replicas;
        const int most = grids[trial % 8].most;
        struct wanted wanted = {stages, replicas, most, NULL};
        struct got got;
        char strategy[48], microbatches[48];
        const char *const set[] = {microbatches, NULL};
        for (int s = 0; s < SIZES; s++)
            for (int i = 0; i < LAYERS; i++) table[s][i] = random_cost(s, 1000, trial % 3 * 2000, 500, 3000);
        snprintf(strategy, sizeof strategy, "pipeline,stages=%d", stages);
        snprintf(microbatches, sizeof microbatches, "train.microbatches=%d", most * replicas);
        make_ranks(strategy, set, stages * replicas, &got);
        expect_best(&wanted, &got, sizes, grids[trial % 8].sizes);
        chosen[size_of(got.per_unit)]++;
        assert_int_equal(ranges, LAYERS);
        for (int i = 0; i <= LAYERS; i++) assert_int_equal(asked_bound[i], i);
    }
    for (int i = 0; i < 4; i++) assert_true(chosen[i] > 0);
}

/* Where the layers are named, only the units are chosen; where both are, nothing is measured. */
static void what_is_named_is_taken(void **state)
{
    static const char *const pass[] = {"train.pass=4", NULL}, *const large[] = {"train.pass=16", NULL},
                             *const single[] = {"train.microbatches=2", NULL};
    static const int named[] = {0, 1, 4};
    static const int64_t one_or_two[] = {1, 2}, four[] = {4}, twelve[] = {12};
    struct got got;
    int layer[LAYERS + 1];
    (void)state;
    srand(12);
    for (int trial = 0; trial < 24; trial++) {
        for (int s = 0; s < SIZES; s++)
            for (int i = 0; i < LAYERS; i++) table[s][i] = random_cost(s, 100, trial % 3 * 200, 50, 300);
        struct wanted wanted = {3, 2, 6, named};
        make_ranks("pipeline,cut=[b,e]", NULL, 6, &got);
        expect_best(&wanted, &got, one_or_two, 2);
        assert_int_equal(ranges, 3);
        for (int i = 0; i < 3; i++) assert_int_equal(asked_bound[i], named[i]);
        assert_int_equal(asked_bound[3], LAYERS);
        /* Units of a size that is given. */
        wanted = (struct wanted){2, 1, 12, NULL};
        make_ranks("pipeline", pass, 2, &got);
        expect_best(&wanted, &got, four, 1);
        make_ranks("pipeline", large, 2, &got);
        expect_best(&wanted, &got, twelve, 1);
    }
    make_ranks("pipeline,cut=[b,e]", pass, 3, &got);
    expect_placements(&got, 3, 12, layer);
    assert_true(calls == 0 && got.per_unit == 4 && layer[1] == 1 && layer[2] == 4);
    make_ranks("pipeline,cut=[b,e]", single, 6, &got);
    expect_placements(&got, 3, 2, layer);
    assert_true(calls == 0 && got.per_unit == 1 && layer[1] == 1 && layer[2] == 4);
    /* A single stage has nobody to wait for. */
    make_ranks("pipeline,stages=1", NULL, 3, &got);
    expect_placements(&got, 1, 12, layer);
    assert_true(calls == 0 && got.per_unit == 4);
    make_ranks("pipeline,stages=1", pass, 2, &got);
    assert_true(calls == 0 && got.per_unit == 4);
    make_ranks("pipeline,stages=1", large, 2, &got);
    assert_true(calls == 0 && got.per_unit == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_step_is_taken),
        cmocka_unit_test(what_is_named_is_taken),
    };
    return cmocka_run_group_tests_name("strategy.pipeline_grid", tests, make, scratch_place_remove);
}
