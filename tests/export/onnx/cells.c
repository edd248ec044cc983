/* Recurrent layers, a step at a time. */
#include "export/onnx/node.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

/* Row `row` of weights [1][rows][columns] times a vector. */
static double product(const struct onnx_value *w, int64_t row, const double *v)
{
    double sum = 0;
    for (int64_t i = 0; i < w->size[2]; i++) sum += w->v[row * w->size[2] + i] * v[i];
    return sum;
}

static double gate(double x)
{
    return 1 / (1 + exp(-x));
}

/* Gates are i, o, f, c of an LSTM and z, r, h of a GRU; biases of the inputs come first. */
static void cell(struct node *node)
{
    const bool lstm = strcmp(node->proto->op_type, "LSTM") == 0;
    const struct onnx_value *x = node->x, *w = node_in(node, 1), *r = node_in(node, 2);
    const int64_t times = x->size[0], batch = x->size[1], width = x->size[2],
                  n = node_integer(node, "hidden_size", 0), gates = lstm ? 4 : 3;
    const double *b = node_in(node, 3)->v;
    const char *all = node->proto->output[0], *last = node->proto->n_output > 1 ? node->proto->output[1] : "";
    assert_true(w->size[1] == gates * n && r->size[1] == gates * n && r->size[2] == n && w->size[2] == width);
    assert_true(x->rank == 3 && w->rank == 3 && r->rank == 3 && w->size[0] == 1 && r->size[0] == 1);
    assert_int_equal(node_in(node, 3)->count, 2 * gates * n);
    assert_null(node_attribute(node, "direction"));
    if (node_has(node, 4)) assert_int_equal(node_in(node, 4)->count, batch);
    if (!lstm) assert_int_equal(node_integer(node, "linear_before_reset", 0), 1);
    struct onnx_value *y =
        onnx_make(node->run, *all ? all : "(all)", 4, (const int64_t[]){times, 1, batch, n});
    struct onnx_value *h = onnx_make(node->run, *last ? last : "(last)", 3, (const int64_t[]){1, batch, n});
    double c[64] = {0}, before[64], next[4];
    assert_true(n <= 64);
    for (int64_t e = 0; e < batch; e++) {
        const int64_t length = node_has(node, 4) ? (int64_t)node_in(node, 4)->v[e] : times;
        double *state = &h->v[e * n];
        memset(c, 0, sizeof c);
        for (int64_t t = 0; t < length; t++) {
            memcpy(before, state, (size_t)n * sizeof *before);
            for (int64_t i = 0; i < n; i++) {
                double of_state[4];
                for (int64_t g = 0; g < gates; g++) {
                    next[g] = product(w, g * n + i, &x->v[(t * batch + e) * width]) + b[g * n + i];
                    of_state[g] = product(r, g * n + i, before) + b[(gates + g) * n + i];
                }
                if (lstm) {
                    c[i] = gate(next[2] + of_state[2]) * c[i] +
                           gate(next[0] + of_state[0]) * tanh(next[3] + of_state[3]);
                    state[i] = gate(next[1] + of_state[1]) * tanh(c[i]);
                } else {
                    const double z = gate(next[0] + of_state[0]),
                                 candidate = tanh(next[2] + gate(next[1] + of_state[1]) * of_state[2]);
                    state[i] = (1 - z) * candidate + z * before[i];
                }
                y->v[(t * batch + e) * n + i] = state[i];
            }
        }
    }
}

const struct onnx_operator onnx_cells[] = {
    {"GRU", cell},
    {"LSTM", cell},
    {NULL, NULL},
};
