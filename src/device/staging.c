#include "device/staging.h"

#include "base/fail.h"

#include <assert.h>

tr_status tr_staging_make(tr_device *device, int64_t floats, float *window, struct tr_staging *out)
{
    *out = (struct tr_staging){.device = device, .floats = floats};
    if (window) {
        out->host = window;
        out->memory = TR_MEMORY_WINDOW;
        out->data = (float *)(uintptr_t)tr_device_adopt(device, window);
        if (out->data) return TR_OK;
    }
    void *memory;
    TR_TRY(tr_device_alloc(device, (size_t)(floats ? floats : 1) * sizeof(float), &memory));
    if (window)
        out->data = memory;
    else
        tr_staging_over(device, floats, memory, out);
    out->owns_data = true;
    return TR_OK;
}

void tr_staging_over(tr_device *device, int64_t floats, float *data, struct tr_staging *out)
{
    *out = (struct tr_staging){.device = device, .floats = floats, .data = data};
    if (!tr_device_host_view(device, data)) return;
    out->host = data;
    out->memory = TR_MEMORY_HOST;
}

void tr_staging_release(struct tr_staging *buffer)
{
    if (buffer->owns_data) tr_device_free(buffer->device, buffer->data);
    if (buffer->owns_host) tr_device_free_pinned(buffer->device, buffer->host);
    *buffer = (struct tr_staging){0};
}

tr_status tr_staging_open(struct tr_staging *buffer)
{
    if (buffer->host) return TR_OK;
    void *memory;
    TR_TRY(tr_device_alloc_pinned(buffer->device, (size_t)(buffer->floats + 1) * sizeof(float), &memory));
    buffer->host = memory;
    buffer->memory = TR_MEMORY_PINNED;
    buffer->owns_host = true;
    return TR_OK;
}

size_t tr_staging_memory(const struct tr_staging *buffer)
{
    size_t bytes = (size_t)buffer->floats * sizeof(float);
    return (buffer->owns_data ? bytes : 0) + tr_staging_host_memory(buffer);
}

size_t tr_staging_host_memory(const struct tr_staging *buffer)
{
    return buffer->owns_host ? (size_t)buffer->floats * sizeof(float) : 0;
}

tr_status tr_staging_to_host(const struct tr_staging *buffer, int64_t begin, int64_t end)
{
    assert(0 <= begin && begin <= end && end <= buffer->floats && buffer->host);
    if (tr_staging_is_direct(buffer)) return TR_OK;
    return tr_device_to_host(buffer->device, buffer->host + begin, buffer->data + begin,
                             (size_t)(end - begin) * sizeof(float));
}

tr_status tr_staging_to_host_beside(const struct tr_staging *buffer, int64_t begin, int64_t end)
{
    assert(0 <= begin && begin <= end && end <= buffer->floats && buffer->host);
    if (tr_staging_is_direct(buffer)) return TR_OK;
    return tr_device_to_host_beside(buffer->device, buffer->host + begin, buffer->data + begin,
                                    (size_t)(end - begin) * sizeof(float));
}

tr_status tr_staging_to_device(const struct tr_staging *buffer, int64_t begin, int64_t end)
{
    assert(0 <= begin && begin <= end && end <= buffer->floats && buffer->host);
    if (tr_staging_is_direct(buffer)) return TR_OK;
    return tr_device_to_device(buffer->device, buffer->data + begin, buffer->host + begin,
                               (size_t)(end - begin) * sizeof(float));
}
