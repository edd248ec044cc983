/* OpenCL devices in tests: whether there are any. All tests share a cache of programs, since most of their
 * time would be compiling.
 */
#ifndef TESTS_SUPPORT_GPU_OPENCL_H
#define TESTS_SUPPORT_GPU_OPENCL_H

#include "device/device.h"

#include <stdbool.h>

/* Whether there is a device; prints "skipped: " and why if not, which the test's report shows. */
bool opencl_is_here(void);
/* Opens OpenCL device `number`; as tr_device_open(). */
tr_status opencl_open(int number, tr_device **out);

#endif
