/* Writing images: PNG. */
#include "data/images/image.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <png.h>

tr_status tr_image_encode(const uint8_t *pixels, struct tr_image_size size, uint8_t **out, size_t *bytes)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)size.width,
        .height = (png_uint_32)size.height,
        .format = size.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
    };
    assert(size.channels == 1 || size.channels == 3);
    /* Room for an image that does not compress; for the exact size the simplified interface would have to
       pack twice. */
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *png = tr_alloc(room, 1);
    if (!png) return TR_ENOMEM;
    if (!png_image_write_to_memory(&image, png, &room, 0, pixels, 0, NULL)) {
        tr_status status = tr_fail(TR_ENOMEM, "an image of %d x %d pixels cannot be packed as PNG: %s",
                                   (int)size.width, (int)size.height, image.message);
        png_image_free(&image);
        tr_free(png);
        return status;
    }
    *out = png;
    *bytes = room;
    return TR_OK;
}
