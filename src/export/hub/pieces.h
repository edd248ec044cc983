/* The tensors of such a network as its library names them, and their counterparts here: rows of a
 * parameter in the layout of PyTorch, [out][in], where queries, keys and values are one matrix.
 */
#ifndef TR_EXPORT_HUB_PIECES_H
#define TR_EXPORT_HUB_PIECES_H

#include "base/fail.h"
#include "export/hub/hub.h"

enum tr_hub_role {
    TR_HUB_WHOLE, /* a vector, or a matrix that lies [in][out] in an arena */
    TR_HUB_TABLE, /* a matrix that is not transposed: vectors of tokens or places */
    TR_HUB_QUERIES,
    TR_HUB_KEYS,
    TR_HUB_VALUES /* the last three: rows of one matrix, or numbers of one vector */
};

struct tr_hub_piece {
    char layer[32];   /* of the model file that tr_hub_model() makes */
    const char *part; /* "weight", as PyTorch calls the parameter; static storage */
    char theirs[96];  /* "model.layers.3.mlp.up_proj.weight" */
    char gguf[48];    /* "blk.3.ffn_up.weight" */
    int rank;         /* 1: columns is 1 */
    int64_t rows, columns;
    int64_t first, total; /* its rows begin at row `first`, of `total` */
    bool across;          /* rows and columns are exchanged in the file */
    enum tr_hub_role role;
    int64_t skipped;    /* rows of the file's tensor before them */
    char added[96];     /* the first row of this tensor is added to each row; "": none */
    int64_t added_rows; /* of that tensor */
    bool may_lack;      /* a file of a network without classes may lack it */
};

/* `piece` is borrowed for the call; a failure ends the walk. */
typedef tr_status (*tr_hub_visit)(void *user, const struct tr_hub_piece *piece);
/* Visits all pieces of a network; those of one parameter follow each other, in the order of their rows. */
tr_status tr_hub_each_piece(const struct tr_hub_config *config, tr_hub_visit visit, void *user);

#endif
