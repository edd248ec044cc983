/* The outputs of an operation, as regions of memory. */
#include "dispute/units/unit.h"

/* For operands that are parts of something larger: numbers in a row, and from row to row. An operation
   that writes such a part is listed here. */
static bool part_of(enum tr_operation_number operation, const void *arguments,
                    const struct tr_operand *operand, int64_t *width, int64_t *step)
{
    if (operation == TR_OPERATION_attention_backward) {
        const struct tr_op_attention_backward *a = arguments;
        *width = (strcmp(operand->name, "dq") == 0 ? a->at.heads : a->at.kv_heads) * a->at.size;
        *step = a->gradient_step;
    } else if (operation == TR_OPERATION_rotary) {
        const struct tr_op_rotary *a = arguments;
        *width = a->heads * a->size;
        *step = a->step;
    } else if (operation == TR_OPERATION_sequence_copy) {
        const struct tr_op_sequence_copy *a = arguments;
        *width = a->width;
        *step = a->y_step;
    } else {
        return false;
    }
    return true;
}

static bool is_written(enum tr_role role)
{
    return role == TR_ROLE_WRITES || role == TR_ROLE_WRITES_PART || role == TR_ROLE_KEEPS ||
           role == TR_ROLE_UPDATES || role == TR_ROLE_UPDATES_PART || role == TR_ROLE_REPLACES ||
           role == TR_ROLE_NODES;
}

int tr_unit_regions(enum tr_operation_number number, const void *arguments, int64_t rows,
                    struct tr_unit_region out[TR_UNIT_REGIONS])
{
    const struct tr_operation *operation = tr_operation_of(number);
    const struct tr_cut *cut = tr_operation_cut(operation, arguments);
    int64_t elements[TR_OPERANDS_MOST], width, step;
    int count = 0;
    operation->measure(arguments, rows, true, elements);
    for (int i = 0; i < operation->count && count < TR_UNIT_REGIONS; i++) {
        const struct tr_operand *operand = &operation->operand[i];
        const int64_t bytes = elements[i] * (int64_t)operand->bytes;
        const char *begin = tr_operand_pointer(operand, arguments);
        if (!is_written(operand->role) || !begin || bytes == 0) continue;
        struct tr_unit_region region = {operand, begin, 1, bytes, bytes, operand->bytes < 4 ? 1 : 4};
        if (operand->role == TR_ROLE_NODES) {
            region.rows = cut->nodes;
            region.step = cut->stride * (int64_t)operand->bytes;
        } else if ((operand->role == TR_ROLE_WRITES_PART || operand->role == TR_ROLE_UPDATES_PART) &&
                   part_of(number, arguments, operand, &width, &step)) {
            region.width = width * (int64_t)operand->bytes;
            region.step = step * (int64_t)operand->bytes;
            region.rows = region.width > 0 ? bytes / region.width : 0;
        }
        if (region.rows > 0) out[count++] = region;
    }
    return count;
}
