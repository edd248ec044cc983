/* Making a trainer, and the parts of its interface that are not the loop. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/sized.h"
#include "base/text/text.h"
#include "job/opening.h"
#include "job/settings.h"
#include "train/setup/device.h"
#include "train/setup/join.h"
#include "train/setup/place.h"
#include "train/describe/plan.h"
#include "train/setup/resume.h"
#include "train/setup/share.h"
#include "train/setup/start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tr_status open_job(tr_trainer *trainer, const struct tr_train_settings *settings,
                          const tr_checkpoint *checkpoint)
{
    struct tr_job_settings job = tr_train_changes(settings);
    job.store = trainer->store;
    const char *name = tr_train_model_name(settings);
    if (name) {
        /* What is wrong with the file comes before what is wrong with the data. */
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

tr_status trainer_take_directory(tr_trainer *trainer)
{
    TR_TRY(tr_file_make_directories(NULL, trainer->out));
    return tr_file_lock(trainer->out, &trainer->lock);
}

/* Notes the paths. An output directory that is there is taken first of all, so that nobody else works in it
 * meanwhile. */
static tr_status take_paths(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    const char *name = tr_train_model_name(settings);
    trainer->model_path = tr_strdup(name ? name : "");
    if (!trainer->model_path) return TR_ENOMEM;
    const char *journal = settings->journal ? settings->journal : settings->out;
    if (journal && *journal) {
        trainer->journal_directory = tr_strdup(journal);
        if (!trainer->journal_directory) return TR_ENOMEM;
    }
    if (!settings->out) return TR_OK;
    trainer->out = tr_strdup(settings->out);
    if (!trainer->out) return TR_ENOMEM;
    return trainer_is_root(trainer) && tr_file_exists(trainer->out) ? trainer_take_directory(trainer) : TR_OK;
}

/* The device that holds the parameters: the one that computes, or another. */
static tr_status choose_holder(tr_trainer *trainer, const struct tr_train_settings *settings, int threads)
{
    const char *name = settings->parameters_on;
    trainer->holder = trainer->device;
    if (!name || tr_train_is_device(name, trainer->comm, trainer->device)) return TR_OK;
    TR_TRY(tr_train_open_device(name, settings, trainer->comm, threads, &trainer->own_holder));
    trainer->holder = trainer->own_holder;
    return TR_OK;
}

/* What can be done before the data are there. */
static tr_status make_variables(tr_trainer *trainer, const struct tr_train_settings *settings, bool resumes)
{
    struct tr_job *job = trainer->job;
    struct tr_strategy_settings strategy = {
        .delay_seed = settings->delay_seed, .stop = &trainer->stop, .outlives = trainer->whole != NULL};
    strategy.replicas_of_state = settings->replicas_of_state;
    tr_comm *comm = trainer->comm;
    int threads = settings->threads, rank = comm ? tr_comm_rank(comm) : 0;
    strategy.shares = settings->shares;
    TR_TRY(tr_train_slowness(settings->slow, rank, comm ? tr_comm_size(comm) : 1, &strategy.slow));
    if (comm) TR_TRY(tr_train_share_processors(comm, settings, &threads));
    TR_TRY(tr_train_open_device(settings->device ? settings->device : "cpu", settings, comm, threads,
                                &trainer->device));
    TR_TRY(choose_holder(trainer, settings, threads));
    strategy.holder = trainer->holder;
    trainer->strategy_settings = strategy;
    if (settings->shares && !(trainer->shares_given = tr_strdup(settings->shares))) return TR_ENOMEM;
    TR_TRY(trainer_expect_memory(trainer, settings));
    TR_TRY(tr_strategy_create(trainer->device, job, comm, &strategy, &trainer->strategy));
    trainer->variables = tr_strategy_variables(trainer->strategy);
    if (resumes || !trainer->variables) return TR_OK;
    return tr_variables_initialize(trainer->variables, (uint64_t)job->file.seed);
}

/* What needs the data, and variables that were not to be had before. */
static tr_status begin_strategy(tr_trainer *trainer, bool resumes)
{
    TR_TRY(tr_strategy_begin(trainer->strategy));
    if (trainer->variables) return TR_OK;
    trainer->variables = tr_strategy_variables(trainer->strategy);
    return resumes ? TR_OK : tr_variables_initialize(trainer->variables, (uint64_t)trainer->job->file.seed);
}

/* The strategy is no part of the settings' digest: synchronous ones do not change the weights, and a
   checkpoint may go on under another one. */
static tr_status agree_on_strategy(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    const tr_config *node = trainer->job->file.strategy;
    struct tr_text text = TR_TEXT_INIT;
    char *dump = NULL, *whole = NULL;
    if (node) TR_TRY(tr_config_dump(node, &dump));
    tr_text_add(&text, dump ? dump : "the default");
    if (settings->shares && strcmp(settings->shares, "equal") != 0)
        tr_text_addf(&text, ", shares %s", settings->shares);
    tr_free(dump);
    tr_status status = tr_text_finish(&text, &whole);
    if (status == TR_OK)
        status = tr_comm_agree(trainer->comm, "strategy", whole,
                               "start all ranks with one model file and equal options");
    tr_free(whole);
    return status;
}

/* Ranks that would compute different things are told apart before they divide the work. */
static tr_status agree_on_job(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    char digests[48];
    if (!trainer->comm) return TR_OK;
    TR_TRY(
        tr_comm_agree(trainer->comm, "program version", TRIREME_VERSION, "install one version on all hosts"));
    TR_TRY(tr_comm_agree(trainer->comm, "settings", trainer->job->digest,
                         "start all ranks with one model file and equal options"));
    TR_TRY(agree_on_strategy(trainer, settings));
    snprintf(digests, sizeof digests, "every %lld steps", (long long)trainer->digests_every);
    return tr_comm_agree(trainer->comm, "digests", digests, "start all ranks with equal options");
}

/* And those that would begin with different things, before they do. */
static tr_status agree_on_state(tr_trainer *trainer)
{
    char step[48];
    if (!trainer->comm) return TR_OK;
    snprintf(step, sizeof step, "%lld of %lld", (long long)trainer->step,
             (long long)trainer->job->train.steps);
    TR_TRY(tr_comm_agree(trainer->comm, "step", step, "let all ranks resume from one checkpoint"));
    TR_TRY(trainer_digest_data(trainer));
    return tr_comm_agree(trainer->comm, "training data", trainer->data_digest,
                         "give all hosts the same data");
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

/* Evaluation data that cannot be read are better known before the first step than after the last. */
static tr_status open_evaluation_data(struct tr_job *job)
{
    for (int set = 0; set < TR_SETS; set++)
        if (tr_job_has_set(job, (enum tr_data_set)set)) TR_TRY(tr_job_open_set(job, (enum tr_data_set)set));
    return TR_OK;
}

/* Whoever updates has to know what evaluations said. */
static tr_status check_schedule(const tr_trainer *trainer)
{
    const struct tr_job *job = trainer->job;
    if (job->optimizer.schedule.kind != TR_SCHEDULE_PLATEAU) return TR_OK;
    if (tr_strategy_is_asynchronous(trainer->strategy))
        return tr_fail(
            TR_EUNSUPPORTED,
            "a plateau schedule follows evaluations, which in an asynchronous run of the strategy %s "
            "only one process knows; choose a synchronous one, or another schedule",
            tr_strategy_name(trainer->strategy));
    if (trainer_judging_set(trainer) != TR_SETS) return TR_OK;
    return tr_fail(TR_EINVAL, "a plateau schedule follows evaluations; name data to evaluate, for instance "
                              "data.validation_split: 0.1");
}

static tr_status make_parts(tr_trainer *trainer, const struct tr_train_settings *settings,
                            tr_checkpoint *checkpoint)
{
    tr_opening *opening;
    TR_TRY(tr_opening_begin(trainer->job, &opening));
    tr_status status = make_variables(trainer, settings, checkpoint != NULL);
    /* A failure of our own comes first; opening may then not disturb its message. */
    tr_status opened = tr_opening_finish(&opening, status != TR_OK);
    if (status == TR_OK) status = opened;
    if (status != TR_OK) return status;
    TR_TRY(agree_on_job(trainer, settings));
    TR_TRY(check_schedule(trainer));
    trainer_set_evaluation_hooks(trainer);
    TR_TRY(begin_strategy(trainer, checkpoint != NULL));
    TR_TRY(tr_settings_text(trainer->job, &trainer->settings_text));
    TR_TRY(tr_strategy_options_text(trainer->strategy, &trainer->strategy_text));
    TR_TRY(count_steps(trainer));
    TR_TRY(checkpoint ? trainer_restore(trainer, checkpoint, settings->resume_changed)
                      : trainer_start(trainer, settings));
    TR_TRY(tr_variables_give(trainer->variables));
    TR_TRY(agree_on_state(trainer)); /* and now all parameters are there */
    if (!checkpoint) TR_TRY(tr_variables_begin_ema(trainer->variables));
    TR_TRY(tr_train_gather_places(trainer->comm, trainer->device, trainer->holder,
                                  tr_strategy_memory(trainer->strategy), &trainer->places));
    TR_TRY(open_evaluation_data(trainer->job));
    TR_TRY(trainer_count_memory(trainer, settings));
    TR_TRY(tr_recording_meet(&trainer->recording, trainer->comm, trainer->step));
    TR_TRY(trainer_observe_meet(trainer));
    return tr_strategy_meet(trainer->strategy, trainer->step);
}

/* Microbatches are told apart when each has a pass of its own. */
static tr_status want_digests(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    if (settings->record_digests == 0) return TR_OK;
    if (settings->record_digests < 0 || !trainer->out)
        return tr_fail(TR_EINVAL, settings->record_digests < 0
                                      ? "digests are recorded every 1 or more steps"
                                      : "digests are recorded in the output directory; give one");
    trainer->digests_every = settings->record_digests;
    trainer->job->train.pass = 1;
    return TR_OK;
}

/* Everything that can fail after the trainer's own memory is there. */
static tr_status set_up(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    tr_checkpoint *checkpoint = NULL;
    if (settings->model && settings->model_text)
        return tr_fail(TR_EINVAL, "both `model` and `model_text` are given; give the path or the text");
    if (settings->data_count < 0 || (settings->data_count > 0 && !settings->data))
        return tr_fail(TR_EINVAL, "data_count is %d, data %s", settings->data_count, settings->data ? "given" : "NULL");
    if (!tr_train_model_name(settings) && !settings->resume && !settings->continues)
        return tr_fail(TR_EINVAL, "nothing to train; give a model file, or a checkpoint to resume");
    if (settings->from && settings->resume)
        return tr_fail(TR_EINVAL,
                       "a run goes on from a checkpoint of its own (`resume`), or begins with parameters "
                       "of another (`from`); give one of them");
    TR_TRY(take_paths(trainer, settings));
    TR_TRY(trainer_observe(trainer, settings));
    tr_memory_look(settings->system_root, &trainer->room);
    TR_TRY(tr_store_create(NULL, settings->data_cache, settings->data_cache_bytes, &trainer->store));
    tr_store_give(trainer->store, settings->data, settings->data_count);
    tr_store_defer(trainer->store);
    if (!settings->no_memory_check) tr_store_allow_memory(trainer->store, trainer->room.free);
    TR_TRY(tr_train_share_store(trainer->comm, settings->patience > 0 ? settings->patience : TR_COMM_PATIENCE,
                                trainer->store));
    TR_TRY(tr_train_resume(trainer->comm, settings, &checkpoint));
    tr_status status = open_job(trainer, settings, checkpoint);
    if (status == TR_OK) status = want_digests(trainer, settings);
    if (status == TR_OK) status = make_parts(trainer, settings, checkpoint);
    tr_checkpoint_close(&checkpoint);
    /* A new one comes last: a job that is refused leaves nothing behind, and what is wrong with the directory
       still shows before the first step. */
    if (status == TR_OK && trainer->out && trainer->lock < 0 && trainer_is_root(trainer))
        status = trainer_take_directory(trainer);
    if (status == TR_OK && trainer->resumed) status = trainer_settle_best(trainer);
    return status;
}

tr_status tr_trainer_create(const struct tr_train_settings *given, tr_trainer **out)
{
    struct tr_train_settings full, *settings = &full;
    tr_comm *comm;
    *out = NULL;
    TR_TRY(tr_train_settings_take(given, settings));
    TR_TRY(tr_train_join(settings, &comm));
    tr_status status = trainer_create(settings, comm, out);
    if (status == TR_OK) {
        (*out)->own_comm = comm;
        return TR_OK;
    }
    /* The others must not wait for a rank that cannot take part. */
    if (comm) tr_comm_abort(comm, tr_error_message());
    tr_comm_destroy(&comm);
    return status;
}

tr_status trainer_create(const struct tr_train_settings *settings, tr_comm *comm, tr_trainer **out)
{
    *out = NULL;
    tr_trainer *trainer = tr_alloc_zero(1, sizeof *trainer);
    if (!trainer) return TR_ENOMEM;
    trainer->comm = comm;
    trainer->best_loss = INFINITY;
    trainer->best = (struct trainer_best){.step = -1, .loss = INFINITY};
    trainer->saved_step = -1;
    trainer->resumed_step = -1;
    trainer->told = (struct trainer_told){.step = -1, .saved = -1};
    trainer->hash_step = -1;
    trainer->lock = -1;
    trainer->journal.file.descriptor = -1;
    trainer->saved_at = tr_clock_seconds();
    tr_status status = tr_recording_begin(&trainer->recording, settings);
    tr_recording_enter(&trainer->recording);
    if (status == TR_OK) status = trainer_form_crew(trainer, settings, comm);
    if (status == TR_OK) status = set_up(trainer, settings);
    tr_recording_leave(&trainer->recording);
    if (status != TR_OK) {
        tr_trainer_destroy(&trainer);
        return status;
    }
    *out = trainer;
    return TR_OK;
}

void tr_trainer_destroy(tr_trainer **handle)
{
    tr_trainer *trainer = *handle;
    if (!trainer) return;
    for (int i = 0; i < TR_SETS; i++) tr_evaluator_destroy(&trainer->evaluator[i]);
    tr_metrics_destroy(&trainer->metrics);
    tr_digests_destroy(&trainer->digests);
    trainer_observe_release(trainer);
    tr_mirror_destroy(&trainer->mirror);
    tr_strategy_destroy(&trainer->strategy);
    tr_recording_release(&trainer->recording);
    tr_device_destroy(&trainer->own_holder);
    tr_device_destroy(&trainer->device);
    tr_job_destroy(&trainer->job);
    tr_store_destroy(&trainer->store);
    tr_free(trainer->places);
    tr_free(trainer->model_path);
    tr_free(trainer->out);
    if (trainer->lock >= 0) close(trainer->lock);
    tr_journal_release(&trainer->journal);
    tr_free(trainer->journal_directory);
    tr_free(trainer->command);
    tr_free(trainer->checkpoint);
    tr_text_release(&trainer->told.keys);
    tr_free(trainer->settings_text);
    tr_free(trainer->strategy_text);
    tr_free(trainer->shares_given);
    tr_free(trainer->resumed);
    tr_free(trainer->resume_note);
    tr_free(trainer->start_note);
    tr_strategy_statistics_release(&trainer->statistics);
    tr_free(trainer->rank_statistics);
    trainer_dissolve(trainer);
    tr_comm_destroy(&trainer->own_comm);
    tr_free(trainer);
    *handle = NULL;
}

void tr_trainer_stop(tr_trainer *trainer)
{
    trainer->stop = 1;
}

bool tr_trainer_is_reporter(const tr_trainer *trainer)
{
    /* Who gave up is there, and says why itself. */
    for (int r = 0; trainer->comm && r < tr_comm_rank(trainer->comm); r++) {
        enum tr_comm_life life = tr_comm_life(trainer->comm, r, NULL, 0);
        if (life == TR_COMM_ALIVE || life == TR_COMM_GAVE_UP) return false;
    }
    return true;
}

tr_status trainer_digest_data(tr_trainer *trainer)
{
    if (trainer->data_digest[0]) return TR_OK;
    const tr_source *source = trainer->job->source[TR_SET_TRAIN];
    TR_TRY(tr_source_digest(source, trainer->data_digest));
    bool first = !trainer->comm || tr_comm_local_rank(trainer->comm) == 0;
    if (first) tr_store_learn(trainer->store, source, trainer->data_digest);
    return TR_OK;
}

tr_status tr_trainer_info(const tr_trainer *trainer, struct tr_train_info *info)
{
    const struct tr_job *job = trainer->job;
    tr_status status = TR_OK;
    bool has_test = tr_job_has_set(job, TR_SET_TEST);
    if (has_test) status = tr_job_open_set(trainer->job, TR_SET_TEST);
    if (status != TR_OK) return status;
    struct tr_placement placement;
    enum tr_data_set judges = trainer_judging_set(trainer);
    tr_strategy_placement(trainer->strategy, trainer->comm ? tr_comm_rank(trainer->comm) : 0, &placement);
    const struct tr_train_info facts = {
        .name = job->file.name,
        .model = trainer->model_path,
        .device = trainer->device->description,
        .resumed = trainer->resumed ? trainer->resumed : "",
        .resume_note = trainer->resume_note ? trainer->resume_note : "",
        .settings = trainer->settings_text,
        .start = trainer->start_note ? trainer->start_note : "",
        .digest = job->digest,
        .tensorboard = trainer->observation.directory ? trainer->observation.directory : "",
        .seed = (uint64_t)job->file.seed,
        .parameters = job->model->parameter_total,
        .kept = placement.parameters,
        .memory = (int64_t)tr_strategy_memory(trainer->strategy),
        .host_memory = trainer->memory.ranks,
        .data_memory = trainer->memory.data,
        .free_memory = trainer->memory.free,
        .host_processes = trainer->memory.processes,
        .train_examples = tr_source_info(job->source[TR_SET_TRAIN])->count,
        .test_examples = has_test ? tr_source_info(job->source[TR_SET_TEST])->count : 0,
        .batch = job->train.batch,
        .microbatches = job->train.microbatches,
        .steps = job->train.steps,
        .steps_per_epoch = trainer->steps_per_epoch,
        .tokens_per_example = trainer->tokens_per_example,
        .step = trainer->step,
        .seconds = trainer->run_seconds,
        .classification = tr_job_has_accuracy(job),
        .best_step = trainer->best.step,
        .best_loss = trainer->best.loss,
        .best_accuracy = trainer->best.accuracy,
        .best_set = trainer->best.step < 0 || judges == TR_SETS ? "" : tr_data_set_names[judges],
        .label_smoothing = (double)job->model->loss.label_smoothing,
        .log_every = job->train.log_every,
        .rank = trainer->comm ? tr_comm_rank(trainer->comm) : 0,
        .ranks = trainer->comm ? tr_comm_size(trainer->comm) : 1,
        .strategy = tr_strategy_name(trainer->strategy),
        .strategy_options = trainer->strategy_text,
        .role = placement.role,
        .first_microbatch = placement.first_microbatch,
        .end_microbatch = placement.end_microbatch,
    };
    return tr_sized_give(&facts, sizeof facts, "TR_TRAIN_INFO_INIT", info);
}

tr_status tr_trainer_profile(const tr_trainer *trainer, const struct tr_train_profile **profile)
{
    if (!trainer->recording.profile.rank)
        return tr_fail(TR_EINVAL,
                       "there is no profile; set `profile`, and ask the first process after the run");
    *profile = &trainer->recording.profile;
    return TR_OK;
}

tr_status tr_trainer_hash(tr_trainer *trainer, char hex[65])
{
    if (!tr_strategy_is_spread(trainer->strategy)) return tr_variables_hash(trainer->variables, hex);
    if (trainer->hash_step != trainer->step)
        return tr_fail(
            TR_EINVAL,
            "under the strategy %s each process has a part of the parameters, whose hash is known after a "
            "run and after saving only, but step %lld came since",
            tr_strategy_name(trainer->strategy), (long long)trainer->step);
    memcpy(hex, trainer->hash, sizeof trainer->hash);
    return TR_OK;
}

tr_status tr_trainer_save(tr_trainer *trainer, char **path)
{
    return trainer_save(trainer, false, path);
}
