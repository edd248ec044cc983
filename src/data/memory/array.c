#include "data/memory/array.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int size;
    bool integer;
} types[] = {
    [TR_ARRAY_FLOAT32] = {"float32", 4, false}, [TR_ARRAY_FLOAT64] = {"float64", 8, false},
    [TR_ARRAY_UINT8] = {"uint8", 1, true},      [TR_ARRAY_INT32] = {"int32", 4, true},
    [TR_ARRAY_INT64] = {"int64", 8, true},      [TR_ARRAY_UINT16] = {"uint16", 2, true},
    [TR_ARRAY_INT16] = {"int16", 2, true},
};
#define TYPES ((int)(sizeof types / sizeof types[0]))

/* ---- one array ---- */

static bool is_packed_as_given(const struct tr_array *array)
{
    for (int i = 0; i < array->dimensions; i++)
        if (array->stride[i] != 0) return false;
    return true;
}

/* Fills in strides, and checks that all elements are within the range of a pointer. */
tr_status tr_array_settle(const char *name, const struct tr_array *given, struct tr_array *out)
{
    int64_t elements = 1, reach = 0;
    *out = *given;
    if ((int)given->type < 0 || (int)given->type >= TYPES)
        return tr_fail(TR_EINVAL, "%s: type %d is none of enum tr_array_type", name, (int)given->type);
    if (given->dimensions < 1 || given->dimensions > TR_ARRAY_DIMENSIONS)
        return tr_fail(TR_EINVAL, "%s: %" PRId32 " dimensions; 1 to %d are read", name, given->dimensions,
                       TR_ARRAY_DIMENSIONS);
    if (!given->data) return tr_fail(TR_EINVAL, "%s: data is NULL", name);
    const bool packed = is_packed_as_given(given);
    for (int i = given->dimensions - 1; i >= 0; i--) {
        if (given->shape[i] < 1)
            return tr_fail(TR_EINVAL, "%s: dimension %d has %" PRId64 " elements; it needs at least 1", name,
                           i, given->shape[i]);
        int64_t steps = given->shape[i] - 1, far;
        if (packed && __builtin_mul_overflow(elements, types[given->type].size, &out->stride[i]))
            return tr_fail(TR_EINVAL, "%s: its shape is larger than memory can be", name);
        if (__builtin_mul_overflow(elements, given->shape[i], &elements) ||
            __builtin_mul_overflow(steps, out->stride[i], &far) || far == INT64_MIN ||
            __builtin_add_overflow(reach, far < 0 ? -far : far, &reach) || reach > INT64_MAX / 16)
            return tr_fail(TR_EINVAL, "%s: its shape and strides are larger than memory can be", name);
        if (steps == 0)
            out->stride[i] = 0; /* the stride is never used, and must not point outside of the
                                   array */
    }
    if (elements > INT64_MAX / 16)
        return tr_fail(TR_EINVAL, "%s: its shape is larger than memory can be", name);
    return TR_OK;
}

static int64_t count_elements(const struct tr_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->dimensions; i++) count *= array->shape[i];
    return count;
}

/* Whether elements lie one after the other, aligned, so that no copy is needed. */
static bool lies_packed(const struct tr_array *array)
{
    int64_t step = types[array->type].size;
    for (int i = array->dimensions - 1; i >= 0; i--) {
        if (array->shape[i] > 1 && array->stride[i] != step) return false;
        step *= array->shape[i];
    }
    return (uintptr_t)array->data % (uintptr_t)types[array->type].size == 0;
}

/* Walks over the elements in order. */
struct walk {
    const struct tr_array *array;
    const char *at;
    int64_t index[TR_ARRAY_DIMENSIONS];
};

static struct walk walk_from(const struct tr_array *array)
{
    return (struct walk){.array = array, .at = array->data};
}

static void walk_on(struct walk *walk)
{
    for (int i = walk->array->dimensions - 1; i >= 0; i--) {
        walk->at += walk->array->stride[i];
        if (++walk->index[i] < walk->array->shape[i]) return;
        walk->at -= walk->array->stride[i] * walk->array->shape[i];
        walk->index[i] = 0;
    }
}

static int64_t integer_at(const struct walk *walk)
{
    uint16_t unsigned_half;
    int16_t half;
    int32_t narrow;
    int64_t wide;
    switch (walk->array->type) {
    case TR_ARRAY_UINT8:
        return *(const uint8_t *)walk->at;
    case TR_ARRAY_UINT16:
        memcpy(&unsigned_half, walk->at, sizeof unsigned_half);
        return unsigned_half;
    case TR_ARRAY_INT16:
        memcpy(&half, walk->at, sizeof half);
        return half;
    case TR_ARRAY_INT32:
        memcpy(&narrow, walk->at, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, walk->at, sizeof wide);
        return wide;
    }
}

static float float_at(const struct walk *walk)
{
    float single;
    double twice;
    switch (walk->array->type) {
    case TR_ARRAY_FLOAT32:
        memcpy(&single, walk->at, sizeof single);
        return single;
    case TR_ARRAY_FLOAT64:
        memcpy(&twice, walk->at, sizeof twice);
        return (float)twice;
    default:
        return (float)integer_at(walk);
    }
}

/* ---- arrays as the library uses them ---- */

tr_status tr_array_bytes(struct tr_kept *kept, const struct tr_array *array, const uint8_t **out)
{
    int64_t count = count_elements(array);
    *out = array->data;
    if (lies_packed(array)) return TR_OK;
    uint8_t *copy = tr_kept_own(kept, (size_t)count, 1);
    struct walk walk = walk_from(array);
    if (!copy) return TR_ENOMEM;
    for (int64_t i = 0; i < count; i++, walk_on(&walk)) copy[i] = *(const uint8_t *)walk.at;
    *out = copy;
    return TR_OK;
}

/* Numbers as float32; *gaps becomes true where some are NaN (gaps NULL: none may be). */
tr_status tr_array_numbers(struct tr_kept *kept, const char *name, const struct tr_array *array, bool *gaps,
                           const float **out)
{
    int64_t count = count_elements(array), each = count / array->shape[0];
    bool here = array->type == TR_ARRAY_FLOAT32 && lies_packed(array);
    float *copy = here ? NULL : tr_kept_own(kept, (size_t)count, sizeof *copy);
    struct walk walk = walk_from(array);
    if (!here && !copy) return TR_ENOMEM;
    const float *packed = here ? array->data : NULL;
    for (int64_t i = 0; i < count; i++) {
        float number = here ? packed[i] : float_at(&walk);
        if (!here) {
            copy[i] = number;
            walk_on(&walk);
        }
        if (isfinite(number)) continue;
        if (isnan(number) && gaps) {
            *gaps = true;
            continue;
        }
        return tr_fail(TR_EINVAL, "%s: number %" PRId64 " of example %" PRId64 " is %s", name, i % each,
                       i / each, isnan(number) ? "NaN" : "infinite, or too large for float32");
    }
    *out = here ? packed : copy;
    return TR_OK;
}

/* Integers as int32, each from `least` to `most`. */
tr_status tr_array_integers(struct tr_kept *kept, const char *name, const struct tr_array *array,
                            int64_t least, int64_t most, const int32_t **out, int32_t *largest)
{
    int64_t count = count_elements(array);
    bool here = array->type == TR_ARRAY_INT32 && lies_packed(array);
    int32_t *copy = here ? NULL : tr_kept_own(kept, (size_t)count, sizeof *copy);
    struct walk walk = walk_from(array);
    if (!types[array->type].integer)
        return tr_fail(TR_EINVAL, "%s: %s; integers are wanted", name, types[array->type].name);
    if (!here && !copy) return TR_ENOMEM;
    *largest = -1;
    for (int64_t i = 0; i < count; i++, walk_on(&walk)) {
        int64_t number = integer_at(&walk);
        if (number < least || number > most)
            return tr_fail(TR_EINVAL,
                           "%s: element %" PRId64 " is %" PRId64 "; it is from %" PRId64 " to %" PRId64, name,
                           i, number, least, most);
        if (number > *largest) *largest = (int32_t)number;
        if (copy) copy[i] = (int32_t)number;
    }
    *out = here ? array->data : copy;
    return TR_OK;
}

const char *tr_array_type_name(enum tr_array_type type)
{
    return types[type].name;
}

bool tr_array_is_integer(const struct tr_array *array)
{
    return types[array->type].integer;
}

tr_status tr_array_offsets(struct tr_kept *kept, const struct tr_array *array, int64_t most,
                           const int64_t **out, int64_t *longest)
{
    int64_t count = array->shape[0] - 1, *begin = tr_kept_own(kept, (size_t)array->shape[0], sizeof *begin);
    struct walk walk = walk_from(array);
    if (!begin) return TR_ENOMEM;
    *longest = 0;
    for (int64_t i = 0; i <= count; i++, walk_on(&walk)) {
        begin[i] = integer_at(&walk);
        bool wrong = i == 0 ? begin[0] != 0 : begin[i] <= begin[i - 1] || begin[i] - begin[i - 1] > INT32_MAX;
        if (wrong || begin[i] > most)
            return tr_fail(TR_EINVAL,
                           "offsets: element %" PRId64 " is %" PRId64
                           "; they begin with 0, ascend, and end with the %" PRId64 " tokens",
                           i, begin[i], most);
        if (i > 0 && begin[i] - begin[i - 1] > *longest) *longest = begin[i] - begin[i - 1];
    }
    if (begin[count] != most)
        return tr_fail(TR_EINVAL, "offsets: the last one is %" PRId64 ", there are %" PRId64 " tokens",
                       begin[count], most);
    *out = begin;
    return TR_OK;
}
