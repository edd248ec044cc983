/* Learning rate schedules: a factor on the base rate as a function of the step (from 0).
 *
 * Computed in double with the functions of base/numbers/math.h, which are the same on every machine, and
 * rounded to float once by the optimizer.
 */
#ifndef TR_OPTIM_SCHEDULE_H
#define TR_OPTIM_SCHEDULE_H

#include "base/options/config.h"
#include "base/options/option.h"

enum tr_schedule_kind {
    TR_SCHEDULE_CONSTANT,    /* 1 */
    TR_SCHEDULE_EXPONENTIAL, /* decay ^ (step / every), with `staircase` the quotient rounded down */
    TR_SCHEDULE_STEP,        /* factor ^ (number of milestones <= step) */
    TR_SCHEDULE_COSINE, /* from 1 to `final` along half a cosine between the end of the warm-up and `steps` */
    TR_SCHEDULE_ONE_CYCLE, /* from `start` to 1 over the first `rise` of `steps`, then to `final`; half
                              cosines both */
    TR_SCHEDULE_PLATEAU,   /* times `factor` whenever evaluations have not improved for a while */
    TR_SCHEDULE_LINEAR,    /* as COSINE, along a straight line */
    TR_SCHEDULE_RESTARTS   /* COSINE over a period of `every` steps from the end of the warm-up on, then over
                              one   of `growth` times as many, and so on */
};

/* Where one_cycle has its peak and its end: at step rise * steps and at step `steps`; or, as PyTorch's
   OneCycleLR, one step earlier, so that the last step has the final rate. Its `final` is then 1e-4 of
   `start` unless given. */
enum tr_one_cycle_form { TR_ONE_CYCLE_SMOOTH, TR_ONE_CYCLE_PYTORCH };

/* State of a plateau schedule. It follows from evaluations, which all ranks know; kept in checkpoints. */
struct tr_plateau {
    double factor; /* on the rate, initially 1 */
    double best;   /* cost, initially infinity */
    int64_t worse; /* evaluations since then without improvement */
};

struct tr_schedule {
    enum tr_schedule_kind kind;
    double decay; /* EXPONENTIAL, in (0, 1] */
    int64_t every, growth;
    bool staircase;
    struct tr_int_list milestones; /* STEP, ascending */
    double factor;                 /* STEP */
    int64_t steps;                 /* length of COSINE, LINEAR and ONE_CYCLE; 0: that of the training */
    double final, start, rise;
    enum tr_one_cycle_form form; /* ONE_CYCLE */
    int64_t patience;            /* PLATEAU: evaluations to wait for an improvement */
    double threshold;            /* PLATEAU: an improvement is below the best by at least this fraction of
                                    it */
    struct tr_plateau plateau;
    int64_t
        warmup; /* the factor is multiplied by (step + 1) / warmup while step < warmup; not for ONE_CYCLE */
    bool is_given; /* a program has set the rate, `given`, which replaces all this; kept in checkpoints */
    double given;
};

/* Reads a schedule: a name ("cosine") or a mapping with `kind` and that kind's options. node == NULL gives
   CONSTANT. `training_steps` (> 0) replaces `steps: 0`. TR_EINVAL with the location, also for an option
   that the kind does not have. */
tr_status tr_schedule_read(const tr_config *node, int64_t training_steps, struct tr_schedule *out);

/* The factor at `step` >= 0; from `steps` on COSINE, LINEAR and ONE_CYCLE stay at `final`. For PLATEAU it
   is the present factor. Any thread. */
double tr_schedule_factor(const struct tr_schedule *schedule, int64_t step);

/* The rate of a step: `given`, or else `base` times the factor. Any thread. */
double tr_schedule_rate(const struct tr_schedule *schedule, double base, int64_t step);

/* Gives the cost of an evaluation that judges the run (a loss, or the negative of a figure where more is
   better) to PLATEAU; returns whether the factor fell. No other thread may ask for factors meanwhile. */
bool tr_schedule_evaluated(struct tr_schedule *schedule, double cost);

/* The option table, for dumps and the manual. */
extern const struct tr_option tr_schedule_options[];
extern const int32_t tr_schedule_option_count;

#endif
