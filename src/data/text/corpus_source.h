/* Running text, cut into windows of tokens, each with the next token as its label, to train language
 * models.
 */
#ifndef TR_DATA_CORPUS_SOURCE_H
#define TR_DATA_CORPUS_SOURCE_H

#include "data/source.h"

/* {corpus: {path: PATH, unit: characters, window: 64, part: [0, 0.9], ...}}. State: vocabulary.txt
   (data/text/vocabulary.h); with a state, its settings apply and those of the description are ignored. */
extern const struct tr_source_format tr_source_format_corpus;

#endif
