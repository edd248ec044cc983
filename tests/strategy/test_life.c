/* The life of a strategy: what is refused when it is made, who observes its steps and in which order, what it
 * tells of itself, and that nothing is left of one that could not be made. */
#include "strategy/class.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "strategy/values.h"
#include "support/comm_thread/thread.h"
#include "support/training.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct tr_job *open_job(const char *strategy)
{
    struct job job;
    struct tr_job *opened;
    family_job(&job, &families[0], family_place);
    const struct tr_job_settings settings = {
        .set = job.set, .set_count = job.settings.set_count, .strategy = strategy};
    must_train(tr_job_open(job.settings.model, &settings, &opened));
    must_train(tr_job_open_set(opened, TR_SET_TRAIN));
    return opened;
}

/* ---- making ---- */

/* State that outlives a rank is kept by all-reduce alone; a single process has nobody to outlive. */
static void states_that_outlive_ranks_need_a_class(void **state)
{
    (void)state;
    static const struct tr_comm_settings patience = {.timeout = 60, .patience = 60};
    static const char *const strategies[] = {"pipeline", "parameter-server", "local-sgd,replicas=2"};
    const struct tr_strategy_settings settings = {.outlives = true};
    tr_device *device;
    must_train(tr_device_create("cpu", 1, NULL, &device));
    for (int i = 0; i < 3; i++) {
        struct tr_job *job = open_job(strategies[i]);
        tr_comm *comm[2];
        tr_strategy *strategy = (tr_strategy *)(void *)&patience;
        char message[256];
        must_train(tr_comm_thread_create(2, NULL, &patience, comm));
        int64_t live = tr_alloc_live();
        assert_int_equal(tr_strategy_create(device, job, comm[0], &settings, &strategy), TR_EUNSUPPORTED);
        snprintf(
            message, sizeof message,
            "a rank of the strategy %.*s keeps what no other has, so the others cannot go on without it; "
            "choose allreduce, or let the job restart from its checkpoints",
            (int)strcspn(strategies[i], ","), strategies[i]);
        assert_string_equal(tr_error_message(), message);
        assert_null(strategy);
        assert_int_equal(tr_alloc_live(), live);
        must_train(tr_strategy_create(device, job, NULL, &settings, &strategy));
        tr_strategy_destroy(&strategy);
        assert_null(strategy);
        tr_strategy_destroy(&strategy);
        for (int r = 0; r < 2; r++) {
            tr_comm_abort(comm[r], "enough");
            tr_comm_destroy(&comm[r]);
        }
        tr_job_destroy(&job);
    }
    tr_device_destroy(&device);
}

static void missing_memory_leaves_nothing(void **state)
{
    (void)state;
    static const char *const strategies[] = {"allreduce", "local-sgd,replicas=2,every=2,momentum=0.5",
                                             "easgd,replicas=2,every=2", "parameter-server"};
    const struct tr_strategy_settings settings = {.slow = 1};
    tr_device *device;
    must_train(tr_device_create("cpu", 1, NULL, &device));
    for (int i = 0; i < 4; i++) {
        struct tr_job *job = open_job(strategies[i]);
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            tr_strategy *strategy = NULL;
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_strategy_create(device, job, NULL, &settings, &strategy);
            if (status == TR_OK) status = tr_strategy_begin(strategy);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s, %d: %d", strategies[i], (int)at, (int)status);
            tr_strategy_destroy(&strategy);
            assert_int_equal(tr_alloc_live(), live);
        }
        tr_job_destroy(&job);
    }
    tr_device_destroy(&device);
}

/* ---- what it tells ---- */

static void a_strategy_tells_of_itself(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[0], family_place);
    job.settings.strategy = "allreduce,bucket=2.5";
    tr_trainer *trainer = job_trainer(&job);
    tr_strategy *strategy = trainer_strategy(trainer);
    int64_t variables, gradients;
    char *options;
    assert_string_equal(tr_strategy_name(strategy), "allreduce");
    must_train(tr_strategy_options_text(strategy, &options));
    if (!strstr(options, "\"bucket\": 2.5")) fail_msg("%s", options);
    tr_free(options);
    assert_false(tr_strategy_is_asynchronous(strategy));
    assert_false(tr_strategy_is_spread(strategy));
    assert_ptr_equal(tr_strategy_holder(strategy), trainer_device(trainer));
    tr_strategy_memory_parts(strategy, &variables, &gradients);
    assert_int_equal(variables, tr_variables_memory(trainer_variables(trainer)));
    assert_int_equal(gradients, tr_gradient_memory(strategy->replicas->gradient));
    assert_int_equal(tr_strategy_memory(strategy), (int64_t)strategy->memory + variables + gradients);
    strategy->memory += 100;
    strategy->holding += 3000;
    strategy->computing += 50000;
    int64_t more[2];
    tr_strategy_memory_parts(strategy, &more[0], &more[1]);
    assert_int_equal(more[0], variables + 3000);
    assert_int_equal(more[1], gradients + 50000);
    assert_int_equal(tr_strategy_memory(strategy), (int64_t)strategy->memory + more[0] + more[1]);
    strategy->memory -= 100;
    strategy->holding -= 3000;
    strategy->computing -= 50000;

    struct tr_strategy_statistics statistics;
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_strategy_statistics(strategy, &statistics));
    assert_int_equal(statistics.ranks, 1);
    assert_int_equal(statistics.rank[0].contributions, 1);
    assert_true(statistics.rank[0].compute_seconds > 0);
    assert_true(statistics.rank[0].wait_seconds == 0);
    assert_false(statistics.asynchronous);
    tr_strategy_statistics_release(&statistics);
    assert_null(statistics.rank);
    char hash[2][TR_SHA256_TEXT], text[] = "the root's";
    must_train(tr_strategy_hash(strategy, hash[0]));
    must_train(tr_variables_hash(trainer_variables(trainer), hash[1]));
    assert_string_equal(hash[0], hash[1]);
    must_train(tr_strategy_broadcast(strategy, text, sizeof text));
    assert_string_equal(text, "the root's");
    must_train(tr_strategy_drain(strategy));
    must_train(tr_strategy_end(strategy));
    tr_trainer_destroy(&trainer);
}

/* ---- observers ---- */

static struct {
    char seen[512]; /* a letter for each call: of a layer, of an update */
    size_t count;
    char fails; /* the one that fails, or 0 */
    int64_t floats;
} watched;

static tr_status see(char what)
{
    if (watched.count < sizeof watched.seen - 1) watched.seen[watched.count++] = what;
    return what == watched.fails ? tr_fail(TR_EIO, "%c has seen enough", what) : TR_OK;
}

static tr_status see_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)layer;
    assert_true(output && count > 0);
    return see(*(const char *)user);
}

static tr_status see_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    assert_non_null(gradient);
    watched.floats += end - begin;
    return see((char)(*(const char *)user - 'a' + 'A'));
}

/* Takes a step; what was seen then, neighbours that are equal once. */
static void expect_seen(tr_trainer *trainer, tr_status status, const char *expected)
{
    char seen[sizeof watched.seen];
    size_t count = 0;
    watched.count = 0;
    watched.floats = 0;
    memset(watched.seen, 0, sizeof watched.seen);
    assert_int_equal(tr_trainer_step(trainer, NULL), status);
    for (size_t i = 0; i < watched.count; i++)
        if (i == 0 || watched.seen[i] != watched.seen[i - 1]) seen[count++] = watched.seen[i];
    seen[count] = '\0';
    assert_string_equal(seen, expected);
}

static void observers_see_steps_in_their_order(void **state)
{
    (void)state;
    static const char keeper = 'k', probe = 'p', digests = 'd';
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: 12}, {dense: 10}]");
    job_set(&job, "train.pass=0");
    tr_trainer *trainer = job_trainer(&job);
    tr_strategy *strategy = trainer_strategy(trainer);
    int64_t floats = trainer_job(trainer)->model->arena_floats;
    expect_seen(trainer, TR_OK, "");
    tr_strategy_observe(strategy, TR_OBSERVER_DIGESTS,
                        (struct tr_strategy_observer){NULL, see_update, (void *)(uintptr_t)&digests});
    expect_seen(trainer, TR_OK, "D");
    assert_int_equal(watched.floats, floats);
    tr_strategy_observe(strategy, TR_OBSERVER_KEEPER,
                        (struct tr_strategy_observer){NULL, see_update, (void *)(uintptr_t)&keeper});
    expect_seen(trainer, TR_OK, "KD");
    tr_strategy_observe(strategy, TR_OBSERVER_PROBE,
                        (struct tr_strategy_observer){see_layer, see_update, (void *)(uintptr_t)&probe});
    expect_seen(trainer, TR_OK, "pKPD");
    tr_strategy_observe(strategy, TR_OBSERVER_KEEPER, (struct tr_strategy_observer){NULL, NULL, NULL});
    expect_seen(trainer, TR_OK, "pPD");
    tr_strategy_observe(strategy, TR_OBSERVER_DIGESTS,
                        (struct tr_strategy_observer){see_layer, NULL, (void *)(uintptr_t)&digests});
    watched.fails = 'D';
    tr_strategy_observe(strategy, TR_OBSERVER_KEEPER,
                        (struct tr_strategy_observer){NULL, see_update, (void *)(uintptr_t)&keeper});
    watched.count = 0;
    must_train(tr_trainer_step(trainer, NULL));
    /* Each layer is shown to all before the next one is computed. */
    assert_non_null(strstr(watched.seen, "pdpd"));
    assert_non_null(strstr(watched.seen, "KP"));
    watched.fails = 'K';
    watched.count = 0;
    assert_int_equal(tr_trainer_step(trainer, NULL), TR_EIO);
    assert_string_equal(tr_error_message(), "K has seen enough");
    watched.seen[watched.count] = '\0';
    assert_null(strchr(watched.seen, 'P'));
    watched.fails = 'p';
    watched.count = 0;
    assert_int_equal(tr_trainer_step(trainer, NULL), TR_EIO);
    assert_string_equal(tr_error_message(), "p has seen enough");
    assert_int_equal(watched.count, 1);
    watched.fails = 0;
    tr_trainer_destroy(&trainer);
}

/* One whose gradient is not finite is skipped, and nobody sees an update. */
static void skipped_updates_are_not_seen(void **state)
{
    (void)state;
    static const char keeper = 'k';
    struct job job;
    values_job(&job, family_place, "1e10,1e18,0,1,0\n"); /* its loss is finite */
    job_set(&job, "train.on_nonfinite=skip");
    tr_trainer *trainer = job_trainer(&job);
    tr_strategy *strategy = trainer_strategy(trainer);
    int skipped = 0;
    must_train(tr_trainer_step(trainer, NULL)); /* begins */
    tr_strategy_observe(strategy, TR_OBSERVER_KEEPER,
                        (struct tr_strategy_observer){NULL, see_update, (void *)(uintptr_t)&keeper});
    for (int64_t step = 1; step < 5; step++) {
        struct tr_step_figures figures;
        char before[TR_SHA256_TEXT], after[TR_SHA256_TEXT];
        watched.count = 0;
        must_train(tr_strategy_hash(strategy, before));
        must_train(tr_strategy_step(strategy, step, 0, &figures));
        must_train(tr_strategy_hash(strategy, after));
        assert_int_equal(watched.count > 0, !figures.skipped);
        assert_int_equal(strcmp(before, after) == 0, figures.skipped);
        skipped += figures.skipped;
    }
    assert_in_range(skipped, 1, 2);
    tr_trainer_destroy(&trainer);
}

/* ---- figures ---- */

/* A norm is told where it was needed. */
static void figures_are_of_the_step(void **state)
{
    (void)state;
    static const char *const sets[] = {"optimizer.clip_norm=0", "optimizer.clip_norm=1e9",
                                       "train.on_nonfinite=skip"};
    for (int i = 0; i < 3; i++) {
        struct job job;
        family_job(&job, &families[0], family_place);
        job_set(&job, sets[i]);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_step(trainer, NULL));
        for (int64_t step = 1; step < 3; step++) {
            struct tr_step_figures figures;
            memset(&figures, 255, sizeof figures);
            must_train(tr_strategy_step(trainer_strategy(trainer), step, 6, &figures));
            assert_int_equal(figures.steps, 1);
            assert_int_equal(figures.examples, trainer_job(trainer)->train.batch);
            assert_int_equal(figures.request, 6);
            assert_true(figures.loss > 0 && figures.correct >= 0);
            assert_int_equal(isnan(figures.norm), i == 0);
            if (i > 0) assert_true(figures.norm > 0);
            assert_false(figures.skipped || figures.bad_loss || figures.poisoned || figures.rebalanced);
        }
        tr_trainer_destroy(&trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_that_outlive_ranks_need_a_class),
        cmocka_unit_test(missing_memory_leaves_nothing),
        cmocka_unit_test(a_strategy_tells_of_itself),
        cmocka_unit_test(observers_see_steps_in_their_order),
        cmocka_unit_test(skipped_updates_are_not_seen),
        cmocka_unit_test(figures_are_of_the_step),
    };
    return cmocka_run_group_tests_name("strategy.life", tests, family_place_make, family_place_remove);
}
