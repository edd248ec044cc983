/* Reading JPEG, by libjpeg-turbo's accurate inverse DCT and smooth upsampling of chroma, which are the
 * same on every machine.
 *
 * Colour comes out as RGB by JFIF's formula. Four channels are cyan, magenta, yellow and black, inverted
 * as Adobe's programs store them (YCCK becomes the same by that formula); they become RGB without a colour
 * profile.
 */
#include "data/images/image_formats.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <turbojpeg.h>

/* A tiny file may have any number of scans, each of which processes the whole image. */
#ifdef TJFLAG_LIMITSCANS
#define FLAGS (TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS)
#else
#define FLAGS (TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING)
#endif

static tr_status refuse(const char *name, tjhandle handle)
{
    return tr_fail(TR_EFORMAT, "%s: damaged or unusual JPEG: %s; replace the file, or save it anew", name,
                   tjGetErrorStr2(handle));
}

/* Opens a decoder and reads the header; `inks` becomes true where it has four channels. */
static tr_status begin(const char *name, const uint8_t *data, size_t size, tjhandle *out,
                       struct tr_image_size *stored, bool *inks)
{
    int width = 0, height = 0, sampling, colours = TJCS_GRAY;
    tjhandle handle = tjInitDecompress();
    if (!handle) return tr_fail(TR_ENOMEM, "%s: no memory for reading a JPEG", name);
    if (tjDecompressHeader3(handle, data, size, &width, &height, &sampling, &colours) != 0) {
        tr_status status = refuse(name, handle);
        tjDestroy(handle);
        return status;
    }
    if (width < 1 || height < 1) { /* it may consist of tables: then nothing was set, and all is well */
        tjDestroy(handle);
        return tr_fail(TR_EFORMAT, "%s: a JPEG without an image; replace the file", name);
    }
    *stored = (struct tr_image_size){height, width, colours == TJCS_GRAY ? 1 : 3};
    *inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    *out = handle;
    return TR_OK;
}

tr_status tr_jpeg_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    tjhandle handle = NULL;
    bool inks = false;
    TR_TRY(begin(name, data, size, &handle, out, &inks));
    tjDestroy(handle);
    return TR_OK;
}

/* a * b / 255, rounded; exact for bytes. */
static int part_of(int a, int b)
{
    int product = a * b + 128;
    return ((product >> 8) + product) >> 8;
}

/* RGB from inverted inks on white paper: each colour is reduced by its own ink and by black. */
static void light_of_inks(const uint8_t *inks, size_t pixels, uint8_t *rgb)
{
    for (size_t i = 0; i < pixels; i++, inks += 4)
        for (int c = 0; c < 3; c++) *rgb++ = (uint8_t)(inks[3] - part_of(255 - inks[c], inks[3]));
}

static tr_status unpack(const char *name, tjhandle handle, const uint8_t *data, size_t size,
                        struct tr_image_size is, int form, uint8_t *pixels)
{
    if (tjDecompress2(handle, data, size, pixels, is.width, 0, is.height, form, FLAGS) == 0) return TR_OK;
    return refuse(name, handle);
}

static tr_status unpack_inks(const char *name, tjhandle handle, const uint8_t *data, size_t size,
                             struct tr_image_size is, uint8_t *pixels)
{
    size_t count = (size_t)is.height * (size_t)is.width;
    uint8_t *inks = tr_alloc(count, 4);
    if (!inks) return TR_ENOMEM;
    tr_status status = unpack(name, handle, data, size, is, TJPF_CMYK, inks);
    if (status == TR_OK) light_of_inks(inks, count, pixels);
    tr_free(inks);
    return status;
}

tr_status tr_jpeg_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                         uint8_t *pixels)
{
    tjhandle handle = NULL;
    struct tr_image_size is = {0};
    tr_status status;
    bool inks = false;
    TR_TRY(begin(name, data, size, &handle, &is, &inks));
    if (is.height != stored.height || is.width != stored.width || is.channels != stored.channels)
        status = tr_image_changed(name);
    else if (inks)
        status = unpack_inks(name, handle, data, size, is, pixels);
    else
        status = unpack(name, handle, data, size, is, is.channels == 1 ? TJPF_GRAY : TJPF_RGB, pixels);
    tjDestroy(handle);
    return status;
}
