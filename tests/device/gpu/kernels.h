/* Whether every kernel for GPUs was among those that ran: the texts are asked which there are, so that none
 * is left out because a list forgot it.
 */
#ifndef TESTS_DEVICE_GPU_KERNELS_H
#define TESTS_DEVICE_GPU_KERNELS_H

#include <stdbool.h>

/* Fails the test, with the names on stderr, unless `ran` says so of every kernel. */
void every_kernel_must(bool (*ran)(const char *kernel));

#endif
