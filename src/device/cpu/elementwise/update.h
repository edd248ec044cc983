/* The optimizer's arithmetic, for operations that apply a gradient as soon as they have computed it. */
#ifndef TR_DEVICE_CPU_UPDATE_H
#define TR_DEVICE_CPU_UPDATE_H

#include "device/cpu/kernels.h"

/* One for each instruction set. */
#define update_rows CPU_KERNEL(update_rows)

/* Updates `count` rows of `columns` elements, the first of which is element `first`, rows `step` apart, by
   the rows of `gradient`. The update's own `grad` and `held` are not used. */
void update_rows(const struct tr_op_update *a, int64_t first, int64_t step, int64_t count, int64_t columns,
                 const float *gradient, int64_t gradient_step);

#endif
