/* Losses: how the network's output is compared with the targets, per example or per token of a sequence. */
#ifndef TR_NN_LOSS_H
#define TR_NN_LOSS_H

#include "base/options/registry.h"
#include "base/text/text.h"
#include "device/device.h"
#include "tensor/shape.h"

struct tr_loss {
    int32_t kind; /* place in tr_loss_classes */
    float label_smoothing;
    struct tr_float_list class_weights; /* empty: all have weight 1 */
    float delta;                        /* of huber */
    int32_t per;                        /* enum tr_loss_per */
    int64_t pixels; /* with TR_LOSS_PER_PIXEL the pixels of an example in the network's output; else 0 */
    float gamma;    /* of focal */
    struct tr_float_list quantiles; /* of quantile */
    bool logs;                      /* of poisson: outputs are logarithms of rates */
    float epsilon;                  /* of poisson, added to rates */
    float margin;                   /* of contrastive and triplet */
    bool squared;                   /* of triplet: distances are squared */
    bool mixes;                     /* in training, targets of classes are rows of probabilities */
    /* For one among several losses: its number of the network's outputs, and its weight. */
    int64_t outputs;
    float weight;
    /* For a job with a teacher: the weight of its loss (0: there is none), and the temperature that
       divides scores. Not options of the loss. */
    float taught, temperature;
    int32_t head_count;   /* of `heads` */
    struct tr_loss *head; /* [head_count], owned; their outputs are consecutive */
};
#define TR_LOSS_HEADS TR_JOIN_PARTS /* the most heads */

/* The part of an example that has a label. The loss of an example is the mean over its labelled pixels. */
enum tr_loss_per { TR_LOSS_PER_EXAMPLE, TR_LOSS_PER_PIXEL };

/* The number of labels of an example, and of outputs that each is compared with. */
static inline int64_t tr_loss_labels(const struct tr_loss *loss)
{
    return loss->pixels > 0 ? loss->pixels : 1;
}
static inline int64_t tr_loss_width(const struct tr_loss *loss, int64_t outputs)
{
    return outputs / tr_loss_labels(loss);
}

struct tr_loss_call {
    tr_device *device;
    int64_t rows;
    bool training;         /* with the smoothing and weights of training; only in training */
    float scale;           /* 1 / rows with a label in the global batch */
    const float *output;   /* [rows][width] */
    const int32_t *label;  /* [rows], of pixels [rows][pixels]; classification */
    const float *target;   /* [rows][width]; for regression, and in training where the loss mixes */
    const float *weight;   /* from tr_loss_weights(); NULL: none */
    const float *teacher;  /* [rows][width] scores of the teacher, in training and where loss->taught > 0 */
    void *scratch;         /* tr_loss_scratch() bytes */
    float *loss, *correct; /* [rows]; correct is +0 for regression */
    float *gradient;       /* [rows][width], or NULL */
};

/* A kind of loss. To add one: a file in nn/losses, a line in nn/losses/table.h. */
struct tr_loss_class {
    TR_ENTRY;        /* options are those of all losses, below */
    bool classifies; /* targets are classes (label, correct), otherwise values (target) */
    bool soft;       /* of the latter: the values of an example are the probabilities of its classes */
    bool answers;    /* answers are right or wrong: `correct` is the fraction of right ones, otherwise 0 */
    bool entropy;    /* exp of its mean is a perplexity */
    bool counts;     /* values are counts: 0 or more */
    bool of_tokens;  /* a row may be a token, and its label may be missing (negative) */
    bool smooths;    /* takes label_smoothing */
    bool distils;    /* a teacher may contribute */
    bool mixes;      /* can compare with mixtures of two labels */
    int32_t embeddings; /* the output is this number of vectors, whose distances are judged; 0: it is none */
    /* Checks the output's shape. NULL: any shape is valid. */
    tr_status (*check)(const struct tr_loss *loss, const struct tr_shape *output);
    /* As tr_loss_run(). */
    tr_status (*run)(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call);
};

/* All kinds, the default first; its entries are of struct tr_loss_class. */
extern const struct tr_registry tr_loss_classes;

static inline const struct tr_loss_class *tr_loss_class_of(const struct tr_loss *loss)
{
    return (const struct tr_loss_class *)tr_loss_classes.entries[loss->kind];
}

/* Whether outputs are scores of mutually exclusive classes, whatever the targets are. */
static inline bool tr_loss_scores_classes(const struct tr_loss *loss)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    return (class->classifies && class->embeddings == 0) || class->soft;
}

extern const struct tr_option tr_loss_options[];
extern const int32_t tr_loss_option_count;

/* Reads the `loss:` entry of a model file (NULL: softmax cross-entropy; a list: heads). Release with
   tr_loss_release(), also after a failure. */
tr_status tr_loss_read(const tr_config *node, struct tr_loss *loss);
void tr_loss_release(struct tr_loss *loss);
/* Adds its settings as JSON: an object, or a list of them. TR_ENOMEM. */
tr_status tr_loss_dump(const struct tr_loss *loss, struct tr_text *text);
/* Whether answers are right or wrong. */
bool tr_loss_answers(const struct tr_loss *loss);
/* Whether outputs are vectors whose distances are judged, and no answers themselves. */
static inline bool tr_loss_embeds(const struct tr_loss *loss)
{
    return tr_loss_class_of(loss)->embeddings > 0;
}
/* Whether people get probabilities of the outputs. */
static inline bool tr_loss_has_probabilities(const struct tr_loss *loss)
{
    return tr_loss_answers(loss) && !tr_loss_embeds(loss);
}
/* The meaning of outputs, and the form in which people get them: unchanged values; probabilities of
   mutually exclusive classes; for each question the probability of yes. */
enum tr_answer_kind { TR_ANSWER_VALUES, TR_ANSWER_CLASSES, TR_ANSWER_YES };
struct tr_answer_part {
    enum tr_answer_kind kind;
    int64_t outputs;
    bool logs; /* outputs are logarithms of the values */
};
/* The parts of so many outputs in their order, one for each loss; returns their number. They are
   probabilities where tr_loss_has_probabilities(). */
int32_t tr_loss_parts(const struct tr_loss *loss, int64_t outputs, struct tr_answer_part part[TR_LOSS_HEADS]);
/* Of which output k of one loss is compared with target k / tr_loss_each(). */
static inline int64_t tr_loss_each(const struct tr_loss *loss)
{
    return loss->quantiles.count > 0 ? loss->quantiles.count : 1;
}
/* Whether outputs are logarithms of the answers. */
static inline bool tr_loss_is_of_logs(const struct tr_loss *loss)
{
    return tr_loss_class_of(loss)->counts && loss->logs;
}
/* How many target values there are for so many outputs of a network; 0 where the target is a class. */
int64_t tr_loss_targets(const struct tr_loss *loss, int64_t outputs);
/* The same for one of several losses, where a class counts as a value, too. */
static inline int64_t tr_loss_head_targets(const struct tr_loss *head)
{
    return tr_loss_class_of(head)->classifies ? 1 : head->outputs / tr_loss_each(head);
}
/* Bytes of device memory that tr_loss_run() needs for work. */
int64_t tr_loss_scratch(const struct tr_loss *loss, int64_t outputs, int64_t rows);
/* Sets members that depend on the output's shape, and checks the loss against it. `input` is that of the
   network. */
tr_status tr_loss_settle(struct tr_loss *loss, const struct tr_shape *input, const struct tr_shape *output);
/* Checks the loss against the output's shape. */
tr_status tr_loss_check(const struct tr_loss *loss, const struct tr_shape *output);

/* Writes a number for each of `width` outputs (tr_loss_width()) to weight[width]: the weights of the
   classes, or the quantiles. Returns false where all are 1 because none are given. */
bool tr_loss_weights(const struct tr_loss *loss, int64_t width, float *weight);

/* Enqueues the loss. All pointers are device memory, borrowed until wait. */
tr_status tr_loss_run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call);

#endif
