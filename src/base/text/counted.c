#include "base/text/counted.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* `number` is the count, as it is to be written. */
static const char *join(const char *number, int64_t count, const char *noun, char buffer[TR_COUNTED_SIZE])
{
    size_t length = strlen(noun);
    char last = length > 0 ? noun[length - 1] : '\0', before = length > 1 ? noun[length - 2] : '\0';
    bool hisses = last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's'));
    bool turns = last == 'y' && !strchr("aeiou", before);
    const char *ending = count == 1 ? "" : hisses ? "es" : turns ? "ies" : "s";
    if (length > 50) length = 50;
    if (turns && count != 1) length--;
    snprintf(buffer, TR_COUNTED_SIZE, "%s %.*s%s", number, (int)length, noun, ending);
    return buffer;
}

const char *tr_counted(int64_t count, const char *noun, char buffer[TR_COUNTED_SIZE])
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, count);
    return join(number, count, noun, buffer);
}

const char *tr_counted_long(int64_t count, const char *noun, char buffer[TR_COUNTED_SIZE])
{
    char number[TR_TEXT_NUMBER_SIZE];
    return join(tr_text_from_count(count, number), count, noun, buffer);
}
