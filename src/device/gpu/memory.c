/* Memory of a gpu device: blocks behind inaccessible addresses, scratch, and tables. */
#include "device/gpu/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A step of a large network uses some hundred tables at once; beyond that the oldest are freed. */
#define MOST_TABLES 4096

/* ---- blocks ---- */

/* The last block that begins at or below an address, -1 if there is none. */
static int at_or_below(const struct gpu *gpu, uintptr_t address)
{
    int low = 0, high = gpu->block_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (gpu->blocks[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

void *gpu_find(struct gpu *gpu, const volatile void *pointer, size_t *at)
{
    uintptr_t address = (uintptr_t)pointer;
    const struct gpu_block *block = gpu->last < gpu->block_count ? &gpu->blocks[gpu->last] : NULL;
    if (!block || address < block->begin || address - block->begin > block->bytes) {
        gpu->last = at_or_below(gpu, address);
        assert(gpu->last >= 0 && "memory that is not this device's");
        block = &gpu->blocks[gpu->last];
        assert(address - block->begin <= block->bytes && "memory that is not this device's");
    }
    *at = address - block->begin;
    return block->block;
}

static tr_status no_room(const struct gpu *gpu, size_t bytes)
{
    return tr_fail(
        TR_ENOMEM,
        "%s has no room for %.1f MiB: it has %.1f MiB, at most %.1f MiB in one piece, and this run holds "
        "%.1f MiB of it; fewer examples at a time (train.pass) need less",
        gpu->base.description, (double)bytes / 1048576, (double)gpu->info.memory / 1048576,
        (double)gpu->info.allocation / 1048576, (double)gpu->held / 1048576);
}

int64_t gpu_room(tr_device *device)
{
    const struct gpu *gpu = gpu_of(device);
    uint64_t left = gpu->info.memory > gpu->held ? gpu->info.memory - gpu->held : 0;
    return (int64_t)(left < gpu->info.allocation ? left : gpu->info.allocation);
}

tr_status gpu_alloc(tr_device *device, size_t bytes, void **out)
{
    struct gpu *gpu = gpu_of(device);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct gpu_block fresh = {.bytes = bytes ? bytes : 1};
    *out = NULL;
    if (bytes > gpu->info.allocation || gpu->held + bytes > gpu->info.memory) return no_room(gpu, bytes);
    if (!tr_grow(&gpu->blocks, gpu->block_count, sizeof *gpu->blocks)) return TR_ENOMEM;
    fresh.reserved = (fresh.bytes / page + 1) * page;
    void *range = mmap(NULL, fresh.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return tr_fail(TR_ENOMEM, "no addresses for %zu bytes of a device: %s", bytes, strerror(errno));
    fresh.begin = (uintptr_t)range;
    tr_status status = gpu->api->alloc(gpu->session, fresh.bytes, &fresh.block);
    if (status != TR_OK) {
        munmap(range, fresh.reserved);
        return status == TR_ENOMEM ? no_room(gpu, bytes) : status;
    }
    int place = at_or_below(gpu, fresh.begin) + 1;
    memmove(gpu->blocks + place + 1, gpu->blocks + place,
            (size_t)(gpu->block_count - place) * sizeof *gpu->blocks);
    gpu->blocks[place] = fresh;
    gpu->block_count++;
    gpu->held += fresh.bytes;
    *out = range;
    return TR_OK;
}

void gpu_free(tr_device *device, void *memory)
{
    struct gpu *gpu = gpu_of(device);
    int place = at_or_below(gpu, (uintptr_t)memory);
    assert(place >= 0 && gpu->blocks[place].begin == (uintptr_t)memory && "memory that is not this device's");
    struct gpu_block block = gpu->blocks[place];
    gpu->block_count--;
    memmove(gpu->blocks + place, gpu->blocks + place + 1,
            (size_t)(gpu->block_count - place) * sizeof *gpu->blocks);
    gpu->held -= block.bytes;
    gpu_lists_forget(gpu, block.block);
    gpu->api->free(gpu->session, block.block);
    munmap(memory, block.reserved);
}

tr_status gpu_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    struct gpu *gpu = gpu_of(device);
    size_t at;
    if (bytes == 0) return TR_OK;
    TR_TRY(gpu_lists_end(gpu));
    void *block = gpu_find(gpu, to, &at), **event = gpu_times_begin(gpu);
    tr_status status = gpu->api->to_device(gpu->session, block, at, from, bytes, event);
    return event ? gpu_times_end(gpu, status) : status;
}

static tr_status to_host(tr_device *device, void *to, const void *from, size_t bytes, bool beside)
{
    struct gpu *gpu = gpu_of(device);
    size_t at;
    if (bytes == 0) return TR_OK;
    TR_TRY(gpu_lists_end(gpu));
    void *block = gpu_find(gpu, from, &at), **event = gpu_times_begin(gpu);
    tr_status status =
        (beside ? gpu->api->to_host_beside : gpu->api->to_host)(gpu->session, to, block, at, bytes, event);
    return event ? gpu_times_end(gpu, status) : status;
}

tr_status gpu_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    return to_host(device, to, from, bytes, false);
}

tr_status gpu_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes)
{
    return to_host(device, to, from, bytes, true);
}

bool gpu_aligned(tr_device *device, const void *pointer, size_t bytes)
{
    size_t at;
    if (!pointer) return true;
    gpu_find(gpu_of(device), pointer, &at);
    return at % bytes == 0;
}

/* ---- scratch ---- */

tr_status gpu_scratch(tr_device *device, size_t bytes, void **out)
{
    struct gpu *gpu = gpu_of(device);
    if (bytes > gpu->scratch_bytes) {
        tr_device_free(device, gpu->scratch);
        gpu->scratch = NULL;
        gpu->scratch_bytes = 0;
        TR_TRY(gpu_alloc(device, bytes, &gpu->scratch));
        gpu->scratch_bytes = bytes;
    }
    *out = gpu->scratch;
    return TR_OK;
}

/* ---- tables ---- */

/* A hash table with open addressing: numbers of tables from 1 on, 0 in free places. */
#define PLACES (2 * MOST_TABLES)

static uint64_t hash_of(const void *data, size_t bytes)
{
    const char *at = data;
    uint64_t hash = bytes, word;
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = gpu_mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, bytes);
    return gpu_mix(hash, word);
}

/* The place of the table with these contents, else the free place for it. */
static int32_t *find_place(struct gpu *gpu, uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = hash % PLACES;; i = (i + 1) % PLACES) {
        int32_t *place = &gpu->table_place[i];
        if (*place == 0) return place;
        const struct gpu_kept_table *table = &gpu->tables[*place - 1];
        if (table->hash == hash && table->bytes == bytes && memcmp(table->contents, data, bytes) == 0)
            return place;
    }
}

static void release_table(struct gpu *gpu, int index)
{
    struct gpu_kept_table *table = &gpu->tables[index];
    tr_device_free(&gpu->base, table->memory);
    tr_free(table->contents);
    *table = gpu->tables[--gpu->table_count];
}

/* Makes room for one more. The table that is freed may be on its way to the device, so this waits. */
static tr_status make_room(struct gpu *gpu)
{
    if (!gpu->table_place) gpu->table_place = tr_alloc_zero(PLACES, sizeof *gpu->table_place);
    if (!gpu->table_place) return TR_ENOMEM;
    if (gpu->table_count < MOST_TABLES) return TR_OK;
    TR_TRY(gpu->api->wait(gpu->session));
    uint64_t middle = gpu->tick - MOST_TABLES / 2;
    for (int i = gpu->table_count - 1; i >= 0; i--)
        if (gpu->tables[i].used < middle) release_table(gpu, i);
    memset(gpu->table_place, 0, PLACES * sizeof *gpu->table_place);
    for (int i = 0; i < gpu->table_count; i++) {
        const struct gpu_kept_table *table = &gpu->tables[i];
        *find_place(gpu, table->hash, table->contents, table->bytes) = i + 1;
    }
    return TR_OK;
}

static tr_status make_table(struct gpu *gpu, const void *data, size_t bytes, struct gpu_kept_table *table)
{
    *table =
        (struct gpu_kept_table){.bytes = bytes, .hash = hash_of(data, bytes), .contents = tr_alloc(bytes, 1)};
    if (!table->contents) return TR_ENOMEM;
    memcpy(table->contents, data, bytes);
    tr_status status = gpu_alloc(&gpu->base, bytes, &table->memory);
    if (status == TR_OK) status = gpu_to_device(&gpu->base, table->memory, table->contents, bytes);
    if (status != TR_OK) {
        tr_device_free(&gpu->base, table->memory);
        tr_free(table->contents);
    }
    return status;
}

static tr_status add_table(struct gpu *gpu, const void *data, size_t bytes)
{
    TR_TRY(make_room(gpu));
    if (!tr_grow(&gpu->tables, gpu->table_count, sizeof *gpu->tables)) return TR_ENOMEM;
    struct gpu_kept_table *table = &gpu->tables[gpu->table_count];
    TR_TRY(make_table(gpu, data, bytes, table));
    *find_place(gpu, table->hash, data, bytes) = ++gpu->table_count;
    return TR_OK;
}

tr_status gpu_table(tr_device *device, const void *data, size_t bytes, const void **out)
{
    struct gpu *gpu = gpu_of(device);
    uint64_t hash = hash_of(data, bytes);
    gpu->tick++;
    int32_t number = gpu->table_place ? *find_place(gpu, hash, data, bytes) : 0;
    if (number == 0) {
        TR_TRY(add_table(gpu, data, bytes));
        number = gpu->table_count;
    }
    struct gpu_kept_table *table = &gpu->tables[number - 1];
    table->used = gpu->tick;
    *out = table->memory;
    return TR_OK;
}

void gpu_memory_release(struct gpu *gpu)
{
    while (gpu->table_count > 0) release_table(gpu, gpu->table_count - 1);
    while (gpu->block_count > 0)
        gpu_free(&gpu->base, (void *)gpu->blocks[gpu->block_count - 1].begin); /* scratch, and blocks that
                                                                                  were not freed */
    tr_free(gpu->tables);
    tr_free(gpu->table_place);
    tr_free(gpu->blocks);
}
