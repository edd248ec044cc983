/* Writes TFRecord files, which replace older ones when they are complete. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/formats/tfrecord.h"

#include <string.h>
#include <zlib.h>

#define BUFFER ((size_t)256 << 10)

struct tr_record_writer {
    struct tr_file_replacement file;
    z_stream stream;
    bool deflating; /* the stream must be ended */
    uint8_t *buffer;
    size_t used;
};

static void destroy(tr_record_writer *writer)
{
    if (writer->deflating) deflateEnd(&writer->stream);
    tr_free(writer->buffer);
    tr_free(writer);
}

tr_status tr_record_writer_create(const char *path, enum tr_packing packing, tr_record_writer **out)
{
    tr_status status = TR_ENOMEM;
    tr_record_writer *writer = tr_alloc_zero(1, sizeof *writer);
    if (!writer) return TR_ENOMEM;
    writer->buffer = tr_alloc(BUFFER, 1);
    if (!writer->buffer) goto fail;
    if (packing != TR_PACKING_NONE) {
        writer->stream.zalloc = tr_zlib_alloc;
        writer->stream.zfree = tr_zlib_free;
        int window = packing == TR_PACKING_GZIP ? MAX_WBITS + 16 : MAX_WBITS;
        if (deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) !=
            Z_OK) {
            status = tr_fail(TR_ENOMEM, "write %s: no memory for packing", path);
            goto fail;
        }
        writer->deflating = true;
    }
    TR_TRY_GOTO(tr_file_replace_begin(NULL, path, 0, &writer->file), fail);
    *out = writer;
    return TR_OK;
fail:
    destroy(writer);
    return status;
}

static tr_status flush(tr_record_writer *writer)
{
    TR_TRY(tr_file_write(&writer->file.writer, writer->buffer, writer->used));
    writer->used = 0;
    return TR_OK;
}

static tr_status put_plain(tr_record_writer *writer, const uint8_t *data, size_t size)
{
    while (size > 0) {
        size_t part = size < BUFFER - writer->used ? size : BUFFER - writer->used;
        memcpy(writer->buffer + writer->used, data, part);
        writer->used += part;
        data += part;
        size -= part;
        if (writer->used == BUFFER) TR_TRY(flush(writer));
    }
    return TR_OK;
}

/* Packs `size` bytes; with Z_FINISH also all that is pending. */
static tr_status put_packed(tr_record_writer *writer, const uint8_t *data, size_t size, int mode)
{
    z_stream *stream = &writer->stream;
    int code = Z_OK;
    do {
        uInt part = size < BUFFER ? (uInt)size : (uInt)BUFFER;
        stream->next_in = (Bytef *)(uintptr_t)data; /* zlib only reads it */
        stream->avail_in = part;
        data += part;
        size -= part;
        do {
            stream->next_out = writer->buffer + writer->used;
            stream->avail_out = (uInt)(BUFFER - writer->used);
            code = deflate(stream, size > 0 ? Z_NO_FLUSH : mode);
            writer->used = BUFFER - stream->avail_out;
            if (writer->used == BUFFER) TR_TRY(flush(writer));
        } while (stream->avail_in > 0 || (mode == Z_FINISH && size == 0 && code == Z_OK));
    } while (size > 0);
    return TR_OK;
}

static tr_status put(tr_record_writer *writer, const void *data, size_t size)
{
    return writer->deflating ? put_packed(writer, data, size, Z_NO_FLUSH) : put_plain(writer, data, size);
}

tr_status tr_record_writer_add(tr_record_writer *writer, const void *data, size_t size)
{
    uint8_t head[TR_RECORD_HEAD], tail[TR_RECORD_TAIL];
    tr_record_frame(data, size, head, tail);
    TR_TRY(put(writer, head, sizeof head));
    TR_TRY(put(writer, data, size));
    return put(writer, tail, sizeof tail);
}

tr_status tr_record_writer_finish(tr_record_writer **handle)
{
    tr_record_writer *writer = *handle;
    tr_status status = TR_OK;
    if (writer->deflating) TR_TRY_GOTO(put_packed(writer, NULL, 0, Z_FINISH), fail);
    TR_TRY_GOTO(flush(writer), fail);
    TR_TRY_GOTO(tr_file_replace_finish(&writer->file), fail);
    destroy(writer);
    *handle = NULL;
    return TR_OK;
fail:
    tr_record_writer_abandon(handle);
    return status;
}

void tr_record_writer_abandon(tr_record_writer **handle)
{
    tr_record_writer *writer = *handle;
    if (!writer) return;
    tr_file_replace_abandon(&writer->file);
    destroy(writer);
    *handle = NULL;
}
