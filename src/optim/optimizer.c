/* Optimizer settings, and the constants computed from them. */
#include "optim/optimizer.h"

#include "base/fail.h"
#include "base/numbers/math.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* The state that an update rule keeps for a parameter, and which of the optimizer's constants its update
   uses. */
struct rule {
    TR_ENTRY; /* options are those of all rules, below */
    unsigned states;
    bool corrects; /* uses the step's scalars to correct the bias of its moments */
    /* Override the option table's defaults, which are those of Adam and momentum; 0: no override. */
    float beta2, epsilon;
    float momentum;
    bool nesterov;
    bool momentum_is_extra; /* momentum is off unless given, and only then there is its state, TR_STATE_M */
    bool whole;             /* parameters are updated as wholes, by several operations */
    /* The rule for elementwise updates, where this rule is not in enum tr_rule. */
    enum tr_rule elements;
    void (*constants)(const struct tr_optimizer *optimizer, struct tr_op_update *update); /* NULL: none */
};

static void momentum_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    update->nesterov = optimizer->nesterov;
    update->beta1 = optimizer->momentum;
}

static void adam_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    update->beta1 = optimizer->beta1;
    update->beta2 = optimizer->beta2;
    update->epsilon = optimizer->epsilon;
}

static void adamw_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    adam_constants(optimizer, update);
    update->decay = optimizer->weight_decay;
}

static void lion_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    update->beta1 = optimizer->beta1;
    update->beta2 = optimizer->beta2;
    update->decay = optimizer->weight_decay;
}

static void rmsprop_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    update->beta1 = optimizer->momentum;
    update->beta2 = optimizer->beta2;
    update->epsilon = optimizer->epsilon;
}

static void adagrad_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    update->epsilon = optimizer->epsilon;
}

static void muon_constants(const struct tr_optimizer *optimizer, struct tr_op_update *update)
{
    adamw_constants(optimizer, update);
    update->rate_factor *= (float)(optimizer->adam_rate / optimizer->rate);
}

/* In the order of enum tr_rule, then of enum tr_whole_rule. */
static const struct rule rules[] = {
    [TR_RULE_SGD] = {.name = "sgd", .help = "w -= rate * g"},
    [TR_RULE_MOMENTUM] = {.name = "momentum",
                          .help = "v = momentum * v + g; w -= rate * v",
                          .states = TR_STATE_M,
                          .constants = momentum_constants},
    [TR_RULE_ADAM] = {.name = "adam",
                      .help = "Adam with bias correction",
                      .states = TR_STATE_M | TR_STATE_V,
                      .corrects = true,
                      .constants = adam_constants},
    [TR_RULE_ADAMW] = {.name = "adamw",
                       .help = "Adam with decoupled weight decay",
                       .states = TR_STATE_M | TR_STATE_V,
                       .corrects = true,
                       .constants = adamw_constants},
    [TR_RULE_LION] = {.name = "lion",
                      .help = "u = beta1 * v + (1 - beta1) * g; w -= rate * (sign(u) + weight_decay * w); "
                              "v = beta2 * v + (1 - beta2) * g (Chen and others 2023)",
                      .states = TR_STATE_M,
                      .beta2 = 0.99f,
                      .constants = lion_constants},
    [TR_RULE_RMSPROP] = {.name = "rmsprop",
                         .help = "v = beta2 * v + (1 - beta2) * g^2; w -= rate * g / (sqrt(v) + epsilon), "
                                 "through a velocity where `momentum` is given",
                         .states = TR_STATE_M | TR_STATE_V,
                         .beta2 = 0.99f,
                         .momentum_is_extra = true,
                         .constants = rmsprop_constants},
    [TR_RULE_ADAGRAD] = {.name = "adagrad",
                         .help = "v += g^2; w -= rate * g / (sqrt(v) + epsilon)",
                         .states = TR_STATE_V,
                         .epsilon = 1e-10f,
                         .constants = adagrad_constants},
    [TR_RULE_LAMB] =
        {.name = "lamb",
         .help = "u = Adam's direction + weight_decay * w; w -= rate * (|w| / |u|) * u of each weight "
                 "tensor (You and others 2020); biases, gains and shifts by Adam",
         .states = TR_STATE_M | TR_STATE_V,
         .corrects = true,
         .epsilon = 1e-6f,
         .whole = true,
         .elements = TR_RULE_ADAM,
         .constants = adam_constants},
    [TR_RULE_MUON] = {.name = "muon",
                      .help =
                          "momentum, made orthogonal by five Newton-Schulz iterations, of the matrices of "
                          "hidden layers (Jordan and others 2024); the rest by `adamw` at `adam_rate`",
                      .states = TR_STATE_M | TR_STATE_V,
                      .corrects = true,
                      .momentum = 0.95f,
                      .nesterov = true,
                      .beta2 = 0.95f,
                      .epsilon = 1e-10f,
                      .whole = true,
                      .elements = TR_RULE_ADAMW,
                      .constants = muon_constants},
};

#define ENTRY(rule) [TR_RULE_##rule] = &rules[TR_RULE_##rule].entry
static const struct tr_entry *const entries[] = {
    ENTRY(SGD),     ENTRY(MOMENTUM), ENTRY(ADAM), ENTRY(ADAMW), ENTRY(LION),
    ENTRY(RMSPROP), ENTRY(ADAGRAD),  ENTRY(LAMB), ENTRY(MUON),  NULL};
#undef ENTRY

const struct tr_registry tr_rules = {.kind = "update rule", .entries = entries};

#define FIELD(name)    offsetof(struct tr_optimizer, name)
#define BIT(rule)      (1u << TR_RULE_##rule)
#define ANY_ADAM       (BIT(ADAM) | BIT(ADAMW))
#define ALL_BUT(rules) (~(rules) & (2 * BIT(MUON) - 1))

const struct tr_option tr_optimizer_options[] = {
    {.key = "rule",
     .type = TR_OPTION_CHOICE,
     .offset = FIELD(rule),
     .registry = &tr_rules,
     .help = "the update rule"},
    {.key = "rate",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(rate),
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "learning rate before the schedule"},
    {.key = "momentum",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(momentum),
     .fallback = "0.9",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .only = BIT(MOMENTUM) | BIT(RMSPROP) | BIT(MUON),
     .help = "fraction of the velocity that is kept; default for `rmsprop`: 0, for `muon`: 0.95"},
    {.key = "nesterov",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(nesterov),
     .fallback = "false",
     .only = BIT(MOMENTUM) | BIT(MUON),
     .help = "Nesterov's form: w -= rate * (momentum * v + g); default for `muon`: true"},
    {.key = "adam_rate",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(adam_rate),
     .fallback = "3e-4",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_QUIET,
     .only = BIT(MUON),
     .help =
         "learning rate, before the schedule, of the parameters that `adamw` updates: biases, gains, shifts, "
         "embeddings and weights of output layers"},
    {.key = "beta1",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(beta1),
     .fallback = "0.9",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .only = ANY_ADAM | BIT(LION) | BIT(LAMB) | BIT(MUON),
     .help = "decay of the first moment"},
    {.key = "beta2",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(beta2),
     .fallback = "0.999",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .only = ANY_ADAM | BIT(LION) | BIT(RMSPROP) | BIT(LAMB) | BIT(MUON),
     .help =
         "decay of the second moment, of `lion`: of its velocity; default for `rmsprop` and `lion`: 0.99, "
         "for `muon`: 0.95"},
    {.key = "amsgrad",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(amsgrad),
     .fallback = "false",
     .flags = TR_OPTION_QUIET,
     .only = ANY_ADAM,
     .help = "AMSGrad: the greatest second moment so far in place of the last one (Reddi and others 2018)"},
    {.key = "epsilon",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(epsilon),
     .fallback = "1e-8",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_ABOVE_LEAST,
     .only = ANY_ADAM | BIT(RMSPROP) | BIT(ADAGRAD) | BIT(LAMB) | BIT(MUON),
     .help = "added to the root of the second moment (corrected for Adam); default for `adagrad` and `muon`: "
             "1e-10, for `lamb`: 1e-6"},
    {.key = "weight_decay",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(weight_decay),
     .fallback = "0.01",
     .least = 0,
     .most = INFINITY,
     .only = BIT(ADAMW) | BIT(LION) | BIT(LAMB) | BIT(MUON),
     .help = "weights shrink by this fraction times the rate in each step; for `lamb`, see the rule"},
    {.key = "l2",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(l2),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .only = ALL_BUT(BIT(LAMB) | BIT(MUON)),
     .help = "coefficient c of a penalty c / 2 * |w|^2 on the weights"},
    {.key = "l2_biases",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(l2_biases),
     .fallback = "false",
     .help = "`l2`, `weight_decay` and the ratio of `lamb` apply to biases, gains and shifts, too"},
    {.key = "clip_norm",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(clip_norm),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .help = "the gradient of all parameters together is scaled down to this norm; 0: never"},
    {.key = "clip_value",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(clip_value),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .help = "elements of the gradient are cut to this magnitude, after `clip_norm`; 0: never"},
    {.key = "sam",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(sam),
     .fallback = "0",
     .least = 0,
     .most = 1000,
     .flags = TR_OPTION_QUIET,
     .help = "sharpness-aware minimization: distance from the parameters at which the gradient is taken, in "
             "the direction in which the loss rises fastest; 0: none, 0.05 is usual"},
    {.key = "ema",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(ema),
     .fallback = "0",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .help = "decay of an exponential moving average of the parameters, used for evaluation; 0: none"},
    {.key = "ema_warmup",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(ema_warmup),
     .fallback = "false",
     .help = "the decay at step t is at most (1 + t) / (10 + t), so that early averages follow faster"},
    {.key = "schedule",
     .type = TR_OPTION_NODE,
     .offset = FIELD(schedule_node),
     .fallback = "constant",
     .help = "change of the rate during training: a name or the options of a schedule"},
};
const int32_t tr_optimizer_option_count = TR_OPTION_COUNT(tr_optimizer_options);

/* The rule's defaults, for options that are not given. */
static void take_defaults(const tr_config *node, struct tr_optimizer *out)
{
    const struct rule *rule = &rules[out->rule];
    if (rule->beta2 > 0 && !tr_config_get(node, "beta2")) out->beta2 = rule->beta2;
    if (rule->epsilon > 0 && !tr_config_get(node, "epsilon")) out->epsilon = rule->epsilon;
    if (rule->momentum_is_extra && !tr_config_get(node, "momentum")) out->momentum = 0;
    if (rule->momentum > 0 && !tr_config_get(node, "momentum")) out->momentum = rule->momentum;
    if (rule->nesterov && !tr_config_get(node, "nesterov")) out->nesterov = true;
}

tr_status tr_optimizer_read(const tr_config *node, int64_t training_steps, struct tr_optimizer *out)
{
    memset(out, 0, sizeof *out);
    TR_TRY(tr_options_defaults(tr_optimizer_options, tr_optimizer_option_count, out));
    TR_TRY(tr_options_read(tr_optimizer_options, tr_optimizer_option_count, node, "optimizer", out));
    take_defaults(node, out);
    TR_TRY(tr_schedule_read(out->schedule_node, training_steps, &out->schedule));
    out->schedule_node = NULL;
    if (out->rate > (double)FLT_MAX)
        return tr_config_fail(TR_EINVAL, tr_config_get(node, "rate"), "is too large for a 32-bit float");
    if (out->ema_warmup && out->ema == 0)
        return tr_config_fail(TR_EINVAL, tr_config_get(node, "ema_warmup"),
                              "there is no moving average to warm up; set \"ema\" too");
    return TR_OK;
}

unsigned tr_optimizer_states(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind)
{
    if (kind == TR_PARAMETER_STATISTIC) return 0;
    const struct rule *rule = &rules[optimizer->rule];
    unsigned states = rule->states | (optimizer->ema > 0 ? TR_STATE_EMA : 0);
    if (optimizer->amsgrad) states |= TR_STATE_VMAX;
    if (rule->momentum_is_extra && optimizer->momentum == 0) states &= ~(unsigned)TR_STATE_M;
    return states;
}

void tr_optimizer_scalars(const struct tr_optimizer *optimizer, int64_t step, struct tr_step_scalars *out)
{
    assert(step >= 0 && step <= UINT32_MAX);
    const double rate = tr_schedule_rate(&optimizer->schedule, optimizer->rate, step);
    *out = (struct tr_step_scalars){.step = (uint32_t)step, .rate = (float)rate, .clip_scale = 1};
    if (rules[optimizer->rule].corrects) {
        /* The betas as the device has them: rounded to float. */
        double numerator = optimizer->rule == TR_RULE_LAMB ? 1 : rate;
        out->adam_rate = (float)(numerator / (1 - tr_pow_int((double)optimizer->beta1, step + 1)));
        out->adam_correction = (float)(1 / sqrt(1 - tr_pow_int((double)optimizer->beta2, step + 1)));
    }
    double decay = (double)optimizer->ema;
    if (optimizer->ema_warmup) {
        double early = (double)(step + 1) / (double)(step + 10);
        if (early < decay) decay = early;
    }
    out->ema_decay = (float)decay;
}

void tr_optimizer_update(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind,
                         const struct tr_pace *pace, float follow, struct tr_op_update *out)
{
    if (kind == TR_PARAMETER_STATISTIC) {
        *out = (struct tr_op_update){.rule = TR_RULE_STATISTIC, .beta1 = follow};
        return;
    }
    bool decays = kind == TR_PARAMETER_WEIGHT || optimizer->l2_biases;
    const struct rule *rule = &rules[optimizer->rule];
    *out = (struct tr_op_update){
        .rule = rule->whole ? rule->elements : (enum tr_rule)optimizer->rule,
        .clip_norm = optimizer->clip_norm > 0,
        .rate_factor = pace->rate_factor,
        .l2 = optimizer->l2,
        .clip_value = optimizer->clip_value,
    };
    if (rule->constants) rule->constants(optimizer, out);
    out->decay *= decays ? pace->decay_factor : 0;
    out->l2 *= decays ? pace->decay_factor : 0;
}

bool tr_optimizer_takes_wholes(const struct tr_optimizer *optimizer)
{
    return rules[optimizer->rule].whole;
}

static void lamb(const struct tr_optimizer *optimizer, bool decays, const struct tr_pace *pace,
                 struct tr_whole_update *out)
{
    out->kind = TR_WHOLE_LAMB;
    out->elements.decay = decays ? optimizer->weight_decay * pace->decay_factor : 0;
    out->ratio = decays;
    out->advance.factor = 1;
}

static void muon(const struct tr_optimizer *optimizer, int64_t in, int64_t outputs,
                 const struct tr_pace *pace, struct tr_whole_update *out)
{
    out->kind = TR_WHOLE_MUON;
    out->elements.rule = TR_RULE_MOMENTUM;
    out->elements.beta1 = optimizer->momentum;
    out->elements.nesterov = optimizer->nesterov;
    out->advance.factor = outputs > in ? (float)sqrt((double)outputs / (double)in) : 1;
    out->advance.decay = optimizer->weight_decay * pace->decay_factor;
}

bool tr_optimizer_whole(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind,
                        const struct tr_pace *pace, int64_t in, int64_t outputs, struct tr_whole_update *out)
{
    bool is_lamb = optimizer->rule == TR_RULE_LAMB, is_muon = optimizer->rule == TR_RULE_MUON;
    *out = (struct tr_whole_update){.kind = TR_WHOLE_NONE};
    if (kind == TR_PARAMETER_STATISTIC || (!is_lamb && !(is_muon && outputs > 0))) return false;
    tr_optimizer_update(optimizer, kind, pace, 0, &out->elements);
    out->elements.rate_factor = -1; /* the factor for a direction of descent */
    out->advance.rate_factor = pace->rate_factor;
    if (is_lamb)
        lamb(optimizer, kind == TR_PARAMETER_WEIGHT || optimizer->l2_biases, pace, out);
    else
        muon(optimizer, in, outputs, pace, out);
    return true;
}
