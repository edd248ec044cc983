/* Two texts of each row, of which one is to be written from the other: the data of a model file. */
#ifndef TESTS_CLI_PAIRS_H
#define TESTS_CLI_PAIRS_H

/* Columns `long` and `short` of pairs.csv. */
#define PAIRS_DATA                                                                                           \
    "data: {train: {join: {sources: {\n"                                                                     \
    "  long: {text: {path: pairs.csv, layout: table, header: true, unit: characters,"                        \
    " labels: false, text_columns: long}},\n"                                                                \
    "  short: {text: {path: pairs.csv, layout: table, header: true, unit: characters,"                       \
    " next: true, text_columns: short}}}}}}\n"

#endif
