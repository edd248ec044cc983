/* Simple gathering: every rank contributes, and all wait. */
#include "base/fail.h"
#include "comm/operation.h"

tr_status tr_comm_exchange_parts(tr_comm *comm, void *data, const int64_t *bound, const char *name)
{
    tr_ticket *ticket = NULL;
    TR_TRY(tr_comm_gather_to_all(comm, data, bound, name, &ticket));
    tr_status status = tr_comm_wait(comm, &ticket);
    if (status == TR_OK) return TR_OK;
    /* Others may not know of the failure and may still send; callers often free the data now. */
    pthread_mutex_lock(&comm->lock);
    tr_ticket_withdraw(comm, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_exchange(tr_comm *comm, void *blocks, size_t bytes, const char *name)
{
    int size = tr_comm_size(comm);
    int64_t bound[size + 1]; /* a few bytes for each rank; steps allocate nothing */
    for (int r = 0; r <= size; r++) bound[r] = r * (int64_t)bytes;
    return tr_comm_exchange_parts(comm, blocks, bound, name);
}
