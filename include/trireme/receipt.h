/* Receipts: the digests that a run commits to, and their verification (docs/how-to/receipts.md).
 *
 * A run with `train.receipt: true` keeps one, run.receipt in its directory: digests of its settings and
 * data, and of its whole state at boundaries between steps. Equal jobs have equal states on any machine.
 * So anybody with the program, the model file and the data can repeat all or some of the run and compare.
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
   tr_text_free() of trireme/data.h. TR_ENOTFOUND if it keeps none, or has not begun. Local. */
TR_API tr_status tr_trainer_receipt(tr_trainer *trainer, char **text);

/* The receipt at `path`, or of the run in the directory `path`, in the form `format`: "json", the receipt
   itself; "in-toto", a Statement (version 1) with SLSA's predicate of provenance; "cyclonedx", a bill of
   materials (version 1.6). Returned, free with tr_text_free(). TR_EINVAL for other forms, TR_ENOTFOUND,
   TR_EFORMAT, TR_ECORRUPT, TR_EIO, TR_ENOMEM. */
TR_API tr_status tr_receipt_form(const char *path, const char *format, char **text);

/* The receipt to verify, and how. Initialize with TR_VERIFY_SETTINGS_INIT; strings are borrowed for the
   call. */
struct tr_verify_settings {
    size_t size;              /* sizeof(struct tr_verify_settings) */
    const char *path;         /* a receipt, or the directory of a run; checkpoints are expected in the same
                                 directory */
    const char *model;        /* path of a model file, instead of the receipt's text; NULL: the receipt's */
    const char *const *set;   /* [set_count] overrides, for instance for the place of data */
    int set_count;            /* of `set` */
    const char *from;         /* the checkpoint that the run began with (`from` of its settings), or NULL */
    const char *device, *isa; /* as in the settings of a training */
    int threads;              /* likewise */
    int64_t segments;         /* number of segments between two boundaries to check, drawn at random; 0:
                                 all */
    uint64_t seed;            /* seed of this draw */
    int share, shares;    /* of several processes that verify together, number `share`, from 0, of `shares`; 0
                             of 0: all */
    const char *expect;   /* hash of the parameters at the end of the run, or its first 16 digits or more,
                             in addition to the receipt; NULL: none */
    bool no_memory_check; /* this and the following as in the settings of a training */
    const char *data_cache;    /* directory of unpacked data, or NULL */
    int64_t data_cache_bytes;  /* its greatest size in bytes; 0: the default */
    const char *program_cache; /* directory of devices' programs, or NULL */
    tr_stop *stop;             /* ends the verification, or NULL */
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

/* The result of a verification. */
enum tr_verify_outcome {
    TR_VERIFIED,    /* all repeated segments match the receipt */
    TR_DIFFERS,     /* one did not */
    TR_UNVERIFIABLE /* something is missing, or does not belong to the receipt */
};

/* The result of a verification. */
struct tr_verify_result {
    size_t size;                    /* sizeof(struct tr_verify_result) */
    enum tr_verify_outcome outcome; /* the result */
    int64_t step;                   /* DIFFERS: steps done at the first boundary that differed */
    int64_t segments, checked;      /* segments of the receipt; of these, repeated ones */
    int64_t steps;                  /* steps done for that */
    char hash[65];                  /* of the parameters at the end of the run, "" if it was not reached */
};
#define TR_VERIFY_RESULT_INIT TR_SIZED_INIT(struct tr_verify_result)

/* A segment that was repeated and matches the receipt. */
struct tr_verify_event {
    size_t size;        /* sizeof(struct tr_verify_event) */
    int64_t first, end; /* steps done where it begins and ends */
};
/* Called with each. Non-zero ends the verification: TR_EINTERRUPTED. */
typedef int (*tr_verify_listener)(void *user, const struct tr_verify_event *event);

/* Repeats the run of a receipt. *text is a sentence with the result; returned, free with tr_text_free().
   `listener` may be NULL. TR_OK whatever the outcome; TR_ENOTFOUND, TR_EFORMAT, TR_ECORRUPT without a
   valid receipt, TR_EINVAL, TR_EINTERRUPTED, TR_ENOMEM. */
TR_API tr_status tr_verify(const struct tr_verify_settings *settings, tr_verify_listener listener, void *user,
                           struct tr_verify_result *result, char **text);

/* The probability that at least one of `forged` segments of `segments` is among `checked` that are drawn
   at random: 1 - C(segments - forged, checked) / C(segments, checked). NaN for impossible numbers. Any
   thread. */
TR_API double tr_verify_chance(int64_t segments, int64_t forged, int64_t checked);

/* ---- burn-in ---- */

/* How processors and devices are tested. Initialize with TR_BURN_IN_SETTINGS_INIT; borrowed for the call. */
struct tr_burn_in_settings {
    size_t size;    /* sizeof(struct tr_burn_in_settings) */
    double seconds; /* approximate duration; each place completes at least one job, and the one it has
                       begun */
    const char *const *devices; /* [device_count] in addition to the processors; none: all that have
                                   separate drivers */
    int device_count;           /* of `devices` */
    const char *program_cache;  /* as in the settings of a training, or NULL */
};
#define TR_BURN_IN_SETTINGS_INIT TR_SIZED_INIT(struct tr_burn_in_settings)

/* The result of one place; strings are borrowed for the call. */
struct tr_burn_in_event {
    size_t size;         /* sizeof(struct tr_burn_in_event) */
    const char *place;   /* "processor 3", by the system's number; "opencl:0" */
    int64_t rounds;      /* trainings done */
    int64_t wrong;       /* of these, those that ended with another hash */
    const char *hash;    /* of the first of them, or "" */
    const char *failure; /* why a training failed to run, or "" */
};
/* Called with each place, at the end. */
typedef void (*tr_burn_in_listener)(void *user, const struct tr_burn_in_event *event);

/* Trains a small job of known hash again and again, on every processor that the process may use, a thread
   on each, and on devices, all at once. *good: whether all places had that hash every time. `listener` may
   be NULL. TR_EINVAL, TR_EIO, TR_ENOMEM. */
TR_API tr_status tr_burn_in(const struct tr_burn_in_settings *settings, tr_burn_in_listener listener,
                            void *user, bool *good);

#ifdef __cplusplus
}
#endif
#endif
