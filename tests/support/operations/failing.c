#include "support/operations/failing.h"

#include "base/fail.h"
#include "device/ops.h"

atomic_int operation_calls;
int failing_operation = -1;

static const struct tr_device_class *real;

static tr_status count_one(const char *operation)
{
    return atomic_fetch_add(&operation_calls, 1) == failing_operation
               ? tr_fail(TR_EUNSUPPORTED, "%s fails", operation)
               : TR_OK;
}

#define FAIL(op)                                                                                             \
    static tr_status fail_##op(tr_device *device, const struct tr_op_##op *arguments)                        \
    {                                                                                                        \
        TR_TRY(count_one(#op));                                                                              \
        return real->op(device, arguments);                                                                  \
    }
TR_DEVICE_OPS(FAIL)
#undef FAIL

struct tr_device_class failing_like(const tr_device *device)
{
    struct tr_device_class class = *device->class;
    real = device->class;
#define SLOT(op) class.op = device->class->op ? fail_##op : NULL;
    TR_DEVICE_OPS(SLOT)
#undef SLOT
    return class;
}
