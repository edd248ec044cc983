/* The structure that computes gradients, shared by its steps (gradient.c) and the search for numbers that
 * are not finite (nonfinite.c).
 */
#ifndef TR_JOB_GRADIENT_INTERNAL_H
#define TR_JOB_GRADIENT_INTERNAL_H

#include "job/step/gradient.h"
#include "job/step/lesson.h"
#include "job/step/mirror.h"
#include "job/step/rows.h"

struct tr_gradient {
    tr_device *device;
    const struct tr_job *job;
    tr_mirror *mirror; /* of the variables */
    struct tr_order order;
    tr_loader *loader;
    bool helps; /* threads of the device help the loader */
    tr_feed *feed;
    tr_pass *pass;
    tr_lesson *lesson; /* of a teacher, or NULL */
    bool alone;        /* see struct tr_gradient_part */
    struct tr_gradient_plan plan;
    struct tr_staging slots;  /* [plan.slots][plan.stride]; slot j receives node j */
    struct tr_rows rows;      /* rows of a pass */
    float sums[TR_PASS_SUMS]; /* after node 0, of the last step */
    size_t memory;
    tr_gradient_listener listener; /* or NULL */
    void *listener_user;
    /* While the last pass of a step runs backward: it computes the top of the slots [node, depth), which
       are to be added. For floats from `final` on, slot `node` has the sum. */
    int node, depth;
    int64_t final;
    struct gradient_begun {
        int64_t step; /* its only pass has run forward; -1: none */
        int64_t examples;
        struct tr_pass_batch part;
    } begun;
    int32_t node_bound[2 * TR_TREE_DEPTH + 1]; /* of a pass over several nodes */
};

/* Describes microbatches [first, end) of the batch and feeds their rows. */
tr_status gradient_prepare_pass(tr_gradient *gradient, const struct tr_batch *batch, int64_t first,
                                int64_t end, struct tr_pass_batch *out);

#endif
