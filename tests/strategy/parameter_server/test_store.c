/* A server's shard: sums, squares and updates are of it alone, and an update is that of one process, in
 * whatever pieces it is given away; on a device that reads the host's memory and on one that does not. */
#include "strategy/parameter_server/store.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"
#include "support/operations/shadow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SERVERS 3

/* With running statistics, and several times as many numbers as are updated at once. */
static const char network[] = "name: n\ndata: {train: {csv: two.csv}}\n"
                              "layers: [{dense: 700}, batch_norm, {dense: 60}, {dense: 2}]\n";

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static struct tr_job *open_job(const char *optimizer)
{
    char text[512];
    const struct tr_job_settings settings = {.set_count = 0};
    int size =
        snprintf(text, sizeof text, "%soptimizer: %s\ntrain: {batch: 2, steps: 100}\n", network, optimizer);
    const struct tr_job_text model = {text, (size_t)size, "m.yaml", scratch_place};
    struct tr_job *job;
    scratch_write_text("two.csv", "1,2,0\n3,4,1\n");
    must(tr_job_open_text(&model, &settings, &job));
    return job;
}

/* A process that has everything, and one with a shard of it, which begin alike. */
struct pair {
    struct tr_job *job;
    tr_device *device;
    tr_variables *whole, *part;
    ps_store *store;
    int64_t floats, begin, end;
    float *gradient, *given, *got[2]; /* arenas */
};

static tr_device *make_device(bool separate)
{
    tr_device *device;
    must(separate ? shadow_create(1, NULL, &device) : tr_device_create("cpu", 1, NULL, &device));
    return device;
}

static void begin_pair(struct pair *pair, const char *optimizer, bool separate, int server, bool sums)
{
    struct tr_job *job = open_job(optimizer);
    int64_t floats = job->model->arena_floats, begin = ps_shard_begin(job, SERVERS, server),
            end = ps_shard_begin(job, SERVERS, server + 1);
    const struct tr_variables_part part = {begin, end, begin, end};
    *pair = (struct pair){.job = job, .floats = floats, .begin = begin, .end = end};
    pair->device = make_device(separate);
    float **arenas[] = {&pair->gradient, &pair->given, &pair->got[0], &pair->got[1]};
    for (int i = 0; i < 4; i++) {
        *arenas[i] = tr_alloc_zero((size_t)floats, sizeof **arenas[i]);
        assert_non_null(*arenas[i]);
    }
    must(tr_variables_create(pair->device, job->model, &job->optimizer, NULL, &pair->whole));
    must(tr_variables_create_part(pair->device, job->model, &job->optimizer, &part, NULL, &pair->part));
    must(tr_variables_initialize(pair->whole, 1));
    must(tr_variables_initialize(pair->part, 1));
    must(tr_variables_begin_ema(pair->whole));
    must(tr_variables_begin_ema(pair->part));
    must(ps_store_create(job, pair->part, begin, end, sums, &pair->store));
}

static void end_pair(struct pair *pair)
{
    ps_store_destroy(&pair->store);
    assert_null(pair->store);
    ps_store_destroy(&pair->store);
    tr_variables_destroy(&pair->whole);
    tr_variables_destroy(&pair->part);
    tr_device_destroy(&pair->device);
    tr_job_destroy(&pair->job);
    tr_free(pair->gradient);
    tr_free(pair->given);
    for (int i = 0; i < 2; i++) tr_free(pair->got[i]);
}

static void expect_same(struct pair *pair, const float *a, const float *b, const char *what)
{
    size_t bytes = (size_t)(pair->end - pair->begin) * sizeof *a;
    if (memcmp(a + pair->begin, b + pair->begin, bytes) != 0)
        fail_msg("%s of the shard from %lld on differ", what, (long long)pair->begin);
}

/* ---- shards ---- */

static void shards_are_whole_and_alike(void **state)
{
    (void)state;
    struct tr_job *job = open_job("{rule: sgd, rate: 1}"), *wholes = open_job("{rule: muon, rate: 1}");
    int64_t floats = job->model->arena_floats;
    for (int servers = 1; servers <= 7; servers++) {
        assert_int_equal(ps_shard_begin(job, servers, 0), 0);
        assert_int_equal(ps_shard_begin(job, servers, servers), floats);
        for (int s = 0; s < servers; s++) {
            int64_t begin = ps_shard_begin(job, servers, s), end = ps_shard_begin(job, servers, s + 1);
            assert_int_equal(begin % 16, 0);
            assert_in_range(end - begin, floats / servers - 16, floats / servers + 16);
            /* A rule of whole parameters gets whole ones. */
            int64_t first = ps_shard_begin(wholes, servers, s);
            bool begins = false;
            for (int i = 0; i < wholes->model->parameter_count; i++)
                begins = begins || wholes->model->parameters[i].offset == first;
            assert_true(begins);
        }
    }
    tr_job_destroy(&job);
    tr_job_destroy(&wholes);
}

/* ---- updates ---- */

/* Some steps, the parameters of which are given away, or not, in turn. */
static void expect_updates(const char *optimizer, bool separate, int server)
{
    struct pair pair;
    begin_pair(&pair, optimizer, separate, server, false);
    bool poisoned = true;
    for (int64_t step = 0; step < 4; step++) {
        for (int64_t i = 0; i < pair.floats; i++)
            pair.gradient[i] = (float)((i * 7 + step * 3) % 11 - 5) / 8, pair.given[i] = 99;
        float *gradient;
        must(tr_device_alloc(pair.device, (size_t)pair.floats * sizeof(float), (void **)&gradient));
        must(tr_device_to_device(pair.device, gradient, pair.gradient, (size_t)pair.floats * sizeof(float)));
        must(tr_variables_begin_step(pair.whole, 20 * step));
        must(tr_variables_update(pair.whole, gradient, 0, pair.floats));
        must(tr_device_wait(pair.device));
        tr_device_free(pair.device, gradient);
        must(ps_store_choose(pair.store, pair.gradient));
        must(ps_store_update(pair.store, 20 * step, 1, step % 2 ? NULL : pair.given, &poisoned));
        assert_false(poisoned);
        for (int a = 0; a < TR_ARENAS; a++) {
            if (!tr_variables_arena(pair.whole, (enum tr_arena)a)) continue;
            must(tr_variables_store(pair.whole, (enum tr_arena)a, pair.got[0]));
            must(ps_store_copy(pair.store, (enum tr_arena)a, pair.got[1] + pair.begin));
            expect_same(&pair, pair.got[0], pair.got[1], tr_arena_names[a]);
            if (a == TR_ARENA_PARAMETERS && step % 2 == 0)
                expect_same(&pair, pair.got[0], pair.given, "given");
        }
        for (int64_t i = 0; i < pair.floats; i++)
            if (step % 2 || i < pair.begin || i >= pair.end) assert_true(pair.given[i] == 99);
    }
    end_pair(&pair);
}

static void updates_are_those_of_one_process(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "{rule: sgd, rate: 0.5}",
        "{rule: adam, rate: 1e-2, ema: 0.9, schedule: {kind: cosine, warmup: 10}}",
        "{rule: muon, rate: 1e-2}",
        "{rule: lamb, rate: 1e-2}",
    };
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
        for (int server = 0; server < SERVERS; server++)
            for (int separate = 0; separate < 2; separate++) expect_updates(rules[r], separate, server);
}

/* What clips an update is a factor of its gradient; what is not finite afterwards is told, of this shard. */
static void gradients_are_clipped_and_poison(void **state)
{
    (void)state;
    struct pair pair;
    begin_pair(&pair, "{rule: sgd, rate: 0.5, clip_norm: 1}", false, 1, false);
    float *before = pair.got[0], *after = pair.got[1];
    bool poisoned = true;
    for (int64_t i = 0; i < pair.floats; i++) pair.gradient[i] = 8;
    pair.gradient[pair.begin - 1] = pair.gradient[pair.end] = INFINITY;
    must(ps_store_copy(pair.store, TR_ARENA_PARAMETERS, before));
    must(ps_store_choose(pair.store, pair.gradient));
    must(ps_store_update(pair.store, 0, 0.25F, NULL, &poisoned));
    must(ps_store_copy(pair.store, TR_ARENA_PARAMETERS, after));
    assert_false(poisoned);
    /* The shard begins within the weights of a layer, so its first number is learned. */
    assert_true(after[0] == before[0] - 0.5F * 2);
    pair.gradient[pair.begin] = INFINITY;
    must(ps_store_choose(pair.store, pair.gradient));
    must(ps_store_update(pair.store, 1, 1, pair.given, &poisoned));
    assert_true(poisoned);
    assert_true(isinf(pair.given[pair.begin]));
    end_pair(&pair);
}

/* ---- sums and squares ---- */

static bool is_learned(const struct pair *pair, int64_t at)
{
    const struct tr_model *model = pair->job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (at >= parameter->offset && at < parameter->offset + parameter->count)
            return parameter->kind != TR_PARAMETER_STATISTIC;
    }
    return false;
}

/* By whole numbers, which have no order. */
static void expect_sums(bool separate, int server)
{
    struct pair pair;
    double squares, first = 0, all = 0;
    begin_pair(&pair, "{rule: sgd, rate: 1}", separate, server, true);
    bool poisoned;
    for (int round = 0; round < 2; round++) { /* the sum begins anew */
        for (int k = 0; k < 3; k++) {
            for (int64_t i = 0; i < pair.floats; i++) pair.gradient[i] = (float)((i + k + round) % 5);
            if (k == 0) {
                must(ps_store_choose(pair.store, pair.gradient));
                must(ps_store_squares(pair.store, &squares));
                first = 0;
                for (int64_t i = pair.begin; i < pair.end; i++)
                    if (is_learned(&pair, i)) first += (double)((i + round) % 5) * (double)((i + round) % 5);
                assert_true(squares == first);
            }
            must(ps_store_add(pair.store, pair.gradient, (float)(k + 2), k == 0));
        }
        must(ps_store_choose_sum(pair.store, 0.5F));
        must(ps_store_squares(pair.store, &squares));
        all = 0;
        for (int64_t i = pair.begin; i < pair.end; i++) {
            int64_t at = i + round;
            double sum = (double)(2 * (at % 5) + 3 * ((at + 1) % 5) + 4 * ((at + 2) % 5)) / 2;
            if (is_learned(&pair, i)) all += sum * sum;
            pair.got[0][i] = (float)sum;
        }
        assert_true(squares == all);
        must(ps_store_copy(pair.store, TR_ARENA_PARAMETERS, pair.got[1] + pair.begin));
        must(ps_store_update(pair.store, round, 1, pair.given, &poisoned));
        assert_false(poisoned);
        for (int64_t i = pair.begin; i < pair.end; i++)
            if (is_learned(&pair, i)) assert_true(pair.given[i] == pair.got[1][i] - pair.got[0][i]);
    }
    end_pair(&pair);
}

static void sums_are_of_the_shard(void **state)
{
    (void)state;
    for (int server = 0; server < SERVERS; server++)
        for (int separate = 0; separate < 2; separate++) expect_sums(separate, server);
}

/* ---- a shard of nothing, and no memory ---- */

static void an_empty_shard_has_no_update(void **state)
{
    (void)state;
    struct pair pair;
    double squares = 1;
    bool poisoned = true;
    begin_pair(&pair, "{rule: sgd, rate: 1}", false, 0, false);
    ps_store_destroy(&pair.store);
    must(ps_store_create(pair.job, pair.part, 0, 0, true, &pair.store));
    must(ps_store_add(pair.store, pair.gradient, 2, true));
    must(ps_store_add(pair.store, pair.gradient, 2, false));
    must(ps_store_choose_sum(pair.store, 1));
    must(ps_store_squares(pair.store, &squares));
    assert_true(squares == 0);
    must(ps_store_update(pair.store, 0, 1, pair.given, &poisoned));
    assert_false(poisoned);
    end_pair(&pair);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        struct pair pair;
        begin_pair(&pair, "{rule: sgd, rate: 1}", separate, 0, false);
        ps_store_destroy(&pair.store);
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = ps_store_create(pair.job, pair.part, pair.begin, pair.end, true, &pair.store);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_int_equal(pair.store != NULL, done);
            ps_store_destroy(&pair.store);
            assert_int_equal(tr_alloc_live(), live);
        }
        end_pair(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_whole_and_alike),
        cmocka_unit_test(updates_are_those_of_one_process),
        cmocka_unit_test(gradients_are_clipped_and_poison),
        cmocka_unit_test(sums_are_of_the_shard),
        cmocka_unit_test(an_empty_shard_has_no_update),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.store", tests, scratch_place_make, scratch_place_remove);
}
