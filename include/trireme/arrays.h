/* Data from memory: arrays of the caller, or a function of the caller that gives examples.
 *
 *     struct tr_arrays arrays = TR_ARRAYS_INIT;
 *     arrays.features = (struct tr_array){pixels, TR_ARRAY_UINT8, 3, {60000, 28, 28}};
 *     arrays.labels = (struct tr_array){digits, TR_ARRAY_INT32, 1, {60000}};
 *     tr_source *train = NULL;
 *     tr_status status = tr_source_from_arrays(&arrays, &train);
 *
 * A trainer takes such sources by `data` of struct tr_train_settings (trireme/train.h), under their names
 * in the model file: `data: {train: {memory: {name: train}}}`. The sets "train", "validation" and "test"
 * need no line in the model file. Equal numbers give equal hashes, whether they come from files or from
 * memory.
 */
#ifndef TRIREME_ARRAYS_H
#define TRIREME_ARRAYS_H

#include "trireme/data.h"
#include "trireme/sized.h"
#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of an array's elements. */
enum tr_array_type {
    TR_ARRAY_FLOAT32, /* IEEE 754, 32 bits */
    TR_ARRAY_FLOAT64, /* IEEE 754, 64 bits */
    TR_ARRAY_UINT8,   /* 0 to 255 */
    TR_ARRAY_INT32,   /* two's complement, as the next one */
    TR_ARRAY_INT64,   /* 64 bits */
    TR_ARRAY_UINT16,  /* 0 to 65535 */
    TR_ARRAY_INT16    /* two's complement, 16 bits */
};

#define TR_ARRAY_DIMENSIONS 4

/* An array of the caller, in the byte order of the machine. The first dimension counts examples. */
struct tr_array {
    const void *data;                    /* the first element */
    enum tr_array_type type;             /* of its elements */
    int32_t dimensions;                  /* 0: there is no array; at most TR_ARRAY_DIMENSIONS */
    int64_t shape[TR_ARRAY_DIMENSIONS];  /* elements along each dimension */
    int64_t stride[TR_ARRAY_DIMENSIONS]; /* bytes from one element to the next along a dimension, also
                                            negative or 0; all 0: elements lie one after the other, the last
                                            dimension closest */
};

/* Examples in arrays. Initialize with TR_ARRAYS_INIT; members may be appended in later versions. */
struct tr_arrays {
    size_t size; /* sizeof(struct tr_arrays) */
    /* The inputs of the network:
         images   uint8 [count][height][width] or [count][height][width][channels]
         numbers  any type, [count] or [count][numbers]; or any but uint8: [count][steps][numbers], sequences
                  of vectors, or [count][height][width][channels], images of numbers, which are not scaled.
                  NaN stands for a missing number, which the format `memory` of the model file must allow
                  (`missing: mean`)
         tokens   with `tokens` set, int32 or int64: [count][longest], of which example i has lengths[i],
                  or, with `offsets`, [all], of which example i has [offsets[i], offsets[i + 1]) */
    struct tr_array features;
    /* The targets:
         nothing            0 dimensions
         classes            integers [count] from 0
         values             floats [count] or [count][values]
         classes of tokens  integers in the form of `features`; negative ones (TR_NO_LABEL) are not counted */
    struct tr_array labels;
    struct tr_array lengths;        /* integers [count] from 1; 0 dimensions: all have the longest */
    struct tr_array offsets;        /* integers [count + 1], ascending from 0; 0 dimensions: none */
    int32_t tokens;                 /* not 0: features are tokens */
    int32_t vocabulary;             /* tokens are below it; 0: the largest and 1 */
    int32_t classes;                /* labels are below it; 0: the largest and 1 */
    const char *const *class_names; /* [classes], copied; NULL: classes are just numbers */
    /* Called once, on any thread, when neither the caller nor the library uses the arrays any more; also
       if tr_source_from_arrays() fails. NULL: not called. */
    void (*release)(void *user);
    void *user; /* of `release` */
};

#define TR_ARRAYS_INIT TR_SIZED_INIT(struct tr_arrays)

/* A source over these arrays, which are borrowed until `release` is called, and must not change as long.
   uint8 images, float32 numbers and int32 tokens, classes and offsets that lie one after the other are
   used in place; others are converted into one copy. TR_EINVAL for types, shapes and strides that do not
   form examples, for labels and tokens out of range, for infinite numbers, and for NaN in values to learn;
   the message names the place. TR_ENOMEM. Any thread. Returned, close with tr_source_close(); trainers
   that took it may live on. */
TR_API tr_status tr_source_from_arrays(const struct tr_arrays *arrays, tr_source **out);

/* Examples from a function. Initialize with TR_EXAMPLE_READER_INIT. */
struct tr_example_reader {
    size_t size; /* sizeof(struct tr_example_reader) */
    /* The kind of the examples, in the members that tr_source_info() fills: count, features, labels, and
       the sizes for these kinds; class_names are copied. */
    struct tr_source_info info;
    /* Writes example `index`, from 0 to count - 1, in the form of tr_source_read(). The room for features
       is that of the longest example; *length is set to that room before the call, and to the number of
       features by it. Features or label may be NULL if not wanted. The example must follow from the index
       alone. A non-zero result fails the caller with TR_EIO and that number in the message. */
    int (*read)(void *user, int64_t index, void *features, int64_t *length, void *label);
    int32_t any_thread; /* not 0: `read` may be called by several threads at once; else one call at a time */
    void (*release)(void *user); /* as in struct tr_arrays */
    void *user;                  /* of `read` and `release` */
};

#define TR_EXAMPLE_READER_INIT TR_SIZED_INIT(struct tr_example_reader)

/* A source over such a function. Its output is checked like the contents of a file: lengths, tokens and
   classes in range, numbers finite (TR_EFORMAT). TR_EINVAL for an info that does not describe examples,
   TR_ENOMEM. Any thread. Returned, close with tr_source_close(); trainers that took it may live on. */
TR_API tr_status tr_source_from_reader(const struct tr_example_reader *reader, tr_source **out);

#ifdef __cplusplus
}
#endif
#endif
