/* The parts of `trireme predict`: where examples come from. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "cli/program/command.h"
#include "cli/data/cache.h"
#include "cli/use/input_lines.h"
#include "cli/use/predictions.h"

#include "base/fail.h"

struct cli_predict_options {
    struct cli_common common;
    char *checkpoint, *set_name, *data, *idx, *index, *output, *masks;
    struct tr_string_list image, text, values;
    int32_t fit, top; /* fit: enum tr_image_fit */
    bool invert, show, average, best, json;
    struct cli_device device;
    struct cli_data_cache cache;
};

/* A predictor at work. */
struct cli_predict {
    const struct cli_predict_options *options;
    tr_predictor *predictor;
    struct tr_predict_info info;
    struct cli_predictions predictions;
};

/* ---- predict.c ---- */

/* Begins the output of predictions. `labels`: examples have true classes or values; `named`: they have
   names other than their number in a data set; `expected`: their count, or -1. */
tr_status cli_predict_begin(struct cli_predict *work, enum tr_label_kind labels, bool named,
                            int64_t expected);

/* Adds an example of a network that makes one text of another, and shows it. `written` and `truth`, which may
   be NULL, are texts of the library, freed with tr_text_free() whatever the status. *unread: the reader of
   the answers has gone. */
tr_status cli_predict_add_text(struct cli_predict *work, int64_t example, const char *input, char *written,
                               char *truth, bool *unread);

/* Takes the predictions of a call, an example at a time. */
struct cli_predict_taker {
    struct cli_predict *predict;
    tr_status (*add)(void *user, const struct tr_prediction *prediction, int64_t i);
    void *user;
    struct tr_failure failure; /* of add(), which ended the call */
};
/* The function that a predictor calls; `taker` is a struct cli_predict_taker. */
int cli_predict_take(void *taker, const struct tr_prediction *prediction);
/* The status of such a call, which ended with `status`: TR_OK where the reader of the answers has gone, and
 *unread then. */
tr_status cli_predict_taken(const struct cli_predict_taker *taker, tr_status status, bool *unread);

/* ---- predict_set.c: data sets ---- */

/* A set of the job, or what `data` describes; `name` is for people. */
tr_status cli_predict_set(struct cli_predict *work, const char *set_name, const char *data, const char *name);
tr_status cli_predict_idx(struct cli_predict *work);

/* ---- predict_given.c: images, numbers and texts of the command line and of standard input ---- */

/* Examples of one kind. */
struct cli_given {
    enum tr_feature_kind kind;
    const char *name; /* "--values", "standard input": for messages */
    bool may_name;    /* the first line may be names of columns, not an example */
    bool pictures;    /* numbers are those of image files */
};
/* Examples given by options. */
tr_status cli_predict_given(struct cli_predict *work, const struct cli_given *given,
                            const struct tr_string_list *list);
/* Examples from standard input, one per line. */
tr_status cli_predict_lines(struct cli_predict *work);

/* ---- predict_images.c ---- */

/* Reads an image file in the format of the network's input, into pixels [height][width][channels]. */
tr_status cli_predict_read_image(const struct cli_predict *work, const char *path, uint8_t *pixels);
/* The same for a network that takes images of numbers: values of 16 bits; those of 8 bits are times 257. */
tr_status cli_predict_read_numbers(const struct cli_predict *work, const char *path, float *values);
tr_status cli_predict_show_image(const struct cli_predict *work, const uint8_t *pixels);

#endif
