/* Programs of a gpu device: built when first needed, kept for its life. */
#include "device/gpu/cache.h"
#include "device/gpu/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <string.h>

#define MOST_PARTS 10

/* The key of a binary: a hash of all that it depends on. */
static bool key_of(const struct gpu *gpu, const struct gpu_program_source *source, char key[TR_SHA256_TEXT])
{
    const struct gpu_info *info = &gpu->info;
    struct gpu_key under_way;
    gpu_key_begin(&under_way);
    gpu_key_add(&under_way, gpu->api->name);
    gpu_key_add(&under_way, gpu->api->exact);
    gpu_key_add(&under_way, info->platform);
    gpu_key_add(&under_way, info->vendor);
    gpu_key_add(&under_way, info->name);
    gpu_key_add(&under_way, info->driver);
    gpu_key_add(&under_way, source->options);
    for (int i = 0; i < source->count; i++) gpu_key_add(&under_way, source->parts[i]);
    return gpu_key_end(&under_way, key);
}

/* Builds from a binary that an earlier run kept; false where the driver accepts none. */
static bool build_kept(struct gpu *gpu, const struct gpu_program_source *source, const char *key, void **out)
{
    struct tr_file_content file;
    size_t skip;
    if (!gpu_cache_read(gpu->cache, key, &file, &skip)) return false;
    struct gpu_program_source kept = *source;
    kept.binary = file.data + skip;
    kept.binary_bytes = file.size - skip;
    bool built = gpu->api->build(gpu->session, &kept, out) == TR_OK;
    tr_file_content_free(&file);
    return built;
}

static void keep_binary(struct gpu *gpu, const char *key, void *program)
{
    void *binary;
    size_t bytes;
    if (gpu->api->binary(gpu->session, program, &binary, &bytes) != TR_OK) return;
    gpu_cache_write(gpu->cache, key, binary, bytes);
    tr_free(binary);
}

static tr_status build_source(struct gpu *gpu, const struct gpu_program_source *source, void **out)
{
    char key[TR_SHA256_TEXT];
    bool keeps = gpu->cache && !gpu->info.keeps_programs && key_of(gpu, source, key);
    if (keeps && build_kept(gpu, source, key, out)) return TR_OK;
    TR_TRY(gpu->api->build(gpu->session, source, out));
    gpu->built++;
    if (keeps) keep_binary(gpu, key, *out);
    return TR_OK;
}

static tr_status build(struct gpu *gpu, const char *name, const char *options, void **out)
{
    const char *parts[MOST_PARTS];
    struct gpu_program_source source = {.name = name, .parts = parts};
    const char *text = gpu_source(gpu->sources, name);
    assert(text && "a source that sources.c lists");
    for (int i = 0; i < gpu_prelude_count; i++)
        parts[source.count++] = gpu_source(gpu->sources, gpu_prelude[i]);
    parts[source.count++] = text;
    char *all = tr_format(
        "-DD_THREADS=%u %s%s%s%s", gpu->threads, gpu->info.processor ? "-DD_KEEP_ROLLED " : "",
        gpu->info.own_division ? "-DD_OWN_DIVISION " : "", gpu->own_fma ? "-DD_OWN_FMA " : "", options);
    if (!all) return TR_ENOMEM;
    source.options = all;
    tr_status status = build_source(gpu, &source, out);
    tr_free(all);
    return status;
}

static tr_status find_program(struct gpu *gpu, const char *source, const char *options,
                              struct gpu_program **out)
{
    for (int i = 0; i < gpu->program_count; i++) {
        *out = &gpu->programs[i];
        if (strcmp((*out)->source, source) == 0 && strcmp((*out)->options, options) == 0) return TR_OK;
    }
    if (!tr_grow(&gpu->programs, gpu->program_count, sizeof *gpu->programs)) return TR_ENOMEM;
    struct gpu_program *program = &gpu->programs[gpu->program_count];
    *program = (struct gpu_program){.source = tr_strdup(source), .options = tr_strdup(options)};
    tr_status status = program->source && program->options ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = build(gpu, source, options, &program->handle);
    if (status != TR_OK) {
        tr_free(program->source);
        tr_free(program->options);
        return status;
    }
    gpu->program_count++;
    *out = program;
    return TR_OK;
}

tr_status gpu_program_kernel(struct gpu *gpu, const char *source, const char *options, const char *kernel,
                             void **out)
{
    struct gpu_program *program = NULL;
    TR_TRY(find_program(gpu, source, options, &program));
    for (int i = 0; i < program->kernel_count; i++) {
        *out = program->kernels[i].handle;
        if (strcmp(program->kernels[i].name, kernel) == 0) return TR_OK;
    }
    if (!tr_grow(&program->kernels, program->kernel_count, sizeof *program->kernels)) return TR_ENOMEM;
    struct gpu_kernel *fresh = &program->kernels[program->kernel_count];
    fresh->name = tr_strdup(kernel);
    if (!fresh->name) return TR_ENOMEM;
    tr_status status = gpu->api->kernel(gpu->session, program->handle, kernel, &fresh->handle);
    if (status != TR_OK) {
        tr_free(fresh->name);
        return status;
    }
    program->kernel_count++;
    *out = fresh->handle;
    return TR_OK;
}

void gpu_programs_release(struct gpu *gpu)
{
    for (int i = 0; i < gpu->program_count; i++) {
        struct gpu_program *program = &gpu->programs[i];
        for (int k = 0; k < program->kernel_count; k++) {
            gpu->api->free_kernel(gpu->session, program->kernels[k].handle);
            tr_free(program->kernels[k].name);
        }
        gpu->api->free_program(gpu->session, program->handle);
        tr_free(program->kernels);
        tr_free(program->source);
        tr_free(program->options);
    }
    tr_free(gpu->programs);
    gpu->programs = NULL;
    gpu->program_count = 0;
}
