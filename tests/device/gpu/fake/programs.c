/* Programs, kernels and lists of launches. A binary is a text that begins with "binary". */
#include "device/gpu/fake/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct cl_program_s {
    char text[64];
    bool built;
};

static const char binary_text[] = "binary of it", log_text[] = "line 1: of all things";

static cl_program from_source(cl_context context, uint32_t count, const char **parts, const size_t *lengths,
                              int32_t *error)
{
    FAIL_WITH(clCreateProgramWithSource, error);
    assert_true(context && !lengths);
    cl_program program = fake_make(sizeof *program);
    fake.parts = (int)count;
    for (uint32_t i = 0; i < count; i++)
        strncat(program->text, parts[i], sizeof program->text - strlen(program->text) - 1);
    return program;
}

static cl_program from_binary(cl_context context, uint32_t count, const cl_device *devices,
                              const size_t *lengths, const unsigned char **binaries, int32_t *loaded,
                              int32_t *error)
{
    FAIL_WITH(clCreateProgramWithBinary, error);
    assert_true(context && devices && count == 1 && lengths[0] < sizeof(struct cl_program_s));
    *loaded = lengths[0] >= 6 && memcmp(binaries[0], "binary", 6) == 0 ? CL_SUCCESS : -42;
    cl_program program = fake_make(sizeof *program);
    memcpy(program->text, binaries[0], lengths[0]);
    return program;
}

static int32_t build(cl_program program, uint32_t count, const cl_device *devices, const char *options,
                     void (*notify)(cl_program, void *), void *user)
{
    FAIL(clBuildProgram);
    assert_true(count == 1 && devices && !notify && !user);
    snprintf(fake.options, sizeof fake.options, "%s", options);
    program->built = !strstr(program->text, "error");
    return program->built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

static int32_t build_info(cl_program program, cl_device device, uint32_t what, size_t size, void *value,
                          size_t *bytes)
{
    FAIL(clGetProgramBuildInfo);
    assert_true(program && device && what == CL_PROGRAM_BUILD_LOG);
    return fake_answer(log_text, sizeof log_text - 1, size, value, bytes); /* without its end */
}

static int32_t program_info(cl_program program, uint32_t what, size_t size, void *value, size_t *bytes)
{
    const size_t length = sizeof binary_text - 1;
    FAIL(clGetProgramInfo);
    assert_true(program->built);
    if (what == CL_PROGRAM_BINARY_SIZES) return fake_answer(&length, sizeof length, size, value, bytes);
    assert_int_equal(what, CL_PROGRAM_BINARIES);
    memcpy(*(unsigned char **)value, binary_text, length);
    return CL_SUCCESS;
}

static int32_t release_program(cl_program program)
{
    return fake_release(program);
}

struct cl_kernel_s {
    struct fake_launch launch; /* its name and arguments */
};

static cl_kernel make_kernel(cl_program program, const char *name, int32_t *error)
{
    FAIL_WITH(clCreateKernel, error);
    assert_true(program->built);
    cl_kernel kernel = fake_make(sizeof *kernel);
    snprintf(kernel->launch.kernel, sizeof kernel->launch.kernel, "%s", name);
    return kernel;
}

static int32_t release_kernel(cl_kernel kernel)
{
    return fake_release(kernel);
}

static int32_t set_argument(cl_kernel kernel, uint32_t index, size_t size, const void *value)
{
    FAIL(clSetKernelArg);
    assert_true(index < FAKE_ARGUMENTS && size <= 8);
    if ((int)index >= kernel->launch.arguments) kernel->launch.arguments = (int)index + 1;
    kernel->launch.size[index] = size;
    memcpy(kernel->launch.value[index], value, size);
    return CL_SUCCESS;
}

static void launch(cl_kernel kernel, uint32_t axes, const size_t *offset, const size_t *global,
                   const size_t *local)
{
    assert_int_equal(axes, 3);
    fake.launches++;
    fake.last = kernel->launch;
    fake.last.has_offset = offset;
    for (uint32_t i = 0; i < axes; i++) {
        fake.last.global[i] = global[i];
        fake.last.local[i] = local[i];
        fake.last.offset[i] = offset ? offset[i] : 0;
    }
}

static int32_t launch_one(cl_queue queue, cl_kernel kernel, uint32_t axes, const size_t *offset,
                          const size_t *global, const size_t *local, uint32_t count, const cl_event *awaited,
                          cl_event *event)
{
    FAIL(clEnqueueNDRangeKernel);
    launch(kernel, axes, offset, global, local);
    fake_enqueue(queue, count, awaited, event);
    return CL_SUCCESS;
}

/* ---- lists ---- */

struct cl_list_s {
    cl_queue queue;
    bool final;
    int count;
};

static cl_list make_list(uint32_t count, const cl_queue *of, const uint64_t *properties, int32_t *error)
{
    FAIL_WITH(clCreateCommandBufferKHR, error);
    assert_int_equal(count, 1);
    assert_true(properties[0] == CL_COMMAND_BUFFER_FLAGS_KHR && properties[2] == 0);
    assert_true(properties[1] == CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    cl_list list = fake_make(sizeof *list);
    list->queue = of[0];
    return list;
}

static int32_t list_launch(cl_list list, cl_queue queue, const uint64_t *properties, cl_kernel kernel,
                           uint32_t axes, const size_t *offset, const size_t *global, const size_t *local,
                           uint32_t waits, const uint32_t *awaited, uint32_t *point, void **handle)
{
    FAIL(clCommandNDRangeKernelKHR);
    assert_true(!list->final && !queue && !properties && !waits && !awaited && !point && !handle);
    launch(kernel, axes, offset, global, local);
    list->count++;
    return CL_SUCCESS;
}

static int32_t end_list(cl_list list)
{
    FAIL(clFinalizeCommandBufferKHR);
    list->final = true;
    return CL_SUCCESS;
}

static int32_t enqueue_list(uint32_t count, cl_queue *of, cl_list list, uint32_t waits,
                            const cl_event *awaited, cl_event *event)
{
    FAIL(clEnqueueCommandBufferKHR);
    assert_true(count == 0 && !of && list->final);
    fake.launches += list->count;
    fake_enqueue(list->queue, waits, awaited, event);
    return CL_SUCCESS;
}

static int32_t release_list(cl_list list)
{
    return fake_release(list);
}

static void *address_of(cl_platform platform, const char *name)
{
    void *found = NULL;
    assert_ptr_equal(platform, &fake.platform[0]);
    if (fake_due("clGetExtensionFunctionAddressForPlatform")) return NULL;
#define FIND(function, own)                                                                                  \
    if (strcmp(name, #function) == 0) {                                                                      \
        __typeof__(&own) address = own;                                                                      \
        memcpy(&found, &address, sizeof found);                                                              \
    }
    FIND(clCreateCommandBufferKHR, make_list)
    FIND(clFinalizeCommandBufferKHR, end_list)
    FIND(clReleaseCommandBufferKHR, release_list)
    FIND(clEnqueueCommandBufferKHR, enqueue_list)
    FIND(clCommandNDRangeKernelKHR, list_launch)
#undef FIND
    return found;
}

void fake_programs(struct opencl_library *library)
{
    library->clCreateProgramWithSource = from_source;
    library->clCreateProgramWithBinary = from_binary;
    library->clBuildProgram = build;
    library->clGetProgramBuildInfo = build_info;
    library->clGetProgramInfo = program_info;
    library->clReleaseProgram = release_program;
    library->clCreateKernel = make_kernel;
    library->clReleaseKernel = release_kernel;
    library->clSetKernelArg = set_argument;
    library->clEnqueueNDRangeKernel = launch_one;
    library->clGetExtensionFunctionAddressForPlatform = address_of;
}
