/* Arrays of NumPy as a data set. */
#ifndef TR_DATA_NPY_SOURCE_H
#define TR_DATA_NPY_SOURCE_H

#include "data/source.h"

/* {npy: {features: PATH, labels: PATH, classes: N}}: arrays whose first dimension counts examples. State:
 * classes.txt. */
extern const struct tr_source_format tr_source_format_npy;

#endif
