/* gpu_programs DIRECTORY: writes every program that operations ask a gpu device for, as the files
 * NUMBER-NAME.cu, for compilers that are at hand where no device is (tests/interop/test_nvrtc.py).
 *
 * The device is one of paper: it has memory that holds nothing, compiles nothing and launches nothing, but
 * writes down what it is asked to build, and with how many threads each kernel is launched. All cases of all
 * operations run on two such devices, one with few units and one with many, since sizes choose variants by
 * them; then the kernels of the self-test, which a device of paper would not pass. No kernel may be left out.
 * First lines of a file:
 *     // options: -DD_THREADS=256 ...
 *     // kernel: product 256
 */
#include "device/cases/cases.h"
#include "device/gpu/internal.h"
#include "device/gpu/operations/operations.h"
#include "device/gpu/kernels.h"

#include "base/alloc.h"
#include "base/text/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MOST_PROGRAMS 128
#define MOST_KERNELS  32

struct paper_kernel {
    char name[64];
    unsigned threads; /* 0: never launched */
};

struct paper_program {
    char name[64];
    char *text, *options;
    struct paper_kernel kernel[MOST_KERNELS];
    int kernels;
};

static struct paper_program programs[MOST_PROGRAMS];
static int program_count;

static tr_status paper_alloc(void *session, size_t bytes, void **block)
{
    (void)session;
    (void)bytes;
    *block = tr_alloc(1, 1);
    return *block ? TR_OK : TR_ENOMEM;
}

static void paper_free(void *session, void *block)
{
    (void)session;
    tr_free(block);
}

static tr_status paper_to_device(void *session, void *block, size_t at, const void *from, size_t bytes,
                                 void **event)
{
    (void)event;
    (void)session;
    (void)block;
    (void)at;
    (void)from;
    (void)bytes;
    return TR_OK;
}

static tr_status paper_to_host(void *session, void *to, void *block, size_t at, size_t bytes, void **event)
{
    (void)event;
    (void)session;
    (void)block;
    (void)at;
    memset(to, 0, bytes);
    return TR_OK;
}

static tr_status paper_build(void *session, const struct gpu_program_source *source, void **program)
{
    (void)session;
    char *text = tr_strdup("");
    for (int i = 0; text && i < source->count; i++) {
        char *longer = tr_format("%s%s\n", text, source->parts[i]);
        tr_free(text);
        text = longer;
    }
    assert_non_null(text);
    for (int i = 0; i < program_count; i++) {
        *program = &programs[i];
        if (strcmp(programs[i].text, text) != 0 || strcmp(programs[i].options, source->options) != 0)
            continue;
        tr_free(text);
        return TR_OK;
    }
    assert_true(program_count < MOST_PROGRAMS);
    struct paper_program *fresh = &programs[program_count++];
    snprintf(fresh->name, sizeof fresh->name, "%s", source->name);
    fresh->text = text;
    fresh->options = tr_strdup(source->options);
    assert_non_null(fresh->options);
    *program = fresh;
    return TR_OK;
}

static void paper_keep(void *session, void *handle)
{
    (void)session;
    (void)handle;
}

static tr_status paper_kernel(void *session, void *handle, const char *name, void **kernel)
{
    (void)session;
    struct paper_program *program = handle;
    for (int i = 0; i < program->kernels; i++) {
        *kernel = &program->kernel[i];
        if (strcmp(program->kernel[i].name, name) == 0) return TR_OK;
    }
    assert_true(program->kernels < MOST_KERNELS);
    struct paper_kernel *fresh = &program->kernel[program->kernels++];
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    *kernel = fresh;
    return TR_OK;
}

static tr_status paper_launch(void *session, const struct gpu_launch *launch)
{
    (void)session;
    struct paper_kernel *kernel = launch->kernel;
    if (kernel->threads != 0 && kernel->threads != launch->threads)
        fail_msg("kernel %s is launched with %u threads and with %u", kernel->name, kernel->threads,
                 launch->threads);
    kernel->threads = launch->threads;
    return TR_OK;
}

static tr_status paper_wait(void *session)
{
    (void)session;
    return TR_OK;
}

static const struct gpu_api paper = {
    .name = "paper",
    .version = GPU_API_VERSION,
    .exact = "",
    .alloc = paper_alloc,
    .free = paper_free,
    .to_device = paper_to_device,
    .to_host = paper_to_host,
    .build = paper_build,
    .free_program = paper_keep,
    .kernel = paper_kernel,
    .free_kernel = paper_keep,
    .launch = paper_launch,
    .wait = paper_wait,
};

static tr_status device_wait(tr_device *device)
{
    (void)device;
    return TR_OK;
}

static const struct tr_device_class paper_class = {.name = "paper",
                                                   .version = TR_DEVICE_VERSION,
                                                   .alloc = gpu_alloc,
                                                   .free = gpu_free,
                                                   .to_device = gpu_to_device,
                                                   .to_host = gpu_to_host,
                                                   .wait = device_wait,
#define SLOT(op) .op = gpu_##op,
                                                   GPU_OPS(SLOT)
#undef SLOT
};

#define HAS_KERNEL(op) {#op, offsetof(struct tr_device_class, op)},
static const struct {
    const char *name;
    size_t slot;
} slots[] = {GPU_OPS(HAS_KERNEL)};
#undef HAS_KERNEL

static bool has_kernel(const char *operation)
{
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
        if (strcmp(slots[i].name, operation) == 0) return true;
    return false;
}

/* What a self-test launches, with no arguments: nothing runs. */
static void launch_self_test(struct gpu *gpu)
{
    static const char *const kernels[] = {"exact_arithmetic", "exact_division", "exact_functions",
                                          "exact_random"};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        struct gpu_call call;
        gpu_begin(&call, &gpu->base, "exact", "", kernels[i]);
        assert_int_equal(gpu_run(&call, 1, 1, 1), TR_OK);
    }
}

static bool was_launched(const char *kernel)
{
    for (int i = 0; i < program_count; i++)
        for (int k = 0; k < programs[i].kernels; k++)
            if (programs[i].kernel[k].threads != 0 && strcmp(programs[i].kernel[k].name, kernel) == 0)
                return true;
    return false;
}

static void run_all(uint32_t units)
{
    struct gpu gpu = {
        .base = {.class = &paper_class, .description = "a device of paper", .threads = 1},
        .api = &paper,
        .info = {.name = "paper",
                 .memory = (uint64_t)64 << 30,
                 .allocation = (uint64_t)16 << 30,
                 .shared = 48 << 10,
                 .group = 1024,
                 .units = units},
        .threads = 256,
    };
    assert_int_equal(gpu_sources_unpack(&gpu.sources), TR_OK);
    for (int i = 0; i < CASE_LISTS; i++) {
        if (!has_kernel(case_lists[i].operation)) continue;
        for (int index = 0;; index++) {
            struct scene scene;
            scene_begin(&scene, &gpu.base, SCENE_PLAIN, (uint32_t)i, (uint32_t)index);
            if (!case_lists[i].run(&scene, index)) break;
            scene_release(&scene);
        }
    }
    launch_self_test(&gpu);
    gpu_programs_release(&gpu);
    gpu_plans_release(&gpu);
    gpu_memory_release(&gpu);
    tr_free(gpu.sources);
}

static void write_program(const char *directory, int number)
{
    const struct paper_program *program = &programs[number];
    char *path = tr_format("%s/%02d-%s.cu", directory, number, program->name);
    assert_non_null(path);
    FILE *file = fopen(path, "w");
    if (!file) fail_msg("%s: %s", path, strerror(errno));
    fprintf(file, "// options: %s\n", program->options);
    for (int i = 0; i < program->kernels; i++)
        fprintf(file, "// kernel: %s %u\n", program->kernel[i].name, program->kernel[i].threads);
    fputs(program->text, file);
    if (fclose(file) != 0) fail_msg("%s: %s", path, strerror(errno));
    tr_free(path);
}

static const char *directory;

static void write_all(void **state)
{
    (void)state;
    run_all(1);
    run_all(100);
    every_kernel_must(was_launched);
    for (int i = 0; i < program_count; i++) write_program(directory, i);
    for (; program_count > 0; program_count--) {
        tr_free(programs[program_count - 1].text);
        tr_free(programs[program_count - 1].options);
    }
}

int main(int count, char **arguments)
{
    if (count != 2) return fprintf(stderr, "usage: gpu_programs DIRECTORY\n"), EXIT_FAILURE;
    directory = arguments[1];
    const struct CMUnitTest all[] = {cmocka_unit_test(write_all)};
    return cmocka_run_group_tests_name("programs of a gpu device", all, NULL, NULL);
}
