/* A party of a dispute: has a receipt with its checkpoints, repeats the run, and answers questions about
 * it (dispute/wire.h). Of its state it gives away only requested leaves.
 *
 * Used by one thread.
 */
#ifndef TR_DISPUTE_PARTY_H
#define TR_DISPUTE_PARTY_H

#include "device/device.h"
#include "trireme/train.h"

/* Zeros are defaults, except for `path`. Strings are borrowed for the life of the party. */
struct tr_party_settings {
    const char *path;       /* a receipt, or the directory of a run */
    const char *model;      /* a model file in place of the receipt's, or NULL */
    const char *const *set; /* [set_count] overrides */
    int set_count;
    const char *from, *device, *isa; /* as those of a verification */
    int threads;
    bool no_memory_check;
    const char *data_cache;
    int64_t data_cache_bytes;
    tr_stop *stop;
    /* For tests and demonstrations; NULL: none. The device that computes, replacing `device`; and a
       function that changes a trainer before its first step. */
    tr_status (*open_device)(void *user, tr_device **out);
    tr_status (*prepare)(void *user, tr_trainer *trainer);
    void *user;
};

typedef struct tr_party tr_party;

/* Reads the receipt. Returned, destroy with tr_party_destroy(). Errors of claim_open(). */
tr_status tr_party_create(const struct tr_party_settings *settings, tr_party **out);
/* Accepts NULL, nulls the handle. */
void tr_party_destroy(tr_party **party);

/* Answers a line; questions that it cannot answer, with a line that begins with "sorry". *answer is
   returned, free with tr_free(). TR_ENOMEM, TR_EINTERRUPTED. */
tr_status tr_party_answer(tr_party *party, const char *question, char **answer);

/* A trainer of a party or judge, on a witness; `resume` may be NULL, and `text`, with `name`, is a model
   file. *witness is owned by the trainer. */
tr_status tr_party_trainer(const struct tr_party_settings *settings, const char *text, const char *name,
                           const char *resume, tr_trainer **out, tr_device **witness);

#endif
