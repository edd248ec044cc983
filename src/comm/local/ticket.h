/* A launcher's variable of the environment for the process of a rank: "DESCRIPTOR:RANK:SIZE". */
#ifndef TR_COMM_LOCAL_TICKET_H
#define TR_COMM_LOCAL_TICKET_H

#include <stdbool.h>
#include <stddef.h>

struct local_ticket {
    int descriptor, rank, size;
};

/* False unless it says just that, with a rank below the size. */
bool tr_local_ticket_read(const char *text, struct local_ticket *out);

#endif
