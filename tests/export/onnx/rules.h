/* Rules of ONNX that every exported graph keeps to, without a runtime of others. */
#ifndef TESTS_EXPORT_ONNX_RULES_H
#define TESTS_EXPORT_ONNX_RULES_H

#include "io/proto/onnx.pb-c.h"

/* Fails unless nodes read what is there and write what is new; operations are of set 13 and have as many
 * inputs and outputs as it gives them; tensors have the bytes of their shapes; values have types and shapes,
 * of as many dimensions as the operations give them. */
void onnx_expect_sound(const Onnx__GraphProto *graph);
/* Fails unless each node gets values of the types that it takes, and values have the types that the graph
   says; part of the above. */
void onnx_check_types(const Onnx__GraphProto *graph);

#endif
