/* The output of predictions, one example after the other: lines for people or JSON on standard output, or
 * a file whose ending chooses the format. A file is written under another name and renamed once it is
 * complete.
 *
 * To add a format: a structure cli_prediction_format in a file predictions_NAME.c, and a line in
 * predictions.c.
 */
#ifndef CLI_PREDICTIONS_H
#define CLI_PREDICTIONS_H

#include "cli/terminal/screen.h"

#include "base/files/file.h"
#include "trireme/predict.h"

/* One example, and the network's answer. */
struct cli_prediction {
    int64_t example;       /* its number, from 0 */
    const char *input;     /* a text, the name of a file, or for instance "test[3]" */
    int64_t rows;          /* 1, or tokens, or pixels */
    const float *output;   /* [rows][outputs] */
    const int32_t *labels; /* [rows] true classes, or NULL */
    const float *targets;  /* [targets] true values, or NULL */
    const char *const
        *word; /* [words] of a text whose tokens are answered, of which the first `rows` are; or NULL */
    int64_t words;
    const char *written, *truth; /* of a network that makes one text of another: its text, and the true one or
                                    NULL; there is nothing else then */
};

/* The masks of named inputs by their paths: a hash table, which is at most half full. */
struct cli_masks_written {
    char **path; /* [room], a power of two; NULL: free */
    int64_t count, room;
};

struct cli_prediction_format;
#define CLI_PREDICTION_HEADS 64

struct cli_predictions {
    const struct tr_predict_info *info; /* borrowed */
    struct tr_predict_head head[CLI_PREDICTION_HEADS];
    int32_t top;         /* number of classes to print, the likeliest first */
    bool labels, values; /* examples have true classes, or values */
    bool named;          /* they have an input other than their number in a data set */
    int64_t expected;    /* number of examples, -1: unknown */
    const struct cli_prediction_format *format;
    const char *path;  /* of the file; NULL: standard output */
    const char *masks; /* folder for a PNG of the classes of each example's pixels; NULL: none */
    struct cli_masks_written written; /* owned */
    struct tr_file_replacement file;
    bool open;              /* the file is */
    bool keep;              /* set by a format: all of the text is kept until the end */
    struct tr_text text;    /* not yet written */
    int64_t examples, rows; /* up to here */
    double start;
    struct cli_screen screen;
};

struct cli_prediction_format {
    const char *ending; /* ".csv"; NULL: for standard output */
    /* Whether it can hold the network's answers. NULL: it holds all. */
    tr_status (*check)(const struct cli_predictions *predictions);
    /* Each adds to predictions->text; `end` gets the whole text if it was to be kept. NULL: nothing to
       add. */
    tr_status (*begin)(struct cli_predictions *predictions);
    tr_status (*add)(struct cli_predictions *predictions, const struct cli_prediction *prediction);
    tr_status (*end)(struct cli_predictions *predictions);
};
/* predictions_masks.c: makes the folder, and adds the mask of an example. TR_EINVAL where another input of
   the same name has its mask there. */
tr_status cli_masks_begin(const struct cli_predictions *predictions);
tr_status cli_masks_add(struct cli_predictions *predictions, const struct cli_prediction *prediction);
void cli_masks_release(struct cli_predictions *predictions);

extern const struct cli_prediction_format cli_predictions_csv, cli_predictions_npy, cli_predictions_jsonl,
    cli_predictions_conll, cli_predictions_text, cli_predictions_json;

/* The format for a file of this name. TR_EINVAL with the known ones. */
tr_status cli_predictions_format(const char *path, const struct cli_prediction_format **out);

/* Set info, top, labels, values, named, expected, format and path, the rest to 0; all is borrowed until
   the end. A file is opened at once. End it with cli_predictions_end(), or, also after a failure,
   _abandon(). */
tr_status cli_predictions_begin(struct cli_predictions *predictions, const tr_predictor *predictor);
tr_status cli_predictions_add(struct cli_predictions *predictions, const struct cli_prediction *prediction);
/* Writes the added rows to standard output and redraws the progress line. Returns false if the reader has
   gone. */
bool cli_predictions_show(struct cli_predictions *predictions);
tr_status cli_predictions_end(struct cli_predictions *predictions);
void cli_predictions_abandon(struct cli_predictions *predictions);

/* ---- for the formats ---- */

/* The likeliest of `classes`; the first one of equals. A NaN is never the likeliest. */
int32_t cli_predictions_best(const float *output, int32_t classes);
/* Whether each pixel has outputs. For those of an example, [pixels][outputs], count[outputs] becomes the
   number of pixels of each class, and the fraction of right ones among those with a label is set, NaN
   without any. */
static inline bool cli_predictions_are_of_pixels(const struct cli_predictions *predictions)
{
    return predictions->info->pixel_height > 0;
}
static inline int64_t cli_prediction_pixels(const struct tr_predict_info *info)
{
    return info->pixel_height > 0 ? (int64_t)info->pixel_height * info->pixel_width : 1;
}
void cli_predictions_count(const struct cli_predictions *predictions, const struct cli_prediction *prediction,
                           int64_t *count, double *right);
/* The name of a class, or its number written to `buffer`. */
const char *cli_predictions_class(const struct cli_predictions *predictions, int32_t class, char buffer[16]);

#endif
