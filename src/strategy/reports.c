/* Reports: the outcome of each replica in a round, their exchange between ranks, and the common digest.
 *
 * Invariant: the digest is of constant size, and the same on all ranks; only the root has the reports of
 * separate replicas.
 */
#include "strategy/driver.h"

#include "base/fail.h"

void tr_driver_begin_reports(tr_strategy *strategy, int32_t request)
{
    struct tr_report *reports = strategy->reports + tr_driver_first_report(strategy, strategy->rank);
    for (int i = 0; i < strategy->replica_count; i++)
        reports[i] = (struct tr_report){.bad_step = -1, .request = request};
}

/* The replica's part of the round ends at `step`. */
static void give_up(struct tr_report *report, int64_t step, bool bad_loss)
{
    report->bad_step = step;
    report->bad_loss = bad_loss;
}

void tr_driver_tell(const tr_strategy *strategy, const struct tr_verdict *verdict, bool poisoned,
                    int64_t step, int64_t examples, struct tr_report *report)
{
    bool applied = !verdict->bad_loss && !verdict->skipped;
    if (verdict->skipped) report->skipped++;
    if (verdict->bad_loss || poisoned) give_up(report, step, verdict->bad_loss);
    /* For skipped steps, only the figures of a step that all ranks took together are reported. */
    if (!tr_driver_is_together(strategy) && (!applied || poisoned)) return;
    report->loss += (double)strategy->sums[0];
    report->correct += (double)strategy->sums[1];
    report->examples += examples;
}

/* For ranks that train one replica: all report the same examples, but each its own shard and requests. */
static void join_reports(void *into_, const void *from_)
{
    struct tr_report *into = into_;
    const struct tr_report *from = from_;
    if (from->bad_step >= 0 && (into->bad_step < 0 || from->bad_step < into->bad_step)) {
        into->bad_step = from->bad_step;
        into->bad_loss = from->bad_loss;
    }
    into->skipped = from->skipped > into->skipped ? from->skipped : into->skipped;
    into->request |= from->request;
}

/* For separate replicas: the root has the reports of all, whose sum does not depend on the ranks. */
static tr_status gather_reports(tr_strategy *strategy)
{
    int64_t bound[TR_STRATEGY_RANKS + 1];
    tr_ticket *ticket = NULL;
    for (int r = 0; r <= strategy->size; r++)
        bound[r] = tr_driver_first_report(strategy, r) * (int64_t)sizeof *strategy->reports;
    tr_status status = tr_comm_gather(strategy->comm, strategy->reports, bound, "end of round", &ticket);
    TR_TRY(tr_strategy_wait(strategy, status, ticket));
    if (strategy->rank == 0) tr_driver_digest(strategy->reports, strategy->report_count, strategy->digest);
    ticket = NULL;
    status =
        tr_comm_broadcast(strategy->comm, 0, strategy->digest, sizeof *strategy->digest, "round", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

tr_status tr_driver_exchange(tr_strategy *strategy)
{
    tr_ticket *ticket = NULL;
    bool apart = strategy->replica_bound || !tr_driver_is_together(strategy);
    if (strategy->comm && apart) return gather_reports(strategy);
    if (strategy->comm) {
        tr_status status = tr_comm_combine(strategy->comm, strategy->reports, sizeof *strategy->reports,
                                           join_reports, "end of step", &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    tr_driver_digest(strategy->reports, strategy->report_count, strategy->digest);
    return TR_OK;
}

void tr_driver_digest(const struct tr_report *reports, int64_t count, struct tr_digest *out)
{
    struct tr_report all = {.bad_step = -1};
    out->replica = -1;
    for (int64_t i = 0; i < count; i++) {
        const struct tr_report *report = &reports[i];
        all.loss += report->loss;
        all.correct += report->correct;
        all.norms += report->norms;
        all.examples += report->examples;
        all.measured += report->measured;
        all.skipped += report->skipped;
        all.request |= report->request;
        if (report->bad_step < 0 || (all.bad_step >= 0 && report->bad_step >= all.bad_step)) continue;
        all.bad_step = report->bad_step;
        all.bad_loss = report->bad_loss;
        out->replica = i;
    }
    out->all = all;
}

void tr_driver_sum_up(const tr_strategy *strategy, int64_t step, int64_t steps,
                      struct tr_step_figures *figures)
{
    const struct tr_report *all = &strategy->digest->all;
    bool bad = strategy->digest->replica >= 0;
    figures->request = all->request;
    figures->skipped = all->skipped > 0;
    figures->examples = all->examples;
    figures->steps = bad ? all->bad_step - step + 1 : steps;
    figures->loss = (float)all->loss;
    figures->correct = (float)all->correct;
    if (all->measured > 0) figures->norm = (float)(all->norms / (double)all->measured);
    if (!bad) return;
    figures->skipped = false;
    figures->bad_loss = all->bad_loss;
    figures->poisoned = !all->bad_loss;
}
