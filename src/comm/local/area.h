/* The memory that the ranks of a group share: a file without a name (memfd), which they inherit from their
 * launcher.
 *
 *     header | a record for each rank | a ring for each ordered pair of ranks | extents (extents.h)
 *
 * Header and records are allocated from the beginning. Rings and extents are sparse: they take memory once
 * written. The length is sealed, so that no process can shrink the file while others have it mapped.
 *
 * Writers: the launcher writes the header, except its counters; a rank writes its record, except the bell,
 * its mail bits and `ended`, which all may write; for rings see ring.h. All words that two processes use
 * at the same time are atomic. A reader checks everything that others wrote, since they may be damaged or
 * other programs.
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
    _Alignas(TR_CACHE_LINE) atomic_uint joined;   /* ranks that have reached JOINED */
    atomic_int first;                             /* to give up: that rank + 1; 0: none did */
    _Atomic uint64_t changes;                     /* grows when a rank ends, gives up or leaves */
};

struct local_record {
    /* Counts possible news for the rank; it sleeps by futex on it. */
    _Alignas(TR_CACHE_LINE) _Atomic uint32_t bell;
    _Atomic uint32_t sleepers;          /* threads of the rank that sleep, or are about to */
    _Atomic uint64_t mail[LOCAL_WORDS]; /* a bit for each rank whose rings may have news */
    _Atomic uint64_t letters;           /* a bit for each word of `mail` that may have bits set */
    _Alignas(TR_CACHE_LINE) atomic_uint state;
    atomic_uint ended;    /* the process has ended, as noticed by the launcher or a watching rank */
    _Atomic int64_t seen; /* when the process last showed that it runs: nanoseconds of the host's clock */
    struct tr_location location; /* written before JOINED */
    char why[LOCAL_WHY];         /* written before GAVE_UP */
};

/* Ring of one ordered pair of ranks. */
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
    size_t bytes;      /* mapped: all except extents, which begin there */
    uint64_t length;   /* of the file */
    char *memory;
    struct local_header *header;
    struct local_record *record; /* [size] */
};

/* Makes the memory of a group. TR_ENOMEM, TR_EUNSUPPORTED. */
tr_status tr_local_area_create(int size, struct local_area *area);
/* Maps the memory of a group of `size` ranks after all checks; takes the descriptor if it succeeds.
   TR_EINVAL, TR_ENOMEM. */
tr_status tr_local_area_open(int descriptor, int size, struct local_area *area);
void tr_local_area_close(struct local_area *area);

struct local_ring *tr_local_area_ring(const struct local_area *area, int from, int to);

/* Wakes a rank, or all of them, to look for changes, which must be written first. */
void tr_local_wake(const struct local_area *area, int rank);
void tr_local_wake_all(const struct local_area *area);
/* Notifies `to` that rings between it and `from` have news, and wakes it. */
void tr_local_knock(const struct local_area *area, int from, int to);
/* Sleeps until the bell of a rank differs from `moment`, at most `seconds`. */
void tr_local_sleep(const struct local_area *area, int rank, uint32_t moment, double seconds);

/* A rank has left, or another fact about it has changed; wakes all. */
void tr_local_change(const struct local_area *area);
/* Notifies all ranks, once, that the process of a rank has ended; its written messages can still be read. */
void tr_local_bury(const struct local_area *area, int rank);
/* Leaves the reason why a rank gives up, and wakes all. */
void tr_local_give_up(const struct local_area *area, int rank, const char *why);
/* The first rank that gave up, or -1. */
int tr_local_first_to_give_up(const struct local_area *area);
/* The reason that a rank left, as far as it can be trusted. */
void tr_local_words(const struct local_area *area, int rank, char *why, size_t size);

#endif
