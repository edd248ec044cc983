/* Model files in UTF-8 are read with and without a byte order mark; UTF-16 and UTF-32 are named. */
#include "base/encoding.h"

#include "base/options/config.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static void marks_are_no_text(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbfname: caf\xc3\xa9\nseed: 3\n";
    tr_config *root;
    char place[64];
    if (tr_config_parse(text, strlen(text), "m.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    assert_string_equal(tr_config_key(root, 0), "name");
    assert_string_equal(tr_config_text(tr_config_at(root, 0)), "caf\xc3\xa9");
    assert_string_equal(tr_config_location(tr_config_at(root, 0), place, sizeof place), "m.yaml:1:7: name");
    tr_config_destroy(&root);
    assert_int_equal(tr_encoding_mark("\xef\xbb", 2), 0);
    assert_int_equal(tr_encoding_mark("", 0), 0);
    assert_int_equal(tr_encoding_mark(text, 3), 3);
    assert_int_equal(tr_encoding_mark("\xef\xbb\xbe-", 4), 0);
}

static void other_encodings_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *encoding; /* NULL: nothing is wrong */
    } cases[] = {
        {"\xff\xfen\0a\0", 6, "UTF-16LE"},
        {"\xfe\xff\0n\0a", 6, "UTF-16BE"},
        {"n\0a\0m\0e\0:\0", 10, "UTF-16LE"},
        {"\0n\0a\0m\0e\0:", 10, "UTF-16BE"},
        {"\xff\xfe\0\0n\0\0\0", 8, "UTF-32LE"},
        {"\0\0\xfe\xff\0\0\0n", 8, "UTF-32BE"},
        {"name: x\n", 8, NULL},
        {"\0\0\0\0\0\0", 6, NULL},
        {"ab\0\0cd\0\0", 8, NULL},
        {"a\0", 2, NULL},
        {"a\0b", 3, NULL},
        {"a\0b\0", 4, "UTF-16LE"},
        {"\0a\0b", 4, "UTF-16BE"},
        {"\xff", 1, NULL},
        {"\xff\xfe", 2, "UTF-16LE"},
        {"\xfe\xff", 2, "UTF-16BE"},
        {"\xff\xfe\0", 3, "UTF-16LE"},
        {"\xff\xfe\0\0", 4, "UTF-32LE"},
        {"\0\0\xfe", 3, NULL},
        {"\0\0\xfe\xff", 4, "UTF-32BE"},
        /* what begins like UTF-16 for 32 bytes is, whatever follows */
        {"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0qr", 34, "UTF-16LE"},
        {"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0pq", 32, NULL},
        {"\0a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0pqr", 34, "UTF-16BE"},
        {"\0a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0oqr", 32, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_status status = tr_encoding_check("m.yaml", cases[i].text, cases[i].size);
        assert_int_equal(status, cases[i].encoding ? TR_EFORMAT : TR_OK);
        if (status == TR_OK) continue;
        assert_ptr_equal(strstr(tr_error_message(), "m.yaml: the text is in UTF-"), tr_error_message());
        assert_non_null(strstr(tr_error_message(), cases[i].encoding));
        tr_config *root;
        assert_int_equal(tr_config_parse(cases[i].text, cases[i].size, "m.yaml", &root), TR_EFORMAT);
        assert_non_null(strstr(tr_error_message(), cases[i].encoding));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_no_text),
        cmocka_unit_test(other_encodings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
