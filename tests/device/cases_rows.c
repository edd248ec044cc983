/* Cases of softmax, normalizations, losses and sums of rows. */
#include "device/cases.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct {
    int64_t rows, width;
} row_shapes[] = {
    {1, 1},  {3, 2},  {7, 3},  {50, 10}, {13, 15},  {5, 16}, {9, 17},
    {2, 31}, {4, 32}, {3, 33}, {6, 100}, {2, 1000}, {0, 5},  {101, 7},
};

bool case_softmax_forward(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(row_shapes)) return false;
    struct tr_op_softmax_forward a = {.rows = row_shapes[index / 2].rows,
                                      .width = row_shapes[index / 2].width};
    bool in_place = index % 2;
    scene_name(s, "rows %d, width %d%s", (int)a.rows, (int)a.width, in_place ? ", in place" : "");
    float *x = scene_in(s, "x", a.rows * a.width);
    a.x = x;
    a.y = in_place ? x : scene_out(s, "y", a.rows * a.width);
    scene_end(s, tr_device_softmax_forward(s->device, &a));
    return true;
}

bool case_softmax_backward(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(row_shapes)) return false;
    struct tr_op_softmax_backward a = {.rows = row_shapes[index / 2].rows,
                                       .width = row_shapes[index / 2].width};
    bool in_place = index % 2;
    scene_name(s, "rows %d, width %d%s", (int)a.rows, (int)a.width, in_place ? ", in place" : "");
    a.y = scene_in(s, "y", a.rows * a.width);
    float *dy = scene_in(s, "dy", a.rows * a.width);
    a.dy = dy;
    a.dx = in_place ? dy : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_softmax_backward(s->device, &a));
    return true;
}

bool case_layer_norm_forward(struct scene *s, int index)
{
    if (index >= LENGTH(row_shapes)) return false;
    struct tr_op_layer_norm_forward a = {
        .rows = row_shapes[index].rows, .width = row_shapes[index].width, .epsilon = 1e-5f};
    scene_name(s, "rows %d, width %d", (int)a.rows, (int)a.width);
    a.x = scene_in(s, "x", a.rows * a.width);
    a.gamma = scene_in(s, "gamma", a.width);
    a.beta = scene_in(s, "beta", a.width);
    a.y = scene_out(s, "y", a.rows * a.width);
    a.mean = scene_out(s, "mean", a.rows);
    a.inv = scene_out(s, "inv", a.rows);
    scene_end(s, tr_device_layer_norm_forward(s->device, &a));
    return true;
}

static const int widths[] = {1, 5, 16, 17, 32, 33, 70, 130};

bool case_layer_norm_backward(struct scene *s, int index)
{
    if (index >= 2 * scene_cuts()) return false;
    int cut = index % scene_cuts();
    int64_t rows = scene_cut_rows(cut), width = widths[(index + index / scene_cuts()) % LENGTH(widths)];
    struct tr_op_layer_norm_backward a = {.width = width, .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d rows, width %d", cut, (int)rows, (int)width);
    a.x = scene_in(s, "x", rows * width);
    a.gamma = scene_in(s, "gamma", width);
    a.mean = scene_in(s, "mean", rows);
    a.inv = scene_positive(s, "inv", rows);
    a.dy = scene_in(s, "dy", rows * width);
    a.dx = index % 5 == 4 ? NULL : scene_out(s, "dx", rows * width); /* a first layer wants none */
    a.dgamma = scene_nodes(s, "dgamma", width, &a.cut);
    a.dbeta = scene_nodes(s, "dbeta", width, &a.cut);
    scene_end(s, tr_device_layer_norm_backward(s->device, &a));
    return true;
}

bool case_rms_norm_forward(struct scene *s, int index)
{
    if (index >= LENGTH(row_shapes)) return false;
    struct tr_op_rms_norm_forward a = {
        .rows = row_shapes[index].rows, .width = row_shapes[index].width, .epsilon = 1e-5f};
    scene_name(s, "rows %d, width %d", (int)a.rows, (int)a.width);
    a.x = scene_in(s, "x", a.rows * a.width);
    a.gamma = scene_in(s, "gamma", a.width);
    a.y = scene_out(s, "y", a.rows * a.width);
    a.inv = scene_out(s, "inv", a.rows);
    scene_end(s, tr_device_rms_norm_forward(s->device, &a));
    return true;
}

bool case_rms_norm_backward(struct scene *s, int index)
{
    if (index >= 2 * scene_cuts()) return false;
    int cut = index % scene_cuts();
    int64_t rows = scene_cut_rows(cut), width = widths[(index + index / scene_cuts()) % LENGTH(widths)];
    struct tr_op_rms_norm_backward a = {.width = width, .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d rows, width %d", cut, (int)rows, (int)width);
    a.x = scene_in(s, "x", rows * width);
    a.gamma = scene_in(s, "gamma", width);
    a.inv = scene_positive(s, "inv", rows);
    a.dy = scene_in(s, "dy", rows * width);
    a.dx = index % 5 == 4 ? NULL : scene_out(s, "dx", rows * width); /* a first layer wants none */
    a.dgamma = scene_nodes(s, "dgamma", width, &a.cut);
    scene_end(s, tr_device_rms_norm_backward(s->device, &a));
    return true;
}

static const int spatials[] = {1, 4, 9, 25};

bool case_batch_norm_forward(struct scene *s, int index)
{
    if (index >= 3 * scene_cuts()) return false;
    int cut = index % scene_cuts();
    int64_t rows = scene_cut_rows(cut), channels = widths[(index + index / scene_cuts()) % LENGTH(widths)];
    struct tr_op_batch_norm_forward a = {.spatial = spatials[index % LENGTH(spatials)],
                                         .channels = channels,
                                         .global_rows = 3 * rows + 1,
                                         .epsilon = 1e-3f,
                                         .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d rows, spatial %d, channels %d", cut, (int)rows, (int)a.spatial,
               (int)channels);
    a.x = scene_in(s, "x", rows * a.spatial * channels);
    a.gamma = scene_in(s, "gamma", channels);
    a.beta = scene_in(s, "beta", channels);
    a.y = scene_out(s, "y", rows * a.spatial * channels);
    a.mean = scene_out(s, "mean", a.cut.count * channels);
    a.inv = scene_out(s, "inv", a.cut.count * channels);
    a.batch_mean = scene_nodes(s, "batch_mean", channels, &a.cut);
    a.batch_var = scene_nodes(s, "batch_var", channels, &a.cut);
    scene_end(s, tr_device_batch_norm_forward(s->device, &a));
    return true;
}

bool case_batch_norm_backward(struct scene *s, int index)
{
    if (index >= 3 * scene_cuts()) return false;
    int cut = index % scene_cuts();
    int64_t rows = scene_cut_rows(cut), channels = widths[(index + index / scene_cuts()) % LENGTH(widths)];
    struct tr_op_batch_norm_backward a = {
        .spatial = spatials[index % LENGTH(spatials)], .channels = channels, .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d rows, spatial %d, channels %d", cut, (int)rows, (int)a.spatial,
               (int)channels);
    a.x = scene_in(s, "x", rows * a.spatial * channels);
    a.gamma = scene_in(s, "gamma", channels);
    a.mean = scene_in(s, "mean", a.cut.count * channels);
    a.inv = scene_positive(s, "inv", a.cut.count * channels);
    a.dy = scene_in(s, "dy", rows * a.spatial * channels);
    a.dx = index % 5 == 4 ? NULL
                          : scene_out(s, "dx", rows * a.spatial * channels); /* a first layer wants none */
    a.dgamma = scene_nodes(s, "dgamma", channels, &a.cut);
    a.dbeta = scene_nodes(s, "dbeta", channels, &a.cut);
    scene_end(s, tr_device_batch_norm_backward(s->device, &a));
    return true;
}

/* What can follow in one pass over memory: every combination turns up. */
static const enum tr_activation fused_activations[] = {TR_ACT_NONE, TR_ACT_RELU, TR_ACT_LEAKY_RELU};

bool case_batch_norm_activation_forward(struct scene *s, int index)
{
    if (index >= 6 * scene_cuts()) return false;
    int cut = index % scene_cuts(), kind = index / scene_cuts();
    int64_t rows = scene_cut_rows(cut), channels = widths[(index + kind) % LENGTH(widths)];
    int64_t spatial = spatials[index % LENGTH(spatials)], count = rows * spatial * channels;
    struct tr_op_batch_norm_activation_forward a = {.norm = {.spatial = spatial,
                                                             .channels = channels,
                                                             .global_rows = 3 * rows + 1,
                                                             .epsilon = 1e-3f,
                                                             .cut = scene_cut(s, cut)},
                                                    .activation = fused_activations[kind % 3],
                                                    .slope = 0.1f};
    scene_name(s, "cut %d of %d rows, spatial %d, channels %d, activation %d%s", cut, (int)rows, (int)spatial,
               (int)channels, (int)a.activation, kind < 3 ? "" : ", sum");
    a.norm.x = scene_in(s, "x", count);
    a.norm.gamma = scene_in(s, "gamma", channels);
    a.norm.beta = scene_in(s, "beta", channels);
    a.addend = kind < 3 ? NULL : scene_in(s, "addend", count);
    a.norm.y = scene_out(s, "y", count);
    a.norm.mean = scene_out(s, "mean", a.norm.cut.count * channels);
    a.norm.inv = scene_out(s, "inv", a.norm.cut.count * channels);
    a.norm.batch_mean = scene_nodes(s, "batch_mean", channels, &a.norm.cut);
    a.norm.batch_var = scene_nodes(s, "batch_var", channels, &a.norm.cut);
    scene_end(s, tr_device_batch_norm_activation_forward(s->device, &a));
    return true;
}

bool case_batch_norm_activation_backward(struct scene *s, int index)
{
    if (index >= 12 * scene_cuts()) return false;
    int cut = index % scene_cuts(), kind = index / scene_cuts();
    int64_t rows = scene_cut_rows(cut), channels = widths[(index + kind) % LENGTH(widths)];
    int64_t spatial = spatials[index % LENGTH(spatials)], count = rows * spatial * channels;
    struct tr_op_batch_norm_activation_backward a = {
        .norm = {.spatial = spatial, .channels = channels, .cut = scene_cut(s, cut)},
        .activation = fused_activations[kind % 3],
        .slope = 0.1f};
    bool more = kind / 3 & 1, addend = kind / 6, in_place = index % 3 == 1;
    scene_name(s, "cut %d of %d rows, spatial %d, channels %d, activation %d%s%s%s", cut, (int)rows,
               (int)spatial, (int)channels, (int)a.activation, more ? ", more" : "", addend ? ", sum" : "",
               in_place ? ", in place" : "");
    a.norm.x = scene_in(s, "x", count);
    a.norm.gamma = scene_in(s, "gamma", channels);
    a.norm.mean = scene_in(s, "mean", a.norm.cut.count * channels);
    a.norm.inv = scene_positive(s, "inv", a.norm.cut.count * channels);
    float *dy = scene_in(s, "dy", count);
    a.norm.dy = dy;
    a.more = more ? scene_in(s, "more", count) : NULL;
    a.y = a.activation == TR_ACT_NONE ? NULL : scene_in(s, "y", count);
    if (index % 2 && a.y) {
        /* y as a forward pass without addend gives it, with this mean and inv */
        float *y = tr_alloc((size_t)count + 1, sizeof *y);
        assert_non_null(y);
        a.beta = scene_in(s, "beta", channels);
        for (int32_t m = 0; m < a.norm.cut.count; m++)
            for (int64_t i = a.norm.cut.row[m] * spatial * channels;
                 i < a.norm.cut.row[m + 1] * spatial * channels; i++) {
                const int64_t c = i % channels, at = m * channels + c;
                y[i] = fmaf((a.norm.x[i] - a.norm.mean[at]) * a.norm.inv[at], a.norm.gamma[c], a.beta[c]);
                if (0 > y[i]) y[i] = a.activation == TR_ACT_RELU ? 0 : a.slope * y[i];
                if (y[i] != y[i]) y[i] = NAN; /* whose sign compilers differ in */
            }
        a.y = scene_data(s, "output", (size_t)count * sizeof *y, sizeof *y, y);
        tr_free(y);
    }
    a.daddend = addend ? scene_out(s, "daddend", count) : NULL;
    a.norm.dx = index % 5 == 4 ? NULL : in_place ? dy : scene_out(s, "dx", count);
    a.norm.dgamma = scene_nodes(s, "dgamma", channels, &a.norm.cut);
    a.norm.dbeta = scene_nodes(s, "dbeta", channels, &a.norm.cut);
    scene_end(s, tr_device_batch_norm_activation_backward(s->device, &a));
    return true;
}

bool case_batch_norm_infer(struct scene *s, int index)
{
    static const int rows[] = {1, 7, 64, 0, 301};
    if (index >= LENGTH(widths) * LENGTH(rows)) return false;
    struct tr_op_batch_norm_infer a = {
        .rows = rows[index / LENGTH(widths)], .channels = widths[index % LENGTH(widths)], .epsilon = 1e-3f};
    scene_name(s, "rows %d, channels %d", (int)a.rows, (int)a.channels);
    a.x = scene_in(s, "x", a.rows * a.channels);
    a.gamma = scene_in(s, "gamma", a.channels);
    a.beta = scene_in(s, "beta", a.channels);
    a.mean = scene_in(s, "mean", a.channels);
    a.var = scene_positive(s, "var", a.channels);
    a.y = scene_out(s, "y", a.rows * a.channels);
    scene_end(s, tr_device_batch_norm_infer(s->device, &a));
    return true;
}

bool case_softmax_cross_entropy(struct scene *s, int index)
{
    int shapes = 4 * LENGTH(row_shapes);
    if (index >= 2 * shapes) return false;
    bool missing = index >= shapes;
    index %= shapes;
    struct tr_op_softmax_cross_entropy a = {.rows = row_shapes[index / 4].rows,
                                            .classes = row_shapes[index / 4].width,
                                            .smoothing = index & 1 ? 0.1f : 0,
                                            .scale = 1 / 60.0f};
    scene_name(s, "rows %d, classes %d, smoothing %g%s%s", (int)a.rows, (int)a.classes, (double)a.smoothing,
               index & 2 ? ", no gradient" : "", missing ? ", labels missing" : "");
    a.x = scene_in(s, "x", a.rows * a.classes);
    a.label = scene_labels(s, "label", a.rows, (int32_t)a.classes, missing);
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.classes);
    scene_end(s, tr_device_softmax_cross_entropy(s->device, &a));
    return true;
}

bool case_mean_squared_error(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(row_shapes)) return false;
    struct tr_op_mean_squared_error a = {
        .rows = row_shapes[index / 2].rows, .width = row_shapes[index / 2].width, .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d%s", (int)a.rows, (int)a.width, index & 1 ? ", no gradient" : "");
    a.x = scene_in(s, "x", a.rows * a.width);
    a.target = scene_in(s, "target", a.rows * a.width);
    a.loss = scene_out(s, "loss", a.rows);
    a.dx = index & 1 ? NULL : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_mean_squared_error(s->device, &a));
    return true;
}

bool case_binary_cross_entropy(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_binary_cross_entropy a = {
        .rows = row_shapes[index / 4].rows, .width = row_shapes[index / 4].width, .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d%s%s", (int)a.rows, (int)a.width, index & 1 ? ", weights" : "",
               index & 2 ? ", no gradient" : "");
    a.x = scene_in(s, "x", a.rows * a.width);
    a.target = scene_in(s, "target", a.rows * a.width);
    a.weight = index & 1 ? scene_positive(s, "weight", a.width) : NULL;
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_binary_cross_entropy(s->device, &a));
    return true;
}

bool case_huber_error(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_huber_error a = {.rows = row_shapes[index / 4].rows,
                                  .width = row_shapes[index / 4].width,
                                  .delta = index & 1 ? 0.7f : 0,
                                  .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d, delta %g%s", (int)a.rows, (int)a.width, (double)a.delta,
               index & 2 ? ", no gradient" : "");
    a.x = scene_in(s, "x", a.rows * a.width);
    a.target = scene_in(s, "target", a.rows * a.width);
    a.loss = scene_out(s, "loss", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_huber_error(s->device, &a));
    return true;
}

/* What is changed in place is an output that has contents before. */
bool case_weigh_rows(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(row_shapes)) return false;
    struct tr_op_weigh_rows a = {.rows = row_shapes[index / 2].rows, .width = row_shapes[index / 2].width};
    scene_name(s, "rows %d, width %d%s", (int)a.rows, (int)a.width, index & 1 ? ", no gradient" : "");
    a.weight = scene_in(s, "weight", a.width);
    a.label = scene_indices(s, "label", a.rows, (int32_t)a.width);
    a.loss = scene_in(s, "loss", a.rows);
    a.dx = index & 1 ? NULL : scene_in(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_weigh_rows(s->device, &a));
    return true;
}

bool case_to_labels(struct scene *s, int index)
{
    static const int64_t counts[] = {1, 17, 0, 100};
    if (index >= LENGTH(counts)) return false;
    struct tr_op_to_labels a = {.count = counts[index]};
    scene_name(s, "count %d", (int)a.count);
    a.x = scene_in(s, "x", a.count);
    a.y = (int32_t *)(void *)scene_out(s, "y", a.count);
    scene_end(s, tr_device_to_labels(s->device, &a));
    return true;
}

bool case_sum_rows(struct scene *s, int index)
{
    if (index >= scene_cuts()) return false;
    struct tr_op_sum_rows a = {.cut = scene_cut(s, index)};
    scene_name(s, "cut %d of %d rows", index, (int)scene_cut_rows(index));
    a.x = scene_in(s, "x", scene_cut_rows(index));
    a.y = scene_nodes(s, "y", 1, &a.cut);
    scene_end(s, tr_device_sum_rows(s->device, &a));
    return true;
}
