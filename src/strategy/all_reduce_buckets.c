/* Buckets: ranges of the arenas that take the way from gradients to new parameters each on its own, so that
 * the first ones are on it while backward still computes the last ones.
 *
 * A bucket's way: this rank's nodes are there -> everybody's are -> the sum of this rank's share is formed
 * and applied, piece by piece while it is in the cache -> the new parameters are with all. It begins when
 * backward has come to the bucket's first float, in the same order on all ranks.
 *
 * Nothing is applied before the loss is known, for if it is not finite the parameters must stay as they are.
 * Its sums are the first to go around, and hold back all buckets until they have come.
 *
 * Parameters that ranks share are overwritten as soon as all ranks have started the bucket that they are in,
 * which says that backward does not read them any more.
 */
#include "strategy/all_reduce.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/tree.h"

#include <assert.h>
#include <math.h>

#define GRAIN 16 /* floats: buckets and shares begin on cache lines */
/* Floats that are added and then updated at a time, per thread: with what the optimizer keeps of them they
   stay in the second-level cache, and streams are long enough for the hardware to foresee them. */
#define PIECE (32 << 10)

/* ---- making ---- */

/* Adds the buckets of a range, from its end on, or only counts them. */
static void cut_range(int64_t begin, int64_t end, int64_t most, struct bucket *bucket, int *count)
{
    int64_t parts = (end - begin + most - 1) / most;
    for (int64_t part = parts - 1; part >= 0; part--, ++*count) {
        if (!bucket) continue;
        bucket[*count].begin = begin + tr_cut((end - begin) / GRAIN, parts, part) * GRAIN;
        bucket[*count].end = begin + tr_cut((end - begin) / GRAIN, parts, part + 1) * GRAIN;
    }
}

/* Buckets end with layers, since that is when backward completes them, but are not much larger than `most`
   floats; weights that are formed from factors are buckets of their own. Returns their number. */
static int cut_buckets(const struct all_reduce *self, int64_t most, struct bucket *bucket)
{
    const struct tr_model *model = self->head.job->model;
    int count = 0;
    int64_t end = model->arena_floats;
    for (int i = model->layer_count - 1; i >= 0; i--) {
        const struct tr_layer *layer = &model->layers[i];
        const struct factor *factor = all_reduce_factor_of(self, i);
        int64_t begin = layer->parameter_count ? model->parameters[layer->parameter[0]].offset : end;
        if (factor) {
            cut_range((factor->end + GRAIN - 1) / GRAIN * GRAIN, end, most, bucket, &count);
            if (bucket) {
                bucket[count].begin = factor->begin;
                bucket[count].end = factor->end;
                bucket[count].factor = factor;
            }
            count++;
        } else {
            if (begin == end || (end - begin < most && begin > 0)) continue;
            cut_range(begin, end, most, bucket, &count);
        }
        end = begin;
    }
    assert(end == 0);
    return count;
}

static void cut_shares(const struct tr_strategy *strategy, struct bucket *bucket)
{
    int size = strategy->size, holders = strategy->servers ? strategy->servers : size;
    int64_t all = bucket->end - bucket->begin;
    int64_t grain = bucket->factor ? bucket->factor->grain * bucket->factor->out : GRAIN;
    for (int r = 0; r <= size; r++) {
        int holder = r - (size - holders); /* holders are the last ranks */
        bucket->share[r] = tr_cut((all + grain - 1) / grain, holders, holder > 0 ? holder : 0) * grain;
        if (bucket->share[r] > all) bucket->share[r] = all;
    }
}

tr_status all_reduce_make_buckets(struct all_reduce *self)
{
    const struct tr_strategy *strategy = &self->head;
    const struct all_reduce_options *options = strategy->options;
    const struct tr_model *model = strategy->job->model;
    double most = options->bucket * (1 << 20) / sizeof(float);
    bool once = !strategy->comm || options->bucket == 0 || most > (double)model->arena_floats;
    int64_t floats = once ? model->arena_floats : (int64_t)most / GRAIN * GRAIN;
    if (floats < GRAIN) floats = GRAIN;
    int count = cut_buckets(self, floats, NULL);
    size_t bounds = (size_t)strategy->size + 1;
    self->share_bytes = tr_alloc(bounds, sizeof *self->share_bytes);
    self->sums = tr_alloc_aligned(TR_PASS_SUMS, sizeof *self->sums);
    self->bucket = tr_alloc_zero((size_t)count + 1, sizeof *self->bucket);
    if (!self->share_bytes || !self->sums || !self->bucket) return TR_ENOMEM;
    self->buckets = cut_buckets(self, floats, self->bucket);
    for (int i = 0; i < count; i++) {
        self->bucket[i].owner = self;
        self->bucket[i].share = tr_alloc(bounds, sizeof *self->bucket[i].share);
        if (!self->bucket[i].share) return TR_ENOMEM;
        cut_shares(strategy, &self->bucket[i]);
    }
    return TR_OK;
}

void all_reduce_release_buckets(struct all_reduce *self)
{
    for (int i = 0; i < self->buckets; i++) tr_free(self->bucket[i].share);
    tr_free(self->bucket);
    tr_free(self->share_bytes);
    tr_free(self->sums);
}

/* ---- a step ---- */

static float *nodes_of(const struct all_reduce *self, int64_t *stride)
{
    *stride = self->sum ? 0 : tr_gradient_stride(self->head.gradient);
    return self->sum ? self->sum : tr_gradient_slots(self->head.gradient);
}

void all_reduce_begin(struct all_reduce *self)
{
    int64_t stride;
    self->gradient = self->whole ? self->whole : nodes_of(self, &stride);
    self->started = 0;
    self->open = self->spoilt = false;
    self->seconds = 0;
}

/* The sum over [begin, end) of a bucket, in this rank's share, is there. */
static tr_status take(void *user, int64_t begin, int64_t end)
{
    const struct bucket *bucket = user;
    const struct all_reduce *self = bucket->owner;
    if (self->spoilt) return TR_OK;
    return tr_variables_update(self->head.variables, self->gradient, bucket->begin + begin,
                               bucket->begin + end);
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
    struct tr_comm_apply apply = {
        .take = take,
        .user = bucket,
        .form = bucket->factor ? all_reduce_form : NULL,
        .piece = bucket->factor ? all_reduce_factor_piece(self, bucket->factor)
                                : (int64_t)PIECE * strategy->device->threads,
        .open = &self->open,
        .data = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS) + bucket->begin,
        .window = self->parameters,
    };
    return tr_comm_reduce_apply(strategy->comm, self->reduction, nodes, stride, bucket->share,
                                nodes + bucket->share[strategy->rank], &apply, "gradient", &bucket->ticket);
}

/* The sums of the loss have come. */
static void open_buckets(struct all_reduce *self)
{
    self->spoilt = !isfinite(self->sums[0]);
    self->open = true;
}

tr_status all_reduce_advance(struct all_reduce *self, int64_t from)
{
    double began = tr_clock_seconds();
    bool known;
    if (self->started == self->buckets) return TR_OK;
    TR_TRY(tr_device_wait(self->head.device));
    if (!self->open && !self->loss) TR_TRY(start_loss(self));
    for (; self->started < self->buckets && self->bucket[self->started].begin >= from; self->started++)
        TR_TRY(start(self, &self->bucket[self->started]));
    TR_TRY(tr_comm_test(self->head.comm, &self->loss, &known));
    if (known && !self->open) {
        open_buckets(self);
        TR_TRY(tr_comm_progress(self->head.comm));
    }
    self->seconds += tr_clock_seconds() - began;
    return TR_OK;
}

static tr_status wait_for_buckets(struct all_reduce *self)
{
    for (int i = 0; i < self->buckets; i++) TR_TRY(tr_comm_wait(self->head.comm, &self->bucket[i].ticket));
    return TR_OK;
}

tr_status all_reduce_finish(struct all_reduce *self)
{
    TR_TRY(all_reduce_advance(self, 0));
    TR_TRY(tr_comm_wait(self->head.comm, &self->loss));
    if (!self->open) open_buckets(self);
    return wait_for_buckets(self);
}

tr_status all_reduce_apply(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    for (int i = 0; i < self->buckets; i++) {
        const struct bucket *bucket = &self->bucket[i];
        const int64_t *share = bucket->share + strategy->rank;
        TR_TRY(tr_variables_update(strategy->variables, self->gradient, bucket->begin + share[0],
                                   bucket->begin + share[1]));
    }
    TR_TRY(tr_device_wait(strategy->device));
    return all_reduce_gather(self, tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS),
                             self->parameters, "parameters");
}

tr_status all_reduce_gather(struct all_reduce *self, float *arena, tr_window *window, const char *name)
{
    tr_strategy *strategy = &self->head;
    for (int i = 0; i < self->buckets; i++) {
        struct bucket *bucket = &self->bucket[i];
        for (int r = 0; r <= strategy->size; r++)
            self->share_bytes[r] = bucket->share[r] * (int64_t)sizeof(float);
        TR_TRY(tr_comm_all_gather(strategy->comm, arena + bucket->begin, self->share_bytes, window, name,
                                  &bucket->ticket));
    }
    return wait_for_buckets(self);
}
