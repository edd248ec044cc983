/* What the parts of the C export share: a network being written as C. */
#ifndef TR_EXPORT_C_NETWORK_H
#define TR_EXPORT_C_NETWORK_H

#include "base/files/ops.h"
#include "data/text/vocabulary.h"
#include "export/c/parts.h"
#include "export/trace.h"

#define TR_C_IDENTIFIER 96

/* What the file states about itself and its network. All borrowed for the call. */
struct tr_c_settings {
    const char *name;   /* prefix of identifiers, once characters that C does not allow are replaced */
    const char *file;   /* the name of the file */
    const char *origin; /* a line for people: which network this is */
    /* For a network that continues texts, which gets functions for that; else NULL. */
    const tr_vocabulary *vocabulary;
};

/* Writes the network as one C file, whose function gives the same bits as the devices. TR_EUNSUPPORTED for
   layers that the export does not know, naming the layer, and for networks too large for 32-bit indices;
   TR_ENONFINITE for a parameter that is not finite; TR_ENOMEM, TR_EIO. */
tr_status tr_c_write(const struct tr_trace *trace, const struct tr_c_settings *settings,
                     struct tr_file_writer *writer);

/* ---- for the files of the export ---- */

/* Where a value lies. */
enum tr_c_storage { TR_C_NOWHERE, TR_C_GIVEN, TR_C_WORKSPACE, TR_C_OUTPUT, TR_C_SAME };
struct tr_c_value {
    enum tr_c_storage storage;
    int64_t floats; /* size, or the part of it that does not depend on the number of tokens */
    int64_t each;   /* what each of <NAME>_TOKENS adds to it */
    int64_t row;    /* floats of a token, where all tokens have a place; else 0 */
    int64_t offset; /* in the workspace: of values with `each` in a token's share of it, after all others */
    int same;       /* TR_C_SAME: the value in whose place it lies */
    bool zeroed;    /* before the first token, since there may be none */
    char name[TR_C_IDENTIFIER];
};

struct tr_c_network {
    const struct tr_trace *trace;
    const struct tr_c_settings *settings;
    char name[TR_C_IDENTIFIER], upper[TR_C_IDENTIFIER];
    char (*layer_name)[TR_C_IDENTIFIER]; /* [layers] */
    struct tr_c_value *value;            /* [values of the trace] */
    int64_t workspace;                   /* floats, without those of texts */
    int64_t workspace_each;              /* floats more for each of <NAME>_TOKENS */
    int64_t inputs;                      /* floats of an example */
    bool tokens;                         /* the network takes tokens */
    bool whole;                          /* all tokens are taken through an operation before the next one */
    int64_t most_tokens;                 /* window that is used by default; 0: any number */
    int64_t context;      /* of the positions: the number of last tokens that texts continue from; 0: none */
    int indent;           /* of operations of tokens */
    bool *parameter_used; /* [parameters] */
    char *texts;          /* of tr_c_texts_unpack() */
    struct tr_c_parts parts;
    struct tr_text body; /* of the predicting function */
};

/* Chooses identifiers and places; refuses what is too large. Release with tr_c_network_release(), also after
 * a failure. */
tr_status tr_c_network_plan(const struct tr_trace *trace, const struct tr_c_settings *settings,
                            struct tr_c_network *network);
void tr_c_network_release(struct tr_c_network *network);

/* ---- for operations ---- */

struct tr_c_name {
    char text[4 * TR_C_IDENTIFIER];
};
/* The C expression of a number that may grow with <NAME>_TOKENS: "12", "12 + 34 * NET_TOKENS". */
struct tr_c_name tr_c_size(const struct tr_c_network *network, int64_t floats, int64_t each);
/* The C expression of the value that a pointer in an operation's arguments stands for: of the current
   token, or of all. */
struct tr_c_name tr_c_value_name(const struct tr_c_network *network, const struct tr_traced *traced,
                                 const void *pointer);
struct tr_c_name tr_c_all_name(const struct tr_c_network *network, const void *pointer);
/* The C name of a parameter's array, which becomes part of the file. */
struct tr_c_name tr_c_array_name(struct tr_c_network *network, const float *pointer);
/* Begins a call of a part: "    net_dense(". The caller adds arguments and the end. */
void tr_c_begin_call(struct tr_c_network *network, const struct tr_traced *traced, enum tr_c_part part,
                     const char *function);
#define TR_C_BEGIN(part)    tr_c_begin_call(network, traced, TR_C_##part, #part)
#define TR_C_VALUE(pointer) tr_c_value_name(network, traced, pointer).text
#define TR_C_ARRAY(pointer) tr_c_array_name(network, pointer).text
/* Doubles [count] as constants of C, before a call. */
void tr_c_write_doubles(struct tr_text *text, const char *name, int64_t count, const double *values);

/* Indentation of an operation's code: operations on tokens stand in a loop over the tokens, unless the
   body is that of one token. */
int tr_c_indent(const struct tr_c_network *network, const struct tr_traced *traced);
/* Writes an operation. TR_EUNSUPPORTED for one without counterpart, naming the layer. */
tr_status tr_c_write_operation(struct tr_c_network *network, const struct tr_traced *traced);

/* Whether an operation handles all tokens in one call. */
bool tr_c_is_of_all(const struct tr_traced *traced);
/* Operations on tokens (tokens.c): writes one, or returns TR_ENOTFOUND, without a message, for others. */
tr_status tr_c_write_tokens(struct tr_c_network *network, const struct tr_traced *traced);

/* Functions that continue texts (texts.c): their declarations for the program, and their definitions. */
bool tr_c_goes_on(const struct tr_c_network *network);
/* Whether texts continue from all tokens that fit: the network has no positions that end earlier. */
bool tr_c_keeps_all(const struct tr_c_network *network);
/* What they take of the workspace, after the network's own: scores, and the tokens of the positions. */
int64_t tr_c_floats_of_texts(const struct tr_c_network *network);
void tr_c_declare_texts(const struct tr_c_network *network, struct tr_text *text);
tr_status tr_c_write_texts(const struct tr_c_network *network, struct tr_text *text);

/* The function that turns scores into probabilities (answers.c), for networks that have them: its
   declaration for the program, and its definition, into `body`. */
void tr_c_declare_answers(const struct tr_c_network *network, struct tr_text *text);
void tr_c_write_answers(struct tr_c_network *network);
/* What `output` means, for people. Static storage. */
const char *tr_c_answers_are(const struct tr_c_network *network);

/* Writes the function that predicts (function.c) into `body`, and notes which parts and parameters it uses.
 */
tr_status tr_c_network_body(struct tr_c_network *network);

/* Writes a finite float as a constant: "0x199999bp-28f". */
#define TR_C_CONSTANT 24
void tr_c_constant(float value, char text[TR_C_CONSTANT]);

/* The identifier of a parameter's array after the prefix: "conv1_weights". */
const char *tr_c_parameter_name(const struct tr_c_network *network, int parameter,
                                char name[2 * TR_C_IDENTIFIER]);

/* Writes the text to the file, and empties it. */
tr_status tr_c_flush(struct tr_text *text, struct tr_file_writer *writer);
/* Writes the arrays of the used parameters. */
tr_status tr_c_write_parameters(const struct tr_c_network *network, struct tr_file_writer *writer);

#endif
