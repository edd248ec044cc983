/* The parts of the OpenCL side of api.h: the library (loader.c) and its devices (library.c), sessions with
 * a device (opencl.c), its memory (memory.c), programs (programs.c) and lists of launches (lists.c).
 */
#ifndef TR_DEVICE_GPU_OPENCL_INTERNAL_H
#define TR_DEVICE_GPU_OPENCL_INTERNAL_H

#include "device/gpu/api.h"
#include "device/gpu/opencl/abi.h"
#include "device/gpu/signals.h"

#include <pthread.h>

/* The functions of the library; valid after opencl_find() or opencl_describe() succeeded. */
struct opencl_library {
#define MEMBER(result, name, place, parameters) result(*name) parameters;
    OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
    char missing[512]; /* "", or the missing library or function and the reason */
    char driver[512];  /* "", or why NVIDIA's installed driver cannot be loaded */
};
extern struct opencl_library opencl_library;
/* Loads the library. TR_ENOTFOUND, with the dynamic linker's message, where that fails. */
tr_status opencl_need_library(void);

struct opencl_found {
    cl_platform platform;
    cl_device device;
};
/* Device `number`, as gpu_api.describe counts. */
tr_status opencl_find(int number, struct opencl_found *out);
/* The arithmetic that the device promises: bits CL_FP_*. */
uint64_t opencl_promises(cl_device device);
/* A text that the device reports about itself. */
void opencl_text_of(cl_device device, uint32_t what, char *text, size_t size);
/* gpu_api.describe. */
tr_status opencl_describe(int number, struct gpu_info *out);

/* The functions of cl_khr_command_buffer; NULL where the platform lacks them. */
struct opencl_list_functions {
#define MEMBER(result, name, parameters) result(*name) parameters;
    OPENCL_LIST_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* A session: one queue computes; another one copies concurrently, after marks of the first. */
struct opencl_session {
    cl_device device;
    cl_context context;
    cl_queue queue;
    cl_queue copies;     /* of copies beside it; NULL until the first one */
    uint64_t properties; /* of queues */
    struct opencl_pinned *pinned;
    struct opencl_list_functions lists;
    char name[96];
    char notice[160]; /* the driver's last message */
};

/* A kernel, and the numbers of groups that it was launched with: some drivers compile it again when a
   launch is larger or smaller than all before it, and only then. */
struct opencl_kernel {
    cl_program program;
    cl_kernel kernel;
    uint32_t least, most;
};

struct opencl_range {
    size_t global[3], local[3], first[3];
    const size_t *offset; /* `first`, or NULL where it is 0 */
};

/* The status of an error of OpenCL, with a message. */
tr_status opencl_failed(const struct opencl_session *session, const char *what, int32_t error);
int32_t opencl_set_arguments(cl_kernel kernel, const struct gpu_launch *launch);
void opencl_set_range(const struct gpu_launch *launch, struct opencl_range *range);

/* Whether a device has lists that may be launched again while they run. */
bool opencl_has_lists(cl_device device);
/* Finds the functions of lists. */
void opencl_find_lists(cl_platform platform, struct opencl_session *session);
/* The options for exactness: without them divisions and square roots need not be rounded correctly. Where
   a device does not support this, the option would be an error, and kernels use kernels/division.h.
   Options that trade exactness for speed are never given. */
#define OPENCL_LANGUAGE "-cl-std=CL1.2 "
#define OPENCL_STRICT   OPENCL_LANGUAGE "-cl-fp32-correctly-rounded-divide-sqrt "

/* A marker after all commands of a queue, and after `before` (NULL: none); the queue is flushed. An error of
   OpenCL, without a marker. */
int32_t opencl_mark(cl_queue queue, const cl_event *before, cl_event *event);
/* Frees all pinned memory that was not freed. */
void opencl_release_pinned(struct opencl_session *session);

/* Slots of gpu_api: of memory.c, */
tr_status opencl_alloc(void *session, size_t bytes, void **block);
void opencl_free(void *session, void *block);
tr_status opencl_to_device(void *session, void *block, size_t at, const void *from, size_t bytes,
                           void **event);
tr_status opencl_to_host(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
tr_status opencl_to_host_beside(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
tr_status opencl_alloc_pinned(void *session, size_t bytes, void **memory);
void opencl_free_pinned(void *session, void *memory);
/* of programs.c, */
tr_status opencl_build(void *session, const struct gpu_program_source *source, void **out);
void opencl_free_program(void *session, void *program);
tr_status opencl_binary(void *session, void *program, void **binary, size_t *bytes);
tr_status opencl_kernel(void *session, void *program, const char *name, void **out);
void opencl_free_kernel(void *session, void *kernel);
tr_status opencl_launch(void *session, const struct gpu_launch *launch);
/* of lists.c. */
tr_status opencl_build_list(void *session, const struct gpu_launch *launches, int count, void **list);
tr_status opencl_launch_list(void *session, void *list);
void opencl_free_list(void *session, void *list);

#endif
