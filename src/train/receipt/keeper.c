#include "train/receipt/keeper.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "base/text/text.h"
#include "job/file/settings.h"
#include "train/loop/internal.h"
#include "train/receipt/batches.h"
#include "train/receipt/state_root.h"
#include "trireme/receipt.h"
#include "trireme/trireme.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void trainer_receipt_release(struct trainer_receipt *receipt)
{
    tr_receipt_release(&receipt->content);
    tr_order_reader_release(&receipt->order);
    tr_free(receipt->link);
    *receipt = (struct trainer_receipt){0};
}

/* ---- beginning ---- */

static tr_status add_strategy(const struct tr_job *job, struct tr_text *text)
{
    struct tr_strategy_outline outline;
    char *dump = NULL;
    TR_TRY(tr_strategy_outline(job, 1, &outline));
    if (!outline.own_hash) return TR_OK;
    if (job->file.strategy) TR_TRY(tr_config_dump(job->file.strategy, &dump));
    tr_text_addf(text, "strategy: %s\n", dump ? dump : outline.name);
    tr_free(dump);
    return TR_OK;
}

tr_status trainer_receipt_settings(const struct tr_job *job, bool replays, struct tr_sha256_sum *out)
{
    const struct tr_train_options *train = &job->train;
    struct tr_text text = TR_TEXT_INIT;
    char *settings = NULL, *whole = NULL, hex[TR_SHA256_TEXT];
    TR_TRY(tr_settings_text(job, &settings));
    tr_text_add(&text, settings);
    tr_text_addf(&text,
                 "run: {evaluate_every: %" PRId64 ", keep_best: %d, on_nonfinite: %d, until_accuracy: %.17g, "
                 "patience: %" PRId64 "}\n",
                 train->evaluate_every, tr_train_keeps_best(train), (int)train->on_nonfinite,
                 train->until_accuracy, train->patience);
    if (train->monitor) tr_text_addf(&text, "monitor: %s\n", train->monitor);
    tr_free(settings);
    tr_status status = replays ? TR_OK : add_strategy(job, &text);
    if (status == TR_OK) status = tr_text_finish(&text, &whole);
    if (status == TR_OK) status = tr_sha256_of(whole, strlen(whole), hex);
    if (status == TR_OK) tr_sha256_parse(hex, out);
    tr_text_release(&text);
    tr_free(whole);
    return status;
}

/* The state of a replay depends on the log, too: its digest is part of the settings' digest. */
static tr_status add_log(tr_trainer *trainer, struct tr_receipt *content)
{
    const struct tr_update_log *log = &trainer->observation.updates.replayed;
    struct tr_sha256_sum sum;
    char settings[TR_SHA256_TEXT], both[2 * TR_SHA256_TEXT + 16], hex[TR_SHA256_TEXT];
    if (log->sessions == 0) return TR_OK;
    TR_TRY(tr_update_log_digest(log, &sum));
    tr_sha256_text(&sum, content->log);
    snprintf(both, sizeof both, "settings %s\nlog %s\n", tr_sha256_text(&content->settings, settings),
             content->log);
    TR_TRY(tr_sha256_of(both, strlen(both), hex));
    tr_sha256_parse(hex, &content->settings);
    return TR_OK;
}

/* All but the boundaries. */
static tr_status describe(tr_trainer *trainer)
{
    const struct tr_job *job = trainer->job;
    struct tr_receipt *content = &trainer->receipt.content;
    if (tr_strategy_is_asynchronous(trainer->variables.strategy) &&
        trainer->observation.updates.replayed.sessions == 0)
        return tr_fail(TR_EINVAL,
                       "a receipt of an asynchronous run (strategy %s), whose state does not follow from its "
                       "model file; its replay keeps one (`replay` of the settings), by the log of the run",
                       tr_strategy_name(trainer->variables.strategy));
    TR_TRY(trainer_digest_data(trainer));
    tr_receipt_release(content);
    content->numerics = tr_numerics_version();
    content->seed = (uint64_t)job->file.seed;
    content->steps = job->train.steps;
    content->program = tr_format("trireme %s", tr_version());
    if (!content->program) return TR_ENOMEM;
    TR_TRY(tr_job_text(job, &content->model));
    tr_sha256_parse(trainer->data_digest, &content->data);
    TR_TRY(trainer_receipt_settings(job, trainer->observation.updates.replayed.sessions > 0,
                                    &content->settings));
    return add_log(trainer, content);
}

/* Whether the trainer continues where a receipt ends. */
static bool goes_on(const tr_trainer *trainer, const struct tr_receipt *before)
{
    const struct tr_receipt *content = &trainer->receipt.content;
    return before->numerics == content->numerics && before->seed == content->seed &&
           memcmp(&before->settings, &content->settings, sizeof before->settings) == 0 &&
           memcmp(&before->data, &content->data, sizeof before->data) == 0 &&
           before->boundary[before->count - 1].step == trainer->variables.step;
}

/* Takes the boundaries of a checkpoint's receipt. An invalid receipt counts as missing. */
static tr_status take_boundaries(tr_trainer *trainer, const tr_checkpoint *checkpoint)
{
    struct tr_receipt before;
    size_t size = 0;
    const char *text = tr_checkpoint_file(checkpoint, TR_RECEIPT_FILE, &size);
    if (!text) return TR_OK;
    tr_status status = tr_receipt_read(tr_checkpoint_path(checkpoint), text, size, &before);
    if (status == TR_ENOMEM) return status;
    if (status != TR_OK) {
        tr_log_line(TR_LOG_WARNING, "%s; a new receipt begins", tr_error_message());
        return TR_OK;
    }
    const bool same = goes_on(trainer, &before);
    for (int64_t i = 0; same && status == TR_OK && i < before.count; i++)
        status = tr_receipt_add(&trainer->receipt.content, &before.boundary[i]);
    tr_receipt_release(&before);
    return status;
}

tr_status trainer_receipt_begin(tr_trainer *trainer, const tr_checkpoint *checkpoint)
{
    bool goes_on = checkpoint && tr_checkpoint_file(checkpoint, TR_RECEIPT_FILE, NULL) &&
                   !tr_strategy_is_asynchronous(trainer->variables.strategy);
    if (!trainer->job->train.receipt && !goes_on) return TR_OK;
    TR_TRY(describe(trainer));
    trainer->receipt.kept = true;
    return checkpoint ? take_boundaries(trainer, checkpoint) : TR_OK;
}

tr_status trainer_receipt_follow(tr_trainer *trainer, const struct tr_receipt_boundary *begin,
                                 const int64_t *at, int64_t count, trainer_boundary_listener listener,
                                 void *user)
{
    struct trainer_receipt *receipt = &trainer->receipt;
    TR_TRY(describe(trainer));
    receipt->kept = receipt->only = true;
    receipt->opened = receipt->fresh = false;
    receipt->at = at;
    receipt->at_count = count;
    receipt->listener = listener;
    receipt->user = user;
    return begin ? tr_receipt_add(&receipt->content, begin) : TR_OK;
}

const struct tr_receipt *trainer_receipt(const tr_trainer *trainer)
{
    return &trainer->receipt.content;
}

const struct tr_chain_link *trainer_receipt_links(const tr_trainer *trainer, int64_t *count)
{
    *count = trainer->receipt.taken;
    return trainer->receipt.link;
}

/* ---- boundaries ---- */

static tr_status tell(const struct trainer_receipt *receipt, const struct tr_receipt_boundary *boundary)
{
    return receipt->listener ? receipt->listener(receipt->user, boundary) : TR_OK;
}

/* The first boundary of a receipt that begins with this state. */
static tr_status add_first(tr_trainer *trainer, const struct tr_sha256_sum *root)
{
    struct tr_receipt *content = &trainer->receipt.content;
    struct tr_receipt_boundary boundary = {.step = trainer->variables.step, .root = *root};
    const struct tr_chain_begin begin = {content->settings, content->data, *root};
    content->count = 0;
    TR_TRY(tr_chain_begin(&begin, &boundary.chain));
    TR_TRY(tr_receipt_add(content, &boundary));
    return tell(&trainer->receipt, &boundary);
}

tr_status trainer_receipt_open(tr_trainer *trainer)
{
    struct trainer_receipt *receipt = &trainer->receipt;
    struct tr_receipt *content = &receipt->content;
    struct tr_sha256_sum root;
    if (!receipt->kept || receipt->opened) return TR_OK;
    TR_TRY(trainer_state_root(trainer, &root));
    receipt->opened = receipt->fresh = true;
    if (content->count == 0) return add_first(trainer, &root);
    struct tr_receipt_boundary last = content->boundary[content->count - 1];
    if (receipt->only) { /* which the listener must judge */
        last.root = root;
        return tell(receipt, &last);
    }
    if (memcmp(&last.root, &root, sizeof root) == 0) return TR_OK;
    tr_log_line(TR_LOG_WARNING,
                "the state after step %" PRId64
                " is not the one that the receipt of its checkpoint has; a new receipt begins here",
                trainer->variables.step);
    return add_first(trainer, &root);
}

tr_status trainer_receipt_note(tr_trainer *trainer, const struct tr_step_figures *figures)
{
    struct trainer_receipt *receipt = &trainer->receipt;
    if (!receipt->kept) return TR_OK;
    receipt->fresh = false;
    if (!tr_grow(&receipt->link, receipt->links, sizeof *receipt->link)) return TR_ENOMEM;
    receipt->link[receipt->links++] = (struct tr_chain_link){
        .step = trainer->variables.step,
        .steps = figures->steps,
        .loss = figures->loss,
        .skipped = figures->skipped,
    };
    return TR_OK;
}

void trainer_receipt_repeat(tr_trainer *trainer)
{
    trainer->receipt.fresh = false;
}

void trainer_receipt_renew(tr_trainer *trainer)
{
    trainer->receipt.content.count = trainer->receipt.links = 0;
    trainer->receipt.opened = trainer->receipt.fresh = false;
}

bool trainer_receipt_comes(const tr_trainer *trainer, int64_t step)
{
    const struct trainer_receipt *receipt = &trainer->receipt;
    int64_t every = trainer->job->train.receipt_every;
    if (!receipt->kept) return false;
    for (int64_t low = 0, high = receipt->at_count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (receipt->at[middle] == step) return true;
        if (receipt->at[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return !receipt->only && every > 0 && step % every == 0;
}

bool trainer_receipt_is_due(const tr_trainer *trainer)
{
    const struct trainer_receipt *receipt = &trainer->receipt;
    const struct tr_receipt *content = &receipt->content;
    int64_t every = trainer->job->train.receipt_every, step = trainer->variables.step;
    if (!receipt->kept || receipt->fresh) return false;
    if (trainer_receipt_comes(trainer, step)) return true;
    /* Several steps may have passed at once. */
    if (receipt->only || every <= 0 || receipt->links == 0) return false;
    int64_t before = step - receipt->link[receipt->links - 1].steps;
    return step / every != before / every && content->count > 0;
}

/* The chain up to here. A rank that has this boundary already, since others were lost and it is repeated,
   continues from it. */
static tr_status extend_chain(tr_trainer *trainer, struct tr_sha256_sum *chain)
{
    struct trainer_receipt *receipt = &trainer->receipt;
    tr_sha256 *hash;
    TR_TRY(trainer_digest_batches(trainer, receipt->link, receipt->links));
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < receipt->links; i++)
        status = tr_chain_add(hash, &receipt->link[i], chain);
    tr_sha256_destroy(&hash);
    return status;
}

tr_status trainer_receipt_take(tr_trainer *trainer)
{
    struct trainer_receipt *receipt = &trainer->receipt;
    struct tr_receipt_boundary boundary;
    if (!receipt->kept) return TR_OK;
    TR_TRY(trainer_receipt_open(trainer));
    if (receipt->fresh) return TR_OK;
    boundary.step = trainer->variables.step;
    boundary.chain = receipt->content.boundary[receipt->content.count - 1].chain;
    TR_TRY(extend_chain(trainer, &boundary.chain));
    TR_TRY(trainer_state_root(trainer, &boundary.root));
    TR_TRY(tr_receipt_add(&receipt->content, &boundary));
    receipt->taken = receipt->links;
    receipt->links = 0;
    receipt->fresh = true;
    return tell(receipt, &boundary);
}

tr_status trainer_receipt_text(tr_trainer *trainer, const char *parameters, char **text)
{
    struct tr_receipt *content = &trainer->receipt.content;
    memcpy(content->parameters, parameters, strlen(parameters) + 1);
    return tr_receipt_write(content, text);
}

tr_status tr_trainer_receipt(tr_trainer *trainer, char **text)
{
    char parameters[TR_SHA256_TEXT];
    *text = NULL;
    if (trainer->receipt.content.count == 0)
        return tr_fail(TR_ENOTFOUND, trainer->receipt.kept
                                         ? "the receipt begins with the first step"
                                         : "this run keeps no receipt; set train.receipt: true");
    memcpy(parameters, trainer->receipt.content.parameters, sizeof parameters);
    return trainer_receipt_text(trainer, parameters, text);
}
