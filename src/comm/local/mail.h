/* Messages over rings: matching, and messages under way.
 *
 * A message is eager or announced. An eager one is written at once (BEGIN, and MORE for the rest if it
 * does not fit a frame): the receiver keeps it until a receive requests it. A credit limits how many
 * unrequested bytes of a sender may be there: beyond it, a message is only announced, and written when the
 * receiver has a place for it (WANT, then MORE). So a sender may be ahead by any number of messages, while
 * their memory at the receiver is bounded by the credit and by the messages that the sender has under way.
 * No message waits for a later one: each can at least be announced.
 *
 * Messages of a pair begin in the order in which they were started, and a receive takes the first one of its
 * tag that is not taken, so those of one tag arrive in order.
 *
 * Both sides copy; no process accesses the private memory of another. So the memory of a cancelled message
 * is free at once, unless its ring is being read.
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
/* `lost`: the other side stopped reading, or we stopped writing. */
bool tr_local_mail_withdraw(struct local_mail *mail, struct tr_transfer *transfer, bool lost);

/* Whether a rank has written something that no poll has looked at. */
bool tr_local_mail_is_unread(const struct local_mail *mail, int rank);
/* Serves ring pairs with news: reads, and writes as much as there is room for. */
tr_status tr_local_mail_poll(struct local_mail *mail);

#endif
