/* Recording of failures: every function of the library reports errors in this way.
 *
 * A message names the operation, the thing, both values where two disagree, and the next step.
 */
#ifndef TR_BASE_FAIL_H
#define TR_BASE_FAIL_H

#include "trireme/status.h"

#define TR_MESSAGE_SIZE 1024 /* with the NUL at its end */

/* Records a message for the calling thread and returns `status`, so that callers can
   `return tr_fail(TR_EINVAL, ...)`. The message is cut at TR_MESSAGE_SIZE. Any thread. */
tr_status tr_fail(tr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the calling thread's message and returns `status`; for callers that know a name
   (file, layer) which the failing function did not. Any thread. */
tr_status tr_fail_in(tr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A failure kept while other calls may fail, or passed to another thread. */
struct tr_failure {
    tr_status status;
    char message[TR_MESSAGE_SIZE];
};

/* Keeps `status`, which may be TR_OK, with the calling thread's message. */
void tr_failure_keep(struct tr_failure *failure, tr_status status);
/* Restores its message as the calling thread's and returns its status. Any thread. */
tr_status tr_failure_restore(const struct tr_failure *failure);

/* Return form of the check, for use before anything is acquired. */
#define TR_TRY(expression)                                                                                   \
    do {                                                                                                     \
        tr_status tr_try_status_ = (expression);                                                             \
        if (tr_try_status_ != TR_OK) return tr_try_status_;                                                  \
    } while (0)

/* Goto form, for use after: sets the variable `status` and jumps to `label`, where things are released in
 * reverse. */
#define TR_TRY_GOTO(expression, label)                                                                       \
    do {                                                                                                     \
        status = (expression);                                                                               \
        if (status != TR_OK) goto label;                                                                     \
    } while (0)

#endif
