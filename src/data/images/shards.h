/* Images in tar archives, as WebDataset has them. */
#ifndef TR_DATA_SHARDS_H
#define TR_DATA_SHARDS_H

#include "data/source.h"

/* {shards: {path: [PATH, ...]}}. The files of an example have the same name up to its first point: an
   image that ends in .png, .jpg or .jpeg, and its class, a number from 0 as text in a file that ends in
   .cls. Examples keep the order of the archives. State: classes.txt. */
extern const struct tr_source_format tr_source_format_shards;

#endif
