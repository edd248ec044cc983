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

/* ---- what a device does beside operations ---- */

static tr_status fail_alloc(tr_device *device, size_t bytes, void **out)
{
    TR_TRY(count_one("alloc"));
    return real->alloc(device, bytes, out);
}

static tr_status fail_alloc_pinned(tr_device *device, size_t bytes, void **out)
{
    TR_TRY(count_one("alloc_pinned"));
    return real->alloc_pinned(device, bytes, out);
}

static tr_status fail_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(count_one("to_device"));
    return real->to_device(device, to, from, bytes);
}

static tr_status fail_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(count_one("to_host"));
    return real->to_host(device, to, from, bytes);
}

/* What was enqueued is done however a wait ends, and a mark can be waited for. */
static tr_status fail_wait(tr_device *device)
{
    TR_TRY(real->wait(device));
    return count_one("wait");
}

static tr_status fail_record(tr_device *device, tr_event *out)
{
    TR_TRY(real->record(device, out));
    return count_one("record");
}

static tr_status fail_wait_for(tr_device *device, tr_event event)
{
    TR_TRY(real->wait_for(device, event));
    return count_one("wait_for");
}

struct tr_device_class failing_in_all_like(const tr_device *device)
{
    struct tr_device_class class = failing_like(device);
    class.alloc = fail_alloc;
    class.to_device = fail_to_device;
    class.to_host = fail_to_host;
    class.wait = fail_wait;
    if (real->alloc_pinned) class.alloc_pinned = fail_alloc_pinned;
    if (real->record) class.record = fail_record;
    if (real->wait_for) class.wait_for = fail_wait_for;
    return class;
}
