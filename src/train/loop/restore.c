/* How a trainer resumes the run of a checkpoint. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "job/file/settings.h"
#include "train/loop/tensors.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first setting that differs from those of the checkpoint, followed by "; "; "" where it cannot be
   found. Returned, free with tr_free(). */
static char *first_difference(const struct tr_job *job, const tr_checkpoint *checkpoint)
{
    static const struct tr_job_settings as_it_is = {0};
    struct tr_job *before = NULL;
    char *there = NULL, *here = NULL, *difference = NULL, *said = NULL;
    if (tr_job_restore(checkpoint, &as_it_is, &before) == TR_OK &&
        tr_settings_text(before, &there) == TR_OK && tr_settings_text(job, &here) == TR_OK &&
        tr_settings_compare(there, here, ", here ", 1, &difference) == TR_OK && *difference)
        said = tr_format("%s; ", difference);
    tr_free(difference);
    tr_free(here);
    tr_free(there);
    tr_job_destroy(&before);
    return said ? said : tr_strdup("");
}

static tr_status refuse_settings(const struct tr_job *job, const tr_checkpoint *checkpoint)
{
    char *difference = first_difference(job, checkpoint);
    if (!difference) return TR_ENOMEM;
    tr_fail(
        TR_EMISMATCH,
        "checkpoint \"%s\" was made with other settings (%sdigest %.16s, here %.16s), so the run would not "
        "end as the undisturbed one; resume without a model file to use its own, or allow changes "
        "(`resume_changed`)",
        tr_checkpoint_path(checkpoint), difference, tr_checkpoint_facts(checkpoint)->model_digest,
        job->digest);
    tr_free(difference);
    return TR_EMISMATCH;
}

static tr_status refuse_changes(tr_trainer *trainer, const tr_checkpoint *checkpoint)
{
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    const char *path = tr_checkpoint_path(checkpoint);
    if (strcmp(facts->model_digest, trainer->job->digest) != 0)
        return refuse_settings(trainer->job, checkpoint);
    TR_TRY(trainer_digest_data(trainer));
    if (strcmp(facts->data_digest, trainer->data_digest) != 0)
        return tr_fail(
            TR_EMISMATCH,
            "checkpoint \"%s\" was made with other training data (digest %.16s, here %.16s); give the same "
            "data, or allow changes (`resume_changed`)",
            path, facts->data_digest, trainer->data_digest);
    return TR_OK;
}

static void restore_counters(tr_trainer *trainer, const struct tr_checkpoint_facts *facts)
{
    struct tr_schedule *schedule = &trainer->job->optimizer.schedule;
    struct tr_plateau *plateau = &schedule->plateau;
    char plateau_best[TRAINER_BEST_NAME];
    trainer_plateau_best(trainer->job->train.monitor, plateau_best);
    trainer->variables.step = facts->step;
    for (int64_t i = 0; i < facts->metric_count; i++) {
        const char *name = facts->metrics[i].name;
        double value = facts->metrics[i].value;
        trainer_best_read(&trainer->best, &facts->metrics[i]);
        if (strcmp(name, PLATEAU_FACTOR) == 0 && value >= 0 && value <= 1) plateau->factor = value;
        if (strcmp(name, plateau_best) == 0 && !isnan(value)) plateau->best = value;
        if (strcmp(name, PLATEAU_WORSE) == 0 && value >= 0 && value < 0x1p53) plateau->worse = (int64_t)value;
        if (strcmp(name, GIVEN_RATE) == 0 && value >= 0 && value <= FLT_MAX) {
            schedule->is_given = true;
            schedule->given = trainer->rate.value = value;
        }
    }
}

static tr_status load_tensors(tr_trainer *trainer, tr_checkpoint *checkpoint, struct trainer_tensors *tensors)
{
    TR_TRY(trainer_tensors_list(trainer, checkpoint, tensors));
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++)
        TR_TRY(tr_checkpoint_load(checkpoint, (enum tr_checkpoint_group)i, tensors->tensor[i],
                                  tensors->count[i]));
    TR_TRY(trainer_tensors_take(trainer, tensors));
    tr_variables_trim(
        trainer->variables.arenas); /* tensors were loaded completely, also those at the bounds of a part */
    return TR_OK;
}

/* By ranks that have loaded the parameters; where no rank has all, the root reads them once more. A rank
   that keeps a part of them, while others have all, leaves it to these. */
static tr_status check_hash(tr_trainer *trainer, tr_checkpoint *checkpoint)
{
    const char *expected = tr_checkpoint_facts(checkpoint)->parameter_hash;
    char hash[TR_SHA256_TEXT];
    bool whole = tr_variables_are_whole(trainer->variables.arenas),
         spread = tr_strategy_is_spread(trainer->variables.strategy);
    if (!tr_variables_fills(trainer->variables.arenas) || (!whole && !spread))
        return TR_OK;
    else if (!spread)
        TR_TRY(tr_variables_hash(trainer->variables.arenas, hash));
    else if (trainer_is_root(trainer))
        TR_TRY(tr_job_stored_hash(trainer->job, checkpoint, hash));
    else
        return TR_OK;
    if (strcmp(hash, expected) == 0) return TR_OK;
    return tr_fail(TR_ECORRUPT, "checkpoint \"%s\": its parameters have hash %.16s, its manifest says %.16s",
                   trainer->beginning.resumed, hash, expected);
}

tr_status trainer_restore(tr_trainer *trainer, tr_checkpoint *checkpoint, bool changed)
{
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    struct trainer_tensors tensors = {0};
    if (!changed) TR_TRY(refuse_changes(trainer, checkpoint));
    TR_TRY(trainer_beginning_resume(&trainer->beginning, checkpoint,
                                    strcmp(facts->model_digest, trainer->job->digest) == 0));
    tr_status status = load_tensors(trainer, checkpoint, &tensors);
    trainer_tensors_release(&tensors);
    if (status != TR_OK) return status;
    restore_counters(trainer, facts);
    return check_hash(trainer, checkpoint);
}

static bool is_newest(const tr_trainer *trainer)
{
    int64_t latest;
    if (strcmp(trainer->beginning.resumed, TR_CHECKPOINT_MEMORY) == 0) return false;
    char *above = tr_path_parent(trainer->beginning.resumed);
    char *there = above ? realpath(above, NULL) : NULL, *here = realpath(trainer->directory.path, NULL);
    bool same = there && here && strcmp(there, here) == 0;
    free(here);
    free(there);
    tr_free(above);
    return same && tr_checkpoint_latest(trainer->directory.path, &latest) == TR_OK &&
           latest == trainer->variables.step;
}

tr_status trainer_was_complete(tr_trainer *trainer, bool *complete)
{
    int32_t word = 0;
    *complete = false;
    if (!trainer->directory.path || trainer->beginning.step != trainer->variables.step) return TR_OK;
    if (trainer_is_root(trainer)) word = is_newest(trainer);
    TR_TRY(tr_strategy_broadcast(trainer->variables.strategy, &word, sizeof word));
    *complete = word != 0;
    return TR_OK;
}

tr_status trainer_settle_best(tr_trainer *trainer)
{
    struct {
        int32_t status, there;
    } found = {TR_OK, false};
    int64_t step = trainer->best.kept.step;
    if (!trainer->directory.path || !tr_train_keeps_best(&trainer->job->train)) return TR_OK;
    if (trainer_is_root(trainer)) {
        bool there = false;
        found.status = (int32_t)tr_checkpoint_settle_best(NULL, trainer->directory.path, step, &there);
        found.there = there;
    }
    TR_TRY(tr_strategy_broadcast(trainer->variables.strategy, &found, sizeof found));
    if (found.status != TR_OK)
        return trainer_is_root(trainer)
                   ? (tr_status)found.status
                   : tr_fail((tr_status)found.status, "rank 0 could not mark the best checkpoint");
    if (step < 0 || found.there) return TR_OK;
    trainer_best_forget(&trainer->best);
    char *line = tr_format("the weights of the best evaluation so far, after step %" PRId64
                           ", are not in %s: the best counts from here on",
                           step, trainer->directory.path);
    tr_status status = line ? trainer_beginning_add_note(&trainer->beginning, line) : TR_ENOMEM;
    tr_free(line);
    return status;
}
