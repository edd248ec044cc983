/* The log of updates: the coordinator notes its decisions, and the root gets them with the coordinator's
 * messages.
 *
 * Invariant: when the root knows of a number of updates, it also has their records, and the last of these
 * is that of the message.
 */
#include "strategy/parameter_server/coordinator.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>

/* Records that are sent at once; the root gets messages often enough. */
#define RECORDS_MOST ((int64_t)1 << 26)

_Static_assert((int)TR_UPDATE_ASYNC == PS_ASYNC - PS_ASYNC && (int)TR_UPDATE_BACKUP == PS_BACKUP - PS_ASYNC &&
                   (int)TR_UPDATE_BOUNDED == PS_BOUNDED - PS_ASYNC,
               "modes in one order");

tr_status ps_updates_begin(struct ps *self)
{
    const struct ps_options *options = ps_options_of(self);
    struct tr_update_session session = {
        .mode = options->mode - PS_ASYNC,
        .workers = self->workers,
        .servers = self->servers,
        .parts = self->parts,
        .staleness = ps_staleness(self),
        .first = self->first,
        .steps = self->head.job->train.steps,
    };
    return tr_update_log_begin(&self->head.log, &session);
}

static tr_status note(struct ps *self, struct tr_update record)
{
    return tr_update_log_add(&self->server->coordinator->updates, &record, 1);
}

tr_status ps_coordinator_note_work(struct ps *self, int worker, const struct ps_taken *taken)
{
    self->server->coordinator->logged += taken->completes;
    return note(self, (struct tr_update){.number = taken->number,
                                         .missed = (uint32_t)taken->missed,
                                         .worker = (uint16_t)worker,
                                         .kind = taken->late ? TR_UPDATE_DROPPED : TR_UPDATE_APPLIED});
}

tr_status ps_coordinator_note_lost(struct ps *self, int worker, int64_t number)
{
    return note(self,
                (struct tr_update){.number = number, .worker = (uint16_t)worker, .kind = TR_UPDATE_LOST});
}

tr_status ps_coordinator_tell_root(struct ps *self, struct ps_down *text, enum tr_update_kind kind,
                                   const char *name)
{
    struct tr_update_log *updates = &self->server->coordinator->updates;
    int64_t count = self->server->coordinator->logged;
    TR_TRY(note(self, (struct tr_update){.number = count, .kind = (uint8_t)kind}));
    text->updates = updates->records;
    TR_TRY(ps_coordinator_tell(self, 0, text, name));
    TR_TRY(ps_outbox_send(&self->outbox, 0, PS_TAG_UPDATES, updates->record,
                          (size_t)updates->records * sizeof *updates->record, "log of updates"));
    tr_update_log_clear(updates);
    return TR_OK;
}

tr_status ps_root_take_updates(struct ps *self, int64_t count)
{
    tr_ticket *coming = NULL;
    if (count < 0 || count > RECORDS_MOST)
        return tr_fail(TR_EMISMATCH,
                       "a server says that it sends %lld records of updates; all ranks must run the same "
                       "program",
                       (long long)count);
    if (count == 0) return TR_OK;
    struct tr_update *records = tr_alloc((size_t)count, sizeof *records);
    if (!records) return TR_ENOMEM;
    tr_status status = tr_comm_receive(self->head.comm, ps_server_rank(self, 0), PS_TAG_UPDATES, records,
                                       (size_t)count * sizeof *records, "log of updates", &coming);
    if (status == TR_OK) status = ps_watch_wait(&self->watch, &coming);
    if (status == TR_OK) status = tr_update_log_add(&self->head.log, records, count);
    if (status == TR_OK || tr_comm_cancel(self->head.comm, &coming)) tr_free(records);
    return status;
}
