/* Operators on elements: each number of the output comes from those at its place in the inputs. */
#include "export/onnx/node.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static double unary(const struct node *node, const char *op, double x)
{
    if (strcmp(op, "Identity") == 0 || strcmp(op, "Cast") == 0) return x;
    if (strcmp(op, "Relu") == 0) return x > 0 ? x : 0;
    if (strcmp(op, "LeakyRelu") == 0) return x > 0 ? x : node_number(node, "alpha", 0.01) * x;
    if (strcmp(op, "Tanh") == 0) return tanh(x);
    if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + exp(-x));
    if (strcmp(op, "HardSigmoid") == 0)
        return fmax(0, fmin(1, node_number(node, "alpha", 0.2) * x + node_number(node, "beta", 0.5)));
    if (strcmp(op, "Erf") == 0) return erf(x);
    if (strcmp(op, "Sqrt") == 0) return sqrt(x);
    if (strcmp(op, "Sin") == 0) return sin(x);
    if (strcmp(op, "Cos") == 0) return cos(x);
    if (strcmp(op, "Not") == 0) return x == 0;
    if (strcmp(op, "IsNaN") == 0) return isnan(x) != 0;
    fail_msg("the operation %s is not known", op);
    return 0;
}

static double binary(const char *op, double a, double b)
{
    if (strcmp(op, "Add") == 0) return a + b;
    if (strcmp(op, "Sub") == 0) return a - b;
    if (strcmp(op, "Mul") == 0) return a * b;
    if (strcmp(op, "Div") == 0) return a / b;
    if (strcmp(op, "Min") == 0) return fmin(a, b);
    if (strcmp(op, "Less") == 0) return a < b;
    if (strcmp(op, "LessOrEqual") == 0) return a <= b;
    if (strcmp(op, "Equal") == 0) return a == b;
    if (strcmp(op, "And") == 0) return a != 0 && b != 0;
    if (strcmp(op, "Or") == 0) return a != 0 || b != 0;
    fail_msg("the operation %s of two values is not known", op);
    return 0;
}

/* Of up to three values, stretched to one shape; a Clip's bounds are such values, too. */
void onnx_elements(struct node *node)
{
    const char *op = node->proto->op_type;
    const int inputs = (int)node->proto->n_input;
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    int rank = 0;
    for (int i = 0; i < inputs; i++)
        rank = node_in(node, (size_t)i)->rank > rank ? node_in(node, (size_t)i)->rank : rank;
    for (int a = 0; a < rank; a++) size[a] = 1;
    for (int i = 0; i < inputs; i++) {
        const struct onnx_value *x = node_in(node, (size_t)i);
        for (int a = 0; a < x->rank; a++) {
            int64_t *to = &size[rank - x->rank + a];
            if (*to != x->size[a] && *to != 1 && x->size[a] != 1)
                fail_msg("%s: sizes %d and %d", node->proto->name, (int)*to, (int)x->size[a]);
            if (x->size[a] != 1) *to = x->size[a];
        }
    }
    struct onnx_value *y = node_out(node, rank, size);
    const struct onnx_value *x[3] = {node_in(node, 0), inputs > 1 ? node_in(node, 1) : NULL,
                                     inputs > 2 ? node_in(node, 2) : NULL};
    for (int64_t k = 0; k < y->count; k++) {
        double v[3] = {0};
        index_of(k, rank, size, index);
        for (int i = 0; i < inputs; i++) v[i] = x[i]->v[place_within(x[i], rank, index)];
        if (inputs == 1)
            y->v[k] = unary(node, op, v[0]);
        else if (inputs == 2)
            y->v[k] = binary(op, v[0], v[1]);
        else if (strcmp(op, "Where") == 0)
            y->v[k] = v[0] != 0 ? v[1] : v[2];
        else
            y->v[k] = fmin(fmax(v[0], v[1]), v[2]); /* Clip */
    }
}
