/* The table of devices, in a separate file so that a program may replace it (as tests do). */
#include "device/cpu/cpu.h"
#include "device/gpu/kinds.h"
#include "device/ref/ref.h"

/* To add a device: its folder, and a line here. */
static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry,  &tr_device_kind_ref.entry,
                                                 &tr_device_kind_cuda.entry, &tr_device_kind_opencl.entry,
                                                 &tr_device_kind_gpu.entry,  NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};
