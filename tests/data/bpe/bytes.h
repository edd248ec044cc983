/* All bytes as the members of the vocabulary of a tokenizer.json. */
#ifndef TESTS_DATA_BPE_BYTES_H
#define TESTS_DATA_BPE_BYTES_H

#include "data/bpe/unicode.h"

/* Adds `"letter": number` for each byte but `but` (-1: for all). No comma behind the last. */
static inline void add_bytes(struct tr_text *text, int but)
{
    for (int byte = 0, letters = 0x100; byte < 256; byte++) {
        struct tr_text letter = TR_TEXT_INIT;
        const bool plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        tr_character_add(&letter, (uint32_t)(plain ? byte : letters++));
        if (byte != but) {
            tr_text_add_quoted(text, letter.bytes);
            tr_text_addf(text, ": %d%s", byte, byte < 255 ? ", " : "");
        }
        tr_text_release(&letter);
    }
}

#endif
