#include "export/onnx/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

tr_status onnx_write(const tr_onnx *onnx, const char *path)
{
    struct tr_file_writer writer;
    assert_int_equal(tr_file_begin(NULL, path, TR_FILE_REPLACE, 0, &writer), TR_OK);
    tr_status status = tr_onnx_write(onnx, &writer);
    if (status == TR_OK)
        status = tr_file_finish(&writer, false);
    else
        tr_file_abandon(&writer);
    return status;
}

tr_status onnx_write_trace(const struct tr_trace *trace, const struct tr_onnx_settings *settings,
                           const char *path)
{
    tr_onnx *onnx;
    tr_status status = tr_onnx_make(trace, settings, &onnx);
    if (status == TR_OK) status = onnx_write(onnx, path);
    tr_onnx_destroy(&onnx);
    return status;
}

Onnx__ModelProto *onnx_read(const char *path)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(path, 64 << 20, &content), TR_OK);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    assert_non_null(model);
    tr_file_content_free(&content);
    return model;
}
