/* Graphs of ONNX as files in the scratch directory, and back. */
#ifndef TESTS_EXPORT_ONNX_FILE_H
#define TESTS_EXPORT_ONNX_FILE_H

#include "base/files/file.h"
#include "export/onnx/graph.h"
#include "io/proto/onnx.pb-c.h"

tr_status onnx_write(const tr_onnx *onnx, const char *path);
/* Exports what a trace has recorded. */
tr_status onnx_write_trace(const struct tr_trace *trace, const struct tr_onnx_settings *settings,
                           const char *path);
/* The file's bytes as messages, which it owns. Free with onnx__model_proto__free_unpacked(). */
Onnx__ModelProto *onnx_read(const char *path);

#endif
