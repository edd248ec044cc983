#include "export/hub/outgoing.h"

#include "base/alloc.h"
#include "base/numbers/half.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the whole ---- */

static tr_status add_piece(void *user, const struct tr_hub_piece *piece)
{
    struct tr_hub_outgoing *out = user;
    if (!tr_grow(&out->piece, out->count, sizeof *out->piece)) return TR_ENOMEM;
    out->piece[out->count++] = *piece;
    return TR_OK;
}

/* Tokens with which published tokenizers end texts; the first that exists is taken. */
static int32_t find_end(const tr_bpe *bpe)
{
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>",
                                       "<|eot_id|>"};
    int32_t end = -1;
    for (size_t i = 0; bpe && end < 0 && i < sizeof ends / sizeof ends[0]; i++)
        end = tr_bpe_find_added(bpe, ends[i]);
    return end;
}

/* Tokens of the texts to train on, if the file states how many; otherwise a length common to published
   models. */
static int64_t window_of(const struct tr_job *job)
{
    static const char *const path[] = {"data", "train", "corpus", "window"};
    const tr_config *node = job->root;
    int64_t window = 0;
    for (int i = 0; node && i < 4; i++) node = tr_config_get(node, path[i]);
    const char *text = node ? tr_config_text(node) : NULL;
    return text && !tr_text_int64(text, &window) && window > 0 ? window : 2048;
}

tr_status tr_hub_outgoing_begin(const struct tr_export *what, struct tr_hub_outgoing *out)
{
    const struct tr_job *job = what->job;
    int32_t classes;
    int64_t most = 0;
    *out = (struct tr_hub_outgoing){.what = what, .end = -1};
    TR_TRY(tr_hub_match(job->model, window_of(job), &out->match));
    TR_TRY(tr_hub_each_piece(&out->match.config, add_piece, out));
    if (job->state && job->features == TR_FEATURE_TOKENS)
        TR_TRY(tr_vocabulary_read(job->state, &out->vocabulary, &classes));
    if (out->vocabulary) out->bpe = tr_vocabulary_bpe(out->vocabulary);
    out->end = find_end(out->bpe);
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t size = out->piece[i].rows * out->piece[i].columns;
        if (size > most) most = size;
    }
    out->numbers = tr_alloc((size_t)most, sizeof *out->numbers);
    return out->numbers ? TR_OK : TR_ENOMEM;
}

void tr_hub_outgoing_release(struct tr_hub_outgoing *out)
{
    tr_hub_match_release(&out->match);
    tr_vocabulary_destroy(&out->vocabulary);
    tr_free(out->piece);
    tr_free(out->numbers);
    *out = (struct tr_hub_outgoing){0};
}

tr_status tr_hub_numbers(struct tr_hub_outgoing *out, const struct tr_hub_piece *piece, bool across,
                         bool half, uint64_t *bytes)
{
    const int64_t count = piece->rows * piece->columns;
    tr_hub_gather(&out->match, piece, across, out->what->parameters, out->numbers);
    *bytes = (uint64_t)count * (half ? sizeof(uint16_t) : sizeof(float));
    for (int64_t i = 0; half && i < count; i++) {
        const float value = out->numbers[i];
        const uint16_t narrow = tr_half_from_float(value);
        if (isfinite(value) && !isfinite(tr_half_to_float(narrow)))
            return tr_fail(TR_EUNSUPPORTED,
                           "\"%s\" has %g, which is beyond what 16 bits hold (65504); write 32 bits",
                           piece->theirs, (double)value);
        memcpy((uint16_t *)(void *)out->numbers + i, &narrow, sizeof narrow); /* after what was read */
    }
    return TR_OK;
}
