/* Numbers of examples in the notation "0-99,200,500-". */
#ifndef CLI_RANGES_H
#define CLI_RANGES_H

#include "trireme/predict.h"

/* Parses the ranges of a text, for examples numbered from 0 below `count`; NULL: all. `name` is that of
   the data, for messages. TR_EINVAL. Returned, free with tr_free(). */
tr_status cli_ranges_read(const char *text, int64_t count, const char *name, struct tr_example_range **out,
                          int64_t *ranges);

#endif
