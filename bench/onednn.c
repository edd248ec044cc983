/* The convolution passes by oneDNN, in its preferred layouts. */
#include "kernels.h"

#if TR_HAVE_ONEDNN
#include "support/onednn_api.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

const bool have_onednn = true;

#define ARGUMENTS 5

struct execution {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    int count;
};

static void execute(void *arguments)
{
    struct execution *e = arguments;
    dnnl_primitive_execute(e->primitive, e->stream, e->count, e->arguments);
    dnnl_stream_wait(e->stream);
}

static bool add_memory(struct execution *e, dnnl_engine_t engine, const_dnnl_primitive_desc_t description,
                       int query_index, int argument)
{
    onednn_shape layout =
        argument == DNNL_ARG_SCRATCHPAD
            ? dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0)
            : dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, query_index);
    dnnl_memory_t memory;
    if (!layout || dnnl_memory_create(&memory, layout, engine, DNNL_MEMORY_ALLOCATE) != dnnl_success)
        return false;
    void *bytes;
    if (dnnl_memory_get_data_handle(memory, &bytes) == dnnl_success && bytes)
        memset(bytes, 0, dnnl_memory_desc_get_size(layout));
    e->arguments[e->count++] = (dnnl_exec_arg_t){argument, memory};
    return true;
}

/* Describes a pass with tensors of these shapes; the gradients want the forward description as a hint. */
static dnnl_status_t describe_shapes(const struct conv_shape *s, enum pass pass, dnnl_engine_t engine,
                                     const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                     const onednn_shape shape[4], dnnl_primitive_desc_t *out)
{
    const dnnl_dims_t strides = {s->stride, s->stride}, dilates = {0, 0}, pad = {s->pad, s->pad};
    const int after = (s->out - 1) * s->stride + s->kernel - s->in - s->pad;
    const dnnl_dims_t pad_after = {after, after};
    onednn_shape x = shape[0], w = shape[1], b = shape[2], y = shape[3];
    dnnl_status_t status;
    if (pass == PASS_FORWARD)
        ONEDNN_FORWARD(status, out, engine, attr, convolution_forward, dnnl_forward_training,
                       dnnl_convolution_direct, x, w, b, y, strides, dilates, pad, pad_after);
    else if (pass == PASS_DATA)
        ONEDNN_BACKWARD(status, out, engine, attr, hint, convolution_backward_data, dnnl_convolution_direct,
                        x, w, y, strides, dilates, pad, pad_after);
    else
        ONEDNN_BACKWARD(status, out, engine, attr, hint, convolution_backward_weights,
                        dnnl_convolution_direct, x, w, b, y, strides, dilates, pad, pad_after);
    return status;
}

/* The same in the layouts that oneDNN prefers. */
static bool describe(const struct conv_shape *s, enum pass pass, dnnl_engine_t engine,
                     const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                     dnnl_primitive_desc_t *out)
{
    const onednn_shape shape[4] = {
        onednn_shape_make(4, (dnnl_dims_t){s->rows, s->in_c, s->in, s->in}, dnnl_format_tag_any),
        onednn_shape_make(4, (dnnl_dims_t){s->out_c, s->in_c, s->kernel, s->kernel}, dnnl_format_tag_any),
        onednn_shape_make(1, (dnnl_dims_t){s->out_c}, dnnl_format_tag_any),
        onednn_shape_make(4, (dnnl_dims_t){s->rows, s->out_c, s->out, s->out}, dnnl_format_tag_any),
    };
    bool made = shape[0] && shape[1] && shape[2] && shape[3] &&
                describe_shapes(s, pass, engine, attr, hint, shape, out) == dnnl_success;
    for (int i = 0; i < 4; i++) onednn_shape_free(shape[i]);
    return made;
}

bool onednn_conv(const struct conv_shape *shape, enum pass pass, int threads, double *time)
{
    static const int arguments[PASSES][4] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, 0},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS},
    };
    omp_set_num_threads(threads);
    dnnl_engine_t engine = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t forward = NULL, description = NULL;
    struct execution e = {0};
    bool done = false;
    /* A scratchpad of the library belongs to the thread that made the primitive; ours does not. */
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&e.stream, engine, dnnl_stream_default_flags) != dnnl_success ||
        dnnl_primitive_attr_create(&attr) != dnnl_success ||
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) != dnnl_success ||
        !describe(shape, PASS_FORWARD, engine, attr, NULL, &forward) ||
        !describe(shape, pass, engine, attr, pass == PASS_FORWARD ? NULL : forward, &description) ||
        dnnl_primitive_create(&e.primitive, description) != dnnl_success)
        goto out;
    for (int i = 0; i < 4 && arguments[pass][i]; i++)
        if (!add_memory(&e, engine, description, arguments[pass][i], arguments[pass][i])) goto out;
    if (!add_memory(&e, engine, description, 0, DNNL_ARG_SCRATCHPAD)) goto out;
    *time = fastest(execute, &e);
    done = true;
out:
    for (int i = 0; i < e.count; i++) dnnl_memory_destroy(e.arguments[i].memory);
    if (e.primitive) dnnl_primitive_destroy(e.primitive);
    if (description) dnnl_primitive_desc_destroy(description);
    if (forward) dnnl_primitive_desc_destroy(forward);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (e.stream) dnnl_stream_destroy(e.stream);
    if (engine) dnnl_engine_destroy(engine);
    return done;
}
#else
const bool have_onednn = false;

bool onednn_conv(const struct conv_shape *shape, enum pass pass, int threads, double *time)
{
    (void)shape, (void)pass, (void)threads, (void)time;
    return false;
}
#endif
