/* The first bytes of .npy files and the places that messages about them name. What lies behind the header
 * belongs to the data and is not looked at.
 */
#include "base/fail.h"
#include "io/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void expect(const void *bytes, size_t size, tr_status status, const char *message)
{
    struct tr_npy npy;
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    const tr_status got = tr_npy_parse("x.npy", exact, size, &npy);
    free(exact);
    if (got != status || strcmp(tr_error_message(), message) != 0)
        fail_msg("%s, \"%s\", not \"%s\"", tr_status_name(got), tr_error_message(), message);
}

#define NO_NPY "\"x.npy\" does not begin as an .npy file does; write it with numpy.save()"

static void first_bytes_are_checked(void **state)
{
    (void)state;
    expect("\x93NUMPY\1\0\0", 9, TR_EFORMAT, NO_NPY);
    expect("\x93NUMPX\1\0\0\0", 10, TR_EFORMAT, NO_NPY);
    expect("\x92NUMPY\1\0\0\0", 10, TR_EFORMAT, NO_NPY);
    expect("\x93NUMPY\1\0\0\0", 10, TR_EFORMAT,
           "\"x.npy\": there is no dictionary at character 1 of the header; write the file again with "
           "numpy.save()");
    expect("\x93NUMPY\0\0\0\0", 10, TR_EUNSUPPORTED,
           "\"x.npy\" is an .npy file of version 0.0; known are 1.0 to 3.0");
    expect("\x93NUMPY\4\2\0\0", 10, TR_EUNSUPPORTED,
           "\"x.npy\" is an .npy file of version 4.2; known are 1.0 to 3.0");
    expect("\x93NUMPY\1\0\2\1{}", 12, TR_EFORMAT,
           "\"x.npy\": a header of 258 bytes does not fit a file of 12; is it complete?");
    expect("\x93NUMPY\1\0\3\0{}", 12, TR_EFORMAT,
           "\"x.npy\": a header of 3 bytes does not fit a file of 12; is it complete?");
    expect("\x93NUMPY\2\0\0\0\0", 11, TR_EFORMAT,
           "\"x.npy\": a header of 0 bytes does not fit a file of 11; is it complete?");
    expect("\x93NUMPY\2\0\1\0\2\3", 12, TR_EFORMAT,
           "\"x.npy\": a header of 50462721 bytes does not fit a file of 12; is it complete?");
    expect("\x93NUMPY\3\0\1\0\0\0", 12, TR_EFORMAT,
           "\"x.npy\": a header of 1 bytes does not fit a file of 12; is it complete?");
}

/* Headers that end where something is missing, each with bytes of data that would complete it. */
static const struct {
    const char *dictionary, *behind, *message;
} cut[] = {
    {"", "{", "there is no dictionary at character 1"},
    {" ", "{", "there is no dictionary at character 2"},
    {"{", "'", "there is no text in quotes at character 2"},
    {"{'descr", "'", "a text does not end at character 8"},
    {"{'shape': (", "3L)", "there is no size at character 12"},
    {"{'shape': (3", "L,)", "the shape is not a tuple at character 13"},
    {"{'shape': (3L", ",)", "the shape is not a tuple at character 14"},
    {"{'shape': (3, 4", ")", "the shape is not a tuple at character 16"},
};

static void headers_end_where_they_say(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH(cut); i++) {
        char file[128], message[256];
        const size_t length = strlen(cut[i].dictionary);
        memcpy(file, "\x93NUMPY\1\0", 8);
        file[8] = (char)length;
        file[9] = 0;
        memcpy(file + 10, cut[i].dictionary, length);
        strcpy(file + 10 + length, cut[i].behind);
        struct tr_npy npy;
        assert_int_equal(
            tr_npy_parse("x.npy", (const uint8_t *)file, 10 + length + strlen(cut[i].behind), &npy),
            TR_EFORMAT);
        snprintf(message, sizeof message, "%s", cut[i].message);
        if (!strstr(tr_error_message(), message))
            fail_msg("case %d: \"%s\" lacks \"%s\"", i, tr_error_message(), message);
    }
}

/* A description of a type is short. */
static void descriptions_have_a_largest_size(void **state)
{
    (void)state;
    for (size_t size = 1; size < 100; size++) {
        char file[256], type[101] = "";
        struct tr_npy npy;
        memset(type, 'q', size);
        const int length = snprintf(file + 10, sizeof file - 10,
                                    "{'descr': '%s', 'fortran_order': False, 'shape': ()}", type);
        memcpy(file, "\x93NUMPY\1\0", 8);
        file[8] = (char)length;
        file[9] = 0;
        const tr_status status = tr_npy_parse("x.npy", (const uint8_t *)file, 10 + (size_t)length, &npy);
        assert_int_not_equal(status, TR_OK);
        assert_int_equal(strstr(tr_error_message(), "a text is too long") != NULL, size >= 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_bytes_are_checked),
        cmocka_unit_test(headers_end_where_they_say),
        cmocka_unit_test(descriptions_have_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
