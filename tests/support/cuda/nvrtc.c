/* libnvrtc.so.12 for tests: see stand_in.h. It checks options as strictly as the real one, and forwards
 * the text, with the matching options of OpenCL's compiler.
 */
#include "device/gpu/cuda/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* As the program declares them. */
#define DECLARE(result, name, parameters) EXPORT result name parameters;
NVRTC_FUNCTIONS(DECLARE)

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_INVALID_OPTION = 5, NVRTC_ERROR_COMPILATION = 6 };

static const int archs[] = {90, 52, 80};
enum { ARCHS = sizeof archs / sizeof archs[0] };

struct nvrtc_program_s {
    char *text, log[400], options[900];
    int arch;
    int own; /* machine code: the number of the architecture */
};

EXPORT int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 4;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(int error)
{
    return error == NVRTC_SUCCESS                ? "NVRTC_SUCCESS"
           : error == NVRTC_ERROR_INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION"
           : error == NVRTC_ERROR_COMPILATION    ? "NVRTC_ERROR_COMPILATION"
                                                 : "NVRTC_ERROR_unknown";
}

EXPORT int nvrtcGetNumSupportedArchs(int *count)
{
    *count = ARCHS;
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, archs, sizeof archs);
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcCreateProgram(nvrtc_program *out, const char *text, const char *name, int headers,
                              const char *const *contents, const char *const *names)
{
    if (!name || headers != 0 || contents || names) abort();
    struct nvrtc_program_s *program = calloc(1, sizeof *program);
    if (!program || !(program->text = strdup(text))) abort();
    *out = program;
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcDestroyProgram(nvrtc_program *program)
{
    free((*program)->text);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

static int take_arch(struct nvrtc_program_s *program, const char *value)
{
    char kind[12];
    if (sscanf(value, "%11[a-z]_%d", kind, &program->arch) != 2) return 0;
    program->own = strcmp(kind, "sm") == 0;
    for (int i = 0; i < ARCHS; i++)
        if (archs[i] == program->arch) return program->own || strcmp(kind, "compute") == 0;
    return 0;
}

/* Options of OpenCL are composed as in the layer for OpenCL, so that both share programs of pocl. */
EXPORT int nvrtcCompileProgram(nvrtc_program program, int count, const char *const *options)
{
    static const char *const strict[] = {"-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true",
                                         "-default-device"};
    enum { STRICT = sizeof strict / sizeof strict[0] };
    const char *architecture = "-arch=";
    int seen = 0, definitions = 0;
    snprintf(program->options, sizeof program->options,
             "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt");
    for (int i = 0; i < count; i++) {
        int known = strncmp(options[i], "-D", 2) == 0;
        for (int k = 0; k < STRICT; k++)
            if (strcmp(options[i], strict[k]) == 0) known = 1, seen |= 1 << k;
        if (strncmp(options[i], architecture, strlen(architecture)) == 0)
            known = take_arch(program, options[i] + strlen(architecture));
        if (!known) {
            snprintf(program->log, sizeof program->log, "nvrtc: error: invalid value for %.200s", options[i]);
            return NVRTC_ERROR_INVALID_OPTION;
        }
        size_t used = strlen(program->options);
        if (options[i][1] != 'D') continue;
        snprintf(program->options + used, sizeof program->options - used, " %s", options[i]);
        definitions++;
    }
    if (seen != (1 << STRICT) - 1 || !program->arch) abort(); /* arithmetic would not be exact */
    size_t used = strlen(program->options);
    snprintf(program->options + used, sizeof program->options - used, "%s -DD_KEEP_ROLLED",
             definitions == 1 ? " " : "");
    const char *error = strstr(program->text, "#error stand-in");
    if (!error) return NVRTC_SUCCESS;
    snprintf(program->log, sizeof program->log, "%.*s", (int)strcspn(error, "\n"), error);
    return NVRTC_ERROR_COMPILATION;
}

EXPORT int nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetProgramLog(nvrtc_program program, char *log)
{
    strcpy(log, program->log);
    return NVRTC_SUCCESS;
}

static size_t write_image(const struct nvrtc_program_s *program, char *out, size_t size, int own)
{
    return (size_t)snprintf(out, size, "%s stand-in %s %d\n%s\n%s", own ? "\177ELF" : "//",
                            own ? "cubin" : "ptx", program->arch, program->options, program->text) +
           1;
}

/* Machine code is made only for existing architectures. */
EXPORT int nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes)
{
    *bytes = program->own ? write_image(program, NULL, 0, 1) : 0;
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetCUBIN(nvrtc_program program, char *out)
{
    if (!program->own) return NVRTC_ERROR_INVALID_OPTION;
    size_t bytes = write_image(program, NULL, 0, 1);
    write_image(program, out, bytes, 1);
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetPTXSize(nvrtc_program program, size_t *bytes)
{
    *bytes = write_image(program, NULL, 0, 0);
    return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetPTX(nvrtc_program program, char *out)
{
    size_t bytes = write_image(program, NULL, 0, 0);
    write_image(program, out, bytes, 0);
    return NVRTC_SUCCESS;
}
