/* Cases of convolutions and pools. */
#include "device/cases/cases.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left
 */
const struct named_window case_windows[] = {
    {"1x1", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}},
    {"2x2 stride 2", {8, 6, 4, 3, 2, 2, 2, 2, 1, 1, 0, 0}},
    {"2x2 stride 2, odd image", {7, 5, 3, 2, 2, 2, 2, 2, 1, 1, 0, 0}},
    {"3x3 same", {5, 7, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"3x3 valid", {6, 9, 4, 7, 3, 3, 1, 1, 1, 1, 0, 0}},
    {"3x3 same, stride 2", {9, 10, 5, 5, 3, 3, 2, 2, 1, 1, 1, 0}},
    {"5x5 same", {9, 6, 9, 6, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"5x5 on a smaller image", {3, 2, 3, 2, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"2x3, strides 1 and 3", {5, 11, 4, 4, 2, 3, 1, 3, 1, 1, 0, 1}},
    {"stride above kernel", {11, 8, 4, 3, 1, 2, 3, 3, 1, 1, 0, 0}},
    {"3x3, dilation 2, same", {7, 8, 7, 8, 3, 3, 1, 1, 2, 2, 2, 2}},
    {"3x2, dilations 1 and 3, stride 2", {10, 12, 4, 5, 3, 2, 2, 2, 1, 3, 0, 0}},
    {"whole image", {4, 5, 1, 1, 4, 5, 1, 1, 1, 1, 0, 0}},
    {"1x7 same", {1, 13, 1, 13, 1, 7, 1, 1, 1, 1, 0, 3}},
    {"16x16", {17, 18, 2, 3, 16, 16, 1, 1, 1, 1, 0, 0}},
    {"1x1, stride 2", {7, 10, 4, 5, 1, 1, 2, 2, 1, 1, 0, 0}},
    /* some windows of these lie outside the image as a whole */
    {"1x1, stride 3, beyond", {4, 6, 3, 2, 1, 1, 3, 3, 1, 1, 0, 0}},
    {"1x1, pad 1", {3, 4, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"3x3, dilation 3, more below", {4, 4, 9, 9, 3, 3, 1, 1, 3, 3, 3, 3}},
    {"2x2 full, stride 2", {5, 5, 5, 5, 2, 2, 2, 2, 1, 1, 2, 3}},
    {"1x1 on 6x7", {6, 7, 6, 7, 1, 1, 1, 1, 1, 1, 0, 0}},
    /* of some convolutions only */
    {"1x1, strides 1 and 2", {6, 9, 6, 5, 1, 1, 1, 2, 1, 1, 0, 0}},
    {"1x1, strides 2 and 1", {9, 5, 5, 5, 1, 1, 2, 1, 1, 1, 0, 0}},
};
#define FEW 2
const int case_window_count = LENGTH(case_windows) - FEW;
const int case_pool_window_count = LENGTH(case_windows) - FEW - 5;

static const struct {
    int in_c, out_c, rows;
} conv_shapes[] = {
    {1, 1, 1},    {1, 32, 5},  {3, 16, 2},  {5, 17, 14}, {16, 16, 3},
    {17, 33, 15}, {2, 65, 13}, {32, 64, 1}, {33, 5, 29},
};

/* Every window with several shapes, such that large windows do not meet the largest shapes. */
static bool conv_case(int index, int *window, int *in_c, int *out_c, int *rows)
{
    const int few = index - 4 * case_window_count;
    if (few >= 2 * FEW) return false;
    *window = few < 0 ? index % case_window_count : case_window_count + few % FEW;
    int shape = few < 0 ? (index * 2 + index / case_window_count) % LENGTH(conv_shapes)
                        : LENGTH(conv_shapes) - 1 - few;
    *in_c = conv_shapes[shape].in_c;
    *out_c = conv_shapes[shape].out_c;
    *rows = conv_shapes[shape].rows;
    return true;
}

static int64_t image_in(const struct tr_sliding_window *w)
{
    return (int64_t)w->in_h * w->in_w;
}

static int64_t image_out(const struct tr_sliding_window *w)
{
    return (int64_t)w->out_h * w->out_w;
}

static int64_t kernel(const struct tr_sliding_window *w)
{
    return (int64_t)w->kernel_h * w->kernel_w;
}

/* All definitions of a convolution take the same arguments; an output sees `each` of the inputs' channels. */
static struct tr_op_conv_forward set_conv_forward(struct scene *s, int index,
                                                  const struct named_window *window, int in_c, int each,
                                                  int out_c, int rows)
{
    struct tr_op_conv_forward a = {.rows = rows,
                                   .in_c = in_c,
                                   .out_c = out_c,
                                   .window = window->window,
                                   .activation = (enum tr_activation)(index % TR_ACT_GELU),
                                   .slope = 0.125f};
    scene_name(s, "%s, rows %d, channels %d to %d, activation %d", window->name, rows, in_c, out_c,
               a.activation);
    a.x = scene_in(s, "x", rows * image_in(&a.window) * in_c);
    a.w = scene_in(s, "w", kernel(&a.window) * each * out_c);
    a.b = index % 3 == 1 ? NULL : scene_in(s, "b", out_c);
    a.y = scene_out(s, "y", rows * image_out(&a.window) * out_c);
    return a;
}

static struct tr_op_conv_backward_data set_conv_backward_data(struct scene *s,
                                                              const struct named_window *window, int in_c,
                                                              int each, int out_c, int rows)
{
    struct tr_op_conv_backward_data a = {
        .rows = rows, .in_c = in_c, .out_c = out_c, .window = window->window};
    scene_name(s, "%s, rows %d, channels %d to %d", window->name, rows, in_c, out_c);
    a.dy = scene_in(s, "dy", rows * image_out(&a.window) * out_c);
    a.w = scene_in(s, "w", kernel(&a.window) * each * out_c);
    a.dx = scene_out(s, "dx", rows * image_in(&a.window) * in_c);
    return a;
}

static struct tr_op_conv_backward_weights set_conv_backward_weights(struct scene *s, int index,
                                                                    const struct named_window *window,
                                                                    int in_c, int out_c, int cut)
{
    const int rows = (int)scene_cut_rows(cut);
    struct tr_op_conv_backward_weights a = {
        .in_c = in_c, .out_c = out_c, .window = window->window, .cut = scene_cut(s, cut)};
    scene_name(s, "%s, cut %d of %d rows, channels %d to %d", window->name, cut, rows, in_c, out_c);
    a.x = scene_in(s, "x", rows * image_in(&a.window) * in_c);
    a.dy = scene_in(s, "dy", rows * image_out(&a.window) * out_c);
    a.dw = scene_nodes(s, "dw", kernel(&a.window) * in_c * out_c, &a.cut);
    a.db = index % 4 == 2 ? NULL : scene_nodes(s, "db", out_c, &a.cut);
    return a;
}

bool case_conv_forward(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_conv_forward a = set_conv_forward(s, index, &case_windows[window], in_c, in_c, out_c, rows);
    scene_end(s, tr_device_conv_forward(s->device, &a));
    return true;
}

bool case_conv_backward_data(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_conv_backward_data a =
        set_conv_backward_data(s, &case_windows[window], in_c, in_c, out_c, rows);
    scene_end(s, tr_device_conv_backward_data(s->device, &a));
    return true;
}

bool case_conv_backward_weights(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_conv_backward_weights a = set_conv_backward_weights(
        s, index, &case_windows[window], in_c, out_c, (index + index / case_window_count) % scene_cuts());
    scene_end(s, tr_device_conv_backward_weights(s->device, &a));
    return true;
}

/* ---- convolutions by groups ---- */

static const struct {
    int groups, in, out, rows; /* channels of a group */
} group_shapes[] = {
    {1, 3, 2, 2}, {5, 1, 1, 3},  {16, 1, 1, 2}, {19, 1, 1, 1},  {70, 1, 1, 2}, {3, 1, 2, 4},  {2, 5, 3, 2},
    {4, 4, 4, 3}, {2, 3, 17, 1}, {1, 9, 40, 1}, {130, 1, 1, 1}, {2, 33, 1, 2}, {33, 1, 1, 2},
};

/* What the fast ways of depthwise kernels end with: many pixels, borders, strides, both kinds of tails. */
static const struct named_window group_windows[] = {
    {"3x3 same, wide", {4, 23, 4, 23, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"3x3, stride 2, wide", {7, 31, 4, 16, 3, 3, 2, 2, 1, 1, 1, 1}},
    {"5x5 same, wide", {6, 22, 6, 22, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"5x5, stride 2, wide", {9, 29, 5, 15, 5, 5, 2, 2, 1, 1, 2, 2}},
    {"7x7 same, wide", {8, 21, 8, 21, 7, 7, 1, 1, 1, 1, 3, 3}},
    {"9x7, stride 3", {11, 20, 3, 6, 9, 7, 2, 3, 1, 1, 1, 1}},
    {"3x3, dilation 2 below", {9, 12, 9, 12, 3, 3, 1, 1, 2, 1, 2, 1}},
    {"3x3, stride 2, no pads", {8, 26, 3, 12, 3, 3, 2, 2, 1, 1, 0, 0}},
    {"5x5, stride 2, pads of 1", {8, 27, 3, 12, 5, 5, 2, 2, 1, 1, 1, 1}},
    {"3x3, stride 2 below", {9, 20, 5, 20, 3, 3, 2, 1, 1, 1, 1, 1}},
    {"3x3, a column", {5, 1, 5, 1, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"1x3, long", {1, 37, 1, 37, 1, 3, 1, 1, 1, 1, 0, 1}},
    {"5x3, pads beyond the kernel", {4, 9, 5, 15, 5, 3, 1, 1, 1, 1, 3, 4}},
};
static const int depthwise_shapes[] = {2, 4, 12, 3, 10, 1}; /* of group_shapes */

static bool group_case(int index, const struct named_window **window, int *groups, int *in_c, int *out_c,
                       int *rows)
{
    const int windows = case_window_count + LENGTH(group_windows);
    if (index >= 4 * windows) return false;
    const int at = index % windows;
    const int shape = at < case_window_count
                          ? (index * 5 + index / windows) % (int)LENGTH(group_shapes)
                          : depthwise_shapes[(at + 2 * (index / windows)) % (int)LENGTH(depthwise_shapes)];
    *window = at < case_window_count ? &case_windows[at] : &group_windows[at - case_window_count];
    *groups = group_shapes[shape].groups;
    *in_c = *groups * group_shapes[shape].in;
    *out_c = *groups * group_shapes[shape].out;
    *rows = group_shapes[shape].rows;
    return true;
}

bool case_grouped_conv_forward(struct scene *s, int index)
{
    const struct named_window *window;
    struct tr_op_grouped_conv_forward a = {.conv.rows = 0};
    int groups, in_c, out_c, rows;
    if (!group_case(index, &window, &groups, &in_c, &out_c, &rows)) return false;
    a.conv = set_conv_forward(s, index, window, in_c, in_c / groups, out_c, rows);
    a.groups = groups;
    scene_end(s, tr_device_grouped_conv_forward(s->device, &a));
    return true;
}

bool case_grouped_conv_backward_data(struct scene *s, int index)
{
    const struct named_window *window;
    struct tr_op_grouped_conv_backward_data a = {.conv.rows = 0};
    int groups, in_c, out_c, rows;
    if (!group_case(index, &window, &groups, &in_c, &out_c, &rows)) return false;
    a.conv = set_conv_backward_data(s, window, in_c, in_c / groups, out_c, rows);
    a.groups = groups;
    scene_end(s, tr_device_grouped_conv_backward_data(s->device, &a));
    return true;
}

bool case_grouped_conv_backward_weights(struct scene *s, int index)
{
    const struct named_window *window;
    int groups, in_c, out_c, rows;
    if (!group_case(index, &window, &groups, &in_c, &out_c, &rows)) return false;
    const int cut = (index + index / case_window_count) % scene_cuts();
    struct tr_op_grouped_conv_backward_weights a = {
        .conv = {.in_c = in_c, .out_c = out_c, .window = window->window, .cut = scene_cut(s, cut)},
        .groups = groups};
    rows = (int)scene_cut_rows(cut);
    scene_name(s, "%s, cut %d of %d rows, channels %d to %d, groups %d", window->name, cut, rows, in_c, out_c,
               groups);
    a.conv.x = scene_in(s, "x", rows * image_in(&a.conv.window) * in_c);
    a.conv.dy = scene_in(s, "dy", rows * image_out(&a.conv.window) * out_c);
    a.conv.dw = scene_nodes(s, "dw", kernel(&a.conv.window) * (in_c / groups) * out_c, &a.conv.cut);
    a.conv.db = index % 4 == 2 ? NULL : scene_nodes(s, "db", out_c, &a.conv.cut);
    scene_end(s, tr_device_grouped_conv_backward_weights(s->device, &a));
    return true;
}

/* ---- convolutions by Winograd's algorithm ---- */

/* Every way in which tiles end, with and without pads, on one side only too. */
const struct named_window case_winograd_windows[] = {
    {"2x2 outputs", {4, 4, 2, 2, 3, 3, 1, 1, 1, 1, 0, 0}},
    {"2x3 outputs", {2, 3, 2, 3, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"3x2 outputs", {5, 4, 3, 2, 3, 3, 1, 1, 1, 1, 0, 0}},
    {"4x4 outputs", {6, 6, 4, 4, 3, 3, 1, 1, 1, 1, 0, 0}},
    {"5x9 same", {5, 9, 5, 9, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"7x6 outputs, pad below", {7, 6, 7, 6, 3, 3, 1, 1, 1, 1, 0, 2}},
    {"6x5 full", {4, 3, 6, 5, 3, 3, 1, 1, 1, 1, 2, 2}},
    {"8x13 outputs, pad left", {10, 13, 8, 13, 3, 3, 1, 1, 1, 1, 0, 2}},
    {"13x10 same", {13, 10, 13, 10, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"8x31 same", {8, 31, 8, 31, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"8x8 same", {8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"4x12 full", {2, 10, 4, 12, 3, 3, 1, 1, 1, 1, 2, 2}},
    {"12x28 outputs, pad left", {14, 29, 12, 28, 3, 3, 1, 1, 1, 1, 0, 1}},
    {"5x5 kernel, 2x2 outputs", {6, 6, 2, 2, 5, 5, 1, 1, 1, 1, 0, 0}},
    {"5x5 kernel, 3x5 same", {3, 5, 3, 5, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"5x5 kernel, 6x8 full", {2, 4, 6, 8, 5, 5, 1, 1, 1, 1, 4, 4}},
    {"5x5 kernel, 9x8 outputs, pad below", {9, 10, 9, 8, 5, 5, 1, 1, 1, 1, 0, 2}},
    {"5x5 kernel, 14x14 same", {14, 14, 14, 14, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"5x5 kernel, 4x31 same", {4, 31, 4, 31, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"5x5 kernel, 10x12 outputs, pad left", {14, 13, 10, 12, 5, 5, 1, 1, 1, 1, 0, 3}},
};
const int case_winograd_window_count = LENGTH(case_winograd_windows);

static bool winograd_case(int index, const struct named_window **window, int *in_c, int *out_c, int *rows)
{
    if (index >= 3 * case_winograd_window_count) return false;
    *window = &case_winograd_windows[index % case_winograd_window_count];
    int shape = (index * 2 + index / case_winograd_window_count) % LENGTH(conv_shapes);
    *in_c = conv_shapes[shape].in_c;
    *out_c = conv_shapes[shape].out_c;
    *rows = conv_shapes[shape].rows;
    return true;
}

bool case_winograd_forward(struct scene *s, int index)
{
    const struct named_window *window;
    int in_c, out_c, rows;
    if (!winograd_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_winograd_forward a = {set_conv_forward(s, index, window, in_c, in_c, out_c, rows)};
    scene_end(s, tr_device_winograd_forward(s->device, &a));
    return true;
}

bool case_winograd_backward_data(struct scene *s, int index)
{
    const struct named_window *window;
    int in_c, out_c, rows;
    if (!winograd_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_winograd_backward_data a = {set_conv_backward_data(s, window, in_c, in_c, out_c, rows)};
    scene_end(s, tr_device_winograd_backward_data(s->device, &a));
    return true;
}

bool case_winograd_backward_weights(struct scene *s, int index)
{
    const struct named_window *window;
    int in_c, out_c, rows;
    if (!winograd_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_winograd_backward_weights a = {set_conv_backward_weights(
        s, index, window, in_c, out_c, (index + index / case_winograd_window_count) % scene_cuts())};
    scene_end(s, tr_device_winograd_backward_weights(s->device, &a));
    return true;
}

/* Each window meets three shapes, those of whole tiles also filters that take two panels. */
bool case_winograd_backward(struct scene *s, int index)
{
    const int round = index / case_winograd_window_count, at = index % case_winograd_window_count;
    if (round >= 3) return false;
    const int shape = (at + 3 * round) % LENGTH(conv_shapes);
    const int in_c = conv_shapes[shape].in_c, out_c = conv_shapes[shape].out_c;
    struct tr_op_winograd_backward a = {
        .weights = {set_conv_backward_weights(s, index, &case_winograd_windows[at], in_c, out_c,
                                              (index + round) % scene_cuts())}};
    const struct tr_op_conv_backward_weights *weights = &a.weights.conv;
    const int64_t rows_of_cut = weights->cut.count > 0 ? weights->cut.row[weights->cut.count] : 0;
    a.data.conv = (struct tr_op_conv_backward_data){
        .rows = rows_of_cut, .in_c = in_c, .out_c = out_c, .window = weights->window, .dy = weights->dy};
    a.data.conv.w = scene_in(s, "w", kernel(&weights->window) * in_c * out_c);
    a.data.conv.dx = scene_out(s, "dx", rows_of_cut * image_in(&weights->window) * in_c);
    scene_end(s, tr_device_winograd_backward(s->device, &a));
    return true;
}

static const int pool_channels[] = {1, 3, 16, 17, 32, 70};

/* Windows that nearly tile an image: each in another way not. */
static const struct named_window tiling_windows[] = {
    {"2x2, strides 3 and 2", {8, 6, 3, 3, 2, 2, 3, 2, 1, 1, 0, 0}},
    {"2x2, strides 2 and 3", {6, 8, 3, 3, 2, 2, 2, 3, 1, 1, 0, 0}},
    {"2x2 stride 2, from above", {8, 8, 4, 4, 2, 2, 2, 2, 1, 1, 1, 0}},
    {"2x2 stride 2, from the left", {8, 8, 4, 4, 2, 2, 2, 2, 1, 1, 0, 1}},
    {"2x2 stride 2, to below", {7, 8, 4, 4, 2, 2, 2, 2, 1, 1, 0, 0}},
    {"2x2 stride 2, to the right", {8, 7, 4, 4, 2, 2, 2, 2, 1, 1, 0, 0}},
    {"2x2 stride 2, dilations 2 and 1", {9, 8, 4, 4, 2, 2, 2, 2, 2, 1, 0, 0}},
    {"2x2 stride 2, dilations 1 and 2", {8, 9, 4, 4, 2, 2, 2, 2, 1, 2, 0, 0}},
};

/* The window of a case, of so many with each one; NULL behind the last. */
static const struct named_window *pool_window(int index, int rounds, int *round)
{
    const int usual = rounds * case_pool_window_count;
    *round = index / case_pool_window_count;
    if (index < usual) return &case_windows[index % case_pool_window_count];
    *round = (index - usual) / LENGTH(tiling_windows);
    return *round < rounds ? &tiling_windows[(index - usual) % LENGTH(tiling_windows)] : NULL;
}

bool case_pool_forward(struct scene *s, int index)
{
    int round;
    const struct named_window *window = pool_window(index, 5, &round);
    if (!window) return false;
    struct tr_op_pool_forward a = {.rows = 1 + index % 4,
                                   .channels = pool_channels[(index + round) % LENGTH(pool_channels)],
                                   .window = window->window,
                                   .kind = round % 2 || round == 4 ? TR_POOL_AVERAGE : TR_POOL_MAX,
                                   .count_border = round == 4};
    bool taken = a.kind == TR_POOL_MAX && index % 5;
    scene_name(s, "%s of %s%s%s, rows %d, channels %d", a.kind == TR_POOL_AVERAGE ? "average" : "max",
               window->name, taken ? ", taken kept" : "", a.count_border ? ", the border counts" : "",
               (int)a.rows, a.channels);
    a.x = scene_in(s, "x", a.rows * image_in(&a.window) * a.channels);
    a.y = scene_out(s, "y", a.rows * image_out(&a.window) * a.channels);
    a.taken = taken ? scene_out_bytes(s, "taken", a.rows * image_out(&a.window) * a.channels) : NULL;
    scene_end(s, tr_device_pool_forward(s->device, &a));
    return true;
}

static bool tap_inside(const struct tr_sliding_window *w, int64_t pixel, int tap)
{
    int64_t h = pixel / w->out_w * w->stride_h + tap / w->kernel_w * w->dilation_h - w->pad_top;
    int64_t v = pixel % w->out_w * w->stride_w + tap % w->kernel_w * w->dilation_w - w->pad_left;
    return h >= 0 && h < w->in_h && v >= 0 && v < w->in_w;
}

/* For each output a tap inside the image, as a pool may have taken. */
static uint8_t *some_taken(struct scene *s, const struct tr_op_pool_backward *a)
{
    int64_t pixels = image_out(&a->window), count = a->rows * pixels * a->channels;
    int taps = (int)kernel(&a->window);
    uint8_t *taken = tr_alloc((size_t)count, 1);
    assert_non_null(taken);
    for (int64_t i = 0; i < count; i++) {
        int tap = (int)((i * 2654435761u >> 7) % (unsigned)taps);
        while (!tap_inside(&a->window, i / a->channels % pixels, tap)) tap = (tap + 1) % taps;
        taken[i] = (uint8_t)tap;
    }
    uint8_t *placed = scene_data(s, "taken", (size_t)count, 1, taken);
    tr_free(taken);
    return placed;
}

bool case_pool_backward(struct scene *s, int index)
{
    int round;
    const struct named_window *window = pool_window(index, 7, &round);
    if (!window) return false;
    struct tr_op_pool_backward a = {.rows = 1 + index % 3,
                                    .channels = pool_channels[(index + round) % LENGTH(pool_channels)],
                                    .window = window->window,
                                    .kind = round % 3 == 1 || round == 6 ? TR_POOL_AVERAGE : TR_POOL_MAX,
                                    .count_border = round == 6};
    bool relu = round % 3 == 2;
    scene_name(s, "%s of %s%s%s, rows %d, channels %d", a.kind == TR_POOL_AVERAGE ? "average" : "max",
               window->name, relu ? ", relu" : "", a.count_border ? ", the border counts" : "", (int)a.rows,
               a.channels);
    int64_t outputs = a.rows * image_out(&a.window) * a.channels;
    a.dy = scene_in(s, "dy", outputs);
    a.taken = a.kind == TR_POOL_MAX ? some_taken(s, &a) : NULL;
    a.relu_output = relu ? scene_in(s, "relu_output", outputs) : NULL;
    a.dx = scene_out(s, "dx", a.rows * image_in(&a.window) * a.channels);
    scene_end(s, tr_device_pool_backward(s->device, &a));
    return true;
}

/* ---- convolutions with a pool behind them ---- */

/* A pool of the outputs of a convolution, of a size that varies with the case. */
static struct tr_op_pool_forward pool_behind(int index, const struct tr_sliding_window *conv, int rows,
                                             int channels)
{
    static const int sizes[][2] = {{2, 2}, {3, 2}, {1, 3}, {2, 1}};
    const int *size = sizes[index % LENGTH(sizes)];
    int h = size[0] < conv->out_h ? size[0] : conv->out_h, w = size[1] < conv->out_w ? size[1] : conv->out_w;
    return (struct tr_op_pool_forward){
        .rows = rows,
        .channels = channels,
        .window = {conv->out_h, conv->out_w, conv->out_h / h, conv->out_w / w, h, w, h, w, 1, 1, 0, 0},
        .kind = TR_POOL_MAX};
}

bool case_conv_pool_forward(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_conv_pool_forward a = {
        .conv = {.rows = rows,
                 .in_c = in_c,
                 .out_c = out_c,
                 .window = case_windows[window].window,
                 .activation = index % 3 ? TR_ACT_RELU : TR_ACT_NONE},
        .pool = pool_behind(index + index / case_window_count, &case_windows[window].window, rows, out_c)};
    int64_t outputs = rows * image_out(&a.pool.window) * out_c;
    bool taken = index % 5;
    scene_name(s, "%s, rows %d, channels %d to %d, activation %d, pool %dx%d%s", case_windows[window].name,
               rows, in_c, out_c, a.conv.activation, a.pool.window.kernel_h, a.pool.window.kernel_w,
               taken ? ", taken kept" : "");
    a.conv.x = scene_in(s, "x", rows * image_in(&a.conv.window) * in_c);
    a.conv.w = scene_in(s, "w", kernel(&a.conv.window) * in_c * out_c);
    a.conv.b = index % 4 == 1 ? NULL : scene_in(s, "b", out_c);
    a.pool.y = scene_out(s, "y", outputs);
    a.pool.taken = taken ? scene_out_bytes(s, "taken", outputs) : NULL;
    scene_end(s, tr_device_conv_pool_forward(s->device, &a));
    return true;
}

/* The gradient of such a pool. */
static struct tr_op_pool_backward pool_before(struct scene *s, int index,
                                              const struct tr_sliding_window *conv, int rows, int channels)
{
    struct tr_op_pool_forward forward = pool_behind(index, conv, rows, channels);
    struct tr_op_pool_backward a = {
        .rows = rows, .channels = channels, .window = forward.window, .kind = TR_POOL_MAX};
    int64_t outputs = rows * image_out(&a.window) * channels;
    a.dy = scene_in(s, "dy", outputs);
    a.taken = outputs > 0 ? some_taken(s, &a) : NULL;
    a.relu_output = index % 2 ? scene_in(s, "relu_output", outputs) : NULL;
    return a;
}

bool case_conv_pool_backward_data(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    struct tr_op_conv_pool_backward_data a = {
        .conv = {.rows = rows, .in_c = in_c, .out_c = out_c, .window = case_windows[window].window}};
    a.pool = pool_before(s, index + index / case_window_count, &a.conv.window, rows, out_c);
    scene_name(s, "%s, rows %d, channels %d to %d, pool %dx%d%s", case_windows[window].name, rows, in_c,
               out_c, a.pool.window.kernel_h, a.pool.window.kernel_w, a.pool.relu_output ? ", relu" : "");
    a.conv.w = scene_in(s, "w", kernel(&a.conv.window) * in_c * out_c);
    a.conv.dx = scene_out(s, "dx", rows * image_in(&a.conv.window) * in_c);
    scene_end(s, tr_device_conv_pool_backward_data(s->device, &a));
    return true;
}

bool case_conv_pool_backward_weights(struct scene *s, int index)
{
    int window, in_c, out_c, rows;
    if (!conv_case(index, &window, &in_c, &out_c, &rows)) return false;
    int round = index / case_window_count, cut = (index + round) % scene_cuts();
    rows = (int)scene_cut_rows(cut);
    struct tr_op_conv_pool_backward_weights a = {
        .conv = {
            .in_c = in_c, .out_c = out_c, .window = case_windows[window].window, .cut = scene_cut(s, cut)}};
    a.pool = pool_before(s, index + round, &a.conv.window, rows, out_c);
    scene_name(s, "%s, cut %d of %d rows, channels %d to %d, pool %dx%d%s", case_windows[window].name, cut,
               rows, in_c, out_c, a.pool.window.kernel_h, a.pool.window.kernel_w,
               a.pool.relu_output ? ", relu" : "");
    a.conv.x = scene_in(s, "x", rows * image_in(&a.conv.window) * in_c);
    a.conv.dw = scene_nodes(s, "dw", kernel(&a.conv.window) * in_c * out_c, &a.conv.cut);
    a.conv.db = index % 4 == 2 ? NULL : scene_nodes(s, "db", out_c, &a.conv.cut);
    scene_end(s, tr_device_conv_pool_backward_weights(s->device, &a));
    return true;
}
