/* Stands in for zlib's deflate, which cannot be begun here. */
#ifndef STAND_IN_ZLIB_H
#define STAND_IN_ZLIB_H

typedef unsigned char Bytef;
typedef unsigned int uInt;

typedef struct {
    Bytef *next_in, *next_out;
    uInt avail_in, avail_out;
    void *(*zalloc)(void *opaque, uInt count, uInt size);
    void (*zfree)(void *opaque, void *block);
} z_stream;

enum { Z_NO_FLUSH = 0, Z_FINISH = 4, Z_OK = 0, Z_STREAM_ERROR = -2 };
enum { Z_DEFAULT_COMPRESSION = -1, Z_DEFLATED = 8, Z_DEFAULT_STRATEGY = 0, MAX_WBITS = 15 };

static inline int deflateInit2(z_stream *stream, int level, int method, int window, int memory, int strategy)
{
    (void)stream, (void)level, (void)method, (void)window, (void)memory, (void)strategy;
    return Z_STREAM_ERROR;
}

static inline int deflate(z_stream *stream, int mode)
{
    (void)stream, (void)mode;
    return Z_STREAM_ERROR;
}

static inline int deflateEnd(z_stream *stream)
{
    (void)stream;
    return Z_OK;
}

#endif
