/* Cases of softmax, normalizations of rows, losses and sums of rows. */
#include "device/cases/cases.h"

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

bool case_soft_cross_entropy(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_soft_cross_entropy a = {.rows = row_shapes[index / 4].rows,
                                         .classes = row_shapes[index / 4].width,
                                         .smoothing = index & 1 ? 0.1f : 0,
                                         .scale = 1 / 60.0f};
    scene_name(s, "rows %d, classes %d, smoothing %g%s", (int)a.rows, (int)a.classes, (double)a.smoothing,
               index & 2 ? ", no gradient" : "");
    a.x = scene_in(s, "x", a.rows * a.classes);
    a.target = scene_in(s, "target", a.rows * a.classes);
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.classes);
    scene_end(s, tr_device_soft_cross_entropy(s->device, &a));
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

bool case_focal_cross_entropy(struct scene *s, int index)
{
    static const float gammas[] = {2, 0.5f, 0, 1};
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_focal_cross_entropy a = {.rows = row_shapes[index / 4].rows,
                                          .classes = row_shapes[index / 4].width,
                                          .gamma = gammas[index % 4],
                                          .scale = 1 / 60.0f};
    const bool missing = index & 1, no_gradient = index % 8 == 6;
    scene_name(s, "rows %d, classes %d, gamma %g%s%s", (int)a.rows, (int)a.classes, (double)a.gamma,
               no_gradient ? ", no gradient" : "", missing ? ", labels missing" : "");
    a.x = scene_in(s, "x", a.rows * a.classes);
    a.label = scene_labels(s, "label", a.rows, (int32_t)a.classes, missing);
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = no_gradient ? NULL : scene_out(s, "dx", a.rows * a.classes);
    scene_end(s, tr_device_focal_cross_entropy(s->device, &a));
    return true;
}

bool case_quantile_error(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    const int64_t targets = row_shapes[index / 4].width, each = index & 1 ? 3 : 1;
    struct tr_op_quantile_error a = {
        .rows = row_shapes[index / 4].rows, .width = targets * each, .each = each, .scale = 1 / 50.0f};
    scene_name(s, "rows %d, %d targets of %d quantiles%s", (int)a.rows, (int)targets, (int)each,
               index & 2 ? ", no gradient" : "");
    a.x = scene_in(s, "x", a.rows * a.width);
    a.target = scene_in(s, "target", a.rows * targets);
    a.quantile = scene_positive(s, "quantile", a.width);
    a.loss = scene_out(s, "loss", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_quantile_error(s->device, &a));
    return true;
}

bool case_poisson_error(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_poisson_error a = {.rows = row_shapes[index / 4].rows,
                                    .width = row_shapes[index / 4].width,
                                    .logs = index & 1,
                                    .epsilon = 1e-8f,
                                    .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d, %s%s", (int)a.rows, (int)a.width, a.logs ? "logarithms" : "rates",
               index & 2 ? ", no gradient" : "");
    a.x = a.logs ? scene_in(s, "x", a.rows * a.width) : scene_positive(s, "x", a.rows * a.width);
    a.target = scene_in(s, "target", a.rows * a.width);
    a.loss = scene_out(s, "loss", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_poisson_error(s->device, &a));
    return true;
}

/* Embeddings [rows][parts][width], side by side. Equal ones have no direction from each other. */
static float *embeddings(struct scene *s, int64_t rows, int64_t width, int parts, bool equal)
{
    float number[3 * 3 * 17];
    if (!equal) return scene_in(s, "x", rows * parts * width);
    for (int i = 0; i < LENGTH(number); i++) number[i] = 0.25f * (float)(i % 17);
    return scene_data(s, "x", (size_t)(rows * parts * width) * sizeof *number, sizeof *number, number);
}
#define EQUAL_ROWS  3
#define EQUAL_WIDTH 17

bool case_contrastive_error(struct scene *s, int index)
{
    static const float margins[] = {1, 100};
    const bool equal = index == 4 * LENGTH(row_shapes);
    if (index > 4 * LENGTH(row_shapes)) return false;
    struct tr_op_contrastive_error a = {.rows = equal ? EQUAL_ROWS : row_shapes[index / 4].rows,
                                        .width = equal ? EQUAL_WIDTH : row_shapes[index / 4].width,
                                        .margin = margins[index & 1],
                                        .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d, margin %g%s%s", (int)a.rows, (int)a.width, (double)a.margin,
               equal ? ", equal" : "", index & 2 ? ", no gradient" : "");
    a.x = embeddings(s, a.rows, a.width, 2, equal);
    a.label = scene_labels(s, "label", a.rows, 2, false);
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * 2 * a.width);
    scene_end(s, tr_device_contrastive_error(s->device, &a));
    return true;
}

bool case_triplet_error(struct scene *s, int index)
{
    static const float margins[] = {0.25f, 100};
    const bool equal = index == 8 * LENGTH(row_shapes);
    if (index > 8 * LENGTH(row_shapes)) return false;
    struct tr_op_triplet_error a = {.rows = equal ? EQUAL_ROWS : row_shapes[index / 8].rows,
                                    .width = equal ? EQUAL_WIDTH : row_shapes[index / 8].width,
                                    .squared = index & 4,
                                    .margin = margins[index & 1],
                                    .scale = 1 / 50.0f};
    scene_name(s, "rows %d, width %d, margin %g%s%s%s", (int)a.rows, (int)a.width, (double)a.margin,
               equal ? ", equal" : "", a.squared ? ", squared" : "", index & 2 ? ", no gradient" : "");
    a.x = embeddings(s, a.rows, a.width, 3, equal);
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = index & 2 ? NULL : scene_out(s, "dx", a.rows * 3 * a.width);
    scene_end(s, tr_device_triplet_error(s->device, &a));
    return true;
}

/* What is changed in place is an output that has contents before. */
bool case_weigh_rows(struct scene *s, int index)
{
    if (index >= 4 * LENGTH(row_shapes)) return false;
    struct tr_op_weigh_rows a = {.rows = row_shapes[index / 4].rows, .width = row_shapes[index / 4].width};
    const bool missing = index & 2;
    scene_name(s, "rows %d, width %d%s%s", (int)a.rows, (int)a.width, index & 1 ? ", no gradient" : "",
               missing ? ", labels missing" : "");
    a.weight = scene_in(s, "weight", a.width);
    a.label = scene_labels(s, "label", a.rows, (int32_t)a.width, missing);
    a.loss = scene_in(s, "loss", a.rows);
    a.dx = index & 1 ? NULL : scene_in(s, "dx", a.rows * a.width);
    scene_end(s, tr_device_weigh_rows(s->device, &a));
    return true;
}

bool case_mean_labelled(struct scene *s, int index)
{
    static const int64_t shapes[][3] = {{1, 1, 2},  {3, 5, 3},   {2, 16, 1}, {4, 17, 10},
                                        {5, 33, 2}, {2, 64, 21}, {0, 9, 4},  {1, 300, 3}};
    if (index >= 8 * LENGTH(shapes)) return false;
    const int64_t *shape = shapes[index / 8];
    const bool missing = index & 1, weights = index & 2, gradient = !(index & 4);
    struct tr_op_mean_labelled a = {.rows = shape[0], .places = shape[1], .classes = shape[2]};
    scene_name(s, "rows %d, places %d, classes %d%s%s%s", (int)a.rows, (int)a.places, (int)a.classes,
               missing ? ", labels missing" : "", weights ? ", weights" : "",
               gradient ? "" : ", no gradient");
    a.label = scene_labels(s, "label", a.rows * a.places, (int32_t)a.classes, missing);
    a.each_loss = scene_in(s, "each_loss", a.rows * a.places);
    a.each_correct = scene_in(s, "each_correct", a.rows * a.places);
    a.weight = weights ? scene_positive(s, "weight", a.classes) : NULL;
    a.loss = scene_out(s, "loss", a.rows);
    a.correct = scene_out(s, "correct", a.rows);
    a.dx = gradient ? scene_in(s, "dx", a.rows * a.places * a.classes) : NULL;
    scene_end(s, tr_device_mean_labelled(s->device, &a));
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
