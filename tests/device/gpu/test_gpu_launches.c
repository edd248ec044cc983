/* Launches of a gpu device, on an interface without a driver (host.h): their groups and arguments, trees of
 * sums, and lists of launches whose memory is freed.
 */
#include "device/gpu/on_host.h"
#include "device/gpu/product.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void begin(struct gpu_call *call)
{
    gpu_begin(call, device, "elementwise", "", "any");
}

static void launches_have_no_more_groups_than_may_be(void **state)
{
    (void)state;
    struct gpu_call call;
    begin(&call);
    assert_int_equal(gpu_threads(device), 256);
    assert_int_equal(gpu_run(&call, 0, 1, 1), TR_OK);
    begin(&call);
    assert_int_equal(gpu_run(&call, 1, -1, 1), TR_OK);
    begin(&call);
    assert_int_equal(gpu_run(&call, 1, 1, 0), TR_OK);
    assert_int_equal(host.launches, 0);
    begin(&call);
    assert_int_equal(gpu_run(&call, INT32_MAX, 65535, 1), TR_OK);
    assert_int_equal(host.launches, 1);
    assert_true(host.last.groups[0] == INT32_MAX && host.last.groups[1] == 65535 && host.last.groups[2] == 1);
    begin(&call);
    assert_int_equal(gpu_run(&call, 3, 65536, 65540), TR_OK);
    assert_int_equal(host.launches, 5);
    assert_true(host.last.first[0] == 0 && host.last.first[1] == 65535 && host.last.first[2] == 65535);
    assert_true(host.last.groups[0] == 3 && host.last.groups[1] == 1 && host.last.groups[2] == 5);
    for (int axis = 0; axis < 3; axis++) {
        const int64_t large = (int64_t)INT32_MAX + 1;
        begin(&call);
        assert_int_equal(gpu_run(&call, axis == 0 ? large : 1, axis == 1 ? large : 1, axis == 2 ? large : 1),
                         TR_EUNSUPPORTED);
        assert_message_has("any in ");
        assert_message_has("more than 2147483647 are too many for a gpu");
    }
    begin(&call);
    fail_at("launch", 1);
    assert_int_equal(gpu_run(&call, 1, 65536, 1), TR_EPEER);
    assert_int_equal(host.launches, 6);
    host.fails = NULL;
    begin(&call);
    assert_int_equal(gpu_run_each(&call, 257), TR_OK);
    assert_int_equal(host.last.groups[0], 2);
    assert_int_equal(host.last.threads, 256);
    /* 2^shift columns for each line of a group. */
    static const int shifts[][2] = {{1, 0}, {2, 1}, {3, 2}, {4, 2}, {128, 7}, {129, 8}, {256, 8}, {1000, 8}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++)
        assert_int_equal(gpu_shift(device, shifts[i][0]), shifts[i][1]);
    begin(&call);
    assert_int_equal(gpu_run_lines(&call, 3, 33, 17), TR_OK);
    assert_true(host.last.groups[0] == 2 && host.last.groups[1] == 3);
}

static void sizes_must_fit(void **state)
{
    (void)state;
    struct gpu_call call;
    begin(&call);
    gpu_size(&call, INT32_MAX);
    gpu_int(&call, -3);
    gpu_uint(&call, 4000000000u);
    gpu_float(&call, 0.5f);
    gpu_memory(&call, NULL, 4);
    assert_int_equal(gpu_run_each(&call, 1), TR_OK);
    assert_int_equal(host.last.count, 6);
    int32_t number;
    uint32_t natural;
    float real;
    memcpy(&number, host.argument[0].value, 4);
    assert_int_equal(number, INT32_MAX);
    memcpy(&number, host.argument[1].value, 4);
    assert_int_equal(number, -3);
    memcpy(&natural, host.argument[2].value, 4);
    assert_true(natural == 4000000000u);
    memcpy(&real, host.argument[3].value, 4);
    assert_true(real == 0.5f);
    assert_true(!host.argument[4].block && host.argument[4].size == 0 && host.argument[5].size == 8);
    begin(&call);
    gpu_size(&call, (int64_t)INT32_MAX + 1);
    gpu_size(&call, (int64_t)INT32_MAX + 2);
    assert_int_equal(gpu_run_each(&call, 1), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "any of 2147483648: more than 2147483647 are too many for a gpu");
    assert_int_equal(host.launches, 1);
    fail_at("kernel", 0);
    struct gpu_call other;
    gpu_begin(&other, device, "elementwise", "", "another");
    assert_int_equal(gpu_run_each(&other, 1), TR_EPEER);
    assert_int_equal(host.launches, 1);
}

/* Leaves are combined into nodes, unless each is one. */
static void leaves_become_nodes(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 2, 5, 9};
    static const int32_t each[] = {0, 1, 2, 3}, two[] = {0, 2, 3};
    struct tr_cut cut = {3, row, 3, each, 50};
    float *memory, *out;
    int64_t stride;
    assert_int_equal(tr_device_alloc(device, 200 * sizeof(float), (void **)&memory), TR_OK);
    out = memory + 7;
    assert_ptr_equal(gpu_leaves(&cut, 20, out, memory, &stride), out);
    assert_int_equal(stride, 50);
    assert_int_equal(gpu_tree(device, &cut, 20, out, memory), TR_OK);
    assert_int_equal(host.launches, 0);
    cut.nodes = 2;
    cut.bound = two;
    assert_ptr_equal(gpu_leaves(&cut, 20, out, memory, &stride), memory);
    assert_int_equal(stride, 20);
    assert_int_equal(gpu_tree(device, &cut, 300, out, memory + 3), TR_OK);
    assert_int_equal(host.launches, 1);
    assert_string_equal(host.last.kernel, "tree");
    assert_true(host.last.groups[0] == 2 && host.last.groups[1] == 2);
    /* width, nodes, leaves, stride, nodes' sums: arrays are a block and a place in it */
    static const int64_t numbers[][2] = {{0, 300}, {2, 0}, {4, 3}, {5, 50}, {7, 7}};
    assert_int_equal(host.last.count, 8);
    for (int i = 0; i < 5; i++) {
        int64_t number;
        memcpy(&number, host.argument[numbers[i][0]].value, sizeof number);
        assert_int_equal(number, numbers[i][1]);
    }
    assert_memory_equal(host.argument[1].block, two, sizeof two);
    assert_ptr_equal(host.argument[3].block, host.argument[6].block);
    struct gpu_cut there;
    assert_int_equal(gpu_cut(device, &cut, &there), TR_OK);
    expect_table(there.row, row, sizeof row);
    expect_table(there.bound, two, sizeof two);
    tr_device_free(device, memory);
}

/* A list that uses a block goes with it, once the device is done with it. */
static void lists_run_before_they_are_freed(void **state)
{
    (void)state;
    void *first, *second;
    float number;
    tr_device_destroy(&device);
    host.info.lists = true;
    device = host_open(NULL, false);
    assert_int_equal(tr_device_alloc(device, 64, &first), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, &second), TR_OK);
    for (int turn = 0; turn < 6; turn++) {
        const struct tr_op_fill fill = {16, (float)turn, first};
        const struct tr_op_fill again = {16, 3, first};
        const struct tr_op_scale scale = {16, 2, first, second};
        assert_int_equal(tr_device_fill(device, turn == 0 ? &fill : &again), TR_OK);
        assert_int_equal(tr_device_scale(device, &scale), TR_OK);
        assert_int_equal(tr_device_to_host(device, &number, second, sizeof number), TR_OK);
        assert_true(number == (turn == 0 ? 0 : 6));
    }
    assert_int_equal(host.lists, 1);
    assert_true(host.running);
    const int waits = host.waits;
    tr_device_free(device, second);
    assert_int_equal(host.lists, 0);
    assert_int_equal(host.waits, waits + 1);
    tr_device_free(device, first);
    assert_int_equal(host.waits, waits + 1);
}

/* What may become a list is held back: whatever could see that ends it. */
static void what_is_held_comes_before_what_follows(void **state)
{
    (void)state;
    float *first, *second, number, nine = 9;
    tr_event mark;
    bool reached;
    tr_device_destroy(&device);
    host.info.lists = true;
    device = host_open(NULL, false);
    assert_int_equal(tr_device_alloc(device, 64, (void **)&first), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, (void **)&second), TR_OK);
    const struct tr_op_fill fill = {16, 3, first};
    const struct tr_op_scale scale = {16, 2, first, second};
    for (int turn = 0; turn < 4; turn++) {
        assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        assert_int_equal(tr_device_scale(device, &scale), TR_OK);
        assert_int_equal(tr_device_to_host(device, &number, second, sizeof number), TR_OK);
    }
    assert_int_equal(host.lists, 1);
    for (int way = 0; way < 4; way++) {
        const int launches = host.launches;
        assert_int_equal(tr_device_to_device(device, first, &nine, sizeof nine), TR_OK);
        assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        assert_int_equal(host.launches, launches);
        if (way == 0) assert_int_equal(tr_device_to_device(device, first, &nine, sizeof nine), TR_OK);
        if (way == 1) assert_int_equal(tr_device_wait(device), TR_OK);
        if (way == 2) assert_int_equal(tr_device_record(device, &mark), TR_OK);
        if (way == 3)
            assert_int_equal(tr_device_to_host_beside(device, &number, first, sizeof number), TR_OK);
        assert_int_equal(host.launches, launches + 1);
        assert_int_equal(tr_device_to_host(device, &number, first, sizeof number), TR_OK);
        assert_true(number == (way == 0 ? 9 : 3));
    }
    assert_int_equal(tr_device_reached(device, mark, &reached), TR_OK);
    tr_device_free(device, first);
    tr_device_free(device, second);
}

/* Kernels count the numbers of an image in 32 bits: the largest one is launched, on either side. */
static void images_of_a_convolution_by_groups_must_fit(void **state)
{
    (void)state;
    static const struct {
        int32_t in_h, in_w, out_h, out_w, in_c, out_c;
        bool fits;
    } cases[] = {
        {INT32_MAX, 1, 3, 3, 1, 4, true},  {3, 3, INT32_MAX, 1, 4, 1, true},
        {32768, 65536, 3, 3, 1, 4, false}, {32768, 2, 3, 3, 32768, 4, false},
        {3, 3, 32768, 65536, 4, 1, false}, {3, 3, 32768, 2, 4, 32768, false},
        {46341, 46341, 3, 3, 1, 4, false}, {3, 3, 65535, 32767, 4, 2, false},
        {65535, 32767, 3, 3, 1, 1, true},
    };
    float *memory;
    assert_int_equal(tr_device_alloc(device, 64 * sizeof(float), (void **)&memory), TR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tr_sliding_window window = {.in_h = cases[i].in_h,
                                                 .in_w = cases[i].in_w,
                                                 .out_h = cases[i].out_h,
                                                 .out_w = cases[i].out_w,
                                                 .kernel_h = 1,
                                                 .kernel_w = 1,
                                                 .stride_h = 1,
                                                 .stride_w = 1,
                                                 .dilation_h = 1,
                                                 .dilation_w = 1};
        const struct tr_op_grouped_conv_forward op = {.conv = {.rows = 1,
                                                               .in_c = cases[i].in_c,
                                                               .out_c = cases[i].out_c,
                                                               .window = window,
                                                               .x = memory,
                                                               .w = memory + 16,
                                                               .y = memory + 32},
                                                      .groups = 1};
        const struct tr_op_grouped_conv_backward_data back = {.conv = {.rows = 1,
                                                                       .in_c = cases[i].in_c,
                                                                       .out_c = cases[i].out_c,
                                                                       .window = window,
                                                                       .dy = memory,
                                                                       .w = memory + 16,
                                                                       .dx = memory + 32},
                                                              .groups = 1};
        host.launches = 0;
        const tr_status expected = cases[i].fits ? TR_OK : TR_EUNSUPPORTED;
        assert_int_equal(tr_device_grouped_conv_forward(device, &op), expected);
        assert_int_equal(tr_device_grouped_conv_backward_data(device, &back), expected);
        assert_int_equal(host.launches, cases[i].fits ? 2 : 0);
        if (!cases[i].fits)
            assert_string_equal(tr_error_message(),
                                "a convolution is too large for a gpu: an image of it has "
                                "more than 2^31 numbers");
    }
    tr_device_free(device, memory);
}

/* Tiles of a GPU, of one with too little memory for some of them, and of a processor. */
static void tiles_are_those_that_have_room(void **state)
{
    static const struct {
        bool processor;
        uint64_t shared;
        int count, last_k; /* the depth of the last one */
    } cases[] = {{false, 48 << 10, 7, 64},
                 {false, 22528, 7, 64},
                 {false, 22527, 8, 8},
                 {false, 4096, 2, 8},
                 {true, 48 << 10, 2, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct gpu_info info = {
            .processor = cases[i].processor, .shared = cases[i].shared, .group = 256};
        int count = 0;
        while (gpu_product_tile(&info, count)) count++;
        assert_int_equal(count, cases[i].count);
        assert_int_equal(gpu_product_tile(&info, count - 1)->k, cases[i].last_k);
    }
}

static struct gpu_product product_of(int64_t m, int64_t n, float *memory)
{
    return (struct gpu_product){.addressing = GPU_STRIDES,
                                .m = m,
                                .sets = 1,
                                .n = n,
                                .k = 100,
                                .leaves = 1,
                                .batches = 1,
                                .a = memory,
                                .b = memory,
                                .c = memory};
}

/* Of a device with 132 units: large tiles where there is work for all, small ones where there is not, and
 * none that computes much beyond the edges. Distances take 64 bits where 32 are too few. */
static void products_take_the_tile_that_is_done_first(void **state)
{
    static const struct {
        int64_t m, n, leaves;
        int tile_m, tile_n, threads;
    } cases[] = {
        {4096, 4096, 1, 128, 128, 256}, {1024, 2048, 1, 128, 64, 256}, {88200, 64, 1, 128, 64, 256},
        {64, 135168, 1, 64, 128, 256},  {16384, 32, 9, 128, 32, 256},  {50, 1024, 1, 32, 32, 128},
        {768, 128, 1, 32, 32, 128},     {50, 10, 1, 4, 32, 128},       {1, 4096, 1, 4, 32, 128},
    };
    float *memory;
    (void)state;
    assert_int_equal(tr_device_alloc(device, 64, (void **)&memory), TR_OK);
    gpu_of(device)->info.units = 132;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpu_product product = product_of(cases[i].m, cases[i].n, memory);
        product.leaves = cases[i].leaves;
        assert_int_equal(gpu_product_run(device, &product), TR_OK);
        assert_int_equal(host.last.groups[0], gpu_groups(cases[i].n, cases[i].tile_n));
        assert_int_equal(host.last.groups[1], gpu_groups(cases[i].m, cases[i].tile_m));
        assert_int_equal(host.last.groups[2], cases[i].leaves);
        assert_int_equal(host.last.threads, cases[i].threads);
    }
    static const struct {
        bool a_k, b_k;
        int64_t a_m, a_step, b_step, b_n;
        bool is_far;
    } steps[] = {
        {true, true, 1 << 25, 1, 1, 1, true},
        {true, true, (1 << 25) - 1, 1, 1, 1 << 20, false},
        {true, true, 1, 1, 1, 1 << 25, true},
        {true, true, 1 << 20, 1, 1, (1 << 25) - 1, false},
        {false, false, 1, 1 << 29, 1, 1, true},
        {false, false, 1, (1 << 29) - 1, 1, 1, false},
        {false, false, 1, 1, 1 << 29, 1, true},
        {false, false, 1, 1, (1 << 29) - 1, 1, false},
        {true, false, 1 << 20, 1 << 30, 100, 1 << 30, false},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct gpu_product product = product_of(4096, 4096, memory);
        product.a_k = steps[i].a_k;
        product.b_k = steps[i].b_k;
        product.a_m = steps[i].a_m;
        product.a_k_step = steps[i].a_step;
        product.b_k_step = steps[i].b_step;
        product.b_n = steps[i].b_n;
        gpu_programs_release(gpu_of(device));
        assert_int_equal(gpu_product_run(device, &product), TR_OK);
        assert_non_null(strstr(host.options, steps[i].is_far ? "-DDISTANCE=int64_t" : "-DDISTANCE=uint32_t"));
    }
    tr_device_free(device, memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_those_that_have_room),
        ON_HOST(products_take_the_tile_that_is_done_first),
        ON_HOST(launches_have_no_more_groups_than_may_be),
        ON_HOST(sizes_must_fit),
        ON_HOST(leaves_become_nodes),
        ON_HOST(lists_run_before_they_are_freed),
        ON_HOST(what_is_held_comes_before_what_follows),
        ON_HOST(images_of_a_convolution_by_groups_must_fit),
    };
    return cmocka_run_group_tests_name("launches of a gpu", tests, NULL, NULL);
}
