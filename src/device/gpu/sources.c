/* The kernels' texts, compressed into the program by cmake/embed.cmake. */
#include "device/gpu/internal.h"

#include "base/text/packed.h"

/* To add a group of kernels, add its file kernels/<name>.k and a line here. */
#define SOURCES(X)                                                                                           \
    X(attention)                                                                                             \
    X(exact)                                                                                                 \
    X(elementwise)                                                                                           \
    X(group_norm)                                                                                            \
    X(grouped_conv)                                                                                          \
    X(input)                                                                                                 \
    X(norm)                                                                                                  \
    X(pool)                                                                                                  \
    X(product)                                                                                               \
    X(recurrent)                                                                                             \
    X(reduction)                                                                                             \
    X(rotary)                                                                                                \
    X(sequence)                                                                                              \
    X(softmax)                                                                                               \
    X(winograd_conv)                                                                                         \
    X(update)

extern const struct tr_packed tr_gpu_packed;

const char *const gpu_prelude[] = {"dialect", "fma",   "division",   "mathf",
                                   "common",  "lanes", "transforms", "winograd"};
const int gpu_prelude_count = sizeof gpu_prelude / sizeof gpu_prelude[0];

#define NAME(name) #name,
const char *const gpu_source_names[] = {SOURCES(NAME) NULL};

tr_status gpu_sources_unpack(char **out)
{
    return tr_unpack(&tr_gpu_packed, out);
}

const char *gpu_source(const char *sources, const char *name)
{
    return tr_unpacked(&tr_gpu_packed, sources, name);
}
