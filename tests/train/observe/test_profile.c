/* Profiles of spans whose times are the test's own: every activity counts for its cause, every layer has its
 * part, and devices that report their own times count in place of the thread that asks them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "base/fail.h"
#include "base/threads/timeline.h"
#include "device/device.h"
#include "job/job.h"
#include "refuse.h"
#include "support/training.h"
#include "train/observe/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MODEL                                                                                                \
    "name: job\ninput: {shape: [4]}\nlayers: [{dense: {units: 5, name: one}}, {dense: {units: 6, name: "     \
    "two}}, "                                                                                                \
    "{dense: {units: 3, name: three}}]\noptimizer: {rule: sgd, rate: 0.01}\n"                                \
    "train: {batch: 8, steps: 1}\n"

static struct tr_job *job;

static int make(void **state)
{
    (void)state;
    const struct tr_job_settings settings = {.outline = true};
    const struct tr_job_text text = {MODEL, sizeof MODEL - 1, "model", NULL};
    must_train(tr_job_open_text(&text, &settings, &job));
    return 0;
}

static int clean(void **state)
{
    (void)state;
    tr_job_destroy(&job);
    return 0;
}

static double peak(tr_device *device, double seconds)
{
    (void)device;
    return seconds * 1000;
}

static const struct tr_device_class class = {.peak = peak};
static tr_device host = {.class = &class, .name = "cpu"},
                 gpu = {.class = &class, .name = "gpu:0", .timed = true};

static tr_timeline *timeline_make(void)
{
    const struct tr_timeline_settings settings = {.sums = true};
    tr_timeline *timeline;
    must_train(tr_timeline_create(&settings, &timeline));
    return timeline;
}

static void add(tr_timeline *timeline, const char *lane, enum tr_activity activity, const char *name,
                int64_t nanoseconds)
{
    const struct tr_span_here what = {timeline, activity, name, 0};
    tr_timeline_add(&what, lane, 1000, 1000 + nanoseconds);
}

static void expect_nanoseconds(double seconds, double nanoseconds, const char *what)
{
    if (fabs(seconds - nanoseconds * 1e-9) > 1e-15)
        fail_msg("%s: %.0f ns instead of %.0f", what, seconds * 1e9, nanoseconds);
}

static void expect_causes(const struct tr_profile_rank *rank, const double expected[TR_CAUSES])
{
    char what[24];
    for (int i = 0; i < TR_CAUSES; i++) {
        snprintf(what, sizeof what, "cause %d", i);
        expect_nanoseconds(rank->seconds[i], expected[i], what);
    }
}

/* A nanosecond number of its own for each. */
static void add_all_activities(tr_timeline *timeline)
{
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_STEP, "step", 10001);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_INPUT, "input", 202);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_FORWARD, "one", 3003);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_FORWARD, "loss", 404);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_BACKWARD, "one", 5005);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_BACKWARD, "loss", 606);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_COMMUNICATION, "two", 707);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_WAITING, "two", 808);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_UPDATE, "two", 909);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_EVALUATION, "two", 1010);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_CHECKPOINT, "two", 1111);
}

static void activities_count_for_their_causes(void **state)
{
    (void)state;
    static const double expected[TR_CAUSES] = {
        [TR_CAUSE_FORWARD] = 3407, [TR_CAUSE_BACKWARD] = 5611,     [TR_CAUSE_UPDATE] = 909,
        [TR_CAUSE_WAITING] = 808,  [TR_CAUSE_COMMUNICATION] = 707, [TR_CAUSE_INPUT] = 202,
        [TR_CAUSE_OTHER] = 10001,  [TR_CAUSE_EVALUATION] = 1010,   [TR_CAUSE_CHECKPOINT] = 1111,
    };
    struct tr_train_profile profile;
    tr_timeline *timeline = timeline_make();
    add_all_activities(timeline);
    /* Other threads work beside it, and this device does not tell its times. */
    add(timeline, "reader", TR_ACTIVITY_INPUT, "input", 1000000);
    add(timeline, "cpu", TR_ACTIVITY_FORWARD, "two", 1000000);
    must_train(tr_profile_make(timeline, job->model, &host, NULL, &profile));
    assert_int_equal(profile.ranks, 1);
    expect_causes(&profile.rank[0], expected);
    assert_true(profile.rank[0].awaited == 0);
    assert_float_equal(profile.peak, 100, 1e-9); /* measured for a tenth of a second */
    assert_int_equal(profile.layer_count, 1);
    assert_string_equal(profile.layers[0].name, "one");
    assert_int_equal(profile.layers[0].calls, 1);
    assert_int_equal(profile.layers[0].parameters, 4 * 5 + 5);
    expect_nanoseconds(profile.layers[0].forward_seconds, 3003, "forward");
    expect_nanoseconds(profile.layers[0].backward_seconds, 5005, "backward");
    tr_profile_release(&profile);
    assert_null(profile.rank);
    tr_timeline_destroy(&timeline);
}

/* Operations add up, the largest output counts; what a device takes to compute is its own. */
static void work(enum tr_activity activity, const char *layer, double operations, int64_t bytes)
{
    tr_span_begin(activity, layer);
    tr_span_work(operations, bytes);
    tr_span_end();
}

static void layers_have_their_work(void **state)
{
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        struct tr_train_profile profile;
        tr_timeline *timeline = timeline_make();
        tr_timeline_enter(timeline, TR_PROFILE_LANE);
        work(TR_ACTIVITY_FORWARD, "three", 100, 64);
        work(TR_ACTIVITY_FORWARD, "three", 50, 32);
        work(TR_ACTIVITY_BACKWARD, "three", 300, 128);
        work(TR_ACTIVITY_BACKWARD, "two", 7, 8); /* without forward, it is not listed */
        work(TR_ACTIVITY_FORWARD, "one", 1, 2);
        work(TR_ACTIVITY_FORWARD, "none of them", 1000, 2000);
        tr_timeline_leave();
        add(timeline, "gpu:0", TR_ACTIVITY_FORWARD, "three", 40);
        add(timeline, "gpu:0", TR_ACTIVITY_BACKWARD, "three", 50);
        add(timeline, "gpu:0", TR_ACTIVITY_UPDATE, "three", 60);
        must_train(tr_profile_make(timeline, job->model, timed ? &gpu : &host, NULL, &profile));
        assert_int_equal(profile.layer_count, 2);
        const struct tr_profile_layer *one = &profile.layers[0], *three = &profile.layers[1];
        assert_string_equal(one->name, "one");
        assert_string_equal(three->name, "three");
        assert_int_equal(three->calls, 2);
        assert_true(three->forward_operations == 150 && three->backward_operations == 300);
        assert_int_equal(three->bytes, 64);
        assert_true(one->forward_operations == 1 && one->bytes == 2 && one->backward_operations == 0);
        assert_int_equal(three->parameters, 6 * 3 + 3);
        if (timed) {
            expect_nanoseconds(three->forward_seconds, 40, "forward");
            expect_nanoseconds(three->backward_seconds, 50, "backward");
            expect_nanoseconds(one->forward_seconds, 0, "forward");
            expect_nanoseconds(profile.rank[0].seconds[TR_CAUSE_UPDATE], 60, "update");
        } else {
            assert_true(one->forward_seconds > 0 && three->backward_seconds > 0);
        }
        tr_profile_release(&profile);
        tr_timeline_destroy(&timeline);
    }
}

/* The thread's own times for what it only asks for are other work, without those in which the device
 * computed. */
static void a_device_counts_in_place_of_its_thread(void **state)
{
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        /* Step, forward, backward and update of the thread. */
        const double other = 10001 + 3407 + 5611 + 909, computed = longer ? 30000 : 300;
        const double expected[TR_CAUSES] = {
            [TR_CAUSE_FORWARD] = computed + 20,
            [TR_CAUSE_BACKWARD] = 40,
            [TR_CAUSE_UPDATE] = 50,
            [TR_CAUSE_WAITING] = 808,
            [TR_CAUSE_COMMUNICATION] = 707,
            [TR_CAUSE_INPUT] = 202,
            [TR_CAUSE_EVALUATION] = 1010,
            [TR_CAUSE_CHECKPOINT] = 1111,
            [TR_CAUSE_OTHER] = longer ? 0 : other - computed - 20 - 40 - 50,
        };
        struct tr_train_profile profile;
        tr_timeline *timeline = timeline_make();
        /* Its lane may come first. */
        add(timeline, "gpu:0", TR_ACTIVITY_FORWARD, "one", longer ? 30000 : 300);
        add(timeline, "gpu:0", TR_ACTIVITY_FORWARD, "loss", 20);
        add(timeline, "gpu:0", TR_ACTIVITY_BACKWARD, "one", 40);
        add(timeline, "gpu:0", TR_ACTIVITY_UPDATE, "one", 50);
        add(timeline, "gpu:0", TR_ACTIVITY_EVALUATION, "one", 70); /* the thread waits for it */
        add(timeline, "gpu:1", TR_ACTIVITY_FORWARD, "one", 1000000);
        add_all_activities(timeline);
        must_train(tr_profile_make(timeline, job->model, &gpu, NULL, &profile));
        expect_causes(&profile.rank[0], expected);
        assert_int_equal(profile.layer_count, 1);
        expect_nanoseconds(profile.layers[0].forward_seconds, computed, "forward");
        expect_nanoseconds(profile.layers[0].backward_seconds, 40, "backward");
        tr_profile_release(&profile);
        tr_timeline_destroy(&timeline);
    }
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    tr_timeline *timeline = timeline_make();
    add_all_activities(timeline);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_train_profile profile;
        refuse_begin(at);
        tr_status status = tr_profile_make(timeline, job->model, &host, NULL, &profile);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_true(!profile.rank && !profile.layers);
        tr_profile_release(&profile);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_timeline_destroy(&timeline);
}

/* ---- ranks ---- */

static const char *look_at_all(tr_comm *comm)
{
    struct tr_train_profile profile;
    const int rank = tr_comm_rank(comm);
    const char *wrong = NULL;
    tr_timeline *timeline = timeline_make();
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_FORWARD, "one", 1000 + rank);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_BACKWARD, "one", 20 + rank);
    add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_INPUT, "input", 300 + rank);
    if (rank == 2) add(timeline, TR_PROFILE_LANE, TR_ACTIVITY_FORWARD, "three", 7);
    tr_timeline_enter(timeline, TR_PROFILE_LANE);
    work(TR_ACTIVITY_FORWARD, "two", 10 + rank, 100 - rank * rank);
    tr_span_begin(TR_ACTIVITY_WAITING, "others");
    tr_span_end_about(rank == 0 ? 2 : 0); /* rank 0 waits for 2, the others for 0 */
    tr_timeline_leave();
    if (tr_profile_make(timeline, job->model, &host, comm, &profile) != TR_OK) return tr_error_message();
    if (profile.ranks != 3 || profile.layer_count != 3) return "others";
    for (int r = 0; r < 3; r++) {
        const double *seconds = profile.rank[r].seconds;
        if (fabs(seconds[TR_CAUSE_INPUT] - (300 + r) * 1e-9) > 1e-15) wrong = "input of another rank";
        if (fabs(seconds[TR_CAUSE_BACKWARD] - (20 + r) * 1e-9) > 1e-15) wrong = "backward of another rank";
        if (!(seconds[TR_CAUSE_WAITING] > 0)) wrong = "nothing was waited";
    }
    const struct tr_profile_rank *ranks = profile.rank;
    if (fabs(ranks[0].awaited - ranks[1].seconds[TR_CAUSE_WAITING] - ranks[2].seconds[TR_CAUSE_WAITING]) >
            1e-15 ||
        ranks[1].awaited != 0 || ranks[2].awaited != ranks[0].seconds[TR_CAUSE_WAITING])
        wrong = "others were awaited";
    const struct tr_profile_layer *layer = profile.layers;
    if (layer[0].calls != 3 || fabs(layer[0].forward_seconds - 3003e-9) > 1e-15 ||
        fabs(layer[0].backward_seconds - 63e-9) > 1e-15)
        wrong = "sums of the first layer";
    if (layer[1].calls != 3 || layer[1].forward_operations != 33 || layer[1].bytes != 100)
        wrong = "work of the second layer";
    if (layer[2].calls != 1 || fabs(layer[2].forward_seconds - 7e-9) > 1e-15) wrong = "a layer of one rank";
    tr_profile_release(&profile);
    tr_timeline_destroy(&timeline);
    return wrong;
}

static void all_ranks_have_the_profile_of_all(void **state)
{
    (void)state;
    ranks_run(3, NULL, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, look_at_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activities_count_for_their_causes),
        cmocka_unit_test(layers_have_their_work),
        cmocka_unit_test(a_device_counts_in_place_of_its_thread),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(all_ranks_have_the_profile_of_all),
    };
    return cmocka_run_group_tests_name("train.profile", tests, make, clean);
}
