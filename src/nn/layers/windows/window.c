#include "nn/layers/windows/window.h"

#include "base/fail.h"

const struct tr_choice tr_padding_choices[] = {
    {"valid", TR_PADDING_VALID},
    {"same", TR_PADDING_SAME},
    {NULL, 0},
};

/* One direction: sets the number of outputs and the pad before the first pixel. */
static tr_status one_way(const char *direction, int64_t in, int32_t kernel, int32_t stride, int32_t dilation,
                         int32_t padding, int32_t pad, int32_t *out, int32_t *before)
{
    int64_t extent = (int64_t)(kernel - 1) * dilation + 1;
    if (pad < 0 && padding == TR_PADDING_SAME) {
        int64_t outputs = (in + stride - 1) / stride;
        int64_t wanted = (outputs - 1) * stride + extent - in;
        *out = (int32_t)outputs;
        *before = wanted > 0 ? (int32_t)(wanted / 2) : 0;
        return TR_OK;
    }
    int64_t around = pad < 0 ? 0 : pad;
    if (around >= extent)
        return tr_fail(TR_EINVAL, "pad %d is not below the kernel's %s of %lld; windows would see no pixel",
                       pad, direction, (long long)extent);
    if (extent > in + 2 * around)
        return tr_fail(
            TR_EINVAL,
            "kernel %s %lld does not fit the input's %s of %lld; use padding: same or a smaller kernel",
            direction, (long long)extent, direction, (long long)(in + 2 * around));
    *out = (int32_t)((in + 2 * around - extent) / stride + 1);
    *before = (int32_t)around;
    return TR_OK;
}

tr_status tr_window_make(const struct tr_window_options *options, const struct tr_shape *in,
                         struct tr_sliding_window *window)
{
    char text[TR_SHAPE_TEXT];
    if (in->rank != 3 || in->sequence)
        return tr_fail(TR_EINVAL, "needs images (height x width x channels), its input is %s",
                       tr_shape_text(in, text));
    if (in->size[0] > INT32_MAX / 4 || in->size[1] > INT32_MAX / 4 || in->size[2] > INT32_MAX / 4)
        return tr_fail(TR_EINVAL, "image %s is too large", tr_shape_text(in, text));
    const int32_t *kernel = options->kernel, *stride = options->stride, *dilation = options->dilation;
    *window = (struct tr_sliding_window){
        .in_h = (int32_t)in->size[0],
        .in_w = (int32_t)in->size[1],
        .kernel_h = kernel[0],
        .kernel_w = kernel[1],
        .stride_h = stride[0],
        .stride_w = stride[1],
        .dilation_h = dilation[0],
        .dilation_w = dilation[1],
    };
    TR_TRY(one_way("height", in->size[0], kernel[0], stride[0], dilation[0], options->padding,
                   options->pad[0], &window->out_h, &window->pad_top));
    return one_way("width", in->size[1], kernel[1], stride[1], dilation[1], options->padding, options->pad[1],
                   &window->out_w, &window->pad_left);
}
