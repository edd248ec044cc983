/* Replacing missing numbers: the choices of the option `missing`. */
#ifndef TR_DATA_MISSING_H
#define TR_DATA_MISSING_H

#include "base/options/option.h"

enum tr_missing { TR_MISSING_STOP, TR_MISSING_SKIP, TR_MISSING_MEAN, TR_MISSING_CONSTANT };

/* The rows of a table of choices, without its end. `column` is the word for the source of a number, a
   string. `skip` is the row for leaving examples out, TR_MISSING_SKIPS where that is possible, or nothing. */
#define TR_MISSING_CHOICES(column, skip)                                                                     \
    {.name = "stop", .value = TR_MISSING_STOP, .help = "error with line and column"},                        \
        skip{.name = "mean",                                                                                 \
             .value = TR_MISSING_MEAN,                                                                       \
             .help = "the mean of the " column " in the training data"},                                     \
    {                                                                                                        \
        .name = "constant", .value = TR_MISSING_CONSTANT, .help = "`missing_value`"                          \
    }
#define TR_MISSING_SKIPS {.name = "skip", .value = TR_MISSING_SKIP, .help = "leave the row out"},

/* The option `missing_value` of an object, with its member of that name, a double. */
#define TR_OPTION_MISSING_VALUE(object)                                                                      \
    {                                                                                                        \
        .key = "missing_value", .type = TR_OPTION_DOUBLE, .offset = offsetof(object, missing_value),         \
        .fallback = "0", .help = "the number for `missing: constant`, before `standardize`"                  \
    }

#endif
