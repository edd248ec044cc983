/* Devices of which one operation fails: its number is chosen, those of all such devices count together. With
 * failing_cpu_table.c a program has one by the name of "failing".
 */
#ifndef TESTS_SUPPORT_OPERATIONS_FAILING_H
#define TESTS_SUPPORT_OPERATIONS_FAILING_H

#include "device/device.h"

#include <stdatomic.h>

extern atomic_int operation_calls; /* so far */
extern int failing_operation;      /* number of the one that fails with TR_EUNSUPPORTED, from 0; or -1 */

/* The class of a device, with operations that are counted and can fail. For devices of one class at a time.
 */
struct tr_device_class failing_like(const tr_device *device);
/* The same, and its memory, copies and waits are counted and can fail, too. */
struct tr_device_class failing_wholly_like(const tr_device *device);

#endif
