/* Where processes run. */
#ifndef TR_COMM_LOCATION_H
#define TR_COMM_LOCATION_H

#include "comm/class.h"

/* Fills a location: host, machine, this process. */
void tr_location_here(struct tr_location *location);
/* Whether the process that was at a location on this machine still runs. */
bool tr_location_runs(const struct tr_location *location);

/* A descriptor that becomes readable (poll()) when the process at a location on this machine has ended;
   owned. -1 where the system has none, or the process has ended: then use tr_location_runs(). */
int tr_location_watch(const struct tr_location *location);

#endif
