/* Declarations of the functions of CUDA's driver interface and of NVRTC that this program calls, as
 * documented. Both are loaded at run time, so that neither headers nor libraries are needed to build.
 * Names of functions are the symbols of the libraries, with the version suffixes of the headers; values
 * are the documented ones.
 */
#ifndef TR_DEVICE_GPU_CUDA_ABI_H
#define TR_DEVICE_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;
typedef int cu_device;
typedef uintptr_t cu_pointer; /* an address of the device; a number of 64 bits */
typedef struct cu_context_s *cu_context;
typedef struct cu_stream_s *cu_stream;
typedef struct cu_event_s *cu_event;
typedef struct cu_module_s *cu_module;
typedef struct cu_function_s *cu_function;
typedef struct cu_graph_s *cu_graph;
typedef struct cu_graph_node_s *cu_graph_node;
typedef struct cu_graph_exec_s *cu_graph_exec;
typedef struct cu_pool_s *cu_pool;
typedef struct nvrtc_program_s *nvrtc_program;

_Static_assert(sizeof(cu_pointer) == 8, "addresses of devices have 64 bits");

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600
};
enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
};
enum { CU_COMPUTEMODE_PROHIBITED = 2 };
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_MEMHOSTALLOC_PORTABLE = 1 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

/* CUmemPoolProps. */
struct cu_pool_properties {
    int type, handles;
    int location_type, location;
    void *windows;
    size_t most;
    unsigned char reserved[56]; /* 0 */
};

/* CUDA_KERNEL_NODE_PARAMS_v1 and CUDA_MEMSET_NODE_PARAMS. */
struct cu_kernel_node {
    cu_function function;
    unsigned grid[3], group[3];
    unsigned shared;
    void **arguments;
    void **extra;
};
struct cu_set_node {
    cu_pointer to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};

/* Every function: result, name, parameters. */
#define CUDA_FUNCTIONS(X)                                                                                    \
    X(cu_result, cuInit, (unsigned))                                                                         \
    X(cu_result, cuGetErrorName, (cu_result, const char **))                                                 \
    X(cu_result, cuGetErrorString, (cu_result, const char **))                                               \
    X(cu_result, cuDriverGetVersion, (int *))                                                                \
    X(cu_result, cuDeviceGetCount, (int *))                                                                  \
    X(cu_result, cuDeviceGet, (cu_device *, int))                                                            \
    X(cu_result, cuDeviceGetName, (char *, int, cu_device))                                                  \
    X(cu_result, cuDeviceTotalMem_v2, (size_t *, cu_device))                                                 \
    X(cu_result, cuDeviceGetAttribute, (int *, int, cu_device))                                              \
    X(cu_result, cuDeviceGetPCIBusId, (char *, int, cu_device))                                              \
    X(cu_result, cuDevicePrimaryCtxRetain, (cu_context *, cu_device))                                        \
    X(cu_result, cuDevicePrimaryCtxRelease_v2, (cu_device))                                                  \
    X(cu_result, cuCtxPushCurrent_v2, (cu_context))                                                          \
    X(cu_result, cuCtxPopCurrent_v2, (cu_context *))                                                         \
    X(cu_result, cuStreamCreate, (cu_stream *, unsigned))                                                    \
    X(cu_result, cuStreamDestroy_v2, (cu_stream))                                                            \
    X(cu_result, cuStreamSynchronize, (cu_stream))                                                           \
    X(cu_result, cuStreamWaitEvent, (cu_stream, cu_event, unsigned))                                         \
    X(cu_result, cuEventCreate, (cu_event *, unsigned))                                                      \
    X(cu_result, cuEventDestroy_v2, (cu_event))                                                              \
    X(cu_result, cuEventRecord, (cu_event, cu_stream))                                                       \
    X(cu_result, cuEventQuery, (cu_event))                                                                   \
    X(cu_result, cuEventSynchronize, (cu_event))                                                             \
    X(cu_result, cuEventElapsedTime, (float *, cu_event, cu_event))                                          \
    X(cu_result, cuMemAlloc_v2, (cu_pointer *, size_t))                                                      \
    X(cu_result, cuMemFree_v2, (cu_pointer))                                                                 \
    X(cu_result, cuMemHostAlloc, (void **, size_t, unsigned))                                                \
    X(cu_result, cuMemFreeHost, (void *))                                                                    \
    X(cu_result, cuMemcpyHtoDAsync_v2, (cu_pointer, const void *, size_t, cu_stream))                        \
    X(cu_result, cuMemcpyDtoHAsync_v2, (void *, cu_pointer, size_t, cu_stream))                              \
    X(cu_result, cuMemsetD32Async, (cu_pointer, unsigned, size_t, cu_stream))                                \
    X(cu_result, cuModuleLoadDataEx, (cu_module *, const void *, unsigned, int *, void **))                  \
    X(cu_result, cuModuleUnload, (cu_module))                                                                \
    X(cu_result, cuModuleGetFunction, (cu_function *, cu_module, const char *))                              \
    X(cu_result, cuModuleGetGlobal_v2, (cu_pointer *, size_t *, cu_module, const char *))                    \
    X(cu_result, cuLaunchKernel,                                                                             \
      (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream,         \
       void **, void **))

/* Memory freed in the order of a stream, from CUDA 11.2 on. */
#define CUDA_POOL_FUNCTIONS(X)                                                                               \
    X(cu_result, cuMemPoolCreate, (cu_pool *, const struct cu_pool_properties *))                            \
    X(cu_result, cuMemPoolDestroy, (cu_pool))                                                                \
    X(cu_result, cuMemPoolSetAttribute, (cu_pool, int, void *))                                              \
    X(cu_result, cuMemPoolTrimTo, (cu_pool, size_t))                                                         \
    X(cu_result, cuMemAllocFromPoolAsync, (cu_pointer *, size_t, cu_pool, cu_stream))                        \
    X(cu_result, cuMemFreeAsync, (cu_pointer, cu_stream))

/* Recorded launches that are enqueued as one, from CUDA 11.4 on. */
#define CUDA_GRAPH_FUNCTIONS(X)                                                                              \
    X(cu_result, cuGraphCreate, (cu_graph *, unsigned))                                                      \
    X(cu_result, cuGraphAddKernelNode,                                                                       \
      (cu_graph_node *, cu_graph, const cu_graph_node *, size_t, const struct cu_kernel_node *))             \
    X(cu_result, cuGraphAddMemsetNode,                                                                       \
      (cu_graph_node *, cu_graph, const cu_graph_node *, size_t, const struct cu_set_node *, cu_context))    \
    X(cu_result, cuGraphInstantiateWithFlags, (cu_graph_exec *, cu_graph, unsigned long long))               \
    X(cu_result, cuGraphExecKernelNodeSetParams,                                                             \
      (cu_graph_exec, cu_graph_node, const struct cu_kernel_node *))                                         \
    X(cu_result, cuGraphLaunch, (cu_graph_exec, cu_stream))                                                  \
    X(cu_result, cuGraphExecDestroy, (cu_graph_exec))                                                        \
    X(cu_result, cuGraphDestroy, (cu_graph))

/* The compiler, from NVRTC 11.2 on. */
#define NVRTC_FUNCTIONS(X)                                                                                   \
    X(int, nvrtcVersion, (int *, int *))                                                                     \
    X(const char *, nvrtcGetErrorString, (int))                                                              \
    X(int, nvrtcGetNumSupportedArchs, (int *))                                                               \
    X(int, nvrtcGetSupportedArchs, (int *))                                                                  \
    X(int, nvrtcCreateProgram,                                                                               \
      (nvrtc_program *, const char *, const char *, int, const char *const *, const char *const *))          \
    X(int, nvrtcDestroyProgram, (nvrtc_program *))                                                           \
    X(int, nvrtcCompileProgram, (nvrtc_program, int, const char *const *))                                   \
    X(int, nvrtcGetProgramLogSize, (nvrtc_program, size_t *))                                                \
    X(int, nvrtcGetProgramLog, (nvrtc_program, char *))                                                      \
    X(int, nvrtcGetCUBINSize, (nvrtc_program, size_t *))                                                     \
    X(int, nvrtcGetCUBIN, (nvrtc_program, char *))                                                           \
    X(int, nvrtcGetPTXSize, (nvrtc_program, size_t *))                                                       \
    X(int, nvrtcGetPTX, (nvrtc_program, char *))

#endif
