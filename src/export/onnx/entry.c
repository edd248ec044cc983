/* How examples enter an ONNX graph: images cut, scaled and shifted, numbers standardized. */
#include "export/onnx/graph.h"

#include "base/fail.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* The middle part; black around it where it is larger than the image. */
static struct tr_onnx_name cut_image(struct tr_onnx_graph *graph, const struct tr_op_load_images *op,
                                     struct tr_onnx_name x)
{
    const int64_t top = (op->in_h - op->out_h) / 2, left = (op->in_w - op->out_w) / 2;
    const int64_t first[] = {top > 0 ? top : 0, left > 0 ? left : 0};
    const int64_t end[] = {top + op->out_h < op->in_h ? top + op->out_h : op->in_h,
                           left + op->out_w < op->in_w ? left + op->out_w : op->in_w};
    const int64_t axes[] = {2, 3};
    const int64_t pads[] = {
        0, 0, first[0] - top, first[1] - left, 0, 0, top + op->out_h - end[0], left + op->out_w - end[1],
    };
    if (end[0] - first[0] < op->in_h || end[1] - first[1] < op->in_w) {
        struct tr_onnx_name from = tr_onnx_local_integers(graph, "first", 2, first);
        struct tr_onnx_name to = tr_onnx_local_integers(graph, "end", 2, end);
        struct tr_onnx_name along = tr_onnx_local_integers(graph, "axes", 2, axes);
        x = tr_onnx_emit(graph, "Slice", 4, x.text, from.text, to.text, along.text);
    }
    if (end[0] - first[0] < op->out_h || end[1] - first[1] < op->out_w) {
        struct tr_onnx_name around = tr_onnx_local_integers(graph, "pads", 8, pads);
        x = tr_onnx_emit(graph, "Pad", 2, x.text, around.text);
    }
    return x;
}

/* A constant [1, channels, 1, 1], or a single number where all are the same. */
static struct tr_onnx_name per_channel(struct tr_onnx_graph *graph, const char *what, int64_t channels,
                                       const float values[4])
{
    const int64_t size[] = {1, channels, 1, 1};
    bool same = true;
    for (int64_t c = 1; c < channels && c < 4; c++) same &= values[c] == values[0];
    if (same) return tr_onnx_local_number(graph, what, values[0]);
    struct tr_onnx_name name = tr_onnx_local(graph, what);
    float *data = tr_onnx_floats(graph->onnx, name.text, 4, size);
    for (int64_t c = 0; data && c < channels; c++) data[c] = values[c % 4];
    return name;
}

static bool all_are(const float values[4], int64_t channels, float value)
{
    for (int64_t c = 0; c < channels && c < 4; c++)
        if (values[c] != value) return false;
    return true;
}

/* An image of numbers comes as a row. */
static struct tr_onnx_name image_of(struct tr_onnx_graph *graph, const struct tr_op_load_images *op)
{
    static const int64_t channels_first[] = {0, 3, 1, 2};
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->source);
    if (x->form != TR_ONNX_ROWS) return x->name;
    const int64_t size[] = {-1, op->in_h, op->in_w, op->channels};
    struct tr_onnx_name shape = tr_onnx_local_integers(graph, "shape", 4, size);
    struct tr_onnx_name image = tr_onnx_emit(graph, "Reshape", 2, x->name.text, shape.text);
    image = tr_onnx_emit(graph, "Transpose", 1, image.text);
    tr_onnx_attribute_integers(graph->onnx, "perm", 4, channels_first);
    return image;
}

tr_status tr_onnx_translate_pixels(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_load_images *op = &traced->as.load_images;
    struct tr_onnx_value y = {
        .name = cut_image(graph, op, image_of(graph, op)),
        .form = TR_ONNX_IMAGE,
        .size = {op->out_h, op->out_w, op->channels},
    };
    if (!all_are(op->scale, op->channels, 1)) {
        struct tr_onnx_name scale = per_channel(graph, "scale", op->channels, op->scale);
        y.name = tr_onnx_emit(graph, "Mul", 2, y.name.text, scale.text);
    }
    if (!all_are(op->shift, op->channels, 0)) {
        struct tr_onnx_name shift = per_channel(graph, "shift", op->channels, op->shift);
        y.name = tr_onnx_emit(graph, "Add", 2, y.name.text, shift.text);
    }
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* A constant [1, width] for each column; the rests of values that a float does not hold go to `rest`, if
   wanted. */
static struct tr_onnx_name per_column(struct tr_onnx_graph *graph, const char *what, int64_t width,
                                      const double *values, bool rest)
{
    struct tr_onnx_name name = tr_onnx_local(graph, what);
    float *data = tr_onnx_floats(graph->onnx, name.text, 2, (const int64_t[]){1, width});
    for (int64_t i = 0; data && i < width; i++)
        data[i] = rest ? (float)(values[i] - (double)(float)values[i]) : (float)values[i];
    return name;
}

/* Names become numbers: each column is repeated for each of its names, and compared with their numbers. */
static struct tr_onnx_name spread(struct tr_onnx_graph *graph, const struct tr_op_standardize *op,
                                  const char *x)
{
    const int64_t size[2] = {1, op->width};
    struct tr_onnx_name numbers = tr_onnx_local(graph, "numbers"), named = tr_onnx_local(graph, "named"),
                        columns = tr_onnx_local(graph, "columns");
    float *number = tr_onnx_floats(graph->onnx, numbers.text, 2, size),
          *name = tr_onnx_floats(graph->onnx, named.text, 2, size);
    int64_t *column = tr_onnx_integers(graph->onnx, columns.text, op->width, NULL), at = 0;
    for (int32_t c = 0; number && name && column && c < op->columns; c++) {
        int32_t names = op->categories->names[c].count, width = tr_category_width(op->categories, c);
        for (int32_t i = 0; i < width; i++, at++) {
            column[at] = c;
            number[at] = (float)i;
            name[at] = names > 0;
        }
    }
    struct tr_onnx_name all = tr_onnx_emit(graph, "Gather", 2, x, columns.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    struct tr_onnx_name equal = tr_onnx_emit(graph, "Equal", 2, all.text, numbers.text);
    struct tr_onnx_name own = tr_onnx_emit(graph, "Cast", 1, equal.text);
    tr_onnx_attribute_integer(graph->onnx, "to", TR_ONNX_FLOAT);
    struct tr_onnx_name one = tr_onnx_local_number(graph, "one", 1);
    struct tr_onnx_name is_named = tr_onnx_emit(graph, "Equal", 2, named.text, one.text);
    return tr_onnx_emit(graph, "Where", 3, is_named.text, own.text, all.text);
}

/* Missing values are filled in; a missing name is none of them. */
static struct tr_onnx_name fill_in(struct tr_onnx_graph *graph, const struct tr_op_standardize *op,
                                   const char *x)
{
    struct tr_onnx_name fill = tr_onnx_local(graph, "fill");
    float *data = tr_onnx_floats(graph->onnx, fill.text, 2, (const int64_t[]){1, op->columns});
    for (int64_t c = 0; data && c < op->columns; c++) data[c] = isnan(op->fill[c]) ? -1 : op->fill[c];
    struct tr_onnx_name missing = tr_onnx_emit(graph, "IsNaN", 1, x);
    return tr_onnx_emit(graph, "Where", 3, missing.text, fill.text, x);
}

/* Runtimes compute in floats, some in nothing else. A column that is far from 0 for its width keeps its
   digits, since the mean is subtracted in two parts. */
tr_status tr_onnx_translate_standardize(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_standardize *op = &traced->as.standardize;
    struct tr_onnx_value y = *tr_onnx_value_of(graph, op->x);
    for (int64_t i = 0; i < op->width; i++)
        if ((float)op->deviation[i] < FLT_MIN || (float)op->deviation[i] > FLT_MAX)
            return tr_fail(TR_EUNSUPPORTED, "the deviation %g of column %" PRId64 " is no float of ONNX",
                           op->deviation[i], i);
    if (op->fill) y.name = fill_in(graph, op, y.name.text);
    if (op->categories) y.name = spread(graph, op, y.name.text);
    y.width = op->width;
    struct tr_onnx_name mean = per_column(graph, "mean", op->width, op->mean, false);
    struct tr_onnx_name rest = per_column(graph, "rest_of_mean", op->width, op->mean, true);
    struct tr_onnx_name deviation = per_column(graph, "deviation", op->width, op->deviation, false);
    y.name = tr_onnx_emit(graph, "Sub", 2, y.name.text, mean.text);
    y.name = tr_onnx_emit(graph, "Sub", 2, y.name.text, rest.text);
    y.name = tr_onnx_emit(graph, "Div", 2, y.name.text, deviation.text);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}
