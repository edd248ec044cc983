/* The inside of a source: what a format implements.
 *
 * Invariants: a source never changes after it was opened, so that any thread may read any example; every
 * label and token that read() hands out is in the range that info promises, since devices do not check.
 */
#ifndef TR_DATA_SOURCE_H
#define TR_DATA_SOURCE_H

#include "base/config.h"
#include "base/hash.h"
#include "base/option.h"
#include "trireme/data.h"

#define TR_SOURCE_VERSION 1

struct tr_source_class {
    const char *name;
    int version; /* TR_SOURCE_VERSION */
    /* As tr_source_read(), with the index and the room already checked. `features` and `label` may be NULL,
       `length` is not. */
    tr_status (*read)(const tr_source *source, int64_t index, void *features, int64_t *length, void *label);
    /* Asks the processor for an example that will soon be read. NULL: nothing to gain. */
    void (*fetch)(const tr_source *source, int64_t index);
    /* Adds the contents to a hash that already has the format's name and the figures of info. */
    tr_status (*digest)(const tr_source *source, tr_sha256 *hash);
    /* What state() returns is kept under this name beside the parameters. NULL with state. */
    const char *state_name;
    /* Fresh text as data/state.h describes; may leave *text NULL. A NULL slot: nothing to share. */
    tr_status (*state)(const tr_source *source, char **text);
    /* Adds an example to a text for people, on lines of its own. NULL: images and floats are shown from what
     * read() gives. */
    tr_status (*show)(const tr_source *source, int64_t index, struct tr_text *text);
    void (*destroy)(tr_source *source);
};

/* The head of every source's own structure. */
struct tr_source {
    const struct tr_source_class *class;
    struct tr_source_info info;
    /* All images one after another, [count][height][width][channels], when they lie in memory like that;
       NULL otherwise. Borrowed by whoever reads; lives as long as the source. */
    const uint8_t *resident;
};

/* A format: how a source is described in a model file, `name: {option: value, ...}`, and opened. */
struct tr_source_format {
    const char *name;
    const char *help; /* one sentence for the manual */
    const struct tr_option *options;
    int32_t option_count;
    size_t options_size; /* of the struct that the table fills */
    /* `options` is borrowed for the call; relative paths in it are to be taken from `directory`. `state` may
       be NULL. Otherwise as tr_source_open(). */
    tr_status (*open)(const void *options, const char *directory, const char *state, tr_source **out);
};

/* All formats, ascending by name; NULL ends the list. */
extern const struct tr_source_format *const tr_source_formats[];

/* As tr_source_open(), from a mapping with the name of a format as its only key. */
tr_status tr_source_open_config(const tr_config *node, const char *directory, const char *state,
                                tr_source **out);

/* `path`, or `directory`/`path` where that is relative and `directory` is not NULL. Returned, free with
   tr_free(); NULL when memory fails. */
char *tr_source_path(const char *directory, const char *path);

/* Which of `parts` parts of a source example `index` lies in, where part p has the examples from first[p] to
   first[p + 1]; first[0] <= index < first[parts]. */
int32_t tr_source_part(const int64_t *first, int32_t parts, int64_t index);

#endif
