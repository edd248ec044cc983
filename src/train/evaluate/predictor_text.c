/* The words of a predictor. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/join.h"

#include <string.h>

/* The vocabulary of the source called `name`. */
static tr_status open_own(const tr_predictor *predictor, const char *name, tr_vocabulary **out)
{
    int32_t classes;
    char *own;
    TR_TRY(tr_join_state_of(predictor->job->state, name, &own));
    tr_status status = tr_vocabulary_read(own ? own : "", out, &classes);
    tr_free(own);
    return status;
}

tr_status tr_predictor_open_vocabulary(tr_predictor *predictor)
{
    int32_t classes;
    if (predictor->vocabulary) return TR_OK;
    if (!predictor->job->state)
        return tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no vocabulary", predictor->path);
    const struct tr_source_parts *parts = &predictor->job->parts;
    if (!parts->text[0]) return tr_vocabulary_read(predictor->job->state, &predictor->vocabulary, &classes);
    if (parts->second[0] && !predictor->second)
        TR_TRY(open_own(predictor, parts->second, &predictor->second));
    return open_own(predictor, parts->text, &predictor->vocabulary);
}

/* Subwords are contiguous. */
static tr_status subword_spans(const tr_predictor *predictor, const char *text, size_t length, int64_t room,
                               size_t *begin, size_t *end, int64_t *count)
{
    const tr_bpe *bpe = tr_vocabulary_bpe(predictor->vocabulary);
    int32_t *tokens;
    size_t at = 0, size;
    if (tr_bpe_composes(bpe))
        return tr_fail(
            TR_EUNSUPPORTED,
            "the tokenizer of \"%s\" brings texts into normalization form C, so that tokens have no place "
            "in the text as it is",
            predictor->path);
    TR_TRY(tr_bpe_encode(bpe, text, length, &tokens, count));
    for (int64_t i = 0; i < *count && i < room; i++, at += size) {
        tr_bpe_token(bpe, tokens[i], &size);
        begin[i] = at;
        end[i] = at + size;
    }
    tr_free(tokens);
    return TR_OK;
}

tr_status tr_predictor_tokens(tr_predictor *predictor, const char *text, int64_t room, size_t *begin,
                              size_t *end, int64_t *count, int64_t *taken)
{
    TR_TRY(tr_predictor_check_features(predictor, TR_FEATURE_TOKENS));
    TR_TRY(tr_predictor_open_vocabulary(predictor));
    size_t length = strlen(text);
    if (tr_vocabulary_bpe(predictor->vocabulary)) {
        TR_TRY(subword_spans(predictor, text, length, room, begin, end, count));
        if (taken) *taken = *count;
        return TR_OK;
    }
    *count = tr_vocabulary_spans(predictor->vocabulary, text, length, room, begin, end);
    if (taken) *taken = tr_vocabulary_length(predictor->vocabulary, text, length);
    return TR_OK;
}

tr_status tr_predictor_word(tr_predictor *predictor, int32_t token, char **word)
{
    TR_TRY(tr_predictor_check_features(predictor, TR_FEATURE_TOKENS));
    TR_TRY(tr_predictor_open_vocabulary(predictor));
    struct tr_text text = TR_TEXT_INIT;
    if (token < 0 || token >= tr_vocabulary_size(predictor->vocabulary))
        return tr_fail(TR_EINVAL, "there is no token %d; the network of \"%s\" knows %d, counted from 0",
                       (int)token, predictor->path, (int)tr_vocabulary_size(predictor->vocabulary));
    if (token == tr_vocabulary_boundary(predictor->vocabulary))
        tr_text_add(&text, "<boundary>");
    else
        tr_vocabulary_show(predictor->vocabulary, &token, 1, &text);
    return tr_text_finish(&text, word);
}
