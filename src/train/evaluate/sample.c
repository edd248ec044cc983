/* Drawing a token from scores, see train/evaluate/generator.h. */
#include "train/evaluate/generator.h"

#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"

#include <math.h>

/* Whether token `a` comes before `b` in descending order of scores. */
static bool stands_before(const float *scores, int64_t a, int64_t b)
{
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

/* The token of the greatest score among those from `first` on; NaN counts as the least. */
static int64_t greatest_of(const float *scores, int64_t first, int64_t count)
{
    int64_t best = first;
    for (int64_t k = first + 1; k < count; k++)
        if (scores[k] > scores[best] || isnan(scores[best])) best = k;
    return best;
}

/* The last of the `most` tokens with the greatest scores, found by descending one by one. */
static int64_t last_of_top(const float *scores, int64_t first, int64_t count, int64_t most)
{
    int64_t last = greatest_of(scores, first, count);
    for (int64_t taken = 1; taken < most; taken++) {
        int64_t next = -1;
        for (int64_t k = first; k < count; k++)
            if (stands_before(scores, last, k) && (next < 0 || stands_before(scores, k, next))) next = k;
        if (next < 0) break;
        last = next;
    }
    return last;
}

int32_t tr_sample(const struct tr_decoding *sampling, uint64_t index, float *scores, int64_t count)
{
    int64_t first = sampling->has_unknown && count > 1 ? 1 : 0, best = greatest_of(scores, first, count);
    if (!(sampling->temperature > 0)) return (int32_t)best;
    int64_t last = sampling->top_k > 0 ? last_of_top(scores, first, count, sampling->top_k) : -1;
    double sum = 0;
    for (int64_t k = count; last >= 0 && k-- > first;)
        if (k != last && !stands_before(scores, k, last)) scores[k] = -INFINITY;
    float greatest = scores[best];
    for (int64_t k = 0; k < count; k++) {
        float weight =
            k < first || isnan(scores[k]) ? 0 : tr_expf((scores[k] - greatest) / sampling->temperature);
        scores[k] = weight > 0 ? weight : 0;
        sum += (double)scores[k];
    }
    uint32_t word[4];
    tr_rng_key key = tr_rng_key_make(sampling->seed, TR_RNG_TEXT);
    tr_rng_philox(key, (uint32_t)index, (uint32_t)(index >> 32), 0, 0, word);
    double unit = (double)(((uint64_t)word[0] << 32 | word[1]) >> 11) * 0x1p-53, reached = 0;
    for (int64_t k = first; k < count; k++) {
        reached += (double)scores[k];
        if (reached > unit * sum) return (int32_t)k;
    }
    return (int32_t)best;
}
