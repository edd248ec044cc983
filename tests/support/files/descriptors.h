/* Descriptors of this process: how many are open, and a limit that leaves room for a few. */
#ifndef TESTS_SUPPORT_FILES_DESCRIPTORS_H
#define TESTS_SUPPORT_FILES_DESCRIPTORS_H

#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_MOST 256 /* that are looked at */

static inline int descriptors_open(void)
{
    int count = 0;
    for (int i = 0; i < DESCRIPTORS_MOST; i++) count += dup2(i, i) >= 0;
    return count;
}

/* The limit RLIMIT_NOFILE that leaves room for so many more. */
static inline rlim_t descriptors_limit(int more)
{
    int limit = 0;
    for (; limit < DESCRIPTORS_MOST && more >= 0; limit++) more -= dup2(limit, limit) < 0;
    return (rlim_t)limit - 1;
}

#endif
