/* The interface of a transport: nonblocking messages, and which ranks are alive. Everything else
 * (collectives, deadlines, windows) is implemented once on top; a transport may also have its own
 * collectives.
 *
 * All slots except `idle` are called with the communicator's lock held and must not block.
 */
#ifndef TR_COMM_CLASS_H
#define TR_COMM_CLASS_H

#include "comm/comm.h"

#include <pthread.h>

#define TR_COMM_VERSION 2

/* Tags of collectives are above those of users, tags of transports above these, and tags of subgroups
   above all. */
#define TR_COMM_TAG_COLLECTIVE (TR_COMM_TAG_MOST + 1)
#define TR_COMM_TAG_TRANSPORT  (2 * TR_COMM_TAG_COLLECTIVE)
#define TR_COMM_TAG_SUBGROUPS  (4 * TR_COMM_TAG_COLLECTIVE)

/* A message under way. Its address does not change until it is done or withdrawn. */
struct tr_transfer {
    void *data; /* only read if `sends` */
    size_t bytes;
    int peer, tag;
    bool sends;
    bool numbers; /* no rank's decisions depend on its contents: a simulation may leave them out */
    bool done;    /* set by the transport's `test`, or by `start` */
    bool broken;  /* the transport failed, see tr_comm_tolerate(): never done, and must not be tested */
    int gate;     /* the phase of its operation that waits for it, see operation.h */
    /* For the transport. */
    struct tr_transfer *next;
    void *request;
    int state;
    size_t came; /* bytes of a message whose size was not the expected one */
};

struct tr_route;
struct tr_reduction;
/* A sum along the tree of a reduction without a window; see tr_comm_reduce_scatter(). */
struct tr_sum {
    const struct tr_reduction *reduction;
    const float *nodes;
    int64_t stride;
    const int64_t *shard; /* [size + 1] */
    float *out;           /* of this rank's shard */
};

#define TR_LOCATION_NAME    64
#define TR_LOCATION_MACHINE 128
/* Where a rank runs. */
struct tr_location {
    char host[TR_LOCATION_NAME];
    /* Equal for ranks that can map each other's memory (same kernel, same name space of processes). */
    char machine[TR_LOCATION_MACHINE];
    int64_t process;
    uint64_t began; /* start time of the process, so that a reused process id is not mistaken for it */
};

#define TR_SHARE_KEY 64

struct tr_comm_class {
    const char *name;
    int version; /* TR_COMM_VERSION */
    /* Seconds in which messages of a lost rank may still arrive; 0: a poll after its loss finds them all. */
    double grace;
    /* Starts a message; the transfer is borrowed until done or withdrawn. A receive of another size than the
       message is TR_EMISMATCH, here or from `test`. */
    tr_status (*start)(tr_comm *comm, struct tr_transfer *transfer);
    /* Called before a round of tests. Writes the moment, for `idle`. */
    tr_status (*poll)(tr_comm *comm, uint64_t *moment);
    /* Sets `done` if the message is complete; not called when done. */
    tr_status (*test)(tr_comm *comm, struct tr_transfer *transfer);
    /* Ends a transfer that is not done. False: its memory is still in use, the transfer itself too. */
    bool (*withdraw)(tr_comm *comm, struct tr_transfer *transfer);
    /* Without the lock: sleeps until something may have changed since the poll that gave `moment`, at most
       `seconds`. `waited`: how long the caller has waited without news, so that the first sleeps may be
       short. */
    void (*idle)(tr_comm *comm, uint64_t moment, double waited, double seconds);
    /* `idle` returns as soon as there is news, rather than at intervals */
    bool rings;
    /* The known state of another rank, and the seconds since its last sign of life. Writes `why` if it
       gave up. Never returns TR_COMM_SILENT. */
    enum tr_comm_life (*life)(tr_comm *comm, int rank, double *silence, char *why, size_t size);
    /* A number that grows whenever `life` may have a new answer for some rank, except silence, so that a
       waiting rank need not ask for each. NULL: not known. */
    uint64_t (*changes)(tr_comm *comm);
    /* The rank that gave up before all others, and so caused their giving up; -1 if none did. NULL: not
       known. */
    int (*first_to_give_up)(tr_comm *comm);
    /* Tells all other ranks that this one gave up. */
    void (*give_up)(tr_comm *comm, const char *why);
    /* Makes memory that ranks of this machine can map, of which the bytes [begin, end) are zeroed and
       allocated, and the key to map it by. NULL: this transport has none. */
    tr_status (*share_memory)(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                              char key[TR_SHARE_KEY]);
    /* Maps memory of another rank. */
    tr_status (*map)(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory);
    /* All ranks that need it have mapped our memory; the key becomes invalid. NULL: nothing to do. */
    void (*mapped)(tr_comm *comm, char key[TR_SHARE_KEY]);
    /* Unmaps own or other's memory. */
    void (*unmap)(tr_comm *comm, size_t bytes, void *memory);
    /* The transport's own collectives, where it has better ways than messages between pairs. Each starts
       one transfer, which is tested and withdrawn like a message; `peer` is this rank, `tag` the number of
       the collective, the same on all ranks. Its data are borrowed until then. NULL: the engine implements
       it with messages. The arithmetic is the same, left + right along the tree. */
    tr_status (*broadcast)(tr_comm *comm, struct tr_transfer *transfer, int root);
    tr_status (*all_gather)(tr_comm *comm, struct tr_transfer *transfer, const int64_t *bound); /* bytes */
    tr_status (*reduce_scatter)(tr_comm *comm, struct tr_transfer *transfer, const struct tr_sum *sum);
    /* Frees the transport; `clean` if all ranks have called it and nothing is under way. Called without
     * the lock, last.
     */
    void (*destroy)(tr_comm *comm, bool clean);
};

/* A partition of the ranks into islands, whose members read each other's memory. Islands are numbered in the
   order of their lowest ranks, members ascend. */
struct tr_islands {
    int count;
    int *of;     /* [size] island of each rank */
    int *index;  /* [size] of each rank among the members of its island */
    int *start;  /* [count + 1] */
    int *member; /* [size] ranks; those of island i are member[start[i]] to member[start[i + 1] - 1] */
};

static inline int tr_island_size(const struct tr_islands *islands, int island)
{
    return islands->start[island + 1] - islands->start[island];
}

/* The member of an island that handles the shard of a rank: the one with the same index, so that work is
   spread; within the rank's own island that is the rank itself. */
static inline int tr_island_agent(const struct tr_islands *islands, int island, int rank)
{
    return islands->member[islands->start[island] + islands->index[rank] % tr_island_size(islands, island)];
}

/* How messages of many ranks go (comm/sums/route.h): chosen by the number of islands and bytes; directly
   to all; in rounds, wherever there are two islands. The last two are for tests. */
enum tr_routing { TR_ROUTING_AUTO, TR_ROUTING_DIRECT, TR_ROUTING_TREE };

/* The head of every transport's own structure. */
struct tr_comm {
    const struct tr_comm_class *class;
    int rank, size;
    struct tr_comm_settings settings;
    pthread_mutex_t lock;           /* guards what follows and all calls of slots */
    struct tr_location *location;   /* [size] */
    struct tr_islands alone, hosts; /* every rank a separate island; every host one island */
    /* How shards go to all islands, for each kind of islands; made when first used. */
    struct tr_route *spread_alone, *spread_hosts;
    enum tr_routing routing; /* the same on all ranks, set before anything is under way */
    int *pending;            /* [size] scratch of the search for lost ranks */
    /* For a subgroup, see tr_comm_split(): the communicator with the transport, and the ranks there. The
       subgroup's lock is taken first. */
    tr_comm *whole;
    int *member;              /* [size] */
    uint32_t subgroup_bits;   /* for the whole: existing subgroups, a bit each */
    uint32_t sequence;        /* collectives started */
    uint64_t moment, polled;  /* at the last poll of a caller; at the last poll at all */
    tr_ticket *active, *pool; /* operations under way, and free ones for reuse */
    tr_ticket **newest;       /* end of the list of active operations; invalid while it is empty */
    struct tr_comm_statistics statistics;
    bool dead;
    char *reason;               /* why */
    bool tolerant, dissolved;   /* see tr_comm_tolerate(), tr_comm_dissolve() */
    bool outlives, lost_member; /* a subgroup of tr_comm_survivors(); one of its ranks died */
    /* The thread of tr_comm_use_progress_thread(), or NULL; whether it is working; its failure that was
       not reported to a caller. */
    struct tr_progress_thread *progress;
    bool moves;
    tr_status verdict;
    int waits;          /* callers that wait, and so make all operations progress */
    uint64_t turns;     /* rounds of tests, by any thread */
    uint64_t completed; /* transfers that were found done, and phases entered */
};

/* TR_EINTERRUPTED where the stop of the settings is set. Local. */
tr_status tr_comm_check_stop(const struct tr_comm_settings *settings);
/* TR_EINVAL for time limits that make no sense. */
tr_status tr_comm_check_settings(const struct tr_comm_settings *settings);
/* Makes a subgroup of `size` ranks of a communicator, this one among them, whose tags follow from `number`,
   the same for all and of no other subgroup that lives. TR_ENOMEM. */
tr_status tr_subgroup_make(tr_comm *comm, const int *member, int size, int number, tr_comm **out);
/* The seconds between two signs of life of a rank. */
double tr_comm_interval(const struct tr_comm_settings *settings);
/* With the lock held: TR_EPEER, with the message of a wait that finds it, if a rank is lost for good; else
 * TR_OK.
 */
tr_status tr_comm_check_rank(tr_comm *comm, int rank);
/* Records that a message did not have the size of its receive, but that of `came`; returns TR_EMISMATCH. */
tr_status tr_comm_wrong_size(const struct tr_transfer *receive);
/* Fills the head; a transport calls this first. `size` is at least 1. Released with tr_comm_release(), also
 * after a failure. */
tr_status tr_comm_prepare(tr_comm *comm, const struct tr_comm_class *class, int rank, int size,
                          const struct tr_comm_settings *settings);
/* With the lock held: ends the communicator with separate messages for this rank and for the others. */
void tr_comm_end(tr_comm *comm, const char *reason, const char *why);
/* Frees what the head owns, not the structure. */
void tr_comm_release(tr_comm *comm);
/* Derives hosts from locations once all are known. */
void tr_comm_find_hosts(tr_comm *comm);
/* Exchanges locations: each rank has filled its own. Collective, waits. */
tr_status tr_comm_exchange_locations(tr_comm *comm);

#endif
