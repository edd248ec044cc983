/* The checks of the conformance suite that need no faults. */
#include "strategy/conformance/conformance.h"

#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Calls that go on only where all went well. */
#define MUST(call)                                                                                           \
    do {                                                                                                     \
        if (!(call)) return false;                                                                           \
    } while (0)

static bool is_exact(const struct candidate *candidate, int ranks)
{
    return !candidate->asynchronous || ranks - candidate->servers == 1;
}

/* ---- hashes ---- */

/* All ranks have the hash; of an asynchronous candidate the root. */
static bool expect_hash(struct candidate *candidate, const struct result *result, const char *hash,
                        const char *how)
{
    MUST(expect_status(candidate, result, TR_OK, how));
    for (int r = 0; r < (candidate->asynchronous ? 1 : result->ranks); r++)
        if (strcmp(result->rank[r].outcome.hash, hash) != 0)
            return complain(candidate, "%s, rank %d of %d: hash %.12s in the place of %.12s", how, r,
                            result->ranks, result->rank[r].outcome.hash, hash);
    return true;
}

/* What an undisturbed run ends with: one process', or, of those with a hash of their own, the candidate's. */
static bool undisturbed(struct candidate *candidate, char hash[65])
{
    struct order order = {.strategy = candidate->strategy, .stopper = -1};
    struct result result;
    if (!candidate->class->own_hash) {
        snprintf(hash, 65, "%s", alone(0)->rank[0].outcome.hash);
        return true;
    }
    run_order(&order, &result);
    snprintf(hash, 65, "%s", result.rank[0].outcome.hash);
    bool well = expect_status(candidate, &result, TR_OK, "on one rank");
    run_release(&result);
    return well;
}

bool repeats_itself(struct candidate *candidate)
{
    char hash[65];
    MUST(undisturbed(candidate, hash));
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++)
        for (int again = 0; again < 3 && candidate->legal[ranks] && is_exact(candidate, ranks); again++) {
            struct order order = {
                .strategy = candidate->strategy, .ranks = ranks, .apart = again == 1, .stopper = -1};
            struct result result;
            run_order(&order, &result);
            bool well = expect_hash(candidate, &result, hash, order.apart ? "apart" : "together");
            run_release(&result);
            MUST(well);
        }
    return true;
}

/* ---- features ---- */

static bool is_finite(const struct result *result, int64_t floats)
{
    for (int64_t i = 0; i < floats; i++)
        if (!isfinite(result->left->parameters[i])) return false;
    return true;
}

/* The run ended in the parameters that it should, by what is known of the candidate. */
static bool ends_right(struct candidate *candidate, const struct feature *feature,
                       const struct result *result)
{
    struct replay replay;
    bool right;
    const struct outcome *expected = &alone((int)(feature - features))->rank[0].outcome;
    if (candidate->data->meet) {
        replay_replicas(candidate, feature, &replay);
        right = expect_near(candidate, &replay, result, feature->name);
        if (right && (replay.skipped > 0) != feature->skips)
            right = complain(candidate, "%s: the replay skips %lld steps", feature->name,
                             (long long)replay.skipped);
    } else if (candidate->asynchronous) {
        replay_updates(feature, result, &replay);
        if (feature->skips)
            right = is_finite(result, replay.floats) || complain(candidate, "%s: is not", feature->name);
        else
            right = expect_near(candidate, &replay, result, feature->name);
        if (right && result->left->update_count == 0) right = complain(candidate, "no update was made");
    } else {
        right = expect_hash(candidate, result, expected->hash, feature->name);
        if (right && expected->evaluated_loss != result->rank[0].outcome.evaluated_loss)
            right = complain(candidate, "%s: evaluates to %.17g, one process to %.17g", feature->name,
                             result->rank[0].outcome.evaluated_loss, expected->evaluated_loss);
        return right;
    }
    replay_release(&replay);
    return right;
}

bool takes_effect(struct candidate *candidate, const struct feature *feature)
{
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++) {
        struct order order = {
            .strategy = candidate->strategy,
            .ranks = ranks,
            .apart = ranks % 2,
            .set = {feature->set[0], feature->set[1]},
            .stopper = -1,
            .recorded = candidate->asynchronous,
        };
        struct result result;
        if (!candidate->legal[ranks]) continue;
        run_order(&order, &result);
        const struct outcome *root = &result.rank[0].outcome;
        bool well = expect_status(candidate, &result, feature->status, feature->name);
        if (well && feature->status != TR_OK && !strstr(root->message, "is not finite"))
            well = complain(candidate, "%s: ends with \"%s\"", feature->name, root->message);
        if (well && feature->skips != (root->warnings > 0))
            well = complain(candidate, "%s: %d warnings of skipped steps", feature->name, root->warnings);
        if (well && feature->status == TR_OK) well = ends_right(candidate, feature, &result);
        run_release(&result);
        MUST(well);
    }
    return true;
}

/* ---- stopping and resuming ---- */

static const char *fresh_directory(char path[SCRATCH_PATH])
{
    scratch_make(path);
    return path;
}

/* Stops a run by the request of one rank; it ends at the first step where it can, on all ranks. */
static bool stop_ranks(struct candidate *candidate, int ranks, int stopper, const char *out,
                       struct result *result)
{
    struct order order = {
        .strategy = candidate->strategy,
        .ranks = ranks,
        .apart = stopper % 2,
        .out = out,
        .stopper = stopper,
        .set = {candidate->asynchronous ? "train.steps=100000" : NULL},
    };
    if (candidate->asynchronous) order.steps = 100000;
    run_order(&order, result);
    MUST(expect_status(candidate, result, TR_EINTERRUPTED, "asked to stop"));
    for (int r = 1; r < ranks && !candidate->asynchronous; r++)
        if (result->rank[r].outcome.step != result->rank[0].outcome.step)
            return complain(candidate, "asked to stop, rank %d ended after step %lld, rank 0 after %lld", r,
                            (long long)result->rank[r].outcome.step, (long long)result->rank[0].outcome.step);
    return true;
}

bool stops_on_request(struct candidate *candidate)
{
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++)
        for (int stopper = 0; stopper < ranks && candidate->legal[ranks]; stopper++) {
            struct result result;
            bool well = stop_ranks(candidate, ranks, stopper, NULL, &result);
            run_release(&result);
            MUST(well);
        }
    return true;
}

/* The run that was stopped goes on, on `ranks` ranks. */
static bool go_on(struct candidate *candidate, const char *out, int ranks, const char *hash)
{
    struct order order = {
        .strategy = candidate->strategy, .ranks = ranks, .resume = out, .apart = true, .stopper = -1};
    struct result result;
    run_order(&order, &result);
    bool well = is_exact(candidate, ranks) ? expect_hash(candidate, &result, hash, "resumed")
                                           : expect_status(candidate, &result, TR_OK, "resumed");
    if (well && result.rank[0].outcome.step != CONFORMANCE_STEPS)
        well = complain(candidate, "resumed: ends after step %lld", (long long)result.rank[0].outcome.step);
    run_release(&result);
    return well;
}

/* Stopped on each number of ranks, taken up on each. Asynchronous runs, which a stop may reach late, are
   stopped by their number of steps. */
bool resumes(struct candidate *candidate)
{
    char hash[65], out[SCRATCH_PATH];
    MUST(undisturbed(candidate, hash));
    for (int before = 2; before <= CONFORMANCE_RANKS; before++)
        for (int after = 1; after <= CONFORMANCE_RANKS; after++) {
            struct order half = {.strategy = candidate->strategy,
                                 .ranks = before,
                                 .out = out,
                                 .steps = CONFORMANCE_STEPS / 2,
                                 .stopper = -1};
            struct result result;
            if (!candidate->legal[before] || !candidate->legal[after]) continue;
            if (candidate->asynchronous && (!is_exact(candidate, before) || !is_exact(candidate, after)))
                continue;
            fresh_directory(out);
            bool well;
            if (candidate->asynchronous) {
                run_order(&half, &result);
                well = expect_status(candidate, &result, TR_OK, "half-way");
            } else {
                well = stop_ranks(candidate, before, before - 1, out, &result);
            }
            run_release(&result);
            well = well && go_on(candidate, out, after, hash);
            scratch_remove(out);
            MUST(well);
        }
    return true;
}

/* ---- evaluation ---- */

/* What a run says of the test data in the end is what one process finds with what the run saved. */
bool evaluates(struct candidate *candidate)
{
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++) {
        char out[SCRATCH_PATH];
        struct order order = {.strategy = candidate->strategy,
                              .ranks = ranks,
                              .apart = ranks % 2,
                              .out = out,
                              .set = {"optimizer.ema=0.8"},
                              .stopper = -1};
        struct result result;
        struct job job;
        struct tr_train_event found = TR_TRAIN_EVENT_INIT;
        if (!candidate->legal[ranks]) continue;
        fresh_directory(out);
        run_order(&order, &result);
        const struct outcome *root = &result.rank[0].outcome;
        bool well = expect_status(candidate, &result, TR_OK, "with evaluation");
        if (well) {
            struct order again = {.resume = out, .set = {"optimizer.ema=0.8"}, .stopper = -1};
            tr_trainer *trainer = order_trainer(&again, &job);
            must_train(tr_trainer_evaluate(trainer, "test", &found));
            tr_trainer_destroy(&trainer);
            if (found.loss != root->evaluated_loss || found.accuracy != root->evaluated_accuracy)
                well =
                    complain(candidate, "%d ranks evaluate to %.17g, %g; of what they saved %.17g, %g", ranks,
                             root->evaluated_loss, root->evaluated_accuracy, found.loss, found.accuracy);
        }
        run_release(&result);
        scratch_remove(out);
        MUST(well);
    }
    return true;
}

/* ---- shares of microbatches ---- */

/* Whether the microbatches of a step can be cut in any way. */
static bool can_share(const struct candidate *candidate)
{
    return candidate->class->rebalance && !candidate->asynchronous;
}

/* Microbatches of a rank, by the last text of the run; -1: there is none. */
static int told_share(const struct result *result, int rank)
{
    const char *text = strstr(result->rank[0].outcome.shares, " compute");
    for (int i = 0; text && i < rank; i++) text = strchr(text + 1, ',');
    text = text ? strchr(text, ' ') : NULL;
    while (text && (*text < '0' || *text > '9')) text = *text ? text + 1 : NULL;
    return text ? atoi(text) : -1;
}

static bool rebalance(struct candidate *candidate, int ranks, const char *how, const char *slow, bool apart)
{
    char hash[65];
    /* Of five microbatches, four workers cannot give a slow one less than it has. */
    bool moves = ranks - candidate->servers > 1 && (!slow || ranks - candidate->servers < 4);
    struct order order = {.strategy = candidate->strategy,
                          .ranks = ranks,
                          .apart = apart,
                          .stopper = -1,
                          .shares = how,
                          .slow = slow};
    struct result result;
    MUST(undisturbed(candidate, hash));
    run_order(&order, &result);
    bool well;
    if (can_share(candidate)) {
        well = expect_hash(candidate, &result, hash, how);
        if (well && moves && told_share(&result, 0) <= told_share(&result, 1))
            well = complain(candidate, "shares %s on %d ranks: \"%s\"", how, ranks,
                            result.rank[0].outcome.shares);
    } else {
        well = expect_status(candidate, &result, TR_EUNSUPPORTED, how);
        if (well && !strstr(result.rank[0].outcome.message, candidate->class->name))
            well = complain(candidate, "refuses shares with \"%s\"", result.rank[0].outcome.message);
    }
    run_release(&result);
    return well;
}

/* Given, and measured of ranks one of which is much slower than it would ever be by chance. */
bool shares(struct candidate *candidate)
{
    static const char *const given[] = {NULL, "1", "7,2", "3,1,1", "2,1,1,1"};
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++) {
        int workers = ranks - candidate->servers;
        if (!candidate->legal[ranks]) continue;
        MUST(rebalance(candidate, ranks, given[workers], NULL, ranks % 2));
        MUST(rebalance(candidate, ranks, "auto", conformance.slow, ranks % 2 == 0));
    }
    return true;
}

/* ---- requests ---- */

static void *step_once(void *user)
{
    struct rank *rank = user;
    struct tr_step_figures *figures = rank->user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    /* Rank r asks for what bit r stands for. */
    must_train(tr_strategy_step(trainer_strategy(trainer), 0, 1 << tr_comm_rank(rank->comm), figures));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* All ranks learn what any asks for, and have the same figures; asynchronous ones are asked to stop. */
bool hears_requests(struct candidate *candidate)
{
    struct tr_step_figures *figures = ranks_shared(RANKS * sizeof *figures);
    bool well = true;
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS && well && !candidate->asynchronous; ranks++) {
        struct rank rank[RANKS];
        struct job job;
        struct order order = {.strategy = candidate->strategy, .ranks = ranks, .stopper = -1};
        if (!candidate->legal[ranks]) continue;
        order_job(&order, &job);
        for (int r = 0; r < ranks; r++) rank[r].user = &figures[r];
        run_ranks_by(step_once, &job.settings, ranks, ranks % 2, rank);
        for (int r = 0; r < ranks && well; r++) {
            if (figures[r].request != (1 << ranks) - 1)
                well = complain(candidate, "rank %d of %d hears requests %#x", r, ranks,
                                (unsigned)figures[r].request);
            else if (figures[r].loss != figures[0].loss || figures[r].examples != figures[0].examples ||
                     figures[r].steps != figures[0].steps || figures[r].correct != figures[0].correct)
                well = complain(candidate, "rank %d of %d has other figures than rank 0", r, ranks);
        }
    }
    ranks_unshare(figures, RANKS * sizeof *figures);
    return well;
}
