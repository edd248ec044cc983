/* What tables of a gpu device keep, on any interface. */
#ifndef TESTS_SUPPORT_GPU_TABLES_H
#define TESTS_SUPPORT_GPU_TABLES_H

#include "device/device.h"

#include <stddef.h>

/* Fails the test unless a table on the device has these contents. */
typedef void (*expect_contents)(const void *table, const void *contents, size_t bytes);

/* Makes many more tables than are kept, of which one is wanted all the time: it stays, and they take no more
   memory than those that are kept. `expect` looks at the first of every `every` tables.
 */
void expect_tables(tr_device *device, int every, expect_contents expect);

#endif
