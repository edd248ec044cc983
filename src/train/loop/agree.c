/* Facts on which the ranks of a trainer must agree. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

/* The strategy is not part of the settings' digest: synchronous ones do not change the weights, and a
   checkpoint may continue under another one. */
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
        status = tr_comm_agree(trainer->crew.comm, "strategy", whole,
                               "start all ranks with one model file and equal options");
    tr_free(whole);
    return status;
}

tr_status trainer_agree_on_job(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    char digests[48];
    if (!trainer->crew.comm) return TR_OK;
    TR_TRY(tr_comm_agree(trainer->crew.comm, "program version", TRIREME_VERSION,
                         "install one version on all hosts"));
    TR_TRY(tr_comm_agree(trainer->crew.comm, "settings", trainer->job->digest,
                         "start all ranks with one model file and equal options"));
    TR_TRY(agree_on_strategy(trainer, settings));
    TR_TRY(trainer_updates_agree(trainer));
    snprintf(digests, sizeof digests, "every %lld steps", (long long)trainer->observation.digests_every);
    return tr_comm_agree(trainer->crew.comm, "digests", digests, "start all ranks with equal options");
}

tr_status trainer_agree_on_state(tr_trainer *trainer)
{
    char step[48];
    if (!trainer->crew.comm) return TR_OK;
    snprintf(step, sizeof step, "%lld of %lld", (long long)trainer->variables.step,
             (long long)trainer->job->train.steps);
    TR_TRY(tr_comm_agree(trainer->crew.comm, "step", step, "let all ranks resume from one checkpoint"));
    TR_TRY(trainer_digest_data(trainer));
    return tr_comm_agree(trainer->crew.comm, "training data", trainer->data_digest,
                         "give all hosts the same data");
}

tr_status trainer_digest_data(tr_trainer *trainer)
{
    if (trainer->data_digest[0]) return TR_OK;
    const tr_source *source = trainer->job->source[TR_SET_TRAIN];
    TR_TRY(tr_source_digest(source, trainer->data_digest));
    bool first = !trainer->crew.comm || tr_comm_local_rank(trainer->crew.comm) == 0;
    if (first) tr_store_learn(trainer->store, source, trainer->data_digest);
    return TR_OK;
}
