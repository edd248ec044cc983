#include "support/files/html.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Tags that stand alone in HTML. */
static bool is_void(const char *name)
{
    static const char *const names[] = {"meta", "br", "img", "!DOCTYPE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

void expect_well_formed(const char *html)
{
    enum { DEPTH = 64, NAME = 32 };
    static char open[DEPTH][NAME];
    int depth = 0;
    for (const char *at = strchr(html, '<'); at; at = strchr(at, '<')) {
        char name[NAME] = "";
        bool closes = at[1] == '/';
        const char *begin = at + 1 + closes, *end = strchr(at, '>');
        assert_non_null(end);
        for (int i = 0;
             i < NAME - 1 && !isspace((unsigned char)begin[i]) && begin[i] != '>' && begin[i] != '/'; i++)
            name[i] = begin[i];
        at = end + 1;
        if (is_void(name) || end[-1] == '/') continue;
        if (!closes) {
            assert_true(depth < DEPTH);
            memcpy(open[depth++], name, NAME);
        } else if (depth == 0 || strcmp(open[--depth], name) != 0) {
            fail_msg("</%s> closes <%s>", name, open[depth]);
        }
        if (!closes && strcmp(name, "style") == 0) at = strstr(at, "</style>");
    }
    assert_int_equal(depth, 0);
}

static int count_within(const char *begin, const char *end, const char *mark)
{
    int count = 0;
    for (const char *at = begin; (at = strstr(at, mark)) != NULL && at < end; at++) count++;
    return count;
}

void expect_whole_rows(const char *html)
{
    for (const char *table = html; (table = strstr(table, "<thead>")) != NULL; table++) {
        const char *head = strstr(table, "</thead>"), *end = strstr(table, "</table>");
        assert_true(head && end && head < end);
        int columns = count_within(table + 1, head, "<th");
        for (const char *row = head, *next; (row = strstr(row, "<tr")) != NULL && row < end; row = next) {
            next = strstr(row, "</tr>");
            assert_non_null(next);
            if (count_within(row, next, "colspan") > 0) continue;
            int cells = count_within(row, next, "<td") + count_within(row, next, "<th");
            if (cells != columns)
                fail_msg("%d cells below %d heads: %.*s", cells, columns, (int)(next - row), row);
        }
    }
}

void expect_styled(const char *html)
{
    const char *style = strstr(html, "<style>"), *end = style ? strstr(style, "</style>") : NULL;
    if (!end) fail_msg("a page without style");
    assert_non_null(strchr(style, '{'));
    for (const char *at = html; (at = strchr(at, '{')); at++)
        if (at < style) fail_msg("rules before <style>: %.40s", at);
    assert_non_null(strstr(end, "<body>"));
}
