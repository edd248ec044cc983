/* Writing a source out in another format. */
#ifndef TR_DATA_CONVERT_H
#define TR_DATA_CONVERT_H

#include "data/files/inflate.h"
#include "data/source.h"

/* Writes all examples as tf.train.Example into the TFRecord file `path`: images as `image_raw` (bytes) with
   `pixels` (their number), vectors as `floats`; classes as `label`, values as `targets`. Sequences of tokens
   are TR_EUNSUPPORTED. A failure leaves no file, or the old one. */
tr_status tr_convert_to_tfrecord(const tr_source *source, const char *path, enum tr_packing packing);

/* Writes images and their classes, if they have any, into the IDX files `<path>-images-idx3-ubyte` (idx4 for
   more than one channel) and `<path>-labels-idx1-ubyte`. Other sources are TR_EUNSUPPORTED. */
tr_status tr_convert_to_idx(const tr_source *source, const char *path);

#endif
