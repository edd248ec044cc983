/* The origin of an exported file, for the people who find it. */
#ifndef TR_EXPORT_ORIGIN_H
#define TR_EXPORT_ORIGIN_H

#include "export/formats.h"

/* One line: "mnist-cnn, 20001 steps, parameters 3f5a..., written by trireme 0.1.0". Returned, free with
   tr_free(); NULL when memory fails. */
char *tr_export_origin(const struct tr_export *what);

#endif
