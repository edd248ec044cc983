/* The log of a simulated run: workers with delays that follow from a seed, by the real rules (schedule.h),
 * in simulated time. The same on every machine.
 */
#include "strategy/choice.h"
#include "strategy/parameter_server/parameter_server.h"
#include "strategy/parameter_server/schedule.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/math.h"
#include "base/numbers/rng.h"

#include <string.h>

/* The state of a simulation. */
struct play {
    ps_schedule *schedule;
    const struct tr_strategy_simulation *wanted;
    tr_rng_key key;
    double now;
    double *done;    /* [workers] when each finishes its work; below 0: it has none */
    uint32_t *turns; /* [workers] number of contributions so far */
};

/* The time of a contribution: 1, more on a slow worker, and a delay that is exponential with a mean of a
   half (tr_strategy_delay()). */
static double duration(const struct play *play, int worker)
{
    uint32_t words[4];
    tr_rng_philox(play->key, (uint32_t)worker, play->turns[worker]++, 0, 0, words);
    double uniform = ((double)words[0] + 0.5) / 4294967296.0;
    return play->wanted->slow[worker] - 0.5 * tr_log(uniform);
}

static void hand_out(struct play *play)
{
    struct ps_work work;
    while (ps_schedule_next(play->schedule, true, &work))
        play->done[work.worker] = play->now + duration(play, work.worker);
}

/* The worker that finishes next; the lowest of several at the same time. -1: none works. */
static int next_worker(const struct play *play)
{
    int next = -1;
    for (int w = 0; w < play->wanted->workers; w++)
        if (play->done[w] >= 0 && (next < 0 || play->done[w] < play->done[next])) next = w;
    return next;
}

static tr_status run(struct play *play, struct tr_update_log *log)
{
    for (int w = 0; w < play->wanted->workers; w++) ps_schedule_ask(play->schedule, w);
    hand_out(play);
    for (int worker; !ps_schedule_is_over(play->schedule) && (worker = next_worker(play)) >= 0;) {
        play->now = play->done[worker];
        play->done[worker] = -1;
        struct ps_taken taken = ps_schedule_take(play->schedule, worker);
        struct tr_update record = {.number = taken.number,
                                   .missed = (uint32_t)taken.missed,
                                   .worker = (uint16_t)worker,
                                   .kind = taken.late ? TR_UPDATE_DROPPED : TR_UPDATE_APPLIED};
        TR_TRY(tr_update_log_add(log, &record, 1));
        ps_schedule_ask(play->schedule, worker);
        hand_out(play);
    }
    return TR_OK;
}

static tr_status simulate(const struct ps_schedule_settings *settings,
                          const struct tr_strategy_simulation *wanted, struct tr_update_log *log)
{
    struct play play = {.wanted = wanted, .key = tr_rng_key_make(wanted->seed, TR_RNG_DELAY)};
    play.done = tr_alloc((size_t)settings->workers, sizeof *play.done);
    play.turns = tr_alloc_zero((size_t)settings->workers, sizeof *play.turns);
    tr_status status = play.done && play.turns ? ps_schedule_create(settings, &play.schedule) : TR_ENOMEM;
    for (int w = 0; status == TR_OK && w < settings->workers; w++) play.done[w] = -1;
    if (status == TR_OK) status = run(&play, log);
    ps_schedule_destroy(&play.schedule);
    tr_free(play.done);
    tr_free(play.turns);
    return status;
}

static tr_status simulate_choice(const struct tr_job *job, const struct tr_strategy_choice *choice,
                                 const struct tr_strategy_simulation *wanted, struct tr_update_log *log)
{
    const struct ps_options *options = choice->options;
    if (choice->class != &tr_strategy_parameter_server || options->mode == PS_SYNC)
        return tr_fail(TR_EINVAL,
                       "delays change nothing under the strategy %s%s; choose an asynchronous one, as in "
                       "`strategy: {parameter-server: {mode: async}}`",
                       choice->class->name,
                       choice->class == &tr_strategy_parameter_server ? ",mode=sync" : "");
    TR_TRY(tr_strategy_choice_check(choice, job, wanted->workers + options->servers));
    struct ps_schedule_settings settings = {
        .workers = wanted->workers,
        .end = job->train.steps,
        .parts = options->mode == PS_BACKUP ? wanted->workers - options->backup : 1,
        .staleness = options->mode != PS_BOUNDED ? PS_STALENESS_ANY
                     : options->staleness < 0    ? 2 * (int64_t)wanted->workers
                                                 : options->staleness,
        .drops = options->mode == PS_BACKUP,
    };
    struct tr_update_session session = {
        .mode = options->mode - PS_ASYNC,
        .workers = wanted->workers,
        .servers = options->servers,
        .parts = settings.parts,
        .staleness = settings.staleness,
        .steps = job->train.steps,
    };
    TR_TRY(tr_update_log_begin(log, &session));
    return simulate(&settings, wanted, log);
}

tr_status tr_strategy_simulate(const struct tr_job *job, const struct tr_strategy_simulation *wanted,
                               struct tr_update_log *log)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(job->file.strategy, &choice));
    tr_status status = simulate_choice(job, &choice, wanted, log);
    tr_strategy_choice_release(&choice);
    return status;
}
