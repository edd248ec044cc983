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

static double warm_line(double step)
{
    double x = fmin(fmax((step - 50) / (1000 - 50), 0), 1);
    return (1 - 0.8 * x) * fmin((step + 1) / 50, 1);
}

/* torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(T_0=30, T_mult=2, eta_min=0.1), rate 1: periods begin
   at 30 (2^k - 1). */
static double restarts(double step)
{
    double k = floor(log2(step / 30 + 1)), begin = 30 * (exp2(k) - 1);
    return 0.1 + 0.9 * (1 + cos(M_PI * (step - begin) / (30 * exp2(k)))) / 2;
}

static double warm_restarts(double step)
{
    double x = step < 10 ? 0 : fmod(step - 10, 70) / 70;
    return (1 + cos(M_PI * x)) / 2 * fmin((step + 1) / 10, 1);
}

static double one_cycle(double step)
{
    double top = 0.25 * 800;
    if (step < top) return 0.04 + 0.96 * (1 - cos(M_PI * step / top)) / 2;
    return 0.001 + 0.999 * (1 + cos(M_PI * fmin((step - top) / (800 - top), 1))) / 2;
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=800, pct_start=0.3, div_factor=25): its phases
   end at steps 0.3 * 800 - 1 and 799. */
static double pytorch_cycle(double step)
{
    double start = 1.0 / 25, last = start / 1e4, top = 0.3 * 800 - 1;
    if (step <= top) return start + (1 - start) * (1 - cos(M_PI * step / top)) / 2;
    return last + (1 - last) / 2 * (1 + cos(M_PI * fmin((step - top) / (799 - top), 1)));
}

static double pytorch_cycle_to_a_tenth(double step)
{
    double top = 0.5 * 1000 - 1;
    if (step <= top) return 0.5 + 0.5 * (1 - cos(M_PI * step / top)) / 2;
    return 0.1 + 0.9 / 2 * (1 + cos(M_PI * fmin((step - top) / (999 - top), 1)));
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
        {"{kind: linear, warmup: 50, final: 0.2}", warm_line},
        {"{kind: cosine_restarts, every: 30, growth: 2, final: 0.1}", restarts},
        {"{kind: cosine_restarts, every: 70, warmup: 10}", warm_restarts},
        {"{kind: one_cycle, steps: 800, rise: 0.25, final: 0.001}", one_cycle},
        {"{kind: one_cycle, steps: 800, form: pytorch}", pytorch_cycle},
        {"{kind: one_cycle, form: pytorch, start: 0.5, rise: 0.5, final: 0.1}", pytorch_cycle_to_a_tenth},
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

/* torch.optim.lr_scheduler.ReduceLROnPlateau(factor=0.5, patience=1, threshold=0.1, min_lr=0.2) over these
   losses, by hand: a loss is better below 0.9 of the best; the second worse one in a row lowers the rate. */
static void plateaus_lower_the_rate(void **state)
{
    (void)state;
    static const struct {
        double loss, factor;
    } seen[] = {{10, 1},  {9.5, 1},           {8.9, 1},  {8.5, 1},  {9, 0.5}, {8, 0.5}, {8, 0.5},
                {7, 0.5}, {(double)NAN, 0.5}, {7, 0.25}, {7, 0.25}, {7, 0.2}, {7, 0.2}, {7, 0.2}};
    struct tr_schedule schedule =
        schedule_of("{kind: plateau, factor: 0.5, patience: 1, threshold: 0.1, final: 0.2, warmup: 4}", 100);
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        double before = schedule.plateau.factor;
        bool fell = tr_schedule_evaluated(&schedule, seen[i].loss);
        if (schedule.plateau.factor != seen[i].factor)
            fail_msg("evaluation %zu: %g, not %g", i, schedule.plateau.factor, seen[i].factor);
        assert_true(fell == (schedule.plateau.factor < before));
        assert_true(tr_schedule_factor(&schedule, 50) == seen[i].factor);
        assert_true(tr_schedule_factor(&schedule, 1) == seen[i].factor / 2);
    }
    /* What should be great comes as its negative: better is above 1.1 of the best. */
    schedule = schedule_of("{kind: plateau, factor: 0.5, patience: 0, threshold: 0.1}", 100);
    static const double greater[] = {0.5, 0.54, 0.56, 0.6};
    static const double factors[] = {1, 0.5, 0.5, 0.25};
    for (int i = 0; i < 4; i++) {
        tr_schedule_evaluated(&schedule, -greater[i]);
        assert_true(schedule.plateau.factor == factors[i]);
    }
    schedule = schedule_of("plateau", 100);
    assert_true(schedule.patience == 10 && schedule.threshold == 1e-4 && schedule.factor == 0.1);
    schedule = schedule_of("cosine", 100);
    assert_false(tr_schedule_evaluated(&schedule, 1));
}

static void bad_schedules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"triangle", "s.yaml:1:1: \"triangle\" is none of constant, exponential, step, cosine, one_cycle, "
                     "linear, cosine_restarts, plateau"},
        {"cosin", "s.yaml:1:1: \"cosin\" is none of constant, exponential, step, cosine, one_cycle, linear, "
                  "cosine_restarts, plateau; did you mean \"cosine\"?"},
        {"CosineAnnealingWarmRestarts",
         "s.yaml:1:1: \"CosineAnnealingWarmRestarts\" is none of constant, exponential, step, cosine, "
         "one_cycle, linear, cosine_restarts, plateau; did you mean \"cosine_restarts\"?"},
        {"cosine_restarts",
         "s.yaml:1:1: \"every\" is missing (steps in which the rate is multiplied by `decay` "
         "once; for `cosine_restarts` those of the first period)"},
        {"{kind: linear, warmup: 100}",
         "s.yaml:1:1: a warm-up of 100 steps leaves nothing of 100 steps; set "
         "optimizer.schedule.warmup to 99 or less, or train more than 100 steps"},
        {"exponential", "s.yaml:1:1: \"decay\" is missing (factor per `every` steps)"},
        {"{kind: exponential, decay: 0.5}",
         "s.yaml:1:1: \"every\" is missing (steps in which the rate is multiplied by `decay` once; for "
         "`cosine_restarts` those of the first period)"},
        {"{kind: exponential, decay: 1.5, every: 1}",
         "s.yaml:1:28: decay: 1.5 is out of range; allowed: > 0 and <= 1 (factor per `every` steps)"},
        {"{kind: cosine, every: 5}",
         "s.yaml:1:16: every: \"every\" belongs to kind: exponential, cosine_restarts only"},
        {"{kind: step}", "s.yaml:1:1: \"milestones\" is missing (ascending steps; at each the rate is "
                         "multiplied by `factor`)"},
        {"{kind: step, milestones: []}", "s.yaml:1:1: \"milestones\" is empty; name at least one step"},
        {"{kind: step, milestones: [5, 5]}", "s.yaml:1:1: milestones must ascend: 5 follows 5"},
        {"{kind: cosine, warmup: 100}",
         "s.yaml:1:1: a warm-up of 100 steps leaves nothing of 100 steps; set "
         "optimizer.schedule.warmup to 99 or less, or train more than 100 steps"},
        {"{kind: cosine, warmup: 5, steps: 3}",
         "s.yaml:1:1: a warm-up of 5 steps leaves nothing of 3 steps; set "
         "optimizer.schedule.warmup to 2 or less, or train more than 5 steps"},
        {"{kind: plateau, factor: 1}", "s.yaml:1:1: a factor of 1 does not lower the rate; give one below 1"},
        {"{kind: cosine, form: pytorch}", "s.yaml:1:16: form: \"form\" belongs to kind: one_cycle only"},
        {"{kind: step, milestones: 5, patience: 3}",
         "s.yaml:1:29: patience: \"patience\" belongs to kind: plateau only"},
        {"{kind: one_cycle, warmup: 5}", "s.yaml:1:19: warmup: \"warmup\" belongs to kind: constant, "
                                         "exponential, step, cosine, linear, cosine_restarts, plateau only"},
        {"{kind: one_cycle, rise: 1}", "s.yaml:1:25: rise: 1 is out of range; allowed: > 0 and < 1 (fraction "
                                       "of `steps` in which the rate rises)"},
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
        cmocka_unit_test(plateaus_lower_the_rate),
        cmocka_unit_test(bad_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
