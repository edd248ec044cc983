/* What a gpu device does besides computing: it refuses arithmetic that is not exact, finds what an earlier
 * run has kept and trusts nothing that was damaged, says what it has no room for, and launches no more groups
 * than every interface allows. On the first device of an interface, which is falsified where something is to
 * go wrong.
 *
 * test_gpu [cuda]
 */
#include "device/gpu/internal.h"
#include "device/gpu/opencl/internal.h"
#include "device/gpu/product.h"
#include "device/gpu/self_test.h"
#include "device/ref/ref.h"
#include "refuse.h"
#include "scratch.h"
#include "support/gpu/tables.h"
#include "support/gpu/opencl.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static const struct gpu_api *real = &gpu_api_opencl;

static tr_status create(const struct gpu_api *api, const char *cache, tr_device **out)
{
    const struct tr_device_choice choice = {.name = "opencl", .cache = cache};
    return gpu_device_create(api, &choice, out);
}

static void expect_refusal(const struct gpu_api *api, const char *cache, const char *reason)
{
    tr_device *device;
    assert_int_equal(create(api, cache, &device), TR_EUNSUPPORTED);
    assert_null(device);
    if (!strstr(tr_error_message(), reason))
        fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), reason);
}

/* ---- refusals ---- */

static tr_status describe_lacking(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    snprintf(out->refusal, sizeof out->refusal, "it lacks subnormal numbers");
    return status;
}

static void a_device_that_lacks_something_is_refused(void **state)
{
    struct gpu_api api = *real;
    (void)state;
    api.describe = describe_lacking;
    expect_refusal(&api, NULL, "it lacks subnormal numbers");
}

/* Number `wrong_at` of the `wrong_copy`-th copy that comes from the device is off by one bit. */
static int wrong_copy;
static size_t wrong_at;

static tr_status to_host_wrong(void *session, void *to, void *block, size_t at, size_t bytes, void **event)
{
    tr_status status = real->to_host(session, to, block, at, bytes, event);
    if (status == TR_OK) status = real->wait(session);
    uint32_t *words = to;
    if (wrong_copy-- == 0) words[wrong_at] ^= 1;
    return status;
}

/* The numbers of a copy, and what is wrong with one of them: those of numbers that are no NaN in any case. */
static void a_wrong_bit_is_named(void **state)
{
    static const struct {
        int copy;
        size_t at;
        const char *name;
    } faults[] = {{1, 2 * 300 + 1, "division: square root"},
                  {2, 5 * 200 + 3, "functions: sigmoid"},
                  {3, 77, "random numbers"},
                  {4, 1000, "a product in tiles of 32 x 32"},
                  {5, 141 * 131 + 3, "a gradient in tiles of 32 x 32"},
                  {6, 1000, "a product in tiles of 4 x 32"}};
    struct gpu_api api = *real;
    (void)state;
    api.to_host = to_host_wrong;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        wrong_copy = faults[i].copy;
        wrong_at = faults[i].at;
        expect_refusal(&api, NULL, faults[i].name);
    }
}

/* All subnormal numbers that come back of some part of the arithmetic are 0. */
static size_t flushing_part;
static bool flushes;

static tr_status to_host_flushing(void *session, void *to, void *block, size_t at, size_t bytes, void **event)
{
    tr_status status = real->to_host(session, to, block, at, bytes, event);
    if (status == TR_OK) status = real->wait(session);
    uint32_t *words = to;
    for (size_t i = flushing_part; flushes && i < bytes / sizeof *words; i += 7)
        if ((words[i] & 0x7f800000) == 0) words[i] &= 0x80000000;
    flushes = false; /* the rest is as it should be */
    return status;
}

static void an_operation_that_flushes_is_named(void **state)
{
    static const char *const names[] = {"arithmetic: fused multiply-add, ", "arithmetic: product, ",
                                        "arithmetic: sum, ", "arithmetic: quotient, "};
    struct gpu_api api = *real;
    (void)state;
    api.to_host = to_host_flushing;
    for (flushing_part = 0; flushing_part < sizeof names / sizeof names[0]; flushing_part++) {
        flushes = true;
        expect_refusal(&api, NULL, names[flushing_part]);
        assert_non_null(strstr(tr_error_message(), ", since subnormal numbers are flushed to 0"));
    }
}

/* One whose multiply-adds are a function has another chance: kernels bring their own. */
static tr_status describe_slow(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->slow = true;
    return status;
}

static void multiply_adds_that_err_are_replaced(void **state)
{
    char place[SCRATCH_PATH];
    struct gpu_api api = *real;
    (void)state;
    scratch_make(place);
    api.describe = describe_slow;
    api.to_host = to_host_flushing;
    for (int again = 0; again < 2; again++) { /* it is kept which */
        tr_device *device;
        flushing_part = 0;
        flushes = again == 0;
        if (create(&api, place, &device) != TR_OK) fail_msg("%s", tr_error_message());
        assert_false(flushes);
        assert_true(gpu_of(device)->own_fma);
        assert_true(device->slow);
        tr_device_destroy(&device);
    }
    scratch_remove(place);
}

/* What products take of a device that is no processor; compilers for processors take minutes over unrolled
   loops. */
static tr_status describe_gpu(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->processor = false;
    return status;
}

/* Options of the programs whose compiler errs, or NULL. */
static const char *wrong_options;

/* The last number of a thread begins with 1. */
static tr_status build_wrong(void *session, const struct gpu_program_source *source, void **program)
{
    static const char zeros[] = "acc[i][j] = 0.0f;",
                      wrong[] = "acc[i][j] = i == PM - 1 && j == PN - 1 ? 1.0f : 0.0f;";
    struct gpu_program_source changed = *source;
    const char *parts[16];
    char options[512], *text = NULL;
    snprintf(options, sizeof options, "%s -DD_KEEP_ROLLED", source->options);
    changed.options = options;
    changed.binary = NULL;
    if (wrong_options && strstr(source->options, wrong_options)) {
        assert_in_range(source->count, 1, 16);
        memcpy(parts, source->parts, (size_t)source->count * sizeof *parts);
        const char *last = parts[source->count - 1], *at = strstr(last, zeros);
        assert_non_null(at);
        text = tr_format("%.*s%s%s", (int)(at - last), last, wrong, at + strlen(zeros));
        assert_non_null(text);
        parts[source->count - 1] = text;
        changed.parts = parts;
    }
    tr_status status = real->build(session, &changed, program);
    tr_free(text);
    return status;
}

/* Whichever of the tiles that a GPU takes, and in products as in gradients. */
static void a_compiler_that_errs_in_one_tile_is_found_out(void **state)
{
    static const struct {
        const char *options, *name;
    } faults[] = {{"-DA_K=1 -DB_K=0 -DBM=128 -DBN=128 ", "a product in tiles of 128 x 128"},
                  {"-DA_K=0 -DB_K=0 -DBM=128 -DBN=128 ", "a gradient in tiles of 128 x 128"},
                  {"-DA_K=1 -DB_K=0 -DBM=128 -DBN=64 ", "a product in tiles of 128 x 64"},
                  {"-DA_K=1 -DB_K=0 -DBM=64 -DBN=128 ", "a product in tiles of 64 x 128"},
                  {"-DA_K=1 -DB_K=0 -DBM=64 -DBN=64 ", "a product in tiles of 64 x 64"},
                  {"-DA_K=1 -DB_K=0 -DBM=128 -DBN=32 ", "a product in tiles of 128 x 32"},
                  {"-DA_K=1 -DB_K=0 -DBM=32 -DBN=32 -DBK=32 ", "a product in tiles of 32 x 32"},
                  {"-DA_K=1 -DB_K=0 -DBM=4 -DBN=32 -DBK=64 ", "a product in tiles of 4 x 32"}};
    struct gpu_api api = *real;
    tr_device *device;
    (void)state;
    api.describe = describe_gpu;
    api.build = build_wrong;
    if (create(&api, NULL, &device) != TR_OK) fail_msg("%s", tr_error_message());
    assert_null(gpu_of(device)->tile);
    tr_device_destroy(&device);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        wrong_options = faults[i].options;
        expect_refusal(&api, NULL, faults[i].name);
    }
    wrong_options = NULL;
}

/* Whichever allocation fails in the test of a device: an error, and nothing stays behind. */
static void a_test_without_memory_leaves_nothing(void **state)
{
    struct gpu_api api = *real;
    tr_device *device;
    (void)state;
    assert_int_equal(create(&api, NULL, &device), TR_OK);
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = gpu_self_test(gpu_of(device));
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld refused gives %s: %s", (long long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_device_destroy(&device);
}

/* ---- what OpenCL refuses ---- */

static int arguments_left; /* that are set before one is refused */
static int32_t (*set_argument)(cl_kernel kernel, uint32_t index, size_t size, const void *value);

static int32_t refuse_argument(cl_kernel kernel, uint32_t index, size_t size, const void *value)
{
    return arguments_left-- == 0 ? -51 : set_argument(kernel, index, size, value); /* its size is invalid */
}

/* Whichever argument of a kernel is not taken, the operation says so, and which kernel it was. */
static void a_kernel_without_its_arguments_is_not_launched(void **state)
{
    struct gpu_api api = *real;
    tr_device *device;
    void *memory;
    float numbers[3] = {1, 2, 3};
    bool done = false;
    (void)state;
    assert_int_equal(create(&api, NULL, &device), TR_OK);
    assert_int_equal(tr_device_alloc(device, sizeof numbers, &memory), TR_OK);
    assert_int_equal(tr_device_to_device(device, memory, numbers, sizeof numbers), TR_OK);
    const struct tr_op_add twice = {3, memory, memory, memory};
    assert_int_equal(tr_device_add(device, &twice), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    set_argument = opencl_library.clSetKernelArg;
    opencl_library.clSetKernelArg = refuse_argument;
    for (int at = 0; !done; at++) {
        arguments_left = at;
        tr_status status = tr_device_add(device, &twice);
        if (status == TR_OK) status = tr_device_wait(device);
        done = arguments_left >= 0;
        if ((status == TR_OK) != done) fail_msg("argument %d is refused: %s", at, tr_status_name(status));
        if (!done) assert_non_null(strstr(tr_error_message(), "add"));
        assert_true(done || at < 16);
    }
    opencl_library.clSetKernelArg = set_argument;
    tr_device_free(device, memory);
    tr_device_destroy(&device);
}

/* ---- what is kept ---- */

static int launches;

static tr_status count_launch(void *session, const struct gpu_launch *launch)
{
    launches++;
    return real->launch(session, launch);
}

/* Whatever the driver keeps; without lists, whose trial when a device is opened launches something. */
static tr_status describe_forgetful(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->keeps_programs = false;
    out->lists = false;
    return status;
}

static tr_status describe_keeping(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->keeps_programs = true;
    return status;
}

static tr_status (*describe)(int number, struct gpu_info *out) = describe_forgetful;
static const char *exact; /* in place of the interface's own, or NULL */

/* Opens a device, which tests itself unless that is known; returns how many programs it had to build, and
   whether it launched anything. */
static int open_and_count(const char *cache, int *launched)
{
    struct gpu_api api = *real;
    tr_device *device;
    api.launch = count_launch;
    api.describe = describe;
    if (exact) api.exact = exact;
    launches = 0;
    assert_int_equal(create(&api, cache, &device), TR_OK);
    *launched = launches;
    /* computes with a program that may be a kept one */
    void *memory;
    float numbers[3] = {1, 2, 3};
    assert_int_equal(tr_device_alloc(device, sizeof numbers, &memory), TR_OK);
    assert_int_equal(tr_device_to_device(device, memory, numbers, sizeof numbers), TR_OK);
    struct tr_op_add twice = {3, memory, memory, memory};
    assert_int_equal(tr_device_add(device, &twice), TR_OK);
    assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    assert_true(numbers[0] == 2 && numbers[1] == 4 && numbers[2] == 6);
    tr_device_free(device, memory);
    int built = gpu_of(device)->built;
    tr_device_destroy(&device);
    return built;
}

static char place[SCRATCH_PATH], cache[SCRATCH_PATH];

/* Applies `change` to every file that is kept. */
static void change_all(void (*change)(const char *path))
{
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, cache, &names), TR_OK);
    assert_true(names.count > 2);
    for (int64_t i = 0; i < names.count; i++) {
        char path[SCRATCH_PATH];
        change(scratch_join(path, cache, names.name[i]));
    }
    tr_file_names_free(&names);
}

static void flip_last_byte(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_not_equal(fputc(byte ^ 1, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void cut_short(const char *path)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void open_to_others(const char *path)
{
    assert_int_equal(chmod(path, 0666), 0);
}

static void what_was_built_is_kept_and_damage_mended(void **state)
{
    void (*const damages[])(const char *path) = {flip_last_byte, cut_short, open_to_others};
    int launched;
    (void)state;
    int all = open_and_count(cache, &launched);
    assert_true(all > 2 && launched > 4);
    assert_int_equal(open_and_count(cache, &launched), 0);
    assert_int_equal(launched, 0);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        change_all(damages[i]);
        assert_int_equal(open_and_count(cache, &launched), all);
        assert_true(launched > 4);
        assert_int_equal(open_and_count(cache, &launched), 0);
    }
}

/* What was built, and passed its test, under other rules of arithmetic proves nothing of these. */
static void other_rules_are_other_programs(void **state)
{
    int launched;
    (void)state;
    open_and_count(cache, &launched);
    assert_int_equal(open_and_count(cache, &launched), 0);
    exact = "-DOTHERWISE";
    assert_true(open_and_count(cache, &launched) > 2 && launched > 4);
    exact = NULL;
    assert_int_equal(open_and_count(cache, &launched), 0);
}

/* Which device is another one; it computes as it does. */
static enum { SAME, PLATFORM, VENDOR, NAME, DRIVER, DIFFERENCES } difference;

static tr_status describe_another(int number, struct gpu_info *out)
{
    tr_status status = describe_forgetful(number, out);
    char *text[DIFFERENCES] = {
        [PLATFORM] = out->platform, [VENDOR] = out->vendor, [NAME] = out->name, [DRIVER] = out->driver};
    if (difference != SAME) text[difference][0] ^= 1;
    return status;
}

/* What was built for one device, and its test, is of no use to one with another name, maker or driver. */
static void other_devices_are_strangers(void **state)
{
    char path[SCRATCH_PATH];
    int launched, all = 0;
    (void)state;
    scratch_join(path, place, "devices");
    describe = describe_another;
    for (difference = SAME; difference < DIFFERENCES; difference++) {
        int built = open_and_count(path, &launched);
        if (difference == SAME) all = built;
        if (built != all || launched <= 4)
            fail_msg("device %d: %d programs are built of %d, %d launches", (int)difference, built, all,
                     launched);
        assert_int_equal(open_and_count(path, &launched), 0);
        assert_int_equal(launched, 0);
    }
    describe = describe_forgetful;
}

/* Only that the device has passed its test is. */
static void what_a_driver_keeps_is_not_kept_twice(void **state)
{
    struct tr_file_names names;
    char path[SCRATCH_PATH];
    int launched;
    (void)state;
    scratch_join(path, place, "passed");
    describe = describe_keeping;
    int all = open_and_count(path, &launched);
    assert_true(all > 2 && launched > 4);
    assert_int_equal(tr_file_list(NULL, path, &names), TR_OK);
    assert_int_equal(names.count, 1);
    tr_file_names_free(&names);
    assert_int_equal(open_and_count(path, &launched), 1); /* the program of what it computes with */
    assert_int_equal(launched, 0);
    describe = describe_forgetful;
}

static void a_cache_that_cannot_be_is_none(void **state)
{
    char path[SCRATCH_PATH];
    int launched;
    (void)state;
    cut_short(scratch_join(path, place, "file"));
    assert_true(open_and_count(path, &launched) > 2);
}

/* ---- memory ---- */

static tr_status describe_small(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->memory = 8 << 20;
    return status;
}

static void what_has_no_room_is_said(void **state)
{
    struct gpu_api api = *real;
    tr_device *device;
    void *first, *second;
    (void)state;
    api.describe = describe_small;
    assert_int_equal(create(&api, cache, &device), TR_OK);
    assert_int_equal(tr_device_alloc(device, 5 << 20, &first), TR_OK);
    assert_int_equal(tr_device_alloc(device, 5 << 20, &second), TR_ENOMEM);
    assert_null(second);
    assert_non_null(strstr(tr_error_message(), "no room for 5.0 MiB: it has 8.0 MiB"));
    assert_non_null(strstr(tr_error_message(), "train.pass"));
    tr_device_free(device, first);
    assert_int_equal(tr_device_alloc(device, 5 << 20, &second), TR_OK);
    tr_device_free(device, second);
    tr_device_destroy(&device);
}

/* ---- launches of many groups ---- */

static int later_launches; /* that do not begin at the first group */

static tr_status launch_few(void *session, const struct gpu_launch *launch)
{
    assert_int_equal(launch->first[0], 0);
    for (int axis = 1; axis < 3; axis++) {
        assert_in_range(launch->groups[axis], 1, GPU_MOST_GROUPS);
        later_launches += launch->first[axis] > 0;
    }
    return real->launch(session, launch);
}

/* Copies `count` floats to memory of the device, which is returned. */
static float *there(tr_device *device, const float *numbers, int64_t count)
{
    void *memory;
    assert_int_equal(tr_device_alloc(device, (size_t)count * sizeof(float), &memory), TR_OK);
    assert_int_equal(tr_device_to_device(device, memory, numbers, (size_t)count * sizeof(float)), TR_OK);
    return memory;
}

static void expect_bytes(tr_device *device, const float *expected, float *memory, int64_t count,
                         const char *what)
{
    float *got = tr_alloc((size_t)count, sizeof *got);
    assert_non_null(got);
    assert_int_equal(tr_device_to_host(device, got, memory, (size_t)count * sizeof *got), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&expected[i], &got[i], sizeof *got) != 0)
            fail_msg("%s: number %lld is %g, should be %g", what, (long long)i, (double)got[i],
                     (double)expected[i]);
    tr_free(got);
    tr_device_free(device, memory);
}

/* Tiles of rows, along axis 1. */
static void multiply_many_rows(tr_device *device)
{
    const int64_t rows = (int64_t)gpu_product_tile(gpu_info_of(device), 0)->m * GPU_MOST_GROUPS + 5;
    float *x = tr_alloc(2 * (size_t)rows, sizeof *x), *y = x + rows, w = 0.37f, b = -0.11f;
    assert_non_null(x);
    for (int64_t i = 0; i < rows; i++) x[i] = (float)(i % 4099) / 4099;
    struct tr_op_dense_forward op = {.rows = rows, .in = 1, .out = 1, .x = x, .w = &w, .b = &b, .y = y};
    assert_int_equal(ref_dense_forward(device, &op), TR_OK);
    op.x = there(device, x, rows);
    op.w = there(device, &w, 1);
    op.b = there(device, &b, 1);
    op.y = there(device, x, rows);
    assert_int_equal(tr_device_dense_forward(device, &op), TR_OK);
    expect_bytes(device, y, op.y, rows, "many rows");
    tr_device_free(device, (void *)(uintptr_t)op.x);
    tr_device_free(device, (void *)(uintptr_t)op.w);
    tr_device_free(device, (void *)(uintptr_t)op.b);
    tr_free(x);
}

/* Microbatches: leaves of products along axis 2, of the sums of their rows along axis 1, and nodes. */
static void multiply_many_microbatches(tr_device *device)
{
    enum { COUNT = GPU_MOST_GROUPS + 2, IN = 2, OUT = 3, EACH = IN * OUT + OUT };
    static int64_t row[COUNT + 1];
    static int32_t bound[COUNT + 1];
    float *x = tr_alloc((size_t)COUNT * (IN + OUT + EACH), sizeof *x), *dy = x + COUNT * IN,
          *d = dy + COUNT * OUT;
    assert_non_null(x);
    for (int i = 0; i < COUNT * (IN + OUT); i++) x[i] = (float)(i % 251) / 251;
    for (int i = 0; i <= COUNT; i++) row[i] = bound[i] = i;
    for (int tree = 0; tree < 2; tree++) {
        struct tr_op_dense_backward_weights op = {.in = IN,
                                                  .out = OUT,
                                                  .x = x,
                                                  .dy = dy,
                                                  .dw = d,
                                                  .db = d + IN * OUT,
                                                  .cut = {COUNT, row, COUNT, bound, EACH}};
        int32_t two[] = {0, 7, COUNT};
        if (tree) op.cut.nodes = 2;
        if (tree) op.cut.bound = two;
        assert_int_equal(ref_dense_backward_weights(device, &op), TR_OK);
        float *out = there(device, d, (int64_t)op.cut.nodes * EACH);
        op.x = there(device, x, COUNT * IN);
        op.dy = there(device, dy, COUNT * OUT);
        op.dw = out;
        op.db = out + IN * OUT;
        struct tr_op_fill fill = {(int64_t)op.cut.nodes * EACH, 7, out};
        assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        assert_int_equal(tr_device_dense_backward_weights(device, &op), TR_OK);
        expect_bytes(device, d, out, (int64_t)op.cut.nodes * EACH, tree ? "two nodes" : "many nodes");
        tr_device_free(device, (void *)(uintptr_t)op.x);
        tr_device_free(device, (void *)(uintptr_t)op.dy);
    }
    tr_free(x);
}

static void no_launch_has_more_groups_than_may_be(void **state)
{
    struct gpu_api api = *real;
    tr_device *device;
    (void)state;
    api.launch = launch_few;
    assert_int_equal(create(&api, cache, &device), TR_OK);
    later_launches = 0;
    multiply_many_rows(device);
    assert_int_equal(later_launches, 1);
    multiply_many_microbatches(device);
    assert_int_equal(later_launches, 5); /* products and sums of rows, twice */
    tr_device_destroy(&device);
}

/* ---- failures of a device ---- */

static tr_status launch_lost(void *session, const struct gpu_launch *launch)
{
    (void)session;
    (void)launch;
    return TR_EPEER;
}

static void a_lost_device_ends_what_waits_for_it(void **state)
{
    struct gpu_api api = *real;
    tr_device *device;
    void *memory;
    (void)state;
    assert_int_equal(create(&api, cache, &device), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, &memory), TR_OK);
    api.launch = launch_lost;
    struct tr_op_fill fill = {16, 1, memory};
    assert_int_equal(tr_device_fill(device, &fill), TR_EPEER);
    tr_device_free(device, memory);
    tr_device_destroy(&device);
}

/* ---- times, and copies beside the queue ---- */

static tr_lane *lane_called(tr_timeline *timeline, const char *name)
{
    for (int i = 0; i < tr_timeline_lanes(timeline); i++)
        if (strcmp(tr_lane_name(tr_timeline_lane(timeline, i)), name) == 0)
            return tr_timeline_lane(timeline, i);
    return NULL;
}

/* What is enqueued within a span is recorded under its activity and name, once it was waited for, between the
   moments before and after; nothing of what is enqueued outside of spans. */
static void a_timed_device_tells_what_it_did(void **state)
{
    const struct tr_timeline_settings settings = {.spans = 100, .end_step = 10, .sums = true};
    const char *first = real == &gpu_api_cuda ? "cuda:0" : "opencl:0";
    const struct tr_device_choice choice = {.name = first, .cache = cache, .timed = true};
    const int64_t second = 1000000000;
    tr_timeline *timeline;
    tr_device *device;
    void *memory;
    float numbers[1000];
    (void)state;
    assert_int_equal(tr_timeline_create(&settings, &timeline), TR_OK);
    assert_int_equal(tr_device_open(&choice, &device), TR_OK);
    assert_true(device->timed);
    assert_int_equal(tr_device_alloc(device, sizeof numbers, &memory), TR_OK);
    struct tr_op_fill fill = {1000, 7, memory};
    tr_timeline_enter(timeline, "main");
    tr_timeline_step(3);
    int64_t before = tr_timeline_clock();
    assert_int_equal(tr_device_fill(device, &fill), TR_OK); /* in no span */
    tr_span_begin(TR_ACTIVITY_FORWARD, "conv1");
    assert_int_equal(tr_device_fill(device, &fill), TR_OK);
    assert_int_equal(tr_device_fill(device, &fill), TR_OK);
    tr_span_end();
    tr_span_begin(TR_ACTIVITY_UPDATE, "update");
    assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
    tr_span_end();
    assert_null(lane_called(timeline, first));
    assert_int_equal(tr_device_wait(device), TR_OK);
    int64_t after = tr_timeline_clock();
    tr_timeline_leave();
    tr_timeline_freeze(timeline);

    tr_lane *lane = lane_called(timeline, first);
    assert_non_null(lane);
    int64_t count;
    const struct tr_span *span = tr_lane_spans(lane, &count);
    static const char *const names[] = {"conv1", "conv1", "update"};
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(tr_lane_text(lane, span[i].name), names[i]);
        assert_int_equal(span[i].activity, i < 2 ? TR_ACTIVITY_FORWARD : TR_ACTIVITY_UPDATE);
        assert_int_equal(span[i].step, 3);
        assert_true(span[i].begin <= span[i].end && (i == 0 || span[i - 1].end <= span[i].begin));
        /* the two clocks are known of each other to much less */
        assert_true(span[i].begin > before - second && span[i].end < after + second);
    }
    int totals;
    const struct tr_span_total *total = tr_lane_totals(lane, &totals);
    assert_int_equal(totals, 2);
    assert_int_equal(total[0].count, 2);
    assert_int_equal(total[0].whole, span[0].end - span[0].begin + span[1].end - span[1].begin);
    tr_device_free(device, memory);
    tr_device_destroy(&device);
    tr_timeline_destroy(&timeline);
}

/* They come behind what was enqueued before; the mark behind them is reached when they are done, and waiting
   ends them, too. */
static void copies_go_beside_the_queue(void **state)
{
    enum { FLOATS = 300000, PIECES = 30 };
    tr_device *device;
    void *memory, *other;
    float *numbers;
    (void)state;
    assert_int_equal(create(real, cache, &device), TR_OK);
    assert_int_equal(tr_device_alloc(device, FLOATS * sizeof(float), &memory), TR_OK);
    assert_int_equal(tr_device_alloc(device, FLOATS * sizeof(float), &other), TR_OK);
    assert_int_equal(tr_device_alloc_pinned(device, FLOATS * sizeof(float), (void **)&numbers), TR_OK);
    for (int waits = 0; waits < 2; waits++) {
        memset(numbers, 0, FLOATS * sizeof *numbers);
        for (int i = 0; i < PIECES; i++) {
            const int64_t piece = FLOATS / PIECES, at = i * piece;
            struct tr_op_fill fill = {piece, (float)(i + 1 + waits), (float *)memory + at};
            struct tr_op_fill busy = {FLOATS, (float)i, other};
            assert_int_equal(tr_device_fill(device, &fill), TR_OK);
            assert_int_equal(tr_device_to_host_beside(device, numbers + at, (float *)memory + at,
                                                      (size_t)piece * sizeof(float)),
                             TR_OK);
            assert_int_equal(tr_device_fill(device, &busy), TR_OK);
        }
        tr_event event;
        bool reached = false;
        assert_int_equal(tr_device_record(device, &event), TR_OK);
        if (waits) assert_int_equal(tr_device_wait(device), TR_OK);
        while (!reached) assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
        for (int i = 0; i < FLOATS; i++)
            assert_true(numbers[i] == (float)(i / (FLOATS / PIECES) + 1 + waits));
    }
    tr_device_free_pinned(device, numbers);
    tr_device_free(device, memory);
    tr_device_free(device, other);
    tr_device_destroy(&device);
}

static int make_place(void **state)
{
    (void)state;
    scratch_make(place);
    scratch_join(cache, place, "programs");
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    scratch_remove(place);
    return 0;
}

/* ---- tables ---- */

static tr_device *with_tables;

static void expect_table(const void *table, const void *contents, size_t bytes)
{
    char back[64];
    assert_true(bytes <= sizeof back);
    assert_int_equal(tr_device_to_host(with_tables, back, table, bytes), TR_OK);
    assert_int_equal(tr_device_wait(with_tables), TR_OK);
    assert_memory_equal(back, contents, bytes);
}

static void tables_are_found_by_their_contents(void **state)
{
    (void)state;
    assert_int_equal(create(real, TEST_PROGRAMS, &with_tables), TR_OK);
    expect_tables(with_tables, 500, expect_table);
    tr_device_destroy(&with_tables);
}

/* Those that ask nothing of OpenCL, nor of a processor. */
static int on_cuda(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_lacks_something_is_refused),
        cmocka_unit_test(what_was_built_is_kept_and_damage_mended),
        cmocka_unit_test(other_rules_are_other_programs),
        cmocka_unit_test(tables_are_found_by_their_contents),
        cmocka_unit_test(what_has_no_room_is_said),
        cmocka_unit_test(no_launch_has_more_groups_than_may_be),
        cmocka_unit_test(a_timed_device_tells_what_it_did),
        cmocka_unit_test(copies_go_beside_the_queue),
        cmocka_unit_test(a_lost_device_ends_what_waits_for_it),
    };
    real = &gpu_api_cuda;
    return cmocka_run_group_tests_name("gpu by cuda", tests, make_place, remove_place);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_lacks_something_is_refused),
        cmocka_unit_test(a_wrong_bit_is_named),
        cmocka_unit_test(an_operation_that_flushes_is_named),
        cmocka_unit_test(multiply_adds_that_err_are_replaced),
        cmocka_unit_test(a_compiler_that_errs_in_one_tile_is_found_out),
        cmocka_unit_test(what_was_built_is_kept_and_damage_mended),
        cmocka_unit_test(other_rules_are_other_programs),
        cmocka_unit_test(a_test_without_memory_leaves_nothing),
        cmocka_unit_test(a_kernel_without_its_arguments_is_not_launched),
        cmocka_unit_test(other_devices_are_strangers),
        cmocka_unit_test(what_a_driver_keeps_is_not_kept_twice),
        cmocka_unit_test(a_cache_that_cannot_be_is_none),
        cmocka_unit_test(tables_are_found_by_their_contents),
        cmocka_unit_test(what_has_no_room_is_said),
        cmocka_unit_test(no_launch_has_more_groups_than_may_be),
        cmocka_unit_test(a_timed_device_tells_what_it_did),
        cmocka_unit_test(copies_go_beside_the_queue),
        cmocka_unit_test(a_lost_device_ends_what_waits_for_it),
    };
    if (!opencl_is_here()) return 0;
    if (count > 1 && strcmp(arguments[1], "cuda") == 0) return on_cuda();
    return cmocka_run_group_tests_name("gpu", tests, make_place, remove_place);
}
