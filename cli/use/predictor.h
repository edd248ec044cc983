/* The common part of commands that use a trained network. */
#ifndef CLI_PREDICTOR_H
#define CLI_PREDICTOR_H

#include "cli/program/command.h"
#include "cli/data/cache.h"

#include "trireme/predict.h"

/* The checkpoint as a positional argument, and the choice of moving averages. */
#define CLI_OPTION_CHECKPOINT(object)                                                                        \
    {                                                                                                        \
        .key = "checkpoint", .type = TR_OPTION_STRING, .offset = offsetof(object, checkpoint),               \
        .fallback = NULL, .help = "a checkpoint, or a run's directory: its newest good checkpoint",          \
        .flags = TR_OPTION_POSITIONAL                                                                        \
    }
#define CLI_OPTION_BEST(object)                                                                              \
    {                                                                                                        \
        .key = "best", .type = TR_OPTION_BOOL, .offset = offsetof(object, best), .fallback = "false",        \
        .help = "of a run's directory, use the checkpoint of the best evaluation, which patience and "       \
                "until_accuracy keep"                                                                        \
    }
#define CLI_OPTION_AVERAGE(object)                                                                           \
    {                                                                                                        \
        .key = "average", .type = TR_OPTION_BOOL, .offset = offsetof(object, average), .fallback = "true",   \
        .help = "use the moving averages of the parameters, if the job keeps them"                           \
    }
/* The data: a set of the job, or a description. */
#define CLI_OPTION_SET_NAME(object, otherwise)                                                               \
    {                                                                                                        \
        .key = "set_name", .type = TR_OPTION_STRING, .offset = offsetof(object, set_name),                   \
        .fallback = otherwise, .help = "data set of the job: test, validation or train",                     \
        .value_name = "NAME"                                                                                 \
    }
#define CLI_OPTION_DATA(object)                                                                              \
    {                                                                                                        \
        .key = "data", .type = TR_OPTION_STRING, .offset = offsetof(object, data), .fallback = "",           \
        .help = "other data: a table or text file, read as the training data were, or a description as in "  \
                "a model file: '{idx: {images: FILE, labels: FILE}}'",                                       \
        .letter = 'd', .value_name = "TEXT"                                                                  \
    }

/* Returned, destroy with tr_predictor_destroy(). */
tr_status cli_predictor_create(const char *checkpoint, bool best, const struct cli_device *device,
                               const struct cli_data_cache *cache, bool average, tr_predictor **out);
/* The job's data set of that name, or the data of the description `data` if it is not NULL. Returned,
   close with tr_source_close(). */
tr_status cli_predictor_open(tr_predictor *predictor, const char *set_name, const char *data,
                             tr_source **out);
/* The name of a class, or its number written to `buffer` (16 bytes). */
const char *cli_class_name(const struct tr_predict_info *info, int32_t index, char buffer[16]);

#endif
