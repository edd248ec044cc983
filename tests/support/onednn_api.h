/* Operations described to oneDNN 2 and 3 by the same functions, those of 3: a primitive's description is
 * made directly from its arguments, and shapes are handles. The intermediate descriptors, which only 2
 * has, stay in this file.
 */
#ifndef TESTS_SUPPORT_ONEDNN_API_H
#define TESTS_SUPPORT_ONEDNN_API_H

#include <oneapi/dnnl/dnnl.h>

#include <stdlib.h>

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t onednn_shape;

/* Describes the forward `operation` with its arguments between engine and attributes; sets `status`. */
#define ONEDNN_FORWARD(status, out, engine, attributes, operation, ...)                                      \
    (status) = dnnl_##operation##_primitive_desc_create(out, engine, __VA_ARGS__, attributes)
/* The same for a backward one, with the description of the forward one as `hint`. */
#define ONEDNN_BACKWARD(status, out, engine, attributes, hint, operation, ...)                               \
    (status) = dnnl_##operation##_primitive_desc_create(out, engine, __VA_ARGS__, hint, attributes)

#else

typedef const dnnl_memory_desc_t *onednn_shape;

#define ONEDNN_DESCRIBE_(status, out, engine, attributes, hint, operation, ...)                              \
    do {                                                                                                     \
        ONEDNN_TYPE_##operation descriptor_;                                                                 \
        *(out) = NULL;                                                                                       \
        (status) = ONEDNN_INIT_##operation(&descriptor_, __VA_ARGS__);                                       \
        if ((status) == dnnl_success)                                                                        \
            (status) = dnnl_primitive_desc_create(out, &descriptor_, attributes, engine, hint);              \
    } while (0)
#define ONEDNN_FORWARD(status, out, engine, attributes, operation, ...)                                      \
    ONEDNN_DESCRIBE_(status, out, engine, attributes, NULL, operation, __VA_ARGS__)
#define ONEDNN_BACKWARD(status, out, engine, attributes, hint, operation, ...)                               \
    ONEDNN_DESCRIBE_(status, out, engine, attributes, hint, operation, __VA_ARGS__)

#define ONEDNN_TYPE_inner_product_forward          dnnl_inner_product_desc_t
#define ONEDNN_TYPE_inner_product_backward_data    dnnl_inner_product_desc_t
#define ONEDNN_TYPE_inner_product_backward_weights dnnl_inner_product_desc_t
#define ONEDNN_TYPE_convolution_forward            dnnl_convolution_desc_t
#define ONEDNN_TYPE_convolution_backward_data      dnnl_convolution_desc_t
#define ONEDNN_TYPE_convolution_backward_weights   dnnl_convolution_desc_t
#define ONEDNN_TYPE_pooling_forward                dnnl_pooling_v2_desc_t
#define ONEDNN_TYPE_pooling_backward               dnnl_pooling_v2_desc_t
#define ONEDNN_TYPE_eltwise_forward                dnnl_eltwise_desc_t
#define ONEDNN_TYPE_eltwise_backward               dnnl_eltwise_desc_t
#define ONEDNN_TYPE_softmax_forward                dnnl_softmax_v2_desc_t
#define ONEDNN_TYPE_softmax_backward               dnnl_softmax_v2_desc_t
#define ONEDNN_TYPE_layer_normalization_forward    dnnl_layer_normalization_desc_t
#define ONEDNN_TYPE_layer_normalization_backward   dnnl_layer_normalization_desc_t
#define ONEDNN_TYPE_batch_normalization_forward    dnnl_batch_normalization_desc_t
#define ONEDNN_TYPE_batch_normalization_backward   dnnl_batch_normalization_desc_t
#define ONEDNN_TYPE_lstm_forward                   dnnl_rnn_desc_t
#define ONEDNN_TYPE_lstm_backward                  dnnl_rnn_desc_t

#define ONEDNN_INIT_inner_product_forward          dnnl_inner_product_forward_desc_init
#define ONEDNN_INIT_inner_product_backward_data    dnnl_inner_product_backward_data_desc_init
#define ONEDNN_INIT_inner_product_backward_weights dnnl_inner_product_backward_weights_desc_init
#define ONEDNN_INIT_convolution_forward            dnnl_dilated_convolution_forward_desc_init
#define ONEDNN_INIT_convolution_backward_data      dnnl_dilated_convolution_backward_data_desc_init
#define ONEDNN_INIT_convolution_backward_weights   dnnl_dilated_convolution_backward_weights_desc_init
#define ONEDNN_INIT_pooling_forward                dnnl_pooling_v2_forward_desc_init
#define ONEDNN_INIT_pooling_backward               dnnl_pooling_v2_backward_desc_init
#define ONEDNN_INIT_softmax_forward                dnnl_softmax_v2_forward_desc_init
#define ONEDNN_INIT_softmax_backward               dnnl_softmax_v2_backward_desc_init
#define ONEDNN_INIT_lstm_forward                   dnnl_lstm_forward_desc_init_v3
#define ONEDNN_INIT_lstm_backward                  dnnl_lstm_backward_desc_init_v3
/* In these, inputs and outputs have one shape in 2. */
#define ONEDNN_INIT_eltwise_forward(out, kind, algorithm, src, dst, alpha, beta)                             \
    dnnl_eltwise_forward_desc_init(out, kind, algorithm, src, alpha, beta)
#define ONEDNN_INIT_eltwise_backward(out, algorithm, diff_src, diff_dst, data, alpha, beta)                  \
    dnnl_eltwise_backward_desc_init(out, algorithm, diff_dst, data, alpha, beta)
#define ONEDNN_INIT_layer_normalization_forward(out, kind, src, dst, statistics, epsilon, flags)             \
    dnnl_layer_normalization_forward_desc_init(out, kind, src, statistics, epsilon, flags)
#define ONEDNN_INIT_layer_normalization_backward(out, kind, diff_src, diff_dst, src, statistics, epsilon,    \
                                                 flags)                                                      \
    dnnl_layer_normalization_backward_desc_init(out, kind, diff_dst, src, statistics, epsilon, flags)
#define ONEDNN_INIT_batch_normalization_forward(out, kind, src, dst, epsilon, flags)                         \
    dnnl_batch_normalization_forward_desc_init(out, kind, src, epsilon, flags)
#define ONEDNN_INIT_batch_normalization_backward(out, kind, diff_src, diff_dst, src, epsilon, flags)         \
    dnnl_batch_normalization_backward_desc_init(out, kind, diff_dst, src, epsilon, flags)

#endif

/* A tensor of floats. Returned, free with onednn_shape_free(); NULL where oneDNN refuses or memory fails. */
static inline onednn_shape onednn_shape_make(int count, const dnnl_dim_t *dims, dnnl_format_tag_t layout)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t shape;
    return dnnl_memory_desc_create_with_tag(&shape, count, dims, dnnl_f32, layout) == dnnl_success ? shape
                                                                                                   : NULL;
#else
    dnnl_memory_desc_t *shape = malloc(sizeof *shape);
    if (shape && dnnl_memory_desc_init_by_tag(shape, count, dims, dnnl_f32, layout) == dnnl_success)
        return shape;
    free(shape);
    return NULL;
#endif
}

static inline void onednn_shape_free(onednn_shape shape)
{
#if DNNL_VERSION_MAJOR >= 3
    if (shape) dnnl_memory_desc_destroy((dnnl_memory_desc_t)shape);
#else
    free((void *)shape);
#endif
}

#endif
