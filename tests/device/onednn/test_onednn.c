/* `ref` against an independent library: forward and backward operations agree with oneDNN within rounding. */
#include "device/onednn/judge.h"
#include "device/onednn/onednn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onednn_dense),         cmocka_unit_test(onednn_conv),
        cmocka_unit_test(onednn_max_pool),      cmocka_unit_test(onednn_average_pool),
        cmocka_unit_test(onednn_activation),    cmocka_unit_test(onednn_softmax),
        cmocka_unit_test(onednn_cross_entropy), cmocka_unit_test(onednn_layer_norm),
        cmocka_unit_test(onednn_batch_norm),    cmocka_unit_test(onednn_lstm),
    };
    return cmocka_run_group_tests_name("ref agrees with oneDNN", tests, judge_open, judge_close);
}
