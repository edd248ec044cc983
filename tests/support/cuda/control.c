#include "support/cuda/control.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const struct stand_in *stand_in(void)
{
    static struct stand_in found;
    if (found.stand_in_live) return &found;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define FIND(result, name, parameters) *(void **)(void *)&found.name = library ? dlsym(library, #name) : NULL;
    STAND_IN_FUNCTIONS(FIND)
#undef FIND
    if (found.stand_in_live) return &found;
    fprintf(stderr, "no stand-in for CUDA: LD_LIBRARY_PATH must name the folder tests/cuda of the build\n");
    exit(EXIT_FAILURE);
}
