/* The functions that the C export puts into its files: one text in export/c/ for each.
 *
 * In a text, @name@ stands for the prefix of the file's identifiers, @NAME@ for the same in capitals and
 * @file@ for the name of the file.
 */
#ifndef TR_EXPORT_C_PARTS_H
#define TR_EXPORT_C_PARTS_H

#include "base/text/text.h"

/* In the order in which a file has them: parts come after the parts that they use. */
#define TR_C_PARTS(X)                                                                                        \
    X(zero)                                                                                                  \
    X(copy)                                                                                                  \
    X(exp_split)                                                                                             \
    X(exp)                                                                                                   \
    X(exp_minus_1)                                                                                           \
    X(tanh)                                                                                                  \
    X(sigmoid)                                                                                               \
    X(erf)                                                                                                   \
    X(larger)                                                                                                \
    X(lanes)                                                                                                 \
    X(sum)                                                                                                   \
    X(window)                                                                                                \
    X(standardize)                                                                                           \
    X(prepare)                                                                                               \
    X(pixels)                                                                                                \
    X(chain)                                                                                                 \
    X(dense)                                                                                                 \
    X(conv)                                                                                                  \
    X(winograd)                                                                                              \
    X(conv_transpose)                                                                                        \
    X(grouped_conv)                                                                                          \
    X(grouped_conv_transpose)                                                                                \
    X(plus_bias)                                                                                             \
    X(relu)                                                                                                  \
    X(leaky_relu)                                                                                            \
    X(tanh_of)                                                                                               \
    X(sigmoid_of)                                                                                            \
    X(gelu)                                                                                                  \
    X(gelu_tanh)                                                                                             \
    X(silu)                                                                                                  \
    X(hard_swish)                                                                                            \
    X(relu6)                                                                                                 \
    X(add)                                                                                                   \
    X(multiply)                                                                                              \
    X(concat)                                                                                                \
    X(scale)                                                                                                 \
    X(max_pool)                                                                                              \
    X(average_pool)                                                                                          \
    X(greatest_row)                                                                                          \
    X(mean_row)                                                                                              \
    X(softmax)                                                                                               \
    X(layer_norm)                                                                                            \
    X(rms_norm)                                                                                              \
    X(group_norm)                                                                                            \
    X(batch_norm)                                                                                            \
    X(embedding)                                                                                             \
    X(lstm)                                                                                                  \
    X(gru)                                                                                                   \
    X(position)                                                                                              \
    X(cos)                                                                                                   \
    X(rotary)                                                                                                \
    X(attention)                                                                                             \
    X(attend)                                                                                                \
    X(unfold)                                                                                                \
    X(order)                                                                                                 \
    X(unembedding)                                                                                           \
    X(distribution)                                                                                          \
    X(philox)                                                                                                \
    X(draw)                                                                                                  \
    X(same_text)                                                                                             \
    X(text_of_bytes)                                                                                         \
    X(text_of_characters)                                                                                    \
    X(text_of_subwords)                                                                                      \
    X(text_of_words)

#define TR_C_PART(name) TR_C_##name,
enum tr_c_part { TR_C_PARTS(TR_C_PART) TR_C_PART_COUNT };
#undef TR_C_PART

/* Which parts a file needs. Initialize with zeros. */
struct tr_c_parts {
    bool used[TR_C_PART_COUNT];
};

/* Takes a part, and the parts it uses. */
void tr_c_parts_use(struct tr_c_parts *parts, enum tr_c_part part);
/* The replacements of marks in texts. Borrowed for the call. */
struct tr_c_names {
    const char *name, *upper; /* @name@, @NAME@ */
    const char *file;         /* @file@: the name of the file that is written */
    const char *texts;        /* of tr_c_texts_unpack() */
};
/* Adds the parts that are used, a blank line after each. */
void tr_c_parts_write(const struct tr_c_parts *parts, const struct tr_c_names *names, struct tr_text *text);
/* All texts, freed with tr_free(). TR_ENOMEM, TR_ECORRUPT. */
tr_status tr_c_texts_unpack(char **out);
/* Adds the text of the file <name>.c.in with the names put in. */
void tr_c_fill(const char *name, const struct tr_c_names *names, struct tr_text *text);

#endif
