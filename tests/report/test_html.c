/* Texts in HTML: nothing of them is markup, and bytes are those of RFC 4648. */
#include "report/draw/html.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void expect(struct tr_text *html, const char *expected)
{
    char *text;
    assert_int_equal(tr_text_finish(html, &text), TR_OK);
    assert_string_equal(text, expected);
    tr_free(text);
}

/* Its test vectors. */
static void bytes_are_base64(void **state)
{
    static const char *const vectors[][2] = {
        {"f", "Zg=="},         {"fo", "Zm8="},         {"foo", "Zm9v"},         {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}};
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct tr_text html = TR_TEXT_INIT;
        tr_html_base64(&html, (const uint8_t *)vectors[i][0], strlen(vectors[i][0]));
        expect(&html, vectors[i][1]);
    }
}

static void texts_are_no_markup(void **state)
{
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_html_text(&html, "a<b>&\"c\"'\n\td\x01\x7f"
                        "e\xc3\xa9\xff"
                        "f\xe2\x82");
    expect(&html, "a&lt;b&gt;&amp;&quot;c&quot;&#39;\n\td\x7f"
                  "e\xc3\xa9\xef\xbf\xbd"
                  "f\xef\xbf\xbd\xef\xbf\xbd");
    tr_html_element(&html, "td", "number", "<1>");
    tr_html_cell(&html, "\"head\"", NULL, "&");
    tr_html_cell(&html, "h", "c", "x");
    expect(&html, "<td class=\"number\">&lt;1&gt;</td><td data-head=\"&quot;head&quot;\">&amp;</td>"
                  "<td data-head=\"h\" class=\"c\">x</td>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_base64),
        cmocka_unit_test(texts_are_no_markup),
    };
    return cmocka_run_group_tests_name("report.html", tests, NULL, NULL);
}
