#include "base/files/mapped.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Unused entries take no memory, since their pages are never touched. */
#define ENTRIES 16384

struct entry {
    _Atomic uintptr_t begin, end; /* end is 0 where the entry is free: it is set last and cleared first */
    _Atomic(char *) path;
};

static struct entry entries[ENTRIES];
static atomic_int used; /* entries from here on were never used */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

tr_status tr_mapped_add(const void *data, size_t size, const char *path)
{
    char *copy = tr_strdup(path);
    if (!copy) return TR_ENOMEM;
    pthread_mutex_lock(&lock);
    int count = atomic_load(&used), i = 0;
    while (i < count && atomic_load(&entries[i].end) != 0) i++;
    bool room = i < ENTRIES;
    if (room) {
        atomic_store(&entries[i].path, copy);
        atomic_store(&entries[i].begin, (uintptr_t)data);
        atomic_store(&entries[i].end, (uintptr_t)data + size);
        if (i == count) atomic_store(&used, count + 1);
    }
    pthread_mutex_unlock(&lock);
    if (!room) tr_free(copy);
    return TR_OK;
}

void tr_mapped_remove(const void *data)
{
    char *path = NULL;
    pthread_mutex_lock(&lock);
    int count = atomic_load(&used);
    for (int i = 0; i < count && !path; i++) {
        if (atomic_load(&entries[i].end) == 0 || atomic_load(&entries[i].begin) != (uintptr_t)data) continue;
        atomic_store(&entries[i].end, 0);
        path = atomic_exchange(&entries[i].path, NULL);
    }
    pthread_mutex_unlock(&lock);
    tr_free(path);
}

const char *tr_mapped_at(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    int count = atomic_load(&used);
    for (int i = 0; i < count; i++) {
        uintptr_t end = atomic_load(&entries[i].end);
        if (at >= atomic_load(&entries[i].begin) && at < end) return atomic_load(&entries[i].path);
    }
    return NULL;
}
