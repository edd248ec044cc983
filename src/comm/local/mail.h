/* Messages over rings: matching, and what is under way.
 *
 * A message is eager or announced. An eager one is written at once (BEGIN, and MORE for what does not fit
 * into a frame): the receiver keeps it until a receive asks for it. A credit limits how much a sender may
 * have there unasked: beyond it, a message is only announced, and written when the receiver has a place for
 * it (WANT, then MORE). So a sender may be ahead by any number of messages, and what they take at the
 * receiver is bounded by the credit and by the messages that the sender still has under way. Nothing waits
 * for a message that was sent later: each can at least be announced.
 *
 * Messages of a pair begin in the order in which they were started, and a receive takes the first one of its
 * tag that is not taken, so those of one tag arrive in order.
 *
 * Both sides copy; no process touches the private memory of another. So the memory of a cancelled message is
 * free at once, as soon as its ring is read no more.
 *
 * All functions are called with the lock of the communicator held.
 */
#ifndef TR_COMM_LOCAL_MAIL_H
#define TR_COMM_LOCAL_MAIL_H

#include "comm/local/area.h"

struct local_mail;

tr_status tr_local_mail_create(const struct local_area *area, int rank, struct local_mail **out);
/* Accepts NULL, nulls the handle. Transfers under way are forgotten. */
void tr_local_mail_destroy(struct local_mail **mail);

/* Slots of the transport. */
tr_status tr_local_mail_start(struct local_mail *mail, struct tr_transfer *transfer);
tr_status tr_local_mail_test(struct tr_transfer *transfer);
/* `lost`: the other side reads no more, or we do not write any more. */
bool tr_local_mail_withdraw(struct local_mail *mail, struct tr_transfer *transfer, bool lost);

/* Whether there is something of a rank's that no poll has looked at. */
bool tr_local_mail_is_unread(const struct local_mail *mail, int rank);
/* Moves on what has news: takes in, and writes what there is room for. */
tr_status tr_local_mail_poll(struct local_mail *mail);

#endif
