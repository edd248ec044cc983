/* Continuing without dead ranks.
 *
 * The run is at one of two kinds of places: in a step, or between steps, where it evaluates, saves and the
 * like. When a rank dies, the others notice at different places, but none is more than one step ahead,
 * since all ranks exchange the end of a step. So the furthest one decides. Ranks that were in the step
 * before it take its figures from one that was not: all its updates are done. The work between the steps
 * is repeated unless all ranks had completed it. Then the updates of the step under way are undone, the
 * work is divided anew, and all continue: later steps are computed from the same numbers in the same order
 * as without the loss.
 *
 * The first living rank becomes the root, which reports and saves. Events of the last step that the
 * previous root did not report are reported now (reported.h).
 *
 * The old strategy is kept until all ranks have the new one; if another rank dies meanwhile, everything
 * begins anew.
 */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"

#include <string.h>

/* ---- where all go on ---- */

static tr_status agree(const tr_trainer *trainer, tr_comm *part, struct trainer_progress *progress)
{
    int size = tr_comm_size(part), first = 0;
    struct trainer_progress *all = tr_alloc_zero((size_t)size, sizeof *all);
    if (!all) return TR_ENOMEM;
    progress->root = tr_comm_number(trainer->crew.comm, 0);
    progress->saved = trainer->reported.saved;
    all[tr_comm_rank(part)] = *progress;
    tr_status status = tr_comm_exchange(part, all, sizeof *all, "how far ranks have come");
    bool resting = false, orphaned = false;
    for (int r = 1; r < size; r++)
        if (all[r].step > all[first].step) first = r;
    for (int r = 0; r < size && status == TR_OK; r++) {
        if (all[first].step - all[r].step > 1)
            status =
                tr_fail(TR_EMISMATCH, "rank %d has done %lld steps, rank %d %lld", tr_comm_number(part, r),
                        (long long)all[r].step, tr_comm_number(part, first), (long long)all[first].step);
        resting = resting || all[r].resting || all[r].step < all[first].step;
        orphaned = orphaned || all[r].root != tr_comm_number(part, 0);
    }
    if (status == TR_OK) *progress = all[first];
    /* Entries that the previous root owed to the journal come with the work after the step. */
    if (status == TR_OK) progress->resting = resting || (orphaned && progress->figures.steps > 0);
    if (status == TR_OK) progress->saved = all[0].saved;
    if (status == TR_OK) progress->tested = all[0].tested;
    tr_free(all);
    return status;
}

/* The given speeds of the living ranks, or "auto". Returned, free with tr_free(). */
static tr_status shares_of(const char *given, const tr_comm *part, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    *out = NULL;
    if (!given) return TR_OK;
    if (!strchr("0123456789.", *given)) return (*out = tr_strdup(given)) ? TR_OK : TR_ENOMEM;
    for (int r = 0, number = 0; r < tr_comm_size(part); number++) {
        size_t length = strcspn(given, ",");
        if (number == tr_comm_number(part, r)) {
            tr_text_addf(&text, "%s%.*s", r ? "," : "", (int)length, given);
            r++;
        }
        given += length + (given[length] == ',');
    }
    return tr_text_finish(&text, out);
}

static tr_status create(tr_trainer *trainer, tr_comm *part, tr_strategy **out)
{
    const struct trainer_variables *variables = &trainer->variables;
    struct tr_strategy_settings settings = variables->settings;
    char *shares;
    TR_TRY(shares_of(variables->shares_given, part, &shares));
    settings.shares = shares;
    tr_status status = tr_strategy_create(variables->device, trainer->job, part, &settings, out);
    tr_free(shares);
    return status;
}

static tr_status divide(tr_trainer *trainer, tr_comm *part, int64_t step, tr_strategy **out)
{
    TR_TRY(create(trainer, part, out));
    TR_TRY(tr_strategy_inherit(*out, trainer->variables.strategy, step));
    TR_TRY(tr_strategy_begin(*out));
    return tr_strategy_connect(*out, step);
}

/* The old strategy has the state at the beginning of `step`, except for updates that must be undone. */
static tr_status rebuild(tr_trainer *trainer, tr_comm *part, int64_t step)
{
    tr_strategy *strategy = NULL;
    trainer_evaluation_drop(&trainer->evaluation);
    tr_probe_destroy(&trainer->observation.board.probe);
    tr_status status = divide(trainer, part, step, &strategy);
    if (status != TR_OK) {
        struct tr_failure how;
        tr_failure_keep(&how, status);
        tr_strategy_destroy(&strategy);
        return tr_failure_restore(&how);
    }
    trainer_variables_replace(&trainer->variables, strategy, step);
    trainer->crew.comm = part;
    trainer_set_evaluation_hooks(trainer);
    TR_TRY(trainer_host_gather_rank_info(&trainer->host, part, &trainer->variables));
    return trainer_observe_connect(trainer);
}

tr_status trainer_shrink(tr_trainer *trainer, struct trainer_progress *progress, char *text, size_t size)
{
    struct trainer_crew *crew = &trainer->crew;
    for (;;) {
        tr_comm *part;
        TR_TRY(trainer_crew_survivors(crew, &part));
        TR_TRY(trainer_crew_check_root(crew));
        trainer_crew_name_lost(crew, part, text, size);
        if (!crew->is_root && tr_comm_rank(part) == 0)
            trainer_reported_learn(&trainer->reported, trainer->observation.journal.directory,
                                   &trainer->directory.checkpoint);
        tr_status status = agree(trainer, part, progress);
        if (status == TR_OK) status = rebuild(trainer, part, progress->step);
        if (status != TR_EPEER || !tr_comm_lost_member(part)) return status;
    }
}

tr_status trainer_take_over(tr_trainer *trainer)
{
    struct trainer_directory *directory = &trainer->directory;
    if (trainer->crew.is_root || !trainer_is_root(trainer)) return TR_OK;
    trainer->crew.is_root = true;
    if (directory->path && directory->lock < 0) TR_TRY(trainer_directory_take_over(directory));
    trainer_journal_go_on(&trainer->observation.journal);
    trainer_observe_take_over(trainer);
    return TR_OK;
}
