/* cuda_compiler DIRECTORY: builds the programs that gpu_programs wrote there by the layer for CUDA, with the
 * NVRTC that the loader finds, for the devices of the stand-in for the driver (tests/interop/test_nvrtc.py).
 * Prints what each became: its name, bytes, and "cubin" or "ptx".
 */
#include "device/gpu/api.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "trireme/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(tr_status status)
{
    if (status == TR_OK) return;
    fprintf(stderr, "%s\n", tr_error_message());
    exit(EXIT_FAILURE);
}

static void build(void *session, const char *name, const char *text)
{
    static const char head[] = "// options: ";
    struct gpu_program_source source = {.name = name, .parts = &text, .count = 1};
    void *program, *binary;
    size_t bytes;
    if (strncmp(text, head, strlen(head)) != 0) abort();
    char *options = tr_format("%.*s", (int)strcspn(text + strlen(head), "\n"), text + strlen(head));
    source.options = options;
    must(gpu_api_cuda.build(session, &source, &program));
    must(gpu_api_cuda.binary(session, program, &binary, &bytes));
    printf("%s %zu %s\n", name, bytes, memcmp(binary, "\177ELF", 4) == 0 ? "cubin" : "ptx");
    if (strstr(text, "D_GROUP(1)") && !memmem(binary, bytes, "d_first_group", strlen("d_first_group"))) {
        fprintf(stderr, "%s does not know its first group\n", name);
        exit(EXIT_FAILURE);
    }
    gpu_api_cuda.free_program(session, program);
    tr_free(binary);
    tr_free(options);
}

int main(int count, char **arguments)
{
    struct tr_file_names names;
    struct gpu_info info;
    void *session;
    if (count != 2) return fprintf(stderr, "usage: cuda_compiler DIRECTORY\n"), EXIT_FAILURE;
    must(gpu_api_cuda.describe(0, &info));
    if (info.refusal[0]) return fprintf(stderr, "%s\n", info.refusal), EXIT_FAILURE;
    printf("%s\n", info.driver);
    must(gpu_api_cuda.open(0, false, &session));
    must(tr_file_list(NULL, arguments[1], &names));
    for (int64_t i = 0; i < names.count; i++) {
        struct tr_file_content file;
        char *path = tr_path_join(arguments[1], names.name[i]);
        must(tr_file_read(path, UINT64_C(1) << 24, &file));
        char *text = tr_format("%.*s", (int)file.size, (const char *)file.data);
        build(session, names.name[i], text);
        tr_free(text);
        tr_file_content_free(&file);
        tr_free(path);
    }
    tr_file_names_free(&names);
    gpu_api_cuda.close(session);
    return EXIT_SUCCESS;
}
