/* The conformance suite with ranks that compute on the first OpenCL device, held to what one process does on
 * the processor: the same hash, or the replay in plain loops.
 *
 * test_strategy_conformance_opencl [CLASS [CHECKS]]: one strategy alone, checks whose names match a pattern.
 *
 * Drivers have threads, which do not come along into processes that a test makes of itself. So this one does
 * not touch OpenCL before those have begun, in which memory is refused.
 */
#include "strategy/conformance/conformance.h"

#include "device/cpu/cpu.h"
#include "device/gpu/internal.h"
#include "device/gpu/kinds.h"
#include "device/ref/ref.h"
#include "support/gpu/opencl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the device, whose memory is counted ---- */

static tr_status alloc_counted(void *session, size_t bytes, void **block)
{
    conformance_took(bytes);
    return gpu_api_opencl.alloc(session, bytes, block);
}

static tr_status alloc_pinned_counted(void *session, size_t bytes, void **memory)
{
    conformance_took(bytes);
    return gpu_api_opencl.alloc_pinned(session, bytes, memory);
}

static struct gpu_api counted;

static tr_status create_counted(const struct tr_device_choice *choice, tr_device **out)
{
    return gpu_device_create(&counted, choice, out);
}

static struct tr_device_kind opencl = {.name = "opencl", .create = create_counted};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &opencl.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- */

static const char *checks = "*";

static int nothing_is_here(void)
{
    return !opencl_is_here();
}

static int run_with_memory_refused(void)
{
    cmocka_set_test_filter("all_survives_failing_allocations");
    return conformance_run("strategy.conformance_opencl, memory refused");
}

static int in_a_process(int (*run)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) exit(run());
    while (child > 0 && waitpid(child, &status, 0) < 0) continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int count, char **arguments)
{
    counted = gpu_api_opencl;
    counted.alloc = alloc_counted;
    counted.alloc_pinned = alloc_pinned_counted;
    opencl.describe = tr_device_kind_opencl.describe;
    opencl.count = tr_device_kind_opencl.count;
    conformance = (struct conformance_settings){
        .device = "opencl", .program_cache = TEST_PROGRAMS, .slow = "1:20", .children = 6, .every = 41};
    if (count > 1) conformance.only = arguments[1];
    if (count > 2) checks = arguments[2];
    if (in_a_process(nothing_is_here)) return 0;
    int failed = count > 2 ? 0 : in_a_process(run_with_memory_refused);
    cmocka_set_test_filter(checks);
    cmocka_set_skip_filter(count > 2 ? NULL : "all_survives_failing_allocations");
    return conformance_run("strategy.conformance_opencl") + failed;
}
