/* Bad JSON is refused with its place and name; what is written is fixed to the byte and reads back. */
#include "base/text/json.h"

#include "base/alloc.h"
#include "mutate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
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
        tr_json *document;
        assert_int_equal(tr_json_parse(text, strlen(text), "test", &document), TR_OK);
        int64_t least;
        assert_int_equal(tr_json_get_integer(tr_json_root(document), "test", "least", INT64_MIN, 0, &least),
                         TR_OK);
        assert_true(least == INT64_MIN);
        tr_json_destroy(&document);
        tr_free(text);
    }
}

static int refuse(size_t size, void *user)
{
    (void)size;
    int64_t *left = user;
    return (*left)-- == 0;
}

static void failing_allocations_are_reported(void **state)
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
        tr_json *document = NULL;
        if (status == TR_OK) status = tr_json_parse(text, strlen(text), "f", &document);
        tr_json_destroy(&document);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Parses a document and returns whether it is good; the message stands otherwise. */
static bool parses(const char *text, size_t size)
{
    tr_json *document;
    tr_status status = tr_json_parse(text, size, "f", &document);
    assert_true(status == TR_OK || status == TR_EFORMAT);
    assert_int_equal(document != NULL, status == TR_OK);
    tr_json_destroy(&document);
    return status == TR_OK;
}

static void bad_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "f:1:1: bad JSON: an object {...} is needed"},
        {"[]", "f:1:1: bad JSON: an object {...} is needed"},
        {" \n {", "f:2:3: bad JSON: a key in quotes is needed"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "f:1:20: bad JSON: an object has a key twice"},
        {"{\"a\":{\"b\":1,\"b\":1}}", "f:1:19: bad JSON: an object has a key twice"},
        {"{\"a\":1}x", "f:1:8: bad JSON: something follows the end"},
        {"{\"a\":\n01}", "f:2:3: bad JSON: a number must not begin with 0"},
        {"{\"a\":-}", "f:1:7: bad JSON: a number is incomplete"},
        {"{\"a\":1.}", "f:1:8: bad JSON: a number is incomplete"},
        {"{\"a\":1e+}", "f:1:9: bad JSON: a number is incomplete"},
        {"{\"a\":.5}", "f:1:6: bad JSON: a value is needed"},
        {"{\"a\":+5}", "f:1:6: bad JSON: a value is needed"},
        {"{\"a\":9223372036854775808}", "f:1:25: bad JSON: a number does not fit 64 bits"},
        {"{\"a\":1e999}", "f:1:11: bad JSON: a number does not fit 64 bits"},
        {"{\"a\":NaN}", "f:1:6: bad JSON: a value is needed"},
        {"{\"a\":tru}", "f:1:6: bad JSON: a value is needed"},
        {"{\"a\" 1}", "f:1:6: bad JSON: ':' is needed"},
        {"{\"a\":1 \"b\":2}", "f:1:8: bad JSON: ',' or '}' is needed"},
        {"{\"a\":[1 2]}", "f:1:9: bad JSON: ',' or ']' is needed"},
        {"{\"a\":1,}", "f:1:8: bad JSON: a key in quotes is needed"},
        {"{\"a\":[1,]}", "f:1:9: bad JSON: a value is needed"},
        {"{\"a\":[,1]}", "f:1:7: bad JSON: a value is needed"},
        {"{'a':1}", "f:1:2: bad JSON: a key in quotes is needed"},
        {"{\"a\":\"x", "f:1:8: bad JSON: a text has no end, or a NUL"},
        {"{\"a\":\"\n\"}", "f:1:7: bad JSON: a control character must be escaped"},
        {"{\"a\":\"\\x\"}", "f:1:7: bad JSON: no such escape"},
        {"{\"a\":\"\\", "f:1:7: bad JSON: no such escape"},
        {"{\"a\":\"\\u12g4\"}", "f:1:11: bad JSON: four hexadecimal digits are needed after \\u"},
        {"{\"a\":\"\\u00", "f:1:11: bad JSON: four hexadecimal digits are needed after \\u"},
        {"{\"a\":\"\\u0000\"}", "f:1:13: bad JSON: a text must not have a NUL"},
        {"{\"a\":\"\\udc00\\ud800\"}", "f:1:13: bad JSON: half of a surrogate pair"},
        {"{\"a\":\"\\ud800\"}", "f:1:13: bad JSON: half of a surrogate pair"},
        {"{\"a\":\"\\ud800\\u0041\"}", "f:1:19: bad JSON: half of a surrogate pair"},
        {"{\"a\":\"\xc0\x80\"}", "f:1:7: bad JSON: bad UTF-8"},
        {"{\"a\":\"\xed\xa0\x80\"}", "f:1:7: bad JSON: bad UTF-8"},
        {"{\"a\":\"\xe2\x82\"}", "f:1:7: bad JSON: bad UTF-8"},
        {"\xef\xbb\xbf{}", "f:1:1: bad JSON: an object {...} is needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parses(cases[i].text, strlen(cases[i].text))) fail_msg("%s was taken", cases[i].text);
        assert_message(cases[i].message);
    }
    assert_false(parses("{\"a\":\"x\0y\"}", 11));
    assert_false(parses("{}\0", 3));
    assert_false(parses("{\0}", 3));
}

static void nesting_is_limited(void **state)
{
    (void)state;
    static char deep[200000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    assert_false(parses(deep, sizeof deep));
    assert_message("f:1:70: bad JSON: nested too deeply");
    memset(deep + 68, ']', 63);
    deep[131] = '}';
    assert_true(parses(deep, 132));
}

static void values_are_decoded(void **state)
{
    (void)state;
    static const char text[] =
        "{ \"t\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\xf0\x9f\x98\x80\",\n"
        "\t\"n\": [0, -0, -7, 9223372036854775807, -9223372036854775808, 0.5, 1E2, -1.25e-1],\r\n"
        "\"b\": [true, false, null], \"o\": {\"z\": {}, \"y\": []} }";
    tr_json *document;
    assert_int_equal(tr_json_parse(text, strlen(text), "f", &document), TR_OK);
    const struct tr_json_value *root = tr_json_root(document), *value;
    const char *string;
    assert_int_equal(root->count, 4);
    assert_int_equal(tr_json_get_text(root, "f", "t", &string), TR_OK);
    assert_string_equal(string, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
    static const int64_t integers[] = {0, 0, -7, INT64_MAX, INT64_MIN};
    static const double reals[] = {0.5, 100, -0.125};
    assert_int_equal(tr_json_get_array(root, "f", "n", &value), TR_OK);
    assert_int_equal(value->count, 8);
    value = value->first;
    for (int i = 0; i < 5; i++, value = value->next) {
        assert_int_equal(value->kind, TR_JSON_INTEGER);
        assert_true(value->integer == integers[i]);
    }
    for (int i = 0; i < 3; i++, value = value->next) {
        assert_int_equal(value->kind, TR_JSON_REAL);
        assert_true(value->real == reals[i]);
    }
    assert_null(value);
    value = tr_json_find(root, "b")->first;
    assert_true(value->kind == TR_JSON_BOOL && value->truth);
    assert_true(value->next->kind == TR_JSON_BOOL && !value->next->truth);
    assert_int_equal(value->next->next->kind, TR_JSON_NULL);
    /* Members keep their order, and are found by key all the same. */
    value = tr_json_find(root, "o");
    assert_string_equal(value->first->key, "z");
    assert_ptr_equal(tr_json_find(value, "y"), value->first->next);
    assert_null(tr_json_find(value, "x"));
    assert_null(tr_json_find(tr_json_find(value, "y"), "x"));
    assert_null(tr_json_find(NULL, "x"));
    tr_json_destroy(&document);
    tr_json_destroy(&document);
}

static void many_members_are_found(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct tr_json_writer json;
    char *text, key[16];
    tr_json_begin(&json, false);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "%d", i * 7919 % COUNT);
        tr_json_integer(&json, key, i);
    }
    assert_int_equal(tr_json_finish(&json, &text), TR_OK);
    tr_json *document;
    assert_int_equal(tr_json_parse(text, strlen(text), "f", &document), TR_OK);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "%d", i * 7919 % COUNT);
        assert_true(tr_json_find(tr_json_root(document), key)->integer == i);
    }
    tr_json_destroy(&document);
    tr_free(text);
}

static void members_are_checked(void **state)
{
    (void)state;
    static const char text[] = "{\"n\": 5, \"t\": \"x\", \"r\": 1.5, \"o\": {}, \"a\": []}";
    tr_json *document;
    const struct tr_json_value *inner;
    int64_t integer;
    const char *string;
    assert_int_equal(tr_json_parse(text, strlen(text), "f", &document), TR_OK);
    const struct tr_json_value *root = tr_json_root(document);
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
    /* Another kind is as good as none. */
    assert_int_equal(tr_json_integer_or(root, "n", 7), 5);
    assert_int_equal(tr_json_integer_or(root, "t", 7), 7);
    assert_int_equal(tr_json_integer_or(root, "r", 7), 7);
    assert_int_equal(tr_json_integer_or(root, "missing", 7), 7);
    assert_string_equal(tr_json_text_or_empty(root, "t"), "x");
    assert_string_equal(tr_json_text_or_empty(root, "n"), "");
    assert_string_equal(tr_json_text_or_empty(root, "missing"), "");
    tr_json_destroy(&document);
}

/* Whether our reading of a value is jansson's. */
static bool agree(const struct tr_json_value *ours, const json_t *theirs)
{
    switch (ours->kind) {
    case TR_JSON_NULL:
        return json_is_null(theirs);
    case TR_JSON_BOOL:
        return json_is_boolean(theirs) && json_is_true(theirs) == ours->truth;
    case TR_JSON_INTEGER:
        return json_is_integer(theirs) && json_integer_value(theirs) == ours->integer;
    case TR_JSON_REAL:
        return json_is_real(theirs) && json_real_value(theirs) == ours->real;
    case TR_JSON_TEXT:
        return json_is_string(theirs) && strcmp(json_string_value(theirs), ours->text) == 0;
    default:
        break;
    }
    bool object = ours->kind == TR_JSON_OBJECT;
    size_t count = object ? json_object_size(theirs) : json_array_size(theirs), index = 0;
    if ((object ? !json_is_object(theirs) : !json_is_array(theirs)) || (size_t)ours->count != count)
        return false;
    for (const struct tr_json_value *value = ours->first; value; value = value->next)
        if (!agree(value, object ? json_object_get(theirs, value->key) : json_array_get(theirs, index++)))
            return false;
    return true;
}

/* Whatever the bytes: no crash, no leak, and the same judgement and values as an independent reader. */
static void damaged_documents_are_read_as_jansson_reads_them(void **state)
{
    (void)state;
    enum { ROUNDS = 100000 };
    static const char seed[] =
        "{\"a\": [1, -2.5e3, true, null, {}], \"\\u00e9\\ud83d\\ude00\": {\"b\": \"x\\n\xe2\x82\xac\", "
        "\"c\": [[], [0]]}, \"d\": false}";
    char damaged[sizeof seed + 64];
    int64_t live = tr_alloc_live();
    int good = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        size_t size = mutate_bytes(round, seed, sizeof seed - 1, damaged);
        tr_json *ours;
        tr_status status = tr_json_parse(damaged, size, "f", &ours);
        json_t *theirs = json_loadb(damaged, size, JSON_REJECT_DUPLICATES, NULL);
        assert_true(status == TR_OK || status == TR_EFORMAT);
        if ((status == TR_OK) != json_is_object(theirs) || (ours && !agree(tr_json_root(ours), theirs)))
            fail_msg("round %u: %s: %.*s", round, ours ? "taken" : tr_error_message(), (int)size, damaged);
        good += status == TR_OK;
        json_decref(theirs);
        tr_json_destroy(&ours);
    }
    assert_true(good > ROUNDS / 100 && good < ROUNDS / 2);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    setlocale(LC_ALL, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_fixed_bytes),
        cmocka_unit_test(failing_allocations_are_reported),
        cmocka_unit_test(bad_documents_are_refused),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(values_are_decoded),
        cmocka_unit_test(many_members_are_found),
        cmocka_unit_test(members_are_checked),
        cmocka_unit_test(damaged_documents_are_read_as_jansson_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
