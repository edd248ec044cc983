/* The width of text in a terminal. */
#ifndef TR_BASE_TEXT_WIDTH_H
#define TR_BASE_TEXT_WIDTH_H

#include <stddef.h>

/* The columns of `length` bytes of UTF-8, counted as one for each character: all bytes that are not
   continuation bytes. */
static inline size_t tr_text_columns(const char *string, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++) columns += ((unsigned char)string[i] & 0xc0) != 0x80;
    return columns;
}

#endif
