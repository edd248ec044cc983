/* What a function of a program gives as an example is checked like the contents of a file: the first number
 * that is wrong is named, and what is just right is read.
 */
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

enum { MOST = 4, COUNT = 3 };

/* What the function gives. */
struct given {
    int64_t length;
    int32_t whole[MOST]; /* tokens */
    float real[MOST];
    int32_t class[MOST];
    float value[MOST];
};

struct wanted {
    enum tr_feature_kind features;
    enum tr_label_kind labels;
    struct given given;
    const char *says; /* NULL: it is read */
};

static const struct wanted *now;

static int give(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    const struct given *given = &now->given;
    const bool tokens = now->features == TR_FEATURE_TOKENS;
    (void)user, (void)index;
    if (tokens) *length = given->length;
    if (features && tokens) memcpy(features, given->whole, sizeof given->whole);
    if (features && now->features == TR_FEATURE_FLOATS) memcpy(features, given->real, 2 * sizeof(float));
    if (features && now->features == TR_FEATURE_IMAGE) memset(features, 9, 4);
    if (!label) return 0;
    if (now->labels == TR_LABEL_CLASS) memcpy(label, given->class, sizeof(int32_t));
    if (now->labels == TR_LABEL_VALUES) memcpy(label, given->value, 2 * sizeof(float));
    if (now->labels == TR_LABEL_TOKENS) memcpy(label, given->class, sizeof given->class);
    if (now->labels == TR_LABEL_PIXELS) memcpy(label, given->class, sizeof given->class);
    return 0;
}

#define WHO "the function that reads examples gave "

static const struct wanted cases[] = {
    /* tokens: 1 to 4 of 7 */
    {TR_FEATURE_TOKENS, TR_LABEL_NONE, {.length = 4, .whole = {0, 6, 1, 2}}, NULL},
    {TR_FEATURE_TOKENS, TR_LABEL_NONE, {.length = 1, .whole = {6, 7, -1, 9}}, NULL},
    {TR_FEATURE_TOKENS, TR_LABEL_NONE, {.length = 0}, WHO "0 tokens for example 2; there are from 1 to 4"},
    {TR_FEATURE_TOKENS, TR_LABEL_NONE, {.length = -3}, WHO "-3 tokens for example 2; there are from 1 to 4"},
    {TR_FEATURE_TOKENS, TR_LABEL_NONE, {.length = 5}, WHO "5 tokens for example 2; there are from 1 to 4"},
    {TR_FEATURE_TOKENS,
     TR_LABEL_NONE,
     {.length = 4, .whole = {0, 1, 2, 7}},
     WHO "token 7 for example 2; it is from 0 to 6"},
    {TR_FEATURE_TOKENS,
     TR_LABEL_NONE,
     {.length = 2, .whole = {-1, 1}},
     WHO "token -1 for example 2; it is from 0 to 6"},
    /* numbers: finite, or NaN where one is missing */
    {TR_FEATURE_FLOATS, TR_LABEL_NONE, {.real = {-1e38F, NAN}}, NULL},
    {TR_FEATURE_FLOATS,
     TR_LABEL_NONE,
     {.real = {1, INFINITY}},
     WHO "a number for example 2 that is infinite"},
    {TR_FEATURE_FLOATS,
     TR_LABEL_NONE,
     {.real = {-INFINITY, 1}},
     WHO "a number for example 2 that is infinite"},
    /* classes: 5 */
    {TR_FEATURE_IMAGE, TR_LABEL_CLASS, {.class = {4}}, NULL},
    {TR_FEATURE_IMAGE, TR_LABEL_CLASS, {.class = {0}}, NULL},
    {TR_FEATURE_IMAGE, TR_LABEL_CLASS, {.class = {5}}, WHO "class 5 for example 2; it is from 0 to 4"},
    {TR_FEATURE_IMAGE, TR_LABEL_CLASS, {.class = {-1}}, WHO "class -1 for example 2; it is from 0 to 4"},
    /* values: all are there */
    {TR_FEATURE_FLOATS, TR_LABEL_VALUES, {.value = {3, -4}}, NULL},
    {TR_FEATURE_FLOATS, TR_LABEL_VALUES, {.value = {3, NAN}}, WHO "a value for example 2 that is NaN"},
    {TR_FEATURE_FLOATS,
     TR_LABEL_VALUES,
     {.value = {-INFINITY, 1}},
     WHO "a value for example 2 that is infinite"},
    /* classes of tokens, as many as there are tokens, and of pixels: negative ones are none */
    {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, {.length = 3, .class = {4, -7, 0, 9}}, NULL},
    {TR_FEATURE_TOKENS,
     TR_LABEL_TOKENS,
     {.length = 3, .class = {4, -1, 5}},
     WHO "class 5 for example 2; it is from 0 to 4"},
    {TR_FEATURE_IMAGE, TR_LABEL_PIXELS, {.class = {4, 0, -2, 1}}, NULL},
    {TR_FEATURE_IMAGE,
     TR_LABEL_PIXELS,
     {.class = {4, 0, -2, 6}},
     WHO "class 6 for example 2; it is from 0 to 4"},
};

static tr_source *open_now(void)
{
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    tr_source *source = NULL;
    reader.info = (struct tr_source_info){.count = COUNT,
                                          .features = now->features,
                                          .labels = now->labels,
                                          .height = 2,
                                          .width = 2,
                                          .channels = 1,
                                          .floats = 2,
                                          .max_tokens = MOST,
                                          .vocabulary = 7,
                                          .classes = 5,
                                          .values = 2};
    if (now->features == TR_FEATURE_FLOATS) reader.info.height = reader.info.width = reader.info.channels = 0;
    reader.read = give;
    if (tr_source_from_reader(&reader, &source) != TR_OK) fail_msg("%s", tr_error_message());
    return source;
}

static int64_t labels_of(int64_t length)
{
    return now->labels == TR_LABEL_TOKENS ? length : now->labels == TR_LABEL_PIXELS ? 4 : 0;
}

static void what_is_given_is_checked(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        union {
            int32_t whole[MOST];
            float real[MOST];
            uint8_t pixel[MOST];
        } features, label;
        int64_t length = 0;
        now = &cases[i];
        tr_source *source = open_now();
        const tr_status status = tr_source_read(source, COUNT - 1, &features, MOST, &length, &label);
        if (status != (now->says ? TR_EFORMAT : TR_OK))
            fail_msg("case %d: %s, %s", i, tr_status_name(status), status ? tr_error_message() : "");
        if (now->says && !strstr(tr_error_message(), now->says))
            fail_msg("case %d: \"%s\" lacks \"%s\"", i, tr_error_message(), now->says);
        if (!now->says) {
            const bool tokens = now->features == TR_FEATURE_TOKENS;
            assert_int_equal(length, tokens ? now->given.length : now->features == TR_FEATURE_FLOATS ? 2 : 4);
            for (int64_t k = 0; tokens && k < length; k++)
                assert_int_equal(features.whole[k], now->given.whole[k]);
            for (int64_t k = 0; k < labels_of(length); k++)
                assert_int_equal(label.whole[k], now->given.class[k] < 0 ? TR_NO_LABEL : now->given.class[k]);
        }
        tr_source_close(&source);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

/* The digest of a source reads all of it, and says what is wrong there. */
static void a_digest_says_what_is_wrong(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        char digest[65];
        now = &cases[i];
        tr_source *source = open_now();
        const tr_status status = tr_source_digest(source, digest);
        if (status != (now->says ? TR_EFORMAT : TR_OK)) fail_msg("case %d: %s", i, tr_status_name(status));
        if (now->says) assert_non_null(strstr(tr_error_message(), "for example 0"));
        tr_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_is_checked),
        cmocka_unit_test(a_digest_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
