/* The interface of the mail to the transport. */
#include "comm/local/peer.h"

#include "base/fail.h"

/* A sender's credit, in rings. */
#define CREDIT_RINGS 16

tr_status tr_local_nonsense(int peer, const char *what)
{
    return tr_fail(TR_EPEER,
                   "rank %d sent an invalid message (%s); all ranks must run the same program on the same "
                   "job, or else the memory that they share is damaged",
                   peer, what);
}

tr_status tr_local_mail_start(struct local_mail *mail, struct tr_transfer *transfer)
{
    struct local_peer *peer = &mail->peer[transfer->peer];
    transfer->state = LOCAL_QUEUED;
    tr_status status = TR_OK;
    if (transfer->sends) {
        tr_local_append(&peer->sends, transfer);
        status = tr_local_write_out(mail, transfer->peer);
        if (status != TR_OK) tr_local_take_out(&peer->sends, transfer);
    } else {
        tr_local_receive(mail, transfer);
        /* A failure here concerns the pair, and is reported by the next poll. */
        if (peer->unasked > 0) status = tr_local_write_out(mail, transfer->peer);
    }
    transfer->done = transfer->state == LOCAL_COMPLETE;
    return status;
}

tr_status tr_local_mail_test(struct tr_transfer *transfer)
{
    transfer->done = transfer->state == LOCAL_COMPLETE;
    return transfer->state == LOCAL_MISMATCH ? tr_comm_wrong_size(transfer) : TR_OK;
}

bool tr_local_mail_withdraw(struct local_mail *mail, struct tr_transfer *transfer, bool lost)
{
    struct local_peer *peer = &mail->peer[transfer->peer];
    if (!transfer->sends)
        tr_local_withdraw_receive(mail, transfer);
    else if (lost || transfer->state == LOCAL_QUEUED)
        tr_local_take_out(&peer->sends, transfer);
    else if (transfer->state != LOCAL_COMPLETE)
        return false; /* the receiver relies on it */
    transfer->done = true;
    return true;
}

tr_status tr_local_mail_poll(struct local_mail *mail)
{
    struct local_record *record = &mail->area->record[mail->rank];
    if (atomic_load(&record->letters) == 0) return TR_OK;
    uint64_t letters = atomic_exchange(&record->letters, 0);
    /* Only as long as there are bits, so that a poll costs as much as there is news, however many ranks
       there are. */
    for (; letters; letters &= letters - 1) {
        int word = __builtin_ctzll(letters);
        if (word >= LOCAL_WORDS) continue;
        for (uint64_t news = atomic_exchange(&record->mail[word], 0); news; news &= news - 1) {
            int rank = 64 * word + __builtin_ctzll(news);
            if (rank >= mail->area->size) continue;
            TR_TRY(tr_local_take_in(mail, rank));
            TR_TRY(tr_local_write_out(mail, rank));
        }
    }
    return TR_OK;
}

bool tr_local_mail_is_unread(const struct local_mail *mail, int rank)
{
    const struct local_reader *reader = &mail->peer[rank].reader;
    return atomic_load(&reader->ring->head) != reader->tail;
}

/* ---- beginning and end ---- */

tr_status tr_local_mail_create(const struct local_area *area, int rank, struct local_mail **out)
{
    struct local_mail *mail = tr_alloc_zero(1, sizeof *mail + (size_t)area->size * sizeof mail->peer[0]);
    *out = mail;
    if (!mail) return TR_ENOMEM;
    mail->area = area;
    mail->rank = rank;
    mail->credit = (uint64_t)CREDIT_RINGS * area->ring_bytes;
    for (int other = 0; other < area->size; other++) {
        struct local_peer *peer = &mail->peer[other];
        peer->writer = tr_local_writer(area, rank, other);
        peer->reader = tr_local_reader(area, other, rank);
        peer->last = &peer->first;
    }
    return TR_OK;
}

void tr_local_mail_destroy(struct local_mail **handle)
{
    struct local_mail *mail = *handle;
    if (!mail) return;
    *handle = NULL;
    tr_local_empty(mail);
    tr_free(mail);
}
