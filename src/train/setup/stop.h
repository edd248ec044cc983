/* A stop that a program requests from outside of a trainer, and the process that an object was made in. */
#ifndef TR_TRAIN_STOP_H
#define TR_TRAIN_STOP_H

#include "trireme/train.h"

#include <stdatomic.h>
#include <sys/types.h>

struct tr_stop {
    atomic_int asked; /* signal handlers set it */
};

/* TR_EINTERRUPTED where the stop (NULL: none) is requested; `doing` names the interrupted work. Local. */
tr_status tr_stop_check(const tr_stop *stop, const char *doing);

/* TR_EUNSUPPORTED in another process than the one (with id `process`) in which a `thing` ("trainer") was
   made: its threads do not exist there. Local. */
tr_status tr_process_check(pid_t process, const char *thing);

#endif
