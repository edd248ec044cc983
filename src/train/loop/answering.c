/* A predictor with the current parameters of a trainer. */
#include "base/alloc.h"
#include "base/fail.h"
#include "train/evaluate/predictor.h"
#include "train/loop/internal.h"

/* On the root, which has all parameters. */
static tr_status make(tr_trainer *trainer, const struct tr_predict_settings *settings, tr_predictor **out)
{
    tr_variables *variables = trainer->variables.arenas;
    const bool averaged = settings->use_average && tr_variables_arena(variables, TR_ARENA_EMA) != NULL;
    char hash[TR_SHA256_TEXT] = "";
    TR_TRY(tr_variables_hash(variables, hash));
    if (averaged) TR_TRY(tr_variables_complete_ema(variables));
    float *arena = tr_alloc_zero((size_t)trainer->job->model->arena_floats + 1, sizeof *arena);
    if (!arena) return TR_ENOMEM;
    tr_status status = tr_variables_store(variables, averaged ? TR_ARENA_EMA : TR_ARENA_PARAMETERS, arena);
    if (status == TR_OK)
        status = tr_predictor_of(trainer->job, arena, trainer->variables.step, hash, settings, out);
    tr_free(arena);
    return status;
}

tr_status tr_trainer_predictor(tr_trainer *trainer, const struct tr_predict_settings *given,
                               tr_predictor **out)
{
    struct tr_predict_settings settings;
    *out = NULL;
    TR_TRY(trainer_check_process(trainer));
    TR_TRY(tr_predict_settings_take(given, &settings));
    TR_TRY(trainer_variables_gather_parameters(&trainer->variables));
    tr_status status = trainer_is_root(trainer) ? make(trainer, &settings, out) : TR_OK;
    trainer_variables_drop(&trainer->variables);
    return status;
}
