#include "data/order/sampler.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <string.h>

struct tr_sampler {
    int32_t classes;
    uint64_t *bound;  /* [classes] exclusive bounds of the first word, ascending; that of the last class
                         with a share is 2^32 */
    int64_t *first;   /* [classes + 1] first place of each class in `example` */
    int64_t *example; /* [count] by class, ascending within one */
};

/* Sorts the examples by class. */
static tr_status sort_examples(const tr_source *source, tr_sampler *sampler)
{
    int64_t count = source->info.count;
    int32_t *label = tr_alloc((size_t)count, sizeof *label);
    int64_t *next = tr_alloc((size_t)sampler->classes, sizeof *next), length;
    tr_status status = label && next ? TR_OK : TR_ENOMEM;
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        status = source->class->read(source, i, NULL, &length, &label[i]);
        if (status == TR_OK) sampler->first[label[i] + 1]++;
    }
    if (status == TR_OK) {
        for (int32_t c = 0; c < sampler->classes; c++) {
            sampler->first[c + 1] += sampler->first[c];
            next[c] = sampler->first[c];
        }
        for (int64_t i = 0; i < count; i++) sampler->example[next[label[i]]++] = i;
    }
    tr_free(next);
    tr_free(label);
    return status;
}

static tr_status set_bounds(tr_sampler *sampler, const float *shares)
{
    double total = 0, sum = 0;
    int32_t last = -1;
    for (int32_t c = 0; c < sampler->classes; c++) {
        bool has = sampler->first[c + 1] > sampler->first[c];
        double share = shares ? (double)shares[c] : has;
        if (share > 0 && !has)
            return tr_fail(TR_EINVAL,
                           "class %" PRId32
                           " has no training examples to draw, but a share of %g; set it to 0",
                           c, share);
        if (share > 0) last = c;
        total += share;
    }
    if (last < 0) return tr_fail(TR_EINVAL, "all shares of classes are 0; give one that is above");
    for (int32_t c = 0; c < sampler->classes; c++) {
        bool has = sampler->first[c + 1] > sampler->first[c];
        sum += shares ? (double)shares[c] : has;
        sampler->bound[c] = c >= last ? (uint64_t)1 << 32 : (uint64_t)(sum / total * 0x1p32);
    }
    return TR_OK;
}

tr_status tr_sampler_create(const tr_source *source, const float *shares, int32_t count, tr_sampler **out)
{
    const struct tr_source_info *info = &source->info;
    if (info->labels != TR_LABEL_CLASS)
        return tr_fail(TR_EINVAL, "examples are drawn by class, but the training data have no classes; set "
                                  "train.sampling: once");
    if (shares && count != info->classes)
        return tr_fail(TR_EINVAL, "%" PRId32 " shares of classes, but %" PRId32 " classes; give one for each",
                       count, info->classes);
    tr_sampler *sampler = tr_alloc_zero(1, sizeof *sampler);
    if (!sampler) return TR_ENOMEM;
    sampler->classes = info->classes;
    sampler->bound = tr_alloc((size_t)info->classes, sizeof *sampler->bound);
    sampler->first = tr_alloc_zero((size_t)info->classes + 1, sizeof *sampler->first);
    sampler->example = tr_alloc((size_t)info->count, sizeof *sampler->example);
    tr_status status = sampler->bound && sampler->first && sampler->example ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = sort_examples(source, sampler);
    if (status == TR_OK) status = set_bounds(sampler, shares);
    if (status != TR_OK) {
        tr_sampler_destroy(&sampler);
        return status;
    }
    *out = sampler;
    return TR_OK;
}

void tr_sampler_destroy(tr_sampler **handle)
{
    tr_sampler *sampler = *handle;
    if (!sampler) return;
    tr_free(sampler->bound);
    tr_free(sampler->first);
    tr_free(sampler->example);
    tr_free(sampler);
    *handle = NULL;
}

int64_t tr_sampler_draw(const tr_sampler *sampler, tr_rng_key key, uint32_t epoch, uint64_t position)
{
    uint32_t w[4];
    int32_t low = 0, high = sampler->classes - 1;
    tr_rng_philox(key, epoch, (uint32_t)position, (uint32_t)(position >> 32), 0, w);
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (sampler->bound[middle] > w[0])
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t word = (uint64_t)w[1] << 32 | w[2],
             n = (uint64_t)(sampler->first[low + 1] - sampler->first[low]);
    __extension__ unsigned __int128 product = (unsigned __int128)word * n;
    return sampler->example[sampler->first[low] + (int64_t)(product >> 64)];
}
