/* Optimizer settings become the right constants, per step and per parameter. */
#include "optim/optimizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static tr_status read_text(const char *text, struct tr_optimizer *out)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "o.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    tr_status status = tr_optimizer_read(root, 1000, out);
    tr_config_destroy(&root);
    return status;
}

static struct tr_optimizer optimizer_of(const char *text)
{
    struct tr_optimizer optimizer;
    if (read_text(text, &optimizer) != TR_OK) fail_msg("%s", tr_error_message());
    assert_null(optimizer.schedule_node);
    return optimizer;
}

static void settings_are_read(void **state)
{
    (void)state;
    struct tr_optimizer optimizer = optimizer_of("{rule: adam, rate: 1e-4}");
    assert_int_equal(optimizer.rule, TR_RULE_ADAM);
    assert_true(optimizer.rate == 1e-4 && optimizer.beta1 == 0.9f && optimizer.beta2 == 0.999f);
    assert_true(optimizer.epsilon == 1e-8f && optimizer.ema == 0 && optimizer.clip_norm == 0 &&
                optimizer.l2 == 0);
    assert_int_equal(optimizer.schedule.kind, TR_SCHEDULE_CONSTANT);
    optimizer = optimizer_of("{rule: sgd, rate: 1/1000, l2: 1e-4, ema: 0.99, "
                             "schedule: {kind: exponential, decay: 0.99, every: 600}}");
    assert_int_equal(optimizer.rule, TR_RULE_SGD);
    assert_true(optimizer.l2 == 1e-4f && optimizer.ema == 0.99f && optimizer.schedule.every == 600);
    optimizer = optimizer_of("{rule: rmsprop, rate: 1}");
    assert_true(optimizer.beta2 == 0.99f && optimizer.epsilon == 1e-8f && optimizer.momentum == 0);
    optimizer = optimizer_of("{rule: rmsprop, rate: 1, beta2: 0.5, momentum: 0.9, epsilon: 1e-3}");
    assert_true(optimizer.beta2 == 0.5f && optimizer.epsilon == 1e-3f && optimizer.momentum == 0.9f);
    assert_true(optimizer_of("{rule: adagrad, rate: 1}").epsilon == 1e-10f);
    optimizer = optimizer_of("{rule: muon, rate: 1}");
    assert_true(optimizer.momentum == 0.95f && optimizer.nesterov && optimizer.beta2 == 0.95f &&
                optimizer.epsilon == 1e-10f && optimizer.adam_rate == 3e-4);
    optimizer =
        optimizer_of("{rule: muon, rate: 1, momentum: 0.5, nesterov: false, beta2: 0.25, epsilon: 1e-3}");
    assert_true(optimizer.momentum == 0.5f && !optimizer.nesterov && optimizer.beta2 == 0.25f &&
                optimizer.epsilon == 1e-3f);
    optimizer = optimizer_of("{rule: momentum, rate: 1}");
    assert_true(optimizer.momentum == 0.9f && !optimizer.nesterov);
    assert_true(optimizer_of("{rule: lamb, rate: 1}").epsilon == 1e-6f);
    assert_true(optimizer_of("{rule: lion, rate: 1, beta2: 0.5}").beta2 == 0.5f);
    optimizer = optimizer_of("{rule: momentum, rate: 0.1, schedule: cosine}");
    assert_int_equal(optimizer.schedule.steps, 1000);
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"adam", "o.yaml:1:1: \"rate\" is missing (learning rate before the schedule)"},
        {"{rate: 1}", "o.yaml:1:1: \"rule\" is missing (the update rule)"},
        {"{rule: adm, rate: 1}",
         "o.yaml:1:8: rule: \"adm\" is none of sgd, momentum, adam, adamw, lion, rmsprop, "
         "adagrad, lamb, muon; did you mean \"adam\"?"},
        {"{rule: sgd, rate: 0}",
         "o.yaml:1:19: rate: 0 is out of range; allowed: > 0 (learning rate before the schedule)"},
        {"{rule: sgd, rate: 1e39}", "o.yaml:1:19: rate: is too large for a 32-bit float"},
        {"{rule: sgd, rate: 1, momentum: 0.9}",
         "o.yaml:1:22: momentum: \"momentum\" belongs to rule: momentum, rmsprop, muon only"},
        {"{rule: momentum, rate: 1, beta1: 0.9}",
         "o.yaml:1:27: beta1: \"beta1\" belongs to rule: adam, adamw, lion, lamb, muon only"},
        {"{rule: adam, rate: 1, weight_decay: 0.9}",
         "o.yaml:1:23: weight_decay: \"weight_decay\" belongs to rule: adamw, lion, lamb, muon only"},
        {"{rule: lamb, rate: 1, l2: 0.9}",
         "o.yaml:1:23: l2: \"l2\" belongs to rule: sgd, momentum, adam, adamw, lion, rmsprop, adagrad only"},
        {"{rule: lamb, rate: 1, adam_rate: 0.9}",
         "o.yaml:1:23: adam_rate: \"adam_rate\" belongs to rule: muon only"},
        {"{rule: adam, rate: 1, beta2: 1}",
         "o.yaml:1:30: beta2: 1 is out of range; allowed: >= 0 and < 1 "
         "(decay of the second moment, of `lion`: of its velocity; default for "
         "`rmsprop` and `lion`: 0.99, for `muon`: 0.95)"},
        {"{rule: adam, rate: 1, learning_rate: 2}",
         "o.yaml:1:23: learning_rate: unknown key \"learning_rate\"; did you mean \"rate\"?"},
        {"{rule: adam, rate: 1, wobble: 2}",
         "o.yaml:1:23: wobble: unknown key \"wobble\"; known are rule, rate, momentum, "
         "nesterov, adam_rate, beta1, "
         "beta2, amsgrad, epsilon, weight_decay, l2, l2_biases, clip_norm, clip_value, sam, ema, ema_warmup, "
         "schedule"},
        {"{rule: sgd, rate: 1, ema_warmup: true}",
         "o.yaml:1:34: ema_warmup: there is no moving average to warm up; set \"ema\" too"},
        {"{rule: sgd, rate: 1, schedule: {kind: cosine, warmup: 1000}}",
         "o.yaml:1:32: schedule: a warm-up of 1000 steps leaves nothing of 1000 steps; set "
         "optimizer.schedule.warmup to 999 or less, or train more than 1000 steps"},
        {"{rule: sgd, rate: 1, schedule: 3}",
         "o.yaml:1:32: schedule: \"3\" is none of constant, exponential, step, cosine, one_cycle, linear, "
         "cosine_restarts, plateau"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_optimizer optimizer;
        assert_int_equal(read_text(cases[i].text, &optimizer), TR_EINVAL);
        if (strcmp(tr_error_message(), cases[i].message) != 0)
            fail_msg("\"%s\" is not \"%s\"", tr_error_message(), cases[i].message);
    }
    struct tr_optimizer optimizer;
    assert_int_equal(tr_optimizer_read(NULL, 1, &optimizer), TR_EINVAL);
    assert_string_equal(tr_error_message(), "optimizer: \"rule\" is missing (the update rule)");
}

static void states_are_those_of_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned states;
    } cases[] = {{"{rule: sgd, rate: 1}", 0},
                 {"{rule: sgd, rate: 1, ema: 0.9}", TR_STATE_EMA},
                 {"{rule: momentum, rate: 1}", TR_STATE_M},
                 {"{rule: adam, rate: 1}", TR_STATE_M | TR_STATE_V},
                 {"{rule: adam, rate: 1, amsgrad: true}", TR_STATE_M | TR_STATE_V | TR_STATE_VMAX},
                 {"{rule: lion, rate: 1}", TR_STATE_M},
                 {"{rule: lamb, rate: 1}", TR_STATE_M | TR_STATE_V},
                 {"{rule: muon, rate: 1, ema: 0.5}", TR_STATE_M | TR_STATE_V | TR_STATE_EMA},
                 {"{rule: rmsprop, rate: 1}", TR_STATE_V},
                 {"{rule: rmsprop, rate: 1, momentum: 0.5}", TR_STATE_M | TR_STATE_V},
                 {"{rule: adagrad, rate: 1}", TR_STATE_V},
                 {"{rule: adamw, rate: 1, ema: 0.5}", TR_STATE_M | TR_STATE_V | TR_STATE_EMA}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_optimizer optimizer = optimizer_of(cases[i].text);
        assert_int_equal(tr_optimizer_states(&optimizer, TR_PARAMETER_WEIGHT), cases[i].states);
        assert_int_equal(tr_optimizer_states(&optimizer, TR_PARAMETER_BIAS), cases[i].states);
        assert_int_equal(tr_optimizer_states(&optimizer, TR_PARAMETER_STATISTIC), 0);
    }
}

/* Equal up to one unit in the last place of a float: the reference rounds from libm's double. */
static void assert_near(float value, double expected)
{
    assert_true(fabs((double)value - expected) <= fabs(expected) * 0x1p-23);
}

static void scalars_follow_the_step(void **state)
{
    (void)state;
    struct tr_optimizer optimizer = optimizer_of("{rule: adam, rate: 1e-3, ema: 0.99, ema_warmup: true, "
                                                 "schedule: {kind: exponential, decay: 0.5, every: 100}}");
    static const int64_t steps[] = {0, 1, 2, 9, 10, 99, 890, 891, 892, 12345, 4000000000};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct tr_step_scalars scalars;
        double t = (double)steps[i], rate = 1e-3 * pow(0.5, t / 100);
        memset(&scalars, 0xA5, sizeof scalars);
        tr_optimizer_scalars(&optimizer, steps[i], &scalars);
        assert_int_equal(scalars.step, steps[i]);
        if (steps[i] < 10000) assert_near(scalars.rate, rate);
        if (steps[i] < 10000) assert_near(scalars.adam_rate, rate / (1 - pow((double)0.9f, t + 1)));
        assert_near(scalars.adam_correction, 1 / sqrt(1 - pow((double)0.999f, t + 1)));
        assert_near(scalars.ema_decay, fmin((double)0.99f, (1 + t) / (10 + t)));
        assert_true(scalars.clip_scale == 1);
        assert_int_equal(scalars.nonfinite, 0);
    }
    optimizer = optimizer_of("{rule: sgd, rate: 0.25, ema: 0.99}");
    struct tr_step_scalars scalars;
    tr_optimizer_scalars(&optimizer, 0, &scalars);
    assert_true(scalars.rate == 0.25f && scalars.ema_decay == 0.99f);
}

static struct tr_op_update paced_update_of(const char *text, enum tr_parameter_kind kind,
                                           const struct tr_pace *pace)
{
    struct tr_optimizer optimizer = optimizer_of(text);
    struct tr_op_update update;
    memset(&update, 0xA5, sizeof update);
    tr_optimizer_update(&optimizer, kind, pace, 0.25f, &update);
    assert_true(update.count == 0 && !update.grad && !update.w && !update.m && !update.v && !update.ema);
    assert_null(update.scalars);
    return update;
}

static struct tr_op_update update_of(const char *text, enum tr_parameter_kind kind)
{
    return paced_update_of(text, kind, &TR_PACE_PLAIN);
}

static void updates_depend_on_rule_and_kind(void **state)
{
    (void)state;
    static const char sgd[] = "{rule: sgd, rate: 1, l2: 0.5, clip_norm: 3, clip_value: 2}";
    struct tr_op_update update = update_of(sgd, TR_PARAMETER_WEIGHT);
    assert_int_equal(update.rule, TR_RULE_SGD);
    assert_true(update.l2 == 0.5f && update.clip_norm && update.clip_value == 2);
    assert_true(update.beta1 == 0 && update.beta2 == 0 && update.epsilon == 0 && update.decay == 0);
    update = update_of(sgd, TR_PARAMETER_BIAS);
    assert_true(update.l2 == 0 && update.clip_norm && update.clip_value == 2);
    update = update_of(sgd, TR_PARAMETER_STATISTIC);
    assert_int_equal(update.rule, TR_RULE_STATISTIC);
    assert_true(update.beta1 == 0.25f && update.l2 == 0 && !update.clip_norm && update.clip_value == 0);

    update = update_of("{rule: momentum, rate: 1, momentum: 0.8, nesterov: true}", TR_PARAMETER_WEIGHT);
    assert_int_equal(update.rule, TR_RULE_MOMENTUM);
    assert_true(update.beta1 == 0.8f && update.nesterov && !update.clip_norm);

    update = update_of("{rule: lion, rate: 1, weight_decay: 0.5}", TR_PARAMETER_WEIGHT);
    assert_int_equal(update.rule, TR_RULE_LION);
    assert_true(update.decay == 0.5f && update.beta1 == 0.9f && update.beta2 == 0.99f);
    update = update_of("{rule: lion, rate: 1, weight_decay: 0.5}", TR_PARAMETER_BIAS);
    assert_true(update.decay == 0);

    update = update_of("{rule: adamw, rate: 1}", TR_PARAMETER_WEIGHT);
    assert_int_equal(update.rule, TR_RULE_ADAMW);
    assert_true(update.decay == 0.01f && update.beta1 == 0.9f && update.beta2 == 0.999f &&
                update.epsilon == 1e-8f);
    assert_false(update.nesterov);
    update = update_of("{rule: adamw, rate: 1, l2: 0.5}", TR_PARAMETER_BIAS);
    assert_true(update.decay == 0 && update.l2 == 0);
    update = update_of("{rule: adamw, rate: 1, l2: 0.5, l2_biases: yes}", TR_PARAMETER_BIAS);
    assert_true(update.decay == 0.01f && update.l2 == 0.5f);
    update = update_of("{rule: adam, rate: 1}", TR_PARAMETER_WEIGHT);
    assert_true(update.decay == 0 && update.rate_factor == 1);
}

static void layers_have_a_pace(void **state)
{
    (void)state;
    static const char text[] = "{rule: adamw, rate: 1, l2: 0.5}";
    const struct tr_pace pace = {.rate_factor = 0.25f, .decay_factor = 4};
    struct tr_op_update update = paced_update_of(text, TR_PARAMETER_WEIGHT, &pace);
    assert_true(update.rate_factor == 0.25f && update.decay == 4 * 0.01f && update.l2 == 2);
    update = paced_update_of(text, TR_PARAMETER_BIAS, &pace);
    assert_true(update.rate_factor == 0.25f && update.decay == 0 && update.l2 == 0);
    update = paced_update_of(text, TR_PARAMETER_STATISTIC, &pace);
    assert_true(update.beta1 == 0.25f && update.l2 == 0);
}

static struct tr_whole_update whole_of(const char *text, enum tr_parameter_kind kind, int64_t in, int64_t out)
{
    static const struct tr_pace pace = {.rate_factor = 0.5f, .decay_factor = 4};
    struct tr_optimizer optimizer = optimizer_of(text);
    struct tr_whole_update whole;
    memset(&whole, 0xA5, sizeof whole);
    bool any = tr_optimizer_whole(&optimizer, kind, &pace, in, out, &whole);
    assert_int_equal(any, whole.kind != TR_WHOLE_NONE);
    assert_true(!any || tr_optimizer_takes_wholes(&optimizer));
    return whole;
}

static void wholes_depend_on_rule_and_kind(void **state)
{
    (void)state;
    assert_int_equal(whole_of("{rule: adamw, rate: 1}", TR_PARAMETER_WEIGHT, 3, 4).kind, TR_WHOLE_NONE);
    assert_int_equal(whole_of("{rule: lamb, rate: 1}", TR_PARAMETER_STATISTIC, 0, 0).kind, TR_WHOLE_NONE);
    assert_int_equal(whole_of("{rule: muon, rate: 1}", TR_PARAMETER_BIAS, 0, 0).kind, TR_WHOLE_NONE);

    struct tr_whole_update lamb = whole_of("{rule: lamb, rate: 1}", TR_PARAMETER_WEIGHT, 3, 4);
    assert_int_equal(lamb.kind, TR_WHOLE_LAMB);
    assert_int_equal(lamb.elements.rule, TR_RULE_ADAM);
    assert_true(lamb.elements.rate_factor == -1 && lamb.elements.epsilon == 1e-6f &&
                lamb.elements.decay == 4 * 0.01f && lamb.ratio);
    assert_true(lamb.advance.rate_factor == 0.5f && lamb.advance.factor == 1 && lamb.advance.decay == 0);
    lamb = whole_of("{rule: lamb, rate: 1}", TR_PARAMETER_BIAS, 0, 0);
    assert_true(lamb.elements.decay == 0 && !lamb.ratio);
    lamb = whole_of("{rule: lamb, rate: 1, l2_biases: true}", TR_PARAMETER_BIAS, 0, 0);
    assert_true(lamb.elements.decay == 4 * 0.01f && lamb.ratio);

    struct tr_whole_update muon = whole_of("{rule: muon, rate: 1}", TR_PARAMETER_WEIGHT, 3, 12);
    assert_int_equal(muon.kind, TR_WHOLE_MUON);
    assert_int_equal(muon.elements.rule, TR_RULE_MOMENTUM);
    assert_true(muon.elements.beta1 == 0.95f && muon.elements.nesterov && muon.elements.rate_factor == -1);
    assert_true(muon.advance.factor == 2 && muon.advance.decay == 4 * 0.01f &&
                muon.advance.rate_factor == 0.5f);
    assert_true(whole_of("{rule: muon, rate: 1}", TR_PARAMETER_WEIGHT, 12, 3).advance.factor == 1);
    /* The rest: AdamW at a rate of its own. */
    struct tr_op_update rest = update_of("{rule: muon, rate: 0.02, adam_rate: 0.005}", TR_PARAMETER_WEIGHT);
    assert_int_equal(rest.rule, TR_RULE_ADAMW);
    assert_true(rest.rate_factor == 0.25f && rest.beta2 == 0.95f && rest.epsilon == 1e-10f);
    /* The correction of LAMB's first moment is no rate. */
    struct tr_optimizer optimizer = optimizer_of("{rule: lamb, rate: 0.25}");
    struct tr_step_scalars scalars;
    tr_optimizer_scalars(&optimizer, 1, &scalars);
    assert_near(scalars.adam_rate, 1 / (1 - (double)0.9f * (double)0.9f));
    assert_near(scalars.rate, 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(states_are_those_of_the_rule),
        cmocka_unit_test(scalars_follow_the_step),
        cmocka_unit_test(updates_depend_on_rule_and_kind),
        cmocka_unit_test(layers_have_a_pace),
        cmocka_unit_test(wholes_depend_on_rule_and_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
