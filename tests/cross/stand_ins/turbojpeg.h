/* Stands in for TurboJPEG, which reads no image here. */
#ifndef STAND_IN_TURBOJPEG_H
#define STAND_IN_TURBOJPEG_H

#include <stddef.h>

typedef void *tjhandle;
enum { TJCS_GRAY = 2, TJPF_RGB = 0, TJPF_GRAY = 6, TJFLAG_ACCURATEDCT = 4096, TJFLAG_STOPONWARNING = 8192 };

static inline tjhandle tjInitDecompress(void)
{
    return NULL;
}

static inline int tjDestroy(tjhandle handle)
{
    (void)handle;
    return 0;
}

static inline const char *tjGetErrorStr2(tjhandle handle)
{
    (void)handle;
    return "no JPEG in this build";
}

static inline int tjDecompressHeader3(tjhandle handle, const unsigned char *data, unsigned long size,
                                      int *width, int *height, int *sampling, int *colours)
{
    (void)handle, (void)data, (void)size;
    *width = *height = *sampling = *colours = 0;
    return -1;
}

static inline int tjDecompress2(tjhandle handle, const unsigned char *data, unsigned long size,
                                unsigned char *pixels, int width, int pitch, int height, int format,
                                int flags)
{
    (void)handle, (void)data, (void)size, (void)pixels, (void)width, (void)pitch, (void)height, (void)format,
        (void)flags;
    return -1;
}

#endif
