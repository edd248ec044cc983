/* upsample: repeats every pixel of an image several times in both directions (nearest neighbour).
 *
 * Both directions are a concatenation of rows: of pixels within a line, then of lines within an image.
 * Backward adds the gradients of a pixel's copies: first over the lines, from the upper one down, then
 * over the pixels, from left to right.
 */
#include "nn/layers/table.h"

#include <inttypes.h>

struct options {
    int32_t size[2]; /* height, width */
};

static const struct tr_option table[] = {
    {"size", TR_OPTION_PAIR, offsetof(struct options, size), "2", 1, TR_JOIN_PARTS, NULL,
     "repetitions of each row and each column"},
};

/* The image whose pixels were repeated along the lines only; in backward, parts to be added. */
enum buffers { WIDENED, PARTS };

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    const struct tr_shape *in = &layer->in[0];
    char text[TR_SHAPE_TEXT];
    (void)builder;
    if (in->rank != 3 || in->sequence)
        return tr_fail(TR_EINVAL,
                       "needs images (height x width x channels), its input is %s; reshape makes them",
                       tr_shape_text(in, text));
    if (options->size[0] == 1 && options->size[1] == 1)
        return tr_fail(TR_EINVAL, "repeats nothing; give a size above 1, or leave the layer out");
    layer->out = (struct tr_shape){
        3, {in->size[0] * options->size[0], in->size[1] * options->size[1], in->size[2]}, false};
    TR_TRY(tr_shape_check(&layer->out, "output"));
    int64_t bytes = tr_shape_count(&layer->out) * (int64_t)sizeof(float);
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_EXAMPLE, bytes / options->size[0], 0, false});
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_EXAMPLE, bytes, 0, true});
    return TR_OK;
}

/* Repeats each of `rows` rows of `width` numbers `times` times. */
static tr_status repeat(tr_device *device, int64_t rows, int64_t width, int32_t times, const float *x,
                        float *y)
{
    struct tr_op_join_columns op = {.rows = rows, .parts = times, .y = y};
    for (int32_t k = 0; k < times; k++) {
        op.width[k] = width;
        op.x[k] = x;
    }
    return tr_device_join_columns(device, &op);
}

/* The sum of `times` rows for each one: `parts` has room for dy, `y` gets the sums. */
static tr_status add_up(tr_device *device, int64_t rows, int64_t width, int32_t times, const float *dy,
                        float *parts, float *y)
{
    struct tr_op_split_columns split = {.rows = rows, .parts = times, .x = dy};
    const int64_t count = rows * width;
    for (int32_t k = 0; k < times; k++) {
        split.width[k] = width;
        split.y[k] = parts + k * count;
    }
    TR_TRY(tr_device_split_columns(device, &split));
    for (int32_t k = 1; k < times; k++) {
        const struct tr_op_add add = {count, k == 1 ? parts : y, parts + k * count, y};
        TR_TRY(tr_device_add(device, &add));
    }
    return TR_OK;
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t *in = call->layer->in[0].size;
    const int32_t *size = options->size;
    const float *x = call->x[0];
    if (size[1] > 1) {
        float *wide = size[0] > 1 ? call->buffer[WIDENED] : call->y;
        TR_TRY(repeat(call->device, call->rows * in[0] * in[1], in[2], size[1], x, wide));
        x = wide;
    }
    if (size[0] == 1) return TR_OK;
    return repeat(call->device, call->rows * in[0], in[1] * size[1] * in[2], size[0], x, call->y);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t *in = call->layer->in[0].size;
    const int32_t *size = options->size;
    const float *dy = call->dy;
    if (size[0] > 1) {
        float *sum = size[1] > 1 ? call->buffer[WIDENED] : call->dx[0];
        TR_TRY(add_up(call->device, call->rows * in[0], in[1] * size[1] * in[2], size[0], dy,
                      call->buffer[PARTS], sum));
        dy = sum;
    }
    if (size[1] == 1) return TR_OK;
    return add_up(call->device, call->rows * in[0] * in[1], in[2], size[1], dy, call->buffer[PARTS],
                  call->dx[0]);
}

const struct tr_layer_class tr_layer_upsample = {
    .name = "upsample",
    .help = "every pixel of an image several times (nearest neighbour)",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
