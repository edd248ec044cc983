/* One source as two, and draws by class. */
#include "base/alloc.h"
#include "data/order/order.h"
#include "data/source.h"
#include "data/order/split.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* `count` rows: the number of the row, and a class that `rare` of ten rows do not have. */
static tr_source *table(int count)
{
    static char text[200000];
    text[0] = '\0';
    size_t at = 0;
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d\n", i,
                               i % 10 == 3   ? 1
                               : i % 50 == 7 ? 2
                                             : 0);
    write_file("table", text, at);
    return must_open("{csv: {path: table}}");
}

static int number_of(const tr_source *source, int64_t index, int32_t *class)
{
    float number;
    assert_int_equal(tr_source_read(source, index, &number, 1, NULL, class), TR_OK);
    return (int)number;
}

/* Every example is in one of the parts, and both are there without the other. */
static void test_parts_make_the_whole(void **unused)
{
    (void)unused;
    static const struct {
        int count;
        double share;
        int second;
    } cases[] = {{2, 0.5, 1},   {2, 0.001, 1},    {2, 0.999, 1},
                 {10, 0.25, 3}, {1000, 0.1, 100}, {1001, 0.2, 200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char seen[1001] = {0};
        tr_source *first, *second;
        assert_int_equal(tr_split_first(table(cases[i].count),
                                        &(struct tr_split){.seed = 5, .share = cases[i].share}, &first),
                         TR_OK);
        assert_int_equal(tr_split_second(first, &second), TR_OK);
        assert_int_equal(tr_source_info(second)->count, cases[i].second);
        assert_int_equal(tr_source_info(first)->count, cases[i].count - cases[i].second);
        for (int part = 0; part < 2; part++) {
            tr_source *source = part ? second : first;
            for (int64_t k = 0; k < tr_source_info(source)->count; k++) {
                int32_t class;
                int number = number_of(source, k, &class);
                assert_int_equal(seen[number]++, 0);
                assert_int_equal(class, number % 10 == 3 ? 1 : number % 50 == 7 ? 2 : 0);
            }
        }
        for (int k = 0; k < cases[i].count; k++) assert_int_equal(seen[k], 1);
        if (i % 2) tr_source_close(&first);
        number_of(second, 0, NULL);
        tr_source_close(&second);
        tr_source_close(&first);
    }
}

static void digest_of(uint64_t seed, double share, int part, char digest[65])
{
    tr_source *first, *second = NULL;
    assert_int_equal(tr_split_first(table(100), &(struct tr_split){.seed = seed, .share = share}, &first),
                     TR_OK);
    assert_int_equal(tr_split_second(first, &second), TR_OK);
    assert_int_equal(tr_source_digest(part ? second : first, digest), TR_OK);
    tr_source_close(&first);
    tr_source_close(&second);
}

/* The digest tells parts apart, and is the same for the same part. */
static void test_digests(void **unused)
{
    (void)unused;
    char a[65], b[65];
    digest_of(1, 0.1, 0, a);
    digest_of(1, 0.1, 0, b);
    assert_string_equal(a, b);
    digest_of(2, 0.1, 0, b);
    assert_string_not_equal(a, b);
    digest_of(1, 0.2, 0, b);
    assert_string_not_equal(a, b);
    digest_of(1, 0.5, 0, a);
    digest_of(1, 0.5, 1, b);
    assert_string_not_equal(a, b);
}

/* Parts are shown, and leave the state of the whole. */
static void test_parts_are_shown(void **unused)
{
    char *text[2], *shown;
    const char *name[2];
    tr_source *whole = table(10), *part[2];
    (void)unused;
    assert_int_equal(tr_source_state(whole, &name[0], &text[0]), TR_OK);
    assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.3}, &part[0]), TR_OK);
    assert_int_equal(tr_split_second(part[0], &part[1]), TR_OK);
    for (int p = 0; p < 2; p++) {
        int32_t class;
        char wanted[64];
        const int number = number_of(part[p], 1, &class);
        assert_int_equal(tr_source_show(part[p], 1, 1, 80, &shown), TR_OK);
        snprintf(wanted, sizeof wanted, "[1] %d: %d\n", (int)class, number);
        assert_string_equal(shown, wanted);
        tr_text_free(shown);
        assert_int_equal(tr_source_state(part[p], &name[1], &text[1]), TR_OK);
        assert_string_equal(text[1], text[0]);
        assert_string_equal(name[1], "scaling.txt");
        tr_text_free(text[1]);
        tr_source_close(&part[p]);
    }
    tr_text_free(text[0]);
    static const char lines[] = "one a\t0\ntwo b\t1\nthree c\t0\n";
    write_file("lines", lines, sizeof lines - 1);
    assert_int_equal(tr_split_first(must_open("{text: {path: lines}}"),
                                    &(struct tr_split){.seed = 5, .share = 0.3}, &part[0]),
                     TR_OK);
    for (int64_t k = 0; k < 2; k++) { /* a text is shown by its format, and with its own label */
        int32_t label;
        char wanted[16];
        assert_int_equal(tr_source_read(part[0], k, NULL, 0, NULL, &label), TR_OK);
        assert_int_equal(tr_source_show(part[0], k, 1, 80, &shown), TR_OK);
        snprintf(wanted, sizeof wanted, "[%d] %d: ", (int)k, (int)label);
        assert_memory_equal(shown, wanted, strlen(wanted));
        assert_int_equal(strstr(shown, "two b") != NULL, label);
        tr_text_free(shown);
    }
    tr_source_close(&part[0]);
}

/* Labels of tokens are counted where the example is. */
static void test_labels_of_tokens(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"{text: {path: tags, tags: true}}",
                                          "{corpus: {path: tags, window: 3, stride: 2}}"};
    static const char lines[] = "a b c\t0 1 2\na b\t- -\nb c\t1 -\nc\t-\na c c b\t0 2 - -\n";
    write_file("tags", lines, sizeof lines - 1);
    for (int f = 0; f < 2; f++) {
        tr_source *whole = must_open(formats[f]), *first, *second;
        int64_t most = tr_source_capacity(whole), length, labels = 0, counted = 0;
        int32_t token[4], label[4];
        assert_int_equal(most, f == 0 ? 4 : 3);
        assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.4}, &first), TR_OK);
        assert_int_equal(tr_split_second(first, &second), TR_OK);
        for (int part = 0; part < 2; part++) {
            tr_source *source = part ? second : first;
            for (int64_t k = 0; k < tr_source_info(source)->count; k++) {
                assert_int_equal(tr_source_read(source, k, token, most, &length, label), TR_OK);
                assert_int_equal(source->class->labelled(source, k), tr_labels_count(label, length));
                counted += source->class->labelled(source, k);
                labels += tr_labels_count(label, length);
            }
        }
        assert_int_equal(counted, labels);
        if (f == 0) assert_int_equal(labels, 6);
        tr_source_close(&first);
        tr_source_close(&second);
    }
}

/* What the whole knew of its files and memory, the first part knows, and nobody else: a change is told once.
 */
static void test_files_are_told_of_once(void **unused)
{
    (void)unused;
    tr_source *whole = table(100), *first, *second;
    int64_t bytes = whole->unpacked;
    assert_int_equal(whole->files.count, 1);
    assert_true(bytes > 0);
    assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.2}, &first), TR_OK);
    assert_int_equal(tr_split_second(first, &second), TR_OK);
    assert_int_equal(first->files.count, 1);
    assert_int_equal(first->unpacked, bytes);
    assert_int_equal(second->files.count, 0);
    assert_int_equal(second->unpacked, 0);
    assert_null(tr_source_files_changed(&first->files));
    write_file("table", "1,0\n", 4);
    assert_string_equal(tr_source_files_changed(&first->files), test_path("table"));
    tr_source_close(&second);
    tr_source_close(&first);
}

static void test_one_example_is_no_two(void **unused)
{
    (void)unused;
    tr_source *first = NULL;
    assert_int_equal(tr_split_first(table(1), &(struct tr_split){.seed = 1, .share = 0.5}, &first),
                     TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "1 examples cannot be split"));
}

/* Marks the examples of both parts of a split, and counts those of each class in the second. */
static void mark(const struct tr_split *split, int count, char *first_of, char *second_of, int counts[3])
{
    tr_source *part[2];
    assert_int_equal(tr_split_first(table(count), split, &part[0]), TR_OK);
    assert_int_equal(tr_split_second(part[0], &part[1]), TR_OK);
    for (int p = 0; p < 2; p++)
        for (int64_t k = 0; k < tr_source_info(part[p])->count; k++) {
            int32_t class;
            int number = number_of(part[p], k, &class);
            (p ? second_of : first_of)[number]++;
            if (p) counts[class]++;
        }
    tr_source_close(&part[0]);
    tr_source_close(&part[1]);
}

/* Every example is in one fold's second part and in the first parts of all others; stratified folds share
   each class to within one, and a stratified share has the number that a plain one has. */
static void test_folds(void **unused)
{
    (void)unused;
    enum { COUNT = 103, FOLDS = 4 };
    for (int stratified = 0; stratified < 2; stratified++) {
        char first[COUNT] = {0}, second[COUNT] = {0};
        int all[3] = {0};
        for (int fold = 1; fold <= FOLDS; fold++) {
            int counts[3] = {0};
            mark(&(struct tr_split){.seed = 7, .folds = FOLDS, .fold = fold, .stratified = stratified}, COUNT,
                 first, second, counts);
            int sum = counts[0] + counts[1] + counts[2];
            assert_in_range(sum, COUNT / FOLDS, COUNT / FOLDS + 1);
            for (int c = 0; c < 3; c++) all[c] += counts[c];
            /* Of 103 rows 10 are of class 1 and 2 of class 2. */
            if (stratified) assert_in_range(counts[1], 2, 3);
            if (stratified) assert_in_range(counts[2], 0, 1);
        }
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(second[i], 1);
            assert_int_equal(first[i], FOLDS - 1);
        }
        assert_int_equal(all[1], 10);
        assert_int_equal(all[2], 2);
    }
    char first[200] = {0}, second[200] = {0};
    int counts[3] = {0};
    mark(&(struct tr_split){.seed = 3, .share = 0.1, .stratified = true}, 200, first, second, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2], 20);
    assert_int_equal(counts[1], 2); /* of 20 */
    assert_in_range(counts[2], 0, 1);
    for (int i = 0; i < 200; i++) assert_int_equal(first[i] + second[i], 1);
}

/* The parts of a stratified split are not sorted by class. */
static void test_strata_are_mixed(void **unused)
{
    (void)unused;
    tr_source *first;
    int32_t class;
    int64_t last = -1, early = -1;
    assert_int_equal(
        tr_split_first(table(200), &(struct tr_split){.seed = 3, .share = 0.1, .stratified = true}, &first),
        TR_OK);
    for (int64_t k = 0; k < tr_source_info(first)->count; k++) {
        number_of(first, k, &class);
        if (class == 1 && early < 0) early = k;
        if (class == 0) last = k;
    }
    assert_true(early >= 0 && early < last);
    tr_source_close(&first);
}

static void expect_no_split(tr_source *source, struct tr_split split, const char *part)
{
    tr_source *first = NULL;
    assert_int_equal(tr_split_first(source, &split, &first), TR_EINVAL);
    if (!strstr(tr_error_message(), part)) fail_msg("%s", tr_error_message());
}

static void test_bad_splits(void **unused)
{
    (void)unused;
    expect_no_split(table(3), (struct tr_split){.folds = 4, .fold = 1},
                    "3 examples cannot be cut into 4 folds");
    static const char values[] = "1,2\n3,4\n5,6\n";
    write_file("values", values, sizeof values - 1);
    expect_no_split(must_open("{csv: {path: values, label: value}}"),
                    (struct tr_split){.share = 0.5, .stratified = true},
                    "have no classes; set data.split: random");
}

/* How often the classes come in `epochs` epochs, within five standard deviations of `shares`. */
static void expect_shares(const float *given, const double *shares)
{
    const int count = 1000, epochs = 20;
    tr_source *source = table(count);
    tr_sampler *sampler;
    struct tr_order order;
    int64_t drawn[3] = {0}, different = 0;
    static char seen[1000];
    assert_int_equal(tr_sampler_create(source, given, given ? 3 : 0, &sampler), TR_OK);
    assert_int_equal(tr_order_make(&order, count, 10, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
    tr_order_sample(&order, sampler, 3);
    memset(seen, 0, sizeof seen);
    for (int64_t epoch = 0; epoch < epochs; epoch++)
        for (int64_t position = 0; position < count; position++) {
            int32_t class;
            int64_t example = tr_order_example(&order, epoch, position);
            assert_in_range(example, 0, count - 1);
            number_of(source, example, &class);
            drawn[class]++;
            seen[example] = 1;
            different += example != tr_order_example(&order, epoch + 1, position);
        }
    double total = count * epochs;
    for (int c = 0; c < 3; c++) {
        double expected = total * shares[c], deviation = sqrt(expected * (1 - shares[c]));
        if (!(fabs((double)drawn[c] - expected) <= 5 * deviation))
            fail_msg("class %d came %lld times, not %g", c, (long long)drawn[c], expected);
    }
    /* All of a class that is drawn often come up: 20 examples of class 2 in thousands of draws. */
    for (int i = 7; i < count && shares[2] > 0.1; i += 50) assert_true(seen[i] || i % 10 == 3);
    assert_true(different > (int64_t)total / 2);
    tr_sampler_destroy(&sampler);
    tr_source_close(&source);
}

static void test_draws_by_class(void **unused)
{
    (void)unused;
    expect_shares(NULL, (const double[]){1 / 3.0, 1 / 3.0, 1 / 3.0});
    expect_shares((const float[]){1, 2, 5}, (const double[]){0.125, 0.25, 0.625});
    expect_shares((const float[]){1, 0, 0}, (const double[]){1, 0, 0});
    expect_shares((const float[]){0, 3, 1}, (const double[]){0, 0.75, 0.25});
}

static void test_bad_shares(void **unused)
{
    (void)unused;
    tr_sampler *sampler = NULL;
    tr_source *source = table(100);
    assert_int_equal(tr_sampler_create(source, (const float[]){1, 1}, 2, &sampler), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "2 shares of classes, but 3 classes"));
    assert_int_equal(tr_sampler_create(source, (const float[]){0, 0, 0}, 3, &sampler), TR_EINVAL);
    tr_source_close(&source);
    write_file("table", "1,0\n2,2\n", 8);
    source = must_open("{csv: {path: table}}");
    assert_int_equal(tr_sampler_create(source, (const float[]){1, 1, 1}, 3, &sampler), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "class 1 has no training examples"));
    assert_int_equal(tr_sampler_create(source, NULL, 0, &sampler), TR_OK); /* of those that there are */
    int64_t seconds = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const int64_t drawn = tr_sampler_draw(sampler, tr_rng_key_make(1, TR_RNG_SAMPLE), 0, i);
        assert_in_range(drawn, 0, 1);
        seconds += drawn;
    }
    assert_in_range(seconds, 421, 579); /* 500, within five standard deviations */
    tr_sampler_destroy(&sampler);
    tr_source_close(&source);
    source = must_open("{csv: {path: table, label: value}}");
    assert_int_equal(tr_sampler_create(source, NULL, 0, &sampler), TR_EINVAL);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_make_the_whole),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_parts_are_shown),
        cmocka_unit_test(test_labels_of_tokens),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_strata_are_mixed),
        cmocka_unit_test(test_bad_splits),
        cmocka_unit_test(test_one_example_is_no_two),
        cmocka_unit_test(test_draws_by_class),
        cmocka_unit_test(test_bad_shares),
        cmocka_unit_test(test_files_are_told_of_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
