/* Sending. */
#include "comm/local/peer.h"

#include "base/fail.h"

/* Requests announced messages for which there is memory now. */
static tr_status ask(struct local_mail *mail, int rank, bool *room)
{
    struct local_peer *peer = &mail->peer[rank];
    for (struct local_inbound *inbound = peer->first; inbound && peer->unasked > 0; inbound = inbound->next) {
        if (!inbound->announced || !inbound->receive || inbound->wanted) continue;
        struct local_frame frame = {.kind = LOCAL_WANT, .cookie = inbound->cookie};
        TR_TRY(tr_local_write(&peer->writer, &frame, NULL, room));
        if (!*room) return TR_OK;
        inbound->wanted = true;
        peer->unasked--;
    }
    return TR_OK;
}

/* Whether the receiver keeps the message before it is requested. */
static tr_status is_eager(const struct local_mail *mail, int rank, const struct tr_transfer *send,
                          bool *eager)
{
    const struct local_peer *peer = &mail->peer[rank];
    uint64_t returned = atomic_load_explicit(&peer->writer.ring->credit, memory_order_relaxed);
    uint64_t used = peer->spent - returned;
    if (used > mail->credit) return tr_local_nonsense(rank, "more credit than there is");
    *eager = send->bytes <= mail->credit - LOCAL_COST && send->bytes + LOCAL_COST <= mail->credit - used;
    return TR_OK;
}

static tr_status begin(struct local_mail *mail, int rank, struct tr_transfer *send, bool *room)
{
    struct local_peer *peer = &mail->peer[rank];
    size_t piece = tr_local_ring_piece(peer->writer.capacity);
    struct local_frame frame = {
        .kind = LOCAL_ANNOUNCE, .tag = send->tag, .bytes = send->bytes, .cookie = (uint64_t)(uintptr_t)send};
    bool eager = false;
    TR_TRY(is_eager(mail, rank, send, &eager));
    if (eager) {
        frame.kind = LOCAL_BEGIN;
        frame.count = send->bytes < piece ? send->bytes : piece;
    }
    TR_TRY(tr_local_write(&peer->writer, &frame, send->data, room));
    if (!*room) return TR_OK;
    if (eager) peer->spent += send->bytes + LOCAL_COST;
    send->came = (size_t)frame.count;
    send->state = !eager ? LOCAL_ANNOUNCED : send->came == send->bytes ? LOCAL_COMPLETE : LOCAL_MOVING;
    return TR_OK;
}

static tr_status go_on(struct local_mail *mail, int rank, struct tr_transfer *send, bool *room)
{
    struct local_peer *peer = &mail->peer[rank];
    size_t piece = tr_local_ring_piece(peer->writer.capacity), left = send->bytes - send->came;
    struct local_frame frame = {
        .kind = LOCAL_MORE, .cookie = (uint64_t)(uintptr_t)send, .count = left < piece ? left : piece};
    TR_TRY(tr_local_write(&peer->writer, &frame, (const char *)send->data + send->came, room));
    if (!*room) return TR_OK;
    send->came += (size_t)frame.count;
    if (send->came == send->bytes) send->state = LOCAL_COMPLETE;
    /* So that the receiver reads it while we write the next. */
    tr_local_knock(mail->area, mail->rank, rank);
    return TR_OK;
}

tr_status tr_local_write_out(struct local_mail *mail, int rank)
{
    struct local_peer *peer = &mail->peer[rank];
    struct tr_transfer **at = &peer->sends, *send;
    uint64_t before = peer->writer.head;
    bool room = true;
    tr_status status = ask(mail, rank, &room);
    while (status == TR_OK && room && (send = *at)) {
        if (send->state == LOCAL_QUEUED) status = begin(mail, rank, send, &room);
        while (status == TR_OK && room && send->state == LOCAL_MOVING)
            status = go_on(mail, rank, send, &room);
        if (send->state == LOCAL_COMPLETE)
            *at = send->next;
        else
            at = &send->next;
    }
    if (peer->writer.head != before) tr_local_knock(mail->area, mail->rank, rank);
    return status;
}
