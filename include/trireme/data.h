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

/* The kind of an example. */
enum tr_feature_kind {
    TR_FEATURE_IMAGE,  /* uint8_t [height][width][channels] */
    TR_FEATURE_FLOATS, /* float [width] */
    TR_FEATURE_TOKENS  /* int32_t [n], n from 1 to max_tokens, each below vocabulary */
};

/* The target of an example. */
enum tr_label_kind {
    TR_LABEL_NONE,   /* nothing */
    TR_LABEL_CLASS,  /* one int32_t below classes */
    TR_LABEL_VALUES, /* float [values] */
    TR_LABEL_TOKENS, /* an int32_t for each token of the example: below classes, or TR_NO_LABEL */
    TR_LABEL_PIXELS  /* of images: int32_t [height][width], each below classes, or TR_NO_LABEL */
};
/* The label of a token or pixel without one: losses, accuracies and perplexities leave it out. */
#define TR_NO_LABEL (-1)

/* The contents of a source. Fields that do not belong to the kinds are 0 or NULL. Further fields may be
   appended in later versions. */
struct tr_source_info {
    int64_t count;                   /* examples, at least 1 */
    enum tr_feature_kind features;   /* of all examples */
    enum tr_label_kind labels;       /* likewise */
    int32_t height, width, channels; /* of images; not 0: floats are one */
    int32_t floats;                  /* of a vector */
    int32_t max_tokens, vocabulary;  /* the longest sequence; tokens are below `vocabulary` */
    int32_t classes, values;         /* classes: of tokens and pixels, too */
    const char *const *class_names;  /* [classes], or NULL when classes are just numbers */
    int64_t skipped;                 /* bad records left out, if the description allows that */
    bool slow;     /* reading decodes or waits for files, so reading ahead on another thread saves time */
    int32_t steps; /* not 0: floats are a sequence of so many vectors, one after the other */
};

/* A source under its name in a job. */
struct tr_named_source {
    const char *name;        /* name in the job */
    const tr_source *source; /* borrowed as long as the job exists */
};

/* Opens what `description` names. Relative paths are taken from `directory` (NULL: the current one).
   `state` is the text of tr_source_state() for the training data; with it a second source agrees with
   these (same words, same scaling, same classes). NULL derives that from the data. Both are borrowed for
   the call. Returned, close with tr_source_close(). TR_EINVAL for a wrong description, TR_EIO for files
   that cannot be read, TR_EFORMAT or TR_ECORRUPT with file and place for wrong contents. Any thread. */
TR_API tr_status tr_source_open(const char *description, const char *directory, const char *state,
                                tr_source **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_source_close(tr_source **source);

/* Borrowed until the source is closed. Any thread. */
TR_API const struct tr_source_info *tr_source_info(const tr_source *source);

/* The most elements (bytes, floats or tokens) one example has. Any thread. */
TR_API int64_t tr_source_capacity(const tr_source *source);

/* Reads example `index`. `features` has room for `capacity` elements of the feature's type; *length becomes
   the number written. `label` has room for the label (an int32_t, float [values], int32_t [capacity] of
   tokens, int32_t [height][width] of pixels); both outputs may be NULL if not wanted. TR_EINVAL when the
   index is outside or the room too small; otherwise as opening. Any thread, several at once. */
TR_API tr_status tr_source_read(const tr_source *source, int64_t index, void *features, int64_t capacity,
                                int64_t *length, void *label);

/* The properties that a second source must share with this one, as lines of text for a file called *name
   (vocabulary.txt, scaling.txt, classes.txt; static storage); *text is returned, free with tr_text_free().
   Both NULL when there is nothing to share. Any thread. */
TR_API tr_status tr_source_state(const tr_source *source, const char **name, char **text);

/* SHA-256 over the contents of the source, as 64 hexadecimal digits and a zero. The same examples in
   another packing of the same format have the same digest; in another format they have another one. Any
   thread. */
TR_API tr_status tr_source_digest(const tr_source *source, char hex[65]);

/* Examples `first` to `first + count` (limited to existing ones) as characters for a terminal of `columns`
   columns: images in shades of characters side by side, vectors as numbers, sentences as words, each with
   its label. *text is returned, free with tr_text_free(). Any thread. */
TR_API tr_status tr_source_show(const tr_source *source, int64_t first, int64_t count, int columns,
                                char **text);

/* Writes the source out: format "tfrecord" (packing "none", "gzip" or "zlib") into the file `path`, or
   "idx" (packing "none") into `<path>-images-idx3-ubyte` and `<path>-labels-idx1-ubyte`. A failure leaves
   no file, or the old one. TR_EUNSUPPORTED if the format cannot hold the source. Any thread. */
TR_API tr_status tr_source_convert(const tr_source *source, const char *format, const char *packing,
                                   const char *path);

/* ---- known data sets ---- */

/* A data set that `trireme data` knows by name. Its files lie in `<directory>/<name>/`, where `directory`
   is "data" by default. Static storage. Further fields may be appended in later versions. */
struct tr_data_set_info {
    const char *name;         /* "mnist" */
    const char *title;        /* one line for people */
    const char *origin;       /* its makers and origin */
    bool can_fetch;           /* tr_data_set_fetch() knows a mirror */
    const char *const *parts; /* "train", "test", ..., ending with NULL */
};

/* Set number `index`, NULL beyond the last. Any thread. */
TR_API const struct tr_data_set_info *tr_data_set_at(int index);

/* A description for tr_source_open() of one part of a set: *description is returned, free with
   tr_text_free(). Paths in it are relative to `directory`. TR_ENOTFOUND for unknown names, with the nearest
   known one. Any thread. */
TR_API tr_status tr_data_set_describe(const char *name, const char *part, char **description);

/* Opens one part of a set; `directory` and `state` as tr_source_open(). Any thread. */
TR_API tr_status tr_data_set_open(const char *name, const char *part, const char *directory,
                                  const char *state, tr_source **out);

/* The state of a file of a data set. */
enum tr_data_file_state {
    TR_DATA_FILE_GOOD,    /* its checksum, or that of its contents, is right */
    TR_DATA_FILE_MISSING, /* the file does not exist */
    TR_DATA_FILE_BAD,     /* another checksum, or cannot be read */
    TR_DATA_FILE_FETCHED  /* it was just fetched, and is good */
};

/* Called with each file of a set. `path` and `message` (the problem of a bad file, else "") are borrowed
 * for the call.
 */
typedef void (*tr_data_report)(void *user, const char *path, enum tr_data_file_state state,
                               const char *message);

/* Checks the files of a set against their SHA-256. TR_ECORRUPT when a file is bad, TR_ENOTFOUND when one is
   missing, after reporting all. `report` may be NULL. Any thread. */
TR_API tr_status tr_data_set_verify(const char *name, const char *directory, tr_data_report report,
                                    void *user);

/* Called with the progress of a download; total is 0 while unknown. Non-zero ends the download. */
typedef int (*tr_data_progress)(void *user, const char *path, int64_t done, int64_t total);

/* Fetches the files of a set that are missing or bad from `mirror` ("https://host/folder" or
   "file:///folder"), or from their public mirrors if that is NULL. Only https is used, also after
   redirects. A file takes its name only after its SHA-256 was verified, whatever its source; an old file
   is kept until then, and partial downloads are removed. TR_EINVAL for a mirror of another kind, TR_EIO
   when no mirror could be read, TR_ECORRUPT when none had the right file, TR_EUNSUPPORTED without the
   download module (built with libcurl) or for sets that have no mirror, TR_EINTERRUPTED when `progress`
   ended it. Both callbacks may be NULL. One thread at a time. */
TR_API tr_status tr_data_set_fetch(const char *name, const char *mirror, const char *directory,
                                   tr_data_progress progress, tr_data_report report, void *user);

/* ---- the data cache ---- */

/* A directory where runs share unpacked data (docs/reference/data-cache.md): `data_cache` of the settings
   of trireme/train.h and trireme/predict.h. The library has no default directory. */
struct tr_data_cache_entry {
    const char *path;     /* of its file */
    int64_t bytes, used;  /* size; seconds since 1970 of the last use */
    bool good;            /* whole, and owned by the user: runs take it */
    const char *examples; /* its contents, for people; "" unless it is good */
};
/* `entry` is borrowed for the call. */
typedef void (*tr_data_cache_visit)(void *user, const struct tr_data_cache_entry *entry);
/* Calls `visit` for each entry; reads all to check them. A missing directory counts as empty. TR_EINVAL if
   it belongs to another user or others can write to it, TR_EIO. Any thread. */
TR_API tr_status tr_data_cache_list(const char *directory, tr_data_cache_visit visit, void *user);
/* Removes all entries; runs that use one keep theirs. *entries and *bytes (may be NULL) become the removed
   amounts. Errors likewise. Any thread. */
TR_API tr_status tr_data_cache_clear(const char *directory, int *entries, int64_t *bytes);

/* The path of the data file that the library has mapped at `address`, borrowed while the file is open, or
   NULL. For programs that handle SIGBUS, which is raised if a file is truncated while it is read. Any
   thread, and signal handlers. */
TR_API const char *tr_data_file_at(const void *address);

/* Frees a text that a function of the library returned. Accepts NULL. */
TR_API void tr_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
