#include "plan/rehearsal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/program.h"
#include "strategy/class.h"

#include <string.h>

#define HOLLOW_LEAST ((size_t)4096) /* bytes of numbers whose contents are left out */
#define BUSY         0.8            /* share of the time from which on a link holds all back */

const char *const tr_bottleneck_names[] = {[TR_BOTTLENECK_COMPUTING] = "computing",
                                           [TR_BOTTLENECK_LINK] = "a host's link",
                                           [TR_BOTTLENECK_PROCESSING] = "processors for messages and sums",
                                           [TR_BOTTLENECK_WAITING] = "ranks wait for each other"};

/* What a rank has done up to a moment. */
struct account {
    double time, compute, spent, waited;
    int64_t sent, received, shared, messages;
};

struct player {
    double computed; /* seconds of its device so far */
    struct account before, after;
    int64_t steps, examples;
    size_t memory;
    bool works; /* it computes gradients */
};

struct stage {
    const struct tr_rehearsal *rehearsal;
    struct tr_cluster cluster; /* of the ranks that there are */
    tr_world *world;
    tr_sim *sim;
    tr_comm **comm;
    struct player *player;     /* [ranks] */
    double whole;              /* when the last rank was through */
    struct tr_failure failure; /* the first */
    int failed;                /* the rank; -1: none */
};

/* ---- a rank ---- */

static tr_status spend(void *user, double seconds)
{
    struct stage *stage = user;
    stage->player[tr_world_running(stage->world)].computed += seconds;
    return tr_sim_compute(stage->sim, seconds);
}

static void take_account(struct stage *stage, const tr_strategy *strategy, int rank, struct account *out)
{
    struct tr_comm_statistics moved = {0}, part = {0};
    if (strategy->comm) tr_comm_statistics(strategy->comm, &moved);
    if (strategy->part) tr_comm_statistics(strategy->part, &part);
    *out = (struct account){
        .time = tr_world_now(stage->world),
        .compute = stage->player[rank].computed,
        .spent = tr_world_spent(stage->world, rank),
        .sent = moved.bytes_sent + part.bytes_sent,
        .received = moved.bytes_received + part.bytes_received,
        .shared = moved.bytes_shared + part.bytes_shared,
        .messages = moved.messages_sent + part.messages_sent,
    };
    if (tr_strategy_is_asynchronous(strategy)) return;
    /* What the strategy counts of its steps has what it reads by itself, too. */
    out->sent = strategy->done.bytes_sent;
    out->received = strategy->done.bytes_received;
    out->shared = strategy->done.bytes_shared;
}

/* A step or round, of which *steps and *examples tell. */
static tr_status step_once(tr_strategy *strategy, int64_t *step, struct player *player)
{
    struct tr_step_figures figures;
    TR_TRY(tr_strategy_step(strategy, *step, 0, &figures));
    if (figures.bad_loss || figures.poisoned)
        return tr_fail(TR_ENONFINITE, "a rehearsal has numbers that are not finite");
    *step += figures.steps;
    player->steps += figures.steps;
    player->examples += figures.examples;
    return TR_OK;
}

static tr_status play_together(struct stage *stage, tr_strategy *strategy, struct player *player, int rank)
{
    int64_t step = 0;
    TR_TRY(step_once(strategy, &step, player));
    player->steps = player->examples = 0;
    take_account(stage, strategy, rank, &player->before);
    for (int64_t i = 0; i < stage->rehearsal->calls; i++) TR_TRY(step_once(strategy, &step, player));
    take_account(stage, strategy, rank, &player->after);
    return TR_OK;
}

/* The root counts from its first news on; the others all the time. */
static tr_status play_apart(struct stage *stage, tr_strategy *strategy, struct player *player, int rank)
{
    static const atomic_int never;
    int64_t step = 0, all = stage->rehearsal->job->train.steps;
    take_account(stage, strategy, rank, &player->before);
    if (rank > 0) {
        TR_TRY(tr_strategy_run_worker(strategy, &never, 0));
        take_account(stage, strategy, rank, &player->after);
        return TR_OK;
    }
    while (step < all) TR_TRY(step_once(strategy, &step, player));
    take_account(stage, strategy, rank, &player->after);
    TR_TRY(tr_strategy_drain(strategy));
    return tr_strategy_end(strategy);
}

static tr_status play(struct stage *stage, int rank)
{
    const struct tr_strategy_settings settings = {0};
    struct player *player = &stage->player[rank];
    tr_comm *comm = stage->rehearsal->ranks > 1 ? stage->comm[rank] : NULL;
    tr_device *device = NULL;
    tr_strategy *strategy = NULL;
    tr_status status;
    TR_TRY_GOTO(
        tr_virtual_device_create(stage->rehearsal->costs, stage->cluster.threads, spend, stage, &device),
        out);
    TR_TRY_GOTO(tr_strategy_create(device, stage->rehearsal->job, comm, &settings, &strategy), out);
    TR_TRY_GOTO(tr_strategy_begin(strategy), out);
    TR_TRY_GOTO(tr_strategy_connect(strategy, 0), out);
    player->memory = tr_strategy_memory(strategy);
    player->works = rank < strategy->size - strategy->servers;
    tr_sim_hollow(stage->sim, HOLLOW_LEAST);
    status = tr_strategy_is_asynchronous(strategy) ? play_apart(stage, strategy, player, rank)
                                                   : play_together(stage, strategy, player, rank);
out:
    tr_strategy_destroy(&strategy);
    tr_device_destroy(&device);
    return status;
}

static void rank_main(void *user, int rank)
{
    struct stage *stage = user;
    tr_program_rehearse(tr_sim_touch, stage->sim);
    tr_status status = play(stage, rank);
    if (status != TR_OK) {
        if (stage->failed < 0) {
            stage->failed = rank;
            tr_failure_keep(&stage->failure, status);
        }
        tr_comm_abort(stage->comm[rank], tr_error_message());
    }
    tr_comm_destroy(&stage->comm[rank]);
    if (tr_world_now(stage->world) > stage->whole) stage->whole = tr_world_now(stage->world);
    tr_program_rehearse(NULL, NULL);
}

/* ---- what came of it ---- */

static void add_rank(const struct player *player, double steps, struct tr_rehearsed *out)
{
    const struct account *a = &player->before, *b = &player->after;
    double busy = b->spent - a->spent, compute = b->compute - a->compute;
    struct tr_rehearsed_rank one = {
        .compute = compute / steps,
        .other = (busy - compute) / steps,
        .waiting = (b->time - a->time - busy) / steps,
        .bytes_sent = (int64_t)((double)(b->sent - a->sent) / steps),
        .bytes_received = (int64_t)((double)(b->received - a->received) / steps),
        .bytes_shared = (int64_t)((double)(b->shared - a->shared) / steps),
        .messages = (int64_t)((double)(b->messages - a->messages) / steps),
        .memory = player->memory,
    };
#define ADD(member)                                                                                          \
    out->sum.member += one.member;                                                                           \
    if (one.member > out->most.member) out->most.member = one.member
    ADD(compute);
    ADD(other);
    ADD(waiting);
    ADD(bytes_sent);
    ADD(bytes_received);
    ADD(bytes_shared);
    ADD(messages);
    ADD(memory);
#undef ADD
    if (!player->works && one.compute + one.other > out->serving) out->serving = one.compute + one.other;
    if (!player->works) return;
    out->workers++;
    out->mean.compute += one.compute;
    out->mean.other += one.other;
    out->mean.waiting += one.waiting;
}

static enum tr_bottleneck find_bottleneck(const struct tr_rehearsed *out)
{
    const struct tr_rehearsed_rank *mean = &out->mean;
    if (out->link > BUSY) return TR_BOTTLENECK_LINK;
    if (out->serving > BUSY * out->seconds) return TR_BOTTLENECK_PROCESSING;
    if (mean->compute > BUSY * out->seconds) return TR_BOTTLENECK_COMPUTING;
    /* What takes the rest of the time of those that compute. */
    if (mean->other > mean->waiting) return TR_BOTTLENECK_PROCESSING;
    if (out->link > BUSY / 2) return TR_BOTTLENECK_LINK;
    return out->serving > out->seconds / 2 ? TR_BOTTLENECK_PROCESSING : TR_BOTTLENECK_WAITING;
}

static void sum_up(const struct stage *stage, struct tr_rehearsed *out)
{
    const struct player *root = &stage->player[0];
    double steps = root->steps > 0 ? (double)root->steps : 1, time = root->after.time - root->before.time;
    out->ranks = stage->rehearsal->ranks;
    out->steps = root->steps;
    out->whole = stage->whole;
    out->seconds = time / steps;
    out->examples_per_second = time > 0 ? (double)root->examples / time : 0;
    for (int rank = 0; rank < out->ranks; rank++) add_rank(&stage->player[rank], steps, out);
    int workers = out->workers > 0 ? out->workers : 1;
    out->mean.compute /= workers;
    out->mean.other /= workers;
    out->mean.waiting /= workers;
    double all = out->sum.compute + out->sum.other + out->sum.waiting;
    out->waiting = all > 0 ? out->sum.waiting / all : 0;
    out->unmarked = tr_sim_unmarked(stage->sim);
    out->link = tr_sim_busiest(stage->sim) / (root->after.time > 0 ? root->after.time : 1);
    out->bottleneck = find_bottleneck(out);
}

/* ---- making ---- */

static tr_status share_processors(struct stage *stage)
{
    const struct tr_cluster *cluster = &stage->cluster;
    int *first = tr_alloc((size_t)cluster->hosts + 1, sizeof *first);
    if (!first) return TR_ENOMEM;
    for (int h = 0; h <= cluster->hosts; h++)
        first[h] = tr_cluster_first_rank(cluster, stage->rehearsal->ranks, h);
    tr_status status = tr_world_share(stage->world, cluster->hosts, first, cluster->processors,
                                      cluster->threads * (1 + cluster->beside));
    tr_free(first);
    return status;
}

static tr_status make(struct stage *stage)
{
    const struct tr_rehearsal *rehearsal = stage->rehearsal;
    size_t ranks = (size_t)rehearsal->ranks;
    stage->cluster = *rehearsal->cluster;
    struct tr_cluster *cluster = &stage->cluster;
    if (cluster->per_host > rehearsal->ranks) cluster->per_host = rehearsal->ranks;
    int hosts = (rehearsal->ranks + cluster->per_host - 1) / cluster->per_host;
    if (cluster->hosts > hosts) cluster->hosts = hosts;
    stage->comm = tr_alloc_zero(ranks, sizeof *stage->comm);
    stage->player = tr_alloc_zero(ranks, sizeof *stage->player);
    if (!stage->comm || !stage->player) return TR_ENOMEM;
    TR_TRY(tr_world_create(rehearsal->ranks, &stage->world));
    if (cluster->processors > 0) TR_TRY(share_processors(stage));
    return tr_sim_create(stage->world, &stage->cluster, rehearsal->ranks, rehearsal->listener, stage->comm,
                         &stage->sim);
}

tr_status tr_rehearse(const struct tr_rehearsal *rehearsal, struct tr_rehearsed *out)
{
    struct stage stage = {.rehearsal = rehearsal, .failed = -1};
    const char *name;
    *out = (struct tr_rehearsed){0};
    TR_TRY(tr_strategy_check(rehearsal->job, rehearsal->ranks));
    TR_TRY(tr_strategy_peek(rehearsal->job->file.strategy, &name, &out->asynchronous));
    tr_status status = make(&stage);
    if (status == TR_OK) status = tr_world_run(stage.world, rank_main, &stage);
    if (status == TR_OK && stage.failed >= 0)
        status = tr_fail_in(tr_failure_restore(&stage.failure), "rank %d of %d, simulated", stage.failed,
                            rehearsal->ranks);
    if (status == TR_OK) sum_up(&stage, out);
    tr_sim_destroy(&stage.sim);
    tr_world_destroy(&stage.world);
    tr_free(stage.comm);
    tr_free(stage.player);
    return status;
}
