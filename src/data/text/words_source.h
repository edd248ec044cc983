/* Shared by sources of text: the options of a vocabulary, and its tokens one after another. */
#ifndef TR_DATA_WORDS_SOURCE_H
#define TR_DATA_WORDS_SOURCE_H

#include "data/source.h"
#include "data/text/vocabulary.h"

struct tr_words_options {
    int unit; /* enum tr_unit */
    bool lower_case;
    int32_t min_count, max_words;
};

/* The options of a vocabulary in a table of options of `object`, whose member `words` is a struct
 * tr_words_options. The unit is not among them.
 */
#define TR_OPTIONS_WORDS(object)                                                                             \
    {.key = "lower_case",                                                                                    \
     .type = TR_OPTION_BOOL,                                                                                 \
     .offset = offsetof(object, words.lower_case),                                                           \
     .fallback = "false",                                                                                    \
     .help = "read A to Z as a to z"},                                                                       \
        {.key = "min_count",                                                                                 \
         .type = TR_OPTION_INT32,                                                                            \
         .offset = offsetof(object, words.min_count),                                                        \
         .fallback = "1",                                                                                    \
         .least = 1,                                                                                         \
         .most = INT32_MAX,                                                                                  \
         .help = "words or characters that occur less often in the training text are unknown"},              \
    {                                                                                                        \
        .key = "max_words", .type = TR_OPTION_INT32, .offset = offsetof(object, words.max_words),            \
        .fallback = "0", .most = TR_VOCABULARY_MAX,                                                          \
        .help = "size of the vocabulary, including the unknown word; the rarest are left out; 0: all words"  \
    }

/* The head of such a source; begins as zeros. */
struct tr_words_source {
    tr_source base;
    tr_vocabulary *vocabulary;
    int32_t *tokens; /* all of them */
};

/* Makes the vocabulary. With a state, it is read from it, and *classes becomes its number of classes.
   Otherwise it is empty, and texts are cut to `max_tokens` (0: never). TR_EFORMAT, TR_ENOMEM. */
tr_status tr_words_begin(struct tr_words_source *source, const struct tr_words_options *options,
                         int32_t max_tokens, const char *state, int32_t *classes);
/* Numbers the counted words; does nothing with a state. TR_ENOMEM. */
tr_status tr_words_settle(struct tr_words_source *source, const struct tr_words_options *options,
                          const char *state);
/* The slot `state` of a class. */
tr_status tr_words_state(const tr_source *base, char **text);
/* Adds tokens [first, first + count) as text, and ends the line. */
void tr_words_show(const struct tr_words_source *source, int64_t first, int64_t count, struct tr_text *text);
/* Frees vocabulary and tokens, not the source. */
void tr_words_release(struct tr_words_source *source);

#endif
