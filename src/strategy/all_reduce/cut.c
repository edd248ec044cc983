/* How the arenas are cut into buckets, and these into shards.
 *
 * Invariant: the cut depends only on the model, the options and the numbers of ranks and hosts, so that it
 * is the same on all ranks.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>

#define GRAIN 16 /* floats: buckets and shards begin on cache lines */
/* Up to so many hosts, buckets have the size in the options. */
#define BUCKET_ISLANDS 8

/* Adds the buckets of a range, from its end on, or only counts them. `whole`: as one. */
static void cut_range(int64_t begin, int64_t end, int64_t most, bool whole, struct bucket *bucket, int *count)
{
    int64_t parts = whole && end > begin ? 1 : (end - begin + most - 1) / most;
    for (int64_t part = parts - 1; part >= 0; part--, ++*count) {
        if (!bucket) continue;
        bucket[*count].begin = begin + tr_cut((end - begin) / GRAIN, parts, part) * GRAIN;
        bucket[*count].end = begin + tr_cut((end - begin) / GRAIN, parts, part + 1) * GRAIN;
    }
}

/* Buckets end with layers, since that is when backward completes them, but are not much larger than `most`
   floats; weights that are formed from factors are separate buckets. Returns their number. */
static int cut_buckets(const struct all_reduce *self, int64_t most, struct bucket *bucket)
{
    const struct tr_model *model = self->head.job->model;
    const bool whole = tr_optimizer_takes_wholes(&self->head.job->optimizer);
    int count = 0;
    int64_t end = model->arena_floats;
    for (int i = model->layer_count - 1; i >= 0; i--) {
        const struct tr_layer *layer = &model->layers[i];
        const struct factor *factor = all_reduce_factor_of(self, i);
        int64_t begin = layer->parameter_count ? model->parameters[layer->parameter[0]].offset : end;
        if (factor) {
            cut_range((factor->end + GRAIN - 1) / GRAIN * GRAIN, end, most, whole, bucket, &count);
            if (bucket) {
                bucket[count].begin = factor->begin;
                bucket[count].end = factor->end;
                bucket[count].factor = factor;
            }
            count++;
        } else {
            if (begin == end || (end - begin < most && begin > 0)) continue;
            cut_range(begin, end, most, whole, bucket, &count);
        }
        end = begin;
    }
    assert(end == 0);
    return count;
}

static void cut_shards(const struct tr_strategy *strategy, struct bucket *bucket)
{
    int size = strategy->size, holders = strategy->servers ? strategy->servers : size;
    int64_t all = bucket->end - bucket->begin;
    int64_t grain = bucket->factor ? bucket->factor->grain * bucket->factor->out : GRAIN;
    for (int r = 0; r <= size; r++) {
        int holder = r - (size - holders); /* holders are the last ranks */
        bucket->shard[r] = tr_cut((all + grain - 1) / grain, holders, holder > 0 ? holder : 0) * grain;
        if (bucket->shard[r] > all) bucket->shard[r] = all;
        bucket->shard[r] = tr_variables_cut(strategy->job->model, &strategy->job->optimizer,
                                            bucket->begin + bucket->shard[r]) -
                           bucket->begin;
    }
}

/* Buckets are larger where many ranks exchange them, so that a rank's shard, and the number of its
   messages, stays about the same. */
static double growth(const struct tr_strategy *strategy)
{
    int islands = strategy->comm ? tr_comm_hosts(strategy->comm) : 1;
    return islands > BUCKET_ISLANDS ? (double)islands / BUCKET_ISLANDS : 1;
}

tr_status all_reduce_make_buckets(struct all_reduce *self)
{
    const struct tr_strategy *strategy = &self->head;
    const struct all_reduce_options *options = &self->options;
    const struct tr_model *model = strategy->job->model;
    double most = options->bucket * growth(strategy) * (1 << 20) / sizeof(float);
    bool once = !strategy->comm || options->bucket == 0 || most > (double)model->arena_floats;
    int64_t floats = once ? model->arena_floats : (int64_t)most / GRAIN * GRAIN;
    if (floats < GRAIN) floats = GRAIN;
    int count = cut_buckets(self, floats, NULL);
    size_t bounds = (size_t)strategy->size + 1;
    self->shard_bytes = tr_alloc(bounds, sizeof *self->shard_bytes);
    self->sums = tr_alloc_aligned(TR_PASS_SUMS, sizeof *self->sums);
    self->bucket = tr_alloc_zero((size_t)count + 1, sizeof *self->bucket);
    self->updates = tr_alloc_zero((size_t)count + 1, sizeof *self->updates);
    if (!self->shard_bytes || !self->sums || !self->bucket || !self->updates) return TR_ENOMEM;
    self->buckets = cut_buckets(self, floats, self->bucket);
    for (int i = 0; i < count; i++) {
        self->bucket[i].owner = self;
        self->bucket[i].travels = self->bucket[i].factor && tr_comm_hosts(strategy->comm) > 1;
        self->bucket[i].shard = tr_alloc(bounds, sizeof *self->bucket[i].shard);
        if (!self->bucket[i].shard) return TR_ENOMEM;
        cut_shards(strategy, &self->bucket[i]);
        const int64_t *shard = self->bucket[i].shard + strategy->rank;
        self->updates[i] =
            (struct tr_range){self->bucket[i].begin + shard[0], self->bucket[i].begin + shard[1]};
    }
    return TR_OK;
}

void all_reduce_release_buckets(struct all_reduce *self)
{
    for (int i = 0; i < self->buckets; i++) tr_free(self->bucket[i].shard);
    tr_free(self->bucket);
    tr_free(self->updates);
    tr_free(self->shard_bytes);
    tr_free(self->sums);
}
