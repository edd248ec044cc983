/* Classes of ASCII bytes, independent of the locale. */
#ifndef TR_BASE_ASCII_H
#define TR_BASE_ASCII_H

#include <stdbool.h>

/* Whether it is one of 0 to 9; isdigit() is undefined for bytes that are negative as char. */
static inline bool tr_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

#endif
