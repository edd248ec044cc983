/* How operations are written for accelerators: the tools of the files in operations/.
 *
 * An operation is a function gpu_<operation>() in operations/<group>.c: it chooses a kernel and its
 * variant by the shape, takes scratch memory, and enqueues launches. Its kernels are in kernels/<group>.k,
 * written in the dialect of kernels/dialect.h, which is OpenCL C and CUDA C at once. It never waits and
 * never reads device memory.
 *
 *     tr_status gpu_scale(tr_device *device, const struct tr_op_scale *a)
 *     {
 *         struct gpu_call call;
 *         gpu_begin(&call, device, "elementwise", "", "scale");
 *         gpu_long(&call, a->count);
 *         gpu_float(&call, a->factor);
 *         gpu_array(&call, a->x);
 *         gpu_array(&call, a->y);
 *         return gpu_run_each(&call, a->count);
 *     }
 *
 *     D_KERNEL(D_THREADS)
 *     void scale(int64_t count, float factor, D_IN(float, x_), D_OUT(float, y_))
 *     {
 *         D_USE(const float, x, x_);
 *         D_USE(float, y, y_);
 *         int64_t i = D_INDEX();
 *         if (i < count) y[i] = factor * x[i];
 *     }
 *
 * To add a kernel: write both, name the operation in the list of its group in operations.h, the file in
 * src/device/CMakeLists.txt (a new group also in sources.c), and run device.opencl, which holds every
 * operation of that list to the bytes of `ref`.
 *
 * Memory. Pointers of the device are addresses of a range that is reserved and never accessible, so that
 * arithmetic on them works and touching them ends the program; gpu_array() translates them to a block and a
 * first element. A tensor may begin at any multiple of its element size: kernels that read vectors ask
 * gpu_aligned().
 *
 * Exactness. Each fma of a definition is D_FMA; every other operation rounds separately. Use no function
 * of the language but those of the dialect: exp and so on are tr_mathf_exp(). Never use atomic sums of
 * floats, which have no fixed order.
 *
 * Speed of building: every program is compiled at run time, and pocl compiles each kernel with LLVM for
 * seconds if loops are unrolled. Pass sizes as arguments if constants would only save divisions; keep
 * options that make variants few.
 */
#ifndef TR_DEVICE_GPU_GPU_H
#define TR_DEVICE_GPU_GPU_H

#include "device/device.h"
#include "device/gpu/api.h"

#define GPU_ARGUMENTS 64

struct gpu;

/* A launch being prepared. The first failure is kept and returned by gpu_run(). */
struct gpu_call {
    struct gpu *gpu;
    tr_status status;
    struct gpu_launch launch;
    struct gpu_argument argument[GPU_ARGUMENTS];
};

/* Threads of a group where a kernel uses D_THREADS: 256, or the largest power of two that the device
   allows. */
uint32_t gpu_threads(const tr_device *device);
/* Properties of the device, to choose between variants. */
const struct gpu_info *gpu_info_of(const tr_device *device);

/* Begins a launch of `kernel` of the program that kernels/<source>.k makes with `options` ("" or
   definitions, "-DTILE=4"); the program is built when first needed. Groups have gpu_threads() threads,
   unless call->launch.threads is set afterwards (the kernel must then have that number: D_KERNEL(64)). */
void gpu_begin(struct gpu_call *call, tr_device *device, const char *source, const char *options,
               const char *kernel);
/* Arguments, in the order of the kernel's parameters. */
void gpu_int(struct gpu_call *call, int32_t value);
void gpu_uint(struct gpu_call *call, uint32_t value);
void gpu_long(struct gpu_call *call, int64_t value);
void gpu_float(struct gpu_call *call, float value);
/* A size or flag that the kernel takes as an int; a value too large for one fails the launch. */
void gpu_size(struct gpu_call *call, int64_t value);
void gpu_memory(struct gpu_call *call, const volatile void *pointer, size_t element);
/* A tensor, or NULL: the parameter D_IN or D_OUT. */
#define gpu_array(call, pointer) gpu_memory(call, pointer, sizeof *(pointer))
/* Enqueues x * y * z groups; nothing where one of them is 0. More than GPU_MOST_GROUPS along y or z become
   several launches, in each of which D_GROUPS() is its own number of groups. */
tr_status gpu_run(struct gpu_call *call, int64_t x, int64_t y, int64_t z);
/* Enqueues one thread for each of `count` numbers (D_INDEX()), in groups along x. */
tr_status gpu_run_each(struct gpu_call *call, int64_t count);

static inline int64_t gpu_groups(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

/* For kernels in which 2^shift neighbouring threads of a group have neighbouring columns (D_LANE(),
   D_LINE()): the least shift with room for `width` columns, limited by the size of a group. */
int gpu_shift(const tr_device *device, int64_t width);
/* Such a launch: lines along axis x, columns along y. */
tr_status gpu_run_lines(struct gpu_call *call, int shift, int64_t lines, int64_t columns);
/* Groups along an axis for a kernel that loops over items: one for each item, at most the limit of axes y
   and z. */
static inline int64_t gpu_walkers(int64_t items)
{
    return items < 32768 ? items : 32768;
}

/* Whether a pointer is a multiple of `bytes` into its block (kernels may then read vectors). */
bool gpu_aligned(tr_device *device, const void *pointer, size_t bytes);

/* Scratch memory, contents undefined, until the next call of gpu_scratch() or the end of the operation. */
tr_status gpu_scratch(tr_device *device, size_t bytes, void **out);
/* Constants that kernels read: a copy of `data` on the device, kept between calls and found by its
   contents. Valid until the end of the operation. */
tr_status gpu_table(tr_device *device, const void *data, size_t bytes, const void **out);

/* A cut on the device. */
struct gpu_cut {
    const int64_t *row;   /* [count + 1] */
    const int32_t *bound; /* [nodes + 1] */
};
tr_status gpu_cut(tr_device *device, const struct tr_cut *cut, struct gpu_cut *out);
/* Where an operation that reduces over rows writes its leaves, [microbatches][width]: to `out` itself
   where every node is one microbatch (*stride floats apart), else to `scratch`, which has room for them. */
float *gpu_leaves(const struct tr_cut *cut, int64_t width, float *out, float *scratch, int64_t *stride);
/* Combines the leaves of gpu_leaves() into the nodes, by the tree of base/numbers/tree.h. */
tr_status gpu_tree(tr_device *device, const struct tr_cut *cut, int64_t width, float *out,
                   const float *leaves);

#endif
