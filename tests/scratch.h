/* A directory of its own for a test's files. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include "base/files/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCRATCH_PATH 512

/* Makes an empty directory and writes its path. In memory where the machine offers that, since these tests
 * sync a lot. */
static inline void scratch_make(char path[SCRATCH_PATH])
{
    struct stat facts;
    const char *base = getenv("TMPDIR");
    if (!base) base = stat("/dev/shm", &facts) == 0 && S_ISDIR(facts.st_mode) ? "/dev/shm" : "/tmp";
    int length = snprintf(path, SCRATCH_PATH, "%s/trireme-test-XXXXXX", base);
    if (length < 0 || length >= SCRATCH_PATH || !mkdtemp(path)) abort();
}

/* Removes it with all that it holds. */
static inline void scratch_remove(const char *path)
{
    if (tr_file_remove(NULL, path) != TR_OK) abort();
}

/* Writes "path/name" to `out` and returns it. */
static inline const char *scratch_join(char out[SCRATCH_PATH], const char *path, const char *name)
{
    int length = snprintf(out, SCRATCH_PATH, "%s/%s", path, name);
    if (length < 0 || length >= SCRATCH_PATH) abort();
    return out;
}

/* One directory for all tests of a file, and setup and teardown of their group. */
static char scratch_place[SCRATCH_PATH] __attribute__((unused));

static inline int scratch_place_make(void **state)
{
    (void)state;
    scratch_make(scratch_place);
    return 0;
}

static inline int scratch_place_remove(void **state)
{
    (void)state;
    scratch_remove(scratch_place);
    return 0;
}

/* The path of a file in it, as good as its next seven calls. */
static inline const char *scratch_in(const char *name)
{
    static char path[8][SCRATCH_PATH];
    static int next;
    return scratch_join(path[next++ % 8], scratch_place, name);
}
/* Writes a file in it. */
static inline void scratch_write(const char *name, const void *bytes, size_t size)
{
    if (tr_file_write_atomic(NULL, scratch_in(name), bytes, size) != TR_OK) abort();
}
static inline void scratch_write_text(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

#endif
