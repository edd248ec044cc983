/* Control and queries of the stand-in for CUDA by tests (stand_in.h). */
#ifndef TESTS_SUPPORT_CUDA_CONTROL_H
#define TESTS_SUPPORT_CUDA_CONTROL_H

#include "support/cuda/stand_in.h"

struct stand_in {
#define MEMBER(result, name, parameters) result(*name) parameters;
    STAND_IN_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The stand-in that the loader finds; ends the test if it finds another driver or none. */
const struct stand_in *stand_in(void);

#endif
