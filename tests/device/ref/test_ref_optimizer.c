/* The update rules of ref against their published formulas in double, and clipping by norm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/differences.h"
#include "device/ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT 50
#define STEPS 5

#define RATE    0.05
#define BETA1   0.9
#define BETA2   0.99
#define EPSILON 1e-3
#define DECAY   0.1
#define L2      0.02
#define AVERAGE 0.8

/* One element through STEPS steps, by the book. */
struct element {
    double w, m, v, vmax, ema;
};

static double clamp(double x, double limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

static void step_by_the_book(const struct tr_op_update *op, double g, int t, double clip_scale,
                             struct element *e)
{
    if (op->rule == TR_RULE_STATISTIC) {
        e->w = e->w + BETA1 * (g - e->w);
        return;
    }
    if (op->clip_norm) g *= clip_scale;
    if (op->clip_value > 0) g = clamp(g, (double)op->clip_value);
    if (op->l2 > 0) g += L2 * e->w;
    double rate = RATE * (double)op->rate_factor;
    if (op->rule == TR_RULE_SGD) e->w -= rate * g;
    if (op->rule == TR_RULE_MOMENTUM) {
        e->m = BETA1 * e->m + g;
        e->w -= rate * (op->nesterov ? BETA1 * e->m + g : e->m);
    }
    if (op->rule == TR_RULE_ADAM || op->rule == TR_RULE_ADAMW) {
        if (op->rule == TR_RULE_ADAMW) e->w -= rate * DECAY * e->w;
        e->m = BETA1 * e->m + (1 - BETA1) * g;
        e->v = BETA2 * e->v + (1 - BETA2) * g * g;
        double m_hat = e->m / (1 - pow(BETA1, t)), v_hat;
        e->vmax = fmax(e->vmax, e->v);
        v_hat = (op->vmax ? e->vmax : e->v) / (1 - pow(BETA2, t));
        e->w -= rate * m_hat / (sqrt(v_hat) + EPSILON);
    }
    if (op->rule == TR_RULE_LION) {
        double u = BETA1 * e->m + (1 - BETA1) * g;
        e->w -= rate * ((u > 0) - (u < 0) + DECAY * e->w);
        e->m = BETA2 * e->m + (1 - BETA2) * g;
    }
    if (op->rule == TR_RULE_RMSPROP) {
        e->v = BETA2 * e->v + (1 - BETA2) * g * g;
        e->m = (op->m ? BETA1 * e->m : 0) + g / (sqrt(e->v) + EPSILON);
        e->w -= rate * e->m;
    }
    if (op->rule == TR_RULE_ADAGRAD) {
        e->v += g * g;
        e->w -= rate * g / (sqrt(e->v) + EPSILON);
    }
    e->ema = AVERAGE * e->ema + (1 - AVERAGE) * e->w;
}

static void expect_near(const char *what, int rule, double ours, double theirs)
{
    if (!(fabs(ours - theirs) <= 2e-6 * (1 + fabs(theirs))))
        fail_msg("rule %d: %s is %.9g, should be %.9g", rule, what, ours, theirs);
}

static void check_rule(struct tr_op_update op)
{
    struct tr_step_scalars scalars = {.rate = (float)RATE, .ema_decay = (float)AVERAGE, .clip_scale = 0.5f};
    float *w = differences_numbers(COUNT, 1), *m = differences_zeros(COUNT), *v = differences_zeros(COUNT);
    float *vmax = differences_zeros(COUNT);
    float *ema = differences_numbers(COUNT, 1);
    struct element e[COUNT];
    for (int i = 0; i < COUNT; i++) e[i] = (struct element){(double)w[i], 0, 0, 0, (double)ema[i]};
    op.count = COUNT;
    op.w = w;
    op.m = op.rule == TR_RULE_RMSPROP && !op.nesterov ? NULL : m;
    op.v = v;
    op.vmax = op.nesterov ? vmax : NULL;
    op.ema = ema;
    op.scalars = &scalars;
    for (int t = 1; t <= STEPS; t++) {
        float *grad = differences_numbers(COUNT, (uint32_t)(10 + t));
        scalars.step = (uint32_t)(t - 1);
        scalars.adam_rate = (float)(RATE / (1 - pow(BETA1, t)));
        scalars.adam_correction = (float)(1 / sqrt(1 - pow(BETA2, t)));
        op.grad = grad;
        assert_int_equal(ref_update(NULL, &op), TR_OK);
        for (int i = 0; i < COUNT; i++) {
            step_by_the_book(&op, (double)grad[i], t, 0.5, &e[i]);
            expect_near("w", op.rule, (double)w[i], e[i].w);
            if (op.rule != TR_RULE_STATISTIC) expect_near("ema", op.rule, (double)ema[i], e[i].ema);
        }
        differences_release(1, &grad);
    }
    assert_int_equal(scalars.nonfinite, 0);
    differences_release(5, (float *[]){w, m, v, vmax, ema});
}

static void test_rules(void **state)
{
    (void)state;
    for (int rule = TR_RULE_SGD; rule <= TR_RULE_STATISTIC; rule++)
        for (int options = 0; options < 16; options++)
            check_rule((struct tr_op_update){.rule = (enum tr_rule)rule,
                                             .nesterov = options & 1,
                                             .clip_norm = options & 2,
                                             .rate_factor = options & 4 ? 1 : 0.25f,
                                             .beta1 = (float)BETA1,
                                             .beta2 = (float)BETA2,
                                             .epsilon = (float)EPSILON,
                                             .decay = (float)DECAY,
                                             .l2 = options & 4 ? (float)L2 : 0,
                                             .clip_value = options & 8 ? 0.3f : 0});
}

/* The flag is raised by any weight that is not finite, whatever the rule, and stays up. */
static void test_nonfinite_is_noticed(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int rule = TR_RULE_SGD; rule <= TR_RULE_STATISTIC; rule++) {
        for (int kind = 0; kind < 3; kind++) {
            float grad[4] = {1, 1, 1, 1}, w[4] = {1, 1, bad[kind], 1}, m[4] = {0}, v[4] = {0};
            struct tr_step_scalars scalars = {.rate = 0.1f, .adam_rate = 0.1f, .adam_correction = 1};
            struct tr_op_update op = {.count = 2,
                                      .rule = (enum tr_rule)rule,
                                      .rate_factor = 1,
                                      .beta1 = 0.5f,
                                      .beta2 = 0.5f,
                                      .epsilon = 1,
                                      .clip_value = 0.5f,
                                      .grad = grad,
                                      .w = w,
                                      .m = m,
                                      .v = v,
                                      .scalars = &scalars};
            assert_int_equal(ref_update(NULL, &op), TR_OK);
            assert_int_equal(scalars.nonfinite, 0);
            op.count = 4;
            assert_int_equal(ref_update(NULL, &op), TR_OK);
            assert_int_equal(scalars.nonfinite, 1);
            op.count = 2;
            assert_int_equal(ref_update(NULL, &op), TR_OK);
            assert_int_equal(scalars.nonfinite, 1);
        }
    }
}

/* Without gradients moments fade, and end at zero instead of among the subnormal numbers, where 0.9 times the
   least one is that one again. */
static void test_moments_end_at_zero(void **state)
{
    (void)state;
    const enum tr_rule rules[] = {TR_RULE_MOMENTUM, TR_RULE_ADAM, TR_RULE_ADAMW, TR_RULE_RMSPROP};
    for (int i = 0; i < 4; i++) {
        float grad = 0, w = 1, m = -1, v = 1;
        struct tr_step_scalars scalars = {.rate = 0.1f, .adam_rate = 0.1f, .adam_correction = 1};
        struct tr_op_update op = {.count = 1,
                                  .rule = rules[i],
                                  .rate_factor = 1,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.9f,
                                  .epsilon = 1e-8f,
                                  .grad = &grad,
                                  .w = &w,
                                  .m = &m,
                                  .v = &v,
                                  .scalars = &scalars};
        for (int step = 0; step < 700; step++) {
            assert_true(m == 0 || fabsf(m) >= 0x1p-100f);
            assert_int_equal(ref_update(NULL, &op), TR_OK);
        }
        assert_true(m == 0 && !signbit(m));
        assert_true(rules[i] == TR_RULE_MOMENTUM ? v == 1 : v == 0);
    }
}

/* Clipping by value must not turn NaN into a number that hides it. */
static void test_nan_gradient_passes_clipping(void **state)
{
    (void)state;
    float grad = NAN, w = 1;
    struct tr_step_scalars scalars = {.rate = 0.1f, .clip_scale = 0.5f};
    struct tr_op_update op = {.count = 1,
                              .rule = TR_RULE_SGD,
                              .rate_factor = 1,
                              .clip_norm = true,
                              .clip_value = 1,
                              .grad = &grad,
                              .w = &w,
                              .scalars = &scalars};
    assert_int_equal(ref_update(NULL, &op), TR_OK);
    assert_true(isnan(w));
    assert_int_equal(scalars.nonfinite, 1);
}

static float clip(float max_norm, int64_t count, const float *squares, float *norm)
{
    struct tr_step_scalars scalars = {.clip_scale = -1};
    struct tr_op_clip_scale op = {
        .count = count, .max_norm = max_norm, .squares = squares, .norm = norm, .scalars = &scalars};
    assert_int_equal(ref_clip_scale(NULL, &op), TR_OK);
    return scalars.clip_scale;
}

static void test_clip_scale(void **state)
{
    (void)state;
    float norm;
    const float squares[] = {9, 4, 12};
    assert_true(clip(2.5f, 3, squares, &norm) == 0.5f && norm == 5);
    assert_true(clip(5, 3, squares, &norm) == 1); /* not above: nothing to clip */
    assert_true(clip(100, 3, squares, &norm) == 1);
    assert_true(clip(1, 0, squares, &norm) == 1 && norm == 0);
    assert_true(clip(1, 1, (const float[]){NAN}, &norm) == 1 && isnan(norm));
    assert_true(clip(1, 1, (const float[]){INFINITY}, &norm) == 0 && isinf(norm));
}

static void test_sum_squares(void **state)
{
    (void)state;
    for (int64_t count = 0; count < 10000; count += 1 + count / 3) {
        float *x = differences_numbers(count, 1), sum;
        double exact = 0;
        struct tr_op_sum_squares op = {.count = count, .x = x, .out = &sum};
        assert_int_equal(ref_sum_squares(NULL, &op), TR_OK);
        for (int64_t i = 0; i < count; i++) exact += (double)x[i] * (double)x[i];
        assert_true(fabs((double)sum - exact) <= 1e-5 * exact);
        differences_release(1, &x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_nonfinite_is_noticed),
        cmocka_unit_test(test_moments_end_at_zero),
        cmocka_unit_test(test_nan_gradient_passes_clipping),
        cmocka_unit_test(test_clip_scale),
        cmocka_unit_test(test_sum_squares),
    };
    return cmocka_run_group_tests_name("optimizer operations of ref", tests, NULL, NULL);
}
