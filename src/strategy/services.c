/* Services for classes besides the driver: shared memory, waits, stragglers. */
#include "strategy/class.h"

#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/numbers/rng.h"

#include <math.h>
#include <time.h>

#define DELAY_NAP 0.02 /* seconds */

void tr_strategy_delay(const tr_strategy *strategy, int64_t step, double seconds)
{
    const struct tr_strategy_settings *settings = &strategy->settings;
    double delay = settings->slow > 1 ? (settings->slow - 1) * seconds : 0;
    if (settings->delay_seed) {
        /* Exponential with a mean of half a step, like waiting times of independent disturbances. */
        uint32_t words[4];
        tr_rng_philox(tr_rng_key_make(settings->delay_seed, TR_RNG_DELAY), (uint32_t)strategy->rank,
                      (uint32_t)step, 0, 0, words);
        double uniform = ((double)words[0] + 0.5) / 4294967296.0;
        delay += -log(uniform) * 0.5 * seconds;
    }
    /* In naps, since a stop request need not come as a signal to this thread. */
    double end = tr_clock_seconds() + delay, left = delay;
    for (; left > 0 && !(settings->stop && *settings->stop); left = end - tr_clock_seconds()) {
        double nap = left < DELAY_NAP ? left : DELAY_NAP;
        nanosleep(&(struct timespec){.tv_nsec = (long)(nap * 1e9)}, NULL);
    }
}

tr_status tr_strategy_window(tr_comm *comm, size_t bytes, tr_window **out)
{
    return tr_strategy_window_sparse(comm, bytes, 0, bytes, out);
}

tr_status tr_strategy_window_sparse(tr_comm *comm, size_t bytes, size_t begin, size_t end, tr_window **out)
{
    *out = NULL;
    tr_status status = tr_window_create_sparse(comm, bytes, begin, end, out);
    return status == TR_EUNSUPPORTED ? TR_OK : status;
}

tr_status tr_strategy_join(tr_comm *comm, const struct tr_staging *arena, int64_t begin, const int64_t *bound,
                           tr_window *window, const char *name)
{
    const int64_t *own = bound + tr_comm_rank(comm), bytes = (int64_t)sizeof(float);
    tr_ticket *ticket = NULL;
    TR_TRY(tr_staging_to_host(arena, begin + own[0] / bytes, begin + own[1] / bytes));
    TR_TRY(tr_device_wait(arena->device));
    TR_TRY(tr_comm_all_gather(comm, arena->host + begin, bound, window, name, &ticket));
    TR_TRY(tr_comm_wait(comm, &ticket));
    return tr_staging_to_device(arena, begin, begin + bound[tr_comm_size(comm)] / bytes);
}

tr_status tr_strategy_wait(tr_strategy *strategy, tr_status status, tr_ticket *ticket)
{
    return status == TR_OK ? tr_comm_wait(strategy->comm, &ticket) : status;
}

tr_status tr_strategy_use_progress_thread(tr_strategy *strategy, const tr_window *window)
{
    if (!strategy->comm || (window && tr_comm_hosts(strategy->comm) == 1)) return TR_OK;
    return tr_comm_use_progress_thread(strategy->comm, true);
}

bool tr_strategy_shares_evaluations(const tr_strategy *strategy)
{
    return strategy->class->asynchronous && strategy->class->asynchronous->evaluate;
}

struct tr_update_log *tr_strategy_updates(tr_strategy *strategy)
{
    return strategy->traits.asynchronous && strategy->rank == 0 ? &strategy->log : NULL;
}

bool tr_strategy_is_over(const tr_strategy *strategy)
{
    const struct tr_strategy_asynchronous *class = strategy->class->asynchronous;
    return class && class->is_over && class->is_over(strategy);
}
