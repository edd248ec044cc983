/* Processes of one host that share a job, for programs that start them as `trireme launch` does.
 *
 *     tr_local_group *group = NULL;
 *     tr_status status = tr_local_group_create(2, &group);
 *     char transport[TR_LOCAL_TRANSPORT_SIZE];
 *     status = tr_local_group_transport(group, 1, -1, transport, sizeof transport);
 *
 * Each process of the job gives such a text as `transport` of its struct tr_train_settings
 * (trireme/train.h), with its own rank; then all make the same calls together. The program itself may be
 * one of them.
 */
#ifndef TRIREME_LAUNCH_H
#define TRIREME_LAUNCH_H

#include "trireme/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TR_LOCAL_RANKS_MOST     1024
#define TR_LOCAL_TRANSPORT_SIZE 64

/* The shared memory of the processes, made by the launcher before it starts them: memory without a name,
   which vanishes with the last process that holds it, however that ends. It costs memory only where ranks
   touch it. */
typedef struct tr_local_group tr_local_group;

/* Returned, destroy with tr_local_group_destroy(). TR_EINVAL (1 to TR_LOCAL_RANKS_MOST ranks), TR_ENOMEM,
   TR_EUNSUPPORTED if the system cannot share memory in this way. */
TR_API tr_status tr_local_group_create(int size, tr_local_group **out);
/* The descriptor that the processes inherit under the same number. Close-on-exec is set, so that no other
   program gets it: the child clears that between fork and exec (fcntl(), which a signal handler may call,
   too). */
TR_API int tr_local_group_descriptor(const tr_local_group *group);
/* Writes the `transport` of the process of a rank, from 0 to size - 1: "local:DESCRIPTOR:RANK:SIZE".
   `descriptor` is the number under which that process has the group's; -1: the same. The process closes
   it; so for a rank in the launcher itself give a copy (fcntl() with F_DUPFD_CLOEXEC). TR_EINVAL for an
   invalid rank, or less room than TR_LOCAL_TRANSPORT_SIZE. */
TR_API tr_status tr_local_group_transport(const tr_local_group *group, int rank, int descriptor, char *text,
                                          size_t size);
/* Reports that the process of a rank has ended, in whatever way: wakes all ranks that wait for it, also
   those that wait for it to join. Ranks that joined notice each other's end without it. May be repeated;
   any thread, unless one destroys the group; not for signal handlers. Invalid ranks are ignored. */
TR_API void tr_local_group_ended(tr_local_group *group, int rank);
/* Closes the descriptor; the ranks continue. Accepts NULL, nulls the handle. */
TR_API void tr_local_group_destroy(tr_local_group **group);

#ifdef __cplusplus
}
#endif
#endif
