/* Making the parts of a trainer, before its first step. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "job/opening.h"
#include "job/file/monitor.h"
#include "job/file/settings.h"
#include "train/describe/plan.h"
#include "train/setup/device.h"
#include "train/setup/join.h"
#include "train/setup/resume.h"
#include "train/setup/share.h"
#include "train/setup/start.h"

#include <string.h>

#define CREATING "creating the trainer"

static tr_status read_job(tr_trainer *trainer, const struct tr_train_settings *settings,
                          const tr_checkpoint *checkpoint)
{
    struct tr_job_settings job = tr_train_changes(settings);
    job.store = trainer->store;
    const char *name = tr_train_model_name(settings);
    if (name) {
        /* Faults of the file are reported before faults of the data. */
        struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
        TR_TRY(tr_train_plan(settings, &plan));
        if (!settings->model_text) return tr_job_open(settings->model, &job, &trainer->job);
        const struct tr_job_text model = tr_train_model_text(settings);
        return tr_job_open_text(&model, &job, &trainer->job);
    }
    if (!checkpoint)
        return tr_fail(TR_ENOTFOUND, "there is no checkpoint to go on from yet; give a model file");
    return tr_job_restore(checkpoint, &job, &trainer->job);
}

static tr_status open_job(tr_trainer *trainer, const struct tr_train_settings *settings,
                          const tr_checkpoint *checkpoint)
{
    TR_TRY(read_job(trainer, settings, checkpoint));
    if (settings->receipt) trainer->job->train.receipt = true;
    trainer->best.monitor = trainer->job->train.monitor;
    return TR_OK;
}

/* Notes the paths. An existing output directory is locked first of all, so that no other process works in
 * it meanwhile.
 */
static tr_status take_paths(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    const char *name = tr_train_model_name(settings);
    trainer->model_path = tr_strdup(name ? name : "");
    if (!trainer->model_path) return TR_ENOMEM;
    const char *journal = settings->journal ? settings->journal : settings->out;
    if (journal && *journal) {
        trainer->observation.journal.directory = tr_strdup(journal);
        if (!trainer->observation.journal.directory) return TR_ENOMEM;
    }
    if (!settings->out) return TR_OK;
    trainer->directory.path = tr_strdup(settings->out);
    if (!trainer->directory.path) return TR_ENOMEM;
    return trainer_is_root(trainer) && tr_file_exists(trainer->directory.path)
               ? trainer_directory_take(&trainer->directory)
               : TR_OK;
}

/* The device that holds the parameters: the one that computes, or another. */
static tr_status choose_holder(struct trainer_variables *variables, const struct tr_train_settings *settings,
                               tr_comm *comm, int threads)
{
    const char *name = settings->parameters_on;
    variables->holder = variables->device;
    if (!name || tr_train_is_device(name, comm, variables->device)) return TR_OK;
    TR_TRY(tr_train_open_device(name, settings, comm, threads, &variables->own_holder));
    variables->holder = variables->own_holder;
    return TR_OK;
}

/* Makes all that does not need the data. */
static tr_status make_variables(tr_trainer *trainer, const struct tr_train_settings *settings, bool resumes)
{
    struct trainer_variables *variables = &trainer->variables;
    struct tr_job *job = trainer->job;
    struct tr_strategy_settings strategy = {.delay_seed = settings->delay_seed,
                                            .stop = &trainer->stop->asked,
                                            .outlives = trainer->crew.whole != NULL};
    strategy.replicas_of_state = settings->replicas_of_state;
    tr_comm *comm = trainer->crew.comm;
    int threads = settings->threads;
    strategy.shares = settings->shares;
    if (!settings->simulate_delays)
        TR_TRY(tr_train_slowness(settings->slow, trainer_crew_rank(&trainer->crew),
                                 trainer_crew_size(&trainer->crew), &strategy.slow));
    if (comm) TR_TRY(tr_train_share_processors(comm, settings, &threads));
    if (!variables->device)
        TR_TRY(tr_train_open_device(settings->device ? settings->device : "cpu", settings, comm, threads,
                                    &variables->device));
    TR_TRY(choose_holder(variables, settings, comm, threads));
    strategy.holder = variables->holder;
    if (trainer->observation.updates.replayed.sessions > 0)
        strategy.log = &trainer->observation.updates.replayed;
    variables->settings = strategy;
    if (settings->shares && !(variables->shares_given = tr_strdup(settings->shares))) return TR_ENOMEM;
    TR_TRY(trainer_host_expect(&trainer->host, job, comm, variables));
    TR_TRY(tr_strategy_create(variables->device, job, comm, &strategy, &variables->strategy));
    variables->arenas = tr_strategy_variables(variables->strategy);
    if (resumes || !variables->arenas) return TR_OK;
    return tr_variables_initialize(variables->arenas, (uint64_t)job->file.seed);
}

/* Makes all that needs the data, and variables that could not be made before. */
static tr_status begin_strategy(tr_trainer *trainer, bool resumes)
{
    struct trainer_variables *variables = &trainer->variables;
    TR_TRY(tr_strategy_begin(variables->strategy));
    if (variables->arenas) return TR_OK;
    variables->arenas = tr_strategy_variables(variables->strategy);
    return resumes ? TR_OK : tr_variables_initialize(variables->arenas, (uint64_t)trainer->job->file.seed);
}

static tr_status count_steps(tr_trainer *trainer)
{
    const struct tr_job *job = trainer->job;
    struct tr_order order;
    TR_TRY(tr_job_order(job, &order));
    trainer->steps_per_epoch = order.steps_per_epoch;
    trainer->tokens_per_example = tr_job_tokens_per_example(job);
    return TR_OK;
}

/* Unreadable evaluation data should be noticed before the first step rather than after the last. */
static tr_status open_evaluation_data(struct tr_job *job)
{
    for (int set = 0; set < TR_SETS; set++)
        if (tr_job_has_set(job, (enum tr_data_set)set)) TR_TRY(tr_job_open_set(job, (enum tr_data_set)set));
    return TR_OK;
}

/* A figure that needs all outputs of an evaluation, which are too many to keep. */
static tr_status check_monitor(const struct tr_job *job)
{
    enum tr_data_set set = trainer_judging_set(job);
    const char *monitor = job->train.monitor;
    if (!monitor) return TR_OK;
    if (set == TR_SETS)
        return tr_fail(TR_EINVAL,
                       "train.monitor: %s is a figure of evaluations; name data to evaluate, for instance "
                       "data.validation_split: 0.1",
                       monitor);
    int64_t examples = tr_source_info(job->source[set])->count;
    bool of_answers = !tr_job_is_classification(job) || tr_job_pixels(job) > 0 ||
                      strcmp(tr_monitor_figure(monitor), "roc_auc") == 0,
         always = strcmp(monitor, "loss") == 0 || strcmp(monitor, "accuracy") == 0;
    if (!of_answers || always || tr_job_is_of_tokens(job) || tr_metrics_width(job, examples) > 0)
        return TR_OK;
    return tr_fail(TR_EINVAL,
                   "train.monitor: %s needs all outputs of an evaluation, and those of %lld examples are too "
                   "many to keep; evaluate fewer, or monitor the loss",
                   monitor, (long long)examples);
}

/* All ranks that update must know the results of evaluations. */
static tr_status check_schedule(const tr_trainer *trainer)
{
    const struct tr_job *job = trainer->job;
    if (job->optimizer.schedule.kind != TR_SCHEDULE_PLATEAU) return TR_OK;
    if (tr_strategy_is_asynchronous(trainer->variables.strategy))
        return tr_fail(
            TR_EUNSUPPORTED,
            "a plateau schedule follows evaluations, which in an asynchronous run of the strategy %s "
            "only one process knows; choose a synchronous one, or another schedule",
            tr_strategy_name(trainer->variables.strategy));
    if (trainer_judging_set(trainer->job) != TR_SETS) return TR_OK;
    return tr_fail(TR_EINVAL, "a plateau schedule follows evaluations; name data to evaluate, for instance "
                              "data.validation_split: 0.1");
}

static tr_status make_parts(tr_trainer *trainer, const struct tr_train_settings *settings,
                            tr_checkpoint *checkpoint)
{
    tr_opening *opening;
    TR_TRY(tr_opening_begin(trainer->job, &opening));
    tr_status status = make_variables(trainer, settings, checkpoint != NULL);
    /* Our own failure comes first; opening must not change its message. */
    tr_status opened = tr_opening_finish(&opening, status != TR_OK);
    if (status == TR_OK) status = opened;
    if (status != TR_OK) return status;
    TR_TRY(tr_stop_check(settings->stop, CREATING));
    TR_TRY(trainer_agree_on_job(trainer, settings));
    TR_TRY(check_schedule(trainer));
    trainer_set_evaluation_hooks(trainer);
    TR_TRY(begin_strategy(trainer, checkpoint != NULL));
    TR_TRY(tr_settings_text(trainer->job, &trainer->settings_text));
    TR_TRY(tr_strategy_options_text(trainer->variables.strategy, &trainer->strategy_text));
    TR_TRY(count_steps(trainer));
    TR_TRY(checkpoint ? trainer_restore(trainer, checkpoint, settings->resume_changed)
                      : trainer_start(trainer, settings));
    TR_TRY(tr_stop_check(settings->stop, CREATING));
    TR_TRY(tr_variables_give(trainer->variables.arenas));
    TR_TRY(trainer_agree_on_state(trainer)); /* and now all parameters are there */
    if (!checkpoint) TR_TRY(tr_variables_begin_ema(trainer->variables.arenas));
    TR_TRY(trainer_host_gather_rank_info(&trainer->host, trainer->crew.comm, &trainer->variables));
    TR_TRY(open_evaluation_data(trainer->job));
    TR_TRY(check_monitor(trainer->job));
    TR_TRY(trainer_host_count(&trainer->host, trainer->job, trainer->crew.comm, &trainer->variables));
    TR_TRY(
        tr_recording_connect(&trainer->observation.recording, trainer->crew.comm, trainer->variables.step));
    TR_TRY(trainer_observe_connect(trainer));
    TR_TRY(trainer_receipt_begin(trainer, checkpoint));
    return tr_strategy_connect(trainer->variables.strategy, trainer->variables.step);
}

/* Microbatches can be distinguished if each has a separate pass. */
static tr_status want_digests(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    if (settings->record_digests == 0) return TR_OK;
    if (settings->record_digests < 0 || !trainer->directory.path)
        return tr_fail(TR_EINVAL, settings->record_digests < 0
                                      ? "digests are recorded every 1 or more steps"
                                      : "digests are recorded in the output directory; give one");
    trainer->observation.digests_every = settings->record_digests;
    trainer->job->train.pass = 1;
    return TR_OK;
}

/* The checkpoint to resume; or, for a replay without a model file, one with the job of the run. */
static tr_status find_checkpoint(const tr_trainer *trainer, const struct tr_train_settings *settings,
                                 tr_checkpoint **out)
{
    struct tr_train_settings own = *settings;
    if (!settings->replay) return tr_train_resume(trainer->crew.comm, settings, out);
    if (tr_train_model_name(settings)) return TR_OK;
    char *run = tr_train_replayed_run(settings->replay);
    if (!run) return TR_ENOMEM;
    own.resume = run;
    tr_status status = tr_train_resume(trainer->crew.comm, &own, out);
    tr_free(run);
    return status;
}

tr_status trainer_set_up(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    tr_checkpoint *checkpoint = NULL;
    if (settings->model && settings->model_text)
        return tr_fail(TR_EINVAL, "both `model` and `model_text` are given; give the path or the text");
    if (settings->data_count < 0 || (settings->data_count > 0 && !settings->data))
        return tr_fail(TR_EINVAL, "data_count is %d, data %s", settings->data_count,
                       settings->data ? "given" : "NULL");
    const bool has_state = tr_checkpoint_state_is_given(&settings->state);
    if (has_state && settings->resume)
        return tr_fail(TR_EINVAL,
                       "both `resume` and `state` are given; give the path or the state in memory");
    const bool replays = settings->replay || settings->schedule || settings->simulate_delays;
    if (replays && (settings->resume || has_state || settings->continues))
        return tr_fail(TR_EINVAL, "a given order of updates begins before the first step, and resumes "
                                  "nothing; leave that or what is "
                                  "to be resumed out");
    if (!tr_train_model_name(settings) && !settings->resume && !has_state && !settings->continues &&
        !settings->replay)
        return tr_fail(TR_EINVAL, "nothing to train; give a model file, or a checkpoint to resume");
    const bool has_from = settings->from || tr_checkpoint_state_is_given(&settings->from_state);
    if (settings->from && tr_checkpoint_state_is_given(&settings->from_state))
        return tr_fail(TR_EINVAL,
                       "both `from` and `from_state` are given; give the path or the state in memory");
    if (has_from && (settings->resume || has_state))
        return tr_fail(TR_EINVAL, "a run resumes a checkpoint of its own (`resume`, `state`), or begins with "
                                  "parameters of another (`from`); give one of them");
    TR_TRY(tr_stop_check(settings->stop, CREATING));
    TR_TRY(take_paths(trainer, settings));
    TR_TRY(trainer_observe(trainer, settings));
    trainer_host_look(&trainer->host, settings);
    TR_TRY(tr_store_create(NULL, settings->data_cache, settings->data_cache_bytes, &trainer->store));
    tr_store_give(trainer->store, settings->data, settings->data_count);
    tr_store_defer(trainer->store);
    if (settings->stop) tr_store_stop(trainer->store, &settings->stop->asked);
    if (!settings->no_memory_check) tr_store_allow_memory(trainer->store, trainer->host.room.free);
    TR_TRY(tr_train_share_store(
        trainer->crew.comm, settings->patience > 0 ? settings->patience : TR_COMM_PATIENCE, trainer->store));
    TR_TRY(trainer_updates_load(trainer, settings));
    TR_TRY(find_checkpoint(trainer, settings, &checkpoint));
    tr_status status = open_job(trainer, settings, checkpoint);
    if (status == TR_OK) status = trainer_updates_simulate(trainer, settings);
    if (settings->replay) tr_checkpoint_close(&checkpoint); /* its job was wanted, not its state */
    if (status == TR_OK) status = want_digests(trainer, settings);
    if (status == TR_OK) status = tr_stop_check(settings->stop, CREATING);
    if (status == TR_OK) status = make_parts(trainer, settings, checkpoint);
    tr_checkpoint_close(&checkpoint);
    /* A new directory comes last: a job that is refused leaves nothing behind, and faults of the directory
       still show before the first step. */
    if (status == TR_OK && trainer->directory.path && trainer->directory.lock < 0 && trainer_is_root(trainer))
        status = trainer_directory_take(&trainer->directory);
    if (status == TR_OK && trainer->beginning.resumed) status = trainer_settle_best(trainer);
    if (status == TR_OK) status = trainer_updates_open(trainer);
    return status;
}
