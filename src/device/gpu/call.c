/* Launches: arguments, groups, and the parts that reductions over rows share. */
#include "device/gpu/internal.h"

#include "base/fail.h"

#include <assert.h>
#include <string.h>

uint32_t gpu_threads(const tr_device *device)
{
    return gpu_of(device)->threads;
}

const struct gpu_info *gpu_info_of(const tr_device *device)
{
    return &gpu_of(device)->info;
}

void gpu_begin(struct gpu_call *call, tr_device *device, const char *source, const char *options,
               const char *kernel)
{
    struct gpu *gpu = gpu_of(device);
    call->gpu = gpu;
    call->launch = (struct gpu_launch){.name = kernel, .arguments = call->argument, .threads = gpu->threads};
    call->status = gpu_program_kernel(gpu, source, options, kernel, &call->launch.kernel);
}

static void value(struct gpu_call *call, const void *bytes, uint32_t size)
{
    assert(call->launch.count < GPU_ARGUMENTS);
    struct gpu_argument *argument = &call->argument[call->launch.count++];
    *argument = (struct gpu_argument){.size = size};
    memcpy(argument->value, bytes, size);
}

void gpu_int(struct gpu_call *call, int32_t number)
{
    value(call, &number, sizeof number);
}

void gpu_uint(struct gpu_call *call, uint32_t number)
{
    value(call, &number, sizeof number);
}

void gpu_long(struct gpu_call *call, int64_t number)
{
    value(call, &number, sizeof number);
}

void gpu_float(struct gpu_call *call, float number)
{
    value(call, &number, sizeof number);
}

void gpu_size(struct gpu_call *call, int64_t number)
{
    if (number > INT32_MAX && call->status == TR_OK)
        call->status = tr_fail(TR_EUNSUPPORTED, "%s of %lld: more than %d are too many for a gpu",
                               call->launch.name, (long long)number, INT32_MAX);
    gpu_int(call, (int32_t)number);
}

void gpu_memory(struct gpu_call *call, const volatile void *pointer, size_t element)
{
    assert(call->launch.count < GPU_ARGUMENTS);
    size_t at = 0;
    void *block = pointer ? gpu_find(call->gpu, pointer, &at) : NULL;
    assert(at % element == 0);
    call->argument[call->launch.count++] = (struct gpu_argument){.block = block};
    gpu_long(call, (int64_t)(at / element));
}

static tr_status launch(struct gpu_call *call)
{
    call->launch.event = gpu_times_begin(call->gpu);
    tr_status status = gpu_lists_launch(call->gpu, &call->launch);
    return call->launch.event ? gpu_times_end(call->gpu, status) : status;
}

/* Sets the groups of an axis from `first` on, at most as many as one launch may have. */
static void set_axis(struct gpu_call *call, int axis, int64_t first, int64_t count)
{
    int64_t left = count - first;
    call->launch.first[axis] = (uint32_t)first;
    call->launch.groups[axis] = (uint32_t)(axis > 0 && left > GPU_MOST_GROUPS ? GPU_MOST_GROUPS : left);
}

tr_status gpu_run(struct gpu_call *call, int64_t x, int64_t y, int64_t z)
{
    if (call->status != TR_OK) return call->status;
    if (x <= 0 || y <= 0 || z <= 0) return TR_OK;
    if (x > INT32_MAX || y > INT32_MAX || z > INT32_MAX)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s in %lld x %lld x %lld groups: more than %d are too many for a gpu",
                       call->launch.name, (long long)x, (long long)y, (long long)z, INT32_MAX);
    set_axis(call, 0, 0, x);
    for (int64_t k = 0; k < z; k += GPU_MOST_GROUPS)
        for (int64_t j = 0; j < y; j += GPU_MOST_GROUPS) {
            set_axis(call, 1, j, y);
            set_axis(call, 2, k, z);
            TR_TRY(launch(call));
        }
    return TR_OK;
}

tr_status gpu_run_each(struct gpu_call *call, int64_t count)
{
    return gpu_run(call, gpu_groups(count, call->launch.threads), 1, 1);
}

int gpu_shift(const tr_device *device, int64_t width)
{
    int shift = 0;
    while (((int64_t)1 << shift) < width && (2u << shift) <= gpu_threads(device)) shift++;
    return shift;
}

tr_status gpu_run_lines(struct gpu_call *call, int shift, int64_t lines, int64_t columns)
{
    return gpu_run(call, gpu_groups(lines, call->launch.threads >> shift),
                   gpu_groups(columns, (int64_t)1 << shift), 1);
}

/* ---- reductions over rows ---- */

tr_status gpu_cut(tr_device *device, const struct tr_cut *cut, struct gpu_cut *out)
{
    const void *row, *bound;
    TR_TRY(gpu_table(device, cut->row, (size_t)(cut->count + 1) * sizeof *cut->row, &row));
    TR_TRY(gpu_table(device, cut->bound, (size_t)(cut->nodes + 1) * sizeof *cut->bound, &bound));
    out->row = row;
    out->bound = bound;
    return TR_OK;
}

float *gpu_leaves(const struct tr_cut *cut, int64_t width, float *out, float *scratch, int64_t *stride)
{
    bool single = cut->nodes == cut->count;
    *stride = single ? cut->stride : width;
    return single ? out : scratch;
}

tr_status gpu_tree(tr_device *device, const struct tr_cut *cut, int64_t width, float *out,
                   const float *leaves)
{
    if (cut->nodes == cut->count) return TR_OK;
    struct gpu_cut on_device;
    TR_TRY(gpu_cut(device, cut, &on_device));
    struct gpu_call call;
    gpu_begin(&call, device, "reduction", "", "tree");
    gpu_long(&call, width);
    gpu_array(&call, on_device.bound);
    gpu_array(&call, leaves);
    gpu_long(&call, cut->stride);
    gpu_array(&call, out);
    return gpu_run(&call, gpu_groups(width, gpu_threads(device)), cut->nodes, 1);
}
