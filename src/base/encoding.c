#include "base/encoding.h"

#include "base/fail.h"

#include <stdbool.h>
#include <string.h>

size_t tr_encoding_mark(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* By the byte order mark; that of UTF-32 begins like that of UTF-16. */
static const char *marked(const char *text, size_t size)
{
    if (size >= 4 && memcmp(text, "\xff\xfe\0\0", 4) == 0) return "UTF-32LE";
    if (size >= 4 && memcmp(text, "\0\0\xfe\xff", 4) == 0) return "UTF-32BE";
    if (size >= 2 && memcmp(text, "\xff\xfe", 2) == 0) return "UTF-16LE";
    if (size >= 2 && memcmp(text, "\xfe\xff", 2) == 0) return "UTF-16BE";
    return NULL;
}

/* In UTF-16, letters, digits and blanks of Western languages have a byte 0, always on the same side: the
   characters checked here must all have it. */
static const char *unmarked(const char *text, size_t size)
{
    enum { LOOKED_AT = 32 };
    size_t pairs = (size < LOOKED_AT ? size : LOOKED_AT) / 2;
    bool little = pairs >= 2, big = pairs >= 2;
    for (size_t i = 0; i < pairs; i++) {
        little &= text[2 * i] != 0 && text[2 * i + 1] == 0;
        big &= text[2 * i] == 0 && text[2 * i + 1] != 0;
    }
    return little ? "UTF-16LE" : big ? "UTF-16BE" : NULL;
}

tr_status tr_encoding_check(const char *name, const char *text, size_t size)
{
    const char *encoding = marked(text, size);
    if (!encoding) encoding = unmarked(text, size);
    if (!encoding) return TR_OK;
    return tr_fail(
        TR_EFORMAT,
        "%s: the text is in %s; only UTF-8 is read: save it so, or convert it (iconv -f %s -t UTF-8)", name,
        encoding, encoding);
}
