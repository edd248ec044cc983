/* Layers that slide a window over an image as PyTorch source, with the margins around it that they need. */
#include "export/torch/layers.h"

#include <inttypes.h>
#include <string.h>

static int64_t positive(int64_t value)
{
    return value > 0 ? value : 0;
}

static struct tr_torch_margin margin_of(const struct tr_sliding_window *w, bool pool)
{
    int64_t extent_h = (int64_t)(w->kernel_h - 1) * w->dilation_h + 1,
            extent_w = (int64_t)(w->kernel_w - 1) * w->dilation_w + 1;
    struct tr_torch_margin margin = {
        .top = w->pad_top,
        .left = w->pad_left,
        .bottom = positive((int64_t)(w->out_h - 1) * w->stride_h + extent_h - w->in_h - w->pad_top),
        .right = positive((int64_t)(w->out_w - 1) * w->stride_w + extent_w - w->in_w - w->pad_left),
    };
    margin.inside = (w->in_h + 2 * margin.top - extent_h) / w->stride_h + 1 == w->out_h &&
                    (w->in_w + 2 * margin.left - extent_w) / w->stride_w + 1 == w->out_w;
    /* The limits of PyTorch for pools. */
    if (pool && (2 * margin.top > w->kernel_h || 2 * margin.left > w->kernel_w)) margin.inside = false;
    return margin;
}

static bool is_empty(const struct tr_torch_margin *margin)
{
    return margin->top + margin->bottom + margin->left + margin->right == 0;
}

static void add_pair(struct tr_text *text, const char *key, int64_t a, int64_t b, int64_t usual)
{
    if (a != usual || b != usual) tr_text_addf(text, ", %s=(%" PRId64 ", %" PRId64 ")", key, a, b);
}

void tr_torch_add_margin(struct tr_text *text, const struct tr_torch_margin *margin)
{
    tr_text_addf(text, "(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", margin->left, margin->right,
                 margin->top, margin->bottom);
}

/* ---- making the layers ---- */

void tr_torch_add_groups(const struct tr_layer *layer, struct tr_text *text)
{
    const int64_t groups = *(const int64_t *)tr_layer_option(layer, "groups");
    if (groups > 1) tr_text_addf(text, ", groups=%" PRId64, groups);
}

void tr_torch_make_conv(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_sliding_window *window = tr_layer_window(layer);
    struct tr_torch_margin margin = margin_of(window, false);
    tr_text_addf(text, "nn.Conv2d(%" PRId64 ", %" PRId64 ", (%d, %d)", layer->in[0].size[2],
                 layer->out.size[2], window->kernel_h, window->kernel_w);
    add_pair(text, "stride", window->stride_h, window->stride_w, 1);
    if (margin.inside) add_pair(text, "padding", margin.top, margin.left, 0);
    add_pair(text, "dilation", window->dilation_h, window->dilation_w, 1);
    tr_torch_add_groups(layer, text);
    tr_text_add(text, layer->parameter_count > 1 ? ")" : ", bias=False)");
}

/* The difference in one direction between a transposed convolution and PyTorch's result with a padding of
   `before`: rows that it lacks at the end, or rows to cut off there (negative). */
static int64_t rows_missing(int32_t out, int32_t in, int32_t stride, int32_t kernel, int32_t before)
{
    return out - ((int64_t)(in - 1) * stride + kernel - 2 * before);
}

/* Its window is that of the backward convolution: `in` is its output. */
void tr_torch_make_conv_transpose(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_sliding_window *w = tr_layer_window(layer);
    tr_text_addf(text, "nn.ConvTranspose2d(%" PRId64 ", %" PRId64 ", (%d, %d)", layer->in[0].size[2],
                 layer->out.size[2], w->kernel_h, w->kernel_w);
    add_pair(text, "stride", w->stride_h, w->stride_w, 1);
    add_pair(text, "padding", w->pad_top, w->pad_left, 0);
    add_pair(text, "output_padding",
             positive(rows_missing(w->in_h, w->out_h, w->stride_h, w->kernel_h, w->pad_top)),
             positive(rows_missing(w->in_w, w->out_w, w->stride_w, w->kernel_w, w->pad_left)), 0);
    tr_torch_add_groups(layer, text);
    tr_text_add(text, ", bias=False)");
}

void tr_torch_make_upsample(const struct tr_layer *layer, struct tr_text *text)
{
    const int32_t *size = tr_layer_option(layer, "size");
    tr_text_addf(text, "nn.Upsample(scale_factor=(%d, %d))", size[0], size[1]);
}

static bool counts_border(const struct tr_layer *layer)
{
    return *(const bool *)tr_layer_option(layer, "count_border");
}

void tr_torch_make_pool(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_sliding_window *window = tr_layer_window(layer);
    struct tr_torch_margin margin = margin_of(window, true);
    bool max = strcmp(layer->class->name, "max_pool") == 0;
    tr_text_addf(text, "nn.%s((%d, %d), stride=(%d, %d)", max ? "MaxPool2d" : "AvgPool2d", window->kernel_h,
                 window->kernel_w, window->stride_h, window->stride_w);
    if (margin.inside) add_pair(text, "padding", margin.top, margin.left, 0);
    tr_text_add(text, max || !margin.inside || is_empty(&margin) || counts_border(layer)
                          ? ")"
                          : ", count_include_pad=False)");
}

/* ---- calling them ---- */

/* The input of a window: x, or x with a margin of `value`. */
static void add_padded(struct tr_text *text, const struct tr_torch_margin *margin, const char *value)
{
    if (margin->inside || is_empty(margin)) {
        tr_text_add(text, "x");
        return;
    }
    tr_text_add(text, "F.pad(x, ");
    tr_torch_add_margin(text, margin);
    tr_text_addf(text, "%s)", value);
}

void tr_torch_call_conv(const struct tr_layer *layer, struct tr_text *text)
{
    struct tr_torch_margin margin = margin_of(tr_layer_window(layer), false);
    const char *end = tr_torch_open_activation(layer, text);
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(");
    add_padded(text, &margin, "");
    tr_text_add(text, ")");
    tr_torch_close_activation(layer, end, text);
}

void tr_torch_call_pool(const struct tr_layer *layer, struct tr_text *text)
{
    struct tr_torch_margin margin = margin_of(tr_layer_window(layer), true);
    bool max = strcmp(layer->class->name, "max_pool") == 0;
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(");
    add_padded(text, &margin, max ? ", value=-torch.inf" : "");
    tr_text_add(text, ")");
    if (max || margin.inside || is_empty(&margin) || counts_border(layer)) return;
    /* The mean is over the pixels inside the image. */
    tr_text_add(text, " / ");
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(F.pad(torch.ones_like(x), ");
    tr_torch_add_margin(text, &margin);
    tr_text_add(text, "))");
}

void tr_torch_call_conv_transpose(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_sliding_window *w = tr_layer_window(layer);
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(x)");
    if (rows_missing(w->in_h, w->out_h, w->stride_h, w->kernel_h, w->pad_top) < 0 ||
        rows_missing(w->in_w, w->out_w, w->stride_w, w->kernel_w, w->pad_left) < 0)
        tr_text_addf(text, "[:, :, :%d, :%d]", w->in_h, w->in_w);
}
