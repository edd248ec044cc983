/* Options, the class, and the parts shared by workers and servers. */
#include "strategy/parameter_server/parameter_server.h"

#include "strategy/parameter_server/schedule.h"
#include "strategy/parameter_server/store.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "base/text/counted.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Floats of a gradient that are sent at a time: enough for messages to be cheap, few enough for most of
   the gradient to be sent when backward ends. */
#define PIECE (256 << 10)

/* ---- options ---- */

#define AT(field) offsetof(struct ps_options, field)
static const struct tr_choice modes[] = {
    {"sync", PS_SYNC, "every step waits for all workers; the hash is that of a single process"},
    {"async", PS_ASYNC, "every worker computes whole batches, and its gradient is applied when it arrives"},
    {"bounded", PS_BOUNDED, "as async, but no gradient misses more than `staleness` updates"},
    {"backup", PS_BACKUP,
     "a step takes the gradients of all workers but the `backup` slowest, which are dropped"},
    {0},
};

static const struct tr_option options[] = {
    {.key = "mode",
     .type = TR_OPTION_CHOICE,
     .offset = AT(mode),
     .fallback = "sync",
     .choices = modes,
     .help = "when gradients are applied"},
    {.key = "servers",
     .type = TR_OPTION_INT32,
     .offset = AT(servers),
     .fallback = "1",
     .least = 1,
     .most = TR_STRATEGY_RANKS - 1,
     .help = "number of servers: the last ranks, which hold and update an equal shard each; all others are "
             "workers"},
    {.key = "staleness",
     .type = TR_OPTION_INT64,
     .offset = AT(staleness),
     .fallback = "-1",
     .least = -1,
     .most = 1000000000,
     .help =
         "updates that a gradient may miss; a worker that would exceed this waits before it begins. Below "
         "workers - 1 all workers wait in every step. -1: twice the number of workers",
     .only = 1u << PS_BOUNDED},
    {.key = "backup",
     .type = TR_OPTION_INT32,
     .offset = AT(backup),
     .fallback = "1",
     .least = 0,
     .most = TR_STRATEGY_RANKS - 1,
     .help =
         "workers beyond those needed for a step: with n workers, each computes 1/(n - backup) of a batch",
     .only = 1u << PS_BACKUP},
    {.key = "buffers",
     .type = TR_OPTION_INT32,
     .offset = AT(buffers),
     .fallback = "4",
     .least = 1,
     .most = TR_STRATEGY_RANKS - 1,
     .help = "gradients, and as many copies of parameters, that a server can hold in messages; further "
             "workers wait their turn",
     .only = 1u << PS_ASYNC | 1u << PS_BOUNDED | 1u << PS_BACKUP},
};
#undef AT

static const char *const variants[] = {"mode=sync", "mode=async", "mode=bounded", "mode=backup,backup=1",
                                       NULL};

static void traits(const void *options_, struct tr_strategy_traits *out)
{
    const struct ps_options *chosen = options_;
    out->asynchronous = chosen->mode != PS_SYNC;
    out->servers = chosen->servers;
}

static void synchronous_traits(const void *options_, struct tr_strategy_traits *out)
{
    const struct ps_options *chosen = options_;
    out->servers = chosen->servers;
}

static int parts_of(const struct ps_options *chosen, int workers)
{
    return chosen->mode == PS_BACKUP ? workers - chosen->backup : 1;
}

static tr_status check(const struct tr_job *job, const void *options_, int ranks)
{
    const struct ps_options *chosen = options_;
    int workers = ranks - chosen->servers;
    long long microbatches = (long long)job->train.microbatches;
    if (ranks == 1) return TR_OK; /* a single process needs no server */
    if (workers < 1)
        return tr_fail(
            TR_EINVAL,
            "%d ranks, of which %d would be parameter servers: none is left to compute; start more, as in "
            "`trireme launch -n %d`",
            ranks, chosen->servers, chosen->servers + 1);
    if (chosen->mode == PS_SYNC) TR_TRY(tr_shares_suffice(microbatches, workers, "workers"));
    if (chosen->mode != PS_BACKUP) return TR_OK;
    if (parts_of(chosen, workers) < 1) {
        char noun[TR_COUNTED_SIZE];
        return tr_fail(TR_EINVAL,
                       "of %s %d would be backup: no gradient would make a step; choose fewer backup",
                       tr_counted(workers, "worker", noun), chosen->backup);
    }
    if (parts_of(chosen, workers) > microbatches)
        return tr_fail(
            TR_EINVAL,
            "%d gradients make a step, which is cut into %lld microbatches; set train.microbatches higher",
            parts_of(chosen, workers), microbatches);
    return TR_OK;
}

/* ---- making ---- */

static tr_status make_shards(struct ps *self)
{
    self->shard = tr_alloc((size_t)self->servers + 1, sizeof *self->shard);
    self->essential = tr_alloc((size_t)self->servers + 1, sizeof *self->essential);
    if (!self->shard || !self->essential) return TR_ENOMEM;
    for (int s = 0; s <= self->servers; s++)
        self->shard[s] = ps_shard_begin(self->head.job, self->servers, s);
    self->essential[0] = 0;
    for (int s = 0; s < self->servers; s++) self->essential[s + 1] = ps_server_rank(self, s);
    self->watch =
        (struct ps_watch){.comm = self->head.comm, .ranks = self->essential, .count = self->servers + 1};
    self->outbox.comm = self->head.comm;
    return TR_OK;
}

/* Determines which workers need room at servers; the ranks know their hosts and whether they share memory. */
static tr_status find_distant(struct ps *self)
{
    const tr_comm *comm = self->head.comm;
    self->distant = tr_alloc_zero((size_t)self->workers, sizeof *self->distant);
    if (!self->distant) return TR_ENOMEM;
    for (int w = 0; w < self->workers; w++) {
        for (int s = 0; s < self->servers; s++)
            self->distant[w] |=
                !self->memory || tr_comm_host_of(comm, w) != tr_comm_host_of(comm, ps_server_rank(self, s));
        self->distants += self->distant[w];
    }
    int32_t buffers = ps_options_of(self)->buffers;
    self->credits = self->distants < buffers ? self->distants : buffers;
    return TR_OK;
}

/* The root gathers and saves all; other workers have parameters, and servers their shards of everything. */
static struct tr_variables_part part_of(const struct ps *self)
{
    int64_t floats = self->head.job->model->arena_floats;
    int server = self->head.rank - self->workers;
    if (self->head.rank == 0) return (struct tr_variables_part){0, floats, 0, floats};
    if (server < 0) return (struct tr_variables_part){0, floats, 0, 0};
    return (struct tr_variables_part){self->shard[server], self->shard[server + 1], self->shard[server],
                                      self->shard[server + 1]};
}

static tr_status create_asynchronous(struct ps *self)
{
    const struct tr_job *job = self->head.job;
    bool works = self->head.rank < self->workers;
    struct tr_gradient_part whole = {.end = job->train.microbatches};
    self->parts = parts_of(ps_options_of(self), self->workers);
    TR_TRY(make_shards(self));
    whole.alone = self->parts > 1;
    self->slot_bytes = tr_gradient_slot_bytes(job, &whole);
    size_t bytes = self->slot_bytes + (size_t)job->model->arena_floats * sizeof(float);
    TR_TRY(tr_strategy_window(self->head.comm, works ? bytes : 0, &self->memory));
    float *parameters = works && self->memory ? ps_parameters_of(self, self->head.rank) : NULL;
    struct tr_variables_part part = part_of(self);
    TR_TRY(find_distant(self));
    TR_TRY(tr_variables_create_part(self->head.holder, job->model, &job->optimizer, &part, parameters,
                                    &self->head.replicas->variables));
    tr_comm_tolerate(self->head.comm);
    return tr_strategy_use_progress_thread(&self->head, self->memory);
}

static const struct tr_strategy_class *resolve(const void *options_, int ranks)
{
    const struct ps_options *chosen = options_;
    /* A single process waits for no other. */
    return chosen->mode == PS_SYNC || ranks == 1 ? &ps_synchronous : &tr_strategy_parameter_server;
}

static tr_status create(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    self->servers = strategy->servers;
    self->workers = strategy->size - strategy->servers;
    return create_asynchronous(self);
}

static bool cancel(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    ps_server_cancel(self);
    bool back = ps_worker_cancel(self);
    back = tr_comm_cancel(self->head.comm, &self->finding) && back;
    ps_outbox_release(&self->outbox);
    return back;
}

static void destroy(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    ps_worker_destroy(self);
    ps_server_destroy(self);
    tr_window_destroy(&self->memory);
    tr_free(self->shard);
    tr_free(self->essential);
    tr_free(self->distant);
    tr_free(self->found);
}

static tr_status begin(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    return strategy->rank < self->workers ? ps_worker_create(self) : ps_server_create(self);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct ps *self = (const struct ps *)strategy;
    int server = rank - self->workers;
    if (server < 0)
        *out = (struct tr_placement){
            .role = "worker",
            .end_microbatch = strategy->job->train.microbatches,
            .end_layer = strategy->job->model->layer_count,
        };
    else
        *out = (struct tr_placement){
            .role = "server",
            .first_update = self->shard[server],
            .end_update = self->shard[server + 1],
            .updates = self->shard[server + 1] - self->shard[server],
        };
}

/* ---- what workers and servers have in common ---- */

bool ps_is_near(const struct ps *self, int rank)
{
    const tr_comm *comm = self->head.comm;
    return self->memory && tr_comm_host_of(comm, rank) == tr_comm_host_of(comm, self->head.rank);
}

float *ps_gradient_of(const struct ps *self, int worker)
{
    return tr_window_segment(self->memory, worker, NULL);
}

float *ps_parameters_of(const struct ps *self, int worker)
{
    char *part = tr_window_segment(self->memory, worker, NULL);
    return (float *)(void *)(part + self->slot_bytes);
}

int ps_pieces(const struct ps *self, int server)
{
    return (int)((self->shard[server + 1] - self->shard[server] + PIECE - 1) / PIECE);
}

void ps_piece(const struct ps *self, int server, int piece, int64_t *begin, int64_t *end)
{
    *end = self->shard[server + 1] - (int64_t)piece * PIECE;
    *begin = *end - PIECE > self->shard[server] ? *end - PIECE : self->shard[server];
}

int64_t ps_staleness(const struct ps *self)
{
    const struct ps_options *chosen = ps_options_of(self);
    if (chosen->mode != PS_BOUNDED) return PS_STALENESS_ANY;
    return chosen->staleness < 0 ? 2 * (int64_t)self->workers : chosen->staleness;
}

void ps_own_statistics(const struct ps *self, struct tr_rank_statistics *out)
{
    struct tr_comm_statistics moved;
    tr_comm_statistics(self->head.comm, &moved);
    *out = self->head.done;
    out->bytes_sent = moved.bytes_sent;
    out->bytes_received = moved.bytes_received;
    out->bytes_shared = moved.bytes_shared + self->shared;
    out->wait_seconds = moved.wait_seconds + self->watch.waited;
}

/* ---- the run ---- */

static tr_status connect(tr_strategy *strategy, int64_t step)
{
    struct ps *self = ps_of(strategy);
    self->first = self->count = step;
    return strategy->rank == 0 ? ps_updates_begin(self) : TR_OK;
}

static tr_status work(tr_strategy *strategy, const atomic_int *stop, int32_t request,
                      struct tr_step_figures *figures)
{
    struct ps *self = ps_of(strategy);
    if (strategy->rank == 0) return ps_root_step(self, request, figures);
    tr_status status = strategy->rank < self->workers ? ps_worker_run(self, stop, request)
                                                      : ps_server_run(self, stop, request);
    if (status != TR_OK) tr_fail_in(status, "after step %lld", (long long)self->count);
    return status;
}

static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    struct ps *self = ps_of(strategy);
    if (strategy->rank != 0) return TR_OK;
    if (arenas & TR_GATHER_DRAINED) TR_TRY(ps_root_drain(self));
    return ps_root_gather(self);
}

static tr_status end(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    struct ps *self = ps_of(strategy);
    if (strategy->rank != 0) return TR_OK;
    return out ? ps_root_statistics(self, out) : ps_root_end(self);
}

static tr_status evaluate(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation)
{
    return ps_root_evaluate(ps_of(strategy), evaluation);
}

static const struct tr_strategy_division division = {.placement = placement, .gather = gather};
static const struct tr_strategy_asynchronous asynchronous = {.work = work, .end = end, .evaluate = evaluate};

const struct tr_strategy_class tr_strategy_parameter_server = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "parameter-server",
    .help = "the last ranks are servers, which hold the parameters and update them; the others are workers, "
            "which compute gradients, all together or each at its own pace",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct ps_options),
    .size = sizeof(struct ps),
    .variants = variants,
    .traits = traits,
    .check = check,
    .resolve = resolve,
    .create = create,
    .begin = begin,
    .connect = connect,
    .cancel = cancel,
    .destroy = destroy,
    .rebalance = all_reduce_rebalance,
    .division = &division,
    .asynchronous = &asynchronous,
};

const struct tr_strategy_class ps_synchronous = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "parameter-server",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct ps_options),
    .size = sizeof(struct ps_synchronous_server),
    .traits = synchronous_traits,
    .create = ps_synchronous_create,
    .begin = all_reduce_start,
    .destroy = ps_synchronous_destroy,
    .gradient = all_reduce_gradient,
    .rebalance = all_reduce_rebalance,
    .division = &all_reduce_division,
};
