#include "report/draw/html.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static void add_character(struct tr_text *html, const char *at, size_t bytes, uint32_t character)
{
    switch (character) {
    case '&':
        tr_text_add(html, "&amp;");
        break;
    case '<':
        tr_text_add(html, "&lt;");
        break;
    case '>':
        tr_text_add(html, "&gt;");
        break;
    case '"':
        tr_text_add(html, "&quot;");
        break;
    case '\'':
        tr_text_add(html, "&#39;");
        break;
    default:
        if (character >= ' ' || character == '\n' || character == '\t') tr_text_add_bytes(html, at, bytes);
    }
}

void tr_html_text(struct tr_text *html, const char *text)
{
    while (*text) {
        uint32_t character;
        size_t bytes = tr_text_utf8(text, &character);
        if (bytes == 0) {
            tr_text_add(html, "\xEF\xBF\xBD");
            text++;
            continue;
        }
        add_character(html, text, bytes, character);
        text += bytes;
    }
}

void tr_html_element(struct tr_text *html, const char *tag, const char *class, const char *text)
{
    tr_text_addf(html, "<%s", tag);
    if (class) tr_text_addf(html, " class=\"%s\"", class);
    tr_text_add(html, ">");
    tr_html_text(html, text);
    tr_text_addf(html, "</%s>", tag);
}

void tr_html_elementf(struct tr_text *html, const char *tag, const char *class, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tr_html_element(html, tag, class, text);
}

void tr_html_cell(struct tr_text *html, const char *head, const char *class, const char *text)
{
    tr_text_add(html, "<td data-head=\"");
    tr_html_text(html, head);
    tr_text_addf(html, "\"%s%s%s>", class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
    tr_html_text(html, text);
    tr_text_add(html, "</td>");
}

void tr_html_base64(struct tr_text *html, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) group |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) group |= bytes[i + 2];
        char quad[4] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63],
                        digits[group & 63]};
        if (i + 1 >= count) quad[2] = '=';
        if (i + 2 >= count) quad[3] = '=';
        tr_text_add_bytes(html, quad, sizeof quad);
    }
}
