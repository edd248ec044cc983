/* Launches that come again are enqueued as lists, those that are alike as lists that follow, and nothing else
 * changes: neither numbers nor order, whatever comes between them. On the first device of an interface, which
 * is counted and falsified; where it has no lists, on an interface that makes them of launches. Once more,
 * without a driver, on that of host.h.
 */
#include "device/gpu/lists/kept.h"
#include "support/gpu/counting.h"
#include "support/gpu/opencl.h"

#include "base/alloc.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#ifdef TEST_ON_HOST
#include "device/gpu/host.h"
static const struct gpu_api *real = &gpu_api_host;
#else
static const struct gpu_api *real = &gpu_api_opencl;
#endif

static tr_status fails; /* what launching a list comes to */

static tr_status launch_list(void *session, void *list)
{
    did.lists++;
    return fails == TR_OK ? gpu_launch_counted(session, list) : fails;
}

/* Lists that stay what they are; and some that follow. */
static struct gpu_api counting(void)
{
    return gpu_counting(real, false);
}

static struct gpu_api following(void)
{
    return gpu_counting(real, true);
}

static tr_device *open_device(const struct gpu_api *api)
{
    const struct tr_device_choice choice = {.name = "opencl", .cache = TEST_PROGRAMS};
    tr_device *device;
    assert_int_equal(gpu_device_create(api, &choice, &device), TR_OK);
    did_nothing();
    return device;
}

/* ---- what is computed ---- */

enum { COUNT = 700, ARRAYS = 4 };

/* Arrays on the device, each in memory of its own, and their numbers on the host. */
struct arrays {
    tr_device *device;
    void *there[ARRAYS];
    float here[ARRAYS][COUNT];
};

static void set_here(struct arrays *arrays, int which, float number)
{
    for (int k = 0; k < COUNT; k++) arrays->here[which][k] = number;
}

static void open_arrays(struct arrays *arrays, const struct gpu_api *api)
{
    arrays->device = open_device(api);
    for (int i = 0; i < ARRAYS; i++) {
        float *numbers = arrays->here[i];
        const size_t bytes = sizeof arrays->here[i];
        set_here(arrays, i, (float)i);
        assert_int_equal(tr_device_alloc(arrays->device, bytes, &arrays->there[i]), TR_OK);
        assert_int_equal(tr_device_to_device(arrays->device, arrays->there[i], numbers, bytes), TR_OK);
        assert_int_equal(tr_device_wait(arrays->device), TR_OK);
    }
    did_nothing();
}

static void close_arrays(struct arrays *arrays)
{
    for (int i = 0; i < ARRAYS; i++) tr_device_free(arrays->device, arrays->there[i]);
    tr_device_destroy(&arrays->device);
}

/* Of the first `count` numbers. */
static tr_status try_scale_some(struct arrays *arrays, int count, int from, float factor, int to)
{
    struct tr_op_scale op = {
        .count = count, .factor = factor, .x = arrays->there[from], .y = arrays->there[to]};
    for (int k = 0; k < count; k++) arrays->here[to][k] = factor * arrays->here[from][k];
    return tr_device_scale(arrays->device, &op);
}

static tr_status try_scale(struct arrays *arrays, int from, float factor, int to)
{
    return try_scale_some(arrays, COUNT, from, factor, to);
}

static void scale(struct arrays *arrays, int from, float factor, int to)
{
    assert_int_equal(try_scale(arrays, from, factor, to), TR_OK);
}

static void scale_some(struct arrays *arrays, int count, int from, float factor, int to)
{
    assert_int_equal(try_scale_some(arrays, count, from, factor, to), TR_OK);
}

static void add_some(struct arrays *arrays, int count, int a, int b, int to)
{
    struct tr_op_add op = {count, arrays->there[a], arrays->there[b], arrays->there[to]};
    for (int k = 0; k < count; k++) arrays->here[to][k] = arrays->here[a][k] + arrays->here[b][k];
    assert_int_equal(tr_device_add(arrays->device, &op), TR_OK);
}

/* With the arguments of a sum, by another kernel. */
static void multiply_some(struct arrays *arrays, int count, int a, int b, int to)
{
    const struct tr_op_multiply op = {.rows = count,
                                      .spatial = 1,
                                      .width = 1,
                                      .a = arrays->there[a],
                                      .b = arrays->there[b],
                                      .y = arrays->there[to]};
    for (int k = 0; k < count; k++) arrays->here[to][k] = arrays->here[a][k] * arrays->here[b][k];
    assert_int_equal(tr_device_multiply(arrays->device, &op), TR_OK);
}

static void add(struct arrays *arrays, int a, int b, int to)
{
    add_some(arrays, COUNT, a, b, to);
}

/* Ends what may become a list, and looks at all numbers. */
static void expect_numbers(struct arrays *arrays)
{
    float numbers[ARRAYS][COUNT];
    for (int i = 0; i < ARRAYS; i++)
        assert_int_equal(tr_device_to_host(arrays->device, numbers[i], arrays->there[i], sizeof numbers[i]),
                         TR_OK);
    assert_int_equal(tr_device_wait(arrays->device), TR_OK);
    for (int i = 0; i < ARRAYS; i++)
        for (int k = 0; k < COUNT; k++) assert_true(numbers[i][k] == arrays->here[i][k]);
}

/* Numbers stay small and exact: sums are halved, and begin anew. */
static void compute(struct arrays *arrays, int length)
{
    for (int i = 0; i < length; i++) {
        add(arrays, i % ARRAYS, (i + 1) % ARRAYS, (i + 2) % ARRAYS);
        scale(arrays, (i + 2) % ARRAYS, 0.5f, (i + 2) % ARRAYS);
    }
}

/* ---- tests ---- */

/* The third time it is recorded. */
enum { TIMES = GPU_OFTEN };

static void what_comes_again_is_enqueued_as_one(void **state)
{
    const struct gpu_api api = counting();
    const int64_t live = tr_alloc_live();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 20; step++) {
        compute(&arrays, 4);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 1);
    assert_int_equal(did.launches, TIMES * 8);
    assert_int_equal(did.lists, 20 - TIMES);
    assert_int_equal(did.listed, (20 - TIMES) * 8);
    close_arrays(&arrays);
    assert_int_equal(did.freed, did.built);
    assert_int_equal(tr_alloc_live(), live);
}

/* Without waiting, so that a list is enqueued again before it is done, and with copies to the device between
   launches that are alike. */
static void it_need_not_be_done(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    tr_event event;
    float *next;
    (void)state;
    open_arrays(&arrays, &api);
    enum { STEPS = 60 };
    assert_int_equal(tr_device_alloc_pinned(arrays.device, STEPS * COUNT * sizeof *next, (void **)&next),
                     TR_OK);
    for (int step = 0; step < STEPS; step++) {
        float *numbers = next + step * COUNT;
        for (int k = 0; k < COUNT; k++) numbers[k] = (float)(step + 1);
        assert_int_equal(
            tr_device_to_device(arrays.device, arrays.there[3], numbers, COUNT * sizeof *numbers), TR_OK);
        set_here(&arrays, 3, (float)(step + 1));
        add(&arrays, 0, 3, 0);
        scale(&arrays, 0, 0.5f, 1);
        add(&arrays, 1, 0, 2);
        if (step % 7 == 0) assert_int_equal(tr_device_record(arrays.device, &event), TR_OK);
    }
    expect_numbers(&arrays);
    assert_int_equal(did.lists, STEPS - TIMES);
    tr_device_free_pinned(arrays.device, next);
    close_arrays(&arrays);
}

/* Some begin like others, some are the beginning of others, some differ in one number. */
static void what_is_alike_in_part_is_told_apart(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    uint32_t draw = 12345;
    int launched = 0;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 300; step++) {
        draw = draw * 1664525 + 1013904223;
        int which = (int)(draw >> 24) % 6;
        int length = which < 4 ? which + 1 : 2;
        compute(&arrays, length);
        launched += 2 * length;
        if (which >= 4) {
            scale(&arrays, 1, which == 4 ? 2.0f : 0.25f, 3);
            scale(&arrays, 3, 0.125f, 3);
            launched += 2;
        }
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 6);
    assert_int_equal(did.launches + did.listed, launched);
    assert_true(did.launches <= 6 * TIMES * 8);
    close_arrays(&arrays);
}

/* What goes on otherwise than a list that it has begun like is enqueued in its order. */
static void what_never_comes_again_is_not_recorded(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 40; step++) {
        compute(&arrays, 2);
        if (step >= 10) scale(&arrays, 1, 1.0f / (float)(1 << (step - 10) % 20) + (float)step, 3);
        expect_numbers(&arrays);
        set_here(&arrays, 3, 1);
        struct tr_op_fill fill = {COUNT, 1, arrays.there[3]};
        assert_int_equal(tr_device_fill(arrays.device, &fill), TR_OK);
        assert_int_equal(tr_device_wait(arrays.device), TR_OK);
    }
    assert_int_equal(did.built, 1);
    assert_int_equal(did.lists, 40 - TIMES); /* the list, and then one launch */
    close_arrays(&arrays);
}

/* Long stretches are cut, and a device waits for no more than a piece. */
static void long_stretches_are_several(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 200; i++) scale(&arrays, i % 3, 1 / (float)(i + 1), 3);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 4);
    assert_int_equal(did.launches, TIMES * 200);
    assert_int_equal(did.listed, (10 - TIMES) * 200);
    assert_int_equal(did.lists, (10 - TIMES) * 4);
    close_arrays(&arrays);
}

/* Lists that name a block go with it, others stay; also where launches are held back at that moment. */
static void a_block_that_is_freed_takes_its_lists_along(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int turn = 0; turn < 6; turn++) {
        const int before = did.built, gone = did.freed;
        for (int step = 0; step < 6; step++) {
            add(&arrays, 0, 1, 1);
            scale(&arrays, 1, 0.5f, 1);
            expect_numbers(&arrays);
            scale(&arrays, 3, 0.5f, 3);
            add(&arrays, 0, 3, 3);
            expect_numbers(&arrays);
        }
        assert_int_equal(did.built - before, turn == 0 ? 2 : 1);
        scale(&arrays, 3, 0.5f, 3); /* held back, as the beginning of a list */
        tr_device_free(arrays.device, arrays.there[3]);
        assert_int_equal(did.freed - gone, 1);
        float fresh[COUNT];
        for (int k = 0; k < COUNT; k++) fresh[k] = 7;
        set_here(&arrays, 3, 7);
        assert_int_equal(tr_device_alloc(arrays.device, sizeof fresh, &arrays.there[3]), TR_OK);
        assert_int_equal(tr_device_to_device(arrays.device, arrays.there[3], fresh, sizeof fresh), TR_OK);
        expect_numbers(&arrays);
    }
    close_arrays(&arrays);
}

/* More lists than are kept: they are dropped and come again. */
static void too_many_lists_are_dropped(void **state)
{
    const struct gpu_api api = counting();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int list = 0; list < 150; list++)
        for (int step = 0; step < 4; step++) {
            scale(&arrays, 1, 1 + (float)list, 2);
            scale(&arrays, 2, 0.5f, 3);
            expect_numbers(&arrays);
        }
    assert_int_equal(did.built, 150);
    assert_true(did.freed > 0 && did.freed < did.built);
    close_arrays(&arrays);
    assert_int_equal(did.freed, did.built);
}

/* ---- lists that follow ---- */

static uint32_t next_number(uint32_t *draw)
{
    *draw = *draw * 1664525 + 1013904223;
    return *draw >> 8;
}

/* Two launches whose kernels are always the same: of so many numbers, by a factor that comes once. */
static void compute_some(struct arrays *arrays, uint32_t *draw, int step)
{
    int count = 1 + (int)(next_number(draw) % COUNT), to = (int)(next_number(draw) % 2);
    scale_some(arrays, count, 2, 1 + (float)step / 1024, to);
    add_some(arrays, count, to, 2, 3);
}

/* Without waiting: what a list stood for before is computed as it was. */
static void what_is_alike_is_enqueued_as_one(void **state)
{
    enum { STEPS = 80 };
    const struct gpu_api api = following();
    const int64_t live = tr_alloc_live();
    struct arrays arrays;
    uint32_t draw = 7;
    (void)state;
    open_arrays(&arrays, &api);
    assert_false(gpu_of(arrays.device)->lists->rigid);
    for (int step = 0; step < STEPS; step++) {
        tr_event event;
        compute_some(&arrays, &draw, step);
        assert_int_equal(tr_device_record(arrays.device, &event), TR_OK);
        if (step % 20 == 9) expect_numbers(&arrays);
    }
    expect_numbers(&arrays);
    assert_int_equal(did.built, 1);
    assert_int_equal(did.launches, 2 * GPU_ALIKE);
    assert_int_equal(did.lists, STEPS - GPU_ALIKE);
    assert_true(did.changed > STEPS - GPU_ALIKE && did.changed <= 2 * (STEPS - GPU_ALIKE));
    close_arrays(&arrays);
    assert_int_equal(did.freed, did.built);
    assert_int_equal(tr_alloc_live(), live);
}

/* What comes again after all is recorded as it is, and then nothing is changed for it. */
static void what_is_the_same_needs_no_changes(void **state)
{
    const struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 11;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < GPU_ALIKE + 3; step++) {
        compute_some(&arrays, &draw, step);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 1);
    int changed = 0;
    for (int step = 0; step < 20; step++) {
        scale(&arrays, 2, step % 2 ? 0.5f : 0.25f, 0);
        add(&arrays, 0, 2, 3);
        expect_numbers(&arrays);
        if (step == 2 * GPU_OFTEN) changed = did.changed;
    }
    assert_int_equal(did.built, 3);
    assert_int_equal(did.changed, changed);
    assert_int_equal(did.launches, 2 * GPU_ALIKE);
    compute_some(&arrays, &draw, 77);
    expect_numbers(&arrays);
    assert_true(did.changed > changed);
    assert_int_equal(did.launches, 2 * GPU_ALIKE);
    close_arrays(&arrays);
}

/* Other kernels, or the same in another order, are none that a list may follow: every launch comes once, in
   its order, whatever stretches begin or go on alike. */
static void what_has_other_kernels_is_told_apart(void **state)
{
    enum { SHAPES = 6, STEPS = 400 };
    const struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 4321;
    int launched = 0;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < STEPS; step++) {
        unsigned shape = 2 + next_number(&draw) % SHAPES; /* 010, 011, 100, ... */
        for (int bit = 0; bit < 3; bit++, launched++) {
            int count = 1 + (int)(next_number(&draw) % COUNT), from = (int)(next_number(&draw) % 3);
            if (shape >> bit & 1)
                add_some(&arrays, count, from, 3, (from + 1) % 3);
            else
                scale_some(&arrays, count, from, 0.5f, (from + 1) % 3);
        }
        if (shape == 7) { /* goes on longer */
            scale_some(&arrays, 9, 3, 1 / (1 + (float)step), 2);
            launched++;
        }
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, SHAPES);
    assert_int_equal(did.launches + did.listed, launched);
    assert_true(did.launches <= SHAPES * GPU_ALIKE * 4);
    close_arrays(&arrays);
}

/* Also where only the kernel differs: as many threads, and arguments of the same sizes. */
static void what_has_the_same_arguments_is_told_apart(void **state)
{
    enum { STEPS = 60 };
    const struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 17;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < STEPS; step++) {
        const int count = 1 + (int)(next_number(&draw) % COUNT);
        add_some(&arrays, count, 0, 1, 0);
        if (next_number(&draw) % 2)
            add_some(&arrays, count, 1, 2, 3);
        else
            multiply_some(&arrays, count, 1, 2, 3);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 2);
    assert_int_equal(did.launches, 2 * 2 * GPU_ALIKE);
    assert_int_equal(did.lists, STEPS - 2 * GPU_ALIKE);
    close_arrays(&arrays);
}

/* A list that follows outlives blocks that it names. */
static void blocks_that_are_freed_leave_it(void **state)
{
    enum { STEPS = 30 };
    const struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 99;
    (void)state;
    open_arrays(&arrays, &api);
    for (int step = 0; step < STEPS; step++) {
        compute_some(&arrays, &draw, step);
        if (step % 2) expect_numbers(&arrays);
        tr_device_free(arrays.device, arrays.there[3]);
        const struct tr_op_fill fill = {
            COUNT, (float)step,
            tr_device_alloc(arrays.device, sizeof arrays.here[3], &arrays.there[3]) == TR_OK ? arrays.there[3]
                                                                                             : NULL};
        assert_int_equal(tr_device_fill(arrays.device, &fill), TR_OK);
        set_here(&arrays, 3, (float)step);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 1);
    assert_int_equal(did.freed, 0);
    assert_int_equal(did.lists, STEPS - GPU_ALIKE);
    close_arrays(&arrays);
}

/* However many kinds of stretches come, no more lists are kept than there is room for. */
static void their_number_has_a_bound(void **state)
{
    enum { SHAPES = 150 };
    const struct gpu_api api = following();
    struct arrays arrays;
    (void)state;
    open_arrays(&arrays, &api);
    for (int shape = 0; shape < SHAPES; shape++)
        for (int step = 0; step <= GPU_ALIKE; step++) {
            for (int bit = 0; bit < 8; bit++)
                if (shape >> bit & 1)
                    add_some(&arrays, 1 + step, 0, 1, 2);
                else
                    scale_some(&arrays, 1 + step, 1, 0.5f, 2);
            assert_int_equal(tr_device_wait(arrays.device), TR_OK);
            assert_true(did.built - did.freed <= GPU_LISTS);
        }
    expect_numbers(&arrays);
    assert_int_equal(did.built, SHAPES);
    assert_true(did.freed > 0);
    close_arrays(&arrays);
    assert_int_equal(did.freed, did.built);
}

static bool refuses;
static tr_status (*change_rightly)(void *session, void *list, int index, const struct gpu_launch *launch);

static tr_status change_or_fail(void *session, void *list, int index, const struct gpu_launch *launch)
{
    if (refuses && index == 1) return TR_EUNSUPPORTED;
    return change_rightly(session, list, index, launch);
}

/* A device that does not change a list any more, in the middle of it, computes the same, launch by launch. */
static void a_change_that_fails_is_done_without(void **state)
{
    struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 5;
    (void)state;
    refuses = false;
    change_rightly = api.change_list;
    api.change_list = change_or_fail;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 3 * GPU_ALIKE; step++) {
        refuses = step >= 2 * GPU_ALIKE;
        compute_some(&arrays, &draw, step);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 1);
    assert_int_equal(did.lists, GPU_ALIKE);
    assert_int_equal(did.launches, 2 * 2 * GPU_ALIKE);
    close_arrays(&arrays);
}

static tr_status change_nothing(void *session, void *list, int index, const struct gpu_launch *launch)
{
    (void)session;
    (void)list;
    (void)index;
    (void)launch;
    return TR_OK;
}

/* Found out when the device is opened; lists that stay what they are go on. */
static void lists_that_follow_wrongly_are_not_used(void **state)
{
    struct gpu_api api = following();
    struct arrays arrays;
    uint32_t draw = 5;
    (void)state;
    api.change_list = change_nothing;
    open_arrays(&arrays, &api);
    for (int step = 0; step < 3 * GPU_ALIKE; step++) {
        compute_some(&arrays, &draw, step);
        expect_numbers(&arrays);
        compute(&arrays, 2);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.built, 1);
    assert_int_equal(did.lists, 3 * GPU_ALIKE - GPU_OFTEN);
    close_arrays(&arrays);
}

/* ---- where there are none ---- */

static void expect_none(const struct gpu_api *api)
{
    struct arrays arrays;
    open_arrays(&arrays, api);
    assert_null(gpu_of(arrays.device)->lists);
    for (int step = 0; step < 8; step++) {
        compute(&arrays, 3);
        expect_numbers(&arrays);
    }
    assert_int_equal(did.lists, 0);
    assert_int_equal(did.launches, 8 * 6);
    close_arrays(&arrays);
}

static tr_status describe_without(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->lists = false;
    return status;
}

static tr_status build_no_list(void *session, const struct gpu_launch *launches, int count, void **list)
{
    (void)session;
    (void)launches;
    (void)count;
    (void)list;
    return TR_EUNSUPPORTED;
}

static void devices_without_lists_need_none(void **state)
{
    struct gpu_api api = counting();
    (void)state;
    api.describe = describe_without;
    expect_none(&api);
    api = counting();
    api.build_list = NULL;
    api.launch_list = NULL;
    api.free_list = NULL;
    expect_none(&api);
    api = counting();
    api.build_list = build_no_list;
    expect_none(&api);
}

/* The second list that is launched is the one that was launched before. */
static tr_status launch_former_list(void *session, void *list)
{
    static void *former;
    void *now = former ? former : list;
    former = list;
    return gpu_launch_counted(session, now);
}

static tr_status launch_nothing(void *session, void *list)
{
    (void)session;
    (void)list;
    return TR_OK;
}

static void lists_that_do_other_things_are_not_used(void **state)
{
    tr_status (*const wrong[])(void *session, void *list) = {launch_former_list, launch_nothing};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct gpu_api api = counting();
        api.launch_list = wrong[i];
        expect_none(&api);
    }
}

/* Recorded runs need the time of each launch. */
static void timed_devices_have_none(void **state)
{
    const struct gpu_api api = counting();
    const struct tr_device_choice choice = {.name = "opencl", .cache = TEST_PROGRAMS, .timed = true};
    tr_device *device;
    (void)state;
    assert_int_equal(gpu_device_create(&api, &choice, &device), TR_OK);
    assert_null(gpu_of(device)->lists);
    tr_device_destroy(&device);
}

/* Whoever enqueues next is told that a list could not be, also where it was freeing that enqueued it. */
static void failures_of_lists_are_told(void **state)
{
    struct gpu_api api = counting();
    (void)state;
    api.launch_list = launch_list;
    for (int frees = 0; frees < 2; frees++) {
        struct arrays arrays;
        float number;
        fails = TR_OK;
        open_arrays(&arrays, &api);
        for (int step = 0; step < TIMES + 2; step++) {
            scale(&arrays, 1, 0.5f, 2);
            expect_numbers(&arrays);
            scale(&arrays, 1, 0.5f, 2);
            scale(&arrays, 2, 0.5f, 3);
            expect_numbers(&arrays);
            scale(&arrays, 1, 0.5f, 2);
            scale(&arrays, 2, 0.5f, 3);
            scale(&arrays, 3, 0.5f, 3);
            expect_numbers(&arrays);
        }
        fails = TR_EPEER;
        assert_int_equal(try_scale(&arrays, 1, 0.5f, 2), TR_OK);
        assert_int_equal(try_scale(&arrays, 2, 0.5f, 3), TR_OK); /* may go on like the longer one */
        if (frees) {
            tr_device_free(arrays.device, arrays.there[0]);
            arrays.there[0] = NULL;
        }
        assert_int_equal(tr_device_to_host(arrays.device, &number, arrays.there[1], sizeof number), TR_EPEER);
        assert_int_equal(tr_device_to_host(arrays.device, &number, arrays.there[1], sizeof number), TR_OK);
        assert_int_equal(tr_device_wait(arrays.device), TR_OK);
        assert_true(number == 1);
        close_arrays(&arrays);
    }
}

/* test_gpu_lists [cuda] */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_again_is_enqueued_as_one),
        cmocka_unit_test(it_need_not_be_done),
        cmocka_unit_test(what_is_alike_in_part_is_told_apart),
        cmocka_unit_test(what_never_comes_again_is_not_recorded),
        cmocka_unit_test(long_stretches_are_several),
        cmocka_unit_test(a_block_that_is_freed_takes_its_lists_along),
        cmocka_unit_test(too_many_lists_are_dropped),
        cmocka_unit_test(what_is_alike_is_enqueued_as_one),
        cmocka_unit_test(what_is_the_same_needs_no_changes),
        cmocka_unit_test(what_has_other_kernels_is_told_apart),
        cmocka_unit_test(what_has_the_same_arguments_is_told_apart),
        cmocka_unit_test(blocks_that_are_freed_leave_it),
        cmocka_unit_test(their_number_has_a_bound),
        cmocka_unit_test(a_change_that_fails_is_done_without),
        cmocka_unit_test(lists_that_follow_wrongly_are_not_used),
        cmocka_unit_test(devices_without_lists_need_none),
        cmocka_unit_test(lists_that_do_other_things_are_not_used),
        cmocka_unit_test(timed_devices_have_none),
        cmocka_unit_test(failures_of_lists_are_told),
    };
#ifdef TEST_ON_HOST
    host_begin();
#else
    if (!opencl_is_here()) return 0;
#endif
    if (count > 1 && strcmp(arguments[1], "cuda") == 0) real = &gpu_api_cuda;
    return cmocka_run_group_tests_name("lists of launches", tests, NULL, NULL);
}
