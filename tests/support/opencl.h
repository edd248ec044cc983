/* OpenCL devices in tests: whether there are any, with a cache of programs that all tests share, since
 * compiling is most of what they would wait for.
 */
#ifndef TESTS_SUPPORT_OPENCL_H
#define TESTS_SUPPORT_OPENCL_H

#include "device/device.h"

#include <stdbool.h>

/* Whether there is a device; prints "skipped: " and why if not, which the test's report shows. */
bool opencl_is_here(void);
/* Opens OpenCL device `number`; as tr_device_open(). */
tr_status opencl_open(int number, tr_device **out);

#endif
