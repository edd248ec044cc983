/* How a part of the microbatches is divided into nodes of the tree, passes and slots. */
#include "base/numbers/tree.h"
#include "job/step/gradient.h"
#include "job/step/rows.h"

/* The parts of the plan that do not depend on the data: nodes, passes and slots. */
static void plan_slots(const struct tr_job *job, const struct tr_gradient_part *part,
                       struct tr_gradient_plan *plan)
{
    int64_t largest = 0;
    *plan = (struct tr_gradient_plan){.stride = (job->model->arena_floats + TR_PASS_SUMS + 15) / 16 * 16};
    if (part->alone) {
        plan->nodes = 1;
        plan->bound[0] = part->first;
        plan->bound[1] = part->end;
    } else {
        plan->nodes = tr_tree_cover(job->train.microbatches, part->first, part->end, plan->bound);
    }
    for (int j = 0; j < plan->nodes; j++) {
        int64_t size = plan->bound[j + 1] - plan->bound[j];
        if (size > largest) largest = size;
    }
    plan->widest = largest;
    int64_t all = part->end - part->first;
    plan->per_pass = job->train.pass && job->train.pass < all ? job->train.pass : all;
    /* Node j waits in slot j; the tree below it uses that slot and the ones after it. Passes are the
       leaves of a smaller tree with the same upper levels. */
    for (int j = 0; j < plan->nodes; j++) {
        int64_t size = plan->bound[j + 1] - plan->bound[j];
        int last = j + tr_tree_levels((size + plan->per_pass - 1) / plan->per_pass);
        if (last > plan->slots) plan->slots = last;
    }
}

void tr_gradient_plan(const struct tr_job *job, const struct tr_gradient_part *part, int64_t rows,
                      int64_t tokens, int64_t second, struct tr_gradient_plan *plan)
{
    plan_slots(job, part, plan);
    plan->limits = (struct tr_pass_limits){.training = true};
    tr_rows_most(job, plan->per_pass, rows, tokens, second, &plan->limits);
}

size_t tr_gradient_slot_bytes(const struct tr_job *job, const struct tr_gradient_part *part)
{
    struct tr_gradient_plan plan;
    plan_slots(job, part, &plan);
    return (size_t)plan.stride * (size_t)plan.slots * sizeof(float);
}
