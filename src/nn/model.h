/* A network as its model file describes it: layers with checked shapes, parameters with offsets in an
 * arena, and a loss.
 *
 * A model holds no numbers; it determines the layout of devices' memory, passes and checkpoints. It is
 * read-only after tr_model_build(), so that any number of threads may use it.
 *
 * Invariants: layer i takes its inputs from layers below i or from the network's input (-1). Parameter
 * offsets ascend, are multiples of TR_MODEL_GRAIN floats, and gaps hold zeros.
 */
#ifndef TR_NN_MODEL_H
#define TR_NN_MODEL_H

#include "base/options/config.h"
#include "base/numbers/hash.h"
#include "nn/layer.h"
#include "nn/loss.h"

#define TR_MODEL_PARTS 4  /* inputs with names */
#define TR_MODEL_GRAIN 16 /* floats: a cache line, so that parameters do not share one */

struct tr_model {
    struct tr_shape input;
    int64_t vocabulary;   /* for token input, else 0 */
    int64_t image_tokens; /* most tokens of an example, where layers turn an image into a sequence; else 0 */
    int entry_layers;     /* number of first layers that are not in the file: they make a sequence, or an
                             image, from the numbers of the input */
    char text_part[TR_NAME_SIZE]; /* of a text with numbers beside it: its name, which stands for the input;
                                     else "" */
    /* Of two texts in an example: the name of the second, which is a layer that comes from outside
       (layer->fed); the input stands for the first. "": there is none. */
    char second_text[TR_NAME_SIZE];
    int part_layers; /* number of first layers that are not in the file: each gives one named input */
    int layer_count;
    struct tr_layer *layers;
    int parameter_count;
    struct tr_parameter *parameters;
    /* What adapters stand beside (nn/adapters.h), apart from all that is learned: places in `offset` are of
       separate memory, see nn/base_numbers.h. Nothing where there are no adapters, or where the model was
       built whole. */
    int base_count;
    struct tr_parameter *base;
    int64_t base_floats;
    struct tr_base_numbers *base_numbers; /* NULL until tr_model_take_base(); owned */
    void (*destroy_base_numbers)(struct tr_base_numbers *numbers);
    char base_hash[TR_SHA256_TEXT]; /* of the base; "" until it is known */
    int64_t arena_floats;           /* size of an arena with the layout of the parameters */
    int64_t parameter_total;        /* floats that are learned: without gaps and running statistics */
    struct tr_shape output;
    struct tr_loss loss;
    bool recompute; /* passes choose which layers are computed again */
};

/* Properties of the input that the data determine; 0 or empty where unknown. */
struct tr_model_input {
    struct tr_shape shape;
    int64_t vocabulary;
    /* Not 0: the numbers of a vector are a sequence of so many tokens, which layers take under the name of
       the input. Not with parts. */
    int64_t steps;
    /* image[0] not 0: they are an image of this height, width and channels, likewise. */
    int64_t image[3];
    /* An example may consist of several images and vectors, which layers take by name: the shape is then
       that of one vector with all numbers, in this order. At most TR_MODEL_PARTS, borrowed. */
    int part_count;
    const struct tr_named_shape *part;
    /* Not NULL and not "": the input is a text, with this name, and the parts, if any, are vectors beside
       it. */
    const char *text_part;
    /* Not NULL and not "": there is another text, with this name and vocabulary (0: unknown). */
    const char *second_text;
    int64_t second_vocabulary;
    bool whole; /* the base of adapters is in the arena, with all other parameters */
};

/* Builds from the `layers:` and `loss:` entries of `root`, which is borrowed for the call. Errors name file,
   line, layer and the shapes. Returned, destroy with tr_model_destroy(). */
tr_status tr_model_build(const tr_config *root, const struct tr_model_input *input, struct tr_model **out);
/* The same with the caller's layers, entries of struct tr_layer_class, which are borrowed as long as the
   model lives. */
tr_status tr_model_build_of(const struct tr_registry *layers, const tr_config *root,
                            const struct tr_model_input *input, struct tr_model **out);
/* Checks these entries as far as possible without shapes, before there are data; of `input` only the names
   of parts are used. Errors as above. */
tr_status tr_model_check(const tr_config *root, const struct tr_model_input *input);
void tr_model_destroy(struct tr_model **model);

/* The layer that stores the output of `layer` (aliases such as flatten store none); -1 is the network's
 * input.
 */
int tr_model_source(const struct tr_model *model, int layer);

/* Makes training passes compute some layers again in backward, instead of keeping their data: the named
   layers; or, with the single name "true", those that save most memory; "false": none. Results do not
   change. TR_EINVAL for a name that no layer has. Call it before passes are made. */
tr_status tr_model_recompute(struct tr_model *model, const struct tr_string_list *names);
/* The longest example whose tokens all layers can distinguish or are meant for; 0: any. */
int64_t tr_model_longest(const struct tr_model *model);

/* The floats that a layer learns, without running statistics. */
int64_t tr_model_learned(const struct tr_model *model, int layer);

/* Whether a parameter is the matrix of a hidden layer, *in x *out: weights of at least two dimensions, the
   last of which is *out, that map vectors to vectors. Tables (embeddings, positions) are not, nor are
   weights of an output layer, after which there are no further such weights. */
bool tr_model_hidden_matrix(const struct tr_model *model, int parameter, int64_t *in, int64_t *out);
/* Notes which layers lead to further such weights, once all layers are read. */
void tr_model_note_hidden(struct tr_model *model);

/* The number of consumers of a source's output, counted through aliases. */
int tr_model_consumers(const struct tr_model *model, int source);

/* The next floats of an arena, from `from` on (a multiple of 16), that belong to no frozen parameter: all
   of them where none is frozen. Returns whether there are any. */
bool tr_model_trained_range(const struct tr_model *model, int64_t from, int64_t *begin, int64_t *end);

/* Fills `values` (arena_floats floats) with the initial parameters for a seed; elements depend on nothing
   else. Gaps are +0. Only part `share` of `shares` is filled, so that threads can divide the work. */
void tr_model_initialize(const struct tr_model *model, uint64_t seed, int share, int shares, float *values);
/* The same for the floats [begin, end) of the arena; others do not change. */
void tr_model_initialize_range(const struct tr_model *model, uint64_t seed, int64_t begin, int64_t end,
                               int share, int shares, float *values);

/* The parameter that a slot of a layer stands for. */
static inline const struct tr_parameter *tr_model_slot(const struct tr_model *model, int slot)
{
    return slot < 0 ? &model->base[-1 - slot] : &model->parameters[slot];
}
/* Whether a layer's own parameters belong to the frozen base. */
static inline bool tr_layer_is_base(const struct tr_layer *layer)
{
    return layer->slot_count > 0 && layer->slot[0] < 0;
}

/* SHA-256 over the parameters in order: for each, its name and shape as text "name 5x5x1x32\n", then its
   float32 values in little-endian order. `values` is an arena. Where there is a frozen base, "base " and
   its hash, computed in the same way, come first. Writes 64 hexadecimal digits and a NUL. */
tr_status tr_model_hash(const struct tr_model *model, const float *values, char hex[TR_SHA256_TEXT]);
/* Adds the values of a parameter to a hash with tr_sha256_add(), in any number of pieces. */
typedef tr_status (*tr_parameter_feed)(void *user, const struct tr_parameter *parameter, tr_sha256 *hash);
/* The same over values that `feed` gives, called for each parameter in order; its failure is returned. */
tr_status tr_model_hash_fed(const struct tr_model *model, tr_parameter_feed feed, void *user,
                            char hex[TR_SHA256_TEXT]);

#endif
