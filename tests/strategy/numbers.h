/* A job of layers that the test chooses, whose cuts it looks at: numbers.yaml in the scratch directory. */
#ifndef TESTS_STRATEGY_NUMBERS_H
#define TESTS_STRATEGY_NUMBERS_H

#include "scratch.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_ROWS 100 /* at most */

/* `layers` are written in YAML, between brackets; the data are `rows` rows of two numbers and three classes.
 */
static inline void numbers_write(int rows, const char *layers)
{
    char table[NUMBERS_ROWS * 12] = "", job[1024];
    for (int i = 0; i < rows; i++)
        snprintf(table + strlen(table), sizeof table - strlen(table), "%d,%d,%d\n", i % 7, i % 5, i % 3);
    scratch_write_text("numbers.csv", table);
    snprintf(job, sizeof job,
             "name: numbers\ndata: {train: {csv: {path: numbers.csv}}}\nlayers: [%s]\n"
             "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 24, microbatches: 12, steps: 1}\n",
             layers);
    scratch_write_text("numbers.yaml", job);
}

#endif
