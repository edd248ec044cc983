#include "support/operations/failing.h"

#include "base/fail.h"
#include "device/ops.h"

atomic_int operation_calls;
int failing_operation = -1;
bool failing_copies;

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

static tr_status fail_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    if (failing_copies) TR_TRY(count_one("to_device"));
    return real->to_device(device, to, from, bytes);
}

static tr_status fail_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    if (failing_copies) TR_TRY(count_one("to_host"));
    return real->to_host(device, to, from, bytes);
}

static tr_status fail_wait(tr_device *device)
{
    if (failing_copies) TR_TRY(count_one("wait"));
    return real->wait(device);
}

struct tr_device_class failing_like(const tr_device *device)
{
    struct tr_device_class class = *device->class;
    real = device->class;
    class.to_device = fail_to_device;
    class.to_host = fail_to_host;
    class.wait = fail_wait;
#define SLOT(op) class.op = device->class->op ? fail_##op : NULL;
    TR_DEVICE_OPS(SLOT)
#undef SLOT
    return class;
}
