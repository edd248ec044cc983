/* The common part of the files of variables: variables.c (memory), variables_begin.c (first values) and
 * variables_step.c (a step). */
#ifndef TR_JOB_VARIABLES_INTERNAL_H
#define TR_JOB_VARIABLES_INTERNAL_H

#include "job/step/variables.h"

/* Neighbouring parameters that are updated alike, as one call. */
struct variables_group {
    struct tr_op_update update; /* pointers and scalars set */
    int64_t offset;
    /* Not NONE: the group is one parameter that is updated as a whole, by this instead of `update`, of which
       only count and pointers are looked at. */
    struct tr_whole_update whole;
    int64_t in, out; /* of a matrix */
};

/* Memory in which updates of wholes work, for the largest parameter: places in floats. */
struct variables_scratch {
    int64_t matrix;  /* MUON: [in][out], after the direction, which is at 0 */
    int64_t gram[2]; /* of the smaller of both sizes its square */
    int64_t squares; /* [2] */
    int64_t floats;  /* in all; 0: none */
    float *memory;   /* of the device */
};

struct tr_variables {
    tr_device *device;
    const struct tr_model *model;
    const struct tr_optimizer *optimizer;
    struct tr_staging arena[TR_ARENAS];
    struct tr_variables_part part;
    float *shared;                   /* memory of ranks for all arenas, or NULL */
    bool filled;                     /* another rank gives the shared parameters their first values */
    bool gives;                      /* this one does so, from a device with memory of its own */
    struct tr_step_scalars *scalars; /* device */
    struct tr_step_scalars next[2];  /* on their way there, those of two steps in turn */
    tr_event sent[2];                /* which they are after */
    bool used[2];
    int turn;
    struct tr_staging squares; /* per parameter that is optimized */
    float *norm;               /* device: their root */
    int64_t square_count;
    struct variables_group *groups;
    int group_count;
    struct variables_scratch scratch;
    float *around, *around_squares; /* device, with optimizer->sam: an arena, and [2] */
    size_t memory;
    tr_update_observer observer; /* or NULL */
    void *observer_user;
};

struct variables_range {
    int64_t begin, end; /* floats */
};

/* The state of an arena. */
static inline struct variables_range variables_range_of(const tr_variables *variables, enum tr_arena arena)
{
    const struct tr_variables_part *part = &variables->part;
    return arena == TR_ARENA_PARAMETERS ? (struct variables_range){part->begin, part->end}
                                        : (struct variables_range){part->state_begin, part->state_end};
}

/* Zeros. */
tr_status variables_clear(tr_variables *variables, float *at, int64_t count);
/* The units of an update, once all arenas are there. TR_ENOMEM. */
tr_status variables_make_groups(tr_variables *variables);

/* variables_whole.c: enqueues the update of a group as a whole by its gradient. */
tr_status variables_update_whole(tr_variables *variables, const struct variables_group *group,
                                 const float *gradient);
/* Where the parts of the scratch lie, without memory. */
void variables_plan_scratch(const struct variables_group *groups, int count, struct variables_scratch *out);

#endif
