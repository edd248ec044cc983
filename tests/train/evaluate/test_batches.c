/* Predictions for what can be trained, from memory: tokens with lengths, several inputs by name, outputs by
 * name. */
#include "refuse.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT 60

static void assert_said(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static tr_source *source_of(const struct tr_arrays *arrays)
{
    tr_source *source = NULL;
    must_train(tr_source_from_arrays(arrays, &source));
    return source;
}

/* Trains a model on data in memory, and gives a predictor. */
static tr_predictor *learn(const char *model, const struct tr_named_source *data, int count, double *loss)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct tr_predict_settings answering = TR_PREDICT_SETTINGS_INIT;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    tr_trainer *trainer = NULL;
    tr_predictor *predictor = NULL;
    settings.model_text = model;
    settings.directory = scratch_place;
    settings.data = data;
    settings.data_count = count;
    settings.threads = answering.threads = 1;
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_evaluate(trainer, "train", &event));
    if (loss) *loss = event.loss;
    must_train(tr_trainer_predictor(trainer, &answering, &predictor));
    tr_trainer_destroy(&trainer);
    return predictor;
}

/* ---- tokens ---- */

static int32_t token[COUNT * 8], label[COUNT];
static int64_t offset[COUNT + 1];

static void make_tokens(void)
{
    for (int i = 0; i < COUNT; i++) {
        label[i] = i * 7 % 3;
        offset[i + 1] = offset[i] + 1 + i % 7;
        for (int64_t k = offset[i]; k < offset[i + 1]; k++) token[k] = (int32_t)((k * 5 + i) % 20);
    }
}

/* What was told, by the numbers of the rows. */
struct answers {
    float value[COUNT * 8 * 40];
    int64_t rows, width;
};

static int take(void *user, const struct tr_prediction *prediction)
{
    struct answers *answers = user;
    memcpy(answers->value + answers->rows * answers->width, prediction->output,
           (size_t)(prediction->rows * answers->width) * sizeof(float));
    answers->rows += prediction->rows;
    return 0;
}

static void test_tokens(void **state)
{
    static const char model[] = "layers:\n  - embedding: 6\n  - lstm: 5\n  - last\n  - dense: 3\n"
                                "loss: softmax_cross_entropy\noptimizer: {rule: adam, rate: 0.01}\n"
                                "train: {batch: 20, steps: 12}\n";
    static struct answers batch, source;
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct tr_examples examples = TR_EXAMPLES_INIT;
    tr_source *view = NULL;
    int32_t odd[] = {1, 20};
    int64_t where[] = {0, 2}, turned[] = {0, 0};
    (void)state;
    arrays.tokens = 1;
    arrays.vocabulary = 20;
    arrays.features = (struct tr_array){token, TR_ARRAY_INT32, 1, {offset[COUNT]}, {0}};
    arrays.offsets = (struct tr_array){offset, TR_ARRAY_INT64, 1, {COUNT + 1}, {0}};
    arrays.labels = (struct tr_array){label, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    tr_source *train = source_of(&arrays);
    tr_predictor *predictor = learn(model, &(struct tr_named_source){"train", train}, 1, NULL);
    batch.width = source.width = 3;
    examples.count = COUNT;
    examples.tokens = token;
    examples.offsets = offset;
    must_train(tr_predictor_batch(predictor, &examples, take, &batch));
    must_train(tr_predictor_view(predictor, train, &view));
    must_train(tr_predictor_run(predictor, view, &(struct tr_example_range){0, COUNT}, 1, take, &source));
    assert_int_equal(batch.rows, COUNT);
    assert_int_equal(source.rows, COUNT);
    assert_memory_equal(batch.value, source.value, sizeof(float) * COUNT * 3);
    /* What makes no examples. */
    examples.count = 1;
    examples.tokens = odd;
    examples.offsets = where;
    assert_int_equal(tr_predictor_batch(predictor, &examples, take, &batch), TR_EINVAL);
    assert_said("token 1 is 20");
    examples.offsets = turned;
    assert_int_equal(tr_predictor_batch(predictor, &examples, take, &batch), TR_EINVAL);
    assert_said("ascend");
    examples.offsets = NULL;
    assert_int_equal(tr_predictor_batch(predictor, &examples, take, &batch), TR_EINVAL);
    assert_said("without offsets");
    tr_source_close(&view);
    tr_source_close(&train);
    tr_predictor_destroy(&predictor);
}

static int first_piece(void *user, const char *piece, size_t length)
{
    snprintf(user, 8, "%.*s", (int)length, piece);
    return 1;
}

/* The likeliest next token is the one that generating without chance begins with. */
static void test_next_tokens(void **state)
{
    static const char model[] = "data: {train: {corpus: {path: poem.txt, window: 8, unit: characters}}}\n"
                                "layers:\n  - embedding: 8\n  - lstm: 12\n  - dense: 7\n"
                                "loss: softmax_cross_entropy\noptimizer: {rule: adam, rate: 0.02}\n"
                                "train: {batch: 4, steps: 40}\n";
    static const char poem[] = "abracadabra abracadabra abracadabra abracadabra abracadabra abracadabra abra";
    static const char *const prompts[] = {"abra", "cad", "b"};
    char path[SCRATCH_PATH];
    (void)state;
    FILE *file = fopen(scratch_join(path, scratch_place, "poem.txt"), "w");
    assert_non_null(file);
    fputs(poem, file);
    fclose(file);
    tr_predictor *predictor = learn(model, NULL, 0, NULL);
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    must_train(tr_predictor_info(predictor, &info));
    assert_true(info.language_model);
    for (size_t i = 0; i < 3; i++) {
        static struct answers answers;
        struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
        struct tr_examples examples = TR_EXAMPLES_INIT;
        const int64_t length = (int64_t)strlen(prompts[i]);
        int64_t where[] = {0, length};
        int32_t tokens[8] = {0};
        char next[8] = "", *word = NULL;
        settings.prompt = prompts[i];
        settings.temperature = 0;
        settings.tokens = 1;
        tr_predictor_generate(predictor, &settings, first_piece, next);
        /* Characters by their numbers: those of the words that the network knows. */
        for (int64_t k = 0; k < length; k++) {
            for (int32_t t = 0; t < info.outputs; t++) {
                must_train(tr_predictor_word(predictor, t, &word));
                if (word[0] == prompts[i][k] && !word[1]) tokens[k] = t;
                tr_text_free(word);
            }
        }
        examples.count = 1;
        examples.tokens = tokens;
        examples.offsets = where;
        answers = (struct answers){.width = info.outputs};
        must_train(tr_predictor_batch(predictor, &examples, take, &answers));
        assert_int_equal(answers.rows, length);
        const float *last = answers.value + (length - 1) * info.outputs;
        int32_t best = 1; /* the unknown one, 0, is never drawn */
        float sum = 0;
        for (int32_t t = 0; t < info.outputs; t++) sum += last[t];
        for (int32_t t = 1; t < info.outputs; t++)
            if (last[t] > last[best]) best = t;
        assert_true(sum > 0.999f && sum < 1.001f);
        must_train(tr_predictor_word(predictor, best, &word));
        assert_string_equal(word, next);
        tr_text_free(word);
    }
    tr_predictor_destroy(&predictor);
}

/* ---- several inputs, several outputs ---- */

static float left[COUNT][2], right[COUNT][3], target[COUNT][3];

static void make_numbers(void)
{
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 2; k++) left[i][k] = (float)((i * 13 + k * 29) % 64 - 32) / 16;
        for (int k = 0; k < 3; k++) right[i][k] = (float)((i * 7 + k * 31) % 50 - 25) / 16;
        target[i][0] = (float)(i % 3); /* a class */
        target[i][1] = left[i][0] + right[i][1];
        target[i][2] = left[i][1];
    }
}

static struct tr_arrays numbers(const float *values, int64_t width, bool labels)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.features = (struct tr_array){values, TR_ARRAY_FLOAT32, 2, {COUNT, width}, {0}};
    if (labels) arrays.labels = (struct tr_array){target, TR_ARRAY_FLOAT32, 2, {COUNT, 3}, {0}};
    return arrays;
}

static void test_inputs_and_outputs(void **state)
{
    static const char model[] =
        "data: {train: {join: {sources: {left: {memory: {name: left, standardize: true}},\n"
        "                                right: {memory: {name: right}}}}}}\n"
        "layers:\n  - dense: {units: 4, activation: tanh, name: l, from: left}\n"
        "  - dense: {units: 4, activation: tanh, name: r, from: right}\n"
        "  - concat: {from: [l, r]}\n  - dense: 5\n"
        "loss: [{kind: softmax_cross_entropy, outputs: 3}, {kind: mean_squared_error, outputs: 2}]\n"
        "optimizer: {rule: adam, rate: 0.01}\ntrain: {batch: 20, steps: 15}\n";
    struct tr_arrays a = numbers(&left[0][0], 2, true), b = numbers(&right[0][0], 3, false);
    tr_source *l = source_of(&a), *r = source_of(&b), *view = NULL;
    struct tr_named_source data[] = {{"left", l}, {"right", r}, {"more", r}},
                           swapped[] = {{"right", r}, {"left", l}};
    struct tr_predict_head head = TR_PREDICT_HEAD_INIT;
    static float answer[2][COUNT * 5];
    double loss, accuracy, expected;
    (void)state;
    tr_predictor *predictor = learn(model, data, 2, &expected);
    must_train(tr_predictor_view_inputs(predictor, data, 2, &view));
    must_train(tr_predictor_evaluate(predictor, view, &loss, &accuracy, NULL));
    assert_true(loss == expected);
    must_train(tr_predictor_source(predictor, view, 0, COUNT, answer[0]));
    tr_source_close(&view);
    must_train(tr_predictor_view_inputs(predictor, swapped, 2, &view));
    must_train(tr_predictor_source(predictor, view, 0, COUNT, answer[1]));
    tr_source_close(&view);
    assert_memory_equal(answer[0], answer[1], sizeof answer[0]);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_predictor_view_inputs(predictor, data, 2, &view);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_source_close(&view);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_int_equal(tr_predictor_view_inputs(predictor, data, 1, &view), TR_ENOTFOUND);
    assert_said("\"right\"");
    assert_null(view);
    assert_int_equal(tr_predictor_view_inputs(predictor, data, 3, &view), TR_EINVAL);
    /* Where the outputs of each loss are: those of the first are probabilities of classes. */
    must_train(tr_predictor_head(predictor, 0, &head));
    assert_int_equal(head.first_output, 0);
    float sum = 0;
    for (int k = 0; k < head.outputs; k++) sum += answer[0][head.first_output + k];
    assert_true(sum > 0.999f && sum < 1.001f);
    must_train(tr_predictor_head(predictor, 1, &head));
    assert_int_equal(head.first_output, 3);
    assert_int_equal(head.outputs, 2);
    assert_string_equal(head.name, ""); /* one layer gives the outputs of both */
    tr_predictor_destroy(&predictor);

    static const char one[] =
        "layers: [{dense: 1}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\n"
        "train: {batch: 20, steps: 2}\n";
    struct tr_arrays simple = numbers(&left[0][0], 2, false);
    simple.labels = (struct tr_array){&target[0][1], TR_ARRAY_FLOAT32, 1, {COUNT}, {sizeof target[0]}};
    tr_source *only = source_of(&simple);
    predictor = learn(one, &(struct tr_named_source){"train", only}, 1, NULL);
    assert_int_equal(tr_predictor_view_inputs(predictor, data, 2, &view), TR_EINVAL);
    assert_said("takes one input");
    tr_predictor_destroy(&predictor);
    tr_source_close(&only);
    tr_source_close(&l);
    tr_source_close(&r);
}

/* The layers that a concat at the end puts side by side, one for each loss, give its outputs a name. */
static void test_names_of_outputs(void **state)
{
    static const char model[] =
        "layers:\n  - dense: {units: 4, activation: tanh, name: shared}\n"
        "  - dense: {units: 3, name: kind}\n  - dense: {units: 2, from: shared, name: place}\n"
        "  - concat: {from: [kind, place]}\n"
        "loss: [{kind: softmax_cross_entropy, outputs: 3}, {kind: mean_squared_error, outputs: 2}]\n"
        "optimizer: {rule: adam, rate: 0.01}\ntrain: {batch: 20, steps: 2}\n";
    static const char *const names[] = {"kind", "place"};
    struct tr_arrays arrays = numbers(&left[0][0], 2, true);
    struct tr_predict_head head = TR_PREDICT_HEAD_INIT;
    tr_source *source = source_of(&arrays);
    char other[sizeof model];
    (void)state;
    tr_predictor *predictor = learn(model, &(struct tr_named_source){"train", source}, 1, NULL);
    for (int32_t i = 0; i < 2; i++) {
        must_train(tr_predictor_head(predictor, i, &head));
        assert_string_equal(head.name, names[i]);
    }
    tr_predictor_destroy(&predictor);
    /* Layers of other widths than the losses have. */
    strcpy(other, model);
    *strstr(other, "3, name") = '2';
    *strstr(other, "2, from") = '3';
    predictor = learn(other, &(struct tr_named_source){"train", source}, 1, NULL);
    must_train(tr_predictor_head(predictor, 0, &head));
    assert_string_equal(head.name, "");
    tr_predictor_destroy(&predictor);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_next_tokens),
        cmocka_unit_test(test_inputs_and_outputs),
        cmocka_unit_test(test_names_of_outputs),
    };
    make_tokens();
    make_numbers();
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
