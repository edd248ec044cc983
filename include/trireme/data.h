/* Data sets: opening them, reading examples, and the tools behind `trireme data`.
 *
 * A source is a set of examples with random access: images as bytes, vectors of floats, or sequences of
 * tokens, each with a class, a vector of target values, or no label. It is described by one line in the
 * language of model files, for instance
 *
 *     {idx: {images: data/mnist/train-images-idx3-ubyte.gz, labels: data/mnist/train-labels-idx1-ubyte.gz}}
 *
 * Texts that functions return are freed with tr_text_free().
 */
#ifndef TRIREME_DATA_H
#define TRIREME_DATA_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_source tr_source;

enum tr_feature_kind {
    TR_FEATURE_IMAGE,  /* uint8_t [height][width][channels] */
    TR_FEATURE_FLOATS, /* float [width] */
    TR_FEATURE_TOKENS  /* int32_t [n], n from 1 to max_tokens, each below vocabulary */
};

enum tr_label_kind {
    TR_LABEL_NONE,
    TR_LABEL_CLASS, /* one int32_t below classes */
    TR_LABEL_VALUES /* float [values] */
};

/* What a source holds. Fields that do not belong to the kinds are 0 or NULL. Further fields may be appended
   in later versions. */
struct tr_source_info {
    int64_t count; /* examples, at least 1 */
    enum tr_feature_kind features;
    enum tr_label_kind labels;
    int32_t height, width, channels;
    int32_t floats;
    int32_t max_tokens, vocabulary;
    int32_t classes, values;
    const char *const *class_names; /* [classes], or NULL when classes are just numbers */
    int64_t skipped;                /* bad records left out, where the description allows that */
    bool slow; /* reading decodes or waits for files, so that reading ahead on another thread pays */
};

/* Opens what `description` names. Relative paths are taken from `directory` (NULL: the current one). `state`
   is text that tr_source_state() gave for the training data and makes a second source agree with it (same
   words, same scaling, same classes); NULL derives that from the data. Both are borrowed for the call.
   Returned, close with tr_source_close(). TR_EINVAL for a wrong description, TR_EIO for files that cannot be
   read, TR_EFORMAT or TR_ECORRUPT with file and place for wrong contents. Any thread. */
TR_API tr_status tr_source_open(const char *description, const char *directory, const char *state,
                                tr_source **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_source_close(tr_source **source);

/* Borrowed until the source is closed. Any thread. */
TR_API const struct tr_source_info *tr_source_info(const tr_source *source);

/* The most elements (bytes, floats or tokens) one example has. Any thread. */
TR_API int64_t tr_source_capacity(const tr_source *source);

/* Reads example `index`. `features` has room for `capacity` elements of the feature's type; *length becomes
   the number written. `label` has room for the label (an int32_t or float [values]); both outputs may be NULL
   if not wanted. TR_EINVAL when the index is outside or the room too small; otherwise as opening. Any thread,
   several at once. */
TR_API tr_status tr_source_read(const tr_source *source, int64_t index, void *features, int64_t capacity,
                                int64_t *length, void *label);

/* What a second source must share with this one, as lines of text for a file called *name (vocabulary.txt,
   scaling.txt, classes.txt; static storage); *text is returned, free with tr_text_free(). Both NULL when
   there is nothing to share. Any thread. */
TR_API tr_status tr_source_state(const tr_source *source, const char **name, char **text);

/* SHA-256 over what the source holds, as 64 hexadecimal digits and a zero. The same examples in another
   packing of the same format give the same digest; another format does not. Any thread. */
TR_API tr_status tr_source_digest(const tr_source *source, char hex[65]);

/* Frees a text that a function of the library returned. Accepts NULL. */
TR_API void tr_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
