/* The encoding of texts from outside: UTF-8 is read, with or without a byte order mark; others are refused
   by name. */
#ifndef TR_BASE_ENCODING_H
#define TR_BASE_ENCODING_H

#include "trireme/status.h"

#include <stddef.h>

/* The length of the UTF-8 byte order mark at the beginning of a text, which is not part of it: 3 or 0. */
size_t tr_encoding_mark(const char *text, size_t size);

/* TR_EFORMAT where a text is in UTF-16 or UTF-32, as its first bytes show: a byte order mark or, without
   one, every other byte 0. `name` is that of the file. Any thread. */
tr_status tr_encoding_check(const char *name, const char *text, size_t size);

#endif
