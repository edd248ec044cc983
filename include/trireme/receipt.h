/* Receipts: the digests that a run commits to, and their verification (docs/how-to/receipts.md).
 *
 * A run with `train.receipt: true` keeps one, run.receipt in its directory: digests of what it is of, and of
 * its whole state at boundaries between steps. Equal jobs have equal states on any machine, so anybody with
 * the program, the model file and the data can run all of it, or some of it, again and compare.
 */
#ifndef TRIREME_RECEIPT_H
#define TRIREME_RECEIPT_H

#include "trireme/sized.h"
#include "trireme/status.h"
#include "trireme/train.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The receipt that a trainer keeps, up to its last boundary: the text of the file. Returned, free with
   tr_text_free() of trireme/data.h. TR_ENOTFOUND where it keeps none, or has not begun. Local. */
TR_API tr_status tr_trainer_receipt(tr_trainer *trainer, char **text);

/* The receipt at `path`, or of the run in the directory `path`, in the form `format`: "json", the receipt
   itself; "in-toto", a Statement (version 1) with SLSA's predicate of provenance; "cyclonedx", a bill of
   materials (version 1.6). Returned, free with tr_text_free(). TR_EINVAL for other forms, TR_ENOTFOUND,
   TR_EFORMAT, TR_ECORRUPT, TR_EIO, TR_ENOMEM. */
TR_API tr_status tr_receipt_form(const char *path, const char *format, char **text);

/* The receipt to verify, and how. Begin with TR_VERIFY_SETTINGS_INIT; strings are borrowed for the call. */
struct tr_verify_settings {
    size_t size;              /* sizeof(struct tr_verify_settings) */
    const char *path;         /* a receipt, or the directory of a run; checkpoints are looked for beside it */
    const char *model;        /* path of a model file, instead of the receipt's own text; NULL: that one */
    const char *const *set;   /* [set_count] overrides, for instance of where data are */
    int set_count;            /* of `set` */
    const char *from;         /* the checkpoint that the run began with (`from` of its settings), or NULL */
    const char *device, *isa; /* as in the settings of a training */
    int threads;              /* as there */
    int64_t segments;         /* number of segments between two boundaries, drawn at random; 0: all */
    uint64_t seed;            /* of the draw */
    int share, shares; /* of several processes that verify together, number `share`, from 0, of `shares`; 0 of
                          0: all */
    const char *expect;       /* hash of the parameters at the end of the run, or its first 16 digits or more,
                                 in addition to the receipt; NULL: none */
    bool no_memory_check;     /* this and the following as in the settings of a training */
    const char *data_cache;   /* directory of unpacked data, or NULL */
    int64_t data_cache_bytes; /* that it may have; 0: the usual ones */
    const char *program_cache; /* directory of devices' programs, or NULL */
    tr_stop *stop;             /* ends it, or NULL */
};
#ifdef __cplusplus
inline tr_verify_settings tr_verify_settings_init()
{
    tr_verify_settings value = tr_sized<tr_verify_settings>();
    value.device = "cpu";
    return value;
}
#define TR_VERIFY_SETTINGS_INIT tr_verify_settings_init()
#else
#define TR_VERIFY_SETTINGS_INIT                                                                              \
    {                                                                                                        \
        .size = sizeof(struct tr_verify_settings), .device = "cpu"                                           \
    }
#endif

/* How it ended. */
enum tr_verify_outcome {
    TR_VERIFIED,    /* all that was run again came out as the receipt says */
    TR_DIFFERS,     /* it did not */
    TR_UNVERIFIABLE /* something is missing, or another than that which the receipt is of */
};

/* The result of a verification. */
struct tr_verify_result {
    size_t size;                    /* sizeof(struct tr_verify_result) */
    enum tr_verify_outcome outcome; /* the result */
    int64_t step;                   /* DIFFERS: steps done at the first boundary that did */
    int64_t segments, checked;      /* of the receipt; of these, that were run again */
    int64_t steps;                  /* that were made for that */
    char hash[65];                  /* of the parameters at the end of the run, "" where it was not reached */
};
#define TR_VERIFY_RESULT_INIT TR_SIZED_INIT(struct tr_verify_result)

/* A stretch that was run again and came out as the receipt says. */
struct tr_verify_event {
    size_t size;        /* sizeof(struct tr_verify_event) */
    int64_t first, end; /* steps done where it begins and ends */
};
/* Told of each. Non-zero ends the verification: TR_EINTERRUPTED. */
typedef int (*tr_verify_listener)(void *user, const struct tr_verify_event *event);

/* Repeats the run of a receipt. *text is a sentence with the result; returned, free with tr_text_free().
   `listener` may be NULL. TR_OK whatever the outcome; TR_ENOTFOUND, TR_EFORMAT, TR_ECORRUPT where there is no
   receipt to verify, TR_EINVAL, TR_EINTERRUPTED, TR_ENOMEM. */
TR_API tr_status tr_verify(const struct tr_verify_settings *settings, tr_verify_listener listener, void *user,
                           struct tr_verify_result *result, char **text);

/* The probability that at least one of `forged` segments of `segments` is among `checked` that are drawn at
   random: 1 - C(segments - forged, checked) / C(segments, checked). NaN for numbers that cannot be. Any
   thread. */
TR_API double tr_verify_chance(int64_t segments, int64_t forged, int64_t checked);

/* ---- burn-in ---- */

/* How processors and devices are tried. Begin with TR_BURN_IN_SETTINGS_INIT; borrowed for the call. */
struct tr_burn_in_settings {
    size_t size;    /* sizeof(struct tr_burn_in_settings) */
    double seconds; /* about how long; each place completes at least one job, and the one it has begun */
    const char *const *devices; /* [device_count] beside the processors; none: all that have drivers of their
                                   own */
    int device_count;           /* of `devices` */
    const char *program_cache;  /* as in the settings of a training, or NULL */
};
#define TR_BURN_IN_SETTINGS_INIT TR_SIZED_INIT(struct tr_burn_in_settings)

/* How it went in one place; strings are borrowed for the call. */
struct tr_burn_in_event {
    size_t size;         /* sizeof(struct tr_burn_in_event) */
    const char *place;   /* "processor 3", by the system's number; "opencl:0" */
    int64_t rounds;      /* trainings that it did */
    int64_t wrong;       /* of these, those that ended with another hash */
    const char *hash;    /* of the first of them, or "" */
    const char *failure; /* why a training could not be carried out, or "" */
};
/* Told of each place, in the end. */
typedef void (*tr_burn_in_listener)(void *user, const struct tr_burn_in_event *event);

/* Trains a small job of known hash on every processor that the process may use, a thread on each, and on
   devices, all at once and over and over. *good: whether all places had that hash every time. `listener`
   may be NULL. TR_EINVAL, TR_EIO, TR_ENOMEM. */
TR_API tr_status tr_burn_in(const struct tr_burn_in_settings *settings, tr_burn_in_listener listener,
                            void *user, bool *good);

#ifdef __cplusplus
}
#endif
#endif
