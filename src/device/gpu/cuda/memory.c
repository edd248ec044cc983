/* Memory of the device and of the host, and copies between them.
 *
 * A block is an address of the device. Blocks are freed in the order of the streams where the driver has
 * pools, so that freeing does not wait.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#include <string.h>

#define cu cuda_library

#define STAGE_BYTES ((size_t)64 << 10)
#define STAGE_MOST  ((size_t)8 << 10) /* most bytes of it for one copy */
#define STAGE_ALIGN 64

struct cuda_pinned {
    char *memory;
    size_t bytes;
    struct cuda_pinned *next;
};

/* ---- blocks ---- */

static void *block_of(cu_pointer address)
{
    return (void *)address; // NOLINT(performance-no-int-to-ptr)
}

static cu_pointer address_of(const void *block)
{
    return (cu_pointer)block;
}

static cu_result make_pool(struct cuda_session *session)
{
    const struct cu_pool_properties properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location_type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                  .location = session->device};
    uint64_t keep = UINT64_MAX; /* freed memory is kept for later allocations */
    cu_result error = cu.cuMemPoolCreate(&session->pool, &properties);
    if (error != CUDA_SUCCESS) {
        session->pool = NULL;
        return error;
    }
    return cu.cuMemPoolSetAttribute(session->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
}

cu_result cuda_prepare_memory(struct cuda_session *session)
{
    void *stage = NULL;
    if (cu.pools && cuda_attribute(session->device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) {
        cu_result error = make_pool(session);
        if (error != CUDA_SUCCESS) return error;
    }
    cu_result error = cu.cuMemHostAlloc(&stage, STAGE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
    if (error == CUDA_SUCCESS) session->stage = stage;
    return error;
}

void cuda_release_memory(struct cuda_session *session)
{
    while (session->pinned) {
        struct cuda_pinned *pinned = session->pinned;
        session->pinned = pinned->next;
        cu.cuMemFreeHost(pinned->memory);
        tr_free(pinned);
    }
    if (session->stage) cu.cuMemFreeHost(session->stage);
    if (session->pool) cu.cuMemPoolDestroy(session->pool);
}

static cu_result alloc(struct cuda_session *session, size_t bytes, cu_pointer *address)
{
    if (!session->pool) return cu.cuMemAlloc_v2(address, bytes);
    cu_result error = cu.cuMemAllocFromPoolAsync(address, bytes, session->pool, session->queue);
    if (error != CUDA_ERROR_OUT_OF_MEMORY) return error;
    /* returns freed memory that may be in use, or lies in pieces of other sizes, to the driver */
    error = cu.cuStreamSynchronize(session->queue);
    if (error == CUDA_SUCCESS && session->copies) error = cu.cuStreamSynchronize(session->copies);
    if (error == CUDA_SUCCESS) error = cu.cuMemPoolTrimTo(session->pool, 0);
    if (error != CUDA_SUCCESS) return error;
    return cu.cuMemAllocFromPoolAsync(address, bytes, session->pool, session->queue);
}

tr_status cuda_alloc(void *session_, size_t bytes, void **block)
{
    struct cuda_session *session = session_;
    cu_pointer address = 0;
    cu_result error = cuda_enter(session);
    *block = NULL;
    if (error == CUDA_SUCCESS) {
        error = alloc(session, bytes, &address);
        cuda_leave();
    }
    if (error == CUDA_SUCCESS) *block = block_of(address);
    return cuda_failed(session, "making room for data", error);
}

/* Copies beside may read it. Freeing in their stream orders it after them, and they come after all
   commands of the queue. Where that is not possible, it waits. */
static void release(struct cuda_session *session, cu_pointer address)
{
    cu_stream last = session->copies ? session->copies : session->queue;
    if (!session->pool) {
        cu.cuMemFree_v2(address);
        return;
    }
    if (session->copies && cuda_order(session->queue, session->copies) != CUDA_SUCCESS) {
        cu.cuStreamSynchronize(session->queue);
        cu.cuStreamSynchronize(session->copies);
    }
    if (cu.cuMemFreeAsync(address, last) != CUDA_SUCCESS) cu.cuMemFree_v2(address);
}

void cuda_free(void *session_, void *block)
{
    struct cuda_session *session = session_;
    bool entered = cuda_enter(session) == CUDA_SUCCESS;
    release(session, address_of(block));
    if (entered) cuda_leave();
}

/* ---- copies ---- */

tr_status cuda_to_device(void *session_, void *block, size_t at, const void *from, size_t bytes, void **event)
{
    struct cuda_session *session = session_;
    struct cuda_event *times = NULL;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cuda_times_begin(session, session->queue, event ? &times : NULL);
        if (error == CUDA_SUCCESS)
            error = cu.cuMemcpyHtoDAsync_v2(address_of(block) + at, from, bytes, session->queue);
        if (error == CUDA_SUCCESS) error = cuda_times_end(session->queue, times);
        if (error != CUDA_SUCCESS) cuda_release_event(times);
        cuda_leave();
    }
    if (event && error == CUDA_SUCCESS) *event = times;
    return cuda_failed(session, "copying to it", error);
}

static bool is_pinned(const struct cuda_session *session, const char *memory, size_t bytes)
{
    for (const struct cuda_pinned *pinned = session->pinned; pinned; pinned = pinned->next)
        if (memory >= pinned->memory && memory + bytes <= pinned->memory + pinned->bytes) return true;
    return false;
}

/* The destination for the driver: the copy's own, or the stage where there is room. */
static void *stage(struct cuda_session *session, void *to, size_t bytes)
{
    if (bytes > STAGE_MOST || bytes > STAGE_BYTES - session->stage_used || is_pinned(session, to, bytes))
        return to;
    if (!tr_grow(&session->staged, session->staged_count, sizeof *session->staged)) return to;
    struct cuda_staged *staged = &session->staged[session->staged_count++];
    *staged = (struct cuda_staged){to, session->stage_used, bytes, ++session->staged_number};
    session->stage_used += (bytes + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
    return session->stage + staged->at;
}

void cuda_deliver(struct cuda_session *session, uint64_t number)
{
    int done = 0;
    for (; done < session->staged_count && session->staged[done].number <= number; done++) {
        const struct cuda_staged *staged = &session->staged[done];
        memcpy(staged->to, session->stage + staged->at, staged->bytes);
    }
    session->staged_count -= done;
    for (int i = 0; i < session->staged_count; i++) session->staged[i] = session->staged[i + done];
    if (session->staged_count == 0 && number == session->staged_number) session->stage_used = 0;
}

/* The stage is not used again: the device may write there at any time. */
void cuda_drop_staged(struct cuda_session *session)
{
    session->staged_count = 0;
    session->stage_used = STAGE_BYTES;
}

static cu_result copy(struct cuda_session *session, cu_stream stream, void *to, cu_pointer from, size_t bytes,
                      struct cuda_event **times)
{
    cu_result error = cuda_times_begin(session, stream, times);
    if (error != CUDA_SUCCESS) return error;
    size_t used = session->stage_used;
    int count = session->staged_count;
    void *way = stage(session, to, bytes);
    error = cu.cuMemcpyDtoHAsync_v2(way, from, bytes, stream);
    if (error != CUDA_SUCCESS) {
        session->staged_count = count;
        session->stage_used = used;
    } else if (times) {
        error = cuda_times_end(stream, *times);
    }
    if (error != CUDA_SUCCESS && times) {
        cuda_release_event(*times);
        *times = NULL;
    }
    return error;
}

tr_status cuda_to_host(void *session_, void *to, void *block, size_t at, size_t bytes, void **event)
{
    struct cuda_session *session = session_;
    struct cuda_event *times = NULL;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = copy(session, session->queue, to, address_of(block) + at, bytes, event ? &times : NULL);
        cuda_leave();
    }
    if (event && error == CUDA_SUCCESS) *event = times;
    return cuda_failed(session, "copying from it", error);
}

static cu_result need_copies(struct cuda_session *session)
{
    struct gpu_signals signals;
    if (session->copies) return CUDA_SUCCESS;
    gpu_keep_signals(&signals);
    cu_result error = cu.cuStreamCreate(&session->copies, CU_STREAM_NON_BLOCKING);
    gpu_restore_signals(&signals);
    if (error != CUDA_SUCCESS) session->copies = NULL;
    return error;
}

tr_status cuda_to_host_beside(void *session_, void *to, void *block, size_t at, size_t bytes, void **event)
{
    struct cuda_session *session = session_;
    struct cuda_event *times = NULL;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = need_copies(session);
        if (error == CUDA_SUCCESS) error = cuda_order(session->queue, session->copies);
        if (error == CUDA_SUCCESS)
            error = copy(session, session->copies, to, address_of(block) + at, bytes, event ? &times : NULL);
        cuda_leave();
    }
    if (event && error == CUDA_SUCCESS) *event = times;
    return cuda_failed(session, "copying from it", error);
}

/* ---- pinned memory ---- */

tr_status cuda_alloc_pinned(void *session_, size_t bytes, void **memory)
{
    struct cuda_session *session = session_;
    void *fresh = NULL;
    struct cuda_pinned *pinned = tr_alloc_zero(1, sizeof *pinned);
    if (!pinned) return TR_ENOMEM;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuMemHostAlloc(&fresh, bytes, CU_MEMHOSTALLOC_PORTABLE);
        cuda_leave();
    }
    if (error != CUDA_SUCCESS) {
        tr_free(pinned);
        return cuda_failed(session, "making room for copies", error);
    }
    *pinned = (struct cuda_pinned){fresh, bytes, session->pinned};
    session->pinned = pinned;
    *memory = fresh;
    return TR_OK;
}

/* Waits for commands that use it: the driver does not promise to do so. */
void cuda_free_pinned(void *session_, void *memory)
{
    struct cuda_session *session = session_;
    struct cuda_pinned **at = &session->pinned;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    struct cuda_pinned *pinned = *at;
    if (!pinned) return;
    *at = pinned->next;
    bool entered = cuda_enter(session) == CUDA_SUCCESS;
    cu.cuStreamSynchronize(session->queue);
    if (session->copies) cu.cuStreamSynchronize(session->copies);
    cu.cuMemFreeHost(memory);
    if (entered) cuda_leave();
    tr_free(pinned);
}
