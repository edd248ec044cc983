/* The parts of the machine behind opencl.h: devices.c, queues.c and programs.c. */
#ifndef TESTS_DEVICE_GPU_FAKE_MACHINE_H
#define TESTS_DEVICE_GPU_FAKE_MACHINE_H

#include "device/gpu/fake/opencl.h"

enum { FAKE_INVALID_VALUE = -30 };

/* Whether this call is the one that fails. */
bool fake_due(const char *name);
#define FAIL(name)                                                                                           \
    if (fake_due(#name)) return fake.code
/* For functions that return an object. */
#define FAIL_WITH(name, error)                                                                               \
    if (fake_due(#name)) {                                                                                   \
        *(error) = fake.code;                                                                                \
        return NULL;                                                                                         \
    }                                                                                                        \
    *(error) = CL_SUCCESS

/* Objects, which are counted. */
void *fake_make(size_t bytes);
int32_t fake_release(void *object);
/* What a question is answered with. */
int32_t fake_answer(const void *from, size_t bytes, size_t size, void *value, size_t *out);
/* Enqueues a command that does nothing; `event` may be NULL. */
void fake_enqueue(cl_queue queue, uint32_t waits, const cl_event *awaited, cl_event *event);

/* Puts functions in place of the library's. */
void fake_devices(struct opencl_library *library);
void fake_queues(struct opencl_library *library);
void fake_programs(struct opencl_library *library);

#endif
