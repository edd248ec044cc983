/* The table of devices with the shadow device, for tests that choose it by name. */
#include "device/cpu/cpu.h"
#include "device/ref/ref.h"
#include "support/operations/shadow.h"

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    return shadow_create(choice->threads, choice->isa, out);
}

static const struct tr_device_kind shadow = {
    .name = "shadow", .help = "the cpu device, whose memory nobody else may touch", .create = create};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &shadow.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};
