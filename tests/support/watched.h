/* A device that computes as `ref`, and shows the test each operation before it: what it calls watch(), which
 * the test defines. For one file of a test, which runs devices of one thread.
 */
#ifndef TESTS_SUPPORT_WATCHED_H
#define TESTS_SUPPORT_WATCHED_H

#include "device/operation.h"
#include "device/ref/ref.h"

static tr_device *watched_reference, watched;
static struct tr_device_class watched_class;

/* `arguments`, of `size` bytes, are those of the operation. */
static void watch(enum tr_operation_number number, const void *arguments, size_t size);

#define WATCH(op)                                                                                            \
    static tr_status watch_##op(tr_device *device, const struct tr_op_##op *arguments)                       \
    {                                                                                                        \
        (void)device;                                                                                        \
        watch(TR_OPERATION_##op, arguments, sizeof *arguments);                                              \
        return ref_##op(watched_reference, arguments);                                                       \
    }
TR_DEVICE_OPS(WATCH)
#undef WATCH

/* Setup and teardown of a group. */
static int watched_make(void **state)
{
    (void)state;
    if (tr_device_create("ref", 1, NULL, &watched_reference) != TR_OK) return -1;
    watched_class = *watched_reference->class;
#define SLOT(op) watched_class.op = watch_##op;
    TR_DEVICE_OPS(SLOT)
#undef SLOT
    watched = *watched_reference;
    watched.class = &watched_class;
    return 0;
}

static int watched_remove(void **state)
{
    (void)state;
    tr_device_destroy(&watched_reference);
    return 0;
}

#endif
