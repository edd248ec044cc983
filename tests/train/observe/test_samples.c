/* Samples for TensorBoard: the first examples of the first batch, as they are stored, with their labels and
 * with what the network says of them. */
#include "support/files/event_files.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "data/images/image.h"

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("words.tsv", "a*b <c> x|y\tgood!\nplain [text]\tso_so\n");
    scratch_write_text("words.yaml", "name: words\ndata: {train: {text: {path: words.tsv}}}\n"
                                     "layers: [{embedding: 3}, last, {dense: 2}]\n"
                                     "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 2, steps: 1}\n");
    return 0;
}

/* What the table of a moment says. */
static void table_of(const struct event_file *file, const char *when, int64_t step, char table[2048])
{
    const Tensorboard__Summary__Value *value = event_file_find(file, when, step);
    assert_non_null(value);
    ProtobufCBinaryData text = value->tensor->string_val[0];
    snprintf(table, 2048, "%.*s", (int)text.len, (const char *)text.data);
    static const char head[] = "| sentence | label | prediction |\n|---|---|---|\n";
    assert_memory_equal(table, head, sizeof head - 1);
    memmove(table, table + sizeof head - 1, strlen(table) - sizeof head + 2);
}

static int lines_of(const char *table)
{
    int lines = 0;
    for (const char *at = table; *at; at++) lines += *at == '\n';
    return lines;
}

static void expect_row(const char *table, const char *row)
{
    if (!strstr(table, row)) fail_msg("\"%s\" lacks \"%s\"", table, row);
}

static void run_words(struct event_file *file, const char *const *set)
{
    struct job job;
    struct outcome outcome;
    char board[SCRATCH_PATH];
    static int boards;
    char name[24];
    snprintf(name, sizeof name, "board%d", boards++);
    job_begin(&job, scratch_in("words.yaml"));
    job_set_all(&job, set);
    job.settings.tensorboard = scratch_join(board, scratch_place, name);
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    event_file_of(board, 0, 1, file);
}

static void signs_are_shown_literally(void **state)
{
    (void)state;
    struct event_file file;
    char table[2048];
    run_words(&file, NULL);
    const char *const when[] = {"samples before training", "samples after training"};
    for (int i = 0; i < 2; i++) {
        table_of(&file, when[i], i, table);
        expect_row(table, "| a\\*b &#60;c&#62; x&#124;y  | good\\! | ");
        expect_row(table, "| plain \\[text\\]  | so\\_so | ");
        assert_int_equal(lines_of(table), 2);
    }
    event_file_release(&file);
}

/* Of the first batch alone, in its order, and not more than are looked at. */
static void they_are_the_first_of_the_first_batch(void **state)
{
    (void)state;
    static const struct {
        const char *batch;
        int shown;
    } cases[] = {
        {"train.batch=13", 13}, {"train.batch=16", 16}, {"train.batch=17", 16}, {"train.batch=18", 16}};
    char lines[18 * 24] = "", table[2048];
    for (int i = 0; i < 18; i++)
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "w%c\t%s\n", 'a' + i,
                 i % 2 ? "no" : "yes");
    scratch_write_text("many.tsv", lines);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const char *const set[] = {"data.train.text.path=many.tsv", "train.shuffle=false", cases[c].batch,
                                   NULL};
        struct event_file file;
        run_words(&file, set);
        table_of(&file, "samples before training", 0, table);
        assert_int_equal(lines_of(table), cases[c].shown);
        const char *at = table;
        for (int i = 0; i < cases[c].shown; i++, at = strchr(at, '\n') + 1) {
            char row[48];
            snprintf(row, sizeof row, "| w%c  | %s | ", 'a' + i, i % 2 ? "no" : "yes");
            if (strncmp(at, row, strlen(row)) != 0) fail_msg("row %d of \"%s\" is not \"%s\"", i, table, row);
        }
        event_file_release(&file);
    }
}

/* ---- pictures ---- */

#define SIDE 2
#define LONG "abcdefghijklmnopqrstuvwxyz-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789"

/* Runs a network that says for output k what pixel k is, on two images of a program; `weights` 0: it says
   nothing but its bias. */
static void run_images(const uint8_t *pixels, int64_t channels, const struct tr_array *labels,
                       const char *const *names, const char *model, const float *bias, int64_t outputs,
                       const char *board, struct event_file *file)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct job job;
    tr_source *source = NULL;
    char path[SCRATCH_PATH];
    float weights[SIDE * SIDE * 3 * 4] = {0};
    arrays.features = (struct tr_array){pixels, TR_ARRAY_UINT8, 4, {2, SIDE, SIDE, channels}, {0}};
    arrays.labels = *labels;
    arrays.class_names = names;
    arrays.classes = names ? 4 : 0;
    must_train(tr_source_from_arrays(&arrays, &source));
    const struct tr_named_source data = {"train", source};
    job_begin(&job, NULL);
    job.settings.model_text = model;
    job.settings.data = &data;
    job.settings.data_count = 1;
    job.settings.tensorboard = scratch_join(path, scratch_place, board);
    tr_trainer *trainer = job_trainer(&job);
    for (int64_t k = 0; k < outputs; k++) weights[k * outputs + k] = bias ? 0 : 1;
    must_train(
        tr_trainer_set_parameter(trainer, "dense1.weights", weights, SIDE * SIDE * channels * outputs));
    if (bias) must_train(tr_trainer_set_parameter(trainer, "dense1.bias", bias, outputs));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    tr_trainer_destroy(&trainer);
    tr_source_close(&source);
    event_file_of(path, 0, 1, file);
}

static void expect_picture(const struct event_file *file, const char *tag, const uint8_t *pixels,
                           int channels)
{
    uint8_t shown[SIDE * SIDE * 3];
    const Tensorboard__Summary__Value *value = event_file_find(file, tag, 0);
    const struct tr_image_size size = {SIDE, SIDE, channels, 0};
    if (!value) fail_msg("there is no \"%s\"", tag);
    assert_int_equal(value->image->height, SIDE);
    assert_int_equal(value->image->width, SIDE);
    assert_int_equal(value->image->colorspace, channels);
    must_train(tr_image_decode("picture", value->image->encoded_image_string.data,
                               value->image->encoded_image_string.len, size, channels, shown));
    assert_memory_equal(shown, pixels, (size_t)(SIDE * SIDE * channels));
}

#define CLASSES                                                                                              \
    "layers: [flatten, {dense: 4}]\noptimizer: {rule: sgd, rate: 0.1}\n"                                     \
    "train: {batch: 2, steps: 1, shuffle: false}\n"
#define VALUES(outputs)                                                                                      \
    "layers: [flatten, {dense: " outputs "}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.1}\n" \
    "train: {batch: 2, steps: 1, shuffle: false}\n"

/* The first of the highest scores is the prediction. A slash, which TensorBoard takes for a group, is not
   shown, and long names end early. */
static void classes_have_their_names(void **state)
{
    (void)state;
    static const uint8_t pixels[2][SIDE * SIDE] = {{9, 200, 30, 200}, {7, 8, 100, 200}};
    static const char *const names[] = {"x", "a/b/c", "d", LONG};
    static const int32_t classes[] = {3, 1};
    const struct tr_array labels = {classes, TR_ARRAY_INT32, 1, {2}, {0}};
    struct event_file file;
    char tag[256];
    run_images(pixels[0], 1, &labels, names, CLASSES, NULL, 4, "named", &file);
    assert_int_equal(event_file_count(&file, "samples before training/"), 2);
    snprintf(tag, sizeof tag, "samples before training/00 label %.63s, prediction a-b-c", LONG);
    expect_picture(&file, tag, pixels[0], 1);
    snprintf(tag, sizeof tag, "samples before training/01 label a-b-c, prediction %.63s", LONG);
    expect_picture(&file, tag, pixels[1], 1);
    event_file_release(&file);
}

static void colours_are_shown_and_other_channels_are_not(void **state)
{
    (void)state;
    static const uint8_t pixels[2][SIDE * SIDE * 3] = {{1, 2, 3, 40, 50, 60, 70, 80, 90, 250, 251, 252},
                                                       {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2}};
    static const int32_t classes[] = {3, 1};
    const struct tr_array labels = {classes, TR_ARRAY_INT32, 1, {2}, {0}};
    struct event_file file;
    run_images(pixels[0], 3, &labels, NULL, CLASSES, NULL, 4, "colours", &file);
    expect_picture(&file, "samples before training/00 label 3, prediction 3", pixels[0], 3);
    expect_picture(&file, "samples before training/01 label 1, prediction 0", pixels[1], 3);
    event_file_release(&file);
    run_images(pixels[0], 2, &labels, NULL, CLASSES, NULL, 4, "pairs", &file);
    assert_int_equal(event_file_count(&file, "samples"), 0);
    assert_int_equal(event_file_count(&file, "loss"), 1); /* all else is there */
    event_file_release(&file);
}

/* The first number, with a hint at others. */
static void numbers_are_shown_shortly(void **state)
{
    (void)state;
    static const uint8_t pixels[2][SIDE * SIDE] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    static const float values[2][2] = {{0.25F, 3}, {123456.0F, -1}}, one[2] = {-7, 0.5F};
    static const float bias[] = {0.123456F, 9}, single[] = {2};
    const struct tr_array labels = {values, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}},
                          short_labels = {one, TR_ARRAY_FLOAT32, 1, {2}, {0}};
    struct event_file file;
    run_images(pixels[0], 1, &labels, NULL, VALUES("2"), bias, 2, "values", &file);
    expect_picture(&file, "samples before training/00 label 0.25 ..., prediction 0.1235 ...", pixels[0], 1);
    expect_picture(&file, "samples before training/01 label 1.235e+05 ..., prediction 0.1235 ...", pixels[1],
                   1);
    event_file_release(&file);
    run_images(pixels[0], 1, &short_labels, NULL, VALUES("1"), single, 1, "value", &file);
    expect_picture(&file, "samples before training/00 label -7, prediction 2", pixels[0], 1);
    expect_picture(&file, "samples before training/01 label 0.5, prediction 2", pixels[1], 1);
    event_file_release(&file);
}

/* Probabilities of classes: the label is the likeliest. */
static void probabilities_have_a_likeliest_class(void **state)
{
    (void)state;
    static const uint8_t pixels[2][SIDE * SIDE] = {{1, 2, 30, 4}, {50, 6, 7, 8}};
    static const float values[2][4] = {{0.2F, 0.1F, 0.3F, 0.4F}, {0.3F, 0.1F, 0.3F, 0.3F}};
    const struct tr_array labels = {values, TR_ARRAY_FLOAT32, 2, {2, 4}, {0}};
    struct event_file file;
    run_images(pixels[0], 1, &labels, NULL, "loss: soft_cross_entropy\n" CLASSES, NULL, 4, "likely", &file);
    expect_picture(&file, "samples before training/00 label 3, prediction 2", pixels[0], 1);
    expect_picture(&file, "samples before training/01 label 0, prediction 0", pixels[1], 1);
    event_file_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_are_shown_literally),
        cmocka_unit_test(they_are_the_first_of_the_first_batch),
        cmocka_unit_test(classes_have_their_names),
        cmocka_unit_test(colours_are_shown_and_other_channels_are_not),
        cmocka_unit_test(numbers_are_shown_shortly),
        cmocka_unit_test(probabilities_have_a_likeliest_class),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
