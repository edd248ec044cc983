/* The entries of a trainer's journal, and when they are written. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

tr_status tr_trainer_set_command(tr_trainer *trainer, const char *command)
{
    char *copy = tr_strdup(command);
    if (!copy) return TR_ENOMEM;
    tr_free(trainer->observation.journal.command);
    trainer->observation.journal.command = copy;
    return TR_OK;
}

void trainer_journal_start(tr_trainer *trainer)
{
    struct trainer_journal *journal = &trainer->observation.journal;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct tr_json_writer json;
    if (!journal->directory || !trainer_is_root(trainer)) return;
    tr_journal_open(&journal->file, journal->directory, trainer->beginning.resumed || journal->begun);
    journal->begun = true;
    if (tr_trainer_info(trainer, &info) != TR_OK) {
        tr_journal_give_up(&journal->file);
        return;
    }
    tr_json_begin(&json, false);
    tr_journal_add_start(&json, &info, trainer->directory.path, journal->command);
    tr_journal_write(&journal->file, &json);
}

void trainer_journal_go_on(struct trainer_journal *journal)
{
    if (!journal->directory) return;
    tr_journal_open(&journal->file, journal->directory, true);
    journal->begun = true;
}

void trainer_journal_event(tr_trainer *trainer, const struct tr_train_event *event)
{
    struct tr_journal *journal = &trainer->observation.journal.file;
    struct tr_json_writer json;
    if (journal->file.descriptor < 0) return;
    if (tr_journal_add_event(&json, tr_job_has_accuracy(trainer->job), event))
        tr_journal_write(journal, &json);
}

/* Examples in the first `steps` steps. */
static int64_t examples_until(const struct tr_order *order, int64_t steps)
{
    int64_t per_epoch = order->steps_per_epoch * order->batch;
    struct tr_order_step next = tr_order_at(order, steps);
    return next.epoch * (per_epoch < order->count ? per_epoch : order->count) + next.first;
}

/* Of the steps of the last run; work under way at the end of an asynchronous run counts, too. */
static double examples_per_second(const tr_trainer *trainer)
{
    struct tr_order order;
    if (trainer->account.seconds <= 0 || tr_job_order(trainer->job, &order) != TR_OK) return 0;
    int64_t examples =
        examples_until(&order, trainer->variables.step) - examples_until(&order, trainer->account.began);
    return (double)examples / trainer->account.seconds;
}

void trainer_journal_end(tr_trainer *trainer, tr_status status)
{
    struct tr_journal *journal = &trainer->observation.journal.file;
    struct tr_failure how;
    struct tr_json_writer json;
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    char hash[TR_SHA256_TEXT] = "";
    if (journal->file.descriptor < 0) return;
    tr_failure_keep(&how, status);
    bool whole = status == TR_OK || status == TR_EINTERRUPTED;
    if (whole && tr_trainer_hash(trainer, hash) != TR_OK) {
        tr_journal_give_up(journal);
        tr_failure_restore(&how);
        return;
    }
    struct tr_journal_end end = {
        .status = status,
        .exit = -1,
        .message = how.message,
        .step = trainer->variables.step,
        .seconds = trainer->account.seconds,
        .examples_per_second = examples_per_second(trainer),
        .tokens_per_second = examples_per_second(trainer) * trainer->tokens_per_example,
        .hash = hash,
        .checkpoint = trainer->directory.checkpoint ? trainer->directory.checkpoint : "",
        .best = tr_trainer_info(trainer, &info) == TR_OK && info.best_step >= 0 ? &info : NULL,
        .statistics = *hash && tr_trainer_statistics(trainer, &statistics) == TR_OK ? &statistics : NULL,
    };
    tr_json_begin(&json, false);
    tr_journal_add_end(&json, &end);
    tr_journal_write(journal, &json);
    tr_journal_close(journal);
    tr_failure_restore(&how);
}
