/* tf.train.Example, decoded and encoded by hand: a generic protobuf reader costs fifteen times as much.
 *
 *     Example   { Features features = 1 }
 *     Features  { map<string, Feature> feature = 1 }      each entry { string key = 1; Feature value = 2 }
 *     Feature   { BytesList = 1 | FloatList = 2 | Int64List = 3 }
 *     *List     { repeated value = 1 }                    floats and integers packed or not
 *
 * As protobuf requires, unknown fields are skipped. Of duplicate keys, and of several lists in a feature,
 * the last one counts.
 */
#ifndef TR_DATA_EXAMPLE_H
#define TR_DATA_EXAMPLE_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tr_list_kind { TR_LIST_NONE = 0, TR_LIST_BYTES = 1, TR_LIST_FLOATS = 2, TR_LIST_INT64 = 3 };

/* A feature to find, and where it was found. */
struct tr_example_feature {
    const char *name;
    size_t name_length;
    enum tr_list_kind kind; /* TR_LIST_NONE: not in the example, or a feature without a list */
    const uint8_t *list;    /* the list's bytes; borrowed from the example */
    size_t size;
};

/* Finds `count` features in an example. All arguments are borrowed for the call. TR_EFORMAT with the position
   in the example when it is not valid. Any thread. */
tr_status tr_example_find(const uint8_t *data, size_t size, struct tr_example_feature *features, int count);

/* The only value of a list of bytes, borrowed. TR_EFORMAT, with the feature's name, when the feature is
   absent, of another kind or has another number of values. The next two fail likewise. */
tr_status tr_example_bytes(const struct tr_example_feature *feature, const uint8_t **data, size_t *size);
/* The only value of a list of integers. */
tr_status tr_example_int64(const struct tr_example_feature *feature, int64_t *value);
/* All values of a list of floats: *count becomes their number, of which the first `room` are written. */
tr_status tr_example_floats(const struct tr_example_feature *feature, float *values, size_t room,
                            size_t *count);

/* A feature to encode: `count` values at `data`: bytes (count of one value), floats or int64s. Borrowed. */
struct tr_example_value {
    const char *name;
    enum tr_list_kind kind;
    const void *data;
    size_t count;
};

/* The size of an example with these features. */
size_t tr_example_encoded_size(const struct tr_example_value *values, int count);
/* Writes it, tr_example_encoded_size() bytes. Features keep their order. */
void tr_example_encode(const struct tr_example_value *values, int count, uint8_t *to);

#endif
