/* Shared by the files of variables: variables.c (memory), variables_begin.c (first values) and
 * variables_step.c (a step).
 */
#ifndef TR_JOB_VARIABLES_INTERNAL_H
#define TR_JOB_VARIABLES_INTERNAL_H

#include "job/step/variables.h"

/* Neighbouring parameters with equal constants, updated by one call. */
struct variables_group {
    struct tr_op_update update; /* pointers and scalars set */
    int64_t offset;
    /* Not NONE: the group is one parameter that is updated as a whole, by this and not by `update`, of
       which only count and pointers are used. */
    struct tr_whole_update whole;
    int64_t in, out; /* of a matrix */
};

/* Working memory for updates of whole parameters, sized for the largest: offsets in floats. */
struct variables_scratch {
    int64_t matrix;  /* MUON: [in][out], after the direction, which is at 0 */
    int64_t gram[2]; /* each the square of the smaller dimension */
    int64_t squares; /* [2] */
    int64_t floats;  /* total; 0: none */
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
    bool gives;                      /* this one does so, from a device with separate memory */
    struct tr_step_scalars *scalars; /* device */
    struct tr_step_scalars next[2];  /* being copied there, of two steps in turn */
    tr_event sent[2];                /* mark after the copy */
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
/* Makes the groups of an update, once all arenas exist. TR_ENOMEM. */
tr_status variables_make_groups(tr_variables *variables);

/* variables_whole.c: enqueues the update of a group as a whole by its gradient. */
tr_status variables_update_whole(tr_variables *variables, const struct variables_group *group,
                                 const float *gradient);
/* Plans the parts of the scratch, without memory. */
void variables_plan_scratch(const struct variables_group *groups, int count, struct variables_scratch *out);

#endif
