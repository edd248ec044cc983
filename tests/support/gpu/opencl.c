#include "support/gpu/opencl.h"

#include "device/gpu/kinds.h"

#include "trireme/status.h"

#include <stdio.h>

bool opencl_is_here(void)
{
    char text[256];
    if (tr_device_kind_opencl.describe(0, text, sizeof text) != TR_ENOTFOUND) return true;
    printf("skipped: %s\n", tr_error_message());
    return false;
}

tr_status opencl_open(int number, tr_device **out)
{
    char name[32];
    struct tr_device_choice choice = {.name = name, .cache = TEST_PROGRAMS};
    snprintf(name, sizeof name, "opencl:%d", number);
    return tr_device_open(&choice, out);
}
