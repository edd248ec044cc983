/* Arenas of a class's own: their names, where their numbers come from, and their way to the root. */
#include "strategy/class.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"
#include "support/comm_thread/thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 3 };

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static struct tr_job *open_job(void)
{
    static const char text[] = "name: n\ndata: {train: {csv: two.csv}}\nlayers: [{dense: 30}, {dense: 2}]\n"
                               "optimizer: {rule: adam, rate: 1}\ntrain: {batch: 2, steps: 100}\n";
    const struct tr_job_settings settings = {.set_count = 0};
    const struct tr_job_text model = {text, sizeof text - 1, "m.yaml", scratch_place};
    struct tr_job *job;
    scratch_write_text("two.csv", "1,2,0\n3,4,1\n");
    must(tr_job_open_text(&model, &settings, &job));
    return job;
}

static const char *const names[] = {"pull", "replica#.m", "of#and#", NULL};
static const struct tr_strategy_class class = {.name = "own", .arenas = names};

/* ---- names ---- */

/* Of tensors in files of all strategies. */
static void tensors_have_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *tensor, *parameter;
    } cases[] = {
        {"outer.conv1.weights", "conv1.weights"},
        {"outer.a", "a"},
        {"outer", NULL},
        {"outer1.a", NULL},
        {"oute.a", NULL},
        {"m.conv1.weights", NULL},
        {"replica0.parameters.dense.biases", "dense.biases"},
        {"replica120.m.a", "a"},
        {"replica7.m", NULL},
        {"replica7.mm.a", NULL},
        {"replica.m.a", NULL},
        {"replicax.m.a", NULL},
        {"replica7x.m.a", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = tr_strategy_arena_parameter(cases[i].tensor);
        if (!cases[i].parameter)
            assert_null(got);
        else
            assert_string_equal(got, cases[i].parameter);
    }
}

static void arenas_have_the_names_of_their_class(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "push",       "pul",    "pull.a",   "replica.m",
        "replica1.v", "of1and", "of1and2.", "replica12345678901234567890123.m" /* too long */};
    tr_strategy strategy = {.class = &class};
    float value;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char message[160];
        snprintf(message, sizeof message,
                 "the strategy own has an arena \"%s\", which its class does not name", wrong[i]);
        assert_int_equal(tr_strategy_lend_arena(&strategy, wrong[i], TR_ARENA_M, 0, &value), TR_EINVAL);
        assert_string_equal(tr_error_message(), message);
        assert_int_equal(tr_strategy_arena_count(&strategy), 0);
    }
    static const char *const right[] = {"pull", "replica7.m", "replica1234567890123456789012.m", "of10and09"};
    for (int i = 0; i < 4; i++) {
        must(tr_strategy_lend_arena(&strategy, right[i], TR_ARENA_M, i, &value));
        assert_int_equal(tr_strategy_arena_count(&strategy), i + 1);
        const struct tr_strategy_arena *arena = tr_strategy_arena(&strategy, i);
        assert_string_equal(arena->name, right[i]);
        assert_int_equal(arena->like, TR_ARENA_M);
        assert_int_equal(arena->rank, i);
        assert_ptr_equal(arena->values, &value);
        assert_false(arena->begun);
    }
    assert_int_equal(tr_strategy_arenas_memory(&strategy), 0); /* they are lent */
    tr_strategy_release_arenas(&strategy);
}

/* ---- numbers ---- */

static void arenas_begin_with_numbers(void **state)
{
    (void)state;
    struct tr_job *job = open_job();
    int64_t floats = job->model->arena_floats;
    const size_t bytes = (size_t)floats * sizeof(float);
    const int64_t shard[] = {0, floats};
    tr_device *device;
    tr_variables *variables;
    must(tr_device_create("cpu", 1, NULL, &device));
    must(tr_variables_create(device, job->model, &job->optimizer, NULL, &variables));
    must(tr_variables_initialize(variables, 1));
    float *moments = tr_variables_arena(variables, TR_ARENA_M), *own, *lent[2];
    for (int64_t i = 0; i < floats; i++) moments[i] = (float)i;
    for (int i = 0; i < 2; i++) {
        lent[i] = tr_alloc(floats, sizeof *lent[i]);
        assert_non_null(lent[i]);
        for (int64_t k = 0; k < floats; k++) lent[i][k] = 9;
    }
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        struct tr_replica replica = {.variables = variables};
        tr_strategy strategy = {.class = &class, .job = job, .holder = device, .device = device, .size = 1};
        int64_t live = tr_alloc_live();
        strategy.replicas = &replica;
        refuse_begin(at);
        tr_status status = tr_strategy_make_arena(&strategy, "pull", shard, &own);
        if (status == TR_OK) status = tr_strategy_lend_arena(&strategy, "replica0.m", TR_ARENA_M, 0, lent[0]);
        if (status == TR_OK) status = tr_strategy_lend_arena(&strategy, "replica1.m", TR_ARENA_M, 0, lent[1]);
        if (status == TR_OK) status = tr_strategy_lend_arena(&strategy, "replica2.m", TR_ARENA_M, 1, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) {
            assert_ptr_equal(own, strategy.arenas[0].values);
            assert_int_equal(strategy.arenas[0].like, TR_ARENAS);
            assert_in_range(tr_strategy_arenas_memory(&strategy), bytes, bytes + 4096);
            for (int64_t i = 0; i < floats; i++) assert_true(own[i] == 0);
            own[0] = 5;
            strategy.arenas[2].begun = true; /* a checkpoint had it */
            must(tr_strategy_begin_arenas(&strategy));
            assert_true(own[0] == 5);
            assert_memory_equal(lent[0], moments, bytes);
            assert_true(lent[1][1] == 9);
            for (int i = 0; i < 4; i++) assert_true(strategy.arenas[i].begun);
            lent[0][0] = 7; /* begun once */
            must(tr_strategy_begin_arenas(&strategy));
            assert_true(lent[0][0] == 7);
        }
        tr_strategy_release_arenas(&strategy);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_free(lent[0]);
    tr_free(lent[1]);
    tr_variables_destroy(&variables);
    tr_device_destroy(&device);
    tr_job_destroy(&job);
}

/* ---- to the root ---- */

enum { FLOATS = 40 };
static const int64_t shards[] = {0, 10, 10, FLOATS}; /* rank 1 has none */

struct member {
    tr_strategy strategy;
    pthread_t thread;
    float piece[FLOATS], values[2][FLOATS];
};

/* Ranges that are of one rank, of several, of a part of one, and none. */
static const int64_t ranges[][2] = {{0, FLOATS}, {0, 10}, {10, FLOATS}, {3, 7}, {9, 11}, {12, 13}, {5, 5}};

static void *bring(void *user)
{
    struct member *member = user;
    tr_strategy *strategy = &member->strategy;
    must(tr_device_create("cpu", 1, NULL, &strategy->holder));
    strategy->piece = member->piece;
    for (int i = 0; i < FLOATS; i++) {
        member->values[0][i] = (float)(100 * strategy->rank + i);
        member->values[1][i] = (float)(1000 + 100 * strategy->rank + i);
    }
    /* One in shards, and one for each rank, whole. */
    must(tr_strategy_lend_arena(strategy, "pull", TR_ARENA_M, 0, member->values[0]));
    strategy->arenas[0].shard = shards;
    for (int r = 0; r < RANKS; r++) {
        char name[32];
        snprintf(name, sizeof name, "replica%d.m", r);
        must(tr_strategy_lend_arena(strategy, name, TR_ARENA_M, r,
                                    r == strategy->rank ? member->values[1] : NULL));
    }
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++)
        for (int a = 0; a < 1 + RANKS; a++) {
            int64_t begin = ranges[k][0], end = ranges[k][1];
            for (int i = 0; i < FLOATS; i++) member->piece[i] = -1;
            must(tr_strategy_bring_arena(strategy, a, begin, end));
            for (int64_t i = 0; i < FLOATS && strategy->rank == 0; i++) {
                int64_t at = begin + i;
                float expected =
                    a > 0 ? (float)(1000 + 100 * (a - 1) + at) : (float)(at < 10 ? at : 200 + at);
                assert_true(member->piece[i] == (i < end - begin ? expected : -1));
            }
        }
    tr_strategy_release_arenas(strategy);
    tr_device_destroy(&strategy->holder);
    tr_comm_destroy(&strategy->comm);
    return NULL;
}

static void numbers_come_to_the_root(void **state)
{
    (void)state;
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    static struct member member[RANKS];
    tr_comm *comm[RANKS];
    must(tr_comm_thread_create(RANKS, NULL, &settings, comm));
    for (int r = 0; r < RANKS; r++) {
        member[r].strategy = (tr_strategy){.class = &class, .comm = comm[r], .rank = r, .size = RANKS};
        assert_int_equal(pthread_create(&member[r].thread, NULL, bring, &member[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(member[r].thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_have_parameters),
        cmocka_unit_test(arenas_have_the_names_of_their_class),
        cmocka_unit_test(arenas_begin_with_numbers),
        cmocka_unit_test(numbers_come_to_the_root),
    };
    return cmocka_run_group_tests_name("strategy.arenas", tests, scratch_place_make, scratch_place_remove);
}
