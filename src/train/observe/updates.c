#include "train/observe/updates.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "strategy/updates/text.h"
#include "train/loop/internal.h"
#include "train/setup/join.h"
#include "trireme/trireme.h"

#include <string.h>

/* Records that are written at once. */
#define ENOUGH 4096
/* Simulated workers, where the settings do not say. */
#define WORKERS 4

void trainer_updates_release(struct trainer_updates *updates)
{
    tr_update_log_release(&updates->replayed);
    tr_update_writer_release(&updates->writer);
    *updates = (struct trainer_updates){0};
}

/* ---- a log to be replayed ---- */

/* The log in a directory. Returned, free with tr_free(). */
static char *log_of(const char *place)
{
    return tr_file_is_directory(place) ? tr_path_join(place, TR_UPDATE_FILE) : tr_strdup(place);
}

static tr_status load(const char *path, struct tr_update_log *log)
{
    tr_status status = tr_update_file_read(path, log, NULL);
    if (status != TR_ENOTFOUND) return status;
    return tr_fail(
        TR_ENOTFOUND,
        "there is no log of updates \"%s\": only asynchronous runs keep one, in their directory; name that, "
        "or the log",
        path);
}

tr_status trainer_updates_load(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    struct trainer_updates *updates = &trainer->observation.updates;
    if ((settings->replay != NULL) + (settings->schedule != NULL) + (settings->simulate_delays != 0) > 1)
        return tr_fail(TR_EINVAL,
                       "the order of updates is given more than once; give one of `replay`, `schedule` and "
                       "`simulate_delays`");
    if (settings->schedule) return tr_update_text_file(settings->schedule, &updates->replayed);
    if (!settings->replay) return TR_OK;
    char *path = log_of(settings->replay);
    if (!path) return TR_ENOMEM;
    tr_status status = load(path, &updates->replayed);
    tr_free(path);
    return status;
}

tr_status trainer_updates_simulate(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    int workers = settings->simulate_workers > 0 ? settings->simulate_workers : WORKERS;
    if (!settings->simulate_delays) return TR_OK;
    if (workers >= TR_STRATEGY_RANKS)
        return tr_fail(TR_EINVAL, "%d simulated workers; at most %d are possible", workers,
                       TR_STRATEGY_RANKS - 1);
    double *slow = tr_alloc((size_t)workers, sizeof *slow);
    tr_status status = slow ? TR_OK : TR_ENOMEM;
    for (int w = 0; status == TR_OK && w < workers; w++)
        status = tr_train_slowness(settings->slow, w, workers, &slow[w]);
    struct tr_strategy_simulation wanted = {
        .workers = workers, .slow = slow, .seed = settings->simulate_delays};
    if (status == TR_OK)
        status = tr_strategy_simulate(trainer->job, &wanted, &trainer->observation.updates.replayed);
    tr_free(slow);
    return status;
}

tr_status trainer_updates_agree(const tr_trainer *trainer)
{
    const struct tr_update_log *log = &trainer->observation.updates.replayed;
    char digest[TR_SHA256_TEXT];
    TR_TRY(tr_sha256_of(log->record, (size_t)log->records * sizeof *log->record, digest));
    return tr_comm_agree(trainer->crew.comm, "order of updates", digest, "give all hosts the same log");
}

/* ---- the log of this run ---- */

/* The log of the run that the checkpoint is of. Returned, free with tr_free(); NULL: there is none, or no
 * memory. */
static char *history_of(const tr_trainer *trainer)
{
    const char *resumed = trainer->beginning.resumed;
    if (!resumed || strcmp(resumed, TR_CHECKPOINT_MEMORY) == 0) return NULL;
    char *above = tr_path_parent(resumed), *path = above ? tr_path_join(above, TR_UPDATE_FILE) : NULL;
    tr_free(above);
    return path;
}

static tr_status open_at(tr_trainer *trainer, const char *path)
{
    struct trainer_updates *updates = &trainer->observation.updates;
    struct tr_file_anchor anchor;
    const tr_file_system held = trainer_directory_files(&trainer->directory, &anchor);
    char *history = history_of(trainer);
    bool found;
    tr_status status =
        tr_update_writer_begin(&held, path, history, trainer->variables.step, &updates->writer, &found);
    tr_free(history);
    if (status == TR_OK) status = trainer_digest_data(trainer);
    return status == TR_OK ? tr_variables_hash(trainer->variables.arenas, updates->hash) : status;
}

tr_status trainer_updates_open(tr_trainer *trainer)
{
    if (!trainer->directory.path || !trainer_is_root(trainer)) return TR_OK;
    bool logs = tr_strategy_updates(trainer->variables.strategy) != NULL;
    if (!logs && trainer->beginning.resumed) return TR_OK;
    char *path = tr_path_join(trainer->directory.path, TR_UPDATE_FILE);
    if (!path) return TR_ENOMEM;
    trainer->observation.updates.due = ENOUGH;
    tr_status status = logs ? open_at(trainer, path) : tr_file_remove(NULL, path);
    tr_free(path);
    return status;
}

/* The facts about sessions of this run. */
static void complete(tr_trainer *trainer, struct tr_update_log *log)
{
    struct trainer_updates *updates = &trainer->observation.updates;
    for (int64_t i = 0; i < log->sessions; i++) {
        struct tr_update_session *session = &log->session[i];
        session->numerics = tr_numerics_version();
        memcpy(session->job, trainer->job->digest, sizeof session->job);
        memcpy(session->data, trainer->data_digest, sizeof session->data);
        if (!updates->begun) memcpy(session->hash, updates->hash, sizeof session->hash);
        updates->begun = true;
    }
}

static tr_status write_all(tr_trainer *trainer, struct tr_update_log *log)
{
    struct trainer_updates *updates = &trainer->observation.updates;
    struct tr_file_anchor anchor;
    const tr_file_system held = trainer_directory_files(&trainer->directory, &anchor);
    if (!updates->writer.path) {
        tr_update_log_clear(log);
        return TR_OK;
    }
    complete(trainer, log);
    TR_TRY(tr_update_writer_add(&held, &updates->writer, log));
    tr_update_log_clear(log);
    updates->due = ENOUGH;
    return TR_OK;
}

void trainer_updates_note(tr_trainer *trainer)
{
    struct trainer_updates *updates = &trainer->observation.updates;
    struct tr_update_log *log = tr_strategy_updates(trainer->variables.strategy);
    if (!log || log->records < updates->due) return;
    if (write_all(trainer, log) != TR_OK) updates->due = 2 * log->records;
}

tr_status trainer_updates_seal(tr_trainer *trainer, const char *hash)
{
    struct tr_update_log *log = tr_strategy_updates(trainer->variables.strategy);
    if (!log) return TR_OK;
    bool marks = hash && trainer->observation.updates.writer.path;
    if (marks) TR_TRY(tr_update_log_mark(log, trainer->variables.step, hash));
    tr_status status = write_all(trainer, log);
    if (status != TR_OK && marks) log->states--; /* another attempt marks it again */
    return status;
}
