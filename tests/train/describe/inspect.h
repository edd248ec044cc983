/* Networks whose inspection is tested, and the object that an inspection gives. */
#ifndef TESTS_TRAIN_DESCRIBE_INSPECT_H
#define TESTS_TRAIN_DESCRIBE_INSPECT_H

#include "train/describe/summary.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* In the scratch directory, which becomes the current one: plain.yaml of numbers, words.yaml of tokens,
 * two.yaml of two sources of tokens, parts.yaml of two of numbers. */
int inspect_make(void **state);
int inspect_clean(void **state);
struct tr_inspect_settings inspect_asked(const char *path, const char *const *set, int count);
/* The caller's own. */
json_t *inspect_json(const char *path, const char *const *set, int count);
void expect_number(const json_t *object, const char *key, int64_t expected);
void expect_flag(const json_t *object, const char *key, bool expected);

#endif
