/* A job: the contents of a model file, read, checked and combined with its data.
 *
 * A checkpoint keeps the job as resolved text (tr_job_text()): overrides applied; directory, shape of the
 * input, vocabulary and classes filled in, so that the network can be built again without the data. Reading
 * that text gives the same job.
 */
#ifndef TR_JOB_JOB_H
#define TR_JOB_JOB_H

#include "data/order/order.h"
#include "data/tables/scaling.h"
#include "data/source.h"
#include "nn/adapters.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "checkpoint/checkpoint.h"
#include "job/file/options.h"

enum tr_data_set { TR_SET_TRAIN, TR_SET_VALIDATION, TR_SET_TEST, TR_SETS };

/* "train", "validation", "test". */
extern const char *const tr_data_set_names[TR_SETS];
/* TR_ENOTFOUND for any other name. */
tr_status tr_data_set_find(const char *name, enum tr_data_set *set);

struct tr_job {
    tr_config *root;
    struct tr_file_options file;
    struct tr_data_options data;
    struct tr_input_options input;
    struct tr_train_options train; /* with microbatches and steps filled in */
    struct tr_optimizer optimizer;
    struct tr_model *model;
    enum tr_feature_kind features;
    struct tr_shape stored;       /* of an example in its source: an image before cropping, floats */
    struct tr_source_parts parts; /* of joined sources, as stored; else none. `features` are floats then */
    tr_source *source[TR_SETS];   /* opened by tr_job_open_set(); NULL until then */
    tr_sampler *sampler;          /* of the training examples, where they are drawn by class; else, and
                                     until then, NULL */
    tr_store *store;              /* that sources are opened through, or NULL; borrowed */
    bool outline;                 /* sources are opened only for their sizes and labels */
    char *state;                  /* what sources share (vocabulary, scaling), or NULL */
    bool whole;                   /* as in struct tr_job_settings */
    struct tr_adapters adapters;  /* `rank` 0: there are none */
    struct tr_distill_options distill; /* see job/teacher.h */
    char digest[TR_SHA256_TEXT];       /* SHA-256 over all settings that determine the weights */
    struct {
        int64_t steps, epochs; /* at most one is above 0 */
    } meant;                   /* how long the file says to train, where settings differ; else 0 */
};

struct tr_job_settings {
    const char *const *set; /* [set_count] overrides, borrowed for the call */
    int set_count;
    bool has_seed;
    uint64_t seed;
    int64_t steps;   /* 0: as in the file */
    int64_t epochs;  /* likewise; at most one of the two is given */
    tr_store *store; /* that data are opened through; NULL: from their files. Borrowed until the job is
                        destroyed */
    const struct tr_named_source *given; /* [given_count] sources that the store was given */
    int given_count;
    const char
        *strategy; /* replaces the file's: "pipeline", "parameter-server,mode=async"; NULL: the file's */
    /* The first option of the strategy of that name (NULL where there is none), for overrides of an
       abbreviated one; NULL: such overrides are refused. */
    const char *(*first_of_strategy)(const char *name);
    bool outline;        /* data are opened only for their sizes and labels, where that is faster */
    const char *base;    /* run or checkpoint that replaces the file's adapters.base; NULL: the file's */
    const char *teacher; /* likewise of distill.teacher, see job/teacher.h */
    bool whole;          /* the base of adapters is built into the arena, and not opened; see job/base.h */
};

/* Checks a model file as far as possible without data, with the overrides applied; `path` is that of the
   file. Takes `root`, also on failure. Errors name file, line and key. */
tr_status tr_job_check(tr_config *root, const char *path, const struct tr_job_settings *settings);

/* Reads a model file, applies overrides and builds the network. Opens the training data only where they
   determine the input's shape or the number of steps. Errors name file, line and key. Returned, destroy
   with tr_job_destroy(). */
tr_status tr_job_open(const char *path, const struct tr_job_settings *settings, struct tr_job **out);
/* A model file in memory. */
struct tr_job_text {
    const char *text; /* [length] */
    size_t length;
    const char *name;      /* for messages, and the job's name where the text has none */
    const char *directory; /* base of relative paths in it; NULL: the current directory */
};
/* Its tree, with name and directory filled in. TR_EINVAL with name, line and column, TR_ENOMEM. Returned,
   free with tr_config_destroy(). */
tr_status tr_job_parse(const struct tr_job_text *model, tr_config **root);
/* As tr_job_open(). */
tr_status tr_job_open_text(const struct tr_job_text *model, const struct tr_job_settings *settings,
                           struct tr_job **out);
/* The same from a checkpoint's text, which contains everything that the data would add. */
tr_status tr_job_restore(const tr_checkpoint *checkpoint, const struct tr_job_settings *settings,
                         struct tr_job **out);
/* The job that tr_job_restore() would make from a checkpoint of `job`. */
tr_status tr_job_again(const struct tr_job *job, const struct tr_job_settings *settings, struct tr_job **out);
/* The name under which a checkpoint keeps a job's resolved text. */
#define TR_JOB_FILE "model.yaml"
/* Accepts NULL, nulls the handle. Closes the sources. */
void tr_job_destroy(struct tr_job **job);

/* Needs the training data to be open. */
int64_t tr_job_steps_per_epoch(const struct tr_job *job);

/* Opens a data set, once, and checks that it fits the network. TR_ENOTFOUND if the file names none. */
tr_status tr_job_open_set(struct tr_job *job, enum tr_data_set set);
/* The same for a source that tr_job_open_source() has opened; it is taken, also after a failure. */
tr_status tr_job_take_source(struct tr_job *job, enum tr_data_set set, tr_source *source);
/* Opens a data set as the caller's source, unchecked. `state` is the state shared with the training data;
   NULL: as far as the job has it. Does not change the job, so that another thread may call it. Returned,
   close with tr_source_close(). */
tr_status tr_job_open_source(const struct tr_job *job, enum tr_data_set set, const char *state,
                             tr_source **out);
/* The mean number of labels of a training example where losses are of tokens, else NaN. The set must be open.
 */
double tr_job_tokens_per_example(const struct tr_job *job);
/* The order of the training examples, whose set must be open. */
tr_status tr_job_order(const struct tr_job *job, struct tr_order *order);
/* Whether the file names the data set. */
bool tr_job_has_set(const struct tr_job *job, enum tr_data_set set);
/* Checks that a source's features and labels fit the network; `name` names it in messages. If not
 * `labelled`, labels may be missing.
 */
tr_status tr_job_check_source(const struct tr_job *job, const tr_source *source, const char *name,
                              bool labelled);

/* How the job's numbers enter the network: the scaling of the training data, empty where there is none or
   it changes nothing. Returned, free with tr_scaling_release(). Errors as tr_scaling_read(); TR_EMISMATCH
   where it does not fit the network's input. */
tr_status tr_job_scaling(const struct tr_job *job, struct tr_scaling *out);

/* The resolved text. Returned, free with tr_free(). */
tr_status tr_job_text(const struct tr_job *job, char **text);

/* Whether outputs are scores of classes. */
static inline bool tr_job_is_classification(const struct tr_job *job)
{
    return tr_loss_scores_classes(&job->model->loss);
}

/* Whether targets are numbers of classes; else they are values, which may be the probabilities of classes. */
static inline bool tr_job_takes_classes(const struct tr_job *job)
{
    return tr_loss_class_of(&job->model->loss)->classifies;
}

/* Whether answers are right or wrong, so that there is an accuracy. */
static inline bool tr_job_has_accuracy(const struct tr_job *job)
{
    return tr_loss_answers(&job->model->loss);
}

/* Whether losses are of tokens, so that exp of their mean is a perplexity. */
static inline bool tr_job_is_of_tokens(const struct tr_job *job)
{
    return job->model->output.sequence;
}
/* The pixels of an example where each has a label, else 0; and the outputs of a pixel, a token or an
   example. */
static inline int64_t tr_job_pixels(const struct tr_job *job)
{
    return job->model->loss.pixels;
}
static inline int64_t tr_job_width(const struct tr_job *job)
{
    return tr_loss_width(&job->model->loss, tr_shape_count(&job->model->output));
}
/* exp(loss) where losses are of tokens, else NaN. */
double tr_job_perplexity(const struct tr_job *job, double loss);

#endif
