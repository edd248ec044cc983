/* The machine's file system with a fault at a chosen call, to be counted up until nothing fails any more. */
#ifndef TESTS_BASE_FILE_FAULT_H
#define TESTS_BASE_FILE_FAULT_H

#include "base/files/ops.h"

enum fault_kind {
    FAULT_ERROR,       /* the call does nothing and fails with `error` */
    FAULT_SHORT_WRITE, /* a write takes half of the data, and the next call fails; other calls fail at once */
    FAULT_KILL,        /* the process ends at once, in the middle of the data of a write */
};

struct fault_files {
    tr_file_system system; /* give &fault.system to what is tested */
    enum fault_kind kind;
    int error;       /* errno value */
    int64_t fail_at; /* the call that fails, counted from 1; 0: none */
    bool persistent; /* all calls from that one on fail */
    int64_t calls;   /* made so far */
};

#define FAULT_EXIT_CODE 77

/* Sets up `fault` on the machine's file system; it must not move afterwards. */
void fault_files_init(struct fault_files *fault, enum fault_kind kind, int error, int64_t fail_at,
                      bool persistent);

#endif
