#include "comm/local/extents.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The head of an extent: a multiple of every page size. */
#define HEAD_BYTES ((size_t)1 << 16)

struct head {
    _Atomic uint64_t bytes; /* without the head */
    atomic_uint users;      /* 0: the extent is gone */
};

/* An extent that this process has mapped. */
struct local_extent {
    struct local_extent *next;
    uint64_t at; /* in the file */
    size_t bytes;
    struct head *head; /* followed by the memory */
};

static uint64_t whole(uint64_t bytes)
{
    return HEAD_BYTES + (bytes + HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
}

static void *memory_of(const struct local_extent *extent)
{
    return (char *)extent->head + HEAD_BYTES;
}

static tr_status map_extent(struct local_extents *extents, uint64_t at, size_t bytes,
                            struct local_extent **out)
{
    struct local_extent *extent = tr_alloc(1, sizeof *extent);
    if (!extent) return TR_ENOMEM;
    void *head = mmap(NULL, HEAD_BYTES + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, extents->area->descriptor,
                      (off_t)at);
    if (head == MAP_FAILED) {
        tr_free(extent);
        return tr_fail(TR_ENOMEM, "cannot map %zu bytes of shared memory: %s", bytes, strerror(errno));
    }
    *extent = (struct local_extent){.next = extents->first, .at = at, .bytes = bytes, .head = head};
    extents->first = extent;
    *out = extent;
    return TR_OK;
}

/* If this fails, the memory is released when the group ends. */
static void give_back(const struct local_area *area, uint64_t at, size_t bytes)
{
    fallocate(area->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)whole(bytes));
}

/* Removes it from the list and unmaps it; the last user releases the memory. */
static void drop(struct local_extents *extents, struct local_extent **from, bool last)
{
    struct local_extent *extent = *from;
    *from = extent->next;
    munmap(extent->head, HEAD_BYTES + extent->bytes);
    if (last) give_back(extents->area, extent->at, extent->bytes);
    tr_free(extent);
}

/* Claims a place in the file. */
static tr_status find_place(const struct local_area *area, size_t bytes, uint64_t *at)
{
    uint64_t top = atomic_load(&area->header->top);
    do {
        if (top < area->bytes || top > area->length || bytes > area->length - 2 * HEAD_BYTES ||
            whole(bytes) > area->length - top)
            return tr_fail(TR_ENOMEM, "there is no place for %zu bytes of shared memory", bytes);
    } while (!atomic_compare_exchange_weak(&area->header->top, &top, top + whole(bytes)));
    *at = top;
    return TR_OK;
}

tr_status tr_local_extent_share(struct local_extents *extents, size_t bytes, size_t begin, size_t end,
                                void **memory, char key[TR_SHARE_KEY])
{
    const struct local_area *area = extents->area;
    struct local_extent *extent;
    uint64_t at = 0;
    TR_TRY(find_place(area, bytes, &at));
    /* Reserves all pages now: one that cannot be had later would be a SIGBUS in the middle of a step. */
    int error = posix_fallocate(area->descriptor, (off_t)at, sizeof(struct head));
    if (!error && begin < end)
        error = posix_fallocate(area->descriptor, (off_t)(at + HEAD_BYTES + begin), (off_t)(end - begin));
    tr_status status =
        error ? tr_fail(TR_ENOMEM, "cannot have %zu bytes of shared memory: %s", end - begin, strerror(error))
              : map_extent(extents, at, bytes, &extent);
    if (status != TR_OK) {
        give_back(area, at, bytes);
        return status;
    }
    atomic_store(&extent->head->bytes, bytes);
    atomic_store(&extent->head->users, 1);
    *memory = memory_of(extent);
    snprintf(key, TR_SHARE_KEY, "%" PRIu64, at);
    return TR_OK;
}

/* Adds a user, unless all have left. */
static bool enter(struct head *head)
{
    unsigned users = atomic_load(&head->users);
    while (users > 0 && users < TR_LOCAL_RANKS_MOST)
        if (atomic_compare_exchange_weak(&head->users, &users, users + 1)) return true;
    return false;
}

tr_status tr_local_extent_map(struct local_extents *extents, size_t bytes, const char key[TR_SHARE_KEY],
                              void **memory)
{
    const struct local_area *area = extents->area;
    char text[TR_SHARE_KEY];
    uint64_t at, top = atomic_load(&area->header->top);
    struct local_extent *extent;
    memcpy(text, key, sizeof text);
    text[sizeof text - 1] = 0;
    if (sscanf(text, "%" SCNu64, &at) != 1 || at % HEAD_BYTES != 0 || at < area->bytes ||
        top > area->length || at >= top || bytes > top || whole(bytes) > top - at)
        return tr_fail(TR_EMISMATCH,
                       "a key to shared memory is malformed; all ranks must run the same program");
    TR_TRY(map_extent(extents, at, bytes, &extent));
    if (atomic_load(&extent->head->bytes) == bytes && enter(extent->head)) {
        *memory = memory_of(extent);
        return TR_OK;
    }
    drop(extents, &extents->first, false);
    return tr_fail(TR_EMISMATCH, "shared memory of %zu bytes is not there, or of another size", bytes);
}

void tr_local_extent_unmap(struct local_extents *extents, void *memory)
{
    struct local_extent **at = &extents->first;
    while (memory_of(*at) != memory) at = &(*at)->next;
    drop(extents, at, atomic_fetch_sub(&(*at)->head->users, 1) == 1);
}

void tr_local_extents_release(struct local_extents *extents)
{
    while (extents->first) {
        struct local_extent *extent = extents->first;
        extents->first = extent->next;
        tr_free(extent);
    }
}
