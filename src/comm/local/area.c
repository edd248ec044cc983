#include "comm/local/area.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define MAGIC "trireme ranks\n"
/* Where records end and extents begin: a multiple of every page size. */
#define GRAIN ((size_t)1 << 16)
/* All rings together take at most about this, and each at most what fits a cache. */
#define RINGS_BYTES ((size_t)64 << 20)
#define RING_MOST   ((size_t)256 << 10)
#define RING_LEAST  ((size_t)4 << 10)
/* Places for extents are not reused, so there must be many; unused ones cost nothing. */
#define LENGTH_MOST ((uint64_t)1 << 50)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- layout ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

static size_t rings_begin(int size)
{
    return round_up(sizeof(struct local_header) + (size_t)size * sizeof(struct local_record));
}

static void lay_out(struct local_area *area, int size)
{
    size_t pairs = (size_t)size * (size_t)size, ring = RING_MOST;
    while (ring > RING_LEAST && ring * pairs > RINGS_BYTES) ring /= 2;
    *area = (struct local_area){.descriptor = -1,
                                .size = size,
                                .ring_bytes = ring,
                                .bytes = round_up(rings_begin(size) + pairs * ring)};
}

static tr_status map(struct local_area *area)
{
    void *at = mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->descriptor, 0);
    if (at == MAP_FAILED)
        return tr_fail(TR_ENOMEM, "cannot map the %zu bytes that the ranks of this host share: %s",
                       area->bytes, strerror(errno));
    area->memory = at;
    area->header = at;
    area->record = (struct local_record *)(void *)(area->memory + sizeof *area->header);
    return TR_OK;
}

struct local_ring *tr_local_area_ring(const struct local_area *area, int from, int to)
{
    size_t pair = (size_t)from * (size_t)area->size + (size_t)to;
    return (struct local_ring *)(void *)(area->memory + rings_begin(area->size) + pair * area->ring_bytes);
}

/* ---- beginning and end ---- */

/* Gives the file the greatest possible length. 0, or an errno value. */
static int stretch(struct local_area *area)
{
    struct rlimit limit;
    area->length = LENGTH_MOST;
    /* Beyond the limit there is a signal rather than an error. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < area->length)
        area->length = limit.rlim_cur / GRAIN * GRAIN;
    for (; area->length >= area->bytes; area->length = area->length / 2 / GRAIN * GRAIN) {
        if (ftruncate(area->descriptor, (off_t)area->length) == 0) return 0;
        if (errno != EFBIG && errno != EINVAL) return errno;
    }
    return EFBIG;
}

static tr_status make(struct local_area *area)
{
    area->descriptor = memfd_create("trireme", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    /* Systems that do not know the last flag do not require it. */
    if (area->descriptor < 0 && errno == EINVAL)
        area->descriptor = memfd_create("trireme", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = area->descriptor < 0 ? errno : stretch(area);
    if (!error && fcntl(area->descriptor, F_ADD_SEALS, SEALS) != 0) error = errno;
    if (error)
        return tr_fail(TR_EUNSUPPORTED, "cannot make memory for %d ranks to share: %s%s", area->size,
                       strerror(error), error == EFBIG ? " (raise the limit of file sizes, ulimit -f)" : "");
    error = posix_fallocate(area->descriptor, 0, (off_t)rings_begin(area->size));
    if (error)
        return tr_fail(TR_ENOMEM, "cannot have memory for %d ranks to share: %s", area->size,
                       strerror(error));
    return map(area);
}

tr_status tr_local_area_create(int size, struct local_area *area)
{
    lay_out(area, size);
    tr_status status = make(area);
    if (status != TR_OK) {
        tr_local_area_close(area);
        return status;
    }
    memcpy(area->header->magic, MAGIC, sizeof MAGIC);
    area->header->version = LOCAL_VERSION;
    area->header->size = (uint32_t)size;
    atomic_store(&area->header->top, area->bytes);
    return TR_OK;
}

/* The seals come first: a file that others can shrink must not be mapped or touched. */
static tr_status check_file(struct local_area *area)
{
    struct stat facts;
    int seals = fcntl(area->descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS)
        return tr_fail(TR_EINVAL, "descriptor %d is no memory that a launcher made for its ranks",
                       area->descriptor);
    if (fstat(area->descriptor, &facts) != 0 || facts.st_size < 0 || (uint64_t)facts.st_size < area->bytes)
        return tr_fail(TR_EINVAL, "the memory at descriptor %d is too small for %d ranks", area->descriptor,
                       area->size);
    area->length = (uint64_t)facts.st_size;
    return TR_OK;
}

static tr_status check_header(const struct local_area *area)
{
    const struct local_header *header = area->header;
    if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0)
        return tr_fail(TR_EINVAL, "the memory at descriptor %d was not made by a launcher of ranks",
                       area->descriptor);
    if (header->version != LOCAL_VERSION)
        return tr_fail(TR_EINVAL,
                       "the launcher shares memory of version %u with its ranks, this program knows version "
                       "%d; use one version of the program for both",
                       header->version, LOCAL_VERSION);
    if (header->size != (uint32_t)area->size)
        return tr_fail(TR_EINVAL, "the launcher made memory for %u ranks, the ticket says %d", header->size,
                       area->size);
    return TR_OK;
}

tr_status tr_local_area_open(int descriptor, int size, struct local_area *area)
{
    lay_out(area, size);
    area->descriptor = descriptor;
    tr_status status = check_file(area);
    if (status == TR_OK) status = map(area);
    if (status == TR_OK) status = check_header(area);
    if (status == TR_OK && fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
        status = tr_fail(TR_EINVAL, "descriptor %d cannot be kept from later processes: %s", descriptor,
                         strerror(errno));
    if (status == TR_OK) return TR_OK;
    area->descriptor = -1; /* the caller's */
    tr_local_area_close(area);
    return status;
}

void tr_local_area_close(struct local_area *area)
{
    if (area->memory) munmap(area->memory, area->bytes);
    if (area->descriptor >= 0) close(area->descriptor);
    area->memory = NULL;
    area->descriptor = -1;
}

/* ---- bells ---- */

void tr_local_wake(const struct local_area *area, int rank)
{
    struct local_record *record = &area->record[rank];
    /* Both in the same order as in the sleeper: either it sees the new bell, or we see it sleep. */
    atomic_fetch_add(&record->bell, 1);
    if (atomic_load(&record->sleepers) != 0)
        syscall(SYS_futex, &record->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void tr_local_wake_all(const struct local_area *area)
{
    for (int rank = 0; rank < area->size; rank++) tr_local_wake(area, rank);
}

void tr_local_knock(const struct local_area *area, int from, int to)
{
    struct local_record *record = &area->record[to];
    uint64_t bit = (uint64_t)1 << from % 64, word = (uint64_t)1 << from / 64;
    bool rung = atomic_fetch_or(&record->mail[from / 64], bit) & bit;
    /* Also if it was set already: the process that set it may have been killed before this point. */
    if (!(atomic_load(&record->letters) & word)) atomic_fetch_or(&record->letters, word);
    /* The bell was rung already, and the rank has not looked since. */
    if (!rung) tr_local_wake(area, to);
}

void tr_local_sleep(const struct local_area *area, int rank, uint32_t moment, double seconds)
{
    struct local_record *record = &area->record[rank];
    struct timespec most = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    atomic_fetch_add(&record->sleepers, 1);
    syscall(SYS_futex, &record->bell, FUTEX_WAIT, moment, &most, NULL, 0);
    atomic_fetch_sub(&record->sleepers, 1);
}

void tr_local_change(const struct local_area *area)
{
    atomic_fetch_add(&area->header->changes, 1);
    tr_local_wake_all(area);
}

void tr_local_bury(const struct local_area *area, int rank)
{
    if (atomic_exchange(&area->record[rank].ended, 1) != 0) return;
    atomic_fetch_add(&area->header->changes, 1);
    for (int other = 0; other < area->size; other++) {
        tr_local_knock(area, rank, other);
        tr_local_wake(area, other); /* a knock may be pending */
    }
}

void tr_local_give_up(const struct local_area *area, int rank, const char *why)
{
    struct local_record *record = &area->record[rank];
    if (atomic_load(&record->state) == LOCAL_GAVE_UP) return;
    int nobody = 0;
    snprintf(record->why, sizeof record->why, "%s", why);
    atomic_compare_exchange_strong(&area->header->first, &nobody, rank + 1);
    atomic_store(&record->state, LOCAL_GAVE_UP);
    tr_local_change(area);
}

int tr_local_first_to_give_up(const struct local_area *area)
{
    int first = atomic_load(&area->header->first);
    return first >= 1 && first <= area->size ? first - 1 : -1;
}

void tr_local_words(const struct local_area *area, int rank, char *why, size_t size)
{
    const struct local_record *record = &area->record[rank];
    if (size > 0) snprintf(why, size, "%.*s", (int)strnlen(record->why, LOCAL_WHY), record->why);
}
