/* The table of an axis of a convolution: exactly the pairs of a pixel and a tap that meet. */
#include "device/cpu/conv_axis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 12 };

static _Alignas(8) unsigned char memory[8192];

static struct conv_axis built(const struct conv_extent *e, bool backward, bool merge)
{
    const size_t bytes = cpu_conv_axis_bytes(backward ? e->in : e->out, e->kernel);
    assert_true(bytes + 8 <= sizeof memory);
    memset(memory, 0x77, sizeof memory);
    struct conv_axis axis;
    cpu_conv_axis_build(&axis, e, backward, merge, memory);
    for (size_t i = bytes; i < bytes + 8; i++) assert_int_equal(memory[i], 0x77);
    return axis;
}

/* The source pixel that the target meets at a place of the packed kernel, or -1. */
static int source_at(const struct conv_extent *e, bool backward, int target, int place)
{
    const int sources = backward ? e->out : e->in;
    for (int source = 0; source < sources; source++) {
        const int in = backward ? target : source, out = backward ? source : target;
        const int tap = backward ? e->kernel - 1 - place : place;
        if (out * e->stride + tap * e->dilation - e->pad == in) return source;
    }
    return -1;
}

static void expect_pairs(const struct conv_extent *e, bool backward, bool merge)
{
    const struct conv_axis axis = built(e, backward, merge);
    const int targets = backward ? e->in : e->out;
    assert_int_equal(axis.targets, targets);
    assert_int_equal(axis.start[0], 0);
    for (int target = 0; target < targets; target++) {
        int run = axis.start[target], within = 0, first = -1, last = -1, before = -2;
        for (int place = 0; place < e->kernel; place++) {
            const int source = source_at(e, backward, target, place);
            if (source < 0) continue;
            if (first < 0) first = source;
            last = source;
            assert_true(run < axis.start[target + 1]);
            const struct conv_run *r = &axis.runs[run];
            assert_int_equal(r->source + within, source);
            assert_int_equal(r->kernel + within, place);
            /* neighbours begin no run of their own */
            if (merge && within == 0 && run > axis.start[target])
                assert_false(before == source - 1 && source_at(e, backward, target, place - 1) == before);
            if (!merge) assert_int_equal(r->length, 1);
            before = source;
            if (++within == r->length) run++, within = 0;
        }
        assert_int_equal(within, 0);
        assert_int_equal(run, axis.start[target + 1]);
        int32_t from, to;
        cpu_conv_axis_sources(&axis, target, target + 1, &from, &to);
        assert_int_equal(from, first < 0 ? 0 : first);
        assert_int_equal(to, last + 1);
    }
}

/* Counted anew: targets, so far from each other, whose runs lie a fixed shift apart. Returns their number. */
static int expect_alike(const struct conv_axis *axis, int target, int every, int most)
{
    int32_t shift;
    const int count = cpu_conv_axis_alike(axis, target, every, most, &shift);
    assert_in_range(count, 1, most);
    const int runs = axis->start[target + 1] - axis->start[target];
    const struct conv_run *first = axis->runs + axis->start[target];
    int same = 1, step = 0;
    for (; same < most; same++) {
        const int next = target + same * every;
        const struct conv_run *other = axis->runs + axis->start[next];
        if (axis->start[next + 1] - axis->start[next] != runs) break;
        if (runs > 0 && same == 1) step = other->source - first->source;
        bool equal = step > 0 || runs == 0;
        for (int i = 0; i < runs; i++)
            equal = equal && other[i].kernel == first[i].kernel && other[i].length == first[i].length &&
                    other[i].source == first[i].source + same * step;
        if (!equal) break;
    }
    assert_int_equal(count, same);
    if (same > 1) assert_int_equal(shift, step);
    return count;
}

/* Input pixels that are a stride apart meet the same taps, but those near the ends of the image. */
static void inputs_a_stride_apart_are_alike(void **state)
{
    (void)state;
    const struct conv_extent e = {.in = 20, .out = 10, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
    const struct conv_axis axis = built(&e, true, true);
    assert_int_equal(expect_alike(&axis, 0, 1, 20), 1);
    assert_int_equal(expect_alike(&axis, 0, 2, 10), 10); /* 0, 2, ..., 18: the middle tap */
    assert_int_equal(expect_alike(&axis, 1, 2, 10), 9);  /* 1, 3, ..., 17: the two others; 19: the first */
    assert_int_equal(expect_alike(&axis, 19, 2, 1), 1);
    /* With one tap, every other pixel meets none. */
    const struct conv_extent point = {.in = 20, .out = 10, .kernel = 1, .stride = 2, .dilation = 1};
    const struct conv_axis points = built(&point, true, true);
    assert_int_equal(expect_alike(&points, 0, 2, 10), 10);
    assert_int_equal(expect_alike(&points, 1, 2, 10), 10);
}

static void tables_have_the_pairs_that_meet(void **state)
{
    (void)state;
    int tables = 0;
    for (int kernel = 1; kernel <= 5; kernel++)
        for (int stride = 1; stride <= 3; stride++)
            for (int dilation = 1; dilation <= 3; dilation++)
                for (int pad = 0; pad <= 3; pad++)
                    for (int in = 1; in <= MOST; in++) {
                        const int room = in + 2 * pad - (kernel - 1) * dilation - 1;
                        if (room < 0) continue;
                        const struct conv_extent e = {in, room / stride + 1, kernel, stride, dilation, pad};
                        for (int way = 0; way < 4; way++) {
                            expect_pairs(&e, way & 1, way & 2);
                            const struct conv_axis axis = built(&e, way & 1, way & 2);
                            for (int target = 0; target < axis.targets; target++)
                                for (int every = 1; every <= stride; every++)
                                    for (int most = 1; target + (most - 1) * every < axis.targets; most++)
                                        expect_alike(&axis, target, every, most);
                        }
                        tables++;
                    }
    assert_true(tables > 1000);
}

static void sources_of_several_targets_are_joined(void **state)
{
    (void)state;
    const struct conv_extent e = {.in = 9, .out = 5, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
    const struct conv_axis axis = built(&e, false, true);
    static const int expected[5][2] = {{0, 2}, {1, 4}, {3, 6}, {5, 8}, {7, 9}};
    for (int begin = 0; begin < 5; begin++)
        for (int end = begin + 1; end <= 5; end++) {
            int32_t first, last;
            cpu_conv_axis_sources(&axis, begin, end, &first, &last);
            assert_int_equal(first, expected[begin][0]);
            assert_int_equal(last, expected[end - 1][1]);
        }
    int32_t first = 7, last = 7;
    cpu_conv_axis_sources(&axis, 2, 2, &first, &last);
    assert_int_equal(first, 0);
    assert_int_equal(last, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_have_the_pairs_that_meet),
        cmocka_unit_test(inputs_a_stride_apart_are_alike),
        cmocka_unit_test(sources_of_several_targets_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
