/* A replay shared by several processes: each computes the gradients of some of the log's workers, all apply
 * all.
 *
 * Every rank goes through the same records. At one that is applied, the rank that has its worker gives the
 * gradient to all. Meanwhile a rank computes ahead: it can compute a gradient once its version has been
 * reached, whenever it is applied. Workers do one piece of work at a time, so a rank never has more
 * waiting gradients than workers.
 *
 * The root leads: before each such record it sends whether the run continues, since it may end earlier
 * than the log.
 */
#include "strategy/replay/replay.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

/* A gradient that waits to be applied. */
struct replay_waiting {
    int64_t record; /* -1: none, the memory is free */
    struct ps_figures figures;
    float *values;
};

static bool is_own(const struct replay *self, const struct tr_update *record)
{
    return record->worker % self->head.size == self->head.rank;
}

/* Computes a gradient to self->gradient->host. */
static tr_status compute(struct replay *self, const struct tr_update_entry *entry, int64_t record,
                         struct ps_figures *figures)
{
    struct tr_strategy *head = &self->head;
    TR_TRY(tr_variables_load(self->reader, TR_ARENA_PARAMETERS,
                             replay_versions_of(self->versions, entry->version)));
    replay_versions_leave(self->versions, entry->version, record);
    TR_TRY(
        ps_contribution_compute(head, self->reader, entry->session->parts, entry->record->number, figures));
    TR_TRY(tr_staging_to_host(self->gradient, 0, head->job->model->arena_floats));
    return tr_device_wait(head->device);
}

/* ---- ahead ---- */

/* The next record of this rank that is not computed yet; false: none can be now, with version `reached`. */
static bool find_due(struct replay *self, int64_t reached)
{
    struct tr_update_walk *ahead = &self->ahead;
    while (!self->has_next && tr_update_walk_next(ahead, &self->next))
        self->has_next = self->next.record->kind == TR_UPDATE_APPLIED && is_own(self, self->next.record);
    return self->has_next && self->next.session == self->session && self->next.version <= reached;
}

static struct replay_waiting *find_waiting(const struct replay *self, int64_t record)
{
    for (int64_t i = 0; i < self->waitings; i++)
        if (self->waiting[i].record == record) return &self->waiting[i];
    return NULL;
}

static tr_status make_waiting(struct replay *self, struct replay_waiting **out)
{
    if ((*out = find_waiting(self, -1))) return TR_OK;
    if (!tr_grow(&self->waiting, self->waitings, sizeof *self->waiting)) return TR_ENOMEM;
    *out = &self->waiting[self->waitings];
    (*out)->record = -1;
    (*out)->values =
        tr_alloc_aligned((size_t)self->head.job->model->arena_floats + 1, sizeof *(*out)->values);
    if (!(*out)->values) return TR_ENOMEM;
    self->waitings++;
    return TR_OK;
}

static tr_status compute_due(struct replay *self, int64_t reached)
{
    while (find_due(self, reached)) {
        struct replay_waiting *waiting;
        TR_TRY(make_waiting(self, &waiting));
        TR_TRY(compute(self, &self->next, self->ahead.next - 1, &waiting->figures));
        memcpy(waiting->values, self->gradient->host,
               (size_t)self->head.job->model->arena_floats * sizeof(float));
        waiting->record = self->ahead.next - 1;
        self->has_next = false;
    }
    return TR_OK;
}

/* ---- together ---- */

static tr_status spread(struct replay *self, int from, void *data, size_t bytes, const char *name)
{
    tr_ticket *ticket = NULL;
    TR_TRY(tr_comm_broadcast(self->head.comm, from, data, bytes, name, &ticket));
    return tr_comm_wait(self->head.comm, &ticket);
}

tr_status replay_say(struct replay *self, enum replay_word *word)
{
    int32_t number = (int32_t)*word;
    TR_TRY(spread(self, 0, &number, sizeof number, "word of the replay"));
    *word = (enum replay_word)number;
    return TR_OK;
}

/* The gradient of a record to apply: this rank's, or received from its rank. */
static tr_status share(struct replay *self, const struct tr_update_entry *entry, struct ps_figures *figures,
                       float **gradient)
{
    int64_t record = self->walk.next - 1;
    int owner = entry->record->worker % self->head.size;
    TR_TRY(compute_due(self, entry->count));
    struct replay_waiting *waiting = owner == self->head.rank ? find_waiting(self, record) : NULL;
    if (owner != self->head.rank) TR_TRY(make_waiting(self, &waiting));
    waiting->record = -1; /* it is used before another takes its memory */
    *gradient = waiting->values;
    TR_TRY(spread(self, owner, &waiting->figures, sizeof waiting->figures, "figures of a gradient"));
    *figures = waiting->figures;
    return spread(self, owner, waiting->values, (size_t)self->head.job->model->arena_floats * sizeof(float),
                  "gradient");
}

tr_status replay_obtain(struct replay *self, const struct tr_update_entry *entry, struct ps_figures *figures,
                        float **gradient)
{
    enum replay_word word = REPLAY_GO;
    *gradient = self->gradient->host;
    if (!self->head.comm) return compute(self, entry, self->walk.next - 1, figures);
    if (self->head.rank == 0) TR_TRY(replay_say(self, &word));
    return share(self, entry, figures, gradient);
}

void replay_release_waiting(struct replay *self)
{
    for (int64_t i = 0; i < self->waitings; i++) tr_free(self->waiting[i].values);
    tr_free(self->waiting);
    self->waiting = NULL;
    self->waitings = 0;
}
