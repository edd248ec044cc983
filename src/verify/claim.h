/* The object of a verification: a receipt, and the available states of the run. */
#ifndef TR_VERIFY_CLAIM_H
#define TR_VERIFY_CLAIM_H

#include "receipt/receipt.h"

struct claim {
    char *path;      /* of the receipt */
    char *directory; /* that it lies in */
    struct tr_receipt receipt;
    char **checkpoint; /* [receipt.count] path of the state at each boundary, or NULL where none is
                          available; a replay, which begins with the first state, has none */
    char *log;         /* the log of an asynchronous run's updates, beside the receipt; NULL: not
                          asynchronous */
};

/* Reads the receipt at `path`, or that of the run in the directory `path`. Release with claim_release(), also
   after a failure. TR_ENOTFOUND, TR_EIO, TR_ENOMEM, errors of tr_receipt_read(). */
tr_status claim_open(const char *path, struct claim *out);
void claim_release(struct claim *claim);

#endif
