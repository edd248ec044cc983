/* Joined sources as a source: what reading (join_source.c) and opening (join.c) share. */
#ifndef TR_DATA_JOIN_INTERNAL_H
#define TR_DATA_JOIN_INTERNAL_H

#include "data/tables/join.h"

struct join_source {
    tr_source base;
    int32_t count;
    char *name[TR_SOURCE_PARTS];
    tr_source *source[TR_SOURCE_PARTS]; /* in the order of the file */
    int32_t labels;                     /* the source with the labels, -1: none */
    struct tr_source_parts parts;
    int32_t of_part[TR_SOURCE_PARTS]; /* which source a part is of */
};

extern const struct tr_source_class join_class;

/* The slot `destroy` of the class, for sources that are not open yet, too. */
void join_destroy(tr_source *base);

#endif
