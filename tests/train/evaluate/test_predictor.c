/* Many predictions: what the listener is told of data sets and of examples in memory, held against what the
 * files say and against sums that the test makes itself.
 */
#include "support/training.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 40 };

static void write_file(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, name), text, strlen(text)));
}

/* y = 2 a - b + 1; every eighth row misses b. */
static void numbers_of(int row, double *a, double *b, double *y)
{
    *a = row % 7;
    *b = row % 5 - 2;
    *y = 2 * *a - *b + 1;
}

static bool misses(int row)
{
    return row % 8 == 3;
}

static void write_table(void)
{
    char text[64 * ROWS], *at = text + sprintf(text, "a,b,y\n");
    for (int i = 0; i < ROWS; i++) {
        double a, b, y;
        numbers_of(i, &a, &b, &y);
        at += misses(i) ? sprintf(at, "%g,NA,%g\n", a, y) : sprintf(at, "%g,%g,%g\n", a, b, y);
    }
    write_file("table.csv", text);
}

static void train_model(const char *name, const char *model)
{
    char path[SCRATCH_PATH], out[SCRATCH_PATH + 8];
    struct job job;
    struct outcome outcome;
    write_file(name, model);
    job_begin(&job, scratch_join(path, scratch_place, name));
    snprintf(out, sizeof out, "%s.run", path);
    job.settings.out = out;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", name, outcome.message);
}

static tr_predictor *load(const char *name)
{
    char path[SCRATCH_PATH], out[SCRATCH_PATH + 8];
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    snprintf(out, sizeof out, "%s.run", scratch_join(path, scratch_place, name));
    settings.checkpoint = out;
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &predictor));
    return predictor;
}

static int make(void **state)
{
    scratch_place_make(state);
    write_table();
    train_model(
        "table.yaml",
        "name: table\ndata: {train: {csv: {path: table.csv, label: value, label_columns: y, missing: mean, "
        "standardize: true}}}\n"
        "layers: [{dense: 1}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.1}\n"
        "train: {batch: 8, steps: 20, evaluate_batch: 16}\n");
    train_model("strict.yaml",
                "name: strict\ndata: {train: {csv: {path: table.csv, label: value, label_columns: y, "
                "missing: skip}}}\n"
                "layers: [{dense: 1}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.1}\n"
                "train: {batch: 8, steps: 2}\n");
    write_file("tags.tsv", "the dog runs\t0 1 2\na cat sleeps now\t0 1 2 -\ndog\t1\nthe cat runs\t0 1 2\n");
    train_model("tags.yaml",
                "name: tags\ndata: {train: {text: {path: tags.tsv, tags: true, max_tokens: 4}}}\n"
                "input: {classes: [det, noun, verb]}\n"
                "layers: [{embedding: 8}, {dense: 3}]\n"
                "optimizer: {rule: adam, rate: 0.1}\n"
                "train: {batch: 4, steps: 60, evaluate_batch: 3}\n");
    return 0;
}

/* What a listener was told. */
struct heard {
    int64_t example[ROWS], count, calls, most;
    float output[ROWS], target[ROWS];
    int64_t stop; /* ends the run with call `stop`; 0: never */
};

static int hear(void *user, const struct tr_prediction *prediction)
{
    struct heard *heard = user;
    assert_null(prediction->labels);
    assert_null(prediction->offset);
    assert_int_equal(prediction->rows, prediction->count);
    for (int64_t i = 0; i < prediction->count; i++, heard->count++) {
        heard->example[heard->count] = prediction->first + i;
        heard->output[heard->count] = prediction->output[i];
        heard->target[heard->count] = prediction->targets ? prediction->targets[i] : NAN;
    }
    if (prediction->count > heard->most) heard->most = prediction->count;
    return ++heard->calls == heard->stop;
}

/* ---- tables ---- */

static void test_ranges_of_a_data_set(void **state)
{
    (void)state;
    static const struct tr_example_range ranges[] = {{30, 40}, {0, 20}, {5, 5}, {7, 8}};
    tr_predictor *predictor = load("table.yaml");
    tr_source *source;
    struct heard heard = {0};
    must_train(tr_predictor_open_data(predictor, "train", &source));
    must_train(tr_predictor_run(predictor, source, ranges, 4, hear, &heard));
    assert_int_equal(heard.count, 31);
    for (int64_t i = 0; i < heard.count; i++) {
        int64_t row = i < 10 ? 30 + i : i < 30 ? i - 10 : 7;
        double a, b, y;
        numbers_of((int)row, &a, &b, &y);
        assert_int_equal(heard.example[i], row);
        assert_float_equal(heard.target[i], y, 1e-6);
    }
    assert_int_equal(heard.most, 16); /* evaluate_batch */
    static const struct tr_example_range wrong[] = {{-1, 2}, {3, 2}, {39, 41}, {INT64_MIN, INT64_MAX}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(tr_predictor_run(predictor, source, &wrong[i], 1, hear, &heard), TR_EINVAL);
    static const struct tr_example_range beyond = {40, 41}, nothing = {40, 40};
    assert_int_equal(tr_predictor_run(predictor, source, &beyond, 1, hear, &heard), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "1 examples from number 40 on are wanted; the source has 40, counted from 0");
    assert_int_equal(heard.count, 31);
    must_train(tr_predictor_run(predictor, source, &nothing, 1, hear, &heard));
    assert_int_equal(heard.count, 31);
    heard = (struct heard){.stop = 2};
    assert_int_equal(tr_predictor_run(predictor, source, ranges, 2, hear, &heard), TR_EINTERRUPTED);
    assert_string_equal(tr_error_message(), "the predictions were ended after 10 examples");
    assert_int_equal(heard.calls, 2);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

/* The numbers of a data set given by hand, gaps included, get the same answers as the data set. */
static void test_numbers_by_hand(void **state)
{
    (void)state;
    static const struct tr_example_range all = {0, ROWS};
    tr_predictor *predictor = load("table.yaml");
    tr_source *source;
    struct heard from_set = {0}, given = {0}, filled = {0};
    struct tr_examples examples = TR_EXAMPLES_INIT;
    float values[ROWS][2], one;
    double sum = 0;
    int present = 0;
    must_train(tr_predictor_open_data(predictor, "train", &source));
    must_train(tr_predictor_run(predictor, source, &all, 1, hear, &from_set));
    for (int i = 0; i < ROWS; i++) {
        double a, b, y;
        numbers_of(i, &a, &b, &y);
        values[i][0] = (float)a;
        values[i][1] = misses(i) ? NAN : (float)b;
        sum += misses(i) ? 0 : b;
        present += !misses(i);
    }
    examples.count = ROWS;
    examples.floats = values[0];
    must_train(tr_predictor_batch(predictor, &examples, hear, &given));
    for (int i = 0; i < ROWS; i++)
        if (misses(i)) values[i][1] = (float)(sum / present);
    must_train(tr_predictor_batch(predictor, &examples, hear, &filled));
    assert_int_equal(given.count, ROWS);
    assert_int_equal(given.most, 16);
    assert_memory_equal(given.output, from_set.output, sizeof given.output);
    assert_memory_equal(given.output, filled.output, sizeof given.output);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(given.example[i], i);
        must_train(tr_predictor_floats(predictor, values[i], &one));
        assert_memory_equal(&one, &given.output[i], sizeof one);
    }
    /* The line was learned: rows that miss nothing lie near it. */
    assert_true(fabsf(from_set.output[0] - from_set.target[0]) < 1);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

static void test_facts_about_outputs(void **state)
{
    (void)state;
    tr_predictor *predictor = load("table.yaml");
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    struct tr_predict_head head = TR_PREDICT_HEAD_INIT;
    must_train(tr_predictor_info(predictor, &info));
    assert_int_equal(info.heads, 1);
    assert_int_equal(info.targets, 1);
    assert_string_equal(info.target_names[0], "y");
    assert_false(info.language_model);
    assert_int_equal(info.pixel_height, 0);
    assert_int_equal(info.pixel_width, 0);
    must_train(tr_predictor_head(predictor, 0, &head));
    assert_string_equal(head.loss, "mean_squared_error");
    assert_int_equal(head.outputs, 1);
    assert_string_equal(head.name, "dense1");
    assert_false(head.classification || head.yes_or_no);
    assert_int_equal(tr_predictor_head(predictor, 1, &head), TR_ENOTFOUND);
    tr_predictor_destroy(&predictor);
}

static void test_wrong_examples(void **state)
{
    (void)state;
    tr_predictor *predictor = load("strict.yaml");
    const float gap[] = {1, 2, 3, NAN};
    const uint8_t image = 0;
    const char *const text = "a";
    struct heard heard = {0};
    struct tr_examples examples = TR_EXAMPLES_INIT;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    examples.count = 2;
    examples.floats = gap;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "example 2: value 2 of 2 is missing"));
    examples.images = &image;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    examples.floats = NULL;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    examples.images = NULL;
    examples.texts = &text;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "takes numbers, not text"));
    examples.size = 0;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINVAL);
    assert_int_equal(heard.calls, 0);
    tr_predictor_destroy(&predictor);
}

/* Numbers have no names, and one input has none. */
static void test_what_a_table_has_not(void **state)
{
    (void)state;
    tr_predictor *predictor = load("table.yaml");
    tr_source *source = NULL, *view = NULL;
    float value;
    must_train(tr_predictor_open_data(predictor, "train", &source));
    for (int32_t column = 0; column < 2; column++) {
        char part[32];
        snprintf(part, sizeof part, "value %d of \"", (int)column + 1);
        assert_int_equal(tr_predictor_category_count(predictor, column), 0);
        assert_null(tr_predictor_category_name(predictor, column, 0));
        assert_int_equal(tr_predictor_category(predictor, column, "a", &value), TR_ENOTFOUND);
        assert_non_null(strstr(tr_error_message(), part));
        assert_non_null(strstr(tr_error_message(), "\" is a number, no name"));
    }
    const struct tr_named_source given = {"left", source};
    assert_int_equal(tr_predictor_view_inputs(predictor, &given, 1, &view), TR_EINVAL);
    assert_non_null(
        strstr(tr_error_message(), "takes one input, which has no name; take tr_predictor_view()"));
    assert_null(view);
    assert_int_equal(tr_predictor_open_data(predictor, "test", &view), TR_ENOTFOUND);
    assert_true(tr_predictor_has_data(predictor, "train"));
    assert_false(tr_predictor_has_data(predictor, "test"));
    assert_false(tr_predictor_has_data(predictor, "trains"));
    const struct tr_generate_settings text = TR_GENERATE_SETTINGS_INIT;
    assert_int_equal(tr_predictor_generate(predictor, &text, NULL, NULL), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(),
                           "the network takes no text; text comes from one that was trained on a "
                           "corpus"));
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

/* ---- tags ---- */

struct tags {
    tr_predictor *predictor;
    char words[8][16], tags[8][16], truth[8][16]; /* of an example, joined by blanks */
    int64_t count;
    bool labelled;
};

static int hear_tags(void *user, const struct tr_prediction *prediction)
{
    struct tags *tags = user;
    assert_non_null(prediction->offset);
    assert_int_equal(prediction->rows, prediction->offset[prediction->count]);
    tags->labelled = prediction->labels;
    for (int64_t i = 0; i < prediction->count; i++) {
        int64_t n = prediction->first + i;
        for (int32_t t = prediction->offset[i]; t < prediction->offset[i + 1]; t++) {
            const float *row = prediction->output + 3 * (int64_t)t;
            int best = row[1] > row[0] ? row[2] > row[1] ? 2 : 1 : row[2] > row[0] ? 2 : 0;
            char *word;
            assert_true(fabsf(row[0] + row[1] + row[2] - 1) < 1e-5F);
            must_train(tr_predictor_word(tags->predictor, prediction->tokens[t], &word));
            strcat(strcat(tags->words[n], word), " ");
            sprintf(tags->tags[n] + strlen(tags->tags[n]), "%d", best);
            if (prediction->labels)
                sprintf(tags->truth[n] + strlen(tags->truth[n]), "%d ", (int)prediction->labels[t]);
            tr_text_free(word);
        }
        tags->count++;
    }
    return 0;
}

static void test_tags(void **state)
{
    (void)state;
    static const struct tr_example_range all = {0, 4};
    static const char *const texts[] = {"dog runs", "unheard", "the cat a dog runs sleeps"};
    struct tags of_set = {.predictor = load("tags.yaml")}, given = {.predictor = of_set.predictor};
    struct tr_examples examples = TR_EXAMPLES_INIT;
    tr_source *source;
    float output[3];
    must_train(tr_predictor_open_data(of_set.predictor, "train", &source));
    must_train(tr_predictor_run(of_set.predictor, source, &all, 1, hear_tags, &of_set));
    assert_int_equal(of_set.count, 4);
    assert_string_equal(of_set.words[0], "the dog runs ");
    assert_string_equal(of_set.tags[0], "012");
    assert_string_equal(of_set.truth[1], "0 1 2 -1 ");
    assert_string_equal(of_set.tags[2], "1");
    assert_string_equal(of_set.words[3], "the cat runs ");
    examples.count = 3;
    examples.texts = texts;
    must_train(tr_predictor_batch(given.predictor, &examples, hear_tags, &given));
    assert_false(given.labelled);
    assert_string_equal(given.words[0], "dog runs ");
    assert_string_equal(given.tags[0], "12");
    assert_string_equal(given.words[1], "<unknown> ");
    assert_string_equal(given.tags[2], "0101"); /* max_tokens: 4 */
    size_t begin[3], end[3];
    int64_t count, taken;
    must_train(tr_predictor_tokens(given.predictor, "  the cat a dog  runs ", 3, begin, end, &count, &taken));
    assert_int_equal(count, 5);
    assert_int_equal(taken, 4);
    assert_int_equal(begin[0], 2);
    assert_int_equal(end[1], 9);
    assert_int_equal(begin[2], 10);
    assert_int_equal(tr_predictor_source(given.predictor, source, 0, 1, output), TR_EUNSUPPORTED);
    assert_int_equal(tr_predictor_text(given.predictor, "dog", output), TR_EUNSUPPORTED);
    static const char *const empty[] = {"dog", " "};
    examples.count = 2;
    examples.texts = empty;
    assert_int_equal(tr_predictor_batch(given.predictor, &examples, hear_tags, &given), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "text 2 has no words"));
    tr_source_close(&source);
    tr_predictor_destroy(&given.predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_of_a_data_set), cmocka_unit_test(test_numbers_by_hand),
        cmocka_unit_test(test_facts_about_outputs),  cmocka_unit_test(test_wrong_examples),
        cmocka_unit_test(test_what_a_table_has_not), cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
