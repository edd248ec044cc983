#include "job/tensors.h"

#include <stdio.h>

struct tr_stored_tensor tr_parameter_tensor(const struct tr_parameter *parameter, const char *name,
                                            float *arena)
{
    struct tr_stored_tensor tensor = {
        .name = name,
        .dtype = TR_DTYPE_F32,
        .rank = parameter->shape.rank,
        .data = arena + parameter->offset,
    };
    for (int i = 0; i < tensor.rank; i++) tensor.shape[i] = parameter->shape.size[i];
    return tensor;
}

void tr_state_name(const struct tr_parameter *parameter, enum tr_arena arena, char name[TR_STATE_NAME])
{
    snprintf(name, TR_STATE_NAME, "%s.%s", tr_arena_names[arena], parameter->name);
}
