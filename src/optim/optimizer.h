/* Settings of the update rules, and the constants that devices need.
 *
 * The arithmetic of an update is that of struct tr_op_update (device/ops.h). This part computes its
 * constants: per parameter once, per step in struct tr_step_scalars.
 */
#ifndef TR_OPTIM_OPTIMIZER_H
#define TR_OPTIM_OPTIMIZER_H

#include "base/options/config.h"
#include "base/options/registry.h"
#include "device/ops.h"
#include "optim/schedule.h"

enum tr_parameter_kind {
    TR_PARAMETER_WEIGHT,   /* subject to L2 and weight decay */
    TR_PARAMETER_BIAS,     /* biases, gains and shifts of normalizations: no decay unless requested */
    TR_PARAMETER_STATISTIC /* running statistics: averaged, not optimized */
};

/* State tensors beside a parameter, each of its shape. */
enum tr_state {
    TR_STATE_M = 1,   /* first moment or velocity; starts at 0 */
    TR_STATE_V = 2,   /* second moment; starts at 0 */
    TR_STATE_EMA = 4, /* moving average of the parameter; starts as its copy */
    TR_STATE_VMAX = 8 /* greatest second moment so far; starts at 0 */
};

#define TR_STATE_ANY (TR_STATE_M | TR_STATE_V | TR_STATE_EMA | TR_STATE_VMAX)

/* Rules that take a parameter as a whole; a model file chooses among these and those of enum tr_rule
   except STATISTIC. */
enum tr_whole_rule { TR_RULE_LAMB = TR_RULE_STATISTIC, TR_RULE_MUON };

struct tr_optimizer {
    int rule; /* of enum tr_rule or enum tr_whole_rule */
    double rate;
    double adam_rate;               /* MUON, for elementwise updates */
    float momentum;                 /* MOMENTUM, RMSPROP, MUON */
    bool nesterov, amsgrad;         /* MOMENTUM, MUON; ADAM, ADAMW */
    float beta1, beta2, epsilon;    /* ADAM, ADAMW, LAMB, MUON; betas of LION, beta2 of RMSPROP, epsilon of
                                       RMSPROP and ADAGRAD too */
    float weight_decay;             /* ADAMW, LION, LAMB, MUON, on weights */
    float l2;                       /* coefficient c of the penalty c / 2 * |w|^2, on weights */
    bool l2_biases;                 /* l2 and weight_decay on biases too */
    float clip_norm;                /* greatest norm of the gradient of all parameters; 0: none */
    float sam;                      /* distance at which the gradient is taken; 0: none */
    float clip_value;               /* greatest magnitude of a gradient's element; 0: none */
    float ema;                      /* decay of the moving average; 0: none */
    bool ema_warmup;                /* decay at step t is min(ema, (1 + t) / (10 + t)) */
    const tr_config *schedule_node; /* borrowed from the tree read */
    struct tr_schedule schedule;
};

/* All update rules, in the order of enum tr_rule and then of enum tr_whole_rule. */
extern const struct tr_registry tr_rules;

/* Reads and checks settings, a mapping. `training_steps` (> 0) is the length of schedules that last as
   long as the training. The tree is borrowed for the call (schedule_node is NULL afterwards). Nothing to
   release. TR_EINVAL with the location, also for an option that the rule does not have. */
tr_status tr_optimizer_read(const tr_config *node, int64_t training_steps, struct tr_optimizer *out);

/* Changes to the optimizer that a layer makes for its own parameters. */
struct tr_pace {
    bool frozen;        /* weights, biases, gains and shifts keep their values; statistics follow the data */
    float rate_factor;  /* factor on the rate */
    float decay_factor; /* factor on l2 and weight_decay */
};
#define TR_PACE_PLAIN ((struct tr_pace){.rate_factor = 1, .decay_factor = 1})

/* The state tensors a parameter of this kind needs: bits of enum tr_state. */
unsigned tr_optimizer_states(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind);

/* All of a step's scalars; clip_scale becomes 1 and nonfinite 0. `step` counts from 0. */
void tr_optimizer_scalars(const struct tr_optimizer *optimizer, int64_t step, struct tr_step_scalars *out);

/* The rule and constants of the update of one parameter. count and the pointers become 0, and the caller
   sets them (m, v and ema according to tr_optimizer_states()). `follow`: for a STATISTIC, the weight of a
   step's value in the running one; otherwise ignored. A frozen parameter other than a statistic has no
   update; `pace->frozen` is ignored here. */
void tr_optimizer_update(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind,
                         const struct tr_pace *pace, float follow, struct tr_op_update *out);

/* Whether parameters are updated as wholes: then each part of the arenas that is updated must consist of
   whole parameters. */
bool tr_optimizer_takes_wholes(const struct tr_optimizer *optimizer);

enum tr_whole_kind { TR_WHOLE_NONE, TR_WHOLE_LAMB, TR_WHOLE_MUON };

/* The update of a parameter as a whole; job/step/variables_whole.c lists the order of its operations. */
struct tr_whole_update {
    enum tr_whole_kind kind;
    /* To the direction, instead of w; then along the direction. Count and pointers are the caller's. */
    struct tr_op_update elements;
    struct tr_op_advance advance;
    bool ratio; /* LAMB: scales by the norms of w and of the direction */
};

/* How a learned parameter is updated; false where that is a single `update`, tr_optimizer_update(). `in`
   and `outputs`: its sizes where it is a matrix of a hidden layer (tr_model_hidden_matrix()), else 0. */
bool tr_optimizer_whole(const struct tr_optimizer *optimizer, enum tr_parameter_kind kind,
                        const struct tr_pace *pace, int64_t in, int64_t outputs, struct tr_whole_update *out);

/* The option table, for dumps and the manual. */
extern const struct tr_option tr_optimizer_options[];
extern const int32_t tr_optimizer_option_count;

#endif
