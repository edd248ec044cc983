/* The memory that the ranks of a group share: a file without a name (memfd), which all of them inherit from
 * their launcher.
 *
 *     header | a record for each rank | a ring for each ordered pair of ranks | extents (extents.h)
 *
 * Header and records have their room from the beginning. Rings and extents are sparse: they take memory once
 * written. The length is sealed, so that no process can cut off memory that others have mapped.
 *
 * Who writes what: the header is the launcher's, but for its counters; a record is its rank's, but for the
 * bell, its letter boxes and `ended`, which are everybody's; of a ring, see ring.h. All words that two
 * processes use at a time are atomic. A reader checks everything that others wrote: they may be damaged,
 * or programs of another kind.
 */
#ifndef TR_COMM_LOCAL_AREA_H
#define TR_COMM_LOCAL_AREA_H

#include "comm/class.h"
#include "comm/transport.h"

#include "base/alloc.h"

#include <stdatomic.h>

#define LOCAL_VERSION 2
#define LOCAL_WHY     512
#define LOCAL_WORDS   (TR_LOCAL_RANKS_MOST / 64)
_Static_assert(LOCAL_WORDS <= 64, "one word has a bit for each of these");

/* A rank's life: EMPTY -> JOINING (it fills its record) -> JOINED -> LEFT, or GAVE_UP from either. */
enum { LOCAL_EMPTY, LOCAL_JOINING, LOCAL_JOINED, LOCAL_LEFT, LOCAL_GAVE_UP };

struct local_header {
    char magic[16];
    uint32_t version;
    uint32_t size;                                /* ranks */
    _Alignas(TR_CACHE_LINE) _Atomic uint64_t top; /* where the next extent begins */
    _Alignas(TR_CACHE_LINE) atomic_uint joined;   /* ranks that came to JOINED */
    atomic_int first;                             /* to give up: its rank + 1; 0: none did */
    _Atomic uint64_t changes;                     /* grows when a rank ends, gives up or leaves */
};

struct local_record {
    /* Counts what may be news to the rank; it sleeps by futex on it. */
    _Alignas(TR_CACHE_LINE) _Atomic uint32_t bell;
    _Atomic uint32_t sleepers;          /* threads of the rank that sleep, or are about to */
    _Atomic uint64_t mail[LOCAL_WORDS]; /* a bit for each rank whose rings may have news */
    _Atomic uint64_t letters;           /* a bit for each word of `mail` that may have some */
    _Alignas(TR_CACHE_LINE) atomic_uint state;
    atomic_uint ended;    /* the process is gone, as the launcher or a watching rank found */
    _Atomic int64_t seen; /* when the process last showed that it runs: nanoseconds of the host's clock */
    struct tr_location location; /* written before JOINED */
    char why[LOCAL_WHY];         /* written before GAVE_UP */
};

/* One ordered pair's. */
struct local_ring {
    _Alignas(TR_CACHE_LINE) _Atomic uint64_t head; /* bytes written so far; the sender's */
    atomic_uint full;                              /* set by the sender, which waits for room */
    _Alignas(TR_CACHE_LINE) _Atomic uint64_t tail; /* bytes read so far; the receiver's */
    _Atomic uint64_t credit;                       /* of eager messages, see mail.h; the receiver's */
    _Alignas(TR_CACHE_LINE) unsigned char data[];  /* [capacity] */
};

/* A process's view. */
struct local_area {
    int descriptor; /* owned */
    int size;
    size_t ring_bytes; /* of a ring with its head */
    size_t bytes;      /* mapped: all but extents, which begin there */
    uint64_t length;   /* of the file */
    char *memory;
    struct local_header *header;
    struct local_record *record; /* [size] */
};

/* Makes the memory of a group. TR_ENOMEM, TR_EUNSUPPORTED. */
tr_status tr_local_area_create(int size, struct local_area *area);
/* Maps that of a group of `size` ranks after all checks; takes the descriptor over if it succeeds. TR_EINVAL,
   TR_ENOMEM. */
tr_status tr_local_area_open(int descriptor, int size, struct local_area *area);
void tr_local_area_close(struct local_area *area);

struct local_ring *tr_local_area_ring(const struct local_area *area, int from, int to);

/* Wakes a rank, or all of them, to look for changes, which must be written first. */
void tr_local_wake(const struct local_area *area, int rank);
void tr_local_wake_all(const struct local_area *area);
/* Tells `to` that rings between it and `from` have news, and wakes it. */
void tr_local_knock(const struct local_area *area, int from, int to);
/* Sleeps until the bell of a rank is no longer at `moment`, at most `seconds`. */
void tr_local_sleep(const struct local_area *area, int rank, uint32_t moment, double seconds);

/* A rank has left, or another fact about it has changed; wakes all. */
void tr_local_change(const struct local_area *area);
/* Tells all ranks once that the process of a rank is gone; its written messages can still be read. */
void tr_local_bury(const struct local_area *area, int rank);
/* Leaves the last words of a rank, and wakes all. */
void tr_local_give_up(const struct local_area *area, int rank, const char *why);
/* The first rank that did, or -1. */
int tr_local_first_to_give_up(const struct local_area *area);
/* The last words of a rank, as far as they can be trusted. */
void tr_local_words(const struct local_area *area, int rank, char *why, size_t size);

#endif
