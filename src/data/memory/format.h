/* Data from the memory of a program: {memory: {name: NAME}}. */
#ifndef TR_DATA_MEMORY_FORMAT_H
#define TR_DATA_MEMORY_FORMAT_H

#include "data/source.h"
#include "data/tables/missing.h"

struct tr_memory_options {
    char *name;
    int32_t missing; /* enum tr_missing */
    double missing_value;
    bool standardize;
};

/* Opens a view of the source that the store was given under NAME (tr_store_give()). State: scaling.txt for
   numbers, else classes.txt. */
extern const struct tr_source_format tr_source_format_memory;

#endif
