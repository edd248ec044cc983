/* Joined sources: shared by reading (join_source.c) and opening (join.c). */
#ifndef TR_DATA_JOIN_INTERNAL_H
#define TR_DATA_JOIN_INTERNAL_H

#include "data/tables/join.h"

struct join_source {
    tr_source base;
    int32_t count;
    char *name[TR_SOURCE_PARTS];
    tr_source *source[TR_SOURCE_PARTS]; /* in the order of the file */
    int32_t labels;                     /* the source with the labels, -1: none */
    int32_t text, second;               /* the source that is a text, and the second one; -1: none */
    struct tr_source_parts parts;
    int32_t of_part[TR_SOURCE_PARTS]; /* the source of each part */
};

extern const struct tr_source_class join_class;

/* The slot `destroy` of the class; also for joins whose sources are not all open. */
void join_destroy(tr_source *base);

#endif
