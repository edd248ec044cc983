/* Buckets: ranges of the arenas that go from gradients to new parameters independently, so that the first
 * ones are exchanged while backward computes the last ones.
 *
 * The stages of a bucket: this rank's nodes are complete -> those of all ranks are -> the sum of this
 * rank's shard is computed and applied, piece by piece while it is in the cache -> all ranks have the new
 * parameters. It begins when backward has reached the bucket's first float, in the same order on all
 * ranks.
 *
 * No update is applied before the loss is known, since the parameters must not change if it is not finite.
 * Its sums are exchanged first, and all buckets wait for them.
 *
 * Shared parameters are overwritten as soon as all ranks have started their bucket, which means that no
 * backward reads them any more.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "comm/program.h"

/* Floats that are added and then updated at a time, per thread: together with the optimizer's state they
   fit the second-level cache, and streams are long enough for the hardware prefetcher. */
#define PIECE (32 << 10)

/* ---- a step ---- */

static float *nodes_of(const struct all_reduce *self, int64_t *stride)
{
    *stride = self->sum ? 0 : tr_gradient_stride(self->head.replicas->gradient);
    return self->sum ? self->sum : self->slots->host;
}

void all_reduce_begin(struct all_reduce *self)
{
    self->copied = self->started = self->updated = self->given = 0;
    self->seconds = 0;
}

static tr_status start_loss(struct all_reduce *self)
{
    int64_t stride;
    const float *sums = nodes_of(self, &stride) + self->head.job->model->arena_floats;
    return tr_comm_all_reduce(self->head.comm, self->reduction, sums, stride, TR_PASS_SUMS, self->sums,
                              "loss", &self->loss);
}

static tr_status start(struct all_reduce *self, struct bucket *bucket)
{
    tr_strategy *strategy = &self->head;
    int64_t stride;
    float *nodes = nodes_of(self, &stride) + bucket->begin;
    if (self->whole)
        return tr_comm_all_reduce(strategy->comm, self->reduction, nodes, stride, bucket->end - bucket->begin,
                                  self->whole + bucket->begin, "gradient", &bucket->ticket);
    float *parameters = self->values->host + bucket->begin;
    if (bucket->travels) {
        TR_TRY(all_reduce_show_factors(bucket));
        nodes = NULL;
    }
    return tr_comm_reduce_start(strategy->comm, self->reduction, nodes, stride, bucket->shard, parameters,
                                self->parameters, "gradient", &bucket->ticket);
}

/* ---- nodes, which come to host memory ---- */

/* Copies the floats [begin, end) of all nodes of this rank, which are final, to the host, while backward
   continues. */
static tr_status copy_nodes(struct all_reduce *self, int64_t begin, int64_t end)
{
    int64_t stride = tr_gradient_stride(self->head.replicas->gradient);
    for (int j = 0; j < tr_reduction_nodes(self->reduction, self->head.rank); j++)
        TR_TRY(tr_staging_to_host_beside(self->slots, j * stride + begin, j * stride + end));
    return TR_OK;
}

static tr_status copy_loss(struct all_reduce *self)
{
    int64_t floats = self->head.job->model->arena_floats;
    return copy_nodes(self, floats, floats + TR_PASS_SUMS);
}

/* Whether nodes are always in host memory. */
static bool are_here(const struct all_reduce *self)
{
    return !self->slots || tr_staging_is_direct(self->slots);
}

/* The same for all complete buckets; with the first one the loss, which is known by then. */
static tr_status copy_from(struct all_reduce *self, int64_t from)
{
    if (!self->slots) return TR_OK;
    if (are_here(self)) return tr_device_wait(self->head.device);
    for (; self->copied < self->buckets && self->bucket[self->copied].begin >= from; self->copied++) {
        struct bucket *bucket = &self->bucket[self->copied];
        if (self->copied == 0) TR_TRY(copy_loss(self));
        TR_TRY(copy_nodes(self, bucket->begin, bucket->end));
        TR_TRY(tr_device_record(self->head.device, &bucket->copied));
    }
    return TR_OK;
}

static tr_status is_copied(const struct all_reduce *self, int number, bool *out)
{
    *out = are_here(self);
    if (*out || number >= self->copied) return TR_OK;
    return tr_device_reached(self->head.device, self->bucket[number].copied, out);
}

/* Starts the loss, and after it all buckets from float `from` on, as far as they are in host memory. */
static tr_status start_from(struct all_reduce *self, int64_t from)
{
    bool here;
    if (!self->head.open && !self->loss) {
        TR_TRY(is_copied(self, 0, &here));
        if (!here) return TR_OK;
        TR_TRY(start_loss(self));
    }
    for (; self->started < self->buckets && self->bucket[self->started].begin >= from; self->started++) {
        TR_TRY(is_copied(self, self->started, &here));
        if (!here) return TR_OK;
        TR_TRY(start(self, &self->bucket[self->started]));
    }
    return TR_OK;
}

/* ---- updates ---- */

/* Floats that are added and then updated at a time: small pieces in host memory; all at once where the
   memory is copied, or where parameters are updated as wholes. */
static int64_t piece_of(const struct all_reduce *self, const struct bucket *bucket)
{
    if (bucket->factor) return all_reduce_factor_piece(self, bucket->factor);
    if (!tr_staging_is_direct(&self->gradient) || tr_optimizer_takes_wholes(&self->head.job->optimizer))
        return bucket->end - bucket->begin;
    return (int64_t)PIECE * self->head.device->threads;
}

/* For a ready bucket: sums this rank's shard and enqueues its update, piece by piece. */
static tr_status update_shard(struct all_reduce *self, const struct bucket *bucket)
{
    tr_strategy *strategy = &self->head;
    const int64_t *shard = bucket->shard + strategy->rank;
    int64_t piece = piece_of(self, bucket);
    for (int64_t begin = shard[0], end; begin < shard[1]; begin = end) {
        end = shard[1] - begin < piece ? shard[1] : begin + piece;
        int64_t from = bucket->begin + begin, to = bucket->begin + end;
        float *sum = self->gradient.host + from;
        if (bucket->factor)
            TR_TRY(all_reduce_form(bucket, begin, end, sum));
        else
            tr_comm_reduce_piece(bucket->ticket, begin, end, sum);
        TR_TRY(tr_staging_to_device(&self->gradient, from, to));
        TR_TRY(tr_driver_update(strategy, self->gradient.data + from, from, to));
    }
    /* Other ranks of the host have read our shard, and we will read theirs. */
    if (self->parameters && tr_comm_local_size(strategy->comm) > 1)
        tr_program_moved(bucket->end - bucket->begin, bucket->end - bucket->begin);
    return tr_staging_to_host_beside(self->values, bucket->begin + shard[0], bucket->begin + shard[1]);
}

/* The same for the next bucket; after the last one the result of the update is requested. */
static tr_status update(struct all_reduce *self)
{
    struct bucket *bucket = &self->bucket[self->updated++];
    if (self->head.spoilt) return TR_OK;
    TR_TRY(update_shard(self, bucket));
    if (self->updated == self->buckets) TR_TRY(tr_driver_ask(&self->head));
    return tr_device_record(self->head.holder, &bucket->updated);
}

/* Gathers updated shards; `waits`: all, else those that are in host memory. */
static tr_status give(struct all_reduce *self, bool waits)
{
    tr_device *holder = self->head.holder;
    for (; self->given < self->updated; self->given++) {
        struct bucket *bucket = &self->bucket[self->given];
        bool here = true;
        if (waits && !self->head.spoilt)
            TR_TRY(tr_device_wait_for(holder, bucket->updated));
        else if (!self->head.spoilt)
            TR_TRY(tr_device_reached(holder, bucket->updated, &here));
        if (!here) return TR_OK;
        TR_TRY(tr_comm_reduce_gather(self->head.comm, bucket->ticket));
    }
    return TR_OK;
}

/* Whether this rank may update its shard. */
static bool is_ready(const struct all_reduce *self, struct bucket *bucket)
{
    return tr_comm_is_done(self->head.comm, &bucket->rows) &&
           tr_comm_is_ready(self->head.comm, bucket->ticket);
}

static tr_status wait_ready(const struct all_reduce *self, struct bucket *bucket)
{
    TR_TRY(tr_comm_wait(self->head.comm, &bucket->rows));
    return tr_comm_wait_ready(self->head.comm, bucket->ticket);
}

/* Both, for all ready buckets, once the loss is known. */
static tr_status apply_ready(struct all_reduce *self)
{
    if (!self->head.open || self->whole) return TR_OK;
    while (self->updated < self->started && is_ready(self, &self->bucket[self->updated])) {
        TR_TRY(update(self));
        TR_TRY(give(self, false));
    }
    return give(self, false);
}

/* ---- the way of all buckets ---- */

/* Does all that is possible now, in time not spent computing. */
static tr_status move_on(struct all_reduce *self, int64_t from)
{
    double began = tr_clock_seconds();
    bool known;
    TR_TRY(start_from(self, from));
    if (self->loss) {
        TR_TRY(tr_comm_test(self->head.comm, &self->loss, &known));
        if (known) tr_driver_open(&self->head, self->sums);
    }
    TR_TRY(apply_ready(self));
    self->seconds += tr_clock_seconds() - began;
    return TR_OK;
}

tr_status all_reduce_advance(struct all_reduce *self, int64_t from)
{
    if (self->started == self->buckets) return TR_OK;
    TR_TRY(copy_from(self, from));
    return move_on(self, from);
}

/* A network without parameters has a loss, too. */
static tr_status follow_loss(struct all_reduce *self)
{
    if (!are_here(self)) TR_TRY(copy_loss(self));
    TR_TRY(tr_device_wait(self->head.device));
    return start_loss(self);
}

tr_status all_reduce_follow(struct all_reduce *self)
{
    TR_TRY(copy_from(self, 0));
    while (self->started < self->buckets) {
        if (!are_here(self))
            TR_TRY(tr_device_wait_for(self->head.device, self->bucket[self->started].copied));
        TR_TRY(move_on(self, 0));
    }
    return self->buckets > 0 ? TR_OK : follow_loss(self);
}

/* For the holder: the data that the ranks gathered in host memory. No rank writes there until this rank
   has started a bucket of the next step, which comes after this; but a rank without nodes starts none. */
static tr_status take_over(struct all_reduce *self, const struct tr_staging *arena)
{
    if (tr_staging_is_direct(arena)) return TR_OK;
    TR_TRY(tr_staging_to_device(arena, 0, arena->floats));
    return self->slots ? TR_OK : tr_device_wait(self->head.holder);
}

static tr_status wait_for_buckets(struct all_reduce *self)
{
    for (int i = 0; i < self->buckets; i++) TR_TRY(tr_comm_wait(self->head.comm, &self->bucket[i].ticket));
    return TR_OK;
}

tr_status all_reduce_finish(struct all_reduce *self)
{
    TR_TRY(tr_comm_wait(self->head.comm, &self->loss));
    if (!self->head.open) tr_driver_open(&self->head, self->sums);
    while (!self->whole && self->updated < self->buckets) {
        struct bucket *bucket = &self->bucket[self->updated];
        /* Before this rank waits for others, it sends its data. */
        TR_TRY(give(self, !is_ready(self, bucket)));
        TR_TRY(wait_ready(self, bucket));
        TR_TRY(update(self));
    }
    TR_TRY(give(self, true));
    TR_TRY(wait_for_buckets(self));
    /* With a loss that is not finite there is no update, and so no copy to wait for. */
    if (self->whole && self->head.spoilt) return TR_OK;
    if (self->whole) return tr_staging_to_device(&self->gradient, 0, self->gradient.floats);
    return take_over(self, self->values);
}

tr_status all_reduce_join(struct all_reduce *self, const struct tr_staging *arena, tr_window *window,
                          const char *name)
{
    tr_strategy *strategy = &self->head;
    for (int i = 0; i < strategy->update_count; i++)
        TR_TRY(tr_staging_to_host(arena, strategy->updates[i].begin, strategy->updates[i].end));
    TR_TRY(tr_device_wait(strategy->holder));
    for (int i = 0; i < self->buckets; i++) {
        struct bucket *bucket = &self->bucket[i];
        for (int r = 0; r <= strategy->size; r++)
            self->shard_bytes[r] = bucket->shard[r] * (int64_t)sizeof(float);
        TR_TRY(tr_comm_all_gather(strategy->comm, arena->host + bucket->begin, self->shard_bytes, window,
                                  name, &bucket->ticket));
    }
    TR_TRY(wait_for_buckets(self));
    return take_over(self, arena);
}
