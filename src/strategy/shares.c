#include "strategy/shares.h"

#include "base/text/counted.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/sort.h"
#include "base/text/text.h"
#include "base/numbers/tree.h"
#include "strategy/class.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A ratio of speeds beyond this is a mistake. */
#define FASTEST 1e6
/* Most ranks named in the text. */
#define TOLD 16
/* A new cut must reduce the slowest worker's step to this fraction. */
#define WORTH 0.9

tr_status tr_shares_suffice(int64_t microbatches, int parts, const char *whose)
{
    char counted[TR_COUNTED_SIZE];
    if (parts <= microbatches) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%d %s share %s; choose fewer, or set train.microbatches=%d, which changes the hash",
                   parts, whose, tr_counted(microbatches, "microbatch", counted), parts);
}

/* ---- what the settings say ---- */

static tr_status read_speed(const char *item, double *speed)
{
    const char *wrong = tr_text_double(item, speed);
    if (wrong)
        return tr_fail(TR_EINVAL,
                       "shares: \"%.40s\" %s; give equal, auto, or the speed of each worker as in 3,1", item,
                       wrong);
    if (*speed >= 1 / FASTEST && *speed <= FASTEST) return TR_OK;
    return tr_fail(TR_EINVAL, "shares: a speed of %g; give %g to %g", *speed, 1 / FASTEST, FASTEST);
}

static tr_status read_speeds(struct tr_shares *shares, const char *text)
{
    int given = 1, read = 0;
    for (const char *c = text; *c; c++) given += *c == ',';
    if (given != shares->workers && strchr("0123456789.", *text))
        return tr_fail(TR_EINVAL, "shares: speeds of %d workers are given, the job has %d", given,
                       shares->workers);
    shares->speed = tr_alloc((size_t)given, sizeof *shares->speed);
    char *copy = tr_strdup(text), *rest = copy;
    tr_status status = shares->speed && copy ? TR_OK : TR_ENOMEM;
    while (status == TR_OK && rest) status = read_speed(strsep(&rest, ","), &shares->speed[read++]);
    tr_free(copy);
    return status;
}

static tr_status check_class(const tr_strategy *strategy, const char *text)
{
    if (strategy->traits.asynchronous)
        return tr_fail(
            TR_EUNSUPPORTED,
            "shares: in this mode of the strategy \"%s\" a worker computes a batch, or the same part "
            "of one, whenever it is ready, so the fast ones do more anyway; leave `shares` out",
            strategy->class->name);
    if (strategy->class->rebalance) return TR_OK;
    return tr_fail(
        TR_EUNSUPPORTED,
        "shares: the strategy \"%s\" divides its work in another way, and cannot share microbatches "
        "as \"%.40s\" asks; choose allreduce or parameter-server, or leave `shares` out",
        strategy->class->name, text);
}

/* ---- cutting ---- */

static void cut(const tr_strategy *strategy, int64_t *bound)
{
    const struct tr_shares *shares = &strategy->shares;
    int64_t microbatches = strategy->job->train.microbatches;
    if (shares->speed)
        tr_tree_cut_by_speed(microbatches, shares->workers, shares->speed, bound);
    else
        tr_tree_cut(microbatches, shares->workers, bound);
    for (int r = shares->workers; r < strategy->size; r++) bound[r + 1] = bound[r];
}

static tr_status tell(struct tr_shares *shares)
{
    struct tr_text text = TR_TEXT_INIT;
    int told = shares->workers < TOLD ? shares->workers : TOLD;
    tr_text_addf(&text, "ranks 0 to %d compute", shares->workers - 1);
    for (int r = 0; r < told; r++)
        tr_text_addf(&text, "%s %lld", r ? "," : "", (long long)(shares->bound[r + 1] - shares->bound[r]));
    tr_text_addf(&text, "%s of %lld microbatches", told < shares->workers ? ", ..." : "",
                 (long long)shares->bound[shares->workers]);
    for (int r = 0; r < told && shares->seconds[r] > 0; r++)
        tr_text_addf(&text, "%s%.3g", r ? ", " : "; ms for one: ", shares->seconds[r] * 1e3);
    tr_free(shares->text);
    shares->text = NULL;
    return tr_text_finish(&text, &shares->text);
}

tr_status tr_shares_create(tr_strategy *strategy)
{
    struct tr_shares *shares = &strategy->shares;
    const char *text = strategy->settings.shares ? strategy->settings.shares : "equal";
    size_t ranks = (size_t)strategy->size;
    bool equal = strcmp(text, "equal") == 0;
    if (!equal) TR_TRY(check_class(strategy, text));
    shares->workers = strategy->size - strategy->servers;
    shares->measures = strcmp(text, "auto") == 0 && shares->workers > 1;
    if (!equal && strcmp(text, "auto") != 0) TR_TRY(read_speeds(shares, text));
    if (!strategy->class->rebalance) return TR_OK;
    shares->bound = tr_alloc(ranks + 1, sizeof *shares->bound);
    shares->seconds = tr_alloc_zero(ranks, sizeof *shares->seconds);
    if (!shares->bound || !shares->seconds) return TR_ENOMEM;
    cut(strategy, shares->bound);
    return shares->speed ? tell(shares) : TR_OK;
}

void tr_shares_destroy(tr_strategy *strategy)
{
    struct tr_shares *shares = &strategy->shares;
    tr_free(shares->speed);
    tr_free(shares->bound);
    tr_free(shares->seconds);
    tr_free(shares->text);
}

/* ---- measuring ---- */

static bool is_due(int64_t steps)
{
    return steps == 4 || steps == 16 || steps == 64 || steps % 256 == 0;
}

/* The first step allocates, so it is not measured. */
static void take_time(tr_strategy *strategy, const struct tr_step_figures *figures)
{
    struct tr_shares *shares = &strategy->shares;
    double seconds = strategy->done.compute_seconds - shares->computed;
    int64_t own = shares->bound[strategy->rank + 1] - shares->bound[strategy->rank];
    shares->computed = strategy->done.compute_seconds;
    if (shares->steps++ == 0 || figures->examples != strategy->job->train.batch || own == 0) return;
    shares->sample[shares->samples++ % TR_SHARES_SAMPLES] = seconds / (double)own;
}

static double median(struct tr_shares *shares)
{
    size_t count = (size_t)(shares->samples < TR_SHARES_SAMPLES ? shares->samples : TR_SHARES_SAMPLES);
    shares->samples = 0;
    if (count == 0) return 0;
    tr_sort_doubles(shares->sample, count);
    return shares->sample[count / 2];
}

/* Seconds of the slowest worker. */
static double step_seconds(const struct tr_shares *shares, const int64_t *bound)
{
    double most = 0;
    for (int r = 0; r < shares->workers; r++) {
        double seconds = (double)(bound[r + 1] - bound[r]) * shares->seconds[r];
        if (seconds > most) most = seconds;
    }
    return most;
}

static bool all_known(const struct tr_shares *shares)
{
    for (int r = 0; r < shares->workers; r++)
        if (!(shares->seconds[r] > 0 && isfinite(shares->seconds[r]))) return false;
    return true;
}

/* Cuts by numbers that all ranks know. */
static tr_status share_anew(tr_strategy *strategy, struct tr_step_figures *figures)
{
    struct tr_shares *shares = &strategy->shares;
    int64_t *bound = tr_alloc((size_t)strategy->size + 1, sizeof *bound);
    if (!shares->speed) shares->speed = tr_alloc((size_t)shares->workers, sizeof *shares->speed);
    if (!bound || !shares->speed) {
        tr_free(bound);
        return TR_ENOMEM;
    }
    for (int r = 0; r < shares->workers; r++) shares->speed[r] = 1 / shares->seconds[r];
    cut(strategy, bound);
    if (!(step_seconds(shares, bound) <= WORTH * step_seconds(shares, shares->bound))) {
        tr_free(bound);
        return TR_OK;
    }
    tr_free(shares->bound);
    shares->bound = bound;
    figures->rebalanced = true;
    TR_TRY(tell(shares));
    return strategy->class->rebalance(strategy);
}

tr_status tr_shares_end_step(tr_strategy *strategy, struct tr_step_figures *figures)
{
    struct tr_shares *shares = &strategy->shares;
    if (!shares->measures) return TR_OK;
    take_time(strategy, figures);
    if (!is_due(shares->steps)) return TR_OK;
    shares->seconds[strategy->rank] = median(shares);
    TR_TRY(tr_comm_exchange(strategy->comm, shares->seconds, sizeof *shares->seconds, "shares"));
    return all_known(shares) ? share_anew(strategy, figures) : TR_OK;
}
