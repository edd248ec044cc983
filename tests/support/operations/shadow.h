/* A device for tests whose memory the host cannot access: memory of the processor, made inaccessible
 * except during an operation or a copy, so that a direct read or write ends the test. Copies are late, as
 * on accelerators: to the host not before a wait, and from the host at any time until then, so that a
 * missing wait is found, too. The bits are those of the cpu device.
 */
#ifndef TESTS_SUPPORT_OPERATIONS_SHADOW_H
#define TESTS_SUPPORT_OPERATIONS_SHADOW_H

#include "device/device.h"

#include <stdatomic.h>

/* The free memory that all of them report; INT64_MAX at first. */
extern int64_t shadow_room;
/* Likewise their separate memory; 0 at first: theirs is the host's. */
extern int64_t shadow_memory;
/* Their memory stays accessible, for tests of something else, which then are quicker; set before any is made.
 */
extern bool shadow_open;
/* Called, unless NULL, when a copy has reached the host while the device has more work. */
extern void (*shadow_goes_on)(void);
/* How often a thread waited for unfinished work of one of them. */
extern atomic_llong shadow_waits;
/* Bytes that all of them have allocated and not freed. */
extern atomic_llong shadow_taken;
/* `threads` and `isa` as for the cpu device. Returned, destroy with tr_device_destroy(). */
tr_status shadow_create(int threads, const char *isa, tr_device **out);

#endif
