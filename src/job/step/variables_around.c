/* Parameters that are moved temporarily: sharpness-aware minimization (SAM; Foret and others 2021) takes
 * the gradient where the loss is approximately greatest within a distance rho.
 *
 *     saved = w                                   scale
 *     a = 1, b = |g|^2                            fill, sum_squares of the norm that was measured
 *     w = w + rho * (sqrt(a) / sqrt(b)) * g       advance; where b is 0, g is, too
 *     ... the gradient there ...
 *     w = saved                                   scale
 *
 * g is the mean gradient of the batch, without decay and before clipping. Running statistics and frozen
 * parameters do not move.
 */
#include "job/step/variables_internal.h"

#include "base/fail.h"

static tr_status copy(tr_variables *variables, int64_t count, const float *from, float *to)
{
    struct tr_op_scale op = {count, 1, from, to};
    return count > 0 ? tr_device_scale(variables->device, &op) : TR_OK;
}

tr_status tr_variables_perturb(tr_variables *variables, const float *gradient, int64_t begin, int64_t end)
{
    tr_device *device = variables->device;
    float *values = variables->arena[TR_ARENA_PARAMETERS].data, *squares = variables->around_squares;
    struct tr_op_fill one = {1, 1, squares};
    struct tr_op_sum_squares norm = {1, variables->norm, squares + 1};
    TR_TRY(copy(variables, end - begin, values + begin, variables->around + begin));
    TR_TRY(tr_device_fill(device, &one));
    TR_TRY(tr_device_sum_squares(device, &norm));
    for (int i = 0; i < variables->group_count; i++) {
        const struct variables_group *group = &variables->groups[i];
        int64_t from = begin > group->offset ? begin : group->offset,
                to = group->offset + group->update.count < end ? group->offset + group->update.count : end;
        if (from >= to || group->update.rule == TR_RULE_STATISTIC) continue;
        struct tr_op_advance step = {.count = to - from,
                                     .rate_factor = 1,
                                     .factor = -variables->optimizer->sam,
                                     .direction = gradient + from,
                                     .squares = squares,
                                     .w = values + from};
        TR_TRY(tr_device_advance(device, &step));
    }
    return TR_OK;
}

tr_status tr_variables_restore(tr_variables *variables, int64_t begin, int64_t end)
{
    return copy(variables, end - begin, variables->around + begin,
                variables->arena[TR_ARENA_PARAMETERS].data + begin);
}
