/* Lets one of several processes do work that all of them need: it locks a byte of a file meanwhile.
 *
 * The lock belongs to the open file, so that it also excludes other threads. The kernel releases it when
 * the process ends: if a process dies, another one continues. Where the file system has no locks, each
 * process does the work itself.
 */
#ifndef TR_DATA_HOLD_H
#define TR_DATA_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* How long to wait for a process that lives but does not finish: it may be stopped. */
#define TR_HOLD_PATIENCE 1800.0

/* Waits until no other process holds byte `number` of the file, and takes it. After some seconds of
   waiting says so in the log, unless `what` is NULL: what the other process is doing ("unpacks the data").
   False where another process holds it after `patience` seconds: then go on without. */
bool tr_hold_take(int descriptor, int64_t number, const char *what, double patience);
/* The same without waiting; false where another process has it. */
bool tr_hold_try(int descriptor, int64_t number);
void tr_hold_release(int descriptor, int64_t number);

#endif
