/* Who does a work that several processes need done once: a byte of a file is locked meanwhile.
 *
 * The lock belongs to the open file, so that threads exclude each other, too, and the kernel takes it away
 * when the process ends: if that one dies, another one goes on. Where the file system knows no locks,
 * everybody works for itself.
 */
#ifndef TR_DATA_HOLD_H
#define TR_DATA_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* How long to wait for one that lives and does not come to an end: it may be stopped. */
#define TR_HOLD_PATIENCE 1800.0

/* Waits until no other process holds byte `number` of the file, and takes it. After some seconds of waiting
   says so to the log where `what` (what the other one is doing: "unpacks the data") is not NULL. False where
   another process still holds it after `patience` seconds: then go on without. */
bool tr_hold_take(int descriptor, int64_t number, const char *what, double patience);
/* The same without waiting; false where another process has it. */
bool tr_hold_try(int descriptor, int64_t number);
void tr_hold_release(int descriptor, int64_t number);

#endif
