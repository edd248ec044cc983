/* An interface to accelerators that counts what another one is given. Its lists are the other's, or, where
 * that has none, or none that change, their launches one after the other.
 */
#ifndef TESTS_SUPPORT_GPU_COUNTING_H
#define TESTS_SUPPORT_GPU_COUNTING_H

#include "device/gpu/api.h"

#include <stdatomic.h>

/* Of all sessions, which may be of several threads. */
struct gpu_counted {
    atomic_int launches; /* one by one, */
    atomic_int lists;    /* as lists, */
    atomic_int listed;   /* and launches in these */
    atomic_int built, freed, changed;
};
extern struct gpu_counted did;

void did_nothing(void);
/* Counts for `of`, one interface in a process. Its devices say that lists spare something; `follow`: they can
   be changed. */
struct gpu_api gpu_counting(const struct gpu_api *of, bool follow);
/* What a list is launched by, without being counted. */
tr_status gpu_launch_counted(void *session, void *list);

#endif
