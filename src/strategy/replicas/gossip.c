/* Gossip, or decentralised SGD (Lian et al. 2017): a fixed number of separate replicas in a ring
 * (replicas.h); every so many steps each replica becomes the mean of itself and its neighbours,
 *
 *     w[r] = (1 / n) * sum of the old w[s] over the n replicas s at most `neighbours` from r in the ring
 *
 * added in the order of their numbers. So no rank waits for all, and changes of one replica take some
 * exchanges to reach the others. Moments and moving averages stay the replicas' own.
 *
 * After so many of these exchanges, and at the end, all replicas are averaged instead, including the
 * optimizer's state (average.c; Chen et al. 2021 show that this also shortens the way to agreement).
 * Invariant: after that all replicas are equal, and the run can be saved, evaluated and stopped; in
 * between it has as many states as replicas.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "strategy/replicas/replicas.h"

struct gossip_options {
    struct tr_replicas_options head;
    int32_t every, neighbours, consensus;
};

struct gossip {
    struct tr_replicas common;
    /* Old parameters of the replicas that this rank's replicas average with, including themselves: replica
       s has row row[s], -1: none. */
    struct tr_staging old; /* of the holder, [rows][average.stride] */
    int *row;              /* [replicas] */
    int rows;
    tr_ticket **tickets; /* of an exchange's messages */
};

static struct gossip *self_of(tr_strategy *strategy)
{
    return (struct gossip *)strategy;
}

static const struct gossip_options *options_of(const tr_strategy *strategy)
{
    return strategy->options;
}

/* ---- the ring ---- */

static bool are_neighbours(const tr_strategy *strategy, int64_t r, int64_t s)
{
    int64_t apart = r < s ? s - r : r - s, around = tr_replicas_total(strategy) - apart;
    return (apart < around ? apart : around) <= options_of(strategy)->neighbours;
}

/* Whether one of a rank's replicas averages with replica s. */
static bool looks_at(const tr_strategy *strategy, int rank, int64_t s)
{
    for (int64_t r = strategy->replica_bound[rank]; r < strategy->replica_bound[rank + 1]; r++)
        if (are_neighbours(strategy, r, s)) return true;
    return false;
}

static int owner_of(const tr_strategy *strategy, int64_t replica)
{
    int low = 0, high = strategy->size - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strategy->replica_bound[middle + 1] <= replica)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- making ---- */

static void traits(const void *options_, struct tr_strategy_traits *out)
{
    const struct gossip_options *options = options_;
    out->every = (int64_t)options->every * options->consensus;
    out->exchange_every = options->every;
}

/* Messages of this rank in an exchange: one for each replica and rank that needs it. */
static size_t count_messages(const tr_strategy *strategy)
{
    size_t count = 0;
    for (int64_t s = 0; s < tr_replicas_total(strategy); s++) {
        if (owner_of(strategy, s) != strategy->rank) {
            count += looks_at(strategy, strategy->rank, s);
            continue;
        }
        for (int rank = 0; rank < strategy->size; rank++)
            count += rank != strategy->rank && looks_at(strategy, rank, s);
    }
    return count;
}

static tr_status create(tr_strategy *strategy)
{
    struct gossip *self = self_of(strategy);
    TR_TRY(tr_replicas_create(strategy));
    int replicas = (int)tr_replicas_total(strategy);
    self->row = tr_alloc((size_t)replicas, sizeof *self->row);
    self->tickets = tr_alloc_zero(count_messages(strategy) + 1, sizeof(tr_ticket *));
    if (!self->row || !self->tickets) return TR_ENOMEM;
    for (int s = 0; s < replicas; s++)
        self->row[s] = looks_at(strategy, strategy->rank, s) ? self->rows++ : -1;
    TR_TRY(tr_staging_make(strategy->holder, self->rows * self->common.average.stride, NULL, &self->old));
    TR_TRY(tr_staging_open(&self->old));
    strategy->memory += tr_staging_memory(&self->old);
    return TR_OK;
}

static void destroy(tr_strategy *strategy)
{
    struct gossip *self = self_of(strategy);
    tr_staging_release(&self->old);
    tr_replicas_destroy(strategy);
    tr_free(self->row);
    tr_free(self->tickets);
}

/* ---- an exchange ---- */

/* Where a row begins, in floats. */
static int64_t old_at(const struct gossip *self, int64_t replica)
{
    return self->row[replica] * self->common.average.stride;
}

/* Copies this rank's replicas into the rows, for all to read. */
static tr_status keep_own(struct gossip *self)
{
    tr_strategy *strategy = &self->common.head;
    int64_t first = tr_replicas_first(strategy);
    for (int i = 0; i < strategy->replica_count; i++) {
        const float *w = tr_variables_arena(strategy->replicas[i].variables, TR_ARENA_PARAMETERS);
        int64_t at = old_at(self, first + i);
        TR_TRY(tr_replicas_move(strategy, strategy->job->model->arena_floats, w, self->old.data + at));
        TR_TRY(tr_staging_to_host(&self->old, at, at + self->common.average.stride));
    }
    return tr_device_wait(strategy->holder);
}

/* Starts this rank's messages of replica s: sends it to ranks that need it, or receives it. */
static tr_status pass(struct gossip *self, int64_t s, int *count)
{
    tr_strategy *strategy = &self->common.head;
    size_t bytes = (size_t)strategy->job->model->arena_floats * sizeof(float);
    int owner = owner_of(strategy, s);
    if (owner != strategy->rank && self->row[s] >= 0)
        return tr_comm_receive(strategy->comm, owner, (int)s, self->old.host + old_at(self, s), bytes,
                               "a neighbour", &self->tickets[(*count)++]);
    for (int rank = 0; rank < strategy->size && owner == strategy->rank; rank++)
        if (rank != owner && looks_at(strategy, rank, s))
            TR_TRY(tr_comm_send_numbers(strategy->comm, rank, (int)s, self->old.host + old_at(self, s), bytes,
                                        "to a neighbour", &self->tickets[(*count)++]));
    return TR_OK;
}

static tr_status exchange(struct gossip *self)
{
    int count = 0;
    if (!self->common.head.comm) return TR_OK;
    for (int64_t s = 0; s < tr_replicas_total(&self->common.head); s++) TR_TRY(pass(self, s, &count));
    for (int i = 0; i < count; i++) TR_TRY(tr_comm_wait(self->common.head.comm, &self->tickets[i]));
    return tr_staging_to_device(&self->old, 0, self->old.floats);
}

/* Sets the floats [begin, end) of replica r to the mean of its neighbourhood. */
static tr_status mix_range(struct gossip *self, int64_t r, int64_t begin, int64_t end, float *w)
{
    tr_strategy *strategy = &self->common.head;
    int64_t floats = end - begin;
    int count = 0;
    for (int64_t s = 0; s < tr_replicas_total(strategy); s++) {
        if (!are_neighbours(strategy, r, s)) continue;
        const float *old = self->old.data + old_at(self, s) + begin;
        struct tr_op_add sum = {floats, w, old, w};
        TR_TRY(count++ == 0 ? tr_replicas_move(strategy, floats, old, w)
                            : tr_device_add(strategy->holder, &sum));
    }
    struct tr_op_scale mean = {floats, 1.0F / (float)count, w, w};
    return tr_device_scale(strategy->holder, &mean);
}

/* All except frozen parameters. */
static tr_status mix(struct gossip *self, int64_t r, float *w)
{
    int64_t begin = 0, end = 0;
    while (tr_model_trained_range(self->common.head.job->model, end, &begin, &end))
        TR_TRY(mix_range(self, r, begin, end, w + begin));
    return TR_OK;
}

static tr_status average(tr_strategy *strategy, int64_t step, bool all)
{
    struct gossip *self = self_of(strategy);
    int64_t first = tr_replicas_first(strategy);
    (void)step;
    if (all) return tr_average_all(strategy, &self->common.average, TR_AVERAGE_STATE, NULL);
    TR_TRY(keep_own(self));
    TR_TRY(exchange(self));
    for (int i = 0; i < strategy->replica_count; i++)
        TR_TRY(
            mix(self, first + i, tr_variables_arena(strategy->replicas[i].variables, TR_ARENA_PARAMETERS)));
    return TR_OK; /* rows are written again after that */
}

#define AT(field) offsetof(struct gossip_options, field)
static const struct tr_option options[] = {
    TR_REPLICAS_OPTION,
    {.key = "every",
     .type = TR_OPTION_INT32,
     .offset = AT(every),
     .fallback = "1",
     .least = 1,
     .most = 1000000,
     .help = "steps between averages of neighbours"},
    {.key = "neighbours",
     .type = TR_OPTION_INT32,
     .offset = AT(neighbours),
     .fallback = "1",
     .least = 1,
     .most = TR_STRATEGY_RANKS,
     .help = "neighbours on each side of a replica"},
    {.key = "consensus",
     .type = TR_OPTION_INT32,
     .offset = AT(consensus),
     .fallback = "8",
     .least = 1,
     .most = 1000000,
     .help =
         "exchanges between averages of all replicas; a run can be evaluated, saved and stopped only then"},
};
#undef AT

static const char *const variants[] = {"replicas={workers}", "replicas={workers},every=4,consensus=2", NULL};

const struct tr_strategy_class tr_strategy_gossip = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "gossip",
    .help = "decentralised SGD: replicas are trained apart, each on its part of every batch, and averaged "
            "with their neighbours in a ring every few steps",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct gossip_options),
    .size = sizeof(struct gossip),
    .variants = variants,
    .own_hash = true,
    .traits = traits,
    .check = tr_replicas_check,
    .create = create,
    .begin = tr_replicas_begin,
    .destroy = destroy,
    .average = average,
};
