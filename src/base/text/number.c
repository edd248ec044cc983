/* Numbers in text: strict reading, shortest writing, figures for people. Independent of the locale. */
#include "base/text/ascii.h"
#include "base/text/text.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char not_a_number[] = "is not a number";
static const char not_an_integer[] = "is not an integer";
static const char too_large[] = "is too large";
static const char too_small[] = "is too small to be told from 0";

/* ---- reading ---- */

const char *tr_text_int64(const char *string, int64_t *out)
{
    const char *at = string;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    unsigned base = at[0] == '0' && (at[1] == 'x' || at[1] == 'X') ? 16 : 10;
    if (base == 16) at += 2;
    if (!*at) return not_an_integer;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, value = 0;
    bool overflow = false;
    for (; *at; at++) {
        unsigned digit = tr_is_digit(*at)           ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10)
                         : *at >= 'A' && *at <= 'F' ? (unsigned)(*at - 'A' + 10)
                                                    : 16;
        if (digit >= base) return not_an_integer;
        overflow = overflow || value > (limit - digit) / base;
        value = overflow ? 0 : value * base + digit;
    }
    if (overflow) return negative ? "is too far below 0" : too_large;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return NULL;
}

/* The length of the number at `string` (decimal or hexadecimal, sign, point, exponent), 0 if there is none;
 *zero says whether all its digits are 0. */
static size_t scan_number(const char *string, bool *zero)
{
    const char *at = string;
    if (*at == '-' || *at == '+') at++;
    bool hexadecimal = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    if (hexadecimal) at += 2;
    const char *digits = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
    size_t before = strspn(at, digits), after = 0;
    *zero = strspn(at, "0") == before;
    at += before;
    if (*at == '.') {
        at++;
        after = strspn(at, digits);
        *zero = *zero && strspn(at, "0") == after;
        at += after;
    }
    if (before + after == 0) return 0;
    if (hexadecimal ? *at == 'p' || *at == 'P' : *at == 'e' || *at == 'E') {
        at++;
        if (*at == '-' || *at == '+') at++;
        size_t exponent = strspn(at, "0123456789");
        if (exponent == 0) return 0;
        at += exponent;
    }
    return (size_t)(at - string);
}

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* written once, never freed; 0 if memory failed */

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Reads the number at *at and moves *at after it. */
static const char *read_number(const char **at, double *out)
{
    bool zero;
    size_t length = scan_number(*at, &zero);
    if (length == 0) return not_a_number;
    pthread_once(&locale_once, make_locale);
    if (c_locale == (locale_t)0) return "cannot be read: no memory for the C locale";
    char *end;
    double value = strtod_l(*at, &end, c_locale);
    if ((size_t)(end - *at) != length) return not_a_number;
    if (isinf(value)) return too_large;
    if (value == 0 && !zero) return too_small;
    *at = end;
    *out = value;
    return NULL;
}

const char *tr_text_double(const char *string, double *out)
{
    const char *at = string;
    double value, divisor;
    const char *wrong = read_number(&at, &value);
    if (!wrong && *at == '/') {
        at++;
        wrong = read_number(&at, &divisor);
        if (!wrong && divisor == 0) return "divides by 0";
        if (!wrong) {
            double quotient = value / divisor;
            if (isinf(quotient)) return too_large;
            if (quotient == 0 && value != 0) return too_small;
            value = quotient;
        }
    }
    if (wrong) return wrong;
    if (*at) return not_a_number;
    *out = value;
    return NULL;
}

const char *tr_text_float(const char *string, float *out)
{
    double value;
    const char *wrong = tr_text_double(string, &value);
    if (wrong) return wrong;
    float rounded = (float)value;
    if (isinf(rounded)) return too_large;
    if (rounded == 0 && value != 0) return too_small;
    *out = rounded;
    return NULL;
}

const char *tr_text_bool(const char *string, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(string, words[i]) == 0) {
            *out = i % 2 == 1;
            return NULL;
        }
    }
    return "is neither true nor false";
}

/* ---- writing ---- */

/* printf writes the decimal point of the locale, which may have several bytes: all that are not part of a
 * number otherwise.
 */
static void write_decimal(double value, int digits, char buffer[TR_TEXT_NUMBER_SIZE])
{
    char raw[64];
    snprintf(raw, sizeof raw, "%.*g", digits, value);
    size_t length = 0;
    for (const char *at = raw; *at && length < TR_TEXT_NUMBER_SIZE - 1; at++) {
        if (strchr("0123456789+-einfa", *at)) {
            buffer[length++] = *at;
        } else if (length == 0 || buffer[length - 1] != '.') {
            buffer[length++] = '.';
        }
    }
    buffer[length] = '\0';
}

const char *tr_text_from_double(double value, char buffer[TR_TEXT_NUMBER_SIZE])
{
    for (int digits = 6; digits <= 17; digits++) {
        double back;
        write_decimal(value, digits, buffer);
        if (tr_text_double(buffer, &back) == NULL && back == value) break;
    }
    return buffer;
}

const char *tr_text_from_float(float value, char buffer[TR_TEXT_NUMBER_SIZE])
{
    for (int digits = 6; digits <= 9; digits++) {
        float back;
        write_decimal((double)value, digits, buffer);
        if (tr_text_float(buffer, &back) == NULL && back == value) break;
    }
    return buffer;
}

const char *tr_text_from_count(int64_t count, char buffer[TR_TEXT_NUMBER_SIZE])
{
    char digits[24];
    uint64_t magnitude = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude), used = 0;
    if (count < 0) buffer[used++] = '-';
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

/* "12.5" in tenths, without the locale's point. */
static void write_tenths(char buffer[TR_TEXT_NUMBER_SIZE], double value, const char *unit)
{
    long long tenths = (long long)(value * 10 + 0.5);
    snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%lld.%lld %s", tenths / 10, tenths % 10, unit);
}

const char *tr_text_from_bytes(int64_t bytes, char buffer[TR_TEXT_NUMBER_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%lld byte%s", (long long)bytes, bytes == 1 ? "" : "s");
        return buffer;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    /* 1023.95 would be written as 1024.0. The largest number is 8 EiB. */
    while (value >= 1023.95) {
        value /= 1024;
        unit++;
    }
    write_tenths(buffer, value, units[unit]);
    return buffer;
}

const char *tr_text_from_seconds(double seconds, char buffer[TR_TEXT_NUMBER_SIZE])
{
    if (!(seconds >= 0 && seconds < 1e15)) {
        snprintf(buffer, TR_TEXT_NUMBER_SIZE, "unknown");
    } else if (seconds < 0.9995) {
        snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%d ms", (int)(seconds * 1000 + 0.5));
    } else if (seconds < 59.95) {
        write_tenths(buffer, seconds, "s");
    } else if (seconds < 3599.5) {
        int whole = (int)(seconds + 0.5);
        snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%d min %02d s", whole / 60, whole % 60);
    } else {
        long long minutes = (long long)(seconds / 60 + 0.5);
        snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%lld h %02lld min", minutes / 60, minutes % 60);
    }
    return buffer;
}
