/* The work of a run's ranks, for the caller of the library. */
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

void trainer_account_begin(struct trainer_account *account, int64_t step)
{
    account->began = step;
    account->seconds = 0;
}

tr_status trainer_account_collect(struct trainer_account *account, tr_strategy *strategy, int64_t step)
{
    struct tr_strategy_statistics *kept = &account->statistics;
    tr_strategy_statistics_release(kept);
    TR_TRY(tr_strategy_statistics(strategy, kept));
    tr_free(account->ranks);
    account->ranks = tr_alloc((size_t)kept->ranks, sizeof *account->ranks);
    if (!account->ranks) return TR_ENOMEM;
    for (int r = 0; r < kept->ranks; r++)
        account->ranks[r] = (struct tr_train_rank){
            .bytes_sent = kept->rank[r].bytes_sent,
            .bytes_received = kept->rank[r].bytes_received,
            .bytes_shared = kept->rank[r].bytes_shared,
            .wait_seconds =
                tr_train_waited(kept->rank[r].wait_seconds, kept->rank[r].compute_seconds, account->seconds),
            .compute_seconds = kept->rank[r].compute_seconds,
            .contributions = kept->rank[r].contributions,
        };
    account->steps = step - account->began;
    return TR_OK;
}

void trainer_account_release(struct trainer_account *account)
{
    tr_strategy_statistics_release(&account->statistics);
    tr_free(account->ranks);
    account->ranks = NULL;
}

tr_status tr_trainer_statistics(const tr_trainer *trainer, struct tr_train_statistics *out)
{
    const struct tr_strategy_statistics *kept = &trainer->account.statistics;
    if (!trainer->account.ranks)
        return tr_fail(TR_EINVAL, "no run has come to its end yet; call tr_trainer_run() first");
    const struct tr_train_statistics statistics = {
        .ranks = kept->ranks,
        .rank = trainer->account.ranks,
        .steps = trainer->account.steps,
        .asynchronous = kept->asynchronous,
        .staleness = kept->staleness,
        .staleness_bins = TR_STALENESS_BINS,
        .dropped = kept->dropped,
    };
    return tr_sized_give(&statistics, sizeof statistics, "TR_TRAIN_STATISTICS_INIT", out);
}
