/* The tiny job of the conformance suite, and its runs. */
#include "strategy/conformance/conformance.h"

#include "base/alloc.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROWS     46
#define FEATURES 7
#define BAD_ROW  17

struct conformance_settings conformance = {.slow = "1:100", .children = 96, .every = 1};

static char place[SCRATCH_PATH], model[SCRATCH_PATH];

static const char text[] = "name: tiny\n"
                           "seed: 5\n"
                           "data: {train: {csv: {path: good.csv}}, test: {csv: {path: test.csv}}}\n"
                           "layers:\n"
                           "  - dense: {units: 8, activation: relu}\n"
                           "  - dense: 3\n"
                           "optimizer: {rule: momentum, rate: 0.1, momentum: 0.5}\n"
                           "train: {batch: 13, microbatches: 5, steps: 16, log_every: 1, prefetch: 0}\n";

const struct feature features[] = {
    {"plain", {NULL}, TR_OK, false, false},
    {"clip_norm", {"optimizer.clip_norm=0.05"}, TR_OK, false, true},
    {"l2", {"optimizer.l2=0.05"}, TR_OK, false, true},
    {"ema", {"optimizer.ema=0.8"}, TR_OK, false, false},
    {"schedule", {"optimizer.schedule={kind: step, milestones: [3, 9], factor: 0.3}"}, TR_OK, false, true},
    {"on_nonfinite: skip", {"data.train.csv.path=bad.csv", "train.on_nonfinite=skip"}, TR_OK, true, true},
    {"on_nonfinite: stop", {"data.train.csv.path=bad.csv"}, TR_ENONFINITE, false, false},
};
const int feature_count = sizeof features / sizeof features[0];

/* Numbers that look random; classes follow from the features. */
static void write_table(const char *name, int rows, int bad)
{
    char path[SCRATCH_PATH];
    unsigned seed = 12345;
    FILE *file = fopen(scratch_join(path, place, name), "w");
    assert_non_null(file);
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int k = 0; k < FEATURES; k++) {
            seed = seed * 1103515245 + 12345;
            double value = (double)(seed >> 16 & 1023) / 512 - 1;
            sum += k % 2 ? value : -value;
            fprintf(file, i == bad ? "3e38," : "%.4f,", value);
        }
        fprintf(file, "%d\n", sum < -0.6 ? 0 : sum < 0.6 ? 1 : 2);
    }
    assert_int_equal(fclose(file), 0);
}

static struct result alone_result[sizeof features / sizeof features[0]];

int conformance_set_up(void **state)
{
    (void)state;
    scratch_make(place);
    write_table("good.csv", ROWS, -1);
    write_table("bad.csv", ROWS, BAD_ROW);
    write_table("test.csv", 19, -1);
    must_train(tr_file_write_atomic(NULL, scratch_join(model, place, "tiny.yaml"), text, strlen(text)));
    return 0;
}

int conformance_tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < feature_count; i++) run_release(&alone_result[i]);
    scratch_remove(place);
    return 0;
}

/* ---- candidates ---- */

bool complain(struct candidate *candidate, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(candidate->complaint, sizeof candidate->complaint, "%s: ", candidate->strategy);
    va_start(arguments, format);
    vsnprintf(candidate->complaint + used, sizeof candidate->complaint - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

const struct conformance_data *conformance_data_of(const char *name)
{
    for (int i = 0; conformance_data[i].name; i++)
        if (strcmp(conformance_data[i].name, name) == 0) return &conformance_data[i];
    return NULL;
}

int conformance_variants(const struct tr_strategy_class *class)
{
    int count = 0;
    while (class->variants && class->variants[count]) count++;
    return count ? count : 1;
}

void conformance_candidate(const struct tr_strategy_class *class, int variant, struct candidate *out)
{
    static const char workers_hole[] = "{workers}";
    const char *options = class->variants ? class->variants[variant] : "",
               *hole = strstr(options, workers_hole);
    int before = hole ? (int)(hole - options) : (int)strlen(options);
    *out = (struct candidate){.class = class, .data = conformance_data_of(class->name)};
    snprintf(out->strategy, sizeof out->strategy, "%s%s%.*s%s%s", class->name, *options ? "," : "", before,
             options, hole ? CONFORMANCE_WORKERS : "", hole ? hole + strlen(workers_hole) : "");
    struct tr_job_settings settings = {.strategy = out->strategy};
    struct tr_job *opened;
    struct tr_strategy_outline outline;
    must_train(tr_job_open(model, &settings, &opened));
    for (int ranks = 1; ranks <= CONFORMANCE_RANKS; ranks++)
        out->legal[ranks] = tr_strategy_check(opened, ranks) == TR_OK;
    int workers = 1;
    while (workers < CONFORMANCE_RANKS && tr_strategy_outline(opened, workers, &outline) != TR_OK) workers++;
    must_train(tr_strategy_outline(opened, workers, &outline));
    out->asynchronous = outline.asynchronous;
    out->servers = outline.ranks - workers;
    tr_job_destroy(&opened);
}

/* ---- runs ---- */

void order_job(const struct order *order, struct job *job)
{
    job_begin(job, model);
    for (int i = 0; i < 3 && order->set[i]; i++) job_set(job, order->set[i]);
    job->settings.set = job->set;
    job->settings.steps = order->steps ? order->steps : CONFORMANCE_STEPS;
    job->settings.out = order->out;
    job->settings.resume = order->resume;
    job->settings.strategy = order->strategy;
    job->settings.shares = order->shares;
    job->settings.slow = order->slow;
    if (order->ranks <= 1) return;
    job->settings.device = conformance.device;
    job->settings.program_cache = conformance.program_cache;
}

tr_trainer *order_trainer(const struct order *order, struct job *job)
{
    order_job(order, job);
    return job_trainer(job);
}

/* A rank's part of an order. */
struct member {
    const struct order *order;
    struct result *result;
};

/* Of the rank that records. */
struct recorder {
    struct left_behind *left;
    tr_device *device;
};

static tr_status bring(tr_device *device, float *to, const float *from, int64_t floats)
{
    tr_status status = tr_device_to_host(device, to, from, (size_t)floats * sizeof *to);
    return status == TR_OK ? tr_device_wait(device) : status;
}

/* Copies an arena if there is one, and says whether. */
static bool copy_arena(float *copy, tr_variables *variables, enum tr_arena which)
{
    const float *arena = tr_variables_arena(variables, which);
    int64_t floats = tr_variables_floats(variables);
    if (floats > RESULT_FLOATS) abort();
    if (arena) must_train(bring(tr_variables_device(variables), copy, arena, floats));
    return arena;
}

static tr_status record(void *user, const float *gradient, int64_t begin, int64_t end)
{
    const struct recorder *recorder = user;
    struct left_behind *left = recorder->left;
    if (begin == 0) left->update_count++;
    if (left->update_count > RESULT_UPDATES || end > RESULT_FLOATS) abort();
    return bring(recorder->device, left->update[left->update_count - 1] + begin, gradient + begin,
                 end - begin);
}

static void run_trainer(tr_trainer *trainer, int rank, const struct member *member, struct outcome *outcome)
{
    const struct order *order = member->order;
    struct result *result = member->result;
    struct recorder recorder = {result->left, tr_variables_device(trainer_variables(trainer))};
    if (rank == order->stopper) tr_trainer_stop(trainer);
    if (order->recorded && rank == order->ranks - 1)
        tr_strategy_observe(trainer_strategy(trainer), TR_OBSERVER_PROBE,
                            (struct tr_strategy_observer){.update = record, .user = &recorder});
    trainer_outcome(trainer, outcome);
    if (outcome->status == TR_OK) must_train(tr_trainer_hash(trainer, outcome->hash));
    if (rank > 0) return;
    copy_arena(result->left->parameters, trainer_variables(trainer), TR_ARENA_PARAMETERS);
    result->left->has_averages = copy_arena(result->left->averages, trainer_variables(trainer), TR_ARENA_EMA);
}

static void *run_member(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    int number = tr_comm_rank(rank->comm);
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        run_trainer(trainer, number, rank->user, &rank->outcome);
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

void run_order(const struct order *order, struct result *result)
{
    struct job job;
    *result = (struct result){.ranks = order->ranks > 1 ? order->ranks : 1,
                              .left = ranks_shared(sizeof *result->left)};
    struct member member = {order, result};
    order_job(order, &job);
    if (order->ranks > 1) {
        for (int r = 0; r < order->ranks; r++) result->rank[r].user = &member;
        run_ranks_by(run_member, &job.settings, order->ranks, order->apart, result->rank);
        return;
    }
    tr_trainer *trainer = job_trainer(&job);
    run_trainer(trainer, 0, &member, &result->rank[0].outcome);
    tr_trainer_destroy(&trainer);
}

void run_release(struct result *result)
{
    ranks_unshare(result->left, sizeof *result->left);
    *result = (struct result){0};
}

const struct result *alone(int feature)
{
    struct result *result = &alone_result[feature];
    struct order order = {.set = {features[feature].set[0], features[feature].set[1]}, .stopper = -1};
    if (result->ranks == 0) run_order(&order, result);
    const struct outcome *outcome = &result->rank[0].outcome;
    if (outcome->status != features[feature].status)
        fail_msg("%s alone: %s", features[feature].name, outcome->message);
    if (features[feature].skips != (outcome->warnings > 0))
        fail_msg("%s alone: %d warnings", features[feature].name, outcome->warnings);
    return result;
}

bool expect_status(struct candidate *candidate, const struct result *result, tr_status expected,
                   const char *how)
{
    for (int r = 0; r < (candidate->asynchronous ? 1 : result->ranks); r++) {
        const struct outcome *outcome = &result->rank[r].outcome;
        if (outcome->status == expected) continue;
        return complain(candidate, "%s, rank %d of %d: %s in the place of %s (%s)", how, r, result->ranks,
                        tr_status_name(outcome->status), tr_status_name(expected), outcome->message);
    }
    return true;
}
