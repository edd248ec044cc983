/* Two devices that note what is asked of them: a bare one, of whose functions only those exist that every
 * device has, and a full one. Neither computes; the wait of both fails. */
#ifndef TESTS_DEVICE_NOTING_H
#define TESTS_DEVICE_NOTING_H

#include "device/device.h"

extern tr_device bare_device, full_device;
extern struct tr_device_choice noted_choice; /* by the last creation */
extern char noted_calls[512];                /* the functions of the class, in order */

/* That these functions were called since the last time, and no others. */
void expect_called(const char *names);

#endif
