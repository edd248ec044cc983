/* What the parts of the C export share: a network that is being written down as C. */
#ifndef TR_EXPORT_C_NETWORK_H
#define TR_EXPORT_C_NETWORK_H

#include "base/file_ops.h"
#include "export/c_parts.h"
#include "export/trace.h"

#define TR_C_IDENTIFIER 96

/* What the file says about itself and its network. All borrowed for the call. */
struct tr_c_settings {
    const char *name;   /* what identifiers begin with, once characters that C does not know are replaced */
    const char *file;   /* what the file is called */
    const char *origin; /* a line for people: which network this is */
    bool classification;
};

/* Writes the network as one C file. Its function gives the bits that the devices give. TR_EUNSUPPORTED for
   what the export does not know, naming the layer, and for networks too large for 32-bit indices;
   TR_ENONFINITE for a parameter that no constant of C can be; TR_ENOMEM, TR_EIO. */
tr_status tr_c_write(const struct tr_trace *trace, const struct tr_c_settings *settings,
                     struct tr_file_writer *writer);

/* ---- for the files of the export ---- */

/* Where a value lies. */
enum tr_c_place { TR_C_NOWHERE, TR_C_GIVEN, TR_C_WORKSPACE, TR_C_OUTPUT, TR_C_SAME };
struct tr_c_value {
    enum tr_c_place place;
    int64_t floats; /* size */
    int64_t offset; /* in the workspace */
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
    int64_t workspace;                   /* floats */
    bool tokens;                         /* the network takes tokens */
    bool *parameter_used;                /* [parameters] */
    struct tr_c_parts parts;
    struct tr_text body; /* of the predicting function */
};

/* Chooses identifiers and places; refuses what is too large. Release with tr_c_network_release(), also after
 * a failure. */
tr_status tr_c_network_plan(const struct tr_trace *trace, const struct tr_c_settings *settings,
                            struct tr_c_network *network);
void tr_c_network_release(struct tr_c_network *network);

/* Writes `body`, and notes which parts and parameters it uses. */
tr_status tr_c_network_body(struct tr_c_network *network);

/* Writes a finite float as a constant: "0x199999bp-28f". */
#define TR_C_CONSTANT 24
void tr_c_constant(float value, char text[TR_C_CONSTANT]);

/* The identifier of a parameter's array behind the prefix: "conv1_weights". */
const char *tr_c_parameter_name(const struct tr_c_network *network, int parameter,
                                char name[2 * TR_C_IDENTIFIER]);

/* Writes the text to the file, and empties it. */
tr_status tr_c_flush(struct tr_text *text, struct tr_file_writer *writer);
/* Writes the arrays of the used parameters. */
tr_status tr_c_write_parameters(const struct tr_c_network *network, struct tr_file_writer *writer);

#endif
