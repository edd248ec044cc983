/* The inside of a source: what a format implements.
 *
 * Invariants: a source never changes after it was opened, so that any thread may read any example; every
 * label and token that read() gives is in the range that info states, since devices do not check.
 */
#ifndef TR_DATA_SOURCE_H
#define TR_DATA_SOURCE_H

#include "base/options/config.h"
#include "base/numbers/hash.h"
#include "base/options/registry.h"
#include "data/files/stamps.h"
#include "tensor/shape.h"
#include "trireme/data.h"

#define TR_SOURCE_VERSION 1

/* The parts of an example that come from several joined sources (data/tables/join.h): images first, then
   vectors, in the order of their numbers in the result of read(). */
#define TR_SOURCE_PARTS 4
struct tr_source_parts {
    int32_t count, images;
    struct tr_named_shape part[TR_SOURCE_PARTS];
    /* Of a text beside them, whose tokens read() gives in the place of all their numbers: its name. All parts
       are vectors then, which read_parts() gives; there may be none. "": there is no text. */
    char text[TR_NAMED_SHAPE_NAME];
    /* Of another text beside that one, which read_second() gives: its name, the most tokens of an example,
       and its vocabulary. "": there is none. */
    char second[TR_NAMED_SHAPE_NAME];
    int32_t second_tokens, second_vocabulary;
};

/* The sum of the numbers of all vectors. */
int32_t tr_source_parts_floats(const struct tr_source_parts *parts);

struct tr_source_class {
    const char *name;
    int version; /* TR_SOURCE_VERSION */
    /* As tr_source_read(), with the index and the room already checked. `features` and `label` may be NULL,
       `length` is not. */
    tr_status (*read)(const tr_source *source, int64_t index, void *features, int64_t *length, void *label);
    /* As read(), for `count` consecutive examples from `index` on, of features of a fixed size, one after
       the other. NULL: no faster than one by one. */
    tr_status (*read_run)(const tr_source *source, int64_t index, int64_t count, void *features, void *label);
    /* As read(), part by part: image k as bytes to image[k], the vectors one after the other to `floats`.
       Needed where there are parts, else NULL. */
    tr_status (*read_parts)(const tr_source *source, int64_t index, uint8_t *const image[TR_SOURCE_PARTS],
                            float *floats, void *label);
    /* The tokens of an example's second text, at most parts->second_tokens; NULL: its length alone. Needed
       where there is one, else NULL. */
    tr_status (*read_second)(const tr_source *source, int64_t index, int32_t *tokens, int64_t *length);
    /* Prefetches an example that will soon be read. NULL: no gain. */
    void (*fetch)(const tr_source *source, int64_t index);
    /* The number of tokens of an example that have a label. Needed with TR_LABEL_TOKENS, else NULL. */
    int64_t (*labelled)(const tr_source *source, int64_t index);
    /* Adds the contents to a hash, which already has the format's name and the figures of info. */
    tr_status (*digest)(const tr_source *source, tr_sha256 *hash);
    /* The name of the file beside the parameters that keeps the text of state(). NULL with state. */
    const char *state_name;
    /* Fresh text in the form of data/state.h; may leave *text NULL. NULL slot: there is no state. */
    tr_status (*state)(const tr_source *source, char **text);
    /* Adds an example to a text for people, on separate lines. NULL: images and floats are shown from
     * read().
     */
    tr_status (*show)(const tr_source *source, int64_t index, struct tr_text *text);
    void (*destroy)(tr_source *source);
};

/* The range of the numbers of images, which follows from what they were stored as. */
enum tr_number_range {
    TR_RANGE_OPEN,   /* none is known */
    TR_RANGE_U16,    /* 0 to 65535 */
    TR_RANGE_I16,    /* -32768 to 32767 */
    TR_RANGE_PICTURE /* 0 to 65535, of image files: they enter a network as 0 to 1 unless it says otherwise */
};

/* The head of every source's own structure. */
struct tr_source {
    const struct tr_source_class *class;
    struct tr_source_info info;
    /* All images one after another, [count][height][width][channels], when memory holds them in this form;
       NULL otherwise. Borrowed by readers; lives as long as the source. */
    const uint8_t *resident;
    /* read() takes examples from a file. Readers may use `resident` as well, but then its pages count as
       memory of the process. */
    bool filed;
    bool spilled;  /* its data lie in a file without a name, removed with it (data/files/spill.h) */
    bool overlaps; /* examples share data, as windows share rows: a random split would not separate them */
    /* Windows over one text: the tokens of example i are `window` ones from stream[i * stride] on, its
       labels those one place later. The stream has (count - 1) * stride + window + 1 tokens; NULL
       otherwise. */
    const int32_t *stream;
    int64_t window, stride;
    /* Of joined sources, whose examples are floats, or tokens where one is a text; NULL otherwise. Lives as
       long as the source. */
    const struct tr_source_parts *parts;
    /* Set by tr_source_open_config(), or where the data are known already; else empty. */
    struct tr_source_files files; /* that it was read from, stamped before they were read */
    char digest[TR_SHA256_TEXT];  /* of tr_source_digest() */
    char record[TR_SHA256_TEXT];  /* key of the record that may note the digest, see tr_store_learn() */
    struct tr_keeping *keeping;   /* its entry that is being made, see data/cache/keep.h; or NULL */
    void (*finish)(tr_source *);  /* waits for that entry before the source is closed; NULL: none is being
                                     made */
    enum tr_number_range range;   /* of images of numbers */
    const char *state_name;       /* replaces that of the class; static storage */
    int64_t unpacked;             /* estimated bytes of memory that its data take in this process */
};

typedef struct tr_store tr_store;

/* A format: how a model file describes a source, `name: {option: value, ...}`, and how it is opened. */
struct tr_source_format {
    TR_ENTRY;
    /* `options` is borrowed for the call; relative paths in it are relative to `directory`. `state` may be
       NULL. Otherwise as tr_source_open(). */
    tr_status (*open)(const void *options, const char *directory, const char *state, tr_source **out);
    /* As open(), but large data go to files without names in the directory `spill` and not to memory.
       NULL: not supported. */
    tr_status (*open_spilling)(const void *options, const char *directory, const char *state,
                               const char *spill, tr_source **out);
    /* Adds the files or folders whose contents determine the result of open(). */
    tr_status (*files)(const void *options, const char *directory, struct tr_source_files *files);
    /* Whether the source keeps unpacked examples in memory, rather than reading files as needed. NULL:
     * always.
     */
    bool (*unpacks)(const void *options, const struct tr_source_files *files);
    /* Further checks of tr_source_check_config() beyond the table. NULL: none. */
    tr_status (*check)(const void *options);
    /* As open(), without the features: reading them fails. For callers that need only sizes and labels,
       where this is faster. NULL: it is not. */
    tr_status (*outline)(const void *options, const char *directory, const char *state, tr_source **out);
    /* Replaces open() in formats that combine other sources: opens these through the store. */
    tr_status (*open_through)(const void *options, const char *directory, const char *state, tr_store *store,
                              int slot, tr_source **out);
};

/* All formats, ascending by name; its entries are of struct tr_source_format. */
extern const struct tr_registry tr_source_formats;

/* As tr_source_open(), from a mapping with the name of a format as its only key. Unpacked data come through
   `store` in its `slot` (data/cache/store.h); NULL: from the files. */
tr_status tr_source_open_config(const tr_config *node, const char *directory, const char *state,
                                tr_store *store, int slot, tr_source **out);
/* The same for sizes and labels alone: reading features may fail. Formats without a faster way open as
   above, for this process alone. `store` (NULL: from the files) has the sources that a program gave. */
tr_status tr_source_outline_config(const tr_config *node, const char *directory, const char *state,
                                   tr_store *store, tr_source **out);
/* The same for a source that is joined with others: its examples may have labels only. */
tr_status tr_source_open_part(const tr_config *node, const char *directory, const char *state,
                              tr_store *store, int slot, tr_source **out);
/* The same from a description; data of this process alone. */
tr_status tr_source_open_through(tr_store *store, const char *description, const char *directory,
                                 const char *state, tr_source **out);

/* Checks such a mapping without reading data. TR_EINVAL with file, line and key. */
tr_status tr_source_check_config(const tr_config *node);

/* `read` and `labelled` of sources that have a stream. */
tr_status tr_source_read_window(const tr_source *source, int64_t index, void *features, int64_t *length,
                                void *label);
int64_t tr_source_window_labels(const tr_source *source, int64_t index);
/* Adds the numbers of an example to a text for people: the first ones where there are many. */
tr_status tr_source_add_floats(const tr_source *source, int64_t index, struct tr_text *text);
/* The number of an example's pixels that have labels; 0 where pixels have none. */
static inline int64_t tr_source_pixels(const struct tr_source_info *info)
{
    return info->labels == TR_LABEL_PIXELS ? (int64_t)info->height * info->width : 0;
}
/* Whether an example is an image of numbers: floats with height, width and channels. */
static inline bool tr_source_is_number_image(const struct tr_source_info *info)
{
    return info->features == TR_FEATURE_FLOATS && info->height > 0 &&
           (int64_t)info->height * info->width * info->channels == info->floats;
}
/* How many of `count` labels are not TR_NO_LABEL. */
int64_t tr_labels_count(const int32_t *labels, int64_t count);

/* Which of `parts` parts of a source example `index` lies in, where part p has the examples from first[p] to
   first[p + 1]; first[0] <= index < first[parts]. */
int32_t tr_source_part(const int64_t *first, int32_t parts, int64_t index);

#endif
