/* Joins several sources: example i consists of example i of each. */
#ifndef TR_DATA_JOIN_H
#define TR_DATA_JOIN_H

#include "data/source.h"

/* {join: {sources: {NAME: {FORMAT: ...}, ...}, labels: NAME}}. Two to TR_SOURCE_PARTS sources of images or
   numbers, or one or two texts beside numbers, with equally many examples; labels are those of the only one
   that has some, or of the one that `labels` names. An example is a vector: images first, then numbers, each
   in the order of the file; bytes of images count as numbers from 0 to 255. With a text an example is its
   tokens, and read_parts() gives the numbers; of two texts, read_second() gives the other one. A text whose
   tokens have labels comes first, else that which the file names first. read_parts() gives each part in its
   own type. State: sources.txt, for each source a part (data/state.h) of the kind "sources", whose first line
   is its name and whose other lines are its own state. */
extern const struct tr_source_format tr_source_format_join;

/* The state of the source called `name` within that of all (NULL: there is none); *out is NULL where it has
   none. Returned, free with tr_free(). TR_EMISMATCH, TR_EFORMAT, TR_ENOMEM. */
tr_status tr_join_state_of(const char *state, const char *name, char **out);

/* The names that `node`, the description of a data set, gives to its sources, into parts->part[].name in the
   order of the file; none where it is no join. Shapes are left alone. TR_EINVAL as checking would give. */
tr_status tr_join_names(const tr_config *node, struct tr_source_parts *parts);

#endif
