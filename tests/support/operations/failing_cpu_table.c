/* The table of devices with the cpu device whose operations can fail, for tests that choose it by name. */
#include "support/operations/failing.h"

#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/ref/ref.h"

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    static struct tr_device_class real, class; /* each device has its own, which goes with it */
    TR_TRY(tr_device_kind_cpu.create(choice, out));
    if (!real.name) {
        real = *(*out)->class;
        (*out)->class = &real;
        class = failing_wholly_like(*out);
        class.host_memory = false; /* so that all goes through copies */
        class.create_like = NULL;
    }
    (*out)->class = &class;
    return TR_OK;
}

static const struct tr_device_kind failing = {
    .name = "failing", .help = "the cpu device, of which an operation can fail", .create = create};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &failing.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};
