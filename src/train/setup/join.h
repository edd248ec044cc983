/* How a trainer comes together with the other processes of its job. */
#ifndef TR_TRAIN_JOIN_H
#define TR_TRAIN_JOIN_H

#include "comm/comm.h"
#include "trireme/train.h"

/* A caller's settings, with the defaults of what its version of them did not have. TR_EINVAL where they have
   no size, or more than is known. */
tr_status tr_train_settings_take(const struct tr_train_settings *given, struct tr_train_settings *out);

/* Joins the processes that a launcher started, by the transport and within the time limits of the settings;
 *out is NULL where this process works alone. Returned, destroy with tr_comm_destroy(). */
tr_status tr_train_join(const struct tr_train_settings *settings, tr_comm **out);

/* How many times slower `rank` of `ranks` is to compute by "1:5,3:2"; 1 where it is not named, and for NULL.
   TR_EINVAL for other texts, ranks that the job has not, and factors below 1. */
tr_status tr_train_slowness(const char *text, int rank, int ranks, double *factor);

/* The threads that this process takes: as many as `settings` ask for, or its part of the processors that
   several ranks of the host may use. With settings->bind the calling thread, and what it starts from now on,
   keeps to that part, if it is large enough for the threads. Collective. */
tr_status tr_train_share_processors(tr_comm *comm, const struct tr_train_settings *settings, int *threads);

#endif
