/* CIFAR-10 in its binary form: records of one byte of label and 3 x 32 x 32 bytes, the red plane first.
 * There are 10,000 records in each of six files, which may lie in a folder or in the published archive.
 */
#ifndef TR_DATA_CIFAR_H
#define TR_DATA_CIFAR_H

#include "data/source.h"

/* {cifar: {path: PATH, part: train or test}}: PATH is the archive (cifar-10-binary.tar.gz) or a folder with
   the files. State: classes.txt. */
extern const struct tr_source_format tr_source_format_cifar;

#endif
