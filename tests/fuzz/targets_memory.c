/* A target for arrays in memory: shapes, strides, types and labels of any kind over a buffer of exactly the
 * bytes that they reach. A pointer is the caller's promise: where shape and strides reach further than any
 * memory, they must be refused before anything is read.
 */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "trireme/arrays.h"

#include <string.h>

#define REACH_MOST    ((__int128)1 << 16) /* bytes of a buffer */
#define ELEMENTS_MOST ((__int128)1 << 14) /* elements that are worth the time */
#define ELEMENTS_FAR  ((__int128)1 << 47) /* from here on no copy fits into a machine */
#define WIDE          (INT64_MAX / 16)    /* what a pointer can reach, as src/data/memory/array.c has it */

#define LENGTH(array) ((unsigned)(sizeof(array) / sizeof *(array)))

static int64_t take_number(struct fuzz_input *input)
{
    static const int64_t special[] = {
        -1,           INT64_MIN,        INT64_MAX,        ((int64_t)1 << 31) + 5,
        INT32_MAX,    (int64_t)1 << 47, (int64_t)1 << 58, (int64_t)1 << 62,
        -(1LL << 40), 1 << 16};
    const unsigned choice = fuzz_choice(input, 64);
    return choice < LENGTH(special) ? special[choice] : (int64_t)choice - (int64_t)LENGTH(special);
}

/* What a buffer has to hold, and whether the library may look at it. */
struct extent {
    __int128 low, high, elements; /* bytes from the first element: [low, high] are where elements begin */
    bool refused;                 /* it is no array at all */
};

static struct extent extent_of(const struct tr_array *array, int64_t size)
{
    struct extent extent = {.elements = 1};
    bool packed = true;
    for (int i = 0; i < array->dimensions && i < TR_ARRAY_DIMENSIONS; i++) packed &= array->stride[i] == 0;
    for (int i = (array->dimensions < TR_ARRAY_DIMENSIONS ? array->dimensions : TR_ARRAY_DIMENSIONS) - 1;
         i >= 0; i--) {
        if (array->shape[i] < 1) extent.refused = true;
        if (extent.refused || extent.elements > WIDE) break;
        const __int128 stride = packed ? extent.elements * size : array->stride[i];
        const __int128 far = (array->shape[i] - 1) * stride;
        *(far < 0 ? &extent.low : &extent.high) += far;
        extent.elements *= array->shape[i];
    }
    extent.refused |= extent.elements > WIDE || extent.high - extent.low > WIDE;
    return extent;
}

/* Fills a buffer with small numbers of the type, and now and then a byte that may be any. */
static void fill(struct fuzz_input *input, enum tr_array_type type, uint8_t *bytes, size_t size)
{
    static const int width[] = {4, 8, 1, 4, 8, 2, 2};
    for (size_t at = 0; at + (size_t)width[type] <= size; at += (size_t)width[type]) {
        const uint8_t next = input->size > 0 ? *input->data : (uint8_t)(at % 7);
        if (input->size > 0) fuzz_choice(input, 1);
        const float single = (float)next / 4;
        const double twice = next;
        const int32_t narrow = next;
        const int64_t wide = next;
        const uint16_t half = next;
        const void *value = type == TR_ARRAY_FLOAT32   ? (const void *)&single
                            : type == TR_ARRAY_FLOAT64 ? (const void *)&twice
                            : type == TR_ARRAY_UINT8   ? (const void *)&next
                            : type == TR_ARRAY_INT32   ? (const void *)&narrow
                            : width[type] == 2         ? (const void *)&half
                                                       : (const void *)&wide;
        memcpy(bytes + at, value, (size_t)width[type]);
        if (next >= 240) memset(bytes + at, next, (size_t)width[type]); /* NaN, and negative integers */
        if (next == 239) bytes[at] = 0x80;
    }
}

/* Whether the array is one that the target can stand for. */
static bool take_array(struct fuzz_input *input, struct tr_array *array, void **buffer)
{
    static const int64_t width[] = {4, 8, 1, 4, 8, 2, 2};
    const unsigned choice = fuzz_choice(input, 128);
    memset(array, 0, sizeof *array);
    if (choice < 8) return true; /* none */
    array->type = (enum tr_array_type)(choice % 5);
    array->dimensions = (int32_t)(choice / 5 % 4) + 1;
    if (choice == 126) array->dimensions = TR_ARRAY_DIMENSIONS + 1;
    if (choice >= 100 && choice < 126) array->type = choice % 2 ? TR_ARRAY_UINT16 : TR_ARRAY_INT16;
    if (choice == 127) array->type = (enum tr_array_type)(TR_ARRAY_INT16 + 1);
    const bool strided = fuzz_choice(input, 3) == 0;
    for (int i = 0; i < TR_ARRAY_DIMENSIONS && i < array->dimensions; i++) {
        array->shape[i] = take_number(input);
        if (!strided) continue;
        const int64_t stride = take_number(input);
        const bool times = fuzz_choice(input, 2) == 0;
        array->stride[i] = times && stride > -64 && stride < 64 ? 4 * stride : stride;
    }
    const enum tr_array_type type = choice == 127 ? TR_ARRAY_INT64 : array->type;
    const struct extent extent = extent_of(array, width[type]);
    const bool reaches = !extent.refused && extent.high - extent.low < REACH_MOST;
    if (!extent.refused && !reaches) return false;
    if (!extent.refused && extent.elements > ELEMENTS_MOST && extent.elements < ELEMENTS_FAR) return false;
    const size_t size = reaches ? (size_t)(extent.high - extent.low) + (size_t)width[type] : 1;
    *buffer = malloc(size);
    FUZZ_DEMAND(*buffer != NULL);
    fill(input, type, *buffer, size);
    array->data = (const uint8_t *)*buffer + (reaches ? (size_t)-extent.low : 0);
    return true;
}

static void count_release(void *user)
{
    ++*(int *)user;
}

void fuzz_memory(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct tr_array *const array[] = {&arrays.features, &arrays.labels, &arrays.lengths, &arrays.offsets};
    void *buffer[4] = {NULL};
    tr_source *source = NULL;
    int released = 0;
    bool taken = true;
    const int64_t live = tr_alloc_live();
    arrays.tokens = (int32_t)fuzz_choice(&input, 2);
    arrays.vocabulary = (int32_t)take_number(&input);
    arrays.classes = (int32_t)take_number(&input);
    arrays.release = count_release;
    arrays.user = &released;
    for (int i = 0; i < 4 && taken; i++) taken = take_array(&input, array[i], &buffer[i]);
    if (taken) {
        const tr_status status = tr_source_from_arrays(&arrays, &source);
        FUZZ_DEMAND((status == TR_OK) == (source != NULL));
        FUZZ_DEMAND(status == TR_OK || status == TR_EINVAL || status == TR_ENOMEM);
        FUZZ_DEMAND(status == TR_OK || (released == 1 && tr_error_message()[0] != '\0'));
        if (source) {
            FUZZ_DEMAND(released == 0);
            fuzz_read_source(source);
            tr_source_close(&source);
        }
        FUZZ_DEMAND(released == 1);
    }
    for (int i = 0; i < 4; i++) free(buffer[i]);
    FUZZ_DEMAND(tr_alloc_live() == live);
}
