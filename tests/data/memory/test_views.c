/* The format `memory`: what a model file makes of a program's examples, and what it refuses. */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/cache/store.h"
#include "data/source.h"
#include "data/support.h"
#include "refuse.h"
#include "trireme/arrays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Columns of 1 NaN 3, and of 2 4 9. */
static const float gaps[] = {1, 2, NAN, 4, 3, 9}, plain[] = {0, 0, 0, 0, 0, 0};
static const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8}, classes[] = {0, 2, 1};
static const int32_t words[] = {3, 1, 2, 0, 4, 4}, tags[] = {0, 1, -1, 1, 1, 0};

static const struct tr_arrays numbers_of = {.features = {gaps, TR_ARRAY_FLOAT32, 2, {3, 2}, {0}},
                                            .labels = {classes, TR_ARRAY_UINT8, 1, {3}, {0}}},
                              whole_of = {.features = {plain, TR_ARRAY_FLOAT32, 2, {3, 2}, {0}}},
                              images_of = {.features = {pixels, TR_ARRAY_UINT8, 3, {2, 2, 2}, {0}},
                                           .labels = {classes, TR_ARRAY_UINT8, 1, {2}, {0}}},
                              words_of = {.features = {words, TR_ARRAY_INT32, 2, {2, 3}, {0}},
                                          .labels = {tags, TR_ARRAY_INT32, 2, {2, 3}, {0}},
                                          .tokens = 1};

static tr_source *make(const struct tr_arrays *given)
{
    struct tr_arrays arrays = *given;
    tr_source *source = NULL;
    arrays.size = sizeof arrays;
    if (tr_source_from_arrays(&arrays, &source) != TR_OK) fail_msg("%s", tr_error_message());
    return source;
}

/* Opens the description where the program gave `source` under the name "mine". */
static tr_status open_view(const tr_source *source, const char *description, const char *state,
                           tr_source **out)
{
    const struct tr_named_source given[] = {{"other", NULL}, {"mine", source}};
    tr_store *store;
    *out = NULL;
    TR_TRY(tr_store_create(NULL, NULL, 0, &store));
    tr_store_give(store, given, 2);
    const tr_status status = tr_source_open_through(store, description, test_directory(), state, out);
    tr_store_destroy(&store);
    return status;
}

static tr_source *must_view(const tr_source *source, const char *description, const char *state)
{
    tr_source *view;
    if (open_view(source, description, state, &view) != TR_OK)
        fail_msg("%s: %s", description, tr_error_message());
    return view;
}

static void expect_refused(const struct tr_arrays *arrays, const char *description, const char *state,
                           tr_status wanted, const char *part)
{
    tr_source *source = make(arrays), *view;
    const int64_t live = tr_alloc_live();
    const tr_status status = open_view(source, description, state, &view);
    if (status != wanted || !strstr(tr_error_message(), part))
        fail_msg("%s: %s, \"%s\" lacks \"%s\"", description, tr_status_name(status), tr_error_message(),
                 part);
    assert_null(view);
    assert_int_equal(tr_alloc_live(), live);
    tr_source_close(&source);
}

static char *state_of(const tr_source *source, const char *wanted_name)
{
    const char *name;
    char *text;
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    if (wanted_name)
        assert_string_equal(name, wanted_name);
    else
        assert_null(name);
    assert_int_equal(text != NULL, wanted_name != NULL);
    return text;
}

static void expect_numbers(const tr_source *source, const double *wanted, int count)
{
    for (int64_t i = 0; i < source->info.count; i++) {
        float got[8];
        int64_t length;
        assert_int_equal(tr_source_read(source, i, got, 8, &length, NULL), TR_OK);
        assert_int_equal(length, count);
        for (int k = 0; k < count; k++)
            if (!(fabs(got[k] - wanted[i * count + k]) < 1e-6))
                fail_msg("number %d of example %d is %g, not %g", k, (int)i, (double)got[k],
                         wanted[i * count + k]);
    }
}

/* ---- what it changes ---- */

static void gaps_are_filled(void **unused)
{
    (void)unused;
    tr_source *source = make(&numbers_of);
    tr_source *view = must_view(source, "{memory: {name: mine, missing: mean}}", NULL);
    expect_numbers(view, (const double[]){1, 2, 2, 4, 3, 9}, 2);
    assert_int_equal(tr_source_info(view)->classes, 3);
    tr_source_close(&view);
    view = must_view(source, "{memory: {name: mine, missing: constant, missing_value: -7.5}}", NULL);
    expect_numbers(view, (const double[]){1, 2, -7.5, 4, 3, 9}, 2);
    int32_t class;
    assert_int_equal(tr_source_read(view, 1, NULL, 0, NULL, &class), TR_OK);
    assert_int_equal(class, 2);
    tr_source_close(&view);
    /* What is filled in takes part in the scaling: 1 2 3 with mean 2, and 2 4 9 with mean 5. */
    view = must_view(source, "{memory: {name: mine, missing: mean, standardize: true}}", NULL);
    const double a = sqrt(2.0 / 3), b = sqrt(26.0 / 3);
    expect_numbers(view, (const double[]){-1 / a, -3 / b, 0, -1 / b, 1 / a, 4 / b}, 2);
    char *state = state_of(view, "scaling.txt");
    assert_non_null(strstr(state, "trireme scaling 1, 3 classes, 2 lines\n"));
    tr_source_close(&view);
    /* One that takes the state does the same, and others by the state alone. */
    view = must_view(source, "{memory: {name: mine, missing: mean, standardize: true}}", state);
    expect_numbers(view, (const double[]){-1 / a, -3 / b, 0, -1 / b, 1 / a, 4 / b}, 2);
    tr_source_close(&view);
    tr_source *other = make(&whole_of);
    view = must_view(other, "{memory: {name: mine}}", state);
    expect_numbers(view, (const double[]){-2 / a, -5 / b, -2 / a, -5 / b, -2 / a, -5 / b}, 2);
    tr_source_close(&view);
    tr_source_close(&other);
    tr_text_free(state);
    tr_source_close(&source);
}

/* Where nothing is to be changed, the numbers are those of the program. */
static void examples_stay_as_they_are(void **unused)
{
    (void)unused;
    tr_source *source = make(&whole_of), *view = must_view(source, "{memory: {name: mine}}", NULL);
    char digest[3][65];
    expect_numbers(view, (const double[]){0, 0, 0, 0, 0, 0}, 2);
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    assert_int_equal(tr_source_digest(view, digest[1]), TR_OK);
    assert_string_equal(digest[0], digest[1]);
    tr_source_close(&view);
    tr_source_close(&source);
    source = make(&numbers_of);
    view = must_view(source, "{memory: {name: mine, missing: constant}}", NULL);
    assert_int_equal(tr_source_digest(view, digest[0]), TR_OK);
    tr_source_close(&view);
    view = must_view(source, "{memory: {name: mine, missing: constant, missing_value: 1}}", NULL);
    assert_int_equal(tr_source_digest(view, digest[1]), TR_OK);
    tr_source_close(&view);
    view = must_view(source, "{memory: {name: mine, missing: mean}}", NULL);
    assert_int_equal(tr_source_digest(view, digest[2]), TR_OK);
    tr_source_close(&view);
    assert_string_not_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    tr_source_close(&source);
    source = make(&images_of);
    view = must_view(source, "{memory: {name: mine}}", NULL);
    assert_ptr_equal(view->resident, pixels);
    char *state = state_of(view, "classes.txt");
    assert_string_equal(state, "trireme classes 1, 3 classes, 0 lines\n");
    tr_text_free(state);
    tr_source_close(&view);
    tr_source_close(&source);
    source = make(&words_of);
    view = must_view(source, "{memory: {name: mine}}", NULL);
    assert_int_equal(view->class->labelled(view, 0), 2);
    assert_int_equal(view->class->labelled(view, 1), 3);
    state_of(view, NULL);
    tr_source_close(&view);
    tr_source_close(&source);
}

/* A view lives on when the program has closed its source. */
static void views_keep_the_examples(void **unused)
{
    uint8_t got[4];
    (void)unused;
    tr_source *source = make(&images_of), *view = must_view(source, "{memory: {name: mine}}", NULL);
    tr_source_close(&source);
    assert_int_equal(tr_source_read(view, 1, got, 4, NULL, NULL), TR_OK);
    assert_memory_equal(got, pixels + 4, 4);
    tr_source_close(&view);
}

/* Numbers that stand for names, as a table's state says, are expanded; a missing one is none of the names. */
static void names_are_expanded(void **unused)
{
    static const float rows[] = {2, 0, 5, NAN, NAN, 1};
    (void)unused;
    write_text("table", "word,number,label\nox,1,0\ncat,3,1\nox,5,0\nelk,,1\n");
    tr_source *table = must_open("{csv: {path: table, categories: [word], missing: mean}}");
    char *state = state_of(table, "scaling.txt");
    tr_source_close(&table);
    tr_source *source = make(&(struct tr_arrays){.features = {rows, TR_ARRAY_FLOAT32, 2, {3, 2}, {0}}});
    tr_source *view = must_view(source, "{memory: {name: mine, missing: mean}}", state);
    assert_int_equal(tr_source_info(view)->floats, 4); /* cat, elk, ox; number */
    expect_numbers(view, (const double[]){0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 1}, 4);
    tr_source_close(&view);
    view = must_view(source, "{memory: {name: mine, missing: constant, missing_value: 8}}", state);
    expect_numbers(view, (const double[]){0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0, 1}, 4);
    for (int64_t at = 0, done = 0; !done; at++) {
        tr_source *again;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = open_view(source, "{memory: {name: mine, missing: mean}}", state, &again);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_source_close(&again);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&view);
    tr_source_close(&source);
    tr_text_free(state);
}

/* ---- what fails ---- */

/* An example of more numbers than there is room for on the stack, one of them a name. */
static void a_lack_of_memory_is_told(void **unused)
{
    enum { WIDE = 65 };
    static float wide[2][WIDE];
    struct tr_text table = TR_TEXT_INIT;
    const struct {
        struct tr_arrays arrays;
        const char *description;
    } cases[] = {
        {numbers_of, "{memory: {name: mine, missing: mean, standardize: true}}"},
        {numbers_of, "{memory: {name: mine, missing: constant}}"},
        {images_of, "{memory: {name: mine}}"},
        {words_of, "{memory: {name: mine}}"},
        {{.features = {wide, TR_ARRAY_FLOAT32, 2, {2, WIDE}, {0}}}, "{memory: {name: mine}}"},
    };
    (void)unused;
    for (int row = 0; row < 2; row++) {
        tr_text_add(&table, row ? "ox" : "cat");
        for (int k = 1; k < WIDE; k++) tr_text_addf(&table, ",%d", row + k);
        tr_text_add(&table, ",0\n");
        wide[1][WIDE - 1] = 7;
    }
    write_text("table", table.bytes);
    tr_text_release(&table);
    tr_source *source = must_open("{csv: {path: table, categories: [0]}}");
    char *names = state_of(source, "scaling.txt");
    tr_source_close(&source);
    for (int i = 0; i < LENGTH(cases); i++) {
        source = make(&cases[i].arrays);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_source *view = NULL;
            float features[WIDE + 1], label[4];
            char digest[65], *state = NULL;
            const char *name;
            int64_t length;
            refuse_begin(at);
            tr_status status = open_view(source, cases[i].description, i == 4 ? names : NULL, &view);
            if (status == TR_OK) status = tr_source_read(view, 1, features, WIDE + 1, &length, label);
            if (status == TR_OK) status = tr_source_digest(view, digest);
            if (status == TR_OK) status = tr_source_state(view, &name, &state);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("case %d, allocation %d: %s", i, (int)at, tr_status_name(status));
            if (done && i == 4) {
                assert_int_equal(length, WIDE + 1);
                assert_true(features[0] == 1 && features[1] == 0 && features[WIDE] == 7);
            }
            tr_text_free(state);
            tr_source_close(&view);
            assert_int_equal(tr_alloc_live(), live);
        }
        tr_source_close(&source);
    }
    tr_text_free(names);
}

static int fails_at; /* the example that cannot be read */

static int read_all_but_one(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    (void)user, (void)length;
    if (index == fails_at) return 5;
    for (int k = 0; features && k < 2; k++) ((float *)features)[k] = (float)(index + k);
    if (label) *(int32_t *)label = 0;
    return 0;
}

/* A program's function fails: where all examples are read, and where that one is. */
static void failures_of_a_function_are_told(void **unused)
{
    static const char scaled[] = "trireme scaling 1, 1 classes, 2 lines\n1 2\n1 2\n",
                      named[] = "trireme scaling 1, 1 classes, 3 lines\n0 1\n0 1\n0 1\n"
                                "trireme categories 1, 0 classes, 4 lines\n2\na\nb\n0\n";
    const char *const states[] = {NULL, scaled, named};
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    tr_source *source, *view;
    (void)unused;
    reader.info.count = 3;
    reader.info.features = TR_FEATURE_FLOATS;
    reader.info.floats = 2;
    reader.info.labels = TR_LABEL_CLASS;
    reader.info.classes = 1;
    reader.read = read_all_but_one;
    fails_at = 1;
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_OK);
    assert_int_equal(open_view(source, "{memory: {name: mine, standardize: true}}", NULL, &view), TR_EIO);
    assert_int_equal(open_view(source, "{memory: {name: mine, missing: mean}}", NULL, &view), TR_EIO);
    for (int i = 0; i < LENGTH(states); i++) {
        float features[3];
        char digest[65];
        view = must_view(source, "{memory: {name: mine, missing: constant}}", states[i]);
        assert_int_equal(tr_source_read(view, 0, features, 3, NULL, NULL), TR_OK);
        assert_int_equal(tr_source_read(view, 1, features, 3, NULL, NULL), TR_EIO);
        assert_non_null(strstr(tr_error_message(), "returned 5 for example 1"));
        assert_int_equal(tr_source_digest(view, digest), TR_EIO);
        tr_source_close(&view);
    }
    tr_source_close(&source);
}

/* ---- what it refuses ---- */

static void what_does_not_fit_is_refused(void **unused)
{
    static const char two[] = "trireme scaling 1, 0 classes, 2 lines\n0 1\n0 1\n",
                      three[] = "trireme scaling 1, 0 classes, 3 lines\n0 1\n0 1\n0 1\n",
                      of_two_classes[] = "trireme scaling 1, 2 classes, 2 lines\n0 1 0\n0 1 0\n",
                      classes_of_images[] = "trireme classes 1, 1 classes, 0 lines\n";
    (void)unused;
    expect_refused(&numbers_of, "{memory: {name: yours}}", NULL, TR_ENOTFOUND,
                   "the data \"yours\" come from the memory of a program, which has to give them in `data`");
    expect_refused(&numbers_of, "{memory: {name: mine}}", NULL, TR_EFORMAT,
                   "number 0 of example 1 is NaN; correct it, or set missing: mean or constant");
    expect_refused(&numbers_of, "{memory: {name: mine, standardize: true}}", NULL, TR_EFORMAT,
                   "number 0 of example 1 is NaN");
    expect_refused(
        &whole_of, "{memory: {name: mine}}", three, TR_EMISMATCH,
        "the data \"mine\" have 2 numbers an example, the model was trained with 3; give the same features");
    expect_refused(
        &whole_of, "{memory: {name: mine, missing: mean}}", two, TR_EMISMATCH,
        "the data \"mine\": missing: mean takes the means of the training data, which were read without");
    expect_refused(&whole_of, "{memory: {name: mine}}", "nonsense", TR_EFORMAT,
                   "scaling.txt:1: does not start with \"trireme scaling 1, N classes, N lines\"");
    expect_refused(&numbers_of, "{memory: {name: mine, missing: mean}}", of_two_classes, TR_EMISMATCH,
                   "the data \"mine\" have 3 classes, the training data 2; correct the labels");
    expect_refused(&images_of, "{memory: {name: mine}}", classes_of_images, TR_EMISMATCH,
                   "the data \"mine\" have 3 classes, the training data 1; correct the labels");
    expect_refused(&images_of, "{memory: {name: mine, standardize: true}}", NULL, TR_EINVAL,
                   "the data \"mine\" are not numbers; leave out standardize and missing");
    expect_refused(&words_of, "{memory: {name: mine, missing: constant}}", NULL, TR_EINVAL,
                   "the data \"mine\" are not numbers; leave out standardize and missing");
    expect_refused(&images_of, "{memory: {name: mine}}", two, TR_EMISMATCH, "left scaling.txt");
    expect_refused(&images_of, "{memory: {name: mine}}", "nonsense", TR_EFORMAT, "classes.txt:1:");
    write_text("table", "1,2,0\n3,4,1\n");
    tr_source *table = must_open("{csv: {path: table}}"), *view;
    assert_int_equal(open_view(table, "{memory: {name: mine}}", NULL, &view), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "the data \"mine\" are a source of files; give one of"));
    tr_source_close(&table);
    static const float empty[] = {NAN, 1, NAN, 2};
    expect_refused(&(struct tr_arrays){.features = {empty, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}}},
                   "{memory: {name: mine, missing: mean}}", NULL, TR_EFORMAT,
                   "mine: feature 0 (counted from 0, without labels) has no value in any row, so no mean");
}

/* More classes in the training data than here: they count. */
static void classes_are_those_of_the_training_data(void **unused)
{
    (void)unused;
    tr_source *source = make(&images_of);
    tr_source *view = must_view(source, "{memory: {name: mine}}", "trireme classes 1, 7 classes, 0 lines\n");
    assert_int_equal(tr_source_info(view)->classes, 7);
    tr_source_close(&view);
    view = must_view(source, "{memory: {name: mine}}", "trireme classes 1, 3 classes, 0 lines\n");
    assert_int_equal(tr_source_info(view)->classes, 3);
    tr_source_close(&view);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_filled),
        cmocka_unit_test(examples_stay_as_they_are),
        cmocka_unit_test(views_keep_the_examples),
        cmocka_unit_test(names_are_expanded),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(failures_of_a_function_are_told),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(classes_are_those_of_the_training_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
