/* A trainer's checkpoints: gathers the ranks' data, and the root writes them. */
#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "job/file/monitor.h"
#include "train/loop/tensors.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

static tr_status save_to(const struct trainer_target *to, const struct tr_checkpoint_content *content)
{
    return to->path ? tr_checkpoint_save_at(to->path, content) : tr_checkpoint_pack(&to->sink, content);
}

void trainer_plateau_best(const char *monitor, char name[TRAINER_BEST_NAME])
{
    const char *figure = tr_monitor_figure(monitor);
    bool other = strcmp(figure, "loss") != 0;
    snprintf(name, TRAINER_BEST_NAME, "plateau_best%s%s", other ? "_" : "", other ? figure : "");
}

void trainer_tensors_describe(const tr_trainer *trainer, const struct trainer_tensors *tensors,
                              struct trainer_facts *facts, struct tr_checkpoint_content *out)
{
    const struct tr_job *job = trainer->job;
    const struct tr_schedule *schedule = &job->optimizer.schedule;
    int64_t count = trainer_best_write(&trainer->best, facts->metric, facts->name);
    if (schedule->kind == TR_SCHEDULE_PLATEAU) {
        facts->metric[count++] = (struct tr_checkpoint_metric){PLATEAU_FACTOR, schedule->plateau.factor};
        trainer_plateau_best(job->train.monitor, facts->plateau_name);
        facts->metric[count++] = (struct tr_checkpoint_metric){facts->plateau_name, schedule->plateau.best};
        facts->metric[count++] =
            (struct tr_checkpoint_metric){PLATEAU_WORSE, (double)schedule->plateau.worse};
    }
    if (schedule->is_given)
        facts->metric[count++] = (struct tr_checkpoint_metric){GIVEN_RATE, schedule->given};
    facts->file =
        (struct tr_checkpoint_file){job->input.state, job->state, job->state ? strlen(job->state) : 0};
    *out = (struct tr_checkpoint_content){
        .facts = {.step = trainer->variables.step,
                  .seed = (uint64_t)job->file.seed,
                  .microbatches = job->train.microbatches,
                  .model_digest = job->digest,
                  .data_digest = trainer->data_digest,
                  .parameter_hash = "",
                  .metrics = facts->metric,
                  .metric_count = count},
        .files = &facts->file,
        .file_count = job->input.state && job->state,
    };
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) {
        out->group[i].tensors = tensors->tensor[i];
        out->group[i].count = tensors->count[i];
    }
}

/* Most files of a checkpoint. */
#define FILES_MOST 3

/* The present hash has been noted. */
static tr_status write_checkpoint(tr_trainer *trainer, const struct trainer_tensors *tensors,
                                  const struct tr_stored_giver *giver, const char *text, const char *receipt,
                                  const struct trainer_target *to, char **path)
{
    struct trainer_facts facts;
    struct tr_checkpoint_content content;
    struct tr_checkpoint_file files[FILES_MOST] = {{TR_JOB_FILE, text, strlen(text)}};
    trainer_tensors_describe(trainer, tensors, &facts, &content);
    content.facts.parameter_hash = trainer->variables.hash;
    if (content.file_count > 0) files[1] = content.files[0];
    content.files = files;
    content.file_count++;
    if (receipt)
        files[content.file_count++] = (struct tr_checkpoint_file){TR_RECEIPT_FILE, receipt, strlen(receipt)};
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++) content.group[i].giver = giver;
    if (to) return save_to(to, &content);
    TR_TRY(trainer_updates_seal(trainer, trainer->variables.hash));
    return trainer_directory_save(&trainer->directory, trainer->job->train.keep, &content,
                                  trainer->best.kept.step == trainer->variables.step, path);
}

/* The root's part of saving. */
static tr_status save_here(tr_trainer *trainer, const struct trainer_tensors *tensors,
                           const struct tr_stored_giver *giver, const struct trainer_target *to, char **path)
{
    char *text, *receipt = NULL;
    TR_TRY(trainer_digest_data(trainer));
    TR_TRY(tr_job_text(trainer->job, &text));
    tr_status status = TR_OK;
    if (trainer->receipt.kept) status = trainer_receipt_text(trainer, trainer->variables.hash, &receipt);
    if (status == TR_OK) status = write_checkpoint(trainer, tensors, giver, text, receipt, to, path);
    tr_free(receipt);
    tr_free(text);
    return status;
}

/* For the state that the root saves. */
static tr_status note_saved_hash(tr_trainer *trainer)
{
    if (tr_strategy_is_spread(trainer->variables.strategy))
        return trainer_variables_note_hash(&trainer->variables);
    if (!trainer_is_root(trainer)) return TR_OK;
    TR_TRY(tr_variables_hash(trainer->variables.arenas, trainer->variables.hash));
    trainer->variables.hash_step = trainer->variables.step;
    return TR_OK;
}

/* The same where the root has everything, gathered if need be. */
static tr_status save_whole(tr_trainer *trainer, const struct trainer_target *to, char **path)
{
    struct trainer_tensors tensors = {0};
    TR_TRY(note_saved_hash(trainer));
    tr_status status = trainer_tensors_list(trainer, NULL, &tensors);
    if (status == TR_OK) status = save_here(trainer, &tensors, NULL, to, path);
    trainer_tensors_release(&tensors);
    return status;
}

/* ---- where no rank has all: piece by piece ---- */

/* Position of collecting tensors on the root, in the order in which they are written. */
struct stream {
    tr_trainer *trainer;
    const struct trainer_tensors *tensors;
    int group;         /* TR_CHECKPOINT_GROUPS at the end */
    int64_t index, at; /* the tensor, and floats of it */
    tr_status status;  /* of bringing */
};

/* Advances to the next tensor to collect. */
static void settle_stream(struct stream *stream)
{
    const struct trainer_tensors *tensors = stream->tensors;
    while (stream->group < TR_CHECKPOINT_GROUPS && stream->index == tensors->count[stream->group]) {
        stream->group++;
        stream->index = 0;
    }
}

/* All ranks process the same pieces. */
static tr_status collect_piece(struct stream *stream, const float **values, int64_t *count)
{
    const struct trainer_origin *origin = &stream->tensors->origin[stream->group][stream->index];
    int64_t begin = origin->begin + stream->at, left = origin->end - begin;
    *count = left < TR_STRATEGY_PIECE ? left : TR_STRATEGY_PIECE;
    stream->status = tr_strategy_collect(stream->trainer->variables.strategy, origin->arena, begin,
                                         begin + *count, values);
    stream->at += *count;
    if (*count == left) {
        stream->index++;
        stream->at = 0;
    }
    settle_stream(stream);
    return stream->status;
}

static tr_status give(void *user, int64_t index, uint64_t at, const void **piece, size_t *bytes)
{
    struct stream *stream = user;
    const float *values = NULL;
    int64_t count;
    assert(index == stream->index && at == (uint64_t)stream->at * sizeof *values);
    tr_status status = collect_piece(stream, &values, &count);
    *piece = values;
    *bytes = (size_t)count * sizeof *values;
    return status;
}

/* *status becomes the result of the root's writing, on the root. */
static tr_status save_pieces(tr_trainer *trainer, const struct trainer_target *to, char **path,
                             int32_t *status)
{
    struct trainer_tensors tensors = {0};
    struct stream stream = {.trainer = trainer, .tensors = &tensors};
    const struct tr_stored_giver giver = {give, &stream};
    stream.status = note_saved_hash(trainer);
    if (stream.status == TR_OK) stream.status = trainer_tensors_list(trainer, NULL, &tensors);
    if (stream.status != TR_OK && trainer->crew.comm)
        tr_comm_abort(trainer->crew.comm, tr_error_message()); /* the others rely on us */
    settle_stream(&stream);
    if (stream.status == TR_OK && trainer_is_root(trainer))
        *status = (int32_t)save_here(trainer, &tensors, &giver, to, path);
    /* Other ranks send all pieces, also where the root cannot write them. */
    while (stream.status == TR_OK && stream.group < TR_CHECKPOINT_GROUPS) {
        const float *values;
        int64_t count;
        collect_piece(&stream, &values, &count);
    }
    trainer_tensors_release(&tensors);
    return stream.status;
}

/* ---- saving ---- */

/* *status becomes the result of the root's writing, on all. */
static tr_status save(tr_trainer *trainer, bool gathered, const struct trainer_target *to, char **path,
                      int32_t *status)
{
    if (!gathered && !tr_strategy_is_spread(trainer->variables.strategy))
        TR_TRY(trainer_variables_gather(&trainer->variables));
    if (tr_strategy_saves_pieces(trainer->variables.strategy))
        TR_TRY(save_pieces(trainer, to, path, status));
    else if (trainer_is_root(trainer))
        *status = (int32_t)save_whole(trainer, to, path);
    return tr_strategy_broadcast(trainer->variables.strategy, status, sizeof *status);
}

/* The same, with the same outcome on all. */
static tr_status save_together(tr_trainer *trainer, bool gathered, const struct trainer_target *to,
                               char **path)
{
    int32_t how = TR_OK;
    TR_TRY(trainer_receipt_take(trainer));
    TR_TRY(save(trainer, gathered, to, path, &how));
    if (how == TR_OK || trainer_is_root(trainer)) return (tr_status)how;
    return tr_fail((tr_status)how, "rank 0 could not save the checkpoint of step %lld",
                   (long long)trainer->variables.step);
}

tr_status trainer_save(tr_trainer *trainer, bool gathered, char **path)
{
    char *own = NULL;
    if (path) *path = NULL;
    if (!trainer->directory.path)
        return tr_fail(TR_EINVAL, "there is no output directory to save to; set `out`");
    tr_status status = save_together(trainer, gathered, NULL, &own);
    if (status == TR_OK) {
        trainer->directory.saved_step = trainer->variables.step;
        trainer->directory.saved_at = tr_clock_seconds();
        if (path) *path = own;
    }
    if (status != TR_OK || !path) tr_free(own);
    return status;
}

tr_status trainer_save_elsewhere(tr_trainer *trainer, const struct trainer_target *to)
{
    TR_TRY(trainer_check_process(trainer));
    return save_together(trainer, false, to, NULL);
}
