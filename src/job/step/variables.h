/* The numbers of a run on a device: parameters, the optimizer's state, and their update by gradients.
 *
 * A process may keep only a part of them. Its arenas still have addresses for all, so that offsets mean
 * the same everywhere; but only the part takes memory and has defined contents.
 *
 * Invariant: every arena is laid out like the parameters of the model; gaps hold zeros.
 */
#ifndef TR_JOB_VARIABLES_H
#define TR_JOB_VARIABLES_H

#include "device/staging.h"
#include "nn/model.h"
#include "optim/optimizer.h"

enum tr_arena { TR_ARENA_PARAMETERS, TR_ARENA_M, TR_ARENA_V, TR_ARENA_VMAX, TR_ARENA_EMA, TR_ARENAS };

/* "parameters", "m", "v", "vmax", "ema". */
extern const char *const tr_arena_names[TR_ARENAS];

typedef struct tr_variables tr_variables;

/* The part that a process keeps: a range of floats of the parameters' arena (on bounds of parameters where
   it measures norms), and a range of those of the other arenas. */
struct tr_variables_part {
    int64_t begin, end;
    int64_t state_begin, state_end;
};

/* Allocates the arenas that the optimizer needs (none but the parameters without one: `optimizer` NULL).
   Moments and gaps are zero; parameters and averages have no values yet. `device`, `model` and `optimizer`
   are borrowed for the life of the variables. `window`, or NULL, is zeroed host memory of arena_floats
   floats that ranks share, for the parameters, see tr_staging_make(); nothing is written there, since
   another rank may be filling it. Returned, destroy with tr_variables_destroy(). */
tr_status tr_variables_create(tr_device *device, const struct tr_model *model,
                              const struct tr_optimizer *optimizer, float *window, tr_variables **out);
/* The same with all arenas in memory that ranks share and that is zero: `window` has tr_variables_arenas() *
   arena_floats floats, for the parameters and then for the others in their order. TR_EUNSUPPORTED on devices
   with separate memory. */
tr_status tr_variables_create_shared(tr_device *device, const struct tr_model *model,
                                     const struct tr_optimizer *optimizer, float *window, tr_variables **out);
/* The arenas that the optimizer needs, the parameters included. */
int tr_variables_arenas(const struct tr_optimizer *optimizer);
/* The same for a part of them. */
tr_status tr_variables_create_part(tr_device *device, const struct tr_model *model,
                                   const struct tr_optimizer *optimizer, const struct tr_variables_part *part,
                                   float *window, tr_variables **out);
void tr_variables_destroy(tr_variables **variables);

/* The last position up to float `at` where the part of the arenas that one rank updates may begin or end:
   any position, or the beginning of a parameter where the optimizer updates parameters as wholes. */
int64_t tr_variables_cut(const struct tr_model *model, const struct tr_optimizer *optimizer, int64_t at);

/* Bytes of working memory for updates of whole parameters, and for SAM, besides the arenas; 0 where none
 * is needed.
 */
int64_t tr_variables_scratch(const struct tr_model *model, const struct tr_optimizer *optimizer);

/* Whether the part is all parameters. */
bool tr_variables_are_whole(const tr_variables *variables);
/* Whether any of the floats [begin, end) of an arena are in the part. */
bool tr_variables_keep(const tr_variables *variables, enum tr_arena arena, int64_t begin, int64_t end);
/* Releases memory of an arena outside of the part, where the device can; contents there are lost, also for
   others that share the memory. Does nothing without such an arena. */
void tr_variables_trim_arena(tr_variables *variables, enum tr_arena arena);
/* The same for all arenas. */
void tr_variables_trim(tr_variables *variables);

/* The arena in device memory, NULL if the optimizer keeps none. */
float *tr_variables_arena(const tr_variables *variables, enum tr_arena arena);
/* The same with a host side, for moving numbers between ranks or to files: *out is borrowed from the
   variables, NULL if the optimizer keeps none. The caller copies changes of one side to the other.
   TR_ENOMEM. */
tr_status tr_variables_open(tr_variables *variables, enum tr_arena arena, const struct tr_staging **out);
/* The device that holds them, and the floats of an arena. */
tr_device *tr_variables_device(const tr_variables *variables);
int64_t tr_variables_floats(const tr_variables *variables);
/* The scalars of the step, in device memory. */
struct tr_step_scalars *tr_variables_scalars(const tr_variables *variables);

/* Says of parameters in memory that several processes share whether this one gives them their first values;
   without a call it does. One whose device has separate memory gives itself its own. Those of the others
   are there once all have met. */
void tr_variables_let_fill(tr_variables *variables, bool fills);
bool tr_variables_fills(const tr_variables *variables);
/* Likewise for the other arenas, which are shared only by tr_variables_create_shared(). */
bool tr_variables_fills_state(const tr_variables *variables);
/* Initial parameters of the part for a seed, where this process fills them. Moments are zero already. */
tr_status tr_variables_initialize(tr_variables *variables, uint64_t seed);
/* Copies them, and likewise state that was loaded, from a device with separate memory to the memory that
   others share, if this process is the one that gives them; before all meet. */
tr_status tr_variables_give(tr_variables *variables);
/* Sets moving averages, if any, to copies of the parameters, which must be there. */
tr_status tr_variables_begin_ema(tr_variables *variables);
/* Copies an arena from or to the host, arena_floats floats, and waits. */
tr_status tr_variables_load(tr_variables *variables, enum tr_arena arena, const float *values);
tr_status tr_variables_store(tr_variables *variables, enum tr_arena arena, float *values);

/* Enqueues the scalars of a step; before its forward pass. */
tr_status tr_variables_begin_step(tr_variables *variables, int64_t step);
/* The same while the last step is unfinished, but no earlier one, and has not been judged. With
   tr_variables_hold(), updates of this step change nothing either if those of the last step were held;
   unless a held step is merely skipped, or made a parameter NaN or infinite. */
tr_status tr_variables_begin_behind(tr_variables *variables, int64_t step, bool skips);
/* Enqueues the norm of a whole gradient, whether or not the optimizer clips by it; read with
 * tr_variables_norm().
 */
tr_status tr_variables_measure(tr_variables *variables, const float *gradient);
/* The same in two parts, for a gradient that no process has whole: the sums of squares of the part's
   parameters; then the norm, once the sums of all other parts are in place. */
tr_status tr_variables_measure_squares(tr_variables *variables, const float *gradient);
tr_status tr_variables_join_squares(tr_variables *variables);
/* The sums, one for each parameter that is optimized, with a host side; borrowed. TR_ENOMEM. */
tr_status tr_variables_open_squares(tr_variables *variables, const struct tr_staging **out);
/* With optimizer->sam: enqueues moving the parameters among the floats [begin, end) up along the whole
   `gradient`, whose norm was measured last. They are saved for tr_variables_restore(). */
tr_status tr_variables_perturb(tr_variables *variables, const float *gradient, int64_t begin, int64_t end);
tr_status tr_variables_restore(tr_variables *variables, int64_t begin, int64_t end);
/* Waits and returns the last measured norm. */
tr_status tr_variables_norm(tr_variables *variables, float *norm);
/* Enqueues the update of the floats [begin, end) of the arenas by `gradient`, that of these floats; all: 0
   and arena_floats. Both are positions of tr_variables_cut(). Where the optimizer clips by norm, the whole
   gradient must be measured first. */
tr_status tr_variables_update(tr_variables *variables, const float *gradient, int64_t begin, int64_t end);
/* The same for an operation that computes the gradient of these floats and applies it: `out` is the update
   without `grad`. False, and no update, where the update is not a single operation or where it is
   observed. */
bool tr_variables_update_of(const tr_variables *variables, int64_t begin, int64_t end,
                            struct tr_op_update *out);
/* Called before each update, with its arguments (`gradient` begins with float `begin`); changes nothing. A
 * failure fails the update.
 */
typedef tr_status (*tr_update_observer)(void *user, const float *gradient, int64_t begin, int64_t end);
/* Sets or, with NULL, removes the observer. */
void tr_variables_observe(tr_variables *variables, tr_update_observer observer, void *user);
/* Waits and returns whether the last update made a parameter NaN or infinite. */
tr_status tr_variables_nonfinite(tr_variables *variables, bool *nonfinite);
/* For a device that judges steps itself: enqueues that updates of this step change nothing if its loss, a
   float in device memory (NULL: known to be finite), or, with `norm`, the last measured norm is not
   finite. */
tr_status tr_variables_hold(tr_variables *variables, const float *loss, bool norm);
/* The results of a step that a device reports. */
struct tr_variables_answer {
    float norm;                     /* the last measured norm */
    struct tr_step_scalars scalars; /* `nonfinite`: the last update made a parameter NaN or infinite */
};
/* Enqueues the request; the answer is complete once the device was waited for. */
tr_status tr_variables_ask(tr_variables *variables, struct tr_variables_answer *answer);
/* Makes the averages usable in place of the parameters, all of which must be there: copies running
   statistics to them. */
tr_status tr_variables_complete_ema(tr_variables *variables);

/* SHA-256 of the parameters, all of which must be there, see tr_model_hash(). */
tr_status tr_variables_hash(tr_variables *variables, char hex[TR_SHA256_TEXT]);
/* Bytes of device memory, of the part where it is not whole; includes parameters that others share. */
size_t tr_variables_memory(const tr_variables *variables);

#endif
