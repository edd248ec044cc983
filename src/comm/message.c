/* Messages from rank to rank: operations of one transfer. */
#include "comm/operation.h"

#include "base/fail.h"

static tr_status start(tr_comm *comm, bool sends, bool numbers, int peer, int tag, void *data, size_t bytes,
                       const char *name, tr_ticket **out)
{
    const char *kind = sends ? "send" : "receive";
    *out = NULL;
    if (peer < 0 || peer >= comm->size)
        return tr_fail(TR_EINVAL, "%s: there is no rank %d; choose 0 to %d", kind, peer, comm->size - 1);
    if (tag < 0 || tag > TR_COMM_TAG_MOST)
        return tr_fail(TR_EINVAL, "%s: tag %d is out of range; choose 0 to %d", kind, tag, TR_COMM_TAG_MOST);
    pthread_mutex_lock(&comm->lock);
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_check(comm);
    if (status == TR_OK) status = tr_ticket_take(comm, kind, name, 1, 0, &ticket);
    if (status == TR_OK) {
        ticket->tag = tag;
        ticket->numbers = numbers;
        status = sends ? tr_ticket_send(comm, ticket, peer, data, bytes, 0)
                       : tr_ticket_receive(comm, ticket, peer, data, bytes, 0);
        if (status == TR_OK)
            status = tr_ticket_start(comm, ticket);
        else
            tr_comm_die(comm, status), tr_ticket_drop(comm, ticket);
    }
    if (status == TR_OK) *out = ticket;
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_send(tr_comm *comm, int to, int tag, const void *data, size_t bytes, const char *name,
                       tr_ticket **out)
{
    return start(comm, true, false, to, tag, (void *)data, bytes, name,
                 out); /* a sender's data are only read */
}

tr_status tr_comm_receive(tr_comm *comm, int from, int tag, void *data, size_t bytes, const char *name,
                          tr_ticket **out)
{
    return start(comm, false, false, from, tag, data, bytes, name, out);
}

tr_status tr_comm_send_numbers(tr_comm *comm, int to, int tag, const void *data, size_t bytes,
                               const char *name, tr_ticket **out)
{
    return start(comm, true, true, to, tag, (void *)data, bytes, name, out);
}

tr_status tr_comm_wrong_size(const struct tr_transfer *receive)
{
    return tr_fail(TR_EMISMATCH,
                   "the message from rank %d has %zu bytes where %zu were expected; all ranks must run the "
                   "same program on the same job",
                   receive->peer, receive->came, receive->bytes);
}
