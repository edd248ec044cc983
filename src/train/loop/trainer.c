/* The life of a trainer, and its access functions. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "train/setup/join.h"

#include <math.h>
#include <unistd.h>

tr_status tr_trainer_create(const struct tr_train_settings *given, tr_trainer **out)
{
    struct tr_train_settings full, *settings = &full;
    tr_comm *comm;
    *out = NULL;
    TR_TRY(tr_train_settings_take(given, settings));
    TR_TRY(tr_train_join(settings, &comm));
    tr_status status = trainer_create(settings, comm, out);
    if (status == TR_OK) {
        (*out)->crew.own = comm;
        if (comm) tr_comm_ignore_stop(comm); /* from here on the processes agree on stops */
        return TR_OK;
    }
    /* The others must not wait for a rank that cannot take part. */
    if (comm) tr_comm_abort(comm, tr_error_message());
    tr_comm_destroy(&comm);
    return status;
}

static tr_status create(const struct tr_train_settings *settings, tr_comm *comm, tr_device *device,
                        tr_trainer **out)
{
    *out = NULL;
    tr_trainer *trainer = tr_alloc_zero(1, sizeof *trainer);
    if (!trainer) {
        tr_device_destroy(&device);
        return TR_ENOMEM;
    }
    trainer_reported_begin(&trainer->reported);
    trainer_beginning_begin(&trainer->beginning);
    trainer_variables_begin(&trainer->variables);
    trainer->variables.device = device;
    trainer->process = getpid();
    trainer->stop = settings->stop ? settings->stop : &trainer->own;
    trainer->rate.value = NAN;
    trainer_best_begin(&trainer->best, NULL);
    trainer_directory_begin(&trainer->directory);
    trainer_observation_begin(&trainer->observation);
    tr_status status = tr_recording_begin(&trainer->observation.recording, settings);
    tr_recording_enter(&trainer->observation.recording);
    if (status == TR_OK) status = trainer_crew_form(&trainer->crew, settings, comm);
    if (status == TR_OK) status = trainer_set_up(trainer, settings);
    tr_recording_leave(&trainer->observation.recording);
    if (status != TR_OK) {
        tr_trainer_destroy(&trainer);
        return status;
    }
    *out = trainer;
    return TR_OK;
}

tr_status trainer_create(const struct tr_train_settings *settings, tr_comm *comm, tr_trainer **out)
{
    return create(settings, comm, NULL, out);
}

tr_status trainer_create_on(const struct tr_train_settings *given, tr_device *device, tr_trainer **out)
{
    struct tr_train_settings settings;
    tr_status status = tr_train_settings_take(given, &settings);
    *out = NULL;
    if (status == TR_OK) return create(&settings, NULL, device, out);
    tr_device_destroy(&device);
    return status;
}

void trainer_go_to(tr_trainer *trainer, int64_t step)
{
    trainer->variables.step = step;
}

void tr_trainer_destroy(tr_trainer **handle)
{
    tr_trainer *trainer = *handle;
    *handle = NULL;
    if (!trainer || trainer_check_process(trainer) != TR_OK) return; /* its threads cannot be waited for */
    trainer_observation_close(&trainer->observation);
    trainer_evaluation_release(&trainer->evaluation);
    trainer_variables_release(&trainer->variables);
    trainer_observation_release(&trainer->observation);
    trainer_receipt_release(&trainer->receipt);
    tr_job_destroy(&trainer->job);
    tr_store_destroy(&trainer->store);
    tr_free(trainer->model_path);
    tr_free(trainer->settings_text);
    tr_free(trainer->strategy_text);
    trainer_host_release(&trainer->host);
    trainer_beginning_release(&trainer->beginning);
    trainer_directory_release(&trainer->directory);
    trainer_reported_release(&trainer->reported);
    trainer_account_release(&trainer->account);
    trainer_crew_release(&trainer->crew);
    tr_free(trainer);
    *handle = NULL;
}

void tr_trainer_stop(tr_trainer *trainer)
{
    trainer->stop->asked = 1;
}

bool tr_trainer_is_reporter(const tr_trainer *trainer)
{
    /* A rank that gave up is alive, and reports the reason itself. */
    for (int r = 0; trainer->crew.comm && r < tr_comm_rank(trainer->crew.comm); r++) {
        enum tr_comm_life life = tr_comm_life(trainer->crew.comm, r, NULL, 0);
        if (life == TR_COMM_ALIVE || life == TR_COMM_GAVE_UP) return false;
    }
    return true;
}

tr_status tr_trainer_hash(tr_trainer *trainer, char hex[65])
{
    TR_TRY(trainer_check_process(trainer));
    return trainer_variables_hash(&trainer->variables, hex);
}

/* ---- for the rest of the library, and imports ---- */

struct tr_job *trainer_job(const tr_trainer *trainer)
{
    return trainer->job;
}

tr_device *trainer_device(const tr_trainer *trainer)
{
    return trainer->variables.device;
}

tr_strategy *trainer_strategy(const tr_trainer *trainer)
{
    return trainer->variables.strategy;
}

tr_variables *trainer_variables(const tr_trainer *trainer)
{
    return trainer->variables.arenas;
}

int64_t trainer_steps_done(const tr_trainer *trainer)
{
    return trainer->variables.step;
}

const struct tr_train_memory *trainer_memory(const tr_trainer *trainer)
{
    return &trainer->host.memory;
}

bool trainer_has_evaluator(const tr_trainer *trainer, enum tr_data_set set)
{
    return trainer->evaluation.evaluator[set] != NULL;
}

tr_status trainer_load_parameters(tr_trainer *trainer, const float *arena)
{
    TR_TRY(tr_variables_load(trainer->variables.arenas, TR_ARENA_PARAMETERS, arena));
    if (!tr_variables_arena(trainer->variables.arenas, TR_ARENA_EMA)) return TR_OK;
    return tr_variables_load(trainer->variables.arenas, TR_ARENA_EMA, arena);
}

tr_status trainer_set_directory(tr_trainer *trainer, const char *directory)
{
    trainer->directory.path = tr_strdup(directory);
    return trainer->directory.path ? trainer_directory_take(&trainer->directory) : TR_ENOMEM;
}
