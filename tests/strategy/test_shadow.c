/* Every strategy on a device whose memory nobody but the device can touch: the hash of one process on the
 * cpu device, or of the same strategy there; and with parameters on one device and computing on the other.
 */
#include "strategy/values.h"
#include "support/ranks.h"

#include "support/operations/shadow.h"

#include "base/text/log.h"
#include "strategy/class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define OPTIONS 128

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.microbatches=5");
    job->settings.steps = 5;
    job->settings.set = job->set;
}

/* Runs the job on `size` ranks and returns the hash of the root. */
static void run(const struct job *job, const char *device, const char *holder, const char *strategy, int size,
                bool apart, char hash[TR_SHA256_TEXT])
{
    struct rank ranks[RANKS];
    struct tr_train_settings settings = job->settings;
    char how[200];
    settings.device = device;
    settings.parameters_on = holder;
    settings.strategy = strategy;
    snprintf(how, sizeof how, "%s on %d ranks%s, computing on %s, parameters on %s", strategy, size,
             apart ? " apart" : "", device, holder ? holder : "it");
    run_ranks(&settings, size, apart, ranks);
    expect_well(ranks, size, how);
    memcpy(hash, ranks[0].outcome.hash, TR_SHA256_TEXT);
}

/* The variants of a class, as on a command line; the first NULL ends them. */
static const char *variant_of(const struct tr_strategy_class *class, int number)
{
    static const char *const plain[] = {"", NULL};
    const char *const *variants = class->variants ? class->variants : plain;
    return variants[number];
}

/* "pipeline,stages=2", with {workers} replaced. */
static void write_strategy(const struct tr_strategy_class *class, const char *variant, int workers,
                           char out[OPTIONS])
{
    const char *at = strstr(variant, "{workers}");
    if (at)
        snprintf(out, OPTIONS, "%s,%.*s%d%s", class->name, (int)(at - variant), variant, workers,
                 at + strlen("{workers}"));
    else
        snprintf(out, OPTIONS, "%s%s%s", class->name, *variant ? "," : "", variant);
}

static bool is_asynchronous(const struct job *job, const char *strategy, int workers, int *ranks)
{
    struct tr_job_settings settings = {
        .set = job->settings.set, .set_count = job->settings.set_count, .strategy = strategy};
    struct tr_strategy_outline outline;
    struct tr_job *own;
    must_train(tr_job_open(job->settings.model, &settings, &own));
    must_train(tr_strategy_outline(own, workers, &outline));
    tr_job_destroy(&own);
    *ranks = outline.ranks;
    return outline.asynchronous;
}

static void expect_cpu_hashes(int family, int workers)
{
    /* NULL: parameters are where each rank computes */
    static const char *const devices[][2] = {{"shadow", "shadow"},
                                             {"shadow", "cpu"},
                                             {"cpu", "shadow"},
                                             {"shadow,cpu", NULL},
                                             {"cpu,shadow", NULL}};
    struct job job;
    begin(&job, family);
    for (int c = 0; tr_strategy_class_at(c); c++)
        for (int v = 0; variant_of(tr_strategy_class_at(c), v); v++) {
            char strategy[OPTIONS], expected[TR_SHA256_TEXT], got[TR_SHA256_TEXT];
            int ranks;
            write_strategy(tr_strategy_class_at(c), variant_of(tr_strategy_class_at(c), v), workers,
                           strategy);
            bool free_running = is_asynchronous(&job, strategy, workers, &ranks);
            run(&job, "cpu", "cpu", strategy, ranks, false, expected);
            for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++)
                for (int apart = 0; apart < 2; apart++) {
                    const char *holder = devices[d][1];
                    run(&job, devices[d][0], holder, strategy, ranks, apart, got);
                    if (!free_running && strcmp(expected, got) != 0)
                        fail_msg("%s, %s: computing on %s, parameters on %s, %s: another hash",
                                 families[family].name, strategy, devices[d][0], holder ? holder : "it",
                                 apart ? "messages" : "windows");
                }
        }
}

static void a_convolutional_network(void **state)
{
    (void)state;
    expect_cpu_hashes(0, 2);
}

/* Batch normalization, averages, dropout, a residual connection, clipping by norm, ragged microbatches. */
static void a_network_of_everything(void **state)
{
    (void)state;
    expect_cpu_hashes(4, 4);
}

/* Sequences, whose activations have as many rows as there are tokens. */
static void a_recurrent_network(void **state)
{
    (void)state;
    expect_cpu_hashes(3, 2);
}

static void count_notes(void *user, enum tr_log_level level, const char *message)
{
    if (level == TR_LOG_WARNING && strstr(message, "are not kept on")) ++*(int *)user;
}

/* Texts of different lengths, with a label for each token that has one. */
static void begin_tags(struct job *job)
{
    static const char model[] = "name: tags\n"
                                "data:\n"
                                "  train: {text: {path: words.tags, tags: true}}\n"
                                "  test: {text: {path: words.tags, tags: true}}\n"
                                "layers: [{embedding: 6}, {lstm: 7}, {dense: 3}]\n"
                                "loss: softmax_cross_entropy\n"
                                "optimizer: {rule: adam, rate: 1e-2}\n"
                                "train: {batch: 11, microbatches: 5, steps: 5}\n";
    static char path[SCRATCH_PATH];
    char lines[40 * 64], *at = lines;
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k <= i % 6; k++) at += snprintf(at, 8, "%sw%d", k ? " " : "", (i + k) % 9);
        for (int k = 0; k <= i % 6; k++)
            at += snprintf(at, 8, "%c%c", k ? ' ' : '\t', k == 2 ? '-' : (char)('0' + (i * k + 1) % 3));
        at += snprintf(at, 8, "\n");
    }
    must_train(tr_file_write_atomic(NULL, scratch_join(path, family_place, "words.tags"), lines,
                                    (size_t)(at - lines)));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "tags.yaml"), model, sizeof model - 1));
    job_begin(job, path);
    job->settings.set = job->set;
}

/* Bytes that the run takes of the device, evaluations apart. */
static int64_t memory_on_shadow(struct job *job)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    return info.memory;
}

/* Examples of any kind that the device has no room for go there step by step, whatever takes part in a step
   and in how many passes, and of evaluations as well; which is said. */
static void a_set_that_is_too_large(void **state)
{
    static const struct {
        int family; /* -1: values, -2: tags */
        const char *set;
        int notes;     /* sets that are used */
        int64_t bytes; /* of the training data, at least */
    } sets[] = {
        {0, "train.pass=2", 2, 100 * (28 * 28 + 4)}, {0, "train.pass=4", 2, 100 * (28 * 28 + 4)},
        {3, "train.pass=2", 3, 90 * 4 * 4},          {5, "train.pass=1", 3, 90 * 4 * 4},
        {-1, "train.pass=2", 2, 40 * 5 * 4},         {-2, "train.pass=2", 2, 40 * 3 * 4 * 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        struct job job;
        struct outcome expected, got;
        int notes = 0;
        if (sets[i].family == -2)
            begin_tags(&job);
        else if (sets[i].family == -1)
            values_job(&job, family_place, "1,2,3,4,5\n");
        else
            begin(&job, sets[i].family);
        job_set(&job, sets[i].set);
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        job.settings.device = "shadow";
        tr_log_set_sink(count_notes, &notes, TR_LOG_INFO);
        job_outcome(&job, &got);
        expect_same(&expected, &got, "with room");
        int64_t with_room = memory_on_shadow(&job);
        assert_int_equal(notes, 0);
        shadow_room = 1000;
        job_outcome(&job, &got);
        assert_int_equal(notes, sets[i].notes);
        int64_t without = memory_on_shadow(&job);
        shadow_room = INT64_MAX;
        tr_log_set_sink(NULL, NULL, TR_LOG_INFO);
        expect_same(&expected, &got, "without room");
        assert_true(got.evaluated_loss == expected.evaluated_loss);
        /* in the place of a set there are the images of a pass */
        if (with_room - without < sets[i].bytes / 2)
            fail_msg("set %d: %lld bytes with room, %lld without", (int)i, (long long)with_room,
                     (long long)without);
    }
}

/* Nor are two stages in each other's way that take evaluations batch by batch, of which the next one is read
   while one is under way. */
static void stages_without_room(void **state)
{
    static const int chosen[] = {0, 3};
    (void)state;
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++) {
        struct job job;
        struct outcome expected;
        struct rank ranks[RANKS];
        begin(&job, chosen[i]);
        job_set(&job, "train.evaluate_batch=7");
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        assert_true(expected.evaluations > 0);
        job.settings.device = "shadow";
        job.settings.strategy = "pipeline";
        shadow_room = 1000;
        run_ranks(&job.settings, 2, true, ranks);
        shadow_room = INT64_MAX;
        expect_well(ranks, 2, "two stages without room");
        assert_string_equal(ranks[0].outcome.hash, expected.hash);
        assert_true(ranks[0].outcome.evaluated_loss == expected.evaluated_loss);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolutional_network), cmocka_unit_test(a_network_of_everything),
        cmocka_unit_test(a_recurrent_network),     cmocka_unit_test(stages_without_room),
        cmocka_unit_test(a_set_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
