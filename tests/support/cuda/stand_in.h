/* A stand-in for CUDA's driver and NVRTC, which only tests have: libcuda.so.1 and libnvrtc.so.12 with the
 * entries that src/device/gpu/cuda/abi.h names, in a folder that LD_LIBRARY_PATH names.
 *
 * What its compiler makes is the text that it was given, which the driver builds and runs by OpenCL, on the
 * first device that OpenCL has (pocl). So kernels compute, and what the host does is judged:
 *
 *   - Nothing is done before somebody waits for it, and then no more than that needs: each stream is a
 *     list of commands, and marks are places in such lists. A query takes one command further. So copies
 *     are late, and what lacks an order is done in the wrong one.
 *   - Memory holds 0xA5 when it is given, and is poisoned and gone when it was freed. Its addresses are
 *     nobody's to touch.
 *   - Arguments are read with the sizes that the kernel's parameters have.
 *   - Whatever the interface leaves undefined ends the process with a message: a call without a context,
 *     a handle that is none, memory used before it was given, after it was freed or beyond its end, host
 *     memory freed under a copy, a graph freed under way.
 *
 * The variable TRIREME_STAND_IN, words with commas between:
 *
 *   devices=N      as many, 2 otherwise
 *   arch=N         of the devices, 80 otherwise; the compiler knows 52, 80 and 90
 *   version=N      of CUDA, 12040 otherwise
 *   nopools        devices have no pools of memory
 *   abort          the driver ends the process when it is to load a program
 *   paper          programs of the real compiler are taken, too; what they launch does nothing
 *   full=BYTES     so much memory, 512 MiB otherwise
 *   lost=FILE:MARK once FILE is there, the devices of the one process that can make MARK are lost
 */
#ifndef TESTS_SUPPORT_CUDA_STAND_IN_H
#define TESTS_SUPPORT_CUDA_STAND_IN_H

#include <stdint.h>

/* Exports of the driver beside CUDA's entries, for dlsym(). */
#define STAND_IN_FUNCTIONS(X)                                                                                \
    /* The next call number `at`, from 0, fails with `code`, once; -1: none does. */                         \
    X(void, stand_in_fail, (int64_t at, int code))                                                           \
    /* The name of the call that failed so; NULL: none has. */                                               \
    X(const char *, stand_in_failed, (void))                                                                 \
    /* Every later call that needs a device fails, until it is set to 0. */                                  \
    X(void, stand_in_lose, (int lost))                                                                       \
    /* Counts of held contexts, streams, events, modules, graphs, pools, blocks, pinned memory. */           \
    X(int64_t, stand_in_live, (void))                                                                        \
    /* Commands that were done. */                                                                           \
    X(int64_t, stand_in_done, (void))                                                                        \
    /* Contexts that the thread has pushed and not popped. */                                                \
    X(int, stand_in_depth, (void))                                                                           \
    /* Launches of graphs that were done, changes of their kernels, and kernels whose first group was not 0. \
     */                                                                                                      \
    X(int64_t, stand_in_graphs, (void))                                                                      \
    X(int64_t, stand_in_changes, (void))                                                                     \
    X(int64_t, stand_in_moved, (void))

#endif
