#include "verify/stretches.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

double tr_verify_chance(int64_t segments, int64_t forged, int64_t checked)
{
    double unseen = 1;
    if (segments < 0 || forged < 0 || forged > segments || checked < 0 || checked > segments) return NAN;
    if (forged == 0) return 0;
    for (int64_t i = 0; i < checked && unseen > 0; i++)
        unseen *= (double)(segments - forged - i) / (double)(segments - i);
    return 1 - fmax(unseen, 0);
}

/* ---- which segments ---- */

/* The first `most` of a permutation that follows from the seed. */
static void draw(int64_t count, int64_t most, uint64_t seed, bool *chosen)
{
    const tr_rng_key key = tr_rng_key_make(seed, TR_RNG_SEGMENTS);
    for (int64_t i = 0; i < most; i++) chosen[tr_rng_permute(key, 0, (uint64_t)count, (uint64_t)i)] = true;
}

static void choose(int64_t count, const struct tr_verify_settings *settings, bool *chosen)
{
    if (settings->segments == 0 || settings->segments >= count)
        memset(chosen, true, (size_t)count * sizeof *chosen);
    else
        draw(count, settings->segments, settings->seed, chosen);
    if (settings->expect) chosen[count - 1] = true;
}

/* ---- stretches ---- */

/* The last boundary up to `segment` whose state is available: from a checkpoint, or the first one. */
static int64_t begin_of(const struct claim *claim, int64_t segment)
{
    while (segment > 0 && !claim->checkpoint[segment]) segment--;
    return segment;
}

/* Joins segments if the next one would begin within a stretch that is run anyway, unless several processes
   share them. */
static void join(const struct claim *claim, const bool *chosen, int64_t segments, bool apart,
                 struct stretches *out)
{
    for (int64_t i = 0; i < segments; i++) {
        if (!chosen[i]) continue;
        int64_t first = begin_of(claim, i);
        struct stretch *last = out->count > 0 ? &out->stretch[out->count - 1] : NULL;
        bool goes_on = last && (apart ? last->first == first : last->end >= first);
        if (goes_on)
            last->end = i + 1;
        else
            out->stretch[out->count++] = (struct stretch){first, i + 1};
    }
}

/* Keeps those of one share: every n-th one. */
static void keep_share(int share, int shares, struct stretches *out)
{
    int64_t kept = 0;
    for (int64_t i = share; i < out->count; i += shares) out->stretch[kept++] = out->stretch[i];
    out->count = kept;
}

static tr_status check(const struct tr_verify_settings *settings)
{
    if (settings->segments < 0)
        return tr_fail(TR_EINVAL, "%" PRId64 " segments cannot be drawn; give 1 or more, or 0 for all",
                       settings->segments);
    if (settings->shares < 0 || settings->share < 0 ||
        settings->share >= (settings->shares > 0 ? settings->shares : 1))
        return tr_fail(TR_EINVAL, "share %d of %d; the first of 3 is 0 of 3", settings->share,
                       settings->shares);
    return TR_OK;
}

tr_status stretches_plan(const struct claim *claim, const struct tr_verify_settings *settings,
                         struct stretches *out)
{
    int64_t segments = claim->receipt.count - 1;
    *out = (struct stretches){0};
    TR_TRY(check(settings));
    out->stretch = tr_alloc_zero((size_t)segments + 1, sizeof *out->stretch);
    bool *chosen = tr_alloc_zero((size_t)segments + 1, sizeof *chosen);
    if (!out->stretch || !chosen) {
        tr_free(chosen);
        stretches_release(out);
        return TR_ENOMEM;
    }
    if (segments == 0)
        out->count = 1; /* from the first boundary to itself */
    else {
        choose(segments, settings, chosen);
        join(claim, chosen, segments, settings->shares > 1, out);
    }
    tr_free(chosen);
    if (settings->shares > 1) keep_share(settings->share, settings->shares, out);
    for (int64_t i = 0; i < out->count; i++) out->checked += out->stretch[i].end - out->stretch[i].first;
    return TR_OK;
}

void stretches_release(struct stretches *stretches)
{
    tr_free(stretches->stretch);
    *stretches = (struct stretches){0};
}
