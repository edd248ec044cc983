/* The order of examples: a permutation per epoch, geometry of steps, limits. */
#include "data/order/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Every epoch visits every example exactly once, for counts around powers of two and primes. */
static void test_every_example_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 65, 257, 1000, 4097, 60000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct tr_order order;
        assert_int_equal(tr_order_make(&order, counts[i], 1, TR_LAST_BATCH_KEEP, true, 7), TR_OK);
        char *seen = malloc((size_t)counts[i]);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            memset(seen, 0, (size_t)counts[i]);
            for (int64_t position = 0; position < counts[i]; position++) {
                int64_t example = tr_order_example(&order, epoch, position);
                assert_in_range(example, 0, counts[i] - 1);
                assert_int_equal(seen[example], 0);
                seen[example] = 1;
            }
        }
        free(seen);
    }
}

static int64_t same_places(uint64_t seed_a, int64_t epoch_a, uint64_t seed_b, int64_t epoch_b)
{
    struct tr_order a, b;
    assert_int_equal(tr_order_make(&a, 10000, 1, TR_LAST_BATCH_KEEP, true, seed_a), TR_OK);
    assert_int_equal(tr_order_make(&b, 10000, 1, TR_LAST_BATCH_KEEP, true, seed_b), TR_OK);
    int64_t same = 0;
    for (int64_t i = 0; i < 10000; i++)
        same += tr_order_example(&a, epoch_a, i) == tr_order_example(&b, epoch_b, i);
    return same;
}

/* Two random permutations agree in one place on average (Poisson: more than 10 has probability 1e-8). */
static void test_epochs_and_seeds_differ(void **state)
{
    (void)state;
    assert_int_equal(same_places(1, 0, 1, 0), 10000);
    assert_true(same_places(1, 0, 1, 1) <= 10);
    assert_true(same_places(1, 0, 2, 0) <= 10);
    assert_true(same_places(1, 5, 1ull << 32 | 1, 5) <= 10);
}

/* Mean position of examples 0..99 over 200 epochs is the middle, within 5 standard deviations. */
static void test_no_drift(void **state)
{
    (void)state;
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 1000, 10, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
    double sum = 0;
    for (int64_t epoch = 0; epoch < 200; epoch++) {
        for (int64_t position = 0; position < 100; position++)
            sum += (double)tr_order_example(&order, epoch, position);
    }
    double mean = sum / 20000, deviation = 288.7 / 141.4;
    assert_true(mean > 499.5 - 5 * deviation && mean < 499.5 + 5 * deviation);
}

static void test_stored_order(void **state)
{
    (void)state;
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 10, 4, TR_LAST_BATCH_KEEP, false, 3), TR_OK);
    for (int64_t i = 0; i < 10; i++) assert_int_equal(tr_order_example(&order, 2, i), i);
}

/* The rows of the steps of an epoch are its positions, in order, without gap; drop leaves the remainder out.
 */
static void test_geometry(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 24; count++) {
        for (int64_t batch = 1; batch <= count + 2; batch++) {
            for (int last = TR_LAST_BATCH_KEEP; last <= TR_LAST_BATCH_DROP; last++) {
                struct tr_order order;
                tr_status status = tr_order_make(&order, count, batch, (enum tr_last_batch)last, true, 1);
                if (last == TR_LAST_BATCH_DROP && batch > count) {
                    assert_int_equal(status, TR_EINVAL);
                    continue;
                }
                assert_int_equal(status, TR_OK);
                int64_t covered = last == TR_LAST_BATCH_KEEP ? count : count / batch * batch;
                int64_t step = 0;
                for (int64_t epoch = 0; epoch < 3; epoch++) {
                    for (int64_t position = 0; position < covered; step++) {
                        struct tr_order_step at = tr_order_at(&order, step);
                        assert_int_equal(at.epoch, epoch);
                        assert_int_equal(at.first, position);
                        assert_true(at.rows == batch || position + at.rows == covered);
                        assert_true(at.rows >= 1 && at.rows <= batch);
                        position += at.rows;
                        assert_true(position <= covered);
                    }
                }
                assert_int_equal(step, 3 * order.steps_per_epoch);
            }
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 0, 1, TR_LAST_BATCH_KEEP, true, 1), TR_EINVAL);
    assert_int_equal(tr_order_make(&order, 5, 0, TR_LAST_BATCH_KEEP, true, 1), TR_EINVAL);
    assert_int_equal(tr_order_make(&order, 5, 6, TR_LAST_BATCH_DROP, true, 1), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "last_batch: keep"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_example_once), cmocka_unit_test(test_epochs_and_seeds_differ),
        cmocka_unit_test(test_no_drift),           cmocka_unit_test(test_stored_order),
        cmocka_unit_test(test_geometry),           cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
