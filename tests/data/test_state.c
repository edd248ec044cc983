/* States of models as text: their first line, their lines, and what a damaged one is refused for. */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define START                                                                                                \
    "words.txt:1: does not start with \"trireme words 1, N classes, N lines\"; take the file that was "      \
    "saved with the model"
#define IMPOSSIBLE                                                                                           \
    "words.txt:1: impossible number of classes or lines; take the file that was saved with the model"

static void first_lines_are_checked(void **unused)
{
    static const struct {
        const char *text;
        tr_status status;
        const char *message;
    } cases[] = {
        {"trireme words 1, 3 classes, 0 lines\n", TR_OK, NULL},
        {"trireme words 1, 0 classes, 0 lines\n", TR_OK, NULL},
        {"trireme words 1, 16777216 classes, 0 lines\n", TR_OK, NULL},
        {"trireme words 1, 16777217 classes, 0 lines\n", TR_EFORMAT, IMPOSSIBLE},
        {"trireme words 1, -1 classes, 0 lines\n", TR_EFORMAT, IMPOSSIBLE},
        {"trireme words 1, 3 classes, -1 lines\n", TR_EFORMAT, IMPOSSIBLE},
        {"trireme words 1, 3 classes, 37 lines\n", TR_OK, NULL},
        {"trireme words 1, 3 classes, 38 lines\n", TR_EFORMAT, IMPOSSIBLE},
        {"", TR_EFORMAT, START},
        {"trireme words 1, 3 classes, 0 lines", TR_EFORMAT, START},
        {"trireme words 1, 3 classes, 0 lines \n", TR_EFORMAT, START},
        {"trireme words 1, 3 classes, 0\n", TR_EFORMAT, START},
        {"trireme words 1, three classes, 0 lines\n", TR_EFORMAT, START},
        {"trireme words 2, 3 classes, 0 lines\n", TR_EFORMAT, START},
        {"trireme word 1, 3 classes, 0 lines\n", TR_EMISMATCH,
         "these data need words.txt of the model, which was trained on data that left word.txt; give data of "
         "the kind "
         "that it was trained on"},
        {"trireme wordss 1, 3 classes, 0 lines\n", TR_EMISMATCH, "left wordss.txt"},
        {"trireme WORDS 1, 3 classes, 0 lines\n", TR_EFORMAT, START},
        {"trireme other 2, 3 classes, 0 lines\n", TR_EFORMAT, START},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_state_reader reader;
        const tr_status status = tr_state_begin(cases[i].text, "words", &reader);
        if (status != cases[i].status || (status != TR_OK && !strstr(tr_error_message(), cases[i].message)))
            fail_msg("\"%s\": %s, %s", cases[i].text, tr_status_name(status),
                     status ? tr_error_message() : "");
    }
    struct tr_state_reader reader;
    const char *line;
    size_t length;
    assert_int_equal(tr_state_begin(NULL, "words", &reader), TR_OK); /* there is none */
    assert_int_equal(reader.classes, 0);
    assert_int_equal(reader.lines, 0);
    assert_int_equal(tr_state_end(&reader), TR_OK);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_EFORMAT);
}

static void lines_are_read(void **unused)
{
    static const char text[] = "trireme words 1, 7 classes, 3 lines\none\n\nthree\n";
    struct tr_state_reader reader;
    const char *line;
    size_t length;
    (void)unused;
    assert_int_equal(tr_state_begin(text, "words", &reader), TR_OK);
    assert_int_equal(reader.classes, 7);
    assert_int_equal(reader.lines, 3);
    assert_int_equal(tr_state_end(&reader), TR_EFORMAT);
    assert_string_equal(
        tr_error_message(),
        "words.txt:2: has more lines than were expected; take the file that was saved with the model");
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_OK);
    assert_true(length == 3 && memcmp(line, "one", 3) == 0);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_OK);
    assert_int_equal(length, 0);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_OK);
    assert_true(length == 5 && memcmp(line, "three", 5) == 0);
    assert_int_equal(tr_state_end(&reader), TR_OK);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_EFORMAT);
    assert_string_equal(tr_error_message(),
                        "words.txt:5: ends too early; take the file that was saved with the model");
    assert_int_equal(tr_state_begin("trireme words 1, 7 classes, 3 lines\none\ntwo", "words", &reader),
                     TR_OK);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_OK);
    assert_int_equal(tr_state_next(&reader, &line, &length), TR_EFORMAT);
    assert_string_equal(tr_error_message(),
                        "words.txt:3: ends too early; take the file that was saved with the model");
}

/* What may follow: names of classes, and those of categories, in this order; nothing else. */
static void parts_follow_each_other(void **unused)
{
    static const struct {
        const char *kind, *rest;
        tr_status status;
    } cases[] = {
        {"scaling", "", TR_OK},
        {"scaling", "x\n", TR_EFORMAT},
        {"scaling", "trireme classes 1, 1 classes, 1 lines\na\n", TR_OK},
        {"scaling", "trireme categories 1, 0 classes, 1 lines\n0\n", TR_OK},
        {"scaling", "trireme scaling 1, 0 classes, 0 lines\n", TR_EFORMAT},
        {"classes", "trireme classes 1, 1 classes, 1 lines\na\n", TR_EFORMAT},
        {"classes", "trireme categories 1, 0 classes, 1 lines\n0\n", TR_OK},
        {"categories", "trireme classes 1, 1 classes, 1 lines\na\n", TR_EFORMAT},
        {"categories", "trireme categories 1, 0 classes, 1 lines\n0\n", TR_EFORMAT},
        {"categories", "", TR_OK},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_text text = TR_TEXT_INIT;
        struct tr_state_reader reader;
        tr_state_add_head(&text, cases[i].kind, 1, 0);
        tr_text_add(&text, cases[i].rest);
        assert_int_equal(tr_state_begin(text.bytes, cases[i].kind, &reader), TR_OK);
        const tr_status status = tr_state_end(&reader);
        if (status != cases[i].status) fail_msg("case %d: %s", i, tr_status_name(status));
        if (status != TR_OK)
            assert_non_null(strstr(tr_error_message(), "has more lines than its first line says"));
        tr_text_release(&text);
    }
    static const char both[] =
        "trireme scaling 1, 2 classes, 1 lines\n0 1\ntrireme classes 1, 2 classes, 2 lines\na\nb\n";
    assert_ptr_equal(tr_state_part(both, "classes"), both + 42);
    assert_null(tr_state_part(both, "scaling")); /* only what follows */
    assert_null(tr_state_part(both, "categories"));
    assert_null(tr_state_part("trireme classes 1, ", "classes"));
}

static void classes_are_written_and_read(void **unused)
{
    static const char *const names[] = {"cat", "ox"};
    static const struct {
        const char *text, *message;
    } refused[] = {
        {"trireme classes 1, 2 classes, 1 lines\ncat\n", "classes.txt:3: has neither one line per class nor "
                                                         "none; take the file that was saved with the model"},
        {"trireme classes 1, 2 classes, 2 lines\ncat\n", "classes.txt:3: ends too early"},
        {"trireme classes 1, 2 classes, 0 lines\ncat\n",
         "classes.txt:2: has more lines than its first line says"},
    };
    char *text;
    int32_t classes = -1;
    (void)unused;
    assert_int_equal(tr_state_of_classes(names, 2, &text), TR_OK);
    assert_string_equal(text, "trireme classes 1, 2 classes, 2 lines\ncat\nox\n");
    assert_int_equal(tr_state_read_classes(text, &classes), TR_OK);
    assert_int_equal(classes, 2);
    tr_free(text);
    assert_int_equal(tr_state_of_classes(NULL, 2, &text), TR_OK);
    assert_string_equal(text, "trireme classes 1, 2 classes, 0 lines\n");
    assert_int_equal(tr_state_read_classes(text, &classes), TR_OK);
    assert_int_equal(classes, 2);
    tr_free(text);
    assert_int_equal(tr_state_read_classes(NULL, &classes), TR_OK);
    assert_int_equal(classes, 0);
    for (int i = 0; i < LENGTH(refused); i++) {
        assert_int_equal(tr_state_read_classes(refused[i].text, &classes), TR_EFORMAT);
        if (!strstr(tr_error_message(), refused[i].message)) fail_msg("%s", tr_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_lines_are_checked),
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(parts_follow_each_other),
        cmocka_unit_test(classes_are_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
