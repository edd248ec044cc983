#include "data/tables/csv_fields.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

char tr_csv_guess(const char *line, size_t length)
{
    char found = ' ';
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\t' || line[i] == ';') return line[i];
        if (line[i] != ',') continue;
        bool decimal = i > 0 && i + 1 < length && tr_is_digit(line[i - 1]) && tr_is_digit(line[i + 1]);
        if (!decimal) return ',';
        found = ','; /* unless a semicolon or tab follows: then it is part of a number */
    }
    return found;
}

bool tr_csv_has_decimal_comma(struct tr_csv_field field)
{
    const char *at = field.at, *end = at + field.length, *comma = memchr(at, ',', field.length);
    if (!comma) return false;
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == comma || comma + 1 == end) return false;
    for (; at < end; at++)
        if (at != comma && !tr_is_digit(*at)) return false;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

tr_status tr_csv_split(const struct tr_lines *lines, char separator, struct tr_csv_field *fields,
                       int32_t room, int32_t *count)
{
    const char *at = lines->line, *end = at + lines->length;
    *count = 0;
    for (;;) {
        while (at < end && is_space(*at) && *at != separator) at++;
        if (separator == ' ') {
            while (at < end && *at == ' ') at++;
            if (at == end && *count > 0) return TR_OK;
        }
        const char *start = at, *stop;
        if (at < end && *at == '"') {
            start = ++at;
            do {
                stop = memchr(at, '"', (size_t)(end - at));
                if (!stop) return tr_lines_fail(lines, start - 1, "a quote that is not closed on its line");
                at = stop + 1;
            } while (at < end && *at == '"' && ++at);
            while (at < end && is_space(*at) && *at != separator) at++;
            if (at < end && *at != separator) return tr_lines_fail(lines, at, "text after a closed quote");
        } else {
            while (at < end && *at != separator) at++;
            stop = at;
            while (stop > start && is_space(stop[-1])) stop--;
        }
        if (*count < room) fields[*count] = (struct tr_csv_field){start, (size_t)(stop - start)};
        ++*count;
        if (at == end) return TR_OK;
        at++;
    }
}

/* Up to 15 digits with up to 15 of them after a point: both parts of the quotient are exact, so the result
   is the nearest double. False for any other form. */
static bool short_decimal(struct tr_csv_field field, double *number)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *at = field.at, *end = at + field.length, *point = NULL;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    if (end - at < 1 || end - at > 15) return false;
    int64_t digits = 0;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = at;
        } else if (tr_is_digit(*at)) {
            digits = digits * 10 + (*at - '0');
        } else {
            return false;
        }
    }
    if (point && end - field.at - negative == 1) return false;
    double value = (double)digits / power[point ? end - point - 1 : 0];
    *number = negative ? -value : value;
    return true;
}

bool tr_csv_is_missing(struct tr_csv_field field)
{
    static const char *const words[] = {"", "?", "na", "n/a", "nan", "null", "none"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == field.length && strncasecmp(words[i], field.at, field.length) == 0)
            return true;
    return false;
}

const char *tr_csv_number(struct tr_csv_field field, double *number)
{
    char text[64];
    if (short_decimal(field, number)) return NULL;
    if (field.length == 0) return "is empty";
    if (field.length >= sizeof text) return "is not a number";
    memcpy(text, field.at, field.length);
    text[field.length] = 0;
    if (strlen(text) != field.length) return "is not a number";
    return tr_text_double(text, number);
}

/* Most names of columns that a message searches. */
#define NAMES_MAX 1024

tr_status tr_csv_no_column(const char *path, const char *what, const char *column,
                           const struct tr_csv_field *fields, int32_t count, bool header)
{
    const char *names[NAMES_MAX] = {NULL};
    int32_t known = 0;
    for (int32_t i = 0; header && i < count && known < NAMES_MAX; i++) {
        char *name = tr_format("%.*s", (int)(fields[i].length < 256 ? fields[i].length : 256), fields[i].at);
        if (!name) break;
        names[known++] = name;
    }
    const char *nearest = tr_text_nearest(column, names, known);
    tr_status status = tr_fail(
        TR_EINVAL,
        "%s: %s column \"%s\" is neither a name in the first line nor a number from 0 to %" PRId32 "%s%s%s",
        path, what, column, count - 1, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "");
    for (int32_t i = 0; i < known; i++) tr_free((char *)(uintptr_t)names[i]);
    return status;
}
