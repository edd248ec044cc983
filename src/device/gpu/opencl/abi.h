/* Declarations of the functions of OpenCL 1.2 that this program calls. The interface is loaded at run
 * time, so that neither headers nor a library are needed to build. Names and values are those of the
 * specification.
 */
#ifndef TR_DEVICE_GPU_OPENCL_ABI_H
#define TR_DEVICE_GPU_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct cl_platform_s *cl_platform;
typedef struct cl_device_s *cl_device;
typedef struct cl_context_s *cl_context;
typedef struct cl_queue_s *cl_queue;
typedef struct cl_memory_s *cl_memory;
typedef struct cl_program_s *cl_program;
typedef struct cl_kernel_s *cl_kernel;
typedef struct cl_event_s *cl_event;
typedef struct cl_list_s *cl_list; /* the specification's cl_command_buffer_khr */

enum { CL_PLATFORM_NAME = 0x0902 };
enum {
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PCI_BUS_ID_NV = 0x4008,
    CL_DEVICE_PCI_SLOT_ID_NV = 0x4009, /* device and function */
    CL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
    CL_DEVICE_PCI_BUS_INFO_KHR = 0x410F,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_QUEUED = 0x1280,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
    CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR = 0x12A9,
    CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR = 0x12AA,
    CL_COMMAND_BUFFER_FLAGS_KHR = 0x1293
};
#define CL_DEVICE_TYPE_CPU UINT64_C(2)
#define CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)
/* Bits of CL_DEVICE_SINGLE_FP_CONFIG. */
#define CL_FP_INF_NAN                       UINT64_C(0x02)
#define CL_FP_ROUND_TO_NEAREST              UINT64_C(0x04)
#define CL_FP_FMA                           UINT64_C(0x20)
#define CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT UINT64_C(0x80)
#define CL_MEM_READ_WRITE                   UINT64_C(0x01)
#define CL_MEM_ALLOC_HOST_PTR               UINT64_C(0x10)
#define CL_MAP_READ_WRITE                   UINT64_C(0x03)
#define CL_QUEUE_PROFILING_ENABLE           UINT64_C(0x02)
/* Of CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, and of CL_COMMAND_BUFFER_FLAGS_KHR. */
#define CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR UINT64_C(0x04)
#define CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR            UINT64_C(0x01)
enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_AVAILABLE = -2,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_INVALID_BUFFER_SIZE = -61
};
enum { CL_COMPLETE = 0 };

/* Every function: result, name, its place in the table of functions at the beginning of a driver's objects
   (cl_khr_icd; the order is that of the specification's headers), parameters. */
#define OPENCL_FUNCTIONS(X)                                                                                  \
    X(int32_t, clGetPlatformIDs, 0, (uint32_t, cl_platform *, uint32_t *))                                   \
    X(int32_t, clGetPlatformInfo, 1, (cl_platform, uint32_t, size_t, void *, size_t *))                      \
    X(int32_t, clGetDeviceIDs, 2, (cl_platform, uint64_t, uint32_t, cl_device *, uint32_t *))                \
    X(int32_t, clGetDeviceInfo, 3, (cl_device, uint32_t, size_t, void *, size_t *))                          \
    X(cl_context, clCreateContext, 4,                                                                        \
      (const intptr_t *, uint32_t, const cl_device *, void (*)(const char *, const void *, size_t, void *),  \
       void *, int32_t *))                                                                                   \
    X(int32_t, clReleaseContext, 7, (cl_context))                                                            \
    X(cl_queue, clCreateCommandQueue, 9, (cl_context, cl_device, uint64_t, int32_t *))                       \
    X(int32_t, clReleaseCommandQueue, 11, (cl_queue))                                                        \
    X(cl_memory, clCreateBuffer, 14, (cl_context, uint64_t, size_t, void *, int32_t *))                      \
    X(int32_t, clReleaseMemObject, 18, (cl_memory))                                                          \
    X(int32_t, clEnqueueReadBuffer, 48,                                                                      \
      (cl_queue, cl_memory, uint32_t, size_t, size_t, void *, uint32_t, const cl_event *, cl_event *))       \
    X(int32_t, clEnqueueWriteBuffer, 49,                                                                     \
      (cl_queue, cl_memory, uint32_t, size_t, size_t, const void *, uint32_t, const cl_event *, cl_event *)) \
    X(void *, clEnqueueMapBuffer, 56,                                                                        \
      (cl_queue, cl_memory, uint32_t, uint64_t, size_t, size_t, uint32_t, const cl_event *, cl_event *,      \
       int32_t *))                                                                                           \
    X(int32_t, clEnqueueUnmapMemObject, 58,                                                                  \
      (cl_queue, cl_memory, void *, uint32_t, const cl_event *, cl_event *))                                 \
    X(cl_program, clCreateProgramWithSource, 26,                                                             \
      (cl_context, uint32_t, const char **, const size_t *, int32_t *))                                      \
    X(cl_program, clCreateProgramWithBinary, 27,                                                             \
      (cl_context, uint32_t, const cl_device *, const size_t *, const unsigned char **, int32_t *,           \
       int32_t *))                                                                                           \
    X(int32_t, clBuildProgram, 30,                                                                           \
      (cl_program, uint32_t, const cl_device *, const char *, void (*)(cl_program, void *), void *))         \
    X(int32_t, clGetProgramBuildInfo, 33, (cl_program, cl_device, uint32_t, size_t, void *, size_t *))       \
    X(int32_t, clGetProgramInfo, 32, (cl_program, uint32_t, size_t, void *, size_t *))                       \
    X(int32_t, clReleaseProgram, 29, (cl_program))                                                           \
    X(cl_kernel, clCreateKernel, 34, (cl_program, const char *, int32_t *))                                  \
    X(int32_t, clReleaseKernel, 37, (cl_kernel))                                                             \
    X(int32_t, clSetKernelArg, 38, (cl_kernel, uint32_t, size_t, const void *))                              \
    X(int32_t, clEnqueueNDRangeKernel, 59,                                                                   \
      (cl_queue, cl_kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,              \
       const cl_event *, cl_event *))                                                                        \
    X(int32_t, clEnqueueMarkerWithWaitList, 105, (cl_queue, uint32_t, const cl_event *, cl_event *))         \
    X(int32_t, clGetEventInfo, 42, (cl_event, uint32_t, size_t, void *, size_t *))                           \
    X(int32_t, clGetEventProfilingInfo, 45, (cl_event, uint32_t, size_t, void *, size_t *))                  \
    X(int32_t, clReleaseEvent, 44, (cl_event))                                                               \
    X(int32_t, clFlush, 46, (cl_queue))                                                                      \
    X(int32_t, clFinish, 47, (cl_queue))                                                                     \
    X(int32_t, clWaitForEvents, 41, (uint32_t, const cl_event *))                                            \
    X(void *, clGetExtensionFunctionAddressForPlatform, 107, (cl_platform, const char *))

/* Those of the extension cl_khr_command_buffer, likewise. */
#define OPENCL_LIST_FUNCTIONS(X)                                                                             \
    X(cl_list, clCreateCommandBufferKHR, (uint32_t, const cl_queue *, const uint64_t *, int32_t *))          \
    X(int32_t, clFinalizeCommandBufferKHR, (cl_list))                                                        \
    X(int32_t, clReleaseCommandBufferKHR, (cl_list))                                                         \
    X(int32_t, clEnqueueCommandBufferKHR,                                                                    \
      (uint32_t, cl_queue *, cl_list, uint32_t, const cl_event *, cl_event *))                               \
    X(int32_t, clCommandNDRangeKernelKHR,                                                                    \
      (cl_list, cl_queue, const uint64_t *, cl_kernel, uint32_t, const size_t *, const size_t *,             \
       const size_t *, uint32_t, const uint32_t *, uint32_t *, void **))

#endif
