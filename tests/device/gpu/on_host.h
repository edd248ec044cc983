/* What tests on the interface without a driver share: one device, opened anew for each of them, of which
 * nothing may stay.
 */
#ifndef TESTS_DEVICE_GPU_ON_HOST_H
#define TESTS_DEVICE_GPU_ON_HOST_H

#include "device/gpu/host.h"

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, close_host)

extern tr_device *device;

int open_host(void **state);
int close_host(void **state);
/* Call number `after` of that function of the interface fails, counted from 0. */
void fail_at(const char *function, int after);
void assert_message_has(const char *part);
/* That a table on the device has these contents, at most 64 bytes. */
void expect_table(const void *table, const void *contents, size_t bytes);

#endif
