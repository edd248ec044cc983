/* The tail of a file of unpacked data, shared by writing and reading. */
#ifndef TR_DATA_UNPACKED_FORMAT_H
#define TR_DATA_UNPACKED_FORMAT_H

#include "data/cache/unpacked.h"

#define TR_UNPACKED_MAGIC "trirdata"
#define TR_UNPACKED_ORDER 0x01020304u
#define TR_UNPACKED_ALIGN 64

enum tr_unpacked_section {
    TR_UNPACKED_FEATURES, /* examples one after another, or the text that the windows lie in */
    TR_UNPACKED_START,    /* int64_t [count + 1]: where each text begins, in tokens; empty for others */
    TR_UNPACKED_LABELS,   /* int32_t [count], float [count][values], or int32_t [tokens]; windows have none */
    TR_UNPACKED_NAMES,    /* of classes, each with a NUL; empty where they have none */
    TR_UNPACKED_STATE,    /* with a NUL; empty where there is none */
    TR_UNPACKED_SECTIONS
};

struct tr_unpacked_extent {
    int64_t offset, bytes;
    uint32_t crc, unused;
};

struct tr_unpacked_tail {
    char magic[8];
    uint32_t version, order;
    char key[TR_SHA256_TEXT - 1], digest[TR_SHA256_TEXT - 1];
    char state_name[24]; /* ends with a NUL */
    int64_t count, features, labels, height, width, channels, floats, max_tokens, vocabulary, classes, values,
        skipped, window, stride; /* window and stride: of windows over one text, else 0 */
    struct tr_unpacked_extent section[TR_UNPACKED_SECTIONS];
    uint32_t range, crc; /* range: enum tr_number_range; crc: of all before */
};

/* The tokens of the text that `count` windows lie in. */
static inline int64_t tr_unpacked_stream(int64_t count, int64_t window, int64_t stride)
{
    return (count - 1) * stride + window + 1;
}

/* Bytes of an element of features. */
static inline int64_t tr_unpacked_element(int64_t features)
{
    return features == TR_FEATURE_IMAGE ? 1 : 4;
}

#endif
