/* Sentences with a class each: one example a line, `text TAB label`. */
#ifndef TR_DATA_TEXT_SOURCE_H
#define TR_DATA_TEXT_SOURCE_H

#include "data/source.h"

/* {text: {path: PATH, ...}}. State: vocabulary.txt (data/text/vocabulary.h); with a state, its settings
   apply and those of the description are ignored. */
extern const struct tr_source_format tr_source_format_text;

#endif
