/* Dense layers. */
#include "device/order/order.h"

#include "base/alloc.h"

/* Output o of row r before the activation. */
static float dense_output(const struct tr_op_dense_forward *a, int64_t r, int64_t o)
{
    for (int64_t i = 0; i < a->in; i++) term(a->x[r * a->in + i], a->w[i * a->out + o]);
    const float sum = chain(0);
    return a->b ? sum + a->b[o] : sum;
}

ORDER(dense_forward)
{
    for (int64_t i = 0; i < a->rows * a->out; i++)
        a->y[i] = activated(a->activation, a->slope, dense_output(a, i / a->out, i % a->out));
}

ORDER(dense_backward_data)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t i = 0; i < a->in; i++) {
            for (int64_t o = 0; o < a->out; o++) term(a->dy[r * a->out + o], a->w[i * a->out + o]);
            a->dx[r * a->in + i] = chain(0);
        }
}

static float weight_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    for (int64_t r = first; r < end; r++) term(a->x[r * a->in + k / a->out], a->dy[r * a->out + k % a->out]);
    return chain(0);
}

static float bias_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_dense_backward_weights *a = arguments;
    for (int64_t r = first; r < end; r++) number(a->dy[r * a->out + k]);
    return sum_chain(0);
}

ORDER(dense_backward_weights)
{
    each_node(&a->cut, a->in * a->out, a->dw, weight_leaf, a);
    if (a->db) each_node(&a->cut, a->out, a->db, bias_leaf, a);
}

ORDER(dense_gelu_forward)
{
    const struct tr_op_dense_forward *dense = &a->dense;
    for (int64_t i = 0; i < dense->rows * dense->out; i++) {
        const float x = dense_output(dense, i / dense->out, i % dense->out), one = 1;
        order_activation_backward(&(struct tr_op_activation_backward){
            .count = 1, .x = &x, .dy = &one, .dx = &a->derivative[i], .activation = dense->activation});
        dense->y[i] = activated(dense->activation, 0, x);
    }
}

ORDER(dense_gelu_backward_data)
{
    order_dense_backward_data(&a->dense);
    for (int64_t i = 0; i < a->dense.rows * a->dense.in; i++) a->dense.dx[i] *= a->derivative[i];
}

ORDER(dense_backward_update)
{
    struct tr_op_dense_backward_update b = *a;
    float *gradient = tr_alloc_zero((size_t)(a->weights.in * a->weights.out), sizeof *gradient);
    b.weights.dw = gradient;
    b.update.grad = gradient;
    order_dense_backward_weights(&b.weights);
    order_update(&b.update);
    tr_free(gradient);
}
