/* Computations over rows: softmax and normalizations. */
#include "export/onnx/graph.h"

#include "base/fail.h"

tr_status tr_onnx_translate_softmax(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_softmax_forward *op = &traced->as.softmax_forward;
    struct tr_onnx_value x = *tr_onnx_value_of(graph, op->x);
    if (x.form == TR_ONNX_IMAGE && op->width != x.size[2]) x = tr_onnx_as_rows(graph, &x);
    struct tr_onnx_value y = tr_onnx_alike(&x, tr_onnx_emit(graph, "Softmax", 1, x.name.text));
    tr_onnx_attribute_integer(graph->onnx, "axis", x.form == TR_ONNX_IMAGE ? 1 : -1);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* The axes to reduce: the last axis, all of an image, or its channels. */
enum extent { LAST, IMAGE, CHANNELS };

static struct tr_onnx_name mean_of(struct tr_onnx_graph *graph, enum extent extent, const char *x)
{
    static const int64_t axes[][3] = {[LAST] = {-1}, [IMAGE] = {1, 2, 3}, [CHANNELS] = {1}};
    struct tr_onnx_name mean = tr_onnx_emit(graph, "ReduceMean", 1, x);
    tr_onnx_attribute_integers(graph->onnx, "axes", extent == IMAGE ? 3 : 1, axes[extent]);
    tr_onnx_attribute_integer(graph->onnx, "keepdims", 1);
    return mean;
}

/* A parameter with a number for each of x's, `width` in all, or for each of its channels. */
static struct tr_onnx_name parameter_like(struct tr_onnx_graph *graph, const float *values,
                                          const struct tr_onnx_value *x, int64_t width)
{
    const int64_t size[] = {x->size[2], x->size[0], x->size[1]}, channels[] = {width, 1, 1};
    if (x->form == TR_ONNX_IMAGE && width == x->size[2]) return tr_onnx_parameter(graph, values, 3, channels);
    return x->form == TR_ONNX_IMAGE ? tr_onnx_parameter_of_image(graph, values, x->size, 1, 3, size)
                                    : tr_onnx_parameter(graph, values, 1, &width);
}

/* x over the root of the mean of its squares and epsilon. */
static struct tr_onnx_name over_root(struct tr_onnx_graph *graph, enum extent extent, const char *x,
                                     float epsilon)
{
    struct tr_onnx_name number = tr_onnx_local_number(graph, "epsilon", epsilon);
    struct tr_onnx_name square = tr_onnx_emit(graph, "Mul", 2, x, x);
    struct tr_onnx_name mean = mean_of(graph, extent, square.text);
    struct tr_onnx_name raised = tr_onnx_emit(graph, "Add", 2, mean.text, number.text);
    struct tr_onnx_name root = tr_onnx_emit(graph, "Sqrt", 1, raised.text);
    return tr_onnx_emit(graph, "Div", 2, x, root.text);
}

tr_status tr_onnx_translate_rms_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_rms_norm_forward *op = &traced->as.rms_norm_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    struct tr_onnx_name gamma = parameter_like(graph, op->gamma, x, op->width);
    struct tr_onnx_name normal =
        over_root(graph, x->form == TR_ONNX_IMAGE ? IMAGE : LAST, x->name.text, op->epsilon);
    struct tr_onnx_value y = tr_onnx_alike(x, tr_onnx_emit(graph, "Mul", 2, normal.text, gamma.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* The operator set lacks layer normalization. */
tr_status tr_onnx_translate_layer_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_layer_norm_forward *op = &traced->as.layer_norm_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const enum extent extent = x->form != TR_ONNX_IMAGE ? LAST : op->width == x->size[2] ? CHANNELS : IMAGE;
    struct tr_onnx_name gamma = parameter_like(graph, op->gamma, x, op->width);
    struct tr_onnx_name beta = parameter_like(graph, op->beta, x, op->width);
    struct tr_onnx_name mean = mean_of(graph, extent, x->name.text);
    struct tr_onnx_name d = tr_onnx_emit(graph, "Sub", 2, x->name.text, mean.text);
    struct tr_onnx_name normal = over_root(graph, extent, d.text, op->epsilon);
    struct tr_onnx_name scaled = tr_onnx_emit(graph, "Mul", 2, normal.text, gamma.text);
    struct tr_onnx_value y = tr_onnx_alike(x, tr_onnx_emit(graph, "Add", 2, scaled.text, beta.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* Groups get a separate axis, so that the rest of it is normalized. */
tr_status tr_onnx_translate_group_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_group_norm_forward *op = &traced->as.group_norm_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const bool image = x->form == TR_ONNX_IMAGE, sequence = x->form == TR_ONNX_SEQUENCE;
    const int64_t split[] = {0, op->groups, -1}, split_tokens[] = {0, 0, op->groups, -1};
    const int64_t whole_image[] = {0, op->channels, x->size[0], x->size[1]};
    const int64_t whole_tokens[] = {0, 0, op->channels}, whole[] = {0, op->channels};
    const int64_t size[] = {op->channels, 1, 1};
    struct tr_onnx_name apart =
        tr_onnx_local_integers(graph, "groups", sequence ? 4 : 3, sequence ? split_tokens : split);
    struct tr_onnx_name together = tr_onnx_local_integers(graph, "channels",
                                                          image      ? 4
                                                          : sequence ? 3
                                                                     : 2,
                                                          image      ? whole_image
                                                          : sequence ? whole_tokens
                                                                     : whole);
    struct tr_onnx_name gamma = tr_onnx_parameter(graph, op->gamma, image ? 3 : 1, size);
    struct tr_onnx_name beta = tr_onnx_parameter(graph, op->beta, image ? 3 : 1, size);
    struct tr_onnx_name groups = tr_onnx_emit(graph, "Reshape", 2, x->name.text, apart.text);
    struct tr_onnx_name mean = mean_of(graph, LAST, groups.text);
    struct tr_onnx_name d = tr_onnx_emit(graph, "Sub", 2, groups.text, mean.text);
    struct tr_onnx_name normal = over_root(graph, LAST, d.text, op->epsilon);
    struct tr_onnx_name channels = tr_onnx_emit(graph, "Reshape", 2, normal.text, together.text);
    struct tr_onnx_name scaled = tr_onnx_emit(graph, "Mul", 2, channels.text, gamma.text);
    struct tr_onnx_value y = tr_onnx_alike(x, tr_onnx_emit(graph, "Add", 2, scaled.text, beta.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

tr_status tr_onnx_translate_batch_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_batch_norm_infer *op = &traced->as.batch_norm_infer;
    struct tr_onnx_value x = *tr_onnx_value_of(graph, op->x);
    if (x.form == TR_ONNX_IMAGE && op->channels != x.size[2]) x = tr_onnx_as_rows(graph, &x);
    struct tr_onnx_name gamma = tr_onnx_parameter(graph, op->gamma, 1, &op->channels);
    struct tr_onnx_name beta = tr_onnx_parameter(graph, op->beta, 1, &op->channels);
    struct tr_onnx_name mean = tr_onnx_parameter(graph, op->mean, 1, &op->channels);
    struct tr_onnx_name variance = tr_onnx_parameter(graph, op->var, 1, &op->channels);
    struct tr_onnx_value y = tr_onnx_alike(&x, tr_onnx_emit(graph, "BatchNormalization", 5, x.name.text,
                                                            gamma.text, beta.text, mean.text, variance.text));
    tr_onnx_attribute_float(graph->onnx, "epsilon", op->epsilon);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}
