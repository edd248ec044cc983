/* Text from a network that scores the next token: one token after another, each drawn from the network's
 * scores after the earlier ones.
 *
 * Token i (from 0) after the prompt is drawn with a number that follows from the seed and i alone. Of the
 * scores x the greatest m (as in pooling), w[k] = exp((x[k] - m) / temperature) in float32 for those of
 * the `top_k` greatest scores (of equal ones the smaller token; 0: all), else 0, and 0 for the unknown
 * token; with c the sum chain of the w in double, the token is the first whose part of c is above u * c, u
 * the number in [0, 1). At temperature 0 it is the token of the greatest score. Equal networks give equal
 * texts.
 */
#ifndef TR_TRAIN_GENERATOR_H
#define TR_TRAIN_GENERATOR_H

#include "job/job.h"

typedef struct tr_generator tr_generator;

struct tr_decoding {
    float temperature; /* >= 0 */
    int32_t top_k;     /* 0: all */
    bool has_unknown;  /* token 0 is the unknown token and is never drawn */
    uint64_t seed;
};

/* `context`: the network sees at most so many of the last tokens; 0: all. Everything is borrowed for the
   life of the generator. TR_EUNSUPPORTED, with the layer, for a network that does not score the next
   token. Returned, destroy with tr_generator_destroy(). */
tr_status tr_generator_create(tr_device *device, const struct tr_job *job, const float *parameters,
                              int64_t context, tr_generator **out);
/* The most tokens that the network sees; 0: any number. */
int64_t tr_generator_context(const tr_generator *generator);
/* Accepts NULL, nulls the handle. */
void tr_generator_destroy(tr_generator **generator);

/* Sets the second text of a network that takes two, before it begins: at least one token, each below its
   vocabulary. */
tr_status tr_generator_source(tr_generator *generator, const int32_t *tokens, int64_t count);
/* Begins anew with a prompt of at least one token, each below the vocabulary. */
tr_status tr_generator_begin(tr_generator *generator, const int32_t *tokens, int64_t count);
/* Draws the next token and takes it as the last. */
tr_status tr_generator_next(tr_generator *generator, const struct tr_decoding *sampling, int32_t *token);

/* Draws number `index` of a text from scores [count], which are overwritten. Pure. */
int32_t tr_sample(const struct tr_decoding *sampling, uint64_t index, float *scores, int64_t count);

#endif
