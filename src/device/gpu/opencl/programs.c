/* Programs, kernels and their launches. */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/opencl/internal.h"

#define cl opencl_library

static tr_status build_failed(struct opencl_session *session, cl_program program,
                              const struct gpu_program_source *source, int32_t error)
{
    size_t bytes = 0;
    cl.clGetProgramBuildInfo(program, session->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *text = tr_alloc_zero(bytes + 1, 1);
    if (text && bytes > 0)
        cl.clGetProgramBuildInfo(program, session->device, CL_PROGRAM_BUILD_LOG, bytes, text, NULL);
    tr_status status =
        tr_fail(TR_EUNSUPPORTED, "%s: its compiler refuses the kernels \"%s\" (OpenCL error %d): %.700s",
                session->name, source->name, error, text ? text : "");
    tr_free(text);
    return status;
}

static tr_status create_program(struct opencl_session *session, const struct gpu_program_source *source,
                                cl_program *program)
{
    int32_t error, loaded = CL_SUCCESS;
    if (source->binary) {
        const unsigned char *binary = source->binary;
        *program = cl.clCreateProgramWithBinary(session->context, 1, &session->device, &source->binary_bytes,
                                                &binary, &loaded, &error);
        if (*program && loaded != CL_SUCCESS) {
            cl.clReleaseProgram(*program);
            *program = NULL;
        }
        return *program ? TR_OK : tr_fail(TR_EFORMAT, "%s: not a program of this device", source->name);
    }
    *program = cl.clCreateProgramWithSource(session->context, (uint32_t)source->count,
                                            (const char **)(uintptr_t)source->parts, NULL, &error);
    return *program ? TR_OK : opencl_failed(session, "making a program", error);
}

tr_status opencl_build(void *session_, const struct gpu_program_source *source, void **out)
{
    struct opencl_session *session = session_;
    cl_program program;
    TR_TRY(create_program(session, source, &program));
    bool divides = (opencl_promises(session->device) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    char *options = tr_format("%s%s", divides ? OPENCL_STRICT : OPENCL_LANGUAGE, source->options);
    if (!options) {
        cl.clReleaseProgram(program);
        return TR_ENOMEM;
    }
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    int32_t error = cl.clBuildProgram(program, 1, &session->device, options, NULL, NULL);
    gpu_restore_signals(&signals);
    tr_free(options);
    if (error != CL_SUCCESS) {
        tr_status status = source->binary
                               ? tr_fail(TR_EFORMAT, "%s: not a program of this device", source->name)
                               : build_failed(session, program, source, error);
        cl.clReleaseProgram(program);
        return status;
    }
    *out = program;
    return TR_OK;
}

void opencl_free_program(void *session, void *program)
{
    (void)session;
    cl.clReleaseProgram(program);
}

tr_status opencl_binary(void *session_, void *program, void **binary, size_t *bytes)
{
    struct opencl_session *session = session_;
    *binary = NULL;
    *bytes = 0;
    int32_t error = cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL);
    if (error != CL_SUCCESS) return opencl_failed(session, "telling a program's size", error);
    unsigned char *memory = tr_alloc(*bytes, 1);
    if (!memory) return TR_ENOMEM;
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    error = cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof memory, &memory, NULL);
    gpu_restore_signals(&signals);
    if (error != CL_SUCCESS) {
        tr_free(memory);
        return opencl_failed(session, "giving a program's binary", error);
    }
    *binary = memory;
    return TR_OK;
}

tr_status opencl_kernel(void *session_, void *program, const char *name, void **out)
{
    struct opencl_session *session = session_;
    int32_t error;
    struct opencl_kernel *kernel = tr_alloc_zero(1, sizeof *kernel);
    if (!kernel) return TR_ENOMEM;
    kernel->least = UINT32_MAX;
    kernel->program = program;
    kernel->kernel = cl.clCreateKernel(program, name, &error);
    if (!kernel->kernel) {
        tr_free(kernel);
        return opencl_failed(session, name, error);
    }
    *out = kernel;
    return TR_OK;
}

void opencl_free_kernel(void *session, void *kernel_)
{
    struct opencl_kernel *kernel = kernel_;
    (void)session;
    cl.clReleaseKernel(kernel->kernel);
    tr_free(kernel);
}

/* Whether a driver may compile for a launch of so many groups. */
static bool is_new(struct opencl_kernel *kernel, const uint32_t groups[3])
{
    uint32_t most = groups[0];
    for (int i = 1; i < 3; i++)
        if (groups[i] > most) most = groups[i];
    bool fresh = most < kernel->least || most > kernel->most;
    if (most < kernel->least) kernel->least = most;
    if (most > kernel->most) kernel->most = most;
    return fresh;
}

int32_t opencl_set_arguments(cl_kernel kernel, const struct gpu_launch *launch)
{
    for (int i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        size_t size = argument->size ? argument->size : sizeof argument->block;
        const void *value = argument->size ? (const void *)argument->value : (const void *)&argument->block;
        int32_t error = cl.clSetKernelArg(kernel, (uint32_t)i, size, value);
        if (error != CL_SUCCESS) return error;
    }
    return CL_SUCCESS;
}

void opencl_set_range(const struct gpu_launch *launch, struct opencl_range *range)
{
    for (int i = 0; i < 3; i++) {
        range->local[i] = i == 0 ? launch->threads : 1;
        range->global[i] = range->local[i] * launch->groups[i];
        range->first[i] = range->local[i] * launch->first[i];
    }
    range->offset = launch->first[1] == 0 && launch->first[2] == 0 ? NULL : range->first;
}

tr_status opencl_launch(void *session_, const struct gpu_launch *launch)
{
    struct opencl_session *session = session_;
    struct opencl_kernel *kernel = launch->kernel;
    int32_t error = opencl_set_arguments(kernel->kernel, launch);
    if (error != CL_SUCCESS) return opencl_failed(session, launch->name, error);
    struct opencl_range range;
    opencl_set_range(launch, &range);
    struct gpu_signals signals;
    bool guarded = is_new(kernel, launch->groups) || range.offset;
    if (guarded) gpu_keep_signals(&signals);
    error = cl.clEnqueueNDRangeKernel(session->queue, kernel->kernel, 3, range.offset, range.global,
                                      range.local, 0, NULL, (cl_event *)launch->event);
    if (guarded) gpu_restore_signals(&signals);
    return opencl_failed(session, launch->name, error);
}
