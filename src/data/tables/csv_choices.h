/* Options of all formats of tables as text. */
#ifndef TR_DATA_CSV_CHOICES_H
#define TR_DATA_CSV_CHOICES_H

#include "base/options/option.h"

extern const struct tr_choice tr_csv_separators[], tr_csv_headers[];

/* `separator` and `header` of an object that has members of these names. */
#define TR_CSV_OPTION_SEPARATOR(object)                                                                      \
    {                                                                                                        \
        .key = "separator", .type = TR_OPTION_CHOICE, .offset = offsetof(object, separator),                 \
        .fallback = "auto", .choices = tr_csv_separators, .help = "character between two fields"             \
    }
#define TR_CSV_OPTION_HEADER(object)                                                                         \
    {                                                                                                        \
        .key = "header", .type = TR_OPTION_CHOICE, .offset = offsetof(object, header), .fallback = "auto",   \
        .choices = tr_csv_headers, .help = "whether the first line names the columns"                        \
    }

#define TR_CSV_OPTION_SKIP_COLUMNS(object)                                                                   \
    {                                                                                                        \
        .key = "skip_columns", .type = TR_OPTION_STRING_LIST, .offset = offsetof(object, skip_columns),      \
        .fallback = "",                                                                                      \
        .help = "columns that are left out, by name or number from 0; they need not hold numbers"            \
    }

#endif
