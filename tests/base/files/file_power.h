/* A file system in memory that knows what would be on the disk if the power went.
 *
 * What POSIX promises and no more: a file's contents last once the file was synced, and a name (made, renamed
 * or removed) lasts once its directory was synced. Everything else may have reached the disk or not: pending
 * writes of a file in part, out of order or torn, its length before its data, pending changes of a directory
 * in any selection. A rename within a directory is one change.
 *
 * All operations are recorded, so that the disk after a power cut at any moment can be drawn, as often as
 * wanted.
 */
#ifndef TESTS_BASE_FILE_POWER_H
#define TESTS_BASE_FILE_POWER_H

#include "base/files/ops.h"

struct power_files;

/* An empty root directory "/". Destroyed with power_destroy(). Does not use the library's allocator. */
struct power_files *power_create(void);
void power_destroy(struct power_files *power);
/* The table for what is tested; paths begin with '/'. Files can only be made new. */
tr_file_system power_system(struct power_files *power);

/* Operations that have changed something so far. */
int64_t power_operations(const struct power_files *power);

/* Writes below `directory` (a real one, empty) what might be left if the power went after the first
   `operations` operations; `seed` chooses one of the possibilities. */
void power_write_image(const struct power_files *power, int64_t operations, uint32_t seed,
                       const char *directory);

#endif
