/* What the ranks of a run did, for those who started it. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "train/describe/waited.h"
#include "train/loop/internal.h"

double tr_train_waited(double waited, double computed, double seconds)
{
    double beyond = waited + computed - seconds;
    if (!(seconds > 0) || !(beyond > 0)) return waited;
    return waited > beyond ? waited - beyond : 0;
}

tr_status trainer_collect_statistics(tr_trainer *trainer)
{
    struct tr_strategy_statistics *kept = &trainer->statistics;
    tr_strategy_statistics_release(kept);
    TR_TRY(tr_strategy_statistics(trainer->strategy, kept));
    tr_free(trainer->rank_statistics);
    trainer->rank_statistics = tr_alloc((size_t)kept->ranks, sizeof *trainer->rank_statistics);
    if (!trainer->rank_statistics) return TR_ENOMEM;
    for (int r = 0; r < kept->ranks; r++)
        trainer->rank_statistics[r] = (struct tr_train_rank){
            .bytes_sent = kept->rank[r].bytes_sent,
            .bytes_received = kept->rank[r].bytes_received,
            .bytes_shared = kept->rank[r].bytes_shared,
            .wait_seconds = tr_train_waited(kept->rank[r].wait_seconds, kept->rank[r].compute_seconds,
                                            trainer->run_seconds),
            .compute_seconds = kept->rank[r].compute_seconds,
            .contributions = kept->rank[r].contributions,
        };
    trainer->run_steps = trainer->step - trainer->run_began;
    return TR_OK;
}

tr_status tr_trainer_statistics(const tr_trainer *trainer, struct tr_train_statistics *out)
{
    const struct tr_strategy_statistics *kept = &trainer->statistics;
    if (!trainer->rank_statistics)
        return tr_fail(TR_EINVAL, "no run has come to its end yet; call tr_trainer_run() first");
    const struct tr_train_statistics statistics = {
        .ranks = kept->ranks,
        .rank = trainer->rank_statistics,
        .steps = trainer->run_steps,
        .asynchronous = kept->asynchronous,
        .staleness = kept->staleness,
        .staleness_bins = TR_STALENESS_BINS,
        .dropped = kept->dropped,
    };
    return tr_sized_give(&statistics, sizeof statistics, "TR_TRAIN_STATISTICS_INIT", out);
}
