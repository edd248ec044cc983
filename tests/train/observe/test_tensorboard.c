/* What a run shows to TensorBoard: the right figures, under every strategy, and without a trace in the run.
 */
#include "support/files/event_files.h"
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"
#include "io/histogram.h"
#include "io/proto/graph.pb-c.h"
#include "io/proto/hparams.pb-c.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char data[SCRATCH_PATH], place[SCRATCH_PATH];

static int set_up(void **state)
{
    (void)state;
    scratch_make(data);
    family_files(data);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(data);
    return 0;
}

static int make_place(void **state)
{
    (void)state;
    scratch_make(place);
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    scratch_remove(place);
    return 0;
}

/* A family's job whose run is written to `directory`, with histograms of every second step. */
static void observed_job(struct job *job, const struct family *family, const char *directory)
{
    family_job(job, family, data);
    job_set(job, "train.microbatches=4");
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
    job->settings.tensorboard = directory;
    job->settings.histograms = 2;
}

/* ---- the run ---- */

static void watching_changes_nothing(void **state)
{
    (void)state;
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome plain, observed;
        char directory[SCRATCH_PATH];
        struct event_file file;
        family_job(&job, &families[f], data);
        job_set(&job, "train.microbatches=4");
        job_set(&job, "train.log_every=1");
        job_outcome(&job, &plain);
        observed_job(&job, &families[f], scratch_join(directory, place, families[f].name));
        job_outcome(&job, &observed);
        expect_same(&plain, &observed, families[f].name);
        assert_int_equal(observed.warnings, 0);
        event_file_of(directory, 0, 1, &file);
        assert_true(file.whole);
        assert_int_equal(event_file_count(&file, "loss"), (int)plain.step);
        event_file_release(&file);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    family_job(&job, &families[0], data);
    job.settings.histograms = 5;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "histograms are written for TensorBoard"));
    job.settings.tensorboard = place;
    job.settings.histograms = -1;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "histograms every -1 steps"));
}

static void unwritable_files_do_not_end_a_run(void **state)
{
    (void)state;
    struct job job;
    struct outcome plain, observed;
    char path[SCRATCH_PATH];
    /* A directory that cannot be made is told at once. */
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, "file"), "", 0));
    observed_job(&job, &families[0], path);
    job_outcome(&job, &observed);
    assert_int_equal(observed.status, TR_EIO);
    assert_non_null(strstr(observed.message, path));
    /* One that is missing only at the first evaluation is got over. */
    job.settings.tensorboard = NULL;
    job.settings.histograms = 0;
    job_outcome(&job, &plain);
    scratch_join(path, place, "test");
    must_train(tr_file_write_atomic(NULL, path, "", 0));
    job.settings.tensorboard = place;
    job_outcome(&job, &observed);
    expect_same(&plain, &observed, "unwritable");
    assert_int_equal(observed.warnings, 1);
    assert_non_null(strstr(observed.warning, "nothing more is written for TensorBoard"));
    assert_non_null(strstr(observed.warning, path));
}

/* ---- the figures ---- */

struct seen {
    tr_trainer *trainer;
    double loss[64], accuracy[64], rate[64]; /* by step */
    double speed[64];
    double test_loss, test_accuracy;
    struct {
        char tag[64];
        double value;
    } metric[8]; /* of the test data */
    int metrics;
};

static int see(void *user, const struct tr_train_event *event)
{
    struct seen *seen = user;
    if (event->kind == TR_EVENT_STEP) {
        assert_in_range(event->step, 1, 63);
        seen->loss[event->step] = event->loss;
        seen->accuracy[event->step] = event->accuracy;
        seen->rate[event->step] = event->rate;
        seen->speed[event->step] = event->examples_per_second;
    }
    if (event->kind == TR_EVENT_EVALUATION) {
        assert_string_equal(event->name, "test");
        seen->test_loss = event->loss;
        seen->test_accuracy = event->accuracy;
        for (int i = seen->metrics = 0; i < event->metrics->count && i < 8; i++, seen->metrics++) {
            snprintf(seen->metric[i].tag, sizeof seen->metric[i].tag, "metrics/%s",
                     event->metrics->metric[i].name);
            seen->metric[i].value = event->metrics->metric[i].value;
        }
    }
    return 0;
}

static void expect_scalar(const struct event_file *file, const char *tag, int64_t step, double expected)
{
    const Tensorboard__Summary__Value *value = event_file_find(file, tag, step);
    if (!value) fail_msg("no %s at step %lld", tag, (long long)step);
    assert_int_equal(value->value_case, TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE);
    if (value->simple_value != (float)expected)
        fail_msg("%s at step %lld is %g, not %g", tag, (long long)step, (double)value->simple_value,
                 expected);
}

static const Tensorboard__Histogram *histogram_of(const struct event_file *file, const char *group,
                                                  const char *name, int64_t step)
{
    char tag[256];
    snprintf(tag, sizeof tag, "%s/%s", group, name);
    const Tensorboard__Summary__Value *value = event_file_find(file, tag, step);
    if (!value) fail_msg("no %s at step %lld", tag, (long long)step);
    assert_int_equal(value->value_case, TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO);
    return value->histo;
}

static const struct parameter {
    const char *name;
    int64_t count;
} parameters[] = {{"conv1.weights", 5 * 5 * 6},     {"conv1.bias", 6},
                  {"conv2.weights", 5 * 5 * 6 * 7}, {"conv2.bias", 7},
                  {"dense1.weights", 49 * 7 * 33},  {"dense1.bias", 33},
                  {"dense2.weights", 330},          {"dense2.bias", 10}};
#define PARAMETERS (sizeof parameters / sizeof parameters[0])

/* At the end, histograms of parameters are those of what the trainer holds. */
static void check_parameters(const struct event_file *file, tr_trainer *trainer, int64_t step)
{
    static struct tr_histogram histogram;
    static double limit[TR_HISTOGRAM_BUCKETS], count[TR_HISTOGRAM_BUCKETS];
    for (size_t i = 0; i < PARAMETERS; i++) {
        float *values = tr_alloc((size_t)parameters[i].count, sizeof *values);
        must_train(tr_trainer_parameter(trainer, parameters[i].name, values, parameters[i].count));
        memset(&histogram, 0, sizeof histogram);
        tr_histogram_add(&histogram, values, parameters[i].count);
        int32_t buckets = tr_histogram_list(&histogram, limit, count);
        const Tensorboard__Histogram *histo = histogram_of(file, "parameters", parameters[i].name, step);
        assert_int_equal(histo->n_bucket, buckets);
        assert_memory_equal(histo->bucket, count, (size_t)buckets * sizeof *count);
        assert_memory_equal(histo->bucket_limit, limit, (size_t)buckets * sizeof *limit);
        assert_true(histo->sum == histogram.sum && histo->num == (double)parameters[i].count);
        tr_free(values);
    }
}

/* All elements of the gradient are there, and their squares add up to its norm. */
static void check_gradients(const struct event_file *file, int64_t step)
{
    double squares = 0;
    for (size_t i = 0; i < PARAMETERS; i++) {
        const Tensorboard__Histogram *histo = histogram_of(file, "gradients", parameters[i].name, step);
        assert_true(histo->num == (double)parameters[i].count);
        squares += histo->sum_squares;
    }
    double norm = (double)event_file_find(file, "optimizer/gradient_norm", step)->simple_value;
    assert_true(norm > 0 && fabs(norm - sqrt(squares)) < 1e-5 * norm);
}

static void check_activations(const struct event_file *file, int64_t step, int64_t batch)
{
    static const struct parameter layers[] = {
        {"conv1", 28 * 28 * 6}, {"conv2", 14 * 14 * 7}, {"dense1", 33}, {"dense2", 10}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        assert_true(histogram_of(file, "activations", layers[i].name, step)->num ==
                    (double)(batch * layers[i].count));
    assert_true(histogram_of(file, "activations", "conv1", step)->min == 0); /* relu */
}

/* The last event with this tag, of step `step`, holds a session's end or beginning. */
static Tensorboard__HParamsPluginData *session_of(const struct event_file *file, const char *tag,
                                                  int64_t step)
{
    for (int i = file->count - 1; i >= 0; i--) {
        if (file->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        const Tensorboard__Summary__Value *value = event_file_value(file, i);
        if (strcmp(value->tag, tag) != 0) continue;
        assert_int_equal(file->event[i]->step, step);
        for (int k = 0; k < i; k++) assert_true(file->event[k]->wall_time <= file->event[i]->wall_time);
        ProtobufCBinaryData bytes = value->metadata->plugin_data->content;
        return tensorboard__hparams_plugin_data__unpack(NULL, bytes.len, bytes.data);
    }
    fail_msg("no %s", tag);
    return NULL;
}

/* What the model file says of optimizer and schedule, and what of the rest tells runs apart; what is left to
   its default is not there. */
static void check_sessions(const struct event_file *file)
{
    static const char *const keys[] = {"seed",           "optimizer.rule",
                                       "optimizer.rate", "optimizer.schedule.kind",
                                       "train.batch",    "train.microbatches",
                                       "train.steps",    "parameters",
                                       "strategy",       "ranks"};
    Tensorboard__HParamsPluginData *session = session_of(file, "_hparams_/session_start_info", 0);
    const Tensorboard__SessionStartInfo *start = session->session_start_info;
    bool rate = false, strategy = false;
    assert_int_equal(start->n_hparams, sizeof keys / sizeof keys[0]);
    for (size_t k = 0; k < start->n_hparams; k++) {
        size_t i = 0;
        while (i < start->n_hparams && strcmp(start->hparams[i]->key, keys[k]) != 0) i++;
        if (i == start->n_hparams) fail_msg("there is no %s", keys[k]);
        const Tensorboard__HParamValue *value = start->hparams[i]->value;
        if (strcmp(start->hparams[i]->key, "optimizer.rate") == 0) rate = value->number_value == 0.01;
        if (strcmp(start->hparams[i]->key, "strategy") == 0)
            strategy = strcmp(value->string_value, "allreduce") == 0;
    }
    assert_true(rate && strategy);
    tensorboard__hparams_plugin_data__free_unpacked(session, NULL);
    session = session_of(file, "_hparams_/session_end_info", 7);
    assert_int_equal(session->session_end_info->status, TENSORBOARD__SESSION_STATUS__STATUS_SUCCESS);
    tensorboard__hparams_plugin_data__free_unpacked(session, NULL);
}

/* Each picture is that of a digit with the label in its tag. */
static void check_pictures(const struct event_file *file)
{
    enum { PIXELS = 28 * 28 };
    tr_source *source;
    int pictures = 0, right = 0;
    must_train(tr_source_open("{idx: {images: train-images, labels: train-labels}}", data, NULL, &source));
    for (int e = 0; e < file->count; e++) {
        int number, label, prediction;
        char when[8];
        if (file->event[e]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        const Tensorboard__Summary__Value *value = event_file_value(file, e);
        if (value->value_case != TENSORBOARD__SUMMARY__VALUE__VALUE_IMAGE) continue;
        if (sscanf(value->tag, "samples %7[a-z] training/%d label %d, prediction %d", when, &number, &label,
                   &prediction) != 4)
            fail_msg("%s", value->tag);
        assert_int_equal(file->event[e]->step, strcmp(when, "before") == 0 ? 0 : 7);
        assert_int_equal(number, pictures++ % 16);
        assert_in_range(prediction, 0, 9);
        uint8_t pixels[PIXELS], stored[PIXELS];
        const struct tr_image_size size = {28, 28, 1};
        must_train(tr_image_decode("picture", value->image->encoded_image_string.data,
                                   value->image->encoded_image_string.len, size, 1, pixels));
        for (int64_t i = 0; i < tr_source_info(source)->count; i++) {
            int64_t length;
            int32_t truth;
            must_train(tr_source_read(source, i, stored, PIXELS, &length, &truth));
            if (memcmp(stored, pixels, PIXELS) == 0) right += truth == label;
        }
    }
    assert_int_equal(pictures, 32);
    assert_int_equal(right, 32);
    tr_source_close(&source);
}

static void check_graph_and_job(const struct event_file *file)
{
    int graphs = 0, jobs = 0;
    for (int i = 0; i < file->count; i++) {
        if (file->event[i]->what_case == TENSORBOARD__EVENT__WHAT_GRAPH_DEF) {
            ProtobufCBinaryData bytes = file->event[i]->graph_def;
            Tensorboard__GraphDef *graph = tensorboard__graph_def__unpack(NULL, bytes.len, bytes.data);
            assert_non_null(graph);
            assert_true(graph->n_node > 10);
            tensorboard__graph_def__free_unpacked(graph, NULL);
            graphs++;
        }
        if (file->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        const Tensorboard__Summary__Value *value = event_file_value(file, i);
        if (strcmp(value->tag, "job") != 0) continue;
        ProtobufCBinaryData text = value->tensor->string_val[0];
        assert_memory_equal(text.data, "    name: mnist-cnn\n", 20);
        assert_non_null(memmem(text.data, text.len, "\n      rate: 1e-2\n", 18));
        jobs++;
    }
    assert_int_equal(graphs, 1);
    assert_int_equal(jobs, 1);
}

static void figures_are_those_of_the_run(void **state)
{
    (void)state;
    struct job job;
    struct seen seen = {0};
    struct event_file file, test;
    char path[SCRATCH_PATH];
    observed_job(&job, &families[0], place);
    job_set(&job, "train.pass=2"); /* activations come in several parts */
    job.settings.histograms = 7;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, see, &seen));
    event_file_of(place, 0, 1, &file);
    event_file_of(scratch_join(path, place, "test"), 0, 1, &test);
    assert_true(file.whole && test.whole);
    assert_string_equal(file.event[0]->file_version, "brain.Event:2");
    assert_int_equal(file.event[1]->session_log->status, TENSORBOARD__SESSION_LOG__STATUS__START);
    assert_int_equal(file.event[1]->step, 0);
    for (int64_t step = 1; step <= 7; step++) {
        expect_scalar(&file, "loss", step, seen.loss[step]);
        expect_scalar(&file, "accuracy", step, seen.accuracy[step]);
        expect_scalar(&file, "optimizer/learning_rate", step, seen.rate[step]);
        assert_true(event_file_find(&file, "optimizer/gradient_norm", step)->simple_value > 0);
        assert_true(seen.speed[step] > 0);
        expect_scalar(&file, "speed/examples_per_second", step, seen.speed[step]);
    }
    expect_scalar(&test, "loss", 7, seen.test_loss);
    expect_scalar(&test, "accuracy", 7, seen.test_accuracy);
    int told = 0;
    for (int i = 0; i < seen.metrics; i++) {
        if (isnan(seen.metric[i].value)) continue; /* undefined for these data */
        expect_scalar(&test, seen.metric[i].tag, 7, seen.metric[i].value);
        told++;
    }
    assert_true(told >= 3);
    assert_int_equal(event_file_count(&test, "metrics/"), told);
    assert_int_equal(event_file_count(&file, "gradients/"), 2 * PARAMETERS); /* steps 1 and 7 */
    check_parameters(&file, trainer, 7);
    check_gradients(&file, 1);
    check_gradients(&file, 7);
    check_activations(&file, 1, 21);
    check_sessions(&file);
    check_pictures(&file);
    check_graph_and_job(&file);
    event_file_release(&file);
    event_file_release(&test);
    tr_trainer_destroy(&trainer);
}

static void smoothing_is_shown(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct event_file file;
    double shown = 0;
    observed_job(&job, &families[0], place);
    job_set(&job, "loss={kind: softmax_cross_entropy, label_smoothing: 0.25}");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    event_file_of(place, 0, 1, &file);
    Tensorboard__HParamsPluginData *session = session_of(&file, "_hparams_/session_start_info", 0);
    const Tensorboard__SessionStartInfo *start = session->session_start_info;
    for (size_t i = 0; i < start->n_hparams; i++)
        if (strcmp(start->hparams[i]->key, "loss.label_smoothing") == 0)
            shown = start->hparams[i]->value->number_value;
    assert_true(shown == 0.25);
    tensorboard__hparams_plugin_data__free_unpacked(session, NULL);
    event_file_release(&file);
}

static void sentences_are_shown_in_a_table(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct event_file file;
    observed_job(&job, &families[3], place);
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    event_file_of(place, 0, 1, &file);
    for (int i = 0; i < 2; i++) {
        const Tensorboard__Summary__Value *value = event_file_find(
            &file, i ? "samples after training" : "samples before training", i ? outcome.step : 0);
        assert_non_null(value);
        ProtobufCBinaryData text = value->tensor->string_val[0];
        int lines = 0;
        for (size_t at = 0; at < text.len; at++) lines += text.data[at] == '\n';
        assert_int_equal(lines, 2 + 16);
        assert_memory_equal(text.data, "| sentence | label | prediction |\n", 34);
    }
    event_file_release(&file);
}

/* ---- several ranks ---- */

/* The same numbers, added in another order. */
static void expect_like(const Tensorboard__Histogram *a, const Tensorboard__Histogram *b, const char *what)
{
    double scale = sqrt(a->sum_squares * a->num) + 1e-30;
    bool same = a->num == b->num && a->min == b->min && a->max == b->max && a->n_bucket == b->n_bucket &&
                memcmp(a->bucket, b->bucket, a->n_bucket * sizeof *a->bucket) == 0 &&
                fabs(a->sum - b->sum) <= 1e-12 * scale &&
                fabs(a->sum_squares - b->sum_squares) <= 1e-12 * a->sum_squares;
    if (!same)
        fail_msg("%s: %g numbers that sum up to %g, not %g that sum up to %g", what, b->num, b->sum, a->num,
                 a->sum);
}

static void expect_like_events(const struct event_file *expected, const struct event_file *got,
                               const char *how)
{
    int histograms = 0;
    for (int i = 0; i < expected->count; i++) {
        if (expected->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        const Tensorboard__Summary__Value *value = event_file_value(expected, i);
        const Tensorboard__Summary__Value *other = event_file_find(got, value->tag, expected->event[i]->step);
        char what[256];
        snprintf(what, sizeof what, "%s: %s at step %lld", how, value->tag,
                 (long long)expected->event[i]->step);
        if (!other) fail_msg("%s is missing", what);
        if (value->value_case == TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO) {
            expect_like(value->histo, other->histo, what);
            histograms++;
        }
        if (strcmp(value->tag, "optimizer/gradient_norm") == 0)
            assert_true(fabsf(value->simple_value - other->simple_value) <= 1e-5f * value->simple_value);
        if (strcmp(value->tag, "loss") == 0) assert_true(value->simple_value == other->simple_value);
    }
    assert_true(histograms > 30);
}

/* The norm is that of all gradients together, to which the statistics of batch_norm do not belong. */
static void check_norms(const struct event_file *file)
{
    int norms = 0;
    for (int i = 0; i < file->count; i++) {
        if (file->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        const Tensorboard__Summary__Value *value = event_file_value(file, i);
        if (strcmp(value->tag, "optimizer/gradient_norm") != 0) continue;
        double squares = 0, norm = (double)value->simple_value;
        for (int k = 0; k < file->count; k++) {
            if (file->event[k]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
            const Tensorboard__Summary__Value *other = event_file_value(file, k);
            if (file->event[k]->step == file->event[i]->step && strncmp(other->tag, "gradients/", 10) == 0 &&
                !strstr(other->tag, "running_"))
                squares += other->histo->sum_squares;
        }
        if (squares == 0) continue; /* a step without histograms */
        if (fabs(norm - sqrt(squares)) > 1e-5 * norm) fail_msg("a norm is %g, not %g", norm, sqrt(squares));
        norms++;
    }
    assert_true(norms > 1);
}

static void norms_are_those_of_gradients(void **state)
{
    struct job job;
    struct outcome outcome;
    struct event_file file;
    char directory[SCRATCH_PATH];
    (void)state;
    observed_job(&job, &families[4], scratch_join(directory, place, "norms"));
    job_set(&job, "optimizer.clip_norm=0"); /* with it the step has its norm by itself */
    job.settings.set = job.set;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    event_file_of(directory, 0, 1, &file);
    assert_true(event_file_count(&file, "gradients/") > 0);
    check_norms(&file);
    event_file_release(&file);
}

static void strategies_show_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int ranks;
        bool apart;
    } ways[] = {
        {"allreduce", 2, false},         {"allreduce", 3, true},         {"pipeline,stages=2", 2, false},
        {"pipeline,stages=2", 4, false}, {"parameter-server", 3, false},
    };
    static const int chosen[] = {0, 4};
    for (int f = 0; f < 2; f++) {
        struct job job;
        struct outcome alone;
        struct event_file expected, got;
        char directory[SCRATCH_PATH], name[64];
        snprintf(name, sizeof name, "%s alone", families[chosen[f]].name);
        observed_job(&job, &families[chosen[f]], scratch_join(directory, place, name));
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        event_file_of(directory, 0, 1, &expected);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            struct rank ranks[RANKS];
            snprintf(name, sizeof name, "%d, %s on %d", f, ways[i].strategy, ways[i].ranks);
            job.settings.tensorboard = scratch_join(directory, place, name);
            job.settings.strategy = ways[i].strategy;
            run_ranks(&job.settings, ways[i].ranks, ways[i].apart, ranks);
            expect_ranks(&alone, ranks, ways[i].ranks, name);
            event_file_of(directory, 0, 1, &got); /* one file: the root's */
            expect_like_events(&expected, &got, name);
            event_file_release(&got);
        }
        event_file_release(&expected);
    }
}

/* Strategies that are not exact show what there is to see. */
static void others_show_what_they_have(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int ranks;
        bool gradients;
    } ways[] = {{"local-sgd,replicas=2,every=3", 2, true}, {"parameter-server,mode=async", 3, false}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        struct event_file file;
        char directory[SCRATCH_PATH];
        observed_job(&job, &families[0], scratch_join(directory, place, ways[i].strategy));
        job.settings.strategy = ways[i].strategy;
        run_ranks(&job.settings, ways[i].ranks, false, ranks);
        expect_well(ranks, ways[i].ranks, ways[i].strategy);
        assert_int_equal(ranks[0].outcome.warnings, 0);
        event_file_of(directory, 0, 1, &file);
        assert_true(file.whole);
        assert_true(event_file_count(&file, "loss") > 0);
        assert_true(event_file_count(&file, "parameters/") >= (int)PARAMETERS);
        assert_int_equal(event_file_count(&file, "gradients/") > 0, ways[i].gradients);
        assert_int_equal(event_file_count(&file, "optimizer/gradient_norm"), 0); /* of no one network */
        event_file_release(&file);
    }
}

static void ranks_must_want_the_same(void **state)
{
    (void)state;
    struct job one, other;
    struct rank ranks[RANKS];
    observed_job(&one, &families[0], place);
    observed_job(&other, &families[0], place);
    other.settings.histograms = 3;
    const struct tr_train_settings *settings[] = {&one.settings, &other.settings};
    run_ranks_each(settings, 2, false, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_EMISMATCH);
    assert_non_null(strstr(ranks[0].outcome.message, "histograms every 3"));
    assert_non_null(strstr(ranks[0].outcome.message, "histograms every 2"));
}

/* ---- stopping and going on ---- */

static int64_t last_step;

static int stop_there(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP && event->step == last_step) tr_trainer_stop(user);
    return 0;
}

static void a_run_goes_on_in_a_new_file(void **state)
{
    (void)state;
    struct job job;
    struct outcome whole, rest;
    struct event_file undisturbed, first, second;
    char events[SCRATCH_PATH], out[SCRATCH_PATH], directory[SCRATCH_PATH];
    observed_job(&job, &families[0], scratch_join(directory, place, "undisturbed"));
    job_outcome(&job, &whole);
    job.settings.tensorboard = scratch_join(events, place, "events");
    job.settings.out = scratch_join(out, place, "out");
    last_step = 4;
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, stop_there, trainer), TR_EINTERRUPTED);
    assert_non_null(strstr(tr_error_message(), "stopped after step 4"));
    tr_trainer_destroy(&trainer);
    job.settings.resume = out;
    job_outcome(&job, &rest);
    assert_int_equal(rest.status, TR_OK);
    assert_string_equal(rest.hash, whole.hash);
    event_file_of(directory, 0, 1, &undisturbed);
    event_file_of(events, 0, 2, &first);
    event_file_of(events, 1, 2, &second);
    assert_true(first.whole && second.whole);
    assert_int_equal(event_file_count(&first, "loss"), 4);
    assert_int_equal(event_file_count(&second, "loss"), 3);
    assert_int_equal(second.event[1]->session_log->status, TENSORBOARD__SESSION_LOG__STATUS__START);
    assert_int_equal(second.event[1]->step, 5);
    for (int64_t step = 1; step <= 7; step++)
        expect_scalar(step <= 4 ? &first : &second, "loss", step,
                      (double)event_file_find(&undisturbed, "loss", step)->simple_value);
    expect_like(histogram_of(&undisturbed, "gradients", "conv1.weights", 6),
                histogram_of(&second, "gradients", "conv1.weights", 6), "resumed");
    event_file_release(&undisturbed);
    event_file_release(&first);
    event_file_release(&second);
}

/* What is due in the first step after a resume is in the new file, be it the run's last step, too. */
static void a_first_step_is_looked_at(void **state)
{
    (void)state;
    struct job job;
    struct outcome rest;
    struct event_file file;
    char events[SCRATCH_PATH], out[SCRATCH_PATH];
    for (last_step = 5; last_step <= 6; last_step++) {
        bool ends = last_step == 6; /* the run has 7 steps */
        observed_job(&job, &families[0], scratch_join(events, place, ends ? "ends" : "events"));
        job.settings.out = scratch_join(out, place, ends ? "end" : "out");
        if (ends) job_set(&job, "train.log_every=50");
        job_set(&job, "train.checkpoint_every=1");
        job.settings.set = job.set;
        if (ends) job.settings.steps = 6;
        tr_trainer *trainer = job_trainer(&job);
        assert_int_equal(tr_trainer_run(trainer, stop_there, trainer), ends ? TR_OK : TR_EINTERRUPTED);
        tr_trainer_destroy(&trainer);
        job.settings.resume = out;
        if (ends) job.settings.steps = 7;
        job_outcome(&job, &rest);
        must_train(rest.status);
        event_file_of(events, 1, 2, &file);
        assert_non_null(event_file_find(&file, "optimizer/gradient_norm", last_step + 1));
        assert_int_equal(event_file_count(&file, "gradients/") > 0, !ends);
        if (!ends) (void)histogram_of(&file, "gradients", "conv1.weights", 6);
        event_file_release(&file);
    }
}

static int stop_at_evaluation(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_EVALUATION) tr_trainer_stop(user);
    return 0;
}

/* The end is of the last step of which something was written, though to another file. */
static void an_end_has_the_last_step(void **state)
{
    (void)state;
    struct job job;
    struct event_file file;
    family_job(&job, &families[0], data);
    job_set(&job, "train.log_every=3");
    job_set(&job, "train.evaluate_every=2");
    job.settings.set = job.set;
    job.settings.tensorboard = place;
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, stop_at_evaluation, trainer), TR_EINTERRUPTED);
    tr_trainer_destroy(&trainer);
    event_file_of(place, 0, 1, &file);
    Tensorboard__HParamsPluginData *session = session_of(&file, "_hparams_/session_end_info", 2);
    tensorboard__hparams_plugin_data__free_unpacked(session, NULL);
    assert_int_equal(event_file_count(&file, "loss"), 1); /* of step 1 */
    event_file_release(&file);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(watching_changes_nothing),          TEST(what_cannot_be_is_refused),
        TEST(unwritable_files_do_not_end_a_run), TEST(smoothing_is_shown),
        TEST(figures_are_those_of_the_run),      TEST(sentences_are_shown_in_a_table),
        TEST(norms_are_those_of_gradients),      TEST(strategies_show_the_same),
        TEST(others_show_what_they_have),        TEST(ranks_must_want_the_same),
        TEST(a_run_goes_on_in_a_new_file),       TEST(an_end_has_the_last_step),
        TEST(a_first_step_is_looked_at),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
