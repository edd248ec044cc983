/* Batches: the examples of one step, or of the part of it that this worker computes, in host memory.
 *
 * A loader gives the batch of any step from a source and an order; where it pays, a thread assembles the
 * following batches ahead of time. The contents of a batch depend on source, order and step only, never on
 * reading ahead. Everything is allocated when the loader is made.
 */
#ifndef TR_DATA_BATCH_H
#define TR_DATA_BATCH_H

#include "base/numbers/rng.h"
#include "data/order/order.h"
#include "data/source.h"

struct tr_batch {
    int64_t step, epoch;
    int64_t global_rows;   /* rows of the step's global batch, of which this is a part */
    int64_t first;         /* number of the first row within the global batch */
    int64_t global_labels; /* of tokens in the global batch, where tokens have labels; else global_rows */
    int64_t rows;          /* may be 0 when a ragged last batch has fewer rows than microbatches */
    int64_t *index;        /* [rows] numbers of the examples in the source */
    uint8_t *images;       /* [rows][height][width][channels]; NULL when the source is resident (where it is
                              filed: and options.in_place): take source->resident and index */
    uint8_t *part[TR_SOURCE_PARTS]; /* of a source with parts: [rows] of each image; NULL for vectors */
    float *floats;   /* [rows][floats]; of a source with image parts those of the vectors alone; of a text
                        with numbers beside it these */
    int32_t *tokens; /* [offset[rows]], examples one after another */
    int32_t *offset; /* [rows + 1] */
    int32_t *second, *second_offset; /* of a second text, likewise; else NULL */
    int32_t *labels; /* [rows], or of tokens [offset[rows]], or of pixels [rows][height][width] */
    float *targets;  /* [rows][values] */
    /* With options.mixes, row others + r is the example that row r is mixed with; not of tokens. */
    int64_t others;
};

#define TR_PREFETCH_AUTO (-1)
#define TR_PREFETCH_MAX  64

struct tr_loader_options {
    /* The global batch is cut into `microbatches` by tr_cut(); this worker takes those in [first, end). */
    int64_t microbatches, first_microbatch, end_microbatch;
    /* Batches kept ready ahead of the current one, at most TR_PREFETCH_MAX. 0: assembled on request;
       TR_PREFETCH_AUTO: 2 for sources that decode or read files, 1 without a thread for files of the cache,
       which helpers read, else 0. */
    int prefetch;
    /* Steps from this one on are not read ahead. */
    int64_t end_step;
    /* Images of a source that is resident and filed are used in place, too. */
    bool in_place;
    /* For each row another example is read: number floor((w[0] * 2^32 + w[1]) * count / 2^64) of the
       `count` of the source, w = philox(mix_key; row of the global batch, step, 6, 0). The same example on
       any rank. Not for tokens. */
    bool mixes;
    tr_rng_key mix_key;
};
#define TR_LOADER_OPTIONS_WHOLE                                                                              \
    {                                                                                                        \
        .microbatches = 1, .first_microbatch = 0, .end_microbatch = 1, .prefetch = TR_PREFETCH_AUTO,         \
        .end_step = INT64_MAX                                                                                \
    }

typedef struct tr_loader tr_loader;

/* `source` is borrowed until the loader is destroyed, `order` and `options` for the call. Returned, destroy
   with tr_loader_destroy(). */
tr_status tr_loader_create(const tr_source *source, const struct tr_order *order,
                           const struct tr_loader_options *options, tr_loader **out);
/* Accepts NULL, nulls the handle. Ends reading ahead. */
void tr_loader_destroy(tr_loader **loader);

/* The batch of `step` (from 0), any step in any order; ascending order is fastest. *out is borrowed until
   the next call. A failure to read an example is returned when its step is asked for, and again when it is
   asked for again. One thread at a time. */
tr_status tr_loader_get(tr_loader *loader, int64_t step, const struct tr_batch **out);

/* Whether other threads can help the loader's own thread to read ahead: a few examples at a time, which
   take microseconds where they are in memory. */
bool tr_loader_may_be_helped(const tr_loader *loader);
/* From here on other threads help, and the loader's thread reads only batches that would otherwise be
   late. Before the first step. */
void tr_loader_expect_help(tr_loader *loader);
/* Reads a few examples of `loader`, a tr_loader; false: there were none to read. Any idle thread, until
   the loader is destroyed. */
bool tr_loader_help(void *loader);

/* The most rows and tokens a batch of this loader can have. */
int64_t tr_loader_rows(const tr_loader *loader);
int64_t tr_loader_tokens(const tr_loader *loader);
/* Likewise of the second text, 0 where there is none. */
int64_t tr_loader_second_tokens(const tr_loader *loader);

#endif
