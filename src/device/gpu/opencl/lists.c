/* Lists of launches in OpenCL: command buffers (cl_khr_command_buffer).
 *
 * Each launch of a list has a separate kernel object: pocl up to 4.0 replays a launch with the current
 * arguments of its kernel object, not with the recorded ones.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/opencl/internal.h"

#include <string.h>

#define cl opencl_library

#define EXTENSION "cl_khr_command_buffer"

struct opencl_list {
    cl_list commands;
    bool launched; /* at least once */
    int count;
    cl_kernel kernels[];
};

/* ---- whether there are any ---- */

static bool is_announced(cl_device device)
{
    size_t bytes = 0;
    bool announced = false;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != CL_SUCCESS) return false;
    char *names = tr_alloc_zero(bytes + 1, 1);
    if (!names) return false;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, names, NULL) == CL_SUCCESS)
        for (const char *at = names; (at = strstr(at, EXTENSION)) != NULL && !announced;) {
            at += strlen(EXTENSION); /* names of other extensions begin with it */
            announced = *at == ' ' || *at == '\0';
        }
    tr_free(names);
    return announced;
}

bool opencl_has_lists(cl_device device)
{
    uint64_t can = 0, needs = 0;
    if (!is_announced(device)) return false;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof can, &can, NULL) !=
            CL_SUCCESS ||
        cl.clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof needs,
                           &needs, NULL) != CL_SUCCESS)
        return false;
    return (can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) && needs == 0;
}

void opencl_find_lists(cl_platform platform, struct opencl_session *session)
{
    struct opencl_list_functions found;
    bool all = opencl_has_lists(session->device);
#define FIND(result, name, parameters)                                                                       \
    *(void **)(void *)&found.name =                                                                          \
        all ? cl.clGetExtensionFunctionAddressForPlatform(platform, #name) : NULL;                           \
    all = all && found.name;
    OPENCL_LIST_FUNCTIONS(FIND)
#undef FIND
    if (all) session->lists = found;
}

/* ---- recording ---- */

static int32_t record_launch(struct opencl_session *session, struct opencl_list *list,
                             const struct gpu_launch *launch)
{
    const struct opencl_kernel *kernel = launch->kernel;
    struct opencl_range range;
    int32_t error;
    cl_kernel own = cl.clCreateKernel(kernel->program, launch->name, &error);
    if (!own) return error;
    list->kernels[list->count++] = own;
    opencl_set_range(launch, &range);
    error = opencl_set_arguments(own, launch);
    if (error != CL_SUCCESS) return error;
    return session->lists.clCommandNDRangeKernelKHR(list->commands, NULL, NULL, own, 3, range.offset,
                                                    range.global, range.local, 0, NULL, NULL, NULL);
}

static int32_t record(struct opencl_session *session, struct opencl_list *list,
                      const struct gpu_launch *launches, int count)
{
    const uint64_t properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    int32_t error;
    list->commands = session->lists.clCreateCommandBufferKHR(1, &session->queue, properties, &error);
    if (!list->commands) return error;
    for (int i = 0; i < count && error == CL_SUCCESS; i++) error = record_launch(session, list, &launches[i]);
    return error == CL_SUCCESS ? session->lists.clFinalizeCommandBufferKHR(list->commands) : error;
}

tr_status opencl_build_list(void *session_, const struct gpu_launch *launches, int count, void **out)
{
    struct opencl_session *session = session_;
    struct gpu_signals signals;
    if (!session->lists.clCreateCommandBufferKHR)
        return tr_fail(TR_EUNSUPPORTED, "%s has no " EXTENSION, session->name);
    struct opencl_list *list = tr_alloc_zero(1, sizeof *list + (size_t)count * sizeof *list->kernels);
    if (!list) return TR_ENOMEM;
    gpu_keep_signals(&signals);
    int32_t error = record(session, list, launches, count);
    gpu_restore_signals(&signals);
    if (error != CL_SUCCESS) {
        opencl_free_list(session, list);
        return opencl_failed(session, "recording launches", error);
    }
    *out = list;
    return TR_OK;
}

/* A driver may compile kernels when it first enqueues a list. */
tr_status opencl_launch_list(void *session_, void *list_)
{
    struct opencl_session *session = session_;
    struct opencl_list *list = list_;
    struct gpu_signals signals;
    bool guarded = !list->launched;
    if (guarded) gpu_keep_signals(&signals);
    int32_t error = session->lists.clEnqueueCommandBufferKHR(0, NULL, list->commands, 0, NULL, NULL);
    if (guarded) gpu_restore_signals(&signals);
    list->launched = true;
    return opencl_failed(session, "computing", error);
}

void opencl_free_list(void *session_, void *list_)
{
    struct opencl_session *session = session_;
    struct opencl_list *list = list_;
    if (list->commands) session->lists.clReleaseCommandBufferKHR(list->commands);
    for (int i = 0; i < list->count; i++) cl.clReleaseKernel(list->kernels[i]);
    tr_free(list);
}
