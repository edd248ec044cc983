/* Programs, kernels and their launches. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "device/gpu/cuda/internal.h"

#include <stdio.h>
#include <string.h>

#define cu cuda_library

#define MOST_OPTIONS 64
#define LOG_SIZE     1024

/* ---- the compiler ---- */

/* Splits a text at blanks; `text` is changed. */
static int split(char *text, const char *options[MOST_OPTIONS])
{
    int count = 0;
    for (char *at = strtok_r(text, " ", &text); at && count < MOST_OPTIONS; at = strtok_r(NULL, " ", &text))
        options[count++] = at;
    return count;
}

static char *join(const struct gpu_program_source *source)
{
    struct tr_text text = TR_TEXT_INIT;
    char *whole = NULL;
    for (int i = 0; i < source->count; i++) tr_text_add(&text, source->parts[i]);
    (void)tr_text_finish(&text, &whole);
    return whole;
}

static tr_status refused(const struct cuda_session *session, nvrtc_program program,
                         const struct gpu_program_source *source, int error)
{
    size_t bytes = 0;
    char *text = NULL;
    if (program && cu.nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes > 0 &&
        (text = tr_alloc_zero(bytes + 1, 1)) && cu.nvrtcGetProgramLog(program, text) != 0)
        text[0] = '\0';
    tr_status status = tr_fail(TR_EUNSUPPORTED, "%s: its compiler refuses the kernels \"%s\" (%s): %.700s",
                               session->name, source->name, cu.nvrtcGetErrorString(error), text ? text : "");
    tr_free(text);
    return status;
}

/* Machine code if compiled for the device itself; else the text from which the driver makes it, with its
   NUL. */
static int take_image(const struct cuda_session *session, nvrtc_program from, struct cuda_program *program)
{
    int error = session->own_arch ? cu.nvrtcGetCUBINSize(from, &program->bytes)
                                  : cu.nvrtcGetPTXSize(from, &program->bytes);
    if (error != 0) return error;
    program->image = tr_alloc_zero(program->bytes + 1, 1);
    if (!program->image) return 0;
    return session->own_arch ? cu.nvrtcGetCUBIN(from, program->image) : cu.nvrtcGetPTX(from, program->image);
}

static tr_status compile(const struct cuda_session *session, const struct gpu_program_source *source,
                         const char *text, char *words, struct cuda_program *program)
{
    const char *options[MOST_OPTIONS];
    nvrtc_program made = NULL;
    int count = split(words, options);
    if (count == MOST_OPTIONS)
        return tr_fail(TR_EUNSUPPORTED, "%s: more options than %d", source->name, MOST_OPTIONS);
    int error = cu.nvrtcCreateProgram(&made, text, source->name, 0, NULL, NULL);
    if (error != 0) return refused(session, NULL, source, error);
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    error = cu.nvrtcCompileProgram(made, count, options);
    gpu_restore_signals(&signals);
    if (error == 0) error = take_image(session, made, program);
    tr_status status = TR_OK;
    if (error != 0)
        status = refused(session, made, source, error);
    else if (!program->image)
        status = TR_ENOMEM;
    cu.nvrtcDestroyProgram(&made);
    return status;
}

static tr_status compile_source(const struct cuda_session *session, const struct gpu_program_source *source,
                                struct cuda_program *program)
{
    char *text = join(source);
    char *words = tr_format(CUDA_STRICT "-arch=%s_%d %s", session->own_arch ? "sm" : "compute", session->arch,
                            source->options);
    tr_status status = text && words ? compile(session, source, text, words, program) : TR_ENOMEM;
    tr_free(words);
    tr_free(text);
    return status;
}

/* ---- programs ---- */

static cu_result load(struct cuda_program *program, const void *image, char log[LOG_SIZE])
{
    int names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(LOG_SIZE - 1)};
    size_t bytes;
    log[0] = log[LOG_SIZE - 1] = '\0';
    struct gpu_signals signals;
    gpu_keep_signals(&signals); /* for the driver, which compiles texts */
    cu_result error = cu.cuModuleLoadDataEx(&program->module, image, 2, names, values);
    gpu_restore_signals(&signals);
    if (error != CUDA_SUCCESS) {
        program->module = NULL;
        return error;
    }
    error = cu.cuModuleGetGlobal_v2(&program->first_group, &bytes, program->module, "d_first_group");
    if (error != CUDA_ERROR_NOT_FOUND) return error;
    program->first_group = 0;
    return CUDA_SUCCESS;
}

static bool is_image_refused(cu_result error)
{
    return error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

static tr_status load_image(const struct cuda_session *session, const struct gpu_program_source *source,
                            struct cuda_program *program)
{
    char log[LOG_SIZE] = "", text[CUDA_MESSAGE_SIZE];
    void *copy = NULL; /* aligned, as images must be; a file's contents may begin anywhere */
    if (source->binary) {
        copy = tr_alloc(source->binary_bytes, 1);
        if (!copy) return TR_ENOMEM;
        memcpy(copy, source->binary, source->binary_bytes);
    }
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = load(program, copy ? copy : program->image, log);
        cuda_leave();
    }
    tr_free(copy);
    if (error == CUDA_SUCCESS) return TR_OK;
    if (source->binary) return tr_fail(TR_EFORMAT, "%s: not a program of this device", source->name);
    if (!is_image_refused(error)) return cuda_failed(session, "making a program", error);
    cuda_error_text(error, text, sizeof text);
    return tr_fail(TR_EUNSUPPORTED,
                   "%s: its driver refuses the kernels \"%s\" as NVRTC %d.%d compiles them (%s): %.500s",
                   session->name, source->name, cu.compiler_major, cu.compiler_minor, text, log);
}

/* The driver is not given its length: a text ends with a NUL. */
static bool is_image(const char *bytes, size_t count)
{
    return count > 4 && (memcmp(bytes, "\177ELF", 4) == 0 || bytes[count - 1] == '\0');
}

tr_status cuda_build(void *session_, const struct gpu_program_source *source, void **out)
{
    struct cuda_session *session = session_;
    if (source->binary && !is_image(source->binary, source->binary_bytes))
        return tr_fail(TR_EFORMAT, "%s: not a program of a CUDA device", source->name);
    struct cuda_program *program = tr_alloc_zero(1, sizeof *program);
    if (!program) return TR_ENOMEM;
    tr_status status = source->binary ? TR_OK : compile_source(session, source, program);
    if (status == TR_OK) status = load_image(session, source, program);
    if (status == TR_OK)
        *out = program;
    else
        cuda_free_program(session, program);
    return status;
}

void cuda_free_program(void *session, void *program_)
{
    struct cuda_program *program = program_;
    if (program->module) {
        bool entered = cuda_enter(session) == CUDA_SUCCESS;
        cu.cuModuleUnload(program->module);
        if (entered) cuda_leave();
    }
    tr_free(program->image);
    tr_free(program);
}

tr_status cuda_binary(void *session, void *program_, void **binary, size_t *bytes)
{
    const struct cuda_program *program = program_;
    (void)session;
    if (!program->image) return tr_fail(TR_EUNSUPPORTED, "a program that was kept is not given once more");
    *binary = tr_alloc(program->bytes, 1);
    if (!*binary) return TR_ENOMEM;
    memcpy(*binary, program->image, program->bytes);
    *bytes = program->bytes;
    return TR_OK;
}

tr_status cuda_kernel(void *session_, void *program_, const char *name, void **out)
{
    struct cuda_session *session = session_;
    const struct cuda_program *program = program_;
    struct cuda_kernel *kernel = tr_alloc_zero(1, sizeof *kernel);
    if (!kernel) return TR_ENOMEM;
    kernel->program = program;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuModuleGetFunction(&kernel->function, program->module, name);
        cuda_leave();
    }
    if (error != CUDA_SUCCESS)
        tr_free(kernel);
    else
        *out = kernel;
    return cuda_failed(session, name, error);
}

void cuda_free_kernel(void *session, void *kernel)
{
    (void)session;
    tr_free(kernel);
}

/* ---- launches ---- */

/* The number of the first group is in the memory of a kernel's program, which holds 0 otherwise. */
static cu_result set_first(const struct cuda_session *session, const struct gpu_launch *launch, bool back)
{
    const struct cuda_kernel *kernel = launch->kernel;
    cu_result error = CUDA_SUCCESS;
    for (unsigned axis = 1; axis < 3 && error == CUDA_SUCCESS && kernel->program->first_group; axis++)
        if (launch->first[axis])
            error = cu.cuMemsetD32Async(kernel->program->first_group + axis * sizeof(uint32_t),
                                        back ? 0 : launch->first[axis], 1, session->queue);
    return error;
}

bool cuda_fill_arguments(const struct gpu_launch *launch, void *arguments[CUDA_MOST_ARGUMENTS])
{
    if (launch->count > CUDA_MOST_ARGUMENTS) return false;
    for (int i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        const void *value = argument->size ? (const void *)argument->value : (const void *)&argument->block;
        arguments[i] = (void *)(uintptr_t)value;
    }
    return true;
}

static cu_result enqueue(struct cuda_session *session, const struct gpu_launch *launch)
{
    const struct cuda_kernel *kernel = launch->kernel;
    void *arguments[CUDA_MOST_ARGUMENTS];
    if (!cuda_fill_arguments(launch, arguments)) return CUDA_ERROR_INVALID_VALUE;
    cu_result error = set_first(session, launch, false);
    if (error == CUDA_SUCCESS)
        error = cu.cuLaunchKernel(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                  launch->threads, 1, 1, 0, session->queue, arguments, NULL);
    return error == CUDA_SUCCESS ? set_first(session, launch, true) : error;
}

tr_status cuda_launch(void *session_, const struct gpu_launch *launch)
{
    struct cuda_session *session = session_;
    struct cuda_event *times = NULL;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cuda_times_begin(session, session->queue, launch->event ? &times : NULL);
        if (error == CUDA_SUCCESS) error = enqueue(session, launch);
        if (error == CUDA_SUCCESS) error = cuda_times_end(session->queue, times);
        if (error != CUDA_SUCCESS) cuda_release_event(times);
        cuda_leave();
    }
    if (launch->event && error == CUDA_SUCCESS) *launch->event = times;
    return cuda_failed(session, launch->name, error);
}
