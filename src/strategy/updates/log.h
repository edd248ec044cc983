/* The log of an asynchronous run: which gradients made which updates, in which order. Together with the
 * job and its data, the log determines the run's weights, so the run can be repeated to the bit
 * (strategy/replay).
 *
 * A log is a sequence of records, cut into *sessions*: a run that is resumed from a checkpoint begins
 * another one, perhaps with other numbers of workers and servers. A record has the outcome of a
 * contribution, or marks a message to the root, which evaluates and saves then. Contribution n of a
 * session is part n % parts of batch n / parts; each `parts` gradients that are applied make an update.
 * All servers apply the same updates in the same order, each to its shard, so one log is valid for all of
 * them.
 *
 *     file.h   the binary form, in the directory of a run
 *     text.h   the same as text, to be read and to be written by hand
 *
 * Rules of a log (tr_update_log_check()):
 *   - Sessions follow each other: each begins with as many updates as the one before ends with.
 *   - A version that is read is not from before the session, nor from the future, and misses no more
 *     updates than the session allows.
 *   - A worker does one piece of work at a time: it reads no version older than its last gradient.
 *     So at any time no more old versions are needed than there are workers.
 *   - A worker that is lost hands in nothing more in the session.
 *   - There are no more updates than the session's steps. The log may apply a batch any number of times.
 *
 * Not for several threads at once.
 */
#ifndef TR_STRATEGY_UPDATES_LOG_H
#define TR_STRATEGY_UPDATES_LOG_H

#include "base/numbers/hash.h"

#include <stdbool.h>

enum tr_update_kind {
    TR_UPDATE_APPLIED,  /* a gradient became part of an update */
    TR_UPDATE_DROPPED,  /* a gradient was too late */
    TR_UPDATE_LOST,     /* a worker was lost, with this contribution under way, or with none: -1 */
    TR_UPDATE_TOLD,     /* a message to the root about all updates so far */
    TR_UPDATE_GATHERED, /* the root got the state of this moment */
    TR_UPDATE_DRAINED,  /* no worker has work under way */
    TR_UPDATE_KINDS
};
/* "applied", "dropped", ... */
extern const char *const tr_update_kind_names[TR_UPDATE_KINDS];

struct tr_update {
    int64_t number;  /* of the contribution; in the last three kinds the updates done */
    uint32_t missed; /* updates between the version that it was computed with and this record */
    uint16_t worker;
    uint8_t kind; /* enum tr_update_kind */
    uint8_t zero;
};

enum tr_update_mode { TR_UPDATE_ASYNC, TR_UPDATE_BOUNDED, TR_UPDATE_BACKUP, TR_UPDATE_MODES };
/* "async", "bounded", "backup". */
extern const char *const tr_update_mode_names[TR_UPDATE_MODES];

#define TR_UPDATE_ANY        INT64_MAX
#define TR_UPDATE_RANKS_MOST 4096
#define TR_UPDATE_STEPS_MOST ((int64_t)1 << 50)

struct tr_update_session {
    int32_t mode; /* enum tr_update_mode */
    int32_t workers, servers;
    int32_t parts;        /* gradients that make an update */
    int64_t staleness;    /* updates that a gradient which is applied may miss; TR_UPDATE_ANY */
    int64_t first, steps; /* updates done at its beginning, and the total that the run wants */
    int64_t begin;        /* its first record */
    int32_t numerics;     /* tr_numerics_version(); 0: unknown */
    /* 64 hexadecimal digits each, or "" where unknown: of the settings that determine the weights, the
       training data, the parameters at the beginning. */
    char job[TR_SHA256_TEXT], data[TR_SHA256_TEXT], hash[TR_SHA256_TEXT];
};

/* The parameters at a moment, as the run had them. */
struct tr_update_state {
    int64_t at;   /* records before it */
    int64_t step; /* updates */
    char hash[TR_SHA256_TEXT];
};

struct tr_update_log {
    struct tr_update_session *session;
    struct tr_update *record;
    struct tr_update_state *state; /* ascending */
    int64_t sessions, records, states;
    int64_t session_room, record_room, state_room;
};

/* An empty log is all zeros. Both leave it unchanged where memory fails: TR_ENOMEM. They fill in `begin`
   and `at`. */
tr_status tr_update_log_begin(struct tr_update_log *log, const struct tr_update_session *session);
tr_status tr_update_log_add(struct tr_update_log *log, const struct tr_update *records, int64_t count);
tr_status tr_update_log_mark(struct tr_update_log *log, int64_t step, const char *hash);
/* Empties the log, and keeps its memory. */
void tr_update_log_clear(struct tr_update_log *log);
/* Empties it and frees all; accepts an empty one. */
void tr_update_log_release(struct tr_update_log *log);

/* TR_EFORMAT where a log breaks the rules above; `name`, of the file, begins the message. */
tr_status tr_update_log_check(const struct tr_update_log *log, const char *name);

/* SHA-256 over all that determines the weights: sessions with their modes, workers and parts, and records.
   Equal logs have equal digests, whatever their file format. TR_ENOMEM. */
tr_status tr_update_log_digest(const struct tr_update_log *log, struct tr_sha256_sum *out);

static inline bool tr_update_is_work(const struct tr_update *record)
{
    return record->kind == TR_UPDATE_APPLIED || record->kind == TR_UPDATE_DROPPED;
}

/* ---- walking through a log that was checked: walk.c ---- */

/* Begins as zeros except `log`, which is borrowed. */
struct tr_update_walk {
    const struct tr_update_log *log;
    int64_t next;    /* record */
    int64_t session; /* sessions that have begun */
    int64_t count;   /* updates done */
    int32_t taken;   /* gradients of the next update */
};

struct tr_update_entry {
    const struct tr_update *record;
    const struct tr_update_session *session;
    int64_t version; /* that was read */
    int64_t count;   /* updates done before it */
    bool begins;     /* it is the first record of its session */
    bool first;      /* of the gradients of its update */
    bool completes;  /* the update */
};

/* The next record; false: there is none. */
bool tr_update_walk_next(struct tr_update_walk *walk, struct tr_update_entry *out);

#define TR_UPDATE_BINS 64
/* Totals of a log. */
struct tr_update_figures {
    int64_t updates;                   /* done in the end */
    int64_t applied, dropped, lost;    /* gradients, gradients, workers */
    int64_t staleness[TR_UPDATE_BINS]; /* histogram of applied gradients by missed updates; the last bin
                                          counts all above */
    int64_t most;                      /* updates missed */
    double missed;                     /* total, of applied gradients */
};
void tr_update_log_count(const struct tr_update_log *log, struct tr_update_figures *out);

#endif
