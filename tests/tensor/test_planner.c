/* Plans of memory: where buffers lie, that those that live at one time are apart, how much is needed. */
#include "tensor/planner.h"

#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MOST 24
#define LINE 64

static void the_largest_are_placed_first_and_lowest(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        struct tr_interval buffer[5]; /* bytes, first and last event, and the offset that is expected */
        size_t total;
    } cases[] = {
        {0, {{0}}, 0},
        {1, {{1, 0, 0, 0}}, 64},
        {1, {{64, 3, 9, 0}}, 64},
        {1, {{65, -1, 0, 0}}, 128},
        /* one event in common keeps two apart */
        {2, {{64, 0, 1, 0}, {64, 1, 2, 64}}, 128},
        {2, {{64, 1, 2, 0}, {64, 0, 1, 64}}, 128},
        {2, {{64, 0, 1, 0}, {64, 2, 3, 0}}, 64},
        {2, {{64, 2, 3, 0}, {64, 0, 1, 0}}, 64},
        {2, {{100, 0, 9, 0}, {100, 3, 4, 128}}, 256},
        /* of equal ones the first in the list */
        {3, {{64, 0, 5, 128}, {128, 0, 5, 0}, {64, 0, 5, 192}}, 256},
        /* without bytes none needs a place, nor keeps another from one */
        {3, {{0, 0, 9, 0}, {64, 0, 9, 0}, {0, 0, 9, 0}}, 64},
        /* where another one is dead, a buffer that fits exactly may lie, and none that is larger */
        {5, {{256, 0, 1, 0}, {192, 0, 5, 256}, {128, 2, 5, 0}, {128, 3, 5, 128}, {64, 4, 4, 448}}, 512},
        {5, {{256, 0, 1, 0}, {192, 0, 5, 256}, {129, 2, 5, 0}, {127, 3, 5, 448}, {64, 4, 4, 192}}, 576},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_interval buffer[5];
        size_t total = SIZE_MAX;
        for (size_t k = 0; k < cases[i].count; k++)
            buffer[k] = cases[i].buffer[k], buffer[k].offset = SIZE_MAX;
        assert_int_equal(tr_plan(buffer, cases[i].count, &total), TR_OK);
        assert_int_equal(total, cases[i].total);
        for (size_t k = 0; k < cases[i].count; k++)
            if (buffer[k].offset != cases[i].buffer[k].offset)
                fail_msg("case %zu: buffer %zu lies at %zu, not at %zu", i, k, buffer[k].offset,
                         cases[i].buffer[k].offset);
    }
}

static size_t lines_of(const struct tr_interval *buffer)
{
    return (buffer->bytes + LINE - 1) / LINE * LINE;
}

static bool are_in_conflict(const struct tr_interval *a, const struct tr_interval *b)
{
    return a->first <= b->last && b->first <= a->last && a->offset < b->offset + lines_of(b) &&
           b->offset < a->offset + lines_of(a);
}

/* The definition in plain loops: every line of memory from the lowest is tried. */
static size_t place_all(struct tr_interval *buffer, size_t count)
{
    bool placed[MOST] = {false};
    size_t total = 0;
    for (size_t n = 0; n < count; n++) {
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (!placed[i] && (next == count || buffer[i].bytes > buffer[next].bytes)) next = i;
        struct tr_interval *now = &buffer[next];
        now->offset = 0;
        bool free = now->bytes == 0;
        while (!free) {
            free = true;
            for (size_t i = 0; i < count; i++)
                if (placed[i] && buffer[i].bytes > 0 && are_in_conflict(now, &buffer[i])) free = false;
            if (!free) now->offset += LINE;
        }
        placed[next] = true;
        if (now->bytes > 0 && now->offset + lines_of(now) > total) total = now->offset + lines_of(now);
    }
    return total;
}

static void many_buffers_lie_where_the_definition_says(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        struct tr_interval buffer[MOST], expected[MOST];
        size_t count = 1 + (size_t)round % MOST, total;
        for (size_t i = 0; i < count; i++) {
            uint32_t part[3];
            for (int k = 0; k < 3; k++) random = random * 1664525 + 1013904223, part[k] = random >> 16;
            const int first = (int)(part[1] % 12) - 1;
            buffer[i] = (struct tr_interval){part[0] % 600, first, first + (int)(part[2] % 5), SIZE_MAX};
        }
        memcpy(expected, buffer, sizeof expected);
        const size_t needed = place_all(expected, count);
        assert_int_equal(tr_plan(buffer, count, &total), TR_OK);
        assert_int_equal(total, needed);
        for (size_t i = 0; i < count; i++) assert_int_equal(buffer[i].offset, expected[i].offset);
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    int64_t refused = 0;
    for (bool done = false; !done; refused++) {
        struct tr_interval buffer[2] = {{64, 0, 1, 0}, {64, 1, 2, 0}};
        const int64_t live = tr_alloc_live();
        size_t total;
        refuse_begin(refused);
        tr_status status = tr_plan(buffer, 2, &total);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(refused > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_are_placed_first_and_lowest),
        cmocka_unit_test(many_buffers_lie_where_the_definition_says),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("tensor.planner", tests, NULL, NULL);
}
