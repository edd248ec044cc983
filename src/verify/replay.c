#include "verify/replay.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "train/receipt/keeper.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* State of a stretch being repeated. */
struct replay {
    struct verification *verification;
    const struct stretch *stretch;
    int64_t met; /* the last boundary that agreed with the receipt; first - 1: none */
    int64_t *at; /* steps done at the boundaries after the first */
};

/* ---- outcomes ---- */

__attribute__((format(printf, 3, 4))) static void
conclude(struct verification *verification, enum tr_verify_outcome outcome, const char *format, ...)
{
    char line[TR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    verification->result.outcome = outcome;
    tr_text_add(&verification->text, line);
}

static void differ(struct verification *verification, int64_t step, const char *why)
{
    verification->result.step = step;
    conclude(verification, TR_DIFFERS, "%s", why);
}

/* Something differs from the job of the receipt. */
static void tell_digests(struct verification *verification, const char *what,
                         const struct tr_sha256_sum *there, const struct tr_sha256_sum *here,
                         const char *advice)
{
    char a[TR_SHA256_TEXT], b[TR_SHA256_TEXT];
    conclude(verification, TR_UNVERIFIABLE, "%s: the receipt is of %s, here is %s; %s", what,
             tr_sha256_text(there, a), tr_sha256_text(here, b), advice);
}

/* ---- boundaries ---- */

static bool equal(const struct tr_sha256_sum *a, const struct tr_sha256_sum *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static tr_status done(void)
{
    return tr_fail(TR_EINTERRUPTED, "the stretch has been run again");
}

static void compare(struct replay *replay, const struct tr_receipt_boundary *claimed,
                    const struct tr_receipt_boundary *found)
{
    struct verification *verification = replay->verification;
    bool begins = replay->met < replay->stretch->first;
    const char *checkpoint = verification->claim.checkpoint[replay->stretch->first];
    if (equal(&claimed->root, &found->root) && equal(&claimed->chain, &found->chain)) return;
    if (begins && checkpoint && replay->stretch->first > 0)
        differ(verification, claimed->step,
               "the state in the checkpoint at hand is not the one that the receipt has");
    else if (begins)
        differ(verification, claimed->step,
               "the first state is another one; of a run that began with the weights of another, name its "
               "checkpoint (`from`)");
    else if (!equal(&claimed->root, &found->root))
        differ(verification, claimed->step, "the state is another one");
    else
        differ(verification, claimed->step,
               "the state is the same, but the losses or batches that led there are others");
}

static tr_status meet(void *user, const struct tr_receipt_boundary *found)
{
    struct replay *replay = user;
    struct verification *verification = replay->verification;
    const struct tr_receipt *receipt = &verification->claim.receipt;
    const struct tr_receipt_boundary *claimed = tr_receipt_find(receipt, found->step);
    if (!claimed) return TR_OK;
    compare(replay, claimed, found);
    if (verification->result.outcome != TR_VERIFIED) return done();
    int64_t before = replay->met, now = claimed - receipt->boundary;
    if (before >= replay->stretch->first) {
        struct tr_verify_event event = {sizeof event, receipt->boundary[before].step, found->step};
        verification->result.steps += event.end - event.first;
        if (verification->listener && verification->listener(verification->user, &event))
            return tr_fail(TR_EINTERRUPTED, "the verification was stopped after step %" PRId64, found->step);
    }
    replay->met = now; /* last, so that a stop at the end of a stretch is one */
    return now == replay->stretch->end ? done() : TR_OK;
}

/* ---- the trainer ---- */

static tr_status create(const struct replay *replay, tr_trainer **out)
{
    const struct tr_verify_settings *given = replay->verification->settings;
    const struct claim *claim = &replay->verification->claim;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.model = given->model;
    if (!given->model) {
        settings.model_text = claim->receipt.model;
        settings.model_name = claim->path;
    }
    settings.set = given->set;
    settings.set_count = given->set_count;
    settings.device = given->device;
    settings.isa = given->isa;
    settings.threads = given->threads;
    settings.resume = claim->checkpoint[replay->stretch->first];
    if (claim->receipt.boundary[replay->stretch->first].step == 0) settings.resume = NULL;
    if (!settings.resume) settings.from = given->from;
    settings.replay = claim->log;
    settings.resume_changed = true; /* the difference is reported below, with both digests */
    settings.journal = "";
    settings.no_memory_check = given->no_memory_check;
    settings.data_cache = given->data_cache;
    settings.data_cache_bytes = given->data_cache_bytes;
    settings.program_cache = given->program_cache;
    settings.stop = given->stop;
    return tr_trainer_create(&settings, out);
}

/* Whether the trainer's job is that of the receipt. */
static bool matches(struct verification *verification, const struct tr_receipt *here)
{
    const struct tr_receipt *receipt = &verification->claim.receipt;
    if (receipt->seed != here->seed)
        conclude(verification, TR_UNVERIFIABLE, "seed: the receipt says %" PRIu64 ", the model file %" PRIu64,
                 receipt->seed, here->seed);
    else if (strcmp(receipt->log, here->log) != 0)
        conclude(verification, TR_UNVERIFIABLE,
                 "log of updates: the receipt is of %s, the one beside it is %s; take the log of the run",
                 receipt->log, here->log);
    else if (!equal(&receipt->settings, &here->settings))
        tell_digests(verification, "model file", &receipt->settings, &here->settings,
                     "`trireme diff` names the first setting that differs from those of a run");
    else if (receipt->steps != here->steps)
        conclude(verification, TR_UNVERIFIABLE,
                 "model file: the receipt is of %" PRId64 " steps, here are %" PRId64, receipt->steps,
                 here->steps);
    else if (!equal(&receipt->data, &here->data))
        tell_digests(verification, "training data", &receipt->data, &here->data,
                     "take the data that the run had");
    return verification->result.outcome == TR_VERIFIED;
}

/* ---- the end ---- */

static bool begins_with(const char *hash, const char *expected)
{
    return strncmp(hash, expected, strlen(expected)) == 0;
}

/* The parameters at the end of the run. */
static tr_status check_parameters(struct replay *replay, tr_trainer *trainer)
{
    struct verification *verification = replay->verification;
    const struct tr_receipt *receipt = &verification->claim.receipt;
    const char *expect = verification->settings->expect;
    char *hash = verification->result.hash;
    int64_t step = receipt->boundary[receipt->count - 1].step;
    if (replay->met < receipt->count - 1) return TR_OK;
    TR_TRY(tr_trainer_hash(trainer, hash));
    if (*receipt->parameters && strcmp(receipt->parameters, hash) != 0)
        differ(verification, step, "the hash of the parameters is not the one that the receipt names");
    else if (expect && !begins_with(hash, expect))
        differ(verification, step, "the hash of the parameters is not the one that was expected");
    return TR_OK;
}

/* The outcome of the run, by its status. */
static tr_status judge(struct replay *replay, tr_trainer *trainer, tr_status status)
{
    struct verification *verification = replay->verification;
    const struct tr_receipt *receipt = &verification->claim.receipt;
    int64_t next = replay->met < replay->stretch->end ? replay->met + 1 : replay->met;
    if (verification->result.outcome != TR_VERIFIED) return TR_OK;
    if (replay->met == replay->stretch->end) return check_parameters(replay, trainer);
    if (status == TR_OK)
        differ(verification, receipt->boundary[next].step, "the run ends before that here");
    else if (status == TR_ENONFINITE)
        differ(verification, receipt->boundary[next].step, tr_error_message());
    else
        return status;
    return TR_OK;
}

static tr_status run(struct replay *replay, tr_trainer *trainer)
{
    struct verification *verification = replay->verification;
    const struct tr_receipt *receipt = &verification->claim.receipt;
    const struct stretch *stretch = replay->stretch;
    int64_t count = stretch->end - stretch->first;
    replay->at = tr_alloc_zero((size_t)count + 1, sizeof *replay->at);
    if (!replay->at) return TR_ENOMEM;
    for (int64_t i = 0; i < count; i++) replay->at[i] = receipt->boundary[stretch->first + 1 + i].step;
    TR_TRY(trainer_receipt_follow(trainer, stretch->first > 0 ? &receipt->boundary[stretch->first] : NULL,
                                  replay->at, count, meet, replay));
    if (!matches(verification, trainer_receipt(trainer))) return TR_OK;
    tr_status status = trainer_receipt_open(trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    return judge(replay, trainer, status);
}

tr_status verify_replay(struct verification *verification, const struct stretch *stretch)
{
    struct replay replay = {verification, stretch, stretch->first - 1, NULL};
    tr_trainer *trainer = NULL;
    tr_status status = create(&replay, &trainer);
    if (status == TR_OK)
        status = run(&replay, trainer);
    else if (status != TR_EINTERRUPTED && status != TR_ENOMEM) {
        conclude(verification, TR_UNVERIFIABLE, "%s", tr_error_message());
        status = TR_OK;
    }
    tr_trainer_destroy(&trainer);
    tr_free(replay.at);
    return status;
}
