/* check-device: whether a device gives the bytes of the reference, for the cases of every operation that the
 * tests have, and how fast its products are. A program of its own, so that it is there where tests are not;
 * gpu_check.py runs it and reads its lines:
 *
 *   check-device equality DEVICE CACHE SECONDS [NUMBER COUNT]
 *       equal OPERATION RUNS | differs OPERATION WHERE | lacks OPERATION | left OPERATION (no time was left)
 *       Of COUNT processes that divide the operations among them it is that of this number, from 0 on.
 *   check-device speed DEVICE CACHE
 *       facts NAME | units COUNT | driver TEXT
 *       speed OPERATION SHAPE GFLOPS
 *   check-device tiles DEVICE CACHE         products in each tile of a GPU, to choose tiles by
 *       tile ROWSxCOLUMNSxDEPTH, then speed as above
 *
 * CACHE is a folder for programs, as `trireme` has it, or "-". Exit code 0: it was carried out, whatever came
 * of it; 1: not, the last line on stderr says why.
 */
#include "device/cases/cases.h"
#include "device/gpu/internal.h"
#include "device/gpu/product.h"
#include "device/operation.h"

#include "base/fail.h"
#include "base/threads/clock.h"
#include "trireme/status.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what cases demand ---- */

enum { WENT_ON, FAILED, SKIPPED };

static jmp_buf out;
static char reason[400];

void check_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(reason, sizeof reason, format, values);
    va_end(values);
    longjmp(out, FAILED);
}

void check_skip(void)
{
    longjmp(out, SKIPPED);
}

/* ---- equality ---- */

static bool has(const tr_device *device, int number)
{
    bool there = false;
#define ASK(op) there = there || (number == TR_OPERATION_##op && device->class->op);
    TR_DEVICE_OPS(ASK)
#undef ASK
    return there;
}

/* Repeats an operation until the first run that differs; counts equal runs. */
static int compare(int number, tr_device *reference, tr_device *device)
{
    const struct case_list *list = &case_lists[number];
    int runs = 0;
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++)
        for (int index = 0;; index++, runs++) {
            struct scene expected, got;
            char difference[256];
            scene_begin(&expected, reference, (enum scene_flavor)flavor, (uint32_t)number, (uint32_t)index);
            if (!list->run(&expected, index)) break;
            scene_begin_like(&got, device, &expected);
            if (!list->run(&got, index)) check_fail("case %d is not there", index);
            if (scene_differs(&expected, &got, difference, sizeof difference))
                check_fail("case %d, flavor %d (%s): %s", index, flavor, expected.name, difference);
            scene_release(&got);
            scene_release(&expected);
        }
    return runs;
}

static void check_equality(tr_device *reference, tr_device *device, double seconds, int number, int count)
{
    double end = tr_clock_seconds() + seconds;
    for (volatile int i = number; i < CASE_LISTS; i += count) {
        const char *name = case_lists[i].operation;
        if (!has(device, i)) {
            printf("lacks %s\n", name);
        } else if (tr_clock_seconds() > end) {
            printf("left %s\n", name);
        } else if (setjmp(out) == WENT_ON) {
            int runs = compare(i, reference, device);
            printf("equal %s %d\n", name, runs);
        } else {
            printf("differs %s %s\n", name, reason);
        }
        fflush(stdout);
    }
}

/* ---- speed ---- */

#define MEASURE_SECONDS 0.4

typedef tr_status (*call_function)(tr_device *device, const void *arguments);

static tr_status call_dense_forward(tr_device *device, const void *arguments)
{
    return tr_device_dense_forward(device, arguments);
}

static tr_status call_dense_backward_weights(tr_device *device, const void *arguments)
{
    return tr_device_dense_backward_weights(device, arguments);
}

static tr_status call_conv_forward(tr_device *device, const void *arguments)
{
    return tr_device_conv_forward(device, arguments);
}

static tr_status call_winograd_forward(tr_device *device, const void *arguments)
{
    return tr_device_winograd_forward(device, arguments);
}

static void must(tr_status status)
{
    if (status == TR_OK) return;
    fprintf(stderr, "%s\n", tr_error_message());
    exit(EXIT_FAILURE);
}

static float *numbers(tr_device *device, int64_t count)
{
    void *memory;
    must(tr_device_alloc(device, (size_t)count * sizeof(float), &memory));
    const struct tr_op_fill fill = {count, 0.01f, memory};
    must(tr_device_fill(device, &fill));
    return memory;
}

/* The best of some rounds, each with enough calls for a measurement. */
static void measure(tr_device *device, int number, const char *shape, call_function call,
                    const void *arguments)
{
    const struct tr_operation *operation = tr_operation_of((enum tr_operation_number)number);
    double work = (double)tr_operation_cost(operation, arguments, false).operations, best = 0;
    int calls = 1;
    must(call(device, arguments)); /* compiles */
    must(tr_device_wait(device));
    for (int round = 0; round < 5;) {
        double begin = tr_clock_seconds();
        for (int i = 0; i < calls; i++) must(call(device, arguments));
        must(tr_device_wait(device));
        double seconds = tr_clock_seconds() - begin;
        if (seconds < MEASURE_SECONDS / 4 && calls < 1 << 14) {
            calls *= 2;
            continue;
        }
        if (work * calls / seconds > best) best = work * calls / seconds;
        if (seconds > 10 * MEASURE_SECONDS) break;
        round++;
    }
    printf("speed %s %s %.1f\n", operation->name, shape, best / 1e9);
    fflush(stdout);
}

/* rows x in x out */
static void measure_dense(tr_device *device, int64_t rows, int64_t in, int64_t out_)
{
    char shape[64];
    int64_t row[] = {0, rows};
    int32_t bound[] = {0, 1};
    float *x = numbers(device, rows * in), *w = numbers(device, in * out_ + out_),
          *y = numbers(device, rows * out_);
    const struct tr_op_dense_forward forward = {
        .rows = rows, .in = in, .out = out_, .x = x, .w = w, .b = NULL, .y = y};
    const struct tr_op_dense_backward_weights weights = {.in = in,
                                                         .out = out_,
                                                         .x = x,
                                                         .dy = y,
                                                         .dw = w,
                                                         .db = w + in * out_,
                                                         .cut = {1, row, 1, bound, in * out_ + out_}};
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)rows, (long long)in, (long long)out_);
    measure(device, TR_OPERATION_dense_forward, shape, call_dense_forward, &forward);
    measure(device, TR_OPERATION_dense_backward_weights, shape, call_dense_backward_weights, &weights);
    tr_device_free(device, x);
    tr_device_free(device, w);
    tr_device_free(device, y);
}

/* Images of size x size with `in` channels, padded, to `out_` by 3 x 3. */
static void measure_convolution(tr_device *device, int64_t images, int32_t size, int32_t in, int32_t out_)
{
    char shape[80];
    float *x = numbers(device, images * size * size * in), *w = numbers(device, (int64_t)9 * in * out_),
          *y = numbers(device, images * size * size * out_);
    const struct tr_op_conv_forward forward = {
        .rows = images,
        .in_c = in,
        .out_c = out_,
        .window = {size, size, size, size, 3, 3, 1, 1, 1, 1, 1, 1},
        .x = x,
        .w = w,
        .y = y,
    };
    const struct tr_op_winograd_forward winograd = {forward};
    snprintf(shape, sizeof shape, "%lldx%dx%dx%d->%d", (long long)images, size, size, in, out_);
    measure(device, TR_OPERATION_conv_forward, shape, call_conv_forward, &forward);
    measure(device, TR_OPERATION_winograd_forward, shape, call_winograd_forward, &winograd);
    tr_device_free(device, x);
    tr_device_free(device, w);
    tr_device_free(device, y);
}

static bool is_gpu_device(const tr_device *device)
{
    return strncmp(device->name, "cuda", 4) == 0 || strncmp(device->name, "opencl", 6) == 0;
}

/* Sizes are typical for a GPU; a processor gets smaller ones. */
static void check_speed(tr_device *device)
{
    bool small = true;
    if (is_gpu_device(device)) {
        const struct gpu_info *info = gpu_info_of(device);
        small = info->processor || info->units < 8;
        printf("facts %s\nunits %u\ndriver %s\n", info->name, info->units, info->driver);
    }
    int64_t n = small ? 256 : 4096;
    measure_dense(device, n, n, n);
    measure_dense(device, small ? 128 : 1024, n, n);
    measure_convolution(device, small ? 4 : 256, 28, 64, 64);
}

static void check_tiles(tr_device *device)
{
    struct gpu *gpu = gpu_of(device);
    const struct gpu_tile *tile;
    for (int i = 0; (tile = gpu_product_tile(&gpu->info, i)); i++) {
        printf("tile %dx%dx%d\n", tile->m, tile->n, tile->k);
        gpu->tile = tile;
        measure_dense(device, 4096, 1024, 2048);                                  /* many groups of each */
        measure_dense(device, tile->m, 2048, tile->n * (int64_t)gpu->info.units); /* one for each unit */
        gpu->tile = NULL;
    }
}

/* ---- */

int main(int count, char **arguments)
{
    bool equality = (count == 5 || count == 7) && strcmp(arguments[1], "equality") == 0;
    int number = count == 7 ? atoi(arguments[5]) : 0, processes = count == 7 ? atoi(arguments[6]) : 1;
    bool speed = count == 4 && strcmp(arguments[1], "speed") == 0;
    bool tiles = count == 4 && strcmp(arguments[1], "tiles") == 0;
    if ((!equality && !speed && !tiles) || number < 0 || processes < 1) {
        fprintf(stderr, "usage: check-device equality DEVICE CACHE SECONDS [NUMBER COUNT] | check-device "
                        "speed|tiles DEVICE CACHE\n");
        return EXIT_FAILURE;
    }
    const struct tr_device_choice choice = {.name = arguments[2],
                                            .cache = strcmp(arguments[3], "-") == 0 ? NULL : arguments[3]};
    tr_device *device, *reference;
    must(tr_device_open(&choice, &device));
    must(tr_device_create("ref", 1, NULL, &reference));
    if (equality)
        check_equality(reference, device, strtod(arguments[4], NULL), number, processes);
    else if (speed)
        check_speed(device);
    else if (is_gpu_device(device))
        check_tiles(device);
    else
        must(tr_fail(TR_EINVAL, "%s has no tiles; name a device of CUDA or OpenCL", device->name));
    tr_device_destroy(&reference);
    tr_device_destroy(&device);
    return EXIT_SUCCESS;
}
