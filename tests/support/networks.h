/* Small networks that together have every kind of layer and every kind of connection, and one batch to run
 * them on, for tests of src/nn.
 *
 * All numbers follow from fixed seeds. A function that cannot do its work ends the test.
 */
#ifndef TESTS_SUPPORT_NETWORKS_H
#define TESTS_SUPPORT_NETWORKS_H

#include "nn/pass/pass.h"

struct network {
    const char *name;
    const char *input;  /* "28x28x1", "12", "tokens", "tokens x 8"; "two tokens": two texts, called first and
                           second, of the same vocabulary */
    int64_t vocabulary; /* 0 without tokens */
    const char *text;   /* `layers:` and `loss:` of a model file */
};

extern const struct network networks[];
extern const int network_count;
/* Fails the test unless every kind of layer is in one of them. */
void networks_have_every_layer(void);

/* For an exporter to `format` that refused a network by TR_EUNSUPPORTED. Fails the test unless the message
   names a layer and an operation of TR_DEVICE_OPS outside of `known` (ends with NULL), which the format
   has always supported. So a new operation may be refused, and no old one may be lost. */
void refusal_of_a_new_operation(const char *format, const char *const *known);

/* For an exporter that refused a network that scores every token: fails the test unless the message names
   this reason. */
void refusal_of_tokens(void);

/* The shape for a text in the format of tr_shape_text(); "tokens" is a sequence of numbers of words. */
struct tr_shape network_shape(const char *text);

/* Builds a model from text that messages call "test.yaml", with the base of adapters in the arena. As
   tr_model_build(). */
tr_status network_build(const char *text, const char *input, int64_t vocabulary, struct tr_model **out);

/* A network on a device with parameters, biases included, that are not round numbers, and a batch. */
struct trial {
    tr_device *device;
    struct tr_model *model;
    float *parameters;               /* device, an arena */
    struct tr_step_scalars *scalars; /* device */
    int64_t stride;                  /* floats of an arena and the sums after it */
    int32_t microbatches;
    int64_t *example_row,
        *token_row; /* [microbatches + 1] of the whole batch; token_row [..] = 0 without tokens */
    /* The batch, on the host. */
    int64_t examples, tokens;
    int64_t labels, labelled; /* rows that have a loss: examples, or tokens, of which some have no label */
    int64_t compared;         /* these, or where pixels have labels the pixels, of which some have none */
    float *input, *target;
    int32_t *token, *offset, *label;
    int32_t *second, *second_offset; /* the second text; its vocabulary is that of the first */
    int64_t second_tokens, *second_row;
};

/* The split is even if the sizes divide. Empty microbatches occur if there are more of them than examples. */
void trial_make(struct trial *trial, const struct network *network, const char *device, int64_t examples,
                int32_t microbatches);
void trial_release(struct trial *trial);

/* Room for any part of the batch. */
struct tr_pass_limits trial_limits(const struct trial *trial, bool training);
/* Device memory for `count` arenas with their sums, filled with zeros; free with tr_device_free(). */
float *trial_arenas(const struct trial *trial, int count);

/* Feeds microbatches [first, end) to the pass and describes them by the fewest tree nodes; the returned
   batch is valid until the next call. */
const struct tr_pass_batch *trial_feed(struct trial *trial, tr_pass *pass, int32_t first, int32_t end);
/* Forward, loss and, in training, backward; node j's gradients go to gradients + j * stride. */
void trial_run(struct trial *trial, tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
               float *gradients);

/* The network's output for the whole batch, [labels][outputs], on the host. Free with tr_free(). */
float *trial_output(struct trial *trial);

/* Fails the test with the message of the library unless status is TR_OK. */
void must(tr_status status);

#endif
