/* Arrays that form no examples: what is refused, in which words, and how large examples may be. */
#include "trireme/arrays.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NUMBERS_MOST  (1 << 24)

static const uint8_t bytes[] = {0, 1, 2, 3, 4, 5}, unordered[] = {0, 4, 2, 6}, late[] = {1, 4, 6},
                     short_of[] = {0, 4, 5}, beyond[] = {0, 4, 7}, same[] = {0, 3, 3, 6}, right[] = {0, 4, 6};
static const float singles[] = {0, 1, 2, 3, 4, 5}, endless[] = {0, 1, 2, -INFINITY}, gap[] = {0, NAN, 2, 3};
static const double large[] = {0, 1e300};
static const int32_t below[] = {-1, -2, -3, -4, -5, -6};
static const int64_t far[] = {0, (int64_t)1 << 40};
static const char *const one_name[] = {"a", NULL, "c", "d", "e", "f"};

#define ROWS  .features = {singles, TR_ARRAY_FLOAT32, 1, {6}, {0}}
#define IMAGE .features = {bytes, TR_ARRAY_UINT8, 3, {1, 2, 3}, {0}}
#define WORDS .tokens = 1, .features = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}}
#define FLAT  .tokens = 1, .features = {bytes, TR_ARRAY_UINT8, 1, {6}, {0}}

static const struct {
    struct tr_arrays arrays;
    const char *message;
} refused[] = {
    {{.labels = {bytes, TR_ARRAY_UINT8, 1, {4}, {0}}},
     "there are no features; give the array of struct tr_arrays"},
    {{.features = {bytes, (enum tr_array_type) - 1, 1, {4}, {0}}},
     "features: type -1 is none of enum tr_array_type"},
    {{.features = {bytes, (enum tr_array_type)7, 1, {4}, {0}}},
     "features: type 7 is none of enum tr_array_type"},
    {{.features = {NULL, TR_ARRAY_UINT8, 1, {4}, {0}}}, "features: data is NULL"},
    {{ROWS, .labels = {NULL, TR_ARRAY_UINT8, 1, {6}, {0}}}, "labels: data is NULL"},
    {{FLAT, .offsets = {NULL, TR_ARRAY_UINT8, 1, {3}, {0}}}, "offsets: data is NULL"},
    {{WORDS, .lengths = {NULL, TR_ARRAY_UINT8, 1, {2}, {0}}}, "lengths: data is NULL"},
    {{.features = {bytes, TR_ARRAY_UINT8, 5, {1}, {0}}}, "features: 5 dimensions; 1 to 4 are read"},
    {{.features = {bytes, TR_ARRAY_UINT8, 1, {0}, {0}}},
     "features: dimension 0 has 0 elements; it needs at least 1"},
    {{.features = {bytes, TR_ARRAY_FLOAT64, 4, {1, 2, INT64_MAX / 4, 4}, {0}}},
     "features: its shape and strides are larger than memory can be"},
    {{.features = {bytes, TR_ARRAY_FLOAT64, 2, {INT64_MAX / 64, 2}, {0}}},
     "features: its shape and strides are larger than memory can be"},
    {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 2}, {INT64_MAX / 8, 1}}},
     "features: its shape and strides are larger than memory can be"},
    {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 2}, {-INT64_MAX / 8, 1}}},
     "features: its shape and strides are larger than memory can be"},
    {{.features = {bytes, TR_ARRAY_UINT8, 2, {INT64_MAX / 15, 1}, {0, 1}}},
     "features: its shape is larger than memory can be"},
    {{.features = {bytes, TR_ARRAY_UINT8, 3, {1, 65536, 1}, {0}}},
     "features: images of 65536 x 1 x 1; at most 65535 pixels a side are read"},
    {{.features = {bytes, TR_ARRAY_UINT8, 3, {1, 1, 65536}, {0}}},
     "features: images of 1 x 65536 x 1; at most 65535 pixels a side are read"},
    {{.features = {bytes, TR_ARRAY_UINT8, 4, {1, 1, 1, 32768}, {0}}},
     "features: images of 1 x 1 x 32768; at most 65535 pixels a side are read"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 4, {1, 65536, 1, 1}, {0}}},
     "features: images of 65536 x 1 x 1"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 4, {1, 4097, 4096, 1}, {0}}},
     "features: 16781312 numbers an example; at most 16777216 are read"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 2, {1, NUMBERS_MOST + 1}, {4, 0}}},
     "features: 16777217 numbers an example; at most 16777216 are read"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 3, {1, NUMBERS_MOST + 1, 1}, {0}}},
     "numbers an example; at most"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 3, {1, 1, NUMBERS_MOST + 1}, {0}}},
     "numbers an example; at most"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 3, {1, 4097, 4096}, {0}}},
     "features: 16781312 numbers an example"},
    {{.features = {endless, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}}},
     "features: number 1 of example 1 is infinite, or too large for float32"},
    {{.features = {large, TR_ARRAY_FLOAT64, 1, {2}, {0}}},
     "features: number 0 of example 1 is infinite, or too large for float32"},
    {{ROWS, .lengths = {right + 1, TR_ARRAY_UINT8, 1, {2}, {0}}},
     "lengths and offsets are those of tokens; set tokens"},
    {{ROWS, .offsets = {right, TR_ARRAY_UINT8, 1, {3}, {0}}},
     "lengths and offsets are those of tokens; set tokens"},
    /* labels */
    {{ROWS, .labels = {bytes, TR_ARRAY_UINT8, 1, {5}, {0}}}, "labels: 5 of them for 6 examples"},
    {{ROWS, .labels = {bytes, TR_ARRAY_UINT8, 1, {6}, {0}}, .classes = 5},
     "labels: element 5 is 5; it is from 0 to 4"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 1, {2}, {0}}, .labels = {far, TR_ARRAY_INT64, 1, {2}, {0}}},
     "labels: element 1 is 1099511627776; it is from 0 to 16777215"},
    {{ROWS, .labels = {below, TR_ARRAY_INT32, 1, {6}, {0}}},
     "labels: element 0 is -1; it is from 0 to 16777215"},
    {{ROWS, .labels = {bytes, TR_ARRAY_UINT8, 1, {6}, {0}}, .class_names = one_name},
     "class_names[1] is NULL; name all classes, or none"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 1, {2}, {0}},
      .labels = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}}},
     "labels: integers in 2 dimensions; classes are [count], those of pixels [count, height, width], and "
     "values to "
     "learn are floats"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 1, {1}, {0}},
      .labels = {singles, TR_ARRAY_FLOAT32, 3, {1, 2, 3}, {0}}},
     "labels: 3 dimensions; values are [count] or [count, values]"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 1, {1}, {0}},
      .labels = {singles, TR_ARRAY_FLOAT32, 2, {1, NUMBERS_MOST + 1}, {4, 0}}},
     "labels: 16777217 values an example; at most 16777216 are read"},
    {{.features = {singles, TR_ARRAY_FLOAT32, 1, {4}, {0}}, .labels = {gap, TR_ARRAY_FLOAT32, 1, {4}, {0}}},
     "labels: number 0 of example 1 is NaN"},
    {{IMAGE, .labels = {bytes, TR_ARRAY_UINT8, 3, {1, 3, 2}, {0}}},
     "labels: 3 x 2 pixels, and the images of features have 2 x 3; give a label for each pixel"},
    {{IMAGE, .labels = {bytes, TR_ARRAY_UINT8, 3, {1, 1, 3}, {0}}}, "labels: 1 x 3 pixels, and the images"},
    {{IMAGE, .labels = {bytes, TR_ARRAY_UINT8, 3, {1, 2, 1}, {0}}}, "labels: 2 x 1 pixels, and the images"},
    {{IMAGE, .labels = {bytes, TR_ARRAY_UINT8, 3, {1, 2, 3}, {0}}, .classes = 3},
     "labels: element 3 is 3; it is from -2147483648 to 2"},
    {{IMAGE, .labels = {below, TR_ARRAY_INT32, 3, {1, 2, 3}, {0}}},
     "labels: no token or pixel has a class; give classes"},
    /* tokens */
    {{FLAT}, "features: tokens in 1 dimensions; they are [count, longest], or [all] with offsets"},
    {{WORDS, .offsets = {right, TR_ARRAY_UINT8, 1, {3}, {0}}}, "features: tokens in 2 dimensions"},
    {{FLAT, .offsets = {right, TR_ARRAY_UINT8, 1, {3}, {0}}, .lengths = {right, TR_ARRAY_UINT8, 1, {2}, {0}}},
     "lengths and offsets are both given; offsets say all"},
    {{.tokens = 1, .features = {bytes, TR_ARRAY_UINT8, 2, {1, (int64_t)INT32_MAX + 1}, {0}}},
     "features: 2147483648 tokens an example are too many"},
    {{WORDS, .vocabulary = 5}, "features: element 5 is 5; it is from 0 to 4"},
    {{.tokens = 1, .features = {below, TR_ARRAY_INT32, 2, {2, 3}, {0}}},
     "features: element 0 is -1; it is from 0 to"},
    {{.tokens = 1, .features = {singles, TR_ARRAY_FLOAT32, 2, {2, 3}, {0}}},
     "features: float32; integers are wanted"},
    {{WORDS, .lengths = {bytes + 1, TR_ARRAY_UINT8, 1, {3}, {0}}}, "lengths: 3 of them for 2 examples"},
    {{WORDS, .lengths = {bytes + 1, TR_ARRAY_UINT8, 2, {2, 1}, {0}}}, "lengths: 2 of them for 2 examples"},
    {{WORDS, .lengths = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}}}, "lengths: element 0 is 0; it is from 1 to 3"},
    {{WORDS, .lengths = {bytes + 3, TR_ARRAY_UINT8, 1, {2}, {0}}},
     "lengths: element 1 is 4; it is from 1 to 3"},
    {{WORDS, .lengths = {singles + 1, TR_ARRAY_FLOAT32, 1, {2}, {0}}},
     "lengths: float32; integers are wanted"},
    {{WORDS, .labels = {bytes, TR_ARRAY_UINT8, 2, {2, 2}, {0}}},
     "labels: they have another shape than the tokens of features"},
    {{WORDS, .labels = {bytes, TR_ARRAY_UINT8, 3, {2, 3, 1}, {0}}},
     "labels: they have another shape than the tokens"},
    {{WORDS, .labels = {below, TR_ARRAY_INT32, 2, {2, 3}, {0}}},
     "labels: no token or pixel has a class; give classes"},
    {{WORDS, .labels = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}}, .classes = 5},
     "labels: element 5 is 5; it is from"},
    {{FLAT, .offsets = {late, TR_ARRAY_UINT8, 1, {3}, {0}}},
     "offsets: element 0 is 1; they begin with 0, ascend, and end with the 6 tokens"},
    {{FLAT, .offsets = {unordered, TR_ARRAY_UINT8, 1, {4}, {0}}},
     "offsets: element 2 is 2; they begin with 0, ascend"},
    {{FLAT, .offsets = {same, TR_ARRAY_UINT8, 1, {4}, {0}}},
     "offsets: element 2 is 3; they begin with 0, ascend"},
    {{FLAT, .offsets = {beyond, TR_ARRAY_UINT8, 1, {3}, {0}}},
     "offsets: element 2 is 7; they begin with 0, ascend"},
    {{FLAT, .offsets = {short_of, TR_ARRAY_UINT8, 1, {3}, {0}}},
     "offsets: the last one is 5, there are 6 tokens"},
    {{FLAT, .offsets = {right, TR_ARRAY_UINT8, 1, {1}, {0}}},
     "offsets: 1 dimensions of uint8; integers [count + 1] are wanted"},
    {{FLAT, .offsets = {right, TR_ARRAY_UINT8, 2, {3, 1}, {0}}},
     "offsets: 2 dimensions of uint8; integers [count + 1] are wanted"},
    {{FLAT, .offsets = {singles, TR_ARRAY_FLOAT32, 1, {3}, {0}}},
     "offsets: 1 dimensions of float32; integers [count + 1] are wanted"},
};

static int released;

static void note_release(void *user)
{
    (void)user;
    released++;
}

static void what_forms_no_examples_is_refused(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(refused); i++) {
        const int64_t live = tr_alloc_live();
        struct tr_arrays arrays = refused[i].arrays;
        tr_source *source = NULL;
        arrays.size = sizeof arrays;
        arrays.release = note_release;
        released = 0;
        const tr_status status = tr_source_from_arrays(&arrays, &source);
        if (status != TR_EINVAL || !strstr(tr_error_message(), refused[i].message))
            fail_msg("case %d: %s, \"%s\", not \"%s\"", i, tr_status_name(status),
                     status ? tr_error_message() : "", refused[i].message);
        assert_null(source);
        assert_int_equal(released, 1);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Nothing is taken from a structure without its size. */
static void the_size_is_checked(void **unused)
{
    struct tr_arrays arrays = {ROWS, .release = note_release};
    tr_source *source = NULL;
    (void)unused;
    released = 0;
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "TR_ARRAYS_INIT"));
    assert_null(source);
    assert_int_equal(released, 0);
}

/* The largest of all that is read; numbers are repeated by a stride of 0. */
static void the_largest_examples_are_read(void **unused)
{
    static const uint8_t one = 1;
    static const float single = 1;
    static const struct {
        struct tr_array features, labels;
    } cases[] = {
        {{&one, TR_ARRAY_UINT8, 3, {1, 65535, 1}, {1, 0, 0}}, {0}},
        {{&one, TR_ARRAY_UINT8, 3, {1, 1, 65535}, {1, 0, 0}}, {0}},
        {{&one, TR_ARRAY_UINT8, 4, {1, 1, 1, 32767}, {1, 0, 0, 0}}, {0}},
        {{&single, TR_ARRAY_FLOAT32, 2, {1, NUMBERS_MOST}, {4, 0}}, {0}},
        {{&single, TR_ARRAY_FLOAT32, 4, {1, 4096, 4096, 1}, {4, 0, 0, 0}}, {0}},
        {{&single, TR_ARRAY_FLOAT32, 3, {1, 1, NUMBERS_MOST}, {4, 0, 0}}, {0}},
        {{&single, TR_ARRAY_FLOAT32, 1, {1}, {0}}, {&single, TR_ARRAY_FLOAT32, 2, {1, NUMBERS_MOST}, {4, 0}}},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_arrays arrays = {
            .size = sizeof arrays, .features = cases[i].features, .labels = cases[i].labels};
        tr_source *source = NULL;
        const tr_status status = tr_source_from_arrays(&arrays, &source);
        if (status != TR_OK) fail_msg("case %d: %s", i, tr_error_message());
        assert_int_equal(tr_source_info(source)->count, 1);
        tr_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_forms_no_examples_is_refused),
        cmocka_unit_test(the_size_is_checked),
        cmocka_unit_test(the_largest_examples_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
