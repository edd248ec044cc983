/* One array of the caller's: checked, then used in place or converted into a copy. Only memory that shape
 * and strides describe is read.
 */
#ifndef TR_DATA_MEMORY_ARRAY_H
#define TR_DATA_MEMORY_ARRAY_H

#include "data/memory/kept.h"

/* "float32" */
const char *tr_array_type_name(enum tr_array_type type);
bool tr_array_is_integer(const struct tr_array *array);

static inline bool tr_array_is_given(const struct tr_array *array)
{
    return array->dimensions != 0;
}

/* The array with its strides filled in. TR_EINVAL, with `name`, where type, shape and strides do not fit. */
tr_status tr_array_settle(const char *name, const struct tr_array *given, struct tr_array *out);

/* The elements of a settled uint8 array, one after the other: the caller's memory if it has that layout,
   else a copy that `kept` owns. TR_ENOMEM. */
tr_status tr_array_bytes(struct tr_kept *kept, const struct tr_array *array, const uint8_t **out);
/* As float32. *gaps becomes true where some are NaN; with a NULL `gaps` that is an error. TR_EINVAL names the
   place of a number that is not finite. */
tr_status tr_array_numbers(struct tr_kept *kept, const char *name, const struct tr_array *array, bool *gaps,
                           const float **out);
/* As int32, each from `least` to `most`; *largest becomes the largest, -1 at least. TR_EINVAL for other
   types, and with the place of one out of range. */
tr_status tr_array_integers(struct tr_kept *kept, const char *name, const struct tr_array *array,
                            int64_t least, int64_t most, const int32_t **out, int32_t *largest);
/* Offsets from 0 to `most`, strictly ascending: integers [count + 1]; *longest becomes the largest
 * difference. */
tr_status tr_array_offsets(struct tr_kept *kept, const struct tr_array *array, int64_t most,
                           const int64_t **out, int64_t *longest);

#endif
