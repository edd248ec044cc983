/* Text from a network: which token is drawn follows from the scores and a number by the formula that
 * train/evaluate/generator.h states, and texts are the same on every device and in every way of computing
 * them.
 */
#include "refuse.h"
#include "support/training.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"
#include "device/device.h"
#include "train/evaluate/generator.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- drawing ---- */

static const float scores[] = {5, 1, 3, -2, 3, 0.5f, NAN, 2.5f};
enum { COUNT = sizeof scores / sizeof scores[0] };

static int32_t draw(struct tr_decoding sampling, uint64_t index)
{
    float copy[COUNT];
    memcpy(copy, scores, sizeof copy);
    return tr_sample(&sampling, index, copy, COUNT);
}

/* The formula, with a table of who may be drawn. */
static int32_t expected(float temperature, const bool *may, float greatest, uint64_t seed, uint64_t index)
{
    double sum = 0, part = 0;
    float weight[COUNT];
    uint32_t word[4];
    for (int k = 0; k < COUNT; k++) {
        weight[k] = may[k] ? tr_expf((scores[k] - greatest) / temperature) : 0;
        sum += (double)weight[k];
    }
    tr_rng_philox(tr_rng_key_make(seed, 9), (uint32_t)index, 0, 0, 0, word);
    double unit = ldexp((double)(((uint64_t)word[0] << 32 | word[1]) >> 11), -53);
    for (int k = 0; k < COUNT; k++)
        if ((part += (double)weight[k]) > unit * sum) return k;
    return -1;
}

static void test_draws_follow_the_formula(void **state)
{
    (void)state;
    static const struct {
        struct tr_decoding sampling;
        bool may[COUNT];
        float greatest;
    } ways[] = {
        {{.temperature = 1, .seed = 7}, {1, 1, 1, 1, 1, 1, 0, 1}, 5},
        {{.temperature = 0.7f, .seed = 8, .has_unknown = true}, {0, 1, 1, 1, 1, 1, 0, 1}, 3},
        {{.temperature = 3, .top_k = 2, .seed = 9, .has_unknown = true}, {0, 0, 1, 0, 1, 0, 0, 0}, 3},
        {{.temperature = 3, .top_k = 4, .seed = 9}, {1, 0, 1, 0, 1, 0, 0, 1}, 5},
        {{.temperature = 2, .top_k = 1, .seed = 9, .has_unknown = true}, {0, 0, 1, 0, 0, 0, 0, 0}, 3},
        {{.temperature = 2, .top_k = 100, .seed = 4}, {1, 1, 1, 1, 1, 1, 0, 1}, 5},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int drawn[COUNT] = {0};
        for (uint64_t index = 0; index < 2000; index++) {
            int32_t token = draw(ways[i].sampling, index);
            int32_t wanted = expected(ways[i].sampling.temperature, ways[i].may, ways[i].greatest,
                                      ways[i].sampling.seed, index);
            if (token != wanted)
                fail_msg("way %d, number %d: %d was drawn, not %d", (int)i, (int)index, token, wanted);
            drawn[token]++;
        }
        for (int k = 0; k < COUNT; k++)
            if (!ways[i].may[k]) assert_int_equal(drawn[k], 0);
    }
}

static void test_without_chance(void **state)
{
    (void)state;
    for (uint64_t index = 0; index < 20; index++) {
        assert_int_equal(draw((struct tr_decoding){.seed = index}, index), 0);
        assert_int_equal(draw((struct tr_decoding){.seed = index, .has_unknown = true}, index), 2);
    }
}

/* ---- texts ---- */

struct text {
    char bytes[4096];
    size_t length;
    int pieces, most; /* ends the text after so many pieces, if > 0 */
};

static int hear(void *user, const char *piece, size_t length)
{
    struct text *text = user;
    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
    text->bytes[text->length] = 0;
    return ++text->pieces == text->most;
}

static char run[SCRATCH_PATH];

static int train(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char model[SCRATCH_PATH];
    family_place_make(NULL);
    job_begin(&job, scratch_join(model, family_place, "language.yaml"));
    job_set(&job, "train.steps=30");
    job.settings.out = scratch_join(run, family_place, "run");
    job_outcome(&job, &outcome);
    return outcome.status == TR_OK ? 0 : -1;
}

static tr_status generate(const char *device, int threads, struct tr_generate_settings settings,
                          struct text *text)
{
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    predict.checkpoint = run;
    predict.device = device;
    predict.threads = threads;
    must_train(tr_predictor_create(&predict, &predictor));
    text->length = 0;
    text->pieces = 0;
    tr_status status = tr_predictor_generate(predictor, &settings, hear, text);
    tr_predictor_destroy(&predictor);
    return status;
}

static struct tr_generate_settings of_prompt(const char *prompt)
{
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    settings.prompt = prompt;
    settings.tokens = 60;
    return settings;
}

static void test_one_text_everywhere(void **state)
{
    (void)state;
    struct tr_generate_settings settings = of_prompt("the film is ");
    for (settings.context = 0; settings.context <= 5; settings.context += 5) {
        struct text expected = {0}, got = {0};
        must_train(generate("ref", 1, settings, &expected));
        assert_int_equal(expected.pieces, 60);
        must_train(generate("cpu", 1, settings, &got));
        assert_string_equal(got.bytes, expected.bytes);
        must_train(generate("cpu", 3, settings, &got));
        assert_string_equal(got.bytes, expected.bytes);
        settings.seed++;
        must_train(generate("cpu", 1, settings, &got));
        assert_string_not_equal(got.bytes, expected.bytes);
    }
}

/* What came is the prompt of what comes, as long as nothing is forgotten. */
static void test_a_text_goes_on_from_itself(void **state)
{
    (void)state;
    struct tr_generate_settings settings = of_prompt("a ");
    struct text whole = {0}, first = {0}, second = {0};
    char prompt[sizeof first.bytes + 8];
    settings.temperature = 0;
    settings.tokens = 9;
    must_train(generate("cpu", 1, settings, &whole));
    settings.tokens = 4;
    must_train(generate("cpu", 1, settings, &first));
    snprintf(prompt, sizeof prompt, "a %s", first.bytes);
    settings.prompt = prompt;
    settings.tokens = 5;
    must_train(generate("cpu", 1, settings, &second));
    strcat(first.bytes, second.bytes);
    assert_string_equal(first.bytes, whole.bytes);
}

/* The token behind a prompt of 200. */
static tr_status next_of_many(tr_device *device, const tr_trainer *trainer, const float *parameters)
{
    static const int32_t tokens[200] = {1, 2, 3};
    const struct tr_decoding greatest = {.temperature = 0};
    tr_generator *generator = NULL;
    int32_t token;
    tr_status status = tr_generator_create(device, trainer_job(trainer), parameters, 0, &generator);
    if (status == TR_OK) status = tr_generator_begin(generator, tokens, 200);
    if (status == TR_OK) status = tr_generator_next(generator, &greatest, &token);
    tr_generator_destroy(&generator);
    return status;
}

static void test_without_memory_nothing_stays(void **state)
{
    (void)state;
    struct job job;
    char model[SCRATCH_PATH];
    tr_device *device;
    job_begin(&job, scratch_join(model, family_place, "language.yaml"));
    tr_trainer *trainer = job_trainer(&job);
    float *parameters = tr_alloc_zero((size_t)trainer_job(trainer)->model->arena_floats, sizeof *parameters);
    assert_non_null(parameters);
    must_train(tr_device_create("cpu", 1, NULL, &device));
    must_train(next_of_many(device, trainer, parameters)); /* the device keeps what it computed in */
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = next_of_many(device, trainer, parameters);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld refused gives %s: %s", (long long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_free(parameters);
    tr_device_destroy(&device);
    tr_trainer_destroy(&trainer);
}

static void refused(struct tr_generate_settings settings, tr_status wanted, const char *says)
{
    struct text text = {0};
    assert_int_equal(generate("cpu", 1, settings, &text), wanted);
    assert_int_equal(text.pieces, 0);
    if (!strstr(tr_error_message(), says)) fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), says);
}

static void test_refusals(void **state)
{
    (void)state;
    static const int64_t tokens[] = {0, -3, ((int64_t)1 << 30) + 1};
    static const double temperatures[] = {-1, -1e-9, 1e6 + 1, NAN};
    struct tr_generate_settings settings = of_prompt("");
    char says[160];
    refused(settings, TR_EINVAL, "the prompt is empty; give at least one token to go on from");
    refused(of_prompt("fine \xe2\x82\xac"), TR_EINVAL,
            "the prompt's token 6, \"\xe2\x82\xac\", is none of the ");
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        settings = of_prompt("a");
        settings.tokens = tokens[i];
        snprintf(says, sizeof says, "%lld tokens are wanted; give 1 to 1073741824", (long long)tokens[i]);
        refused(settings, TR_EINVAL, says);
    }
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        settings = of_prompt("a");
        settings.temperature = temperatures[i];
        snprintf(says, sizeof says, "temperature is %g; give 0 to 1e6", temperatures[i]);
        refused(settings, TR_EINVAL, says);
    }
    settings = of_prompt("a");
    settings.top_k = -1;
    refused(settings, TR_EINVAL, "top_k is -1 and context 0; neither may be negative");
    settings.top_k = 2;
    settings.context = -1;
    refused(settings, TR_EINVAL, "top_k is 2 and context -1; neither may be negative");
    settings = of_prompt("a");
    settings.source = "b";
    refused(settings, TR_EINVAL, "takes one text; give it as the prompt");
}

/* The limits themselves are allowed. */
static void test_limits(void **state)
{
    (void)state;
    struct tr_generate_settings settings = of_prompt("a");
    struct text text = {.most = 2};
    settings.tokens = 1 << 30;
    settings.temperature = 1e6;
    assert_int_equal(generate("cpu", 1, settings, &text), TR_EINTERRUPTED);
    settings.tokens = 1;
    settings.temperature = 0;
    settings.context = 1;
    settings.top_k = 1;
    must_train(generate("cpu", 1, settings, &text));
    assert_int_equal(text.pieces, 1);
}

static void test_one_text_is_no_translation(void **state)
{
    (void)state;
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    tr_source *source;
    char *text = NULL;
    predict.checkpoint = run;
    must_train(tr_predictor_create(&predict, &predictor));
    must_train(tr_predictor_open_data(predictor, "test", &source));
    assert_int_equal(tr_predictor_translate(predictor, "a", &text), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(),
                           "does not make one text of another; it was not trained on two texts, "
                           "the second with `next`"));
    assert_int_equal(tr_predictor_translate_example(predictor, source, 0, &text, NULL), TR_EUNSUPPORTED);
    assert_null(text);
    tr_source_close(&source);
    assert_int_equal(tr_predictor_open_file(predictor, "any", &source), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "\"any\" alone says too little: the network of "));
    assert_non_null(strstr(tr_error_message(), "describe the data as in a model file"));
    tr_predictor_destroy(&predictor);
}

static void test_a_listener_ends_the_text(void **state)
{
    (void)state;
    struct text text = {.most = 3};
    assert_int_equal(generate("cpu", 1, of_prompt("a"), &text), TR_EINTERRUPTED);
    assert_string_equal(tr_error_message(), "the text was ended after 3 tokens");
    assert_int_equal(text.pieces, 3);
}

static void test_perplexity(void **state)
{
    (void)state;
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    tr_source *source;
    double loss, accuracy;
    float output[256];
    predict.checkpoint = run;
    must_train(tr_predictor_create(&predict, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_true(info.of_tokens);
    must_train(tr_predictor_open_data(predictor, "test", &source));
    must_train(tr_predictor_evaluate(predictor, source, &loss, &accuracy, NULL));
    /* Better than chance, and a share of tokens. */
    assert_true(loss > 1 && loss < log(info.outputs));
    assert_true(accuracy > 0.05 && accuracy < 0.9);
    assert_int_equal(tr_predictor_source(predictor, source, 0, 1, output), TR_EUNSUPPORTED);
    assert_int_equal(tr_predictor_text(predictor, "the", output), TR_EUNSUPPORTED);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_follow_the_formula),
        cmocka_unit_test(test_without_chance),
        cmocka_unit_test(test_one_text_everywhere),
        cmocka_unit_test(test_a_text_goes_on_from_itself),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_one_text_is_no_translation),
        cmocka_unit_test(test_a_listener_ends_the_text),
        cmocka_unit_test(test_perplexity),
        cmocka_unit_test(test_without_memory_nothing_stays),
    };
    return cmocka_run_group_tests(tests, train, family_place_remove);
}
