/* Runs a graph of ONNX in plain loops of doubles, as https://onnx.ai/onnx/operators/ defines the operations
 * of set 13; those that exports use. Whatever is undefined fails the test. */
#ifndef TESTS_EXPORT_ONNX_RUN_H
#define TESTS_EXPORT_ONNX_RUN_H

#include "io/proto/onnx.pb-c.h"

#include <stdint.h>

#define ONNX_AXES   6
#define ONNX_VALUES 2048

struct onnx_value {
    const char *name;
    int rank;
    int64_t size[ONNX_AXES], count;
    double *v; /* [count] */
};

struct onnx_run {
    struct onnx_value value[ONNX_VALUES];
    int count;
};

/* Adds an input, zeros at first; returns its numbers. Names are borrowed, also those of the graph. */
double *onnx_give(struct onnx_run *run, const char *name, int rank, const int64_t *size);
/* Computes all values, in the order of the nodes. */
void onnx_run(const Onnx__GraphProto *graph, struct onnx_run *run);
const struct onnx_value *onnx_find(const struct onnx_run *run, const char *name);
void onnx_release(struct onnx_run *run);

#endif
