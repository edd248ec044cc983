/* How a trainer joins the other processes of its job. */
#ifndef TR_TRAIN_JOIN_H
#define TR_TRAIN_JOIN_H

#include "comm/comm.h"
#include "trireme/train.h"

/* A caller's settings, completed with defaults for members that its version lacks. TR_EINVAL where they
   have no size, or a larger one than is known. */
tr_status tr_train_settings_take(const struct tr_train_settings *given, struct tr_train_settings *out);

/* Joins the processes that a launcher started, by the transport and time limits of the settings; *out is
   NULL for a single process. Returned, destroy with tr_comm_destroy(). */
tr_status tr_train_join(const struct tr_train_settings *settings, tr_comm **out);

/* The slowdown of `rank` of `ranks` according to "1:5,3:2"; 1 where it is not named, and for NULL.
   TR_EINVAL for other texts, unknown ranks, and factors below 1. */
tr_status tr_train_slowness(const char *text, int rank, int ranks, double *factor);

/* The threads of this process: as many as `settings` request, or its part of the processors that several
   ranks of the host share. With settings->bind the calling thread, and threads it then starts, are bound
   to that part, if it is large enough. Collective. */
tr_status tr_train_share_processors(tr_comm *comm, const struct tr_train_settings *settings, int *threads);

#endif
