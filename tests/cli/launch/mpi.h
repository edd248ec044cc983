/* For tests that start jobs by Open MPI's mpirun. */
#ifndef TESTS_CLI_MPI_H
#define TESTS_CLI_MPI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static inline void skip_without_mpi(void)
{
    if (TRIREME_HAS_MPI && access("/usr/bin/mpirun", X_OK) == 0) return;
    fprintf(stderr, "skipped: Open MPI (libopenmpi-dev, openmpi-bin) was not found\n");
    skip();
}

#endif
