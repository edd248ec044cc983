/* What strategies with a hash of their own should do, in plain loops and double precision. The library
 * computes gradients of given parameters; judging, clipping, updating, averaging and meeting are written here
 * anew, from the documentation. */
#include "strategy/conformance/conformance.h"

#include "base/numbers/tree.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static double *doubles(int64_t count)
{
    double *values = calloc((size_t)count + 1, sizeof *values);
    if (!values) abort();
    return values;
}

/* The job of a feature with its one process' trainer, which computes gradients. */
struct lab {
    struct job job;
    tr_trainer *trainer;
    const struct tr_job *opened;
    float *parameters; /* arena of the trainer's variables */
};

static void lab_open(struct lab *lab, const struct feature *feature)
{
    struct order order = {.set = {feature->set[0], feature->set[1]}, .stopper = -1};
    lab->trainer = order_trainer(&order, &lab->job);
    lab->opened = trainer_job(lab->trainer);
    lab->parameters = tr_variables_arena(trainer_variables(lab->trainer), TR_ARENA_PARAMETERS);
}

static void begin(struct replay *replay, const struct lab *lab, int64_t replicas)
{
    int64_t floats = lab->opened->model->arena_floats;
    *replay = (struct replay){
        .floats = floats,
        .replicas = replicas,
        .rate = lab->opened->optimizer.rate,
        .momentum = (double)lab->opened->optimizer.momentum,
        .w = calloc((size_t)replicas, sizeof *replay->w),
        .m = calloc((size_t)replicas, sizeof *replay->m),
        .ema = calloc((size_t)replicas, sizeof *replay->ema),
        .start = doubles(floats),
        .outer = doubles(floats),
        .last = doubles(floats),
        .steps = lab->opened->train.steps,
    };
    if (!replay->w || !replay->m || !replay->ema) abort();
    for (int64_t i = 0; i < floats; i++) replay->start[i] = replay->last[i] = (double)lab->parameters[i];
    for (int64_t r = 0; r < replicas; r++) {
        replay->w[r] = doubles(floats);
        replay->m[r] = doubles(floats);
        replay->ema[r] = doubles(floats);
        memcpy(replay->w[r], replay->start, (size_t)floats * sizeof(double));
        memcpy(replay->ema[r], replay->start, (size_t)floats * sizeof(double));
    }
}

void replay_release(struct replay *replay)
{
    for (int64_t r = 0; r < replay->replicas; r++) {
        free(replay->w[r]);
        free(replay->m[r]);
        free(replay->ema[r]);
    }
    free(replay->w);
    free(replay->m);
    free(replay->ema);
    free(replay->start);
    free(replay->outer);
    free(replay->last);
}

/* One step of momentum, with what the job asks for besides; whether it was applied. */
static bool apply(struct replay *replay, int64_t r, const struct tr_job *job, int64_t step,
                  const float *gradient, float loss)
{
    const struct tr_optimizer *optimizer = &job->optimizer;
    double squares = 0, rate = replay->rate * tr_schedule_factor(&optimizer->schedule, step), clip = 1;
    for (int64_t i = 0; i < replay->floats; i++) squares += (double)gradient[i] * (double)gradient[i];
    double norm = sqrt(squares);
    if (job->train.on_nonfinite == TR_NONFINITE_SKIP && (!isfinite(loss) || !isfinite(norm))) return false;
    if (optimizer->clip_norm > 0 && norm > (double)optimizer->clip_norm)
        clip = (double)optimizer->clip_norm / norm;
    for (int p = 0; p < job->model->parameter_count; p++) {
        const struct tr_parameter *parameter = &job->model->parameters[p];
        double l2 = parameter->kind == TR_PARAMETER_WEIGHT ? (double)optimizer->l2 : 0;
        for (int64_t i = parameter->offset; i < parameter->offset + parameter->count; i++) {
            double g = (double)gradient[i] * clip + l2 * replay->w[r][i];
            replay->m[r][i] = replay->momentum * replay->m[r][i] + g;
            replay->w[r][i] -= rate * replay->m[r][i];
            replay->ema[r][i] += (1 - (double)optimizer->ema) * (replay->w[r][i] - replay->ema[r][i]);
        }
    }
    return true;
}

static int64_t int_option(const struct candidate *candidate, const void *options, const char *key)
{
    for (int i = 0; i < candidate->class->option_count; i++) {
        const struct tr_option *option = &candidate->class->options[i];
        if (strcmp(option->key, key) != 0) continue;
        int32_t value;
        memcpy(&value, (const char *)options + option->offset, sizeof value);
        return value;
    }
    fail_msg("the strategy %s has no option \"%s\", which says how its replicas are trained",
             candidate->class->name, key);
    return 0;
}

/* The options of a candidate, from a strategy of it. */
static tr_trainer *open_candidate(const struct candidate *candidate, struct job *job)
{
    struct order order = {.strategy = candidate->strategy, .stopper = -1};
    return order_trainer(&order, job);
}

void replay_replicas(const struct candidate *candidate, const struct feature *feature, struct replay *out)
{
    struct lab lab;
    struct job job;
    tr_trainer *example = open_candidate(candidate, &job);
    lab_open(&lab, feature);
    const void *options = trainer_strategy(example)->options;
    int64_t replicas = int_option(candidate, options, "replicas"),
            every = int_option(candidate, options, "every"), microbatches = lab.opened->train.microbatches;
    begin(out, &lab, replicas);
    out->options = options;
    tr_gradient **gradient = calloc((size_t)replicas, sizeof(tr_gradient *));
    if (!gradient) abort();
    for (int64_t r = 0; r < replicas; r++) {
        struct tr_gradient_part part = {.first = tr_cut(microbatches, replicas, r),
                                        .end = tr_cut(microbatches, replicas, r + 1),
                                        .end_step = out->steps,
                                        .alone = true};
        must_train(tr_gradient_create(trainer_device(lab.trainer), lab.opened, trainer_variables(lab.trainer),
                                      &part, NULL, &gradient[r]));
    }
    for (int64_t step = 0; step < out->steps; step++) {
        for (int64_t r = 0; r < replicas; r++) {
            int64_t examples;
            for (int64_t i = 0; i < out->floats; i++) lab.parameters[i] = (float)out->w[r][i];
            must_train(tr_variables_begin_step(trainer_variables(lab.trainer), step));
            must_train(tr_gradient_step(gradient[r], step, &examples));
            const float *slots = tr_gradient_slots(gradient[r]);
            if (examples > 0 && !apply(out, r, lab.opened, step, slots, slots[out->floats])) out->skipped++;
        }
        if ((step + 1) % every == 0 || step + 1 == out->steps) candidate->data->meet(out, step + 1);
    }
    for (int64_t r = 0; r < replicas; r++) tr_gradient_destroy(&gradient[r]);
    free(gradient);
    tr_trainer_destroy(&lab.trainer);
    tr_trainer_destroy(&example);
    out->options = NULL;
}

void replay_updates(const struct feature *feature, const struct result *result, struct replay *out)
{
    struct lab lab;
    lab_open(&lab, feature);
    begin(out, &lab, 1);
    for (int64_t i = 0; i < result->left->update_count; i++)
        apply(out, 0, lab.opened, i, result->left->update[i], 0);
    tr_trainer_destroy(&lab.trainer);
}

/* Differences count against the way that training went. */
static bool near(struct candidate *candidate, const double *expected, const double *start, const float *got,
                 int64_t count, const char *what, const char *how)
{
    double way = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        way = fmax(way, fabs(expected[i] - start[i]));
        double off = fabs(expected[i] - (double)got[i]);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off; /* fmax() is blind to NaN */
    }
    if (way > 0 && worst <= 1e-3 * way) return true;
    return complain(candidate, "%s: %s differ from a replay by %g of a way of %g", how, what, worst, way);
}

bool expect_near(struct candidate *candidate, const struct replay *replay, const struct result *result,
                 const char *how)
{
    double *averages = doubles(replay->floats);
    for (int64_t i = 0; i < replay->floats; i++) {
        averages[i] = replay->ema[0][i];
        for (int64_t r = 1; replay->apart && r < replay->replicas; r++) averages[i] += replay->ema[r][i];
        if (replay->apart) averages[i] /= (double)replay->replicas;
    }
    bool good =
        near(candidate, replay->apart ? replay->last : replay->w[0], replay->start, result->left->parameters,
             replay->floats, "parameters", how) &&
        (!result->left->has_averages || near(candidate, averages, replay->start, result->left->averages,
                                             replay->floats, "moving averages", how));
    free(averages);
    return good;
}
