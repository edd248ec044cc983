/* Using a trained network: a predictor is made from a checkpoint and answers for images, texts and numbers.
 *
 * A predictor is used by one thread at a time.
 */
#ifndef TRIREME_PREDICT_H
#define TRIREME_PREDICT_H

#include "trireme/data.h"
#include "trireme/metrics.h"
#include "trireme/sized.h"
#include "trireme/state.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_predictor tr_predictor;

/* The trained network and the examples for it. Initialize with TR_PREDICT_SETTINGS_INIT; strings are
 * borrowed for the call.
 */
struct tr_predict_settings {
    size_t size;               /* sizeof(struct tr_predict_settings) */
    const char *checkpoint;    /* a checkpoint, or a directory of checkpoints of which the newest good one
                                  is taken */
    const char *device;        /* "cpu", "ref", "opencl" or "opencl:1", see tr_devices() */
    int threads;               /* 0: one per core available to the process */
    const char *isa;           /* NULL: the best of the machine */
    bool use_average;          /* take the moving averages if the checkpoint has them */
    const char *data_cache;    /* as in struct tr_train_settings */
    int64_t data_cache_bytes;  /* likewise */
    bool best;                 /* from the directory of a run, take the checkpoint of its best evaluation */
    const char *program_cache; /* as in struct tr_train_settings */
    struct tr_run_state state; /* a checkpoint in memory, instead of `checkpoint` */
    const struct tr_named_source *data; /* [data_count] from memory for tr_predictor_open_data(), as in struct
                                           tr_train_settings; borrowed until the predictor is destroyed */
    int data_count;                     /* of `data` */
};
#ifdef __cplusplus
inline tr_predict_settings tr_predict_settings_init()
{
    tr_predict_settings value = tr_sized<tr_predict_settings>();
    value.device = "cpu";
    value.use_average = true;
    return value;
}
#define TR_PREDICT_SETTINGS_INIT tr_predict_settings_init()
#else
#define TR_PREDICT_SETTINGS_INIT                                                                             \
    {                                                                                                        \
        .size = sizeof(struct tr_predict_settings), .device = "cpu", .use_average = true                     \
    }
#endif

/* Returned, destroy with tr_predictor_destroy(). */
TR_API tr_status tr_predictor_create(const struct tr_predict_settings *settings, tr_predictor **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_predictor_destroy(tr_predictor **predictor);

/* Initialize with TR_PREDICT_INFO_INIT; members may be appended in later versions, see trireme/train.h.
   Strings are borrowed until the predictor is destroyed. */
struct tr_predict_info {
    size_t size;            /* sizeof(struct tr_predict_info) */
    const char *name;       /* of the job */
    const char *checkpoint; /* path that was loaded, "(memory)", or "(trainer)" */
    const char *skipped;    /* newer checkpoints that were skipped because they are damaged, one per line;
                               or "" */
    const char *hash;       /* of the parameters */
    int64_t step;           /* steps done */
    enum tr_feature_kind features;           /* of the network's input */
    int32_t height, width, channels, floats; /* of an example as given; 0 if not applicable. Images of
                                                numbers have all; `floats` is also 0 if an example has
                                                several sources */
    int32_t outputs;                         /* classes, or values */
    bool classification;                     /* outputs are the probabilities of classes */
    const char *const *class_names;          /* [outputs], or NULL */
    bool accuracy;       /* answers are right or wrong: classes, or yes and no for each output, whose `output`
                            below is the probability of yes */
    bool of_tokens;      /* outputs are for every token, and exp of the loss is a perplexity */
    bool language_model; /* for every token, as scores of the next one: tr_predictor_generate() */
    int32_t heads;       /* losses, each for some of the outputs; see tr_predictor_head() */
    int32_t targets;     /* target values of an example; 0 if the target is a class */
    const char *const *target_names;   /* [targets], or NULL */
    int32_t pixel_height, pixel_width; /* for images whose pixels have `outputs` each; else 0 */
    bool two_texts; /* a language model whose text follows from another text: tr_predictor_translate() */
};
#define TR_PREDICT_INFO_INIT TR_SIZED_INIT(struct tr_predict_info)
/* Facts about a predictor. TR_EINVAL without a size. Local. */
TR_API tr_status tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info);

/* The number of names of a column of names in the training data; 0 if the column is of numbers. An example
   has a name's number in such a column. Columns count from 0, up to `floats` of the info. Local. */
TR_API int32_t tr_predictor_category_count(const tr_predictor *predictor, int32_t column);
/* One of them, by its number from 0; NULL if there is none. Borrowed until the predictor is destroyed. */
TR_API const char *tr_predictor_category_name(const tr_predictor *predictor, int32_t column, int32_t index);
/* The number that stands for a name among the floats of an example: its own, or -1 for a name that the
   training data lack, which the network takes as none of them. TR_EINVAL for such a name if the data of
   the job have `unknown: stop`; TR_ENOTFOUND for a column of numbers. Local. */
TR_API tr_status tr_predictor_category(const tr_predictor *predictor, int32_t column, const char *name,
                                       float *value);

/* One of the losses of a network, and its outputs; those of the next loss follow. */
struct tr_predict_head {
    size_t size;          /* sizeof(struct tr_predict_head) */
    const char *loss;     /* "softmax_cross_entropy" */
    int32_t outputs;      /* scores of so many classes, or values */
    bool classification;  /* outputs are the probabilities of classes; with several losses the target is
                             the index of one */
    bool yes_or_no;       /* each output is the probability of yes */
    int32_t first_output; /* its outputs are [first_output, first_output + outputs) of a row */
    const char *name;     /* of the layer that gives its outputs: the last one or, with several losses, the
                             one that a concat at the end takes for them; "" if no layer gives exactly
                             these. Borrowed until the predictor is destroyed */
};
#define TR_PREDICT_HEAD_INIT TR_SIZED_INIT(struct tr_predict_head)
/* Loss `index`, from 0; a network with one loss has one head. TR_ENOTFOUND after the last one. */
TR_API tr_status tr_predictor_head(const tr_predictor *predictor, int32_t index,
                                   struct tr_predict_head *head);

/* Predicts one image, uint8 [height][width][channels]; floats [floats], as in the data, which are
   standardized if the job does so, NaN for a missing number; or a text, which is split into words as the
   training text was. `output` [outputs] receives probabilities (classification) or values. TR_EINVAL for
   another kind of input, and for a missing number if the training data define no replacement;
   TR_EUNSUPPORTED for networks with outputs for tokens or pixels. */
TR_API tr_status tr_predictor_image(tr_predictor *predictor, const uint8_t *image, float *output);
TR_API tr_status tr_predictor_floats(tr_predictor *predictor, const float *values, float *output);
TR_API tr_status tr_predictor_text(tr_predictor *predictor, const char *text, float *output);

/* ---- many examples ---- */

/* The outputs of a network for some examples. Pointers are borrowed for the call that passes the
   structure; members may be appended in later versions. */
struct tr_prediction {
    int64_t first, count; /* examples [first, first + count) */
    int64_t rows; /* number of examples; with `of_tokens` of all their tokens, with `pixel_height` of all
                     their pixels */
    const float *output;   /* [rows][outputs] probabilities, or values */
    const int32_t *offset; /* with `of_tokens`: [count + 1], start of the tokens of each example; else NULL */
    const int32_t *tokens; /* likewise: [rows], see tr_predictor_word() */
    const int32_t *labels; /* [rows] true classes, TR_NO_LABEL for a token or pixel without one; NULL:
                              unknown */
    const float *targets;  /* [count][targets] true values; NULL: unknown */
};
/* Called with one batch after the other. Non-zero ends the run. */
typedef int (*tr_prediction_listener)(void *user, const struct tr_prediction *prediction);

/* Examples [first, end) of a source. */
struct tr_example_range {
    int64_t first, end; /* [first, end), counted from 0 */
};
/* Predicts examples of a source, range by range; the answers equal those for single examples bit by bit.
   The listener's `first` is the number in the source. All is borrowed for the call. TR_EMISMATCH if the
   source does not fit the network, TR_EINVAL for a range outside the source, TR_EUNSUPPORTED for a
   language model, TR_EINTERRUPTED if the listener ended it. */
TR_API tr_status tr_predictor_run(tr_predictor *predictor, const tr_source *source,
                                  const struct tr_example_range *ranges, int64_t range_count,
                                  tr_prediction_listener listener, void *user);

/* Examples in memory, of the kind of the network's input, in the forms of tr_predictor_image(), _floats()
   and _text(); the other pointers are NULL. */
struct tr_examples {
    size_t size;              /* sizeof(struct tr_examples) */
    int64_t count;            /* examples */
    const uint8_t *images;    /* [count][height][width][channels] */
    const float *floats;      /* [count][floats] */
    const char *const *texts; /* [count] */
    const int32_t *tokens;    /* one example after the other, each token below the vocabulary of the training
                                 data; also for a language model, whose outputs are the probabilities of the
                                 next token */
    const int64_t
        *offsets; /* [count + 1], ascending from 0: example i has tokens [offsets[i], offsets[i + 1]) */
};
#define TR_EXAMPLES_INIT TR_SIZED_INIT(struct tr_examples)
/* The same for these; numbers of examples count from 0, in messages from 1. Errors of all examples are
   found before any is predicted. */
TR_API tr_status tr_predictor_batch(tr_predictor *predictor, const struct tr_examples *examples,
                                    tr_prediction_listener listener, void *user);

/* The tokens of a text as the network reads it. *count becomes their number; the first `room` get the
   positions of their bytes in the text: [begin[i], end[i]). Tokens that the job cuts off are counted, too,
   and *taken (may be NULL) becomes the number of the others. TR_EINVAL for a network whose input is not
   text. */
TR_API tr_status tr_predictor_tokens(tr_predictor *predictor, const char *text, int64_t room, size_t *begin,
                                     size_t *end, int64_t *count, int64_t *taken);
/* The word, character or byte of a token, for people; "<unknown>" if the network does not know it. *word
   is returned, free with tr_text_free(). */
TR_API tr_status tr_predictor_word(tr_predictor *predictor, int32_t token, char **word);

/* Predicts `count` examples of a source from `first` on; `output` [count][outputs]. TR_EMISMATCH when the
 * source does not fit the network. */
TR_API tr_status tr_predictor_source(tr_predictor *predictor, const tr_source *source, int64_t first,
                                     int64_t count, float *output);

/* Mean loss and accuracy over a whole source; `confusion` (may be NULL) [outputs][outputs] counts true class
 * by predicted class. */
TR_API tr_status tr_predictor_evaluate(tr_predictor *predictor, const tr_source *source, double *loss,
                                       double *accuracy, int64_t *confusion);
/* Further metrics of that evaluation, borrowed until the next tr_predictor_evaluate(); NULL if none were
 * measured.
 */
TR_API const struct tr_metrics *tr_predictor_metrics(const tr_predictor *predictor);

/* ---- text ---- */

/* The text to generate. Initialize with TR_GENERATE_SETTINGS_INIT; strings are borrowed for the call. */
struct tr_generate_settings {
    size_t size; /* sizeof(struct tr_generate_settings) */
    /* Beginning of the text, in UTF-8; at least one token. NULL: a line feed, or, for networks that write
       whole texts (`next` of the data format `text`), nothing, for which "" stands, too. */
    const char *prompt;
    int64_t tokens;     /* to be generated, 1 to 2^30 */
    double temperature; /* >= 0: 1 draws by the network's probabilities, less prefers likelier tokens, 0
                           takes the likeliest token */
    int32_t top_k;      /* draw only from this many of the likeliest; 0: all */
    uint64_t seed;      /* equal networks, settings and seeds give equal texts on any machine */
    int64_t context;    /* the network sees at most so many of the last tokens; 0: as many as its layers
                           distinguish */
    const char *source; /* the other text, of networks that take two (data format `join`); at least one token,
                           and unknown ones are allowed */
};
#ifdef __cplusplus
inline tr_generate_settings tr_generate_settings_init()
{
    tr_generate_settings value = tr_sized<tr_generate_settings>();
    value.tokens = 500;
    value.temperature = 1;
    value.seed = 1;
    return value;
}
#define TR_GENERATE_SETTINGS_INIT tr_generate_settings_init()
#else
#define TR_GENERATE_SETTINGS_INIT                                                                            \
    {                                                                                                        \
        .size = sizeof(struct tr_generate_settings), .tokens = 500, .temperature = 1, .seed = 1              \
    }
#endif

/* Called with each piece of the text after the prompt when it is drawn: `length` bytes, no terminator,
   borrowed for the call. Networks on characters give whole ones, those on bytes may give parts. Non-zero
   ends the text. */
typedef int (*tr_text_listener)(void *user, const char *piece, size_t length);

/* Generates text with a network that was trained to predict the next token (data format `corpus`, or `text`
   with `next`; then the text also ends where the network ends it). The unknown token is never drawn.
   TR_EUNSUPPORTED for other networks, TR_EINVAL for settings out of range, for a source that is missing or
   not wanted, and for a prompt with unknown characters or words, of which it names the first; TR_EINTERRUPTED
   when the listener ended it. */
TR_API tr_status tr_predictor_generate(tr_predictor *predictor, const struct tr_generate_settings *settings,
                                       tr_text_listener listener, void *user);

#define TR_TRANSLATION_TOKENS 1024
/* What a network of two texts makes of the other one, `text`: as tr_predictor_generate() with this source, at
   temperature 0, up to TR_TRANSLATION_TOKENS tokens. *out is returned, free with tr_text_free().
   TR_EUNSUPPORTED for other networks, TR_EINVAL for a text without tokens. */
TR_API tr_status tr_predictor_translate(tr_predictor *predictor, const char *text, char **out);
/* The same for example `index` of a source that the network takes; *truth (may be NULL) becomes what the
   source says that it should be, returned likewise. */
TR_API tr_status tr_predictor_translate_example(tr_predictor *predictor, const tr_source *source,
                                                int64_t index, char **out, char **truth);

/* The job's data set "test", "validation" or "train". Returned, close with tr_source_close(). */
TR_API tr_status tr_predictor_open_data(tr_predictor *predictor, const char *set, tr_source **out);
/* Whether the job has that data set; a part that is split off for validation counts. */
TR_API bool tr_predictor_has_data(const tr_predictor *predictor, const char *set);
/* Examples from memory (trireme/arrays.h) with the classes and the scaling of the training data, and the
   means of these for missing numbers, for tr_predictor_run() and tr_predictor_evaluate(). `source` may be
   closed before. TR_EMISMATCH if it has other features or more classes. Returned, close with
   tr_source_close(). */
TR_API tr_status tr_predictor_view(tr_predictor *predictor, const tr_source *source, tr_source **out);
/* The same for a network that takes several inputs (data format `join`): `inputs` [count] are sources from
   memory under their names in the model file, with equal numbers of examples. TR_EINVAL for more than the
   network takes, TR_ENOTFOUND for a missing one. Only one may have labels. `inputs` and the sources are
   borrowed for the call. Returned likewise. */
TR_API tr_status tr_predictor_view_inputs(tr_predictor *predictor, const struct tr_named_source *inputs,
                                          int count, tr_source **out);
/* A source from a description (see tr_source_open()) with the vocabulary and scaling of the training data. */
TR_API tr_status tr_predictor_open_source(tr_predictor *predictor, const char *description,
                                          const char *directory, tr_source **out);
/* A table, or lines of text, opened by its path: read as the training data are, which must have that form.
   Labels, and columns that the training leaves out, may be missing. Errors as tr_source_open(). Returned
   likewise. */
TR_API tr_status tr_predictor_open_file(tr_predictor *predictor, const char *path, tr_source **out);

#ifdef __cplusplus
}
#endif
#endif
