/* Bad JSON is refused with its place and name; what is written is fixed to the byte and reads back. */
#include "base/json.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <string.h>

static void assert_message(const char *text)
{
    assert_string_equal(tr_error_message(), text);
}

static void write_all(struct tr_json_writer *json, bool lines)
{
    tr_json_begin(json, lines);
    tr_json_text(json, "name", "a \"b\"\n\x01\xff");
    tr_json_integer(json, "least", INT64_MIN);
    tr_json_open_object(json, "inner");
    tr_json_double(json, "tenth", 0.1);
    tr_json_float(json, "float tenth", 0.1f);
    tr_json_double(json, "nan", NAN);
    tr_json_float(json, "infinite", INFINITY);
    tr_json_close_object(json);
    tr_json_open_array(json, "shape");
    tr_json_integer(json, NULL, 5);
    tr_json_integer(json, NULL, 32);
    tr_json_close_array(json);
    tr_json_open_object(json, "empty");
    tr_json_close_object(json);
    tr_json_bool(json, "last", true);
}

static void objects_have_fixed_bytes(void **state)
{
    (void)state;
    static const char one_line[] =
        "{\"name\":\"a "
        "\\\"b\\\"\\n\\u0001\xef\xbf\xbd\",\"least\":-9223372036854775808,\"inner\":{\"tenth\":0.1,"
        "\"float tenth\":0.1,\"nan\":null,\"infinite\":null},\"shape\":[5,32],\"empty\":{},\"last\":true}";
    static const char lines[] =
        "{\n  \"name\": \"a \\\"b\\\"\\n\\u0001\xef\xbf\xbd\",\n  \"least\": "
        "-9223372036854775808,\n  \"inner\": {\n    \"tenth\": 0.1,\n    \"float tenth\": "
        "0.1,\n    \"nan\": null,\n    \"infinite\": null\n  },\n  \"shape\": [5, 32],\n  "
        "\"empty\": {},\n  \"last\": true\n}\n";
    for (int i = 0; i < 2; i++) {
        struct tr_json_writer json;
        char *text;
        write_all(&json, i == 1);
        assert_int_equal(tr_json_finish(&json, &text), TR_OK);
        assert_string_equal(text, i == 1 ? lines : one_line);
        json_t *root;
        assert_int_equal(tr_json_parse(text, strlen(text), "test", &root), TR_OK);
        int64_t least;
        assert_int_equal(tr_json_get_integer(root, "test", "least", INT64_MIN, 0, &least), TR_OK);
        assert_true(least == INT64_MIN);
        json_decref(root);
        tr_free(text);
    }
}

static int refuse(size_t size, void *user)
{
    (void)size;
    int64_t *left = user;
    return (*left)-- == 0;
}

static void failing_allocations_are_reported_at_the_end(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_json_writer json;
        char *text = NULL;
        int64_t left = at;
        assert_true(at < 100);
        tr_alloc_set_hook(refuse, &left);
        write_all(&json, false);
        tr_status status = tr_json_finish(&json, &text);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void bad_documents_are_refused(void **state)
{
    (void)state;
    /* The words are jansson's; the place is checked as far as its versions agree. */
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"", "f:1:"},
        {"[]", "f: bad JSON: an object {...} is needed"},
        {"{\"a\":1,\"a\":2}", "f:1:"},
        {"{\"a\":1}x", "f:1:"},
        {"{\"a\":\n01}", "f:2:"},
        {"{\"a\":99999999999999999999}", "f:1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root;
        assert_int_equal(tr_json_parse(cases[i].text, strlen(cases[i].text), "f", &root), TR_EFORMAT);
        assert_null(root);
        if (strncmp(tr_error_message(), cases[i].place, strlen(cases[i].place)) != 0)
            fail_msg("\"%s\" does not begin with \"%s\"", tr_error_message(), cases[i].place);
        assert_non_null(strstr(tr_error_message(), "bad JSON"));
    }
    static char deep[20000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    json_t *root;
    assert_int_equal(tr_json_parse(deep, sizeof deep, "f", &root), TR_EFORMAT);
}

static void members_are_checked(void **state)
{
    (void)state;
    static const char text[] = "{\"n\": 5, \"t\": \"x\", \"r\": 1.5, \"o\": {}, \"a\": []}";
    json_t *root, *inner;
    int64_t integer;
    const char *string;
    assert_int_equal(tr_json_parse(text, strlen(text), "f", &root), TR_OK);
    assert_int_equal(tr_json_get_integer(root, "f", "n", 5, 5, &integer), TR_OK);
    assert_int_equal(integer, 5);
    assert_int_equal(tr_json_get_integer(root, "f", "n", 6, 9, &integer), TR_EFORMAT);
    assert_message("f: \"n\" is 5; it must be from 6 to 9");
    assert_int_equal(tr_json_get_integer(root, "f", "r", 0, 9, &integer), TR_EFORMAT);
    assert_message("f: \"r\" is a number with a point; it must be an integer");
    assert_int_equal(tr_json_get_text(root, "f", "t", &string), TR_OK);
    assert_string_equal(string, "x");
    assert_int_equal(tr_json_get_text(root, "f", "missing", &string), TR_EFORMAT);
    assert_message("f: \"missing\" is missing");
    assert_int_equal(tr_json_get_object(root, "f", "o", &inner), TR_OK);
    assert_int_equal(tr_json_get_object(root, "f", "a", &inner), TR_EFORMAT);
    assert_message("f: \"a\" is an array; it must be an object");
    assert_int_equal(tr_json_get_array(root, "f", "a", &inner), TR_OK);
    json_decref(root);
}

int main(void)
{
    setlocale(LC_ALL, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_fixed_bytes),
        cmocka_unit_test(failing_allocations_are_reported_at_the_end),
        cmocka_unit_test(bad_documents_are_refused),
        cmocka_unit_test(members_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
