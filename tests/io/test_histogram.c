/* Histograms: every number in its bucket, moments, and the list that is written. */
#include "io/histogram.h"

#include "base/numbers/rng.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static struct tr_histogram histogram;
static double limit[TR_HISTOGRAM_BUCKETS], count[TR_HISTOGRAM_BUCKETS];

static int32_t list_of(const float *values, int64_t length)
{
    memset(&histogram, 0, sizeof histogram);
    tr_histogram_add(&histogram, values, length);
    return tr_histogram_list(&histogram, limit, count);
}

static void nothing_gives_no_buckets(void **state)
{
    (void)state;
    assert_int_equal(list_of(NULL, 0), 0);
    assert_int_equal(histogram.count, 0);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    assert_int_equal(list_of(bad, 3), 0);
    assert_int_equal(histogram.nonfinite, 3);
    assert_int_equal(histogram.count, 0);
}

static void moments_are_of_finite_numbers(void **state)
{
    (void)state;
    const float values[] = {2, -3, NAN, 0.5f, INFINITY, -0.0f};
    list_of(values, 6);
    assert_int_equal(histogram.count, 4);
    assert_int_equal(histogram.nonfinite, 2);
    assert_true(histogram.min == -3 && histogram.max == 2);
    assert_true(histogram.sum == -0.5);
    assert_true(histogram.sum_squares == 4 + 9 + 0.25);
}

static void extremes_have_buckets(void **state)
{
    (void)state;
    const float values[] = {-FLT_MAX, -1e-45f, 0, 1e-45f, FLT_MAX};
    int32_t length = list_of(values, 5);
    assert_int_equal(length, 6);
    assert_true(count[0] == 1 && limit[0] < -9e19 && limit[0] > -1e20);
    assert_true(count[1] == 0 && limit[1] == -1e-12);
    assert_true(count[2] == 1 && limit[2] == 0);
    assert_true(count[3] == 2 && limit[3] == 1e-12);
    /* The empty ones up to the open one are one. */
    assert_true(count[4] == 0 && limit[4] > 9e19 && limit[4] < 1e20);
    assert_true(count[5] == 1 && limit[5] == DBL_MAX);
}

/* The definition, spelled out: magnitudes from one limit up to below the next one. */
static void check_buckets(const float *values, int length)
{
    int32_t buckets = list_of(values, length);
    double total = 0;
    assert_in_range(buckets, 1, TR_HISTOGRAM_BUCKETS);
    assert_true(count[0] > 0 && count[buckets - 1] > 0);
    for (int32_t b = 0; b < buckets; b++) {
        double low = b ? limit[b - 1] : -INFINITY, expected = 0;
        if (b) assert_true(limit[b] > limit[b - 1]);
        if (b) assert_false(count[b] == 0 && count[b - 1] == 0);
        for (int i = 0; i < length; i++) {
            double x = (double)values[i];
            /* Right edges of negative buckets belong to the bucket itself, of the others to the next one. */
            bool above = low < 0 ? x > low : x >= low, below = limit[b] < 0 ? x <= limit[b] : x < limit[b];
            if (limit[b] == 0) below = x < 0;
            expected += above && below;
        }
        assert_true(count[b] == expected);
        total += count[b];
    }
    assert_true(total == length);
    assert_true(limit[0] >= histogram.min && limit[buckets - 1] >= histogram.max);
}

static void every_number_is_in_its_bucket(void **state)
{
    (void)state;
    enum { LENGTH = 600 };
    float values[LENGTH];
    for (uint32_t seed = 0; seed < 20; seed++) {
        tr_rng_key key = tr_rng_key_make(seed, TR_RNG_DROPOUT);
        for (uint32_t i = 0; i < LENGTH; i++) {
            uint32_t words[4];
            tr_rng_philox(key, i, 0, 0, 0, words);
            memcpy(&values[i], &words[0], sizeof values[i]);
            if (!isfinite(values[i]) || words[1] % 8 == 0) values[i] = 0;
            if (words[1] % 8 == 1) values[i] = (float)(words[2] % 100) / 10 - 5;
        }
        check_buckets(values, LENGTH);
    }
    /* The limits themselves, and the floats beside them. */
    for (int k = 0; k < TR_HISTOGRAM_LIMITS; k += 7) {
        float at = (float)(1e-12 * pow(1.1, k));
        const float near[] = {nextafterf(at, 0), at, nextafterf(at, INFINITY), -at};
        check_buckets(near, 4);
    }
}

static void parts_add_up(void **state)
{
    (void)state;
    float values[1000];
    struct tr_histogram whole;
    for (int i = 0; i < 1000; i++) values[i] = (float)(i % 37) - 11.5f;
    list_of(values, 1000);
    whole = histogram;
    memset(&histogram, 0, sizeof histogram);
    tr_histogram_add(&histogram, values, 1);
    tr_histogram_add(&histogram, values + 1, 0);
    tr_histogram_add(&histogram, values + 1, 999);
    assert_memory_equal(&histogram, &whole, sizeof whole);
    /* Likewise of several histograms, some of them empty. */
    struct tr_histogram total = {0}, part = {0}, rest = {0};
    tr_histogram_add(&part, values, 400);
    tr_histogram_add(&rest, values + 400, 600);
    tr_histogram_add(&rest, &(float){NAN}, 1);
    tr_histogram_merge(&total, &(struct tr_histogram){0});
    tr_histogram_merge(&total, &part);
    tr_histogram_merge(&total, &(struct tr_histogram){0});
    tr_histogram_merge(&total, &rest);
    assert_int_equal(total.nonfinite, 1);
    total.nonfinite = 0;
    assert_memory_equal(&total, &whole, sizeof whole); /* these sums are exact */
}

/* The extremes of histograms that are merged, in whatever order. */
static void extremes_are_merged(void **state)
{
    (void)state;
    static const float wide[] = {-5, 7}, narrow[] = {1, 2};
    for (int order = 0; order < 2; order++) {
        struct tr_histogram total = {0}, first = {0}, second = {0};
        tr_histogram_add(&first, order ? wide : narrow, 2);
        tr_histogram_add(&second, order ? narrow : wide, 2);
        tr_histogram_merge(&total, &first);
        tr_histogram_merge(&total, &second);
        assert_true(total.min == -5 && total.max == 7);
        assert_int_equal(total.count, 4);
        assert_true(total.sum == 5 && total.sum_squares == 79);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_gives_no_buckets),
        cmocka_unit_test(moments_are_of_finite_numbers),
        cmocka_unit_test(extremes_have_buckets),
        cmocka_unit_test(every_number_is_in_its_bucket),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(extremes_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
