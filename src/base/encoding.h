/* The encoding of texts from outside: UTF-8, with or without a byte order mark, is read; others are named. */
#ifndef TR_BASE_ENCODING_H
#define TR_BASE_ENCODING_H

#include "trireme/status.h"

#include <stddef.h>

/* The bytes of the UTF-8 byte order mark that a text begins with, which are not part of it: 3, or 0. */
size_t tr_encoding_mark(const char *text, size_t size);

/* TR_EFORMAT where a text is in UTF-16 or UTF-32, which its first bytes tell: a byte order mark, or, without
   one, every other byte 0. `name` is that of the file. Any thread. */
tr_status tr_encoding_check(const char *name, const char *text, size_t size);

#endif
