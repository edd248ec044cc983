/* memfd_create() rather than files in /dev/shm: the latter outlive a killed process, and containers often
 * limit them to 64 MB. Other processes open the descriptor as /proc/<process>/fd/<number>, which the
 * kernel allows to processes of the same user.
 */
#include "comm/mpi/memory.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 64

static tr_status map_file(int file, size_t bytes, void **memory)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        return tr_fail(TR_ENOMEM, "cannot map %zu bytes of shared memory: %s", bytes, strerror(errno));
    *memory = at;
    return TR_OK;
}

/* Sets length and reserves room of the file, in this order. 0, or an errno value. */
static int make_room(int file, size_t bytes, size_t begin, size_t end)
{
    if (bytes > INT64_MAX) return EFBIG;
    if (ftruncate(file, (off_t)bytes) != 0) return errno;
    return begin < end ? posix_fallocate(file, (off_t)begin, (off_t)(end - begin)) : 0;
}

tr_status tr_memory_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                          char key[TR_SHARE_KEY])
{
    (void)comm;
    int file = memfd_create("trireme", MFD_CLOEXEC);
    if (file < 0) return tr_fail(TR_EUNSUPPORTED, "cannot make shared memory: %s", strerror(errno));
    /* Reserves all pages now: one that cannot be had later would be a SIGBUS in the middle of a step. */
    int error = make_room(file, bytes, begin, end);
    tr_status status =
        error ? tr_fail(TR_ENOMEM, "cannot have %zu bytes of shared memory: %s", end - begin, strerror(error))
              : map_file(file, bytes, memory);
    if (status != TR_OK) {
        close(file);
        return status;
    }
    snprintf(key, TR_SHARE_KEY, "%ld %d", (long)getpid(), file);
    return TR_OK;
}

tr_status tr_memory_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    (void)comm;
    char text[TR_SHARE_KEY], path[PATH_SIZE];
    long process;
    int number;
    struct stat facts;
    memcpy(text, key, sizeof text);
    text[sizeof text - 1] = 0;
    if (sscanf(text, "%ld %d", &process, &number) != 2)
        return tr_fail(TR_EMISMATCH, "a key to shared memory is no such key");
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return tr_fail(TR_EUNSUPPORTED, "cannot open shared memory %s: %s", path, strerror(errno));
    tr_status status;
    if (fstat(file, &facts) != 0 || facts.st_size < 0 || (size_t)facts.st_size < bytes)
        status = tr_fail(TR_EMISMATCH, "shared memory %s is smaller than %zu bytes", path, bytes);
    else
        status = map_file(file, bytes, memory);
    close(file);
    return status;
}

void tr_memory_mapped(tr_comm *comm, char key[TR_SHARE_KEY])
{
    (void)comm;
    int number;
    if (sscanf(key, "%*d %d", &number) == 1) close(number);
}

void tr_memory_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    (void)comm;
    munmap(memory, bytes);
}
