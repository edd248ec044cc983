/* A trainer's facts. */
#include "base/fail.h"
#include "base/sized.h"
#include "job/file/monitor.h"
#include "train/loop/internal.h"

tr_status tr_trainer_info(const tr_trainer *trainer, struct tr_train_info *info)
{
    const struct tr_job *job = trainer->job;
    tr_status status = TR_OK;
    bool has_test = tr_job_has_set(job, TR_SET_TEST);
    if (has_test) status = tr_job_open_set(trainer->job, TR_SET_TEST);
    if (status != TR_OK) return status;
    struct tr_placement placement;
    enum tr_data_set judges = trainer_judging_set(job);
    tr_strategy_placement(trainer->variables.strategy, trainer_crew_rank(&trainer->crew), &placement);
    const struct tr_train_info facts = {
        .name = job->file.name,
        .model = trainer->model_path,
        .device = trainer->variables.device->description,
        .resumed = trainer->beginning.resumed ? trainer->beginning.resumed : "",
        .resume_warnings = trainer->beginning.resume_warnings ? trainer->beginning.resume_warnings : "",
        .settings = trainer->settings_text,
        .start = trainer->beginning.start_summary ? trainer->beginning.start_summary : "",
        .digest = job->digest,
        .tensorboard = trainer->observation.board.directory ? trainer->observation.board.directory : "",
        .seed = (uint64_t)job->file.seed,
        .parameters = job->model->parameter_total,
        .kept = placement.parameters,
        .memory = (int64_t)tr_strategy_memory(trainer->variables.strategy),
        .host_memory = trainer->host.memory.ranks,
        .data_memory = trainer->host.memory.data,
        .free_memory = trainer->host.memory.free,
        .host_processes = trainer->host.memory.processes,
        .train_examples = tr_source_info(job->source[TR_SET_TRAIN])->count,
        .test_examples = has_test ? tr_source_info(job->source[TR_SET_TEST])->count : 0,
        .batch = job->train.batch,
        .microbatches = job->train.microbatches,
        .steps = job->train.steps,
        .steps_per_epoch = trainer->steps_per_epoch,
        .tokens_per_example = trainer->tokens_per_example,
        .step = trainer->variables.step,
        .seconds = trainer->account.seconds,
        .classification = tr_job_has_accuracy(job),
        .best_step = trainer->best.kept.step,
        .best_loss = trainer->best.kept.loss,
        .best_accuracy = trainer->best.kept.accuracy,
        .monitor = tr_monitor_figure(job->train.monitor),
        .best_monitor = trainer->best.kept.figure,
        .best_set = trainer->best.kept.step < 0 || judges == TR_SETS ? "" : tr_data_set_names[judges],
        .label_smoothing = (double)job->model->loss.label_smoothing,
        .log_every = job->train.log_every,
        .rank = trainer_crew_rank(&trainer->crew),
        .ranks = trainer_crew_size(&trainer->crew),
        .strategy = tr_strategy_name(trainer->variables.strategy),
        .strategy_options = trainer->strategy_text,
        .role = placement.role,
        .first_microbatch = placement.first_microbatch,
        .end_microbatch = placement.end_microbatch,
    };
    return tr_sized_give(&facts, sizeof facts, "TR_TRAIN_INFO_INIT", info);
}

tr_status tr_trainer_profile(const tr_trainer *trainer, const struct tr_train_profile **profile)
{
    if (!trainer->observation.recording.profile.rank)
        return tr_fail(TR_EINVAL,
                       "there is no profile; set `profile`, and ask the first process after the run");
    *profile = &trainer->observation.recording.profile;
    return TR_OK;
}
