/* A process that runs out of addresses, as of stacks for threads; for tests in a process of their own. Not
 * for sanitizers, whose own memory counts, too.
 */
#ifndef TESTS_SUPPORT_ADDRESSES_H
#define TESTS_SUPPORT_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* From now on the process gets so many bytes more, and then none. false: that cannot be had. */
static inline bool addresses_limit(size_t more)
{
    struct rlimit limit;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return false;
    const bool read = fscanf(file, "%ld", &pages) == 1;
    fclose(file);
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    return read && setrlimit(RLIMIT_AS, &limit) == 0;
}

#endif
