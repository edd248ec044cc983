/* Initializers: their forms, the distributions they draw from, and that an element depends on its place
 * alone. */
#include "optim/initializer.h"

#include "base/alloc.h"
#include "optim/normal.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- forms ---- */

static tr_status read_text(const char *text, struct tr_initializer *out)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "i.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    tr_status status = tr_initializer_read(root, NULL, out);
    tr_config_destroy(&root);
    return status;
}

static void forms_are_read_and_dumped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *dump;
    } cases[] = {
        {"0.1", "{\"constant\": {\"value\": 0.1}}"},
        {"-1/4", "{\"constant\": {\"value\": -0.25}}"},
        {"constant: 2", "{\"constant\": {\"value\": 2}}"},
        {"constant: {value: 2}", "{\"constant\": {\"value\": 2}}"},
        {"zeros", "{\"zeros\": {}}"},
        {"ones:", "{\"ones\": {}}"},
        {"normal: 0.5", "{\"normal\": {\"deviation\": 0.5, \"mean\": 0}}"},
        {"normal: {deviation: 0.5, mean: 1}", "{\"normal\": {\"deviation\": 0.5, \"mean\": 1}}"},
        {"truncated_normal: 0.1", "{\"truncated_normal\": {\"deviation\": 0.1, \"mean\": 0}}"},
        {"uniform: 0.05", "{\"uniform\": {\"low\": -0.05, \"high\": 0.05}}"},
        {"uniform: [-1, 3]", "{\"uniform\": {\"low\": -1, \"high\": 3}}"},
        {"uniform: {low: 1, high: 1}", "{\"uniform\": {\"low\": 1, \"high\": 1}}"},
        {"glorot_uniform", "{\"glorot_uniform\": {\"scale\": 1}}"},
        {"glorot_normal: 0.5", "{\"glorot_normal\": {\"scale\": 0.5}}"},
        {"he_uniform: {}", "{\"he_uniform\": {\"scale\": 1}}"},
        {"he_normal: {scale: 2}", "{\"he_normal\": {\"scale\": 2}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_initializer initializer, again;
        char *dump, *second;
        if (read_text(cases[i].text, &initializer) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(tr_initializer_dump(&initializer, &dump), TR_OK);
        assert_string_equal(dump, cases[i].dump);
        assert_int_equal(read_text(dump, &again), TR_OK);
        assert_int_equal(tr_initializer_dump(&again, &second), TR_OK);
        assert_string_equal(second, dump);
        tr_free(dump);
        tr_free(second);
    }
    struct tr_initializer initializer;
    assert_int_equal(tr_initializer_read(NULL, "{uniform: 0.05}", &initializer), TR_OK);
    assert_int_equal(initializer.kind, TR_INIT_UNIFORM);
    assert_true(initializer.low == -0.05);
}

#define KINDS                                                                                                \
    "is none of constant, zeros, ones, normal, truncated_normal, uniform, glorot_uniform, glorot_normal, "   \
    "he_uniform, he_normal"
#define FORM                                                                                                 \
    "write a number (constant), a name such as he_normal, or a name with its options such as "               \
    "{truncated_normal: 0.1}"

static void bad_forms_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"he_norml", "i.yaml:1:1: initializer \"he_norml\" " KINDS "; did you mean \"he_normal\"?"},
        {"lecun", "i.yaml:1:1: initializer \"lecun\" " KINDS "; " FORM},
        {"[1]", "i.yaml:1:1: a list stands where a choice of initializer is expected; " FORM},
        {"{zeros: , ones: }",
         "i.yaml:1:1: a mapping stands where a choice of initializer is expected; " FORM},
        {"~", "i.yaml:1:1: nothing stands where a choice of initializer is expected; " FORM},
        {"normal", "i.yaml:1:1: normal: \"deviation\" is missing (standard deviation)"},
        {"normal:", "i.yaml:1:8: normal: \"deviation\" is missing (standard deviation)"},
        {"normal: -1", "i.yaml:1:9: normal: -1 is out of range; allowed: >= 0 (standard deviation)"},
        {"normal: {std: 1}", "i.yaml:1:10: normal.std: unknown key \"std\"; known are deviation, mean"},
        {"constant: x", "i.yaml:1:11: constant: \"x\" is not a number (the value of every element)"},
        {"uniform: x", "i.yaml:1:10: uniform: \"x\" is not a number (greatest value)"},
        {"uniform: [1]", "i.yaml:1:10: uniform: a list of 1; expected [low, high]"},
        {"uniform: [1, [2]]", "i.yaml:1:14: uniform[1]: expected a number, found a list"},
        {"uniform: [1, 0]", "i.yaml:1:10: uniform: low 1 is greater than high 0"},
        {"uniform: -0.1", "i.yaml:1:10: uniform: low 0.1 is greater than high -0.1"},
        {"zeros: 1", "i.yaml:1:8: zeros: takes no options"},
        {"1e39", "i.yaml:1:1: a number exceeds the range of 32-bit floats (3.4e38)"},
        {"normal: 1e39", "i.yaml:1:1: a number exceeds the range of 32-bit floats (3.4e38)"},
        {"he_normal: -1", "i.yaml:1:12: he_normal: -1 is out of range; allowed: >= 0 (factor on the spread)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_initializer initializer;
        assert_int_equal(read_text(cases[i].text, &initializer), TR_EINVAL);
        if (strcmp(tr_error_message(), cases[i].message) != 0)
            fail_msg("\"%s\" is not \"%s\"", tr_error_message(), cases[i].message);
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_initializer initializer;
        char *text = NULL;
        refuse_begin(at);
        tr_status status = tr_initializer_read(NULL, "{uniform: 0.05}", &initializer);
        if (status == TR_OK) status = tr_initializer_dump(&initializer, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(text);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

/* ---- numbers ---- */

/* The error of z as the normal quantile of p = (1 + s) / 2, by one step of Newton's method with erfc. */
static double quantile_error(double s, double z)
{
    double magnitude = fabs(s), x = fabs(z);
    /* Near the middle and in the tail, each with the function that loses no digits there. */
    double excess =
        magnitude < 0.5 ? (erf(x * M_SQRT1_2) - magnitude) / 2 : ((1 - magnitude) - erfc(x * M_SQRT1_2)) / 2;
    return excess / (exp(-x * x / 2) * M_2_SQRTPI * M_SQRT1_2 / 2);
}

static void quantiles_are_those_of_the_normal_law(void **state)
{
    (void)state;
    double worst = 0, previous = -INFINITY;
    for (uint64_t i = 0; i < 400000; i++) {
        /* All over the range, denser at both ends and in the middle. */
        uint32_t word = i < 1000     ? (uint32_t)i
                        : i < 200000 ? (uint32_t)((i - 1000) * 10791)
                        : i < 201000 ? 0x80000000u - 500 + (uint32_t)(i - 200000)
                        : i < 399000 ? 0x80000000u + (uint32_t)((i - 201000) * 10845)
                                     : UINT32_MAX - (uint32_t)(399999 - i);
        double s = normal_symmetric(word), z = normal_quantile(s);
        assert_true(z == -normal_quantile(-s));
        if (i < 1000 || i >= 399000) assert_true(i == 399000 || z > previous);
        previous = z;
        worst = fmax(worst, fabs(quantile_error(s, z) / z));
    }
    print_message("greatest relative error %.2e\n", worst);
    assert_true(worst < 2e-9);
    assert_true(normal_symmetric(0) == -normal_symmetric(UINT32_MAX));
    assert_true(normal_symmetric(0x80000000u) == 0x1p-32);
    for (double x = 0x1p-32; x < 2; x *= 1.00137) assert_true(fabs(normal_minus_log(x) + log(x)) < 2e-11);
}

#define COUNT 2000000

static float *filled(const char *text, int64_t fan_in, int64_t fan_out, double *mean, double *variance)
{
    struct tr_initializer initializer;
    if (read_text(text, &initializer) != TR_OK) fail_msg("%s", tr_error_message());
    float *x = tr_alloc(COUNT, sizeof *x);
    assert_non_null(x);
    tr_initializer_fill(&initializer, fan_in, fan_out, tr_rng_key_make(7, TR_RNG_INIT), 3, 0, COUNT, x);
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) sum += (double)x[i];
    *mean = sum / COUNT;
    for (int i = 0; i < COUNT; i++) squares += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *variance = squares / COUNT;
    return x;
}

/* How far the counts in BINS equally likely parts are from equal, in standard deviations of chi-square.
   `cumulative` maps a value to its probability. */
#define BINS 100
static double unevenness(const float *x, double (*cumulative)(double))
{
    int64_t count[BINS] = {0};
    for (int i = 0; i < COUNT; i++) {
        int bin = (int)(cumulative((double)x[i]) * BINS);
        count[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    }
    double chi = 0, expected = (double)COUNT / BINS;
    for (int i = 0; i < BINS; i++)
        chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return fabs(chi - (BINS - 1)) / sqrt(2 * (BINS - 1));
}

static double normal_law(double x)
{
    return erfc(-(x - 1) / 0.5 * M_SQRT1_2) / 2;
}

static double truncated_law(double x)
{
    return (erf(x / 0.1 * M_SQRT1_2) / erf(M_SQRT2) + 1) / 2;
}

static double uniform_law(double x)
{
    return (x + 1) / 4;
}

static void distributions_are_right(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double mean, variance, fourth; /* moments; fourth: of (x - mean) / deviation */
        double low, high;
        double (*law)(double);
    } cases[] = {
        {"normal: {mean: 1, deviation: 0.5}", 1, 0.25, 3, -INFINITY, INFINITY, normal_law},
        /* Variance 1 - 2 * 2 phi(2) / P(|z| < 2). */
        {"truncated_normal: 0.1", 0, 0.01 * 0.7737413035, 2.3655, -0.2, 0.2, truncated_law},
        {"uniform: [-1, 3]", 1, 16.0 / 12, 1.8, -1, 3, uniform_law},
        {"glorot_uniform", 0, 2.0 / 300, 1.8, -0.141421357, 0.141421357, NULL}, /* sqrt(6 / 300) */
        {"glorot_normal", 0, 2.0 / 300, 3, -INFINITY, INFINITY, NULL},
        {"he_uniform", 0, 2.0 / 100, 1.8, -0.244948975, 0.244948975, NULL}, /* sqrt(6 / 100) */
        {"he_normal: {scale: 2}", 0, 8.0 / 100, 3, -INFINITY, INFINITY, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double mean, variance;
        float *x = filled(cases[i].text, 100, 200, &mean, &variance);
        /* Five standard errors; that of the variance follows from the fourth moment. */
        assert_true(fabs(mean - cases[i].mean) < 5 * sqrt(cases[i].variance / COUNT));
        assert_true(fabs(variance / cases[i].variance - 1) < 5 * sqrt((cases[i].fourth - 1) / COUNT));
        float least = x[0], most = x[0];
        for (int j = 0; j < COUNT; j++) {
            least = x[j] < least ? x[j] : least;
            most = x[j] > most ? x[j] : most;
        }
        assert_true((double)least >= (double)(float)cases[i].low &&
                    (double)most <= (double)(float)cases[i].high);
        if (isfinite(cases[i].high))
            assert_true((double)(most - least) > 0.999 * (cases[i].high - cases[i].low));
        if (cases[i].law) assert_true(unevenness(x, cases[i].law) < 5);
        tr_free(x);
    }
}

static void constants_are_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        float value;
    } cases[] = {{"0.1", 0.1f}, {"constant: -2.5", -2.5f}, {"zeros", 0}, {"ones", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double mean, variance;
        float *x = filled(cases[i].text, 100, 200, &mean, &variance);
        for (int j = 0; j < COUNT; j++) assert_true(x[j] == cases[i].value);
        tr_free(x);
    }
}

static void elements_depend_on_their_place_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"normal: 1", "truncated_normal: 1", "uniform: 1", "0.5", "zeros",
                                        "ones"};
    enum { SIZE = 5000 };
    tr_rng_key key = tr_rng_key_make(7, TR_RNG_INIT), other = tr_rng_key_make(8, TR_RNG_INIT);
    static const int64_t starts[] = {0, ((int64_t)1 << 34) - 1234, ((int64_t)1 << 40) + 3};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t j = 0; j < sizeof starts / sizeof starts[0]; j++) {
            struct tr_initializer initializer;
            float whole[SIZE], parts[SIZE];
            assert_int_equal(read_text(texts[i], &initializer), TR_OK);
            int64_t begin = starts[j], end = begin + SIZE;
            tr_initializer_fill(&initializer, 1, 1, key, 5, begin, end, whole);
            for (int64_t at = begin, step = 1; at < end; at += step, step = step * 7 % 613) {
                int64_t to = at + step < end ? at + step : end;
                tr_initializer_fill(&initializer, 1, 1, key, 5, at, to, parts + (at - begin));
            }
            assert_memory_equal(parts, whole, sizeof whole);
            tr_initializer_fill(&initializer, 1, 1, key, 5, begin, begin, parts); /* nothing */
            assert_memory_equal(parts, whole, sizeof whole);
            if (i > 2) continue;
            /* Other parameters, seeds and places have other numbers. */
            int same = 0;
            tr_initializer_fill(&initializer, 1, 1, key, 6, begin, end, parts);
            for (int k = 0; k < SIZE; k++) same += parts[k] == whole[k];
            tr_initializer_fill(&initializer, 1, 1, other, 5, begin, end, parts);
            for (int k = 0; k < SIZE; k++) same += parts[k] == whole[k];
            tr_initializer_fill(&initializer, 1, 1, key, 5, begin + ((int64_t)1 << 34),
                                end + ((int64_t)1 << 34), parts);
            for (int k = 0; k < SIZE; k++) same += parts[k] == whole[k];
            assert_true(same < 5);
        }
    }
}

/* These bits are part of the promise that a run can be repeated: they never change. */
static void bits_are_fixed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        float value[5]; /* of elements 0, 1, 2, 3, 1000003 of parameter 2 with seed 1 */
    } cases[] = {
        {"normal: 1", {0x1.353be6p+1f, -0x1.0ccc5p-2f, 0x1.b49aacp-2f, 0x1.1344b2p+1f, 0x1.3aef3cp+0f}},
        {"truncated_normal: 0.1",
         {0x1.807658p-3f, -0x1.9a158ep-6f, 0x1.4c76eap-5f, 0x1.6bea6ap-3f, 0x1.d30ed2p-4f}},
        {"uniform: [-1, 3]",
         {0x1.7bfb4cp+1f, 0x1.2bf7cap-1f, 0x1.a90b16p+0f, 0x1.77eec4p+1f, 0x1.4808b2p+1f}},
        {"he_normal", {0x1.238c7p+0f, -0x1.fad9bep-4f, 0x1.9ba266p-3f, 0x1.038686p+0f, 0x1.28ec52p-1f}},
        {"glorot_uniform", {0x1.20f6aap-2f, -0x1.e64d3cp-5f, 0x1.83b4a4p-4f, 0x1.1c5202p-2f, 0x1.cac89cp-3f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_initializer initializer;
        float x[5];
        tr_rng_key key = tr_rng_key_make(1, TR_RNG_INIT);
        assert_int_equal(read_text(cases[i].text, &initializer), TR_OK);
        tr_initializer_fill(&initializer, 9, 64, key, 2, 0, 4, x);
        tr_initializer_fill(&initializer, 9, 64, key, 2, 1000003, 1000004, x + 4);
        for (int j = 0; j < 5; j++) {
            if (x[j] != cases[i].value[j])
                fail_msg("%s: element %d is %a, not %a", cases[i].text, j, (double)x[j],
                         (double)cases[i].value[j]);
        }
    }
}

/* Whatever instruction set computes them. */
static void normal_numbers_follow_their_formula(void **state)
{
    (void)state;
    enum { SIZE = 4096 + 3 };
    static const struct {
        const char *text;
        double mean, deviation, within;
    } cases[] = {{"normal: {deviation: 0.3, mean: 1}", 1, 0.3, 1},
                 {"truncated_normal: {deviation: 2, mean: -0.1}", -0.1, 2, 0x1.e8b4307d3627ap-1}};
    const tr_rng_key key = tr_rng_key_make(3, TR_RNG_INIT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_initializer initializer;
        float x[SIZE];
        assert_int_equal(read_text(cases[i].text, &initializer), TR_OK);
        tr_initializer_fill(&initializer, 1, 1, key, 4, 1, 1 + SIZE, x);
        for (int k = 0; k < SIZE; k++) {
            uint32_t word[4];
            tr_rng_philox(key, 4, (uint32_t)(k + 1) / 4, 0, 0, word);
            const double z = normal_quantile(cases[i].within * normal_symmetric(word[(k + 1) % 4]));
            const float expected = (float)(cases[i].mean + cases[i].deviation * z);
            if (memcmp(&x[k], &expected, sizeof expected) != 0)
                fail_msg("%s: element %d is %a, not %a", cases[i].text, k + 1, (double)x[k],
                         (double)expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read_and_dumped),
        cmocka_unit_test(bad_forms_are_refused),
        cmocka_unit_test(quantiles_are_those_of_the_normal_law),
        cmocka_unit_test(distributions_are_right),
        cmocka_unit_test(constants_are_everywhere),
        cmocka_unit_test(elements_depend_on_their_place_alone),
        cmocka_unit_test(bits_are_fixed),
        cmocka_unit_test(normal_numbers_follow_their_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
