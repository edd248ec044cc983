/* What a directory and a GGUF file share when they are written: the network as one of Hugging Face's, its
 * pieces, its tokenizer.
 */
#ifndef TR_EXPORT_HUB_OUTGOING_H
#define TR_EXPORT_HUB_OUTGOING_H

#include "data/text/vocabulary.h"
#include "export/formats.h"
#include "export/hub/match.h"

struct tr_hub_outgoing {
    const struct tr_export *what;
    struct tr_hub_match match;
    struct tr_hub_piece *piece; /* [count] */
    int64_t count;
    tr_vocabulary *vocabulary;
    const tr_bpe *bpe; /* of the vocabulary; NULL without a tokenizer of bytes */
    int32_t end;       /* the token that ends a text, if the tokenizer has one of a known name; else -1 */
    float *numbers;    /* room for the largest piece */
};

/* TR_EUNSUPPORTED where the network is none of these. Returned, release with tr_hub_outgoing_release(), also
   after a failure. */
tr_status tr_hub_outgoing_begin(const struct tr_export *what, struct tr_hub_outgoing *out);
/* Accepts an empty one; empties it. */
void tr_hub_outgoing_release(struct tr_hub_outgoing *out);

/* The numbers of a piece, in out->numbers until the next call: as tr_hub_gather(); the values of 16 bits
   where `half`. *bytes is their size. TR_EUNSUPPORTED for a number beyond 16 bits. */
tr_status tr_hub_numbers(struct tr_hub_outgoing *out, const struct tr_hub_piece *piece, bool across,
                         bool half, uint64_t *bytes);
/* config.json. Returned, free with tr_free(). */
tr_status tr_hub_write_config(const struct tr_hub_config *config, int32_t end, bool half, char **text);

#endif
