#include "plan/measure.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/thread.h"
#include "plan/variant.h"
#include "strategy/class.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define STEPS_LEAST 3
#define PIECE       ((int64_t)32 << 10) /* floats of an update in the cache, as strategies make it */
#define STREAM      ((int64_t)4 << 20)  /* floats of a sum that no cache holds */
#define STREAMS     5
/* Numbers are moved between steps, when steps have not filled the caches with them; but not after each
   step, since steps would then no longer find theirs. At least so often: */
#define STEPS_PER_MOVE 3
#define MOVES          5

/* One of the copies that compute at the same time. The first measures; the others continue until it is
   done. */
struct copy {
    const struct tr_measurement *measurement;
    const struct copy *first; /* of all */
    tr_costs *costs;          /* of the first; NULL */
    struct tr_measured_rates rates;
    double computing,
        beside; /* seconds of all copies' own threads, and of other threads, while the first measured */
    atomic_bool *over;
    pthread_t thread;
    bool started;
    struct tr_failure failure;
    tr_device *inner, *device;
    float *numbers; /* device [2][floats of the arena] to move; NULL where nothing is measured */
    int moves;      /* so far */
};

/* Whether so many seconds have passed since `began`, and the first has measured enough, or the others may
   end. */
static bool is_enough(const struct copy *copy, double seconds, double began, int64_t steps)
{
    if (!copy->costs) return atomic_load(copy->over);
    /* Many short steps, too, need this time: a processor is faster at first than later. */
    return steps >= STEPS_LEAST && tr_clock_seconds() - began > seconds;
}

/* ---- what other threads take ---- */

static double seconds_of(clockid_t clock)
{
    struct timespec taken;
    return clock_gettime(clock, &taken) == 0 ? (double)taken.tv_sec + 1e-9 * (double)taken.tv_nsec : 0;
}

/* Seconds that the threads of the copies have taken so far, and all others of the process. */
static void count_threads(const struct copy *copy, double *own, double *others)
{
    const struct copy *first = copy->first;
    *own = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 1; i < copy->measurement->copies; i++) {
        clockid_t clock;
        if (first[i].started && pthread_getcpuclockid(first[i].thread, &clock) == 0)
            *own += seconds_of(clock);
    }
    *others = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - *own;
}

/* Adds the time between a call with `sign` -1 and one with 1. */
static void count_beside(struct copy *copy, double sign)
{
    double own, others;
    if (!copy->costs || copy->inner->threads > 1 || !copy->inner->class->host_memory) return;
    count_threads(copy, &own, &others);
    copy->computing += sign * own;
    copy->beside += sign * others;
}

/* ---- steps ---- */

/* Operations of strategies on whole parameters that a step of one process does not need: copies, sums and
   means of so many numbers. */
static tr_status move(const struct copy *copy, tr_device *device, int64_t floats)
{
    float *from = copy->numbers, *to = from + copy->measurement->job->model->arena_floats;
    struct tr_op_scale scale = {floats, 0.5F, from, to};
    struct tr_op_add add = {floats, from, to, to};
    TR_TRY(tr_device_scale(device, &scale));
    return tr_device_add(device, &add);
}

static tr_status move_all(struct copy *copy, tr_device *device)
{
    int64_t floats = copy->measurement->job->model->arena_floats;
    copy->moves++;
    TR_TRY(move(copy, device, floats));
    return floats > 2 * PIECE ? move(copy, device, PIECE) : TR_OK;
}

/* Updates of data that fit the cache. */
static tr_status update_pieces(const tr_strategy *strategy)
{
    int64_t floats = strategy->job->model->arena_floats;
    const float *gradient = tr_gradient_slots(strategy->replicas->gradient);
    int64_t most = 64 * PIECE < floats ? 64 * PIECE : floats;
    for (int64_t begin = 0, end; begin < most; begin = end) {
        end = begin + PIECE < most ? begin + PIECE : most;
        if (tr_optimizer_takes_wholes(&strategy->job->optimizer)) end = most = floats;
        TR_TRY(tr_variables_update(strategy->replicas->variables, gradient + begin, begin, end));
    }
    return TR_OK;
}

static tr_status run_steps(struct copy *copy, tr_strategy *strategy, double seconds)
{
    double began = tr_clock_seconds();
    struct tr_step_figures figures;
    TR_TRY(tr_strategy_step(strategy, 0, 0, &figures)); /* warms up */
    tr_timing_device_enable(strategy->device, copy->costs != NULL);
    count_beside(copy, -1);
    for (int64_t step = 1; !is_enough(copy, seconds, began, step - 1); step++) {
        TR_TRY(tr_strategy_step(strategy, step % strategy->job->train.steps, 0, &figures));
        if (!copy->costs) continue;
        if (step % STEPS_PER_MOVE == 0) TR_TRY(move_all(copy, strategy->device));
        tr_costs_end_step(copy->costs);
    }
    count_beside(copy, 1);
    if (copy->costs) TR_TRY(update_pieces(strategy));
    tr_timing_device_enable(strategy->device, false);
    return TR_OK;
}

static tr_status run_part(struct copy *copy, tr_device *device, const struct tr_measured_part *part,
                          double seconds)
{
    const struct tr_job_variant_settings settings = {
        .strategy = "allreduce", .batch = part->rows, .microbatches = part->microbatches};
    /* Otherwise pieces would be measured rather than the requested operations. */
    const struct tr_strategy_settings whole = {.whole_gradients = true};
    struct tr_job_variant variant;
    tr_strategy *strategy = NULL;
    tr_status status;
    TR_TRY_GOTO(tr_job_variant_make(copy->measurement->job, &settings, &variant), out);
    TR_TRY_GOTO(tr_strategy_create(device, &variant.job, NULL, &whole, &strategy), out);
    TR_TRY_GOTO(tr_strategy_begin(strategy), out);
    TR_TRY_GOTO(tr_variables_initialize(strategy->replicas->variables, (uint64_t)variant.job.file.seed), out);
    TR_TRY_GOTO(tr_variables_begin_ema(strategy->replicas->variables), out);
    TR_TRY_GOTO(tr_strategy_connect(strategy, 0), out);
    status = run_steps(copy, strategy, seconds);
out:
    tr_strategy_destroy(&strategy);
    tr_job_variant_release(&variant);
    return status;
}

/* Sums of numbers that come from memory. */
static tr_status run_stream(struct copy *copy)
{
    void *memory;
    double best = 0;
    TR_TRY(tr_device_alloc(copy->inner, (size_t)(3 * STREAM) * sizeof(float), &memory));
    float *numbers = memory;
    struct tr_op_fill zero = {3 * STREAM, 0, numbers};
    struct tr_op_add add = {STREAM, numbers, numbers + STREAM, numbers + 2 * STREAM};
    tr_status status = tr_device_fill(copy->inner, &zero);
    for (int i = 0; i < STREAMS && status == TR_OK; i++) {
        double began = tr_device_time(copy->inner);
        status = tr_device_add(copy->inner, &add);
        if (status == TR_OK) status = tr_device_wait(copy->inner);
        double rate = 3.0 * (double)STREAM * sizeof(float) / (tr_device_time(copy->inner) - began);
        if (rate > best) best = rate;
    }
    tr_device_free(copy->inner, memory);
    copy->rates.memory = best;
    return status;
}

/* Parts of fusions, for stages that split them. */
static tr_status run_parted(struct copy *copy)
{
    const struct tr_measurement *measurement = copy->measurement;
    tr_device *device;
    TR_TRY(tr_timing_device_create(copy->inner, copy->costs, false, &device));
    tr_status status = TR_OK;
    for (int i = 0; i < measurement->parts && status == TR_OK; i++)
        status = run_part(copy, device, &measurement->part[i], measurement->seconds / 4);
    tr_device_destroy(&device);
    return status;
}

static tr_status make_numbers(struct copy *copy)
{
    int64_t floats = 2 * copy->measurement->job->model->arena_floats;
    void *memory;
    TR_TRY(tr_device_alloc(copy->inner, (size_t)floats * sizeof(float), &memory));
    copy->numbers = memory;
    struct tr_op_fill zero = {floats, 0, copy->numbers};
    return tr_device_fill(copy->inner, &zero);
}

/* Moves numbers as often as steps did not. */
static tr_status move_more(struct copy *copy)
{
    tr_timing_device_enable(copy->device, true);
    while (copy->moves < MOVES) {
        TR_TRY(move_all(copy, copy->device));
        tr_costs_end_step(copy->costs);
    }
    tr_timing_device_enable(copy->device, false);
    return TR_OK;
}

static tr_status run_all(struct copy *copy)
{
    const struct tr_measurement *measurement = copy->measurement;
    double seconds = measurement->seconds;
    TR_TRY(tr_device_open(measurement->device, &copy->inner));
    TR_TRY(tr_timing_device_create(copy->inner, copy->costs, true, &copy->device));
    /* The others continue with the largest part, which also comes from memory. */
    if (!copy->costs) return run_part(copy, copy->device, &measurement->part[0], seconds);
    TR_TRY(run_stream(copy));
    TR_TRY(make_numbers(copy));
    for (int i = 0; i < measurement->parts; i++)
        TR_TRY(run_part(copy, copy->device, &measurement->part[i], seconds));
    if (tr_costs_know_fusions(copy->costs)) TR_TRY(run_parted(copy));
    if (copy->computing > 0 && copy->beside > 0) copy->rates.beside = copy->beside / copy->computing;
    return move_more(copy);
}

/* Each copy has separate processors, like ranks that `trireme launch` starts, if there are enough. */
static void take_processors(const struct copy *copy, const cpu_set_t *all)
{
    int threads = copy->measurement->device->threads;
    if (threads > 0) tr_thread_take_share(all, (int)(copy - copy->first), copy->measurement->copies, threads);
}

static void *copy_main(void *argument)
{
    struct copy *copy = argument;
    cpu_set_t all;
    tr_thread_processors(&all);
    take_processors(copy, &all);
    tr_failure_keep(&copy->failure, run_all(copy));
    if (copy->numbers) tr_device_free(copy->inner, copy->numbers);
    tr_device_destroy(&copy->device);
    tr_device_destroy(&copy->inner);
    tr_thread_keep_to(&all, 0, CPU_COUNT(&all));
    return NULL;
}

tr_status tr_measure(const struct tr_measurement *measurement, tr_costs *costs,
                     struct tr_measured_rates *rates)
{
    atomic_bool over = false;
    struct copy *copy = tr_alloc_zero((size_t)measurement->copies, sizeof *copy);
    if (!copy) return TR_ENOMEM;
    for (int i = 0; i < measurement->copies; i++) {
        copy[i].measurement = measurement;
        copy[i].first = copy;
        copy[i].over = &over;
        copy[i].failure.status = TR_OK;
    }
    for (int i = 1; i < measurement->copies; i++)
        copy[i].started = tr_thread_start(&copy[i].thread, copy_main, &copy[i]) == 0;
    copy[0].costs = costs;
    copy_main(&copy[0]);
    atomic_store(&over, true);
    tr_status status = tr_failure_restore(&copy[0].failure);
    for (int i = 1; i < measurement->copies; i++) {
        if (copy[i].started) pthread_join(copy[i].thread, NULL);
        if (status == TR_OK && !copy[i].started)
            status = tr_fail(TR_ENOMEM, "the system has no thread for a measurement");
        if (status == TR_OK) status = tr_failure_restore(&copy[i].failure);
    }
    *rates = copy[0].rates;
    tr_free(copy);
    return status;
}
