/* What the cost of each operation depends on, as its description says (device/operation.h). */
#include "plan/costs.h"

#include <assert.h>
#include <string.h>

void tr_cost_key_of(enum tr_operation_number op, const void *arguments, bool reads_rows,
                    struct tr_cost_key *out)
{
    const struct tr_operation *operation = tr_operation_of(op);
    const struct tr_operation_cost cost = tr_operation_cost(operation, arguments, reads_rows);
    memset(out, 0, sizeof *out);
    out->op = op;
    out->size = tr_operation_rows(operation, arguments, reads_rows);
    /* Offsets that were not copied are meaningless. */
    if (out->size <= 0) out->size = tr_operation_rows(operation, arguments, false);
    for (int i = 0; i < operation->count; i++) {
        const struct tr_operand *operand = &operation->operand[i];
        if (operand->role != TR_ROLE_SHAPE) continue;
        assert((size_t)out->bytes + operand->bytes <= TR_COST_SHAPE);
        memcpy(out->shape + out->bytes, (const char *)arguments + operand->offset, operand->bytes);
        out->bytes += (int)operand->bytes;
    }
    out->volume = (double)(cost.operations > 0 ? cost.operations : cost.bytes) /
                  (double)(out->size > 0 ? out->size : 1);
}
