/* Schedules against their closed forms, computed with libm; and what is refused. */
#include "optim/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static tr_status read_text(const char *text, int64_t training_steps, struct tr_schedule *out)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "s.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    tr_status status = tr_schedule_read(root, training_steps, out);
    tr_config_destroy(&root);
    return status;
}

static struct tr_schedule schedule_of(const char *text, int64_t training_steps)
{
    struct tr_schedule schedule;
    if (read_text(text, training_steps, &schedule) != TR_OK) fail_msg("%s", tr_error_message());
    return schedule;
}

static double constant(double step)
{
    (void)step;
    return 1;
}

static double smooth(double step)
{
    return pow(0.99, step / 600);
}

static double stairs(double step)
{
    return pow(0.99, floor(step / 600));
}

static double milestones(double step)
{
    return step < 100 ? 1 : step < 250 ? 0.5 : step < 1000 ? 0.25 : 0.125;
}

static double cosine(double step)
{
    double x = fmin(step / 1000, 1);
    return 0.1 + 0.9 * (1 + cos(M_PI * x)) / 2;
}

static double warm_cosine(double step)
{
    double x = fmin(fmax((step - 50) / (1000 - 50), 0), 1);
    return (1 + cos(M_PI * x)) / 2 * fmin((step + 1) / 50, 1);
}

static double one_cycle(double step)
{
    double top = 0.25 * 800;
    if (step < top) return 0.04 + 0.96 * (1 - cos(M_PI * step / top)) / 2;
    return 0.001 + 0.999 * (1 + cos(M_PI * fmin((step - top) / (800 - top), 1))) / 2;
}

static double warm_stairs(double step)
{
    return stairs(step) * fmin((step + 1) / 700, 1);
}

static double warm_constant(double step)
{
    return fmin((step + 1) / 3, 1);
}

static void factors_follow_their_closed_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double (*form)(double);
    } cases[] = {
        {"~", constant},
        {"constant", constant},
        {"{kind: constant, warmup: 3}", warm_constant},
        {"{kind: exponential, decay: 0.99, every: 600}", smooth},
        {"{kind: exponential, decay: 0.99, every: 600, staircase: true}", stairs},
        {"{kind: exponential, decay: 0.99, every: 600, staircase: true, warmup: 700}", warm_stairs},
        {"{kind: step, milestones: [100, 250, 1000], factor: 0.5}", milestones},
        {"{kind: cosine, final: 0.1}", cosine},
        {"{kind: cosine, final: 0.1, steps: 1000}", cosine},
        {"{kind: cosine, warmup: 50}", warm_cosine},
        {"{kind: one_cycle, steps: 800, rise: 0.25, final: 0.001}", one_cycle},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_schedule schedule = schedule_of(cases[i].text, 1000);
        for (int64_t step = 0; step < 5000; step++) {
            double factor = tr_schedule_factor(&schedule, step), expected = cases[i].form((double)step);
            if (!(fabs(factor - expected) <= 1e-14))
                fail_msg("%s at %lld: %.17g, not %.17g", cases[i].text, (long long)step, factor, expected);
        }
    }
    struct tr_schedule schedule;
    assert_int_equal(tr_schedule_read(NULL, 1, &schedule), TR_OK);
    assert_int_equal(schedule.kind, TR_SCHEDULE_CONSTANT);
}

static void the_ends_are_exact(void **state)
{
    (void)state;
    struct tr_schedule cosine_rate = schedule_of("{kind: cosine, final: 0.25, warmup: 10}", 100);
    assert_true(tr_schedule_factor(&cosine_rate, 9) == 1);
    assert_true(tr_schedule_factor(&cosine_rate, 10) == 1);
    assert_true(tr_schedule_factor(&cosine_rate, 100) == 0.25);
    assert_true(tr_schedule_factor(&cosine_rate, INT64_MAX - 1) == 0.25);
    struct tr_schedule cycle = schedule_of("one_cycle", 100);
    assert_true(tr_schedule_factor(&cycle, 0) == 0.04);
    assert_true(tr_schedule_factor(&cycle, 30) == 1);
    assert_true(tr_schedule_factor(&cycle, 100) == 0);
    struct tr_schedule exponential = schedule_of("{kind: exponential, decay: 0.5, every: 10}", 100);
    assert_true(tr_schedule_factor(&exponential, 30) == 0.125);
    assert_true(tr_schedule_factor(&exponential, (int64_t)1 << 60) == 0);
}

static void bad_schedules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"linear", "s.yaml:1:1: \"linear\" is none of constant, exponential, step, cosine, one_cycle"},
        {"cosin",
         "s.yaml:1:1: \"cosin\" is none of constant, exponential, step, cosine, one_cycle; did you mean "
         "\"cosine\"?"},
        {"exponential", "s.yaml:1:1: \"decay\" is missing (factor per `every` steps)"},
        {"{kind: exponential, decay: 0.5}",
         "s.yaml:1:1: \"every\" is missing (steps after which the rate has been multiplied by `decay` once)"},
        {"{kind: exponential, decay: 1.5, every: 1}",
         "s.yaml:1:28: decay: 1.5 is out of range; allowed: > 0 and <= 1 (factor per `every` steps)"},
        {"{kind: cosine, every: 5}", "s.yaml:1:16: every: \"every\" belongs to kind: exponential only"},
        {"{kind: step}",
         "s.yaml:1:1: \"milestones\" is missing (steps, ascending, from which on `factor` acts once more)"},
        {"{kind: step, milestones: []}", "s.yaml:1:1: \"milestones\" is empty; name at least one step"},
        {"{kind: step, milestones: [5, 5]}", "s.yaml:1:1: milestones must ascend: 5 follows 5"},
        {"{kind: cosine, warmup: 100}", "s.yaml:1:1: a warm-up of 100 steps leaves nothing of 100 steps"},
        {"{kind: cosine, warmup: 5, steps: 3}", "s.yaml:1:1: a warm-up of 5 steps leaves nothing of 3 steps"},
        {"{kind: one_cycle, warmup: 5}",
         "s.yaml:1:19: warmup: \"warmup\" belongs to kind: constant, exponential, step, cosine only"},
        {"{kind: one_cycle, rise: 1}", "s.yaml:1:25: rise: 1 is out of range; allowed: > 0 and < 1 (share of "
                                       "`steps` in which the rate rises)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_schedule schedule;
        assert_int_equal(read_text(cases[i].text, 100, &schedule), TR_EINVAL);
        if (strcmp(tr_error_message(), cases[i].message) != 0)
            fail_msg("\"%s\" is not \"%s\"", tr_error_message(), cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_follow_their_closed_forms),
        cmocka_unit_test(the_ends_are_exact),
        cmocka_unit_test(bad_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
