/* A running text, cut into windows of tokens whose labels are the tokens that follow them: what language
 * models learn from.
 */
#ifndef TR_DATA_CORPUS_SOURCE_H
#define TR_DATA_CORPUS_SOURCE_H

#include "data/source.h"

/* {corpus: {path: PATH, unit: characters, window: 64, part: [0, 0.9], ...}}. State: vocabulary.txt
   (data/text/vocabulary.h); with a state, its settings hold and those of the description are ignored. */
extern const struct tr_source_format tr_source_format_corpus;

#endif
