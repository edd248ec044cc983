/* Rehearsals: what simulated ranks send, read and keep is what real ones do, to the byte; they repeat
 * themselves; and measured operations come back as they were measured.
 */
#include "support/ranks.h"

#include "comm/class.h"
#include "plan/machine.h"
#include "plan/rehearsal.h"
#include "strategy/strategy.h"
#include "train/loop/trainer.h"
#include "trireme/trireme.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define WORLD 4 /* ranks */

static const char *const layers =
    "layers=[{flatten: null}, {dense: {units: 32, activation: relu}}, {dense: 10}]";

static struct tr_job *job;
static tr_costs *costs;

static void shape_as(struct job *out, const char *own)
{
    family_job(out, &families[0], family_place);
    job_set(out, own);
    job_set(out, "train.batch=32");
    job_set(out, "train.microbatches=8");
    job_set(out, "train.last_batch=drop"); /* simulated batches are full ones */
}

static void shape(struct job *out)
{
    shape_as(out, layers);
}

static void open_job(struct job *shaped, struct tr_job **out)
{
    const struct tr_job_settings settings = {.set = shaped->set,
                                             .set_count = shaped->settings.set_count,
                                             .first_of_strategy = tr_strategy_first_option};
    must_train(tr_job_open(shaped->settings.model, &settings, out));
    must_train(tr_job_open_set(*out, TR_SET_TRAIN));
}

/* The job, its operations measured once on the processor. */
static int set_up(void **state)
{
    struct job shaped;
    struct tr_machine machine = {0};
    const struct tr_device_choice device = {.name = "cpu"};
    family_place_make(state);
    shape(&shaped);
    open_job(&shaped, &job);
    assert_int_equal(tr_machine_expect(&machine, 1, 1, (struct tr_measured_part){8, 2}), 0);
    assert_int_equal(tr_machine_expect(&machine, 1, 1, (struct tr_measured_part){32, 8}), 0);
    assert_int_equal(tr_machine_expect(&machine, 1, 1, (struct tr_measured_part){8, 2}), 0);
    assert_int_equal(tr_machine_expect(&machine, 1, 2, (struct tr_measured_part){8, 2}), 1);
    machine.usages = 1; /* nobody computes beside */
    must_train(tr_machine_measure(&machine, job, &device, 0, NULL, NULL));
    assert_true(machine.usage[0].rates.memory > 0 && isfinite(machine.usage[0].rates.memory));
    assert_true(machine.usage[0].rates.beside >= 0 && isfinite(machine.usage[0].rates.beside));
    assert_int_equal(machine.usage[0].parts, 2);
    assert_int_equal(machine.usage[0].part[0].rows, 32); /* the largest first: others go on with it */
    assert_int_equal(machine.usage[0].part[1].rows, 8);
    costs = machine.usage[0].costs;
    machine.usage[0].costs = NULL;
    machine.usages = 2;
    tr_machine_release(&machine);
    return 0;
}

/* Of many parts the largest and the smallest are measured, and evenly spaced ones between them. */
static void few_parts_are_measured(void **state)
{
    static const int rows[] = {32, 28, 24, 16, 12, 4};
    struct tr_machine machine = {0};
    const struct tr_device_choice device = {.name = "cpu"};
    (void)state;
    for (int i = 0; i < 8; i++) /* 12, 24, 4, 16, 28, 8, 20, 32 rows */
        assert_int_equal(
            tr_machine_expect(&machine, 1, 1,
                              (struct tr_measured_part){4 * (1 + (i * 3 + 2) % 8), 1 + (i * 3 + 2) % 8}),
            0);
    assert_int_equal(machine.usage[0].parts, 8);
    must_train(tr_machine_measure(&machine, job, &device, 0, NULL, NULL));
    assert_int_equal(machine.usage[0].parts, sizeof rows / sizeof rows[0]);
    for (int i = 0; i < machine.usage[0].parts; i++) {
        assert_int_equal(machine.usage[0].part[i].rows, rows[i]);
        assert_int_equal(machine.usage[0].part[i].microbatches, rows[i] / 4);
    }
    tr_machine_release(&machine);
}

static int tear_down(void **state)
{
    tr_costs_destroy(&costs);
    tr_job_destroy(&job);
    return family_place_remove(state);
}

static void rehearse(const char *strategy, int ranks, int per_host, int64_t calls, struct tr_rehearsed *out)
{
    struct tr_cluster cluster = tr_cluster_ordinary;
    struct tr_job_variant variant;
    const struct tr_job_variant_settings settings = {.strategy = strategy, .steps = 40, .blank = true};
    cluster.hosts = ranks;
    cluster.per_host = per_host;
    must_train(tr_job_variant_make(job, &settings, &variant));
    const struct tr_rehearsal rehearsal = {
        .job = &variant.job, .cluster = &cluster, .ranks = ranks, .costs = costs, .calls = calls};
    must_train(tr_rehearse(&rehearsal, out));
    if (out->unmarked > 0)
        fail_msg("%s: %lld large messages are not sent as numbers", strategy, (long long)out->unmarked);
    tr_job_variant_release(&variant);
}

/* A rank of a real run; messages go as they would anywhere, not as the tests of routes want them. */
static void *run_rank(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    rank->comm->routing = TR_ROUTING_AUTO;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        trainer_outcome(trainer, &rank->outcome);
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* What ranks of a real run of so many steps, threads, moved in all. */
static void run_really(const char *strategy, int per_host, int64_t steps, int64_t *sent, int64_t *shared)
{
    static struct rank ranks[RANKS];
    struct job shaped;
    shape(&shaped);
    shaped.settings.strategy = strategy;
    shaped.settings.steps = steps;
    shaped.settings.set = shaped.set;
    run_ranks_by(run_rank, &shaped.settings, WORLD, per_host, ranks);
    expect_well(ranks, WORLD, strategy);
    *sent = *shared = 0;
    for (int r = 0; r < WORLD; r++) {
        *sent += ranks[0].outcome.rank[r].bytes_sent;
        *shared += ranks[0].outcome.rank[r].bytes_shared;
    }
}

/* Rounds of so many steps; the first is left out on both sides. */
static const struct {
    const char *strategy;
    int64_t round;
} strategies[] = {
    {"allreduce", 1},
    {"allreduce,bucket=0,factors=never", 1},
    {"allreduce,factors=always", 1},
    {"parameter-server,mode=sync", 1},
    {"pipeline,stages=2", 1},
    {"local-sgd,replicas=4,every=2", 2},
    {"gossip,replicas=4,every=1,consensus=2", 2},
    {"easgd,replicas=4,every=2", 2},
};

static void simulated_ranks_move_what_real_ones_do(void **state)
{
    static char words[4096]; /* with room for all */
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        for (int per_host = 1; per_host <= 2; per_host++) {
            const char *strategy = strategies[i].strategy;
            int64_t round = strategies[i].round, sent[2], shared[2];
            struct tr_rehearsed figures;
            run_really(strategy, per_host, 2 * round, &sent[0], &shared[0]);
            run_really(strategy, per_host, 4 * round, &sent[1], &shared[1]);
            rehearse(strategy, WORLD, per_host, 2, &figures);
            int64_t steps = 2 * round;
            assert_int_equal(figures.steps, steps);
            /* Means of each rank are cut to whole bytes. */
            double real = (double)(sent[1] - sent[0]) / (double)steps,
                   read = (double)(shared[1] - shared[0]) / (double)steps;
            if (fabs((double)figures.sum.bytes_sent - real) > WORLD ||
                fabs((double)figures.sum.bytes_shared - read) > WORLD)
                wrong += snprintf(words + wrong, sizeof words - (size_t)wrong,
                                  "%s, %d a host: %lld bytes sent and %lld shared, not %.1f and %.1f\n",
                                  strategy, per_host, (long long)figures.sum.bytes_sent,
                                  (long long)figures.sum.bytes_shared, real, read);
        }
    if (wrong) fail_msg("%s", words);
}

/* Every class of the table can be rehearsed, with all its variants, and comes to the same twice. */
static void rehearsals_repeat_themselves(void **state)
{
    (void)state;
    static const char *const asynchronous[] = {"parameter-server,mode=async", "parameter-server,mode=bounded",
                                               "parameter-server,mode=backup,backup=1"};
    struct tr_rehearsed once, twice;
    for (size_t i = 0; i < sizeof asynchronous / sizeof asynchronous[0]; i++) {
        rehearse(asynchronous[i], WORLD, 1, 3, &once);
        rehearse(asynchronous[i], WORLD, 1, 3, &twice);
        assert_true(once.asynchronous && once.examples_per_second > 0);
        assert_true(once.seconds == twice.seconds);
        assert_int_equal(once.sum.bytes_sent, twice.sum.bytes_sent);
    }
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        rehearse(strategies[i].strategy, WORLD, 1, 2, &once);
        rehearse(strategies[i].strategy, WORLD, 1, 2, &twice);
        assert_true(once.seconds > 0 && once.seconds == twice.seconds);
        assert_true(once.sum.waiting == twice.sum.waiting);
        assert_int_equal(once.sum.messages, twice.sum.messages);
        assert_true(once.waiting >= 0 && once.waiting < 1);
    }
}

/* Alone, a step takes the sum of its operations, and no message. */
static void one_process_takes_its_operations(void **state)
{
    (void)state;
    struct tr_rehearsed figures;
    rehearse("allreduce", 1, 1, 3, &figures);
    assert_int_equal(figures.sum.messages, 0);
    assert_true(figures.sum.compute > 0);
    assert_true(fabs(figures.seconds - figures.sum.compute) <= 1e-9 * figures.seconds);
    assert_int_equal(figures.bottleneck, TR_BOTTLENECK_COMPUTING);
    double expected = 32 / figures.seconds;
    assert_true(fabs(figures.examples_per_second - expected) <= 1e-9 * expected);
}

/* Strategies copy, add and average parameters, which a step of one process does not: that takes time. */
static void what_strategies_move_takes_time(void **state)
{
    (void)state;
    static const int64_t sizes[] = {100, 100000};
    double before = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tr_op_scale scale = {sizes[i], 1, NULL, NULL};
        struct tr_op_add add = {sizes[i], NULL, NULL, NULL};
        struct tr_cost_key key[2];
        tr_cost_key_of(TR_OPERATION_scale, &scale, false, &key[0]);
        tr_cost_key_of(TR_OPERATION_add, &add, false, &key[1]);
        double scaled = tr_costs_of(costs, &key[0]), added = tr_costs_of(costs, &key[1]);
        assert_true(scaled > 0 && added > 0 && scaled + added > before);
        before = scaled + added;
    }
}

/* Stages part what one process fuses: what fusions are made of is measured, too. */
static void fusions_are_measured_in_parts(void **state)
{
    (void)state;
    static const char own[] =
        "layers=[{conv: {filters: 4, kernel: 3, activation: relu, algorithm: direct}}, "
        "{max_pool: 2}, {batch_norm: null}, {relu: null}, {flatten: null}, {dense: 10}]";
    static const enum tr_operation_number parts[] = {
        TR_OPERATION_conv_pool_forward,
        TR_OPERATION_conv_pool_backward_weights,
        TR_OPERATION_batch_norm_activation_forward,
        TR_OPERATION_batch_norm_activation_backward,
        TR_OPERATION_conv_forward,
        TR_OPERATION_conv_backward_weights,
        TR_OPERATION_pool_forward,
        TR_OPERATION_pool_backward,
        TR_OPERATION_batch_norm_forward,
        TR_OPERATION_batch_norm_backward,
        TR_OPERATION_activation_forward,
        TR_OPERATION_activation_backward,
    };
    struct job shaped;
    struct tr_job *parted;
    tr_costs *found;
    struct tr_measured_rates rates;
    const struct tr_device_choice device = {.name = "cpu"};
    const struct tr_measured_part part = {8, 2};
    shape_as(&shaped, own);
    open_job(&shaped, &parted);
    const struct tr_measurement measurement = {
        .job = parted, .device = &device, .part = &part, .parts = 1, .copies = 1};
    assert_int_equal(tr_costs_create(&found), TR_OK);
    must_train(tr_measure(&measurement, found, &rates));
    tr_costs_settle(found);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!tr_costs_know(found, parts[i])) fail_msg("nothing is known of part %zu", i);
    assert_true(tr_costs_know_fusions(found));
    assert_false(tr_costs_know_fusions(costs));
    tr_costs_destroy(&found);
    tr_job_destroy(&parted);
}

/* The share of all ranks' time that two of them wait for each other, with nothing between them. */
static double waiting_of_two(struct tr_job *of, const tr_costs *with)
{
    struct tr_cluster cluster = tr_cluster_ordinary;
    struct tr_job_variant variant;
    struct tr_rehearsed figures;
    const struct tr_job_variant_settings settings = {.strategy = "allreduce", .blank = true};
    cluster.hosts = 2;
    cluster.remote = (struct tr_path){.latency = 1e-12, .rate = 1e18, .copying = INFINITY, .eager = 64 << 10};
    must_train(tr_job_variant_make(of, &settings, &variant));
    const struct tr_rehearsal rehearsal = {
        .job = &variant.job, .cluster = &cluster, .ranks = 2, .costs = with, .calls = 16};
    must_train(tr_rehearse(&rehearsal, &figures));
    tr_job_variant_release(&variant);
    return figures.waiting;
}

/* Sentences are of unequal lengths, images are not: who has the shorter ones waits. */
static void unequal_sequences_make_ranks_wait(void **state)
{
    (void)state;
    struct job shaped;
    struct tr_job *text;
    tr_costs *found;
    struct tr_measured_rates rates;
    const struct tr_device_choice device = {.name = "cpu"};
    const struct tr_measured_part part[] = {{32, 8}, {16, 4}};
    family_job(&shaped, &families[3], family_place);
    job_set(&shaped, "train.batch=32");
    job_set(&shaped, "train.microbatches=8");
    open_job(&shaped, &text);
    const struct tr_measurement measurement = {
        .job = text, .device = &device, .part = part, .parts = 2, .copies = 1};
    assert_int_equal(tr_costs_create(&found), TR_OK);
    must_train(tr_measure(&measurement, found, &rates));
    tr_costs_settle(found);
    assert_true(tr_costs_reads_rows(found));
    const double sentences = waiting_of_two(text, found), images = waiting_of_two(job, costs);
    print_message("waiting: %g of the time with sentences, %g with images\n", sentences, images);
    assert_true(sentences > 0.01);
    assert_true(images < 0.001);
    tr_costs_destroy(&found);
    tr_job_destroy(&text);
}

/* A slower network makes steps longer, and at last is what holds them back. */
static void slow_links_hold_back(void **state)
{
    (void)state;
    struct tr_job_variant variant;
    const struct tr_job_variant_settings settings = {.strategy = "allreduce,factors=never", .blank = true};
    double before = 0;
    must_train(tr_job_variant_make(job, &settings, &variant));
    for (double rate = 1e9; rate > 1e4; rate /= 1000) {
        struct tr_cluster cluster = tr_cluster_ordinary;
        struct tr_rehearsed figures;
        cluster.hosts = WORLD;
        cluster.remote.rate = rate;
        const struct tr_rehearsal rehearsal = {
            .job = &variant.job, .cluster = &cluster, .ranks = WORLD, .costs = costs, .calls = 2};
        must_train(tr_rehearse(&rehearsal, &figures));
        assert_true(figures.seconds > before);
        before = figures.seconds;
        if (rate < 1e6) assert_int_equal(figures.bottleneck, TR_BOTTLENECK_LINK);
        /* No less than what the busiest link has to carry. */
        assert_true(figures.seconds >= (double)figures.most.bytes_sent / rate);
        /* The part of the time for which it does: never more than all, and no less than for those bytes. */
        const double part = (double)figures.most.bytes_sent / rate / figures.seconds;
        if (!(figures.link <= 1 + 1e-9 && figures.link >= part / 2 && figures.link > 0))
            fail_msg("busy for %g of the time, with bytes for %g", figures.link, part);
    }
    tr_job_variant_release(&variant);
}

/* What ranks of a host read of each other comes no faster than from a cache to another; between hosts there
   is nothing of that. */
static void numbers_of_others_take_longer(void **state)
{
    (void)state;
    static const double copying = 1e6;
    double apart[2];
    for (int per_host = 1; per_host <= 2; per_host++)
        for (int slow = 0; slow < 2; slow++) {
            struct tr_cluster cluster = tr_cluster_ordinary;
            struct tr_job_variant variant;
            struct tr_rehearsed figures;
            const struct tr_job_variant_settings settings = {.strategy = "allreduce,factors=never",
                                                             .blank = true};
            cluster.hosts = 2 / per_host;
            cluster.per_host = per_host;
            cluster.local = (struct tr_path){
                .latency = 1e-9, .rate = INFINITY, .copying = slow ? copying : INFINITY, .eager = 64 << 10};
            must_train(tr_job_variant_make(job, &settings, &variant));
            const struct tr_rehearsal rehearsal = {
                .job = &variant.job, .cluster = &cluster, .ranks = 2, .costs = costs, .calls = 2};
            must_train(tr_rehearse(&rehearsal, &figures));
            apart[slow] = figures.seconds;
            if (per_host == 1) assert_int_equal(figures.most.bytes_shared, 0);
            if (per_host == 2 && slow) {
                assert_true(figures.most.bytes_shared > 10000);
                assert_true(apart[1] - apart[0] >= 0.9 * (double)figures.most.bytes_shared / copying);
            }
            tr_job_variant_release(&variant);
            if (per_host == 1 && slow) assert_true(apart[0] == apart[1]);
        }
}

/* Who serves does not count among those that compute; where it is busy all the time, it is what holds back,
   and where those that compute idle, computing is not. */
static void servers_hold_back(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        double copying, latency;
        int workers;
        enum tr_bottleneck bottleneck;
    } cases[] = {
        {"parameter-server,mode=sync", 1e6, 1e-6, WORLD - 1, TR_BOTTLENECK_PROCESSING},
        {"parameter-server,mode=async", 1e6, 1e-6, WORLD - 1, TR_BOTTLENECK_PROCESSING},
        {"parameter-server,mode=sync", INFINITY, 0.1, WORLD - 1, TR_BOTTLENECK_WAITING},
        {"pipeline,stages=2", INFINITY, 0.1, WORLD, TR_BOTTLENECK_WAITING},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tr_cluster cluster = tr_cluster_ordinary;
        struct tr_job_variant variant;
        struct tr_rehearsed figures;
        const struct tr_job_variant_settings settings = {
            .strategy = cases[c].strategy, .steps = 40, .blank = true};
        cluster.hosts = WORLD;
        cluster.remote = (struct tr_path){.latency = cases[c].latency,
                                          .rate = 1e12,
                                          .overhead = 1e-9,
                                          .copying = cases[c].copying,
                                          .eager = 64 << 10};
        must_train(tr_job_variant_make(job, &settings, &variant));
        const struct tr_rehearsal rehearsal = {
            .job = &variant.job, .cluster = &cluster, .ranks = WORLD, .costs = costs, .calls = 2};
        must_train(tr_rehearse(&rehearsal, &figures));
        if (figures.bottleneck != cases[c].bottleneck)
            fail_msg("%s, %zu: %s", cases[c].strategy, c, tr_bottleneck_names[figures.bottleneck]);
        assert_int_equal(figures.workers, cases[c].workers);
        tr_job_variant_release(&variant);
    }
}

/* The time of all ranks is computing, work for messages, and waiting. Where only a message's fixed costs
   count, each end has them for each of its messages. */
static void time_is_divided(void **state)
{
    static const char *const names[] = {"allreduce,factors=never", "pipeline,stages=2",
                                        "local-sgd,replicas=4,every=2"};
    const double overhead = 1e-6;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tr_cluster cluster = tr_cluster_ordinary;
        struct tr_job_variant variant;
        struct tr_rehearsed figures;
        const struct tr_job_variant_settings settings = {.strategy = names[i], .steps = 40, .blank = true};
        cluster.hosts = WORLD;
        cluster.naps = false;
        cluster.memory = INFINITY;
        cluster.remote = (struct tr_path){
            .latency = 1e-3, .rate = 1e9, .overhead = overhead, .copying = INFINITY, .eager = INT64_MAX};
        must_train(tr_job_variant_make(job, &settings, &variant));
        const struct tr_rehearsal rehearsal = {
            .job = &variant.job, .cluster = &cluster, .ranks = WORLD, .costs = costs, .calls = 4};
        must_train(tr_rehearse(&rehearsal, &figures));
        tr_job_variant_release(&variant);
        const struct tr_rehearsed_rank *sum = &figures.sum, *most = &figures.most, *mean = &figures.mean;
        const double all = sum->compute + sum->other + sum->waiting;
        assert_true(sum->messages >= WORLD && sum->compute > 0 && sum->waiting > 0);
        /* Messages of each rank are cut to whole ones. */
        assert_true(fabs(sum->other - 2 * overhead * (double)sum->messages) <= 2.0 * WORLD * overhead);
        assert_true(fabs(all - WORLD * figures.seconds) <= 0.05 * all);
        assert_true(fabs(figures.waiting - sum->waiting / all) < 1e-9);
        assert_true(labs((long)(sum->bytes_sent - sum->bytes_received)) <= WORLD);
        assert_int_equal(figures.workers, WORLD);
        assert_true(fabs(WORLD * mean->compute - sum->compute) <= 1e-9 * sum->compute);
        assert_true(fabs(WORLD * mean->other - sum->other) <= 1e-9 * sum->other);
        assert_true(fabs(WORLD * mean->waiting - sum->waiting) <= 1e-9 * sum->waiting);
        assert_true(most->compute >= mean->compute && most->compute < sum->compute);
        assert_true(most->messages * WORLD >= sum->messages && most->messages < sum->messages);
        assert_true(figures.link > 0 && figures.link < 1 && figures.serving == 0);
    }
}

/* Memory of a rank's strategy, and what its communicator keeps: the first does not grow with the ranks, up to
   some tables. */
static void memory_does_not_grow(void **state)
{
    (void)state;
    static const int sizes[] = {8, 32, 64};
    size_t least = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct tr_cluster cluster = tr_cluster_ordinary;
        struct tr_job_variant variant;
        struct tr_rehearsed figures;
        const struct tr_job_variant_settings settings = {.strategy = "allreduce,factors=never",
                                                         .batch = 4 * sizes[s],
                                                         .microbatches = sizes[s],
                                                         .blank = true};
        cluster.hosts = sizes[s];
        must_train(tr_job_variant_make(job, &settings, &variant));
        const struct tr_rehearsal rehearsal = {
            .job = &variant.job, .cluster = &cluster, .ranks = sizes[s], .costs = costs, .calls = 1};
        must_train(tr_rehearse(&rehearsal, &figures));
        tr_job_variant_release(&variant);
        if (least == 0) least = figures.most.memory;
        print_message("%d ranks: %zu bytes of each strategy\n", sizes[s], figures.most.memory);
        assert_true(figures.most.memory <= least + least / 100);
    }
}

static void too_many_ranks_are_refused(void **state)
{
    (void)state;
    struct tr_job_variant variant;
    struct tr_rehearsed figures;
    const struct tr_job_variant_settings settings = {
        .strategy = "allreduce", .batch = 8192, .microbatches = 8192, .blank = true};
    struct tr_cluster cluster = tr_cluster_ordinary;
    must_train(tr_job_variant_make(job, &settings, &variant));
    assert_int_equal(tr_strategy_check(&variant.job, TR_STRATEGY_RANKS), TR_OK);
    assert_int_equal(tr_strategy_check(&variant.job, TR_STRATEGY_RANKS + 1), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "4097 ranks; at most 4096"));
    cluster.hosts = TR_STRATEGY_RANKS + 1;
    const struct tr_rehearsal rehearsal = {
        .job = &variant.job, .cluster = &cluster, .ranks = TR_STRATEGY_RANKS + 1, .costs = costs, .calls = 1};
    assert_int_equal(tr_rehearse(&rehearsal, &figures), TR_EINVAL);
    tr_job_variant_release(&variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_ranks_move_what_real_ones_do),
        cmocka_unit_test(rehearsals_repeat_themselves),
        cmocka_unit_test(few_parts_are_measured),
        cmocka_unit_test(one_process_takes_its_operations),
        cmocka_unit_test(what_strategies_move_takes_time),
        cmocka_unit_test(fusions_are_measured_in_parts),
        cmocka_unit_test(unequal_sequences_make_ranks_wait),
        cmocka_unit_test(slow_links_hold_back),
        cmocka_unit_test(numbers_of_others_take_longer),
        cmocka_unit_test(servers_hold_back),
        cmocka_unit_test(time_is_divided),
        cmocka_unit_test(memory_does_not_grow),
        cmocka_unit_test(too_many_ranks_are_refused),
    };
    return cmocka_run_group_tests_name("plan.rehearsal", tests, set_up, tear_down);
}
