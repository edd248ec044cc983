/* Cases of normalizations of channels: of groups of them, and over batches. */
#include "device/cases/cases.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int widths[] = {1, 5, 16, 17, 32, 33, 70, 130};

static const int spatials[] = {1, 4, 9, 25};

/* Channels and groups that divide them. */
static const struct {
    int channels, groups;
} grouped[] = {{1, 1}, {6, 2}, {32, 8}, {48, 3}, {33, 1}, {17, 17}, {70, 70}, {70, 2}, {128, 32}};

bool case_group_norm_forward(struct scene *s, int index)
{
    static const int rows[] = {1, 3, 0, 7};
    if (index >= 2 * LENGTH(grouped) * LENGTH(rows)) return false;
    struct tr_op_group_norm_forward a = {.rows = rows[index / LENGTH(grouped) % LENGTH(rows)],
                                         .spatial = spatials[(index + index / 32) % LENGTH(spatials)],
                                         .channels = grouped[index % LENGTH(grouped)].channels,
                                         .groups = grouped[index % LENGTH(grouped)].groups,
                                         .epsilon = 1e-4f};
    scene_name(s, "rows %d, spatial %d, %d channels in %d groups", (int)a.rows, (int)a.spatial,
               (int)a.channels, (int)a.groups);
    a.x = scene_in(s, "x", a.rows * a.spatial * a.channels);
    a.gamma = scene_in(s, "gamma", a.channels);
    a.beta = scene_in(s, "beta", a.channels);
    a.y = scene_out(s, "y", a.rows * a.spatial * a.channels);
    a.mean = scene_out(s, "mean", a.rows * a.groups);
    a.inv = scene_out(s, "inv", a.rows * a.groups);
    scene_end(s, tr_device_group_norm_forward(s->device, &a));
    return true;
}

bool case_group_norm_backward(struct scene *s, int index)
{
    if (index >= 3 * scene_cuts()) return false;
    const int cut = index % scene_cuts(), shape = (index + index / scene_cuts()) % LENGTH(grouped);
    const int64_t rows = scene_cut_rows(cut);
    struct tr_op_group_norm_backward a = {.spatial = spatials[(index + index / 16) % LENGTH(spatials)],
                                          .channels = grouped[shape].channels,
                                          .groups = grouped[shape].groups,
                                          .cut = scene_cut(s, cut)};
    const int64_t count = rows * a.spatial * a.channels;
    scene_name(s, "cut %d of %d rows, spatial %d, %d channels in %d groups", cut, (int)rows, (int)a.spatial,
               (int)a.channels, (int)a.groups);
    a.x = scene_in(s, "x", count);
    a.gamma = scene_in(s, "gamma", a.channels);
    a.mean = scene_in(s, "mean", rows * a.groups);
    a.inv = scene_positive(s, "inv", rows * a.groups);
    a.dy = scene_in(s, "dy", count);
    a.dx = index % 5 == 4 ? NULL : scene_out(s, "dx", count); /* a first layer wants none */
    a.dgamma = scene_nodes(s, "dgamma", a.channels, &a.cut);
    a.dbeta = scene_nodes(s, "dbeta", a.channels, &a.cut);
    scene_end(s, tr_device_group_norm_backward(s->device, &a));
    return true;
}

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
