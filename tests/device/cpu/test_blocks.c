/* Blocks of matrices follow from the caches and the kind of the processor, and bits do not: operations that
 * are larger than the blocks of any machine, with the caches of several and with the ends of each size.
 */
#include "device/cpu/cpu.h"
#include "device/scene.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))
#define KIB           ((int64_t)1 << 10)
#define MIB           ((int64_t)1 << 20)
#define THREADS       2

/* Levels of caches with the processors that share them, and what is left of them for each of two members on
   two processors. */
static const struct {
    const char *name;
    struct tr_caches caches;
    int64_t first, second, last;
} machines[] = {
    {"not known", {{{0}}}, 32 * KIB, MIB, 16 * MIB},
    {"small ARM", {{{32 * KIB, 1}, {512 * KIB, 4}}}, 32 * KIB, 128 * KIB, 4 * MIB},
    {"Atom", {{{24 * KIB, 1}, {MIB, 4}}}, 24 * KIB, 256 * KIB, 4 * MIB},
    {"Zen", {{{32 * KIB, 2}, {512 * KIB, 1}, {32 * MIB, 4}}}, 32 * KIB, 512 * KIB, 8 * MIB},
    {"Intel server", {{{48 * KIB, 2}, {2 * MIB, 1}, {105 * MIB, 112}}}, 32 * KIB, 2 * MIB, 4 * MIB},
    {"Apple", {{{128 * KIB, 1}, {12 * MIB, 3}}}, 32 * KIB, 4 * MIB, 4 * MIB},
    {"beyond belief", {{{MIB, 1}, {256 * MIB, 1}, {4096 * MIB, 1}}}, 32 * KIB, 4 * MIB, 16 * MIB},
    {"hardly any", {{{4 * KIB, 1}, {4 * KIB, 64}, {4 * KIB, 64}}}, 8 * KIB, 128 * KIB, 4 * MIB},
};

static void members_share(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH(machines); i++) {
        const struct cpu_room room = cpu_room_of(&machines[i].caches, THREADS, THREADS);
        if (room.first != machines[i].first || room.second != machines[i].second ||
            room.last != machines[i].last)
            fail_msg("%s: %lld, %lld, %lld", machines[i].name, (long long)room.first, (long long)room.second,
                     (long long)room.last);
    }
    /* Two of eight processors at work, or one, leave more for each; more threads than processors no less. */
    const struct tr_caches caches = {{{32 * KIB, 1}, {2 * MIB, 4}, {32 * MIB, 8}}};
    assert_int_equal(cpu_room_of(&caches, 2, 8).second, 2 * MIB);
    assert_int_equal(cpu_room_of(&caches, 2, 8).last, 16 * MIB);
    assert_int_equal(cpu_room_of(&caches, 4, 8).second, MIB);
    assert_int_equal(cpu_room_of(&caches, 4, 8).last, 8 * MIB);
    assert_int_equal(cpu_room_of(&caches, 200, 8).second, 512 * KIB);
}

static void rows_are_found(void **state)
{
    (void)state;
    const struct cpu_blocks_row *row = cpu_blocks_table;
    for (;; row++) {
#define WITHIN(field, least, most, cache, help)                                                              \
    if (row->blocks.field < (least) || row->blocks.field > (most))                                           \
        fail_msg("row %d: " #field " is %lld", (int)(row - cpu_blocks_table), (long long)row->blocks.field);
        CPU_BLOCKS(WITHIN)
#undef WITHIN
        if (!row->vendor && !row->isa) break;
        /* No row hides behind one before it. */
        struct tr_processor processor = {.family = row->family,
                                         .model = row->model_end > 0 ? row->model_end - 1 : 0};
        snprintf(processor.vendor, sizeof processor.vendor, "%s", row->vendor ? row->vendor : "none");
        assert_ptr_equal(cpu_blocks_find(&processor, row->isa ? row->isa : "none"), &row->blocks);
    }
    assert_ptr_equal(cpu_blocks_find(&(struct tr_processor){.vendor = "none"}, "none"), &row->blocks);
}

static const struct tr_sliding_window window = {24, 24, 24, 24, 3, 3, 1, 1, 1, 1, 1, 1};
#define PIXELS (24 * 24)

static struct tr_cut four_microbatches(struct scene *s, int rows)
{
    for (int i = 0; i <= 4; i++) s->row[i] = i * rows;
    s->bound[0] = 0;
    s->bound[1] = 4;
    return (struct tr_cut){.count = 4, .row = s->row, .nodes = 1, .bound = s->bound};
}

static void dense(struct scene *s, int rows, int in, int out)
{
    const struct tr_op_dense_forward forward = {.rows = rows,
                                                .in = in,
                                                .out = out,
                                                .activation = TR_ACT_RELU,
                                                .x = scene_in(s, "x", rows * in),
                                                .w = scene_in(s, "w", in * out),
                                                .b = scene_in(s, "b", out),
                                                .y = scene_out(s, "y", rows * out)};
    tr_status status = tr_device_dense_forward(s->device, &forward);
    assert_int_equal(status, TR_OK);
    const struct tr_op_dense_backward_data backward = {.rows = rows,
                                                       .in = in,
                                                       .out = out,
                                                       .dy = forward.y,
                                                       .w = forward.w,
                                                       .dx = scene_out(s, "dx", rows * in)};
    scene_end(s, tr_device_dense_backward_data(s->device, &backward));
}

static void tall_dense(struct scene *s)
{
    dense(s, 700, 300, 700);
}

static void wide_dense(struct scene *s)
{
    dense(s, 150, 530, 2100);
}

/* So few rows that weights are not packed. */
static void flat_dense(struct scene *s)
{
    dense(s, 50, 530, 1100);
}

static void dense_gradient(struct scene *s)
{
    const int rows = 110, in = 300, out = 2100;
    struct tr_op_dense_backward_weights a = {.in = in, .out = out, .cut = four_microbatches(s, rows)};
    a.x = scene_in(s, "x", 4 * rows * in);
    a.dy = scene_in(s, "dy", 4 * rows * out);
    a.dw = scene_out(s, "dw", in * out);
    a.db = scene_out(s, "db", out);
    scene_end(s, tr_device_dense_backward_weights(s->device, &a));
}

/* All three passes of a convolution, or of one by Winograd's algorithm. */
static void convolution(struct scene *s, int rows, int in, int out, bool winograd)
{
    struct tr_op_conv_forward f = {.rows = 4 * rows, .in_c = in, .out_c = out, .window = window};
    f.x = scene_in(s, "x", f.rows * PIXELS * in);
    f.w = scene_in(s, "w", 9 * in * out);
    f.b = scene_in(s, "b", out);
    f.y = scene_out(s, "y", f.rows * PIXELS * out);
    struct tr_op_conv_backward_data d = {
        .rows = f.rows, .in_c = in, .out_c = out, .window = window, .dy = f.y, .w = f.w};
    d.dx = scene_out(s, "dx", f.rows * PIXELS * in);
    struct tr_op_conv_backward_weights w = {
        .in_c = in, .out_c = out, .window = window, .cut = four_microbatches(s, rows), .x = f.x, .dy = f.y};
    w.dw = scene_out(s, "dw", 9 * in * out);
    w.db = scene_out(s, "db", out);
    if (winograd) {
        assert_int_equal(tr_device_winograd_forward(s->device, &(struct tr_op_winograd_forward){f}), TR_OK);
        assert_int_equal(
            tr_device_winograd_backward_data(s->device, &(struct tr_op_winograd_backward_data){d}), TR_OK);
        scene_end(
            s, tr_device_winograd_backward_weights(s->device, &(struct tr_op_winograd_backward_weights){w}));
    } else {
        assert_int_equal(tr_device_conv_forward(s->device, &f), TR_OK);
        assert_int_equal(tr_device_conv_backward_data(s->device, &d), TR_OK);
        scene_end(s, tr_device_conv_backward_weights(s->device, &w));
    }
}

static void direct_convolution(struct scene *s)
{
    convolution(s, 2, 40, 48, false);
}

static void winograd_of_few_channels(struct scene *s)
{
    convolution(s, 2, 32, 48, true);
}

static void winograd_of_many_channels(struct scene *s)
{
    convolution(s, 2, 96, 80, true);
}

static void (*const operations[])(struct scene *) = {
    tall_dense,
    wide_dense,
    flat_dense,
    dense_gradient,
    direct_convolution,
    winograd_of_few_channels,
    winograd_of_many_channels,
};

static tr_device *open_device(const char *isa)
{
    tr_device *device;
    tr_status status = tr_device_create("cpu", THREADS, isa, &device);
    if (status == TR_EUNSUPPORTED) return NULL;
    if (status != TR_OK) fail_msg("%s", tr_error_message());
    return device;
}

/* Sets of sizes: those of this processor, then each size alone at its least and at its most. */
static struct cpu_blocks sizes_of(const struct cpu_blocks *here, int number)
{
    struct cpu_blocks blocks = *here;
    int n = 0;
#define END(field, least, most, cache, help)                                                                 \
    if (++n == number) blocks.field = (least);                                                               \
    if (++n == number) blocks.field = (most);
    CPU_BLOCKS(END)
#undef END
    return blocks;
}

#define COUNT(field, least, most, cache, help) +2
#define SIZES                                  (1 CPU_BLOCKS(COUNT))

/* The plain set has its blocks in common with the others, and takes long. */
static void bits_do_not_follow(void **state)
{
    static const char *const isas[] = {"avx512", "avx2", "neon"};
    (void)state;
    for (int k = 0; k < LENGTH(isas); k++) {
        tr_device *device = open_device(isas[k]);
        if (!device) {
            printf("[  NOTE    ] skipped: %s\n", tr_error_message());
            continue;
        }
        for (int i = 0; i < LENGTH(operations); i++) {
            struct scene expected, scene;
            char difference[256];
            for (int m = 0; m < LENGTH(machines); m++) {
                cpu_device_of(device)->room = cpu_room_of(&machines[m].caches, THREADS, THREADS);
                if (m == 0) {
                    scene_begin(&expected, device, SCENE_PLAIN, (uint32_t)i, 0);
                    operations[i](&expected);
                    continue;
                }
                scene_begin_like(&scene, device, &expected);
                operations[i](&scene);
                if (scene_differs(&expected, &scene, difference, sizeof difference))
                    fail_msg("%s, operation %d, caches of %s: %s", isas[k], i, machines[m].name, difference);
                scene_release(&scene);
            }
            const struct cpu_blocks here = cpu_device_of(device)->blocks;
            for (int n = 1; n < SIZES; n++) {
                cpu_device_of(device)->room =
                    cpu_room_of(&machines[n % LENGTH(machines)].caches, THREADS, THREADS);
                cpu_device_of(device)->blocks = sizes_of(&here, n);
                scene_begin_like(&scene, device, &expected);
                operations[i](&scene);
                if (scene_differs(&expected, &scene, difference, sizeof difference))
                    fail_msg("%s, operation %d, sizes number %d: %s", isas[k], i, n, difference);
                scene_release(&scene);
            }
            cpu_device_of(device)->blocks = here;
            scene_release(&expected);
        }
        tr_device_destroy(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_share),
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(bits_do_not_follow),
    };
    return cmocka_run_group_tests_name("device.blocks", tests, NULL, NULL);
}
