/* What the operators of a graph that is run (run.h) share: their node's inputs, output and attributes, and
 * places of numbers in values. Whatever is missing fails the test. */
#ifndef TESTS_EXPORT_ONNX_NODE_H
#define TESTS_EXPORT_ONNX_NODE_H

#include "export/onnx/run.h"

#include <stdbool.h>

struct node {
    struct onnx_run *run;
    const Onnx__NodeProto *proto;
    const struct onnx_value *x; /* the first input */
};

/* Those of one kind; the last has no name. */
struct onnx_operator {
    const char *name;
    void (*run)(struct node *node);
};
extern const struct onnx_operator onnx_shapes[], onnx_sums[], onnx_windows[], onnx_cells[];
/* Any other. */
void onnx_elements(struct node *node);

/* A new value, of zeros. */
struct onnx_value *onnx_make(struct onnx_run *run, const char *name, int rank, const int64_t *size);

bool node_has(const struct node *node, size_t i);
const struct onnx_value *node_in(const struct node *node, size_t i);
/* The output; the value of the first input may move. */
struct onnx_value *node_out(struct node *node, int rank, const int64_t *size);
const Onnx__AttributeProto *node_attribute(const struct node *node, const char *name);
int64_t node_integer(const struct node *node, const char *name, int64_t usual);
double node_number(const struct node *node, const char *name, double usual);
void node_integers(const struct node *node, const char *name, int count, int64_t usual, int64_t *to);
/* An axis that counts from the end if it is negative. */
int axis_of(int64_t axis, int rank);
void index_of(int64_t at, int rank, const int64_t *size, int64_t *index);
int64_t place_of(const struct onnx_value *x, const int64_t *index);
/* The place for an index of `rank` axes, of which x has the last ones, some of size 1. */
int64_t place_within(const struct onnx_value *x, int rank, const int64_t *index);
/* Whether an axis is among those that a value lists. */
bool is_among(const struct onnx_value *axes, int axis, int rank);

#endif
