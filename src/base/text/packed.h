/* Texts that the build has compressed into the program (trireme_embed_packed() of cmake/embed.cmake). */
#ifndef TR_BASE_PACKED_H
#define TR_BASE_PACKED_H

#include "trireme/status.h"

#include <stddef.h>

struct tr_packed_text {
    const char *name; /* of its file, up to the first dot */
    size_t length;
};

struct tr_packed {
    const unsigned char *bytes; /* the texts, one after the other, as a gzip file */
    size_t size;
    const struct tr_packed_text *text; /* in that order; the last has no name */
};

/* All the texts, for tr_unpacked(). *out is freed with tr_free(). TR_ENOMEM, TR_ECORRUPT. Any thread. */
tr_status tr_unpack(const struct tr_packed *packed, char **out);
/* One of them, terminated; NULL if there is none of that name. It lives as long as `unpacked`. */
const char *tr_unpacked(const struct tr_packed *packed, const char *unpacked, const char *name);

#endif
