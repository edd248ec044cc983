/* Communication: ranks that exchange messages and combine their results.
 *
 * A communicator is one rank's handle on a group of `size` ranks: threads of one process or processes on one
 * or many hosts (comm/transport.h). Ranks are numbered from 0; rank 0 is the root.
 *
 * A function that starts an operation returns a ticket. Operations make progress in calls of
 * tr_comm_progress(), tr_comm_test() or tr_comm_wait() on the communicator; with
 * tr_comm_use_progress_thread() a thread makes them progress. Until an operation is done, its input must
 * not be changed ("borrowed until done") and its output not be touched. A ticket is done once test or wait
 * reports it, which also frees and nulls it.
 *
 * Collective functions must be called by all ranks, in the same order, with arguments that agree. If one
 * fails for lack of memory, the communicator is dead, since the other ranks would wait for it.
 *
 * Failures. Only a wait decides that a rank is missing: it died, left, gave up, gave no sign of life for
 * `timeout` seconds (hung: its process is stopped, its host or network is down), or lives and does not
 * send for `patience` seconds. A rank that is merely slow is reported in the log once, and the wait
 * continues. The wait then returns TR_EPEER, names rank, host and operation, and notifies the other ranks.
 * From then on the communicator is dead: every call fails with the same message, only tr_comm_destroy() is
 * allowed, and memory of unfinished operations must neither be used nor freed until the process ends,
 * since a message may arrive there.
 *
 * Any thread may call any function of one communicator, also several at once, except tr_comm_destroy().
 */
#ifndef TR_COMM_COMM_H
#define TR_COMM_COMM_H

#include "trireme/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_comm tr_comm;
typedef struct tr_ticket tr_ticket;
typedef struct tr_window tr_window;
typedef struct tr_reduction tr_reduction;

#define TR_COMM_TIMEOUT  60.0
#define TR_COMM_PATIENCE 1800.0

/* Begin with TR_COMM_SETTINGS_INIT. The same on all ranks, except for `stop`. */
struct tr_comm_settings {
    double timeout;  /* seconds without a sign of life before a rank counts as hung; > 0 */
    double patience; /* seconds that a wait may take although all ranks live; >= timeout */
    bool moves;      /* operations progress by themselves while a rank computes, without a progress thread */
    const atomic_int *stop; /* while it is not 0, all waits of this rank (also that for others to join) end
                               with TR_EINTERRUPTED, and the others are notified; until
                               tr_comm_ignore_stop(). Borrowed as long. NULL: none */
};
#define TR_COMM_SETTINGS_INIT                                                                                \
    {                                                                                                        \
        TR_COMM_TIMEOUT, TR_COMM_PATIENCE, false, NULL                                                       \
    }

/* ---- ranks ---- */

int tr_comm_rank(const tr_comm *comm);
int tr_comm_size(const tr_comm *comm);
/* The number of a rank in messages: for a subgroup (tr_comm_split()) its rank in the job, else the rank
 * itself.
 */
int tr_comm_number(const tr_comm *comm, int rank);
/* "local", "mpi", ... */
const char *tr_comm_name(const tr_comm *comm);
/* Name of the host that a rank runs on. Borrowed until destroy. */
const char *tr_comm_host(const tr_comm *comm, int rank);
/* Ranks of one host see each other's memory, see tr_window_create(). Their number, this rank among them
   (ascending by rank), and the rank with an index among them. */
int tr_comm_local_size(const tr_comm *comm);
int tr_comm_local_rank(const tr_comm *comm);
int tr_comm_local(const tr_comm *comm, int index);
/* Hosts, numbered in the order of their lowest ranks. */
int tr_comm_hosts(const tr_comm *comm);
int tr_comm_host_of(const tr_comm *comm, int rank);

enum tr_comm_life {
    TR_COMM_ALIVE,
    TR_COMM_SILENT,  /* no sign of life for longer than the time-out */
    TR_COMM_LEFT,    /* destroyed its communicator */
    TR_COMM_GAVE_UP, /* called tr_comm_abort(), or one of its waits failed */
    TR_COMM_DEAD     /* its process has ended */
};
/* The known state of a rank; never blocks and changes nothing. `why`, of `size` bytes, becomes a text for
   messages ("gave up: disk full"); it may be NULL with size 0. Local. */
enum tr_comm_life tr_comm_life(tr_comm *comm, int rank, char *why, size_t size);

/* TR_OK while all these ranks live; else TR_EPEER, naming one of them, its host and how it was lost: the
   lowest rank that failed first, rather than those that gave up because of it. A lost rank may have sent
   messages just before. Local; the communicator stays usable. */
tr_status tr_comm_require(tr_comm *comm, const int *ranks, int count);

/* Makes waits of this communicator and of its subgroups ignore stops: ranks that work in step agree on an
   end instead. Not during a wait. Local. */
void tr_comm_ignore_stop(tr_comm *comm);

/* Makes the loss of a rank end only operations that need it, for jobs that can continue without some
   ranks: a message to or from an unreachable rank stays undone and must be cancelled once tr_comm_life()
   reports the rank as lost. Collective functions and tr_comm_wait() fail without it. Local. */
void tr_comm_tolerate(tr_comm *comm);
/* Call after the ranks have agreed to end the communicator since some are lost: tr_comm_destroy() then
   neither waits for other ranks nor reports that this rank gave up. Leave the process by _exit() as after
   a failure. Local. */
void tr_comm_dissolve(tr_comm *comm);
bool tr_comm_is_dissolved(tr_comm *comm);

/* ---- messages ---- */

#define TR_COMM_TAG_MOST ((1 << 20) - 1)

/* Starts sending `bytes` bytes (0 is a message, too) to a rank, also to oneself, with a tag from 0 to
   TR_COMM_TAG_MOST. Messages of one sender, receiver and tag arrive in order. `data` is borrowed until done,
   and done does not mean received. `name`, for messages about failures, lives until done. Local. */
tr_status tr_comm_send(tr_comm *comm, int to, int tag, const void *data, size_t bytes, const char *name,
                       tr_ticket **out);
/* Starts receiving a message of exactly `bytes` bytes; another size is TR_EMISMATCH and the end of the
 * communicator. */
tr_status tr_comm_receive(tr_comm *comm, int from, int tag, void *data, size_t bytes, const char *name,
                          tr_ticket **out);
/* As tr_comm_send(), for elements of tensors, on which no decision of a rank depends: a simulation may
 * leave out their contents.
 */
tr_status tr_comm_send_numbers(tr_comm *comm, int to, int tag, const void *data, size_t bytes,
                               const char *name, tr_ticket **out);
/* Cancels a message, for senders and receivers that can go on without it. True: its memory is free again.
   False: the message was on its way, and its memory must stay as it is until the process ends. Accepts a NULL
   ticket, nulls it. Local. */
bool tr_comm_cancel(tr_comm *comm, tr_ticket **ticket);

/* ---- progress ---- */

/* Makes operations progress, without blocking. Call it between pieces of other work. */
tr_status tr_comm_progress(tr_comm *comm);
/* Makes progress, then sets *done if the ticket is done; NULL tickets are done. Never decides that a rank
   is missing. */
tr_status tr_comm_test(tr_comm *comm, tr_ticket **ticket, bool *done);
/* Returns when the ticket is done, at once for a NULL ticket. TR_EPEER: see above. */
tr_status tr_comm_wait(tr_comm *comm, tr_ticket **ticket);
/* Whether the ticket is done, as tr_comm_test() but without progress; for callers with many tickets, which
   call tr_comm_progress() once for all. Never on a dead communicator. Local. */
bool tr_comm_is_done(tr_comm *comm, tr_ticket **ticket);
/* Sleeps until an operation of this rank may have progressed, at most `seconds`; for loops over
   tr_comm_test(). */
void tr_comm_idle(tr_comm *comm, double seconds);

/* Starts or ends a thread that makes the operations of this rank progress while its other threads compute,
   so that no message waits for their next call. It polls a few thousand times a second while an operation
   is under way that no other thread waits for, and sleeps otherwise. The next call returns its failures. A
   subgroup has a separate progress thread. Results do not change. Calls that change nothing are allowed,
   but only one thread at a time may call this. tr_comm_destroy() ends it, too. Local. TR_ENOMEM. */
tr_status tr_comm_use_progress_thread(tr_comm *comm, bool on);

/* ---- collectives ---- */

/* Done when all ranks have started it. */
tr_status tr_comm_barrier(tr_comm *comm, tr_ticket **out);
/* Copies `data` of `root` to all ranks. */
tr_status tr_comm_broadcast(tr_comm *comm, int root, void *data, size_t bytes, const char *name,
                            tr_ticket **out);
/* Gathers bytes [bound[r], bound[r + 1]) of `data` from each rank r on rank 0. Other ranks need room for
   all, too; bytes that are not theirs may change. A few messages per rank. bound[size + 1] ascends from 0
   and is borrowed for the call. */
tr_status tr_comm_gather(tr_comm *comm, void *data, const int64_t *bound, const char *name, tr_ticket **out);
/* Gathers bytes [bound[r], bound[r + 1]) of `data`, numbers of tensors on which no rank's decisions
   depend, from each rank r on all ranks; bound[size + 1] ascends from 0 and is borrowed for the call. For
   other data there is tr_comm_exchange_parts(). With a window, `data` lies in it and is the one copy that
   all ranks of a host share: only shards from other hosts are moved, and by starting, a rank declares that
   it no longer reads what others will overwrite. The window may be that of the communicator of which this
   one is a subgroup. */
tr_status tr_comm_all_gather(tr_comm *comm, void *data, const int64_t *bound, tr_window *window,
                             const char *name, tr_ticket **out);

/* How sums run along the tree of base/numbers/tree.h over `leaves` leaves, of which rank r contributes
   [bound[r], bound[r + 1]) as the values of the nodes of tr_tree_cover(). bound[size + 1] ascends from 0
   to `leaves` and is borrowed for the call; a rank may contribute nothing. With a window, ranks of a host
   read each other's nodes there; else all nodes are sent. The bits of the sum are the same. All ranks pass
   the same bounds and either all or none a window. Returned, destroy with tr_reduction_destroy() after the
   operations that use it are done and before communicator and window. Local. TR_EINVAL, TR_ENOMEM. */
tr_status tr_reduction_create(tr_comm *comm, int64_t leaves, const int64_t *bound, tr_window *window,
                              tr_reduction **out);
/* Accepts NULL, nulls the handle. */
void tr_reduction_destroy(tr_reduction **reduction);
/* The number of nodes that a rank contributes. */
int tr_reduction_nodes(const tr_reduction *reduction, int rank);

/* Sums the nodes of all ranks along the tree; each rank receives its shard. Node i of this rank is nodes[i *
   stride + e], e from 0 to shard[size], inside this rank's segment of the window if the reduction has one,
   and is borrowed until done. Rank r receives the sum over the elements [shard[r], shard[r + 1]) at `out`,
   which may be its shard of node 0 (nodes + shard[r]). shard[size + 1] ascends from 0 and is borrowed for the
   call.
 */
tr_status tr_comm_reduce_scatter(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                                 const int64_t *shard, float *out, const char *name, tr_ticket **ticket);
/* Reduce-scatter and all-gather with a change by the caller in between, piece by piece while the sums are
   in the cache:

   start  -> every rank has started to send its nodes
   ready  -> all inputs of this rank's shard have arrived (tr_comm_is_ready(), tr_comm_wait_ready())
   pieces -> tr_comm_reduce_piece() sums a part of the shard, as often as the caller likes, or never gather
   -> tr_comm_reduce_gather(): this rank's shard of `data` is final and is sent to all
   done   -> tr_comm_test() or tr_comm_wait(): all shards have arrived, and the nodes are free again

   Between ready and gather, what other ranks of the host wrote to shared memory before they started may be
   read, too: sums may be computed from it and not from nodes. By starting, a rank declares that it no
   longer reads what others will overwrite in `data`, which is [shard[size]] floats and, with `window`,
   lies in it, as for tr_comm_all_gather(). A ticket that is never gathered is never done. `nodes`,
   `stride` and `shard` as above. Without nodes (NULL, on all ranks), nothing is summed, and there are no
   pieces. */
tr_status tr_comm_reduce_start(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                               const int64_t *shard, float *data, tr_window *window, const char *name,
                               tr_ticket **ticket);
/* Whether the ticket is ready, without progress. Never on a dead communicator. Local. */
bool tr_comm_is_ready(tr_comm *comm, const tr_ticket *ticket);
/* Returns when the ticket is ready. Fails as tr_comm_wait(). */
tr_status tr_comm_wait_ready(tr_comm *comm, tr_ticket *ticket);
/* For a ready ticket: the sum over the elements [begin, end) of this rank's shard, at `out`, which may be
   their place in node 0. Does not take the communicator's lock, so that other threads make progress
   meanwhile. One thread at a time. Local, never waits. */
void tr_comm_reduce_piece(tr_ticket *ticket, int64_t begin, int64_t end, float *out);
/* See above; once. Local. */
tr_status tr_comm_reduce_gather(tr_comm *comm, tr_ticket *ticket);
/* Sums as above; all ranks receive all `count` elements at `out`, which may be node 0 without a window and
 * must not lie in one. */
tr_status tr_comm_all_reduce(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                             int64_t count, float *out, const char *name, tr_ticket **ticket);

/* Adds `from` to `into`; their size is that of the tr_comm_combine() call. Called in any order: the result
   must not depend on it. Must not call a function of a communicator. */
typedef void (*tr_combine)(void *into, const void *from);
/* Combines the `bytes` bytes that each rank has at `block`, so that all have the result there. A few
   messages per rank, however many ranks there are; at most TR_COMM_COMBINE_MOST bytes. */
#define TR_COMM_COMBINE_MOST 4096
tr_status tr_comm_combine(tr_comm *comm, void *block, size_t bytes, tr_combine combine, const char *name,
                          tr_ticket **out);

/* Every rank sends `bytes` bytes to all others: afterwards rank r's are at blocks + r * bytes on every
   rank. Waits. `name` as for messages. */
tr_status tr_comm_exchange(tr_comm *comm, void *blocks, size_t bytes, const char *name);
/* The same with as many bytes as each rank has: rank r's are bytes bound[r] to bound[r + 1] of `data`; bounds
   as for tr_comm_all_gather(). */
tr_status tr_comm_exchange_parts(tr_comm *comm, void *data, const int64_t *bound, const char *name);

/* Waits until all ranks have compared `value` under `key` ("data"). TR_EMISMATCH on every rank, naming two
   ranks, their hosts and both values; the communicator stays usable. `advice` ends the message ("start all
   ranks with one model file"). The strings are borrowed for the call. */
tr_status tr_comm_agree(tr_comm *comm, const char *key, const char *value, const char *advice);

/* ---- subgroups ---- */

#define TR_COMM_SUBGROUPS 16 /* most subgroups of a rank at a time */

/* Divides the ranks: those with the same color, 0 or above, become a communicator, in which they are
   numbered by key and, where keys are equal, by their present ranks. A rank with a negative color gets
   NULL. All functions work on a subgroup as on the whole, and messages of the two do not mix. A failure
   that ends one ends the other. Calls on a subgroup also make operations of the whole progress, but not
   the other way round: a rank that waits on the whole while others need its operation on a subgroup waits
   forever. Collective, waits. Returned, destroy with tr_comm_destroy() before `comm`, at once and locally
   once its operations are done. TR_EINVAL on every rank when one belongs to TR_COMM_SUBGROUPS already. */
tr_status tr_comm_split(tr_comm *comm, int color, int key, tr_comm **out);

/* ---- continuing without dead ranks ---- */

/* All living ranks of `comm`, which is not a subgroup, agree on which ranks live, and become a subgroup,
   numbered in the order of their present ranks. All living ranks must call it; it waits until each has
   called it or died. In such a subgroup the death of a rank ends only the subgroup: every wait fails with
   TR_EPEER, tr_comm_lost_member() returns true, and the others may call this again. Meanwhile only this
   function may send or wait on the whole. Any other failure ends the job. Keep ended subgroups until the
   end of the job, so that their messages are not mistaken for others; TR_EINVAL when there are
   TR_COMM_SUBGROUPS. Returned, destroy with tr_comm_destroy() before `comm`. TR_EPEER where a rank gave
   up, with its reason, or hangs; TR_ENOMEM. */
tr_status tr_comm_survivors(tr_comm *comm, tr_comm **out);
/* Whether this subgroup has ended because one of its ranks died. Local. */
bool tr_comm_lost_member(tr_comm *comm);

/* ---- memory that ranks of a host share ---- */

/* Makes `bytes` bytes (0 allowed), zeroed and aligned to a cache line, which all ranks of this host can
   read and write, and maps those of the other ranks, whose sizes may differ. Collective, waits.
   TR_EUNSUPPORTED on every rank if it fails on one, which is named; then work without. Returned, destroy
   with tr_window_destroy(). */
tr_status tr_window_create(tr_comm *comm, size_t bytes, tr_window **out);
/* The same, with memory for the bytes [begin, end) only: the others are addresses without contents, which
   take memory once written. */
tr_status tr_window_create_sparse(tr_comm *comm, size_t bytes, size_t begin, size_t end, tr_window **out);
/* The segment of a rank of this host. Borrowed until destroy. `bytes` may be NULL. Local. */
void *tr_window_segment(const tr_window *window, int rank, size_t *bytes);
/* Whether `bytes` bytes from `data` on lie in the segment of one rank. Local. */
bool tr_window_holds(const tr_window *window, const void *data, int64_t bytes);
/* Accepts NULL, nulls the handle. Local: other ranks' mappings stay valid. Before the communicator. */
void tr_window_destroy(tr_window **window);

/* ---- ending ---- */

/* For releasing memory that operations of this rank may be using, after a failure: ends operations under
   way, and with them the communicator as by tr_comm_abort(); does nothing if there are none. True: the
   memory is free again. False: messages may use it, so it must stay until the process ends. All their
   tickets become invalid, and the progress thread has ended. Local. */
bool tr_comm_end_operations(tr_comm *comm, const char *why);

/* Notifies all ranks that this one cannot continue, and why; the communicator is dead. Local, waits
   briefly. */
void tr_comm_abort(tr_comm *comm, const char *why);
/* Accepts NULL, nulls the handle. Without a failure it is collective and waits until all ranks have called
   it, within the time limits; otherwise it returns soon. After a failure of an MPI communicator leave the
   process by _exit(): MPI may hang in exit handlers. */
void tr_comm_destroy(tr_comm **comm);

/* ---- figures ---- */

struct tr_comm_statistics {
    int64_t messages_sent, messages_received; /* without signs of life */
    int64_t bytes_sent, bytes_received;
    int64_t bytes_shared; /* read from memory of other ranks of the host */
    int64_t operations;   /* completed collectives */
    double wait_seconds;  /* spent in waits */
};
/* Since the communicator was made, or the figures were last set to zero. Local. */
void tr_comm_statistics(tr_comm *comm, struct tr_comm_statistics *out);
void tr_comm_statistics_reset(tr_comm *comm);

#endif
