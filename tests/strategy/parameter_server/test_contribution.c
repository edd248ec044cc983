/* Contributions to updates: what is computed for each part of a batch, how parts become the figures of an
 * update and these the news of the root; and what a gradient may miss. */
#include "strategy/parameter_server/coordinator.h"
#include "strategy/parameter_server/scene.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static struct tr_job job_that(enum tr_nonfinite_policy policy, float clip)
{
    struct tr_job job = {.train = {.on_nonfinite = (int32_t)policy}};
    job.optimizer.clip_norm = clip;
    return job;
}

static void expect_update(const struct ps_update *update, int64_t examples, double loss, double correct,
                          bool spoiled)
{
    assert_int_equal(update->examples, examples);
    assert_true(update->loss == loss);
    assert_true(update->correct == correct);
    assert_int_equal(update->spoiled, spoiled);
}

static void expect_news(const struct ps_news *news, int64_t steps, int64_t examples, double loss,
                        double correct)
{
    assert_int_equal(news->steps, steps);
    assert_int_equal(news->examples, examples);
    assert_true(news->loss == loss);
    assert_true(news->correct == correct);
}

/* ---- figures ---- */

static void parts_become_updates_and_these_news(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        const struct tr_job job = job_that(p ? TR_NONFINITE_SKIP : TR_NONFINITE_STOP, 0);
        struct ps_update update = {
            .examples = 99, .loss = 99, .correct = 99, .spoiled = true}; /* the last one */
        struct ps_news news = {.steps = 0};
        const struct ps_figures one = {4, 2.5F, 3}, two = {1, 0.25F, 1}, none = {0, 0, 0};
        assert_false(ps_update_note(&job, &update, &news, &one, true, false));
        expect_update(&update, 4, 2.5, 3, false);
        expect_news(&news, 0, 0, 0, 0);
        assert_false(ps_update_note(&job, &update, &news, &none, false, false));
        assert_false(ps_update_note(&job, &update, &news, &two, false, true));
        expect_update(&update, 5, 2.75, 4, false);
        expect_news(&news, 1, 5, 2.75, 4);
        assert_true(ps_update_factor(&update) == 0.2F);
        /* An update of one gradient. */
        assert_false(ps_update_note(&job, &update, &news, &two, true, true));
        expect_update(&update, 1, 0.25, 1, false);
        expect_news(&news, 2, 6, 3, 5);
        assert_int_equal(news.bad_loss + news.skipped + news.poisoned, 0);
        assert_false(ps_update_note(&job, &update, &news, &none, true, true));
        assert_true(ps_update_factor(&update) == 0);
    }
}

static void bad_losses_end_or_spoil(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    const struct tr_job stops = job_that(TR_NONFINITE_STOP, 0), skips = job_that(TR_NONFINITE_SKIP, 0);
    const struct ps_figures well = {4, 2.5F, 3};
    for (int i = 0; i < 3; i++) {
        struct ps_update update;
        struct ps_news news = {.steps = 0};
        const struct ps_figures ill = {2, bad[i], 1};
        /* The run ends at once, as if the update were complete. */
        assert_false(ps_update_note(&stops, &update, &news, &well, true, false));
        assert_true(ps_update_note(&stops, &update, &news, &ill, false, false));
        expect_update(&update, 4, 2.5, 3, true);
        expect_news(&news, 1, 4, 2.5, 3);
        assert_int_equal(news.bad_loss, 1);
        assert_int_equal(news.skipped, 0);
        /* Or it goes on without the update, when all of that are there. */
        news = (struct ps_news){.steps = 0};
        assert_false(ps_update_note(&skips, &update, &news, &ill, true, false));
        expect_update(&update, 0, 0, 0, true);
        assert_int_equal(news.skipped, 0);
        assert_false(ps_update_note(&skips, &update, &news, &well, false, true));
        expect_update(&update, 4, 2.5, 3, true);
        expect_news(&news, 1, 4, 2.5, 3);
        assert_int_equal(news.skipped, 1);
        assert_int_equal(news.bad_loss, 0);
        /* The next one is another. */
        assert_false(ps_update_note(&skips, &update, &news, &well, true, true));
        assert_false(update.spoiled);
    }
}

static void norms_are_judged(void **state)
{
    (void)state;
    static const struct {
        enum tr_nonfinite_policy policy;
        float most;
        double norm;
        bool skipped;
        float clip;
        double norms;
        int measured;
    } cases[] = {
        {TR_NONFINITE_STOP, 0, 0, false, 1, 0, 0},
        {TR_NONFINITE_STOP, 2, 1.5, false, 1, 1.5, 1},
        {TR_NONFINITE_STOP, 2, 2, false, 1, 2, 1},
        {TR_NONFINITE_STOP, 2, 8, false, 0.25F, 8, 1},
        {TR_NONFINITE_STOP, 2, INFINITY, false, 0, INFINITY, 1},
        {TR_NONFINITE_SKIP, 0, 5, false, 1, 5, 1},
        {TR_NONFINITE_SKIP, 2, 4, false, 0.5F, 4, 1},
        {TR_NONFINITE_SKIP, 0, INFINITY, true, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job job = job_that(cases[i].policy, cases[i].most);
        struct ps_news news = {.steps = 0};
        struct tr_verdict verdict = ps_update_judge(&job, &news, cases[i].norm);
        assert_false(verdict.bad_loss);
        assert_int_equal(verdict.skipped, cases[i].skipped);
        assert_true(verdict.clip == cases[i].clip);
        assert_int_equal(news.skipped, cases[i].skipped);
        assert_true(news.norms == cases[i].norms);
        assert_int_equal(news.measured, cases[i].measured);
    }
}

static void news_are_told(void **state)
{
    (void)state;
    struct ps_news news = {.steps = 3, .examples = 60, .loss = 1.5, .correct = 40, .request = 5};
    struct tr_step_figures figures = {.norm = -7};
    ps_news_tell(&news, &figures);
    assert_int_equal(figures.steps, 3);
    assert_int_equal(figures.examples, 60);
    assert_true(figures.loss == 1.5F);
    assert_true(figures.correct == 40);
    assert_int_equal(figures.request, 5);
    assert_true(figures.norm == -7); /* as before: no norm was measured */
    assert_false(figures.skipped || figures.bad_loss || figures.poisoned);
    news = (struct ps_news){.norms = 9, .measured = 2, .skipped = 2};
    ps_news_tell(&news, &figures);
    assert_true(figures.norm == 4.5F);
    assert_true(figures.skipped && !figures.bad_loss && !figures.poisoned);
    news = (struct ps_news){.bad_loss = 4};
    ps_news_tell(&news, &figures);
    assert_true(!figures.skipped && figures.bad_loss && !figures.poisoned);
    news = (struct ps_news){.poisoned = 8};
    ps_news_tell(&news, &figures);
    assert_true(!figures.skipped && !figures.bad_loss && figures.poisoned);
}

/* ---- gradients ---- */

/* Four batches of 100 examples, the last of which is one example: four parts of each add up to the whole, and
   a part without examples is nothing, whatever was computed before. */
static void compute_parts(struct ps *self, struct scene *scene)
{
    enum { PARTS = 4 };
    tr_variables *variables = self->head.replicas->variables;
    tr_gradient *gradient = self->head.replicas->gradient;
    (void)scene;
    must_train(tr_variables_initialize(variables, 1));
    for (int64_t batch = 0; batch < 4; batch++) {
        const int64_t rows = batch < 3 ? 33 : 1;
        int64_t examples = 0, empty = 0;
        double loss = 0, correct = 0;
        struct ps_figures figures;
        for (int part = 0; part < PARTS; part++) {
            memset(&figures, 255, sizeof figures);
            must_train(
                ps_contribution_compute(&self->head, variables, PARTS, PARTS * batch + part, &figures));
            assert_in_range(figures.examples, 0, 9);
            assert_true(figures.correct >= 0 && figures.correct <= (float)figures.examples);
            const float *slots = tr_gradient_slots(gradient);
            double sum = 0;
            for (int64_t i = 0; i < self->head.job->model->arena_floats; i++) sum += fabs((double)slots[i]);
            assert_int_equal(sum > 0, figures.examples > 0);
            if (figures.examples == 0) assert_true(figures.loss == 0 && figures.correct == 0);
            empty += figures.examples == 0;
            examples += figures.examples;
            loss += (double)figures.loss;
            correct += (double)figures.correct;
        }
        assert_int_equal(examples, rows);
        assert_int_equal(empty, batch < 3 ? 0 : 3);
        /* Ten classes, of which the network knows nothing. */
        assert_true(loss > 1.5 * (double)rows && loss < 4 * (double)rows);
        assert_true(correct <= (double)rows);
        tr_gradient_narrow(gradient, 0, self->head.job->train.microbatches);
        must_train(ps_contribution_compute(&self->head, variables, 1, batch, &figures));
        assert_int_equal(figures.examples, rows);
        assert_true(fabs((double)figures.loss - loss) < 1e-4 * loss);
        assert_true((double)figures.correct == correct);
    }
}

static void parts_are_computed(void **state)
{
    (void)state;
    struct scene scene = {
        .strategy = "parameter-server,mode=backup,backup=0", .set = {"train.batch=33"}, .size = 5};
    scene.part[1] = compute_parts;
    scene_play(&scene);
}

/* ---- staleness and pieces ---- */

static void what_gradients_may_miss(void **state)
{
    (void)state;
    struct ps_options options = {.mode = PS_BOUNDED, .staleness = -1};
    struct ps self = {.head = {.options = &options}, .workers = 1};
    for (; self.workers < 5; self.workers++) assert_int_equal(ps_staleness(&self), 2 * self.workers);
    for (int64_t bound = 0; bound < 3; bound++) {
        options.staleness = bound;
        assert_int_equal(ps_staleness(&self), bound);
    }
    for (options.mode = PS_ASYNC; options.mode <= PS_BACKUP; options.mode++)
        if (options.mode != PS_BOUNDED) assert_true(ps_staleness(&self) == PS_STALENESS_ANY);
}

/* Pieces of a quarter of a million numbers from the end of a shard on; the last may be smaller. */
static void gradients_are_cut_into_pieces(void **state)
{
    (void)state;
    enum { PIECE = 256 << 10 };
    int64_t shard[] = {0, 16, 16 + PIECE, 32 + 2 * PIECE, 32 + 4 * PIECE, 32 + 4 * PIECE};
    static const int pieces[] = {1, 1, 2, 2, 0};
    struct ps self = {.servers = 5, .shard = shard};
    for (int s = 0; s < self.servers; s++) {
        int64_t at = shard[s + 1], begin, end;
        assert_int_equal(ps_pieces(&self, s), pieces[s]);
        for (int i = 0; i < pieces[s]; i++, at = begin) {
            ps_piece(&self, s, i, &begin, &end);
            assert_int_equal(end, at);
            assert_int_equal(begin, i < pieces[s] - 1 ? end - PIECE : shard[s]);
        }
        assert_int_equal(at, shard[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_become_updates_and_these_news),
        cmocka_unit_test(bad_losses_end_or_spoil),
        cmocka_unit_test(norms_are_judged),
        cmocka_unit_test(news_are_told),
        cmocka_unit_test(parts_are_computed),
        cmocka_unit_test(what_gradients_may_miss),
        cmocka_unit_test(gradients_are_cut_into_pieces),
    };
    return cmocka_run_group_tests_name("strategy.contribution", tests, family_place_make,
                                       family_place_remove);
}
