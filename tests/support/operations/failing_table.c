/* The table of devices of a program whose OpenCL devices fail as the variable TRIREME_TEST_FAILURE says, in
 * the driver's own words:
 *
 *   lost=TRIGGER:MARK   once the file TRIGGER is there launches and waits fail, in the one process that can
 *                       make the file MARK
 *   full=BYTES          allocations of more bytes fail
 *   lacks               it promises no infinities and NaN
 *   poor                it promises neither fused multiply-add nor exact division
 */
#include "device/cpu/cpu.h"
#include "device/gpu/kinds.h"
#include "device/gpu/opencl/internal.h"
#include "device/ref/ref.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct opencl_library real;
static char trigger[512], mark[512];
static unsigned long long full;
static bool lost;

static bool is_lost(void)
{
    if (lost || access(trigger, F_OK) != 0) return lost;
    int made = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
    lost = made >= 0;
    if (lost) close(made);
    return lost;
}

static int32_t launch(cl_queue queue, cl_kernel kernel, uint32_t axes, const size_t *offset,
                      const size_t *global, const size_t *local, uint32_t count, const cl_event *events,
                      cl_event *event)
{
    if (is_lost()) return CL_DEVICE_NOT_AVAILABLE;
    return real.clEnqueueNDRangeKernel(queue, kernel, axes, offset, global, local, count, events, event);
}

static int32_t wait_for_events(uint32_t count, const cl_event *events)
{
    return is_lost() ? CL_DEVICE_NOT_AVAILABLE : real.clWaitForEvents(count, events);
}

static int32_t finish(cl_queue queue)
{
    int32_t error = real.clFinish(queue); /* otherwise no thread would wait for running commands */
    return is_lost() ? CL_DEVICE_NOT_AVAILABLE : error;
}

static cl_memory create_buffer(cl_context context, uint64_t flags, size_t bytes, void *host, int32_t *error)
{
    if (bytes <= full) return real.clCreateBuffer(context, flags, bytes, host, error);
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

static uint64_t taken; /* of the promised features */

static int32_t device_info(cl_device device, uint32_t what, size_t size, void *value, size_t *bytes)
{
    int32_t error = real.clGetDeviceInfo(device, what, size, value, bytes);
    uint64_t promises;
    if (error != CL_SUCCESS || what != CL_DEVICE_SINGLE_FP_CONFIG || size < sizeof promises) return error;
    memcpy(&promises, value, sizeof promises);
    promises &= ~taken;
    memcpy(value, &promises, sizeof promises);
    return error;
}

/* Once the library is there. */
static void falsify(void)
{
    const char *how = getenv("TRIREME_TEST_FAILURE");
    char text[16];
    if (real.clFinish || !how || tr_device_kind_opencl.describe(0, text, sizeof text) == TR_ENOTFOUND) return;
    real = opencl_library;
    if (sscanf(how, "lost=%511[^:]:%511s", trigger, mark) == 2) {
        opencl_library.clEnqueueNDRangeKernel = launch;
        opencl_library.clWaitForEvents = wait_for_events;
        opencl_library.clFinish = finish;
    } else if (sscanf(how, "full=%llu", &full) == 1) {
        opencl_library.clCreateBuffer = create_buffer;
    } else if (strcmp(how, "lacks") == 0 || strcmp(how, "poor") == 0) {
        taken = strcmp(how, "lacks") == 0 ? CL_FP_INF_NAN : CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
        opencl_library.clGetDeviceInfo = device_info;
    } else {
        abort();
    }
}

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    falsify();
    return tr_device_kind_opencl.create(choice, out);
}

static tr_status describe(int number, char *text, size_t size)
{
    falsify();
    return tr_device_kind_opencl.describe(number, text, size);
}

static int count(void)
{
    return tr_device_kind_opencl.count();
}

static const struct tr_device_kind failing = {.name = "opencl",
                                              .help = "an OpenCL device that fails",
                                              .create = create,
                                              .describe = describe,
                                              .count = count};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &failing.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};
