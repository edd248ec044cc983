/* What the OpenCL side of api.h is made of: the library and the devices that it knows (opencl_library.c), and
 * sessions with one of them (opencl.c). */
#ifndef TR_DEVICE_GPU_OPENCL_INTERNAL_H
#define TR_DEVICE_GPU_OPENCL_INTERNAL_H

#include "device/gpu/api.h"
#include "device/gpu/opencl_abi.h"

#include <pthread.h>
#include <signal.h>

/* The functions of the library; there once opencl_find() or opencl_describe() went well. */
struct opencl_library {
#define MEMBER(result, name, parameters) result(*name) parameters;
    OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
    const char *missing; /* NULL, or what is */
};
extern struct opencl_library opencl_library;

/* Drivers start threads and some, when they compile, put handlers in the place of the program's (LLVM does):
   around calls that may do so all signals are blocked, so that threads start with that, and handlers are put
   back. */
#define OPENCL_SIGNALS 14
struct opencl_signals {
    sigset_t mask;
    struct sigaction action[OPENCL_SIGNALS];
};
void opencl_keep_signals(struct opencl_signals *signals);
void opencl_restore_signals(const struct opencl_signals *signals);

struct opencl_found {
    cl_platform platform;
    cl_device device;
};
/* Device `number`, as gpu_api.describe counts. */
tr_status opencl_find(int number, struct opencl_found *out);
/* A text that the device tells of itself. */
void opencl_text_of(cl_device device, uint32_t what, char *text, size_t size);
/* gpu_api.describe. */
tr_status opencl_describe(int number, struct gpu_info *out);

#endif
