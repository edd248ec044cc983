/* Cases of elementwise operations, dropout, images and the optimizer. */
#include "device/cases/cases.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int counts[] = {0, 1, 3, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 4099, 40000};

bool case_activation_forward(struct scene *s, int index)
{
    int kinds = TR_ACTIVATIONS;
    if (index >= 2 * kinds * LENGTH(counts)) return false;
    bool in_place = index / kinds % 2;
    struct tr_op_activation_forward a = {.count = counts[index / kinds / 2],
                                         .activation = (enum tr_activation)(index % kinds),
                                         .slope = 0.01f};
    scene_name(s, "activation %d of %d%s", a.activation, (int)a.count, in_place ? ", in place" : "");
    float *x = scene_in(s, "x", a.count);
    a.x = x;
    a.y = in_place ? x : scene_out(s, "y", a.count);
    scene_end(s, tr_device_activation_forward(s->device, &a));
    return true;
}

bool case_activation_backward(struct scene *s, int index)
{
    int kinds = TR_ACTIVATIONS;
    if (index >= 2 * kinds * LENGTH(counts)) return false;
    bool in_place = index / kinds % 2;
    struct tr_op_activation_backward a = {
        .count = counts[index / kinds / 2], .activation = (enum tr_activation)(index % kinds), .slope = 0.3f};
    scene_name(s, "activation %d of %d%s", a.activation, (int)a.count, in_place ? ", in place" : "");
    if (tr_activation_reads_input(a.activation))
        a.x = scene_in(s, "x", a.count);
    else
        a.y = scene_in(s, "y", a.count);
    float *dy = scene_in(s, "dy", a.count);
    a.dy = dy;
    a.dx = in_place ? dy : scene_out(s, "dx", a.count);
    scene_end(s, tr_device_activation_backward(s->device, &a));
    return true;
}

bool case_add(struct scene *s, int index)
{
    if (index >= 3 * LENGTH(counts)) return false;
    struct tr_op_add a = {.count = counts[index / 3]};
    static const char *const ways[] = {"", ", into a", ", into b"};
    scene_name(s, "%d%s", (int)a.count, ways[index % 3]);
    float *left = scene_in(s, "a", a.count), *right = scene_in(s, "b", a.count);
    a.a = left;
    a.b = right;
    a.y = index % 3 == 1 ? left : index % 3 == 2 ? right : scene_out(s, "y", a.count);
    scene_end(s, tr_device_add(s->device, &a));
    return true;
}

static const struct {
    int rows, spatial, width;
} factors[] = {{1, 1, 1},  {0, 4, 3},  {3, 1, 700}, {2, 5, 1},    {3, 7, 3},   {2, 6, 16},
               {4, 4, 17}, {2, 9, 40}, {3, 3, 64},  {1, 49, 130}, {5, 2, 100}, {2, 300, 33}};

bool case_multiply(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(factors)) return false;
    struct tr_op_multiply a = {factors[index / 2].rows, factors[index / 2].spatial, factors[index / 2].width};
    const int64_t count = a.rows * a.spatial * a.width;
    scene_name(s, "rows %d, spatial %d, width %d%s", (int)a.rows, (int)a.spatial, (int)a.width,
               index % 2 ? ", in place" : "");
    float *whole = scene_in(s, "a", count);
    a.a = whole;
    a.b = scene_in(s, "b", a.rows * a.width);
    a.y = index % 2 ? whole : scene_out(s, "y", count);
    scene_end(s, tr_device_multiply(s->device, &a));
    return true;
}

bool case_multiply_sum(struct scene *s, int index)
{
    if (index >= LENGTH(factors)) return false;
    struct tr_op_multiply_sum a = {factors[index].rows, factors[index].spatial, factors[index].width};
    const int64_t count = a.rows * a.spatial * a.width;
    scene_name(s, "rows %d, spatial %d, width %d", (int)a.rows, (int)a.spatial, (int)a.width);
    a.a = scene_in(s, "a", count);
    a.b = scene_in(s, "b", count);
    a.y = scene_out(s, "y", a.rows * a.width);
    scene_end(s, tr_device_multiply_sum(s->device, &a));
    return true;
}

bool case_scale(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(counts)) return false;
    struct tr_op_scale a = {.count = counts[index / 2], .factor = index % 4 < 2 ? 1 / 3.0f : -0x1p-60f};
    scene_name(s, "%d by %g%s", (int)a.count, (double)a.factor, index % 2 ? ", in place" : "");
    float *x = scene_in(s, "x", a.count);
    a.x = x;
    a.y = index % 2 ? x : scene_out(s, "y", a.count);
    scene_end(s, tr_device_scale(s->device, &a));
    return true;
}

bool case_fill(struct scene *s, int index)
{
    static const float values[] = {0.0f, -0.0f, 1.25f, 0x1p-149f};
    if (index >= 4 * LENGTH(counts)) return false;
    struct tr_op_fill a = {.count = counts[index / 4], .value = values[index % 4]};
    scene_name(s, "%d of %g", (int)a.count, (double)a.value);
    a.y = scene_out(s, "y", a.count);
    scene_end(s, tr_device_fill(s->device, &a));
    return true;
}

bool case_dropout(struct scene *s, int index)
{
    static const int examples[] = {1, 2, 5, 50, 0}, widths[] = {1, 3, 4, 10, 63, 64, 1024};
    static const float rates[] = {0.5f, 0.75f, 0.0f, 0.1f};
    int32_t offset[64];
    if (index >= 2 * LENGTH(examples) * LENGTH(widths)) return false;
    struct tr_op_dropout a = {.examples = examples[index % LENGTH(examples)],
                              .width = widths[index / 2 / LENGTH(examples)],
                              .rate = rates[index % LENGTH(rates)],
                              .key = {0x12345678u + (uint32_t)index, 0x9abcdef0u},
                              .layer = 3,
                              .first_example = index % 3 ? 0xfffffffeu : 77};
    bool ragged = index % 3 == 1, in_place = index % 2;
    scene_name(s, "examples %d%s, width %d, rate %g%s", (int)a.examples, ragged ? " (sequences)" : "",
               (int)a.width, (double)a.rate, in_place ? ", in place" : "");
    a.offset = ragged ? scene_offsets(s, a.examples, 7, index % 4 == 1, offset) : NULL;
    int64_t rows = ragged ? offset[a.examples] : a.examples;
    float *x = scene_in(s, "x", rows * a.width);
    a.x = x;
    a.y = in_place ? x : scene_out(s, "y", rows * a.width);
    a.scalars = scene_scalars(s);
    scene_end(s, tr_device_dropout(s->device, &a));
    return true;
}

bool case_drop_examples(struct scene *s, int index)
{
    static const int examples[] = {1, 2, 7, 40, 0}, widths[] = {1, 3, 16, 65, 300};
    static const float rates[] = {0.5f, 0.0f, 0.2f};
    int32_t offset[64];
    if (index >= 2 * LENGTH(examples) * LENGTH(widths)) return false;
    struct tr_op_drop_examples a = {.examples = examples[index % LENGTH(examples)],
                                    .width = widths[index / 2 / LENGTH(examples)],
                                    .rate = rates[index % LENGTH(rates)],
                                    .key = {0x2345678u + (uint32_t)index, 0x9abcdefu},
                                    .layer = 5,
                                    .first_example = index % 3 ? 0xfffffffeu : 7};
    const bool ragged = index % 3 == 1, in_place = index % 2;
    scene_name(s, "examples %d%s, width %d, rate %g%s", (int)a.examples, ragged ? " (sequences)" : "",
               (int)a.width, (double)a.rate, in_place ? ", in place" : "");
    a.offset = ragged ? scene_offsets(s, a.examples, 7, index % 4 == 1, offset) : NULL;
    const int64_t rows = ragged ? offset[a.examples] : a.examples;
    float *x = scene_in(s, "x", rows * a.width);
    a.x = x;
    a.y = in_place ? x : scene_out(s, "y", rows * a.width);
    a.scalars = scene_scalars(s);
    scene_end(s, tr_device_drop_examples(s->device, &a));
    return true;
}

static const struct {
    int rows, in_h, in_w, out_h, out_w, channels, pad;
    bool random, flip;
} image_shapes[] = {
    {1, 28, 28, 28, 28, 1, 0, false, false}, {13, 28, 28, 28, 28, 1, 2, true, false},
    {7, 8, 9, 6, 5, 3, 0, false, false},     {9, 8, 9, 6, 5, 3, 1, true, true},
    {5, 4, 4, 7, 8, 1, 3, true, true},       {3, 5, 4, 8, 7, 2, 0, false, false},
    {17, 32, 32, 32, 32, 3, 4, true, true},  {4, 6, 17, 6, 17, 4, 2, true, true},
    {6, 3, 33, 3, 33, 5, 1, true, false},    {0, 4, 4, 4, 4, 1, 1, true, true},
    {11, 1, 1, 1, 1, 1, 0, true, true},      {8, 7, 7, 6, 7, 6, 0, true, true},
    {4, 3, 6, 2, 5, 16, 0, true, true},      {5, 3, 6, 2, 5, 17, 1, true, true},
};

#define IMAGES 6

bool case_load_images(struct scene *s, int index)
{
    if (index >= LENGTH(image_shapes)) return false;
    struct tr_op_load_images a = {.rows = image_shapes[index].rows,
                                  .in_h = image_shapes[index].in_h,
                                  .in_w = image_shapes[index].in_w,
                                  .out_h = image_shapes[index].out_h,
                                  .out_w = image_shapes[index].out_w,
                                  .channels = image_shapes[index].channels,
                                  .pad = image_shapes[index].pad,
                                  .random = image_shapes[index].random,
                                  .flip = image_shapes[index].flip,
                                  .scale = {1 / 255.0f, 0.02f, -3, 1},
                                  .shift = {-0.5f, 0, 1e-3f, -0.0f},
                                  .key = {5, 17u * (uint32_t)index},
                                  .first_example = 1000};
    scene_name(s, "rows %d, %dx%dx%d from %dx%d, pad %d%s%s", (int)a.rows, a.out_h, a.out_w, a.channels,
               a.in_h, a.in_w, a.pad, a.random ? ", random" : "", a.flip ? ", flip" : "");
    uint8_t source[IMAGES * 32 * 32 * 3];
    int64_t size = (int64_t)IMAGES * a.in_h * a.in_w * a.channels, chosen[32];
    assert_true(size <= (int64_t)sizeof source && a.rows <= LENGTH(chosen));
    for (int64_t i = 0; i < size; i++) source[i] = (uint8_t)(i * 2654435761u >> 11);
    for (int64_t r = 0; r < a.rows; r++) chosen[r] = r * 5 % IMAGES;
    a.source = scene_data(s, "source", (size_t)size, 1, source);
    a.index = scene_data(s, "index", (size_t)a.rows * sizeof *chosen, sizeof *chosen, chosen);
    a.y = scene_out(s, "y", a.rows * a.out_h * a.out_w * a.channels);
    a.scalars = a.random ? scene_scalars(s) : NULL;
    scene_end(s, tr_device_load_images(s->device, &a));
    return true;
}

bool case_load_labels(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(image_shapes)) return false;
    const bool in_order = index >= LENGTH(image_shapes);
    index %= LENGTH(image_shapes);
    struct tr_op_load_labels a = {.rows = image_shapes[index].rows,
                                  .in_h = image_shapes[index].in_h,
                                  .in_w = image_shapes[index].in_w,
                                  .out_h = image_shapes[index].out_h,
                                  .out_w = image_shapes[index].out_w,
                                  .pad = image_shapes[index].pad,
                                  .random = image_shapes[index].random,
                                  .flip = image_shapes[index].flip,
                                  .key = {5, 17u * (uint32_t)index},
                                  .first_example = 1000};
    enum { MOST = 17 };
    if (in_order && a.rows > IMAGES) a.rows = IMAGES;
    scene_name(s, "rows %d, %dx%d from %dx%d, pad %d%s%s%s", (int)a.rows, a.out_h, a.out_w, a.in_h, a.in_w,
               a.pad, a.random ? ", random" : "", a.flip ? ", flip" : "", in_order ? ", in order" : "");
    int32_t source[IMAGES * 32 * 32];
    int64_t size = (int64_t)IMAGES * a.in_h * a.in_w, chosen[MOST];
    assert_true(size <= LENGTH(source) && a.rows <= LENGTH(chosen));
    for (int64_t i = 0; i < size; i++) source[i] = (int32_t)(i * 2654435761u >> 11) % 23 - 1;
    for (int64_t r = 0; r < a.rows; r++) chosen[r] = r * 5 % IMAGES;
    a.source = scene_data(s, "source", (size_t)size * sizeof *source, sizeof *source, source);
    a.index =
        in_order ? NULL : scene_data(s, "index", (size_t)a.rows * sizeof *chosen, sizeof *chosen, chosen);
    a.y = (int32_t *)(void *)scene_out(s, "y", a.rows * a.out_h * a.out_w);
    a.scalars = a.random ? scene_scalars(s) : NULL;
    scene_end(s, tr_device_load_labels(s->device, &a));
    return true;
}

/* Views that shift, mirror, turn, shrink and look far away, with erased parts at and over the edges. */
static void make_views(int64_t rows, int in_h, int in_w, struct tr_image_view *view)
{
    static const struct tr_image_view kinds[] = {
        {.down_i = 65536, .right_j = 65536, .brightness = 1, .contrast = 1, .saturation = 1},
        {.down = -2 * 65536,
         .right = 3 * 65536,
         .down_i = 65536,
         .right_j = -65536,
         .brightness = 0.7f,
         .contrast = 1.3f,
         .saturation = 0.4f,
         .top = 1,
         .left = 0,
         .height = 2,
         .width = 3},
        {.down = 12345,
         .right = -54321,
         .down_i = 61000,
         .down_j = -23000,
         .right_i = 23000,
         .right_j = 61000,
         .brightness = 1.6f,
         .contrast = 0.3f,
         .saturation = 2,
         .top = 2,
         .left = 2,
         .height = 40,
         .width = 1},
        {.down = -(INT64_C(1) << 40),
         .right = 7,
         .down_i = 65536,
         .right_j = 65536,
         .brightness = 1,
         .contrast = 1,
         .saturation = 1},
        {.down = 32768,
         .right = 32767,
         .down_i = -131072,
         .down_j = 1,
         .right_i = -1,
         .right_j = 70000,
         .brightness = 0,
         .contrast = 0,
         .saturation = 0,
         .height = 1,
         .width = 1},
        {.down = -1,
         .right = -65536,
         .down_i = 30001,
         .down_j = 5,
         .right_i = -7,
         .right_j = 40000,
         .brightness = 1.0625f,
         .contrast = 0.99f,
         .saturation = 1.01f},
    };
    for (int64_t r = 0; r < rows; r++) {
        view[r] = kinds[r % LENGTH(kinds)];
        if (r % LENGTH(kinds) == 4) view[r].down += (int64_t)(in_h - 1) << 16;
        if (r % LENGTH(kinds) == 1) view[r].right += (int64_t)(in_w - 1) << 16;
    }
}

bool case_augment_images(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(image_shapes)) return false;
    const bool numbers = index >= LENGTH(image_shapes);
    index %= LENGTH(image_shapes);
    struct tr_op_augment_images a = {.rows = image_shapes[index].rows,
                                     .in_h = image_shapes[index].in_h,
                                     .in_w = image_shapes[index].in_w,
                                     .out_h = image_shapes[index].out_h,
                                     .out_w = image_shapes[index].out_w,
                                     .channels = image_shapes[index].channels,
                                     .tint = index % 3 > 0,
                                     .least = numbers && index % 2 ? -0.75f : 0,
                                     .most = numbers ? 1 : 255,
                                     .erased = numbers ? 0.5f : 127,
                                     .scale = {1 / 255.0f, 0.02f, -3, 1},
                                     .shift = {-0.5f, 0, 1e-3f, -0.0f}};
    scene_name(s, "rows %d, %dx%dx%d from %dx%d%s%s", (int)a.rows, a.out_h, a.out_w, a.channels, a.in_h,
               a.in_w, a.tint ? ", tint" : "", numbers ? ", of floats" : "");
    uint8_t source[IMAGES * 32 * 32 * 3];
    int64_t size = (int64_t)IMAGES * a.in_h * a.in_w * a.channels, chosen[32];
    struct tr_image_view view[32];
    assert_true(size <= (int64_t)sizeof source && a.rows <= LENGTH(chosen));
    for (int64_t i = 0; i < size; i++) source[i] = (uint8_t)(i * 2654435761u >> 11);
    for (int64_t r = 0; r < a.rows; r++) chosen[r] = r * 5 % IMAGES;
    make_views(a.rows, a.in_h, a.in_w, view);
    if (numbers)
        a.numbers = scene_in(s, "numbers", size);
    else
        a.source = scene_data(s, "source", (size_t)size, 1, source);
    a.index = scene_data(s, "index", (size_t)a.rows * sizeof *chosen, sizeof *chosen, chosen);
    a.view = scene_data(s, "view", (size_t)a.rows * sizeof *view, sizeof *view, view);
    a.y = scene_out(s, "y", a.rows * a.out_h * a.out_w * a.channels);
    scene_end(s, tr_device_augment_images(s->device, &a));
    return true;
}

bool case_augment_labels(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(image_shapes)) return false;
    const bool in_order = index >= LENGTH(image_shapes);
    index %= LENGTH(image_shapes);
    struct tr_op_augment_labels a = {.rows = image_shapes[index].rows,
                                     .in_h = image_shapes[index].in_h,
                                     .in_w = image_shapes[index].in_w,
                                     .out_h = image_shapes[index].out_h,
                                     .out_w = image_shapes[index].out_w};
    enum { MOST = 17 };
    if (in_order && a.rows > IMAGES) a.rows = IMAGES;
    scene_name(s, "rows %d, %dx%d from %dx%d%s", (int)a.rows, a.out_h, a.out_w, a.in_h, a.in_w,
               in_order ? ", in order" : "");
    int32_t source[IMAGES * 32 * 32];
    int64_t size = (int64_t)IMAGES * a.in_h * a.in_w, chosen[MOST];
    struct tr_image_view view[MOST];
    assert_true(size <= LENGTH(source) && a.rows <= LENGTH(chosen));
    for (int64_t i = 0; i < size; i++) source[i] = (int32_t)(i * 2654435761u >> 11) % 23 - 1;
    for (int64_t r = 0; r < a.rows; r++) chosen[r] = r * 5 % IMAGES;
    make_views(a.rows, a.in_h, a.in_w, view);
    a.source = scene_data(s, "source", (size_t)size * sizeof *source, sizeof *source, source);
    a.index =
        in_order ? NULL : scene_data(s, "index", (size_t)a.rows * sizeof *chosen, sizeof *chosen, chosen);
    a.view = scene_data(s, "view", (size_t)a.rows * sizeof *view, sizeof *view, view);
    a.y = (int32_t *)(void *)scene_out(s, "y", a.rows * a.out_h * a.out_w);
    scene_end(s, tr_device_augment_labels(s->device, &a));
    return true;
}

bool case_mix_images(struct scene *s, int index)
{
    static const struct {
        int rows, height, width, channels;
    } shapes[] = {{5, 4, 6, 1}, {9, 7, 5, 3}, {0, 2, 2, 1}, {3, 1, 1, 5}};
    static const struct tr_image_mix kinds[] = {
        {1, 0, 0, 0, 0}, {0.3f, 0, 0, 0, 0}, {1, 1, 2, 2, 3}, {0.75f, 0, 0, 1, 9}, {0, 0, 0, 0, 0}};
    if (index >= 2 * LENGTH(shapes)) return false;
    const bool in_place = index >= LENGTH(shapes);
    index %= LENGTH(shapes);
    struct tr_op_mix_images a = {.rows = shapes[index].rows,
                                 .height = shapes[index].height,
                                 .width = shapes[index].width,
                                 .channels = shapes[index].channels};
    struct tr_image_mix mix[9];
    const int64_t count = a.rows * a.height * a.width * a.channels;
    scene_name(s, "rows %d, %dx%dx%d%s", (int)a.rows, a.height, a.width, a.channels,
               in_place ? ", in place" : "");
    for (int64_t r = 0; r < a.rows; r++) mix[r] = kinds[r % LENGTH(kinds)];
    float *x = scene_in(s, "x", count);
    a.x = x;
    a.z = scene_in(s, "z", count);
    a.mix = scene_data(s, "mix", (size_t)a.rows * sizeof *mix, sizeof *mix, mix);
    a.y = in_place ? x : scene_out(s, "y", count);
    scene_end(s, tr_device_mix_images(s->device, &a));
    return true;
}

/* Words of any kind; some rows are taken twice, those of a running text overlap. */
bool case_gather_rows(struct scene *s, int index)
{
    enum { STORED = 11, MOST_ROWS = 20, LONGEST = 9 };
    static const struct {
        int rows, width, stride; /* width 0: lengths differ */
    } shapes[] = {{13, 1, 1}, {5, 0, 0}, {20, 33, 7}, {17, 0, 0},
                  {0, 4, 4},  {1, 1, 1}, {7, 5, 5},   {9, 300, 300}};
    if (index >= LENGTH(shapes)) return false;
    struct tr_op_gather_rows a = {
        .rows = shapes[index].rows, .width = shapes[index].width, .stride = shapes[index].stride};
    int64_t chosen[MOST_ROWS], start[STORED + 1] = {0}, words = (STORED - 1) * a.stride + a.width;
    int32_t offset[MOST_ROWS + 1] = {0};
    scene_name(s, "rows %d, width %d, stride %d", (int)a.rows, (int)a.width, (int)a.stride);
    for (int i = 0; i < STORED; i++) start[i + 1] = start[i] + i * 5 % LONGEST + (i == 3 ? 700 : 0);
    for (int64_t r = 0; r < a.rows; r++) {
        chosen[r] = (r * 7 + 3) % STORED;
        offset[r + 1] = offset[r] + (int32_t)(start[chosen[r] + 1] - start[chosen[r]]);
    }
    a.index = scene_data(s, "index", (size_t)a.rows * sizeof *chosen, sizeof *chosen, chosen);
    if (a.width == 0) {
        words = start[STORED];
        a.start = scene_data(s, "start", sizeof start, sizeof *start, start);
        a.offset = scene_data(s, "offset", (size_t)(a.rows + 1) * sizeof *offset, sizeof *offset, offset);
    }
    a.x = scene_indices(s, "x", words, INT32_MAX);
    a.y = (int32_t *)(void *)scene_out(s, "y", a.start ? offset[a.rows] : a.rows * a.width);
    scene_end(s, tr_device_gather_rows(s->device, &a));
    return true;
}

/* ---- updates ---- */

struct tr_op_update case_update_options(enum tr_rule rule, int options, int64_t count)
{
    return (struct tr_op_update){.count = count,
                                 .rule = rule,
                                 .nesterov = options & 1,
                                 .clip_norm = options & 2,
                                 .rate_factor = options & 8 ? 0.3f : 1,
                                 .beta1 = 0.9f,
                                 .beta2 = 0.999f,
                                 .epsilon = 1e-8f,
                                 .decay = 0.01f,
                                 .l2 = options & 4 ? 1e-4f : 0,
                                 .clip_value = options & 8 ? 0.25f : 0};
}

void case_update_name(struct scene *s, const struct tr_op_update *a, int options, const char *before)
{
    static const char *const rules[CASE_RULES] = {"sgd",  "momentum", "adam",    "adamw",
                                                  "lion", "rmsprop",  "adagrad", "statistic"};
    scene_name(s, "%s%s of %d%s%s%s%s%s%s", before, rules[a->rule], (int)a->count,
               options & CASE_HELD ? ", held" : "",
               a->nesterov ? a->rule == TR_RULE_RMSPROP                            ? ", momentum"
                             : a->rule == TR_RULE_ADAM || a->rule == TR_RULE_ADAMW ? ", amsgrad"
                                                                                   : ", nesterov"
                           : "",
               a->clip_norm ? ", clip_norm" : "", a->l2 > 0 ? ", l2" : "",
               a->clip_value > 0 ? ", clip_value" : "", options & 16 ? ", ema" : "");
}

void case_update_state(struct scene *s, int options, struct tr_op_update *a)
{
    static const struct tr_step_scalars holds = {.rate = 1, .adam_rate = 1, .adam_correction = 1, .held = 1};
    const bool moments = a->rule == TR_RULE_ADAM || a->rule == TR_RULE_ADAMW;
    const bool second = moments || a->rule == TR_RULE_RMSPROP || a->rule == TR_RULE_ADAGRAD;
    const bool first = moments || a->rule == TR_RULE_LION || a->rule == TR_RULE_MOMENTUM ||
                       (a->rule == TR_RULE_RMSPROP && options & 1);
    a->w = scene_in(s, "w", a->count);
    a->m = first ? scene_in(s, "m", a->count) : NULL;
    a->v = second ? scene_positive(s, "v", a->count) : NULL;
    a->vmax = moments && options & 1 ? scene_positive(s, "vmax", a->count) : NULL;
    a->ema = options & 16 ? scene_in(s, "ema", a->count) : NULL;
    a->scalars = options & CASE_HELD ? scene_data(s, "scalars", sizeof holds, sizeof(uint32_t), &holds)
                                     : scene_scalars(s);
}

bool case_update(struct scene *s, int index)
{
    if (index >= 33 * CASE_RULES) return false;
    int options = index / CASE_RULES;
    const int64_t count = counts[(index * 3 + (options == 32 ? 16 : options)) % LENGTH(counts)];
    if (options == 32) options = 16 | CASE_HELD; /* the last of each rule */
    struct tr_op_update a = case_update_options((enum tr_rule)(index % CASE_RULES), options, count);
    case_update_name(s, &a, options, "");
    a.grad = scene_in(s, "grad", a.count);
    case_update_state(s, options, &a);
    scene_end(s, tr_device_update(s->device, &a));
    return true;
}

bool case_advance(struct scene *s, int index)
{
    static const struct tr_step_scalars holds = {.rate = 1, .held = 1};
    if (index >= 4 * LENGTH(counts)) return false;
    const int options = index / LENGTH(counts); /* 0: no scalars; 3: held */
    struct tr_op_advance a = {.count = counts[index % LENGTH(counts)],
                              .rate_factor = options == 2 ? 0.3f : 1,
                              .factor = index % 2 ? -1.5f : 0.75f,
                              .decay = options == 1 ? 0.01f : 0};
    float squares[2] = {index % 5 == 3 ? 0 : 3.5f, index % 7 == 4 ? 0 : 1.25f};
    scene_name(s, "%d, options %d%s", (int)a.count, options, index % 3 ? ", squares" : "");
    a.direction = scene_in(s, "direction", a.count);
    if (index % 3) a.squares = scene_data(s, "squares", sizeof squares, sizeof *squares, squares);
    a.w = scene_in(s, "w", a.count);
    if (options > 1) a.ema = scene_in(s, "ema", a.count);
    if (options == 3)
        a.scalars = scene_data(s, "scalars", sizeof holds, sizeof(uint32_t), &holds);
    else if (options > 0)
        a.scalars = scene_scalars(s);
    scene_end(s, tr_device_advance(s->device, &a));
    return true;
}

bool case_sum_squares(struct scene *s, int index)
{
    static const int sizes[] = {0, 1, 2, 15, 16, 17, 33, 4095, 4096, 4097, 8192, 12345, 70001};
    if (index >= LENGTH(sizes)) return false;
    struct tr_op_sum_squares a = {.count = sizes[index]};
    scene_name(s, "%d", (int)a.count);
    a.x = scene_in(s, "x", a.count);
    a.out = scene_out(s, "out", 1);
    scene_end(s, tr_device_sum_squares(s->device, &a));
    return true;
}

bool case_clip_scale(struct scene *s, int index)
{
    static const int sizes[] = {0, 1, 5, 16, 40, 5000};
    static const float norms[] = {0x1p-10f, 1.5f, 1e30f};
    if (index >= LENGTH(sizes) * LENGTH(norms)) return false;
    struct tr_op_clip_scale a = {.count = sizes[index / LENGTH(norms)],
                                 .max_norm = norms[index % LENGTH(norms)]};
    scene_name(s, "%d, largest norm %g", (int)a.count, (double)a.max_norm);
    a.squares = scene_positive(s, "squares", a.count);
    a.norm = scene_out(s, "norm", 1);
    a.scalars = scene_scalars(s);
    scene_end(s, tr_device_clip_scale(s->device, &a));
    return true;
}

/* Numbers that are all finite, or the last one is not, or any; or all are, and a parameter of before is not.
 */
bool case_hold(struct scene *s, int index)
{
    static const int sizes[] = {1, 2, 600};
    static const float last[] = {3, INFINITY, -INFINITY, NAN};
    static const struct tr_step_scalars poisoned = {.rate = 1, .nonfinite = 1};
    if (index >= LENGTH(sizes) * (LENGTH(last) + 2)) return false;
    int kind = index / LENGTH(sizes);
    struct tr_op_hold a = {.count = sizes[index % LENGTH(sizes)]};
    float numbers[600] = {0};
    scene_name(s, "%d numbers, kind %d", (int)a.count, kind);
    if (kind < LENGTH(last)) {
        numbers[a.count - 1] = last[kind];
        a.x = scene_data(s, "x", (size_t)a.count * sizeof *numbers, sizeof *numbers, numbers);
    } else {
        a.x = scene_in(s, "x", a.count);
    }
    a.scalars = kind > LENGTH(last) ? scene_data(s, "scalars", sizeof poisoned, sizeof(uint32_t), &poisoned)
                                    : scene_scalars(s);
    scene_end(s, tr_device_hold(s->device, &a));
    return true;
}

static const struct {
    int64_t rows;
    int32_t parts;
    int64_t width[TR_JOIN_PARTS];
} joined[] = {
    {1, 1, {1}},       {3, 2, {1, 5}},    {7, 2, {16, 17}}, {5, 3, {4, 33, 2}},
    {4, 3, {0, 5, 0}}, {40, 2, {64, 32}}, {0, 2, {3, 3}},   {9, TR_JOIN_PARTS, {1, 2, 3, 4, 5, 6, 7, 8}},
};

static int64_t all_of(int index)
{
    int64_t all = 0;
    for (int32_t i = 0; i < joined[index].parts; i++) all += joined[index].width[i];
    return all;
}

bool case_join_columns(struct scene *s, int index)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    if (index >= 2 * LENGTH(joined)) return false;
    struct tr_op_join_columns a = {.rows = joined[index / 2].rows, .parts = joined[index / 2].parts};
    scene_name(s, "rows %d, %d parts%s", (int)a.rows, (int)a.parts, index % 2 ? ", some zeros" : "");
    for (int32_t i = 0; i < a.parts; i++) {
        a.width[i] = joined[index / 2].width[i];
        if (index % 2 == 0 || i % 2) a.x[i] = scene_in(s, names[i], a.rows * a.width[i]);
    }
    a.y = scene_out(s, "y", a.rows * all_of(index / 2));
    scene_end(s, tr_device_join_columns(s->device, &a));
    return true;
}

bool case_split_columns(struct scene *s, int index)
{
    static const char *const names[] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"};
    if (index >= 2 * LENGTH(joined)) return false;
    struct tr_op_split_columns a = {.rows = joined[index / 2].rows, .parts = joined[index / 2].parts};
    scene_name(s, "rows %d, %d parts%s", (int)a.rows, (int)a.parts, index % 2 ? ", not all wanted" : "");
    for (int32_t i = 0; i < a.parts; i++) {
        a.width[i] = joined[index / 2].width[i];
        a.y[i] = index % 2 && i % 2 ? NULL : scene_out(s, names[i], a.rows * a.width[i]);
    }
    a.x = scene_in(s, "x", a.rows * all_of(index / 2));
    scene_end(s, tr_device_split_columns(s->device, &a));
    return true;
}
