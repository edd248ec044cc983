#include "support/gpu/tables.h"

#include "device/gpu/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MANY = 9000, WORDS = 5, KEPT = 4096 };

void expect_tables(tr_device *device, int every, expect_contents expect)
{
    const void *kept, *found, *table;
    const int32_t always[WORDS] = {1, 2, 3, 4, 5};
    const size_t held = gpu_of(device)->held;
    assert_int_equal(gpu_table(device, always, sizeof always, &kept), TR_OK);
    for (int32_t i = 0; i < MANY; i++) {
        const int32_t numbers[WORDS] = {i, -i, i * 3, 7, i / 2};
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_OK);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &found), TR_OK);
        assert_ptr_equal(table, found);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers - 4, &found), TR_OK);
        assert_ptr_not_equal(table, found);
        if (i % every == 0) expect(found, numbers, sizeof numbers - 4);
        assert_int_equal(gpu_table(device, always, sizeof always, &found), TR_OK);
        assert_ptr_equal(kept, found);
        if (i % every == 0) expect(table, numbers, sizeof numbers);
    }
    expect(kept, always, sizeof always);
    assert_true(gpu_of(device)->held - held <= KEPT * sizeof always);
}
