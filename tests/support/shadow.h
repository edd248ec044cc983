/* A device for tests whose memory nobody can touch: that of the processor, made inaccessible but for the time
 * of an operation or a copy, so that whoever reads or writes it directly ends the test. Copies come late, as
 * those of accelerators do: to the host not before they are waited for, and from the host at any time until
 * then, so that who does not wait is found out, too. The bits are those of the cpu device.
 */
#ifndef TESTS_SUPPORT_SHADOW_H
#define TESTS_SUPPORT_SHADOW_H

#include "device/device.h"

#include <stdatomic.h>

/* What all of them say of their room; INT64_MAX to begin with. */
extern int64_t shadow_room;
/* Likewise of memory of their own; 0 to begin with: theirs is the host's. */
extern int64_t shadow_memory;
/* Called, unless NULL, where the host gets what it asked one of them for while that has more to do already.
 */
extern void (*shadow_goes_on)(void);
/* How often anybody waited for what one of them had not done yet. */
extern atomic_llong shadow_waits;
/* Bytes that all of them were asked for and have not been given back. */
extern atomic_llong shadow_taken;
/* `threads` and `isa` as for the cpu device. Returned, destroy with tr_device_destroy(). */
tr_status shadow_create(int threads, const char *isa, tr_device **out);

#endif
