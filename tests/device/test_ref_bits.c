/* The very bits of ref, over all cases of every operation: the same on every machine, with every compiler,
 * next year. Whoever changes the arithmetic or the cases on purpose puts the new numbers into the table.
 */
#include "device/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define OPERATION(op) OPERATION_##op,
enum { TR_DEVICE_OPS(OPERATION) };
#undef OPERATION

static const uint64_t bits[CASE_LISTS] = {
    [OPERATION_dense_forward] = 0xd70f95fe58c84139u,
    [OPERATION_dense_backward_data] = 0xccdfe1dd89b4aa28u,
    [OPERATION_dense_backward_weights] = 0x6d33ded4a9647aa0u,
    [OPERATION_conv_forward] = 0x6dc4e52f1f2f29f2u,
    [OPERATION_conv_backward_data] = 0xc0ff3743fc715762u,
    [OPERATION_conv_backward_weights] = 0xd8971c6278261252u,
    [OPERATION_activation_forward] = 0xfb0a64c1b13bb7f9u,
    [OPERATION_activation_backward] = 0x19df529f71f57913u,
    [OPERATION_add] = 0x32822aa69032dbb6u,
    [OPERATION_scale] = 0x78164d0401951b28u,
    [OPERATION_fill] = 0xe46271f23977732au,
    [OPERATION_dropout] = 0x4db1fc519ca18168u,
    [OPERATION_pool_forward] = 0xa7297e3f1715dc53u,
    [OPERATION_pool_backward] = 0xa1d90f1adc91135au,
    [OPERATION_softmax_forward] = 0x87c0121f102ebc06u,
    [OPERATION_softmax_backward] = 0x6d3271523c1f62c5u,
    [OPERATION_layer_norm_forward] = 0xa0141217afe8a6b4u,
    [OPERATION_layer_norm_backward] = 0x158847d16402291eu,
    [OPERATION_batch_norm_forward] = 0x91320d003b407ee2u,
    [OPERATION_batch_norm_backward] = 0x4934b83fb98f9020u,
    [OPERATION_batch_norm_infer] = 0x92ff62efb6980381u,
    [OPERATION_embedding_forward] = 0x0121e0605c161cc4u,
    [OPERATION_embedding_backward] = 0x6d014389e67a4b61u,
    [OPERATION_lstm_forward] = 0x2ca168a30bca9f54u,
    [OPERATION_lstm_backward] = 0x5fae39430cab2615u,
    [OPERATION_lstm_backward_weights] = 0x8aa9dccbfd1fe42cu,
    [OPERATION_sequence_last_forward] = 0xb8491c1895c5d78fu,
    [OPERATION_sequence_last_backward] = 0xa26943972ba8b272u,
    [OPERATION_softmax_cross_entropy] = 0x6285e1a5bae80847u,
    [OPERATION_mean_squared_error] = 0x90701ceeaa26251eu,
    [OPERATION_sum_rows] = 0x2f6e99fd00bb10a7u,
    [OPERATION_load_images] = 0xe0de6b052579a517u,
    [OPERATION_update] = 0xf8107ba5b80c7c8bu,
    [OPERATION_sum_squares] = 0x04497898ca8cb10bu,
    [OPERATION_clip_scale] = 0x0dc842d7ddaa84e1u,
};

static tr_device *device;

static int make_device(void **state)
{
    (void)state;
    return tr_device_create("ref", 1, NULL, &device) == TR_OK ? 0 : -1;
}

static int destroy_device(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    return 0;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++) {
        for (int index = 0;; index++) {
            struct scene scene;
            /* Operation 0 for all: numbers must not change when the list of operations does. */
            scene_begin(&scene, device, (enum scene_flavor)flavor, 0, (uint32_t)index);
            if (!list->run(&scene, index)) break;
            hash = scene_hash(&scene, hash);
            scene_release(&scene);
        }
    }
    if (hash != bits[list - case_lists])
        fail_msg("the bits are %016llx, not %016llx; if that was on purpose, change the table",
                 (unsigned long long)hash, (unsigned long long)bits[list - case_lists]);
}

int main(void)
{
    struct CMUnitTest tests[CASE_LISTS];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    return cmocka_run_group_tests_name("the bits of ref", tests, make_device, destroy_device);
}
