/* Receiving: matches messages with their receives. */
#include "comm/local/peer.h"

#include "base/fail.h"

#include <string.h>

/* Bytes to read from one rank before others are served, in rings. */
#define TURN_RINGS 4

/* ---- incomplete or unrequested messages ---- */

static struct local_inbound *add_inbound(struct local_mail *mail, struct local_peer *peer,
                                         const struct local_frame *frame)
{
    struct local_inbound *inbound = mail->spare;
    if (inbound)
        mail->spare = inbound->next;
    else if (!(inbound = tr_alloc(1, sizeof *inbound)))
        return NULL;
    inbound->next = NULL;
    inbound->cookie = frame->cookie;
    inbound->tag = frame->tag;
    inbound->announced = frame->kind == LOCAL_ANNOUNCE;
    inbound->wanted = inbound->dropped = false;
    inbound->bytes = (size_t)frame->bytes;
    inbound->got = 0;
    inbound->receive = NULL;
    inbound->kept = NULL;
    *peer->last = inbound;
    peer->last = &inbound->next;
    return inbound;
}

static void discard_kept(struct local_inbound *inbound)
{
    if (inbound->kept != inbound->small) tr_free(inbound->kept);
    inbound->kept = NULL;
}

static void remove_inbound(struct local_mail *mail, struct local_peer *peer, struct local_inbound *inbound)
{
    struct local_inbound **at = &peer->first;
    while (*at != inbound) at = &(*at)->next;
    *at = inbound->next;
    if (peer->last == &inbound->next) peer->last = at;
    discard_kept(inbound);
    inbound->next = mail->spare;
    mail->spare = inbound;
}

/* ---- a message and its receive ---- */

/* A message got its receive, or is dropped: its sender gets the credit back. */
static void give_credit_back(struct local_peer *peer, uint64_t bytes)
{
    peer->held -= bytes + LOCAL_COST;
    peer->returned += bytes + LOCAL_COST;
    atomic_store_explicit(&peer->reader.ring->credit, peer->returned, memory_order_relaxed);
}

/* Whether the message has the size that the receive expects. If not, the receive is done. */
static bool agrees(struct tr_transfer *receive, uint64_t bytes)
{
    if (receive->bytes == bytes) return true;
    receive->came = (size_t)bytes;
    receive->state = LOCAL_MISMATCH;
    return false;
}

/* The message is complete. */
static void finish(struct local_mail *mail, struct local_peer *peer, struct local_inbound *inbound)
{
    if (inbound->receive) inbound->receive->state = LOCAL_COMPLETE;
    remove_inbound(mail, peer, inbound);
}

/* Matches a message with a receive; neither has another match. */
static void match(struct local_mail *mail, struct local_peer *peer, struct local_inbound *inbound,
                  struct tr_transfer *receive)
{
    bool whole = !inbound->announced && inbound->got == inbound->bytes;
    if (!inbound->announced) give_credit_back(peer, inbound->bytes);
    if (agrees(receive, inbound->bytes)) {
        if (inbound->got > 0) memcpy(receive->data, inbound->kept, inbound->got);
        inbound->receive = receive;
        receive->state = LOCAL_MOVING;
        peer->unasked += inbound->announced;
    } else {
        inbound->dropped = true;
    }
    discard_kept(inbound);
    if (whole) finish(mail, peer, inbound);
}

/* Takes the oldest waiting receive for a tag. */
static struct tr_transfer *claim_receive(struct local_peer *peer, int tag)
{
    struct tr_transfer *receive = peer->receives;
    while (receive && receive->tag != tag) receive = receive->next;
    if (receive) tr_local_take_out(&peer->receives, receive);
    return receive;
}

static struct local_inbound *find_unclaimed(const struct local_peer *peer, int tag)
{
    struct local_inbound *inbound = peer->first;
    while (inbound && (inbound->tag != tag || inbound->receive || inbound->dropped)) inbound = inbound->next;
    return inbound;
}

static void knock_if(struct local_mail *mail, int rank, bool needed)
{
    if (needed) tr_local_knock(mail->area, mail->rank, rank);
}

/* Writes the data of a frame to their place in the message. */
static void take_data(struct local_mail *mail, int rank, struct local_inbound *inbound,
                      const struct local_frame *frame)
{
    struct local_peer *peer = &mail->peer[rank];
    char *to = inbound->receive ? inbound->receive->data : inbound->kept;
    knock_if(mail, rank, tr_local_take(&peer->reader, frame, to ? to + inbound->got : NULL));
    inbound->got += (size_t)frame->count;
    if (inbound->got == inbound->bytes && (inbound->receive || inbound->dropped)) finish(mail, peer, inbound);
}

static tr_status keep(struct local_inbound *inbound)
{
    if (inbound->bytes <= LOCAL_SMALL)
        inbound->kept = inbound->small;
    else
        inbound->kept = tr_alloc(inbound->bytes, 1);
    return inbound->kept ? TR_OK : TR_ENOMEM;
}

static tr_status take_begin(struct local_mail *mail, int rank, const struct local_frame *frame)
{
    struct local_peer *peer = &mail->peer[rank];
    if (frame->count > frame->bytes || frame->tag < 0) return tr_local_nonsense(rank, "a beginning");
    if (frame->bytes > mail->credit || peer->held + frame->bytes + LOCAL_COST > mail->credit)
        return tr_local_nonsense(rank, "more than its credit");
    struct tr_transfer *receive = claim_receive(peer, frame->tag);
    peer->held += frame->bytes + LOCAL_COST;
    if (receive && frame->count == frame->bytes && frame->bytes == receive->bytes) {
        give_credit_back(peer, frame->bytes);
        knock_if(mail, rank, tr_local_take(&peer->reader, frame, receive->data));
        receive->state = LOCAL_COMPLETE;
        return TR_OK;
    }
    struct local_inbound *inbound = add_inbound(mail, peer, frame);
    if (!inbound) return TR_ENOMEM;
    if (!receive) {
        TR_TRY(keep(inbound));
    } else {
        give_credit_back(peer, frame->bytes);
        inbound->dropped = !agrees(receive, frame->bytes);
        if (!inbound->dropped) {
            inbound->receive = receive;
            receive->state = LOCAL_MOVING;
        }
    }
    take_data(mail, rank, inbound, frame);
    return TR_OK;
}

static tr_status take_announcement(struct local_mail *mail, int rank, const struct local_frame *frame)
{
    struct local_peer *peer = &mail->peer[rank];
    if (frame->count > 0 || frame->tag < 0 || frame->bytes > SIZE_MAX)
        return tr_local_nonsense(rank, "an announcement");
    struct local_inbound *inbound = add_inbound(mail, peer, frame);
    if (!inbound) return TR_ENOMEM;
    struct tr_transfer *receive = claim_receive(peer, frame->tag);
    if (receive) match(mail, peer, inbound, receive);
    knock_if(mail, rank, tr_local_take(&peer->reader, frame, NULL));
    return TR_OK;
}

static tr_status take_more(struct local_mail *mail, int rank, const struct local_frame *frame)
{
    struct local_inbound *inbound = mail->peer[rank].first;
    while (inbound && (inbound->cookie != frame->cookie ||
                       (inbound->announced ? !inbound->wanted : inbound->got == inbound->bytes)))
        inbound = inbound->next;
    if (!inbound || frame->count > inbound->bytes - inbound->got)
        return tr_local_nonsense(rank, "a continuation");
    take_data(mail, rank, inbound, frame);
    return TR_OK;
}

static tr_status take_want(struct local_mail *mail, int rank, const struct local_frame *frame)
{
    struct local_peer *peer = &mail->peer[rank];
    struct tr_transfer *send = peer->sends;
    while (send && ((uint64_t)(uintptr_t)send != frame->cookie || send->state != LOCAL_ANNOUNCED))
        send = send->next;
    if (!send || frame->count > 0) return tr_local_nonsense(rank, "a request");
    send->state = LOCAL_MOVING;
    knock_if(mail, rank, tr_local_take(&peer->reader, frame, NULL));
    return TR_OK;
}

static tr_status take_frame(struct local_mail *mail, int rank, const struct local_frame *frame)
{
    if (frame->kind == LOCAL_BEGIN) return take_begin(mail, rank, frame);
    if (frame->kind == LOCAL_MORE) return take_more(mail, rank, frame);
    if (frame->kind == LOCAL_ANNOUNCE) return take_announcement(mail, rank, frame);
    if (frame->kind == LOCAL_WANT) return take_want(mail, rank, frame);
    return tr_local_nonsense(rank, "an unknown kind");
}

tr_status tr_local_take_in(struct local_mail *mail, int rank)
{
    struct local_reader *reader = &mail->peer[rank].reader;
    uint64_t begin = reader->tail;
    while (reader->tail - begin < TURN_RINGS * reader->capacity) {
        struct local_frame frame;
        bool found;
        TR_TRY(tr_local_read(reader, &frame, &found));
        if (!found) return TR_OK;
        TR_TRY(take_frame(mail, rank, &frame));
    }
    /* Its sender writes as fast as we read. Others are served first; it is polled again. */
    tr_local_knock(mail->area, rank, mail->rank);
    return TR_OK;
}

void tr_local_withdraw_receive(struct local_mail *mail, struct tr_transfer *receive)
{
    struct local_peer *peer = &mail->peer[receive->peer];
    tr_local_take_out(&peer->receives, receive);
    struct local_inbound *inbound = peer->first;
    while (inbound && inbound->receive != receive) inbound = inbound->next;
    if (!inbound) return;
    inbound->receive = NULL;
    if (!inbound->announced || inbound->wanted) {
        inbound->dropped = true; /* it is under way */
        return;
    }
    peer->unasked--;
    struct tr_transfer *other = claim_receive(peer, inbound->tag);
    if (other) match(mail, peer, inbound, other);
}

void tr_local_receive(struct local_mail *mail, struct tr_transfer *receive)
{
    struct local_peer *peer = &mail->peer[receive->peer];
    struct local_inbound *inbound = find_unclaimed(peer, receive->tag);
    if (inbound)
        match(mail, peer, inbound, receive);
    else
        tr_local_append(&peer->receives, receive);
}

void tr_local_empty(struct local_mail *mail)
{
    for (int rank = 0; rank < mail->area->size; rank++)
        while (mail->peer[rank].first) remove_inbound(mail, &mail->peer[rank], mail->peer[rank].first);
    while (mail->spare) {
        struct local_inbound *inbound = mail->spare;
        mail->spare = inbound->next;
        tr_free(inbound);
    }
}
