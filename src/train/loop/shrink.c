/* Going on without ranks that died.
 *
 * The run is at one of two kinds of places: in a step, or between steps, where it evaluates, saves and the
 * like. When a rank dies, the others find out at different places, but none is further than one step ahead:
 * the end of a step is told by all to all. So the furthest decides. Who was still in the step before it takes
 * its figures from one who was not: its updates are all done. What comes between the steps is repeated unless
 * all had it behind them. Then the updates of the step under way are undone, the work is divided anew, and
 * all go on: what follows is computed from the same numbers in the same order as ever.
 *
 * Who is first among those who live is the root, which reports and saves. What the root before did not come
 * to tell of the last step is told now (trainer_told.c).
 *
 * The strategy of before is kept until the new one is there on all ranks; if another rank dies meanwhile, it
 * all begins anew.
 */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "train/setup/place.h"

#include <stdio.h>
#include <string.h>

/* ---- crews ---- */

static tr_status next_crew(tr_trainer *trainer, tr_comm **out)
{
    TR_TRY(tr_comm_survivors(trainer->whole, out));
    trainer->crew[trainer->crews++] = *out;
    return TR_OK;
}

tr_status trainer_form_crew(tr_trainer *trainer, const struct tr_train_settings *settings, tr_comm *comm)
{
    if (!settings->outlives || !comm || tr_comm_size(comm) == 1) return TR_OK;
    if (settings->trace || settings->profile || settings->record_digests)
        return tr_fail(TR_EINVAL, "traces, profiles and digests are of ranks that stay; a job that goes on "
                                  "without those who die has none of them");
    trainer->whole = comm;
    return next_crew(trainer, &trainer->comm);
}

void trainer_dissolve(tr_trainer *trainer)
{
    if (!trainer->whole) return;
    bool all =
        trainer->crews > 0 && tr_comm_size(trainer->crew[trainer->crews - 1]) == tr_comm_size(trainer->whole);
    while (trainer->crews > 0) tr_comm_destroy(&trainer->crew[--trainer->crews]);
    if (!all) tr_comm_dissolve(trainer->whole);
    trainer->whole = trainer->comm = NULL;
}

void trainer_tell_others(tr_trainer *trainer)
{
    if (!trainer->comm) return;
    char why[TR_MESSAGE_SIZE];
    snprintf(why, sizeof why, "%s", tr_error_message());
    tr_comm_abort(trainer->comm, why);
    if (trainer->whole) tr_comm_abort(trainer->whole, why);
}

bool trainer_may_shrink(const tr_trainer *trainer, tr_status status)
{
    return status == TR_EPEER && trainer->whole && tr_comm_lost_member(trainer->comm);
}

static bool changes_root(const tr_comm *before, const tr_comm *crew)
{
    return tr_comm_number(before, 0) != tr_comm_number(crew, 0);
}

/* A root that left in good order has ended the run. */
static tr_status check_root(const tr_trainer *trainer)
{
    int root = tr_comm_number(trainer->comm, 0);
    if (tr_comm_life(trainer->whole, root, NULL, 0) != TR_COMM_LEFT) return TR_OK;
    return tr_fail(TR_EPEER, "rank %d on host %s has ended the run", root,
                   tr_comm_host(trainer->whole, root));
}

/* Which ranks of the crew before are not in this one. */
static void name_lost(const tr_trainer *trainer, const tr_comm *crew, char *text, size_t size)
{
    const tr_comm *before = trainer->comm;
    struct tr_text lost = TR_TEXT_INIT;
    int now = 0, count = 0;
    for (int r = 0; r < tr_comm_size(before); r++) {
        bool here = now < tr_comm_size(crew) && tr_comm_number(crew, now) == tr_comm_number(before, r);
        now += here;
        if (!here)
            tr_text_addf(&lost, "%srank %d on host %s", count++ ? ", " : "", tr_comm_number(before, r),
                         tr_comm_host(before, r));
    }
    snprintf(text, size, "%s died; %d of %d ranks go on", lost.bytes ? lost.bytes : "nobody",
             tr_comm_size(crew), tr_comm_size(trainer->whole));
    if (changes_root(before, crew)) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, ", and rank %d reports and saves", tr_comm_number(crew, 0));
    }
    tr_text_release(&lost);
}

/* ---- where all go on ---- */

static tr_status agree(const tr_trainer *trainer, tr_comm *crew, struct trainer_progress *progress)
{
    int size = tr_comm_size(crew), first = 0;
    struct trainer_progress *all = tr_alloc_zero((size_t)size, sizeof *all);
    if (!all) return TR_ENOMEM;
    progress->root = tr_comm_number(trainer->comm, 0);
    progress->saved = trainer->told.saved;
    all[tr_comm_rank(crew)] = *progress;
    tr_status status = tr_comm_exchange(crew, all, sizeof *all, "how far ranks have come");
    bool resting = false, orphaned = false;
    for (int r = 1; r < size; r++)
        if (all[r].step > all[first].step) first = r;
    for (int r = 0; r < size && status == TR_OK; r++) {
        if (all[first].step - all[r].step > 1)
            status =
                tr_fail(TR_EMISMATCH, "rank %d has done %lld steps, rank %d %lld", tr_comm_number(crew, r),
                        (long long)all[r].step, tr_comm_number(crew, first), (long long)all[first].step);
        resting = resting || all[r].resting || all[r].step < all[first].step;
        orphaned = orphaned || all[r].root != tr_comm_number(crew, 0);
    }
    if (status == TR_OK) *progress = all[first];
    /* What the root before owed to the journal comes with what follows the step. */
    if (status == TR_OK) progress->resting = resting || (orphaned && progress->figures.steps > 0);
    if (status == TR_OK) progress->saved = all[0].saved;
    if (status == TR_OK) progress->tested = all[0].tested;
    tr_free(all);
    return status;
}

/* What was made for the ranks of before, beside the strategy. */
static void drop(tr_trainer *trainer)
{
    for (int i = 0; i < TR_SETS; i++) tr_evaluator_destroy(&trainer->evaluator[i]);
    tr_mirror_destroy(&trainer->mirror);
    tr_probe_destroy(&trainer->observation.probe);
}

/* The given speeds of those who live, or the word that says how to find them. Returned, free with tr_free().
 */
static tr_status shares_of(const char *given, const tr_comm *crew, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    *out = NULL;
    if (!given) return TR_OK;
    if (!strchr("0123456789.", *given)) return (*out = tr_strdup(given)) ? TR_OK : TR_ENOMEM;
    for (int r = 0, number = 0; r < tr_comm_size(crew); number++) {
        size_t length = strcspn(given, ",");
        if (number == tr_comm_number(crew, r)) {
            tr_text_addf(&text, "%s%.*s", r ? "," : "", (int)length, given);
            r++;
        }
        given += length + (given[length] == ',');
    }
    return tr_text_finish(&text, out);
}

static tr_status create(tr_trainer *trainer, tr_comm *crew, tr_strategy **out)
{
    struct tr_strategy_settings settings = trainer->strategy_settings;
    char *shares;
    TR_TRY(shares_of(trainer->shares_given, crew, &shares));
    settings.shares = shares;
    tr_status status = tr_strategy_create(trainer->device, trainer->job, crew, &settings, out);
    tr_free(shares);
    return status;
}

static tr_status divide(tr_trainer *trainer, tr_comm *crew, int64_t step, tr_strategy **out)
{
    TR_TRY(create(trainer, crew, out));
    TR_TRY(tr_strategy_inherit(*out, trainer->strategy, step));
    TR_TRY(tr_strategy_begin(*out));
    return tr_strategy_meet(*out, step);
}

/* The strategy of before has the state at the beginning of `step`, but for updates that are to be undone. */
static tr_status rebuild(tr_trainer *trainer, tr_comm *crew, int64_t step)
{
    tr_strategy *strategy = NULL;
    drop(trainer);
    tr_status status = divide(trainer, crew, step, &strategy);
    if (status != TR_OK) {
        struct tr_failure how;
        tr_failure_keep(&how, status);
        tr_strategy_destroy(&strategy);
        return tr_failure_restore(&how);
    }
    tr_strategy_destroy(&trainer->strategy);
    trainer->strategy = strategy;
    trainer->variables = tr_strategy_variables(strategy);
    trainer->comm = crew;
    trainer->step = step;
    trainer_set_evaluation_hooks(trainer);
    tr_free(trainer->places);
    trainer->places = NULL;
    TR_TRY(tr_train_gather_places(crew, trainer->device, trainer->holder, tr_strategy_memory(strategy),
                                  &trainer->places));
    return trainer_observe_meet(trainer);
}

tr_status trainer_shrink(tr_trainer *trainer, struct trainer_progress *progress, char *text, size_t size)
{
    for (;;) {
        tr_comm *crew;
        TR_TRY(next_crew(trainer, &crew));
        TR_TRY(check_root(trainer));
        name_lost(trainer, crew, text, size);
        if (!trainer->is_root && tr_comm_rank(crew) == 0) trainer_learn_told(trainer);
        tr_status status = agree(trainer, crew, progress);
        if (status == TR_OK) status = rebuild(trainer, crew, progress->step);
        if (status != TR_EPEER || !tr_comm_lost_member(crew)) return status;
    }
}
