/* The kernels' texts, which cmake/embed.cmake puts into the program. */
#include "device/gpu/internal.h"

#include <string.h>

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

#define DECLARE(name) extern const char tr_gpu_##name[];
SOURCES(DECLARE)
DECLARE(dialect)
DECLARE(fma)
DECLARE(division)
DECLARE(mathf)
DECLARE(common)
DECLARE(lanes)
DECLARE(transforms)
DECLARE(winograd)

const char *const gpu_prelude[] = {tr_gpu_dialect, tr_gpu_fma,   tr_gpu_division,   tr_gpu_mathf,
                                   tr_gpu_common,  tr_gpu_lanes, tr_gpu_transforms, tr_gpu_winograd};
const int gpu_prelude_count = sizeof gpu_prelude / sizeof gpu_prelude[0];

#define NAME(name) #name,
const char *const gpu_source_names[] = {SOURCES(NAME) NULL};

const char *gpu_source(const char *name)
{
#define FIND(candidate)                                                                                      \
    if (strcmp(name, #candidate) == 0) return tr_gpu_##candidate;
    SOURCES(FIND)
    return NULL;
}
