/* Writing HTML: text from outside is escaped only here. */
#ifndef TR_REPORT_HTML_H
#define TR_REPORT_HTML_H

#include "base/text/text.h"

/* Appends any text: markup characters become entities, invalid UTF-8 becomes U+FFFD, and control
   characters are left out. For elements and quoted attributes. */
void tr_html_text(struct tr_text *html, const char *text);
/* <tag>text</tag> with an optional class (NULL: none). */
void tr_html_element(struct tr_text *html, const char *tag, const char *class, const char *text);
/* The same with a formatted text, cut to 512 bytes. */
void tr_html_elementf(struct tr_text *html, const char *tag, const char *class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A cell of a table that becomes a card on narrow screens (`.stack`), where `head` stands above it. */
void tr_html_cell(struct tr_text *html, const char *head, const char *class, const char *text);
/* Appends bytes in base 64 (RFC 4648). */
void tr_html_base64(struct tr_text *html, const uint8_t *bytes, size_t count);

#endif
