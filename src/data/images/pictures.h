/* The pictures of a set: files of one kind, brought to one size.
 *
 * A set has either bytes or values of 16 bits, which are images of numbers (data/source.h). The first file
 * decides, and the others must be alike, unless `depth` says which they all become.
 */
#ifndef TR_DATA_PICTURES_H
#define TR_DATA_PICTURES_H

#include "data/images/image.h"
#include "data/source.h"

struct tr_pictures {
    enum tr_image_fit fit;
    int32_t depth;             /* 8 or 16: what all become; 0: as the first */
    struct tr_image_size size; /* of all */
};

/* The option `depth`, in the table of `object`, which has a member of that name. */
#define TR_OPTION_DEPTH(object)                                                                              \
    {                                                                                                        \
        .key = "depth", .type = TR_OPTION_INT32, .offset = offsetof(object, depth), .fallback = "0",         \
        .most = 16,                                                                                          \
        .help = "bits of a value. 16: images of numbers, files of 8 bits times 257; 8: bytes, of 16 bits "   \
                "the high ones; 0: as the files, which must be alike"                                        \
    }

/* TR_EINVAL, naming the format, for other depths and for 2 channels. */
tr_status tr_pictures_check_options(const char *format, int32_t depth, int32_t channels);
/* Takes the first image, whose size replaces those of height, width and channels that are 0, and describes
   the features of the source. TR_EFORMAT for images of 16 bits that are too large. */
tr_status tr_pictures_begin(struct tr_pictures *pictures, const char *name, struct tr_image_size first,
                            int32_t height, int32_t width, int32_t channels, tr_source *source);
/* Checks that an image can be brought to the size and depth of the set, whose first is named. */
tr_status tr_pictures_check(const struct tr_pictures *pictures, const char *name, struct tr_image_size is,
                            const char *first);
/* Decodes a file that is in memory into values of the set: uint8_t, or uint16_t where size.wide. */
tr_status tr_pictures_decode(const struct tr_pictures *pictures, const char *name, const uint8_t *data,
                             size_t size, void *values);
/* The same of a file at a path. */
tr_status tr_pictures_read(const struct tr_pictures *pictures, const char *path, void *values);
/* Values as features of the source: bytes, or floats. Values and features may not overlap. */
void tr_pictures_give(const struct tr_pictures *pictures, const void *values, void *features);
/* As tr_pictures_decode() and tr_pictures_read(), into features. */
tr_status tr_pictures_decode_features(const struct tr_pictures *pictures, const char *name,
                                      const uint8_t *data, size_t size, void *features);
tr_status tr_pictures_read_features(const struct tr_pictures *pictures, const char *path, void *features);
/* The values of an image, and the bytes of them. */
static inline int64_t tr_pictures_count(const struct tr_pictures *pictures)
{
    return (int64_t)pictures->size.height * pictures->size.width * pictures->size.channels;
}
static inline int64_t tr_pictures_bytes(const struct tr_pictures *pictures)
{
    return tr_pictures_count(pictures) * (pictures->size.wide ? 2 : 1);
}

#endif
