/* How the parameters are cut into buckets and shards: buckets end with layers, are about as large as is asked
 * for, and larger where many hosts exchange them; shards are even, and begin on cache lines.
 */
#include "strategy/numbers.h"
#include "strategy/all_reduce/all_reduce.h"
#include "support/comm_thread/thread.h"
#include "support/ranks.h"
#include "support/training.h"
#include "train/loop/trainer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MOST_RANKS   12
#define MOST_BUCKETS 400
#define GRAIN        16

static int make(void **state)
{
    scratch_place_make(state);
    numbers_write(24, "{dense: {units: 40, name: a}}, {dense: {units: 9, name: b}}, tanh, "
                      "{dense: {units: 70, name: c}}, {dense: {units: 33, name: d}}, "
                      "{dense: {units: 5, name: e}}, {dense: {units: 3, name: f}}");
    return 0;
}

/* ---- what ranks cut ---- */

struct member {
    const struct tr_train_settings *settings;
    tr_comm *comm;
    pthread_t thread;
    int count;
    int64_t begin[MOST_BUCKETS], end[MOST_BUCKETS], shard[MOST_BUCKETS][MOST_RANKS + 1];
    struct tr_range update[MOST_BUCKETS];
    int64_t offset[16], floats; /* of the layers with parameters, and of all */
    int layers;
    struct tr_placement placement;
};

static struct member member[MOST_RANKS];

static void *cut(void *user)
{
    struct member *self = user;
    tr_trainer *trainer;
    must_train(trainer_create(self->settings, self->comm, &trainer));
    const struct tr_strategy *strategy = trainer_strategy(trainer);
    const struct all_reduce *own = (const struct all_reduce *)strategy;
    const struct tr_model *model = trainer_job(trainer)->model;
    self->count = own->buckets;
    assert_true(self->count <= MOST_BUCKETS && strategy->update_count == self->count);
    for (int i = 0; i < self->count; i++) {
        self->begin[i] = own->bucket[i].begin;
        self->end[i] = own->bucket[i].end;
        self->update[i] = strategy->updates[i];
        memcpy(self->shard[i], own->bucket[i].shard, ((size_t)strategy->size + 1) * sizeof(int64_t));
    }
    self->floats = model->arena_floats;
    self->layers = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].parameter_count > 0)
            self->offset[self->layers++] = model->parameters[model->layers[i].parameter[0]].offset;
    tr_strategy_placement(strategy, strategy->rank, &self->placement);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&self->comm);
    return NULL;
}

/* `a_host` ranks on each host. */
static void cut_on(const char *strategy, int size, int a_host)
{
    const struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    struct job job;
    tr_comm *comm[MOST_RANKS];
    int host[MOST_RANKS];
    char path[SCRATCH_PATH];
    job_begin(&job, scratch_join(path, scratch_place, "numbers.yaml"));
    job.settings.strategy = strategy;
    for (int r = 0; r < size; r++) host[r] = r / a_host;
    must_train(tr_comm_thread_create(size, host, &patience, comm));
    memset(member, 0, sizeof member);
    for (int r = 0; r < size; r++) {
        member[r].settings = &job.settings;
        member[r].comm = comm[r];
        assert_int_equal(pthread_create(&member[r].thread, NULL, cut, &member[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(member[r].thread, NULL);
}

/* ---- what is expected ---- */

/* From the end of the parameters on, layers are taken until they have so many floats; what is much more is
   cut evenly. Returns the number of buckets. */
static int expect_buckets(const struct member *self, int64_t most)
{
    int count = 0;
    int64_t end = self->floats;
    for (int layer = self->layers - 1; layer >= 0; layer--) {
        const int64_t begin = self->offset[layer], lines = (end - begin) / GRAIN;
        if (end - begin < most && begin > 0) continue;
        const int64_t parts = (end - begin + most - 1) / most;
        for (int64_t part = parts - 1; part >= 0; part--, count++) {
            assert_int_equal(self->begin[count], begin + lines * part / parts * GRAIN);
            assert_int_equal(self->end[count], begin + lines * (part + 1) / parts * GRAIN);
        }
        end = begin;
    }
    return count;
}

/* All have the same; of each bucket the holders, which are the last ranks, have as many lines, but for one.
 */
static void expect_shards(int size, int servers)
{
    const int holders = servers ? servers : size;
    for (int i = 0; i < member[0].count; i++) {
        const int64_t *shard = member[0].shard[i], floats = member[0].end[i] - member[0].begin[i];
        assert_int_equal(shard[size], floats);
        for (int r = 0; r < size; r++) {
            const int holder = r - (size - holders);
            assert_int_equal(shard[r], holder > 0 ? floats / GRAIN * holder / holders * GRAIN : 0);
            assert_memory_equal(member[r].shard[i], shard, ((size_t)size + 1) * sizeof *shard);
            assert_int_equal(member[r].begin[i], member[0].begin[i]);
            assert_int_equal(member[r].end[i], member[0].end[i]);
            assert_int_equal(member[r].update[i].begin, member[0].begin[i] + shard[r]);
            assert_int_equal(member[r].update[i].end, member[0].begin[i] + shard[r + 1]);
        }
    }
    for (int r = 0; r < size; r++) {
        const struct tr_placement *placement = &member[r].placement;
        int64_t updates = 0;
        for (int i = 0; i < member[0].count; i++)
            updates += member[0].shard[i][r + 1] - member[0].shard[i][r];
        assert_int_equal(placement->updates, updates);
        /* A single range is told. */
        bool one = member[0].count == 1;
        assert_int_equal(placement->first_update, one ? member[0].shard[0][r] : -1);
        assert_int_equal(placement->end_update, one ? member[0].shard[0][r + 1] : -1);
        assert_string_equal(placement->role, servers && r >= size - servers ? "server" : "worker");
    }
}

static void buckets_are_as_large_as_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *bucket;
        int64_t most;    /* floats; 0: all */
        int least, many; /* buckets that there are to be, for the test's own sake */
    } sizes[] = {
        {"0", 0, 1, 1},         {"0.00001", 16, 200, MOST_BUCKETS}, /* a cache line at least */
        {"0.0004", 96, 20, 60},                                     /* 104.86, to whole cache lines */
        {"0.002", 512, 6, 12},                                      /* 524.29 */
        {"0.006", 1568, 2, 4},                                      /* 1572.9 */
        {"1", 0, 1, 1},                                             /* more than all */
    };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int size = 1; size <= 5; size += 2) {
            char strategy[64];
            snprintf(strategy, sizeof strategy, "allreduce,factors=never,bucket=%s", sizes[s].bucket);
            cut_on(strategy, size, 5);
            int count = expect_buckets(&member[0], sizes[s].most ? sizes[s].most : member[0].floats);
            assert_int_equal(member[0].count, count);
            assert_in_range(count, sizes[s].least, sizes[s].many);
            expect_shards(size, 0);
        }
}

static void servers_have_all_shards(void **state)
{
    (void)state;
    cut_on("parameter-server,servers=2", 5, 5);
    expect_buckets(&member[0], member[0].floats);
    expect_shards(5, 2);
}

/* From nine hosts on, in proportion to eight. */
static void many_hosts_have_larger_buckets(void **state)
{
    (void)state;
    static const struct {
        int size, a_host;
        int64_t most;
    } cases[] = {
        {8, 1, 512}, {12, 2, 512}, {9, 1, 576}, /* 589.8 */ {12, 1, 784}, /* 786.4 */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        cut_on("allreduce,factors=never,bucket=0.002", cases[c].size, cases[c].a_host);
        assert_int_equal(expect_buckets(&member[0], cases[c].most), member[0].count);
    }
}

/* ---- rules for whole matrices ---- */

/* Such a weight has one owner, who updates it at once, be it large; all get what one process gets. */
static void wholes_are_updated_as_wholes(void **state)
{
    (void)state;
    static const char *const rules[] = {"{rule: muon, rate: 0.02}", "{rule: lamb, rate: 0.02}"};
    for (int k = 0; k < 2; k++) {
        struct job job;
        struct outcome alone;
        struct rank ranks[RANKS];
        char path[SCRATCH_PATH], rule[64];
        job_begin(&job, scratch_join(path, scratch_place, "numbers.yaml"));
        job_set(&job, "layers[0].units=300");
        job_set(&job, "layers[1].units=400"); /* 120000 weights */
        snprintf(rule, sizeof rule, "optimizer=%s", rules[k]);
        job_set(&job, rule);
        job_set(&job, "train.steps=3");
        job.settings.threads = 1;
        job_outcome(&job, &alone);
        must_train(alone.status);
        job.settings.strategy = "allreduce,factors=never";
        run_ranks(&job.settings, 2, false, ranks);
        expect_ranks(&alone, ranks, 2, rules[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_as_large_as_asked_for),
        cmocka_unit_test(servers_have_all_shards),
        cmocka_unit_test(many_hosts_have_larger_buckets),
        cmocka_unit_test(wholes_are_updated_as_wholes),
    };
    return cmocka_run_group_tests_name("strategy.buckets", tests, make, scratch_place_remove);
}
