/* The plain case of gathering: every rank has something of the same size to tell, and all wait for it. */
#include "base/fail.h"
#include "comm/comm.h"

tr_status tr_comm_exchange(tr_comm *comm, void *blocks, size_t bytes, const char *name)
{
    int size = tr_comm_size(comm);
    int64_t bound[size + 1]; /* a few bytes for each rank; steps allocate nothing */
    tr_ticket *ticket = NULL;
    for (int r = 0; r <= size; r++) bound[r] = r * (int64_t)bytes;
    TR_TRY(tr_comm_all_gather(comm, blocks, bound, NULL, name, &ticket));
    return tr_comm_wait(comm, &ticket);
}
