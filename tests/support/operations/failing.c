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

/* ---- memory, copies and waits ---- */

#define FAIL_CALL(slot, parameters, ...)                                                                     \
    static tr_status fail_##slot parameters                                                                  \
    {                                                                                                        \
        TR_TRY(count_one(#slot));                                                                            \
        return real->slot(__VA_ARGS__);                                                                      \
    }
FAIL_CALL(alloc, (tr_device * device, size_t bytes, void **out), device, bytes, out)
FAIL_CALL(alloc_pinned, (tr_device * device, size_t bytes, void **out), device, bytes, out)
FAIL_CALL(to_device, (tr_device * device, void *to, const void *from, size_t bytes), device, to, from, bytes)
FAIL_CALL(to_host, (tr_device * device, void *to, const void *from, size_t bytes), device, to, from, bytes)
FAIL_CALL(to_host_beside, (tr_device * device, void *to, const void *from, size_t bytes), device, to, from,
          bytes)
FAIL_CALL(record, (tr_device * device, tr_event *out), device, out)

/* A wait that fails is over: the device has done its work, or never will. */
static tr_status fail_wait(tr_device *device)
{
    TR_TRY(real->wait(device));
    return count_one("wait");
}

static tr_status fail_wait_for(tr_device *device, tr_event event)
{
    TR_TRY(real->wait_for(device, event));
    return count_one("wait_for");
}

/* How often it is asked is chance, but not how often it is so. */
static tr_status fail_reached(tr_device *device, tr_event event, bool *out)
{
    TR_TRY(real->reached(device, event, out));
    return *out ? count_one("reached") : TR_OK;
}

struct tr_device_class failing_wholly_like(const tr_device *device)
{
    struct tr_device_class class = failing_like(device);
#define SLOT(slot) class.slot = real->slot ? fail_##slot : NULL
    SLOT(alloc);
    SLOT(alloc_pinned);
    SLOT(to_device);
    SLOT(to_host);
    SLOT(to_host_beside);
    SLOT(wait);
    SLOT(record);
    SLOT(reached);
    SLOT(wait_for);
#undef SLOT
    return class;
}
