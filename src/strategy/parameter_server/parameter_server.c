#include "strategy/parameter_server/parameter_server.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/team.h"
#include "base/tree.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define GRAIN 16 /* floats: shares begin on cache lines */
/* Floats of a gradient that are sent at a time: enough for a message to cost little, few enough for most of
   the gradient to be away when backward ends. */
#define PIECE (256 << 10)

/* ---- options ---- */

#define AT(field) offsetof(struct ps_options, field)
static const struct tr_choice modes[] = {
    {"sync", PS_SYNC, "every step waits for all workers; the hash of a single process"},
    {"async", PS_ASYNC, "every worker computes whole batches, and its gradient is applied when it comes"},
    {"bounded", PS_BOUNDED, "as async, but no gradient misses more than `staleness` updates"},
    {"backup", PS_BACKUP,
     "a step takes the gradients of all workers but the `backup` slowest, whose late ones are dropped"},
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
     .help = "how many of the ranks, the last ones, hold the parameters and update them, an equal share "
             "each; all "
             "others are workers"},
    {.key = "staleness",
     .type = TR_OPTION_INT64,
     .offset = AT(staleness),
     .fallback = "-1",
     .least = -1,
     .most = 1000000000,
     .help =
         "updates that a gradient may miss: a worker that would get further ahead of another waits before it "
         "begins; below the number of workers less one they wait for each other all the time; -1: twice the "
         "number of workers",
     .only = 1u << PS_BOUNDED},
    {.key = "backup",
     .type = TR_OPTION_INT32,
     .offset = AT(backup),
     .fallback = "1",
     .least = 0,
     .most = TR_STRATEGY_RANKS - 1,
     .help = "workers beyond those whose gradients make a step: with n workers, each computes 1/(n - backup) "
             "of a "
             "batch",
     .only = 1u << PS_BACKUP},
};
#undef AT

static const char *const variants[] = {"mode=sync", "mode=async", "mode=bounded", "mode=backup,backup=1",
                                       NULL};

static int ranks_for(const void *options_, int workers)
{
    const struct ps_options *chosen = options_;
    return workers + chosen->servers;
}

static bool asynchronous(const void *options_)
{
    const struct ps_options *chosen = options_;
    return chosen->mode != PS_SYNC;
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
    if (chosen->mode == PS_SYNC && workers > microbatches)
        return tr_fail(
            TR_EINVAL,
            "%d workers share %lld microbatches; start fewer ranks or set train.microbatches higher", workers,
            microbatches);
    if (chosen->mode != PS_BACKUP) return TR_OK;
    if (parts_of(chosen, workers) < 1)
        return tr_fail(TR_EINVAL,
                       "%d workers, of which %d are backup: no gradient would make a step; choose fewer",
                       workers, chosen->backup);
    if (parts_of(chosen, workers) > microbatches)
        return tr_fail(
            TR_EINVAL,
            "%d gradients make a step, which is cut into %lld microbatches; set train.microbatches higher",
            parts_of(chosen, workers), microbatches);
    return TR_OK;
}

/* ---- making ---- */

/* A server of synchronous steps works while the workers wait, so it may use their cores, too: those of its
   host, shared with the other servers there. */
static tr_status make_device(struct ps *self)
{
    const struct tr_strategy *head = &self->head;
    int workers = 0, servers = 0;
    for (int i = 0; i < tr_comm_local_size(head->comm); i++) {
        if (tr_comm_local(head->comm, i) < self->workers)
            workers++;
        else
            servers++;
    }
    int threads = head->device->threads * workers / servers;
    if (threads > TR_TEAM_MAX) threads = TR_TEAM_MAX;
    if (threads <= head->device->threads) return TR_OK;
    return tr_device_create(head->device->class->name, threads, NULL, &self->device);
}

static tr_status create_synchronous(struct ps *self)
{
    if (self->head.rank >= self->workers) TR_TRY(make_device(self));
    TR_TRY(tr_strategy_create_inner(&self->head, &tr_strategy_all_reduce,
                                    self->device ? self->device : self->head.device, self->servers,
                                    &self->inner));
    self->head.variables = self->inner->variables;
    return TR_OK;
}

static tr_status make_shares(struct ps *self)
{
    int64_t floats = self->head.job->model->arena_floats;
    self->share = tr_alloc((size_t)self->servers + 1, sizeof *self->share);
    self->essential = tr_alloc((size_t)self->servers + 1, sizeof *self->essential);
    if (!self->share || !self->essential) return TR_ENOMEM;
    for (int s = 0; s <= self->servers; s++)
        self->share[s] = tr_cut(floats / GRAIN, self->servers, s) * GRAIN;
    self->essential[0] = 0;
    for (int s = 0; s < self->servers; s++) self->essential[s + 1] = ps_server_rank(self, s);
    self->watch =
        (struct ps_watch){.comm = self->head.comm, .ranks = self->essential, .count = self->servers + 1};
    self->outbox.comm = self->head.comm;
    return TR_OK;
}

static tr_status create_asynchronous(struct ps *self)
{
    const struct tr_job *job = self->head.job;
    bool works = self->head.rank < self->workers;
    struct tr_gradient_part whole = {.end = job->train.microbatches};
    self->parts = parts_of(ps_options_of(self), self->workers);
    TR_TRY(make_shares(self));
    whole.alone = self->parts > 1;
    self->slot_bytes = tr_gradient_slot_bytes(job, &whole);
    size_t bytes = self->slot_bytes + (size_t)job->model->arena_floats * sizeof(float);
    TR_TRY(tr_strategy_window(&self->head, works ? bytes : 0, &self->memory));
    float *parameters = works && self->memory ? ps_parameters_of(self, self->head.rank) : NULL;
    TR_TRY(tr_variables_create(self->head.holder, job->model, &job->optimizer, parameters,
                               &self->head.variables));
    tr_comm_tolerate(self->head.comm);
    return tr_strategy_keep_moving(&self->head, self->memory);
}

static tr_status create(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    self->servers = strategy->size > 1 ? ps_options_of(self)->servers : 0;
    self->workers = strategy->size - self->servers;
    if (ps_options_of(self)->mode == PS_SYNC || self->servers == 0) return create_synchronous(self);
    return create_asynchronous(self);
}

static bool cancel(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    if (self->inner) return true; /* its steps are collective */
    ps_server_cancel(self);
    bool back = ps_worker_cancel(self);
    ps_outbox_release(&self->outbox);
    return back;
}

static void destroy(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    if (self->inner) {
        /* They were lent, and are released by now. */
        self->inner->variables = NULL;
        self->inner->gradient = NULL;
    }
    tr_strategy_destroy(&self->inner);
    tr_device_destroy(&self->device);
    ps_worker_destroy(self);
    ps_server_destroy(self);
    tr_window_destroy(&self->memory);
    tr_free(self->share);
    tr_free(self->essential);
}

static tr_status begin(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    if (self->inner) {
        TR_TRY(self->inner->class->begin(self->inner));
        strategy->gradient = self->inner->gradient;
        return TR_OK;
    }
    return strategy->rank < self->workers ? ps_worker_create(self) : ps_server_create(self);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct ps *self = (const struct ps *)strategy;
    if (self->inner) {
        self->inner->class->placement(self->inner, rank, out);
        return;
    }
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
            .first_update = self->share[server],
            .end_update = self->share[server + 1],
            .updates = self->share[server + 1] - self->share[server],
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
    return tr_window_part(self->memory, worker, NULL);
}

float *ps_parameters_of(const struct ps *self, int worker)
{
    char *part = tr_window_part(self->memory, worker, NULL);
    return (float *)(void *)(part + self->slot_bytes);
}

int ps_pieces(const struct ps *self, int server)
{
    return (int)((self->share[server + 1] - self->share[server] + PIECE - 1) / PIECE);
}

void ps_piece(const struct ps *self, int server, int piece, int64_t *begin, int64_t *end)
{
    *end = self->share[server + 1] - (int64_t)piece * PIECE;
    *begin = *end - PIECE > self->share[server] ? *end - PIECE : self->share[server];
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

static tr_status meet(tr_strategy *strategy, int64_t step)
{
    struct ps *self = ps_of(strategy);
    self->first = self->count = step;
    return tr_strategy_barrier(strategy);
}

static tr_status step(tr_strategy *strategy, int64_t number, int32_t wish, struct tr_step_figures *figures)
{
    struct ps *self = ps_of(strategy);
    if (!self->inner) return ps_chief_step(self, wish, figures);
    TR_TRY(self->inner->class->step(self->inner, number, wish, figures));
    strategy->done.compute_seconds = self->inner->done.compute_seconds;
    strategy->done.contributions = self->inner->done.contributions;
    return TR_OK;
}

static tr_status settle(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    return self->inner || strategy->rank != 0 ? TR_OK : ps_chief_settle(self);
}

static tr_status gather(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    if (self->inner) return self->inner->class->gather(self->inner);
    return strategy->rank == 0 ? ps_chief_gather(self) : TR_OK;
}

static tr_status gather_averages(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    return self->inner->class->gather_averages(self->inner);
}

static tr_status follow(tr_strategy *strategy, const volatile sig_atomic_t *stop, int32_t wish)
{
    struct ps *self = ps_of(strategy);
    tr_status status =
        strategy->rank < self->workers ? ps_worker_run(self, stop, wish) : ps_server_run(self, stop, wish);
    if (status != TR_OK) tr_fail_in(status, "after step %lld", (long long)self->count);
    return status;
}

static tr_status end(tr_strategy *strategy)
{
    struct ps *self = ps_of(strategy);
    return self->inner || strategy->rank != 0 ? TR_OK : ps_chief_end(self);
}

static tr_status statistics(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    struct ps *self = ps_of(strategy);
    if (self->inner) return tr_strategy_gather_statistics(strategy, out);
    return strategy->rank == 0 ? ps_chief_statistics(self, out) : TR_OK;
}

const struct tr_strategy_class tr_strategy_parameter_server = {
    .name = "parameter-server",
    .help = "the last ranks are servers, which hold the parameters and update them; the others are workers, "
            "which "
            "compute gradients, all together or each at its own pace",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct ps_options),
    .size = sizeof(struct ps),
    .asynchronous = asynchronous,
    .check = check,
    .create = create,
    .destroy = destroy,
    .cancel = cancel,
    .begin = begin,
    .placement = placement,
    .meet = meet,
    .step = step,
    .settle = settle,
    .gather = gather,
    .gather_averages = gather_averages,
    .follow = follow,
    .end = end,
    .statistics = statistics,
    .variants = variants,
    .ranks = ranks_for,
};
