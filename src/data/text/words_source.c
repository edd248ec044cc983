#include "data/text/words_source.h"

#include "base/alloc.h"
#include "base/fail.h"

tr_status tr_words_begin(struct tr_words_source *source, const struct tr_words_options *options,
                         int32_t max_tokens, const char *state, int32_t *classes)
{
    if (state) return tr_vocabulary_read(state, &source->vocabulary, classes);
    return tr_vocabulary_create((enum tr_unit)options->unit, options->lower_case, max_tokens,
                                &source->vocabulary);
}

tr_status tr_words_settle(struct tr_words_source *source, const struct tr_words_options *options,
                          const char *state)
{
    if (state) return TR_OK;
    return tr_vocabulary_settle(source->vocabulary, options->min_count, options->max_words);
}

tr_status tr_words_state(const tr_source *base, char **text)
{
    const struct tr_words_source *source = (const struct tr_words_source *)base;
    return tr_vocabulary_write(source->vocabulary, base->info.classes, text);
}

void tr_words_show(const struct tr_words_source *source, int64_t first, int64_t count, struct tr_text *text)
{
    tr_vocabulary_show(source->vocabulary, source->tokens + first, count, text);
    tr_text_add(text, "\n");
}

void tr_words_release(struct tr_words_source *source)
{
    tr_vocabulary_destroy(&source->vocabulary);
    tr_free(source->tokens);
}
