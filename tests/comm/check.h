/* Checks inside of scenarios: they return a text with the place. */
#ifndef TESTS_COMM_CHECK_H
#define TESTS_COMM_CHECK_H

#include "base/alloc.h"
#include "comm/comm.h"

#include <stdio.h>

/* Kept as long as the thread runs. */
static inline char *check_text(void)
{
    static _Thread_local char text[1600];
    return text;
}

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            snprintf(check_text(), 1600, "%s:%d: %s", __FILE__, __LINE__, #condition);                       \
            return check_text();                                                                             \
        }                                                                                                    \
    } while (0)

#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        if ((call) != TR_OK) {                                                                               \
            snprintf(check_text(), 1600, "%s:%d: %s: %s", __FILE__, __LINE__, #call, tr_error_message());    \
            return check_text();                                                                             \
        }                                                                                                    \
    } while (0)

#define CHECK_RUN(call)                                                                                      \
    do {                                                                                                     \
        const char *check_run_ = (call);                                                                     \
        if (check_run_) return check_run_;                                                                   \
    } while (0)

/* Starts an operation and waits for it. */
#define CHECK_DONE(comm, ticket, call)                                                                       \
    do {                                                                                                     \
        CHECK_OK(call);                                                                                      \
        CHECK_OK(tr_comm_wait((comm), (ticket)));                                                            \
        CHECK(!*(ticket));                                                                                   \
    } while (0)

#endif
